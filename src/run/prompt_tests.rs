use serde_json::json;

use super::*;
use crate::protocol::read;

fn messages(value: serde_json::Value) -> Vec<Message> {
    read::from_value(&value).unwrap()
}

fn text(text: &str) -> ModelMessage {
    let part = TextPart {
        text: text.to_owned(),
        id: None,
        metadata: None,
    };
    ModelMessage::User {
        parts: vec![ContentPart::Text(part)],
    }
}

fn answer(call: &str, name: &str, content: &str, is_error: bool) -> ModelToolResult {
    let (tool_call_id, name, content) = (call.to_owned(), name.to_owned(), content.to_owned());
    ModelToolResult {
        tool_call_id,
        name,
        content,
        images: vec![],
        is_error,
    }
}

fn call(id: &str, name: &str) -> ModelToolCall {
    ModelToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: "{}".to_owned(),
    }
}

#[test]
fn every_call_is_answered_once_and_directly_behind_it() {
    let wire = |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
    let history = messages(json!([
        {"id": "0", "role": "tool", "toolCallId": "gone", "content": "orphan"},
        {"id": "1", "role": "user", "content": "go"},
        {"id": "2", "role": "reasoning", "content": "hm"},
        {"id": "3", "role": "assistant", "content": " ", "toolCalls": [wire("a"), wire("b"), wire("c"), wire("d")]},
        {"id": "4", "role": "activity", "activityType": "x", "content": {}},
        {"id": "5", "role": "user", "content": "and?"},
        {"id": "6", "role": "tool", "toolCallId": "b", "content": "second"},
        {"id": "7", "role": "tool", "toolCallId": "a", "content": "", "error": "broke"},
        {"id": "8", "role": "tool", "toolCallId": "b", "content": "again"},
        {"id": "9", "role": "assistant", "content": "  "},
        {"id": "10", "role": "user", "content": ""}
    ]));
    assert_eq!(
        conversation(history, &[ToolCallId::new("d")], 1000),
        vec![
            text("go"),
            ModelMessage::Assistant {
                text: String::new(),
                tool_calls: vec![call("a", "f"), call("b", "f"), call("c", "f"), call("d", "f")],
                vendor_state: None,
            },
            ModelMessage::ToolResults(vec![
                answer("a", "f", r#"{"error":"broke"}"#, true),
                answer("b", "f", "second", false),
                answer("c", "f", r#"{"error":"The call was interrupted."}"#, true),
                answer(
                    "d",
                    "f",
                    r#"{"error":"The call has not been answered yet."}"#,
                    true
                ),
            ]),
            text("and?"),
        ]
    );
}

#[test]
fn a_result_over_the_limit_is_cut_at_a_character_with_a_marker() {
    assert_eq!(cut("aé€".to_owned(), 6), "aé€");
    assert_eq!(
        cut("aé€".to_owned(), 5),
        "aé\n[The result was cut: 3 of 6 bytes.]"
    );
}

#[test]
fn ids_vendors_refuse_go_out_as_one_hash() {
    assert_eq!(vendor_call_id("call_1-A"), "call_1-A");
    let long = "tc_".repeat(20);
    assert_eq!(vendor_call_id(&long), vendor_call_id(&long));
    assert_eq!(vendor_call_id(&long).len(), 37);
    assert_ne!(vendor_call_id("a b"), vendor_call_id("a c"));
}

#[test]
fn what_is_bound_to_dropped_messages_is_dropped_with_them() {
    let assistant = |vendor_state| ModelMessage::Assistant {
        text: "x".to_owned(),
        tool_calls: vec![],
        vendor_state,
    };
    let state = || Some(serde_json::json!({ "signature": "s" }));
    let whole = vec![text("1"), assistant(None), text("2"), assistant(state())];
    assert_eq!(newer_half(&whole), vec![text("2"), assistant(None)]);
    let uncut = vec![text("1"), assistant(state())];
    assert_eq!(newer_half(&uncut), uncut);
}

#[test]
fn the_newer_half_starts_at_a_user_message() {
    let assistant = ModelMessage::Assistant {
        text: "x".to_owned(),
        tool_calls: vec![],
        vendor_state: None,
    };
    let whole = vec![
        text("1"),
        assistant.clone(),
        text("2"),
        assistant.clone(),
        text("3"),
    ];
    assert_eq!(newer_half(&whole), vec![text("3")]);
    let tail = vec![text("1"), assistant.clone(), assistant];
    assert_eq!(newer_half(&tail), tail);
}
