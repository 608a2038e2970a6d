//! A conversation on a [`Sqlite`] store: runs begun and ended with few words, rows read whole.

use futures::executor::block_on;
use io_bridge::protocol::id::{AgentId, ObjectAddress, ResourceId, RunId, ThreadId, ToolCallId};
use io_bridge::protocol::message::Message;
use io_bridge::protocol::read;
use io_bridge::store::{BeginRun, Begun, EndRun, Persistence, PersistentRun, Quota, RunStatus, Store};
use serde_json::json;

use crate::sqlite::Sqlite;

/// Time of the first batch, Unix milliseconds.
pub const START_MS: u64 = 1_800_000_000_000;

/// How long a run may work.
pub const RUN_MS: u64 = 900_000;

/// The owner of everything unless a test says otherwise.
pub const OWNER: &str = "ada";

/// A run about to begin on thread `t`, as owner [`OWNER`].
pub fn begin(run_id: &str, incoming: Vec<Message>) -> BeginRun {
    // Each attempt lives in an object of its own.
    let object = format!(
        "{:0>64}",
        run_id
            .bytes()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
    );
    BeginRun {
        run_id: RunId::new(run_id),
        thread_id: ThreadId::new("t"),
        agent_id: AgentId::new("agent"),
        object: ObjectAddress::from_hex(&object).unwrap(),
        persistence: Persistence::Create(ResourceId::new(OWNER)),
        read_only: false,
        incoming,
        last_messages: 40,
        now_ms: START_MS,
        deadline_ms: START_MS + RUN_MS,
        incarnation: format!("of {run_id}"),
        quota: Quota::default(),
    }
}

/// Begins and expects a place in the thread.
pub fn begun(sqlite: &Sqlite, begin: BeginRun) -> PersistentRun {
    match block_on(Store::new(sqlite).begin_run(begin)).unwrap() {
        Begun::Persistent(run) => run,
        other => panic!("{other:?}"),
    }
}

/// What a run that finishes now writes.
pub fn finished(produced: Vec<Message>) -> EndRun {
    EndRun {
        status: RunStatus::Finished,
        produced,
        pending_tool_call_ids: Vec::new(),
        usage: Vec::new(),
        now_ms: START_MS + 1000,
    }
}

/// Ends a run.
pub fn end(sqlite: &Sqlite, run: &PersistentRun, end: EndRun) {
    block_on(Store::new(sqlite).end_run(run, end)).unwrap();
}

/// A whole run: the incoming messages, and what it produced.
pub fn run(sqlite: &Sqlite, run_id: &str, incoming: Vec<Message>, produced: Vec<Message>) -> PersistentRun {
    let run = begun(sqlite, begin(run_id, incoming));
    end(sqlite, &run, finished(produced));
    run
}

/// A user message that says its id.
pub fn user(id: &str) -> Message {
    user_saying(id, id)
}

/// A user message.
pub fn user_saying(id: &str, text: &str) -> Message {
    message(json!({"id": id, "role": "user", "content": text}))
}

/// An assistant message that says its id.
pub fn assistant(id: &str) -> Message {
    message(json!({"id": id, "role": "assistant", "content": id}))
}

/// An assistant message that calls `f`.
pub fn calling(id: &str, calls: &[&str]) -> Message {
    let calls: Vec<_> = calls
        .iter()
        .map(|call| json!({"id": call, "type": "function", "function": {"name": "f", "arguments": "{\"x\":1.0}"}}))
        .collect();
    message(json!({"id": id, "role": "assistant", "toolCalls": calls}))
}

/// A tool message.
pub fn answering(id: &str, call: &str, content: &str) -> Message {
    message(json!({"id": id, "role": "tool", "toolCallId": call, "content": content}))
}

/// A message from its JSON.
pub fn message(value: serde_json::Value) -> Message {
    read::from_value(&value).unwrap()
}

/// Ids in order.
pub fn ids(messages: &[Message]) -> Vec<&str> {
    messages.iter().map(|message| message.id.as_str()).collect()
}

/// Call ids.
pub fn calls(ids: &[&str]) -> Vec<ToolCallId> {
    ids.iter().map(|id| ToolCallId::new(*id)).collect()
}

/// Ids of the visible messages of thread `t`, in order.
pub fn visible(sqlite: &Sqlite) -> Vec<String> {
    texts(
        sqlite,
        "SELECT id FROM messages WHERE thread_id = 't' AND superseded_by IS NULL ORDER BY place",
    )
}

/// Ids of the hidden messages of thread `t`, in order.
pub fn hidden(sqlite: &Sqlite) -> Vec<String> {
    texts(
        sqlite,
        "SELECT id FROM messages WHERE thread_id = 't' AND superseded_by IS NOT NULL ORDER BY place",
    )
}

/// The single text column of a query.
pub fn texts(sqlite: &Sqlite, sql: &str) -> Vec<String> {
    sqlite
        .rows(sql)
        .iter()
        .map(|row| serde_json::from_str::<[String; 1]>(row).unwrap()[0].clone())
        .collect()
}
