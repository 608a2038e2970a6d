//! The Durable Object a run lives in: one object, one run.

use std::cell::RefCell;
use std::rc::Rc;

use futures::channel::oneshot;
use worker::{DurableObject, Env, Request, Response, State, durable_object, wasm_bindgen};

use super::clock::PlatformClock;
use super::env;
use super::ids;
use super::live_run::LiveRun;
use super::log::ConsoleLog;
use super::metrics::Metrics;
use super::outbox::Outbox;
use super::outlet::{AttachFault, Outlet};
use super::ports::PlatformPorts;
use super::reply::Answer;
use super::run_calls::{RunCall, Start};
use super::server_tools::{mcp_lists, server_tools};
use super::stream::describe;
#[cfg(feature = "test-commands")]
use super::test_commands;
use super::upstreams::Upstreams;
use super::watchdog::{ALARM_EVERY, Watchdog, WatchedRun};
use crate::api::error::ApiError;
use crate::api::reply;
use crate::api::trace::Trace;
use crate::binding::accept::Binding;
use crate::binding::event_log::EventLogGap;
use crate::config::{Config, Limits};
use crate::protocol::id::ObjectAddress;
use crate::protocol::input::RunAgentInput;
use crate::protocol::tool::ToolResult;
use crate::run::ports::{Clock, Level, Log};
use crate::run::{RunSetup, run};
use crate::store::{Quota, Store, StoreError};

/// The object. Its state lives in cells that are never borrowed over a wait: requests interleave.
#[durable_object(alarm)]
#[derive(Debug)]
pub struct RunObject {
    state: Rc<State>,
    env: Env,
    run: RefCell<Option<Rc<LiveRun>>>,
}

impl DurableObject for RunObject {
    fn new(state: State, env: Env) -> Self {
        Self {
            state: Rc::new(state),
            env,
            run: RefCell::new(None),
        }
    }

    async fn fetch(&self, request: Request) -> worker::Result<Response> {
        #[cfg(feature = "test-commands")]
        if let Some(obeyed) = test_commands::obey(&request, &self.state, &self.watchdog()).await {
            return obeyed;
        }
        let answer = match RunCall::read(&request).await {
            Some((call, text)) => self.answer(call, text).await,
            None => Err(ApiError::internal()),
        };
        let answer = answer.map(|answer| answer.unwrap_or_else(Answer::no_content));
        Ok(answer.unwrap_or_else(Answer::from).into_response())
    }

    async fn alarm(&self) -> worker::Result<Response> {
        if self.live().is_some_and(|run| !run.is_done.get()) {
            self.watchdog().rearm(ALARM_EVERY).await;
        } else {
            self.look_after().await;
        }
        Response::empty()
    }
}

impl RunObject {
    /// Answers a call; `None` = no run lives or lived here, as far as this object remembers.
    async fn answer(&self, call: RunCall, text: String) -> Result<Option<Answer>, ApiError> {
        let answer = match call {
            RunCall::Start(start) => self.start(start, &text).await?,
            RunCall::Deliver {
                run_id,
                tool_call_id,
                caller,
                is_error,
            } => {
                let Some(run) = self.known().await else {
                    return Ok(None);
                };
                run.admit(&run_id, caller.as_ref())?;
                let content = text;
                let most = env::settings(&self.env).map_or(usize::MAX, |settings| {
                    settings.config.limits.results_per_call_max_count
                });
                run.deliver(&tool_call_id, ToolResult { content, is_error }, most)?;
                Answer::json(reply::result_taken(&run_id, &tool_call_id))
            }
            RunCall::Status { run_id, caller } => {
                let Some(run) = self.known().await else {
                    return Ok(None);
                };
                run.admit(&run_id, caller.as_ref())?;
                Answer::json(run.description().to_json().to_string())
            }
            RunCall::Events {
                run_id,
                caller,
                after,
                binding,
            } => {
                let Some(run) = self.known().await else {
                    return Ok(None);
                };
                run.admit(&run_id, caller.as_ref())?;
                self.follow(&run, binding, after)?
            }
            RunCall::Cancel { run_id, caller } => {
                let Some(run) = self.known().await else {
                    return Ok(None);
                };
                run.admit(&run_id, caller.as_ref())?;
                run.control.cancel.set();
                Answer::json(run.description().to_json().to_string())
            }
        };
        Ok(Some(answer))
    }

    /// Starts the run and waits until it is known whether it answers a stream.
    async fn start(&self, start: Start, text: &str) -> Result<Answer, ApiError> {
        let settings =
            env::settings(&self.env).map_err(|error| ApiError::config_invalid(&error.to_string()))?;
        let (request_id, binding) = (start.request_id.clone(), start.binding);
        let trace = Trace::parse(&start.trace).unwrap_or_else(|| Trace::begin(ids::random()));
        let setup = self.setup(&settings.config, start, text)?;
        let log = self
            .log()
            .with("requestId", request_id)
            .with("traceId", trace.id())
            .with("runId", setup.input.run_id.as_str());
        let run = Rc::new(LiveRun::new(&setup, PlatformClock.now_ms()));
        let stream = run.viewers.attach(binding, 0);
        let (stream, pump) = stream.map_err(|fault| self.attach_error(&fault))?;
        self.state.wait_until(pump);
        self.run.replace(Some(Rc::clone(&run)));
        let (head, refused) = oneshot::channel();
        let run_id = setup.input.run_id.clone();
        let ports = PlatformPorts {
            upstreams: Upstreams::new(&self.env, trace),
            metrics: Metrics::new(&self.env),
            database: env::database(&self.env),
            search: env::search(&self.env),
            log: log.clone(),
            outbox: self.outbox(),
            watchdog: self.watchdog(),
            mcp_lists: mcp_lists(),
        };
        self.state
            .wait_until(drive(setup, ports, run, head, self.watchdog()));
        match refused.await {
            Ok(Ok(())) => Ok(Answer::stream(binding, stream)),
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
    fn setup(&self, config: &Config, start: Start, text: &str) -> Result<RunSetup, ApiError> {
        let agent = config
            .agent(Some(&start.agent_id))
            .ok_or_else(ApiError::agent_not_found)?;
        let object = self.address().ok_or_else(ApiError::internal)?;
        Ok(RunSetup {
            input: RunAgentInput::decode(text)?.input,
            tools: server_tools(&self.env, config, &agent, &self.log())?,
            target: env::model_target(&self.env, &agent, &self.log())?,
            agent,
            persistence: start.persistence,
            owner: start.owner,
            object,
            quota: quota(&config.limits),
        })
    }

    /// The stream of a run that lives, after the events the client has seen.
    fn follow(&self, run: &LiveRun, binding: Binding, after: u64) -> Result<Answer, ApiError> {
        if run.ended().is_some() {
            return Err(ApiError::run_over());
        }
        let (stream, pump) = run
            .viewers
            .attach(binding, after)
            .map_err(|fault| self.attach_error(&fault))?;
        self.state.wait_until(pump);
        Ok(Answer::stream(binding, stream))
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

    /// The run of this object. Without one, a run that was lost is looked after before the Worker reads its row.
    async fn known(&self) -> Option<Rc<LiveRun>> {
        let run = self.live();
        if run.is_none() {
            self.look_after().await;
        }
        run
    }

    /// No loop lives here. What the database must still take goes first; then a row without a loop: its run was lost
    /// with the object's memory, and is closed in the database and its streams are broken.
    async fn look_after(&self) {
        let (watchdog, log) = (self.watchdog(), self.log());
        if let Some(database) = env::database(&self.env)
            && let Some(pause) = self.outbox().deliver(&Store::new(database), &log).await
        {
            return watchdog.rearm(pause).await;
        }
        let Some(lost) = watchdog.orphan().await else {
            if self.outbox().is_made() {
                watchdog.clear().await;
            }
            return;
        };
        let log = log.with("runId", lost.run_id.as_str());
        log.line(Level::Error, "run_interrupted", &[]);
        if let Err(error) = self.close(&lost).await {
            log.line(Level::Error, "run_not_closed", &[("error", &error)]);
            return watchdog.rearm(ALARM_EVERY).await;
        }
        watchdog.clear().await;
        watchdog.break_streams();
    }

    async fn close(&self, lost: &WatchedRun) -> Result<(), StoreError> {
        let database = env::database(&self.env);
        let (Some(owner), Some(database), Some(object)) = (&lost.owner, database, self.address()) else {
            return Ok(());
        };
        let store = Store::new(database);
        store
            .close_orphan(owner, &lost.run_id, object, PlatformClock.now_ms())
            .await
    }

    fn address(&self) -> Option<ObjectAddress> {
        ObjectAddress::from_hex(&self.state.id().to_string())
    }

    fn live(&self) -> Option<Rc<LiveRun>> {
        self.run.borrow().clone()
    }

    fn outbox(&self) -> Outbox {
        Outbox::new(Rc::clone(&self.state))
    }

    fn watchdog(&self) -> Watchdog {
        Watchdog::new(Rc::clone(&self.state), self.log())
    }

    fn log(&self) -> ConsoleLog {
        env::log(&self.env).with("object", self.state.id().to_string())
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

/// The whole life of a run in its object.
async fn drive(
    setup: RunSetup,
    ports: PlatformPorts,
    live: Rc<LiveRun>,
    head: oneshot::Sender<Result<(), crate::run::RunRefusal>>,
    watchdog: Watchdog,
) {
    let watched = WatchedRun {
        run_id: live.run_id.clone(),
        owner: live.owner.clone(),
    };
    let outlet = Outlet::new(Rc::clone(&live.viewers), setup.agent.on_disconnect);
    let life = async {
        let end = run(setup, &ports, &live.control, outlet, head).await;
        live.end(end, PlatformClock.now_ms());
        live.viewers.finish(end.terminal_sent).await;
        live.is_done.set(true);
    };
    watchdog.watch(&watched, life).await;
}
