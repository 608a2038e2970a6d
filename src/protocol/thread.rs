//! Threads as the routes show them.

use serde::Serialize;
use serde_json::{Map, Value};

use super::id::{ResourceId, ThreadId};

/// One thread.
///
/// Wire: `{"id","title"?,"resourceId","createdAt","updatedAt","metadata"}`, times ISO-8601 UTC with milliseconds
/// (`protocol::time` writes them). Source: contract 4.
#[derive(Debug, Clone, PartialEq)]
pub struct Thread {
    /// Id, unique over all owners.
    pub id: ThreadId,
    /// Absent until the first run or the user gives one.
    pub title: Option<String>,
    /// Owner.
    pub resource_id: ResourceId,
    /// Unix milliseconds.
    pub created_at_ms: u64,
    /// Unix milliseconds.
    pub updated_at_ms: u64,
    /// The application's own data.
    pub metadata: Map<String, Value>,
}

/// What `POST /threads` asks for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct NewThread {
    /// `threadId` or `id`; absent = a fresh one.
    pub id: Option<ThreadId>,
    /// A user's title.
    pub title: Option<String>,
    /// The application's own data.
    pub metadata: Map<String, Value>,
}

/// What `PATCH /threads/:threadId` changes; absent members stay.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ThreadPatch {
    /// A user's title.
    pub title: Option<String>,
    /// Replaces the whole metadata.
    pub metadata: Option<Map<String, Value>>,
}

/// Column a thread list is sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ThreadOrder {
    /// `updatedAt`, the default.
    #[default]
    UpdatedAt,
    /// `createdAt`
    CreatedAt,
}

/// What `GET /threads` asks for. Source: contract 4.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadListRequest {
    /// Whose threads; a list always has an owner (D4).
    pub owner: ResourceId,
    /// Sort column; ties are broken by id.
    pub order: ThreadOrder,
    /// `direction=DESC`, the default.
    pub descending: bool,
    /// `q`: only threads with this text, case ignored; never blank.
    pub search: Option<String>,
    /// Rows of a page, 1 to 100.
    pub limit: u32,
    /// Where the page starts.
    pub start: PageStart,
}

/// Where a page starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PageStart {
    /// Rows skipped.
    Offset(u64),
    /// The `nextCursor` of the page before.
    Cursor(String),
}

/// What `GET /threads/:threadId/messages` asks for: the newest `limit` rows after skipping `offset` newest, returned
/// oldest first. Source: contract 4.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageListRequest {
    /// Whose thread.
    pub thread_id: ThreadId,
    /// Rows of a page, 1 to 500.
    pub limit: u32,
    /// Newest rows skipped.
    pub offset: u64,
    /// Form of a row.
    pub form: MessageForm,
    /// `superseded=true`: hidden messages too.
    pub with_superseded: bool,
}

/// Form of the rows of a message list. Source: D19.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MessageForm {
    /// Mastra's stored form: both shipped UIs read it.
    #[default]
    Mastra,
    /// AG-UI messages exactly as streamed.
    AgUi,
}

/// A page of rows.
#[derive(Debug, Clone, PartialEq)]
pub struct Page<T> {
    /// The rows.
    pub items: Vec<T>,
    /// Rows in all.
    pub total: u64,
    /// Whether rows follow.
    pub has_more: bool,
    /// Continues after the last row without drift; thread lists only.
    pub next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// A page of nothing.
    pub fn empty() -> Self {
        Self {
            items: Vec::new(),
            total: 0,
            has_more: false,
            next_cursor: None,
        }
    }
}

/// Shape of the thread and agent lists, `LIST_SHAPE`. Source: D18.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListShape {
    /// `{"threads": [...], ...}`
    #[default]
    Object,
    /// `[...]`
    Array,
}
