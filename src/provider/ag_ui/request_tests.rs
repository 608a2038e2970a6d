use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::super::super::table::Wire;
use super::super::super::{ModelMessage, ModelRequest, ModelTarget, ModelToolCall, ModelToolResult};
use super::body;
use crate::protocol::forwarded_props::{ModelSettings, ToolChoice};
use crate::protocol::id::{RunId, ThreadId};
use crate::protocol::read;

fn user(text: &str) -> ModelMessage {
    let parts = json!([{ "type": "text", "text": text }]);
    ModelMessage::User {
        parts: read::from_value(&parts).unwrap(),
    }
}

/// An answer with one call, and its result.
fn step(id: &str, vendor_state: Option<Value>) -> Vec<ModelMessage> {
    let call = ModelToolCall {
        id: id.to_owned(),
        name: "pick".to_owned(),
        arguments: "{}".to_owned(),
    };
    let result = ModelToolResult {
        tool_call_id: id.to_owned(),
        name: "pick".to_owned(),
        content: "red".to_owned(),
        images: vec![],
        is_error: false,
    };
    vec![
        ModelMessage::Assistant {
            text: String::new(),
            tool_calls: vec![call],
            vendor_state,
        },
        ModelMessage::ToolResults(vec![result]),
    ]
}

fn sent(thread_id: &str, messages: Vec<ModelMessage>) -> Value {
    let target = ModelTarget {
        wire: Wire::AgUi,
        provider: "ag-ui",
        base_url: "https://agent.example.test/run".to_owned(),
        api_key: None,
        model: String::new(),
        headers: Vec::new(),
        query: Vec::new(),
        wants_reasoning: false,
    };
    let request = ModelRequest {
        system: vec![],
        messages,
        tools: vec![],
        tool_choice: ToolChoice::Auto,
        settings: ModelSettings::default(),
        output_schema: None,
        state: None,
        unknown_props: Map::new(),
        run_id: RunId::new("run"),
        thread_id: ThreadId::new(thread_id),
        kept_thread: None,
    };
    serde_json::from_str(&body(&target, &request)).unwrap()
}

fn ids(sent: &Value) -> Vec<&str> {
    let messages = sent["messages"].as_array().unwrap().iter();
    messages.map(|message| message["id"].as_str().unwrap()).collect()
}

#[test]
fn an_input_has_every_member_older_agents_want() {
    let sent = sent("", vec![user("q")]);
    let id = ids(&sent)[0];
    let expected = json!({
        "threadId": "run",
        "runId": "run",
        "protocolVersion": "1.0",
        "state": {},
        "messages": [{ "id": id, "role": "user", "content": "q" }],
        "tools": [],
        "context": [],
        "forwardedProps": { "frontendTools": "next-run" },
    });
    assert_eq!(sent, expected);
}

#[test]
fn an_answer_goes_back_under_the_agents_own_ids_in_a_run_of_its_own() {
    let state = json!({ "messageId": "upstream-m", "toolCallIds": ["upstream-c"] });
    let first = [vec![user("q")], step("ours", Some(state.clone()))].concat();
    let second = [first.clone(), step("ours-2", Some(state))].concat();
    let sent_first = sent("thread", first);
    assert_eq!(sent_first["runId"], "run-2");
    let messages = &sent_first["messages"];
    let call =
        json!({ "id": "upstream-c", "type": "function", "function": { "name": "pick", "arguments": "{}" } });
    assert_eq!(
        messages[1],
        json!({ "id": "upstream-m", "role": "assistant", "toolCalls": [call] })
    );
    assert_eq!(
        [&messages[2]["toolCallId"], &messages[2]["content"]],
        ["upstream-c", "red"]
    );
    assert_eq!(sent("thread", second)["runId"], "run-3");
    assert_eq!(
        sent("thread", [vec![user("q")], step("c", None)].concat())["runId"],
        "run"
    );
}

#[test]
fn a_message_has_one_id_in_every_request_and_no_other_has_it() {
    let history = vec![user("yes"), user("no"), user("yes")];
    let longer = [history.clone(), step("c", None), vec![user("yes")]].concat();
    let (first, second) = (sent("thread", history), sent("thread", longer));
    assert_eq!(ids(&first), ids(&second)[..3]);
    let unique: HashSet<&str> = ids(&second).into_iter().collect();
    assert_eq!(unique.len(), 6);
}
