//! Tools as the protocol speaks of them: declarations, calls, results.

use serde::Serialize;
use serde_json::Value;

use super::id::ToolCallId;
use super::json;
use super::read::record;
use super::tree::json;

/// A tool a front end declares for one run, or a server tool of an agent.
///
/// Wire: `{"name","description","parameters"?}`; absent `parameters` = any object. Source: contract 2.1, AG-UI 2.2.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Tool {
    /// Name the model calls it by.
    pub name: String,
    /// What it does, for the model.
    pub description: String,
    /// JSON Schema of the arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Value>,
}

/// A finished call inside an assistant message.
///
/// Wire: `{"id","type":"function","function":{"name","arguments"}}`, `arguments` a JSON text. Source: AG-UI 2.3.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(from = "ToolCallWire", into = "ToolCallWire")]
pub struct ToolCall {
    /// Id of the call.
    pub id: ToolCallId,
    /// The tool's name.
    pub name: String,
    /// Arguments as JSON text.
    pub arguments: String,
    /// Opaque value of the producer that issued the call, kept for it.
    pub encrypted_value: Option<String>,
}

#[derive(Serialize, Clone)]
struct ToolCallWire {
    id: ToolCallId,
    #[serde(rename = "type", default = "function_type")]
    kind: String,
    function: FunctionWire,
    #[serde(rename = "encryptedValue", default, skip_serializing_if = "Option::is_none")]
    encrypted_value: Option<String>,
}

#[derive(Serialize, Clone)]
struct FunctionWire {
    name: String,
    arguments: String,
}

fn function_type() -> String {
    "function".to_owned()
}

impl From<ToolCallWire> for ToolCall {
    fn from(wire: ToolCallWire) -> Self {
        Self {
            id: wire.id,
            name: wire.function.name,
            arguments: wire.function.arguments,
            encrypted_value: wire.encrypted_value,
        }
    }
}

impl From<ToolCall> for ToolCallWire {
    fn from(call: ToolCall) -> Self {
        Self {
            id: call.id,
            kind: function_type(),
            function: FunctionWire {
                name: call.name,
                arguments: call.arguments,
            },
            encrypted_value: call.encrypted_value,
        }
    }
}

/// The answer to a call, whoever gave it.
///
/// Source: contract 3 (D16).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct ToolResult {
    /// What TOOL_CALL_RESULT carries: a text as it is, anything else as JSON text; never empty, never `null`.
    pub content: String,
    /// Whether the call failed.
    pub is_error: bool,
}

record!(ToolResult: "content" => content, "is_error" => is_error);

impl ToolResult {
    /// A result that says why the call failed: `{"error": "..."}`.
    pub fn failure(sentence: &str) -> Self {
        let content = json::text(&json!({ "error": sentence }));
        Self {
            content,
            is_error: true,
        }
    }

    /// What a call gets that ended without an answer. Source: contract 2.3.
    pub fn interrupted() -> Self {
        Self::failure("The call was interrupted.")
    }
}
