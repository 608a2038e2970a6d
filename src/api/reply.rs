//! Bodies of successful answers, each one compact JSON.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::protocol::agent::Agent;
use crate::protocol::event::PROTOCOL_VERSION;
use crate::protocol::id::{RunId, ThreadId, ToolCallId};
use crate::protocol::json;
use crate::protocol::thread::{ListShape, MessageListRequest, Page, PageStart, Thread, ThreadListRequest};
use crate::protocol::time::iso_8601;
use crate::protocol::tree::json;

/// Name of the protocol this service speaks. Source: contract 9.
pub const PROTOCOL: &str = "io.intelligence/agent-protocol";

/// What `GET <prefix>` says: `{"name","version","protocol","protocolVersion","conformanceLevel"}`. Source: contract 9.
pub fn service(name: &str, version: &str, conformance_level: u8) -> String {
    json::text(&json!({
        "name": name,
        "version": version,
        "protocol": PROTOCOL,
        "protocolVersion": PROTOCOL_VERSION,
        "conformanceLevel": conformance_level,
    }))
}

/// Health: `{"status","checks"?}`, `checks` as `{"database","search","object","agents":{"<id>"}}`, each a word.
pub fn health(status: &str, checks: Option<Value>) -> String {
    let mut body = Map::new();
    body.insert("status".to_owned(), json!(status));
    if let Some(checks) = checks {
        body.insert("checks".to_owned(), checks);
    }
    json::text(&body)
}

/// One thread; `activeRuns` only when there are some (contract 8).
///
/// Wire: `{"id","title"?,"resourceId","createdAt","updatedAt","metadata","activeRuns"?}`. Source: contract 4.
pub fn thread(thread: &Thread, active_runs: &[RunId]) -> String {
    let mut members = thread_members(thread);
    if !active_runs.is_empty() {
        members.insert("activeRuns".to_owned(), json!(active_runs));
    }
    json::text(&members)
}

/// A page of threads: `{"threads","total","page","perPage","hasMore","nextCursor"?}`, or a bare array (D18).
/// `snippets` = the words around what a search found in the messages of a thread.
pub fn thread_list(
    page: &Page<Thread>,
    request: &ThreadListRequest,
    shape: ListShape,
    snippets: &[(ThreadId, String)],
) -> String {
    let thread = |thread: &Thread| {
        let mut members = thread_members(thread);
        if let Some((_, snippet)) = snippets.iter().find(|(id, _)| *id == thread.id) {
            members.insert("snippet".to_owned(), json!(snippet));
        }
        Value::Object(members)
    };
    let threads: Value = page.items.iter().map(thread).collect();
    let offset = match (shape, &request.start) {
        (ListShape::Array, _) => return json::text(&threads),
        (ListShape::Object, PageStart::Offset(offset)) => *offset,
        (ListShape::Object, PageStart::Cursor(_)) => 0,
    };
    let mut list = json!({
        "threads": threads,
        "total": page.total,
        "page": page_number(offset, request.limit),
        "perPage": request.limit,
        "hasMore": page.has_more,
    });
    if let (Some(cursor), Some(members)) = (&page.next_cursor, list.as_object_mut()) {
        members.insert("nextCursor".to_owned(), json!(cursor));
    }
    json::text(&list)
}

/// A page of messages: `{"messages","total","page","perPage","hasMore"}`, whatever the list shape: one shipped UI shows
/// an empty chat without the envelope. Source: contract 4.
pub fn message_list<R: Serialize>(page: &Page<R>, request: &MessageListRequest) -> String {
    // Rows may hold megabytes: they are written once, never built as a tree.
    json::text(&MessageList {
        messages: &page.items,
        total: page.total,
        page: page_number(request.offset, request.limit),
        per_page: request.limit,
        has_more: page.has_more,
    })
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MessageList<'a, R> {
    messages: &'a [R],
    total: u64,
    page: u64,
    per_page: u32,
    has_more: bool,
}

fn page_number(offset: u64, limit: u32) -> u64 {
    offset / u64::from(limit.max(1))
}

/// The beginning of an export: `{"thread":{...},"messages":[`; [`thread_export_part`]s and [`THREAD_EXPORT_END`] follow.
pub fn thread_export_start(thread: &Thread) -> String {
    let thread = json::text(&thread_members(thread));
    format!("{{\"thread\":{thread},\"messages\":[")
}

/// Messages of an export, with the comma to those before.
pub fn thread_export_part(messages: &[Value], is_first: bool) -> String {
    let mut text = String::new();
    for (index, message) in messages.iter().enumerate() {
        if index > 0 || !is_first {
            text.push(',');
        }
        text.push_str(&json::text(message));
    }
    text
}

/// The end of an export.
pub const THREAD_EXPORT_END: &str = "]}";

/// What an erasure has done: `{"success":true,"complete"}`; when it is not complete, the same request goes on.
pub fn owner_erased(is_complete: bool) -> String {
    json::text(&json!({"success": true, "complete": is_complete}))
}

/// All agents, the default first: `{"agents"}`, or a bare array (D18).
pub fn agent_list(agents: &[Agent], shape: ListShape) -> String {
    let list = json::text(agents);
    match shape {
        ListShape::Array => list,
        ListShape::Object => format!("{{\"agents\":{list}}}"),
    }
}

/// One agent. Source: contract 5.
pub fn agent(agent: &Agent) -> String {
    json::text(agent)
}

/// A result was taken: `{"success":true,"runId","toolCallId"}`. Source: contract 3.
pub fn result_taken(run_id: &RunId, tool_call_id: &ToolCallId) -> String {
    json::text(&json!({ "success": true, "runId": run_id, "toolCallId": tool_call_id }))
}

/// A thread is gone: `{"success":true,"result":"Thread deleted"}`. Source: contract 4.
pub fn thread_deleted() -> String {
    json::text(&json!({ "success": true, "result": "Thread deleted" }))
}

fn thread_members(thread: &Thread) -> Map<String, Value> {
    let mut members = Map::new();
    let mut insert = |name: &str, value| members.insert(name.to_owned(), value);
    insert("id", json!(thread.id));
    if let Some(title) = &thread.title {
        insert("title", json!(title));
    }
    insert("resourceId", json!(thread.resource_id));
    insert("createdAt", json!(iso_8601(thread.created_at_ms)));
    insert("updatedAt", json!(iso_8601(thread.updated_at_ms)));
    insert("metadata", json!(thread.metadata));
    members
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::id::{AgentId, ResourceId, ThreadId};
    use crate::protocol::thread::{MessageForm, ThreadOrder};

    fn plan() -> Thread {
        Thread {
            id: ThreadId::new("t"),
            title: Some("Plan".to_owned()),
            resource_id: ResourceId::new("ada"),
            created_at_ms: 0,
            updated_at_ms: 1_764_448_620_007,
            metadata: serde_json::from_str(r#"{"z":1.0,"a":12345678901234567890123}"#).unwrap(),
        }
    }

    const PLAN: &str = r#"{"id":"t","title":"Plan","resourceId":"ada","createdAt":"1970-01-01T00:00:00.000Z","updatedAt":"2025-11-29T20:37:00.007Z","metadata":{"z":1.0,"a":12345678901234567890123}}"#;

    fn request(limit: u32, start: PageStart) -> ThreadListRequest {
        ThreadListRequest {
            owner: ResourceId::new("ada"),
            order: ThreadOrder::UpdatedAt,
            descending: true,
            search: None,
            limit,
            start,
        }
    }

    #[test]
    fn the_service_describes_itself() {
        assert_eq!(
            service("io-bridge", "0.1.0", 4),
            r#"{"name":"io-bridge","version":"0.1.0","protocol":"io.intelligence/agent-protocol","protocolVersion":"1.0","conformanceLevel":4}"#
        );
    }

    #[test]
    fn health_is_a_word_and_what_was_checked() {
        assert_eq!(health("ok", None), r#"{"status":"ok"}"#);
        let checks = json!({"database": "ok", "agents": {"a": "not_configured"}});
        assert_eq!(
            health("ok", Some(checks)),
            r#"{"status":"ok","checks":{"database":"ok","agents":{"a":"not_configured"}}}"#
        );
    }

    #[test]
    fn a_thread_has_both_dates_and_its_exact_metadata() {
        assert_eq!(thread(&plan(), &[]), PLAN);
        let untitled = Thread {
            title: None,
            metadata: Map::new(),
            updated_at_ms: 0,
            ..plan()
        };
        assert_eq!(
            thread(&untitled, &[RunId::new("r1"), RunId::new("r2")]),
            r#"{"id":"t","resourceId":"ada","createdAt":"1970-01-01T00:00:00.000Z","updatedAt":"1970-01-01T00:00:00.000Z","metadata":{},"activeRuns":["r1","r2"]}"#
        );
    }

    #[test]
    fn a_thread_list_has_two_shapes() {
        let page = Page {
            items: vec![plan()],
            total: 31,
            has_more: true,
            next_cursor: Some("c".to_owned()),
        };
        let asked = request(10, PageStart::Offset(20));
        assert_eq!(
            thread_list(&page, &asked, ListShape::Object, &[]),
            format!(
                r#"{{"threads":[{PLAN}],"total":31,"page":2,"perPage":10,"hasMore":true,"nextCursor":"c"}}"#
            )
        );
        assert_eq!(
            thread_list(&page, &asked, ListShape::Array, &[]),
            format!("[{PLAN}]")
        );
        let by_cursor = request(100, PageStart::Cursor("c".to_owned()));
        assert_eq!(
            thread_list(&Page::empty(), &by_cursor, ListShape::Object, &[]),
            r#"{"threads":[],"total":0,"page":0,"perPage":100,"hasMore":false}"#
        );
        assert_eq!(
            thread_list(&Page::empty(), &by_cursor, ListShape::Array, &[]),
            "[]"
        );
    }

    #[test]
    fn a_message_list_always_has_its_envelope() {
        let asked = MessageListRequest {
            thread_id: ThreadId::new("t"),
            limit: 2,
            offset: 3,
            form: MessageForm::Mastra,
            with_superseded: false,
        };
        let page = Page {
            items: vec![json!({"id": "1"}), json!({"id": "2"})],
            total: 9,
            has_more: true,
            next_cursor: None,
        };
        assert_eq!(
            message_list(&page, &asked),
            r#"{"messages":[{"id":"1"},{"id":"2"}],"total":9,"page":1,"perPage":2,"hasMore":true}"#
        );
    }

    #[test]
    fn an_agent_list_has_two_shapes() {
        let io = Agent {
            id: AgentId::new("io"),
            name: "Io".to_owned(),
            description: None,
            provider: "demo".to_owned(),
            model_id: "demo-1".to_owned(),
            capabilities: json!({"transport": {"streaming": true}}),
        };
        let text = r#"{"id":"io","name":"Io","provider":"demo","modelId":"demo-1","capabilities":{"transport":{"streaming":true}}}"#;
        assert_eq!(agent(&io), text);
        let agents = [io];
        assert_eq!(
            agent_list(&agents, ListShape::Object),
            format!(r#"{{"agents":[{text}]}}"#)
        );
        assert_eq!(agent_list(&agents, ListShape::Array), format!("[{text}]"));
    }

    #[test]
    fn successes_without_a_resource_are_objects_too() {
        assert_eq!(
            result_taken(&RunId::new("r\"1"), &ToolCallId::new("c")),
            r#"{"success":true,"runId":"r\"1","toolCallId":"c"}"#
        );
        assert_eq!(thread_deleted(), r#"{"success":true,"result":"Thread deleted"}"#);
    }
}
