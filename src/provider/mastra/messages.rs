//! Messages in the form a Mastra server stores them -> messages of the protocol.

use serde_json::Value;

use crate::list::List;
use crate::protocol::id::{MessageId, ToolCallId};
use crate::protocol::json;
use crate::protocol::message::{
    Content, ContentPart, MediaPart, MediaSource, Message, MessageBody, MessageExtras, TextPart,
};
use crate::protocol::read::record;
use crate::protocol::time::parse_iso_8601;
use crate::protocol::tool::ToolCall;
use crate::protocol::tree::json;

/// One stored message: a person's, or all that was said up to the next.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptMessage {
    /// Unix milliseconds.
    pub created_at_ms: u64,
    /// The same as messages of the protocol: a person's one message; of an answer one for each text and the calls behind
    /// it, each followed by its results. The first has the stored id, the others ids made of it.
    pub messages: Vec<Message>,
}

/// `{id, role, createdAt, content: {format: 2, parts: [...]}}`; a bare text as content is of an older server.
pub(super) struct StoredMessage {
    id: String,
    role: String,
    created_at: String,
    content: Value,
}

record!(StoredMessage: "id" => id, "role" => role, "createdAt" => created_at, "content" => content);

impl StoredMessage {
    /// `None` = its date cannot be read.
    pub(super) fn into_kept(self) -> Option<KeptMessage> {
        let created_at_ms = parse_iso_8601(&self.created_at)?;
        let parts = match self.content.get("parts").and_then(Value::as_array) {
            Some(parts) => parts.clone(),
            None => {
                vec![json!({ "type": "text", "text": self.content.get("content").unwrap_or(&self.content) })]
            }
        };
        let messages = match self.role.as_str() {
            "user" => vec![user(self.id, &parts)],
            "assistant" => Answer::new(self.id).read(&parts),
            // Texts of the server for its model.
            _ => Vec::new(),
        };
        Some(KeptMessage {
            created_at_ms,
            messages,
        })
    }
}

fn user(id: String, parts: &[Value]) -> Message {
    let parts: Vec<ContentPart> = parts.iter().filter_map(user_part).list();
    let content = match parts.as_slice() {
        [ContentPart::Text(part)] => Content::Text(part.text.clone()),
        _ => Content::Parts(parts),
    };
    Message {
        id: MessageId::new(id),
        body: MessageBody::User { content },
        extras: MessageExtras::default(),
    }
}

fn user_part(part: &Value) -> Option<ContentPart> {
    let member = |name: &str| part.get(name).and_then(Value::as_str);
    let text = || member("text").map(str::to_owned);
    match member("type")? {
        "text" => text().map(|text| {
            ContentPart::Text(TextPart {
                text,
                id: None,
                metadata: None,
            })
        }),
        "file" | "image" => {
            let value = member("data")
                .or_else(|| member("image"))
                .or_else(|| member("url"))?;
            let mime_type = member("mimeType").or_else(|| member("mediaType"));
            Some(media(value.to_owned(), mime_type.map(str::to_owned)))
        }
        _ => None,
    }
}

fn media(value: String, mime_type: Option<String>) -> ContentPart {
    let is_kind = |kind: &str| {
        mime_type
            .as_deref()
            .is_some_and(|mime_type| mime_type.starts_with(kind))
    };
    let wrap = match () {
        () if is_kind("image/") || mime_type.is_none() => ContentPart::Image,
        () if is_kind("audio/") => ContentPart::Audio,
        () if is_kind("video/") => ContentPart::Video,
        () => ContentPart::Document,
    };
    let source = match mime_type {
        Some(mime_type) if !value.contains([':']) => MediaSource::Data { value, mime_type },
        mime_type => MediaSource::Url { value, mime_type },
    };
    wrap(MediaPart {
        source,
        id: None,
        metadata: None,
    })
}

/// An answer being taken apart.
struct Answer {
    id: String,
    messages: Vec<Message>,
    /// How many assistant messages there are: their ids are counted.
    count: usize,
    results: Vec<Message>,
}

impl Answer {
    fn new(id: String) -> Self {
        Self {
            id,
            messages: Vec::new(),
            count: 0,
            results: Vec::new(),
        }
    }

    fn read(mut self, parts: &[Value]) -> Vec<Message> {
        let mut open: Option<Message> = None;
        for part in parts {
            let member = |name: &str| part.get(name).and_then(Value::as_str);
            match member("type") {
                Some("text") => {
                    if let Some(text) = member("text").filter(|text| !text.trim().is_empty()) {
                        self.close(&mut open);
                        open = Some(self.assistant(Some(text.to_owned())));
                    }
                }
                Some("step-start") => self.close(&mut open),
                Some("tool-invocation") => {
                    let invocation = part.get("toolInvocation").unwrap_or(&Value::Null);
                    if let Some(call) = tool_call(invocation) {
                        self.take_result(&call, invocation);
                        let message = open.get_or_insert_with(|| self.assistant(None));
                        if let MessageBody::Assistant { tool_calls, .. } = &mut message.body {
                            tool_calls.push(call);
                        }
                    }
                }
                // Reasoning, sources and data parts are no part of the conversation.
                Some(_) | None => {}
            }
        }
        self.close(&mut open);
        self.messages
    }

    fn close(&mut self, open: &mut Option<Message>) {
        self.messages.extend(open.take());
        self.messages.append(&mut self.results);
    }

    fn assistant(&mut self, content: Option<String>) -> Message {
        self.count += 1;
        let id = match self.count {
            1 => self.id.clone(),
            count => format!("{}_{count}", self.id),
        };
        Message::assistant(MessageId::new(id), content, Vec::new())
    }

    fn take_result(&mut self, call: &ToolCall, invocation: &Value) {
        if invocation.get("state").and_then(Value::as_str) != Some("result") {
            return;
        }
        let content = match invocation.get("result") {
            Some(Value::String(text)) if !text.is_empty() => text.clone(),
            Some(Value::Null | Value::String(_)) | None => json::text(&json!({ "result": "" })),
            Some(value) => json::text(value),
        };
        let id = MessageId::new(format!("{}_{}", self.id, call.id));
        self.results.push(Message::tool(id, call.id.clone(), content));
    }
}

fn tool_call(invocation: &Value) -> Option<ToolCall> {
    let member = |name: &str| invocation.get(name).and_then(Value::as_str);
    let arguments = invocation.get("args").filter(|arguments| arguments.is_object());
    Some(ToolCall {
        id: ToolCallId::new(member("toolCallId")?),
        name: member("toolName")?.to_owned(),
        arguments: arguments.map_or_else(|| "{}".to_owned(), json::text),
        encrypted_value: None,
    })
}
