//! What must hold of `agents.toml` beyond its types. The build script compiles this file too, so its paths start at
//! `super`, where both have `agents`, `server_tools`, `check_tools`, `table`, `tool_names` and `tool_template`.

use std::ops::RangeInclusive;

use serde_json::Number;

use super::agents::{AgentConfig, AgentsFile, Memory, ModelSettingsConfig};
use super::check_tools::{Report, check_headers, check_http_tool, check_mcp_server};
use super::table::{Wire, listed};
use super::tool_names::NATIVE_TOOL_NAMES;

/// One mistake in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The table.
    pub place: Place,
    /// The key inside the table, such as `modelSettings.topP`; empty = the table itself.
    pub key: &'static str,
    /// What must hold; never has the value.
    pub message: String,
    /// The value, where there is one.
    pub value: String,
}

/// A table of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// The agent of this index.
    Agent(usize),
    /// The HTTP tool of this name.
    Tool(String),
    /// The MCP server of this name.
    Mcp(String),
}

pub(super) const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// What the numbers of an agent may be, in the order `check_ranges` lists them.
const RANGES: [(&str, RangeInclusive<u64>); 10] = [
    ("maxSteps", 1..=1000),
    ("runTimeoutMs", 1..=DAY_MS),
    ("upstreamIdleTimeoutMs", 1..=DAY_MS),
    ("firstResponseWaitMs", 0..=60_000),
    ("toolTimeoutMs", 1..=DAY_MS),
    ("keepAliveMs", 0..=DAY_MS),
    ("eventRetentionMs", 0..=7 * DAY_MS),
    ("maxRetries", 0..=10),
    ("lastMessages", 0..=10_000),
    ("toolResultMaxBytes", 256..=4 * 1024 * 1024),
];

/// Every mistake: the agents in their order, then the tools, then the MCP servers.
pub fn check(file: &AgentsFile) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut names = Vec::new();
    for (index, agent) in file.agents.iter().enumerate() {
        let mut report = reporter(&mut faults, Place::Agent(index));
        check_names(agent, &mut names, &mut report);
        check_upstream(agent, &mut report);
        check_tools(agent, file, &mut report);
        check_ranges(agent, &mut report);
        check_model_settings(&agent.model_settings, &mut report);
        check_boundary(agent, &mut report);
    }
    for (name, tool) in file.tools.iter() {
        let mut report = reporter(&mut faults, Place::Tool(name.clone()));
        check_http_tool(name, tool, &mut report);
    }
    for (name, server) in file.mcp.iter() {
        let mut report = reporter(&mut faults, Place::Mcp(name.clone()));
        check_mcp_server(name, server, &mut report);
    }
    faults
}

fn reporter(faults: &mut Vec<Fault>, place: Place) -> impl FnMut(&'static str, &str, &str) {
    move |key, message, value| {
        faults.push(Fault {
            place: place.clone(),
            key,
            message: message.to_owned(),
            value: value.to_owned(),
        });
    }
}

fn check_names<'a>(agent: &'a AgentConfig, names: &mut Vec<&'a str>, report: Report<'_>) {
    let ids = std::iter::once(("id", &agent.id)).chain(agent.aliases.iter().map(|alias| ("aliases", alias)));
    for (key, id) in ids {
        if !is_agent_id(id) {
            report(key, "must be 1 to 128 letters, digits, `-`, `_` or `.`", id);
        } else if names.contains(&id.as_str()) {
            report(key, "is already the id or an alias of an agent", id);
        } else {
            names.push(id);
        }
    }
    if let Some(name) = &agent.name
        && name.trim().is_empty()
    {
        report("name", "must not be blank", name);
    }
}

fn check_upstream(agent: &AgentConfig, report: Report<'_>) {
    let wire = agent.provider.wire;
    match &agent.base_url {
        Some(url) if !is_base_url(url) => {
            let message = "must be an http or https address without user, query or fragment";
            report("baseUrl", message, url);
        }
        None if wire.needs_base_url() && agent.provider.base_url.is_empty() => {
            report("baseUrl", "is needed by this provider", "");
        }
        Some(_) | None => {}
    }
    if wire.needs_model() && agent.model.trim().is_empty() {
        report("model", "is needed by this provider", &agent.model);
    }
    if agent.memory == Memory::Mastra && wire != Wire::Mastra {
        let message = "may be `mastra` only with provider `mastra`";
        report("memory", message, "");
    }
    if let Some(secret) = &agent.api_key_secret
        && !secret.is_empty()
        && !is_secret_name(secret)
    {
        report("apiKeySecret", "must be the name of a secret, not a key", secret);
    }
    check_headers(&agent.headers, report);
    if agent.query.get("").is_some() {
        report("query", "must not have an empty name", "");
    }
}

fn check_tools(agent: &AgentConfig, file: &AgentsFile, report: Report<'_>) {
    let (mut tools, mut servers) = (NATIVE_TOOL_NAMES.to_vec(), Vec::new());
    for (name, _) in file.tools.iter() {
        tools.push(name.as_str());
    }
    for (name, _) in file.mcp.iter() {
        servers.push(name.as_str());
    }
    for (key, kind, named, known) in [
        ("tools", "server tools", &agent.tools, tools),
        ("mcp", "MCP servers", &agent.mcp, servers),
    ] {
        for (index, name) in named.iter().enumerate() {
            if !known.contains(&name.as_str()) {
                let message = format!("must name {kind}; there are: {}", listed(&known));
                report(key, &message, name);
            } else if named.iter().take(index).any(|earlier| earlier == name) {
                report(key, "must not name one twice", name);
            }
        }
    }
}

fn check_ranges(agent: &AgentConfig, report: Report<'_>) {
    let values = [
        agent.max_steps.into(),
        agent.run_timeout_ms,
        agent.upstream_idle_timeout_ms,
        agent.first_response_wait_ms,
        agent.tool_timeout_ms,
        agent.keep_alive_ms.unwrap_or(0),
        agent.event_retention_ms,
        agent.max_retries.into(),
        agent.last_messages.into(),
        u64::try_from(agent.tool_result_max_bytes).unwrap_or(u64::MAX),
    ];
    for (value, (key, range)) in values.into_iter().zip(&RANGES) {
        if !range.contains(&value) {
            let message = format!("must be from {} to {}", range.start(), range.end());
            report(key, &message, &value.to_string());
        }
    }
}

fn check_boundary(agent: &AgentConfig, report: Report<'_>) {
    let bounds = &agent.model_settings_max;
    if !bounds.stop_sequences.is_empty() || bounds.seed.is_some() {
        let message = "must not have stopSequences or seed: there is no most of them";
        report("modelSettingsMax", message, "");
    }
    for entry in &agent.media_addresses {
        let host = ["https://", "http://"]
            .iter()
            .find_map(|scheme| entry.strip_prefix(scheme));
        let is_host = |host: &str| {
            let name = host.strip_prefix("*.").unwrap_or(host);
            host == "*"
                || (!name.is_empty()
                    && name.bytes().all(|byte| {
                        byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.:[]".contains(&byte)
                    }))
        };
        if !host.is_some_and(is_host) {
            let message =
                "must hold addresses like https://*, https://cdn.example.com or https://*.example.com";
            report("mediaAddresses", message, entry);
        }
    }
}

fn check_model_settings(settings: &ModelSettingsConfig, report: Report<'_>) {
    let ranges: [(&'static str, Option<f64>, i8, i8); 4] = [
        ("modelSettings.temperature", settings.temperature, 0, 2),
        ("modelSettings.topP", settings.top_p, 0, 1),
        ("modelSettings.presencePenalty", settings.presence_penalty, -2, 2),
        (
            "modelSettings.frequencyPenalty",
            settings.frequency_penalty,
            -2,
            2,
        ),
    ];
    for (key, value, least, most) in ranges {
        if let Some(value) = value
            && !(f64::from(least)..=f64::from(most)).contains(&value)
        {
            let given = Number::from_f64(value).map_or_else(String::new, |number| number.to_string());
            let message = format!("must be from {least} to {most}");
            report(key, &message, given.strip_suffix(".0").unwrap_or(&given));
        }
    }
    for (key, value) in [
        ("modelSettings.maxOutputTokens", settings.max_output_tokens),
        ("modelSettings.topK", settings.top_k),
    ] {
        if value == Some(0) {
            report(key, "must be at least 1", "0");
        }
    }
    if settings.stop_sequences.iter().any(String::is_empty) {
        let key = "modelSettings.stopSequences";
        report(key, "must not have an empty text", "");
    }
}

fn is_agent_id(text: &str) -> bool {
    (1..=128).contains(&text.len())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

pub(super) fn is_base_url(text: &str) -> bool {
    let host = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"))
        .and_then(|rest| rest.split('/').next());
    host.is_some_and(|host| !host.is_empty() && !host.contains(['@']))
        && !text.contains(|c: char| matches!(c, '?' | '#' | '\\') || c.is_whitespace() || c.is_control())
}

/// Whether a text may name a secret or a variable of a Worker.
pub fn is_secret_name(text: &str) -> bool {
    text.len() <= 128
        && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
