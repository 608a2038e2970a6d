//! Threads that a Mastra server keeps: requests to its `/api/memory` routes, and what they answer. Who may see what is
//! for the caller to decide: a server without auth gives every thread to everybody, and a `POST` with the id of a thread
//! writes over it, owner included. Source: Mastra server 1.x, "Memory API".

use serde_json::{Map, Value};

use super::super::{HttpRequest, ModelTarget, ProviderError};
use super::api;
pub use super::messages::KeptMessage;
use super::messages::StoredMessage;
use crate::list::all;
use crate::protocol::id::{ResourceId, ThreadId};
use crate::protocol::json;
use crate::protocol::order::insert_in_order;
use crate::protocol::payload::Member;
use crate::protocol::percent;
use crate::protocol::read::{self, record};
use crate::protocol::thread::{NewThread, Page, Thread, ThreadOrder, ThreadPatch};
use crate::protocol::time::parse_iso_8601;
use crate::protocol::tree::json;

/// Rows the server gives at most on a page.
pub const PAGE_MAX_COUNT: u32 = 100;

const UNREADABLE: ProviderError = ProviderError::Malformed("a thread could not be read");

/// `GET /memory/threads`: a page of an owner's threads; `page` counts from 0.
pub fn list(
    target: &ModelTarget,
    owner: &ResourceId,
    (order, descending): (ThreadOrder, bool),
    (page, per_page): (u64, u32),
) -> HttpRequest {
    let field = match order {
        ThreadOrder::UpdatedAt => "updatedAt",
        ThreadOrder::CreatedAt => "createdAt",
    };
    let direction = if descending { "DESC" } else { "ASC" };
    let order = order_by(field, direction);
    let owner = percent::encode(owner.as_str());
    let rest = format!("&resourceId={owner}&page={page}&perPage={per_page}&orderBy={order}");
    target.json("GET", url(target, "", &rest), None)
}

/// `GET /memory/threads/:threadId`
pub fn read(target: &ModelTarget, id: &ThreadId) -> HttpRequest {
    target.json("GET", url(target, &path(id), ""), None)
}

/// `POST /memory/threads`; only for an id the server does not have.
pub fn create(target: &ModelTarget, owner: &ResourceId, id: &ThreadId, new: &NewThread) -> HttpRequest {
    let mut body = json!({ "resourceId": owner, "threadId": id, "metadata": new.metadata });
    if let (Some(title), Value::Object(members)) = (&new.title, &mut body) {
        members.insert("title".to_owned(), title.as_str().into());
    }
    target.json("POST", url(target, "", ""), Some(json::text(&body)))
}

/// `PATCH /memory/threads/:threadId`
pub fn update(target: &ModelTarget, id: &ThreadId, patch: &ThreadPatch) -> HttpRequest {
    let mut body = Map::new();
    if let Some(title) = &patch.title {
        body.insert("title".to_owned(), title.as_str().into());
    }
    if let Some(metadata) = &patch.metadata {
        body.insert("metadata".to_owned(), Value::Object(metadata.clone()));
    }
    let body = json::text(&body);
    target.json("PATCH", url(target, &path(id), ""), Some(body))
}

/// `DELETE /memory/threads/:threadId`
pub fn delete(target: &ModelTarget, id: &ThreadId) -> HttpRequest {
    target.json("DELETE", url(target, &path(id), ""), None)
}

/// `GET /memory/threads/:threadId/messages`: a page counted from the newest message, which itself is oldest first.
pub fn messages(target: &ModelTarget, id: &ThreadId, (page, per_page): (u64, u32)) -> HttpRequest {
    let order = order_by("createdAt", "DESC");
    let rest = format!("&page={page}&perPage={per_page}&orderBy={order}");
    target.json("GET", url(target, &format!("{}/messages", path(id)), &rest), None)
}

/// `agentId` picks the storage on the server.
fn url(target: &ModelTarget, path: &str, rest: &str) -> String {
    let agent_id = percent::encode(&target.model);
    format!(
        "{}/memory/threads{path}?agentId={agent_id}{rest}",
        api(&target.base_url)
    )
}

fn path(id: &ThreadId) -> String {
    format!("/{}", percent::encode(id.as_str()))
}

fn order_by(field: &str, direction: &str) -> String {
    percent::encode(&json::text(&json!({ "field": field, "direction": direction })))
}

/// Reads a thread.
///
/// # Errors
/// [`ProviderError::Malformed`]
pub fn read_thread(body: &[u8]) -> Result<Thread, ProviderError> {
    parse::<StoredThread>(body)?.into_thread()
}

/// Reads a page of threads; their order is the server's.
///
/// # Errors
/// [`ProviderError::Malformed`]
pub fn read_threads(body: &[u8]) -> Result<Page<Thread>, ProviderError> {
    struct Threads {
        threads: Vec<StoredThread>,
        total: u64,
        has_more: bool,
    }
    record!(Threads: "threads" => threads, "total" => total, "hasMore" => has_more);
    let page: Threads = parse(body)?;
    let items = page.threads.into_iter().map(StoredThread::into_thread);
    Ok(Page {
        items: all(items)?,
        total: page.total,
        has_more: page.has_more,
        next_cursor: None,
    })
}

/// Reads a page of messages, oldest first.
///
/// # Errors
/// [`ProviderError::Malformed`]
pub fn read_messages(body: &[u8]) -> Result<Page<KeptMessage>, ProviderError> {
    struct Messages {
        messages: Vec<StoredMessage>,
        total: u64,
        has_more: bool,
    }
    record!(Messages: "messages" => messages, "total" => total, "hasMore" => has_more);
    let page: Messages = parse(body)?;
    let mut items = Vec::with_capacity(page.messages.len());
    for message in page.messages {
        let message = message.into_kept().ok_or(UNREADABLE)?;
        insert_in_order(&mut items, message, |message| message.created_at_ms);
    }
    Ok(Page {
        items,
        total: page.total,
        has_more: page.has_more,
        next_cursor: None,
    })
}

fn parse<T: for<'a> Member<'a>>(body: &[u8]) -> Result<T, ProviderError> {
    let text = str::from_utf8(body).map_err(|_| UNREADABLE)?;
    read::from_text(text).map_err(|_| UNREADABLE)
}

struct StoredThread {
    id: String,
    resource_id: String,
    title: Option<String>,
    created_at: String,
    updated_at: String,
    metadata: Option<Map<String, Value>>,
}

record!(StoredThread:
    "id" => id, "resourceId" => resource_id, "title" => title = None, "createdAt" => created_at,
    "updatedAt" => updated_at, "metadata" => metadata = None,
);

impl StoredThread {
    fn into_thread(self) -> Result<Thread, ProviderError> {
        let at = |text: &str| parse_iso_8601(text).ok_or(UNREADABLE);
        Ok(Thread {
            id: ThreadId::new(self.id),
            title: self.title.filter(|title| !title.is_empty()),
            resource_id: ResourceId::new(self.resource_id),
            created_at_ms: at(&self.created_at)?,
            updated_at_ms: at(&self.updated_at)?,
            metadata: self.metadata.unwrap_or_default(),
        })
    }
}

#[cfg(test)]
#[path = "threads_tests.rs"]
mod tests;
