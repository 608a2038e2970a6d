//! Server tools: what runs here and not in the front end.

pub mod address;
pub mod current_time;
pub mod http;
pub mod mcp;
pub mod names;
pub mod schema;
pub mod template;
pub mod toolbox;

use crate::protocol::tool::{Tool, ToolResult};

/// A tool written in Rust.
pub trait NativeTool {
    /// Name, description and parameters offered to the model.
    fn declaration(&self) -> Tool;

    /// Runs the call. `arguments` is a JSON object that fits the declared schema; `now_ms` is Unix milliseconds.
    fn call(&self, arguments: &serde_json::Value, now_ms: u64) -> ToolResult;
}

/// Every native tool; an agent names those it has.
pub const NATIVE_TOOLS: &[&dyn NativeTool] = &[&current_time::CurrentTime];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_tools() {
        let declared: Vec<String> = NATIVE_TOOLS.iter().map(|tool| tool.declaration().name).collect();
        assert_eq!(declared, names::NATIVE_TOOL_NAMES);
    }
}
