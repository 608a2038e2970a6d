//! The body that answers a POST: JSON, or events with one message each.

use serde_json::Value;

use super::{McpFault, sentence};
use crate::binding::sse_decoder::{SseDecoder, SseFault};
use crate::protocol::json;

/// What a server sends.
#[derive(Debug, Clone, PartialEq)]
pub enum Incoming {
    /// The answer to a request of ours.
    Response {
        /// Its id; `None` for one we did not give.
        id: Option<u64>,
        /// The result.
        outcome: Result<Value, McpFault>,
    },
    /// It works on this request.
    Progress {
        /// Id of the request.
        token: Option<u64>,
    },
    /// Its tools are others now.
    ToolsChanged,
    /// It asks whether we are here.
    Ping {
        /// Id of its request.
        id: Value,
    },
    /// It asks for what we did not offer.
    Request {
        /// Id of its request.
        id: Value,
    },
}

/// Reads one body, whatever its chunking.
#[derive(Debug)]
pub struct AnswerDecoder {
    max_bytes: usize,
    form: Form,
}

#[derive(Debug)]
enum Form {
    Json(Vec<u8>),
    Events(SseDecoder),
}

impl AnswerDecoder {
    /// A decoder for a body of this content type; no message may be longer than `max_bytes`.
    ///
    /// # Errors
    /// [`McpFault::Malformed`] for any other type.
    pub fn new(content_type: Option<&str>, max_bytes: usize) -> Result<Self, McpFault> {
        let essence = content_type
            .unwrap_or_default()
            .split(';')
            .next()
            .unwrap_or_default();
        let form = match essence.trim().to_ascii_lowercase().as_str() {
            "application/json" => Form::Json(Vec::new()),
            "text/event-stream" => Form::Events(SseDecoder::new(max_bytes)),
            _ => return Err(McpFault::Malformed),
        };
        Ok(Self { max_bytes, form })
    }

    /// Takes the next bytes and appends the messages they complete.
    ///
    /// # Errors
    /// [`McpFault::TooLong`], [`McpFault::Malformed`]
    pub fn feed(&mut self, bytes: &[u8], messages: &mut Vec<Incoming>) -> Result<(), McpFault> {
        let max_bytes = self.max_bytes;
        let too_long = |SseFault::TooLong| McpFault::TooLong(max_bytes);
        match &mut self.form {
            Form::Json(body) if body.len() + bytes.len() > max_bytes => Err(McpFault::TooLong(max_bytes)),
            Form::Json(body) => {
                body.extend_from_slice(bytes);
                Ok(())
            }
            Form::Events(decoder) => {
                let mut events = decoder.feed(bytes);
                while let Some(event) = events.next_event().map_err(too_long)? {
                    read_event(event.name, &event.data, messages)?;
                }
                Ok(())
            }
        }
    }

    /// The body ended.
    ///
    /// # Errors
    /// As [`Self::feed`].
    pub fn end(&mut self, messages: &mut Vec<Incoming>) -> Result<(), McpFault> {
        let max_bytes = self.max_bytes;
        match &mut self.form {
            Form::Json(body) => {
                let text = std::str::from_utf8(body).map_err(|_| McpFault::Malformed)?;
                read_text(text, messages)
            }
            Form::Events(decoder) => {
                let event = decoder.end().map_err(|_| McpFault::TooLong(max_bytes))?;
                // A payload that was cut is no answer, and its end is told from it.
                if let Some(event) = event {
                    let _ = read_event(event.name, &event.data, messages);
                }
                Ok(())
            }
        }
    }
}

/// An event without data only carries an id to resume from.
fn read_event(name: &str, data: &str, messages: &mut Vec<Incoming>) -> Result<(), McpFault> {
    if data.trim().is_empty() || !matches!(name, "" | "message") {
        return Ok(());
    }
    read_text(data, messages)
}

/// One message, or several as version 2025-03-26 allows.
fn read_text(text: &str, messages: &mut Vec<Incoming>) -> Result<(), McpFault> {
    match json::parse(text).map_err(|_| McpFault::Malformed)? {
        Value::Array(batch) => messages.extend(batch.into_iter().filter_map(read)),
        message => messages.extend(read(message)),
    }
    Ok(())
}

fn read(mut message: Value) -> Option<Incoming> {
    let id = message.get("id").filter(|id| !id.is_null()).cloned();
    let method = message.get("method").and_then(Value::as_str);
    match (method, id) {
        (Some("ping"), Some(id)) => Some(Incoming::Ping { id }),
        (Some(_), Some(id)) => Some(Incoming::Request { id }),
        (Some("notifications/progress"), None) => Some(Incoming::Progress {
            token: json::at(&message, "/params/progressToken").and_then(Value::as_u64),
        }),
        (Some("notifications/tools/list_changed"), None) => Some(Incoming::ToolsChanged),
        (Some(_), None) => None,
        (None, id) => {
            let id = id.as_ref().and_then(Value::as_u64);
            let outcome = match message.get("error") {
                Some(error) => {
                    let words = error.get("message").and_then(Value::as_str);
                    Err(McpFault::Refused(sentence(words.unwrap_or_default())))
                }
                None => match message.get_mut("result") {
                    Some(result @ Value::Object(_)) => Ok(result.take()),
                    Some(_) | None => Err(McpFault::Malformed),
                },
            };
            Some(Incoming::Response { id, outcome })
        }
    }
}
