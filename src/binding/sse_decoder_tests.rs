use super::*;

type Events = Vec<(String, String)>;

/// Name, body, and the (name, data) of its events.
type Case = (
    &'static str,
    &'static [u8],
    &'static [(&'static str, &'static str)],
);

/// Everything a body of these chunks gives, and the fault it ends with.
fn decode<'a>(
    max_event_bytes: usize,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (Events, Option<SseFault>) {
    let mut decoder = SseDecoder::new(max_event_bytes);
    let mut seen = Events::new();
    let mut keep = |event: SseEvent<'_>| seen.push((event.name.to_owned(), event.data.into_owned()));
    for chunk in chunks {
        let mut events = decoder.feed(chunk);
        loop {
            match events.next_event() {
                Ok(Some(event)) => keep(event),
                Ok(None) => break,
                Err(fault) => return (seen, Some(fault)),
            }
        }
    }
    match decoder.end() {
        Ok(last) => {
            last.into_iter().for_each(&mut keep);
            (seen, None)
        }
        Err(fault) => (seen, Some(fault)),
    }
}

/// Decodes a body whole, cut in two at every byte, and byte by byte; all must agree.
fn decode_every_way(max_event_bytes: usize, body: &[u8]) -> (Events, Option<SseFault>) {
    let whole = decode(max_event_bytes, [body]);
    for cut in 0..=body.len() {
        let (head, tail) = body.split_at(cut);
        let halves = decode(max_event_bytes, [head, tail]);
        assert_eq!(
            halves,
            whole,
            "cut at {cut} of {:?}",
            String::from_utf8_lossy(body)
        );
    }
    let single = decode(max_event_bytes, body.chunks(1));
    assert_eq!(single, whole, "byte by byte: {:?}", String::from_utf8_lossy(body));
    whole
}

fn events(pairs: &[(&str, &str)]) -> Events {
    let owned = |(name, data): &(&str, &str)| ((*name).to_owned(), (*data).to_owned());
    pairs.iter().map(owned).collect()
}

#[test]
fn every_body_gives_the_same_events_wherever_it_is_cut() {
    let cases: &[Case] = &[
        ("nothing", b"", &[]),
        ("LF", b"data: a\n\ndata: b\n\n", &[("", "a"), ("", "b")]),
        ("CRLF", b"data: a\r\n\r\ndata: b\r\n\r\n", &[("", "a"), ("", "b")]),
        ("CR", b"data: a\r\rdata: b\r\r", &[("", "a"), ("", "b")]),
        (
            "mixed line ends",
            b"data: a\n\r\ndata: b\r\n\ndata: c\r\n\rdata: d\n\r",
            &[("", "a"), ("", "b"), ("", "c"), ("", "d")],
        ),
        (
            "two data lines in CRLF",
            b"data: {\r\ndata: }\r\n\r\n",
            &[("", "{\n}")],
        ),
        (
            "empty data lines count",
            b"data\ndata:\ndata: x\n\ndata\n\n",
            &[("", "\n\nx"), ("", "")],
        ),
        (
            "one space at most",
            b"data:a\n\ndata: a\n\ndata:  a \n\n",
            &[("", "a"), ("", "a"), ("", " a ")],
        ),
        (
            "comments dispatch nothing",
            b": x\n\nid: 1\ndata: a\n\n:\n\n: y\ndata: b\n: z\n\n",
            &[("", "a"), ("", "b")],
        ),
        (
            "fields without data dispatch nothing",
            b"id: 1\n\nevent: e\n\nretry: 5\n\ndata: a\n\n",
            &[("", "a")],
        ),
        (
            "unknown fields",
            b"foo: bar\ndata: a\nDATA: b\ndat\n data: c\n\n",
            &[("", "a")],
        ),
        (
            "event names",
            b"event: e\ndata: a\n\ndata: b\nevent:f\n\nevent: g\nevent\ndata: c\n\n",
            &[("e", "a"), ("f", "b"), ("", "c")],
        ),
        ("BOM", b"\xEF\xBB\xBFdata: a\n\n", &[("", "a")]),
        (
            "BOM before a comment",
            b"\xEF\xBB\xBF: hi\n\ndata: a\n\n",
            &[("", "a")],
        ),
        (
            "BOM alone on its line",
            b"\xEF\xBB\xBF\ndata: a\n\n",
            &[("", "a")],
        ),
        (
            "BOM later is no BOM",
            b"\n\xEF\xBB\xBFdata: a\n\ndata: \xEF\xBB\xBFb\n\n",
            &[("", "\u{FEFF}b")],
        ),
        ("half a BOM", b"\xEF\xBBdata: a\n\ndata: b\n\n", &[("", "b")]),
        (
            "characters of two, three and four bytes",
            "data: ü東🚀\n\n".as_bytes(),
            &[("", "ü東🚀")],
        ),
        (
            "other line separators are text",
            "data: a\u{2028}b\u{85}c\u{b}d\n\n".as_bytes(),
            &[("", "a\u{2028}b\u{85}c\u{b}d")],
        ),
        (
            "bytes that are not UTF-8",
            b"data: a\xFFb\n\ndata: \xF0\x9F\ndata: c\n\n",
            &[("", "a\u{FFFD}b"), ("", "\u{FFFD}\nc")],
        ),
        (
            "no blank line at the end",
            b"data: a\n\nevent: e\ndata: b\n",
            &[("", "a"), ("e", "b")],
        ),
        (
            "no line end at the end",
            b"data: a\n\ndata: b\ndata: c",
            &[("", "a"), ("", "b\nc")],
        ),
        ("a comment at the end", b"data: a\n\n: bye", &[("", "a")]),
    ];
    for (name, body, expected) in cases {
        assert_eq!(decode_every_way(1000, body), (events(expected), None), "{name}");
    }
}

#[test]
fn an_event_that_ends_with_cr_is_not_held_back() {
    let mut decoder = SseDecoder::new(1000);
    let mut events = decoder.feed(b"data: a\r\r");
    assert_eq!(
        events.next_event(),
        Ok(Some(SseEvent {
            name: "",
            data: Cow::Borrowed("a")
        }))
    );
    assert_eq!(events.next_event(), Ok(None));
}

#[test]
fn data_of_a_whole_event_is_not_copied() {
    let chunk = b"event: delta\ndata: {\"a\":1}\n\n";
    let mut decoder = SseDecoder::new(1000);
    let mut events = decoder.feed(chunk);
    let event = events.next_event().unwrap().unwrap();
    assert_eq!((event.name, &*event.data), ("delta", "{\"a\":1}"));
    assert!(chunk.as_ptr_range().contains(&event.data.as_ptr()));
}

#[test]
fn too_long_is_a_fault_after_the_events_before_it() {
    let too_long: &[&[u8]] = &[
        b"data: ok\n\ndata: 0123456789\n\ndata: never\n\n",
        b"data: ok\n\ndata: 0123\ndata: 0123\ndata: 0123\n\n",
        b"data: ok\n\n: 0123456789abcdef\n\n",
        b"data: ok\n\nno line end at all",
        b"data: ok\n\ndata: 0123456789",
    ];
    for body in too_long {
        assert_eq!(
            decode_every_way(12, body),
            (events(&[("", "ok")]), Some(SseFault::TooLong)),
            "{:?}",
            String::from_utf8_lossy(body)
        );
    }
    let fits = b"data: 012345\n\ndata: 0123\ndata: 4567\n\n";
    assert_eq!(
        decode_every_way(12, fits),
        (events(&[("", "012345"), ("", "0123\n4567")]), None)
    );
}

#[test]
fn a_long_line_in_small_chunks_stays_whole() {
    let long = "x".repeat(8 * 1024 * 1024);
    let body = format!("data: {long}\n\n");
    let (seen, fault) = decode(usize::MAX, body.as_bytes().chunks(4096));
    assert_eq!(fault, None);
    assert!(seen == events(&[("", &long)]));
}
