//! `agents.toml` under the variables `AGENTS`, `TOOLS` and `MCP_SERVERS`.

use serde_json::{Map, Value};

use super::agents::{AgentConfig, AgentsFile};
use super::check::{Fault, Place, check};
use super::named::Named;
use super::{ConfigError, table as providers};
use crate::protocol::json;
use crate::protocol::read::{self, Closed, Mismatch};
use crate::protocol::tree;

/// The tables of the variables.
pub(super) struct Overrides {
    /// `AGENTS`
    pub agents: Map<String, Value>,
    /// `TOOLS`
    pub tools: Map<String, Value>,
    /// `MCP_SERVERS`
    pub mcp: Map<String, Value>,
}

/// The file's agents in their order with keys overridden, then the agents only the variable has, in its order; tools and
/// MCP servers likewise.
// Apart: see `Config::from_vars`.
#[inline(never)]
pub(super) fn file(embedded_json: &str, overrides: &Overrides) -> Result<AgentsFile, ConfigError> {
    let mut file: AgentsFile = read::from_text(embedded_json)
        .map_err(|error| ConfigError::new("agents.toml", "cannot be read", error.to_string()))?;
    let agents = &mut file.agents;
    for (id, keys) in &overrides.agents {
        let keys = table("AGENTS", id, keys)?;
        match agents.iter_mut().find(|agent| agent.id == *id) {
            Some(agent) => put_over(agent, id, keys)?,
            None => agents.push(added(id, keys)?),
        }
    }
    if agents.is_empty() {
        return Err(ConfigError::new(
            "AGENTS",
            "must have at least one agent",
            Value::Null,
        ));
    }
    let tables = [&overrides.agents, &overrides.tools, &overrides.mcp];
    if tables.iter().all(|table| table.is_empty()) {
        // As the build script checked it.
        return Ok(file);
    }
    overlay("TOOLS", &mut file.tools, &overrides.tools)?;
    overlay("MCP_SERVERS", &mut file.mcp, &overrides.mcp)?;
    match check(&file).into_iter().next() {
        None => Ok(file),
        Some(fault) => Err(as_error(&file.agents, overrides, fault)),
    }
}

fn table<'a>(variable: &str, name: &str, value: &'a Value) -> Result<&'a Map<String, Value>, ConfigError> {
    value
        .as_object()
        .ok_or_else(|| ConfigError::new(format!("{variable}.{name}"), "must be a table", value.clone()))
}

/// Puts the keys of a variable over the entries of a table of the file, or adds entries.
// Apart: see `Config::from_vars`.
#[inline(never)]
fn overlay<T: for<'a> Closed<'a>>(
    variable: &str,
    entries: &mut Named<Box<T>>,
    overrides: &Map<String, Value>,
) -> Result<(), ConfigError> {
    for (name, keys) in overrides {
        table(variable, name, keys)?;
        let read = match entries.get_mut(name) {
            Some(entry) => read::read_over(keys, &mut **entry),
            None => read::from_value(keys).map(|entry| {
                entries.insert(name.clone(), Box::new(entry));
            }),
        };
        read.map_err(|error| {
            let message = "has a key of the wrong form, an unknown key, or lacks one";
            ConfigError::new(format!("{variable}.{name}"), message, error.to_string())
        })?;
    }
    Ok(())
}

// Apart: see `Config::from_vars`.
#[inline(never)]
fn added(id: &str, keys: &Map<String, Value>) -> Result<AgentConfig, ConfigError> {
    if !keys.contains_key("provider") {
        let message = "is needed: `agents.toml` has no agent of this id";
        return Err(ConfigError::new(
            format!("AGENTS.{id}.provider"),
            message,
            Value::Null,
        ));
    }
    let provider = providers::PROVIDERS.first().map(|entry| entry.name);
    let blank = tree::object(vec![("id", id.into()), ("provider", provider.into())]);
    let mut agent = read::from_value(&blank).map_err(|error| unreadable(id, &error))?;
    put_over(&mut agent, id, keys)?;
    Ok(agent)
}

/// Puts the keys over an agent that decodes, one by one: the first that does not is the culprit.
// Apart: see `Config::from_vars`.
#[inline(never)]
fn put_over(agent: &mut AgentConfig, id: &str, keys: &Map<String, Value>) -> Result<(), ConfigError> {
    for (key, value) in keys {
        let name = format!("AGENTS.{id}.{key}");
        if AgentConfig::MEMBERS.iter().all(|(known, _)| known != key) {
            return Err(ConfigError::new(name, "is not a key of an agent", value.clone()));
        }
        let member = tree::object(vec![(key, value.clone())]);
        read::read_over(&member, agent).map_err(|error| {
            let message = "has a value of the wrong form";
            ConfigError::new(name, message, format!("{error}: {}", json::text(value)))
        })?;
    }
    if agent.id == id {
        Ok(())
    } else {
        let message = "must be the name of its table";
        Err(ConfigError::new(
            format!("AGENTS.{id}.id"),
            message,
            agent.id.clone(),
        ))
    }
}

fn unreadable(id: &str, error: &Mismatch) -> ConfigError {
    ConfigError::new(format!("AGENTS.{id}"), "cannot be read", error.to_string())
}

// Apart: see `Config::from_vars`.
#[inline(never)]
fn as_error(agents: &[AgentConfig], overrides: &Overrides, fault: Fault) -> ConfigError {
    let (variable, table, keys, name) = match &fault.place {
        Place::Agent(index) => {
            let id = agents.get(*index).map_or("", |agent| agent.id.as_str());
            ("AGENTS", "", &overrides.agents, id)
        }
        Place::Tool(name) => ("TOOLS", "tools.", &overrides.tools, name.as_str()),
        Place::Mcp(name) => ("MCP_SERVERS", "mcp.", &overrides.mcp, name.as_str()),
    };
    let place = if keys.contains_key(name) {
        format!("{variable}.{name}")
    } else {
        format!("agents.toml.{table}{name}")
    };
    let key = if fault.key.is_empty() {
        place
    } else {
        format!("{place}.{}", fault.key)
    };
    ConfigError::new(key, fault.message, fault.value)
}
