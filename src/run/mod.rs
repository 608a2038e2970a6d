//! The agent loop: one run from its input to its terminal event, seen only through [`ports`].
//!
//! Async without a runtime, without a platform type, without a `Send` bound: the same loop runs in native tests.
//! `plan` decides, `begin` starts, `request` says what the model is asked and `answer` asks it, `live` and `calls` handle
//! its tool calls, `conclude` ends; `emitter` is the only way to the stream and `pace` the only way to wait.

mod answer;
mod batch;
mod begin;
pub mod boundary;
mod calls;
pub mod cancel;
pub mod checkpoint;
mod conclude;
mod deadline;
pub mod description;
pub mod emitter;
pub mod ending;
pub mod halt;
mod http_call;
pub mod journal;
pub mod keeper;
pub mod kept_threads;
mod live;
pub mod mailbox;
pub mod mcp_client;
pub mod mcp_lists;
pub mod pace;
pub mod plan;
pub mod ports;
pub mod prompt;
pub mod report;
mod request;
pub mod resume;
pub mod server_calls;
mod title;
mod transcript;

use std::rc::Rc;

use futures::channel::oneshot;

use crate::config::AgentConfig;
use crate::config::agents::FrontendTools;
use crate::list::List;
use crate::protocol::event::{RunErrorCode, TokenUsage};
use crate::protocol::id::{ObjectAddress, ResourceId, ThreadId, ToolCallId};
use crate::protocol::input::RunAgentInput;
use crate::protocol::json;
use crate::protocol::tool::ToolResult;
use crate::provider::{FinishReason, ModelMessage, ModelTarget, ProviderError, codec};
use crate::store::{Exhausted, Persistence, PersistentRun, Quota, RunStatus, Store};
use crate::tool::schema::Schema;
use crate::tool::toolbox::{ServerTools, ToolBox};
use answer::ModelAnswer;
use cancel::CancelSignal;
use checkpoint::Position;
use conclude::Finish;
use emitter::Emitter;
use ending::Ending;
use halt::Halt;
use mailbox::ToolMailbox;
use mcp_client::McpClient;
use pace::Pace;
use ports::{Clock, EventSink, Level, Log, Ports};
use report::RunCounts;
use server_calls::Servers;

/// Everything a run is made of before it starts.
#[derive(Debug, Clone)]
pub struct RunSetup {
    /// The checked body.
    pub input: RunAgentInput,
    /// The agent.
    pub agent: Rc<AgentConfig>,
    /// Its upstream with the key resolved.
    pub target: ModelTarget,
    /// Its HTTP tools and MCP servers with their secrets resolved.
    pub tools: ServerTools,
    /// How the run treats its thread, from [`plan::persistence`].
    pub persistence: Persistence,
    /// Owner for upstreams that keep threads; absent for an anonymous stateless run.
    pub owner: Option<ResourceId>,
    /// The object the run lives in; tool call ids carry it.
    pub object: ObjectAddress,
    /// What its owner may use.
    pub quota: Quota,
}

/// What other requests may do to a run that lives: deliver results, cancel.
#[derive(Debug, Default)]
pub struct RunControl {
    /// Where results are delivered.
    pub mailbox: ToolMailbox,
    /// Stops the run.
    pub cancel: CancelSignal,
    /// How the run ended: known before `run` returns, which may still write a title.
    pub ending: Ending,
}

/// Why a run answers by HTTP and has no stream. Source: contract D3, D14.
#[derive(Debug, Clone, PartialEq)]
pub enum RunRefusal {
    /// 403
    ForeignThread,
    /// 429 with Retry-After, or 413: the owner has used up what it may.
    Exhausted(Exhausted),
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
    UpstreamRefused(RunErrorCode),
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
    setup: RunSetup,
    ports: &P,
    control: &RunControl,
    sink: S,
    head: oneshot::Sender<Result<(), RunRefusal>>,
) -> RunEnd {
    let ids = (setup.input.thread_id.clone(), setup.input.run_id.clone());
    let emitter = Emitter::new(sink, ports.ids(), head, ids);
    let mut run = Run::new(setup, ports, control, emitter);
    run.warn_of_settings();
    run.keep_start();
    if let Err(refusal) = run.begin().await {
        run.emitter.refuse(refusal);
        run.leave_servers().await;
        return RunEnd {
            status: RunStatus::Failed,
            terminal_sent: false,
        };
    }
    run.keep(|| Position::Asking { step: 1 });
    let outcome = run.steps(1).await;
    run.conclude(outcome).await
}

/// A run in motion.
struct Run<'a, P: Ports, S> {
    setup: RunSetup,
    ports: &'a P,
    control: &'a RunControl,
    emitter: Emitter<'a, S, P::Ids>,
    pace: Pace<'a, P::Clock>,
    store: Option<Store<P::Database, P::Attachments>>,
    persistent: Option<PersistentRun>,
    frontend_mode: FrontendTools,
    toolbox: ToolBox,
    servers: Servers<'a, P>,
    are_tools_withheld: bool,
    conversation: Vec<ModelMessage>,
    /// Results that came before their turn to be shown, in order of arrival.
    known_results: Vec<(ToolCallId, ToolResult)>,
    /// Results of the open step that came before a reset, in order of arrival.
    kept_results: Vec<(ToolCallId, ToolResult)>,
    usage: TokenUsage,
    counts: RunCounts,
    is_parked: bool,
    is_shortened: bool,
    started_ms: u64,
}

impl<'a, P: Ports, S: EventSink> Run<'a, P, S> {
    fn new(setup: RunSetup, ports: &'a P, control: &'a RunControl, emitter: Emitter<'a, S, P::Ids>) -> Self {
        let (http, clock, lists) = (ports.http(), ports.clock(), ports.mcp_lists());
        let connect = |server: &Rc<_>| Rc::new(McpClient::new(Rc::clone(server), http, clock, lists));
        let servers = setup.tools.mcp.iter().map(connect).list();
        Self {
            emitter,
            pace: Pace::new(ports.clock(), &control.cancel, &setup.agent),
            store: ports
                .database()
                .map(|database| Store::new(database.clone()).with_attachments(ports.attachments().clone())),
            persistent: None,
            frontend_mode: plan::frontend_mode(&setup),
            toolbox: ToolBox::default(),
            servers,
            are_tools_withheld: false,
            conversation: Vec::new(),
            known_results: Vec::new(),
            kept_results: Vec::new(),
            usage: TokenUsage::default(),
            counts: RunCounts::default(),
            is_parked: false,
            is_shortened: false,
            started_ms: ports.clock().now_ms(),
            setup,
            ports,
            control,
        }
    }

    /// Settings the upstream has no name for are dropped, not refused (2.1).
    fn warn_of_settings(&self) {
        let unknown = codec(self.setup.target.wire).unknown_settings();
        let given = plan::settings(&self.setup.agent, &self.setup.input.forwarded_props).given();
        for setting in given.into_iter().filter(|setting| unknown.contains(setting)) {
            self.ports.log().line(
                Level::Warn,
                "model_setting_dropped",
                &[("runId", &self.setup.input.run_id), ("setting", &setting)],
            );
        }
    }

    /// Steps, from this one on, until the model has answered, or calls are left to the next run.
    async fn steps(&mut self, first: u32) -> Result<Finish, Halt> {
        let max_steps = self.setup.agent.max_steps.max(1);
        for step in first..=max_steps {
            self.emitter.begin_step()?;
            self.counts.step_count += 1;
            self.are_tools_withheld = step == max_steps;
            let answer = self.ask_within_context(step).await?;
            if answer.finish == Some(FinishReason::ContentFilter) {
                return Err(ProviderError::ContentFiltered.into());
            }
            if answer.is_last(&self.tool_choice(step)) {
                return self.last_answer(answer).await;
            }
            if self.are_tools_withheld {
                return Err(Halt::Failed(RunErrorCode::MaxStepsExceeded));
            }
            self.keep(|| Position::Answering {
                step,
                answer: answer.clone(),
            });
            if let Some(finish) = self.finish_step(step, answer).await? {
                return Ok(finish);
            }
        }
        Err(Halt::Failed(RunErrorCode::MaxStepsExceeded))
    }

    /// Has the calls of a step answered; ends the run when some are left to the next one.
    async fn finish_step(&mut self, step: u32, answer: ModelAnswer) -> Result<Option<Finish>, Halt> {
        let has_pending = self.answer_calls(answer).await?;
        if has_pending {
            self.emitter.leave_pending();
        }
        self.emitter.end_step()?;
        if has_pending {
            return Ok(Some(Finish::Pending(self.emitter.unanswered())));
        }
        self.keep(|| Position::Asking {
            step: step.saturating_add(1),
        });
        Ok(None)
    }

    /// An answer without calls of ours ends the run; cut at a limit nobody asked for, it failed (D9).
    async fn last_answer(&mut self, answer: ModelAnswer) -> Result<Finish, Halt> {
        let is_cut = answer.finish == Some(FinishReason::Length);
        let is_asked_for = self
            .setup
            .input
            .forwarded_props
            .model_settings
            .max_output_tokens
            .is_some();
        let said = answer.text.clone();
        self.answer_calls(answer).await?;
        if !is_cut {
            self.warn_of_misfit(&said);
        }
        if is_cut && !is_asked_for {
            return Err(ProviderError::OutputTruncated.into());
        }
        self.emitter.end_step()?;
        Ok(if is_cut { Finish::AtLimit } else { Finish::Complete })
    }

    /// A vendor may not hold its model to a schema; what has been streamed cannot be taken back.
    fn warn_of_misfit(&self, said: &str) {
        let Some(wanted) = &self.setup.input.forwarded_props.output_schema else {
            return;
        };
        let fits = |value| Schema::compile(wanted).map_or(true, |schema| schema.check(&value).is_ok());
        if !json::parse(said).is_ok_and(fits) {
            let run_id = self.setup.input.run_id.as_str();
            self.ports
                .log()
                .line(Level::Warn, "answer_does_not_fit_schema", &[("runId", &run_id)]);
        }
    }
}
