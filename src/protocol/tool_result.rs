//! What a client posts as the result of a call, and what a model reads of it.

use serde_json::{Map, Value};

use super::decode::InputError;
use super::json;
use super::message::{MediaPart, MediaSource};
use super::parts;
use super::tool::ToolResult;
use super::tree::json;
use crate::list::{List, all};

/// Failure text for a client that says only that the call failed.
const UNNAMED_FAILURE: &str = "The tool failed.";

/// Reads the body of `POST .../result`. First match wins: `result`, an MCP result, `content`, `output`, `error`, the
/// body itself; an empty body is `null`.
///
/// # Errors
/// [`InputError::Malformed`] when the body is not JSON, [`InputError::TooManyValues`].
///
/// Source: contract 3 (D16).
pub fn decode(body: &str) -> Result<ToolResult, InputError> {
    if body.trim().is_empty() {
        return Ok(success(Value::Null));
    }
    Ok(read(json::parse(body)?))
}

fn read(value: Value) -> ToolResult {
    let Value::Object(mut members) = value else {
        return success(value);
    };
    let failed = is_true(members.get("isError"));
    let error = members.get("error").filter(|error| !error.is_null()).cloned();
    if let Some(result) = members.shift_remove("result") {
        return judge(result, failed, error);
    }
    if is_mcp(&members) {
        let content = json::text(&members);
        return ToolResult {
            content,
            is_error: failed,
        };
    }
    for name in ["content", "output"] {
        if let Some(result) = members.shift_remove(name) {
            return judge(result, failed, error);
        }
    }
    match error {
        Some(error) => failure(error),
        None => success(Value::Object(members)),
    }
}

/// A value with what stood beside it: `failed` from `isError`, `error` if not `null`.
fn judge(result: Value, failed: bool, error: Option<Value>) -> ToolResult {
    if let Some(members) = result.as_object().filter(|members| is_mcp(members)) {
        let is_error = failed || error.is_some() || is_true(members.get("isError"));
        let content = json::text(&result);
        return ToolResult { content, is_error };
    }
    match error {
        Some(error) => failure(error),
        None if failed => failure(result),
        None => success(result),
    }
}

/// An MCP `CallToolResult` by the members only it has.
fn is_mcp(members: &Map<String, Value>) -> bool {
    members.get("content").is_some_and(Value::is_array)
        || members.contains_key("structuredContent")
        || members.contains_key("isError")
}

fn is_true(value: Option<&Value>) -> bool {
    value.and_then(Value::as_bool).unwrap_or(false)
}

/// The result of a call that gave this value: a text as it is, anything else as JSON text. Clients parse the content: an
/// empty one is no JSON, and `null` would leave the call pending for ever, so neither is ever sent.
///
/// Source: contract 3 (D16).
pub fn success(value: Value) -> ToolResult {
    let content = match value {
        Value::Null => json::text(&json!({ "result": null })),
        Value::String(text) if text.is_empty() => json::text(&json!({ "result": "" })),
        Value::String(text) if text.trim_matches([' ', '\t', '\n', '\r']) == "null" => {
            json::text(&json!(text))
        }
        Value::String(text) => text,
        value => json::text(&value),
    };
    ToolResult {
        content,
        is_error: false,
    }
}

/// The result of a call that failed with this error: `{"error": ...}`.
pub fn failure(error: Value) -> ToolResult {
    let error = match error {
        Value::Null => json!(UNNAMED_FAILURE),
        Value::String(text) if text.is_empty() => json!(UNNAMED_FAILURE),
        error => error,
    };
    ToolResult {
        content: json::text(&json!({ "error": error })),
        is_error: true,
    }
}

/// What a model reads of a result: of an MCP result its texts, one per line, and its structured content when it has no
/// text; of anything else the content itself. Pictures and sounds are only named: as base64 they would fill the context.
///
/// Source: contract 3 (D16).
pub fn model_text(content: &str) -> String {
    // Texts are the common case and need no parse.
    if !content.starts_with(['{', '[']) {
        return content.to_owned();
    }
    let Ok(value) = json::parse(content) else {
        return content.to_owned();
    };
    let items = match &value {
        Value::Object(members) => match members.get("content") {
            Some(Value::Array(items)) => items.as_slice(),
            _ => std::slice::from_ref(&value),
        },
        Value::Array(items) => items.as_slice(),
        _ => &[],
    };
    let texts = all(items.iter().map(|item| item_text(item).ok_or(())));
    match (texts, value.get("structuredContent")) {
        (Ok(texts), structured) if texts.iter().all(String::is_empty) => match structured {
            Some(structured) => json::text(structured),
            None => content.to_owned(),
        },
        (Ok(texts), _) => parts::join(&texts, "\n"),
        (Err(()), _) => content.to_owned(),
    }
}

/// The pictures of an MCP result, for models that take some in a result.
pub fn model_images(content: &str) -> Vec<MediaPart> {
    // Most results are no MCP results and need no parse.
    if !content.starts_with('{') || !parts::has(content, "\"image\"") {
        return Vec::new();
    }
    let value = json::parse(content).unwrap_or_default();
    let items = value.get("content").and_then(Value::as_array);
    let image = |item: &Value| {
        let text = |member: &str| item.get(member).and_then(Value::as_str).map(str::to_owned);
        (text("type")? == "image").then_some(())?;
        let source = MediaSource::Data {
            value: text("data")?,
            mime_type: text("mimeType")?,
        };
        Some(MediaPart {
            source,
            id: None,
            metadata: None,
        })
    };
    items.into_iter().flatten().filter_map(image).list()
}

/// The text of one MCP content item; `None` when it is not one.
fn item_text(item: &Value) -> Option<String> {
    let text = |pointer: &str| json::at(item, pointer).and_then(Value::as_str);
    match text("/type")? {
        "text" => text("/text").map(str::to_owned),
        "image" | "audio" => Some(format!("[{}]", text("/mimeType").or(text("/type"))?)),
        "resource_link" => text("/uri").map(str::to_owned),
        "resource" => text("/resource/text")
            .or(text("/resource/uri"))
            .map(str::to_owned),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_a_result_is_read() {
        for (body, content, is_error) in [
            // An empty body and nothing.
            ("", r#"{"result":null}"#, false),
            (" \r\n", r#"{"result":null}"#, false),
            ("null", r#"{"result":null}"#, false),
            (r#""""#, r#"{"result":""}"#, false),
            (r#""null""#, r#""null""#, false),
            (r#"" null\n""#, r#"" null\n""#, false),
            (r#"{"result":null}"#, r#"{"result":null}"#, false),
            (r#"{"result":""}"#, r#"{"result":""}"#, false),
            (r#"{"result":"null"}"#, r#""null""#, false),
            // `result` comes first.
            (
                r#"{"content":[],"result":"plain text","output":1}"#,
                "plain text",
                false,
            ),
            (
                r#"{"result":{"b":1.0,"a":12345678901234567890123}}"#,
                r#"{"b":1.0,"a":12345678901234567890123}"#,
                false,
            ),
            (r#"{"result":false}"#, "false", false),
            (r#"{"result":1,"error":null,"isError":false}"#, "1", false),
            (r#"{"result":1,"error":"boom"}"#, r#"{"error":"boom"}"#, true),
            (
                r#"{"result":1,"error":{"code":-1.0}}"#,
                r#"{"error":{"code":-1.0}}"#,
                true,
            ),
            (r#"{"result":"boom","isError":true}"#, r#"{"error":"boom"}"#, true),
            (
                r#"{"result":null,"isError":true}"#,
                r#"{"error":"The tool failed."}"#,
                true,
            ),
            (
                r#"{"result":{"content":[]},"isError":true}"#,
                r#"{"content":[]}"#,
                true,
            ),
            (
                r#"{"result":{"content":[]},"error":"boom"}"#,
                r#"{"content":[]}"#,
                true,
            ),
            (
                r#"{"result":{"isError":true,"x":1}}"#,
                r#"{"isError":true,"x":1}"#,
                true,
            ),
            // Then MCP.
            (
                r#"{ "content": [{"type":"text","text":"a"}], "_meta": {"n":1.0} }"#,
                r#"{"content":[{"type":"text","text":"a"}],"_meta":{"n":1.0}}"#,
                false,
            ),
            (
                r#"{"content":[],"isError":true}"#,
                r#"{"content":[],"isError":true}"#,
                true,
            ),
            (
                r#"{"structuredContent":{"a":1},"content":"x"}"#,
                r#"{"structuredContent":{"a":1},"content":"x"}"#,
                false,
            ),
            (r#"{"isError":false}"#, r#"{"isError":false}"#, false),
            // Then the others.
            (r#"{"content":"text","output":1}"#, "text", false),
            (r#"{"content":{"a":1}}"#, r#"{"a":1}"#, false),
            (
                r#"{"content":"partial","error":"boom"}"#,
                r#"{"error":"boom"}"#,
                true,
            ),
            (r#"{"output":[1,2]}"#, "[1,2]", false),
            (r#"{"error":"boom"}"#, r#"{"error":"boom"}"#, true),
            (
                r#"{"error":"","code":1}"#,
                r#"{"error":"The tool failed."}"#,
                true,
            ),
            // Then the body itself.
            (r#"{"error":null}"#, r#"{"error":null}"#, false),
            (r#"{"b":1,"a":2}"#, r#"{"b":1,"a":2}"#, false),
            ("{}", "{}", false),
            ("[]", "[]", false),
            ("1.50", "1.50", false),
            (r#""just text""#, "just text", false),
            (r#""\ud83d{}""#, "\u{fffd}{}", false),
        ] {
            let content = content.to_owned();
            assert_eq!(decode(body), Ok(ToolResult { content, is_error }), "{body}");
        }
    }

    #[test]
    fn a_body_that_is_no_json_is_malformed() {
        for (body, message) in [
            ("plain text", "The body is not valid JSON (line 1, column 1)."),
            (r#"{"result":"#, "The body is not valid JSON (line 1, column 10)."),
            (
                &"[".repeat(100_000),
                "The body is nested more than 127 levels deep.",
            ),
        ] {
            let message = message.to_owned();
            assert_eq!(decode(body), Err(InputError::Malformed { message }));
        }
        let dense = format!("[{}0]", "0,".repeat(json::JSON_MAX_VALUE_COUNT));
        assert_eq!(decode(&dense), Err(InputError::TooManyValues));
    }

    #[test]
    fn pictures_of_an_mcp_result_are_found() {
        let content = r#"{"content":[{"type":"text","text":"a"},{"type":"image","data":"AA==","mimeType":"image/png"},
            {"type":"image","data":1}]}"#;
        let image = MediaPart {
            source: MediaSource::Data {
                value: "AA==".to_owned(),
                mime_type: "image/png".to_owned(),
            },
            id: None,
            metadata: None,
        };
        assert_eq!(model_images(content), [image]);
        for content in [
            "\"image\"",
            "{\"image\"",
            r#"{"content":"image"}"#,
            r#"{"type":"image"}"#,
        ] {
            assert_eq!(model_images(content), []);
        }
    }

    #[test]
    fn a_model_reads_the_texts_of_an_mcp_result() {
        for (content, text) in [
            ("plain", "plain"),
            ("{not json", "{not json"),
            (r#"{"a":1}"#, r#"{"a":1}"#),
            ("[1,2]", "[1,2]"),
            ("[]", "[]"),
            (r#"{"content":[]}"#, r#"{"content":[]}"#),
            (r#"{"content":"x"}"#, r#"{"content":"x"}"#),
            (
                r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"isError":true}"#,
                "a\nb",
            ),
            (
                r#"{"content":[{"type":"image","data":"AA==","mimeType":"image/png"}]}"#,
                "[image/png]",
            ),
            (
                r#"{"content":[{"type":"resource","resource":{"uri":"ui://x","text":"t"}},{"type":"resource_link","uri":"u"}]}"#,
                "t\nu",
            ),
            (r#"{"content":[],"structuredContent":{"n":1.0}}"#, r#"{"n":1.0}"#),
            (
                r#"{"content":[{"type":"text","text":""}],"structuredContent":[1]}"#,
                "[1]",
            ),
            (
                r#"{"content":[{"type":"hologram"}]}"#,
                r#"{"content":[{"type":"hologram"}]}"#,
            ),
            (r#"[{"type":"text","text":"a"}]"#, "a"),
            (r#"{"type":"text","text":"a"}"#, "a"),
        ] {
            assert_eq!(model_text(content), text, "{content}");
        }
    }
}
