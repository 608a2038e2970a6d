//! A run on scripted ports (`scene_ports`) and scripted servers (`http`).
//!
//! The same loop as in production runs here; its events are recorded whole.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::channel::oneshot;
use futures::future::LocalBoxFuture;
use futures::stream::{FuturesUnordered, StreamExt};
use io_bridge::binding::event_log::EventLog;
use io_bridge::config::AgentConfig;
use io_bridge::config::agents::OnDisconnect;
use io_bridge::protocol::event::Event;
use io_bridge::protocol::id::{AgentId, ObjectAddress, ResourceId};
use io_bridge::protocol::input::RunAgentInput;
use io_bridge::protocol::lifecycle::Lifecycle;
use io_bridge::protocol::tool::ToolResult;
use io_bridge::provider::{HttpRequest, ModelTarget, Secret};
use io_bridge::run::journal::{Journal, Kept, Next, RunRecord};
use io_bridge::run::keeper::Keeper;
use io_bridge::run::mailbox::{Delivery, ExpectedCall};
use io_bridge::run::mcp_lists::McpLists;
use io_bridge::run::ports::{Clock, EventSink, StorageFault, ViewersGone};
use io_bridge::run::resume::{Resumption, resume};
use io_bridge::run::{RunControl, RunEnd, RunRefusal, RunSetup, plan, run};
use io_bridge::store::Quota;
use io_bridge::tool::toolbox::ServerTools;
use serde_json::Value;

pub use crate::http::{Answer, Piece};
use crate::http::{SceneHttp, Serve};
use crate::object_sqlite::ObjectSqlite;
use crate::scene_ports::{Reset, SceneIds, SceneLog};
pub use crate::scene_ports::{START_MS, SceneBucket, SceneClock, SceneDatabase, ScenePorts};

/// An object over all its lives: what it has stored, and what its viewers were sent.
pub struct SceneObject {
    address: ObjectAddress,
    pub storage: ObjectSqlite,
    events: RefCell<Vec<Event>>,
    lives: Cell<u64>,
}

impl SceneObject {
    pub fn new() -> Self {
        Self {
            address: next_object(),
            storage: ObjectSqlite::new(),
            events: RefCell::default(),
            lives: Cell::new(0),
        }
    }

    /// What it finds of its run.
    pub fn kept(&self) -> Option<Kept> {
        Journal::new(self.storage.clone()).read().unwrap()
    }
}

type OnEvent = Box<dyn Fn(&Event, &RunControl)>;
type Post = Box<dyn Fn(&ExpectedCall) -> String>;
type Act = Box<dyn FnOnce(&RunControl)>;

/// Records what is sent; every event passes the lifecycle.
pub struct SceneSink {
    seen: Rc<RefCell<Seen>>,
    control: Rc<RunControl>,
    on_event: Rc<Option<OnEvent>>,
    clock: SceneClock,
    leaves_after: Option<usize>,
    reset: Reset,
    ports: Rc<ScenePorts>,
    posts: Option<Post>,
    /// Of a durable run, as the platform's sink has it; a frame is a byte.
    log: EventLog,
}

impl SceneSink {
    fn append(&mut self) {
        if !self.ports.keeper.run().is_durable() {
            return;
        }
        let known_count = self.log.event_count() as usize;
        let is_delta: Vec<bool> = self.seen.borrow().events[known_count..]
            .iter()
            .map(Event::is_delta)
            .collect();
        let (ends, now_ms): (Vec<usize>, u64) = ((1..=is_delta.len()).collect(), self.clock.now_ms());
        self.log.append(&vec![b'.'; ends.len()], &ends, now_ms);
        if self.log.is_store_due(is_delta.contains(&false), now_ms) {
            self.store();
        }
    }
}

/// What the viewers of a scene saw.
#[derive(Default)]
pub struct Seen {
    pub events: Vec<Event>,
    /// When each keep-alive came, milliseconds since the start.
    pub keep_alives_ms: Vec<u64>,
    /// When something went out, milliseconds since the start, how many events the run had then, and how many batches were
    /// stored.
    pub flushes: Vec<(u64, usize, usize)>,
    /// When deltas and other events of a durable run were stored, milliseconds since the start, and how many events it
    /// had then.
    pub stored: Vec<(u64, u64)>,
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

    fn commit(&mut self) -> Result<u64, StorageFault> {
        Ok(self.seen.borrow().events.len() as u64)
    }

    fn store_due_ms(&self) -> Option<u64> {
        self.log.store_due_ms()
    }

    fn store(&mut self) {
        self.log.mark_stored();
        let at = (self.clock.elapsed_ms(), self.log.stored_count());
        self.seen.borrow_mut().stored.push(at);
    }

    async fn flush(&mut self) -> Result<(), ViewersGone> {
        self.append();
        self.reset.pass().await;
        if let Some(post) = &self.posts {
            for call in self.control.mailbox.pending() {
                let result = ToolResult {
                    content: post(&call),
                    is_error: false,
                };
                let delivered = self.control.deliver(&self.ports.keeper, &call.id, result);
                assert_eq!(delivered, Ok(Delivery::Accepted));
            }
        }
        let mut seen = self.seen.borrow_mut();
        let batch_count = self
            .ports
            .database
            .as_ref()
            .map_or(0, |database| database.batch_count());
        let at = (self.clock.elapsed_ms(), seen.events.len(), batch_count);
        seen.flushes.push(at);
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
    pub bucket: Option<SceneBucket>,
    pub search: Option<SceneDatabase>,
    pub principal: Option<ResourceId>,
    pub leaves_after: Option<usize>,
    pub tools: ServerTools,
    pub quota: Quota,
    pub lists: Rc<McpLists>,
    servers: Vec<(String, Serve)>,
    on_event: Option<OnEvent>,
    posts: Option<Post>,
    is_old: bool,
    at: Vec<(u64, Act)>,
}

/// How a scene ended.
pub struct Played {
    pub head: Result<(), RunRefusal>,
    pub end: RunEnd,
    pub events: Vec<Event>,
    pub keep_alives_ms: Vec<u64>,
    pub stored: Vec<(u64, u64)>,
    pub flushes: Vec<(u64, usize, usize)>,
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
            bucket: None,
            search: None,
            principal: None,
            leaves_after: None,
            tools: ServerTools::default(),
            quota: Quota::default(),
            lists: Rc::default(),
            servers: vec![],
            on_event: None,
            posts: None,
            is_old: false,
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

    /// The front end posts its results as soon as it sees the calls.
    pub fn posts(mut self, post: impl Fn(&ExpectedCall) -> String + 'static) -> Self {
        self.posts = Some(Box::new(post));
        self
    }

    /// The front end does not answer.
    pub fn without_posts(mut self) -> Self {
        self.posts = None;
        self
    }

    /// The run is as old as one whose segments are kept.
    pub fn kept_from_its_start(mut self) -> Self {
        self.is_old = true;
        self
    }

    /// Acts this many milliseconds after the start.
    pub fn at(mut self, ms: u64, act: impl FnOnce(&RunControl) + 'static) -> Self {
        self.at.push((ms, Box::new(act)));
        self
    }

    /// Plays the run to its end.
    pub fn play(self, body: &Value) -> Played {
        let object = SceneObject::new();
        self.live(body, &object, None).expect("nothing resets the object")
    }

    /// Plays the run in this object, from where it was reset if it was, until its end or, `None`, until it has passed
    /// so many waits in which a reset may come.
    pub fn live(self, body: &Value, object: &SceneObject, reset_after: Option<usize>) -> Option<Played> {
        let text = body.to_string();
        let input = RunAgentInput::decode(&text).expect("a legal body").input;
        object.lives.set(object.lives.get() + 1);
        let prefix = match (object.lives.get(), &self.database) {
            (1, Some(_)) => format!("{}-", input.run_id),
            (1, None) => String::new(),
            (life, _) => format!("{}-life{life}-", input.run_id),
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
            object: object.address,
            quota: self.quota,
            input,
            agent,
        };
        let kept = object.kept();
        let journal = Journal::new(object.storage.clone());
        let (keeper, control, resumption) = match kept {
            None => {
                let keeper = Keeper::new(object.storage.clone(), run_record(&setup, text));
                if self.is_old {
                    keeper.begin().expect("a journal");
                }
                object.events.borrow_mut().clear();
                (keeper, RunControl::default(), None)
            }
            Some(kept) => {
                let is_given_up = match kept.next(START_MS) {
                    Next::Resume => false,
                    Next::GiveUp => true,
                    other => panic!("the object does not go on: {other:?}"),
                };
                journal.read().expect("a journal");
                let checkpoint = kept.checkpoint.clone().expect("a checkpoint");
                journal.restart(&checkpoint).expect("a new generation");
                object
                    .events
                    .borrow_mut()
                    .truncate(checkpoint.event_count as usize);
                let results = kept
                    .results
                    .iter()
                    .map(|(id, result, _)| (id.clone(), result.clone()));
                let resumption = Resumption {
                    checkpoint,
                    results: results.collect(),
                    is_given_up,
                };
                let keeper = Keeper::resumed(journal, kept.run.clone());
                (keeper, RunControl::restored(&kept), Some(resumption))
            }
        };
        let reset = self
            .database
            .as_ref()
            .map_or_else(Reset::default, |database| database.1.clone());
        reset.points.set(reset_after);
        reset.has_come.set(false);
        let clock = SceneClock::default();
        let http = SceneHttp::new(clock.clone(), self.answers, self.servers);
        let ports = Rc::new(ScenePorts {
            http,
            database: self.database,
            bucket: self.bucket,
            search: self.search,
            clock: clock.clone(),
            ids: SceneIds {
                prefix,
                count: Cell::new(0),
            },
            log: SceneLog::default(),
            outbox: RefCell::default(),
            lists: self.lists,
            keeper,
        });
        let events = object.events.take();
        let (control, seen) = (
            Rc::new(control),
            Rc::new(RefCell::new(Seen {
                events,
                ..Seen::default()
            })),
        );
        let event_count = seen.borrow().events.len() as u64;
        let sink = SceneSink {
            log: EventLog::after(event_count),
            seen: seen.clone(),
            control: control.clone(),
            on_event: Rc::new(self.on_event),
            clock: clock.clone(),
            leaves_after: self.leaves_after,
            reset: reset.clone(),
            ports: ports.clone(),
            posts: self.posts,
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
            async move {
                let ended = match resumption {
                    None => run(setup, &*ports, &control, sink, head_sender).await,
                    Some(resumption) => {
                        let _ = head_sender.send(Ok(()));
                        resume(setup, resumption, &*ports, &control, sink).await
                    }
                };
                end.set(Some(ended));
            }
        };
        tasks.push(Box::pin(driven));
        let end = loop {
            run_until_stalled(&mut tasks);
            if reset.has_come.get() {
                drop(tasks);
                object
                    .events
                    .replace(std::mem::take(&mut seen.borrow_mut().events));
                return None;
            }
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
            stored,
            flushes,
        } = std::mem::take(&mut *seen.borrow_mut());
        judge(&events);
        Some(Played {
            head,
            end,
            events,
            keep_alives_ms,
            stored,
            flushes,
            ports,
            elapsed_ms: clock.elapsed_ms(),
        })
    }
}

fn run_record(setup: &RunSetup, input: String) -> RunRecord {
    RunRecord {
        run_id: setup.input.run_id.clone(),
        thread_id: setup.input.thread_id.clone(),
        agent_id: AgentId::new(setup.agent.id.as_str()),
        owner: setup.owner.clone(),
        persistence: setup.persistence.clone(),
        request_id: "request".to_owned(),
        trace: String::new(),
        started_at_ms: START_MS,
        event_retention_ms: match setup.agent.on_disconnect {
            OnDisconnect::Continue => Some(setup.agent.event_retention_ms),
            OnDisconnect::Stop => None,
        },
        input,
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
