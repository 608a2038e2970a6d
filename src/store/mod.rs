//! Persistence: what is stored of runs, threads and messages, and every SQL statement of the project.
//!
//! Pure over one port, [`Database`]: the edge runs the statements on D1, tests run them on native SQLite with the
//! real migrations. Nobody outside this module writes SQL or sees a row.
//!
//! A parameter is compared as `= +?1`, which means the same. Without the plus SQLite makes the plan of a join, or of a
//! `LIMIT`, depend on the value, and prepares the statement anew for each; the tests' database refuses that.
//! Runs that live are read `INDEXED BY runs_live`: left to itself, SQLite may take an index of all an owner ever had.

mod attachments;
mod begin;
mod begin_sql;
mod body;
mod cursor;
mod end;
mod error;
mod export;
mod incoming;
mod mastra_form;
mod messages;
mod purge;
mod quota;
mod row;
mod runs;
mod search;
mod threads;
mod title;

pub use attachments::{AttachmentError, Attachments, INLINE_MAX_BYTES, NoBucket};
pub use end::end_batch;
pub use export::ThreadPart;
pub use mastra_form::kept_rows;
pub use messages::PAGE_MAX_BYTES;
pub use purge::{Purge, Purged};
pub use quota::{DAY_MS, Exhausted, Quota};
pub use runs::RunRow;
pub use search::{IndexedText, SearchHit, SearchIndex};
pub use threads::{FoundThreads, ThreadDetail, ThreadListError};

use std::borrow::Cow;
use std::future::Future;

use futures::future::LocalBoxFuture;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::protocol::event::TokenUsage;
use crate::protocol::id::{AgentId, MessageId, ObjectAddress, ResourceId, RunId, ThreadId, ToolCallId};
use crate::protocol::message::Message;
use crate::protocol::read::{record, variants, words};

/// The database port: one batch = one transaction, all or nothing.
pub trait Database {
    /// Runs the statements in order in one transaction and gives each statement's rows.
    fn batch(&self, statements: Vec<Statement>)
    -> impl Future<Output = Result<Vec<Vec<Row>>, DatabaseError>>;
}

/// The port for what is there once for all kinds of databases.
trait AnyDatabase {
    fn run(&self, statements: Vec<Statement>) -> LocalBoxFuture<'_, Result<Vec<Vec<Row>>, DatabaseError>>;
}

impl<D: Database> AnyDatabase for D {
    fn run(&self, statements: Vec<Statement>) -> LocalBoxFuture<'_, Result<Vec<Vec<Row>>, DatabaseError>> {
        Box::pin(self.batch(statements))
    }
}

impl<D: Database + ?Sized> Database for &D {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Vec<Row>>, DatabaseError> {
        (**self).batch(statements).await
    }
}

/// One SQL statement with its parameters `?1`, `?2`, ...; at most 100 of them (a D1 limit, known fault B101).
/// Serializable, so that an object can keep a batch the database did not take.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Statement {
    /// SQL text.
    pub sql: Cow<'static, str>,
    /// Parameters in order.
    pub parameters: Vec<Parameter>,
}

record!(Statement: "sql" => sql, "parameters" => parameters);

impl Statement {
    /// A statement with its parameters in order.
    pub fn new(sql: impl Into<Cow<'static, str>>, parameters: Vec<Parameter>) -> Self {
        Self {
            sql: sql.into(),
            parameters,
        }
    }
}

/// A parameter of a [`Statement`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum Parameter {
    /// TEXT
    Text(String),
    /// INTEGER, within the range a double keeps exact
    Integer(i64),
    /// NULL
    Null,
}

variants!(Parameter: "Null" => Null, "Text" => Text(text), "Integer" => Integer(integer));

impl From<&str> for Parameter {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Parameter {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Parameter {
    fn from(number: u64) -> Self {
        Self::Integer(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl<T: Into<Parameter>> From<Option<T>> for Parameter {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A row: column name -> text, number or null.
pub type Row = Map<String, Value>;

/// Why the database did not run a batch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseError {
    /// Overloaded, reset, timed out: the same batch may succeed when sent again.
    #[error("the database is not available")]
    Unavailable(String),
    /// A constraint refused a row.
    #[error("a constraint of the database was violated")]
    Constraint(String),
    /// A fault of the statement: ours.
    #[error("the database refused a statement")]
    Refused(String),
}

/// Why a store operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StoreError {
    /// See [`DatabaseError`].
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// See [`AttachmentError`].
    #[error(transparent)]
    Attachments(#[from] AttachmentError),
    /// A row is not what we wrote.
    #[error("a stored row could not be read")]
    Corrupt(&'static str),
}

/// What a caller finds under an id. Source: contract 1 (D4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Lookup<T> {
    /// It is there and the caller's.
    Found(T),
    /// It is there and another owner's: 403.
    Foreign,
    /// It is not there: 404.
    Unknown,
}

/// How a run treats its thread. Source: contract 2.2 (D5).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Persistence {
    /// Nothing is read or written; the database is not asked.
    Stateless,
    /// The run owns the right to create its thread.
    Create(ResourceId),
    /// Persistent only if the thread exists and is this owner's, and no run on it waits for a front-end result.
    IfThreadExists(ResourceId),
}

variants!(Persistence:
    "Stateless" => Stateless, "Create" => Create(owner), "IfThreadExists" => IfThreadExists(owner),
);

/// State of a run row. Source: contract 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum RunStatus {
    /// The loop works.
    Running,
    /// The loop waits for front-end results.
    Waiting,
    /// RUN_FINISHED.
    Finished,
    /// RUN_ERROR, or the object was lost.
    Failed,
    /// Cancelled.
    Cancelled,
}

words!(RunStatus:
    "Running" => Running, "Waiting" => Waiting, "Finished" => Finished, "Failed" => Failed, "Cancelled" => Cancelled,
);

impl RunStatus {
    /// The status on the wire and in the row.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Waiting => "waiting",
            Self::Finished => "finished",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [
            Self::Running,
            Self::Waiting,
            Self::Finished,
            Self::Failed,
            Self::Cancelled,
        ]
        .into_iter()
        .find(|status| status.as_str() == text)
    }

    /// What the status reads as: a live one past its deadline is a run that was lost. Source: D12.
    fn at(self, now_ms: u64, deadline_ms: u64) -> Self {
        match self {
            Self::Running | Self::Waiting if deadline_ms <= now_ms => Self::Failed,
            Self::Running | Self::Waiting | Self::Finished | Self::Failed | Self::Cancelled => self,
        }
    }
}

/// What the start batch needs.
#[derive(Debug, Clone, PartialEq)]
pub struct BeginRun {
    /// The client's id of the run.
    pub run_id: RunId,
    /// Never empty here.
    pub thread_id: ThreadId,
    /// The agent.
    pub agent_id: AgentId,
    /// The object the run lives in.
    pub object: ObjectAddress,
    /// Never `Stateless` here.
    pub persistence: Persistence,
    /// Read the history, write nothing (no thread, no run row either).
    pub read_only: bool,
    /// `input.messages` as they came.
    pub incoming: Vec<Message>,
    /// How many stored messages may reach the model.
    pub last_messages: u32,
    /// Unix milliseconds.
    pub now_ms: u64,
    /// When a row still live reads as failed, Unix milliseconds.
    pub deadline_ms: u64,
    /// A fresh random text, used if the thread is created now.
    pub incarnation: String,
    /// What the owner may use.
    pub quota: Quota,
}

/// What the start batch found.
#[derive(Debug, Clone, PartialEq)]
pub enum Begun {
    /// The thread does not exist, or a run on it waits: go on without it (only for `IfThreadExists`).
    Stateless,
    /// The run reads its thread, and writes it unless read-only.
    Persistent(PersistentRun),
    /// The thread belongs to another owner: 403.
    ForeignThread,
    /// The owner has used up what it may: 429 or 413.
    Exhausted(Exhausted),
    /// The owner has a run of this id already: 409 (D12).
    Conflict {
        /// Its state; `Running` or `Waiting` past its deadline reads as `Failed`.
        status: RunStatus,
        /// Its thread.
        thread_id: ThreadId,
    },
}

/// A run that has its place in a thread.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PersistentRun {
    /// The run.
    pub run_id: RunId,
    /// Its thread.
    pub thread_id: ThreadId,
    /// Its owner.
    pub owner: ResourceId,
    /// Incarnation of the thread the run began on; a thread deleted meanwhile is never written.
    pub incarnation: String,
    /// Turn the run's output goes to; no other run has it.
    pub turn: u64,
    /// The user message the run answers: if it is superseded meanwhile, the output is stored superseded (2.3 rule 2).
    pub user_message_id: Option<MessageId>,
    /// Nothing is written.
    pub read_only: bool,
    /// History and incoming messages as the rules of 2.3 give them, stored versions winning where they must.
    pub model_input: Vec<Message>,
    /// Calls of `model_input` that are pending in storage (2.6) and not answered by an incoming message.
    pub pending_tool_call_ids: Vec<ToolCallId>,
    /// The thread's title is ours, cut from the first user text: `Store::set_generated_title` may replace it.
    pub has_provisional_title: bool,
}

record!(PersistentRun:
    "run_id" => run_id, "thread_id" => thread_id, "owner" => owner, "incarnation" => incarnation, "turn" => turn,
    "user_message_id" => user_message_id = None, "read_only" => read_only, "model_input" => model_input,
    "pending_tool_call_ids" => pending_tool_call_ids, "has_provisional_title" => has_provisional_title,
);

/// What the end batch writes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EndRun {
    /// Final state.
    pub status: RunStatus,
    /// Assistant and tool messages the run produced, in order.
    pub produced: Vec<Message>,
    /// Calls in `produced` that the next run's messages answer (2.6).
    pub pending_tool_call_ids: Vec<ToolCallId>,
    /// Token counts of the run.
    pub usage: Vec<TokenUsage>,
    /// Unix milliseconds.
    pub now_ms: u64,
}

record!(EndRun:
    "status" => status, "produced" => produced, "pending_tool_call_ids" => pending_tool_call_ids, "usage" => usage,
    "now_ms" => now_ms,
);

/// The store over a [`Database`], and over a bucket of [`Attachments`] where there is one.
#[derive(Debug, Clone)]
pub struct Store<D, A = NoBucket> {
    database: D,
    attachments: A,
}

impl<D: Database> Store<D> {
    /// A store over this database, without a bucket.
    pub fn new(database: D) -> Self {
        Self {
            database,
            attachments: NoBucket,
        }
    }

    /// The same with a bucket.
    pub fn with_attachments<A: Attachments>(self, attachments: A) -> Store<D, A> {
        Store {
            database: self.database,
            attachments,
        }
    }
}
