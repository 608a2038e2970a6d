use super::super::super::ModelDecoder;
use super::super::super::sse_answer::SseAnswerDecoder;
use serde_json::json;

use super::*;

/// The events of payloads, and how the answer ends.
fn read(payloads: &[Value]) -> (Vec<ModelEvent>, Result<(), ProviderError>) {
    let mut decoder = SseAnswerDecoder::new(Answer::default());
    let mut events = Vec::new();
    for payload in payloads {
        let frame = format!("data: {payload}\n\n");
        if let Err(error) = decoder.feed(frame.as_bytes(), &mut events) {
            return (events, Err(error));
        }
    }
    let end = decoder.end(&mut events);
    (events, end)
}

fn start(index: u64, block: Value) -> Value {
    json!({ "type": "content_block_start", "index": index, "content_block": block })
}

fn delta(index: u64, delta: Value) -> Value {
    json!({ "type": "content_block_delta", "index": index, "delta": delta })
}

fn text_delta(index: u64, text: &str) -> Value {
    delta(index, json!({ "type": "text_delta", "text": text }))
}

fn stop(index: u64) -> Value {
    json!({ "type": "content_block_stop", "index": index })
}

fn call(index: u64, id: &str, name: &str, input: Value) -> Value {
    start(
        index,
        json!({ "type": "tool_use", "id": id, "name": name, "input": input }),
    )
}

fn input(index: u64, json: &str) -> Value {
    delta(index, json!({ "type": "input_json_delta", "partial_json": json }))
}

fn end(stop_reason: &str) -> [Value; 2] {
    [
        json!({ "type": "message_delta", "delta": { "stop_reason": stop_reason } }),
        json!({ "type": "message_stop" }),
    ]
}

fn text(text: &str) -> ModelEvent {
    ModelEvent::Text(text.to_owned())
}

fn call_start(slot: usize, id: &str, name: &str) -> ModelEvent {
    ModelEvent::ToolCallStart {
        slot,
        vendor_id: Some(id.to_owned()),
        name: name.to_owned(),
    }
}

fn arguments(slot: usize, delta: &str) -> ModelEvent {
    ModelEvent::ToolCallArguments {
        slot,
        delta: delta.to_owned(),
    }
}

#[test]
fn thinking_is_kept_in_its_place_beside_calls() {
    let [reason, message_stop] = end("tool_use");
    let (events, ended) = read(&[
        start(0, json!({ "type": "thinking", "thinking": "", "signature": "" })),
        delta(0, json!({ "type": "thinking_delta", "thinking": "hm" })),
        delta(0, json!({ "type": "signature_delta", "signature": "c2" })),
        delta(0, json!({ "type": "signature_delta", "signature": "ln" })),
        stop(0),
        start(1, json!({ "type": "text", "text": "Let " })),
        text_delta(1, "me."),
        stop(1),
        call(2, "a", "f", json!({})),
        input(2, "{}"),
        stop(2),
        start(3, json!({ "type": "redacted_thinking", "data": "b3A=" })),
        stop(3),
        start(4, json!({ "type": "server_tool_use", "id": "s", "name": "web" })),
        input(4, "{\"q\":1}"),
        stop(4),
        call(5, "b", "g", json!({})),
        stop(5),
        reason,
        message_stop,
    ]);
    let state = json!({ "content": [
        { "type": "thinking", "thinking": "hm", "signature": "c2ln" },
        { "type": "text", "text": "Let me." },
        { "type": "tool_use", "slot": 0 },
        { "type": "redacted_thinking", "data": "b3A=" },
        { "type": "tool_use", "slot": 1 },
    ] });
    let expected = vec![
        ModelEvent::Reasoning("hm".to_owned()),
        text("Let "),
        text("me."),
        call_start(0, "a", "f"),
        arguments(0, "{}"),
        ModelEvent::ToolCallEnd { slot: 0 },
        call_start(1, "b", "g"),
        ModelEvent::ToolCallEnd { slot: 1 },
        ModelEvent::VendorState(state),
        ModelEvent::Finish(FinishReason::ToolCalls),
    ];
    assert_eq!((events, ended), (expected, Ok(())));
}

#[test]
fn arguments_may_come_whole_with_the_start() {
    let [reason, message_stop] = end("tool_use");
    let (events, ended) = read(&[
        call(0, "a", "f", json!({ "n": 1.0 })),
        stop(0),
        call(1, "b", "f", json!({ "ignored": true })),
        input(1, "{\"n\":2}"),
        stop(1),
        reason,
        message_stop,
    ]);
    let expected = vec![
        call_start(0, "a", "f"),
        arguments(0, "{\"n\":1.0}"),
        ModelEvent::ToolCallEnd { slot: 0 },
        call_start(1, "b", "f"),
        arguments(1, "{\"n\":2}"),
        ModelEvent::ToolCallEnd { slot: 1 },
        ModelEvent::Finish(FinishReason::ToolCalls),
    ];
    assert_eq!((events, ended), (expected, Ok(())));
}

#[test]
fn interleaved_and_unnumbered_blocks_find_their_calls() {
    let [reason, message_stop] = end("tool_use");
    let (events, ended) = read(&[
        call(0, "a", "f", json!({})),
        call(1, "b", "f", json!({})),
        input(1, "{\"b\":"),
        input(0, "{\"a\":1}"),
        json!({ "type": "content_block_delta", "delta": { "type": "input_json_delta", "partial_json": "2}" } }),
        stop(0),
        stop(1),
        reason,
        message_stop,
    ]);
    let expected = vec![
        call_start(0, "a", "f"),
        call_start(1, "b", "f"),
        arguments(1, "{\"b\":"),
        arguments(0, "{\"a\":1}"),
        ModelEvent::ToolCallEnd { slot: 0 },
        arguments(1, "2}"),
        ModelEvent::ToolCallEnd { slot: 1 },
        ModelEvent::Finish(FinishReason::ToolCalls),
    ];
    assert_eq!((events, ended), (expected, Ok(())));
}

#[test]
fn every_stop_reason_has_its_meaning() {
    for (stop_reason, expected) in [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        ("pause_turn", FinishReason::Stop),
        ("a_future_one", FinishReason::Stop),
        ("tool_use", FinishReason::ToolCalls),
        ("max_tokens", FinishReason::Length),
        ("model_context_window_exceeded", FinishReason::Length),
        ("refusal", FinishReason::ContentFilter),
    ] {
        let (events, ended) = read(&end(stop_reason));
        assert_eq!(
            (events, ended),
            (vec![ModelEvent::Finish(expected)], Ok(())),
            "{stop_reason}"
        );
    }
    let only_stop = read(&[json!({ "type": "message_stop" })]);
    assert_eq!(only_stop, (vec![ModelEvent::Finish(FinishReason::Stop)], Ok(())));
    let [reason, _] = end("end_turn");
    assert_eq!(read(&[reason]), (vec![], Err(ProviderError::Truncated)));
}

#[test]
fn a_call_cut_before_its_arguments_is_not_run() {
    let [reason, message_stop] = end("max_tokens");
    let (events, ended) = read(&[
        call(0, "a", "f", json!({})),
        stop(0),
        reason.clone(),
        message_stop.clone(),
    ]);
    assert_eq!(
        (events, ended),
        (vec![call_start(0, "a", "f")], Err(ProviderError::OutputTruncated))
    );
    let nameless = read(&[call(0, "a", "", json!({})), stop(0), message_stop]);
    assert_eq!(
        nameless,
        (vec![], Err(ProviderError::Malformed("a tool call has no name")))
    );
}

#[test]
fn future_kinds_are_skipped_whatever_they_hold() {
    let [reason, message_stop] = end("end_turn");
    let (events, ended) = read(&[
        json!({ "type": "block_hint", "index": "first", "delta": [1], "usage": "none" }),
        json!({ "index": 0 }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "a_future_block", "text": "no" } }),
        text_delta(0, "no"),
        text_delta(7, "no"),
        start(1, json!({ "type": "text" })),
        delta(1, json!({ "type": "a_future_delta", "text": "no" })),
        text_delta(1, "yes"),
        reason,
        message_stop,
    ]);
    let expected = vec![text("yes"), ModelEvent::Finish(FinishReason::Stop)];
    assert_eq!((events, ended), (expected, Ok(())));
    let broken = read(&[json!({ "type": "content_block_delta", "index": "first" })]);
    assert_eq!(broken, (vec![], Err(NOT_A_PAYLOAD)));
}

#[test]
fn an_error_inside_the_stream_is_the_vendors_refusal() {
    let error = |kind: &str| json!({ "type": "error", "error": { "type": kind, "message": "no" }, "request_id": "r" });
    let refused = |retryable, detail: &str| ProviderError::Refused {
        status: 200,
        retryable,
        retry_after_ms: None,
        detail: detail.to_owned(),
    };
    for (kind, expected) in [
        ("overloaded_error", refused(true, "overloaded_error no")),
        ("api_error", refused(true, "api_error no")),
        ("authentication_error", refused(false, "authentication_error no")),
        (
            "rate_limit_error",
            ProviderError::RateLimited {
                retry_after_ms: None,
                detail: "rate_limit_error no".to_owned(),
            },
        ),
    ] {
        assert_eq!(read(&[error(kind)]), (vec![], Err(expected)), "{kind}");
    }
}
