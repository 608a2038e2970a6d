use serde_json::json;

use super::*;
use crate::protocol::forwarded_props::ModelSettings;
use crate::protocol::id::{RunId, ThreadId};
use crate::protocol::read;
use crate::provider::Secret;
use crate::provider::table::Wire;

fn target(base_url: &str) -> ModelTarget {
    ModelTarget {
        wire: Wire::OpenAiChat,
        provider: "openai",
        base_url: base_url.to_owned(),
        api_key: Some(Secret::new("key")),
        model: "m1".to_owned(),
        headers: Vec::new(),
        query: Vec::new(),
        wants_reasoning: false,
    }
}

fn request() -> ModelRequest {
    ModelRequest {
        system: vec![],
        messages: vec![],
        tools: vec![],
        tool_choice: ToolChoice::Auto,
        settings: ModelSettings::default(),
        output_schema: None,
        state: None,
        unknown_props: Map::new(),
        run_id: RunId::new("r1"),
        thread_id: ThreadId::new("t1"),
        kept_thread: None,
    }
}

fn written(base_url: &str, request: &ModelRequest) -> Value {
    serde_json::from_str(&body(&target(base_url), request)).unwrap()
}

fn messages_of(request: &ModelRequest) -> Value {
    written("http://server.test", request)["messages"].take()
}

fn parts(parts: Value) -> ModelMessage {
    ModelMessage::User {
        parts: read::from_value(&parts).unwrap(),
    }
}

fn user(text: &str) -> ModelMessage {
    parts(json!([{ "type": "text", "text": text }]))
}

fn calling(vendor_state: Option<Value>) -> [ModelMessage; 2] {
    let call = ModelToolCall {
        id: "c1".to_owned(),
        name: "f".to_owned(),
        arguments: String::new(),
    };
    let result = ModelToolResult {
        tool_call_id: "c1".to_owned(),
        name: "f".to_owned(),
        content: "done".to_owned(),
        images: vec![],
        is_error: false,
    };
    [
        ModelMessage::Assistant {
            text: " ".to_owned(),
            tool_calls: vec![call],
            vendor_state,
        },
        ModelMessage::ToolResults(vec![result]),
    ]
}

#[test]
fn a_small_request_has_nothing_it_need_not_have() {
    let mut request = request();
    request.messages = vec![user("Hi")];
    request.unknown_props.insert("model".to_owned(), "other".into());
    request.tool_choice = ToolChoice::Required;
    let expected = json!({
        "model": "m1",
        "messages": [{ "role": "user", "content": "Hi" }],
        "stream": true,
        "stream_options": { "include_usage": true },
    });
    assert_eq!(written("http://server.test", &request), expected);
}

#[test]
fn messages_keep_their_order_and_blank_texts_are_left_out() {
    let mut request = request();
    request.system = vec!["Be kind.".to_owned(), "Be brief.".to_owned()];
    request.messages = vec![
        user(" "),
        parts(json!([{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }])),
    ];
    request
        .messages
        .extend(calling(Some(json!({ "reasoning_content": "hm" }))));
    let said = |text: &str| ModelMessage::Assistant {
        text: text.to_owned(),
        tool_calls: vec![],
        vendor_state: None,
    };
    request
        .messages
        .extend([said(""), said("So."), user("x"), user("y")]);
    let expected = json!([
        { "role": "system", "content": "Be kind.\n\nBe brief." },
        { "role": "user", "content": "a\n\nb" },
        { "role": "assistant", "content": null, "tool_calls": [
            { "id": "c1", "type": "function", "function": { "name": "f", "arguments": "{}" } },
        ] },
        { "role": "tool", "tool_call_id": "c1", "content": "done" },
        { "role": "assistant", "content": "So." },
        { "role": "user", "content": "x" },
        { "role": "user", "content": "y" },
    ]);
    assert_eq!(messages_of(&request), expected);
}

#[test]
fn reasoning_goes_back_with_calls_where_the_server_demands_it() {
    for (state, expected) in [(Some(json!({ "reasoning_content": "hm" })), "hm"), (None, "")] {
        let mut request = request();
        request.messages = calling(state).into();
        let written = written("https://api.deepseek.com", &request);
        assert_eq!(written["messages"][0]["reasoning_content"], expected);
    }
}

#[test]
fn media_go_where_chat_completions_has_a_place_for_them() {
    let data = |kind: &str, mime_type: &str| json!({ "type": kind, "source": { "type": "data", "value": "QUJD", "mimeType": mime_type } });
    let mut named = data("document", "application/pdf");
    named["metadata"] = json!({ "filename": "a.pdf" });
    let url = |kind: &str| json!({ "type": kind, "source": { "type": "url", "value": "https://x.test/a" } });
    let handle = |provider: &str| json!({ "type": "document", "source": { "type": "file", "value": "file-1", "provider": provider } });
    let mut request = request();
    request.messages = vec![
        parts(json!([
            { "type": "text", "text": "look" },
            url("image"),
            data("image", "image/png"),
            data("audio", "audio/wav; codecs=1"),
            data("audio", "audio/mpeg"),
            data("document", "application/pdf"),
            named,
            handle("openai"),
        ])),
        parts(json!([
            url("audio"),
            url("document"),
            url("video"),
            data("video", "video/mp4"),
            data("audio", "audio/ogg"),
            data("document", "text/csv"),
            handle("other"),
        ])),
    ];
    let pdf = "data:application/pdf;base64,QUJD";
    let expected = json!([{ "role": "user", "content": [
        { "type": "text", "text": "look" },
        { "type": "image_url", "image_url": { "url": "https://x.test/a" } },
        { "type": "image_url", "image_url": { "url": "data:image/png;base64,QUJD" } },
        { "type": "input_audio", "input_audio": { "data": "QUJD", "format": "wav" } },
        { "type": "input_audio", "input_audio": { "data": "QUJD", "format": "mp3" } },
        { "type": "file", "file": { "filename": "document.pdf", "file_data": pdf } },
        { "type": "file", "file": { "filename": "a.pdf", "file_data": pdf } },
        { "type": "file", "file": { "file_id": "file-1" } },
    ] }]);
    assert_eq!(messages_of(&request), expected);
}

#[test]
fn tools_always_declare_an_object() {
    let tool = |description: &str, parameters: Option<Value>| Tool {
        name: "f".to_owned(),
        description: description.to_owned(),
        parameters,
    };
    let mut request = request();
    request.tools = vec![
        tool("Does f.", None),
        tool("", Some(json!({}))),
        tool(
            "",
            Some(json!({ "type": "object", "properties": { "n": { "const": 1.0 } } })),
        ),
    ];
    let empty = json!({ "type": "object", "properties": {} });
    let expected = json!([
        { "type": "function", "function": { "name": "f", "description": "Does f.", "parameters": empty } },
        { "type": "function", "function": { "name": "f", "parameters": empty } },
        { "type": "function", "function": { "name": "f", "parameters":
            { "type": "object", "properties": { "n": { "const": 1.0 } } } } },
    ]);
    assert_eq!(written("http://server.test", &request)["tools"], expected);
}

#[test]
fn the_tool_choice_is_written_in_the_servers_words() {
    for (choice, expected) in [
        (ToolChoice::Auto, Value::Null),
        (ToolChoice::None, "none".into()),
        (ToolChoice::Required, "required".into()),
        (
            ToolChoice::Function("f".to_owned()),
            json!({ "type": "function", "function": { "name": "f" } }),
        ),
    ] {
        let mut request = request();
        request.tool_choice = choice;
        request.tools = vec![Tool {
            name: "f".to_owned(),
            description: String::new(),
            parameters: None,
        }];
        assert_eq!(written("http://server.test", &request)["tool_choice"], expected);
    }
}

#[test]
fn settings_have_the_servers_names() {
    let mut request = request();
    request.settings = ModelSettings {
        max_output_tokens: Some(100),
        temperature: Some(0.5),
        top_p: Some(0.9),
        top_k: Some(4),
        presence_penalty: Some(0.1),
        frequency_penalty: Some(-0.1),
        stop_sequences: vec!["END".to_owned()],
        seed: Some(7),
        max_retries: Some(1),
    };
    request.output_schema = Some(json!({ "type": "object" }));
    let mut expected = json!({
        "model": "m1",
        "messages": [],
        "stream": true,
        "stream_options": { "include_usage": true },
        "max_tokens": 100,
        "temperature": 0.5,
        "top_p": 0.9,
        "presence_penalty": 0.1,
        "frequency_penalty": -0.1,
        "stop": ["END"],
        "seed": 7,
        "response_format": {
            "type": "json_schema",
            "json_schema": { "name": "answer", "schema": { "type": "object" }, "strict": false },
        },
    });
    assert_eq!(written("http://server.test/v1", &request), expected);
    let members = expected.as_object_mut().unwrap();
    members.remove("max_tokens");
    members.insert("max_completion_tokens".to_owned(), 100.into());
    assert_eq!(written("https://api.openai.com/v1", &request), expected);
}

#[test]
fn mistral_gets_what_it_takes() {
    let mut request = request();
    request.settings.seed = Some(7);
    request.messages = vec![user("Hi")];
    request.messages.extend(calling(None));
    request.messages.push(parts(json!([
        { "type": "text", "text": "And now?" },
        { "type": "document", "source": { "type": "data", "value": "QUJD", "mimeType": "application/pdf" } },
    ])));
    request.messages.push(ModelMessage::Assistant {
        text: "So.".to_owned(),
        tool_calls: vec![],
        vendor_state: None,
    });
    let body = written("https://api.mistral.ai/v1", &request);
    let id = body["messages"][1]["tool_calls"][0]["id"].clone();
    let is_taken = |id: &str| id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    assert!(is_taken(id.as_str().unwrap()), "{id}");
    let expected = json!({
        "model": "m1",
        "messages": [
            { "role": "user", "content": "Hi" },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": id, "type": "function", "function": { "name": "f", "arguments": "{}" } },
            ] },
            { "role": "tool", "tool_call_id": id, "content": "done" },
            { "role": "assistant", "content": "Understood." },
            { "role": "user", "content": "And now?" },
            { "role": "assistant", "content": "So." },
            { "role": "user", "content": "Continue." },
        ],
        "stream": true,
        "random_seed": 7,
    });
    assert_eq!(body, expected);
}

#[test]
fn a_server_without_schemas_is_asked_for_json_by_one() {
    let mut request = request();
    let schema = json!({ "type": "object" });
    request.output_schema = Some(schema.clone());
    request.messages = vec![user("Hi")];
    let body = written("https://api.deepseek.com", &request);
    assert_eq!(body["response_format"], json!({ "type": "json_object" }));
    assert_eq!(
        body["messages"][0],
        json!({ "role": "system", "content": answer_by_schema(&schema) })
    );
}
