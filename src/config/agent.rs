//! What the rest asks an agent's configuration.

use serde_json::Value;

use super::agents::{AgentConfig, ModelSettingsConfig, OnDisconnect, Reasoning};
use super::table::{ProviderEntry, Wire};
use crate::protocol::agent::Agent;
use crate::protocol::forwarded_props::ModelSettings;
use crate::protocol::id::AgentId;
use crate::protocol::json;
use crate::protocol::parts;
use crate::protocol::tool::Tool;
use crate::protocol::tree::ToTree;

impl AgentConfig {
    /// The name for people.
    pub fn display_name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.id)
    }

    /// How the agent is driven.
    pub fn provider_entry(&self) -> &'static ProviderEntry {
        self.provider
    }

    /// Address of the upstream without a slash at the end; empty for a wire that needs none.
    pub fn upstream_base_url(&self) -> &str {
        let url = self.base_url.as_deref().unwrap_or(self.provider.base_url);
        url.trim_end_matches('/')
    }

    /// Name of the secret that holds the key; `None` = no key is sent.
    pub fn api_key_secret_name(&self) -> Option<&str> {
        let name = self
            .api_key_secret
            .as_deref()
            .unwrap_or(self.provider.api_key_secret);
        Some(name).filter(|name| !name.is_empty())
    }

    /// Whether the agent cannot work without its key: it names one, or calls its provider's own server. A compatible
    /// server may want none.
    pub fn requires_api_key(&self) -> bool {
        self.api_key_secret_name().is_some() && (self.api_key_secret.is_some() || self.base_url.is_none())
    }

    /// Whether the agent has this id or alias.
    pub fn answers_to(&self, id: &str) -> bool {
        self.id == id || self.aliases.iter().any(|alias| alias == id)
    }

    /// The agent's settings for its model; a run's own override them.
    pub fn model_settings(&self) -> ModelSettings {
        let ModelSettingsConfig {
            max_output_tokens,
            temperature,
            top_p,
            top_k,
            presence_penalty,
            frequency_penalty,
            stop_sequences,
            seed,
        } = self.model_settings.clone();
        ModelSettings {
            max_output_tokens,
            temperature,
            top_p,
            top_k,
            presence_penalty,
            frequency_penalty,
            stop_sequences,
            seed,
            max_retries: Some(self.max_retries),
        }
    }

    /// The agent as discovery shows it; `server_tools` are the declarations of its `tools`. Source: contract 5.
    pub fn describe(&self, server_tools: &[Tool]) -> Agent {
        Agent {
            id: AgentId::new(self.id.as_str()),
            name: self.display_name().to_owned(),
            description: self.description.clone(),
            provider: self.provider.name.to_owned(),
            model_id: self.model.clone(),
            capabilities: self.capabilities(server_tools),
        }
    }

    /// AG-UI `AgentCapabilities`: what is absent is not offered.
    ///
    /// No `state` group: it speaks of shared state and of memory beyond the thread, and threads are neither.
    /// A `reasoning` group promises events. Source: AG-UI 2.7.
    fn capabilities(&self, server_tools: &[Tool]) -> Value {
        let reasoning = match self.reasoning {
            Reasoning::Emit => REASONING,
            Reasoning::Hide => "",
        };
        let of_the_wire = match self.provider.wire {
            Wire::AgUi => "",
            // The demo sees nothing; what a server's model can see and hear is the server's affair.
            Wire::WorkersAi | Wire::Demo | Wire::Mastra => STRUCTURED,
            Wire::OpenAiChat => SEES_AND_HEARS,
            Wire::OpenAiResponses | Wire::Anthropic => SEES,
            Wire::Google => SEES_HEARS_AND_WATCHES,
        };
        let mut groups =
            json::object(&parts::join(&[EVERY_AGENT, reasoning, of_the_wire, "}"], "")).unwrap_or_default();
        let mut add = |group: &str, name: &str, value: Value| {
            if let Some(Value::Object(members)) = groups.get_mut(group) {
                members.insert(name.to_owned(), value);
            }
        };
        add("identity", "name", self.display_name().to_tree());
        add("tools", "items", server_tools.to_tree());
        add("execution", "maxIterations", self.max_steps.into());
        add("execution", "maxExecutionTime", self.run_timeout_ms.into());
        if self.on_disconnect == OnDisconnect::Continue {
            add("transport", "resumable", Value::Bool(true));
        }
        Value::Object(groups)
    }
}

/// The groups of every agent; `name` keeps a place. Texts, not trees in code: they are a tenth of it.
const EVERY_AGENT: &str = r#"{
    "identity": { "name": null, "type": "io-bridge" },
    "transport": { "streaming": true, "websocket": true, "httpBinary": true },
    "tools": { "supported": true, "parallelCalls": true, "clientProvided": true },
    "execution": {}"#;

const REASONING: &str = r#", "reasoning": { "supported": true, "streaming": true, "encrypted": false }"#;

const STRUCTURED: &str = r#", "output": { "structuredOutput": true }"#;

const SEES: &str = r#", "output": { "structuredOutput": true },
    "multimodal": { "input": { "image": true, "pdf": true } }"#;

const SEES_AND_HEARS: &str = r#", "output": { "structuredOutput": true },
    "multimodal": { "input": { "image": true, "audio": true, "pdf": true } }"#;

const SEES_HEARS_AND_WATCHES: &str = r#", "output": { "structuredOutput": true },
    "multimodal": { "input": { "image": true, "audio": true, "video": true, "pdf": true } }"#;
