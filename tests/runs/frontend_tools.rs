//! Front-end calls in both modes (contract 2.6, 3).

use crate::completions::{answer, call, finish, text};
use crate::scene::{Answer, Scene};
use io_bridge::protocol::event::Event;
use io_bridge::protocol::id::ToolCallId;
use io_bridge::protocol::tool::ToolResult;
use io_bridge::run::RunControl;
use io_bridge::run::mailbox::Delivery;
use serde_json::{Value, json};

fn body() -> Value {
    json!({
        "threadId": "t", "runId": "r", "protocolVersion": "1.0",
        "messages": [{"id": "u", "role": "user", "content": "hello"}],
        "tools": [{"name": "pick", "description": "picks"}, {"name": "ping", "description": "pings"}]
    })
}

fn two_calls() -> Answer {
    Answer::ok(text("Look.") + &call(0, "pick", "{\"n\":1}") + &call(1, "ping", "") + &finish("tool_calls"))
}

fn result(content: &str) -> ToolResult {
    ToolResult {
        content: content.to_owned(),
        is_error: false,
    }
}

fn deliver(control: &RunControl, index: usize, content: &str) -> Delivery {
    let id = control.mailbox.pending()[index].id.clone();
    control.mailbox.deliver(&id, result(content))
}

#[test]
fn results_come_into_the_same_run_in_their_own_order() {
    let played = Scene::new(json!({}), vec![two_calls(), Answer::ok(answer("Done."))])
        .at(1_000, |control| {
            assert_eq!(deliver(control, 1, "pong"), Delivery::Accepted)
        })
        .at(2_000, |control| {
            assert_eq!(deliver(control, 0, "{\"picked\":1.0}"), Delivery::Accepted)
        })
        .play(&body());
    assert_eq!(
        played.story(),
        [
            "RUN_STARTED t r",
            "STEP_STARTED step-1",
            "TEXT_START msg-1",
            "TEXT Look.",
            "TEXT_END msg-1",
            "START c1 pick in msg-1",
            "ARGS c1 {\"n\":1}",
            "END c1",
            "START c2 ping in msg-1",
            "ARGS c2 {}",
            "END c2",
            "RESULT c2 pong",
            "RESULT c1 {\"picked\":1.0}",
            "STEP_FINISHED step-1",
            "STEP_STARTED step-2",
            "TEXT_START msg-4",
            "TEXT Done.",
            "TEXT_END msg-4",
            "STEP_FINISHED step-2",
            "RUN_FINISHED",
        ]
    );
    let messages = &played.upstream_body(1)["messages"];
    assert_eq!(
        [&messages[2]["content"], &messages[3]["content"]],
        ["{\"picked\":1.0}", "pong"]
    );
}

#[test]
fn a_result_may_come_before_the_run_asks_for_it() {
    let played = Scene::new(json!({}), vec![two_calls(), Answer::ok(answer("Done."))])
        .on_event(|event, control| {
            if let Event::ToolCallEnd { tool_call_id } = event {
                assert_eq!(
                    control.mailbox.deliver(tool_call_id, result("early")),
                    Delivery::Accepted
                );
                assert_eq!(
                    control.mailbox.deliver(tool_call_id, result("early")),
                    Delivery::Repeated
                );
                assert_eq!(
                    control.mailbox.deliver(tool_call_id, result("other")),
                    Delivery::Conflict
                );
            }
        })
        .play(&body());
    assert_eq!(
        played.story()[10..13],
        ["END c2", "RESULT c1 early", "RESULT c2 early"]
    );
    assert_eq!(played.elapsed_ms, 0);
}

#[test]
fn a_call_without_answer_gets_an_error_at_its_deadline_and_the_run_goes_on() {
    let agent = json!({"toolTimeoutMs": 60_000, "keepAliveMs": 0});
    let played = Scene::new(agent, vec![two_calls(), Answer::ok(answer("Done."))])
        .at(1_000, |control| {
            assert_eq!(deliver(control, 0, "1"), Delivery::Accepted)
        })
        .at(59_999, |control| {
            assert_eq!(
                control.mailbox.deliver(&ToolCallId::new("tc_x"), result("1")),
                Delivery::Unknown
            )
        })
        .play(&body());
    assert_eq!(
        played.story()[11..14],
        [
            "RESULT c1 1",
            "RESULT c2 {\"error\":\"The tool did not answer in time.\"}",
            "STEP_FINISHED step-1"
        ]
    );
    assert_eq!(played.story().last().unwrap(), "RUN_FINISHED");
    assert_eq!(played.elapsed_ms, 60_000);
}

#[test]
fn waiting_for_a_person_is_not_working_time_and_is_kept_alive() {
    let agent = json!({"runTimeoutMs": 10_000});
    let played = Scene::new(agent, vec![two_calls(), Answer::ok(answer("Done."))])
        .at(22_000, |control| {
            deliver(control, 0, "1");
            deliver(control, 0, "2");
        })
        .play(&body());
    assert_eq!(played.story().last().unwrap(), "RUN_FINISHED");
    assert_eq!(played.keep_alives_ms, [5_000, 10_000, 15_000, 20_000]);
}

#[test]
fn a_mixed_turn_answers_the_server_call_while_the_person_thinks() {
    let first = call(0, "pick", "{}") + &call(1, "current_time", "{}") + &finish("tool_calls");
    let agent = json!({"tools": ["current_time"]});
    let played = Scene::new(agent, vec![Answer::ok(first), Answer::ok(answer("Done."))])
        .at(3_000, |control| {
            assert_eq!(deliver(control, 0, "picked"), Delivery::Accepted)
        })
        .play(&body());
    let story: Vec<String> = played.story()[2..10]
        .iter()
        .map(|line| line.split(" {").next().unwrap().to_owned())
        .collect();
    assert_eq!(
        story,
        [
            "START c1 pick in msg-1",
            "ARGS c1",
            "END c1",
            "START c2 current_time in msg-1",
            "ARGS c2",
            "END c2",
            "RESULT c2",
            "RESULT c1 picked",
        ]
    );
}

#[test]
fn a_lost_client_settles_the_calls_as_interrupted() {
    let mut scene = Scene::new(json!({}), vec![two_calls()]);
    // All events are out; the second keep-alive meets nobody.
    scene.leaves_after = Some(13);
    let played = scene.play(&body());
    assert_eq!(played.keep_alives_ms, [5_000, 10_000]);
    assert_eq!(
        played.story()[11..],
        [
            "RESULT c1 {\"error\":\"The call was interrupted.\"}",
            "RESULT c2 {\"error\":\"The call was interrupted.\"}",
            "STEP_FINISHED step-1",
            "RUN_FINISHED {\"type\":\"cancelled\"}",
        ]
    );
    assert!(!played.end.terminal_sent);
}

#[test]
fn next_run_mode_ends_with_the_calls_pending() {
    let first = || {
        let agent = json!({"tools": ["current_time"], "frontendTools": "next-run"});
        Scene::new(
            agent,
            vec![Answer::ok(
                call(0, "pick", "{}") + &call(1, "current_time", "{}") + &finish("stop"),
            )],
        )
    };
    let played = first().play(&body());
    let id = |index: usize| match &played.events[index] {
        Event::ToolCallStart { tool_call_id, .. } => tool_call_id.clone(),
        other => panic!("{other:?}"),
    };
    assert!(played.story()[8].starts_with("RESULT c2"));
    assert_eq!(
        played.story()[9..],
        [
            "STEP_FINISHED step-1",
            &format!(
                "RUN_FINISHED {{\"type\":\"success\",\"pendingToolCallIds\":[\"{}\"]}}",
                id(2)
            ),
        ]
    );
    let mut old = body();
    old.as_object_mut().unwrap().remove("protocolVersion");
    assert_eq!(first().play(&old).story().last().unwrap(), "RUN_FINISHED");
}

#[test]
fn tool_messages_of_the_input_complete_the_calls_of_the_run_before() {
    let mut next = body();
    next["messages"] = json!([
        {"id": "u", "role": "user", "content": "hello"},
        {"id": "a", "role": "assistant", "toolCalls": [
            {"id": "call_1", "type": "function", "function": {"name": "pick", "arguments": "{}"}}]},
        {"id": "t", "role": "tool", "toolCallId": "call_1", "content": "picked"}
    ]);
    let played = Scene::new(
        json!({"frontendTools": "next-run"}),
        vec![Answer::ok(answer("Done."))],
    )
    .play(&next);
    assert_eq!(played.story()[3..4], ["TEXT Done."]);
    assert_eq!(played.upstream_body(0)["messages"][2]["content"], "picked");
}

#[test]
fn a_tool_choice_that_names_a_front_end_tool_ends_after_the_call() {
    let mut chosen = body();
    chosen["forwardedProps"] = json!({"toolChoice": {"type": "function", "function": {"name": "pick"}}});
    let played = Scene::new(
        json!({}),
        vec![Answer::ok(call(0, "pick", "{}") + &finish("stop"))],
    )
    .play(&chosen);
    assert_eq!(played.upstream_body(0)["tool_choice"]["function"]["name"], "pick");
    assert!(
        played
            .story()
            .last()
            .unwrap()
            .starts_with("RUN_FINISHED {\"type\":\"success\"")
    );
}
