//! The events of a run, one variant per event we emit, and what goes with a terminal one.

use serde::Serialize;
use serde_json::Value;

use super::id::{MessageId, RunId, ThreadId, ToolCallId};
use super::read::{record, words};

/// Protocol version we declare on RUN_STARTED. Source: contract 2.4, AG-UI VER-1.
pub const PROTOCOL_VERSION: &str = "1.0";

/// One event of a run's stream.
///
/// Wire: a JSON object with `type` in SCREAMING_SNAKE_CASE and camelCase members; absent members are left out, never
/// `null`. Source: contract 2.4.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// `RUN_STARTED {threadId, runId, protocolVersion: "1.0"}`, always first.
    RunStarted {
        /// As the client sent it; may be empty.
        thread_id: ThreadId,
        /// As the client sent it.
        run_id: RunId,
    },
    /// `RUN_FINISHED {threadId, runId, result?, outcome?, usage?}`, terminal.
    RunFinished(RunFinished),
    /// `RUN_ERROR {message, code, usage?}`, terminal.
    RunError {
        /// One human sentence without private detail.
        message: String,
        /// Stable code.
        code: RunErrorCode,
    },
    /// `STEP_STARTED {stepName}`.
    StepStarted {
        /// `step-1`, `step-2`, ...
        step_name: String,
    },
    /// `STEP_FINISHED {stepName}`.
    StepFinished {
        /// The name of the open step.
        step_name: String,
    },
    /// `TEXT_MESSAGE_START {messageId, role: "assistant"}`.
    TextMessageStart {
        /// Fresh per text segment; the stored message has it too.
        message_id: MessageId,
    },
    /// `TEXT_MESSAGE_CONTENT {messageId, delta}`.
    TextMessageContent {
        /// The open text.
        message_id: MessageId,
        /// Never empty.
        delta: String,
    },
    /// `TEXT_MESSAGE_END {messageId}`.
    TextMessageEnd {
        /// The open text.
        message_id: MessageId,
    },
    /// `REASONING_START {messageId}`: a span of reasoning, for agents that emit it.
    ReasoningStart {
        /// Fresh per span; its one message and the stored one have it too.
        message_id: MessageId,
    },
    /// `REASONING_MESSAGE_START {messageId, role: "reasoning"}`.
    ReasoningMessageStart {
        /// The open span.
        message_id: MessageId,
    },
    /// `REASONING_MESSAGE_CONTENT {messageId, delta}`.
    ReasoningMessageContent {
        /// The open reasoning message.
        message_id: MessageId,
        /// Never empty.
        delta: String,
    },
    /// `REASONING_MESSAGE_END {messageId}`.
    ReasoningMessageEnd {
        /// The open reasoning message.
        message_id: MessageId,
    },
    /// `REASONING_END {messageId}`.
    ReasoningEnd {
        /// The open span.
        message_id: MessageId,
    },
    /// `TOOL_CALL_START {toolCallId, toolCallName, parentMessageId}`.
    ToolCallStart {
        /// Unique in the thread.
        tool_call_id: ToolCallId,
        /// The tool's name.
        tool_call_name: String,
        /// Id of the stored assistant message that has the call.
        parent_message_id: MessageId,
    },
    /// `TOOL_CALL_ARGS {toolCallId, delta}`.
    ToolCallArgs {
        /// The open call.
        tool_call_id: ToolCallId,
        /// Never empty; the deltas of a call join to valid JSON (D8).
        delta: String,
    },
    /// `TOOL_CALL_END {toolCallId}`: makes a front end execute the call.
    ToolCallEnd {
        /// The open call.
        tool_call_id: ToolCallId,
    },
    /// `TOOL_CALL_RESULT {messageId, toolCallId, content, role: "tool"}`, once per call.
    ToolCallResult {
        /// Id of the stored tool message.
        message_id: MessageId,
        /// The call answered.
        tool_call_id: ToolCallId,
        /// Never empty and never the text `null`.
        content: String,
    },
}

/// Payload of RUN_FINISHED. `result`, `outcome` and `usage` go only to peers that sent a `protocolVersion`; who fills
/// this keeps that gate. Source: contract 2.4.
#[derive(Debug, Clone, PartialEq)]
pub struct RunFinished {
    /// As RUN_STARTED.
    pub thread_id: ThreadId,
    /// As RUN_STARTED.
    pub run_id: RunId,
    /// Set when an answer was cut at the client's own limit (D9).
    pub result: Option<Value>,
    /// Absent means success.
    pub outcome: Option<Outcome>,
    /// One entry per provider and model.
    pub usage: Vec<TokenUsage>,
}

/// How a finished run ended. Source: AG-UI LIFE-9, CAN-1, FT-4.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Outcome {
    /// `{"type":"success","pendingToolCallIds":[...]}`: calls left for the next run, in call order.
    Success {
        /// Never empty; a success without pending calls has no outcome.
        #[serde(rename = "pendingToolCallIds")]
        pending_tool_call_ids: Vec<ToolCallId>,
    },
    /// `{"type":"cancelled"}`.
    Cancelled,
}

/// Token counts of one provider and model; totals include their parts. Source: AG-UI USE-1 to USE-7.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenUsage {
    /// Provider name of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Model id of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// All input tokens, cached ones included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// All output tokens, reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Input + output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_tokens: Option<u64>,
    /// Part of the output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// Part of the input, read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_input_tokens: Option<u64>,
    /// Part of the input, written to a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write_input_tokens: Option<u64>,
}

record!(TokenUsage:
    "provider" => provider = None,
    "model" => model = None,
    "inputTokens" => input_tokens = None,
    "outputTokens" => output_tokens = None,
    "totalTokens" => total_tokens = None,
    "reasoningTokens" => reasoning_tokens = None,
    "cachedInputTokens" => cached_input_tokens = None,
    "cacheWriteInputTokens" => cache_write_input_tokens = None,
);

impl TokenUsage {
    /// Adds the counts of another call of the same model; a count neither has stays absent (USE-5).
    pub fn add(&mut self, other: &Self) {
        let sum = |mine: &mut Option<u64>, theirs: Option<u64>| {
            if let Some(theirs) = theirs {
                *mine = Some(mine.unwrap_or(0).saturating_add(theirs));
            }
        };
        sum(&mut self.input_tokens, other.input_tokens);
        sum(&mut self.output_tokens, other.output_tokens);
        sum(&mut self.total_tokens, other.total_tokens);
        sum(&mut self.reasoning_tokens, other.reasoning_tokens);
        sum(&mut self.cached_input_tokens, other.cached_input_tokens);
        sum(&mut self.cache_write_input_tokens, other.cache_write_input_tokens);
    }
}

macro_rules! run_error_codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// The stable codes of RUN_ERROR. Source: contract 2.4.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
        pub enum RunErrorCode { $($(#[$doc])* #[serde(rename = $text)] $variant,)* }

        words!(RunErrorCode: $($text => $variant),*);

        impl RunErrorCode {
            /// Every code, in the contract's order.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The code on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

run_error_codes! {
    /// The upstream failed or refused after the stream began.
    UpstreamError = "upstream_error",
    /// The upstream answered 429 to every attempt.
    UpstreamRateLimited = "upstream_rate_limited",
    /// The upstream was silent for longer than `upstreamIdleTimeoutMs`.
    UpstreamTimeout = "upstream_timeout",
    /// The upstream's stream ended without its own end mark.
    UpstreamTruncated = "upstream_truncated",
    /// The upstream sent what its wire format does not allow.
    InvalidUpstreamResponse = "invalid_upstream_response",
    /// The answer was cut at a token limit the client did not set (D9).
    OutputTruncated = "output_truncated",
    /// The upstream withheld the answer.
    ContentFiltered = "content_filtered",
    /// The history does not fit the model, also after one retry with a smaller window.
    ContextLengthExceeded = "context_length_exceeded",
    /// The model still called tools on the last allowed step (D10).
    MaxStepsExceeded = "max_steps_exceeded",
    /// The run worked for longer than `runTimeoutMs` (D10).
    RunTimeout = "run_timeout",
    /// The run's object was reset.
    RunInterrupted = "run_interrupted",
    /// What the run produced could not be stored.
    StorageError = "storage_error",
    /// The run was cancelled and the peer does not know outcomes.
    Cancelled = "cancelled",
    /// A fault of ours.
    InternalError = "internal_error",
}

/// The kind of an [`Event`]: its `type` on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventKind {
    /// `RUN_STARTED`
    RunStarted,
    /// `RUN_FINISHED`
    RunFinished,
    /// `RUN_ERROR`
    RunError,
    /// `STEP_STARTED`
    StepStarted,
    /// `STEP_FINISHED`
    StepFinished,
    /// `TEXT_MESSAGE_START`
    TextMessageStart,
    /// `TEXT_MESSAGE_CONTENT`
    TextMessageContent,
    /// `TEXT_MESSAGE_END`
    TextMessageEnd,
    /// `REASONING_START`
    ReasoningStart,
    /// `REASONING_MESSAGE_START`
    ReasoningMessageStart,
    /// `REASONING_MESSAGE_CONTENT`
    ReasoningMessageContent,
    /// `REASONING_MESSAGE_END`
    ReasoningMessageEnd,
    /// `REASONING_END`
    ReasoningEnd,
    /// `TOOL_CALL_START`
    ToolCallStart,
    /// `TOOL_CALL_ARGS`
    ToolCallArgs,
    /// `TOOL_CALL_END`
    ToolCallEnd,
    /// `TOOL_CALL_RESULT`
    ToolCallResult,
}

impl EventKind {
    /// Every kind we can emit; a test pins the set.
    pub const ALL: &[Self] = &[
        Self::RunStarted,
        Self::RunFinished,
        Self::RunError,
        Self::StepStarted,
        Self::StepFinished,
        Self::TextMessageStart,
        Self::TextMessageContent,
        Self::TextMessageEnd,
        Self::ReasoningStart,
        Self::ReasoningMessageStart,
        Self::ReasoningMessageContent,
        Self::ReasoningMessageEnd,
        Self::ReasoningEnd,
        Self::ToolCallStart,
        Self::ToolCallArgs,
        Self::ToolCallEnd,
        Self::ToolCallResult,
    ];

    /// The `type` on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::RunStarted => "RUN_STARTED",
            Self::RunFinished => "RUN_FINISHED",
            Self::RunError => "RUN_ERROR",
            Self::StepStarted => "STEP_STARTED",
            Self::StepFinished => "STEP_FINISHED",
            Self::TextMessageStart => "TEXT_MESSAGE_START",
            Self::TextMessageContent => "TEXT_MESSAGE_CONTENT",
            Self::TextMessageEnd => "TEXT_MESSAGE_END",
            Self::ReasoningStart => "REASONING_START",
            Self::ReasoningMessageStart => "REASONING_MESSAGE_START",
            Self::ReasoningMessageContent => "REASONING_MESSAGE_CONTENT",
            Self::ReasoningMessageEnd => "REASONING_MESSAGE_END",
            Self::ReasoningEnd => "REASONING_END",
            Self::ToolCallStart => "TOOL_CALL_START",
            Self::ToolCallArgs => "TOOL_CALL_ARGS",
            Self::ToolCallEnd => "TOOL_CALL_END",
            Self::ToolCallResult => "TOOL_CALL_RESULT",
        }
    }
}

impl Event {
    /// The kind of this event.
    pub fn kind(&self) -> EventKind {
        match self {
            Self::RunStarted { .. } => EventKind::RunStarted,
            Self::RunFinished(_) => EventKind::RunFinished,
            Self::RunError { .. } => EventKind::RunError,
            Self::StepStarted { .. } => EventKind::StepStarted,
            Self::StepFinished { .. } => EventKind::StepFinished,
            Self::TextMessageStart { .. } => EventKind::TextMessageStart,
            Self::TextMessageContent { .. } => EventKind::TextMessageContent,
            Self::TextMessageEnd { .. } => EventKind::TextMessageEnd,
            Self::ReasoningStart { .. } => EventKind::ReasoningStart,
            Self::ReasoningMessageStart { .. } => EventKind::ReasoningMessageStart,
            Self::ReasoningMessageContent { .. } => EventKind::ReasoningMessageContent,
            Self::ReasoningMessageEnd { .. } => EventKind::ReasoningMessageEnd,
            Self::ReasoningEnd { .. } => EventKind::ReasoningEnd,
            Self::ToolCallStart { .. } => EventKind::ToolCallStart,
            Self::ToolCallArgs { .. } => EventKind::ToolCallArgs,
            Self::ToolCallEnd { .. } => EventKind::ToolCallEnd,
            Self::ToolCallResult { .. } => EventKind::ToolCallResult,
        }
    }

    /// Whether this event only continues an open text or call.
    pub fn is_delta(&self) -> bool {
        matches!(
            self.kind(),
            EventKind::TextMessageContent | EventKind::ReasoningMessageContent | EventKind::ToolCallArgs
        )
    }

    /// Whether this event ends its stream.
    pub fn is_terminal(&self) -> bool {
        matches!(self.kind(), EventKind::RunFinished | EventKind::RunError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_emitted_kinds_are_the_contracts_twelve_and_those_of_reasoning() {
        let kinds: Vec<_> = EventKind::ALL.iter().map(|kind| kind.as_str()).collect();
        assert_eq!(
            kinds,
            [
                "RUN_STARTED",
                "RUN_FINISHED",
                "RUN_ERROR",
                "STEP_STARTED",
                "STEP_FINISHED",
                "TEXT_MESSAGE_START",
                "TEXT_MESSAGE_CONTENT",
                "TEXT_MESSAGE_END",
                "REASONING_START",
                "REASONING_MESSAGE_START",
                "REASONING_MESSAGE_CONTENT",
                "REASONING_MESSAGE_END",
                "REASONING_END",
                "TOOL_CALL_START",
                "TOOL_CALL_ARGS",
                "TOOL_CALL_END",
                "TOOL_CALL_RESULT",
            ]
        );
    }

    #[test]
    fn usage_adds_only_what_was_counted() {
        let mut sum = TokenUsage {
            input_tokens: Some(1),
            ..TokenUsage::default()
        };
        sum.add(&TokenUsage {
            input_tokens: Some(2),
            output_tokens: Some(3),
            ..TokenUsage::default()
        });
        assert_eq!(
            sum,
            TokenUsage {
                input_tokens: Some(3),
                output_tokens: Some(3),
                ..TokenUsage::default()
            }
        );
    }
}
