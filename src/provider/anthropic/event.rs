//! The payloads of an answer as they are on the wire: borrowed, every member optional, unknown members skipped.
//!
//! One payload is read per token, so nothing here builds a JSON tree.

use super::super::wire_text::{Arguments, Text};
use crate::protocol::event::TokenUsage;
use crate::protocol::payload::payload;

/// The `data` of one event.
#[derive(Debug, Default)]
pub(super) struct Payload<'a> {
    pub kind: Text<'a>,
    /// Number of the content block.
    pub index: Option<u64>,
    pub content_block: Option<Box<ContentBlock<'a>>>,
    pub delta: Option<Delta<'a>>,
    pub message: Option<Box<Message>>,
    pub usage: Option<Box<Usage>>,
}

payload!(Payload<'a>:
    "type" => kind, "index" => index, "content_block" => content_block, "delta" => delta,
    "message" => message, "usage" => usage,
);

/// What is read of a payload that [`Payload`] does not fit: a future kind of event may use its members otherwise.
#[derive(Debug, Default)]
pub(super) struct Kind<'a> {
    pub kind: Text<'a>,
}

payload!(Kind<'a>: "type" => kind);

#[derive(Debug, Default)]
pub(super) struct ContentBlock<'a> {
    pub kind: Text<'a>,
    pub text: Text<'a>,
    pub thinking: Text<'a>,
    pub signature: Text<'a>,
    /// Of redacted thinking.
    pub data: Text<'a>,
    pub id: Text<'a>,
    pub name: Text<'a>,
    /// `{}` when deltas follow; the whole of it from servers that do not stream arguments.
    pub input: Arguments<'a>,
}

payload!(ContentBlock<'a>:
    "type" => kind, "text" => text, "thinking" => thinking, "signature" => signature, "data" => data,
    "id" => id, "name" => name, "input" => input,
);

#[derive(Debug, Default)]
pub(super) struct Delta<'a> {
    pub kind: Text<'a>,
    pub text: Text<'a>,
    pub thinking: Text<'a>,
    pub signature: Text<'a>,
    pub partial_json: Text<'a>,
    /// Of `message_delta`.
    pub stop_reason: Text<'a>,
}

payload!(Delta<'a>:
    "type" => kind, "text" => text, "thinking" => thinking, "signature" => signature,
    "partial_json" => partial_json, "stop_reason" => stop_reason,
);

#[derive(Debug, Default)]
pub(super) struct Message {
    pub usage: Option<Usage>,
}

payload!(Message: "usage" => usage);

/// Counts so far; later ones replace earlier ones.
#[derive(Debug, Default, Clone)]
pub(super) struct Usage {
    input_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    output_tokens_details: Option<OutputDetails>,
}

payload!(Usage:
    "input_tokens" => input_tokens, "cache_read_input_tokens" => cache_read_input_tokens,
    "cache_creation_input_tokens" => cache_creation_input_tokens, "output_tokens" => output_tokens,
    "output_tokens_details" => output_tokens_details,
);

#[derive(Debug, Default, Clone)]
struct OutputDetails {
    thinking_tokens: Option<u64>,
}

payload!(OutputDetails: "thinking_tokens" => thinking_tokens);

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
    use crate::protocol::payload;

    #[test]
    fn input_counts_what_the_cache_gave_and_took() {
        let mut usage: Usage = payload::read(
            r#"{"input_tokens":3,"cache_read_input_tokens":4,"cache_creation_input_tokens":5,"output_tokens":1}"#,
        )
        .unwrap();
        usage.update(
            payload::read(
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
        let nothing: Usage = payload::read("{}").unwrap();
        assert_eq!(nothing.to_token_usage(), TokenUsage::default());
    }
}
