//! [`ModelRequest`] -> the body of `POST /api/agents/:agentId/stream`.

use serde::Serialize;
use serde_json::{Map, Value};

use super::super::content::{
    MediaBytes, arguments_object, file_name, is_blank, join_texts, media_bytes, object_schema,
    settings_object,
};
use super::super::upstream_ids::UpstreamIds;
use super::super::{KeptThread, ModelMessage, ModelRequest, ModelToolCall, ModelToolResult};
use crate::list::List;
use crate::protocol::forwarded_props::ToolChoice;
use crate::protocol::id::{ResourceId, ThreadId};
use crate::protocol::json;
use crate::protocol::message::{ContentPart, MediaPart};
use crate::protocol::tool::Tool;
use crate::protocol::tree::json;

/// How keys of `requestContext` begin that a Mastra server reads as facts about the caller and the run; a client of ours
/// cannot state those.
const RESERVED_CONTEXT: [&str; 2] = ["mastra__", "mastra:"];

/// The body's text.
pub(super) fn body(request: &ModelRequest) -> String {
    let system = join_texts(request.system.iter().map(String::as_str));
    let messages = match &request.kept_thread {
        Some(thread) => new_messages(&request.messages, thread.is_read_only),
        None => all_messages(&request.messages),
    };
    let body = Body {
        messages,
        system: system.as_deref(),
        memory: request
            .kept_thread
            .as_ref()
            .map(|thread| Memory::of(&request.thread_id, thread)),
        client_tools: request.tools.iter().map(client_tool).collect(),
        tool_choice: tool_choice(&request.tool_choice),
        max_steps: max_steps(&request.tool_choice),
        model_settings: settings_object(&request.settings),
        structured_output: request
            .output_schema
            .as_ref()
            .map(|schema| json!({ "schema": schema })),
        request_context: request_context(&request.unknown_props),
    };
    json::text(&body)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    messages: Vec<Message<'a>>,
    /// Not `instructions`, which would replace the agent's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Memory<'a>>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    client_tools: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_steps: Option<u32>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    model_settings: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_output: Option<Value>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    request_context: Map<String, Value>,
}

#[derive(Serialize)]
struct Memory<'a> {
    thread: &'a ThreadId,
    resource: &'a ResourceId,
    #[serde(skip_serializing_if = "Map::is_empty")]
    options: Map<String, Value>,
}

impl<'a> Memory<'a> {
    fn of(thread_id: &'a ThreadId, thread: &'a KeptThread) -> Self {
        let mut options = Map::new();
        if let Some(count) = thread.last_messages {
            let last_messages = if count == 0 {
                Value::Bool(false)
            } else {
                count.into()
            };
            options.insert("lastMessages".to_owned(), last_messages);
        }
        if thread.is_read_only {
            options.insert("readOnly".to_owned(), true.into());
        }
        Self {
            thread: thread_id,
            resource: &thread.owner,
            options,
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Message<'a> {
    User { content: Value },
    Assistant(Assistant<'a>),
}

/// An assistant message as a user interface has it. Mastra reads a call, its arguments and its result from one part only
/// in this form; a `tool` message makes it forget the arguments.
#[derive(Serialize, Default)]
struct Assistant<'a> {
    /// The id under which the server stores the message: it is completed there then, not stored twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// The texts again, for readers that know no parts.
    content: String,
    parts: Vec<Part<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum Part<'a> {
    Text {
        text: &'a str,
    },
    /// Ends a step: without it the calls before and behind become one step's.
    StepStart,
    ToolInvocation {
        #[serde(rename = "toolInvocation")]
        tool_invocation: ToolInvocation<'a>,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolInvocation<'a> {
    state: &'static str,
    tool_call_id: String,
    tool_name: &'a str,
    args: Value,
    result: Value,
}

/// The whole conversation; what the model says between two messages of the person is one message.
fn all_messages(messages: &[ModelMessage]) -> Vec<Message<'_>> {
    let mut written = Vec::new();
    let mut open: Option<Assistant<'_>> = None;
    for (index, message) in messages.iter().enumerate() {
        match message {
            ModelMessage::User { parts } => {
                written.extend(open.take().map(Message::Assistant));
                written.extend(user_content(parts).map(|content| Message::User { content }));
            }
            ModelMessage::Assistant { text, tool_calls, .. } => {
                let assistant = open.get_or_insert_default();
                assistant.push_step(
                    text,
                    tool_calls,
                    results_at(messages, index + 1),
                    &UpstreamIds::default(),
                );
            }
            ModelMessage::ToolResults(_) => {}
        }
    }
    written.extend(open.map(Message::Assistant));
    written
}

/// What a server that keeps the thread does not have yet: the results of the step before, else what the person says. A
/// thread that is only read has nothing of the run.
fn new_messages(messages: &[ModelMessage], is_read_only: bool) -> Vec<Message<'_>> {
    if !is_read_only
        && let Some((ModelMessage::ToolResults(results), before)) = messages.split_last()
        && let Some(ModelMessage::Assistant {
            text,
            tool_calls,
            vendor_state,
        }) = before.last()
    {
        let ids = UpstreamIds::read(vendor_state.as_ref());
        let mut assistant = Assistant {
            id: ids.message_id.clone(),
            ..Assistant::default()
        };
        assistant.push_step(text, tool_calls, results, &ids);
        return vec![Message::Assistant(assistant)];
    }
    let is_user = |message: &ModelMessage| matches!(message, ModelMessage::User { .. });
    let last_user = messages.iter().rposition(is_user).unwrap_or(0);
    let before = messages.get(..last_user).unwrap_or_default();
    let start = before.iter().rposition(|message| !is_user(message));
    let start = start.map_or(0, |index| index + 1);
    all_messages(messages.get(start..).unwrap_or_default())
}

fn results_at(messages: &[ModelMessage], index: usize) -> &[ModelToolResult] {
    match messages.get(index) {
        Some(ModelMessage::ToolResults(results)) => results,
        Some(ModelMessage::User { .. } | ModelMessage::Assistant { .. }) | None => &[],
    }
}

impl<'a> Assistant<'a> {
    /// Adds what the model said in one step.
    fn push_step(
        &mut self,
        text: &'a str,
        tool_calls: &'a [ModelToolCall],
        results: &'a [ModelToolResult],
        ids: &UpstreamIds,
    ) {
        if is_blank(text) && tool_calls.is_empty() {
            return;
        }
        if !self.parts.is_empty() {
            self.parts.push(Part::StepStart);
        }
        if !is_blank(text) {
            self.content.push_str(text);
            self.parts.push(Part::Text { text });
        }
        for (index, call) in tool_calls.iter().enumerate() {
            let result = results.iter().find(|result| result.tool_call_id == call.id);
            let content = result.map_or("", |result| &result.content);
            let tool_invocation = ToolInvocation {
                state: "result",
                tool_call_id: ids.tool_call_id(index, &call.id).to_owned(),
                tool_name: &call.name,
                args: arguments_object(&call.arguments),
                result: json::tree(content).unwrap_or_else(|| content.into()),
            };
            self.parts.push(Part::ToolInvocation { tool_invocation });
        }
    }
}

fn user_content(parts: &[ContentPart]) -> Option<Value> {
    let is_text = |part: &ContentPart| matches!(part, ContentPart::Text(_));
    if parts.iter().all(is_text) {
        let texts = parts.iter().filter_map(|part| match part {
            ContentPart::Text(part) => Some(part.text.as_str()),
            ContentPart::Image(_)
            | ContentPart::Audio(_)
            | ContentPart::Video(_)
            | ContentPart::Document(_) => None,
        });
        return join_texts(texts).map(|text| text.into());
    }
    let parts: Vec<Value> = parts.iter().filter_map(part).list();
    (!parts.is_empty()).then(|| parts.into())
}

/// Whether a part has a place in a request.
pub(super) fn takes(content: &ContentPart) -> bool {
    part(content).is_some()
}

fn part(part: &ContentPart) -> Option<Value> {
    match part {
        ContentPart::Text(part) if is_blank(&part.text) => None,
        ContentPart::Text(part) => Some(json!({ "type": "text", "text": part.text })),
        ContentPart::Image(media) => image(media),
        ContentPart::Audio(media) | ContentPart::Video(media) | ContentPart::Document(media) => file(media),
    }
}

fn image(media: &MediaPart) -> Option<Value> {
    let (image, mime_type) = match media_bytes(&media.source)? {
        MediaBytes::Base64 { mime_type, data } => (data, Some(mime_type)),
        MediaBytes::Address { url, mime_type } => (url, mime_type),
    };
    let mut part = json!({ "type": "image", "image": image });
    if let (Value::Object(members), Some(mime_type)) = (&mut part, mime_type) {
        members.insert("mediaType".to_owned(), mime_type.into());
    }
    Some(part)
}

/// Mastra wants to know what a file is: one at an address of unknown type is left out.
fn file(media: &MediaPart) -> Option<Value> {
    let (data, mime_type) = match media_bytes(&media.source)? {
        MediaBytes::Base64 { mime_type, data } => (data, mime_type),
        MediaBytes::Address { url, mime_type } => (url, mime_type?),
    };
    let mut part = json!({ "type": "file", "data": data, "mediaType": mime_type });
    if let (Value::Object(members), Some(name)) = (&mut part, file_name(media)) {
        members.insert("filename".to_owned(), name.into());
    }
    Some(part)
}

fn client_tool(tool: &Tool) -> (String, Value) {
    let declaration = json!({
        "id": tool.name,
        "description": tool.description,
        "inputSchema": object_schema(tool.parameters.as_ref()),
    });
    (tool.name.clone(), declaration)
}

/// Sent without tools of ours too: the server's own obey it.
fn tool_choice(choice: &ToolChoice) -> Option<Value> {
    match choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some("none".into()),
        ToolChoice::Required => Some("required".into()),
        ToolChoice::Function(name) => Some(json!({ "type": "tool", "toolName": name })),
    }
}

/// The server holds its model to the choice on each step of a request, so a forced call would be made for ever: it gets
/// one step, and the next request asks without the choice.
fn max_steps(choice: &ToolChoice) -> Option<u32> {
    match choice {
        ToolChoice::Required | ToolChoice::Function(_) => Some(1),
        ToolChoice::Auto | ToolChoice::None => None,
    }
}

fn request_context(unknown_props: &Map<String, Value>) -> Map<String, Value> {
    let mut context = Map::new();
    for (name, value) in unknown_props {
        if !RESERVED_CONTEXT.iter().any(|prefix| name.starts_with(prefix)) {
            context.insert(name.clone(), value.clone());
        }
    }
    context
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
