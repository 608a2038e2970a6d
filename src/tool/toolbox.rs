//! Who runs a call: the agent's server tools and the run's front-end tools under one roof.

use std::rc::Rc;

use super::http::HttpTool;
use super::mcp::{McpServer, McpTool};
use super::schema::{Schema, SchemaFault};
use super::{NATIVE_TOOLS, NativeTool};
use crate::list::List;
use crate::protocol::tool::Tool;

/// The server tools of an agent that are not native, secrets in place.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServerTools {
    /// Those that are one HTTP request.
    pub http: Vec<Rc<HttpTool>>,
    /// Servers whose tools it has.
    pub mcp: Vec<Rc<McpServer>>,
}

/// Who executes a tool's calls.
#[derive(Clone)]
pub enum ToolOwner {
    /// Here, in Rust.
    Native(&'static dyn NativeTool),
    /// A server that is sent one request.
    Http(Rc<HttpTool>),
    /// An MCP server.
    Mcp {
        /// Index of the server in [`ServerTools::mcp`].
        server: usize,
        /// The tool's name there.
        name: String,
    },
    /// The client.
    Frontend,
}

/// The tools of one run. Source: contract 2.5.
#[derive(Default)]
pub struct ToolBox {
    entries: Vec<Entry>,
}

struct Entry {
    tool: Tool,
    owner: ToolOwner,
}

impl ToolBox {
    /// Puts an agent's server tools and a run's declarations together: native, HTTP and MCP tools, then the front end's.
    /// The first of a name wins; the names of the others are given back for the log.
    ///
    /// `names` are those the agent lists, `mcp` the tools of each of its servers.
    pub fn new(
        names: &[String],
        tools: &ServerTools,
        mcp: &[Rc<Vec<McpTool>>],
        frontend_tools: &[Tool],
    ) -> (Self, Vec<String>) {
        let native = NATIVE_TOOLS
            .iter()
            .map(|native| (native.declaration(), ToolOwner::Native(*native)))
            .filter(|(tool, _)| names.contains(&tool.name));
        let http = tools
            .http
            .iter()
            .map(|tool| (tool.declaration.clone(), ToolOwner::Http(Rc::clone(tool))));
        let mcp = mcp.iter().enumerate().flat_map(|(server, tools)| {
            tools.iter().map(move |tool| {
                let name = tool.name.clone();
                (tool.declaration.clone(), ToolOwner::Mcp { server, name })
            })
        });
        let frontend = frontend_tools
            .iter()
            .map(|tool| (tool.clone(), ToolOwner::Frontend));
        let mut entries: Vec<Entry> = Vec::new();
        let mut clashes = Vec::new();
        for (tool, owner) in native.chain(http).chain(mcp).chain(frontend) {
            if entries.iter().any(|entry| entry.tool.name == tool.name) {
                clashes.push(tool.name);
            } else {
                entries.push(Entry { tool, owner });
            }
        }
        (Self { entries }, clashes)
    }

    /// What the model is offered, on every step.
    pub fn declarations(&self) -> Vec<Tool> {
        self.entries.iter().map(|entry| entry.tool.clone()).list()
    }

    /// Who runs calls of this name; `None` when nobody does.
    pub fn owner(&self, name: &str) -> Option<ToolOwner> {
        self.entries
            .iter()
            .find(|entry| entry.tool.name == name)
            .map(|entry| entry.owner.clone())
    }

    /// The compiled parameters of a tool; `None` when it has none. A schema that cannot be compiled is not checked.
    pub fn schema(&self, name: &str) -> Option<Result<Schema, SchemaFault>> {
        let entry = self.entries.iter().find(|entry| entry.tool.name == name)?;
        entry.tool.parameters.as_ref().map(Schema::compile)
    }
}
