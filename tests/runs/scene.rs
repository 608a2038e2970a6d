//! A run on scripted ports: bytes from a list, a clock that jumps to the next sleeper, ids that count.
//!
//! The same loop as in production runs here; its events are recorded whole.

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::channel::oneshot;
use futures::future::LocalBoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use io_bridge::config::AgentConfig;
use io_bridge::protocol::event::Event;
use io_bridge::protocol::id::{MessageId, ObjectAddress, ResourceId};
use io_bridge::protocol::input::RunAgentInput;
use io_bridge::protocol::lifecycle::Lifecycle;
use io_bridge::provider::{HttpRequest, ModelTarget, Secret};
use io_bridge::run::mcp_lists::McpLists;
use io_bridge::run::ports::{Clock, EventSink, IdSource, Level, Log, OutboxFull, Ports, ViewersGone};
use io_bridge::run::{RunControl, RunEnd, RunRefusal, RunSetup, plan, run};
use io_bridge::store::{Database, DatabaseError, EndRun, PersistentRun, Row, Statement};
use io_bridge::tool::toolbox::ServerTools;
use serde_json::Value;

pub use crate::http::{Answer, Piece};
use crate::http::{SceneHttp, Serve};
use crate::sqlite::Sqlite;

/// When the scene starts, Unix milliseconds: 2026-11-29T00:00:00Z.
pub const START_MS: u64 = 1_795_910_400_000;

/// A clock that stands still until everything waits for it.
#[derive(Clone, Default)]
pub struct SceneClock(Rc<ClockState>);

#[derive(Default)]
struct ClockState {
    now_ms: Cell<u64>,
    sleepers: RefCell<Vec<Rc<Sleeper>>>,
}

struct Sleeper {
    due_ms: u64,
    waker: RefCell<Option<Waker>>,
}

pub struct SceneSleep(Rc<ClockState>, Rc<Sleeper>);

impl Future for SceneSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.0.now_ms.get() >= self.1.due_ms {
            return Poll::Ready(());
        }
        *self.1.waker.borrow_mut() = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for SceneSleep {
    fn drop(&mut self) {
        self.0
            .sleepers
            .borrow_mut()
            .retain(|sleeper| !Rc::ptr_eq(sleeper, &self.1));
    }
}

impl Clock for SceneClock {
    fn now_ms(&self) -> u64 {
        START_MS + self.0.now_ms.get()
    }

    fn sleep(&self, ms: u64) -> impl Future<Output = ()> + 'static {
        let sleeper = Rc::new(Sleeper {
            due_ms: self.0.now_ms.get() + ms,
            waker: RefCell::default(),
        });
        self.0.sleepers.borrow_mut().push(sleeper.clone());
        SceneSleep(self.0.clone(), sleeper)
    }
}

impl SceneClock {
    /// Jumps to the next sleeper; false when nobody sleeps.
    fn jump(&self) -> bool {
        let Some(due_ms) = self
            .0
            .sleepers
            .borrow()
            .iter()
            .map(|sleeper| sleeper.due_ms)
            .min()
        else {
            return false;
        };
        self.0.now_ms.set(due_ms.max(self.0.now_ms.get()));
        let woken: Vec<_> = self
            .0
            .sleepers
            .borrow()
            .iter()
            .filter(|sleeper| sleeper.due_ms <= due_ms)
            .cloned()
            .collect();
        for sleeper in woken {
            if let Some(waker) = sleeper.waker.borrow_mut().take() {
                waker.wake();
            }
        }
        true
    }

    /// Milliseconds since the scene started.
    pub fn elapsed_ms(&self) -> u64 {
        self.0.now_ms.get()
    }
}

/// Counts: `msg-1`, `msg-2`, ...; with a database, `r1-msg-1`, ... after the run.
pub struct SceneIds {
    prefix: String,
    count: Cell<u32>,
}

impl IdSource for SceneIds {
    fn message_id(&self) -> MessageId {
        self.count.set(self.count.get() + 1);
        MessageId::new(format!("{}msg-{}", self.prefix, self.count.get()))
    }

    fn token(&self) -> String {
        "incarnation".to_owned()
    }

    fn fraction(&self) -> f64 {
        0.0
    }
}

#[derive(Default)]
pub struct SceneLog(pub RefCell<Vec<String>>);

impl Log for SceneLog {
    fn line(&self, level: Level, event: &'static str, members: &[(&'static str, &dyn std::fmt::Display)]) {
        let members: Vec<_> = members
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        self.0
            .borrow_mut()
            .push(format!("{level:?} {event} {}", members.join(" ")));
    }
}

/// One database shared by the scenes of a test.
#[derive(Clone)]
pub struct SceneDatabase(Rc<Sqlite>);

impl SceneDatabase {
    pub fn new() -> Self {
        Self(Rc::new(Sqlite::new()))
    }
}

impl std::ops::Deref for SceneDatabase {
    type Target = Sqlite;

    fn deref(&self) -> &Sqlite {
        &self.0
    }
}

impl Database for SceneDatabase {
    fn batch(
        &self,
        statements: Vec<Statement>,
    ) -> impl Future<Output = Result<Vec<Vec<Row>>, DatabaseError>> {
        self.0.batch(statements)
    }
}

pub struct ScenePorts {
    pub http: SceneHttp,
    pub database: Option<SceneDatabase>,
    pub search: Option<SceneDatabase>,
    pub clock: SceneClock,
    pub ids: SceneIds,
    pub log: SceneLog,
    pub outbox: RefCell<Vec<EndRun>>,
    pub lists: Rc<McpLists>,
}

impl Ports for ScenePorts {
    type Http = SceneHttp;
    type Database = SceneDatabase;
    type Clock = SceneClock;
    type Ids = SceneIds;
    type Log = SceneLog;

    fn http(&self) -> &SceneHttp {
        &self.http
    }

    fn database(&self) -> Option<&SceneDatabase> {
        self.database.as_ref()
    }

    fn search(&self) -> Option<&SceneDatabase> {
        self.search.as_ref()
    }

    fn clock(&self) -> &SceneClock {
        &self.clock
    }

    fn ids(&self) -> &SceneIds {
        &self.ids
    }

    fn log(&self) -> &SceneLog {
        &self.log
    }

    fn mcp_lists(&self) -> &McpLists {
        &self.lists
    }

    fn keep_undelivered(&self, _run: &PersistentRun, end: &EndRun) -> Result<(), OutboxFull> {
        self.outbox.borrow_mut().push(end.clone());
        Ok(())
    }
}

type OnEvent = Box<dyn Fn(&Event, &RunControl)>;
type Act = Box<dyn FnOnce(&RunControl)>;

/// Records what is sent; every event passes the lifecycle.
pub struct SceneSink {
    seen: Rc<RefCell<Seen>>,
    control: Rc<RunControl>,
    on_event: Rc<Option<OnEvent>>,
    clock: SceneClock,
    leaves_after: Option<usize>,
}

/// What the viewers of a scene saw.
#[derive(Default)]
pub struct Seen {
    pub events: Vec<Event>,
    /// When each keep-alive came, milliseconds since the start.
    pub keep_alives_ms: Vec<u64>,
    pub flush_count: usize,
}

impl EventSink for SceneSink {
    fn push(&mut self, event: &Event) {
        self.seen.borrow_mut().events.push(event.clone());
        if let Some(on_event) = &*self.on_event {
            on_event(event, &self.control);
        }
    }

    fn push_keep_alive(&mut self) {
        self.seen
            .borrow_mut()
            .keep_alives_ms
            .push(self.clock.elapsed_ms());
    }

    async fn flush(&mut self) -> Result<(), ViewersGone> {
        let mut seen = self.seen.borrow_mut();
        seen.flush_count += 1;
        let has_left = self
            .leaves_after
            .is_some_and(|count| seen.events.len() + seen.keep_alives_ms.len() >= count);
        if has_left { Err(ViewersGone) } else { Ok(()) }
    }
}

/// A run to be played.
pub struct Scene {
    pub agent: AgentConfig,
    pub answers: Vec<Answer>,
    pub database: Option<SceneDatabase>,
    pub search: Option<SceneDatabase>,
    pub principal: Option<ResourceId>,
    pub leaves_after: Option<usize>,
    pub tools: ServerTools,
    pub lists: Rc<McpLists>,
    servers: Vec<(String, Serve)>,
    on_event: Option<OnEvent>,
    at: Vec<(u64, Act)>,
}

/// How a scene ended.
pub struct Played {
    pub head: Result<(), RunRefusal>,
    pub end: RunEnd,
    pub events: Vec<Event>,
    pub keep_alives_ms: Vec<u64>,
    pub ports: Rc<ScenePorts>,
    pub elapsed_ms: u64,
}

impl Scene {
    /// An agent of provider `openai` with these members over the defaults, and the upstream's answers in order.
    pub fn new(agent: Value, answers: Vec<Answer>) -> Self {
        let mut members = serde_json::json!({"id": "io-agent", "provider": "openai", "model": "test-1"});
        for (key, value) in agent.as_object().expect("an object") {
            members[key] = value.clone();
        }
        let agent = serde_json::from_value(members).expect("an agent");
        Self {
            agent,
            answers,
            database: None,
            search: None,
            principal: None,
            leaves_after: None,
            tools: ServerTools::default(),
            lists: Rc::default(),
            servers: vec![],
            on_event: None,
            at: vec![],
        }
    }

    /// Keeps what persists here.
    pub fn on(mut self, database: &SceneDatabase) -> Self {
        self.database = Some(database.clone());
        self
    }

    /// Another server: what it answers to requests whose address begins so.
    pub fn server(mut self, address: &str, serve: impl Fn(&HttpRequest) -> Answer + 'static) -> Self {
        self.servers.push((address.to_owned(), Box::new(serve)));
        self
    }

    /// Acts at the moment an event goes out.
    pub fn on_event(mut self, act: impl Fn(&Event, &RunControl) + 'static) -> Self {
        self.on_event = Some(Box::new(act));
        self
    }

    /// Acts this many milliseconds after the start.
    pub fn at(mut self, ms: u64, act: impl FnOnce(&RunControl) + 'static) -> Self {
        self.at.push((ms, Box::new(act)));
        self
    }

    /// Plays the run to its end.
    pub fn play(self, body: &Value) -> Played {
        let input = RunAgentInput::decode(&body.to_string())
            .expect("a legal body")
            .input;
        let prefix = if self.database.is_some() {
            format!("{}-", input.run_id)
        } else {
            String::new()
        };
        let agent = Rc::new(self.agent);
        let setup = RunSetup {
            persistence: plan::persistence(&agent, &input, self.principal.as_ref()),
            target: ModelTarget {
                wire: agent.provider_entry().wire,
                provider: "openai",
                base_url: "https://upstream.test/v1".to_owned(),
                api_key: Some(Secret::new("key-canary")),
                model: agent.model.clone(),
                headers: Vec::new(),
                query: Vec::new(),
                wants_reasoning: false,
            },
            tools: self.tools,
            owner: self.principal.clone(),
            object: next_object(),
            quota: io_bridge::store::Quota::default(),
            input,
            agent,
        };
        let clock = SceneClock::default();
        let http = SceneHttp::new(clock.clone(), self.answers, self.servers);
        let ports = Rc::new(ScenePorts {
            http,
            database: self.database,
            search: self.search,
            clock: clock.clone(),
            ids: SceneIds {
                prefix,
                count: Cell::new(0),
            },
            log: SceneLog::default(),
            outbox: RefCell::default(),
            lists: self.lists,
        });
        let (control, seen) = (
            Rc::new(RunControl::default()),
            Rc::new(RefCell::new(Seen::default())),
        );
        let sink = SceneSink {
            seen: seen.clone(),
            control: control.clone(),
            on_event: Rc::new(self.on_event),
            clock: clock.clone(),
            leaves_after: self.leaves_after,
        };
        let mut tasks: FuturesUnordered<LocalBoxFuture<'static, ()>> = FuturesUnordered::new();
        for (ms, act) in self.at {
            let (clock, control) = (clock.clone(), control.clone());
            tasks.push(Box::pin(async move {
                clock.sleep(ms).await;
                act(&control);
            }));
        }
        let (head_sender, mut head) = oneshot::channel();
        let end: Rc<Cell<Option<RunEnd>>> = Rc::default();
        let driven = {
            let (ports, control, end) = (ports.clone(), control.clone(), end.clone());
            async move { end.set(Some(run(setup, &*ports, &control, sink, head_sender).await)) }
        };
        tasks.push(Box::pin(driven));
        let end = loop {
            run_until_stalled(&mut tasks);
            if let Some(end) = end.get() {
                break end;
            }
            assert!(clock.jump(), "the run hangs; it sent {:#?}", seen.borrow().events);
        };
        let head = head
            .try_recv()
            .expect("the head was decided")
            .expect("the head was decided");
        let Seen {
            events,
            keep_alives_ms,
            ..
        } = std::mem::take(&mut *seen.borrow_mut());
        judge(&events);
        Played {
            head,
            end,
            events,
            keep_alives_ms,
            ports,
            elapsed_ms: clock.elapsed_ms(),
        }
    }
}

/// An object of its own for every run.
fn next_object() -> ObjectAddress {
    thread_local!(static COUNT: Cell<u32> = const { Cell::new(0) });
    COUNT.set(COUNT.get() + 1);
    ObjectAddress::from_hex(&format!("{:064x}", COUNT.get())).expect("an address")
}

/// Polls until nothing moves. An executor of its own, because a scene may be played inside another.
fn run_until_stalled(tasks: &mut FuturesUnordered<LocalBoxFuture<'static, ()>>) {
    struct Flag(AtomicBool);
    impl Wake for Flag {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let flag = Arc::new(Flag(AtomicBool::new(true)));
    let waker = Waker::from(flag.clone());
    while flag.0.swap(false, Ordering::Relaxed) {
        let mut context = Context::from_waker(&waker);
        while let Poll::Ready(Some(())) = tasks.poll_next_unpin(&mut context) {}
    }
}

/// Every recorded stream is legal, whatever the test looks at.
fn judge(events: &[Event]) {
    let mut lifecycle = Lifecycle::new();
    lifecycle.allow_pending();
    for event in events {
        if let Event::ToolCallStart { tool_call_id, .. } = event {
            lifecycle.mark_live(tool_call_id);
        }
        if let Err(fault) = lifecycle.check(event) {
            panic!("{fault} at {event:?} in {events:#?}");
        }
    }
}

impl Played {
    /// The events as their JSON on the wire.
    pub fn wire(&self) -> Vec<Value> {
        self.events
            .iter()
            .map(|event| {
                let mut bytes = Vec::new();
                io_bridge::binding::sse::encode_json(event, &mut bytes);
                serde_json::from_slice(&bytes).expect("JSON")
            })
            .collect()
    }

    /// The events in short: `TEXT hello`, `START c1 pick`, ... with call ids as `c1`, `c2`.
    pub fn story(&self) -> Vec<String> {
        let short = |id: &str| {
            id.rsplit_once('_')
                .map_or(id.to_owned(), |(_, counter)| format!("c{counter}"))
        };
        self.events
            .iter()
            .map(|event| match event {
                Event::RunStarted { thread_id, run_id } => format!("RUN_STARTED {thread_id} {run_id}"),
                Event::RunFinished(finished) => {
                    let mut line = "RUN_FINISHED".to_owned();
                    if let Some(outcome) = &finished.outcome {
                        line += &format!(" {}", serde_json::to_string(outcome).expect("JSON"));
                    }
                    if let Some(result) = &finished.result {
                        line += &format!(" {result}");
                    }
                    line
                }
                Event::RunError { code, .. } => format!("RUN_ERROR {}", code.as_str()),
                Event::StepStarted { step_name } => format!("STEP_STARTED {step_name}"),
                Event::StepFinished { step_name } => format!("STEP_FINISHED {step_name}"),
                Event::TextMessageStart { message_id } => format!("TEXT_START {message_id}"),
                Event::TextMessageContent { delta, .. } => format!("TEXT {delta}"),
                Event::TextMessageEnd { message_id } => format!("TEXT_END {message_id}"),
                Event::ReasoningStart { message_id } => format!("REASONING_START {message_id}"),
                Event::ReasoningMessageStart { .. } => "REASONING_MESSAGE_START".to_owned(),
                Event::ReasoningMessageContent { delta, .. } => format!("REASONING {delta}"),
                Event::ReasoningMessageEnd { .. } => "REASONING_MESSAGE_END".to_owned(),
                Event::ReasoningEnd { message_id } => format!("REASONING_END {message_id}"),
                Event::ToolCallStart {
                    tool_call_id,
                    tool_call_name,
                    parent_message_id,
                } => {
                    format!(
                        "START {} {tool_call_name} in {parent_message_id}",
                        short(tool_call_id.as_str())
                    )
                }
                Event::ToolCallArgs { tool_call_id, delta } => {
                    format!("ARGS {} {delta}", short(tool_call_id.as_str()))
                }
                Event::ToolCallEnd { tool_call_id } => format!("END {}", short(tool_call_id.as_str())),
                Event::ToolCallResult {
                    tool_call_id,
                    content,
                    ..
                } => {
                    format!("RESULT {} {content}", short(tool_call_id.as_str()))
                }
            })
            .collect()
    }

    /// The body of the upstream request of this number, from 0.
    pub fn upstream_body(&self, index: usize) -> Value {
        let requests = self.ports.http.requests_to("https://upstream.test/");
        serde_json::from_str(requests[index].body.as_deref().expect("a body")).expect("JSON")
    }
}
