//! Messages in Mastra's stored form, which both shipped UIs read. Source: contract 4 (D19).
//!
//! Every row has `content.parts`: a single row without empties the whole history of one of them.

use serde_json::{Map, Value};

use super::incoming::{made_calls, tool_call_id};
use crate::protocol::id::{MessageId, ResourceId, ThreadId, ToolCallId};
use crate::protocol::index::{Index, KeySet};
use crate::protocol::json;
use crate::protocol::message::{Content, ContentPart, Message, MessageBody};
use crate::protocol::parts;
use crate::protocol::time::iso_8601;
use crate::protocol::tool::{ToolCall, ToolResult};
use crate::protocol::tree::json;

/// What is known of the calls of a page.
pub(super) struct Results {
    results: Index<ToolCallId, Message>,
    pending: KeySet<ToolCallId>,
}

impl Results {
    /// Takes the results among the messages; `pending` are the calls a later run may answer.
    pub fn of(messages: &[(u64, Message)], pending: KeySet<ToolCallId>) -> Self {
        let mut results = Self {
            results: Index::default(),
            pending,
        };
        results.add(messages.iter().map(|(_, message)| message.clone()).collect());
        results
    }

    /// Calls among the messages that have no result and wait for none.
    pub fn missing(&self, messages: &[(u64, Message)]) -> Vec<ToolCallId> {
        messages
            .iter()
            .flat_map(|(_, message)| made_calls(message))
            .filter(|call| !self.results.contains(call.as_str()) && !self.pending.contains(call.as_str()))
            .cloned()
            .collect()
    }

    /// Takes the results among more messages.
    pub fn add(&mut self, messages: Vec<Message>) {
        for message in messages {
            if let Some(call) = tool_call_id(&message) {
                self.results.put(call.clone(), message);
            }
        }
    }

    fn part(&self, call: &ToolCall) -> Value {
        let arguments = json::parse(&call.arguments).unwrap_or_else(|_| json!({}));
        let result = match self.results.get(call.id.as_str()) {
            Some(message) => Some(result_value(message)),
            None if self.pending.contains(call.id.as_str()) => None,
            None => Some(parsed(&ToolResult::interrupted().content)),
        };
        let mut invocation = Map::new();
        let state = if result.is_some() { "result" } else { "call" };
        invocation.insert("state".to_owned(), json!(state));
        invocation.insert("toolCallId".to_owned(), json!(call.id));
        invocation.insert("toolName".to_owned(), json!(call.name));
        invocation.insert("args".to_owned(), arguments);
        if let Some(result) = result {
            invocation.insert("result".to_owned(), result);
        }
        json!({"type": "tool-invocation", "toolInvocation": invocation})
    }
}

/// Rows of messages that another server keeps: calls without a result may still get one.
pub fn kept_rows(thread_id: &ThreadId, owner: &ResourceId, messages: Vec<(u64, Message)>) -> Vec<Value> {
    let none = Results::of(&messages, KeySet::default());
    let pending = none.missing(&messages).into_iter().collect();
    let results = Results::of(&messages, pending);
    mastra_rows(thread_id, owner, messages, &results)
}

/// Rows from messages in order, each with its time. Everything between two user messages is one row.
pub(super) fn mastra_rows(
    thread_id: &ThreadId,
    owner: &ResourceId,
    messages: Vec<(u64, Message)>,
    results: &Results,
) -> Vec<Value> {
    let mut rows: Vec<MastraRow> = Vec::new();
    for (created_at_ms, message) in messages {
        match message.body {
            MessageBody::User { content } => {
                rows.push(MastraRow::new("user", message.id, created_at_ms));
                if let Some(row) = rows.last_mut() {
                    // Always one text part: the Angular UI reads the first.
                    row.push_text(content.to_text());
                }
            }
            MessageBody::Assistant { content, tool_calls } => {
                if rows.last().is_none_or(|row| row.role != "assistant") {
                    rows.push(MastraRow::new("assistant", message.id, created_at_ms));
                }
                if let Some(row) = rows.last_mut() {
                    if let Some(text) = content.filter(|text| !text.trim().is_empty()) {
                        row.push_text(text);
                    }
                    row.parts.extend(tool_calls.iter().map(|call| results.part(call)));
                    row.tool_calls.extend(tool_calls);
                }
            }
            MessageBody::Tool { .. }
            | MessageBody::System { .. }
            | MessageBody::Developer { .. }
            | MessageBody::Activity { .. }
            | MessageBody::Reasoning { .. } => {}
        }
    }
    rows.into_iter()
        .map(|row| row.into_value(thread_id, owner))
        .collect()
}

struct MastraRow {
    role: &'static str,
    id: MessageId,
    created_at_ms: u64,
    parts: Vec<Value>,
    texts: Vec<String>,
    tool_calls: Vec<ToolCall>,
}

impl MastraRow {
    fn new(role: &'static str, id: MessageId, created_at_ms: u64) -> Self {
        Self {
            role,
            id,
            created_at_ms,
            parts: Vec::new(),
            texts: Vec::new(),
            tool_calls: Vec::new(),
        }
    }

    fn push_text(&mut self, text: String) {
        self.parts.push(json!({"type": "text", "text": text}));
        self.texts.push(text);
    }

    fn into_value(self, thread_id: &ThreadId, owner: &ResourceId) -> Value {
        let mut content = Map::new();
        content.insert("format".to_owned(), json!(2));
        content.insert("parts".to_owned(), Value::Array(self.parts));
        if !self.texts.is_empty() {
            content.insert("content".to_owned(), parts::join(&self.texts, "\n\n").into());
        }
        let mut row = Map::new();
        let mut put = |name: &str, value: Value| row.insert(name.to_owned(), value);
        put("id", json!(self.id));
        put("role", json!(self.role));
        put("createdAt", json!(iso_8601(self.created_at_ms)));
        put("threadId", json!(thread_id));
        put("resourceId", json!(owner));
        put("type", json!("v2"));
        put("content", Value::Object(content));
        if !self.tool_calls.is_empty() {
            put("toolCalls", json!(self.tool_calls));
        }
        Value::Object(row)
    }
}

fn result_value(message: &Message) -> Value {
    let MessageBody::Tool { content, error, .. } = &message.body else {
        return Value::Null;
    };
    let text = match content {
        Content::Parts(parts) if !parts.iter().all(is_text) => return json!(parts),
        Content::Text(_) | Content::Parts(_) => content.to_text(),
    };
    match error {
        Some(error) if text.trim().is_empty() => json!({ "error": error }),
        Some(_) | None => parsed(&text),
    }
}

fn is_text(part: &ContentPart) -> bool {
    match part {
        ContentPart::Text(_) => true,
        ContentPart::Image(_) | ContentPart::Audio(_) | ContentPart::Video(_) | ContentPart::Document(_) => {
            false
        }
    }
}

/// JSON becomes its value, any other text stays a string.
fn parsed(text: &str) -> Value {
    json::parse(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

#[cfg(test)]
#[path = "mastra_form_tests.rs"]
mod tests;
