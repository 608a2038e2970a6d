//! The chunks of an answer as they are on the wire: borrowed, every member optional, unknown members skipped.
//!
//! One chunk is read per token, so nothing here builds a JSON tree, errors apart.

use serde_json::Value;

use super::super::wire_text::{Arguments, Text};
use crate::protocol::event::TokenUsage;
use crate::protocol::payload::{Lenient, payload};

/// One `data` payload, or the whole body of a server that does not stream.
#[derive(Debug, Default)]
pub(super) struct Chunk<'a> {
    /// Empty or absent in reports (B047).
    pub choices: Option<Vec<Choice<'a>>>,
    /// A report that is not as it should be is none: the answer beside it stands (B047).
    pub usage: Lenient<Option<Usage>>,
    /// An object or a text (B055).
    pub error: Option<Value>,
    /// `error` where a server's error has no `error` member.
    pub object: Text<'a>,
    /// Text where Workers AI has no `choices`: any JSON, for models write numbers there.
    pub response: Option<Value>,
    /// Calls beside `response`.
    pub tool_calls: Option<Vec<ToolCallDelta<'a>>>,
    /// Reason beside `response`.
    pub finish_reason: Text<'a>,
    /// The envelope of Workers AI around an answer that is not streamed.
    pub result: Option<Box<Chunk<'a>>>,
}

payload!(Chunk<'a>:
    "choices" => choices, "usage" => usage, "error" => error, "object" => object, "response" => response,
    "tool_calls" => tool_calls, "finish_reason" => finish_reason, "result" => result,
);

#[derive(Debug, Default)]
pub(super) struct Choice<'a> {
    pub index: Option<u64>,
    pub delta: Option<Delta<'a>>,
    /// Instead of `delta` when the server does not stream; boxed so that the choice of a stream stays small.
    pub message: Option<Box<Delta<'a>>>,
    /// `null` and `""` are none (B049).
    pub finish_reason: Text<'a>,
}

payload!(Choice<'a>:
    "index" => index, "delta" => delta, "message" => message, "finish_reason" => finish_reason,
);

#[derive(Debug, Default)]
pub(super) struct Delta<'a> {
    pub content: Text<'a>,
    /// The model's own words on why it does not answer.
    pub refusal: Text<'a>,
    /// Reasoning as DeepSeek and most others name it.
    pub reasoning_content: Text<'a>,
    /// Reasoning as OpenRouter and newer servers name it.
    pub reasoning: Text<'a>,
    pub tool_calls: Option<Vec<ToolCallDelta<'a>>>,
    /// The one call of servers older than `tool_calls`.
    pub function_call: Option<FunctionDelta<'a>>,
}

payload!(Delta<'a>:
    "content" => content, "refusal" => refusal, "reasoning_content" => reasoning_content,
    "reasoning" => reasoning, "tool_calls" => tool_calls, "function_call" => function_call,
);

#[derive(Debug, Default)]
pub(super) struct ToolCallDelta<'a> {
    /// Only a hint (B025): anything but a whole number is none.
    pub index: Lenient<Option<u64>>,
    pub id: Text<'a>,
    pub function: Option<FunctionDelta<'a>>,
    /// Where Workers AI has no `function`.
    pub name: Text<'a>,
    /// Beside `name`.
    pub arguments: Arguments<'a>,
}

payload!(ToolCallDelta<'a>:
    "index" => index, "id" => id, "function" => function, "name" => name, "arguments" => arguments,
);

#[derive(Debug, Default)]
pub(super) struct FunctionDelta<'a> {
    pub name: Text<'a>,
    pub arguments: Arguments<'a>,
}

payload!(FunctionDelta<'a>: "name" => name, "arguments" => arguments);

#[derive(Debug, Default)]
pub(super) struct Usage {
    prompt_tokens: Option<u64>,
    completion_tokens: Option<u64>,
    total_tokens: Option<u64>,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
    /// DeepSeek's name of `cached_tokens`.
    prompt_cache_hit_tokens: Option<u64>,
}

payload!(Usage:
    "prompt_tokens" => prompt_tokens, "completion_tokens" => completion_tokens,
    "total_tokens" => total_tokens, "prompt_tokens_details" => prompt_tokens_details,
    "completion_tokens_details" => completion_tokens_details,
    "prompt_cache_hit_tokens" => prompt_cache_hit_tokens,
);

#[derive(Debug, Default)]
struct PromptDetails {
    cached_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
}

payload!(PromptDetails: "cached_tokens" => cached_tokens, "cache_write_tokens" => cache_write_tokens);

#[derive(Debug, Default)]
struct CompletionDetails {
    reasoning_tokens: Option<u64>,
}

payload!(CompletionDetails: "reasoning_tokens" => reasoning_tokens);

impl Usage {
    /// The counts as AG-UI counts them: totals include their parts, the sum is ours. Source: USE-2 to USE-5.
    pub fn to_token_usage(&self) -> TokenUsage {
        let prompt = self.prompt_tokens_details.as_ref();
        let reasoning_tokens = self
            .completion_tokens_details
            .as_ref()
            .and_then(|details| details.reasoning_tokens);
        let output_tokens = self.completion_tokens.map(|completion| {
            let reasoning = reasoning_tokens.unwrap_or(0);
            let sum = self
                .prompt_tokens
                .unwrap_or(0)
                .saturating_add(completion)
                .saturating_add(reasoning);
            // xAI counts reasoning beside the completion; its total tells.
            let is_beside = self.total_tokens == Some(sum);
            completion.saturating_add(if is_beside { reasoning } else { 0 })
        });
        TokenUsage {
            input_tokens: self.prompt_tokens,
            output_tokens,
            total_tokens: self
                .prompt_tokens
                .zip(output_tokens)
                .map(|(input, output)| input.saturating_add(output)),
            reasoning_tokens,
            cached_input_tokens: prompt
                .and_then(|details| details.cached_tokens)
                .or(self.prompt_cache_hit_tokens),
            cache_write_input_tokens: prompt.and_then(|details| details.cache_write_tokens),
            ..TokenUsage::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::protocol::payload;

    fn delta(json: &str) -> Delta<'_> {
        payload::read(json).unwrap()
    }

    #[test]
    fn texts_are_borrowed_from_the_chunk() {
        let delta = delta(r#"{"content":"plain","reasoning":"with \n escape"}"#);
        assert!(matches!(delta.content.0, Cow::Borrowed("plain")));
        assert_eq!(delta.reasoning.0, "with \n escape");
    }

    fn usage(json: &str) -> TokenUsage {
        payload::read::<Usage>(json).unwrap().to_token_usage()
    }

    #[test]
    fn usage_counts_parts_within_their_totals() {
        let openai = r#"{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,
            "prompt_tokens_details":{"cached_tokens":4,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":3}}"#;
        let expected = TokenUsage {
            input_tokens: Some(10),
            output_tokens: Some(5),
            total_tokens: Some(15),
            reasoning_tokens: Some(3),
            cached_input_tokens: Some(4),
            ..TokenUsage::default()
        };
        assert_eq!(usage(openai), expected);
        let reasoning_beside = r#"{"prompt_tokens":10,"completion_tokens":2,"total_tokens":15,
            "prompt_cache_hit_tokens":4,"completion_tokens_details":{"reasoning_tokens":3}}"#;
        assert_eq!(usage(reasoning_beside), expected);
    }

    #[test]
    fn a_count_nobody_gave_is_absent() {
        let expected = TokenUsage {
            input_tokens: Some(7),
            ..TokenUsage::default()
        };
        assert_eq!(
            usage(r#"{"prompt_tokens":7,"completion_tokens":null,"total_tokens":7}"#),
            expected
        );
    }
}
