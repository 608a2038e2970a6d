//! Upstream codecs: a neutral [`ModelRequest`] out, [`ModelEvent`]s in.
//!
//! Pure: bytes are made and read here, never sent. Codecs do not know each other; `table` names them.

pub mod ag_ui;
pub mod anthropic;
pub mod content;
pub mod demo;
pub mod google;
pub mod mastra;
pub mod openai_chat;
pub mod openai_responses;
mod refusal;
pub mod sse_answer;
pub mod table;
mod target;
pub mod tool_call_merge;
pub mod turns;
pub mod upstream_ids;
pub mod wire_text;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::protocol::event::TokenUsage;
use crate::protocol::forwarded_props::{ModelSettings, ToolChoice};
use crate::protocol::id::{ResourceId, RunId, ThreadId};
use crate::protocol::message::{ContentPart, MediaPart};
use crate::protocol::read::{record, variants, words};
use crate::protocol::tool::Tool;
use table::Wire;
pub use target::{ModelTarget, Secret};

/// One way to drive an upstream. Stateless; what a stream needs lives in its [`ModelDecoder`].
pub trait Provider {
    /// Turns a request into what the transport must do.
    ///
    /// # Errors
    /// [`ProviderError::Configuration`] when the target lacks what this wire needs.
    fn call(&self, target: &ModelTarget, request: &ModelRequest) -> Result<ModelCall, ProviderError>;

    /// Whether the upstream runs tools of its own: calls of names we do not know are shown and answered by it.
    fn runs_tools(&self) -> bool {
        false
    }

    /// Model settings the vendor has no name for, as a run writes them: dropped, with a warning in the log.
    fn unknown_settings(&self) -> &'static [&'static str] {
        &[]
    }

    /// Whether a medium of a message has a place in a request to this target. One that has none is left out, with a warning
    /// in the log. Source: AG-UI IN-4 to IN-6.
    fn takes(&self, _target: &ModelTarget, _part: &ContentPart) -> bool {
        true
    }

    /// A decoder for one response body with status 200.
    fn decoder(&self) -> Box<dyn ModelDecoder>;

    /// Reads a response that is not a stream: status not 2xx. `body` is at most [`REFUSAL_BODY_MAX_BYTES`] of it.
    fn refusal(&self, status: u16, headers: &[(String, String)], body: &[u8]) -> ProviderError;
}

/// How much of a refusing answer's body is read, in bytes.
pub const REFUSAL_BODY_MAX_BYTES: usize = 64 * 1024;

/// Longest single SSE event read from an upstream, in bytes; a longer one ends the run. Source: known fault B012.
pub const UPSTREAM_EVENT_MAX_BYTES: usize = 32 * 1024 * 1024;

/// Reads one upstream body, whatever its chunking.
pub trait ModelDecoder {
    /// Takes the next bytes and appends what they complete to `events`.
    ///
    /// # Errors
    /// [`ProviderError`] when the stream says it failed or is not of this wire format. Events appended before the
    /// fault stand; nothing may be fed after it.
    fn feed(&mut self, bytes: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), ProviderError>;

    /// The body ended: delivers a complete pending payload, then judges.
    ///
    /// # Errors
    /// [`ProviderError::Truncated`] when the wire's own end mark is missing.
    fn end(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError>;

    /// Whether the end mark was seen: the body is dropped then, whatever the server still sends.
    fn is_finished(&self) -> bool;
}

/// What a model says, in order. Slots number the calls of one answer from 0.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// Text of the answer; never empty. It continues the open text segment or opens one.
    Text(String),
    /// The upstream ended a text segment; later text is a new one.
    TextEnd,
    /// Reasoning text; never part of the answer.
    Reasoning(String),
    /// A call was announced; its name is known and never empty.
    ToolCallStart {
        /// Number of the call.
        slot: usize,
        /// The vendor's id, if it gave one.
        vendor_id: Option<String>,
        /// Name of the tool.
        name: String,
    },
    /// More argument text of a call; never empty.
    ToolCallArguments {
        /// Number of the call.
        slot: usize,
        /// A piece of JSON text.
        delta: String,
    },
    /// The upstream says the call is complete. Its arguments joined to nothing (= `{}`) or to what the model wrote: who
    /// reads them checks that it is the text of a JSON object. Never sent for a call that was cut.
    ToolCallEnd {
        /// Number of the call.
        slot: usize,
    },
    /// The upstream ran the call itself and says what came out (Mastra's server tools).
    ToolCallResult {
        /// Number of the call.
        slot: usize,
        /// Content for TOOL_CALL_RESULT.
        content: String,
        /// Whether the tool failed.
        is_error: bool,
    },
    /// The upstream ended one of its own steps and goes on with the next in the same body (Mastra).
    StepEnd,
    /// Opaque state of the vendor that must go back with this assistant message (signatures, encrypted reasoning).
    VendorState(Value),
    /// Token counts of this call.
    Usage(Box<TokenUsage>),
    /// Why the answer ended. At most one; the last of them counts.
    Finish(FinishReason),
}

/// Why an answer ended; never decides whether calls run (D9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum FinishReason {
    /// The answer is complete.
    Stop,
    /// The model wants its calls answered.
    ToolCalls,
    /// Cut at a token limit.
    Length,
    /// Withheld by the vendor.
    ContentFilter,
}

words!(FinishReason:
    "Stop" => Stop, "ToolCalls" => ToolCalls, "Length" => Length, "ContentFilter" => ContentFilter,
);

/// What went wrong with an upstream. Display never has a body, prompt, key or address.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ProviderError {
    /// The agent's configuration cannot drive this provider.
    #[error("the agent is not configured: {0}")]
    Configuration(&'static str),
    /// The upstream refused the request, by status or by an error object inside a 200 stream.
    #[error("the upstream refused the request (status {status})")]
    Refused {
        /// HTTP status; 200 when the refusal came inside a stream.
        status: u16,
        /// Whether another attempt may succeed.
        retryable: bool,
        /// How long the upstream asked us to wait, in milliseconds.
        retry_after_ms: Option<u64>,
        /// The upstream's own words, for the log only.
        detail: String,
    },
    /// 429, or its equal inside a stream.
    #[error("the upstream limits the rate of requests")]
    RateLimited {
        /// How long the upstream asked us to wait, in milliseconds.
        retry_after_ms: Option<u64>,
        /// The upstream's own words, for the log only.
        detail: String,
    },
    /// The request does not fit the model's context window.
    #[error("the conversation does not fit the model")]
    ContextLengthExceeded,
    /// The vendor withheld the answer.
    #[error("the answer was withheld by the model's content filter")]
    ContentFiltered,
    /// The answer, or a call's arguments, were cut at a token limit.
    #[error("the answer was cut at a token limit")]
    OutputTruncated,
    /// The body ended without the wire's end mark.
    #[error("the upstream's answer was cut off")]
    Truncated,
    /// The bytes are not of this wire format.
    #[error("the upstream's answer could not be read")]
    Malformed(&'static str),
}

/// One model call, vendor-neutral. `run::prompt` builds it; codecs only translate.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelRequest {
    /// System texts, in order; none is blank.
    pub system: Vec<String>,
    /// The conversation: starts with a user message unless the window had none, never has an unanswered call, results
    /// directly after their calls, no blank assistant message. Roles may repeat; a codec merges where its vendor must.
    pub messages: Vec<ModelMessage>,
    /// Offered tools.
    pub tools: Vec<Tool>,
    /// Whether and what the model must call.
    pub tool_choice: ToolChoice,
    /// Settings; a codec drops what its vendor lacks.
    pub settings: ModelSettings,
    /// JSON Schema the answer must fit.
    pub output_schema: Option<Value>,
    /// The client's `state`, for upstreams that take one.
    pub state: Option<Value>,
    /// Unknown keys of forwardedProps.
    pub unknown_props: Map<String, Value>,
    /// The run, for upstreams that keep runs.
    pub run_id: RunId,
    /// The thread, for upstreams that keep threads.
    pub thread_id: ThreadId,
    /// The thread as the upstream keeps it, if it does: it has the history, and only what is new is sent.
    pub kept_thread: Option<KeptThread>,
}

/// A thread that the upstream keeps.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptThread {
    /// Whose it is.
    pub owner: ResourceId,
    /// How many of its messages reach the model; absent = as many as the upstream likes.
    pub last_messages: Option<u32>,
    /// Whether it is only read.
    pub is_read_only: bool,
}

/// One message towards a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum ModelMessage {
    /// From the person; never without parts.
    User {
        /// Text and media in order.
        parts: Vec<ContentPart>,
    },
    /// From the model; text, calls or both.
    Assistant {
        /// Text; may be empty when there are calls.
        text: String,
        /// Calls, each answered by the [`ModelMessage::ToolResults`] that follows.
        tool_calls: Vec<ModelToolCall>,
        /// What the vendor wanted back with this message.
        vendor_state: Option<Value>,
    },
    /// The results of the calls directly before, one per call, in call order.
    ToolResults(Vec<ModelToolResult>),
}

variants!(ModelMessage:
    "User" => User { "parts" => parts },
    "Assistant" => Assistant { "text" => text, "tool_calls" => tool_calls, "vendor_state" => vendor_state = None },
    "ToolResults" => ToolResults(results),
);

/// A call towards a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelToolCall {
    /// At most 40 bytes of `[A-Za-z0-9_-]` (contract 2.5).
    pub id: String,
    /// Name of the tool.
    pub name: String,
    /// Arguments: valid JSON text.
    pub arguments: String,
}

record!(ModelToolCall: "id" => id, "name" => name, "arguments" => arguments);

/// A result towards a model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelToolResult {
    /// The call's id, as in [`ModelToolCall::id`].
    pub tool_call_id: String,
    /// Name of the tool, for vendors that key results by it.
    pub name: String,
    /// Result text; MCP text parts are already flattened.
    pub content: String,
    /// Pictures of a result of this run, which `content` names: for wires whose results may have some. A stored result
    /// has none, so that old pictures do not fill every later request.
    pub images: Vec<MediaPart>,
    /// Whether the call failed.
    pub is_error: bool,
}

record!(ModelToolResult:
    "tool_call_id" => tool_call_id, "name" => name, "content" => content, "images" => images, "is_error" => is_error,
);

/// What the transport must do for a [`ModelRequest`].
#[derive(Debug, Clone, PartialEq)]
pub enum ModelCall {
    /// Send this and feed the body to the decoder.
    Http(HttpRequest),
    /// Nothing to send: the answer is here already, each piece after its pause.
    Scripted(Vec<ScriptedPiece>),
}

/// One piece of a scripted answer.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptedPiece {
    /// Pause before it, in milliseconds.
    pub after_ms: u64,
    /// What is said, or how it fails.
    pub event: Result<ModelEvent, ProviderError>,
}

/// A request as data.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpRequest {
    /// `GET`, `POST`, ...
    pub method: &'static str,
    /// Whole address.
    pub url: String,
    /// Header names in lower case.
    pub headers: Vec<(String, String)>,
    /// Body text; `None` = no body.
    pub body: Option<String>,
}

/// What the transport must do for a request, as the target's codec writes it, with the agent's own headers and query.
///
/// # Errors
/// [`ProviderError::Configuration`]
pub fn call(target: &ModelTarget, request: &ModelRequest) -> Result<ModelCall, ProviderError> {
    let call = codec(target.wire).call(target, request)?;
    Ok(match call {
        ModelCall::Http(request) => ModelCall::Http(target.address(request)),
        ModelCall::Scripted(pieces) => ModelCall::Scripted(pieces),
    })
}

/// The codec of a wire format.
pub fn codec(wire: Wire) -> &'static dyn Provider {
    match wire {
        Wire::Demo => &demo::Demo,
        Wire::OpenAiChat => &openai_chat::OpenAiChat,
        Wire::OpenAiResponses => &openai_responses::OpenAiResponses,
        Wire::Anthropic => &anthropic::Anthropic,
        Wire::Google => &google::Google,
        Wire::Mastra => &mastra::Mastra,
        Wire::AgUi => &ag_ui::AgUi,
        Wire::WorkersAi => &openai_chat::workers_ai::WorkersAi,
    }
}
