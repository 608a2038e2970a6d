use serde_json::{Value, json};

use super::super::super::sse_answer::SseAnswerDecoder;
use super::super::super::{FinishReason, ModelDecoder, ModelEvent, ProviderError};
use super::Answer;
use crate::protocol::event::TokenUsage;

fn chunk(kind: &str, payload: Value) -> Value {
    json!({ "type": kind, "runId": "r", "from": "AGENT", "payload": payload })
}

fn call(kind: &str, id: &str, more: Value) -> Value {
    let mut payload = json!({ "toolCallId": id, "toolName": "weather" });
    for (name, value) in more.as_object().unwrap() {
        payload[name] = value.clone();
    }
    chunk(kind, payload)
}

fn finish(kind: &str, reason: &str) -> Value {
    let result = json!({ "reason": reason, "rawReason": reason, "isContinued": false });
    chunk(
        kind,
        json!({ "messageId": "m", "stepResult": result, "output": { "usage": {} } }),
    )
}

/// Reads these chunks, `[DONE]` where a chunk is `null`, and gives the events and how it ended.
fn read(chunks: &[Value]) -> (Vec<ModelEvent>, Result<(), ProviderError>) {
    let mut decoder = SseAnswerDecoder::new(Answer::default());
    let mut events = Vec::new();
    for chunk in chunks {
        let data = if chunk.is_null() {
            "[DONE]".to_owned()
        } else {
            chunk.to_string()
        };
        if let Err(error) = decoder.feed(format!("data: {data}\n\n").as_bytes(), &mut events) {
            return (events, Err(error));
        }
        if decoder.is_finished() {
            return (events, Ok(()));
        }
    }
    let end = decoder.end(&mut events);
    (events, end)
}

fn start(slot: usize, id: &str) -> ModelEvent {
    ModelEvent::ToolCallStart {
        slot,
        vendor_id: Some(id.to_owned()),
        name: "weather".to_owned(),
    }
}

fn arguments(slot: usize, delta: &str) -> ModelEvent {
    ModelEvent::ToolCallArguments {
        slot,
        delta: delta.to_owned(),
    }
}

fn end(slot: usize) -> ModelEvent {
    ModelEvent::ToolCallEnd { slot }
}

fn result(slot: usize, content: &str, is_error: bool) -> ModelEvent {
    ModelEvent::ToolCallResult {
        slot,
        content: content.to_owned(),
        is_error,
    }
}

fn text(text: &str) -> ModelEvent {
    ModelEvent::Text(text.to_owned())
}

fn state(message_id: &str, ids: &[&str]) -> ModelEvent {
    ModelEvent::VendorState(json!({ "messageId": message_id, "toolCallIds": ids }))
}

fn finished(reason: FinishReason) -> ModelEvent {
    ModelEvent::Finish(reason)
}

#[test]
fn steps_of_the_server_are_passed_on_when_the_next_one_begins() {
    let chunks = [
        chunk("start", json!({ "id": "agent", "messageId": "m" })),
        chunk("step-start", json!({ "messageId": "m" })),
        chunk("text-start", json!({ "id": "txt-0" })),
        chunk("text-delta", json!({ "id": "txt-0", "text": "First." })),
        call("tool-call-input-streaming-start", "c", json!({})),
        chunk("text-end", json!({ "id": "txt-0" })),
        call("tool-call-delta", "c", json!({ "argsTextDelta": "{\"city\":" })),
        call("tool-call-delta", "c", json!({ "argsTextDelta": "\"Varna\"}" })),
        call("tool-call-input-streaming-end", "c", json!({})),
        call("tool-call", "c", json!({ "args": { "city": "Varna" } })),
        call("tool-result", "c", json!({ "result": { "degrees": 21.0 } })),
        call("tool-result", "c", json!({ "result": "again" })),
        finish("step-finish", "tool-calls"),
        chunk("step-start", json!({ "messageId": "m" })),
        // Models number their calls anew.
        call("tool-call", "c", json!({ "args": {} })),
        call("tool-result", "c", json!({ "result": null })),
        finish("step-finish", "tool-calls"),
        chunk("text-delta", json!({ "id": "txt-0", "text": "Last." })),
        chunk("text-end", json!({ "id": "txt-0" })),
        finish("step-finish", "stop"),
        finish("finish", "stop"),
        chunk("text-delta", json!({ "id": "txt-0", "text": "after the end" })),
        Value::Null,
    ];
    let expected = vec![
        text("First."),
        start(0, "c"),
        ModelEvent::TextEnd,
        arguments(0, "{\"city\":"),
        arguments(0, "\"Varna\"}"),
        end(0),
        result(0, "{\"degrees\":21.0}", false),
        ModelEvent::StepEnd,
        start(1, "c"),
        arguments(1, "{}"),
        end(1),
        result(1, "{\"result\":null}", false),
        ModelEvent::StepEnd,
        text("Last."),
        ModelEvent::TextEnd,
        finished(FinishReason::Stop),
    ];
    assert_eq!(read(&chunks), (expected, Ok(())));
}

#[test]
fn calls_the_server_leaves_open_are_ours_beside_those_it_answered() {
    let chunks = [
        chunk("step-start", json!({ "messageId": "m" })),
        call("tool-call-input-streaming-start", "a", json!({})),
        call("tool-call-input-streaming-start", "b", json!({})),
        call("tool-call-input-streaming-end", "a", json!({})),
        call("tool-call", "a", json!({ "args": {} })),
        call("tool-call", "b", json!({ "args": { "city": "Varna" } })),
        call("tool-result", "b", json!({ "result": "warm" })),
        finish("step-finish", "tool-calls"),
        finish("finish", "tool-calls"),
        Value::Null,
    ];
    let expected = vec![
        start(0, "a"),
        start(1, "b"),
        arguments(0, "{}"),
        end(0),
        arguments(1, "{\"city\":\"Varna\"}"),
        end(1),
        result(1, "warm", false),
        state("m", &["a", "b"]),
        finished(FinishReason::ToolCalls),
    ];
    assert_eq!(read(&chunks), (expected, Ok(())));
}

#[test]
fn a_server_that_stops_behind_its_own_tools_asks_for_nothing() {
    let chunks = [
        call("tool-call", "a", json!({ "args": {} })),
        call("tool-result", "a", json!({ "result": "warm", "isError": true })),
        finish("step-finish", "tool-calls"),
        finish("finish", "tool-calls"),
        Value::Null,
    ];
    let expected = vec![
        start(0, "a"),
        arguments(0, "{}"),
        end(0),
        result(0, "warm", true),
        ModelEvent::VendorState(json!({ "toolCallIds": ["a"] })),
        finished(FinishReason::Stop),
    ];
    assert_eq!(read(&chunks), (expected, Ok(())));
}

#[test]
fn older_names_and_members_beside_the_type_are_the_same() {
    let chunks = [
        json!({ "type": "text-delta", "textDelta": "a" }),
        json!({ "type": "text-delta", "delta": "b" }),
        json!({ "type": "tool-call-streaming-start", "toolCallId": "c", "toolName": "weather" }),
        json!({ "type": "tool-call-delta", "toolCallId": "c", "argsTextDelta": "{}" }),
        json!({ "type": "tool-call", "toolCallId": "c", "toolName": "weather", "args": {} }),
        json!({ "type": "tool-result", "toolCallId": "c", "result": 1 }),
        json!({ "type": "tool-input-start", "id": "d", "toolName": "weather" }),
        json!({ "type": "tool-input-delta", "id": "d", "delta": "{\"n\":1}" }),
        json!({ "type": "tool-input-end", "id": "d" }),
        json!({ "type": "tool-call", "toolCallId": "d", "toolName": "weather", "input": "{\"n\":1}" }),
        json!({ "type": "tool-result", "toolCallId": "d", "output": { "n": 2.0 }, "preliminary": true }),
        json!({ "type": "tool-result", "toolCallId": "d", "output": { "n": 3.0 } }),
        json!({ "type": "finish", "finishReason": "stop", "usage": { "inputTokens": 1, "outputTokens": 2 } }),
    ];
    let usage = TokenUsage {
        input_tokens: Some(1),
        output_tokens: Some(2),
        total_tokens: Some(3),
        ..TokenUsage::default()
    };
    let expected = vec![
        text("a"),
        text("b"),
        start(0, "c"),
        arguments(0, "{}"),
        end(0),
        result(0, "1", false),
        start(1, "d"),
        arguments(1, "{\"n\":1}"),
        end(1),
        result(1, "{\"n\":3.0}", false),
        ModelEvent::TextEnd,
        ModelEvent::Usage(usage.into()),
        ModelEvent::VendorState(json!({ "toolCallIds": ["c", "d"] })),
        finished(FinishReason::Stop),
    ];
    assert_eq!(read(&chunks), (expected, Ok(())));
}

#[test]
fn a_call_that_waits_for_a_person_is_answered_with_the_reason() {
    let needs_approval =
        "{\"error\":\"The tool did not run: it needs an approval, which cannot be given here.\"}";
    let asks = "{\"error\":\"The tool stopped to ask for more, which cannot be given here.\"}";
    for (kind, content) in [
        ("tool-call-approval", needs_approval),
        ("tool-call-suspended", asks),
    ] {
        let chunks = [
            call("tool-call", "a", json!({ "args": {} })),
            call(kind, "a", json!({ "args": {}, "resumeSchema": "{}" })),
            Value::Null,
        ];
        let expected = vec![
            start(0, "a"),
            arguments(0, "{}"),
            end(0),
            result(0, content, true),
            ModelEvent::VendorState(json!({ "toolCallIds": ["a"] })),
            finished(FinishReason::ToolCalls),
        ];
        assert_eq!(read(&chunks), (expected, Ok(())), "{kind}");
    }
}

#[test]
fn what_became_of_a_failed_call_is_its_result() {
    let error = |error: Value| call("tool-error", "a", json!({ "error": error }));
    let denied = |approval: Value| call("tool-output-denied", "a", json!({ "approval": approval }));
    for (outcome, content) in [
        (error(json!("no clock")), "no clock"),
        (
            error(json!({ "message": "no clock", "stack": "at /srv" })),
            "no clock",
        ),
        (
            error(json!({ "name": "Error", "cause": { "message": "no such city" } })),
            "no such city",
        ),
        (error(json!({ "name": "ToolNotFoundError" })), "ToolNotFoundError"),
        (error(Value::Null), "The tool failed."),
        (denied(json!({ "approved": false })), "The call was denied."),
        (
            denied(json!({ "reason": "too dear" })),
            "The call was denied: too dear",
        ),
    ] {
        let (events, _) = read(&[call("tool-call", "a", json!({})), outcome]);
        let content = json!({ "error": content }).to_string();
        assert_eq!(events, [start(0, "a"), end(0), result(0, &content, true)]);
    }
}

#[test]
fn a_result_of_a_call_never_announced_announces_it() {
    let (events, _) = read(&[call(
        "tool-result",
        "a",
        json!({ "args": { "city": "Varna" }, "result": "" }),
    )]);
    let expected = [
        start(0, "a"),
        arguments(0, "{\"city\":\"Varna\"}"),
        end(0),
        result(0, "{\"result\":\"\"}", false),
    ];
    assert_eq!(events, expected);
}

#[test]
fn arguments_that_cannot_be_read_are_judged_at_the_end_of_the_step() {
    let broken = |more: Vec<Value>| {
        let mut chunks = vec![
            call("tool-call-delta", "a", json!({ "argsTextDelta": "{\"city\":" })),
            call("tool-call-input-streaming-end", "a", json!({})),
            call("tool-call", "a", json!({ "args": {} })),
        ];
        chunks.extend(more);
        read(&chunks)
    };
    let said = || vec![start(0, "a"), arguments(0, "{\"city\":")];
    assert_eq!(
        broken(vec![finish("step-finish", "length")]),
        (said(), Err(ProviderError::OutputTruncated))
    );
    assert_eq!(
        broken(vec![finish("step-finish", "content-filter")]),
        (said(), Err(ProviderError::ContentFiltered))
    );
    assert_eq!(broken(vec![Value::Null]), (said(), Err(ProviderError::Truncated)));
    let (events, _) = broken(vec![finish("step-finish", "tool-calls")]);
    assert_eq!(events, [said(), vec![end(0)]].concat());
    // The server has run the call, without arguments.
    let (events, _) = broken(vec![
        call("tool-result", "a", json!({ "result": "bad" })),
        finish("step-finish", "length"),
    ]);
    assert_eq!(events, [said(), vec![end(0), result(0, "bad", false)]].concat());
}

#[test]
fn failures_end_the_answer_whatever_follows() {
    let refused = |status, retryable, detail: &str| ProviderError::Refused {
        status,
        retryable,
        retry_after_ms: None,
        detail: detail.to_owned(),
    };
    let error = |error: Value| chunk("error", json!({ "error": error }));
    let cut = chunk(
        "step-finish",
        json!({ "stepResult": { "reason": "other", "isContinued": true } }),
    );
    for (failure, expected) in [
        (
            error(json!({ "message": "no model", "stack": "at /srv", "name": "Error" })),
            refused(200, true, "no model"),
        ),
        (
            error(json!({
                "message": "private", "url": "http://m.test", "statusCode": 401,
                "responseBody": "{\"error\":{\"message\":\"bad key\",\"type\":\"auth\"}}",
            })),
            refused(401, false, "auth bad key"),
        ),
        (
            error(
                json!({ "message": "slow down", "statusCode": 429, "responseHeaders": { "Retry-After": "7" } }),
            ),
            ProviderError::RateLimited {
                retry_after_ms: Some(7000),
                detail: "slow down".to_owned(),
            },
        ),
        (
            error(json!({ "message": "the prompt is too long for the context window", "statusCode": 400 })),
            ProviderError::ContextLengthExceeded,
        ),
        (
            chunk("tripwire", json!({ "reason": "rude" })),
            ProviderError::ContentFiltered,
        ),
        (
            chunk("abort", json!({})),
            refused(200, true, "finish_reason abort"),
        ),
        (
            finish("finish", "error"),
            refused(200, true, "finish_reason error"),
        ),
        (finish("finish", "tripwire"), ProviderError::ContentFiltered),
        (cut, ProviderError::Truncated),
    ] {
        let chunks = [
            chunk("text-delta", json!({ "text": "Hel" })),
            failure.clone(),
            finish("finish", "stop"),
            Value::Null,
        ];
        assert_eq!(read(&chunks), (vec![text("Hel")], Err(expected)), "{failure}");
    }
}

#[test]
fn what_is_no_failure_and_no_answer_is_dropped() {
    let chunks = [
        chunk("tripwire", json!({ "reason": "rude", "retry": true })),
        chunk("watch", json!({ "text": "x" })),
        json!({ "type": "data-note", "data": { "text": "x" } }),
        json!({ "type": 7 }),
        json!({ "payload": "x" }),
        chunk("text-delta", json!({ "text": null })),
        chunk("reasoning-delta", json!({ "text": "Hm." })),
        finish("step-finish", "other"),
        finish("finish", "length"),
        Value::Null,
    ];
    let expected = vec![
        ModelEvent::Reasoning("Hm.".to_owned()),
        finished(FinishReason::Length),
    ];
    assert_eq!(read(&chunks), (expected, Ok(())));
}

#[test]
fn the_end_is_the_mark_behind_finish_or_the_end_of_the_body() {
    let said = chunk("text-delta", json!({ "text": "Hello" }));
    let whole = vec![text("Hello"), ModelEvent::TextEnd, finished(FinishReason::Stop)];
    assert_eq!(read(&[said.clone(), finish("finish", "stop")]), (whole, Ok(())));
    // A `finish` that the server could not write.
    assert_eq!(
        read(&[said.clone(), Value::Null]),
        (vec![text("Hello"), ModelEvent::TextEnd], Ok(()))
    );
    assert_eq!(
        read(&[said, finish("step-finish", "stop")]),
        (
            vec![text("Hello"), ModelEvent::TextEnd],
            Err(ProviderError::Truncated)
        )
    );
}
