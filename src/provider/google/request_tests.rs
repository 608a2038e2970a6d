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
        settings: ModelSettings::default(),
        output_schema: None,
        state: None,
        unknown_props: Map::from_iter([("contents".to_owned(), "other".into())]),
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
        wire: Wire::Google,
        provider: "google",
        base_url: "https://generativelanguage.googleapis.com/v1beta".to_owned(),
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

fn call(id: &str, signature: Option<&str>) -> Value {
    let mut part = json!({ "functionCall": { "id": id, "name": "f", "args": {} } });
    if let Some(signature) = signature {
        part["thoughtSignature"] = signature.into();
    }
    part
}

#[test]
fn a_small_request_has_nothing_it_need_not_have() {
    let request = request(vec![says("Hi")]);
    let expected = json!({ "contents": [{ "role": "user", "parts": [{ "text": "Hi" }] }] });
    assert_eq!(written("gemini-3-pro", &request), expected);
}

#[test]
fn signatures_go_back_in_their_place_with_the_calls_as_stored() {
    let state = json!({ "parts": [
        { "text": "Let me look." },
        { "slot": 0, "thoughtSignature": "c2ln" },
        { "slot": 1 },
        { "slot": 9 },
        { "text": "So.", "thoughtSignature": "c2ln" },
    ] });
    let request = request(vec![
        says("q"),
        said("before", &[], None),
        said("Let me look.So.", &[("c1", ""), ("c2", "null")], Some(state)),
    ]);
    let expected = json!([
        { "role": "user", "parts": [{ "text": "q" }] },
        { "role": "model", "parts": [{ "text": "before" }] },
        { "role": "user", "parts": [{ "text": "Continue." }] },
        { "role": "model", "parts": [
            { "text": "Let me look." },
            call("c1", Some("c2ln")),
            call("c2", None),
            { "text": "So.", "thoughtSignature": "c2ln" },
        ] },
        { "role": "user", "parts": [{ "text": "Continue." }] },
    ]);
    assert_eq!(written("gemini-3-pro", &request)["contents"], expected);
}

#[test]
fn the_first_call_of_an_answer_whose_signature_is_lost_says_so() {
    let request = request(vec![
        said("", &[("c1", "{}"), ("c2", "{}")], None),
        said("", &[("c3", "{}")], Some(json!({ "content": [] }))),
    ]);
    let parts = |model: &str| written(model, &request)["contents"][1]["parts"].take();
    let lost = Some("skip_thought_signature_validator");
    assert_eq!(
        parts("gemini-3-pro"),
        json!([call("c1", lost), call("c2", None), call("c3", lost)])
    );
    assert_eq!(
        parts("gemini-2.5-pro"),
        json!([call("c1", None), call("c2", None), call("c3", None)])
    );
}

#[test]
fn an_answer_is_bound_to_a_schema_where_the_model_allows_it() {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "number" } } });
    let mut request = request(vec![says("Hi")]);
    request.output_schema = Some(schema.clone());
    let bound = json!({ "responseMimeType": "application/json", "responseJsonSchema": schema });
    let unbound = json!({ "parts": [{ "text": answer_by_schema(&schema) }] });
    let null = Value::Null;
    let asked = |request: &ModelRequest, model: &str| {
        let body = written(model, request);
        (
            body["generationConfig"].clone(),
            body["systemInstruction"].clone(),
        )
    };
    assert_eq!(asked(&request, "gemini-2.5-pro"), (bound.clone(), null.clone()));
    assert_eq!(asked(&request, "gemma-3-27b-it"), (null.clone(), unbound.clone()));
    request.tools = vec![Tool {
        name: "f".to_owned(),
        description: String::new(),
        parameters: Some(json!({ "type": "object", "properties": {} })),
    }];
    assert_eq!(asked(&request, "gemini-2.5-pro"), (null.clone(), unbound));
    assert_eq!(asked(&request, "gemini-3-pro"), (bound, null));
    let tools = json!([{ "functionDeclarations": [{ "name": "f", "description": "f" }] }]);
    assert_eq!(written("gemini-3-pro", &request)["tools"], tools);
}

#[test]
fn settings_out_of_range_are_left_out() {
    let mut request = request(vec![says("Hi")]);
    request.settings = ModelSettings {
        seed: Some(i64::MAX),
        stop_sequences: (0..7).map(|number| number.to_string()).collect(),
        ..ModelSettings::default()
    };
    let expected = json!({ "stopSequences": ["0", "1", "2", "3", "4"] });
    assert_eq!(written("gemini-3-pro", &request)["generationConfig"], expected);
}

#[test]
fn a_part_nobody_there_can_take_is_left_out() {
    let data = |kind: &str, mime_type: &str| json!({ "type": kind, "source": { "type": "data", "value": "QUJD", "mimeType": mime_type } });
    let url = |kind: &str, value: &str| json!({ "type": kind, "source": { "type": "url", "value": value } });
    let handle = |provider: &str| json!({ "type": "document", "source": { "type": "file", "value": "files/1", "provider": provider } });
    let request = request(vec![user(json!([
        data("image", "image/jpg"),
        data("image", "image/tiff"),
        data("document", "text/csv; charset=utf-8"),
        data("document", "application/zip"),
        url("image", "https://x.test/a"),
        url("image", "http://x.test/a"),
        handle("google"),
        handle("openai"),
    ]))]);
    let expected = json!([{ "role": "user", "parts": [
        { "inlineData": { "mimeType": "image/jpeg", "data": "QUJD" } },
        { "inlineData": { "mimeType": "text/csv", "data": "QUJD" } },
        { "fileData": { "fileUri": "https://x.test/a" } },
        { "fileData": { "fileUri": "files/1" } },
    ] }]);
    assert_eq!(written("gemini-3-pro", &request)["contents"], expected);
}

#[test]
fn thoughts_are_asked_for_where_a_model_has_some() {
    let thoughts = |model: &str, wants: bool| {
        let body = written_by(model, &request(vec![]), wants);
        body["generationConfig"]["thinkingConfig"].clone()
    };
    let shown = json!({ "includeThoughts": true });
    assert_eq!(thoughts("gemini-2.5-flash", true), shown);
    assert_eq!(thoughts("gemini-3-pro-preview", true), shown);
    assert_eq!(thoughts("gemini-2.5-flash", false), Value::Null);
    for model in ["gemini-2.0-flash", "gemma-3-27b-it"] {
        assert_eq!(thoughts(model, true), Value::Null, "{model}");
    }
}
