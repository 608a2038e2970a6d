//! [`ModelRequest`] -> a `RunAgentInput`.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use super::super::content::{is_blank, join_texts, object_schema, settings_object};
use super::super::upstream_ids::UpstreamIds;
use super::super::{ModelMessage, ModelRequest, ModelTarget, ModelToolCall, ModelToolResult};
use crate::list::List;
use crate::protocol::forwarded_props::ToolChoice;
use crate::protocol::json;
use crate::protocol::message::ContentPart;
use crate::protocol::tool::Tool;
use crate::protocol::tree::json;

/// The body's text.
pub(super) fn body(target: &ModelTarget, request: &ModelRequest) -> String {
    let run_id = run_id(request);
    let thread_id = request.thread_id.as_str();
    let body = Body {
        // An agent elsewhere need not know threads without a name.
        thread_id: if thread_id.is_empty() { &run_id } else { thread_id },
        run_id: &run_id,
        protocol_version: "1.0",
        state: request.state.as_ref().map_or_else(|| json!({}), Value::clone),
        messages: messages(request),
        // The protocol has no other way to say that none may be called.
        tools: match request.tool_choice {
            ToolChoice::None => Vec::new(),
            ToolChoice::Auto | ToolChoice::Required | ToolChoice::Function(_) => {
                request.tools.iter().map(tool).list()
            }
        },
        context: [],
        forwarded_props: forwarded_props(target, request),
    };
    json::text(&body)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    thread_id: &'a str,
    run_id: &'a str,
    protocol_version: &'static str,
    state: Value,
    messages: Vec<Message<'a>>,
    tools: Vec<Value>,
    /// Part of the system texts; older agents want the member.
    context: [Value; 0],
    forwarded_props: Map<String, Value>,
}

#[derive(Serialize)]
struct Message<'a> {
    id: String,
    #[serde(flatten)]
    body: MessageBody<'a>,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum MessageBody<'a> {
    System {
        content: Cow<'a, str>,
    },
    User {
        content: UserContent<'a>,
    },
    Assistant {
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<&'a str>,
        #[serde(rename = "toolCalls", skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Value>,
    },
    Tool {
        #[serde(rename = "toolCallId")]
        tool_call_id: String,
        content: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<&'a str>,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum UserContent<'a> {
    /// Text alone: older agents know no parts.
    Text(Cow<'a, str>),
    Parts(&'a [ContentPart]),
}

/// Two runs of a thread never have one id: behind the first request of our run they are numbered.
fn run_id(request: &ModelRequest) -> String {
    let is_answer = |message: &&ModelMessage| {
        matches!(
            message,
            ModelMessage::Assistant {
                vendor_state: Some(_),
                ..
            }
        )
    };
    match request.messages.iter().filter(is_answer).count() {
        0 => request.run_id.as_str().to_owned(),
        count => format!("{}-{}", request.run_id, count + 1),
    }
}

fn messages(request: &ModelRequest) -> Vec<Message<'_>> {
    let mut ids = MessageIds::default();
    let system = join_texts(request.system.iter().map(String::as_str));
    let mut written: Vec<Message<'_>> = system
        .into_iter()
        .map(|content| ids.message(None, MessageBody::System { content }))
        .list();
    let mut of_answer = UpstreamIds::default();
    let mut calls: &[ModelToolCall] = &[];
    for message in &request.messages {
        match message {
            ModelMessage::User { parts } => {
                let content = user_content(parts);
                written.extend(content.map(|content| ids.message(None, MessageBody::User { content })));
            }
            ModelMessage::Assistant {
                text,
                tool_calls,
                vendor_state,
            } => {
                of_answer = UpstreamIds::read(vendor_state.as_ref());
                calls = tool_calls;
                let content = Some(text.as_str()).filter(|text| !is_blank(text));
                if content.is_some() || !tool_calls.is_empty() {
                    let tool_calls = tool_calls.iter().enumerate();
                    let tool_calls = tool_calls
                        .map(|(index, call)| tool_call(call, of_answer.tool_call_id(index, &call.id)));
                    let body = MessageBody::Assistant {
                        content,
                        tool_calls: tool_calls.list(),
                    };
                    written.push(ids.message(of_answer.message_id.clone(), body));
                }
            }
            ModelMessage::ToolResults(results) => written.extend(results.iter().map(|result| {
                let index = calls.iter().position(|call| call.id == result.tool_call_id);
                let call_id = index.map_or(result.tool_call_id.as_str(), |index| {
                    of_answer.tool_call_id(index, &result.tool_call_id)
                });
                ids.message(None, tool_result(result, call_id))
            })),
        }
    }
    written
}

/// Ids of messages: the same message has the same id in each request, whatever part of the history it comes with, so an
/// agent that keeps messages by id keeps each once.
#[derive(Default)]
struct MessageIds {
    hashes: Vec<u128>,
}

impl MessageIds {
    /// The message under the id the agent knows it by, else one of its own.
    fn message<'a>(&mut self, known: Option<String>, body: MessageBody<'a>) -> Message<'a> {
        let id = known.unwrap_or_else(|| {
            // FNV-1a, 128 bits: deterministic, and wide enough that two messages of a thread do not meet.
            let mut hash: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
            for byte in json::text(&body).into_bytes() {
                hash = (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
            }
            self.hashes.push(hash);
            match self.hashes.iter().filter(|known| **known == hash).count() {
                1 => format!("msg_{hash:032x}"),
                count => format!("msg_{hash:032x}_{count}"),
            }
        });
        Message { id, body }
    }
}

fn user_content(parts: &[ContentPart]) -> Option<UserContent<'_>> {
    let text = |part: &'_ ContentPart| match part {
        ContentPart::Text(_) => true,
        ContentPart::Image(_) | ContentPart::Audio(_) | ContentPart::Video(_) | ContentPart::Document(_) => {
            false
        }
    };
    if !parts.iter().all(text) {
        return Some(UserContent::Parts(parts));
    }
    let texts = parts.iter().filter_map(|part| match part {
        ContentPart::Text(part) => Some(part.text.as_str()),
        ContentPart::Image(_) | ContentPart::Audio(_) | ContentPart::Video(_) | ContentPart::Document(_) => {
            None
        }
    });
    join_texts(texts).map(UserContent::Text)
}

fn tool_call(call: &ModelToolCall, id: &str) -> Value {
    let function = json!({ "name": call.name, "arguments": call.arguments });
    json!({ "id": id, "type": "function", "function": function })
}

fn tool_result<'a>(result: &'a ModelToolResult, tool_call_id: &str) -> MessageBody<'a> {
    MessageBody::Tool {
        tool_call_id: tool_call_id.to_owned(),
        content: &result.content,
        error: result.is_error.then_some(result.content.as_str()),
    }
}

fn tool(tool: &Tool) -> Value {
    json!({
        "name": tool.name,
        "description": tool.description,
        "parameters": object_schema(tool.parameters.as_ref()),
    })
}

fn forwarded_props(target: &ModelTarget, request: &ModelRequest) -> Map<String, Value> {
    let mut props = request.unknown_props.clone();
    let mut put = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            props.insert(name.to_owned(), value);
        }
    };
    let agent_id = Some(target.model.as_str()).filter(|id| !id.is_empty());
    // A server like this one would otherwise wait in its run for results that come with the next.
    put("frontendTools", Some("next-run".into()));
    put("agentId", agent_id.map(Value::from));
    let settings = settings_object(&request.settings);
    put(
        "modelSettings",
        Some(settings)
            .filter(|settings| !settings.is_empty())
            .map(Value::from),
    );
    put("toolChoice", tool_choice(&request.tool_choice));
    let schema = request.output_schema.as_ref();
    put(
        "structuredOutput",
        schema.map(|schema| json!({ "schema": schema })),
    );
    props
}

fn tool_choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some("none".into()),
        ToolChoice::Required => Some("required".into()),
        ToolChoice::Function(name) => Some(json!({ "type": "function", "function": { "name": name } })),
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
