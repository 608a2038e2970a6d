//! [`ModelRequest`] -> the body of `POST /responses`.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use super::super::content::{data_url, essence, file_name, is_blank, join_texts, object_schema};
use super::super::{ModelMessage, ModelRequest, ModelTarget, ModelToolCall, ModelToolResult};
use crate::list::List;
use crate::protocol::forwarded_props::ToolChoice;
use crate::protocol::json;
use crate::protocol::message::{ContentPart, MediaPart, MediaSource};
use crate::protocol::number;
use crate::protocol::parts;
use crate::protocol::tool::Tool;
use crate::protocol::tree::json;

/// The body's text.
pub(super) fn body(target: &ModelTarget, request: &ModelRequest) -> String {
    let reasons = reasons(&target.model);
    let settings = &request.settings;
    let body = Body {
        model: &target.model,
        instructions: join_texts(request.system.iter().map(String::as_str)),
        input: request.messages.iter().flat_map(items).list(),
        stream: true,
        store: false,
        include: if reasons {
            &["reasoning.encrypted_content"]
        } else {
            &[]
        },
        tools: request.tools.iter().map(tool).list(),
        tool_choice: tool_choice(request),
        reasoning: (reasons && target.wants_reasoning).then(|| json!({ "summary": "auto" })),
        max_output_tokens: settings.max_output_tokens,
        temperature: settings.temperature.filter(|_| !reasons),
        top_p: settings.top_p.filter(|_| !reasons),
        text: request.output_schema.as_ref().map(text_format),
    };
    json::text(&body)
}

/// Whether a model reasons, told by its name. Such a model refuses sampling settings; another one refuses to include
/// reasoning.
fn reasons(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or_default();
    let name = name.strip_prefix("ft:").unwrap_or(name);
    let number = |text: &str| {
        let end = text
            .find(|character: char| !character.is_ascii_digit())
            .unwrap_or(text.len());
        number::unsigned(text.get(..end)?)
    };
    if let Some(version) = name.strip_prefix("gpt-") {
        return number(version).is_some_and(|number| number >= 5) && !parts::has(version, "-chat");
    }
    let is_o_series = name
        .strip_prefix('o')
        .is_some_and(|version| number(version).is_some());
    is_o_series || name.starts_with("codex-")
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<Cow<'a, str>>,
    input: Vec<Item<'a>>,
    stream: bool,
    store: bool,
    #[serde(skip_serializing_if = "<[&str]>::is_empty")]
    include: &'static [&'static str],
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Value>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Item<'a> {
    User {
        role: &'static str,
        content: Vec<Part<'a>>,
    },
    Assistant {
        role: &'static str,
        content: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        phase: Option<&'a str>,
    },
    Call {
        #[serde(rename = "type")]
        kind: &'static str,
        call_id: &'a str,
        name: &'a str,
        arguments: &'a str,
    },
    Result {
        #[serde(rename = "type")]
        kind: &'static str,
        call_id: &'a str,
        output: Output<'a>,
    },
    /// Reasoning of an answer of this run, as it came.
    Opaque(&'a Value),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Output<'a> {
    Text(&'a str),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type")]
enum Part<'a> {
    #[serde(rename = "input_text")]
    Text { text: &'a str },
    #[serde(rename = "input_image")]
    Image {
        detail: &'static str,
        #[serde(flatten)]
        image: Image<'a>,
    },
    #[serde(rename = "input_file")]
    File(File<'a>),
}

#[derive(Serialize)]
#[serde(untagged)]
enum Image<'a> {
    Url { image_url: Cow<'a, str> },
    Handle { file_id: &'a str },
}

#[derive(Serialize)]
#[serde(untagged)]
enum File<'a> {
    Data { filename: &'a str, file_data: String },
    Url { file_url: &'a str },
    Handle { file_id: &'a str },
}

fn items(message: &ModelMessage) -> Vec<Item<'_>> {
    match message {
        ModelMessage::User { parts } => {
            let content: Vec<Part<'_>> = parts.iter().filter_map(part).list();
            let role = "user";
            (!content.is_empty())
                .then_some(Item::User { role, content })
                .into_iter()
                .list()
        }
        ModelMessage::Assistant {
            text,
            tool_calls,
            vendor_state,
        } => vendor_state
            .as_ref()
            .and_then(|state| answer(state, tool_calls))
            .unwrap_or_else(|| {
                let text = says(text, None).into_iter();
                text.chain(tool_calls.iter().map(call)).list()
            }),
        ModelMessage::ToolResults(results) => results.iter().map(result).list(),
    }
}

fn says<'a>(text: &'a str, phase: Option<&'a str>) -> Option<Item<'a>> {
    (!is_blank(text)).then_some(Item::Assistant {
        role: "assistant",
        content: text,
        phase,
    })
}

/// The items of an answer of this run as `stream` kept them; `None` if they are not of this codec.
fn answer<'a>(state: &'a Value, tool_calls: &'a [ModelToolCall]) -> Option<Vec<Item<'a>>> {
    let kept = state.get("output")?.as_array()?;
    let item = |item: &'a Value| {
        let text = |name: &str| item.get(name)?.as_str();
        match text("type")? {
            "message" => says(text("text")?, text("phase")),
            "function_call" => {
                let slot = usize::try_from(item.get("slot")?.as_u64()?).ok()?;
                tool_calls.get(slot).map(call)
            }
            _ => Some(Item::Opaque(item)),
        }
    };
    Some(kept.iter().filter_map(item).list())
}

fn call(call: &ModelToolCall) -> Item<'_> {
    Item::Call {
        kind: "function_call",
        call_id: &call.id,
        name: &call.name,
        arguments: if is_blank(&call.arguments) {
            "{}"
        } else {
            &call.arguments
        },
    }
}

fn result(result: &ModelToolResult) -> Item<'_> {
    let images: Vec<Part<'_>> = result
        .images
        .iter()
        .filter_map(|media| image(&media.source))
        .list();
    let output = if images.is_empty() {
        Output::Text(&result.content)
    } else {
        let text = Part::Text {
            text: &result.content,
        };
        Output::Parts(std::iter::once(text).chain(images).list())
    };
    Item::Result {
        kind: "function_call_output",
        call_id: &result.tool_call_id,
        output,
    }
}

/// Whether a part has a place in a request.
pub(super) fn takes(content: &ContentPart) -> bool {
    part(content).is_some()
}

fn part(part: &ContentPart) -> Option<Part<'_>> {
    match part {
        ContentPart::Text(part) => (!is_blank(&part.text)).then_some(Part::Text { text: &part.text }),
        ContentPart::Image(media) => image(&media.source),
        ContentPart::Document(media) => file(media).map(Part::File),
        ContentPart::Audio(_) | ContentPart::Video(_) => None,
    }
}

fn image(source: &MediaSource) -> Option<Part<'_>> {
    let image = match source {
        MediaSource::Url { value, .. } => Image::Url {
            image_url: value.as_str().into(),
        },
        MediaSource::Data { value, mime_type } => Image::Url {
            image_url: data_url(mime_type, value).into(),
        },
        MediaSource::File { value, provider, .. } if provider.as_deref() == Some("openai") => {
            Image::Handle { file_id: value }
        }
        MediaSource::File { .. } => return None,
    };
    Some(Part::Image {
        detail: "auto",
        image,
    })
}

fn file(media: &MediaPart) -> Option<File<'_>> {
    let is_pdf = |mime_type: &str| essence(mime_type) == "application/pdf";
    match &media.source {
        MediaSource::Data { value, mime_type } if is_pdf(mime_type) => Some(File::Data {
            filename: file_name(media).unwrap_or("document.pdf"),
            file_data: data_url("application/pdf", value),
        }),
        MediaSource::Url { value, mime_type } if mime_type.as_deref().is_none_or(is_pdf) => {
            Some(File::Url { file_url: value })
        }
        MediaSource::File { value, provider, .. } if provider.as_deref() == Some("openai") => {
            Some(File::Handle { file_id: value })
        }
        MediaSource::Data { .. } | MediaSource::Url { .. } | MediaSource::File { .. } => None,
    }
}

/// Not strict: strict mode takes only a part of JSON Schema and refuses the rest.
fn tool(tool: &Tool) -> Value {
    let mut written = Map::new();
    written.insert("type".to_owned(), "function".into());
    written.insert("name".to_owned(), tool.name.clone().into());
    if !is_blank(&tool.description) {
        written.insert("description".to_owned(), tool.description.clone().into());
    }
    written.insert(
        "parameters".to_owned(),
        object_schema(tool.parameters.as_ref()).into(),
    );
    written.insert("strict".to_owned(), false.into());
    Value::Object(written)
}

/// The choice is left out where it changes nothing, and without tools, where it is refused.
fn tool_choice(request: &ModelRequest) -> Option<Value> {
    if request.tools.is_empty() {
        return None;
    }
    match &request.tool_choice {
        ToolChoice::Auto => None,
        ToolChoice::None => Some("none".into()),
        ToolChoice::Required => Some("required".into()),
        ToolChoice::Function(name) => Some(json!({ "type": "function", "name": name })),
    }
}

fn text_format(schema: &Value) -> Value {
    json!({ "format": { "type": "json_schema", "name": "answer", "schema": schema, "strict": false } })
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
