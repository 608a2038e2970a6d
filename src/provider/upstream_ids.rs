//! What goes back with an answer to an upstream that runs an agent of its own: the ids it knows the answer by.

use crate::protocol::read::{self, record};
use crate::protocol::tree::trees_of_text;
use serde::Serialize;
use serde_json::Value;

/// The ids of one answer, kept as its vendor state.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UpstreamIds {
    /// The upstream's id of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// Its ids of the message's calls, in their order.
    pub tool_call_ids: Vec<String>,
}

record!(UpstreamIds: "messageId" => message_id = None, "toolCallIds" => tool_call_ids = Vec::new());

trees_of_text! { UpstreamIds }

impl UpstreamIds {
    /// Reads the vendor state of an answer; nothing when it has none.
    pub fn read(vendor_state: Option<&Value>) -> Self {
        vendor_state
            .and_then(|state| read::from_value(state).ok())
            .unwrap_or_default()
    }

    /// The upstream's id of a call by its place in the answer, else the id it has here.
    pub fn tool_call_id<'a>(&'a self, index: usize, own: &'a str) -> &'a str {
        self.tool_call_ids.get(index).map_or(own, String::as_str)
    }
}
