//! Who runs a call: the agent's server tools and the run's front-end tools under one roof.

use super::schema::{Schema, SchemaFault};
use super::{NATIVE_TOOLS, NativeTool};
use crate::protocol::tool::Tool;

/// Who executes a tool's calls.
#[derive(Clone, Copy)]
pub enum ToolOwner {
    /// Here, in Rust.
    Native(&'static dyn NativeTool),
    /// The client.
    Frontend,
}

/// The tools of one run. Source: contract 2.5.
pub struct ToolBox {
    entries: Vec<Entry>,
}

struct Entry {
    tool: Tool,
    owner: ToolOwner,
}

impl ToolBox {
    /// Puts an agent's server tools and a run's declarations together; the server tool wins a clash, whose name is
    /// given back for the log.
    pub fn new(server_tools: &[String], frontend_tools: &[Tool]) -> (Self, Vec<String>) {
        let mut entries: Vec<Entry> = Vec::new();
        let mut clashes = Vec::new();
        for native in NATIVE_TOOLS {
            let tool = native.declaration();
            if server_tools.contains(&tool.name) {
                entries.push(Entry {
                    tool,
                    owner: ToolOwner::Native(*native),
                });
            }
        }
        for tool in frontend_tools {
            if entries.iter().any(|entry| entry.tool.name == tool.name) {
                clashes.push(tool.name.clone());
            } else {
                entries.push(Entry {
                    tool: tool.clone(),
                    owner: ToolOwner::Frontend,
                });
            }
        }
        (Self { entries }, clashes)
    }

    /// What the model is offered, on every step.
    pub fn declarations(&self) -> Vec<Tool> {
        self.entries.iter().map(|entry| entry.tool.clone()).collect()
    }

    /// Who runs calls of this name; `None` when nobody does.
    pub fn owner(&self, name: &str) -> Option<ToolOwner> {
        self.entries
            .iter()
            .find(|entry| entry.tool.name == name)
            .map(|entry| entry.owner)
    }

    /// The compiled parameters of a tool; `None` when it has none. A schema that cannot be compiled is not checked.
    pub fn schema(&self, name: &str) -> Option<Result<Schema, SchemaFault>> {
        let entry = self.entries.iter().find(|entry| entry.tool.name == name)?;
        entry.tool.parameters.as_ref().map(Schema::compile)
    }
}
