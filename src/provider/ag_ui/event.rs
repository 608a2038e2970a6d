//! AG-UI events, as far as they are read.

use serde::Deserialize;
use serde_json::Value;

use super::super::wire_text::Text;
use crate::protocol::event::TokenUsage;

/// What every event has.
#[derive(Deserialize)]
pub(super) struct Head<'a> {
    #[serde(rename = "type", borrow, default)]
    pub kind: Text<'a>,
}

/// `TEXT_MESSAGE_*`, `REASONING_MESSAGE_*`
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Message<'a> {
    #[serde(borrow, default)]
    pub message_id: Text<'a>,
    #[serde(borrow, default)]
    pub role: Text<'a>,
    #[serde(borrow, default)]
    pub delta: Text<'a>,
}

/// `TOOL_CALL_*` but `TOOL_CALL_RESULT`
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Call<'a> {
    #[serde(borrow, default)]
    pub tool_call_id: Text<'a>,
    #[serde(borrow, default)]
    pub tool_call_name: Text<'a>,
    #[serde(borrow, default)]
    pub parent_message_id: Text<'a>,
    #[serde(borrow, default)]
    pub delta: Text<'a>,
}

/// `TOOL_CALL_RESULT`
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallResult<'a> {
    #[serde(borrow, default)]
    pub tool_call_id: Text<'a>,
    /// A list of parts is the text of its text parts.
    #[serde(borrow, default)]
    pub content: Text<'a>,
}

/// `RUN_FINISHED`
#[derive(Deserialize)]
pub(super) struct Finished {
    #[serde(default)]
    pub result: Value,
    #[serde(default)]
    pub outcome: Option<Outcome>,
    #[serde(default)]
    usage: Option<Vec<Usage>>,
}

/// How a run ended.
#[derive(Deserialize)]
pub(super) struct Outcome {
    #[serde(rename = "type", default)]
    pub kind: Value,
    #[serde(default)]
    pub interrupts: Option<Vec<Interrupt>>,
}

/// Something the agent wants to be asked of a person.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Interrupt {
    #[serde(default)]
    pub tool_call_id: Option<String>,
}

/// Token counts of one model.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Usage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    reasoning_tokens: Option<u64>,
    cached_input_tokens: Option<u64>,
    cache_write_input_tokens: Option<u64>,
}

impl Finished {
    /// The counts of all models the agent asked.
    pub fn token_usage(&self) -> Option<TokenUsage> {
        let mut sum = TokenUsage::default();
        for usage in self.usage.iter().flatten() {
            sum.add(&TokenUsage {
                input_tokens: usage.input_tokens,
                output_tokens: usage.output_tokens,
                total_tokens: usage
                    .input_tokens
                    .zip(usage.output_tokens)
                    .map(|(input, output)| input.saturating_add(output)),
                reasoning_tokens: usage.reasoning_tokens,
                cached_input_tokens: usage.cached_input_tokens,
                cache_write_input_tokens: usage.cache_write_input_tokens,
                ..TokenUsage::default()
            });
        }
        (sum != TokenUsage::default()).then_some(sum)
    }
}

/// `RUN_ERROR`
#[derive(Deserialize)]
pub(super) struct Failed<'a> {
    #[serde(borrow, default)]
    pub message: Text<'a>,
    #[serde(borrow, default)]
    pub code: Text<'a>,
}
