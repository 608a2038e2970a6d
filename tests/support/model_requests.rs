//! The requests every provider must be able to write.

use io_bridge::protocol::forwarded_props::{ModelSettings, ToolChoice};
use io_bridge::protocol::id::{RunId, ThreadId};
use io_bridge::protocol::message::ContentPart;
use io_bridge::protocol::read;
use io_bridge::protocol::tool::Tool;
use io_bridge::provider::{ModelMessage, ModelRequest, ModelToolCall, ModelToolResult};
use serde_json::{Map, Value, json};

/// A system text and a question.
pub fn plain() -> ModelRequest {
    ModelRequest {
        system: vec!["Be kind.".to_owned(), "Be brief.".to_owned()],
        messages: vec![user(json!([{ "type": "text", "text": "How is the weather?" }]))],
        tools: vec![],
        tool_choice: ToolChoice::Auto,
        settings: ModelSettings::default(),
        output_schema: None,
        state: Some(json!({ "page": 2.0 })),
        unknown_props: Map::from_iter([("model".to_owned(), "another".into())]),
        run_id: RunId::new("run-1"),
        thread_id: ThreadId::new("thread-1"),
        kept_thread: None,
    }
}

/// The second request of a tool loop: text and two calls, both answered, one of them with a failure.
pub fn tool_results() -> ModelRequest {
    let mut request = plain();
    request.tools = tools();
    request.messages.push(ModelMessage::Assistant {
        text: "Let me look.".to_owned(),
        tool_calls: vec![
            call("call_a", "get_weather", r#"{"city":"Varna"}"#),
            call("call_b", "get_time", "{}"),
        ],
        vendor_state: None,
    });
    request.messages.push(ModelMessage::ToolResults(vec![
        result("call_a", "get_weather", r#"{"degrees":21.0}"#, false),
        result("call_b", "get_time", r#"{"error":"No clock."}"#, true),
    ]));
    request
}

/// Calls without any text before them, answered, then two messages of the person in a row.
pub fn roles_in_a_row() -> ModelRequest {
    let mut request = plain();
    request.tools = tools();
    request.messages.push(ModelMessage::Assistant {
        text: String::new(),
        tool_calls: vec![call("call_a", "get_time", "{}")],
        vendor_state: None,
    });
    request.messages.push(ModelMessage::ToolResults(vec![result(
        "call_a", "get_time", "noon", false,
    )]));
    request
        .messages
        .push(user(json!([{ "type": "text", "text": "Thanks." }])));
    request
        .messages
        .push(user(json!([{ "type": "text", "text": "And tomorrow?" }])));
    request
}

/// Every choice of tools there is.
pub fn tool_choices() -> [(&'static str, ModelRequest); 4] {
    let with = |tool_choice| ModelRequest {
        tools: tools(),
        tool_choice,
        ..plain()
    };
    [
        ("tool_choice_auto", with(ToolChoice::Auto)),
        ("tool_choice_none", with(ToolChoice::None)),
        ("tool_choice_required", with(ToolChoice::Required)),
        (
            "tool_choice_function",
            with(ToolChoice::Function("get_time".to_owned())),
        ),
    ]
}

/// Every setting there is.
pub fn settings() -> ModelRequest {
    ModelRequest {
        settings: ModelSettings {
            max_output_tokens: Some(100),
            temperature: Some(0.5),
            top_p: Some(0.25),
            top_k: Some(40),
            presence_penalty: Some(0.125),
            frequency_penalty: Some(-0.125),
            stop_sequences: vec!["END".to_owned()],
            seed: Some(7),
            max_retries: Some(1),
        },
        ..plain()
    }
}

/// An answer that must fit a schema.
pub fn structured_output() -> ModelRequest {
    ModelRequest {
        output_schema: Some(json!({
            "type": "object",
            "properties": { "degrees": { "type": "number", "minimum": -90.0 } },
            "required": ["degrees"],
        })),
        ..plain()
    }
}

/// Media of every kind, in the message and by address.
pub fn media() -> ModelRequest {
    let data = |kind: &str, mime_type: &str| json!({ "type": kind, "source": { "type": "data", "value": "QUJD", "mimeType": mime_type } });
    let url = |kind: &str, mime_type: &str| {
        let value = format!("https://files.example.test/{kind}");
        json!({ "type": kind, "source": { "type": "url", "value": value, "mimeType": mime_type } })
    };
    let parts = json!([
        { "type": "text", "text": "What is this?" },
        data("image", "image/png"),
        url("image", "image/png"),
        data("audio", "audio/wav"),
        url("audio", "audio/wav"),
        data("video", "video/mp4"),
        url("video", "video/mp4"),
        data("document", "application/pdf"),
        url("document", "application/pdf"),
    ]);
    ModelRequest {
        messages: vec![user(parts)],
        ..plain()
    }
}

fn user(parts: Value) -> ModelMessage {
    let parts: Vec<ContentPart> = read::from_value(&parts).unwrap();
    ModelMessage::User { parts }
}

fn tools() -> Vec<Tool> {
    vec![
        Tool {
            name: "get_weather".to_owned(),
            description: "Says the weather.".to_owned(),
            parameters: Some(json!({
                "type": "object",
                "properties": { "city": { "type": "string" } },
                "required": ["city"],
            })),
        },
        Tool {
            name: "get_time".to_owned(),
            description: "Says the time.".to_owned(),
            parameters: None,
        },
    ]
}

fn call(id: &str, name: &str, arguments: &str) -> ModelToolCall {
    ModelToolCall {
        id: id.to_owned(),
        name: name.to_owned(),
        arguments: arguments.to_owned(),
    }
}

fn result(id: &str, name: &str, content: &str, is_error: bool) -> ModelToolResult {
    ModelToolResult {
        tool_call_id: id.to_owned(),
        name: name.to_owned(),
        content: content.to_owned(),
        images: vec![],
        is_error,
    }
}
