//! [`ModelRequest`] -> the body of `POST /chat/completions`.
//!
//! What Chat Completions has no place for is left out: `topK`, `maxRetries` (the run's own), unknown forwardedProps
//! (`ModelRequest::unknown_props`: a body member of an unknown name is refused by strict servers, and one of a known name
//! would let a client replace the model or the messages), films, and media given by an address other than a picture's.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use super::super::content::{
    answer_by_schema, data_url, essence, file_name, is_blank, join_texts, object_schema,
};
use super::super::turns::CONTINUE;
use super::super::{ModelMessage, ModelRequest, ModelTarget, ModelToolCall, ModelToolResult};
use super::dialect::Dialect;
use crate::list::List;
use crate::protocol::forwarded_props::ToolChoice;
use crate::protocol::json;
use crate::protocol::message::{ContentPart, MediaPart, MediaSource};
use crate::protocol::tool::Tool;
use crate::protocol::tree::json;

/// What the model says between results it never answered and the next message of the person, where one must follow.
const BETWEEN_RESULTS_AND_USER: &str = "Understood.";

/// The body's text.
pub(super) fn body(target: &ModelTarget, request: &ModelRequest) -> String {
    let dialect = Dialect::of(&target.base_url);
    let settings = &request.settings;
    let max_output_tokens = settings.max_output_tokens;
    let body = Body {
        model: &target.model,
        messages: messages(request, dialect),
        stream: true,
        stream_options: (!dialect.is_mistral).then(|| json!({ "include_usage": true })),
        tools: request.tools.iter().map(tool).list(),
        tool_choice: tool_choice(request),
        max_tokens: max_output_tokens.filter(|_| !dialect.max_completion_tokens),
        max_completion_tokens: max_output_tokens.filter(|_| dialect.max_completion_tokens),
        temperature: settings.temperature,
        top_p: settings.top_p,
        presence_penalty: settings.presence_penalty,
        frequency_penalty: settings.frequency_penalty,
        stop: &settings.stop_sequences,
        seed: settings.seed.filter(|_| !dialect.is_mistral),
        random_seed: settings.seed.filter(|_| dialect.is_mistral),
        response_format: request
            .output_schema
            .as_ref()
            .map(|schema| response_format(schema, dialect)),
    };
    json::text(&body)
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Message<'a>>,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presence_penalty: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    frequency_penalty: Option<f64>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    stop: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    random_seed: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Message<'a> {
    System {
        content: String,
    },
    User {
        content: UserContent<'a>,
    },
    Assistant {
        /// `null` beside calls, as OpenAI's own answers are: some servers refuse a missing member, others a blank text
        /// (B069).
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reasoning_content: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall<'a>>,
    },
    Tool {
        tool_call_id: Cow<'a, str>,
        content: &'a str,
    },
}

#[derive(Serialize)]
#[serde(untagged)]
enum UserContent<'a> {
    /// Text alone: many servers know no parts.
    Text(Cow<'a, str>),
    Parts(Vec<Part<'a>>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part<'a> {
    Text { text: &'a str },
    ImageUrl { image_url: ImageUrl<'a> },
    InputAudio { input_audio: InputAudio<'a> },
    File { file: File<'a> },
}

#[derive(Serialize)]
struct ImageUrl<'a> {
    url: Cow<'a, str>,
}

#[derive(Serialize)]
struct InputAudio<'a> {
    data: &'a str,
    format: &'static str,
}

#[derive(Serialize)]
#[serde(untagged)]
enum File<'a> {
    Data { filename: &'a str, file_data: String },
    Handle { file_id: &'a str },
}

#[derive(Serialize)]
struct ToolCall<'a> {
    id: Cow<'a, str>,
    #[serde(rename = "type")]
    kind: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    arguments: &'a str,
}

fn messages(request: &ModelRequest, dialect: Dialect) -> Vec<Message<'_>> {
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    // One message: the chat templates of many open models take a single system message, and only in front.
    let by_schema = request
        .output_schema
        .as_ref()
        .filter(|_| !dialect.takes_schema)
        .map(answer_by_schema);
    let system = request.system.iter().chain(&by_schema).map(String::as_str);
    if let Some(content) = join_texts(system) {
        messages.push(Message::System {
            content: content.into_owned(),
        });
    }
    for message in &request.messages {
        match message {
            ModelMessage::User { parts } => {
                let follows_results = matches!(messages.last(), Some(Message::Tool { .. }));
                let message = user_content(parts, dialect).map(|content| Message::User { content });
                if follows_results && dialect.is_mistral && message.is_some() {
                    messages.push(Message::assistant(BETWEEN_RESULTS_AND_USER));
                }
                messages.extend(message);
            }
            ModelMessage::Assistant {
                text,
                tool_calls,
                vendor_state,
            } => messages.extend(assistant(text, tool_calls, vendor_state.as_ref(), dialect)),
            ModelMessage::ToolResults(results) => {
                messages.extend(results.iter().map(|result| tool_result(result, dialect)));
            }
        }
    }
    if dialect.is_mistral && matches!(messages.last(), Some(Message::Assistant { .. })) {
        let content = UserContent::Text(CONTINUE.into());
        messages.push(Message::User { content });
    }
    messages
}

impl<'a> Message<'a> {
    fn assistant(text: &'a str) -> Self {
        Self::Assistant {
            content: Some(text),
            reasoning_content: None,
            tool_calls: vec![],
        }
    }
}

fn assistant<'a>(
    text: &'a str,
    tool_calls: &'a [ModelToolCall],
    vendor_state: Option<&'a Value>,
    dialect: Dialect,
) -> Option<Message<'a>> {
    let content = Some(text).filter(|text| !is_blank(text));
    if content.is_none() && tool_calls.is_empty() {
        return None;
    }
    // Such a server refuses a tool turn without the member, also one whose reasoning is lost.
    let reasoning = || {
        vendor_state
            .and_then(|state| state.get("reasoning_content")?.as_str())
            .unwrap_or_default()
    };
    Some(Message::Assistant {
        content,
        reasoning_content: (dialect.reasoning_goes_back && !tool_calls.is_empty()).then(reasoning),
        tool_calls: tool_calls.iter().map(|call| tool_call(call, dialect)).list(),
    })
}

/// The id a server takes; ours are short and plain enough for all but one.
fn call_id(id: &str, dialect: Dialect) -> Cow<'_, str> {
    if !dialect.is_mistral {
        return id.into();
    }
    const DIGITS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    // FNV-1a: deterministic, so that call and result meet.
    let hash = id.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let places = std::iter::successors(Some(hash), |rest| Some(rest / DIGITS.len() as u64)).take(9);
    let digit = |rest: u64| DIGITS.get((rest % DIGITS.len() as u64) as usize);
    places
        .filter_map(digit)
        .map(|digit| char::from(*digit))
        .collect::<String>()
        .into()
}

fn tool_call(call: &ModelToolCall, dialect: Dialect) -> ToolCall<'_> {
    let arguments = if is_blank(&call.arguments) {
        "{}"
    } else {
        &call.arguments
    };
    ToolCall {
        id: call_id(&call.id, dialect),
        kind: "function",
        function: Function {
            name: &call.name,
            arguments,
        },
    }
}

fn tool_result(result: &ModelToolResult, dialect: Dialect) -> Message<'_> {
    Message::Tool {
        tool_call_id: call_id(&result.tool_call_id, dialect),
        content: &result.content,
    }
}

/// Whether a part has a place in a request.
pub(super) fn takes(target: &ModelTarget, content: &ContentPart) -> bool {
    part(content, Dialect::of(&target.base_url)).is_some()
}

fn user_content(parts: &[ContentPart], dialect: Dialect) -> Option<UserContent<'_>> {
    let parts: Vec<Part<'_>> = parts.iter().filter_map(|content| part(content, dialect)).list();
    let text = |part: &Part<'_>| match part {
        Part::Text { .. } => true,
        Part::ImageUrl { .. } | Part::InputAudio { .. } | Part::File { .. } => false,
    };
    if !parts.iter().all(text) {
        return Some(UserContent::Parts(parts));
    }
    let texts = parts.into_iter().filter_map(|part| match part {
        Part::Text { text } => Some(text),
        Part::ImageUrl { .. } | Part::InputAudio { .. } | Part::File { .. } => None,
    });
    join_texts(texts).map(UserContent::Text)
}

fn part(part: &ContentPart, dialect: Dialect) -> Option<Part<'_>> {
    match part {
        ContentPart::Text(part) if is_blank(&part.text) => None,
        ContentPart::Text(part) => Some(Part::Text { text: &part.text }),
        ContentPart::Image(media) => image(&media.source),
        ContentPart::Audio(_) | ContentPart::Document(_) if dialect.is_mistral => None,
        ContentPart::Audio(media) => audio(&media.source),
        ContentPart::Video(_) => None,
        ContentPart::Document(media) => document(media),
    }
}

fn image(source: &MediaSource) -> Option<Part<'_>> {
    let url = match source {
        MediaSource::Url { value, .. } => Cow::Borrowed(value.as_str()),
        MediaSource::Data { value, mime_type } => Cow::Owned(data_url(mime_type, value)),
        MediaSource::File { .. } => return None,
    };
    Some(Part::ImageUrl {
        image_url: ImageUrl { url },
    })
}

fn audio(source: &MediaSource) -> Option<Part<'_>> {
    let MediaSource::Data { value, mime_type } = source else {
        return None;
    };
    let format = match essence(mime_type).as_str() {
        "audio/wav" | "audio/x-wav" | "audio/wave" | "audio/vnd.wave" => "wav",
        "audio/mpeg" | "audio/mp3" => "mp3",
        _ => return None,
    };
    Some(Part::InputAudio {
        input_audio: InputAudio { data: value, format },
    })
}

fn document(media: &MediaPart) -> Option<Part<'_>> {
    let file = match &media.source {
        MediaSource::Data { value, mime_type } if essence(mime_type) == "application/pdf" => File::Data {
            filename: file_name(media).unwrap_or("document.pdf"),
            file_data: data_url("application/pdf", value),
        },
        MediaSource::File { value, provider, .. } if provider.as_deref() == Some("openai") => {
            File::Handle { file_id: value }
        }
        MediaSource::Data { .. } | MediaSource::Url { .. } | MediaSource::File { .. } => return None,
    };
    Some(Part::File { file })
}

fn tool(tool: &Tool) -> Value {
    let mut function = Map::new();
    function.insert("name".to_owned(), tool.name.clone().into());
    if !is_blank(&tool.description) {
        function.insert("description".to_owned(), tool.description.clone().into());
    }
    function.insert(
        "parameters".to_owned(),
        object_schema(tool.parameters.as_ref()).into(),
    );
    json!({ "type": "function", "function": function })
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
        ToolChoice::Function(name) => Some(json!({ "type": "function", "function": { "name": name } })),
    }
}

/// Not strict: strict mode takes only a part of JSON Schema and refuses the rest.
fn response_format(schema: &Value, dialect: Dialect) -> Value {
    if !dialect.takes_schema {
        return json!({ "type": "json_object" });
    }
    json!({ "type": "json_schema", "json_schema": { "name": "answer", "schema": schema, "strict": false } })
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
