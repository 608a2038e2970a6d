//! Heads, retries, deadlines, keep-alives, cancel and lost clients (D10, D11, D14).

use crate::completions::{answer, text};
use crate::scene::{Answer, Piece, Scene};
use io_bridge::protocol::event::RunErrorCode;
use io_bridge::run::RunRefusal;
use serde_json::{Value, json};

fn body() -> Value {
    json!({"threadId": "t", "runId": "r", "messages": [{"id": "u", "role": "user", "content": "hello"}]})
}

fn slow_head(ms: u64) -> Answer {
    Answer {
        head_after_ms: ms,
        ..Answer::ok(answer("late"))
    }
}

#[test]
fn a_refusal_before_the_head_is_http() {
    let cases = [
        (
            Answer::refusal(401, &[], "no"),
            RunRefusal::UpstreamRefused(RunErrorCode::UpstreamError),
            1,
        ),
        (
            Answer::refusal(429, &[("retry-after", "7")], ""),
            RunRefusal::UpstreamRateLimited { retry_after_s: 7 },
            1,
        ),
        (
            Answer::refusal(
                400,
                &[],
                r#"{"error":{"code":"context_length_exceeded","message":"too long"}}"#,
            ),
            RunRefusal::UpstreamRefused(RunErrorCode::ContextLengthExceeded),
            2,
        ),
    ];
    for (refusal, expected, request_count) in cases {
        let played = Scene::new(json!({}), vec![refusal.clone(), refusal]).play(&body());
        assert_eq!(played.head, Err(expected));
        assert_eq!(played.events, []);
        assert!(!played.end.terminal_sent);
        assert_eq!(played.ports.http.requests.borrow().len(), request_count);
    }
}

#[test]
fn a_passing_failure_is_repeated_and_retry_after_is_kept() {
    let answers = vec![
        Answer::refusal(503, &[], "<html>"),
        Answer::refusal(429, &[("retry-after", "2")], ""),
        Answer::ok(answer("up")),
    ];
    let played = Scene::new(json!({}), answers).play(&body());
    assert_eq!(played.story()[3], "TEXT up");
    assert_eq!(played.elapsed_ms, 500 + 2_000);
}

#[test]
fn retries_end_with_the_configured_count() {
    let answers = vec![Answer::refusal(503, &[], ""); 3];
    let played = Scene::new(json!({}), answers).play(&body());
    assert_eq!(
        played.head,
        Err(RunRefusal::UpstreamRefused(RunErrorCode::UpstreamError))
    );
    assert_eq!(played.ports.http.requests.borrow().len(), 3);
    let mut once = body();
    once["forwardedProps"] = json!({"modelSettings": {"maxRetries": 0}});
    let played = Scene::new(json!({}), vec![Answer::refusal(503, &[], "")]).play(&once);
    assert_eq!(played.ports.http.requests.borrow().len(), 1);
}

#[test]
fn an_error_as_first_event_of_a_stream_is_repeated_once_nothing_was_shown() {
    let failing = Answer::ok("data: {\"error\":{\"message\":\"overloaded\",\"code\":503}}\n\n");
    let played = Scene::new(json!({}), vec![Answer::ok(""), Answer::ok(answer("up"))]).play(&body());
    assert_eq!(played.story()[3], "TEXT up");
    let played = Scene::new(json!({"maxRetries": 0}), vec![failing]).play(&body());
    assert_eq!(
        played.story()[1..],
        [
            "STEP_STARTED step-1",
            "STEP_FINISHED step-1",
            "RUN_ERROR upstream_error"
        ]
    );
}

#[test]
fn the_head_goes_out_after_its_wait_and_failures_are_events_then() {
    let played = Scene::new(json!({}), vec![slow_head(28_000)]).play(&body());
    assert_eq!(played.head, Ok(()));
    assert_eq!(played.keep_alives_ms, [20_000]);
    assert_eq!(played.story().last().unwrap(), "RUN_FINISHED");
    let refusal = Answer {
        head_after_ms: 6_000,
        ..Answer::refusal(401, &[], "")
    };
    let played = Scene::new(json!({}), vec![refusal]).play(&body());
    assert_eq!(
        played.story()[1..],
        [
            "STEP_STARTED step-1",
            "STEP_FINISHED step-1",
            "RUN_ERROR upstream_error"
        ]
    );
}

#[test]
fn a_silent_upstream_and_a_long_run_end_by_their_limits() {
    let played = Scene::new(json!({}), vec![slow_head(100_000)]).play(&body());
    assert_eq!(played.story().last().unwrap(), "RUN_ERROR upstream_timeout");
    assert_eq!(played.elapsed_ms, 60_000);
    let mut pieces = Vec::new();
    for _ in 0..100 {
        pieces.extend([Piece::Pause(30_000), Piece::Bytes(text("x").into_bytes())]);
    }
    let played = Scene::new(json!({}), vec![Answer::pieces(pieces)]).play(&body());
    assert_eq!(played.story().last().unwrap(), "RUN_ERROR run_timeout");
    assert_eq!(played.elapsed_ms, 15 * 60 * 1000);
    assert_eq!(played.ports.http.dropped_bodies.get(), 1);
}

#[test]
fn keep_alives_fill_every_silence_and_only_those() {
    let pieces = vec![
        Piece::Pause(40_000),
        Piece::Bytes(text("x").into_bytes()),
        Piece::Pause(20_000),
        Piece::Bytes(answer("y").into_bytes()),
    ];
    let played = Scene::new(json!({}), vec![Answer::pieces(pieces.clone())]).play(&body());
    assert_eq!(played.keep_alives_ms, [15_000, 30_000, 55_000]);
    let played = Scene::new(json!({"keepAliveMs": 0}), vec![Answer::pieces(pieces)]).play(&body());
    assert_eq!(played.keep_alives_ms, Vec::<u64>::new());
}

#[test]
fn a_lost_client_stops_the_run_and_drops_the_upstream() {
    let mut scene = Scene::new(
        json!({}),
        vec![Answer::pieces(vec![
            Piece::Bytes(text("x").into_bytes()),
            Piece::Hang,
        ])],
    );
    scene.leaves_after = Some(4);
    let played = scene.play(&body());
    assert!(!played.end.terminal_sent);
    assert_eq!(played.ports.http.dropped_bodies.get(), 1);
    assert_eq!(played.elapsed_ms, 0);
}

#[test]
fn cancel_stops_the_model_and_its_outcome_fits_the_peer() {
    let hanging = || {
        vec![Answer::pieces(vec![
            Piece::Bytes(text("x").into_bytes()),
            Piece::Hang,
        ])]
    };
    let mut new = body();
    new["protocolVersion"] = json!("1.0");
    for (body, last) in [
        (new, "RUN_FINISHED {\"type\":\"cancelled\"}"),
        (body(), "RUN_ERROR cancelled"),
    ] {
        let played = Scene::new(json!({}), hanging())
            .at(1_500, |control| control.cancel.set())
            .play(&body);
        assert_eq!(
            played.story()[4..],
            ["TEXT_END msg-1", "STEP_FINISHED step-1", last]
        );
        assert_eq!(played.elapsed_ms, 1_500);
        assert!(played.end.terminal_sent);
    }
}

#[test]
fn nothing_to_answer_is_refused() {
    let mut empty = body();
    empty["messages"] = json!([]);
    assert_eq!(
        Scene::new(json!({}), vec![]).play(&empty).head,
        Err(RunRefusal::NothingToAnswer)
    );
}

#[test]
fn a_wait_given_as_a_date_or_without_end_is_kept() {
    // The scene starts at 2026-11-29T00:00:00Z.
    for (asked, expected_s) in [
        ("Sun, 29 Nov 2026 00:01:00 GMT", 60),
        ("99999999999999999999", 1_000_000_000),
    ] {
        let refusal = Answer::refusal(429, &[("retry-after", asked)], "");
        let played = Scene::new(json!({}), vec![refusal]).play(&body());
        let expected = RunRefusal::UpstreamRateLimited {
            retry_after_s: expected_s,
        };
        assert_eq!(played.head, Err(expected), "{asked}");
        assert_eq!(played.ports.http.requests.borrow().len(), 1);
    }
}

#[test]
fn a_cancel_before_the_head_is_an_outcome_and_no_upstream_error() {
    let mut new = body();
    new["protocolVersion"] = json!("1.0");
    let played = Scene::new(json!({}), vec![slow_head(3_000)])
        .at(300, |control| control.cancel.set())
        .play(&new);
    assert_eq!(played.head, Ok(()));
    assert_eq!(
        played.story(),
        [
            "RUN_STARTED t r",
            "STEP_STARTED step-1",
            "STEP_FINISHED step-1",
            "RUN_FINISHED {\"type\":\"cancelled\"}",
        ]
    );
    assert_eq!(played.elapsed_ms, 300);
}
