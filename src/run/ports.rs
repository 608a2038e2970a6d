//! What a run needs from outside, as traits: the edge implements them on the platform, tests script them.

use std::future::Future;

use super::keeper::Keeper;
use super::mcp_lists::McpLists;
use super::report::RunReport;
use crate::protocol::event::Event;
use crate::protocol::id::MessageId;
use crate::provider::HttpRequest;
use crate::store::{Attachments, Database, EndRun, PersistentRun};
use crate::tool::mcp::SESSION_HEADER;

/// All ports of a run in one value.
pub trait Ports {
    /// Outgoing HTTP.
    type Http: HttpClient;
    /// D1; clones are the same one.
    type Database: Database + Clone;
    /// The bucket of attachments; clones are the same one.
    type Attachments: Attachments + Clone;
    /// Time.
    type Clock: Clock;
    /// Fresh ids.
    type Ids: IdSource;
    /// The log.
    type Log: Log;
    /// The object's own storage.
    type Storage: ObjectStorage;

    /// Outgoing HTTP.
    fn http(&self) -> &Self::Http;
    /// D1; `None` when the deployment has none.
    fn database(&self) -> Option<&Self::Database>;
    /// The bucket of attachments; one that is not bound when the deployment has none.
    fn attachments(&self) -> &Self::Attachments;
    /// The search index, a database of its own; `None` when the deployment has none.
    fn search(&self) -> Option<&Self::Database>;
    /// Time.
    fn clock(&self) -> &Self::Clock;
    /// Fresh ids.
    fn ids(&self) -> &Self::Ids;
    /// The log.
    fn log(&self) -> &Self::Log;
    /// What MCP servers offer, as remembered.
    fn mcp_lists(&self) -> &McpLists;
    /// What is kept of the run in its object.
    fn keeper(&self) -> &Keeper<Self::Storage>;

    /// Takes the numbers of a run that has ended; nobody may want them.
    fn measure(&self, _report: &RunReport<'_>) {}

    /// Keeps an end batch the database refused, in storage of the object's own, to be delivered later and in order.
    /// Source: contract 2.3.
    ///
    /// # Errors
    /// [`OutboxFull`] when that fails too.
    fn keep_undelivered(&self, run: &PersistentRun, end: &EndRun) -> Result<(), OutboxFull>;
}

/// The object's own SQLite. Calls are synchronous, and what is written between two waits is written together or not at
/// all.
pub trait ObjectStorage {
    /// Runs one statement with its parameters `?1`, `?2`, ... and gives its rows.
    ///
    /// # Errors
    /// [`StorageFault`]
    fn exec(&self, sql: &'static str, parameters: Vec<SqlValue>) -> Result<Vec<Vec<SqlValue>>, StorageFault>;
}

/// A parameter of a statement, or a value of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SqlValue {
    /// NULL
    Null,
    /// INTEGER, within the range a double keeps exact
    Integer(i64),
    /// TEXT
    Text(String),
    /// BLOB
    Bytes(Vec<u8>),
}

impl From<u64> for SqlValue {
    fn from(number: u64) -> Self {
        Self::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

/// The object's own storage failed; the text is for the log only.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the object's storage failed")]
pub struct StorageFault(pub String);

/// The object's own storage took nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutboxFull;

/// Sends requests to upstreams and tools.
pub trait HttpClient {
    /// A response's body. Dropping it aborts the call.
    type Body: HttpBody;

    /// Sends a request and waits for the head of the response. Dropping the future aborts the call.
    fn send(&self, request: HttpRequest)
    -> impl Future<Output = Result<HttpResponse<Self::Body>, HttpError>>;
}

/// The headers of a response that anybody reads: to look at all of them costs more than to read them.
pub const RESPONSE_HEADERS: [&str; 5] = [
    "content-type",
    "location",
    "retry-after",
    "retry-after-ms",
    SESSION_HEADER,
];

/// A response whose body is still to be read.
#[derive(Debug)]
pub struct HttpResponse<B> {
    /// HTTP status.
    pub status: u16,
    /// Those of [`RESPONSE_HEADERS`] that are there.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: B,
}

/// A body being received.
pub trait HttpBody {
    /// The next bytes, as they arrive; `None` at the end. An error is a connection that died.
    fn next_chunk(&mut self) -> impl Future<Output = Option<Result<Vec<u8>, HttpError>>>;

    /// Everything that matters has come: the rest may come to its end by itself, which keeps the connection for the next
    /// call.
    fn leave(self)
    where
        Self: Sized,
    {
    }
}

/// The connection failed; the text is for the log only.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the connection failed")]
pub struct HttpError(pub String);

/// Time.
pub trait Clock {
    /// Unix milliseconds.
    fn now_ms(&self) -> u64;

    /// Resolves after this many milliseconds.
    fn sleep(&self, ms: u64) -> impl Future<Output = ()> + 'static;
}

/// Fresh ids and random numbers.
pub trait IdSource {
    /// A message id nobody has.
    fn message_id(&self) -> MessageId;

    /// A random text of at least 64 bits, for thread incarnations.
    fn token(&self) -> String;

    /// A number from 0 to 1, for jitter.
    fn fraction(&self) -> f64;
}

/// The viewers of a run's stream.
pub trait EventSink {
    /// Appends an event to what will be sent. Never waits, never fails.
    fn push(&mut self, event: &Event);

    /// Appends a keep-alive.
    fn push_keep_alive(&mut self);

    /// Puts what was appended into the object's storage, and says how many events the run has had. Sends nothing.
    ///
    /// # Errors
    /// [`StorageFault`]
    fn commit(&mut self) -> Result<u64, StorageFault>;

    /// When what the viewers were handed must be in the object's storage, Unix milliseconds; `None` = it is, or need not
    /// be.
    fn store_due_ms(&self) -> Option<u64> {
        None
    }

    /// Puts that into the object's storage.
    fn store(&mut self) {}

    /// Hands what was appended to the viewers.
    ///
    /// # Errors
    /// [`ViewersGone`] when the last viewer has left and the run's agent stops then (D11).
    fn flush(&mut self) -> impl Future<Output = Result<(), ViewersGone>>;
}

/// Nobody receives the stream any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewersGone;

/// Structured log lines. Never a prompt, message text, key or body of a client.
pub trait Log {
    /// One line: a level, an event name, and members.
    fn line(&self, level: Level, event: &'static str, members: &[(&'static str, &dyn std::fmt::Display)]);
}

/// How grave a log line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// For developers.
    Debug,
    /// What happened.
    Info,
    /// What was dropped, ignored, degraded.
    Warn,
    /// What failed.
    Error,
}
