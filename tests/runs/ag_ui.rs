//! Another AG-UI agent as upstream: its events pass, repaired; calls it leaves open are answered here and given to a
//! second run of it, and the client sees one run (contract 6).

use io_bridge::protocol::tool::ToolResult;
use io_bridge::run::RunControl;
use io_bridge::run::mailbox::Delivery;
use serde_json::{Value, json};

use crate::scene::{Answer, Scene};

fn event(mut members: Value, kind: &str) -> String {
    members["type"] = kind.into();
    format!("data: {members}\n\n")
}

fn begin() -> String {
    event(json!({ "threadId": "t", "runId": "r" }), "RUN_STARTED")
}

fn finish() -> String {
    event(json!({ "threadId": "t", "runId": "r" }), "RUN_FINISHED")
}

fn text(id: &str, delta: &str) -> String {
    event(json!({ "messageId": id, "delta": delta }), "TEXT_MESSAGE_CHUNK")
}

fn call(id: &str, name: &str, arguments: &str) -> String {
    event(
        json!({ "toolCallId": id, "toolCallName": name, "parentMessageId": "up-m" }),
        "TOOL_CALL_START",
    ) + &event(json!({ "toolCallId": id, "delta": arguments }), "TOOL_CALL_ARGS")
        + &event(json!({ "toolCallId": id }), "TOOL_CALL_END")
}

fn result(id: &str, content: &str) -> String {
    event(
        json!({ "messageId": "up-t", "toolCallId": id, "content": content }),
        "TOOL_CALL_RESULT",
    )
}

fn body() -> Value {
    json!({
        "threadId": "t", "runId": "r", "protocolVersion": "1.0",
        "messages": [{ "id": "u", "role": "user", "content": "pick" }],
        "tools": [{ "name": "pick", "description": "picks" }],
        "state": { "page": 1.0 },
        "forwardedProps": { "theme": "dark" },
    })
}

fn scene(answers: Vec<Answer>) -> Scene {
    Scene::new(json!({ "provider": "ag-ui", "model": "" }), answers)
}

fn deliver(control: &RunControl) {
    let id = control.mailbox.pending()[0].id.clone();
    let result = ToolResult {
        content: "red".to_owned(),
        is_error: false,
    };
    assert_eq!(control.mailbox.deliver(&id, result), Delivery::Accepted);
}

#[test]
fn calls_left_open_are_answered_here_and_continued_in_a_second_run() {
    let first = begin()
        + &text("up-m", "First.")
        + &call("up-a", "weather", "{\"city\":\"Varna\"}")
        + &result("up-a", "warm")
        + &text("up-m2", "Second.")
        + &call("up-b", "pick", "{\"n\":1}")
        + &event(json!({ "name": "x", "value": 1 }), "CUSTOM")
        + &finish();
    let second = begin() + &text("up-m3", "Red.") + &finish();
    let played = scene(vec![Answer::ok(first), Answer::ok(second)])
        .at(1_000, deliver)
        .play(&body());
    assert_eq!(
        played.story(),
        [
            "RUN_STARTED t r",
            "STEP_STARTED step-1",
            "TEXT_START msg-1",
            "TEXT First.",
            "TEXT_END msg-1",
            "START c1 weather in msg-1",
            "ARGS c1 {\"city\":\"Varna\"}",
            "END c1",
            "RESULT c1 warm",
            "STEP_FINISHED step-1",
            "STEP_STARTED step-2",
            "TEXT_START msg-3",
            "TEXT Second.",
            "TEXT_END msg-3",
            "START c2 pick in msg-3",
            "ARGS c2 {\"n\":1}",
            "END c2",
            "RESULT c2 red",
            "STEP_FINISHED step-2",
            "STEP_STARTED step-3",
            "TEXT_START msg-5",
            "TEXT Red.",
            "TEXT_END msg-5",
            "STEP_FINISHED step-3",
            "RUN_FINISHED",
        ]
    );
    let [first, second] = [played.upstream_body(0), played.upstream_body(1)];
    assert_eq!([&first["runId"], &first["threadId"]], ["r", "t"]);
    assert_eq!(second["runId"], "r-3");
    assert_eq!(
        [&first["state"], &second["state"]],
        [&json!({ "page": 1.0 }), &first["state"]]
    );
    assert_eq!(first["forwardedProps"]["theme"], "dark");
    assert_eq!(second["tools"], first["tools"]);
    let said = |message: &Value| {
        let call = &message["toolCalls"][0];
        let call_id = call["id"].as_str().or(message["toolCallId"].as_str());
        format!(
            "{} {} {}",
            message["role"],
            message["content"],
            call_id.unwrap_or("-")
        )
    };
    let messages = second["messages"].as_array().unwrap();
    let messages: Vec<String> = messages.iter().map(said).collect();
    assert_eq!(
        messages,
        [
            "\"user\" \"pick\" -",
            "\"assistant\" \"First.\" up-a",
            "\"tool\" \"warm\" up-a",
            "\"assistant\" \"Second.\" up-b",
            "\"tool\" \"red\" up-b",
        ]
    );
}

#[test]
fn the_agents_failure_is_the_runs_with_everything_closed() {
    let failed = begin()
        + &text("m", "Once")
        + &event(json!({ "message": "private words", "code": "x" }), "RUN_ERROR");
    let played = scene(vec![Answer::ok(failed)]).play(&body());
    assert_eq!(
        played.story()[3..],
        [
            "TEXT Once",
            "TEXT_END msg-1",
            "STEP_FINISHED step-1",
            "RUN_ERROR upstream_error"
        ]
    );
    let told = format!("{:?}", played.wire());
    assert!(!told.contains("private words"));
}
