//! `current_time`: the example of a native tool.

use serde_json::json;

use super::NativeTool;
use crate::protocol::tool::{Tool, ToolResult};

/// Says what time it is, in UTC.
#[derive(Debug, Clone, Copy)]
pub struct CurrentTime;

impl NativeTool for CurrentTime {
    fn declaration(&self) -> Tool {
        Tool {
            name: "current_time".to_owned(),
            description: "The current date and time in UTC.".to_owned(),
            parameters: Some(json!({ "type": "object", "properties": {}, "additionalProperties": false })),
        }
    }

    fn call(&self, _arguments: &serde_json::Value, now_ms: u64) -> ToolResult {
        ToolResult {
            content: json!({ "unixMs": now_ms }).to_string(),
            is_error: false,
        }
    }
}
