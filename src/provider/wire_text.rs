//! Texts of upstream payloads, read without a copy and tolerant of everything that is no text, for every codec.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// A text; anything that is none, `null` first of all, is the empty text. A list of parts is the text of its text parts
/// (Mistral's reasoning models).
#[derive(Debug, Default, PartialEq)]
pub struct Text<'a>(pub Cow<'a, str>);

/// Argument text; an object becomes its JSON text (B031), anything else that is no text is nothing.
#[derive(Debug, Default, PartialEq)]
pub struct Arguments<'a>(pub Cow<'a, str>);

#[derive(Deserialize)]
struct ContentPart<'a> {
    #[serde(borrow, default)]
    text: Text<'a>,
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor).map(Self)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Arguments<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ArgumentsVisitor).map(Self)
    }
}

/// The scalar visits that both kinds of text share.
macro_rules! visit_scalars {
    () => {
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("any JSON value")
        }

        fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
            Ok(Cow::Borrowed(text))
        }

        fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
            Ok(Cow::Owned(text.to_owned()))
        }

        fn visit_string<E>(self, text: String) -> Result<Self::Value, E> {
            Ok(Cow::Owned(text))
        }

        fn visit_unit<E>(self) -> Result<Self::Value, E> {
            Ok(Cow::default())
        }

        fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
            Ok(Cow::default())
        }

        fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
            Ok(Cow::default())
        }

        fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
            Ok(Cow::default())
        }

        fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
            Ok(Cow::default())
        }
    };
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    visit_scalars!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        let mut joined = String::new();
        while let Some(part) = parts.next_element::<ContentPart<'de>>()? {
            joined.push_str(&part.text.0);
        }
        Ok(Cow::Owned(joined))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Cow::default())
    }
}

struct ArgumentsVisitor;

impl<'de> Visitor<'de> for ArgumentsVisitor {
    type Value = Cow<'de, str>;

    visit_scalars!();

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Cow::default())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let object = Value::deserialize(MapAccessDeserializer::new(map))?;
        Ok(Cow::Owned(object.to_string()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
                serde_json::from_str::<Text<'_>>(json).unwrap(),
                Text::default(),
                "{json}"
            );
        }
        let parts =
            r#"[{"type":"thinking","thinking":[{"text":"hm"}]},{"type":"text","text":"a"},{"text":"b"}]"#;
        assert_eq!(serde_json::from_str::<Text<'_>>(parts).unwrap().0, "ab");
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
                serde_json::from_str::<Arguments<'_>>(json).unwrap().0,
                expected,
                "{json}"
            );
        }
    }
}
