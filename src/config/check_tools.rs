//! What must hold of the server tools beyond their types. The build script compiles this file too.

use super::check::{DAY_MS, is_base_url, is_secret_name};
use super::named::Named;
use super::server_tools::{HttpToolConfig, McpServerConfig, header_parts};
use super::tool_names::NATIVE_TOOL_NAMES;
use super::tool_template::{Part, parts};

/// Takes a key, what must hold of it, and the value.
pub(super) type Report<'a> = &'a mut dyn FnMut(&'static str, &str, &str);

/// Names that every vendor takes.
pub(super) fn is_tool_name(text: &str) -> bool {
    (1..=64).contains(&text.len()) && is_name_part(text)
}

fn is_name_part(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// An HTTP tool.
pub(super) fn check_http_tool(name: &str, tool: &HttpToolConfig, report: Report<'_>) {
    if !is_tool_name(name) {
        report("", "must be named by 1 to 64 letters, digits, `-` or `_`", name);
    } else if NATIVE_TOOL_NAMES.contains(&name) {
        report("", "has the name of a tool that is built in", name);
    }
    if tool.description.trim().is_empty() {
        report("description", "must say what the tool does", "");
    }
    check_template(tool, report);
    if let Some(parameters) = &tool.parameters
        && parameters.get("type").and_then(|kind| kind.as_str()) != Some("object")
    {
        let message = "must be a JSON Schema with `type = \"object\"`";
        report("parameters", message, "");
    }
    check_headers(&tool.headers, report);
    check_limits(tool.timeout_ms, tool.result_max_bytes, report);
}

fn check_template(tool: &HttpToolConfig, report: Report<'_>) {
    // Everything before the first place, or before the query, must be an address by itself.
    let fixed = tool.url.split(['{', '?']).next().unwrap_or_default();
    let has_path = fixed.splitn(4, '/').count() == 4;
    if !is_base_url(fixed) || tool.url.contains(['#']) || (tool.url.contains(['{']) && !has_path) {
        let message = "must be an http or https address without user or fragment, with `{argument}` in path and query only";
        return report("url", message, &tool.url);
    }
    let Some(parts) = parts(&tool.url) else {
        return report("url", "has braces that do not pair", &tool.url);
    };
    let known = tool
        .parameters
        .as_ref()
        .and_then(|schema| schema.get("properties"));
    for part in parts {
        if let Part::Argument(name) = part
            && known.and_then(|known| known.get(name)).is_none()
        {
            let message = "names an argument that `parameters.properties` does not have";
            report("url", message, name);
        }
    }
}

/// An MCP server.
pub(super) fn check_mcp_server(name: &str, server: &McpServerConfig, report: Report<'_>) {
    if !is_tool_name(name) {
        report("", "must be named by 1 to 64 letters, digits, `-` or `_`", name);
    }
    let path = server.url.split('?').next().unwrap_or_default();
    if !is_base_url(path) || server.url.contains(['#']) {
        let message = "must be an http or https address without user or fragment";
        report("url", message, &server.url);
    }
    if server.prefix.len() > 32 || !is_name_part(&server.prefix) {
        let message = "must be at most 32 letters, digits, `-` or `_`";
        report("prefix", message, &server.prefix);
    }
    check_headers(&server.headers, report);
    check_limits(server.timeout_ms, server.result_max_bytes, report);
}

pub(super) fn check_headers(headers: &Named<String>, report: Report<'_>) {
    for (name, value) in headers.iter() {
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
        if name.is_empty() || !name.bytes().all(is_token) {
            report("headers", "has a name that no header may have", name);
        }
        // A value may be a key that was written here by mistake: it is not repeated.
        let Some(parts) = header_parts(value) else {
            report("headers", "has a value whose `${` has no `}`", name);
            continue;
        };
        if value
            .bytes()
            .any(|byte| !byte.is_ascii() || byte.is_ascii_control())
        {
            report("headers", "has a value that no header may have", name);
        }
        for part in parts {
            if let Err(secret) = part
                && !is_secret_name(secret)
            {
                report("headers", "must name secrets in `${NAME}`", name);
            }
        }
    }
}

fn check_limits(timeout_ms: u64, result_max_bytes: usize, report: Report<'_>) {
    if !(1..=DAY_MS).contains(&timeout_ms) {
        report(
            "timeoutMs",
            &format!("must be from 1 to {DAY_MS}"),
            &timeout_ms.to_string(),
        );
    }
    let most = 32 * 1024 * 1024;
    if !(256..=most).contains(&result_max_bytes) {
        let message = format!("must be from 256 to {most}");
        report("resultMaxBytes", &message, &result_max_bytes.to_string());
    }
}
