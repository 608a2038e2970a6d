use serde_json::json;

use super::*;
use crate::protocol::read;

fn messages(values: Vec<Value>) -> Vec<(u64, Message)> {
    (0u64..)
        .zip(values)
        .map(|(at, value)| (1_800_000_000_000 + at, read::from_value(&value).unwrap()))
        .collect()
}

fn rows(values: Vec<Value>, pending: &[&str]) -> Vec<Value> {
    let messages = messages(values);
    let pending = pending.iter().map(|call| ToolCallId::new(*call)).collect();
    let results = Results::of(&messages, pending);
    mastra_rows(&ThreadId::new("t"), &ResourceId::new("ada"), messages, &results)
}

fn call(id: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}})
}

fn parts(values: Vec<Value>, pending: &[&str]) -> Value {
    rows(values, pending)
        .into_iter()
        .map(|row| row["content"]["parts"].clone())
        .collect()
}

fn invocation_of(call_value: Value, pending: &[&str], result: Option<Value>) -> Value {
    let mut values = vec![json!({"id": "a", "role": "assistant", "toolCalls": [call_value]})];
    values.extend(result);
    parts(values, pending)[0][0]["toolInvocation"].clone()
}

#[test]
fn everything_between_two_user_messages_is_one_row() {
    let turn = vec![
        json!({"id": "u1", "role": "user", "content": "What time is it?"}),
        json!({"id": "a1", "role": "assistant", "content": "Let me look.", "toolCalls": [call("c1", "{\"zone\":1.0}"), call("c2", "{}")]}),
        json!({"id": "m2", "role": "tool", "toolCallId": "c2", "content": "plain text"}),
        json!({"id": "m1", "role": "tool", "toolCallId": "c1", "content": "{\"hour\":12345678901234567890123}"}),
        json!({"id": "r", "role": "reasoning", "content": "hm"}),
        json!({"id": "a2", "role": "assistant", "content": "Late."}),
        json!({"id": "u2", "role": "user", "content": "Thanks"}),
    ];
    // Compared as text: numbers and the order of members are exact.
    let expected = [
        r#"{"id":"u1","role":"user","createdAt":"2027-01-15T08:00:00.000Z","threadId":"t","resourceId":"ada","type":"v2","content":{"format":2,"parts":[{"type":"text","text":"What time is it?"}],"content":"What time is it?"}}"#,
        r#"{"id":"a1","role":"assistant","createdAt":"2027-01-15T08:00:00.001Z","threadId":"t","resourceId":"ada","type":"v2","content":{"format":2,"parts":[{"type":"text","text":"Let me look."},{"type":"tool-invocation","toolInvocation":{"state":"result","toolCallId":"c1","toolName":"f","args":{"zone":1.0},"result":{"hour":12345678901234567890123}}},{"type":"tool-invocation","toolInvocation":{"state":"result","toolCallId":"c2","toolName":"f","args":{},"result":"plain text"}},{"type":"text","text":"Late."}],"content":"Let me look.\n\nLate."},"toolCalls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"zone\":1.0}"}},{"id":"c2","type":"function","function":{"name":"f","arguments":"{}"}}]}"#,
        r#"{"id":"u2","role":"user","createdAt":"2027-01-15T08:00:00.006Z","threadId":"t","resourceId":"ada","type":"v2","content":{"format":2,"parts":[{"type":"text","text":"Thanks"}],"content":"Thanks"}}"#,
    ];
    let texts: Vec<String> = rows(turn, &[]).iter().map(Value::to_string).collect();
    assert_eq!(texts, expected);
}

#[test]
fn text_parts_of_a_user_become_one() {
    let image = json!({"type": "image", "source": {"type": "url", "value": "https://x.test/a.png"}});
    let content = json!([{"type": "text", "text": "one"}, image, {"type": "text", "text": "two"}]);
    assert_eq!(
        parts(vec![json!({"id": "u", "role": "user", "content": content})], &[]),
        json!([[{"type": "text", "text": "one\n\ntwo"}]])
    );
    assert_eq!(
        parts(vec![json!({"id": "u", "role": "user", "content": [image]})], &[]),
        json!([[{"type": "text", "text": ""}]])
    );
}

#[test]
fn a_call_without_a_result_is_interrupted_unless_it_is_pending() {
    assert_eq!(
        invocation_of(call("c", "{}"), &[], None),
        json!({
            "state": "result", "toolCallId": "c", "toolName": "f", "args": {},
            "result": {"error": "The call was interrupted."}
        })
    );
    assert_eq!(
        invocation_of(call("c", "{}"), &["c"], None),
        json!({"state": "call", "toolCallId": "c", "toolName": "f", "args": {}})
    );
}

#[test]
fn results_are_values_and_cut_arguments_are_empty() {
    let result = |message: Value| invocation_of(call("c", "{\"cut"), &[], Some(message));
    let tool = |content: Value| json!({"id": "m", "role": "tool", "toolCallId": "c", "content": content});
    assert_eq!(result(tool(json!("[1]")))["args"], json!({}));
    assert_eq!(result(tool(json!("[1]")))["result"], json!([1]));
    assert_eq!(result(tool(json!("\"quoted\"")))["result"], json!("quoted"));
    assert_eq!(
        result(tool(json!([{"type": "text", "text": "{}"}])))["result"],
        json!({})
    );
    let failed = json!({"id": "m", "role": "tool", "toolCallId": "c", "content": "", "error": "no"});
    assert_eq!(result(failed)["result"], json!({"error": "no"}));
}

#[test]
fn blank_answers_are_no_parts() {
    let turn = vec![
        json!({"id": "a1", "role": "assistant", "content": " "}),
        json!({"id": "a2", "role": "assistant", "content": "yes"}),
    ];
    assert_eq!(parts(turn, &[]), json!([[{"type": "text", "text": "yes"}]]));
}
