//! Chunks of a Mastra stream, as far as they are read. Their members are inside `payload`; older servers have them beside
//! `type`, and some under other names.

use serde::Deserialize;
use serde_json::Value;

use super::super::ProviderError;
use super::super::sse_answer::NOT_A_PAYLOAD;
use super::super::wire_text::{Arguments, Text};
use crate::protocol::event::TokenUsage;
use crate::protocol::read;

/// What every chunk has.
#[derive(Deserialize)]
pub(super) struct Head<'a> {
    #[serde(rename = "type", borrow, default)]
    pub kind: Text<'a>,
}

/// Reads the members of a chunk that comes once per token.
///
/// # Errors
/// [`NOT_A_PAYLOAD`]
pub(super) fn delta(chunk: &str) -> Result<Delta<'_>, ProviderError> {
    #[derive(Deserialize)]
    struct Envelope<'a> {
        #[serde(borrow)]
        payload: Option<Delta<'a>>,
    }
    let envelope: Envelope<'_> = parse(chunk)?;
    envelope.payload.map_or_else(|| parse(chunk), Ok)
}

/// Reads the members of any other chunk.
///
/// # Errors
/// [`NOT_A_PAYLOAD`]
pub(super) fn members<T: Deserialize<'static>>(chunk: &str) -> Result<T, ProviderError> {
    read::from_value(payload(chunk)?).map_err(|_| NOT_A_PAYLOAD)
}

fn payload(chunk: &str) -> Result<Value, ProviderError> {
    let mut chunk: Value = serde_json::from_str(chunk).map_err(|_| NOT_A_PAYLOAD)?;
    match chunk.get_mut("payload") {
        Some(payload) if !payload.is_null() => Ok(payload.take()),
        Some(_) | None => Ok(chunk),
    }
}

/// Reads a chunk.
///
/// # Errors
/// [`NOT_A_PAYLOAD`]
pub(super) fn parse<'a, T: Deserialize<'a>>(chunk: &'a str) -> Result<T, ProviderError> {
    read::borrowed(chunk).map_err(|_| NOT_A_PAYLOAD)
}

/// `start`, `step-start`
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Start<'a> {
    #[serde(borrow, default)]
    pub message_id: Text<'a>,
}

/// `text-delta`, `reasoning-delta`
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Delta<'a> {
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    text_delta: Text<'a>,
    #[serde(borrow, default)]
    delta: Text<'a>,
}

impl<'a> Delta<'a> {
    pub fn into_text(self) -> Text<'a> {
        let mut texts = [self.text, self.text_delta, self.delta].into_iter();
        texts.find(|text| !text.0.is_empty()).unwrap_or_default()
    }
}

/// Every chunk about a call.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Call<'a> {
    #[serde(borrow, default)]
    tool_call_id: Text<'a>,
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    pub tool_name: Text<'a>,
    #[serde(borrow, default)]
    args_text_delta: Text<'a>,
    #[serde(borrow, default)]
    delta: Text<'a>,
    #[serde(borrow, default)]
    args: Arguments<'a>,
    #[serde(borrow, default)]
    input: Arguments<'a>,
}

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
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Outcome {
    pub result: Value,
    pub output: Value,
    pub is_error: Value,
    /// A result that goes on growing.
    pub preliminary: Value,
    pub error: Value,
    pub approval: Approval,
}

/// The answer of who was asked whether a call may run.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct Approval {
    pub reason: Value,
}

/// `step-finish`, `finish`
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Finish<'a> {
    #[serde(borrow, default)]
    step_result: Option<StepResult<'a>>,
    #[serde(borrow, default)]
    finish_reason: Text<'a>,
    #[serde(default)]
    output: Option<Output>,
    #[serde(default)]
    usage: Option<Usage>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StepResult<'a> {
    #[serde(borrow, default)]
    reason: Text<'a>,
    #[serde(borrow, default)]
    raw_reason: Text<'a>,
}

#[derive(Deserialize)]
struct Output {
    usage: Option<Usage>,
}

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
#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Usage {
    input_tokens: Value,
    output_tokens: Value,
    reasoning_tokens: Value,
    cached_input_tokens: Value,
    cache_creation_input_tokens: Value,
}

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

/// `error`
#[derive(Deserialize)]
pub(super) struct Failure {
    #[serde(default)]
    pub error: Value,
}

/// `tripwire`
#[derive(Deserialize)]
pub(super) struct Tripwire {
    /// Whether the server tries the step again.
    #[serde(default)]
    pub retry: Value,
}
