//! Agents as the discovery routes show them.

use serde::Serialize;
use serde_json::Value;

use super::id::AgentId;

/// One agent of the list. Instructions, keys and addresses are not part of it.
///
/// Wire: `{"id","name","description"?,"provider","modelId","capabilities"}`. Source: contract 5.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    /// Id.
    pub id: AgentId,
    /// Name for people; some clients select by it.
    pub name: String,
    /// One sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Name of the provider.
    pub provider: String,
    /// Model id; the `model` of a client's sampling answers.
    pub model_id: String,
    /// AG-UI `AgentCapabilities`, true ones only.
    pub capabilities: Value,
}
