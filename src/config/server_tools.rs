//! `[tools.<name>]` and `[mcp.<name>]` of `agents.toml` as types. The build script compiles this file too.

use serde::{Deserialize, Serialize};

use super::named::Named;

/// A server tool that is one HTTP request. Times are milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HttpToolConfig {
    /// What it does, for the model.
    pub description: String,
    /// Address, with places for arguments in path and query: `https://api.example.com/users/{id}?units={units}`.
    pub url: String,
    /// JSON Schema of the arguments, an object.
    #[serde(default)]
    pub parameters: Option<serde_json::Value>,
    /// Method of the request.
    #[serde(default)]
    pub method: HttpMethod,
    /// Headers; `${NAME}` in a value stands for the secret of that name.
    #[serde(default)]
    pub headers: Named<String>,
    /// Whether a call may be made again when a reset left it unanswered. Source: contract 8.
    #[serde(default = "default_true")]
    pub idempotent: bool,
    /// Longest time for the whole call.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
    /// Longest answer, in bytes.
    #[serde(default = "default_result_max_bytes")]
    pub result_max_bytes: usize,
    /// Whether the host may be of a private network.
    #[serde(default)]
    pub allow_private: bool,
}

/// Methods of HTTP tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum HttpMethod {
    /// Arguments in path and query.
    #[default]
    Get,
    /// Arguments in path, query and body.
    Post,
    /// Arguments in path, query and body.
    Put,
    /// Arguments in path, query and body.
    Patch,
    /// Arguments in path and query.
    Delete,
}

/// An MCP server with the Streamable HTTP transport. Times are milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct McpServerConfig {
    /// Address of the endpoint.
    pub url: String,
    /// Headers; `${NAME}` in a value stands for the secret of that name.
    #[serde(default)]
    pub headers: Named<String>,
    /// Its tools that are offered; empty = all.
    #[serde(default)]
    pub allow: Vec<String>,
    /// Its tools that are not offered.
    #[serde(default)]
    pub deny: Vec<String>,
    /// What the names of its tools are prefixed with.
    #[serde(default)]
    pub prefix: String,
    /// Whether calls may be made again when a reset left them unanswered. Source: contract 8.
    #[serde(default = "default_true")]
    pub idempotent: bool,
    /// Longest time for a call; a progress notification starts it anew.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
    /// Longest answer, in bytes.
    #[serde(default = "default_result_max_bytes")]
    pub result_max_bytes: usize,
    /// Whether a run fails when the server cannot be reached, instead of doing without its tools.
    #[serde(default)]
    pub required: bool,
    /// Whether the host may be of a private network.
    #[serde(default)]
    pub allow_private: bool,
}

pub(super) fn default_true() -> bool {
    true
}

pub(super) fn default_timeout_ms() -> u64 {
    30 * 1000
}

pub(super) fn default_result_max_bytes() -> usize {
    4 * 1024 * 1024
}

/// Takes a header's value apart: texts and, as `Err`, names of secrets; `None` when a `${` has no `}`.
pub fn header_parts(value: &str) -> Option<Vec<Result<&str, &str>>> {
    let mut parts = Vec::new();
    let mut rest = value;
    let is_begin = |pair: (u8, u8)| pair == (b'$', b'{');
    while let Some(start) = rest.bytes().zip(rest.bytes().skip(1)).position(is_begin) {
        let text = rest.get(..start)?;
        let (name, after) = rest.get(start + 2..)?.split_once('}')?;
        parts.push(Ok(text));
        parts.push(Err(name));
        rest = after;
    }
    parts.push(Ok(rest));
    Some(parts)
}
