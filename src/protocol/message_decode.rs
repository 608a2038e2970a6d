//! Reading `messages`: strict about what AG-UI defines, tolerant about what it does not and about older clients.

use serde_json::{Map, Value};

use super::decode::{Object, Path, Report, read_list};
use super::id::{MessageId, ToolCallId};
use super::index::KeySet;
use super::message::{
    Content, ContentPart, MediaPart, MediaSource, Message, MessageBody, MessageExtras, TextPart,
};
use super::node::Node;
use super::tool::ToolCall;
use super::tree::json;

/// Reads a list of messages. Unknown roles, parts and sources are dropped; an id that comes twice keeps its first
/// place and its last content. Source: contract 2.1, 2.3, AG-UI 2.3, 2.4.
pub(super) fn decode_messages(object: &mut Object<'_>, report: &mut Report) -> Vec<Message> {
    let mut messages: Vec<Message> = Vec::new();
    let mut ids = KeySet::default();
    object.list("messages", true, report, |item, at, report| {
        let message = decode_message(item, at, report)?;
        match messages.get_mut(ids.place(message.id.clone())) {
            Some(earlier) => {
                report.warn(*at, "has the id of an earlier message and replaced it");
                *earlier = message;
            }
            None => messages.push(message),
        }
        None::<()>
    });
    messages
}

type Decode<T> = fn(Node<'_>, &Path<'_>, &mut Report) -> Option<T>;

/// Reads one value that must be whole.
fn read_whole<T>(node: Node<'_>, decode: Decode<T>) -> Result<T, String> {
    let mut report = Report::default();
    let value = decode(node, &Path::Root, &mut report);
    let (value, _) = report.finish(value).map_err(|fault| fault.to_string())?;
    value.ok_or_else(|| "has no known role or type".to_owned())
}

/// Reads one message of ours.
///
/// # Errors
/// A sentence that says it is not one.
pub(super) fn read_message(node: Node<'_>) -> Result<Message, String> {
    read_whole(node, decode_message)
}

/// Reads one part of ours.
///
/// # Errors
/// A sentence that says it is not one.
pub(super) fn read_part(node: Node<'_>) -> Result<ContentPart, String> {
    read_whole(node, decode_part)
}

/// Reads one source of ours.
///
/// # Errors
/// A sentence that says it is not one.
pub(super) fn read_source(node: Node<'_>) -> Result<MediaSource, String> {
    read_whole(node, decode_source)
}

fn decode_message(node: Node<'_>, at: &Path<'_>, report: &mut Report) -> Option<Message> {
    let mut object = Object::open(node, at, report)?;
    let role = object.required_string("role", report)?;
    let has_name = matches!(role.as_str(), "user" | "assistant" | "system" | "developer");
    let has_encrypted_value = has_name || matches!(role.as_str(), "tool" | "reasoning");
    let body = match role.as_str() {
        "user" => MessageBody::User {
            content: decode_content(&mut object, report),
        },
        "assistant" => MessageBody::Assistant {
            content: decode_assistant_content(&mut object, report),
            tool_calls: match object.take_some("toolCalls") {
                Some(calls) => read_list(calls, &object.path("toolCalls"), report, decode_tool_call),
                None => Vec::new(),
            },
        },
        "system" => MessageBody::System {
            content: object.string("content", report),
        },
        "developer" => MessageBody::Developer {
            content: object.string("content", report),
        },
        "tool" => MessageBody::Tool {
            tool_call_id: object.id("toolCallId", ToolCallId::parse, ToolCallId::new, report),
            content: decode_content(&mut object, report),
            error: object.optional_string("error", report),
        },
        "activity" => MessageBody::Activity {
            activity_type: object.string("activityType", report),
            content: decode_activity_content(&mut object, report),
        },
        "reasoning" => MessageBody::Reasoning {
            content: object.string("content", report),
        },
        _ => {
            report.warn(
                object.path("role"),
                "is not a known role; the message was ignored",
            );
            return None;
        }
    };
    let id = object.id("id", MessageId::parse, MessageId::new, report);
    let extras = MessageExtras {
        name: if has_name {
            object.optional_string("name", report)
        } else {
            None
        },
        encrypted_value: if has_encrypted_value {
            object.optional_string("encryptedValue", report)
        } else {
            None
        },
        metadata: object.optional_map("metadata", report),
        subagent_run_id: object.optional_string("subagentRunId", report),
    };
    object.ignore_rest(report);
    Some(Message { id, body, extras })
}

/// `null` is absent here: older clients send it beside calls.
fn decode_assistant_content(object: &mut Object<'_>, report: &mut Report) -> Option<String> {
    match object.take_some("content")? {
        Node::Text(text) => Some(text.into_owned()),
        _ => {
            report.issue(object.path("content"), "must be a string");
            None
        }
    }
}

fn decode_activity_content(object: &mut Object<'_>, report: &mut Report) -> Map<String, Value> {
    if !object.has("content") {
        report.issue(object.path("content"), "is required");
    }
    object.optional_map("content", report).unwrap_or_default()
}

fn decode_content(object: &mut Object<'_>, report: &mut Report) -> Content {
    match object.take("content") {
        Some(Node::Text(text)) => return Content::Text(text.into_owned()),
        Some(parts @ Node::List(_)) => {
            return Content::Parts(read_list(parts, &object.path("content"), report, decode_part));
        }
        Some(_) => report.issue(object.path("content"), "must be a string or an array of parts"),
        None => report.issue(object.path("content"), "is required"),
    }
    Content::Text(String::new())
}

fn decode_tool_call(node: Node<'_>, at: &Path<'_>, report: &mut Report) -> Option<ToolCall> {
    let mut object = Object::open(node, at, report)?;
    if let Some(kind) = object.required_string("type", report)
        && kind != "function"
    {
        report.warn(
            object.path("type"),
            "is not a known kind of call; the call was ignored",
        );
        return None;
    }
    let id = object.id("id", ToolCallId::parse, ToolCallId::new, report);
    let (name, arguments) = match object.take("function") {
        Some(function) => decode_function(function, &object.path("function"), report),
        None => {
            report.issue(object.path("function"), "is required");
            Default::default()
        }
    };
    let encrypted_value = object.optional_string("encryptedValue", report);
    object.optional_map("metadata", report);
    object.ignore_rest(report);
    Some(ToolCall {
        id,
        name,
        arguments,
        encrypted_value,
    })
}

fn decode_function(node: Node<'_>, at: &Path<'_>, report: &mut Report) -> (String, String) {
    let Some(mut object) = Object::open(node, at, report) else {
        return Default::default();
    };
    let function = (object.string("name", report), object.string("arguments", report));
    object.ignore_rest(report);
    function
}

fn decode_part(node: Node<'_>, at: &Path<'_>, report: &mut Report) -> Option<ContentPart> {
    let mut object = Object::open(node, at, report)?;
    let media: fn(MediaPart) -> ContentPart = match object.required_string("type", report)?.as_str() {
        "text" => {
            let part = TextPart {
                text: object.string("text", report),
                id: object.optional_string("id", report),
                metadata: object.optional_any("metadata", report),
            };
            object.ignore_rest(report);
            return Some(ContentPart::Text(part));
        }
        "image" => ContentPart::Image,
        "audio" => ContentPart::Audio,
        "video" => ContentPart::Video,
        "document" => ContentPart::Document,
        "binary" => return upgrade_binary(object, at, report),
        _ => {
            report.warn(
                object.path("type"),
                "is not a known kind of part; the part was ignored",
            );
            return None;
        }
    };
    let source = match object.take("source") {
        Some(source) => decode_source(source, &object.path("source"), report)?,
        None => {
            report.issue(object.path("source"), "is required");
            return None;
        }
    };
    let part = MediaPart {
        source,
        id: object.optional_string("id", report),
        metadata: object.take_legacy("metadata", report).map(Node::into_value),
    };
    object.ignore_rest(report);
    Some(media(part))
}

/// `None` when the kind of source is unknown: the part goes with it, for a part needs its source (A6).
fn decode_source(node: Node<'_>, at: &Path<'_>, report: &mut Report) -> Option<MediaSource> {
    let mut object = Object::open(node, at, report)?;
    let source = match object.required_string("type", report)?.as_str() {
        "data" => MediaSource::Data {
            value: object.string("value", report),
            mime_type: object.string("mimeType", report),
        },
        "url" => MediaSource::Url {
            value: object.string("value", report),
            mime_type: object.optional_string("mimeType", report),
        },
        "file" => MediaSource::File {
            value: object.string("value", report),
            provider: object.optional_string("provider", report),
            mime_type: object.optional_string("mimeType", report),
        },
        _ => {
            report.warn(
                object.path("type"),
                "is not a known kind of source; the part was ignored",
            );
            return None;
        }
    };
    object.ignore_rest(report);
    Some(source)
}

/// `{"type":"binary","mimeType","data"?|"url"?|"id"?,"filename"?}` of clients before 1.0 becomes a media part. An `id`
/// alone is a handle nobody else can read: such a part is dropped. Not in the schema, so never an issue.
/// Source: AG-UI 2.4.
fn upgrade_binary(mut object: Object<'_>, at: &Path<'_>, report: &mut Report) -> Option<ContentPart> {
    let mut text = |name: &str| match object.take(name) {
        Some(Node::Text(text)) if !text.is_empty() => Some(text.into_owned()),
        _ => None,
    };
    let (mime_type, filename) = (text("mimeType"), text("filename"));
    let source = match (text("data"), text("url"), mime_type.clone()) {
        (Some(value), _, Some(mime_type)) => MediaSource::Data { value, mime_type },
        (_, Some(value), mime_type) => MediaSource::Url { value, mime_type },
        (Some(_), None, None) | (None, None, _) => {
            report.warn(*at, "is a binary part without usable data or url and was ignored");
            return None;
        }
    };
    report.warn(
        *at,
        "is a binary part of an older protocol and was read as a media part",
    );
    let part = MediaPart {
        source,
        id: None,
        metadata: filename.map(|name| json!({ "filename": name })),
    };
    let mime_type = mime_type.unwrap_or_default();
    Some(match mime_type.split('/').next().unwrap_or_default() {
        "image" => ContentPart::Image(part),
        "audio" => ContentPart::Audio(part),
        "video" => ContentPart::Video(part),
        _ => ContentPart::Document(part),
    })
}
