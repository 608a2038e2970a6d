//! How a model is asked to think, and to show it.

use serde_json::Value;

use super::super::{ModelMessage, ModelRequest};
use super::model::{Abilities, Thinking};
use crate::protocol::forwarded_props::ToolChoice;
use crate::protocol::tree::json;

/// Least and most of a budget, in tokens: the vendor's limit, and what leaves room for an answer.
const BUDGET_LEAST_TOKENS: u32 = 1024;
const BUDGET_MOST_TOKENS: u32 = 8192;

/// `thinking` of the request. Forced calls exclude it, and so does, for older models, a turn that has begun without it:
/// their calls must go back behind the thinking that led to them.
pub(super) fn thinking(request: &ModelRequest, abilities: Abilities, max_tokens: u32) -> Option<Value> {
    let is_forced = match request.tool_choice {
        ToolChoice::Required | ToolChoice::Function(_) => !request.tools.is_empty(),
        ToolChoice::Auto | ToolChoice::None => false,
    };
    if is_forced {
        return None;
    }
    match abilities.thinking {
        Thinking::Never => None,
        Thinking::Adaptive => Some(json!({ "type": "adaptive" })),
        Thinking::AdaptiveHidden => Some(json!({ "type": "adaptive", "display": "summarized" })),
        Thinking::Budget => {
            let budget_tokens = (max_tokens / 2).min(BUDGET_MOST_TOKENS);
            let may_think = budget_tokens >= BUDGET_LEAST_TOKENS && !has_thoughtless_turn(&request.messages);
            may_think.then(|| json!({ "type": "enabled", "budget_tokens": budget_tokens }))
        }
    }
}

fn has_thoughtless_turn(messages: &[ModelMessage]) -> bool {
    let Some((ModelMessage::ToolResults(_), before)) = messages.split_last() else {
        return false;
    };
    matches!(
        before.last(),
        Some(ModelMessage::Assistant {
            vendor_state: None,
            ..
        })
    )
}
