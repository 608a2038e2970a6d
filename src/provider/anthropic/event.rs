//! The payloads of an answer as they are on the wire: borrowed, every member optional, unknown members skipped.
//!
//! One payload is read per token, so nothing here builds a JSON tree.

use serde::Deserialize;

use super::super::wire_text::{Arguments, Text};
use crate::protocol::event::TokenUsage;

/// The `data` of one event.
#[derive(Debug, Deserialize)]
pub(super) struct Payload<'a> {
    #[serde(rename = "type", borrow, default)]
    pub kind: Text<'a>,
    /// Number of the content block.
    #[serde(default)]
    pub index: Option<u64>,
    #[serde(borrow, default)]
    pub content_block: Option<ContentBlock<'a>>,
    #[serde(borrow, default)]
    pub delta: Option<Delta<'a>>,
    #[serde(default)]
    pub message: Option<Message>,
    #[serde(default)]
    pub usage: Option<Usage>,
}

/// What is read of a payload that [`Payload`] does not fit: a future kind of event may use its members otherwise.
#[derive(Debug, Deserialize)]
pub(super) struct Kind<'a> {
    #[serde(rename = "type", borrow, default)]
    pub kind: Text<'a>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct ContentBlock<'a> {
    #[serde(rename = "type", borrow, default)]
    pub kind: Text<'a>,
    #[serde(borrow, default)]
    pub text: Text<'a>,
    #[serde(borrow, default)]
    pub thinking: Text<'a>,
    #[serde(borrow, default)]
    pub signature: Text<'a>,
    /// Of redacted thinking.
    #[serde(borrow, default)]
    pub data: Text<'a>,
    #[serde(borrow, default)]
    pub id: Text<'a>,
    #[serde(borrow, default)]
    pub name: Text<'a>,
    /// `{}` when deltas follow; the whole of it from servers that do not stream arguments.
    #[serde(borrow, default)]
    pub input: Arguments<'a>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct Delta<'a> {
    #[serde(rename = "type", borrow, default)]
    pub kind: Text<'a>,
    #[serde(borrow, default)]
    pub text: Text<'a>,
    #[serde(borrow, default)]
    pub thinking: Text<'a>,
    #[serde(borrow, default)]
    pub signature: Text<'a>,
    #[serde(borrow, default)]
    pub partial_json: Text<'a>,
    /// Of `message_delta`.
    #[serde(borrow, default)]
    pub stop_reason: Text<'a>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Message {
    #[serde(default)]
    pub usage: Option<Usage>,
}

/// Counts so far; later ones replace earlier ones.
#[derive(Debug, Default, Clone, Deserialize)]
pub(super) struct Usage {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    cache_read_input_tokens: Option<u64>,
    #[serde(default)]
    cache_creation_input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Default, Clone, Deserialize)]
struct OutputDetails {
    #[serde(default)]
    thinking_tokens: Option<u64>,
}

impl Usage {
    /// Takes over what a later report says.
    pub fn update(&mut self, later: Self) {
        let Self {
            input_tokens,
            cache_read_input_tokens,
            cache_creation_input_tokens,
            output_tokens,
            output_tokens_details,
        } = later;
        self.input_tokens = input_tokens.or(self.input_tokens);
        self.cache_read_input_tokens = cache_read_input_tokens.or(self.cache_read_input_tokens);
        self.cache_creation_input_tokens = cache_creation_input_tokens.or(self.cache_creation_input_tokens);
        self.output_tokens = output_tokens.or(self.output_tokens);
        if output_tokens_details.is_some() {
            self.output_tokens_details = output_tokens_details;
        }
    }

    /// The counts as AG-UI counts them: Anthropic's `input_tokens` leaves out what a cache gave or took. Source: USE-2.
    pub fn to_token_usage(&self) -> TokenUsage {
        let cached = self.cache_read_input_tokens.unwrap_or(0);
        let cache_written = self.cache_creation_input_tokens.unwrap_or(0);
        let input_tokens = self
            .input_tokens
            .map(|input| input.saturating_add(cached).saturating_add(cache_written));
        TokenUsage {
            input_tokens,
            output_tokens: self.output_tokens,
            total_tokens: input_tokens
                .zip(self.output_tokens)
                .map(|(input, output)| input.saturating_add(output)),
            reasoning_tokens: self
                .output_tokens_details
                .as_ref()
                .and_then(|details| details.thinking_tokens),
            cached_input_tokens: self.cache_read_input_tokens,
            cache_write_input_tokens: self.cache_creation_input_tokens,
            ..TokenUsage::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_counts_what_the_cache_gave_and_took() {
        let mut usage: Usage = serde_json::from_str(
            r#"{"input_tokens":3,"cache_read_input_tokens":4,"cache_creation_input_tokens":5,"output_tokens":1}"#,
        )
        .unwrap();
        usage.update(
            serde_json::from_str(
                r#"{"input_tokens":null,"output_tokens":20,"output_tokens_details":{"thinking_tokens":7}}"#,
            )
            .unwrap(),
        );
        let expected = TokenUsage {
            input_tokens: Some(12),
            output_tokens: Some(20),
            total_tokens: Some(32),
            reasoning_tokens: Some(7),
            cached_input_tokens: Some(4),
            cache_write_input_tokens: Some(5),
            ..TokenUsage::default()
        };
        assert_eq!(usage.to_token_usage(), expected);
        let nothing: Usage = serde_json::from_str("{}").unwrap();
        assert_eq!(nothing.to_token_usage(), TokenUsage::default());
    }
}
