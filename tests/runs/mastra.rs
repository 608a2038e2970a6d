//! A Mastra server as upstream: its own tools and steps are shown, calls it leaves open are answered here and given back
//! in one message (contract 6).

use io_bridge::protocol::event::Event;
use io_bridge::protocol::tool::ToolResult;
use io_bridge::run::RunControl;
use io_bridge::run::mailbox::Delivery;
use serde_json::{Value, json};

use crate::scene::{Answer, Played, Scene};

fn chunk(kind: &str, payload: Value) -> String {
    let chunk = json!({ "type": kind, "runId": "upstream-run", "from": "AGENT", "payload": payload });
    format!("data: {chunk}\n\n")
}

fn begin(message_id: &str) -> String {
    chunk("step-start", json!({ "messageId": message_id }))
}

fn text(text: &str) -> String {
    chunk("text-delta", json!({ "id": "txt-0", "text": text }))
}

fn call(id: &str, name: &str, args: &Value) -> String {
    chunk(
        "tool-call",
        json!({ "toolCallId": id, "toolName": name, "args": args }),
    )
}

fn result(id: &str, result: &Value) -> String {
    chunk(
        "tool-result",
        json!({ "toolCallId": id, "toolName": "any", "result": result }),
    )
}

fn finish(kind: &str, reason: &str) -> String {
    let step = json!({ "reason": reason, "rawReason": reason });
    let usage = json!({ "inputTokens": 3, "outputTokens": 2, "totalTokens": 5 });
    chunk(kind, json!({ "stepResult": step, "output": { "usage": usage } }))
}

fn end(reason: &str) -> String {
    finish("step-finish", reason) + &finish("finish", reason) + "data: [DONE]\n\n"
}

fn says(words: &str) -> Answer {
    Answer::ok(begin("m-last") + &text(words) + &end("stop"))
}

/// A step of the server's own tool, then one with a call of it and one for the front end.
fn mixed_turn() -> Answer {
    Answer::ok(
        begin("m-1")
            + &text("First.")
            + &call("call_0", "weather", &json!({ "city": "Varna" }))
            + &result("call_0", &json!({ "degrees": 21.0 }))
            + &finish("step-finish", "tool-calls")
            + &begin("m-1")
            + &call("call_0", "pick", &json!({ "n": 1 }))
            + &call("call_1", "weather", &json!({ "city": "Sofia" }))
            + &result("call_1", &json!("cold"))
            + &end("tool-calls"),
    )
}

fn body(forwarded_props: &Value) -> Value {
    json!({
        "threadId": "t", "runId": "r", "protocolVersion": "1.0",
        "messages": [
            { "id": "u0", "role": "user", "content": "hi" },
            { "id": "a0", "role": "assistant", "content": "hello" },
            { "id": "u", "role": "user", "content": "pick" },
        ],
        "tools": [{ "name": "pick", "description": "picks" }],
        "forwardedProps": forwarded_props,
    })
}

fn deliver(control: &RunControl) {
    let id = control.mailbox.pending()[0].id.clone();
    let content = "{\"picked\":1.0}".to_owned();
    let result = ToolResult {
        content,
        is_error: false,
    };
    assert_eq!(control.mailbox.deliver(&id, result), Delivery::Accepted);
}

fn scene(agent: &Value, answers: Vec<Answer>) -> Scene {
    let mut members = json!({ "provider": "mastra", "model": "helper" });
    for (name, value) in agent.as_object().unwrap() {
        members[name] = value.clone();
    }
    Scene::new(members, answers)
}

fn play_mixed_turn(agent: &Value, forwarded_props: &Value) -> Played {
    scene(agent, vec![mixed_turn(), says("Done.")])
        .at(1_000, deliver)
        .play(&body(forwarded_props))
}

#[test]
fn a_mixed_turn_is_one_run_of_all_its_steps() {
    let played = play_mixed_turn(&json!({}), &json!({}));
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
            "RESULT c1 {\"degrees\":21.0}",
            "STEP_FINISHED step-1",
            "STEP_STARTED step-2",
            "START c2 pick in msg-3",
            "ARGS c2 {\"n\":1}",
            "END c2",
            "START c3 weather in msg-3",
            "ARGS c3 {\"city\":\"Sofia\"}",
            "END c3",
            "RESULT c3 cold",
            "RESULT c2 {\"picked\":1.0}",
            "STEP_FINISHED step-2",
            "STEP_STARTED step-3",
            "TEXT_START msg-6",
            "TEXT Done.",
            "TEXT_END msg-6",
            "STEP_FINISHED step-3",
            "RUN_FINISHED",
        ]
    );
    let wire = played.wire();
    let usage = &wire.last().unwrap()["usage"][0];
    assert_eq!([&usage["inputTokens"], &usage["outputTokens"]], [6, 4]);
}

/// The parts of an assistant message, calls as `name args -> result`.
fn parts(message: &Value) -> Vec<String> {
    let part = |part: &Value| match &part["toolInvocation"] {
        Value::Null => part["text"].as_str().unwrap_or("---").to_owned(),
        call => format!("{} {} -> {}", call["toolName"], call["args"], call["result"]),
    };
    message["parts"].as_array().unwrap().iter().map(part).collect()
}

#[test]
fn without_a_thread_there_the_whole_history_goes_along() {
    let played = play_mixed_turn(&json!({}), &json!({ "resourceId": "owner" }));
    let [first, second] = [played.upstream_body(0), played.upstream_body(1)];
    assert_eq!(first["memory"], Value::Null);
    assert_eq!(first["messages"].as_array().unwrap().len(), 3);
    let messages = second["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 4);
    assert_eq!(
        parts(&messages[3]),
        [
            "First.",
            "\"weather\" {\"city\":\"Varna\"} -> {\"degrees\":21.0}",
            "---",
            "\"pick\" {\"n\":1} -> {\"picked\":1.0}",
            "\"weather\" {\"city\":\"Sofia\"} -> \"cold\"",
        ]
    );
    assert_eq!(messages[3]["id"], Value::Null);
}

#[test]
fn a_thread_there_gets_what_is_new_and_its_open_message_completed() {
    let mut scene =
        scene(&json!({ "memory": "mastra" }), vec![mixed_turn(), says("Done.")]).at(1_000, deliver);
    scene.principal = Some(io_bridge::protocol::id::ResourceId::new("owner"));
    let played = scene.play(&body(&json!({ "resourceId": "owner" })));
    let [first, second] = [played.upstream_body(0), played.upstream_body(1)];
    let memory = json!({ "thread": "t", "resource": "owner" });
    assert_eq!([&first["memory"], &second["memory"]], [&memory, &memory]);
    assert_eq!(first["messages"], json!([{ "role": "user", "content": "pick" }]));
    assert_eq!(first["clientTools"], second["clientTools"]);
    let messages = second["messages"].as_array().unwrap();
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0]["id"], "m-1");
    let ids = messages[0]["parts"].as_array().unwrap().iter();
    let ids: Vec<_> = ids.map(|part| &part["toolInvocation"]["toolCallId"]).collect();
    assert_eq!(ids, ["call_0", "call_1"]);
}

#[test]
fn a_run_of_nobody_leaves_the_threads_there_alone() {
    let mut scene = scene(&json!({ "memory": "mastra" }), vec![says("Hello.")]);
    scene.principal = Some(io_bridge::protocol::id::ResourceId::new("owner"));
    let played = scene.play(&body(&json!({})));
    let sent = played.upstream_body(0);
    assert_eq!(sent["memory"], Value::Null);
    assert_eq!(sent["messages"].as_array().unwrap().len(), 3);
}

/// How a run ends whose server calls its own tool and then stops for this reason.
fn stopped_behind_its_tool(reason: &str, agent: &Value, forwarded_props: &Value) -> Vec<String> {
    let stops = begin("m") + &call("c", "weather", &json!({})) + &result("c", &json!("warm")) + &end(reason);
    let played = scene(agent, vec![Answer::ok(stops), says("Warm.")]).play(&body(forwarded_props));
    played.story()[2..].to_vec()
}

#[test]
fn a_server_that_stops_behind_its_own_tool_ends_the_run() {
    let shown = [
        "START c1 weather in msg-1",
        "ARGS c1 {}",
        "END c1",
        "RESULT c1 warm",
        "STEP_FINISHED step-1",
    ];
    let ended = |last: &'static str| [&shown[..], &[last]].concat();
    let withheld = json!({ "maxSteps": 1 });
    for (reason, agent, props, last) in [
        ("tool-calls", json!({}), json!({}), "RUN_FINISHED"),
        ("tool-calls", withheld, json!({}), "RUN_FINISHED"),
        ("length", json!({}), json!({}), "RUN_ERROR output_truncated"),
        (
            "length",
            json!({}),
            json!({ "modelSettings": { "maxTokens": 9 } }),
            "RUN_FINISHED {\"finishReason\":\"length\"}",
        ),
    ] {
        assert_eq!(
            stopped_behind_its_tool(reason, &agent, &props),
            ended(last),
            "{reason} {props}"
        );
    }
}

#[test]
fn a_forced_call_of_the_servers_tool_is_asked_about() {
    let props = json!({ "toolChoice": "required" });
    let stops =
        begin("m") + &call("c", "weather", &json!({})) + &result("c", &json!("warm")) + &end("tool-calls");
    let played = scene(&json!({}), vec![Answer::ok(stops), says("Warm.")]).play(&body(&props));
    assert_eq!(
        played.story()[6..],
        [
            "STEP_FINISHED step-1",
            "STEP_STARTED step-2",
            "TEXT_START msg-3",
            "TEXT Warm.",
            "TEXT_END msg-3",
            "STEP_FINISHED step-2",
            "RUN_FINISHED",
        ]
    );
    let limits = |index: usize| {
        let sent = played.upstream_body(index);
        (sent["toolChoice"].clone(), sent["maxSteps"].clone())
    };
    assert_eq!(limits(0), (json!("required"), json!(1)));
    assert_eq!(limits(1), (Value::Null, Value::Null));
}

#[test]
fn a_call_that_needs_an_approval_fails_and_the_model_is_told() {
    let stops = begin("m")
        + &call("c", "pay", &json!({}))
        + &chunk(
            "tool-call-approval",
            json!({ "toolCallId": "c", "toolName": "pay", "args": {} }),
        )
        + "data: [DONE]\n\n";
    let played = scene(&json!({}), vec![Answer::ok(stops), says("Sorry.")]).play(&body(&json!({})));
    let error = "{\"error\":\"The tool did not run: it needs an approval, which cannot be given here.\"}";
    assert_eq!(
        played.story()[5..7],
        [format!("RESULT c1 {error}"), "STEP_FINISHED step-1".to_owned()]
    );
    let told = &played.upstream_body(1)["messages"][3];
    assert_eq!(parts(told), [format!("\"pay\" {{}} -> {error}")]);
}

#[test]
fn a_call_the_server_answers_is_not_the_front_ends_any_more() {
    let answers = begin("m")
        + &call("c", "pick", &json!({}))
        + &result("c", &json!("here"))
        + &finish("step-finish", "tool-calls")
        + &text("Picked.")
        + &end("stop");
    let played = scene(&json!({}), vec![Answer::ok(answers)])
        .on_event(|event, control| {
            if let Event::ToolCallResult { tool_call_id, .. } = event {
                let content = "too late".to_owned();
                let late = ToolResult {
                    content,
                    is_error: false,
                };
                assert_eq!(control.mailbox.deliver(tool_call_id, late), Delivery::Expired);
            }
        })
        .play(&body(&json!({})));
    assert_eq!(
        played.story()[4..],
        [
            "END c1",
            "RESULT c1 here",
            "STEP_FINISHED step-1",
            "STEP_STARTED step-2",
            "TEXT_START msg-3",
            "TEXT Picked.",
            "TEXT_END msg-3",
            "STEP_FINISHED step-2",
            "RUN_FINISHED",
        ]
    );
}

#[test]
fn arguments_a_server_ran_without_being_able_to_read_are_shown_as_none() {
    let broken = begin("m")
        + &chunk(
            "tool-call-delta",
            json!({ "toolCallId": "c", "toolName": "weather", "argsTextDelta": "{\"city\":" }),
        )
        + &call("c", "weather", &json!({}))
        + &result("c", &json!({ "error": true }))
        + &end("tool-calls");
    let played = scene(&json!({}), vec![Answer::ok(broken)]).play(&body(&json!({})));
    assert_eq!(
        played.story()[2..6],
        [
            "START c1 weather in msg-1",
            "ARGS c1 {}",
            "END c1",
            "RESULT c1 {\"error\":true}"
        ]
    );
}

#[test]
fn a_cut_of_the_servers_model_is_an_error_at_once() {
    let cut = chunk(
        "step-finish",
        json!({ "stepResult": { "reason": "other", "isContinued": true } }),
    );
    let stream = begin("m") + &text("Hel") + &cut + &text("Again: hello") + &end("stop");
    let played = scene(&json!({}), vec![Answer::ok(stream)]).play(&body(&json!({})));
    assert_eq!(
        played.story()[3..],
        [
            "TEXT Hel",
            "TEXT_END msg-1",
            "STEP_FINISHED step-1",
            "RUN_ERROR upstream_truncated",
        ]
    );
    assert_eq!(played.ports.http.dropped_bodies.get(), 1);
}

#[test]
fn an_agent_with_rules_of_its_own_is_told_nothing_of_results() {
    let played = play_mixed_turn(&json!({ "instructions": "Be kind." }), &json!({}));
    for index in [0, 1] {
        assert_eq!(played.upstream_body(index)["system"], "Be kind.");
    }
}
