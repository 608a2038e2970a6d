//! `forwardedProps`: the options of one run.

use serde::Serialize;
use serde_json::{Map, Value};

use super::id::{AgentId, ResourceId};
use crate::list::List;

/// The known keys typed, the unknown ones kept. Source: contract 2.1, table of forwardedProps.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ForwardedProps {
    /// Which agent, id or alias; absent = the default agent.
    pub agent_id: Option<AgentId>,
    /// Owner the client names.
    pub resource_id: ClientResource,
    /// `memoryOptions.lastMessages`: how many stored messages reach the model; `Some(0)` = none.
    pub last_messages: Option<u32>,
    /// `memoryOptions.readOnly`: read the history, write nothing.
    pub read_only: bool,
    /// Settings for the model.
    pub model_settings: ModelSettings,
    /// `structuredOutput.schema`, when it constrains anything.
    pub output_schema: Option<Value>,
    /// `instructions` and `system`, in this order: extra system text for this run.
    pub instructions: Vec<String>,
    /// For the first step only.
    pub tool_choice: Option<ToolChoice>,
    /// Overrides the agent's option.
    pub frontend_tools: Option<FrontendToolsMode>,
    /// Keys we do not know, handed to the upstream where it has a place for them.
    pub unknown: Map<String, Value>,
}

/// What a client said about the owner; "present but empty" matters. Source: contract 2.2.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ClientResource {
    /// No resourceId, or `null`.
    #[default]
    Absent,
    /// `resourceId: ""`.
    Empty,
    /// A resource id.
    Given(ResourceId),
}

/// Settings a run or an agent gives to its model; a codec drops those its vendor has no name for. Source: contract 2.1.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelSettings {
    /// `maxTokens` / `maxOutputTokens`, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// `temperature`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// `topP`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// `topK`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u32>,
    /// `presencePenalty`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// `frequencyPenalty`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
    /// `stopSequences`
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop_sequences: Vec<String>,
    /// `seed`
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// `maxRetries`, attempts after the first: the run's own affair, never sent on.
    #[serde(skip)]
    pub max_retries: Option<u32>,
}

impl ModelSettings {
    /// Names, as a run writes them, of the settings that are given and reach the model.
    pub fn given(&self) -> Vec<&'static str> {
        let given = [
            ("maxOutputTokens", self.max_output_tokens.is_some()),
            ("temperature", self.temperature.is_some()),
            ("topP", self.top_p.is_some()),
            ("topK", self.top_k.is_some()),
            ("presencePenalty", self.presence_penalty.is_some()),
            ("frequencyPenalty", self.frequency_penalty.is_some()),
            ("stopSequences", !self.stop_sequences.is_empty()),
            ("seed", self.seed.is_some()),
        ];
        given
            .into_iter()
            .filter(|(_, is_given)| *is_given)
            .map(|(name, _)| name)
            .list()
    }
}

/// Whether and what the model must call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    Auto,
    /// No calls.
    None,
    /// At least one call.
    Required,
    /// A call of this tool.
    Function(String),
}

/// How calls of front-end tools are answered. Source: contract 2.6 (D15).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FrontendToolsMode {
    /// The run waits; results are posted into it.
    #[default]
    SameRun,
    /// The run ends; results come with the next run's messages.
    NextRun,
}
