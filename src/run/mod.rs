//! The agent loop: one run from its input to its terminal event, seen only through [`ports`].
//!
//! Async without a runtime, without a platform type, without a `Send` bound: the same loop runs in native tests.
//! `plan` decides, `answer` asks the model, `live` and `calls` handle its tool calls, `conclude` ends; `emitter` is the
//! only way to the stream and `pace` the only way to wait.

mod answer;
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
pub mod resume;
pub mod server_calls;
mod title;
mod transcript;

use std::rc::Rc;

use futures::channel::oneshot;
use futures::future::join;

use crate::config::AgentConfig;
use crate::config::agents::FrontendTools;
use crate::list::List;
use crate::protocol::event::{RunErrorCode, TokenUsage};
use crate::protocol::forwarded_props::ToolChoice;
use crate::protocol::id::{ObjectAddress, ResourceId, RunId, ThreadId, ToolCallId};
use crate::protocol::input::RunAgentInput;
use crate::protocol::json;
use crate::protocol::message::{Message, MessageBody};
use crate::protocol::tool::{Tool, ToolResult};
use crate::provider::{FinishReason, ModelMessage, ModelRequest, ModelTarget, ProviderError, codec};
use crate::store::{
    BeginRun, Begun, DatabaseError, Exhausted, Persistence, PersistentRun, Quota, RunStatus, Store,
    StoreError,
};
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
use ports::{Clock, EventSink, IdSource, Level, Log, Ports};
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

/// Grace beyond a run's own limits before its row reads as failed, in milliseconds. Source: D12.
const DEADLINE_GRACE_MS: u64 = 60_000;
/// Attempts at a database batch, and the pause before the second, in milliseconds; it doubles.
const DATABASE_ATTEMPTS: u32 = 3;
const DATABASE_PAUSE_MS: u64 = 100;

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

    /// Media the upstream has no place for are left out, not refused (AG-UI IN-4).
    fn warn_of_parts(&self) {
        let (codec, target) = (codec(self.setup.target.wire), &self.setup.target);
        let parts = self.conversation.iter().flat_map(|message| match message {
            ModelMessage::User { parts } => parts.as_slice(),
            ModelMessage::Assistant { .. } | ModelMessage::ToolResults(_) => &[],
        });
        for part in parts {
            if let Some(kind) = part.medium().filter(|_| !codec.takes(target, part)) {
                let run_id = &self.setup.input.run_id;
                let members: [(&'static str, &dyn std::fmt::Display); 2] =
                    [("runId", run_id), ("kind", &kind)];
                self.ports
                    .log()
                    .line(Level::Warn, "content_part_skipped", &members);
            }
        }
    }

    /// The start batch and the conversation it gives; MCP servers are asked for their tools meanwhile.
    async fn begin(&mut self) -> Result<(), RunRefusal> {
        let servers = self.servers.clone();
        let wait_ms = self.setup.agent.first_response_wait_ms;
        let (messages, listings) = join(self.history(), server_calls::listings(&servers, wait_ms)).await;
        let mut messages = messages?;
        self.keep_boundary(&mut messages);
        if self.equip(listings).is_err() {
            self.forget().await;
            return Err(RunRefusal::UpstreamRefused(RunErrorCode::UpstreamError));
        }
        if !prompt::has_question(&messages) {
            self.forget().await;
            return Err(RunRefusal::NothingToAnswer);
        }
        let pending = self
            .persistent
            .as_ref()
            .map_or(&[][..], |run| &run.pending_tool_call_ids);
        let max_bytes = self.setup.agent.tool_result_max_bytes;
        self.conversation = prompt::conversation(messages, pending, max_bytes);
        self.warn_of_parts();
        Ok(())
    }

    /// What the agent does not take from clients is left out, and the log says so.
    fn keep_boundary(&self, messages: &mut [Message]) {
        let (agent, input) = (&self.setup.agent, &self.setup.input);
        let mut left_out = vec![("media", boundary::admit_media(messages, &agent.media_addresses))];
        if !agent.allow_client_instructions {
            left_out.push(("instructions", prompt::client_instructions(input).count()));
        }
        for (what, count) in left_out.into_iter().filter(|(_, count)| *count > 0) {
            let members: [(&'static str, &dyn std::fmt::Display); 3] =
                [("runId", &input.run_id), ("what", &what), ("count", &count)];
            self.ports.log().line(Level::Warn, "input_left_out", &members);
        }
    }

    async fn history(&mut self) -> Result<Vec<Message>, RunRefusal> {
        let persistence = self.setup.persistence.clone();
        let (Some(store), true) = (self.store.clone(), persistence != Persistence::Stateless) else {
            return Ok(self.take_messages());
        };
        let (input, agent) = (&self.setup.input, &self.setup.agent);
        let begin = BeginRun {
            run_id: input.run_id.clone(),
            thread_id: input.thread_id.clone(),
            agent_id: crate::protocol::id::AgentId::new(agent.id.as_str()),
            object: self.setup.object,
            persistence,
            read_only: input.forwarded_props.read_only,
            incoming: input.messages.clone(),
            last_messages: input.forwarded_props.last_messages.unwrap_or(agent.last_messages),
            now_ms: self.started_ms,
            deadline_ms: self
                .started_ms
                .saturating_add(agent.run_timeout_ms)
                .saturating_add(DEADLINE_GRACE_MS),
            incarnation: self.ports.ids().token(),
            quota: self.setup.quota,
        };
        let begun = stored(self.ports, &self.setup.input.run_id, "start", || {
            store.begin_run(begin.clone())
        })
        .await;
        match begun.map_err(|_| RunRefusal::StorageUnavailable)? {
            Begun::Stateless => Ok(self.take_messages()),
            Begun::ForeignThread => Err(RunRefusal::ForeignThread),
            Begun::Exhausted(exhausted) => Err(RunRefusal::Exhausted(exhausted)),
            Begun::Conflict { status, thread_id } => Err(RunRefusal::Conflict { status, thread_id }),
            Begun::Persistent(mut run) => {
                let messages = std::mem::take(&mut run.model_input);
                self.persistent = Some(run);
                Ok(messages)
            }
        }
    }

    /// The messages of a run that stores none of them. Those that are system text stay: every step says them.
    fn take_messages(&mut self) -> Vec<Message> {
        let mut taken = Vec::new();
        for message in std::mem::take(&mut self.setup.input.messages) {
            match message.body {
                MessageBody::System { .. } | MessageBody::Developer { .. } => &mut self.setup.input.messages,
                MessageBody::User { .. }
                | MessageBody::Assistant { .. }
                | MessageBody::Tool { .. }
                | MessageBody::Activity { .. }
                | MessageBody::Reasoning { .. } => &mut taken,
            }
            .push(message);
        }
        taken
    }

    /// A run refused before its stream does not use up its id (D12).
    async fn forget(&self) {
        if let (Some(store), Some(run)) = (&self.store, &self.persistent) {
            let _ = stored(self.ports, &self.setup.input.run_id, "forget", || {
                store.forget_run(run)
            })
            .await;
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

    /// Asks; once more with a smaller window when the model says the conversation is too long.
    async fn ask_within_context(&mut self, step: u32) -> Result<ModelAnswer, Halt> {
        match self.ask_with_all(step).await {
            Err(Halt::Upstream(error))
                if *error == ProviderError::ContextLengthExceeded
                    && !self.emitter.has_output()
                    && !self.is_shortened =>
            {
                self.is_shortened = true;
                self.conversation = prompt::newer_half(&self.conversation);
                self.ask_with_all(step).await
            }
            asked => asked,
        }
    }

    /// Lends the request what may be large: it is not held twice while the model speaks.
    async fn ask_with_all(&mut self, step: u32) -> Result<ModelAnswer, Halt> {
        let request = self.request(step);
        let asked = self.ask(&request).await;
        // An upstream that makes steps of its own has added them.
        let added = std::mem::replace(&mut self.conversation, request.messages);
        self.conversation.extend(added);
        self.setup.input.state = request.state;
        asked
    }

    /// The client's choice binds the first step only, and on the last one tools are withheld (2.1, D10).
    fn tool_choice(&self, step: u32) -> ToolChoice {
        match &self.setup.input.forwarded_props.tool_choice {
            _ if self.are_tools_withheld => ToolChoice::None,
            Some(choice) if step == 1 => choice.clone(),
            Some(_) | None => ToolChoice::Auto,
        }
    }

    /// Whether the model may read results of tools. An upstream that runs tools itself has its own rules for them.
    fn reads_results(&self, tools: &[Tool]) -> bool {
        let is_results = |message: &ModelMessage| matches!(message, ModelMessage::ToolResults(_));
        (!tools.is_empty() || self.conversation.iter().any(is_results))
            && !codec(self.setup.target.wire).runs_tools()
    }

    /// Takes the conversation and the client's state.
    fn request(&mut self, step: u32) -> ModelRequest {
        let tools = self.toolbox.declarations();
        let reads_results = self.reads_results(&tools);
        let messages = std::mem::take(&mut self.conversation);
        let state = self.setup.input.state.take();
        let (input, agent) = (&self.setup.input, &self.setup.agent);
        let props = &input.forwarded_props;
        ModelRequest {
            system: prompt::system_texts(agent, input, reads_results),
            messages,
            tools,
            tool_choice: self.tool_choice(step),
            settings: plan::settings(agent, props),
            output_schema: props.output_schema.clone(),
            state,
            unknown_props: props.unknown.clone(),
            run_id: input.run_id.clone(),
            thread_id: input.thread_id.clone(),
            kept_thread: plan::kept_thread(&self.setup),
        }
    }
}

/// Runs a batch, again while the database says it may work later.
async fn stored<P: Ports, T, F: Future<Output = Result<T, StoreError>>>(
    ports: &P,
    run_id: &RunId,
    batch: &'static str,
    mut attempt: impl FnMut() -> F,
) -> Result<T, StoreError> {
    let mut count = 1;
    loop {
        match attempt().await {
            Err(error) if may_work_later(ports, run_id, batch, &error, count).await => count += 1,
            done => return done,
        }
    }
}

/// Says so in the log that a batch failed; pauses if another attempt may do better.
async fn may_work_later<P: Ports>(
    ports: &P,
    run_id: &RunId,
    batch: &'static str,
    error: &StoreError,
    count: u32,
) -> bool {
    ports.log().line(
        Level::Error,
        "database_failed",
        &[
            ("runId", run_id),
            ("batch", &batch),
            ("attempt", &count),
            ("error", error),
        ],
    );
    let may_work = match error {
        StoreError::Database(DatabaseError::Unavailable(_)) | StoreError::Attachments(_) => true,
        StoreError::Database(DatabaseError::Constraint(_) | DatabaseError::Refused(_))
        | StoreError::Corrupt(_) => false,
    };
    if !may_work || count >= DATABASE_ATTEMPTS {
        return false;
    }
    let pause_ms = (DATABASE_PAUSE_MS << count) as f64 * (0.5 + ports.ids().fraction() / 2.0);
    ports.clock().sleep(pause_ms as u64).await;
    true
}
