//! A run's whole stream for whole answers of the upstream (contract 2.4, 2.5, D8 to D10).

use crate::completions::{answer, call, delta, finish, text};
use crate::scene::{Answer, Piece, Played, Scene};
use serde_json::{Value, json};

fn body() -> Value {
    json!({
        "threadId": "t", "runId": "r", "protocolVersion": "1.0",
        "messages": [{"id": "u", "role": "user", "content": "hello"}],
        "tools": [
            {"name": "pick", "description": "picks", "parameters": {
                "type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}},
            {"name": "ping", "description": "pings"}
        ]
    })
}

fn play(agent: Value, answers: Vec<Answer>) -> Played {
    Scene::new(agent, answers).play(&body())
}

#[test]
fn text_run_in_the_golden_order() {
    let stream = text("Hel") + &text("lo") + &finish("stop");
    let played = play(json!({}), vec![Answer::ok(stream)]);
    assert_eq!(played.head, Ok(()));
    assert_eq!(
        played.wire(),
        [
            json!({"type": "RUN_STARTED", "threadId": "t", "runId": "r", "protocolVersion": "1.0"}),
            json!({"type": "STEP_STARTED", "stepName": "step-1"}),
            json!({"type": "TEXT_MESSAGE_START", "messageId": "msg-1", "role": "assistant"}),
            json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "msg-1", "delta": "Hel"}),
            json!({"type": "TEXT_MESSAGE_CONTENT", "messageId": "msg-1", "delta": "lo"}),
            json!({"type": "TEXT_MESSAGE_END", "messageId": "msg-1"}),
            json!({"type": "STEP_FINISHED", "stepName": "step-1"}),
            json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}),
        ]
    );
    assert!(played.end.terminal_sent);
}

#[test]
fn server_tool_runs_here_and_its_result_reaches_the_next_step() {
    let first = text("Let me see.") + &call(0, "current_time", "") + &finish("stop");
    let played = play(
        json!({"tools": ["current_time"]}),
        vec![Answer::ok(first), Answer::ok(answer("Noon."))],
    );
    let result = played.story()[8].clone();
    assert!(result.starts_with("RESULT c1 {"), "{result}");
    assert_eq!(
        played.story(),
        [
            "RUN_STARTED t r",
            "STEP_STARTED step-1",
            "TEXT_START msg-1",
            "TEXT Let me see.",
            "TEXT_END msg-1",
            "START c1 current_time in msg-1",
            "ARGS c1 {}",
            "END c1",
            &result,
            "STEP_FINISHED step-1",
            "STEP_STARTED step-2",
            "TEXT_START msg-3",
            "TEXT Noon.",
            "TEXT_END msg-3",
            "STEP_FINISHED step-2",
            "RUN_FINISHED",
        ]
    );
    let messages = &played.upstream_body(1)["messages"];
    assert_eq!(messages[1]["tool_calls"][0]["id"], messages[2]["tool_call_id"]);
    assert_eq!(messages[2]["content"], result["RESULT c1 ".len()..]);
}

#[test]
fn calls_nobody_can_run_are_hidden_and_mended_by_the_model() {
    let first = call(0, "nothing", "{}")
        + &call(1, "pick", r#"{"n":"x"}"#)
        + &call(2, "ping", "{\"a\":")
        + &finish("tool_calls");
    let played = play(json!({}), vec![Answer::ok(first), Answer::ok(answer("Sorry."))]);
    assert_eq!(
        played.story(),
        [
            "RUN_STARTED t r",
            "STEP_STARTED step-1",
            "STEP_FINISHED step-1",
            "STEP_STARTED step-2",
            "TEXT_START msg-1",
            "TEXT Sorry.",
            "TEXT_END msg-1",
            "STEP_FINISHED step-2",
            "RUN_FINISHED",
        ]
    );
    let messages = played.upstream_body(1)["messages"].as_array().unwrap().clone();
    let contents: Vec<&str> = messages[2..]
        .iter()
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    assert_eq!(contents[0], r#"{"error":"There is no tool named `nothing`."}"#);
    assert!(
        contents[1].starts_with(r#"{"error":"The arguments do not fit the tool's schema. /n: "#),
        "{}",
        contents[1]
    );
    assert_eq!(contents[2], r#"{"error":"The arguments are not a JSON object."}"#);
}

#[test]
fn server_call_with_wrong_arguments_is_shown_with_an_error_result() {
    let first = call(0, "current_time", r#"{"utcOffsetMinutes":"x"}"#) + &finish("tool_calls");
    let played = play(
        json!({"tools": ["current_time"]}),
        vec![Answer::ok(first), Answer::ok(answer("ok"))],
    );
    let story = played.story();
    assert_eq!(
        story[2..5],
        [
            "START c1 current_time in msg-1",
            r#"ARGS c1 {"utcOffsetMinutes":"x"}"#,
            "END c1"
        ]
    );
    assert!(
        story[5].starts_with(r#"RESULT c1 {"error":"The arguments do not fit"#),
        "{}",
        story[5]
    );
}

#[test]
fn text_behind_a_call_is_a_new_segment() {
    let first = text("A.") + &call(0, "current_time", "{}") + &text("B.") + &finish("stop");
    let played = play(
        json!({"tools": ["current_time"]}),
        vec![Answer::ok(first), Answer::ok(answer("C."))],
    );
    let kinds: Vec<String> = played.story()[2..11]
        .iter()
        .map(|line| line.split(" {").next().unwrap().to_owned())
        .collect();
    assert_eq!(
        kinds,
        [
            "TEXT_START msg-1",
            "TEXT A.",
            "TEXT_END msg-1",
            "START c1 current_time in msg-1",
            "ARGS c1",
            "END c1",
            "TEXT_START msg-2",
            "TEXT B.",
            "TEXT_END msg-2",
        ]
    );
}

#[test]
fn the_last_step_withholds_tools_and_fails_only_if_the_model_insists() {
    let calls = || Answer::ok(call(0, "current_time", "{}") + &finish("tool_calls"));
    let agent = json!({"tools": ["current_time"], "maxSteps": 2});
    let played = play(agent.clone(), vec![calls(), Answer::ok(answer("Enough."))]);
    assert_eq!(played.story().last().unwrap(), "RUN_FINISHED");
    assert_eq!(played.upstream_body(1)["tool_choice"], "none");
    let played = play(agent, vec![calls(), calls()]);
    assert_eq!(
        played.story()[7..],
        [
            "STEP_STARTED step-2",
            "STEP_FINISHED step-2",
            "RUN_ERROR max_steps_exceeded"
        ]
    );
}

#[test]
fn a_cut_answer_is_a_success_only_at_the_clients_own_limit() {
    let cut = || vec![Answer::ok(text("half") + &finish("length"))];
    assert_eq!(
        play(json!({}), cut()).story().last().unwrap(),
        "RUN_ERROR output_truncated"
    );
    let agent_limit = json!({"modelSettings": {"maxOutputTokens": 5}});
    assert_eq!(
        play(agent_limit, cut()).story().last().unwrap(),
        "RUN_ERROR output_truncated"
    );
    let mut limited = body();
    limited["forwardedProps"] = json!({"modelSettings": {"maxTokens": 5}});
    let played = Scene::new(json!({}), cut()).play(&limited);
    assert_eq!(
        played.story().last().unwrap(),
        r#"RUN_FINISHED {"finishReason":"length"}"#
    );
    limited.as_object_mut().unwrap().remove("protocolVersion");
    let played = Scene::new(json!({}), cut()).play(&limited);
    assert_eq!(played.story().last().unwrap(), "RUN_FINISHED");
}

#[test]
fn a_withheld_answer_is_an_error() {
    let played = play(
        json!({}),
        vec![Answer::ok(text("It") + &finish("content_filter"))],
    );
    assert_eq!(
        played.story()[2..],
        [
            "TEXT_START msg-1",
            "TEXT It",
            "TEXT_END msg-1",
            "STEP_FINISHED step-1",
            "RUN_ERROR content_filtered"
        ]
    );
}

#[test]
fn a_died_upstream_closes_what_is_open_and_is_never_a_success() {
    let ways = [
        (
            vec![Piece::Bytes(text("half").into_bytes())],
            "upstream_truncated",
        ),
        (
            vec![Piece::Bytes(text("half").into_bytes()), Piece::Die],
            "upstream_truncated",
        ),
        (
            vec![Piece::Bytes((text("half") + "data: {\"choi\n\n").into_bytes())],
            "invalid_upstream_response",
        ),
        (
            vec![Piece::Bytes(
                (text("half") + "data: {\"error\":{\"message\":\"secret\"}}\n\n").into_bytes(),
            )],
            "upstream_error",
        ),
        (
            vec![Piece::Bytes(text("half").into_bytes()), Piece::Hang],
            "upstream_timeout",
        ),
    ];
    for (pieces, code) in ways {
        let played = play(json!({}), vec![Answer::pieces(pieces)]);
        assert_eq!(
            played.story(),
            [
                "RUN_STARTED t r",
                "STEP_STARTED step-1",
                "TEXT_START msg-1",
                "TEXT half",
                "TEXT_END msg-1",
                "STEP_FINISHED step-1",
                &format!("RUN_ERROR {code}"),
            ]
        );
        assert_eq!(
            played.ports.http.requests.borrow().len(),
            1,
            "nothing is repeated after output"
        );
        let told = serde_json::to_string(&played.wire()).unwrap();
        assert!(
            !told.contains("secret") && !told.contains("canary") && !told.contains("upstream.test"),
            "{told}"
        );
    }
}

#[test]
fn arguments_cut_at_a_limit_run_no_tool() {
    let opened = delta(
        json!({"tool_calls": [{"index": 0, "id": "v", "function": {"name": "ping", "arguments": "{\"a\":"}}]}),
    );
    let played = play(json!({}), vec![Answer::ok(opened + &finish("length"))]);
    assert_eq!(
        played.story(),
        [
            "RUN_STARTED t r",
            "STEP_STARTED step-1",
            "STEP_FINISHED step-1",
            "RUN_ERROR output_truncated"
        ]
    );
}

#[test]
fn show_errors_says_the_failure_in_a_text_of_its_own() {
    let agent = json!({"showErrors": true});
    let played = play(agent, vec![Answer::ok(text("half"))]);
    assert_eq!(
        played.story()[4..],
        [
            "TEXT_END msg-1",
            "STEP_FINISHED step-1",
            "TEXT_START msg-2",
            "TEXT The answer was interrupted: The model's answer was cut off.",
            "TEXT_END msg-2",
            "RUN_ERROR upstream_truncated",
        ]
    );
}

#[test]
fn live_arguments_follow_as_they_arrive_and_the_rest_is_held() {
    let piece = |index: u32, arguments: &str| {
        delta(json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]}))
    };
    let open = |index: u32| {
        let function = json!({"name": "current_time", "arguments": ""});
        delta(json!({"tool_calls": [{"index": index, "id": format!("v{index}"), "function": function}]}))
    };
    let agent = json!({"tools": ["current_time"], "toolCallStreaming": "live"});
    let first =
        open(0) + &open(1) + &piece(1, "{}") + &piece(0, "{") + &piece(0, "}") + &finish("tool_calls");
    let played = play(agent.clone(), vec![Answer::ok(first), Answer::ok(answer("ok"))]);
    assert_eq!(
        played.story()[2..9],
        [
            "START c1 current_time in msg-1",
            "ARGS c1 {",
            "ARGS c1 }",
            "END c1",
            "START c2 current_time in msg-1",
            "ARGS c2 {}",
            "END c2",
        ]
    );
    let played = play(agent, vec![Answer::ok(open(0) + &piece(0, "{\"utc"))]);
    assert_eq!(
        played.story()[2..],
        [
            "START c1 current_time in msg-1",
            "ARGS c1 {\"utc",
            "END c1",
            r#"RESULT c1 {"error":"The call was cut off."}"#,
            "STEP_FINISHED step-1",
            "RUN_ERROR upstream_truncated",
        ]
    );
}

#[test]
fn usage_goes_to_peers_that_know_it() {
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2,\"total_tokens\":9}}\n\n";
    let stream = || Answer::ok(text("x") + usage + &finish("stop"));
    let played = play(json!({}), vec![stream()]);
    let expected = json!([{"provider": "openai", "model": "test-1", "inputTokens": 7, "outputTokens": 2, "totalTokens": 9}]);
    assert_eq!(played.wire().last().unwrap()["usage"], expected);
    let mut old = body();
    old.as_object_mut().unwrap().remove("protocolVersion");
    let played = Scene::new(json!({}), vec![stream()]).play(&old);
    assert_eq!(
        played.wire().last().unwrap(),
        &json!({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"})
    );
}

#[test]
fn a_setting_the_upstream_lacks_is_dropped_with_a_warning() {
    let mut body = body();
    body["forwardedProps"] = json!({"modelSettings": {"topK": 3, "topP": 0.5, "maxRetries": 1}});
    let played = Scene::new(json!({}), vec![Answer::ok(answer("ok"))]).play(&body);
    let asked = played.upstream_body(0);
    assert_eq!((&asked["top_p"], &asked["top_k"]), (&json!(0.5), &Value::Null));
    let log = played.ports.log.0.borrow();
    let warnings: Vec<&String> = log
        .iter()
        .filter(|line| line.contains("model_setting_dropped"))
        .collect();
    assert_eq!(warnings, ["Warn model_setting_dropped runId=r setting=topK"]);
}

/// The lines of a run's log that tell of this.
fn logged(played: &Played, name: &str) -> Vec<String> {
    let log = played.ports.log.0.borrow();
    log.iter().filter(|line| line.contains(name)).cloned().collect()
}

#[test]
fn media_the_upstream_lacks_are_left_out_with_a_warning() {
    let mut body = body();
    let source = json!({"type": "data", "value": "QUJD", "mimeType": "video/mp4"});
    body["messages"][0]["content"] = json!([
        {"type": "text", "text": "What is this?"},
        {"type": "video", "source": source},
        {"type": "image", "source": {"type": "url", "value": "https://x.test/a.png"}},
    ]);
    let played = Scene::new(json!({}), vec![Answer::ok(answer("ok"))]).play(&body);
    let parts = played.upstream_body(0)["messages"][0]["content"]
        .as_array()
        .unwrap()
        .len();
    assert_eq!(parts, 2);
    assert_eq!(
        logged(&played, "content_part_skipped"),
        ["Warn content_part_skipped runId=r kind=video"]
    );
    assert_eq!(played.story().last().unwrap(), "RUN_FINISHED");
}

#[test]
fn an_answer_that_does_not_fit_the_schema_is_told_in_the_log() {
    let mut body = body();
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    body["forwardedProps"] = json!({"structuredOutput": {"schema": schema}});
    for (said, expected) in [("{\"n\":1}", 0), ("{\"n\":\"1\"}", 1), ("One.", 1)] {
        let played = Scene::new(json!({}), vec![Answer::ok(answer(said))]).play(&body);
        assert_eq!(
            logged(&played, "answer_does_not_fit_schema").len(),
            expected,
            "{said}"
        );
        assert_eq!(played.story().last().unwrap(), "RUN_FINISHED");
    }
}

#[test]
fn odd_reports_and_halved_characters_break_no_answer() {
    let halves = "data: {\"choices\":[{\"delta\":{\"content\":\"ok \\ud83d\"}}]}\n\ndata: {\"choices\":[{\"delta\":{\"content\":\"\\ude80 more\"}}]}\n\n";
    for usage in [
        r#"{"prompt_tokens":5.0}"#,
        r#"{"prompt_tokens":-1}"#,
        r#"{"prompt_tokens":"5"}"#,
        r#""x""#,
    ] {
        let report = format!("data: {{\"choices\":[],\"usage\":{usage}}}\n\n");
        let stream = halves.to_owned() + &report + &finish("stop");
        let played = play(json!({}), vec![Answer::ok(stream)]);
        assert_eq!(
            played.story()[3..],
            [
                "TEXT ok \u{fffd}",
                "TEXT \u{fffd} more",
                "TEXT_END msg-1",
                "STEP_FINISHED step-1",
                "RUN_FINISHED",
            ],
            "{usage}"
        );
    }
}
