use serde_json::{Map, Value, json};

use super::super::super::{KeptThread, ModelMessage, ModelRequest, ModelToolCall, ModelToolResult};
use super::body;
use crate::protocol::forwarded_props::{ModelSettings, ToolChoice};
use crate::protocol::id::{ResourceId, RunId, ThreadId};
use crate::protocol::read;

fn user(text: &str) -> ModelMessage {
    let parts = json!([{ "type": "text", "text": text }]);
    ModelMessage::User {
        parts: read::from_value(&parts).unwrap(),
    }
}

fn assistant(text: &str, ids: &[&str], vendor_state: Option<Value>) -> ModelMessage {
    let call = |id: &&str| ModelToolCall {
        id: (*id).to_owned(),
        name: "pick".to_owned(),
        arguments: "{\"n\":1.0}".to_owned(),
    };
    ModelMessage::Assistant {
        text: text.to_owned(),
        tool_calls: ids.iter().map(call).collect(),
        vendor_state,
    }
}

fn results(ids: &[&str]) -> ModelMessage {
    let result = |id: &&str| ModelToolResult {
        tool_call_id: (*id).to_owned(),
        name: "pick".to_owned(),
        content: format!("result of {id}"),
        images: vec![],
        is_error: false,
    };
    ModelMessage::ToolResults(ids.iter().map(result).collect())
}

fn kept() -> Option<KeptThread> {
    Some(KeptThread {
        owner: ResourceId::new("owner"),
        last_messages: None,
        is_read_only: false,
    })
}

/// What is sent of these messages.
fn sent(messages: Vec<ModelMessage>, kept_thread: Option<KeptThread>) -> Value {
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
        thread_id: ThreadId::new("thread"),
        kept_thread,
    };
    serde_json::from_str(&body(&request)).unwrap()
}

fn invocation(id: &str, result: &str) -> Value {
    let invocation = json!({
        "state": "result", "toolCallId": id, "toolName": "pick", "args": { "n": 1.0 }, "result": result,
    });
    json!({ "type": "tool-invocation", "toolInvocation": invocation })
}

#[test]
fn what_the_model_says_in_a_row_is_one_message_of_several_steps() {
    let messages = vec![
        user("q"),
        assistant("First.", &["a", "b"], None),
        results(&["a", "b"]),
        assistant("", &["c"], None),
        results(&["c"]),
        assistant("Last.", &[], None),
        user("next"),
    ];
    let parts = json!([
        { "type": "text", "text": "First." },
        invocation("a", "result of a"),
        invocation("b", "result of b"),
        { "type": "step-start" },
        invocation("c", "result of c"),
        { "type": "step-start" },
        { "type": "text", "text": "Last." },
    ]);
    let expected = json!({ "messages": [
        { "role": "user", "content": "q" },
        { "role": "assistant", "content": "First.Last.", "parts": parts },
        { "role": "user", "content": "next" },
    ] });
    assert_eq!(sent(messages, None), expected);
}

#[test]
fn a_server_that_keeps_the_thread_gets_only_what_is_new() {
    let memory = json!({ "thread": "thread", "resource": "owner" });
    let history = || vec![user("q"), assistant("a", &[], None)];
    let asked = [history(), vec![user("one"), user("two")]].concat();
    let said = |text: &str| json!({ "role": "user", "content": text });
    assert_eq!(
        sent(asked.clone(), kept()),
        json!({ "messages": [said("one"), said("two")], "memory": memory })
    );

    // Under the server's own ids the results complete the message it has stored.
    let state = json!({ "messageId": "m", "toolCallIds": ["vendor-a", "vendor-b"] });
    let step = vec![assistant("Look.", &["a", "b"], Some(state)), results(&["a", "b"])];
    let parts = json!([
        { "type": "text", "text": "Look." },
        invocation("vendor-a", "result of a"),
        invocation("vendor-b", "result of b"),
    ]);
    assert_eq!(
        sent([asked.clone(), step].concat(), kept()),
        json!({
            "messages": [{ "role": "assistant", "id": "m", "content": "Look.", "parts": parts }],
            "memory": memory,
        })
    );

    // Results that came with the next run: the ids are not known any more.
    let step = vec![assistant("", &["a"], None), results(&["a"])];
    let parts = json!([invocation("a", "result of a")]);
    assert_eq!(
        sent([asked, step].concat(), kept()),
        json!({ "messages": [{ "role": "assistant", "content": "", "parts": parts }], "memory": memory })
    );

    let ends_in_assistant = [history(), history()].concat();
    assert_eq!(
        sent(ends_in_assistant, kept())["messages"][0],
        json!({ "role": "user", "content": "q" })
    );
}

#[test]
fn a_thread_that_is_only_read_has_nothing_of_the_run() {
    let read_only = |last_messages| {
        Some(KeptThread {
            last_messages,
            is_read_only: true,
            ..kept().unwrap()
        })
    };
    let messages = vec![
        user("old"),
        assistant("a", &[], None),
        user("q"),
        assistant("", &["c"], None),
        results(&["c"]),
    ];
    let sent_first = sent(messages[..3].to_vec(), read_only(Some(0)));
    let memory = |last_messages: Value| {
        json!({
            "thread": "thread", "resource": "owner",
            "options": { "lastMessages": last_messages, "readOnly": true },
        })
    };
    let question = json!({ "role": "user", "content": "q" });
    assert_eq!(
        sent_first,
        json!({ "messages": [question], "memory": memory(json!(false)) })
    );
    let answer = json!({ "role": "assistant", "content": "", "parts": [invocation("c", "result of c")] });
    assert_eq!(
        sent(messages, read_only(Some(7))),
        json!({ "messages": [question, answer], "memory": memory(json!(7)) })
    );
}

#[test]
fn clients_state_no_facts_about_themselves() {
    let unknown_props = json!({
        "mastra__resourceId": "another", "mastra:goal": 1, "theme": "dark", "mastraTheme": 2,
    });
    let context = super::request_context(unknown_props.as_object().unwrap());
    assert_eq!(
        Value::Object(context),
        json!({ "theme": "dark", "mastraTheme": 2 })
    );
}
