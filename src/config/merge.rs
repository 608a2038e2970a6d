//! The agents of the file under those of the variable `AGENTS`.

use std::rc::Rc;

use serde_json::{Map, Value, json};

use super::agents::{AgentConfig, AgentsFile};
use super::check::{AgentFault, check};
use super::{ConfigError, table};

/// The file's agents in their order with keys overridden, then the agents only the variable has, in its order.
pub(super) fn agents(
    embedded_json: &str,
    overrides: &Map<String, Value>,
) -> Result<Vec<Rc<AgentConfig>>, ConfigError> {
    let file: AgentsFile = serde_json::from_str(embedded_json)
        .map_err(|error| ConfigError::new("agents.toml", "cannot be read", error.to_string()))?;
    let mut agents = file.agents;
    for (id, keys) in overrides {
        let Value::Object(keys) = keys else {
            return Err(ConfigError::new(
                format!("AGENTS.{id}"),
                "must be a table",
                keys.clone(),
            ));
        };
        match agents.iter_mut().find(|agent| agent.id == *id) {
            Some(agent) => *agent = overridden(agent, id, keys)?,
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
    match check(&agents).into_iter().next() {
        None => Ok(agents.into_iter().map(Rc::new).collect()),
        Some(fault) => Err(as_error(&agents, overrides, fault)),
    }
}

fn added(id: &str, keys: &Map<String, Value>) -> Result<AgentConfig, ConfigError> {
    if !keys.contains_key("provider") {
        let message = "is needed: `agents.toml` has no agent of this id";
        return Err(ConfigError::new(
            format!("AGENTS.{id}.provider"),
            message,
            Value::Null,
        ));
    }
    let provider = table::PROVIDERS.first().map(|entry| entry.name);
    let blank = serde_json::from_str(&json!({ "id": id, "provider": provider }).to_string());
    overridden(&blank.map_err(|error| unreadable(id, &error))?, id, keys)
}

/// Puts the keys over an agent that decodes, one by one: the first that does not is the culprit.
fn overridden(agent: &AgentConfig, id: &str, keys: &Map<String, Value>) -> Result<AgentConfig, ConfigError> {
    let mut agent = agent.clone();
    let known = serde_json::to_value(&agent).map_err(|error| unreadable(id, &error))?;
    let mut merged = known.clone();
    for (key, value) in keys {
        let name = format!("AGENTS.{id}.{key}");
        if known.get(key).is_none() {
            return Err(ConfigError::new(name, "is not a key of an agent", value.clone()));
        }
        if let Value::Object(members) = &mut merged {
            members.insert(key.clone(), value.clone());
        }
        // Through text: one decoder for the file and for this keeps the wasm small.
        agent = serde_json::from_str(&merged.to_string()).map_err(|error| {
            let message = "has a value of the wrong form";
            ConfigError::new(name, message, format!("{error}: {value}"))
        })?;
    }
    if agent.id == id {
        Ok(agent)
    } else {
        let message = "must be the name of its table";
        Err(ConfigError::new(format!("AGENTS.{id}.id"), message, agent.id))
    }
}

fn unreadable(id: &str, error: &serde_json::Error) -> ConfigError {
    ConfigError::new(format!("AGENTS.{id}"), "cannot be read", error.to_string())
}

fn as_error(agents: &[AgentConfig], overrides: &Map<String, Value>, fault: AgentFault) -> ConfigError {
    let id = agents.get(fault.agent).map_or("", |agent| agent.id.as_str());
    let place = if overrides.contains_key(id) {
        "AGENTS"
    } else {
        "agents.toml"
    };
    ConfigError::new(format!("{place}.{id}.{}", fault.key), fault.message, fault.value)
}
