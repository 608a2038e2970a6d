//! [`ModelRequest`] -> the body of `POST /v1/messages`.

use serde::Serialize;
use serde_json::{Map, Value};

use super::super::content::{
    MediaBytes, answer_by_schema, arguments_object, file_name, is_blank, join_texts, media_bytes,
    object_schema,
};
use super::super::turns::{Role, Turns};
use super::super::{ModelMessage, ModelRequest, ModelTarget, ModelToolCall, ModelToolResult};
use super::model::{Abilities, Sampling};
use super::schema;
use super::thinking::thinking;
use crate::list::List;
use crate::protocol::forwarded_props::ToolChoice;
use crate::protocol::json;
use crate::protocol::message::{ContentPart, MediaPart};
use crate::protocol::tool::Tool;
use crate::protocol::tree::json;

/// The body's text.
pub(super) fn body(target: &ModelTarget, request: &ModelRequest) -> String {
    let abilities = Abilities::of(&target.model);
    let settings = &request.settings;
    let format = request
        .output_schema
        .as_ref()
        .filter(|_| abilities.takes_output_format)
        .and_then(schema::bindable);
    let max_tokens = settings.max_output_tokens.unwrap_or(abilities.default_max_tokens);
    let thinking = target
        .wants_reasoning
        .then(|| thinking(request, abilities, max_tokens))
        .flatten();
    let (takes_sampling, takes_both) = match abilities.sampling {
        // Who thinks takes no settings.
        _ if thinking.is_some() => (false, false),
        Sampling::All => (true, true),
        Sampling::One => (true, false),
        Sampling::Refused => (false, false),
    };
    let body = Body {
        model: &target.model,
        max_tokens,
        thinking,
        system: system(request, format.is_none()),
        messages: messages(request),
        stream: true,
        tools: request.tools.iter().map(tool).list(),
        tool_choice: tool_choice(request, abilities),
        // Their range ends at 1, that of others at 2.
        temperature: settings
            .temperature
            .filter(|_| takes_sampling)
            .map(|temperature| temperature.min(1.0)),
        top_p: settings
            .top_p
            .filter(|_| takes_both || (takes_sampling && settings.temperature.is_none())),
        top_k: settings.top_k.filter(|_| takes_sampling),
        stop_sequences: settings
            .stop_sequences
            .iter()
            .map(String::as_str)
            .filter(|text| !is_blank(text))
            .list(),
        output_config: format.map(|schema| json!({ "format": { "type": "json_schema", "schema": schema } })),
    };
    json::text(&body)
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<String>,
    messages: Vec<Message<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stop_sequences: Vec<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<Value>,
}

#[derive(Serialize)]
struct Message<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text {
        text: &'a str,
    },
    Image {
        source: Source<'a>,
    },
    Document {
        source: Source<'a>,
        #[serde(skip_serializing_if = "Option::is_none")]
        title: Option<&'a str>,
    },
    ToolUse {
        id: &'a str,
        name: &'a str,
        input: Value,
    },
    ToolResult {
        tool_use_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<ResultContent<'a>>,
        #[serde(skip_serializing_if = "is_false")]
        is_error: bool,
    },
    /// Thinking of an answer of this run, as it came.
    #[serde(untagged)]
    Opaque(&'a Value),
}

#[derive(Serialize)]
#[serde(untagged)]
enum ResultContent<'a> {
    Text(&'a str),
    Blocks(Vec<Block<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Source<'a> {
    Base64 { media_type: String, data: &'a str },
    Url { url: &'a str },
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

fn system(request: &ModelRequest, wants_schema: bool) -> Option<String> {
    let instruction = request
        .output_schema
        .as_ref()
        .filter(|_| wants_schema)
        .map(answer_by_schema);
    let texts = request.system.iter().chain(&instruction).map(String::as_str);
    join_texts(texts).map(std::borrow::Cow::into_owned)
}

fn messages(request: &ModelRequest) -> Vec<Message<'_>> {
    let mut turns = Turns::new(|text| Block::Text { text });
    for message in &request.messages {
        match message {
            ModelMessage::User { parts } => {
                turns.push(Role::User, parts.iter().filter_map(part).list());
            }
            ModelMessage::Assistant {
                text,
                tool_calls,
                vendor_state,
            } => match vendor_state.as_ref().and_then(|state| answer(state, tool_calls)) {
                Some(blocks) => turns.push_answer(blocks),
                None => turns.push(Role::Assistant, assistant(text, tool_calls)),
            },
            // Directly behind their calls, so they are the first of their turn (B073).
            ModelMessage::ToolResults(results) => {
                turns.push(Role::User, results.iter().map(tool_result).list());
            }
        }
    }
    let messages = turns.into_turns().into_iter().map(|turn| Message {
        role: match turn.role {
            Role::User => "user",
            Role::Assistant => "assistant",
        },
        content: turn.parts,
    });
    messages.list()
}

fn assistant<'a>(text: &'a str, tool_calls: &'a [ModelToolCall]) -> Vec<Block<'a>> {
    let text = (!is_blank(text)).then_some(Block::Text { text });
    text.into_iter().chain(tool_calls.iter().map(tool_use)).list()
}

/// The content of an answer of this run as `stream` kept it; `None` if it is not of this codec.
fn answer<'a>(state: &'a Value, tool_calls: &'a [ModelToolCall]) -> Option<Vec<Block<'a>>> {
    let kept = state.get("content")?.as_array()?;
    let block = |block: &'a Value| match block.get("type")?.as_str()? {
        "text" => {
            let text = block.get("text")?.as_str()?;
            (!is_blank(text)).then_some(Block::Text { text })
        }
        "tool_use" => {
            let slot = usize::try_from(block.get("slot")?.as_u64()?).ok()?;
            tool_calls.get(slot).map(tool_use)
        }
        _ => Some(Block::Opaque(block)),
    };
    Some(kept.iter().filter_map(block).list())
}

fn tool_use(call: &ModelToolCall) -> Block<'_> {
    Block::ToolUse {
        id: &call.id,
        name: &call.name,
        input: arguments_object(&call.arguments),
    }
}

fn tool_result(result: &ModelToolResult) -> Block<'_> {
    let text = Some(result.content.as_str()).filter(|content| !is_blank(content));
    let images: Vec<Block<'_>> = result.images.iter().filter_map(image).list();
    let content = if images.is_empty() {
        text.map(ResultContent::Text)
    } else {
        let text = text.map(|text| Block::Text { text });
        Some(ResultContent::Blocks(text.into_iter().chain(images).list()))
    };
    Block::ToolResult {
        tool_use_id: &result.tool_call_id,
        content,
        is_error: result.is_error,
    }
}

/// Whether a part has a place in a request.
pub(super) fn takes(content: &ContentPart) -> bool {
    part(content).is_some()
}

fn part(part: &ContentPart) -> Option<Block<'_>> {
    match part {
        ContentPart::Text(part) => (!is_blank(&part.text)).then_some(Block::Text { text: &part.text }),
        ContentPart::Image(media) => image(media),
        ContentPart::Document(media) => document(media),
        ContentPart::Audio(_) | ContentPart::Video(_) => None,
    }
}

fn image(media: &MediaPart) -> Option<Block<'_>> {
    let source = match media_bytes(&media.source)? {
        MediaBytes::Base64 { mime_type, data } => Source::Base64 {
            media_type: match mime_type.as_str() {
                "image/jpeg" | "image/png" | "image/gif" | "image/webp" => mime_type,
                "image/jpg" => "image/jpeg".to_owned(),
                _ => return None,
            },
            data,
        },
        MediaBytes::Address { url, .. } => Source::Url { url },
    };
    Some(Block::Image { source })
}

fn document(media: &MediaPart) -> Option<Block<'_>> {
    let source = match media_bytes(&media.source)? {
        MediaBytes::Base64 { mime_type, data } if mime_type == "application/pdf" => Source::Base64 {
            media_type: mime_type,
            data,
        },
        // Without a type it is taken for what documents mostly are.
        MediaBytes::Address { url, mime_type }
            if mime_type.as_deref().is_none_or(|kind| kind == "application/pdf") =>
        {
            Source::Url { url }
        }
        MediaBytes::Base64 { .. } | MediaBytes::Address { .. } => return None,
    };
    let title = file_name(media);
    Some(Block::Document { source, title })
}

fn tool(tool: &Tool) -> Value {
    let mut written = Map::new();
    written.insert("name".to_owned(), tool.name.clone().into());
    if !is_blank(&tool.description) {
        written.insert("description".to_owned(), tool.description.clone().into());
    }
    let mut schema = object_schema(tool.parameters.as_ref());
    // Refused in this place only; the run checks the arguments against the whole schema.
    for keyword in ["oneOf", "anyOf", "allOf"] {
        schema.shift_remove(keyword);
    }
    written.insert("input_schema".to_owned(), schema.into());
    Value::Object(written)
}

/// The choice is left out where it changes nothing, and without tools, where it is refused. A model that takes no forced
/// calls decides by itself.
fn tool_choice(request: &ModelRequest, abilities: Abilities) -> Option<Value> {
    if request.tools.is_empty() {
        return None;
    }
    match &request.tool_choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some(json!({ "type": "none" })),
        ToolChoice::Required | ToolChoice::Function(_) if !abilities.takes_forced_calls => None,
        ToolChoice::Required => Some(json!({ "type": "any" })),
        ToolChoice::Function(name) => Some(json!({ "type": "tool", "name": name })),
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
