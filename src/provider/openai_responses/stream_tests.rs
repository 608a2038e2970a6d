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

fn item(progress: &str, output_index: Option<u64>, item: Value) -> Value {
    let mut event = json!({ "type": format!("response.output_item.{progress}"), "item": item });
    if let Some(output_index) = output_index {
        event["output_index"] = output_index.into();
    }
    event
}

fn call_item(id: &str, call_id: &str, name: &str, arguments: &str) -> Value {
    json!({ "type": "function_call", "id": id, "call_id": call_id, "name": name, "arguments": arguments })
}

fn message_item(id: &str, text: &str) -> Value {
    json!({ "type": "message", "id": id, "content": [{ "type": "output_text", "text": text }] })
}

fn text_delta(id: &str, content_index: u64, delta: &str) -> Value {
    json!({ "type": "response.output_text.delta", "item_id": id, "content_index": content_index, "delta": delta })
}

fn arguments_delta(id: &str, delta: &str) -> Value {
    json!({ "type": "response.function_call_arguments.delta", "item_id": id, "delta": delta })
}

fn completed(output: Value) -> Value {
    json!({ "type": "response.completed", "response": { "output": output } })
}

fn text(text: &str) -> ModelEvent {
    ModelEvent::Text(text.to_owned())
}

fn start(slot: usize, id: &str, name: &str) -> ModelEvent {
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

const STOP: ModelEvent = ModelEvent::Finish(FinishReason::Stop);
const CALLS: ModelEvent = ModelEvent::Finish(FinishReason::ToolCalls);

/// A whole call in slot 0.
fn whole_call() -> Vec<ModelEvent> {
    vec![
        start(0, "c1", "f"),
        arguments(0, "{\"n\":1}"),
        ModelEvent::ToolCallEnd { slot: 0 },
    ]
}

#[test]
fn a_call_is_read_from_whatever_tells_of_it() {
    let call = call_item("fc_1", "c1", "f", "{\"n\":1}");
    let added = || item("added", Some(0), call_item("fc_1", "c1", "f", ""));
    let done = || item("done", Some(0), call.clone());
    let arguments_done = json!({ "type": "response.function_call_arguments.done", "item_id": "fc_1", "arguments": "{\"n\":1}" });
    let tellings: [Vec<Value>; 7] = [
        vec![done()],
        vec![added(), done()],
        vec![added(), arguments_done, done()],
        vec![added(), arguments_delta("fc_1", "{\"n\":1}"), done()],
        vec![arguments_delta("fc_1", "{\"n\":1}"), done()],
        vec![added()],
        vec![],
    ];
    for told in tellings {
        let payloads = [told.clone(), vec![completed(json!([call]))]].concat();
        let mut expected = whole_call();
        expected.push(CALLS);
        assert_eq!(read(&payloads), (expected, Ok(())), "{told:?}");
    }
}

#[test]
fn servers_may_rename_items_from_event_to_event() {
    let payloads = [
        item("added", Some(0), call_item("a", "c1", "f", "")),
        json!({ "type": "response.function_call_arguments.delta", "item_id": "b", "output_index": 0, "delta": "{\"n\":1}" }),
        item("done", Some(0), call_item("c", "c1", "f", "{\"n\":1}")),
        item("added", Some(0), call_item("d", "c2", "f", "")),
        item("done", Some(0), call_item("e", "c2", "f", "{}")),
        completed(json!([])),
    ];
    let mut expected = whole_call();
    expected.extend([
        start(1, "c2", "f"),
        arguments(1, "{}"),
        ModelEvent::ToolCallEnd { slot: 1 },
        CALLS,
    ]);
    assert_eq!(read(&payloads), (expected, Ok(())));
}

#[test]
fn text_is_told_once_and_ends_with_its_message() {
    let payloads = [
        item("added", Some(0), message_item("m1", "")),
        text_delta("m1", 0, "one"),
        json!({ "type": "response.output_text.done", "item_id": "m1", "content_index": 0, "text": "one" }),
        json!({ "type": "response.output_text.done", "item_id": "m1", "content_index": 1, "text": " two" }),
        item(
            "done",
            Some(0),
            json!({ "type": "message", "id": "m1", "content": [
                { "text": "one" }, { "text": " two" }, { "type": "refusal", "refusal": " No." },
            ] }),
        ),
        item("added", Some(1), message_item("m2", "")),
        json!({ "type": "response.refusal.delta", "item_id": "m2", "content_index": 0, "delta": "I cannot." }),
        json!({ "type": "response.refusal.done", "item_id": "m2", "content_index": 0, "refusal": "I cannot." }),
        completed(json!([
            message_item("m1", "one"),
            message_item("m2", "I cannot.")
        ])),
    ];
    let expected = vec![
        text("one"),
        text(" two"),
        text(" No."),
        ModelEvent::TextEnd,
        text("I cannot."),
        STOP,
    ];
    assert_eq!(read(&payloads), (expected, Ok(())));
    let only_at_the_end = read(&[completed(json!([message_item("m1", "hello")]))]);
    assert_eq!(
        only_at_the_end,
        (vec![text("hello"), ModelEvent::TextEnd, STOP], Ok(()))
    );
    let nameless = [
        json!({ "type": "response.output_text.delta", "delta": "a" }),
        json!({ "type": "response.output_text.delta", "delta": "b" }),
        item("done", None, message_item("m1", "ab")),
        completed(Value::Null),
    ];
    assert_eq!(
        read(&nameless),
        (vec![text("a"), text("b"), ModelEvent::TextEnd, STOP], Ok(()))
    );
}

#[test]
fn encrypted_reasoning_is_kept_in_its_place_beside_calls() {
    let reasoning = |id: &str, encrypted: &str| json!({ "type": "reasoning", "id": id, "summary": [], "encrypted_content": encrypted, "status": null });
    let message =
        json!({ "type": "message", "id": "m1", "phase": "commentary", "content": [{ "text": "Look." }] });
    let told = [
        item("done", Some(0), reasoning("rs_1", "c2Vj")),
        json!({ "type": "response.reasoning_text.delta", "delta": "hm" }),
        item("done", Some(1), message),
        item("done", Some(2), call_item("fc_1", "c1", "f", "{\"n\":1}")),
        item("done", Some(3), reasoning("rs_2", "")),
        completed(json!([])),
    ];
    let state = json!({ "output": [
        { "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2Vj" },
        { "type": "message", "text": "Look.", "phase": "commentary" },
        { "type": "function_call", "slot": 0 },
    ] });
    let mut expected = vec![
        ModelEvent::Reasoning("hm".to_owned()),
        text("Look."),
        ModelEvent::TextEnd,
    ];
    expected.extend(whole_call());
    expected.extend([ModelEvent::VendorState(state), CALLS]);
    assert_eq!(read(&told), (expected, Ok(())));
    let [reasoning, .., end] = told;
    assert_eq!(read(&[reasoning, end]), (vec![STOP], Ok(())));
}

#[test]
fn an_incomplete_answer_says_why() {
    let incomplete = |reason: Value| json!({ "type": "response.incomplete", "response": { "incomplete_details": reason } });
    let cut_call = || item("added", Some(0), call_item("fc_1", "c1", "f", ""));
    let cut_and_done = || {
        let mut call = call_item("fc_1", "c1", "f", "{\"n\":");
        call["status"] = "incomplete".into();
        item("done", Some(0), call)
    };
    let limit = || incomplete(json!({ "reason": "max_output_tokens" }));
    let filter = || incomplete(json!({ "reason": "content_filter" }));
    let finish = |reason| (vec![ModelEvent::Finish(reason)], Ok(()));
    assert_eq!(read(&[limit()]), finish(FinishReason::Length));
    assert_eq!(read(&[incomplete(Value::Null)]), finish(FinishReason::Length));
    assert_eq!(read(&[filter()]), finish(FinishReason::ContentFilter));
    assert_eq!(
        read(&[cut_call(), limit()]),
        (vec![start(0, "c1", "f")], Err(ProviderError::OutputTruncated))
    );
    assert_eq!(
        read(&[cut_and_done(), limit()]),
        (
            vec![start(0, "c1", "f"), arguments(0, "{\"n\":")],
            Err(ProviderError::OutputTruncated)
        )
    );
    assert_eq!(
        read(&[cut_call(), filter()]),
        (vec![start(0, "c1", "f")], Err(ProviderError::ContentFiltered))
    );
}

#[test]
fn a_failed_answer_is_the_vendors_refusal() {
    let failed = |error: Value| json!({ "type": "response.failed", "response": { "status": "failed", "error": error } });
    let refused = |retryable, detail: &str| ProviderError::Refused {
        status: 200,
        retryable,
        retry_after_ms: None,
        detail: detail.to_owned(),
    };
    for (payload, expected) in [
        (
            failed(json!({ "code": "server_error", "message": "sorry" })),
            refused(true, "server_error sorry"),
        ),
        (
            failed(json!({ "code": "context_length_exceeded", "message": "x" })),
            ProviderError::ContextLengthExceeded,
        ),
        (
            json!({ "type": "error", "error": { "type": "invalid_request_error", "message": "no" } }),
            refused(false, "invalid_request_error no"),
        ),
    ] {
        assert_eq!(read(&[payload]), (vec![], Err(expected)));
    }
}

#[test]
fn future_kinds_are_skipped_whatever_they_hold() {
    let payloads = [
        json!({ "type": "response.hint", "output_index": "first", "delta": [1], "item": 5 }),
        json!({ "type": "response.audio.delta", "delta": "no" }),
        item(
            "done",
            Some(0),
            json!({ "type": "web_search_call", "id": "ws_1", "status": "completed" }),
        ),
        text_delta("m1", 0, "yes"),
        completed(json!([{ "type": "web_search_call", "id": "ws_1" }])),
    ];
    assert_eq!(read(&payloads), (vec![text("yes"), STOP], Ok(())));
    let broken = read(&[json!({ "type": "response.output_text.delta", "output_index": "first" })]);
    assert_eq!(broken, (vec![], Err(NOT_A_PAYLOAD)));
}
