//! Reasoning as events (AG-UI 1.17): only where the agent says so and the peer knows them, closed before anything else.

use serde_json::{Value, json};

use crate::completions::{answer, call, delta, finish, text};
use crate::scene::{Answer, Piece, Played, Scene};

fn thought(words: &str) -> String {
    delta(json!({ "reasoning_content": words }))
}

fn body(version: Option<&str>) -> Value {
    let mut body = json!({
        "threadId": "t", "runId": "r", "messages": [{"id": "u", "role": "user", "content": "hello"}],
        "tools": [],
    });
    if let Some(version) = version {
        body["protocolVersion"] = json!(version);
    }
    body
}

fn play(agent: Value, answers: Vec<Answer>) -> Played {
    Scene::new(agent, answers).play(&body(Some("1.0")))
}

fn thoughtful() -> Answer {
    Answer::ok(thought("Hm") + &thought("m.") + &text("Hi.") + &finish("stop"))
}

#[test]
fn reasoning_is_a_span_with_one_message_closed_before_the_text() {
    let played = play(json!({"reasoning": "emit"}), vec![thoughtful()]);
    assert_eq!(
        played.story(),
        [
            "RUN_STARTED t r",
            "STEP_STARTED step-1",
            "REASONING_START msg-1",
            "REASONING_MESSAGE_START",
            "REASONING Hm",
            "REASONING m.",
            "REASONING_MESSAGE_END",
            "REASONING_END msg-1",
            "TEXT_START msg-2",
            "TEXT Hi.",
            "TEXT_END msg-2",
            "STEP_FINISHED step-1",
            "RUN_FINISHED",
        ]
    );
}

#[test]
fn reasoning_is_dropped_unless_the_agent_emits_it_and_the_peer_declares_a_version() {
    let silent = [
        "RUN_STARTED t r",
        "STEP_STARTED step-1",
        "TEXT_START msg-1",
        "TEXT Hi.",
        "TEXT_END msg-1",
        "STEP_FINISHED step-1",
        "RUN_FINISHED",
    ];
    assert_eq!(play(json!({}), vec![thoughtful()]).story(), silent);
    let old = Scene::new(json!({"reasoning": "emit"}), vec![thoughtful()]).play(&body(None));
    assert_eq!(old.story(), silent);
}

#[test]
fn reasoning_closes_a_text_and_is_closed_by_a_call_and_by_the_end() {
    let first = text("Look.") + &thought("Then.") + &call(0, "current_time", "{}") + &finish("tool_calls");
    let agent = json!({"reasoning": "emit", "tools": ["current_time"]});
    let played = play(
        agent,
        vec![Answer::ok(first), Answer::ok(thought("Done.") + &finish("stop"))],
    );
    let mut story = played.story();
    assert!(story[13].starts_with("RESULT c1 {"));
    story.remove(13);
    assert_eq!(
        story,
        [
            "RUN_STARTED t r",
            "STEP_STARTED step-1",
            "TEXT_START msg-1",
            "TEXT Look.",
            "TEXT_END msg-1",
            "REASONING_START msg-2",
            "REASONING_MESSAGE_START",
            "REASONING Then.",
            "REASONING_MESSAGE_END",
            "REASONING_END msg-2",
            "START c1 current_time in msg-1",
            "ARGS c1 {}",
            "END c1",
            "STEP_FINISHED step-1",
            "STEP_STARTED step-2",
            "REASONING_START msg-4",
            "REASONING_MESSAGE_START",
            "REASONING Done.",
            "REASONING_MESSAGE_END",
            "REASONING_END msg-4",
            "STEP_FINISHED step-2",
            "RUN_FINISHED",
        ]
    );
}

#[test]
fn shown_reasoning_is_closed_before_an_error_and_no_attempt_is_repeated() {
    let cut = || Answer::pieces(vec![Piece::Bytes(thought("Hm").into_bytes()), Piece::Die]);
    let played = play(
        json!({"reasoning": "emit"}),
        vec![cut(), Answer::ok(answer("Never asked."))],
    );
    assert_eq!(
        played.story(),
        [
            "RUN_STARTED t r",
            "STEP_STARTED step-1",
            "REASONING_START msg-1",
            "REASONING_MESSAGE_START",
            "REASONING Hm",
            "REASONING_MESSAGE_END",
            "REASONING_END msg-1",
            "STEP_FINISHED step-1",
            "RUN_ERROR upstream_truncated",
        ]
    );
    // What was not shown may be asked for again.
    let played = play(json!({}), vec![cut(), Answer::ok(answer("Once more."))]);
    assert_eq!(played.story()[3], "TEXT Once more.");
}

#[test]
fn reasoning_waits_behind_a_live_call() {
    let first = call(0, "current_time", "{\"utc")
        + &thought("Hm.")
        + &delta(json!({
            "tool_calls": [{"index": 0, "function": {"arguments": "Offset\":\"+00:00\"}"}}],
        }));
    let agent = json!({"reasoning": "emit", "tools": ["current_time"], "toolCallStreaming": "live"});
    let played = play(
        agent,
        vec![
            Answer::ok(first + &finish("tool_calls")),
            Answer::ok(answer("Noon.")),
        ],
    );
    let story = played.story();
    let at = |line: &str| story.iter().position(|told| told == line);
    assert!(at("END c1") < at("REASONING_MESSAGE_START"), "{story:?}");
    assert!(
        at("REASONING Hm.").is_some() && at("RUN_FINISHED").is_some(),
        "{story:?}"
    );
}
