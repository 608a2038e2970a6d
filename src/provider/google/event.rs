//! The payloads of an answer as they are on the wire: borrowed, every member optional (B061), unknown members skipped.
//!
//! One payload is read per token, so nothing here builds a JSON tree, arguments apart.

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::super::wire_text::{Arguments, Text};
use crate::protocol::event::TokenUsage;

/// The `data` of one event.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Payload<'a> {
    /// Empty or absent in reports (B047).
    #[serde(borrow, default)]
    pub candidates: Option<Vec<Candidate<'a>>>,
    #[serde(borrow, default)]
    pub prompt_feedback: Option<PromptFeedback<'a>>,
    /// Counts so far; the last one counts.
    #[serde(default)]
    pub usage_metadata: Option<Usage>,
    #[serde(default)]
    pub error: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Candidate<'a> {
    #[serde(default)]
    pub index: Option<u64>,
    #[serde(borrow, default)]
    pub content: Option<Content<'a>>,
    #[serde(borrow, default)]
    pub finish_reason: Text<'a>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Content<'a> {
    #[serde(borrow, default)]
    pub parts: Option<Vec<Part<'a>>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part<'a> {
    #[serde(borrow, default)]
    pub text: Text<'a>,
    /// Whether the text is thought, not said.
    #[serde(default)]
    pub thought: Option<bool>,
    #[serde(borrow, default)]
    pub thought_signature: Text<'a>,
    #[serde(borrow, default)]
    pub function_call: Option<FunctionCall<'a>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct FunctionCall<'a> {
    #[serde(borrow, default)]
    pub id: Text<'a>,
    #[serde(borrow, default)]
    pub name: Text<'a>,
    #[serde(borrow, default)]
    pub args: Arguments<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptFeedback<'a> {
    #[serde(borrow, default)]
    pub block_reason: Text<'a>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Usage {
    #[serde(default)]
    prompt_token_count: Option<u64>,
    #[serde(default)]
    tool_use_prompt_token_count: Option<u64>,
    #[serde(default)]
    cached_content_token_count: Option<u64>,
    #[serde(default)]
    candidates_token_count: Option<u64>,
    #[serde(default)]
    thoughts_token_count: Option<u64>,
}

impl Usage {
    /// The counts as AG-UI counts them: Gemini counts thoughts beside the answer, and what its own tools put into the
    /// prompt beside the prompt; cached content is part of the prompt. Source: USE-2 to USE-5.
    pub fn to_token_usage(&self) -> TokenUsage {
        let input_tokens = sum(self.prompt_token_count, self.tool_use_prompt_token_count);
        let output_tokens = sum(self.candidates_token_count, self.thoughts_token_count);
        TokenUsage {
            input_tokens,
            output_tokens,
            total_tokens: input_tokens
                .zip(output_tokens)
                .map(|(input, output)| input.saturating_add(output)),
            reasoning_tokens: self.thoughts_token_count,
            cached_input_tokens: self.cached_content_token_count,
            ..TokenUsage::default()
        }
    }
}

/// The sum of the counts that are there.
fn sum(one: Option<u64>, other: Option<u64>) -> Option<u64> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.saturating_add(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn totals_count_what_gemini_counts_beside_them() {
        let usage: Usage = serde_json::from_str(
            r#"{"promptTokenCount":10,"toolUsePromptTokenCount":2,"cachedContentTokenCount":4,
                "candidatesTokenCount":5,"thoughtsTokenCount":3,"totalTokenCount":20}"#,
        )
        .unwrap();
        let expected = TokenUsage {
            input_tokens: Some(12),
            output_tokens: Some(8),
            total_tokens: Some(20),
            reasoning_tokens: Some(3),
            cached_input_tokens: Some(4),
            ..TokenUsage::default()
        };
        assert_eq!(usage.to_token_usage(), expected);
        let only_prompt: Usage =
            serde_json::from_str(r#"{"promptTokenCount":7,"totalTokenCount":7}"#).unwrap();
        let expected = TokenUsage {
            input_tokens: Some(7),
            ..TokenUsage::default()
        };
        assert_eq!(only_prompt.to_token_usage(), expected);
    }
}
