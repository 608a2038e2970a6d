//! Chunks of a Mastra stream, as far as they are read. Their members are inside `payload`; older servers have them beside
//! `type`, and some under other names.

use serde_json::Value;

use super::super::ProviderError;
use super::super::sse_answer::NOT_A_PAYLOAD;
use super::super::wire_text::{Arguments, Text};
use crate::protocol::event::TokenUsage;
use crate::protocol::payload::{self, Member, Raw, payload};

/// What every chunk has.
#[derive(Default)]
pub(super) struct Head<'a> {
    pub kind: Text<'a>,
    payload: Raw<'a>,
}

payload!(Head<'a>: "type" => kind, "payload" => payload);

impl<'a> Head<'a> {
    /// Reads the members of the chunk this is the head of.
    ///
    /// # Errors
    /// [`NOT_A_PAYLOAD`]
    pub fn members(&self, chunk: &'a str, place: &mut dyn Member<'a>) -> Result<(), ProviderError> {
        match self.payload.0 {
            "" | "null" => read(chunk, place),
            payload => read(payload, place),
        }
    }
}

/// Reads a chunk, or its payload, to where it is to be.
///
/// # Errors
/// [`NOT_A_PAYLOAD`]
pub(super) fn read<'a>(text: &'a str, place: &mut dyn Member<'a>) -> Result<(), ProviderError> {
    payload::read_into(text, place).map_err(|_| NOT_A_PAYLOAD)
}

/// `start`, `step-start`
#[derive(Default)]
pub(super) struct Start<'a> {
    pub message_id: Text<'a>,
}

payload!(Start<'a>: "messageId" => message_id);

/// `text-delta`, `reasoning-delta`
#[derive(Default)]
pub(super) struct Delta<'a> {
    text: Text<'a>,
    text_delta: Text<'a>,
    delta: Text<'a>,
}

payload!(Delta<'a>: "text" => text, "textDelta" => text_delta, "delta" => delta);

impl<'a> Delta<'a> {
    pub fn into_text(self) -> Text<'a> {
        let mut texts = [self.text, self.text_delta, self.delta].into_iter();
        texts.find(|text| !text.0.is_empty()).unwrap_or_default()
    }
}

/// Every chunk about a call.
#[derive(Default)]
pub(super) struct Call<'a> {
    tool_call_id: Text<'a>,
    id: Text<'a>,
    pub tool_name: Text<'a>,
    args_text_delta: Text<'a>,
    delta: Text<'a>,
    args: Arguments<'a>,
    input: Arguments<'a>,
}

payload!(Call<'a>:
    "toolCallId" => tool_call_id, "id" => id, "toolName" => tool_name, "argsTextDelta" => args_text_delta,
    "delta" => delta, "args" => args, "input" => input,
);

impl Call<'_> {
    pub fn call_id(&self) -> &str {
        first(&self.tool_call_id.0, &self.id.0)
    }

    /// A piece of argument text.
    pub fn piece(&self) -> &str {
        first(&self.args_text_delta.0, &self.delta.0)
    }

    /// All argument text.
    pub fn arguments(&self) -> &str {
        first(&self.args.0, &self.input.0)
    }
}

fn first<'a>(text: &'a str, other: &'a str) -> &'a str {
    if text.is_empty() { other } else { text }
}

/// What became of a call: `tool-result`, `tool-error`, `tool-output-denied`.
#[derive(Default)]
pub(super) struct Outcome {
    pub result: Value,
    pub output: Value,
    pub is_error: Value,
    /// A result that goes on growing.
    pub preliminary: Value,
    pub error: Value,
    pub approval: Approval,
}

payload!(Outcome:
    "result" => result, "output" => output, "isError" => is_error, "preliminary" => preliminary,
    "error" => error, "approval" => approval,
);

/// The answer of who was asked whether a call may run.
#[derive(Default)]
pub(super) struct Approval {
    pub reason: Value,
}

payload!(Approval: "reason" => reason);

/// `step-finish`, `finish`
#[derive(Default)]
pub(super) struct Finish<'a> {
    step_result: Option<StepResult<'a>>,
    finish_reason: Text<'a>,
    output: Option<Output>,
    usage: Option<Usage>,
}

payload!(Finish<'a>:
    "stepResult" => step_result, "finishReason" => finish_reason, "output" => output, "usage" => usage,
);

#[derive(Default)]
struct StepResult<'a> {
    reason: Text<'a>,
    raw_reason: Text<'a>,
}

payload!(StepResult<'a>: "reason" => reason, "rawReason" => raw_reason);

#[derive(Default)]
struct Output {
    usage: Option<Usage>,
}

payload!(Output: "usage" => usage);

impl Finish<'_> {
    /// Why it ended, in Mastra's words.
    pub fn reason(&self) -> &str {
        let of_step = self.step_result.as_ref().map_or("", |result| &result.reason.0);
        first(of_step, &self.finish_reason.0)
    }

    /// Whether the model itself said why.
    pub fn has_raw_reason(&self) -> bool {
        let result = self.step_result.as_ref();
        result.is_some_and(|result| !result.raw_reason.0.is_empty())
    }

    pub fn usage(&self) -> Option<&Usage> {
        let of_output = self.output.as_ref().and_then(|output| output.usage.as_ref());
        of_output.or(self.usage.as_ref())
    }
}

/// Token counts of a run on the server. It counts 0 where its model said nothing.
#[derive(Default)]
pub(super) struct Usage {
    input_tokens: Value,
    output_tokens: Value,
    reasoning_tokens: Value,
    cached_input_tokens: Value,
    cache_creation_input_tokens: Value,
}

payload!(Usage:
    "inputTokens" => input_tokens, "outputTokens" => output_tokens, "reasoningTokens" => reasoning_tokens,
    "cachedInputTokens" => cached_input_tokens, "cacheCreationInputTokens" => cache_creation_input_tokens,
);

impl Usage {
    pub fn to_token_usage(&self) -> Option<TokenUsage> {
        let count = |value: &Value| value.as_u64().filter(|count| *count > 0);
        let (input_tokens, output_tokens) = (count(&self.input_tokens), count(&self.output_tokens));
        let usage = TokenUsage {
            input_tokens,
            output_tokens,
            total_tokens: input_tokens
                .zip(output_tokens)
                .map(|(input, output)| input.saturating_add(output)),
            reasoning_tokens: count(&self.reasoning_tokens),
            cached_input_tokens: count(&self.cached_input_tokens),
            cache_write_input_tokens: count(&self.cache_creation_input_tokens),
            ..TokenUsage::default()
        };
        (usage != TokenUsage::default()).then_some(usage)
    }
}

/// `error`, `tripwire`
#[derive(Default)]
pub(super) struct Failure {
    pub error: Value,
    /// Whether the server tries the step again.
    pub retry: Value,
}

payload!(Failure: "error" => error, "retry" => retry);
