//! JSON from outside, healed, bounded, and exact in its numbers; and JSON as we write it.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::json_cursor::JsonCursor;
use super::json_text::plain_end;
pub use super::json_writer::text;
use super::node::Node;
use super::number;

/// Deepest nesting accepted; the parser's own limit, checked first so that the answer can name it.
pub const JSON_MAX_DEPTH: usize = 127;

/// Most values accepted in one text. A value takes some hundred bytes of memory however short it is in the text, so a
/// body of a few megabytes of `0,` would exhaust an isolate of 128 MB.
pub const JSON_MAX_VALUE_COUNT: usize = 250_000;

/// Why a text is not JSON we take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JsonFault {
    /// The grammar is broken here; both count from 1, column 0 = before the first character.
    #[error("not valid JSON (line {line}, column {column})")]
    Syntax {
        /// Line.
        line: usize,
        /// Byte in the line.
        column: usize,
    },
    /// Deeper than [`JSON_MAX_DEPTH`].
    #[error("nested more than 127 levels deep")]
    TooDeep,
    /// More than [`JSON_MAX_VALUE_COUNT`].
    #[error("made of more than 250000 values")]
    TooManyValues,
}

/// Parses a text from outside. Lone surrogate escapes become U+FFFD, numbers keep every digit (an exponent may be respelt: `1e9` as `1e+9`), object members their
/// order; of a repeated member the last counts. Linear in the text's length.
///
/// # Errors
/// [`JsonFault`]
///
/// Source: contract 2.1.
pub fn parse(text: &str) -> Result<Value, JsonFault> {
    parse_node(text).map(Node::into_value)
}

/// As [`parse`], borrowing from the text.
///
/// # Errors
/// [`JsonFault`]
pub fn parse_node(text: &str) -> Result<Node<'_>, JsonFault> {
    scan(text, JSON_MAX_DEPTH)?;
    let mut json = JsonCursor::healing(text);
    json.whole_node().map_err(|_| {
        let (line, column) = json.place();
        JsonFault::Syntax { line, column }
    })
}

/// The value at a JSON pointer, `/a/0/b~1c`. Source: RFC 6901.
pub fn at<'a>(value: &'a Value, pointer: &str) -> Option<&'a Value> {
    let mut steps = pointer.split('/');
    if !steps.next()?.is_empty() {
        return None;
    }
    steps.try_fold(value, |value, step| match value {
        Value::Object(members) => members.get(&*unescaped(step)),
        Value::Array(items) => {
            let is_index = step == "0" || !step.starts_with(['0', '+']);
            let index = number::unsigned(step).filter(|_| is_index)?;
            items.get(usize::try_from(index).ok()?)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    })
}

/// A step of a pointer: `~1` is `/`, `~0` is `~`.
fn unescaped(step: &str) -> Cow<'_, str> {
    if !step.contains(['~']) {
        return Cow::Borrowed(step);
    }
    let mut name = String::with_capacity(step.len());
    let mut rest = step;
    while let Some((before, after)) = rest.split_once('~') {
        name.push_str(before);
        let (character, after) = match after.strip_prefix('1') {
            Some(after) => ('/', after),
            None => ('~', after.strip_prefix('0').unwrap_or(after)),
        };
        name.push(character);
        rest = after;
    }
    name.push_str(rest);
    Cow::Owned(name)
}

/// The value that a text is, as `serde_json` reads it; `None` = it is none.
pub fn tree(text: &str) -> Option<Value> {
    JsonCursor::new(text).whole().ok()
}

/// The object that a text is, as `serde_json` reads it; `None` = it is none.
pub fn object(text: &str) -> Option<Map<String, Value>> {
    match tree(text) {
        Some(Value::Object(members)) => Some(members),
        Some(_) | None => None,
    }
}

/// A list of texts; `None` = it is none.
pub fn texts(value: &Value) -> Option<Vec<String>> {
    let mut texts = Vec::new();
    for item in value.as_array()? {
        texts.push(item.as_str()?.to_owned());
    }
    Some(texts)
}

/// Whether a text is nested deeper than this; `false` for one that is refused before that can be told.
pub fn is_deeper(text: &str, max_depth: usize) -> bool {
    scan(text, max_depth) == Err(JsonFault::TooDeep)
}

fn scan(text: &str, max_depth: usize) -> Result<(), JsonFault> {
    let bytes = text.as_bytes();
    let (mut depth, mut value_count) = (0usize, 0usize);
    let (mut at, mut in_string) = (0, false);
    loop {
        if in_string {
            at = plain_end(bytes, at);
        }
        let Some(byte) = bytes.get(at) else {
            return Ok(());
        };
        at += 1;
        match byte {
            b'"' => in_string = !in_string,
            b'\\' if in_string => at += 1,
            _ if in_string => {}
            b'[' | b'{' => {
                depth += 1;
                value_count += 1;
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b',' => value_count += 1,
            _ => {}
        }
        if depth > max_depth {
            return Err(JsonFault::TooDeep);
        } else if value_count > JSON_MAX_VALUE_COUNT {
            return Err(JsonFault::TooManyValues);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_leads_where_the_library_says() {
        let text =
            r#"{"": {"": 1}, "a": [{"b": 2}, [3]], "/": 4, "~": 5, "~1": 6, "0": {"~/": 7}, "n": null}"#;
        let value = tree(text).unwrap();
        let steps = [
            "", "a", "0", "1", "00", "+1", "01", "-1", "b", "~", "~0", "~1", "~01", "~2", "~0~1", "n", "/",
            "//",
        ];
        let pairs = steps
            .iter()
            .flat_map(|first| steps.map(|second| format!("/{first}/{second}")));
        let single = steps.map(|step| format!("/{step}"));
        for pointer in pairs
            .chain(single)
            .chain(["".to_owned(), "a".to_owned(), "/a/0/b".to_owned()])
        {
            assert_eq!(at(&value, &pointer), value.pointer(&pointer), "{pointer:?}");
        }
    }

    #[test]
    fn lone_surrogates_are_healed_in_names_too_and_the_last_of_repeated_members_counts() {
        let text = r#"{"a\ud83d":"\uDE80 \ud83d\ude80","b":1,"a\ufffd":["\ud83d"],"b":2}"#;
        let healed = "{\"a\u{fffd}\":[\"\u{fffd}\"],\"b\":2}";
        assert_eq!(parse(text).map(|value| value.to_string()).as_deref(), Ok(healed));
        let broken = Err(JsonFault::Syntax { line: 1, column: 9 });
        assert_eq!(parse(r#""\ud83d\q""#), broken);
    }

    #[test]
    fn a_list_of_texts_has_nothing_else() {
        let texts = |text: &str| super::texts(&serde_json::from_str(text).unwrap());
        assert_eq!(texts(r#"["a",""]"#), Some(vec!["a".to_owned(), String::new()]));
        assert_eq!(texts("[]"), Some(Vec::new()));
        for other in [r#"["a",1]"#, r#""a""#, "null", "{}"] {
            assert_eq!(texts(other), None, "{other}");
        }
    }

    #[test]
    fn numbers_and_member_order_survive() {
        let text = r#"{"z":1.0,"a":12345678901234567890123,"m":[1e+400,-0,0.10]}"#;
        assert_eq!(parse(text).map(|value| value.to_string()).as_deref(), Ok(text));
    }

    #[test]
    fn deep_and_dense_texts_are_refused_before_they_are_built() {
        assert!(parse(&format!("{}{}", "[".repeat(127), "]".repeat(127))).is_ok());
        assert_eq!(parse(&"[".repeat(128)), Err(JsonFault::TooDeep));
        assert_eq!(parse(&"{\"a\":".repeat(100_000)), Err(JsonFault::TooDeep));
        let dense = format!("[{}0]", "0,".repeat(JSON_MAX_VALUE_COUNT));
        assert_eq!(parse(&dense), Err(JsonFault::TooManyValues));
        let text = format!(r#""\"{}""#, "[{,".repeat(JSON_MAX_VALUE_COUNT));
        assert!(parse(&text).is_ok(), "brackets inside a string are text");
    }

    #[test]
    fn a_broken_text_is_named_by_its_place() {
        assert_eq!(parse(""), Err(JsonFault::Syntax { line: 1, column: 0 }));
        assert_eq!(
            parse("{\n \"a\": }"),
            Err(JsonFault::Syntax { line: 2, column: 7 })
        );
        let message = parse("nul").map_err(|fault| fault.to_string());
        assert_eq!(message, Err("not valid JSON (line 1, column 3)".to_owned()));
    }
}
