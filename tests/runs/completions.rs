//! Bytes of a Chat Completions stream.

use serde_json::{Value, json};

/// One chunk with this delta.
pub fn delta(delta: Value) -> String {
    format!(
        "data: {}\n\n",
        json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]})
    )
}

/// A piece of text.
pub fn text(text: &str) -> String {
    delta(json!({ "content": text }))
}

/// A whole call.
pub fn call(index: u32, name: &str, arguments: &str) -> String {
    let function = json!({ "name": name, "arguments": arguments });
    delta(
        json!({"tool_calls": [{"index": index, "id": format!("v{index}"), "type": "function", "function": function}]}),
    )
}

/// The finish reason and the end mark.
pub fn finish(reason: &str) -> String {
    let chunk = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]});
    format!("data: {chunk}\n\ndata: [DONE]\n\n")
}

/// An answer that is only text.
pub fn answer(words: &str) -> String {
    text(words) + &finish("stop")
}
