//! MCP servers: what is sent to one and how its answers read. Transport: Streamable HTTP.
//!
//! Pure. A session belongs to one run, so that nothing a server remembers of one caller is seen by another.
//! Source: Model Context Protocol 2025-11-25, "Transports", "Lifecycle", "Tools".

pub mod answer;
pub mod message;

use serde_json::{Map, Value};

use super::address::Address;
use crate::list::List;
use crate::protocol::json;
use crate::protocol::tool::{Tool, ToolResult};
use crate::provider::HttpRequest;
use crate::provider::Secret;

/// Versions we speak, the one we ask for first.
pub const PROTOCOL_VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Header of the session id, in both directions.
pub const SESSION_HEADER: &str = "mcp-session-id";

/// Most pages of a list of tools: a server that never ends it does not keep us.
pub const PAGES_MAX_COUNT: usize = 32;

/// Most bytes of what a server says went wrong.
const SENTENCE_MAX_BYTES: usize = 2000;

/// An MCP server with its secrets in place.
#[derive(Debug, Clone, PartialEq)]
pub struct McpServer {
    /// Name in the configuration.
    pub name: String,
    /// Address of the endpoint.
    pub url: String,
    /// Header names in lower case.
    pub headers: Vec<(String, Secret)>,
    /// Its tools that are offered; empty = all.
    pub allow: Vec<String>,
    /// Its tools that are not offered.
    pub deny: Vec<String>,
    /// What the names of its tools are prefixed with.
    pub prefix: String,
    /// Whether a call may be made again after a reset that left it unanswered.
    pub idempotent: bool,
    /// Longest time for a call; a progress notification starts it anew.
    pub timeout_ms: u64,
    /// Longest answer.
    pub result_max_bytes: usize,
    /// Whether a run fails without it.
    pub required: bool,
    /// Whether its host may be private.
    pub allow_private: bool,
}

/// A session that was agreed on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McpSession {
    /// The server's id for it, if it keeps sessions.
    pub id: Option<String>,
    /// The version both speak.
    pub version: &'static str,
}

/// A tool of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct McpTool {
    /// What the model is offered.
    pub declaration: Tool,
    /// Its name on the server.
    pub name: String,
}

/// Why a server gave no result, worded for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpFault {
    /// The address is not allowed.
    #[error("The tool's address is not allowed.")]
    Address,
    /// No connection, or it died.
    #[error("The tool's server could not be reached.")]
    Unreachable,
    /// Not 2xx.
    #[error("The tool's server answered with status {0}.")]
    Status(u16),
    /// The server does not know the session any more.
    #[error("The tool's server ended the session.")]
    SessionLost,
    /// Not in time.
    #[error("The tool did not answer in time.")]
    Timeout,
    /// The answer ended without the response (known fault B133).
    #[error("The tool's server broke off its answer.")]
    Ended,
    /// The answer is not of the protocol.
    #[error("The tool's server sent what cannot be read.")]
    Malformed,
    /// Longer than `result_max_bytes`.
    #[error("The tool's answer is longer than {0} bytes.")]
    TooLong(usize),
    /// It speaks none of our versions.
    #[error("The tool's server speaks another version of the protocol.")]
    Version,
    /// The server's own error, in its words.
    #[error("{0}")]
    Refused(String),
}

impl McpFault {
    /// The error result.
    pub fn result(&self) -> ToolResult {
        ToolResult::failure(&self.to_string())
    }
}

impl McpServer {
    /// Whether its address may be asked.
    pub fn is_allowed(&self) -> bool {
        Address::parse(&self.url).is_some_and(|address| self.allow_private || !address.is_private())
    }

    /// A message to the server; without a session, the first.
    pub fn post(&self, session: Option<&McpSession>, message: &Value) -> HttpRequest {
        let mut request = self.request("POST", session);
        request
            .headers
            .push(("content-type".to_owned(), "application/json".to_owned()));
        request.body = Some(json::text(&message));
        request
    }

    /// Ends a session; `None` when the server keeps none.
    pub fn leave(&self, session: &McpSession) -> Option<HttpRequest> {
        session
            .id
            .is_some()
            .then(|| self.request("DELETE", Some(session)))
    }

    fn request(&self, method: &'static str, session: Option<&McpSession>) -> HttpRequest {
        // Ours come last and alone: a configured header must not change how an answer is framed.
        let mut ours = vec![("accept", "application/json, text/event-stream")];
        if let Some(session) = session {
            ours.push(("mcp-protocol-version", session.version));
            ours.extend(session.id.as_deref().map(|id| (SESSION_HEADER, id)));
        }
        let is_ours = |name: &str| name == "content-type" || ours.iter().any(|(own, _)| *own == name);
        let configured = self.headers.iter().filter(|(name, _)| !is_ours(name));
        let headers = configured
            .map(|(name, value)| (name.clone(), value.expose().to_owned()))
            .chain(
                ours.iter()
                    .map(|(name, value)| ((*name).to_owned(), (*value).to_owned())),
            );
        HttpRequest {
            method,
            url: self.url.clone(),
            headers: headers.list(),
            body: None,
        }
    }

    /// The listed tools that are offered, by names every vendor takes.
    pub fn offered(&self, listed: &[Value]) -> Vec<McpTool> {
        let tools = listed.iter().filter_map(|tool| {
            let name = tool.get("name")?.as_str()?;
            let is_allowed = self.allow.is_empty() || self.allow.iter().any(|allowed| allowed == name);
            if name.is_empty() || !is_allowed || self.deny.iter().any(|denied| denied == name) {
                return None;
            }
            let text = |member: &str| tool.get(member).and_then(Value::as_str);
            let description = text("description").or(text("title")).unwrap_or_default();
            Some(McpTool {
                declaration: Tool {
                    name: offered_name(&self.prefix, name),
                    description: description.to_owned(),
                    parameters: tool.get("inputSchema").and_then(Value::as_object).map(parameters),
                },
                name: name.to_owned(),
            })
        });
        tools.list()
    }
}

/// A server may use names that vendors refuse: other characters become `_`.
fn offered_name(prefix: &str, name: &str) -> String {
    let plain = |c: char| {
        if c.is_ascii_alphanumeric() || c == '-' {
            c
        } else {
            '_'
        }
    };
    prefix.chars().chain(name.chars().map(plain)).take(64).collect()
}

/// A schema as vendors take it: some refuse its dialect's address.
fn parameters(schema: &Map<String, Value>) -> Value {
    let mut schema = schema.clone();
    schema.shift_remove("$schema");
    Value::Object(schema)
}

/// The version a server chose, if we speak it.
///
/// # Errors
/// [`McpFault::Version`]
pub fn agreed_version(initialized: &Value) -> Result<&'static str, McpFault> {
    let chosen = initialized.get("protocolVersion").and_then(Value::as_str);
    PROTOCOL_VERSIONS
        .into_iter()
        .find(|version| Some(*version) == chosen)
        .ok_or(McpFault::Version)
}

/// The result of a `tools/call`: the server's own object, from which MCP apps are rebuilt. Source: contract 3 (D16).
pub fn call_result(result: &Value) -> ToolResult {
    ToolResult {
        content: json::text(&result),
        is_error: result.get("isError").and_then(Value::as_bool).unwrap_or(false),
    }
}

/// What a server says went wrong, at a length that fits a prompt.
fn sentence(message: &str) -> String {
    let message = message.trim();
    let end = (0..=SENTENCE_MAX_BYTES.min(message.len()))
        .rev()
        .find(|at| message.is_char_boundary(*at));
    match message.get(..end.unwrap_or(0)) {
        None | Some("") => "The tool's server reported an error.".to_owned(),
        Some(kept) => kept.to_owned(),
    }
}

#[cfg(test)]
#[path = "mcp_tests.rs"]
mod tests;
