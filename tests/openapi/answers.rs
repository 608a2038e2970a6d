//! Events and answers: each has the members its schema says, and no others.

use std::collections::{BTreeMap, BTreeSet};

use futures::executor::block_on;
use io_bridge::api::error::ApiError;
use io_bridge::api::reply;
use io_bridge::binding::sse::encode_json;
use io_bridge::protocol::agent::Agent;
use io_bridge::protocol::decode::Issue;
use io_bridge::protocol::event::{Event, EventKind, Outcome, RunErrorCode, RunFinished, TokenUsage};
use io_bridge::protocol::id::{AgentId, MessageId, ResourceId, RunId, ThreadId, ToolCallId};
use io_bridge::protocol::thread::{ListShape, MessageForm, Page, PageStart, Thread, ThreadListRequest};
use io_bridge::protocol::thread::{MessageListRequest, ThreadOrder};
use io_bridge::run::description::RunDescription;
use io_bridge::run::mailbox::ExpectedCall;
use io_bridge::store::{Lookup, Store};
use serde_json::{Map, Value, json};

use super::{chat, described, properties, resolve, set, sqlite};

/// Holds objects against a schema: what any has is a property, what all have is required, each of its right type.
#[track_caller]
fn assert_described(document: &Value, schema: &str, objects: &[Value]) {
    let keys = objects
        .iter()
        .map(|object| set(object.as_object().unwrap().keys()));
    let keys: Vec<BTreeSet<String>> = keys.collect();
    let any: BTreeSet<String> = keys.iter().flatten().cloned().collect();
    assert_eq!(properties(document, schema), any, "properties of {schema}");
    let all = keys.iter().skip(1).fold(keys[0].clone(), |all, next| &all & next);
    let required = document["components"]["schemas"][schema]["required"].as_array();
    let required = required.into_iter().flatten().map(|name| name.as_str().unwrap());
    assert_eq!(set(required), all, "required of {schema}");
    let mut whole = document.clone();
    whole["$ref"] = json!(format!("#/components/schemas/{schema}"));
    let compiled = io_bridge::tool::schema::Schema::compile(&whole).unwrap();
    for object in objects {
        assert_eq!(compiled.check(object), Ok(()), "{schema}: {object}");
    }
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

fn events() -> Vec<Event> {
    let (thread_id, run_id) = (ThreadId::new("t"), RunId::new("r"));
    let (message_id, tool_call_id) = (MessageId::new("m"), ToolCallId::new("c"));
    let finished = RunFinished {
        thread_id: thread_id.clone(),
        run_id: run_id.clone(),
        result: None,
        outcome: None,
        usage: Vec::new(),
    };
    let full = RunFinished {
        result: Some(json!({"finishReason": "length"})),
        outcome: Some(Outcome::Success {
            pending_tool_call_ids: vec![tool_call_id.clone()],
        }),
        usage: vec![TokenUsage::default()],
        ..finished.clone()
    };
    let (delta, step_name) = ("d".to_owned(), "step-1".to_owned());
    vec![
        Event::RunStarted { thread_id, run_id },
        Event::RunFinished(finished),
        Event::RunFinished(full),
        Event::RunError {
            message: "No.".to_owned(),
            code: RunErrorCode::UpstreamError,
        },
        Event::StepStarted {
            step_name: step_name.clone(),
        },
        Event::StepFinished { step_name },
        Event::TextMessageStart {
            message_id: message_id.clone(),
        },
        Event::TextMessageContent {
            message_id: message_id.clone(),
            delta: delta.clone(),
        },
        Event::TextMessageEnd {
            message_id: message_id.clone(),
        },
        Event::ReasoningStart {
            message_id: message_id.clone(),
        },
        Event::ReasoningMessageStart {
            message_id: message_id.clone(),
        },
        Event::ReasoningMessageContent {
            message_id: message_id.clone(),
            delta: delta.clone(),
        },
        Event::ReasoningMessageEnd {
            message_id: message_id.clone(),
        },
        Event::ReasoningEnd {
            message_id: message_id.clone(),
        },
        Event::ToolCallStart {
            tool_call_id: tool_call_id.clone(),
            tool_call_name: "n".to_owned(),
            parent_message_id: message_id.clone(),
        },
        Event::ToolCallArgs {
            tool_call_id: tool_call_id.clone(),
            delta,
        },
        Event::ToolCallEnd {
            tool_call_id: tool_call_id.clone(),
        },
        Event::ToolCallResult {
            message_id,
            tool_call_id,
            content: "{}".to_owned(),
        },
    ]
}

#[test]
fn every_event_is_described_with_its_members() {
    let document = described();
    let listed = document["components"]["schemas"]["Event"]["oneOf"]
        .as_array()
        .unwrap();
    let mut schemas = BTreeMap::new();
    for reference in listed {
        let name = reference["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
        let kind = resolve(&document, reference)["properties"]["type"]["const"]
            .as_str()
            .unwrap();
        schemas.insert(kind.to_owned(), name.to_owned());
    }
    assert_eq!(
        set(schemas.keys()),
        set(EventKind::ALL.iter().map(|kind| kind.as_str()))
    );
    let mut by_kind: BTreeMap<&str, Vec<Value>> = BTreeMap::new();
    for event in events() {
        let mut text = Vec::new();
        encode_json(&event, &mut text);
        let json = serde_json::from_slice(&text).unwrap();
        by_kind.entry(event.kind().as_str()).or_default().push(json);
    }
    assert_eq!(by_kind.len(), EventKind::ALL.len());
    for (kind, objects) in by_kind {
        assert_described(&document, &schemas[kind], &objects);
    }
    let full = TokenUsage {
        provider: Some("p".to_owned()),
        model: Some("m".to_owned()),
        input_tokens: Some(1),
        output_tokens: Some(1),
        total_tokens: Some(1),
        reasoning_tokens: Some(1),
        cached_input_tokens: Some(1),
        cache_write_input_tokens: Some(1),
    };
    assert_described(
        &document,
        "TokenUsage",
        &[json!(full), json!(TokenUsage::default())],
    );
    let success = Outcome::Success {
        pending_tool_call_ids: vec![ToolCallId::new("c")],
    };
    assert_described(&document, "OutcomeSuccess", &[json!(success)]);
    assert_described(&document, "OutcomeCancelled", &[json!(Outcome::Cancelled)]);
}

fn checks() -> Value {
    json!({"database": "failing", "search": "absent", "object": "ok", "agents": {"a": "not_configured"}})
}

#[test]
fn every_error_body_is_described() {
    let issue = Issue {
        pointer: "/q".to_owned(),
        message: "is odd".to_owned(),
    };
    let errors = [
        ApiError::forbidden(),
        ApiError::invalid_query(vec![issue]),
        ApiError::run_conflict("running", &ThreadId::new("t"), "/runs/r/events".to_owned()),
        ApiError::generation_changed(1),
        ApiError::unhealthy(checks()),
    ];
    let bodies: Vec<Value> = errors.iter().map(|error| parsed(&error.body())).collect();
    let document = described();
    assert_described(&document, "Error", &bodies);
    assert_described(&document, "Issue", bodies[1]["issues"].as_array().unwrap());
}

fn thread() -> Thread {
    Thread {
        id: ThreadId::new("t"),
        title: Some("Plan".to_owned()),
        resource_id: ResourceId::new("ada"),
        created_at_ms: 0,
        updated_at_ms: 1,
        metadata: Map::new(),
    }
}

#[test]
fn every_answer_about_threads_is_described() {
    let document = described();
    let request = ThreadListRequest {
        owner: ResourceId::new("ada"),
        order: ThreadOrder::UpdatedAt,
        descending: true,
        search: None,
        limit: 1,
        start: PageStart::Offset(0),
    };
    let page = Page {
        items: vec![thread()],
        total: 2,
        has_more: true,
        next_cursor: Some("c".to_owned()),
    };
    let untitled = Thread {
        title: None,
        ..thread()
    };
    let snippets = [(ThreadId::new("t"), "so".to_owned())];
    let found = parsed(&reply::thread_list(&page, &request, ListShape::Object, &snippets));
    let last = parsed(&reply::thread_list(
        &Page::empty(),
        &request,
        ListShape::Object,
        &[],
    ));
    let threads = [
        found["threads"][0].clone(),
        parsed(&reply::thread(&untitled, &[])),
        parsed(&reply::thread(&thread(), &[RunId::new("r")])),
    ];
    assert_described(&document, "Thread", &threads);
    assert_described(&document, "ThreadList", &[found, last]);
    let asked = MessageListRequest {
        thread_id: ThreadId::new("t"),
        limit: 2,
        offset: 0,
        form: MessageForm::AgUi,
        with_superseded: false,
    };
    let messages = Page::<Value> {
        items: Vec::new(),
        total: 0,
        has_more: false,
        next_cursor: None,
    };
    let messages = parsed(&reply::message_list(&messages, &asked));
    assert_described(&document, "MessageList", &[messages]);
    let export = reply::thread_export_start(&thread()) + reply::THREAD_EXPORT_END;
    assert_described(&document, "ThreadExport", &[parsed(&export)]);
    assert_described(&document, "ThreadDeleted", &[parsed(&reply::thread_deleted())]);
    let erased = [true, false].map(|is_complete| parsed(&reply::owner_erased(is_complete)));
    assert_described(&document, "Erased", &erased);
}

#[test]
fn every_row_of_messages_is_described() {
    let sqlite = sqlite::Sqlite::new();
    let produced = vec![
        chat::calling("a1", &["c1"]),
        chat::answering("m1", "c1", "{}"),
        chat::assistant("a2"),
    ];
    chat::run(&sqlite, "r1", vec![chat::user("u1")], produced);
    chat::run(
        &sqlite,
        "r2",
        vec![chat::user("u2")],
        vec![chat::calling("a3", &["c2"])],
    );
    let request = MessageListRequest {
        thread_id: ThreadId::new("t"),
        limit: 100,
        offset: 0,
        form: MessageForm::Mastra,
        with_superseded: false,
    };
    let page = block_on(Store::new(&sqlite).messages(&request, None)).unwrap();
    let Lookup::Found(page) = page else {
        unreachable!("the thread is there");
    };
    let rows = page.items;
    let document = described();
    assert_described(&document, "MastraMessage", &rows);
    let contents: Vec<Value> = rows.iter().map(|row| row["content"].clone()).collect();
    assert_described(&document, "MastraContent", &contents);
    let parts = contents
        .iter()
        .flat_map(|content| content["parts"].as_array().unwrap().clone());
    let (texts, calls): (Vec<Value>, Vec<Value>) = parts.partition(|part| part["type"] == "text");
    assert_described(&document, "MastraText", &texts);
    assert_described(&document, "MastraToolInvocation", &calls);
    let invocation = calls[0]["toolInvocation"].as_object().unwrap();
    assert_eq!(properties(&document, "ToolInvocation"), set(invocation.keys()));
}

#[test]
fn every_other_answer_is_described() {
    let document = described();
    assert_described(
        &document,
        "Service",
        &[parsed(&reply::service("io-bridge", "1.2.3", 4))],
    );
    let health = [None, Some(checks())].map(|checks| parsed(&reply::health("ok", checks)));
    assert_described(&document, "Health", &health);
    assert_described(&document, "HealthChecks", &[checks()]);
    let taken = reply::result_taken(&RunId::new("r"), &ToolCallId::new("c"));
    assert_described(&document, "ResultTaken", &[parsed(&taken)]);
    let agent = Agent {
        id: AgentId::new("a"),
        name: "A".to_owned(),
        description: None,
        provider: "demo".to_owned(),
        model_id: "demo-1".to_owned(),
        capabilities: json!({}),
    };
    let told = Agent {
        description: Some("Helps.".to_owned()),
        ..agent.clone()
    };
    let agents = [agent, told].map(|agent| parsed(&reply::agent(&agent)));
    assert_described(&document, "Agent", &agents);
    assert_described(
        &document,
        "AgentList",
        &[parsed(&reply::agent_list(&[], ListShape::Object))],
    );
    let waiting = RunDescription {
        run_id: RunId::new("r"),
        thread_id: ThreadId::new("t"),
        agent_id: AgentId::new("a"),
        status: "waiting",
        generation: Some(0),
        started_at_ms: 0,
        finished_at_ms: None,
        event_count: Some(7),
        pending: vec![ExpectedCall {
            id: ToolCallId::new("c"),
            name: "n".to_owned(),
            arguments: "{}".to_owned(),
            expires_at_ms: 1,
        }],
    };
    let over = RunDescription {
        status: "finished",
        generation: None,
        finished_at_ms: Some(1),
        event_count: None,
        pending: Vec::new(),
        ..waiting.clone()
    };
    let waiting = waiting.to_json();
    assert_described(
        &document,
        "PendingToolCall",
        waiting["pendingToolCalls"].as_array().unwrap(),
    );
    assert_described(&document, "Run", &[waiting, over.to_json()]);
}
