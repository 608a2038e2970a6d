//! The server tools of an agent with the deployment's secrets in place, and what MCP servers offer.

use std::rc::Rc;

use super::bindings::Env;
use super::clock::PlatformClock;
use super::env;
use super::log::ConsoleLog;
use super::upstreams::Upstreams;
use crate::api::error::ApiError;
use crate::api::trace::Trace;
use crate::config::server_tools::HttpMethod;
use crate::config::{AgentConfig, Config, HttpToolConfig, McpServerConfig};
use crate::protocol::tool::Tool;
use crate::provider::Secret;
use crate::run::mcp_lists::McpLists;
use crate::run::server_calls::describe_tools;
use crate::tool::http::HttpTool;
use crate::tool::mcp::McpServer;
use crate::tool::toolbox::ServerTools;

thread_local! {
    /// Plain data only: a platform object must not outlive the request it came with.
    static LISTS: Rc<McpLists> = Rc::default();
}

/// What MCP servers offer, as this isolate remembers it.
pub fn mcp_lists() -> Rc<McpLists> {
    LISTS.with(Rc::clone)
}

/// The tools of an agent. One that lacks a secret is left out, which the log says.
///
/// # Errors
/// 503 when it is a server the agent cannot do without.
pub fn server_tools(
    env: &Env,
    config: &Config,
    agent: &AgentConfig,
    log: &ConsoleLog,
) -> Result<ServerTools, ApiError> {
    let mut tools = ServerTools::default();
    for (name, tool) in config.http_tools(agent) {
        if let Some(headers) = env::headers(env, &tool.headers, log) {
            tools.http.push(Rc::new(http_tool(name, tool, headers)));
        }
    }
    for (name, server) in config.mcp_servers(agent) {
        match env::headers(env, &server.headers, log) {
            Some(headers) => tools.mcp.push(Rc::new(mcp_server(name, server, headers))),
            None if server.required => return Err(ApiError::agent_not_configured()),
            None => {}
        }
    }
    Ok(tools)
}

/// The tools of an agent as discovery shows them.
pub async fn declarations(
    env: &Env,
    config: &Config,
    agent: &AgentConfig,
    log: &ConsoleLog,
    trace: &Trace,
) -> Vec<Tool> {
    let tools = server_tools(env, config, agent, log).unwrap_or_default();
    let lists = mcp_lists();
    let http = Upstreams::new(env, trace.clone());
    let ports = (&http, &PlatformClock, &*lists, log);
    describe_tools(&agent.tools, &tools, ports, agent.first_response_wait_ms).await
}

fn http_tool(name: &str, tool: &HttpToolConfig, headers: Vec<(String, Secret)>) -> HttpTool {
    HttpTool {
        declaration: Tool {
            name: name.to_owned(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
        },
        method: match tool.method {
            HttpMethod::Get => "GET",
            HttpMethod::Post => "POST",
            HttpMethod::Put => "PUT",
            HttpMethod::Patch => "PATCH",
            HttpMethod::Delete => "DELETE",
        },
        url: tool.url.clone(),
        headers,
        idempotent: tool.idempotent,
        timeout_ms: tool.timeout_ms,
        result_max_bytes: tool.result_max_bytes,
        allow_private: tool.allow_private,
    }
}

fn mcp_server(name: &str, server: &McpServerConfig, headers: Vec<(String, Secret)>) -> McpServer {
    McpServer {
        name: name.to_owned(),
        url: server.url.clone(),
        headers,
        allow: server.allow.clone(),
        deny: server.deny.clone(),
        prefix: server.prefix.clone(),
        idempotent: server.idempotent,
        timeout_ms: server.timeout_ms,
        result_max_bytes: server.result_max_bytes,
        required: server.required,
        allow_private: server.allow_private,
    }
}
