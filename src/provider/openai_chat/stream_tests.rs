use serde_json::json;

use super::*;

type Outcome = (Vec<ModelEvent>, Result<bool, ProviderError>);

/// The events of a body, and whether it was finished before its end, or how it failed.
fn decode<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> Outcome {
    let mut decoder = ChatDecoder::new();
    let mut events = Vec::new();
    for chunk in chunks {
        if let Err(error) = decoder.feed(chunk, &mut events) {
            return (events, Err(error));
        }
    }
    let is_finished = decoder.is_finished();
    let end = decoder.end(&mut events).map(|()| is_finished);
    (events, end)
}

/// Whole, cut at every byte, byte by byte: always the same.
fn decode_every_way(body: &str) -> Outcome {
    let body = body.as_bytes();
    let whole = decode([body]);
    for cut in 0..body.len() {
        let (head, tail) = body.split_at(cut);
        assert_eq!(decode([head, tail]), whole, "cut at {cut}");
    }
    assert_eq!(decode(body.chunks(1)), whole, "byte by byte");
    whole
}

fn stream(payloads: &[&str]) -> String {
    payloads
        .iter()
        .map(|payload| format!("data: {payload}\n\n"))
        .collect()
}

fn delta(members: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{{members}}},"finish_reason":null}}]}}"#)
}

fn finish(reason: &str) -> String {
    format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}]}}"#)
}

fn call(id: &str, name: &str, arguments: &str) -> String {
    let function = json!({ "name": name, "arguments": arguments });
    delta(&format!(
        r#""tool_calls":[{{"index":0,"id":"{id}","function":{function}}}]"#
    ))
}

fn text(text: &str) -> ModelEvent {
    ModelEvent::Text(text.to_owned())
}

fn start(slot: usize, id: &str, name: &str) -> ModelEvent {
    ModelEvent::ToolCallStart {
        slot,
        vendor_id: Some(id.to_owned()).filter(|id| !id.is_empty()),
        name: name.to_owned(),
    }
}

fn arguments(slot: usize, delta: &str) -> ModelEvent {
    ModelEvent::ToolCallArguments {
        slot,
        delta: delta.to_owned(),
    }
}

const DONE: &str = "[DONE]";
const STOP: ModelEvent = ModelEvent::Finish(FinishReason::Stop);

#[test]
fn text_usage_and_finish_come_in_this_order() {
    let body = stream(&[
        &delta(r#""role":"assistant","content":"""#),
        &delta(r#""content":"Grüße""#),
        &finish("stop"),
        r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}"#,
        DONE,
    ]);
    let usage = TokenUsage {
        input_tokens: Some(9),
        output_tokens: Some(1),
        total_tokens: Some(10),
        ..TokenUsage::default()
    };
    let expected = vec![text("Grüße"), ModelEvent::Usage(usage.into()), STOP];
    assert_eq!(decode_every_way(&body), (expected, Ok(true)));
}

#[test]
fn reasoning_is_kept_beside_calls_and_only_there() {
    let reasoning = [
        delta(r#""reasoning_content":"a","reasoning":"a""#),
        delta(r#""reasoning":"b""#),
    ];
    let [a, b] = &reasoning;
    let with_call = stream(&[a, b, &call("c1", "f", "{}"), &finish("tool_calls"), DONE]);
    let said = [
        ModelEvent::Reasoning("a".to_owned()),
        ModelEvent::Reasoning("b".to_owned()),
    ];
    let mut expected = said.to_vec();
    expected.extend([
        start(0, "c1", "f"),
        arguments(0, "{}"),
        ModelEvent::ToolCallEnd { slot: 0 },
        ModelEvent::VendorState(json!({ "reasoning_content": "ab" })),
        ModelEvent::Finish(FinishReason::ToolCalls),
    ]);
    assert_eq!(decode_every_way(&with_call), (expected, Ok(true)));

    let without_call = stream(&[a, b, &finish("stop"), DONE]);
    let mut expected = said.to_vec();
    expected.push(STOP);
    assert_eq!(decode_every_way(&without_call), (expected, Ok(true)));
}

#[test]
fn a_refusal_is_the_answers_text() {
    let body = stream(&[
        &delta(r#""content":null,"refusal":"I cannot.""#),
        &finish("stop"),
        DONE,
    ]);
    assert_eq!(decode_every_way(&body), (vec![text("I cannot."), STOP], Ok(true)));
}

#[test]
fn the_older_single_call_is_a_call() {
    let body = stream(&[
        &delta(r#""function_call":{"name":"f","arguments":"{"}"#),
        &delta(r#""function_call":{"arguments":"}"}"#),
        &finish("function_call"),
        DONE,
    ]);
    let expected = vec![
        start(0, "", "f"),
        arguments(0, "{"),
        arguments(0, "}"),
        ModelEvent::ToolCallEnd { slot: 0 },
        ModelEvent::Finish(FinishReason::ToolCalls),
    ];
    assert_eq!(decode_every_way(&body), (expected, Ok(true)));
}

#[test]
fn an_answer_that_is_not_streamed_is_read_at_its_end() {
    let body = r#" {"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hi",
        "tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":{"n":1.0}}}]},
        "finish_reason":"tool_calls"}]}"#;
    let expected = vec![
        text("Hi"),
        start(0, "c1", "f"),
        arguments(0, r#"{"n":1.0}"#),
        ModelEvent::ToolCallEnd { slot: 0 },
        ModelEvent::Finish(FinishReason::ToolCalls),
    ];
    assert_eq!(decode_every_way(body), (expected, Ok(false)));
    let error = r#"{"error":{"message":"no such model","type":"invalid_request_error"}}"#;
    let refused = ProviderError::Refused {
        status: 200,
        retryable: false,
        retry_after_ms: None,
        detail: "invalid_request_error no such model".to_owned(),
    };
    assert_eq!(decode_every_way(error), (vec![], Err(refused)));
    assert_eq!(
        decode_every_way(r#"{"choices":[{"mess"#),
        (vec![], Err(ProviderError::Truncated))
    );
    assert_eq!(
        decode_every_way(" \u{c}{"),
        (vec![], Err(ProviderError::Truncated))
    );
    let not_json = ProviderError::Malformed("the answer is no chat completion");
    assert_eq!(decode_every_way("{nonsense}"), (vec![], Err(not_json)));
}

#[test]
fn a_page_is_malformed_at_once() {
    let page = ProviderError::Malformed("the answer is a page, not a stream");
    assert_eq!(
        decode_every_way("\n <!doctype html>\n<p>Sign in</p>"),
        (vec![], Err(page))
    );
}

#[test]
fn a_finish_reason_or_done_is_a_whole_answer_and_nothing_else_is() {
    let hello = delta(r#""content":"hello""#);
    let said = vec![text("hello"), STOP];
    assert_eq!(
        decode_every_way(&stream(&[&hello, DONE])),
        (said.clone(), Ok(true))
    );
    assert_eq!(
        decode_every_way(&stream(&[&hello, &finish("stop")])),
        (said.clone(), Ok(false))
    );
    assert_eq!(
        decode_every_way(&stream(&[&hello, DONE, "late", "{"])),
        (said.clone(), Ok(true))
    );
    let without_blank_line = format!("{}data: {}", stream(&[&hello]), finish("stop"));
    assert_eq!(decode_every_way(&without_blank_line), (said, Ok(false)));

    let cut = Err(ProviderError::Truncated);
    assert_eq!(
        decode_every_way(&stream(&[&hello])),
        (vec![text("hello")], cut.clone())
    );
    let in_a_payload = format!("{}data: {{\"choices\":[{{\"fin", stream(&[&hello]));
    assert_eq!(
        decode_every_way(&in_a_payload),
        (vec![text("hello")], cut.clone())
    );
    assert_eq!(
        decode_every_way(&stream(&[&finish("abort")])),
        (vec![], cut.clone())
    );
    assert_eq!(decode_every_way(""), (vec![], cut));
}

#[test]
fn a_fault_in_the_middle_keeps_what_came_before_it() {
    let hello = delta(r#""content":"hello""#);
    let cases = [
        (stream(&[&hello, "{\"choices\":[", DONE]), NOT_A_CHUNK),
        (
            stream(&[&hello, r#"{"error":{"message":"x","code":429}}"#, DONE]),
            ProviderError::RateLimited {
                retry_after_ms: None,
                detail: "x".to_owned(),
            },
        ),
        (
            format!("{}event: error\ndata: oops\n\n", stream(&[&hello])),
            refusal::in_stream(b"oops"),
        ),
        (
            stream(&[&hello, r#"{"object":"error","message":"x","code":500}"#]),
            ProviderError::Refused {
                status: 500,
                retryable: true,
                retry_after_ms: None,
                detail: "x".to_owned(),
            },
        ),
        (
            stream(&[&hello, &finish("error")]),
            refusal::by_finish_reason("error"),
        ),
    ];
    for (body, error) in cases {
        assert_eq!(
            decode_every_way(&body),
            (vec![text("hello")], Err(error)),
            "{body}"
        );
    }
}

#[test]
fn a_limit_inside_a_call_is_a_truncated_output() {
    let cut_calls: [(&[String], usize); 3] = [
        (&[call("c1", "f", "{\"a\":")], 0),
        (&[call("c1", "f", "")], 0),
        // The call before the cut one was whole, and was sent as such (D8).
        (&[call("c1", "f", "{}"), call("c2", "", "")], 1),
    ];
    for (calls, whole_count) in cut_calls {
        let payloads: Vec<&str> = calls.iter().map(String::as_str).collect();
        let body = format!("{}{}", stream(&payloads), stream(&[&finish("length"), DONE]));
        let (events, end) = decode_every_way(&body);
        assert_eq!(end, Err(ProviderError::OutputTruncated), "{calls:?}");
        let is_end = |event: &&ModelEvent| matches!(event, ModelEvent::ToolCallEnd { .. });
        assert_eq!(events.iter().filter(is_end).count(), whole_count, "{calls:?}");
    }
}

#[test]
fn a_limit_after_text_or_whole_calls_is_a_finish_reason() {
    let length = ModelEvent::Finish(FinishReason::Length);
    let after_text = stream(&[&delta(r#""content":"hello""#), &finish("length"), DONE]);
    assert_eq!(
        decode_every_way(&after_text),
        (vec![text("hello"), length.clone()], Ok(true))
    );
    let after_call = stream(&[&call("c1", "f", "{}"), &finish("length"), DONE]);
    let expected = vec![
        start(0, "c1", "f"),
        arguments(0, "{}"),
        ModelEvent::ToolCallEnd { slot: 0 },
        length,
    ];
    assert_eq!(decode_every_way(&after_call), (expected, Ok(true)));
}

#[test]
fn a_filtered_answer_never_ends_its_calls() {
    let after_text = stream(&[&delta(r#""content":"hello""#), &finish("content_filter"), DONE]);
    let expected = vec![text("hello"), ModelEvent::Finish(FinishReason::ContentFilter)];
    assert_eq!(decode_every_way(&after_text), (expected, Ok(true)));
    let after_call = stream(&[&call("c1", "f", "{}"), &finish("content_filter"), DONE]);
    let expected = vec![start(0, "c1", "f"), arguments(0, "{}")];
    assert_eq!(
        decode_every_way(&after_call),
        (expected, Err(ProviderError::ContentFiltered))
    );
}

#[test]
fn broken_arguments_end_their_call_if_the_model_said_it_was_done() {
    let broken = [start(0, "c1", "f"), arguments(0, "{\"a\":")];
    let body = stream(&[&call("c1", "f", "{\"a\":"), &finish("tool_calls"), DONE]);
    let mut expected = broken.to_vec();
    expected.extend([
        ModelEvent::ToolCallEnd { slot: 0 },
        ModelEvent::Finish(FinishReason::ToolCalls),
    ]);
    assert_eq!(decode_every_way(&body), (expected, Ok(true)));
    let body = stream(&[&call("c1", "f", "{\"a\":"), DONE]);
    assert_eq!(
        decode_every_way(&body),
        (broken.to_vec(), Err(ProviderError::Truncated))
    );
    let nameless = ProviderError::Malformed("a tool call has no name");
    let body = stream(&[&call("c1", "", "{}"), &finish("tool_calls"), DONE]);
    assert_eq!(decode_every_way(&body), (vec![], Err(nameless)));
}

#[test]
fn other_choices_and_reports_say_nothing() {
    let body = stream(&[
        r#"{"choices":null,"usage":null}"#,
        r#"{"choices":[{"index":1,"delta":{"content":"other"},"finish_reason":"stop"}]}"#,
        "{}",
        "",
        &delta(r#""content":"one""#),
        r#"{"choices":[{"finish_reason":"stop","delta":null}]}"#,
        DONE,
    ]);
    assert_eq!(decode_every_way(&body), (vec![text("one"), STOP], Ok(true)));
}
