//! The JSON-RPC messages we send. Source: Model Context Protocol 2025-11-25.

use serde_json::{Map, Value};

use super::PROTOCOL_VERSIONS;
use crate::protocol::tree::json;

/// Opens a session. We offer the server nothing to ask of us.
pub fn initialize(id: u64) -> Value {
    let [version, ..] = PROTOCOL_VERSIONS;
    let client = json!({ "name": env!("CARGO_PKG_NAME"), "version": env!("CARGO_PKG_VERSION") });
    let params = json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": client });
    request(id, "initialize", params)
}

/// The session is agreed on.
pub fn initialized() -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })
}

/// Asks for a page of the tools.
pub fn list_tools(id: u64, cursor: Option<&str>) -> Value {
    let params = cursor.map_or(json!({}), |cursor| json!({ "cursor": cursor }));
    request(id, "tools/list", params)
}

/// Calls a tool. The request's id is its progress token, too.
pub fn call_tool(id: u64, name: &str, arguments: &Map<String, Value>) -> Value {
    let params = json!({ "name": name, "arguments": arguments, "_meta": { "progressToken": id } });
    request(id, "tools/call", params)
}

/// The result of a request is not wanted any more.
pub fn cancelled(id: u64) -> Value {
    let params = json!({ "requestId": id, "reason": "The caller does not wait any more." });
    json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params })
}

/// Answers a ping.
pub fn pong(id: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": {} })
}

/// Answers a request for what we did not offer.
pub fn not_offered(id: &Value) -> Value {
    let error = json!({ "code": -32601, "message": "Method not found" });
    json!({ "jsonrpc": "2.0", "id": id, "error": error })
}

fn request(id: u64, method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}
