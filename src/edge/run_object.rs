//! The Durable Object a run lives in: one object, one run.

use std::cell::RefCell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::time::Duration;

use futures::channel::oneshot;
use futures::future::select;
#[cfg(feature = "test-commands")]
use wasm_bindgen::JsValue;
use web_sys::Request;

use super::bindings::{Env, State};
use super::clock::PlatformClock;
use super::env;
use super::ids;
use super::live_run::LiveRun;
use super::log::ConsoleLog;
use super::metrics::Metrics;
use super::object_sql::ObjectSql;
use super::outbox::Outbox;
use super::outlet::Outlet;
use super::ports::PlatformPorts;
use super::reply::Answer;
use super::run_calls::{RunCall, Start};
use super::server_tools::{mcp_lists, server_tools};
use super::stream::describe;
#[cfg(feature = "test-commands")]
use super::test_commands;
use super::upstreams::Upstreams;
use super::viewers::AttachFault;
use super::watchdog::{ALARM_EVERY, Watchdog};
use crate::api::error::ApiError;
use crate::api::reply;
use crate::api::trace::Trace;
use crate::binding::accept::Binding;
use crate::binding::event_log::EventLogGap;
use crate::config::agents::OnDisconnect;
use crate::config::{Config, Limits};
use crate::list::List;
use crate::protocol::id::{AgentId, ObjectAddress};
use crate::protocol::input::RunAgentInput;
use crate::protocol::json;
use crate::protocol::tool::ToolResult;
use crate::run::checkpoint::{Checkpoint, Segments};
use crate::run::journal::{Journal, Kept, Next, RunRecord};
use crate::run::keeper::Keeper;
use crate::run::ports::{Clock, Level, Log};
use crate::run::resume::{Resumption, resume};
use crate::run::{RunEnd, RunSetup};
use crate::store::{Quota, Store, StoreError};

/// Longest wait for the end of a run that is cancelled, in milliseconds: its end may have to wait for the database.
const CANCEL_WAIT_MS: u64 = 10_000;

/// The object. Its state lives in cells that are never borrowed over a wait: requests interleave.
#[derive(Debug)]
pub struct RunObject {
    /// Its id, hexadecimal.
    id: String,
    state: State,
    env: Env,
    run: RefCell<Option<Rc<LiveRun>>>,
}

impl RunObject {
    /// The object with this state.
    pub fn new(state: State, env: Env) -> Self {
        Self {
            id: state.id().to_hex(),
            state,
            env,
            run: RefCell::new(None),
        }
    }

    /// Obeys a command of the tests; `None` = the request is none.
    #[cfg(feature = "test-commands")]
    pub async fn obey(&self, request: &Request) -> Option<Result<JsValue, JsValue>> {
        test_commands::obey(request, &self.state, &self.watchdog()).await
    }

    /// Answers a call.
    pub async fn fetch(&self, request: &Request) -> Answer {
        let answer = match RunCall::read(request).await {
            Some((call, text)) => self.answer(call, text).await,
            None => Err(ApiError::internal()),
        };
        let answer = answer.map(|answer| answer.unwrap_or_else(Answer::no_content));
        answer.unwrap_or_else(Answer::from)
    }

    /// Looks after the run.
    pub async fn alarm(&self) {
        match self.live().filter(|run| !run.is_done.get()) {
            Some(run) => {
                self.watchdog().rearm(run.next_look(PlatformClock.now_ms())).await;
            }
            None => self.look_after().await,
        }
    }

    /// Answers a call; `None` = no run lives or lived here, as far as this object remembers.
    async fn answer(&self, call: RunCall, text: String) -> Result<Option<Answer>, ApiError> {
        let (run_id, caller) = match &call {
            RunCall::Start(start) => return self.start(start.clone(), text).await.map(Some),
            RunCall::Deliver { run_id, caller, .. }
            | RunCall::Status { run_id, caller }
            | RunCall::Events { run_id, caller, .. }
            | RunCall::Cancel { run_id, caller } => (run_id.clone(), caller.clone()),
        };
        let Some(run) = self.known().await else {
            return Ok(None);
        };
        run.admit(&run_id, caller.as_ref())?;
        let answer = match call {
            RunCall::Start(_) => return Err(ApiError::internal()),
            RunCall::Deliver {
                tool_call_id,
                is_error,
                ..
            } => {
                let content = text;
                let most = env::settings(&self.env).map_or(usize::MAX, |settings| {
                    settings.config.limits.results_per_call_max_count
                });
                run.deliver(&tool_call_id, ToolResult { content, is_error }, most)?;
                if run.keeper.run().is_durable() {
                    // The run works again.
                    self.watchdog().rearm(ALARM_EVERY).await;
                }
                Answer::json(reply::result_taken(&run_id, &tool_call_id))
            }
            RunCall::Status { .. } => Answer::json(json::text(&run.description().to_json())),
            RunCall::Events {
                after,
                generation,
                binding,
                ..
            } => {
                run.admit_viewer(generation)?;
                self.follow(&run, binding, after)?
            }
            RunCall::Cancel { .. } => {
                run.control.cancel.set();
                // Its end may be another: what was decided first stays.
                let decided = pin!(run.control.ending.known());
                select(decided, PlatformClock.sleep(CANCEL_WAIT_MS)).await;
                Answer::json(json::text(&run.description().to_json()))
            }
        };
        Ok(Some(answer))
    }

    /// Starts the run and waits until it is known whether it answers a stream.
    async fn start(&self, start: Start, text: String) -> Result<Answer, ApiError> {
        let settings =
            env::settings(&self.env).map_err(|error| ApiError::config_invalid(&error.to_string()))?;
        let binding = start.binding;
        let trace = Trace::parse(&start.trace).unwrap_or_else(|| Trace::begin(ids::random()));
        let setup = self.setup(&settings.config, &start, &text)?;
        let run_id = setup.input.run_id.clone();
        let is_durable = setup.agent.on_disconnect == OnDisconnect::Continue;
        let kept_text = Some(text).filter(|_| is_durable).unwrap_or_default();
        let record = RunRecord {
            run_id: run_id.clone(),
            thread_id: setup.input.thread_id.clone(),
            agent_id: AgentId::new(setup.agent.id.as_str()),
            owner: start.owner,
            persistence: start.persistence,
            request_id: start.request_id,
            trace: trace.header(ids::span()),
            started_at_ms: PlatformClock.now_ms(),
            event_retention_ms: is_durable.then_some(setup.agent.event_retention_ms),
            input: kept_text,
        };
        let keeper = Keeper::new(ObjectSql::new(&self.state), record);
        let run = Rc::new(LiveRun::new(keeper));
        let answer = self.follow(&run, binding, 0)?;
        self.run.replace(Some(Rc::clone(&run)));
        let (head, refused) = oneshot::channel();
        let (ports, outlet) = (self.ports(&run), self.outlet(&run));
        let (live, log) = (Rc::clone(&run), self.run_log(&run));
        let drive = async move { crate::run::run(setup, &ports, &live.control, outlet, head).await };
        self.state
            .wait_until(Box::pin(live_through(run, self.watchdog(), Box::pin(drive))));
        match refused.await {
            Ok(Ok(())) => Ok(answer),
            Ok(Err(refusal)) => {
                let error = super::refusal(refusal, &settings.config.prefix, &run_id);
                let (status, code) = (error.status(), error.code.as_str());
                log.line(
                    Level::Info,
                    "run_refused",
                    &[("status", &status), ("code", &code)],
                );
                Err(error)
            }
            Err(oneshot::Canceled) => Err(ApiError::internal()),
        }
    }

    /// The Worker has checked all of this; what is missing now is our fault.
    fn setup(&self, config: &Config, start: &Start, text: &str) -> Result<RunSetup, ApiError> {
        let agent = config
            .agent(Some(&start.agent_id))
            .ok_or_else(ApiError::agent_not_found)?;
        let object = self.address().ok_or_else(ApiError::internal)?;
        Ok(RunSetup {
            input: RunAgentInput::decode(text)?.input,
            tools: server_tools(&self.env, config, &agent, &self.log())?,
            target: env::model_target(&self.env, &agent, &self.log())?,
            agent,
            persistence: start.persistence.clone(),
            owner: start.owner.clone(),
            object,
            quota: quota(&config.limits),
        })
    }

    fn ports(&self, run: &LiveRun) -> PlatformPorts {
        PlatformPorts {
            upstreams: Upstreams::new(&self.env, trace(run.keeper.run())),
            metrics: Metrics::new(&self.env),
            database: env::database(&self.env),
            attachments: env::attachments(&self.env),
            search: env::search(&self.env),
            log: self.run_log(run),
            outbox: self.outbox(),
            watchdog: self.watchdog(),
            mcp_lists: mcp_lists(),
            keeper: Rc::clone(&run.keeper),
        }
    }

    fn outlet(&self, run: &LiveRun) -> Outlet {
        let is_durable = run.keeper.run().is_durable();
        Outlet::new(
            self.state.clone(),
            Rc::clone(&run.viewers),
            is_durable,
            self.run_log(run),
        )
    }

    /// The stream of a run after the events the client has seen.
    fn follow(&self, run: &LiveRun, binding: Binding, after: u64) -> Result<Answer, ApiError> {
        let (stream, feed) = run
            .viewers
            .attach(binding, after)
            .map_err(|fault| self.attach_error(&fault))?;
        self.state.wait_until(Box::pin(feed));
        let generation = [("io-run-generation", run.generation.to_string())];
        Ok(Answer::stream(binding, stream).with_headers(generation))
    }

    fn attach_error(&self, fault: &AttachFault) -> ApiError {
        match fault {
            AttachFault::Gap(EventLogGap::Forgotten) => ApiError::events_forgotten(),
            AttachFault::Gap(EventLogGap::Ahead) => ApiError::events_ahead(),
            AttachFault::Platform(thrown) => {
                self.log()
                    .line(Level::Error, "stream_not_opened", &[("error", &describe(thrown))]);
                ApiError::internal()
            }
        }
    }

    /// The run of this object. One that was lost with the object's memory goes on first, or is closed before the Worker
    /// reads its row.
    async fn known(&self) -> Option<Rc<LiveRun>> {
        if self.live().is_none() {
            self.look_after().await;
        }
        self.live()
    }

    /// No loop lives here. What the database must still take goes first; then what is kept of a run is taken up, served
    /// or forgotten.
    async fn look_after(&self) {
        let (watchdog, log) = (self.watchdog(), self.log());
        if let Some(database) = env::database(&self.env)
            && let Some(pause) = self.outbox().deliver(&Store::new(database), &log).await
        {
            return watchdog.rearm(pause).await;
        }
        if self.live().is_some_and(|run| !run.is_done.get()) {
            // Somebody else was faster.
            return;
        }
        let journal = Journal::new(ObjectSql::new(&self.state));
        let kept = match journal.read() {
            Ok(Some(kept)) => kept,
            Ok(None) => {
                if self.outbox().is_made() {
                    watchdog.clear().await;
                }
                return;
            }
            Err(fault) => {
                log.line(Level::Error, "run_not_read", &[("error", &fault.0)]);
                return watchdog.clear().await;
            }
        };
        let now_ms = PlatformClock.now_ms();
        match kept.next(now_ms) {
            Next::Resume => self.resume(kept, journal, false).await,
            Next::GiveUp => self.resume(kept, journal, true).await,
            Next::Close => self.close(&kept).await,
            Next::Serve { until_ms } => {
                self.serve(&kept, journal);
                watchdog
                    .rearm(Duration::from_millis(until_ms.saturating_sub(now_ms)))
                    .await;
            }
            Next::Forget => {
                self.run.replace(None);
                watchdog.clear().await;
            }
        }
    }

    /// The events of a run that is over are served again.
    fn serve(&self, kept: &Kept, journal: Journal<ObjectSql>) {
        if self.live().is_some() {
            return;
        }
        let event_count = journal.event_count().unwrap_or(0);
        let keeper = Keeper::resumed(journal, kept.run.clone());
        let run = LiveRun::restored(keeper, kept, kept.generation, event_count);
        self.run.replace(Some(Rc::new(run)));
    }

    /// A durable run goes on in a new generation, or ends in it. Nothing is awaited until its loop is there.
    async fn resume(&self, kept: Kept, journal: Journal<ObjectSql>, is_given_up: bool) {
        let log = self.log().with("runId", kept.run.run_id.as_str());
        let Some((setup, checkpoint)) = self.resumable(&kept) else {
            return self.close(&kept).await;
        };
        if let Err(fault) = journal.restart(&checkpoint) {
            log.line(Level::Error, "run_not_resumed", &[("error", &fault.0)]);
            return self.watchdog().rearm(ALARM_EVERY).await;
        }
        let generation = kept.generation + 1;
        log.line(Level::Warn, "run_resumed", &[("generation", &generation)]);
        let keeper = Keeper::resumed(journal, kept.run.clone());
        let run = LiveRun::restored(keeper, &kept, generation, checkpoint.event_count);
        let run = Rc::new(run);
        self.run.replace(Some(Rc::clone(&run)));
        let results = kept.results.into_iter();
        let resumption = Resumption {
            checkpoint,
            results: results.map(|(id, result, _)| (id, result)).list(),
            is_given_up,
        };
        let (ports, outlet) = (self.ports(&run), self.outlet(&run));
        let live = Rc::clone(&run);
        let drive = async move { resume(setup, resumption, &ports, &live.control, outlet).await };
        self.state
            .wait_until(Box::pin(live_through(run, self.watchdog(), Box::pin(drive))));
    }

    /// What a run needs to go on; `None` when the deployment has changed so that it cannot.
    fn resumable(&self, kept: &Kept) -> Option<(RunSetup, Checkpoint)> {
        let settings = env::settings(&self.env).ok()?;
        let run = &kept.run;
        let start = Start {
            agent_id: run.agent_id.clone(),
            owner: run.owner.clone(),
            persistence: run.persistence.clone(),
            binding: Binding::Sse,
            request_id: run.request_id.clone(),
            trace: run.trace.clone(),
        };
        let setup = self.setup(&settings.config, &start, &run.input).ok()?;
        Some((setup, kept.checkpoint.clone()?))
    }

    /// A run that cannot go on is closed in the database, with what is known of it, and its streams are broken.
    async fn close(&self, kept: &Kept) {
        let (watchdog, log) = (
            self.watchdog(),
            self.log().with("runId", kept.run.run_id.as_str()),
        );
        log.line(Level::Error, "run_interrupted", &[]);
        if let Err(error) = self.store_closed(kept).await {
            log.line(Level::Error, "run_not_closed", &[("error", &error)]);
            return watchdog.rearm(ALARM_EVERY).await;
        }
        watchdog.clear().await;
        watchdog.break_streams();
    }

    async fn store_closed(&self, kept: &Kept) -> Result<(), StoreError> {
        let (owner, database) = (&kept.run.owner, env::database(&self.env));
        let (Some(owner), Some(database), Some(object)) = (owner, database, self.address()) else {
            return Ok(());
        };
        let (store, now_ms) = (Store::new(database), PlatformClock.now_ms());
        match kept.closing(now_ms) {
            Some(Segments { run, end }) => store.end_run(&run, end).await,
            None => store.close_orphan(owner, &kept.run.run_id, object, now_ms).await,
        }
    }

    fn address(&self) -> Option<ObjectAddress> {
        ObjectAddress::from_hex(&self.id)
    }

    fn live(&self) -> Option<Rc<LiveRun>> {
        self.run.borrow().clone()
    }

    fn outbox(&self) -> Outbox {
        Outbox::new(&self.state)
    }

    fn watchdog(&self) -> Watchdog {
        Watchdog::new(self.state.clone(), self.log())
    }

    fn log(&self) -> ConsoleLog {
        env::log(&self.env).with("object", self.id.as_str())
    }

    fn run_log(&self, run: &LiveRun) -> ConsoleLog {
        let run = run.keeper.run();
        self.log()
            .with("requestId", run.request_id.as_str())
            .with("traceId", trace(run).id())
            .with("runId", run.run_id.as_str())
    }
}

/// 0 in the configuration = no limit.
fn quota(limits: &Limits) -> Quota {
    let most = |count: usize| u64::try_from(count).ok().filter(|count| *count > 0);
    Quota {
        running_max_count: most(limits.concurrent_runs_max_count),
        tokens_per_day_max_count: most(limits.tokens_per_day_max_count),
        stored_max_bytes: most(limits.stored_max_bytes),
    }
}

/// The trace of the request that started a run; one of its own if that cannot be read.
fn trace(run: &RunRecord) -> Trace {
    Trace::parse(&run.trace).unwrap_or_else(|| Trace::begin(ids::random()))
}

/// The whole life of a run in its object. The loop is large and comes boxed: it is not copied on its way.
async fn live_through(run: Rc<LiveRun>, watchdog: Watchdog, drive: Pin<Box<impl Future<Output = RunEnd>>>) {
    let life = async {
        let end = drive.await;
        run.control.ending.set(end, PlatformClock.now_ms());
        run.viewers.finish(end.terminal_sent).await;
        run.is_done.set(true);
    };
    watchdog.watch(&run.keeper, life).await;
}
