//! Texts of upstream payloads, read without a copy and tolerant of everything that is no text, for every codec.

use std::borrow::Cow;

use crate::protocol::json;
use crate::protocol::json_cursor::{CursorFault, JsonCursor};
use crate::protocol::payload::{Member, payload};

/// A text; anything that is none, `null` first of all, is the empty text. A list of parts is the text of its text parts
/// (Mistral's reasoning models).
#[derive(Debug, Default, PartialEq)]
pub struct Text<'a>(pub Cow<'a, str>);

/// Argument text; an object becomes its JSON text (B031), anything else that is no text is nothing.
#[derive(Debug, Default, PartialEq)]
pub struct Arguments<'a>(pub Cow<'a, str>);

#[derive(Default)]
struct ContentPart<'a> {
    text: Text<'a>,
}

payload!(ContentPart<'a>: "text" => text);

impl<'a> Member<'a> for Text<'a> {
    fn blank() -> Self {
        Self::default()
    }

    fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
        self.0 = match json.peek() {
            b'"' => json.text()?,
            b'[' => {
                let mut parts = Vec::<ContentPart<'a>>::new();
                parts.read(json)?;
                parts.iter().map(|part| &*part.text.0).collect()
            }
            _ => {
                json.skip()?;
                Cow::default()
            }
        };
        Ok(())
    }
}

impl<'a> Member<'a> for Arguments<'a> {
    fn blank() -> Self {
        Self::default()
    }

    fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
        self.0 = match json.peek() {
            b'"' => json.text()?,
            b'{' => json::text(&json.value()?).into(),
            _ => {
                json.skip()?;
                Cow::default()
            }
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::payload;

    #[test]
    fn what_is_no_text_is_the_empty_text() {
        for json in [
            "null",
            "\"\"",
            "true",
            "-1",
            "7",
            "1.5",
            "1e400",
            "{\"a\":[1]}",
            "[]",
            "[{\"type\":\"thinking\"}]",
        ] {
            assert_eq!(
                payload::read::<Text<'_>>(json).unwrap(),
                Text::default(),
                "{json}"
            );
        }
        let parts =
            r#"[{"type":"thinking","thinking":[{"text":"hm"}]},{"type":"text","text":"a"},{"text":"b"}]"#;
        assert_eq!(payload::read::<Text<'_>>(parts).unwrap().0, "ab");
    }

    #[test]
    fn arguments_may_be_an_object_whose_numbers_survive() {
        for (json, expected) in [
            (r#""{\"a\":""#, r#"{"a":"#),
            (
                r#"{"n":1.0,"b":[12345678901234567890123]}"#,
                r#"{"n":1.0,"b":[12345678901234567890123]}"#,
            ),
            ("{}", "{}"),
            ("null", ""),
            ("[1]", ""),
            ("5", ""),
        ] {
            assert_eq!(
                payload::read::<Arguments<'_>>(json).unwrap().0,
                expected,
                "{json}"
            );
        }
    }
}
