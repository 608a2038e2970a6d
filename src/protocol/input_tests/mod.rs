//! What `RunAgentInput::decode` takes, drops and refuses.

mod hostile;
mod members;
mod messages;
mod props;

use serde_json::{Value, json};

use super::forwarded_props::ForwardedProps;
use super::id::{MessageId, RunId, ThreadId};
use super::input::{Decoded, InputError, RunAgentInput};
use super::message::{Content, Message, MessageBody, MessageExtras};

fn decode(body: &str) -> Decoded {
    RunAgentInput::decode(body).unwrap_or_else(|error| panic!("{error:?}\n{body}"))
}

/// The input of a body that differs from the smallest one in these members.
fn decode_with(members: Value) -> Decoded {
    let mut body = json!({"threadId": "t", "runId": "r", "messages": []});
    for (name, value) in members.as_object().unwrap() {
        body[name] = value.clone();
    }
    decode(&body.to_string())
}

fn issues_of(body: &str) -> Vec<(String, String)> {
    match RunAgentInput::decode(body) {
        Err(InputError::Invalid { issues }) => issues.into_iter().map(|i| (i.pointer, i.message)).collect(),
        other => panic!("{other:?}\n{body}"),
    }
}

fn warnings_of(decoded: &Decoded) -> Vec<(&str, &str)> {
    decoded
        .warnings
        .iter()
        .map(|w| (w.pointer.as_str(), w.message.as_str()))
        .collect()
}

fn smallest() -> RunAgentInput {
    RunAgentInput {
        thread_id: ThreadId::new("t"),
        run_id: RunId::new("r"),
        messages: Vec::new(),
        tools: Vec::new(),
        context: Vec::new(),
        forwarded_props: ForwardedProps::default(),
        declares_version: false,
        state: None,
    }
}

fn user(id: &str, content: Content) -> Message {
    Message {
        id: MessageId::new(id),
        body: MessageBody::User { content },
        extras: MessageExtras::default(),
    }
}
