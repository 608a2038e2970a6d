//! `RunAgentInput`: what a client posts to start a run.

use serde_json::Value;

use super::forwarded_props::ForwardedProps;
use super::id::{RunId, ThreadId};
use super::message::Message;
use super::tool::Tool;

pub use super::decode::{InputError, Issue, Warning};
pub use super::input_decode::Decoded;

/// The checked body of `POST /run`.
///
/// Wire: `{"threadId","runId","messages","tools"?,"context"?,"state"?,"forwardedProps"?,"protocolVersion"?,
/// "parentRunId"?,"resume"?}`. `state`, `parentRunId` and `resume` are checked and dropped. Source: contract 2.1.
#[derive(Debug, Clone, PartialEq)]
pub struct RunAgentInput {
    /// May be empty: then the run is stateless.
    pub thread_id: ThreadId,
    /// The client's id of the run.
    pub run_id: RunId,
    /// All known messages, in order; unknown roles and parts are gone.
    pub messages: Vec<Message>,
    /// Front-end tools.
    pub tools: Vec<Tool>,
    /// Grounding for the model.
    pub context: Vec<ContextEntry>,
    /// Options of this run.
    pub forwarded_props: ForwardedProps,
    /// Whether the peer sent a `protocolVersion`: only then it may see `result`, `outcome`, `usage`.
    pub declares_version: bool,
    /// The whole `state`, for upstreams that take one; absent when it was absent or `null`.
    pub state: Option<Value>,
}

/// `{"description","value"}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextEntry {
    /// What the value is.
    pub description: String,
    /// The value, as text.
    pub value: String,
}
