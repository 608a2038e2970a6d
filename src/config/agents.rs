//! `agents.toml` as types. The build script compiles this file too, so its paths start at `super`, where both have
//! `named`, `server_tools` and `table`.

use serde::{Deserialize, Serialize};

use super::named::Named;
use super::server_tools::{HttpToolConfig, McpServerConfig};
use super::table::ProviderEntry;

/// The whole file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentsFile {
    /// Agents in order; the first is the default.
    pub agents: Vec<AgentConfig>,
    /// HTTP tools by name.
    #[serde(default)]
    pub tools: Named<Box<HttpToolConfig>>,
    /// MCP servers by name.
    #[serde(default)]
    pub mcp: Named<Box<McpServerConfig>>,
}

/// One agent. Times are milliseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AgentConfig {
    /// Id on the wire.
    pub id: String,
    /// Name for people; default: the id.
    #[serde(default)]
    pub name: Option<String>,
    /// One sentence.
    #[serde(default)]
    pub description: Option<String>,
    /// Other ids this agent answers to.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Line of the provider table; its name in the file.
    #[serde(with = "provider_name")]
    pub provider: &'static ProviderEntry,
    /// Model id.
    #[serde(default)]
    pub model: String,
    /// Base address of the upstream; default: the provider's.
    #[serde(default)]
    pub base_url: Option<String>,
    /// Name of the secret that holds the key; empty = no key is sent; default: the provider's.
    #[serde(default)]
    pub api_key_secret: Option<String>,
    /// Headers of every request to the upstream, each in the place of one of ours; `${NAME}` in a value stands for the
    /// secret of that name.
    #[serde(default)]
    pub headers: Named<String>,
    /// Pairs added to the query of every request to the upstream.
    #[serde(default)]
    pub query: Named<String>,
    /// System text.
    #[serde(default)]
    pub instructions: String,
    /// Settings of the model; a run's own override them.
    #[serde(default)]
    pub model_settings: ModelSettingsConfig,
    /// The most a run may ask for. Of `stopSequences` and `seed` there is no most.
    #[serde(default)]
    pub model_settings_max: ModelSettingsConfig,
    /// Whether clients may add system text: their system and developer messages, `instructions` and `system`.
    #[serde(default = "default_true")]
    pub allow_client_instructions: bool,
    /// Schemes and hosts of the addresses of pictures and files that reach the model.
    #[serde(default = "default_media_addresses")]
    pub media_addresses: Vec<String>,
    /// Server tools by name.
    #[serde(default)]
    pub tools: Vec<String>,
    /// MCP servers by name.
    #[serde(default)]
    pub mcp: Vec<String>,
    /// Model calls a run may make. Source: D10.
    #[serde(default = "default_max_steps")]
    pub max_steps: u32,
    /// Working time of a run, waits for front-end results not counted. Source: D10.
    #[serde(default = "default_run_timeout_ms")]
    pub run_timeout_ms: u64,
    /// Longest silence of the upstream. Source: D10.
    #[serde(default = "default_upstream_idle_timeout_ms")]
    pub upstream_idle_timeout_ms: u64,
    /// How long the answer's head may wait for the upstream's. Source: D14.
    #[serde(default = "default_first_response_wait_ms")]
    pub first_response_wait_ms: u64,
    /// Deadline of a front-end call. Source: contract 3.
    #[serde(default = "default_tool_timeout_ms")]
    pub tool_timeout_ms: u64,
    /// Longest silence of our stream; 0 = no keep-alives. Absent: 15 s, and 5 s while a front-end result is awaited.
    #[serde(default)]
    pub keep_alive_ms: Option<u64>,
    /// Attempts after the first, before the first output.
    #[serde(default = "default_max_retries")]
    pub max_retries: u32,
    /// Stored messages that reach the model. Source: contract 2.3.
    #[serde(default = "default_last_messages")]
    pub last_messages: u32,
    /// Check arguments against the declared schema. Source: contract 2.5.
    #[serde(default = "default_true")]
    pub validate_tool_arguments: bool,
    /// Longest result towards the model, in bytes. Source: contract 2.5.
    #[serde(default = "default_tool_result_max_bytes")]
    pub tool_result_max_bytes: usize,
    /// Replace the provisional title by a model-written one. Source: contract 4.
    #[serde(default)]
    pub generate_title: bool,
    /// Source: contract 2.2.
    #[serde(default)]
    pub persist: Persist,
    /// Who keeps the agent's threads.
    #[serde(default)]
    pub memory: Memory,
    /// Source: D11.
    #[serde(default)]
    pub on_disconnect: OnDisconnect,
    /// How long the events of a run are kept after its end, if it goes on without viewers. Source: contract 8.
    #[serde(default = "default_event_retention_ms")]
    pub event_retention_ms: u64,
    /// Source: D15.
    #[serde(default)]
    pub frontend_tools: FrontendTools,
    /// Source: D8.
    #[serde(default)]
    pub tool_call_streaming: ToolCallStreaming,
    /// What becomes of the model's reasoning.
    #[serde(default)]
    pub reasoning: Reasoning,
    /// Say failures in a text message too. Source: contract 2.4.
    #[serde(default)]
    pub show_errors: bool,
}

/// Settings of the model in `agents.toml`, named as in `forwardedProps.modelSettings`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelSettingsConfig {
    /// Tokens.
    #[serde(default, alias = "maxTokens", skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// 0 to 2 with most vendors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// From 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u32>,
    /// -2 to 2 with most vendors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// -2 to 2 with most vendors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
    /// Texts that end the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop_sequences: Vec<String>,
    /// For vendors that can repeat an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
}

/// Which runs of an agent are persistent. Source: contract 2.2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Persist {
    /// By the rule of 2.2.
    #[default]
    Auto,
    /// Always, for plain AG-UI clients that send no resourceId.
    Always,
    /// Never.
    Never,
}

/// Who keeps the threads of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Memory {
    /// This server, in D1; the upstream gets the whole history with each call.
    #[default]
    D1,
    /// The Mastra server: nothing is written to D1, and only what is new is sent.
    Mastra,
}

/// What happens when the last viewer leaves. Source: D11.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnDisconnect {
    /// The run stops.
    #[default]
    Stop,
    /// The run goes on to its end.
    Continue,
}

/// How front-end calls are answered. Source: D15.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FrontendTools {
    /// By a POST into the run.
    #[default]
    SameRun,
    /// By the next run's messages.
    NextRun,
}

/// When a call's arguments are sent. Source: D8.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToolCallStreaming {
    /// When they are complete.
    #[default]
    Held,
    /// As they arrive, where that is safe.
    Live,
}

/// What becomes of the model's reasoning; it never goes back to a model as text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reasoning {
    /// It is dropped.
    #[default]
    Hide,
    /// It is asked for, streamed as `REASONING_*` events to peers that declare a protocol version, and stored.
    Emit,
}

mod provider_name {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    use super::super::table::{self, ProviderEntry};

    pub fn serialize<S: Serializer>(entry: &&'static ProviderEntry, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(entry.name)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<&'static ProviderEntry, D::Error> {
        let name = String::deserialize(from)?;
        table::find(&name).ok_or_else(|| D::Error::custom(table::unknown(&name)))
    }
}

pub(super) fn default_max_steps() -> u32 {
    16
}

pub(super) fn default_run_timeout_ms() -> u64 {
    15 * 60 * 1000
}

pub(super) fn default_upstream_idle_timeout_ms() -> u64 {
    60 * 1000
}

pub(super) fn default_first_response_wait_ms() -> u64 {
    5 * 1000
}

pub(super) fn default_tool_timeout_ms() -> u64 {
    30 * 60 * 1000
}

pub(super) fn default_event_retention_ms() -> u64 {
    10 * 60 * 1000
}

pub(super) fn default_max_retries() -> u32 {
    2
}

pub(super) fn default_last_messages() -> u32 {
    40
}

pub(super) fn default_tool_result_max_bytes() -> usize {
    256 * 1024
}

pub(super) fn default_media_addresses() -> Vec<String> {
    vec!["https://*".to_owned(), "http://*".to_owned()]
}

pub(super) fn default_true() -> bool {
    true
}
