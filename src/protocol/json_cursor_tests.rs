use serde::de::IgnoredAny;

use super::*;

const TEXTS: &[&str] = &[
    r#"{"a":"plain","b":[1,-0.5e+3,{"c":null}],"d":{},"e":[],"f":[true,false,[[]]]}"#,
    " { \"a\" :\t\"q\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\" ,\r\n\"\\u0062\" : [ 0 , 10 , 1E9 , 2e-1 ] } ",
    "\"\u{e9}\u{1f600}\u{7f}\"",
    r#""\ud83d""#,
    "-12",
    "0",
    "null",
    "[{\"a\":[{\"b\":{}}]},[]]",
];

fn is_json_to_serde(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

fn by_cursor(text: &str) -> Result<(), CursorFault> {
    let mut json = JsonCursor::new(text);
    json.skip().and_then(|()| json.end())
}

#[test]
fn what_is_json_is_told_as_serde_tells_it() {
    for text in TEXTS {
        assert_eq!(by_cursor(text), Ok(()), "{text}");
        for (at, whole) in text.char_indices() {
            let (head, tail) = (&text[..at], &text[at + whole.len_utf8()..]);
            let expected = if is_json_to_serde(head) {
                Ok(())
            } else {
                Err(CursorFault::Cut)
            };
            assert_eq!(by_cursor(head), expected, "{head}");
            for other in "\"\\{}[],:0-.+eEutn \u{1}\u{0}é".chars() {
                for changed in [
                    format!("{head}{other}{tail}"),
                    format!("{head}{other}{whole}{tail}"),
                ] {
                    assert_eq!(is_json(&changed), is_json_to_serde(&changed), "{changed}");
                }
            }
        }
    }
}

/// Each text, and each with one character changed, put in or followed by nothing.
fn changed_texts() -> Vec<String> {
    let mut changed: Vec<String> = TEXTS.iter().map(|text| (*text).to_owned()).collect();
    for text in TEXTS {
        for (at, whole) in text.char_indices() {
            let (head, tail) = (&text[..at], &text[at + whole.len_utf8()..]);
            changed.push(head.to_owned());
            for other in "\"\\{}[],:0-.+eEutnd \n\u{1}é".chars() {
                changed.push(format!("{head}{other}{tail}"));
                changed.push(format!("{head}{other}{whole}{tail}"));
            }
        }
    }
    changed
}

#[test]
fn trees_are_those_of_serde_and_faults_are_where_serde_sees_them() {
    for text in changed_texts() {
        let mut json = JsonCursor::new(&text);
        let ours = json.whole();
        match serde_json::from_str::<Value>(&text) {
            Ok(tree) => assert_eq!(ours.map(|tree| tree.to_string()), Ok(tree.to_string()), "{text}"),
            Err(fault) => {
                let is_cut = ours == Err(CursorFault::Cut);
                assert!(
                    ours.is_err() && (is_cut == fault.is_eof() || text.contains("\\u")),
                    "{text}"
                );
                // Of four digits that are no code unit, serde names the last, and this the first that is none.
                if !fault.to_string().contains("escape") && !text.contains("\\u") {
                    assert_eq!(json.place(), (fault.line(), fault.column()), "{text}: {fault}");
                }
            }
        }
    }
}

#[test]
fn a_tree_is_nested_as_deep_as_serde_allows() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(JsonCursor::new(&nested(127)).whole().is_ok());
    assert!(JsonCursor::new(&nested(128)).whole().is_err());
    let inside = format!("[{}]", nested(127));
    let mut json = JsonCursor::new(&inside);
    json.next_item(true).unwrap();
    assert!(json.value().is_ok(), "a tree counts its own levels");
}

#[test]
fn what_is_skipped_may_be_nested_as_deep_as_it_likes() {
    let deep = "[".repeat(100_000) + &"]".repeat(100_000);
    assert!(is_json(&deep));
    assert!(!is_json(&deep[1..]));
}

#[test]
fn what_is_entered_is_nested_as_deep_as_serde_allows() {
    let enter = |depth: usize| {
        let text = "[".repeat(depth) + "1";
        let mut json = JsonCursor::new(&text);
        (0..depth).try_for_each(|_| json.next_item(true).map(drop))
    };
    assert_eq!(enter(127), Ok(()));
    assert_eq!(enter(128), Err(CursorFault::Unexpected));
}

#[test]
fn texts_are_borrowed_unless_they_have_escapes() {
    let mut json = JsonCursor::new(r#"["a é", "b\n\ud83d\ude00", ""]"#);
    let mut texts = Vec::new();
    let mut is_next = json.next_item(true).unwrap();
    while is_next {
        texts.push(json.text().unwrap());
        is_next = json.next_item(false).unwrap();
    }
    assert_eq!(json.end(), Ok(()));
    assert_eq!(texts, ["a é", "b\n\u{1f600}", ""]);
    assert!(matches!(texts[0], Cow::Borrowed(_)));
    assert_eq!(
        JsonCursor::new(r#""\ud83d""#).text(),
        Err(CursorFault::Unexpected)
    );
    assert_eq!(JsonCursor::new("\"a\u{1}\"").text(), Err(CursorFault::Unexpected));
    assert_eq!(JsonCursor::new("\"a").text(), Err(CursorFault::Cut));
}

#[test]
fn a_count_is_a_whole_number_written_as_one() {
    let count = |text| JsonCursor::new(text).count().ok();
    assert_eq!(count(" 18446744073709551615"), Some(u64::MAX));
    assert_eq!(count("0"), Some(0));
    for text in [
        "18446744073709551616",
        "-1",
        "-0",
        "1.0",
        "1e2",
        "\"1\"",
        "null",
        "",
        "+1",
        "[1]",
    ] {
        assert_eq!(count(text), None, "{text}");
    }
}

#[test]
fn values_keep_their_numbers() {
    let mut json = JsonCursor::new(r#"{"a":{"n":1.0},"b":[12345678901234567890123]}"#);
    assert_eq!(json.next_member(true).unwrap(), Some(&b"a"[..]));
    assert_eq!(json.value().unwrap().to_string(), r#"{"n":1.0}"#);
    assert_eq!(json.next_member(false).unwrap(), Some(&b"b"[..]));
    assert_eq!(json.raw(), Ok("[12345678901234567890123]"));
    assert_eq!(json.next_member(false), Ok(None));
    assert_eq!(json.end(), Ok(()));
}
