//! The ports of a run without a platform: an upstream that has answered already, a clock that stands still.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt::Display;
use std::future::{Future, pending};
use std::rc::Rc;

use futures::channel::oneshot;
use futures::task::noop_waker;
use io_bridge::binding::{protobuf, sse};
use io_bridge::config::AgentConfig;
use io_bridge::protocol::event::Event;
use io_bridge::protocol::id::{AgentId, MessageId, ObjectAddress};
use io_bridge::protocol::input::RunAgentInput;
use io_bridge::provider::{HttpRequest, ModelTarget, Secret};
use io_bridge::run::journal::RunRecord;
use io_bridge::run::keeper::Keeper;
use io_bridge::run::mcp_lists::McpLists;
use io_bridge::run::ports::{
    Clock, EventSink, HttpBody, HttpClient, HttpError, HttpResponse, IdSource, Level, Log, ObjectStorage,
    OutboxFull, Ports, SqlValue, StorageFault, ViewersGone,
};
use io_bridge::run::{RunControl, RunSetup, plan, run};
use io_bridge::store::{Database, DatabaseError, EndRun, NoBucket, PersistentRun, Quota, Row, Statement};
use io_bridge::tool::toolbox::ServerTools;
use serde_json::Value;

/// How an upstream's answer arrives, in bytes per read.
const READ_BYTES: usize = 16 * 1024;

/// A binding to encode for.
#[derive(Debug, Clone, Copy)]
pub enum Encoding {
    Sse,
    Protobuf,
}

struct Upstream {
    answers: RefCell<VecDeque<Body>>,
    lists: McpLists,
    ids: Cell<u32>,
    keeper: Keeper<NoStorage>,
}

/// The runs here are not durable, and over at once: nothing is kept of them.
struct NoStorage;

impl ObjectStorage for NoStorage {
    fn exec(&self, sql: &'static str, _: Vec<SqlValue>) -> Result<Vec<Vec<SqlValue>>, StorageFault> {
        Err(StorageFault(format!("nobody waits for {sql}")))
    }
}

/// Pieces of an answer, the last one first.
struct Body(Vec<Vec<u8>>);

impl HttpBody for Body {
    async fn next_chunk(&mut self) -> Option<Result<Vec<u8>, HttpError>> {
        self.0.pop().map(Ok)
    }
}

impl HttpClient for Upstream {
    type Body = Body;

    async fn send(&self, _request: HttpRequest) -> Result<HttpResponse<Body>, HttpError> {
        let body = self.answers.borrow_mut().pop_front();
        Ok(HttpResponse {
            status: 200,
            headers: vec![],
            body: body.unwrap_or(Body(vec![])),
        })
    }
}

impl Clock for Upstream {
    fn now_ms(&self) -> u64 {
        1_795_910_400_000
    }

    fn sleep(&self, _ms: u64) -> impl Future<Output = ()> + 'static {
        pending()
    }
}

impl IdSource for Upstream {
    fn message_id(&self) -> MessageId {
        self.ids.set(self.ids.get() + 1);
        MessageId::new(format!("message-{}", self.ids.get()))
    }

    fn token(&self) -> String {
        "token".to_owned()
    }

    fn fraction(&self) -> f64 {
        0.0
    }
}

impl Log for Upstream {
    fn line(&self, _level: Level, _event: &'static str, _members: &[(&'static str, &dyn Display)]) {}
}

/// The runs here have no database.
#[derive(Clone)]
struct NoDatabase;

impl Database for NoDatabase {
    async fn batch(&self, _statements: Vec<Statement>) -> Result<Vec<Vec<Row>>, DatabaseError> {
        Ok(vec![])
    }
}

impl Ports for Upstream {
    type Http = Self;
    type Database = NoDatabase;
    type Attachments = NoBucket;
    type Clock = Self;
    type Ids = Self;
    type Log = Self;
    type Storage = NoStorage;

    fn http(&self) -> &Self {
        self
    }

    fn database(&self) -> Option<&NoDatabase> {
        None
    }

    fn attachments(&self) -> &NoBucket {
        &NoBucket
    }

    fn search(&self) -> Option<&NoDatabase> {
        None
    }

    fn clock(&self) -> &Self {
        self
    }

    fn ids(&self) -> &Self {
        self
    }

    fn log(&self) -> &Self {
        self
    }

    fn mcp_lists(&self) -> &McpLists {
        &self.lists
    }

    fn keeper(&self) -> &Keeper<NoStorage> {
        &self.keeper
    }

    fn keep_undelivered(&self, _run: &PersistentRun, _end: &EndRun) -> Result<(), OutboxFull> {
        Err(OutboxFull)
    }
}

/// Encodes what a viewer would get and keeps its length.
struct Sink {
    encoding: Encoding,
    frames: Vec<u8>,
    sent: Rc<Sent>,
}

/// What a run sent.
#[derive(Debug, Default)]
pub struct Sent {
    pub events: Cell<usize>,
    pub bytes: Cell<usize>,
}

impl EventSink for Sink {
    fn push(&mut self, event: &Event) {
        match self.encoding {
            Encoding::Sse => sse::encode_event(event, &mut self.frames),
            Encoding::Protobuf => protobuf::encode_event(event, &mut self.frames),
        }
        self.sent.events.set(self.sent.events.get() + 1);
    }

    fn push_keep_alive(&mut self) {}

    fn commit(&mut self) -> Result<u64, StorageFault> {
        Ok(0)
    }

    async fn flush(&mut self) -> Result<(), ViewersGone> {
        self.sent.bytes.set(self.sent.bytes.get() + self.frames.len());
        self.frames.clear();
        Ok(())
    }
}

/// Plays a stateless run against answers that are all there, and says what it sent.
///
/// # Panics
/// When the run waits for something: nothing here ever comes later.
pub fn play(agent: AgentConfig, body: &Value, answers: Vec<Vec<u8>>, encoding: Encoding) -> Rc<Sent> {
    let input = RunAgentInput::decode(&body.to_string())
        .expect("a legal body")
        .input;
    let agent = Rc::new(agent);
    let setup = RunSetup {
        persistence: plan::persistence(&agent, &input, None),
        target: ModelTarget {
            wire: agent.provider_entry().wire,
            provider: agent.provider_entry().name,
            base_url: "https://upstream.test/v1".to_owned(),
            api_key: Some(Secret::new("key")),
            model: agent.model.clone(),
            headers: vec![],
            query: vec![],
            wants_reasoning: false,
        },
        tools: ServerTools::default(),
        owner: None,
        object: ObjectAddress::from_hex(&"0".repeat(64)).expect("an address"),
        input,
        agent,
        quota: Quota::default(),
    };
    let record = RunRecord {
        run_id: setup.input.run_id.clone(),
        thread_id: setup.input.thread_id.clone(),
        agent_id: AgentId::new(setup.agent.id.as_str()),
        owner: None,
        persistence: setup.persistence.clone(),
        request_id: String::new(),
        trace: String::new(),
        started_at_ms: 0,
        event_retention_ms: None,
        input: String::new(),
    };
    let pieces = |answer: Vec<u8>| Body(answer.chunks(READ_BYTES).rev().map(<[u8]>::to_vec).collect());
    let upstream = Upstream {
        answers: RefCell::new(answers.into_iter().map(pieces).collect()),
        lists: McpLists::default(),
        ids: Cell::default(),
        keeper: Keeper::new(NoStorage, record),
    };
    let sent = Rc::new(Sent::default());
    let sink = Sink {
        encoding,
        frames: Vec::new(),
        sent: sent.clone(),
    };
    let control = RunControl::default();
    let (head, _head) = oneshot::channel();
    let mut driven = std::pin::pin!(run(setup, &upstream, &control, sink, head));
    let waker = noop_waker();
    let mut context = std::task::Context::from_waker(&waker);
    let is_over = measured(|| (0..1_000).any(|_| driven.as_mut().poll(&mut context).is_ready()));
    assert!(is_over, "the run waits for something");
    sent
}

/// The only part that is counted: `scripts/instructions.mjs` names this function to the counter.
#[inline(never)]
pub fn measured<T>(work: impl FnOnce() -> T) -> T {
    work()
}
