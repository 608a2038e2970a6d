//! Where a run stands, as data: enough to go on from there after its object was reset (contract 8).

use serde::Serialize;

use super::answer::ModelAnswer;
use super::conclude::Conclusion;
use super::emitter::EmitterState;
use super::report::RunCounts;
use crate::protocol::event::TokenUsage;
use crate::protocol::id::ToolCallId;
use crate::protocol::read::{record, variants};
use crate::protocol::tool::ToolResult;
use crate::provider::ModelMessage;
use crate::store::{EndRun, PersistentRun, RunStatus};

/// A run before its start, between two steps, or between the calls of a step and their results.
///
/// Of what happened since, a model call is repeated; calls and results have records of their own.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Checkpoint {
    /// Events of the run so far; all of them are stored.
    pub event_count: u64,
    /// What comes next.
    pub position: Position,
    /// What the stream has open, and what was said.
    pub emitter: EmitterState,
    /// The run's place in its thread.
    pub persistent: Option<PersistentRun>,
    /// What the model is asked next, without the open step.
    pub conversation: Vec<ModelMessage>,
    /// Results of the open step that came before their turn to be shown.
    pub known_results: Vec<(ToolCallId, ToolResult)>,
    /// Tokens so far.
    pub usage: TokenUsage,
    /// What was counted so far; the number of calls is also the counter inside the next one's id.
    pub counts: RunCounts,
    /// Whether the conversation was cut once because the model found it too long.
    pub is_shortened: bool,
    /// Unix milliseconds.
    pub started_ms: u64,
    /// Working time left (D10), in milliseconds.
    pub work_left_ms: u64,
}

record!(Checkpoint:
    "eventCount" => event_count, "position" => position, "emitter" => emitter, "persistent" => persistent = None,
    "conversation" => conversation, "knownResults" => known_results, "usage" => usage, "counts" => counts,
    "isShortened" => is_shortened, "startedMs" => started_ms, "workLeftMs" => work_left_ms,
);

impl Checkpoint {
    /// What is stored of the run if it cannot go on; its open calls read as interrupted.
    pub fn segments(&self) -> Option<Segments> {
        let end = EndRun {
            status: RunStatus::Failed,
            produced: self.emitter.produced().to_vec(),
            pending_tool_call_ids: Vec::new(),
            usage: Vec::new(),
            now_ms: self.started_ms,
        };
        let run = self.persistent.clone()?;
        Some(Segments { run, end })
    }
}

/// What a run does next.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Position {
    /// Sends the start batch: nobody was answered yet.
    Starting,
    /// Asks the model.
    Asking {
        /// For this step, from 1.
        step: u32,
    },
    /// Has the calls of an answer answered; they are in the stream already.
    Answering {
        /// Of this step.
        step: u32,
        /// The answer.
        answer: ModelAnswer,
    },
    /// Stores the end and says it: everything is closed.
    Ending(Conclusion),
}

variants!(Position:
    "starting" => Starting,
    "asking" => Asking { "step" => step },
    "answering" => Answering { "step" => step, "answer" => answer },
    "ending" => Ending(conclusion),
);

/// What is stored of a run that is lost: its closed segments.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Segments {
    /// The run's place in its thread.
    pub run: PersistentRun,
    /// Its end as interrupted; the time is that of the closing.
    pub end: EndRun,
}

record!(Segments: "run" => run, "end" => end);
