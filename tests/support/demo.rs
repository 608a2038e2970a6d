//! Asks the demo provider, and joins what it streams.

use io_bridge::protocol::forwarded_props::{ModelSettings, ToolChoice};
use io_bridge::protocol::id::{RunId, ThreadId};
use io_bridge::protocol::message::{ContentPart, TextPart};
use io_bridge::protocol::tool::Tool;
use io_bridge::provider::table::{self, Wire};
use io_bridge::provider::{
    FinishReason, ModelCall, ModelEvent, ModelMessage, ModelRequest, ModelTarget, ProviderError,
    ScriptedPiece, codec,
};
use serde_json::{Map, Value};

/// What is said, pieces joined.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    Reasoning(String),
    Text(String),
    Call(String, Value),
    Failure(ProviderError),
    Finish(FinishReason),
}

/// A first message and no tools.
pub fn request(text: &str) -> ModelRequest {
    ModelRequest {
        system: vec!["Be kind.".to_owned()],
        messages: vec![user(text)],
        tools: Vec::new(),
        tool_choice: ToolChoice::Auto,
        settings: ModelSettings::default(),
        output_schema: None,
        state: None,
        unknown_props: Map::new(),
        run_id: RunId::new("run"),
        thread_id: ThreadId::new("thread"),
        kept_thread: None,
    }
}

/// A user message.
pub fn user(text: &str) -> ModelMessage {
    let part = TextPart {
        text: text.to_owned(),
        id: None,
        metadata: None,
    };
    ModelMessage::User {
        parts: vec![ContentPart::Text(part)],
    }
}

/// A declaration.
pub fn tool(name: &str, parameters: Value) -> Tool {
    Tool {
        name: name.to_owned(),
        description: String::new(),
        parameters: Some(parameters),
    }
}

/// The scripted answer.
pub fn pieces(request: &ModelRequest) -> Vec<ScriptedPiece> {
    let target = ModelTarget {
        wire: Wire::Demo,
        provider: table::find("demo").unwrap().name,
        base_url: String::new(),
        api_key: None,
        model: String::new(),
        headers: Vec::new(),
        query: Vec::new(),
        wants_reasoning: false,
    };
    match codec(Wire::Demo).call(&target, request).unwrap() {
        ModelCall::Scripted(pieces) => pieces,
        ModelCall::Http(request) => panic!("the demo sent {request:?}"),
    }
}

/// Joins what was streamed and checks its form: arguments within their call, usage once, directly before the end.
pub fn said(request: &ModelRequest) -> Vec<Said> {
    let mut said: Vec<Said> = Vec::new();
    let mut open_call: Option<(String, String)> = None;
    let mut usage = None;
    let mut slots = 0..;
    for piece in pieces(request) {
        match (piece.event, said.last_mut()) {
            (Err(error), _) => said.push(Said::Failure(error)),
            (Ok(ModelEvent::Text(delta)), Some(Said::Text(text))) => text.push_str(&delta),
            (Ok(ModelEvent::Text(delta)), _) => said.push(Said::Text(delta)),
            (Ok(ModelEvent::Reasoning(delta)), Some(Said::Reasoning(text))) => text.push_str(&delta),
            (Ok(ModelEvent::Reasoning(delta)), _) => said.push(Said::Reasoning(delta)),
            (
                Ok(ModelEvent::ToolCallStart {
                    slot,
                    vendor_id,
                    name,
                }),
                _,
            ) => {
                assert_eq!((Some(slot), open_call.is_none()), (slots.next(), true));
                assert!(vendor_id.is_some());
                open_call = Some((name, String::new()));
            }
            (Ok(ModelEvent::ToolCallArguments { delta, .. }), _) => {
                open_call.as_mut().unwrap().1.push_str(&delta)
            }
            (Ok(ModelEvent::ToolCallEnd { .. }), _) => {
                let (name, arguments) = open_call.take().unwrap();
                said.push(Said::Call(name, serde_json::from_str(&arguments).unwrap()));
            }
            (Ok(ModelEvent::Usage(counts)), _) => assert_eq!(usage.replace(*counts), None),
            (Ok(ModelEvent::Finish(reason)), _) => {
                assert!(usage.is_some() && open_call.is_none());
                said.push(Said::Finish(reason));
            }
            (Ok(other), _) => panic!("the demo never says {other:?}"),
        }
    }
    said
}
