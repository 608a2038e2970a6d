//! The payloads of an answer as they are on the wire: borrowed, every member optional, unknown members skipped.
//!
//! One payload is read per token, so nothing here builds a JSON tree, reasoning items apart.

use serde_json::Value;

use super::super::wire_text::{Arguments, Text};
use crate::protocol::event::TokenUsage;
use crate::protocol::payload::payload;

/// The `data` of one event.
#[derive(Debug, Default)]
pub(super) struct Payload<'a> {
    pub kind: Text<'a>,
    /// Of texts, reasoning and arguments.
    pub delta: Text<'a>,
    pub item_id: Text<'a>,
    pub output_index: Option<u64>,
    pub content_index: Option<u64>,
    /// Whole, of `output_text.done`.
    pub text: Text<'a>,
    /// Whole, of `refusal.done`.
    pub refusal: Text<'a>,
    /// Whole, of `function_call_arguments.done`.
    pub arguments: Arguments<'a>,
    pub item: Option<Box<Item<'a>>>,
    pub response: Option<Box<Response<'a>>>,
}

payload!(Payload<'a>:
    "type" => kind, "delta" => delta, "item_id" => item_id, "output_index" => output_index,
    "content_index" => content_index, "text" => text, "refusal" => refusal, "arguments" => arguments,
    "item" => item, "response" => response,
);

/// What is read of a payload that [`Payload`] does not fit: a future kind of event may use its members otherwise.
#[derive(Debug, Default)]
pub(super) struct Kind<'a> {
    pub kind: Text<'a>,
}

payload!(Kind<'a>: "type" => kind);

/// A message, a call, reasoning, or what tools of the vendor did.
#[derive(Debug, Default)]
pub(super) struct Item<'a> {
    pub kind: Text<'a>,
    pub id: Text<'a>,
    pub status: Text<'a>,
    pub content: Option<Vec<Part<'a>>>,
    /// Of a message: whether it is the answer or a remark on the way.
    pub phase: Text<'a>,
    pub call_id: Text<'a>,
    pub name: Text<'a>,
    pub arguments: Arguments<'a>,
    /// Of reasoning.
    pub summary: Option<Value>,
    pub encrypted_content: Text<'a>,
}

payload!(Item<'a>:
    "type" => kind, "id" => id, "status" => status, "content" => content, "phase" => phase,
    "call_id" => call_id, "name" => name, "arguments" => arguments, "summary" => summary,
    "encrypted_content" => encrypted_content,
);

#[derive(Debug, Default)]
pub(super) struct Part<'a> {
    pub text: Text<'a>,
    pub refusal: Text<'a>,
}

payload!(Part<'a>: "text" => text, "refusal" => refusal);

/// The whole response, as the first and the last events have it.
#[derive(Debug, Default)]
pub(super) struct Response<'a> {
    pub output: Option<Vec<Item<'a>>>,
    pub incomplete_details: Option<IncompleteDetails<'a>>,
    pub usage: Option<Usage>,
}

payload!(Response<'a>: "output" => output, "incomplete_details" => incomplete_details, "usage" => usage);

#[derive(Debug, Default)]
pub(super) struct IncompleteDetails<'a> {
    pub reason: Text<'a>,
}

payload!(IncompleteDetails<'a>: "reason" => reason);

#[derive(Debug, Default)]
pub(super) struct Usage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    input_tokens_details: Option<InputDetails>,
    output_tokens_details: Option<OutputDetails>,
}

payload!(Usage:
    "input_tokens" => input_tokens, "output_tokens" => output_tokens,
    "input_tokens_details" => input_tokens_details, "output_tokens_details" => output_tokens_details,
);

#[derive(Debug, Default)]
struct InputDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

payload!(InputDetails: "cached_tokens" => cached_tokens, "cache_write_tokens" => cache_write_tokens);

#[derive(Debug, Default)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

payload!(OutputDetails: "reasoning_tokens" => reasoning_tokens);

impl Usage {
    /// The counts as AG-UI counts them: totals include their parts here too, the sum is ours. Source: USE-2 to USE-5.
    pub fn to_token_usage(&self) -> TokenUsage {
        let input = self.input_tokens_details.as_ref();
        TokenUsage {
            input_tokens: self.input_tokens,
            output_tokens: self.output_tokens,
            total_tokens: self
                .input_tokens
                .zip(self.output_tokens)
                .map(|(input, output)| input.saturating_add(output)),
            reasoning_tokens: self
                .output_tokens_details
                .as_ref()
                .and_then(|details| details.reasoning_tokens),
            cached_input_tokens: input.and_then(|details| details.cached_tokens),
            cache_write_input_tokens: input.and_then(|details| details.cache_write_tokens),
            ..TokenUsage::default()
        }
    }
}
