//! [`ModelRequest`] -> the body of `POST ...:streamGenerateContent`.

use serde::Serialize;
use serde_json::{Map, Value};

use super::super::content::{
    MediaBytes, answer_by_schema, arguments_object, essence, is_blank, join_texts, media_bytes, object_schema,
};
use super::super::turns::{Role, Turns};
use super::super::{ModelMessage, ModelRequest, ModelTarget, ModelToolCall, ModelToolResult};
use super::model::{Abilities, SchemaBinding};
use crate::list::List;
use crate::protocol::forwarded_props::ToolChoice;
use crate::protocol::json;
use crate::protocol::message::{ContentPart, MediaPart, MediaSource};
use crate::protocol::tool::Tool;
use crate::protocol::tree::json;

/// Taken in the place of a signature that is not there: of calls that are stored, which lose theirs, and of calls that
/// another model made. Source: Gemini API, "Thought signatures", FAQ.
const NO_SIGNATURE: &str = "skip_thought_signature_validator";

/// Most stop sequences of a request.
const STOP_SEQUENCES_MAX_COUNT: usize = 5;

/// The body's text.
pub(super) fn body(target: &ModelTarget, request: &ModelRequest) -> String {
    let abilities = Abilities::of(&target.model);
    let takes_schema = match abilities.schema {
        SchemaBinding::Always => true,
        SchemaBinding::WithoutTools => request.tools.is_empty(),
        SchemaBinding::Never => false,
    };
    let body = Body {
        system_instruction: system(request, !takes_schema),
        contents: contents(request, abilities),
        tools: tools(&request.tools),
        tool_config: tool_config(request),
        generation_config: generation_config(
            request,
            takes_schema,
            target.wants_reasoning && abilities.thinks,
        ),
    };
    json::text(&body)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Body<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Value>,
    contents: Vec<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_config: Option<GenerationConfig<'a>>,
}

#[derive(Serialize)]
struct Content<'a> {
    role: &'static str,
    parts: Vec<Part<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Part<'a> {
    #[serde(flatten)]
    said: Said<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<&'a str>,
}

// Structs inside: serde flattens variants with members of their own by way of a tree.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Said<'a> {
    Text(&'a str),
    InlineData(InlineData<'a>),
    FileData(FileData<'a>),
    FunctionCall(FunctionCall<'a>),
    FunctionResponse(FunctionResponse<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'a> {
    mime_type: String,
    data: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FileData<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    mime_type: Option<String>,
    file_uri: &'a str,
}

#[derive(Serialize)]
struct FunctionCall<'a> {
    id: &'a str,
    name: &'a str,
    args: Value,
}

#[derive(Serialize)]
struct FunctionResponse<'a> {
    id: &'a str,
    name: &'a str,
    response: Value,
}

#[derive(Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_k: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presence_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frequency_penalty: Option<f64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop_sequences: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking_config: Option<Value>,
}

impl<'a> From<Said<'a>> for Part<'a> {
    fn from(said: Said<'a>) -> Self {
        Self {
            said,
            thought_signature: None,
        }
    }
}

fn generation_config(
    request: &ModelRequest,
    takes_schema: bool,
    shows_thoughts: bool,
) -> Option<GenerationConfig<'_>> {
    let settings = &request.settings;
    let stop_count = settings.stop_sequences.len().min(STOP_SEQUENCES_MAX_COUNT);
    let schema = request.output_schema.as_ref().filter(|_| takes_schema);
    let config = GenerationConfig {
        max_output_tokens: settings.max_output_tokens,
        temperature: settings.temperature,
        top_p: settings.top_p,
        top_k: settings.top_k,
        presence_penalty: settings.presence_penalty,
        frequency_penalty: settings.frequency_penalty,
        stop_sequences: settings.stop_sequences.get(..stop_count).unwrap_or_default(),
        seed: settings.seed.and_then(|seed| i32::try_from(seed).ok()),
        response_mime_type: schema.map(|_| "application/json"),
        response_json_schema: schema,
        thinking_config: shows_thoughts.then(|| json!({ "includeThoughts": true })),
    };
    (config != GenerationConfig::default()).then_some(config)
}

fn system(request: &ModelRequest, wants_schema: bool) -> Option<Value> {
    let instruction = request
        .output_schema
        .as_ref()
        .filter(|_| wants_schema)
        .map(answer_by_schema);
    let texts = request.system.iter().chain(&instruction).map(String::as_str);
    join_texts(texts).map(|text| json!({ "parts": [{ "text": text }] }))
}

fn contents(request: &ModelRequest, abilities: Abilities) -> Vec<Content<'_>> {
    let mut turns = Turns::new(|text| Part::from(Said::Text(text)));
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
                Some(parts) => turns.push_answer(signed(parts, abilities)),
                None => turns.push(Role::Assistant, signed(model(text, tool_calls), abilities)),
            },
            // Directly behind their calls, so they are the first of their turn (B073).
            ModelMessage::ToolResults(results) => {
                turns.push(Role::User, results.iter().map(function_response).list());
            }
        }
    }
    let contents = turns.into_turns().into_iter().map(|turn| Content {
        role: match turn.role {
            Role::User => "user",
            Role::Assistant => "model",
        },
        parts: turn.parts,
    });
    contents.list()
}

fn model<'a>(text: &'a str, tool_calls: &'a [ModelToolCall]) -> Vec<Part<'a>> {
    let text = (!is_blank(text)).then(|| Said::Text(text).into());
    text.into_iter()
        .chain(tool_calls.iter().map(function_call))
        .list()
}

/// The parts of an answer of this run as `stream` kept them; `None` if they are not of this codec.
fn answer<'a>(state: &'a Value, tool_calls: &'a [ModelToolCall]) -> Option<Vec<Part<'a>>> {
    let kept = state.get("parts")?.as_array()?;
    let part = |kept: &'a Value| {
        let part = match kept.get("slot").and_then(Value::as_u64) {
            Some(slot) => function_call(tool_calls.get(usize::try_from(slot).ok()?)?),
            None => Said::Text(kept.get("text")?.as_str()?).into(),
        };
        Some(Part {
            thought_signature: kept.get("thoughtSignature").and_then(Value::as_str),
            ..part
        })
    };
    Some(kept.iter().filter_map(part).list())
}

/// The first call of an answer must have a signature; only it may have none of its own.
fn signed(mut parts: Vec<Part<'_>>, abilities: Abilities) -> Vec<Part<'_>> {
    let is_call = |part: &&mut Part<'_>| matches!(part.said, Said::FunctionCall(_));
    if abilities.demands_signatures
        && let Some(call) = parts.iter_mut().find(is_call)
    {
        call.thought_signature.get_or_insert(NO_SIGNATURE);
    }
    parts
}

fn function_call(call: &ModelToolCall) -> Part<'_> {
    Said::FunctionCall(FunctionCall {
        id: &call.id,
        name: &call.name,
        args: arguments_object(&call.arguments),
    })
    .into()
}

/// The content stays a text: as JSON of Google's its big numbers would not survive.
fn function_response(result: &ModelToolResult) -> Part<'_> {
    let key = if result.is_error { "error" } else { "output" };
    Said::FunctionResponse(FunctionResponse {
        id: &result.tool_call_id,
        name: &result.name,
        response: json!({ key: result.content }),
    })
    .into()
}

/// Whether a part has a place in a request.
pub(super) fn takes(content: &ContentPart) -> bool {
    part(content).is_some()
}

fn part(part: &ContentPart) -> Option<Part<'_>> {
    let said = match part {
        ContentPart::Text(part) => (!is_blank(&part.text)).then_some(Said::Text(&part.text)),
        ContentPart::Image(media) => file(media, |kind| {
            let known = [
                "image/png",
                "image/jpeg",
                "image/webp",
                "image/heic",
                "image/heif",
            ];
            known.contains(&kind)
        }),
        ContentPart::Audio(media) => file(media, |kind| kind.starts_with("audio/")),
        ContentPart::Video(media) => file(media, |kind| kind.starts_with("video/")),
        ContentPart::Document(media) => file(media, |kind| {
            kind == "application/pdf" || kind.starts_with("text/")
        }),
    };
    said.map(Part::from)
}

fn file(media: &MediaPart, is_known: impl Fn(&str) -> bool) -> Option<Said<'_>> {
    let known = |kind: String| {
        let kind = if kind == "image/jpg" {
            "image/jpeg".to_owned()
        } else {
            kind
        };
        is_known(&kind).then_some(kind)
    };
    if let MediaSource::File {
        value,
        provider,
        mime_type,
    } = &media.source
        && provider.as_deref() == Some("google")
    {
        return Some(Said::FileData(FileData {
            mime_type: mime_type.as_deref().map(essence),
            file_uri: value,
        }));
    }
    match media_bytes(&media.source)? {
        MediaBytes::Base64 { mime_type, data } => Some(Said::InlineData(InlineData {
            mime_type: known(mime_type)?,
            data,
        })),
        MediaBytes::Address { url, mime_type } => Some(Said::FileData(FileData {
            mime_type: match mime_type {
                Some(kind) => Some(known(kind)?),
                None => None,
            },
            file_uri: url,
        })),
    }
}

fn tools(tools: &[Tool]) -> Option<Value> {
    let declarations: Vec<Value> = tools.iter().map(declaration).list();
    (!declarations.is_empty()).then(|| json!([{ "functionDeclarations": declarations }]))
}

fn declaration(tool: &Tool) -> Value {
    let mut written = Map::new();
    written.insert("name".to_owned(), tool.name.clone().into());
    // It is required.
    let description = if is_blank(&tool.description) {
        &tool.name
    } else {
        &tool.description
    };
    written.insert("description".to_owned(), description.clone().into());
    // An object without properties is refused; no schema means the same.
    let schema = object_schema(tool.parameters.as_ref());
    let has_properties = |schema: &Map<String, Value>| {
        let properties = schema.get("properties").and_then(Value::as_object);
        properties.is_some_and(|properties| !properties.is_empty())
    };
    if has_properties(&schema) {
        written.insert("parametersJsonSchema".to_owned(), schema.into());
    }
    Value::Object(written)
}

/// The choice is left out where it changes nothing, and without tools, where it is refused.
fn tool_config(request: &ModelRequest) -> Option<Value> {
    if request.tools.is_empty() {
        return None;
    }
    let calling = match &request.tool_choice {
        ToolChoice::Auto => return None,
        ToolChoice::None => json!({ "mode": "NONE" }),
        ToolChoice::Required => json!({ "mode": "ANY" }),
        ToolChoice::Function(name) => json!({ "mode": "ANY", "allowedFunctionNames": [name] }),
    };
    Some(json!({ "functionCallingConfig": calling }))
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
