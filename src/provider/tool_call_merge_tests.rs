use super::*;

fn piece<'a>(
    id: &'a str,
    index: impl Into<Option<u64>>,
    name: &'a str,
    arguments: &'a str,
) -> ToolCallPiece<'a> {
    ToolCallPiece {
        id: Some(id),
        key: None,
        index: index.into(),
        name: Some(name),
        arguments,
    }
}

/// Every event as one short text, ends included.
fn merge(pieces: &[ToolCallPiece<'_>]) -> Vec<String> {
    let mut calls = ToolCallMerge::default();
    let mut events = Vec::new();
    for piece in pieces {
        calls.take(*piece, &mut events);
    }
    let fault = calls.fault();
    calls.end_all(&mut events);
    let mut lines = lines(&events);
    lines.extend(fault.map(|fault| format!("{fault:?}")));
    lines
}

fn lines(events: &[ModelEvent]) -> Vec<String> {
    let line = |event: &ModelEvent| match event {
        ModelEvent::ToolCallStart {
            slot,
            vendor_id,
            name,
        } => format!("{slot} start {name} {}", vendor_id.as_deref().unwrap_or("-")),
        ModelEvent::ToolCallArguments { slot, delta } => format!("{slot} {delta}"),
        ModelEvent::ToolCallEnd { slot } => format!("{slot} end"),
        other => panic!("no call event: {other:?}"),
    };
    events.iter().map(line).collect()
}

#[test]
fn pieces_find_their_calls_whatever_the_upstream_leaves_out() {
    type Case = (
        &'static str,
        &'static [(&'static str, Option<u64>, &'static str, &'static str)],
        &'static [&'static str],
    );
    let cases: &[Case] = &[
        (
            "an index on every piece",
            &[
                ("a", Some(0), "f", ""),
                ("", Some(0), "", "{"),
                ("", Some(0), "", "}"),
            ],
            &["0 start f a", "0 {", "0 }", "0 end"],
        ),
        (
            "no index at all (B021)",
            &[("a", None, "f", ""), ("", None, "", "{}"), ("b", None, "g", "{}")],
            &["0 start f a", "0 {}", "1 start g b", "1 {}", "0 end", "1 end"],
        ),
        (
            "the id on every piece",
            &[
                ("a", None, "f", "{"),
                ("b", None, "f", "{"),
                ("a", None, "", "}"),
                ("b", None, "", "}"),
            ],
            &[
                "0 start f a",
                "0 {",
                "1 start f b",
                "1 {",
                "0 }",
                "0 end",
                "1 }",
                "1 end",
            ],
        ),
        (
            "one index for all calls (B023)",
            &[
                ("a", Some(0), "f", "{"),
                ("", Some(0), "", "}"),
                ("b", Some(0), "f", "{"),
                ("", Some(0), "", "}"),
            ],
            &[
                "0 start f a",
                "0 {",
                "0 }",
                "1 start f b",
                "1 {",
                "0 end",
                "1 }",
                "1 end",
            ],
        ),
        (
            "an index that counts something else (B025)",
            &[
                ("a", Some(2), "f", ""),
                ("", Some(0), "", "{"),
                ("", Some(0), "", "}"),
                ("b", Some(0), "g", ""),
                ("", Some(1), "", "{}"),
            ],
            &[
                "0 start f a",
                "0 {",
                "0 }",
                "1 start g b",
                "0 end",
                "1 {}",
                "1 end",
            ],
        ),
        (
            "an index that names a complete call (B025)",
            &[
                ("a", Some(1), "f", "{}"),
                ("b", Some(0), "g", "{"),
                ("", Some(1), "", "}"),
            ],
            &[
                "0 start f a",
                "0 {}",
                "1 start g b",
                "1 {",
                "0 end",
                "1 }",
                "1 end",
            ],
        ),
        (
            "the name blanked and repeated (B026)",
            &[
                ("a", Some(0), "f", ""),
                ("", Some(0), "", "{"),
                ("", Some(0), "f", "\"x\":1"),
                ("", Some(0), "", "}"),
                ("", Some(0), "f", ""),
            ],
            &["0 start f a", "0 {", "0 \"x\":1", "0 }", "0 end"],
        ),
        (
            "the name last (B028)",
            &[
                ("a", Some(0), "", "{\"x\""),
                ("", Some(0), "", ":1}"),
                ("", Some(0), "f", ""),
            ],
            &["0 start f a", "0 {\"x\":1}", "0 end"],
        ),
        (
            "no ids: another name is another call",
            &[
                ("", None, "f", ""),
                ("", None, "g", ""),
                ("", None, "g", "{}"),
                ("", None, "g", "{}"),
            ],
            &[
                "0 start f -",
                "1 start g -",
                "1 {}",
                "2 start g -",
                "2 {}",
                "0 end",
                "1 end",
                "2 end",
            ],
        ),
        (
            "the id after the name",
            &[
                ("", Some(0), "f", ""),
                ("a", Some(0), "", "{"),
                ("a", Some(5), "", "}"),
            ],
            &["0 start f -", "0 {", "0 }", "0 end"],
        ),
        (
            "one id for two whole calls under indexes of their own",
            &[("a", Some(0), "f", "{}"), ("a", Some(1), "f", "{}")],
            &["0 start f a", "0 {}", "1 start f a", "1 {}", "0 end", "1 end"],
        ),
        (
            "interleaved pieces (B037)",
            &[
                ("p", Some(0), "f", ""),
                ("q", Some(1), "g", ""),
                ("", Some(1), "", "{"),
                ("", Some(0), "", "{"),
                ("", Some(1), "", "}"),
                ("", Some(0), "", "}"),
            ],
            &[
                "0 start f p",
                "1 start g q",
                "1 {",
                "0 {",
                "1 }",
                "0 }",
                "0 end",
                "1 end",
            ],
        ),
        (
            "arguments that are nothing (B033)",
            &[
                ("a", Some(0), "f", " "),
                ("b", Some(1), "g", "null"),
                ("c", Some(2), "h", ""),
            ],
            &[
                "0 start f a",
                "1 start g b",
                "2 start h c",
                "0 end",
                "1 end",
                "2 end",
            ],
        ),
        (
            "pieces that say nothing",
            &[
                ("", None, "", ""),
                ("", Some(0), "", ""),
                ("a", Some(0), "f", "{}"),
                ("", Some(3), "", ""),
            ],
            &["0 start f a", "0 {}", "0 end"],
        ),
        (
            "braces inside strings",
            &[
                ("a", None, "f", r#"{"x":"}\"}"#),
                ("", None, "", r#"","y":[{}]}"#),
            ],
            &["0 start f a", r#"0 {"x":"}\"}"#, r#"0 ","y":[{}]}"#, "0 end"],
        ),
        (
            "arguments that stop in the middle",
            &[("a", None, "f", "{\"x\":")],
            &["0 start f a", "0 {\"x\":", "0 end", "NotAnObject"],
        ),
        (
            "two objects in one call",
            &[("a", None, "f", "{}"), ("a", None, "", "{}")],
            &["0 start f a", "0 {}", "0 {}", "0 end", "NotAnObject"],
        ),
        (
            "a list",
            &[("a", None, "f", "[{}]")],
            &["0 start f a", "0 [{}]", "0 end", "NotAnObject"],
        ),
        (
            "a call that nobody named",
            &[("a", None, "", "{}")],
            &["Nameless"],
        ),
    ];
    for (name, pieces, expected) in cases {
        let pieces: Vec<_> = pieces
            .iter()
            .map(|(id, index, name, text)| piece(id, *index, name, text))
            .collect();
        assert_eq!(merge(&pieces), *expected, "{name}");
    }
}

#[test]
fn deltas_may_name_a_call_by_a_key_of_their_own() {
    let opened = |id, key, name| ToolCallPiece {
        id: Some(id),
        key: Some(key),
        name: Some(name),
        ..ToolCallPiece::default()
    };
    let delta = |key, arguments| ToolCallPiece {
        key: Some(key),
        arguments,
        ..ToolCallPiece::default()
    };
    let pieces = [
        opened("call_1", "fc_1", "f"),
        opened("call_2", "", "g"),
        delta("call_2", "{\"n\":2}"),
        delta("fc_1", "{\"n\":1}"),
    ];
    assert_eq!(
        merge(&pieces),
        [
            "0 start f call_1",
            "1 start g call_2",
            "1 {\"n\":2}",
            "0 {\"n\":1}",
            "0 end",
            "1 end"
        ]
    );
}

#[test]
fn a_call_ends_once_nothing_can_be_added_to_it_and_never_before_an_earlier_one() {
    let mut calls = ToolCallMerge::default();
    let mut events = Vec::new();
    let mut take = |piece| {
        calls.take(piece, &mut events);
        lines(&std::mem::take(&mut events))
    };
    assert_eq!(
        take(piece("a", 0, "f", "{\"x\":{}")),
        ["0 start f a", "0 {\"x\":{}"]
    );
    assert_eq!(take(piece("b", 1, "g", "[1]")), ["1 start g b", "1 [1]"]);
    assert_eq!(take(piece("", 0, "", "}")), ["0 }", "0 end"]);
    assert_eq!(take(piece("", 0, "f", "")), Vec::<String>::new());
    assert_eq!(
        take(piece("c", 2, "h", "{\"x\":1}")),
        ["2 start h c", "2 {\"x\":1}"]
    );
}

#[test]
fn text_ends_calls_whose_arguments_are_written_out_and_no_others() {
    let mut calls = ToolCallMerge::default();
    let mut events = Vec::new();
    calls.take(piece("a", 0, "f", "{}"), &mut events);
    calls.take(piece("b", 1, "g", "{"), &mut events);
    calls.end_written_out(&mut events);
    assert!(calls.has_open());
    assert_eq!(
        lines(&events),
        ["0 start f a", "0 {}", "1 start g b", "1 {", "0 end"]
    );

    events.clear();
    calls.take(piece("", 1, "", "}"), &mut events);
    calls.end_written_out(&mut events);
    calls.end_written_out(&mut events);
    assert!(!calls.has_open());
    assert_eq!(lines(&events), ["1 }", "1 end"]);
}

#[test]
fn an_ended_call_takes_no_more_and_is_not_ended_again() {
    let mut calls = ToolCallMerge::default();
    let mut events = Vec::new();
    calls.take(piece("a", 0, "f", "{}"), &mut events);
    calls.end_index(0, &mut events);
    calls.take(piece("a", 0, "f", "{}"), &mut events);
    calls.take(piece("", 0, "", "{}"), &mut events);
    calls.take(piece("", 0, "f", "{}"), &mut events);
    calls.end_all(&mut events);
    assert_eq!(
        lines(&events),
        ["0 start f a", "0 {}", "0 end", "1 start f -", "1 {}", "1 end"]
    );
}
