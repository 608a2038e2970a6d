use serde_json::json;

use super::*;
use crate::protocol::forwarded_props::ModelSettings;
use crate::protocol::id::{RunId, ThreadId};
use crate::protocol::read;
use crate::provider::Secret;
use crate::provider::table::Wire;

fn request(messages: Vec<ModelMessage>) -> ModelRequest {
    ModelRequest {
        system: vec![],
        messages,
        tools: vec![],
        tool_choice: ToolChoice::Required,
        settings: ModelSettings {
            temperature: Some(0.5),
            top_p: Some(0.25),
            ..ModelSettings::default()
        },
        output_schema: None,
        state: None,
        unknown_props: Map::from_iter([("store".to_owned(), true.into())]),
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
        wire: Wire::OpenAiResponses,
        provider: "openai-responses",
        base_url: "https://api.openai.com/v1".to_owned(),
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

#[test]
fn a_model_that_reasons_is_asked_for_its_reasoning_and_takes_no_sampling() {
    let request = request(vec![user(json!([{ "type": "text", "text": "Hi" }]))]);
    let input = json!([{ "role": "user", "content": [{ "type": "input_text", "text": "Hi" }] }]);
    let reasoning = json!({
        "model": "gpt-5",
        "input": input,
        "stream": true,
        "store": false,
        "include": ["reasoning.encrypted_content"],
    });
    assert_eq!(written("gpt-5", &request), reasoning);
    let plain = json!({
        "model": "gpt-4.1",
        "input": input,
        "stream": true,
        "store": false,
        "temperature": 0.5,
        "top_p": 0.25,
    });
    assert_eq!(written("gpt-4.1", &request), plain);
}

#[test]
fn the_name_tells_whether_a_model_reasons() {
    for model in [
        "o1",
        "o4-mini-2025-04-16",
        "gpt-5",
        "gpt-5.1-codex",
        "openai/gpt-6-mini",
        "gpt-10",
        "ft:o4-mini:org",
        "codex-mini-latest",
    ] {
        assert!(reasons(model), "{model}");
    }
    for model in [
        "gpt-4.1",
        "gpt-4o",
        "chatgpt-4o-latest",
        "gpt-5-chat-latest",
        "gpt-5.1-chat-latest",
        "openai/gpt-oss-20b",
        "olmo-2",
        "",
    ] {
        assert!(!reasons(model), "{model}");
    }
}

#[test]
fn reasoning_goes_back_in_its_place_with_the_calls_as_stored() {
    let reasoning = json!({ "type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2Vj" });
    let state = json!({ "output": [
        reasoning,
        { "type": "message", "text": "Let me look.", "phase": "commentary" },
        { "type": "function_call", "slot": 0 },
        { "type": "message", "text": " " },
        { "type": "function_call", "slot": 9 },
    ] });
    let call = ModelToolCall {
        id: "c1".to_owned(),
        name: "f".to_owned(),
        arguments: String::new(),
    };
    let said = |vendor_state| ModelMessage::Assistant {
        text: "Let me look.".to_owned(),
        tool_calls: vec![call.clone()],
        vendor_state,
    };
    let call = json!({ "type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}" });
    let with_state = written("gpt-5", &request(vec![said(Some(state))]));
    let expected = json!([
        reasoning,
        { "role": "assistant", "content": "Let me look.", "phase": "commentary" },
        call,
    ]);
    assert_eq!(with_state["input"], expected);
    for foreign in [None, Some(json!({ "content": [] }))] {
        let body = written("gpt-5", &request(vec![said(foreign)]));
        let expected = json!([{ "role": "assistant", "content": "Let me look." }, call]);
        assert_eq!(body["input"], expected);
    }
}

#[test]
fn a_part_nobody_there_can_take_is_left_out() {
    let handle = |kind: &str, provider: &str| json!({ "type": kind, "source": { "type": "file", "value": "file-1", "provider": provider } });
    let data = |kind: &str, mime_type: &str| json!({ "type": kind, "source": { "type": "data", "value": "QUJD", "mimeType": mime_type } });
    let mut named = data("document", "application/pdf; a=b");
    named["metadata"] = json!({ "filename": "a.pdf" });
    let request = request(vec![
        user(json!([
            handle("image", "openai"),
            handle("document", "openai"),
            handle("image", "google"),
            named,
            data("document", "text/plain"),
            data("audio", "audio/wav"),
        ])),
        user(json!([data("video", "video/mp4")])),
    ]);
    let expected = json!([{ "role": "user", "content": [
        { "type": "input_image", "detail": "auto", "file_id": "file-1" },
        { "type": "input_file", "file_id": "file-1" },
        { "type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,QUJD" },
    ] }]);
    assert_eq!(written("gpt-5", &request)["input"], expected);
}

#[test]
fn a_result_may_have_pictures() {
    let source = MediaSource::Data {
        value: "AA==".to_owned(),
        mime_type: "image/png".to_owned(),
    };
    let result = ModelToolResult {
        tool_call_id: "c1".to_owned(),
        name: "f".to_owned(),
        content: "[image/png]".to_owned(),
        images: vec![MediaPart {
            source,
            id: None,
            metadata: None,
        }],
        is_error: false,
    };
    let written = written("gpt-5", &request(vec![ModelMessage::ToolResults(vec![result])]));
    assert_eq!(
        written["input"],
        json!([{
            "type": "function_call_output",
            "call_id": "c1",
            "output": [
                { "type": "input_text", "text": "[image/png]" },
                { "type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,AA==" }
            ]
        }])
    );
}

#[test]
fn a_summary_is_asked_for_where_a_model_reasons() {
    let reasoning =
        |model: &str, wants: bool| written_by(model, &request(vec![]), wants)["reasoning"].clone();
    assert_eq!(reasoning("gpt-5-mini", true), json!({ "summary": "auto" }));
    assert_eq!(reasoning("gpt-5-mini", false), Value::Null);
    assert_eq!(reasoning("gpt-4o", true), Value::Null);
}
