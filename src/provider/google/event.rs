//! The payloads of an answer as they are on the wire: borrowed, every member optional (B061), unknown members skipped.
//!
//! One payload is read per token, so nothing here builds a JSON tree, arguments apart.

use super::super::wire_text::{Arguments, Text};
use crate::protocol::event::TokenUsage;
use crate::protocol::payload::{Raw, payload};

/// The `data` of one event.
#[derive(Debug, Default)]
pub(super) struct Payload<'a> {
    /// Empty or absent in reports (B047).
    pub candidates: Option<Vec<Candidate<'a>>>,
    pub prompt_feedback: Option<PromptFeedback<'a>>,
    /// Counts so far; the last one counts.
    pub usage_metadata: Option<Box<Usage>>,
    pub error: Option<Raw<'a>>,
}

payload!(Payload<'a>:
    "candidates" => candidates, "promptFeedback" => prompt_feedback, "usageMetadata" => usage_metadata,
    "error" => error,
);

#[derive(Debug, Default)]
pub(super) struct Candidate<'a> {
    pub index: Option<u64>,
    pub content: Option<Content<'a>>,
    pub finish_reason: Text<'a>,
}

payload!(Candidate<'a>: "index" => index, "content" => content, "finishReason" => finish_reason);

#[derive(Debug, Default)]
pub(super) struct Content<'a> {
    pub parts: Option<Vec<Part<'a>>>,
}

payload!(Content<'a>: "parts" => parts);

#[derive(Debug, Default)]
pub(super) struct Part<'a> {
    pub text: Text<'a>,
    /// Whether the text is thought, not said.
    pub thought: Option<bool>,
    pub thought_signature: Text<'a>,
    pub function_call: Option<Box<FunctionCall<'a>>>,
}

payload!(Part<'a>:
    "text" => text, "thought" => thought, "thoughtSignature" => thought_signature,
    "functionCall" => function_call,
);

#[derive(Debug, Default)]
pub(super) struct FunctionCall<'a> {
    pub id: Text<'a>,
    pub name: Text<'a>,
    pub args: Arguments<'a>,
}

payload!(FunctionCall<'a>: "id" => id, "name" => name, "args" => args);

#[derive(Debug, Default)]
pub(super) struct PromptFeedback<'a> {
    pub block_reason: Text<'a>,
}

payload!(PromptFeedback<'a>: "blockReason" => block_reason);

#[derive(Debug, Default)]
pub(super) struct Usage {
    prompt_token_count: Option<u64>,
    tool_use_prompt_token_count: Option<u64>,
    cached_content_token_count: Option<u64>,
    candidates_token_count: Option<u64>,
    thoughts_token_count: Option<u64>,
}

payload!(Usage:
    "promptTokenCount" => prompt_token_count, "toolUsePromptTokenCount" => tool_use_prompt_token_count,
    "cachedContentTokenCount" => cached_content_token_count,
    "candidatesTokenCount" => candidates_token_count, "thoughtsTokenCount" => thoughts_token_count,
);

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
    use crate::protocol::payload;

    #[test]
    fn totals_count_what_gemini_counts_beside_them() {
        let usage: Usage = payload::read(
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
        let only_prompt: Usage = payload::read(r#"{"promptTokenCount":7,"totalTokenCount":7}"#).unwrap();
        let expected = TokenUsage {
            input_tokens: Some(7),
            ..TokenUsage::default()
        };
        assert_eq!(only_prompt.to_token_usage(), expected);
    }
}
