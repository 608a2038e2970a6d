use super::super::super::ModelDecoder;
use super::super::super::sse_answer::SseAnswerDecoder;
use serde_json::json;

use super::*;

/// The events of payloads; whether the answer was finished before the body's end, or how it failed.
fn read(payloads: &[Value]) -> (Vec<ModelEvent>, Result<bool, ProviderError>) {
    let mut decoder = SseAnswerDecoder::new(Answer::default());
    let mut events = Vec::new();
    for payload in payloads {
        let frame = format!("data: {payload}\r\n\r\n");
        if let Err(error) = decoder.feed(frame.as_bytes(), &mut events) {
            return (events, Err(error));
        }
    }
    let is_finished = decoder.is_finished();
    let end = decoder.end(&mut events).map(|()| is_finished);
    (events, end)
}

fn chunk(parts: Value) -> Value {
    json!({ "candidates": [{ "content": { "parts": parts } }] })
}

fn finish(reason: &str) -> Value {
    json!({ "candidates": [{ "finishReason": reason, "index": 0 }] })
}

fn text(text: &str) -> ModelEvent {
    ModelEvent::Text(text.to_owned())
}

fn call(slot: usize, id: &str, name: &str, arguments: &str) -> [ModelEvent; 2] {
    [
        ModelEvent::ToolCallStart {
            slot,
            vendor_id: Some(id.to_owned()).filter(|id| !id.is_empty()),
            name: name.to_owned(),
        },
        ModelEvent::ToolCallArguments {
            slot,
            delta: arguments.to_owned(),
        },
    ]
}

const STOP: ModelEvent = ModelEvent::Finish(FinishReason::Stop);
const CALLS: ModelEvent = ModelEvent::Finish(FinishReason::ToolCalls);

#[test]
fn equal_calls_without_ids_are_calls_of_their_own() {
    let same = json!({ "functionCall": { "name": "f" } });
    let (events, ended) = read(&[
        chunk(json!([same, same])),
        chunk(json!([{ "functionCall": { "name": "f", "args": { "n": 1.0 } } }])),
        finish("STOP"),
    ]);
    let end = |slot| ModelEvent::ToolCallEnd { slot };
    let mut expected = [call(0, "", "f", "{}"), call(1, "", "f", "{}")].concat();
    expected.push(end(0));
    expected.extend(call(2, "", "f", "{\"n\":1.0}"));
    expected.extend([end(1), end(2)]);
    expected.push(CALLS);
    assert_eq!((events, ended), (expected, Ok(false)));
}

#[test]
fn signatures_are_kept_in_their_place_beside_calls() {
    let told = [
        chunk(json!([{ "text": "hm", "thought": true, "thoughtSignature": "no" }])),
        chunk(json!([{ "text": "Let " }, { "text": "me." }])),
        chunk(json!([{ "text": " Now:", "thoughtSignature": "s1" }, { "text": "go" }])),
        chunk(json!([{ "functionCall": { "id": "c1", "name": "f" }, "thoughtSignature": "s2" }])),
        chunk(
            json!([{ "functionCall": { "id": "c2", "name": "g" } }, { "text": "", "thoughtSignature": "no" }]),
        ),
        finish("STOP"),
    ];
    let state = json!({ "parts": [
        { "text": "Let me." },
        { "text": " Now:", "thoughtSignature": "s1" },
        { "text": "go" },
        { "slot": 0, "thoughtSignature": "s2" },
        { "slot": 1 },
    ] });
    let mut expected = vec![
        ModelEvent::Reasoning("hm".to_owned()),
        text("Let "),
        text("me."),
        text(" Now:"),
        text("go"),
    ];
    expected.extend(call(0, "c1", "f", "{}"));
    expected.extend(call(1, "c2", "g", "{}"));
    expected.extend((0..2).map(|slot| ModelEvent::ToolCallEnd { slot }));
    expected.extend([ModelEvent::VendorState(state), CALLS]);
    assert_eq!(read(&told), (expected, Ok(false)));
    let unsigned = read(&[
        chunk(json!([{ "functionCall": { "id": "c1", "name": "f" } }])),
        finish("STOP"),
    ]);
    let mut expected = call(0, "c1", "f", "{}").to_vec();
    expected.extend([ModelEvent::ToolCallEnd { slot: 0 }, CALLS]);
    assert_eq!(unsigned, (expected, Ok(false)));
}

#[test]
fn text_behind_a_call_ends_it() {
    let (events, ended) = read(&[
        chunk(json!([{ "functionCall": { "id": "c1", "name": "f" } }, { "text": "So." }])),
        finish("STOP"),
    ]);
    let mut expected = call(0, "c1", "f", "{}").to_vec();
    expected.extend([ModelEvent::ToolCallEnd { slot: 0 }, text("So."), CALLS]);
    assert_eq!((events, ended), (expected, Ok(false)));
}

#[test]
fn a_finish_reason_that_speaks_of_calls_decides_nothing() {
    let said = chunk(json!([{ "functionCall": { "id": "c1", "name": "f" } }]));
    let stopped = read(&[said.clone(), finish("STOP")]);
    assert_eq!(read(&[said, finish("FUNCTION_CALL")]), stopped);
}

#[test]
fn the_answer_ends_with_the_body_or_with_a_report_after_the_finish_reason() {
    let report = json!({ "usageMetadata": { "promptTokenCount": 1, "candidatesTokenCount": 2 } });
    let usage = ModelEvent::Usage(Box::new(TokenUsage {
        input_tokens: Some(1),
        output_tokens: Some(2),
        total_tokens: Some(3),
        ..TokenUsage::default()
    }));
    let with_stop = |words: &str| json!({ "candidates": [{ "content": { "parts": [{ "text": words }] }, "finishReason": "STOP" }] });
    let every_chunk_stops = read(&[with_stop("a"), with_stop("b")]);
    assert_eq!(every_chunk_stops, (vec![text("a"), text("b"), STOP], Ok(false)));
    let reported = read(&[
        report.clone(),
        with_stop("a"),
        report.clone(),
        json!({ "error": { "message": "late" } }),
    ]);
    assert_eq!(reported, (vec![text("a"), usage, STOP], Ok(true)));
    let unfinished = read(&[chunk(json!([{ "text": "a" }])), report]);
    assert_eq!(unfinished, (vec![text("a")], Err(ProviderError::Truncated)));
}

#[test]
fn every_finish_reason_but_two_is_a_failure() {
    let calls_then = |reason: &str| {
        read(&[
            chunk(json!([{ "functionCall": { "id": "c1", "name": "f" } }])),
            finish(reason),
        ])
    };
    for reason in ["SAFETY", "RECITATION", "PROHIBITED_CONTENT", "SPII", "BLOCKLIST"] {
        let filtered = vec![ModelEvent::Finish(FinishReason::ContentFilter)];
        assert_eq!(read(&[finish(reason)]), (filtered, Ok(false)), "{reason}");
        assert_eq!(
            calls_then(reason),
            (
                call(0, "c1", "f", "{}").to_vec(),
                Err(ProviderError::ContentFiltered)
            ),
            "{reason}"
        );
    }
    for reason in ["MALFORMED_FUNCTION_CALL", "OTHER", "A_FUTURE_ONE"] {
        let refused = refusal::by_finish_reason(reason);
        assert_eq!(read(&[finish(reason)]), (vec![], Err(refused)), "{reason}");
    }
    let mut cut_behind_calls = call(0, "c1", "f", "{}").to_vec();
    cut_behind_calls.extend([
        ModelEvent::ToolCallEnd { slot: 0 },
        ModelEvent::Finish(FinishReason::Length),
    ]);
    assert_eq!(calls_then("MAX_TOKENS"), (cut_behind_calls, Ok(false)));
    assert_eq!(
        read(&[finish("FINISH_REASON_UNSPECIFIED")]),
        (vec![], Err(ProviderError::Truncated))
    );
}

#[test]
fn a_blocked_prompt_is_a_withheld_answer() {
    let blocked = json!({ "promptFeedback": { "blockReason": "SAFETY" }, "usageMetadata": {} });
    assert_eq!(read(&[blocked]), (vec![], Err(ProviderError::ContentFiltered)));
    let rated =
        json!({ "promptFeedback": { "safetyRatings": [] }, "candidates": [{ "finishReason": "STOP" }] });
    assert_eq!(read(&[rated]), (vec![STOP], Ok(false)));
}

#[test]
fn other_candidates_and_unknown_parts_say_nothing() {
    let (events, ended) = read(&[
        json!({ "candidates": [{ "index": 1, "content": { "parts": [{ "text": "other" }] }, "finishReason": "OTHER" }] }),
        chunk(json!([{ "executableCode": { "code": "1" } }, { "inlineData": {} }])),
        json!({ "candidates": null, "error": null }),
        json!({ "candidates": [{ "content": null }] }),
        finish("STOP"),
    ]);
    assert_eq!((events, ended), (vec![STOP], Ok(false)));
    assert_eq!(
        read(&[json!({ "candidates": "none" })]),
        (vec![], Err(NOT_A_PAYLOAD))
    );
}
