//! The answer's payloads -> [`ModelEvent`]s.
//!
//! A call ends with its block if its arguments are written out by then; otherwise it may have been cut there, which only
//! the stop reason tells, and it ends with the answer.

use serde_json::Value;

use super::super::sse_answer::{NOT_A_PAYLOAD, SseAnswer};
use super::super::tool_call_merge::{ToolCallMerge, ToolCallPiece};
use super::super::wire_text::Text;
use super::super::{FinishReason, ModelEvent, ProviderError, refusal};
use super::event::{ContentBlock, Delta, Kind, Payload, Usage};
use crate::protocol::payload;
use crate::protocol::tree::json;

/// Kinds of payload that mean something here; others, also future ones, are skipped.
const KINDS: &[&str] = &[
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "error",
];

/// What the payloads said so far.
#[derive(Debug, Default)]
pub(super) struct Answer {
    blocks: Vec<Block>,
    calls: ToolCallMerge,
    call_count: usize,
    usage: Option<Usage>,
    finish: Option<FinishReason>,
    is_finished: bool,
}

#[derive(Debug)]
struct Block {
    index: Option<u64>,
    content: Content,
}

#[derive(Debug)]
enum Content {
    Text(String),
    Thinking {
        thinking: String,
        signature: String,
    },
    Redacted {
        data: String,
    },
    Call {
        slot: usize,
        /// Names the call towards [`ToolCallMerge`].
        key: String,
        /// Arguments that came whole, until deltas come instead.
        input: String,
    },
    /// Of a tool that runs at the vendor, or of a kind yet unknown.
    Other,
}

impl SseAnswer for Answer {
    fn take(&mut self, data: &str, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        let mut read = Payload::default();
        if payload::read_into(data, &mut read).is_err() {
            return match payload::read::<Kind<'_>>(data) {
                Ok(Kind { kind }) if !KINDS.contains(&&*kind.0) => Ok(()),
                Ok(_) | Err(_) => Err(NOT_A_PAYLOAD),
            };
        }
        match &*read.kind.0 {
            "message_start" => self.count(read.message.and_then(|message| message.usage)),
            "content_block_start" => {
                self.open(read.index, *read.content_block.unwrap_or_default(), events);
            }
            "content_block_delta" => self.add(read.index, read.delta.unwrap_or_default(), events),
            "content_block_stop" => self.close(read.index, events),
            "message_delta" => {
                self.count(read.usage.map(|usage| *usage));
                let stop_reason = read.delta.unwrap_or_default().stop_reason;
                self.finish = finish_reason(&stop_reason.0).or(self.finish);
            }
            "message_stop" => return self.finish(events),
            "error" => return Err(refusal::in_stream(data.as_bytes())),
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, _events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        Err(ProviderError::Truncated)
    }

    fn is_finished(&self) -> bool {
        self.is_finished
    }
}

impl Answer {
    fn count(&mut self, usage: Option<Usage>) {
        if let Some(usage) = usage {
            self.usage.get_or_insert_default().update(usage);
        }
    }

    fn open(&mut self, index: Option<u64>, block: ContentBlock<'_>, events: &mut Vec<ModelEvent>) {
        let content = match &*block.kind.0 {
            "text" => Content::Text(String::new()),
            "thinking" => Content::Thinking {
                thinking: String::new(),
                signature: block.signature.0.into_owned(),
            },
            "redacted_thinking" => Content::Redacted {
                data: block.data.0.into_owned(),
            },
            "tool_use" => self.open_call(&block, events),
            _ => Content::Other,
        };
        self.blocks.push(Block { index, content });
        self.say(index, block.text, events);
        self.think(index, block.thinking, events);
    }

    fn open_call(&mut self, block: &ContentBlock<'_>, events: &mut Vec<ModelEvent>) -> Content {
        let slot = self.call_count;
        self.call_count += 1;
        let key = format!("block {slot}");
        let piece = ToolCallPiece {
            id: Some(&block.id.0),
            key: Some(&key),
            name: Some(&block.name.0),
            ..ToolCallPiece::default()
        };
        self.calls.take(piece, events);
        Content::Call {
            slot,
            key,
            input: block.input.0.clone().into_owned(),
        }
    }

    fn add(&mut self, index: Option<u64>, delta: Delta<'_>, events: &mut Vec<ModelEvent>) {
        match &*delta.kind.0 {
            "text_delta" => self.say(index, delta.text, events),
            "thinking_delta" => self.think(index, delta.thinking, events),
            "signature_delta" => {
                if let Some(Content::Thinking { signature, .. }) = self.block(index) {
                    signature.push_str(&delta.signature.0);
                }
            }
            "input_json_delta" => self.add_arguments(index, &delta.partial_json.0, events),
            _ => {}
        }
    }

    fn say(&mut self, index: Option<u64>, delta: Text<'_>, events: &mut Vec<ModelEvent>) {
        if delta.0.is_empty() {
            return;
        }
        if let Some(Content::Text(text)) = self.block(index) {
            text.push_str(&delta.0);
            self.calls.end_written_out(events);
            events.push(ModelEvent::Text(delta.0.into_owned()));
        }
    }

    fn think(&mut self, index: Option<u64>, delta: Text<'_>, events: &mut Vec<ModelEvent>) {
        if delta.0.is_empty() {
            return;
        }
        if let Some(Content::Thinking { thinking, .. }) = self.block(index) {
            thinking.push_str(&delta.0);
            events.push(ModelEvent::Reasoning(delta.0.into_owned()));
        }
    }

    fn add_arguments(&mut self, index: Option<u64>, arguments: &str, events: &mut Vec<ModelEvent>) {
        let Some(block) = find(&mut self.blocks, index) else {
            return;
        };
        if let Content::Call { key, input, .. } = block
            && !arguments.is_empty()
        {
            input.clear();
            let piece = ToolCallPiece {
                key: Some(key),
                arguments,
                ..ToolCallPiece::default()
            };
            self.calls.take(piece, events);
        }
    }

    fn close(&mut self, index: Option<u64>, events: &mut Vec<ModelEvent>) {
        if let Some(Content::Call { input, .. }) = self.block(index) {
            let input = std::mem::take(input);
            // What a start that deltas follow says too, so it says nothing.
            if input != "{}" {
                self.add_arguments(index, &input, events);
            }
            self.calls.end_written_out(events);
        }
    }

    fn block(&mut self, index: Option<u64>) -> Option<&mut Content> {
        find(&mut self.blocks, index)
    }

    /// The vendor says that the answer is over and whole.
    fn finish(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        self.is_finished = true;
        self.calls.finish(self.finish, events)?;
        events.extend(self.vendor_state().map(ModelEvent::VendorState));
        events.extend(
            self.usage
                .take()
                .map(|usage| ModelEvent::Usage(usage.to_token_usage().into())),
        );
        events.push(ModelEvent::Finish(self.finish.unwrap_or(FinishReason::Stop)));
        Ok(())
    }

    /// The content in its order, beside calls that come after thinking: the results of these calls are refused without
    /// it, and so is another order. Calls are named by their slot: they go back as they are stored.
    fn vendor_state(&self) -> Option<Value> {
        let is_thinking =
            |block: &Block| matches!(block.content, Content::Thinking { .. } | Content::Redacted { .. });
        if !self.calls.has_any() || !self.blocks.iter().any(is_thinking) {
            return None;
        }
        let content = self.blocks.iter().filter_map(|block| match &block.content {
            Content::Text(text) => Some(json!({ "type": "text", "text": text })),
            Content::Thinking { thinking, signature } => {
                Some(json!({ "type": "thinking", "thinking": thinking, "signature": signature }))
            }
            Content::Redacted { data } => Some(json!({ "type": "redacted_thinking", "data": data })),
            Content::Call { slot, .. } => Some(json!({ "type": "tool_use", "slot": slot })),
            Content::Other => None,
        });
        Some(json!({ "content": content.collect::<Vec<Value>>() }))
    }
}

/// The block of this index; a server that numbers none means the last.
fn find(blocks: &mut [Block], index: Option<u64>) -> Option<&mut Content> {
    let is_meant = |block: &&mut Block| index.is_none() || block.index == index;
    let block = blocks.iter_mut().rfind(is_meant)?;
    Some(&mut block.content)
}

fn finish_reason(stop_reason: &str) -> Option<FinishReason> {
    match stop_reason {
        "" => None,
        "tool_use" => Some(FinishReason::ToolCalls),
        "max_tokens" | "model_context_window_exceeded" => Some(FinishReason::Length),
        "refusal" => Some(FinishReason::ContentFilter),
        _ => Some(FinishReason::Stop),
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
