//! The chunks of an answer as they are on the wire: borrowed, every member optional, unknown members skipped.
//!
//! One chunk is read per token, so nothing here builds a JSON tree, errors apart.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

use crate::protocol::event::TokenUsage;

/// One `data` payload, or the whole body of a server that does not stream.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Chunk<'a> {
    /// Empty or absent in reports (B047).
    #[serde(borrow, default)]
    pub choices: Option<Vec<Choice<'a>>>,
    #[serde(default)]
    pub usage: Option<Usage>,
    /// An object or a text (B055).
    #[serde(default)]
    pub error: Option<Value>,
    /// `error` where a server's error has no `error` member.
    #[serde(borrow, default)]
    pub object: Text<'a>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice<'a> {
    #[serde(default)]
    pub index: Option<u64>,
    #[serde(borrow, default)]
    pub delta: Option<Delta<'a>>,
    /// Instead of `delta` when the server does not stream.
    #[serde(borrow, default)]
    pub message: Option<Delta<'a>>,
    /// `null` and `""` are none (B049).
    #[serde(borrow, default)]
    pub finish_reason: Text<'a>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    pub content: Text<'a>,
    /// The model's own words on why it does not answer.
    #[serde(borrow, default)]
    pub refusal: Text<'a>,
    /// Reasoning as DeepSeek and most others name it.
    #[serde(borrow, default)]
    pub reasoning_content: Text<'a>,
    /// Reasoning as OpenRouter and newer servers name it.
    #[serde(borrow, default)]
    pub reasoning: Text<'a>,
    #[serde(borrow, default)]
    pub tool_calls: Option<Vec<ToolCallDelta<'a>>>,
    /// The one call of servers older than `tool_calls`.
    #[serde(borrow, default)]
    pub function_call: Option<FunctionDelta<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct ToolCallDelta<'a> {
    #[serde(default)]
    pub index: Option<u64>,
    #[serde(borrow, default)]
    pub id: Text<'a>,
    #[serde(borrow, default)]
    pub function: Option<FunctionDelta<'a>>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct FunctionDelta<'a> {
    #[serde(borrow, default)]
    pub name: Text<'a>,
    #[serde(borrow, default)]
    pub arguments: Arguments<'a>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Usage {
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    completion_tokens: Option<u64>,
    #[serde(default)]
    total_tokens: Option<u64>,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
    #[serde(default)]
    completion_tokens_details: Option<CompletionDetails>,
    /// DeepSeek's name of `cached_tokens`.
    #[serde(default)]
    prompt_cache_hit_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Option<u64>,
    #[serde(default)]
    cache_write_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
struct CompletionDetails {
    #[serde(default)]
    reasoning_tokens: Option<u64>,
}

impl Usage {
    /// The counts as AG-UI counts them: totals include their parts, the sum is ours. Source: USE-2 to USE-5.
    pub fn to_token_usage(&self) -> TokenUsage {
        let prompt = self.prompt_tokens_details.as_ref();
        let reasoning_tokens = self
            .completion_tokens_details
            .as_ref()
            .and_then(|details| details.reasoning_tokens);
        let output_tokens = self.completion_tokens.map(|completion| {
            let reasoning = reasoning_tokens.unwrap_or(0);
            let sum = self
                .prompt_tokens
                .unwrap_or(0)
                .saturating_add(completion)
                .saturating_add(reasoning);
            // xAI counts reasoning beside the completion; its total tells.
            let is_beside = self.total_tokens == Some(sum);
            completion.saturating_add(if is_beside { reasoning } else { 0 })
        });
        TokenUsage {
            input_tokens: self.prompt_tokens,
            output_tokens,
            total_tokens: self
                .prompt_tokens
                .zip(output_tokens)
                .map(|(input, output)| input.saturating_add(output)),
            reasoning_tokens,
            cached_input_tokens: prompt
                .and_then(|details| details.cached_tokens)
                .or(self.prompt_cache_hit_tokens),
            cache_write_input_tokens: prompt.and_then(|details| details.cache_write_tokens),
            ..TokenUsage::default()
        }
    }
}

/// A text; anything that is none, `null` first of all, is the empty text. A list of parts is the text of its text parts
/// (Mistral's reasoning models).
#[derive(Debug, Default, PartialEq)]
pub(super) struct Text<'a>(pub Cow<'a, str>);

/// Argument text; an object becomes its JSON text (B031), anything else that is no text is nothing.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Arguments<'a>(pub Cow<'a, str>);

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

    fn delta(json: &str) -> Delta<'_> {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn texts_are_borrowed_from_the_chunk() {
        let delta = delta(r#"{"content":"plain","reasoning":"with \n escape"}"#);
        assert!(matches!(delta.content.0, Cow::Borrowed("plain")));
        assert_eq!(delta.reasoning.0, "with \n escape");
    }

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

    fn usage(json: &str) -> TokenUsage {
        serde_json::from_str::<Usage>(json).unwrap().to_token_usage()
    }

    #[test]
    fn usage_counts_parts_within_their_totals() {
        let openai = r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,
            "prompt_tokens_details":{"cached_tokens":4,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":3}}"#;
        let expected = TokenUsage {
            input_tokens: Some(10),
            output_tokens: Some(5),
            total_tokens: Some(15),
            reasoning_tokens: Some(3),
            cached_input_tokens: Some(4),
            ..TokenUsage::default()
        };
        assert_eq!(usage(openai), expected);
        let reasoning_beside = r#"{"prompt_tokens":10,"completion_tokens":2,"total_tokens":15,
            "prompt_cache_hit_tokens":4,"completion_tokens_details":{"reasoning_tokens":3}}"#;
        assert_eq!(usage(reasoning_beside), expected);
    }

    #[test]
    fn a_count_nobody_gave_is_absent() {
        let expected = TokenUsage {
            input_tokens: Some(7),
            ..TokenUsage::default()
        };
        assert_eq!(
            usage(r#"{"prompt_tokens":7,"completion_tokens":null,"total_tokens":7}"#),
            expected
        );
    }
}
