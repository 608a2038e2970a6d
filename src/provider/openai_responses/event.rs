//! The payloads of an answer as they are on the wire: borrowed, every member optional, unknown members skipped.
//!
//! One payload is read per token, so nothing here builds a JSON tree, reasoning items apart.

use serde::Deserialize;
use serde_json::Value;

use super::super::wire_text::{Arguments, Text};
use crate::protocol::event::TokenUsage;

/// The `data` of one event.
#[derive(Debug, Deserialize)]
pub(super) struct Payload<'a> {
    #[serde(rename = "type", borrow, default)]
    pub kind: Text<'a>,
    /// Of texts, reasoning and arguments.
    #[serde(borrow, default)]
    pub delta: Text<'a>,
    #[serde(borrow, default)]
    pub item_id: Text<'a>,
    #[serde(default)]
    pub output_index: Option<u64>,
    #[serde(default)]
    pub content_index: Option<u64>,
    /// Whole, of `output_text.done`.
    #[serde(borrow, default)]
    pub text: Text<'a>,
    /// Whole, of `refusal.done`.
    #[serde(borrow, default)]
    pub refusal: Text<'a>,
    /// Whole, of `function_call_arguments.done`.
    #[serde(borrow, default)]
    pub arguments: Arguments<'a>,
    #[serde(borrow, default)]
    pub item: Option<Item<'a>>,
    #[serde(borrow, default)]
    pub response: Option<Response<'a>>,
}

/// What is read of a payload that [`Payload`] does not fit: a future kind of event may use its members otherwise.
#[derive(Debug, Deserialize)]
pub(super) struct Kind<'a> {
    #[serde(rename = "type", borrow, default)]
    pub kind: Text<'a>,
}

/// A message, a call, reasoning, or what tools of the vendor did.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Item<'a> {
    #[serde(rename = "type", borrow, default)]
    pub kind: Text<'a>,
    #[serde(borrow, default)]
    pub id: Text<'a>,
    #[serde(borrow, default)]
    pub status: Text<'a>,
    #[serde(borrow, default)]
    pub content: Option<Vec<Part<'a>>>,
    /// Of a message: whether it is the answer or a remark on the way.
    #[serde(borrow, default)]
    pub phase: Text<'a>,
    #[serde(borrow, default)]
    pub call_id: Text<'a>,
    #[serde(borrow, default)]
    pub name: Text<'a>,
    #[serde(borrow, default)]
    pub arguments: Arguments<'a>,
    /// Of reasoning.
    #[serde(default)]
    pub summary: Option<Value>,
    #[serde(borrow, default)]
    pub encrypted_content: Text<'a>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Part<'a> {
    #[serde(borrow, default)]
    pub text: Text<'a>,
    #[serde(borrow, default)]
    pub refusal: Text<'a>,
}

/// The whole response, as the first and the last events have it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Response<'a> {
    #[serde(borrow, default)]
    pub output: Option<Vec<Item<'a>>>,
    #[serde(borrow, default)]
    pub incomplete_details: Option<IncompleteDetails<'a>>,
    #[serde(default)]
    pub usage: Option<Usage>,
}

#[derive(Debug, Deserialize)]
pub(super) struct IncompleteDetails<'a> {
    #[serde(borrow, default)]
    pub reason: Text<'a>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Usage {
    #[serde(default)]
    input_tokens: Option<u64>,
    #[serde(default)]
    output_tokens: Option<u64>,
    #[serde(default)]
    input_tokens_details: Option<InputDetails>,
    #[serde(default)]
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Debug, Default, Deserialize)]
struct InputDetails {
    #[serde(default)]
    cached_tokens: Option<u64>,
    #[serde(default)]
    cache_write_tokens: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
struct OutputDetails {
    #[serde(default)]
    reasoning_tokens: Option<u64>,
}

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
