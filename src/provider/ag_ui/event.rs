//! AG-UI events, as far as they are read.

use serde_json::Value;

use super::super::wire_text::Text;
use crate::protocol::event::TokenUsage;
use crate::protocol::payload::payload;

/// What every event has.
#[derive(Default)]
pub(super) struct Head<'a> {
    pub kind: Text<'a>,
}

payload!(Head<'a>: "type" => kind);

/// `TEXT_MESSAGE_*`, `REASONING_MESSAGE_*`
#[derive(Default)]
pub(super) struct Message<'a> {
    pub message_id: Text<'a>,
    pub role: Text<'a>,
    pub delta: Text<'a>,
}

payload!(Message<'a>: "messageId" => message_id, "role" => role, "delta" => delta);

/// `TOOL_CALL_*` but `TOOL_CALL_RESULT`
#[derive(Default)]
pub(super) struct Call<'a> {
    pub tool_call_id: Text<'a>,
    pub tool_call_name: Text<'a>,
    pub parent_message_id: Text<'a>,
    pub delta: Text<'a>,
}

payload!(Call<'a>:
    "toolCallId" => tool_call_id, "toolCallName" => tool_call_name, "parentMessageId" => parent_message_id,
    "delta" => delta,
);

/// `TOOL_CALL_RESULT`
#[derive(Default)]
pub(super) struct CallResult<'a> {
    pub tool_call_id: Text<'a>,
    /// A list of parts is the text of its text parts.
    pub content: Text<'a>,
}

payload!(CallResult<'a>: "toolCallId" => tool_call_id, "content" => content);

/// `RUN_FINISHED`
#[derive(Default)]
pub(super) struct Finished {
    pub result: Value,
    pub outcome: Option<Outcome>,
    usage: Option<Vec<Usage>>,
}

payload!(Finished: "result" => result, "outcome" => outcome, "usage" => usage);

/// How a run ended.
#[derive(Default)]
pub(super) struct Outcome {
    pub kind: Value,
    pub interrupts: Option<Vec<Interrupt>>,
}

payload!(Outcome: "type" => kind, "interrupts" => interrupts);

/// Something the agent wants to be asked of a person.
#[derive(Default)]
pub(super) struct Interrupt {
    pub tool_call_id: Option<String>,
}

payload!(Interrupt: "toolCallId" => tool_call_id);

/// Token counts of one model.
#[derive(Default)]
struct Usage {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    reasoning_tokens: Option<u64>,
    cached_input_tokens: Option<u64>,
    cache_write_input_tokens: Option<u64>,
}

payload!(Usage:
    "inputTokens" => input_tokens, "outputTokens" => output_tokens, "reasoningTokens" => reasoning_tokens,
    "cachedInputTokens" => cached_input_tokens, "cacheWriteInputTokens" => cache_write_input_tokens,
);

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
#[derive(Default)]
pub(super) struct Failed<'a> {
    pub message: Text<'a>,
    pub code: Text<'a>,
}

payload!(Failed<'a>: "message" => message, "code" => code);
