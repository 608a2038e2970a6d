use serde_json::{Value, json};

use super::super::super::sse_answer::SseAnswerDecoder;
use super::super::super::{FinishReason, ModelDecoder, ModelEvent, ProviderError};
use super::Answer;
use crate::protocol::event::TokenUsage;

/// An event of this type with these members.
fn event(kind: &str, mut members: Value) -> Value {
    members["type"] = kind.into();
    members
}

fn delta(id: &str, delta: &str) -> Value {
    event("TEXT_MESSAGE_CONTENT", json!({ "messageId": id, "delta": delta }))
}

fn begin_call(id: &str) -> Value {
    event(
        "TOOL_CALL_START",
        json!({ "toolCallId": id, "toolCallName": "weather" }),
    )
}

fn end_call(id: &str) -> Value {
    event("TOOL_CALL_END", json!({ "toolCallId": id }))
}

fn call_result(id: &str, content: &Value) -> Value {
    event(
        "TOOL_CALL_RESULT",
        json!({ "messageId": "t", "toolCallId": id, "content": content }),
    )
}

fn finished(members: Value) -> Value {
    event("RUN_FINISHED", members)
}

fn read(stream: &[Value]) -> (Vec<ModelEvent>, Result<(), ProviderError>) {
    let mut decoder = SseAnswerDecoder::new(Answer::default());
    let mut events = Vec::new();
    for event in stream {
        if let Err(error) = decoder.feed(format!("data: {event}\n\n").as_bytes(), &mut events) {
            return (events, Err(error));
        }
        if decoder.is_finished() {
            return (events, Ok(()));
        }
    }
    let end = decoder.end(&mut events);
    (events, end)
}

fn text(text: &str) -> ModelEvent {
    ModelEvent::Text(text.to_owned())
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

fn result(slot: usize, content: &str) -> ModelEvent {
    ModelEvent::ToolCallResult {
        slot,
        content: content.to_owned(),
        is_error: false,
    }
}

fn state(message_id: Option<&str>, ids: &[&str]) -> ModelEvent {
    let mut state = json!({});
    if let Some(id) = message_id {
        state["messageId"] = id.into();
    }
    state["toolCallIds"] = json!(ids);
    ModelEvent::VendorState(state)
}

fn stop() -> ModelEvent {
    ModelEvent::Finish(FinishReason::Stop)
}

#[test]
fn what_is_said_behind_the_results_is_a_new_step() {
    let stream = [
        event("RUN_STARTED", json!({ "threadId": "t", "runId": "r" })),
        event(
            "TEXT_MESSAGE_START",
            json!({ "messageId": "m", "role": "assistant" }),
        ),
        delta("m", "Look."),
        begin_call("a"),
        begin_call("b"),
        event("TOOL_CALL_ARGS", json!({ "toolCallId": "b", "delta": "{\"n\":" })),
        event("TOOL_CALL_ARGS", json!({ "toolCallId": "b", "delta": "1}" })),
        end_call("b"),
        end_call("a"),
        event("TEXT_MESSAGE_END", json!({ "messageId": "m" })),
        call_result("b", &json!("")),
        call_result(
            "a",
            &json!([{ "type": "text", "text": "warm" }, { "type": "image" }]),
        ),
        call_result("a", &json!("again")),
        begin_call("a"),
        end_call("a"),
        call_result("a", &json!("null")),
        delta("m2", "Warm."),
        finished(json!({})),
        delta("m2", " after the end"),
    ];
    let expected = vec![
        text("Look."),
        ModelEvent::TextEnd,
        start(0, "a"),
        start(1, "b"),
        arguments(1, "{\"n\":"),
        arguments(1, "1}"),
        end(1),
        end(0),
        result(1, "{\"result\":\"\"}"),
        result(0, "warm"),
        state(Some("m"), &["a", "b"]),
        ModelEvent::StepEnd,
        start(2, "a"),
        end(2),
        result(2, "\"null\""),
        state(None, &["a"]),
        ModelEvent::StepEnd,
        text("Warm."),
        ModelEvent::TextEnd,
        state(Some("m2"), &[]),
        stop(),
    ];
    assert_eq!(read(&stream), (expected, Ok(())));
}

#[test]
fn the_agents_own_steps_are_steps_if_they_said_anything() {
    let named = |kind: &str, name: &str| event(kind, json!({ "stepName": name }));
    let stream = [
        named("STEP_STARTED", "plan"),
        named("STEP_FINISHED", "plan"),
        named("STEP_STARTED", "think"),
        delta("m1", "One."),
        event("TEXT_MESSAGE_END", json!({ "messageId": "m1" })),
        named("STEP_FINISHED", "think"),
        named("STEP_STARTED", "say"),
        delta("m2", "Two"),
        // A message goes on over the steps of others.
        named("STEP_FINISHED", "inner"),
        delta("m2", "."),
        named("STEP_FINISHED", "say"),
        finished(json!({ "outcome": { "type": "success" } })),
    ];
    let expected = vec![
        text("One."),
        ModelEvent::TextEnd,
        state(Some("m1"), &[]),
        ModelEvent::StepEnd,
        text("Two"),
        text("."),
        ModelEvent::TextEnd,
        state(Some("m2"), &[]),
        stop(),
    ];
    assert_eq!(read(&stream), (expected, Ok(())));
}

#[test]
fn chunks_are_whole_items() {
    let chunk = |members: Value| event("TEXT_MESSAGE_CHUNK", members);
    let call = |members: Value| event("TOOL_CALL_CHUNK", members);
    let stream = [
        chunk(json!({ "messageId": "m", "delta": "a" })),
        chunk(json!({ "delta": "b" })),
        chunk(json!({ "messageId": "n", "delta": "c" })),
        call(json!({ "toolCallId": "a", "toolCallName": "weather", "parentMessageId": "n", "delta": "{" })),
        call(json!({ "delta": "}" })),
        call(json!({ "toolCallId": "b", "toolCallName": "weather" })),
        event("CUSTOM", json!({ "name": "x", "value": null })),
        finished(json!({})),
    ];
    let expected = vec![
        text("a"),
        text("b"),
        ModelEvent::TextEnd,
        text("c"),
        ModelEvent::TextEnd,
        start(0, "a"),
        arguments(0, "{"),
        arguments(0, "}"),
        end(0),
        start(1, "b"),
        end(1),
        state(Some("n"), &["a", "b"]),
        ModelEvent::Finish(FinishReason::ToolCalls),
    ];
    assert_eq!(read(&stream), (expected, Ok(())));
}

#[test]
fn what_is_open_at_the_end_is_closed() {
    let stream = [
        delta("m", "Look."),
        begin_call("a"),
        event("TOOL_CALL_ARGS", json!({ "toolCallId": "a", "delta": "{\"n\":" })),
        finished(json!({})),
    ];
    let expected = vec![
        text("Look."),
        ModelEvent::TextEnd,
        start(0, "a"),
        arguments(0, "{\"n\":"),
        end(0),
        state(Some("m"), &["a"]),
        ModelEvent::Finish(FinishReason::ToolCalls),
    ];
    assert_eq!(read(&stream), (expected, Ok(())));
    let cut = read(&stream[..1]);
    assert_eq!(cut, (vec![text("Look.")], Err(ProviderError::Truncated)));
}

#[test]
fn what_has_no_place_in_our_stream_is_dropped() {
    let stream = [
        event(
            "TEXT_MESSAGE_START",
            json!({ "messageId": "s", "role": "system" }),
        ),
        delta("s", "hidden"),
        event(
            "TEXT_MESSAGE_CHUNK",
            json!({ "messageId": "u", "role": "user", "delta": "hidden" }),
        ),
        event("TEXT_MESSAGE_CHUNK", json!({ "delta": " too" })),
        event("STATE_SNAPSHOT", json!({ "snapshot": { "delta": "hidden" } })),
        event("MESSAGES_SNAPSHOT", json!({ "messages": [] })),
        event(
            "ACTIVITY_SNAPSHOT",
            json!({ "messageId": "a", "activityType": "x", "content": {} }),
        ),
        event("RAW", json!({ "event": null })),
        event("SUBAGENT_STARTED", json!({ "subagentRunId": "s", "name": "n" })),
        event("SOMETHING_NEW", json!({ "delta": 7 })),
        json!({ "delta": "no type" }),
        call_result("unknown", &json!("x")),
        event(
            "REASONING_MESSAGE_CONTENT",
            json!({ "messageId": "r", "delta": "Hm." }),
        ),
        event("TEXT_MESSAGE_CONTENT", json!({ "messageId": "m", "delta": null })),
        finished(json!({ "result": { "finishReason": "length" }, "usage": null, "outcome": null })),
    ];
    let expected = vec![
        ModelEvent::Reasoning("Hm.".to_owned()),
        ModelEvent::Finish(FinishReason::Length),
    ];
    assert_eq!(read(&stream), (expected, Ok(())));
}

#[test]
fn usage_is_the_sum_over_the_agents_models() {
    let usage = json!([
        { "provider": "p", "model": "big", "inputTokens": 10, "outputTokens": 3, "totalTokens": 99 },
        { "model": "small", "inputTokens": 2, "cachedInputTokens": 1, "reasoningTokens": 4 },
    ]);
    let (events, _) = read(&[finished(json!({ "usage": usage }))]);
    let sum = TokenUsage {
        input_tokens: Some(12),
        output_tokens: Some(3),
        total_tokens: Some(13),
        cached_input_tokens: Some(1),
        reasoning_tokens: Some(4),
        ..TokenUsage::default()
    };
    assert_eq!(events, [ModelEvent::Usage(sum.into()), stop()]);
}

#[test]
fn an_agent_that_asks_for_an_approval_is_told_that_there_is_none() {
    let asks = |id: &str| {
        let interrupt = json!({ "id": "i", "reason": "approval", "toolCallId": id });
        finished(json!({ "outcome": { "type": "interrupt", "interrupts": [interrupt] } }))
    };
    let content = "{\"error\":\"The tool did not run: it needs an approval, which cannot be given here.\"}";
    let expected = vec![
        start(0, "a"),
        end(0),
        ModelEvent::ToolCallResult {
            slot: 0,
            content: content.to_owned(),
            is_error: true,
        },
        state(None, &["a"]),
        ModelEvent::Finish(FinishReason::ToolCalls),
    ];
    assert_eq!(read(&[begin_call("a"), asks("a")]), (expected, Ok(())));
    assert!(matches!(
        read(&[asks("other")]),
        (_, Err(ProviderError::Refused { .. }))
    ));
}

#[test]
fn failures_are_told_by_their_code() {
    let refused = |detail: &str| ProviderError::Refused {
        status: 200,
        retryable: true,
        retry_after_ms: None,
        detail: detail.to_owned(),
    };
    let failed = |code: &str| event("RUN_ERROR", json!({ "message": "No.", "code": code }));
    for (event, expected) in [
        (
            event("RUN_ERROR", json!({ "message": "It broke." })),
            refused("It broke."),
        ),
        (failed("upstream_error"), refused("upstream_error No.")),
        (failed("output_truncated"), ProviderError::OutputTruncated),
        (failed("content_filtered"), ProviderError::ContentFiltered),
        (
            failed("context_length_exceeded"),
            ProviderError::ContextLengthExceeded,
        ),
        (
            failed("upstream_rate_limited"),
            ProviderError::RateLimited {
                retry_after_ms: None,
                detail: "upstream_rate_limited".to_owned(),
            },
        ),
        (
            finished(json!({ "outcome": { "type": "cancelled" } })),
            refused("finish_reason cancelled"),
        ),
        (
            json!("no object"),
            ProviderError::Malformed("an event is not of this wire format"),
        ),
    ] {
        let stream = [delta("m", "Hel"), event.clone()];
        let (events, end) = read(&stream);
        assert_eq!(
            (events.first(), end),
            (Some(&text("Hel")), Err(expected)),
            "{event}"
        );
    }
}
