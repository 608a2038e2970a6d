use serde_json::json;

use super::*;
use crate::protocol::forwarded_props::ModelSettings;
use crate::protocol::id::{RunId, ThreadId};
use crate::protocol::message::MediaSource;
use crate::protocol::read;
use crate::provider::Secret;
use crate::provider::table::Wire;

fn request(messages: Vec<ModelMessage>) -> ModelRequest {
    ModelRequest {
        system: vec![],
        messages,
        tools: vec![],
        tool_choice: ToolChoice::Auto,
        settings: ModelSettings::default(),
        output_schema: None,
        state: None,
        unknown_props: Map::from_iter([("model".to_owned(), "other".into())]),
        run_id: RunId::new("r1"),
        thread_id: ThreadId::new("t1"),
        kept_thread: None,
    }
}

fn written(model: &str, request: &ModelRequest) -> Value {
    written_by(model, request, false)
}

fn written_by(model: &str, request: &ModelRequest, wants_reasoning: bool) -> Value {
    let target = ModelTarget {
        wire: Wire::Anthropic,
        provider: "anthropic",
        base_url: "https://api.anthropic.com".to_owned(),
        api_key: Some(Secret::new("key")),
        model: model.to_owned(),
        headers: Vec::new(),
        query: Vec::new(),
        wants_reasoning,
    };
    serde_json::from_str(&body(&target, request)).unwrap()
}

fn user(parts: Value) -> ModelMessage {
    ModelMessage::User {
        parts: read::from_value(&parts).unwrap(),
    }
}

fn says(text: &str) -> ModelMessage {
    user(json!([{ "type": "text", "text": text }]))
}

fn said(text: &str, calls: &[(&str, &str)], vendor_state: Option<Value>) -> ModelMessage {
    let call = |(id, arguments): &(&str, &str)| ModelToolCall {
        id: (*id).to_owned(),
        name: "f".to_owned(),
        arguments: (*arguments).to_owned(),
    };
    ModelMessage::Assistant {
        text: text.to_owned(),
        tool_calls: calls.iter().map(call).collect(),
        vendor_state,
    }
}

fn result(id: &str, content: &str) -> ModelMessage {
    ModelMessage::ToolResults(vec![ModelToolResult {
        tool_call_id: id.to_owned(),
        name: "f".to_owned(),
        content: content.to_owned(),
        images: vec![],
        is_error: false,
    }])
}

#[test]
fn a_result_may_have_pictures() {
    let mut answer = result("c1", "[image/png]");
    let source = MediaSource::Data {
        value: "AA==".to_owned(),
        mime_type: "image/png".to_owned(),
    };
    if let ModelMessage::ToolResults(results) = &mut answer {
        results[0].images = vec![MediaPart {
            source,
            id: None,
            metadata: None,
        }];
    }
    let messages = vec![says("Hi"), said("", &[("c1", "{}")], None), answer];
    let written = written("claude-sonnet-4-5", &request(messages));
    assert_eq!(
        written["messages"][2]["content"][0]["content"],
        json!([
            { "type": "text", "text": "[image/png]" },
            { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AA==" } }
        ])
    );
}

#[test]
fn a_small_request_has_nothing_it_need_not_have() {
    let mut request = request(vec![says("Hi")]);
    request.tool_choice = ToolChoice::Required;
    let expected = json!({
        "model": "claude-sonnet-5",
        "max_tokens": 32_000,
        "messages": [{ "role": "user", "content": [{ "type": "text", "text": "Hi" }] }],
        "stream": true,
    });
    assert_eq!(written("claude-sonnet-5", &request), expected);
}

#[test]
fn roles_alternate_and_begin_and_end_with_the_user() {
    let request = request(vec![
        said("first", &[], None),
        said(" ", &[("c1", "")], None),
        result("c1", " "),
        says("more"),
        said("last", &[], None),
    ]);
    let text = |text: &str| json!({ "type": "text", "text": text });
    let expected = json!([
        { "role": "user", "content": [text("Continue.")] },
        { "role": "assistant", "content": [
            text("first"),
            { "type": "tool_use", "id": "c1", "name": "f", "input": {} },
        ] },
        { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "c1" }, text("more")] },
        { "role": "assistant", "content": [text("last")] },
        { "role": "user", "content": [text("Continue.")] },
    ]);
    assert_eq!(written("claude-sonnet-5", &request)["messages"], expected);
}

#[test]
fn thinking_goes_back_in_its_place_with_the_calls_as_stored() {
    let thinking = json!({ "type": "thinking", "thinking": "hm", "signature": "c2ln" });
    let redacted = json!({ "type": "redacted_thinking", "data": "b3A=" });
    let state = json!({ "content": [
        thinking,
        { "type": "text", "text": "Let me look." },
        { "type": "tool_use", "slot": 0 },
        redacted,
        { "type": "text", "text": "\n" },
        { "type": "tool_use", "slot": 1 },
        { "type": "tool_use", "slot": 9 },
    ] });
    let request = request(vec![
        says("q"),
        said("before", &[], None),
        said(
            "Let me look.\n",
            &[("c1", "{}"), ("c2", r#"{"n":1.0}"#)],
            Some(state),
        ),
    ]);
    let text = |text: &str| json!({ "type": "text", "text": text });
    let expected = json!([
        { "role": "user", "content": [text("q")] },
        { "role": "assistant", "content": [text("before")] },
        { "role": "user", "content": [text("Continue.")] },
        { "role": "assistant", "content": [
            thinking,
            text("Let me look."),
            { "type": "tool_use", "id": "c1", "name": "f", "input": {} },
            redacted,
            { "type": "tool_use", "id": "c2", "name": "f", "input": { "n": 1.0 } },
        ] },
        { "role": "user", "content": [text("Continue.")] },
    ]);
    assert_eq!(written("claude-sonnet-5", &request)["messages"], expected);
}

#[test]
fn sampling_goes_to_models_that_take_it() {
    let mut request = request(vec![says("Hi")]);
    request.settings = ModelSettings {
        temperature: Some(1.5),
        top_p: Some(0.5),
        top_k: Some(3),
        stop_sequences: vec![" ".to_owned(), "END".to_owned()],
        ..ModelSettings::default()
    };
    let sampling = |request: &ModelRequest, model: &str| {
        let body = written(model, request);
        [
            body["temperature"].clone(),
            body["top_p"].clone(),
            body["top_k"].clone(),
        ]
    };
    let null = Value::Null;
    assert_eq!(
        sampling(&request, "claude-opus-4-0"),
        [json!(1.0), json!(0.5), json!(3)]
    );
    assert_eq!(
        sampling(&request, "claude-opus-4-5"),
        [json!(1.0), null.clone(), json!(3)]
    );
    assert_eq!(
        sampling(&request, "claude-opus-5"),
        [null.clone(), null.clone(), null.clone()]
    );
    assert_eq!(
        written("claude-opus-5", &request)["stop_sequences"],
        json!(["END"])
    );
    request.settings.temperature = None;
    assert_eq!(
        sampling(&request, "claude-opus-4-5"),
        [null, json!(0.5), json!(3)]
    );
}

#[test]
fn an_answer_is_bound_to_a_schema_where_model_and_schema_allow_it() {
    let mut request = request(vec![says("Hi")]);
    let schema = json!({ "type": "object", "properties": { "n": { "type": "number", "maximum": 9.0 } } });
    request.output_schema = Some(schema.clone());
    let bound = json!({ "format": { "type": "json_schema", "schema": {
        "type": "object",
        "properties": { "n": { "type": "number" } },
        "additionalProperties": false,
    } } });
    let body = written("claude-opus-5", &request);
    assert_eq!((&body["output_config"], &body["system"]), (&bound, &Value::Null));
    let body = written("claude-opus-4-1", &request);
    assert_eq!(
        (&body["output_config"], &body["system"]),
        (&Value::Null, &json!(answer_by_schema(&schema)))
    );
    let open = json!({ "type": "object", "additionalProperties": { "type": "string" } });
    request.output_schema = Some(open.clone());
    request.system = vec!["Be kind.".to_owned()];
    let body = written("claude-opus-5", &request);
    let system = format!("Be kind.\n\n{}", answer_by_schema(&open));
    assert_eq!(
        (&body["output_config"], &body["system"]),
        (&Value::Null, &json!(system))
    );
}

#[test]
fn a_model_that_always_thinks_is_not_forced_to_call() {
    let mut request = request(vec![says("Hi")]);
    request.tools = vec![Tool {
        name: "f".to_owned(),
        description: " ".to_owned(),
        parameters: Some(json!({ "anyOf": [], "properties": { "a": { "anyOf": [] } } })),
    }];
    let tools = json!([{ "name": "f", "input_schema": { "properties": { "a": { "anyOf": [] } }, "type": "object" } }]);
    for (choice, forced) in [
        (ToolChoice::Required, json!({ "type": "any" })),
        (
            ToolChoice::Function("f".to_owned()),
            json!({ "type": "tool", "name": "f" }),
        ),
    ] {
        request.tool_choice = choice;
        assert_eq!(written("claude-opus-5", &request)["tool_choice"], forced);
        let body = written("claude-opus-5-5", &request);
        assert_eq!((&body["tools"], &body["tool_choice"]), (&tools, &Value::Null));
    }
}

#[test]
fn a_part_nobody_there_can_take_is_left_out() {
    let data = |kind: &str, mime_type: &str| json!({ "type": kind, "source": { "type": "data", "value": "QUJD", "mimeType": mime_type } });
    let url = |kind: &str, value: &str| json!({ "type": kind, "source": { "type": "url", "value": value } });
    let mut named = data("document", "application/pdf");
    named["metadata"] = json!({ "filename": "a.pdf" });
    let request = request(vec![user(json!([
        data("image", "image/jpg"),
        data("image", "image/tiff"),
        url("image", "data:image/gif;base64,QUJD"),
        url("image", "http://x.test/a.png"),
        data("document", "text/plain"),
        url("document", "https://x.test/a"),
        named,
        data("audio", "audio/wav"),
        { "type": "document", "source": { "type": "file", "value": "f", "provider": "anthropic" } },
    ]))]);
    let base64 = |kind: &str| json!({ "type": "base64", "media_type": kind, "data": "QUJD" });
    let expected = json!([
        { "type": "image", "source": base64("image/jpeg") },
        { "type": "image", "source": base64("image/gif") },
        { "type": "document", "source": { "type": "url", "url": "https://x.test/a" } },
        { "type": "document", "source": base64("application/pdf"), "title": "a.pdf" },
    ]);
    assert_eq!(
        written("claude-opus-5", &request)["messages"],
        json!([{ "role": "user", "content": expected }])
    );
}

#[test]
fn reasoning_is_asked_for_in_the_way_the_model_takes() {
    let thinking = |model: &str, request: &ModelRequest| written_by(model, request, true)["thinking"].clone();
    let mut plain = request(vec![says("Hi")]);
    plain.settings.temperature = Some(0.5);
    for (model, expected) in [
        ("claude-3-5-haiku-20241022", Value::Null),
        (
            "claude-sonnet-4-5",
            json!({ "type": "enabled", "budget_tokens": 8192 }),
        ),
        ("claude-opus-4-6", json!({ "type": "adaptive" })),
        (
            "claude-opus-4-7",
            json!({ "type": "adaptive", "display": "summarized" }),
        ),
        ("deepseek-v4-pro", Value::Null),
    ] {
        let body = written_by(model, &plain, true);
        assert_eq!(body["thinking"], expected, "{model}");
        assert_eq!(body["temperature"].is_null(), !expected.is_null(), "{model}");
        assert_eq!(written(model, &plain)["thinking"], Value::Null, "{model}");
    }
    let mut small = plain.clone();
    small.settings.max_output_tokens = Some(2000);
    assert_eq!(thinking("claude-sonnet-4-5", &small), Value::Null);

    let result = ModelToolResult {
        tool_call_id: "c1".to_owned(),
        name: "f".to_owned(),
        content: "1".to_owned(),
        images: Vec::new(),
        is_error: false,
    };
    let turn = |state| {
        let messages = vec![says("Hi"), said("", &[("c1", "{}")], state)];
        request([messages, vec![ModelMessage::ToolResults(vec![result.clone()])]].concat())
    };
    assert_eq!(thinking("claude-sonnet-4-5", &turn(None)), Value::Null);
    assert_eq!(
        thinking("claude-sonnet-4-5", &turn(Some(json!({}))))["type"],
        "enabled"
    );
    assert_eq!(thinking("claude-opus-4-6", &turn(None))["type"], "adaptive");
}
