//! The agent loop: one run from its input to its terminal event, seen only through [`ports`].
//!
//! Async without a runtime, without a platform type, without a `Send` bound: the same loop runs in native tests.

pub mod mailbox;
pub mod ports;

use std::rc::Rc;

use futures::channel::oneshot;

use crate::config::AgentConfig;
use crate::protocol::id::{ObjectAddress, ResourceId, ThreadId};
use crate::protocol::input::RunAgentInput;
use crate::provider::ModelTarget;
use crate::store::{Persistence, RunStatus};
use mailbox::ToolMailbox;
use ports::{EventSink, Ports};

/// Everything a run is made of before it starts.
#[derive(Debug, Clone)]
pub struct RunSetup {
    /// The checked body.
    pub input: RunAgentInput,
    /// The agent.
    pub agent: Rc<AgentConfig>,
    /// Its upstream with the key resolved.
    pub target: ModelTarget,
    /// How the run treats its thread.
    pub persistence: Persistence,
    /// Owner for upstreams that keep threads; absent for an anonymous stateless run.
    pub owner: Option<ResourceId>,
    /// The object the run lives in; tool call ids carry it.
    pub object: ObjectAddress,
}

/// What other requests may do to a run that lives: deliver results, cancel.
#[derive(Debug, Default)]
pub struct RunControl {
    /// Where results are delivered.
    pub mailbox: ToolMailbox,
}

/// Why a run answers by HTTP and has no stream. Source: contract D3, D14.
#[derive(Debug, Clone, PartialEq)]
pub enum RunRefusal {
    /// 403
    ForeignThread,
    /// 409 `run_conflict`
    Conflict {
        /// State of the other run.
        status: RunStatus,
        /// Thread of the other run.
        thread_id: ThreadId,
    },
    /// 400 at `/messages`: no user or tool message in the model input.
    NothingToAnswer,
    /// 503 with Retry-After
    StorageUnavailable,
    /// 503: the agent's configuration cannot drive its provider.
    AgentNotConfigured(&'static str),
    /// 429 with Retry-After
    UpstreamRateLimited {
        /// Seconds.
        retry_after_s: u64,
    },
    /// 502
    UpstreamRefused(crate::protocol::event::RunErrorCode),
    /// 500
    Internal,
}

/// How a run ended, for the one who closes its streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunEnd {
    /// Final state.
    pub status: RunStatus,
    /// Whether a terminal event was sent: close the streams then, abort them otherwise.
    pub terminal_sent: bool,
}

/// Runs to the end. `head` learns once whether the answer is a stream.
pub async fn run<P: Ports, S: EventSink>(
    _setup: RunSetup,
    _ports: &P,
    _control: &RunControl,
    _sink: S,
    head: oneshot::Sender<Result<(), RunRefusal>>,
) -> RunEnd {
    let _ = head.send(Err(RunRefusal::Internal));
    RunEnd {
        status: RunStatus::Failed,
        terminal_sent: false,
    }
}
