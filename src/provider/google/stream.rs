//! The answer's payloads -> [`ModelEvent`]s.
//!
//! There is no end mark but the end of the body after a finish reason, or a last report without candidates: older models
//! give a finish reason with every chunk. Calls come whole, several in one chunk (B037), and end with the answer, or with
//! text behind them.

use serde_json::Value;

use super::super::sse_answer::{NOT_A_PAYLOAD, SseAnswer};
use super::super::tool_call_merge::{ToolCallMerge, ToolCallPiece};
use super::super::{FinishReason, ModelEvent, ProviderError, refusal};
use super::event::{Candidate, FunctionCall, Part, Payload};
use crate::protocol::event::TokenUsage;
use crate::protocol::payload;
use crate::protocol::tree::json;

/// What the payloads said so far.
#[derive(Debug, Default)]
pub(super) struct Answer {
    parts: Vec<Said>,
    calls: ToolCallMerge,
    call_count: usize,
    usage: Option<TokenUsage>,
    finish: Option<FinishReason>,
    is_finished: bool,
}

/// One part, with the signature that must go back in the same place; empty = none.
#[derive(Debug)]
struct Said {
    what: What,
    signature: String,
}

#[derive(Debug)]
enum What {
    Text(String),
    Call { slot: usize },
}

impl SseAnswer for Answer {
    fn take(&mut self, data: &str, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        let mut read = Payload::default();
        payload::read_into(data, &mut read).map_err(|_| NOT_A_PAYLOAD)?;
        if read.error.is_some() {
            return Err(refusal::in_stream(data.as_bytes()));
        }
        if let Some(usage) = read.usage_metadata {
            self.usage = Some(usage.to_token_usage());
        }
        let is_blocked = |reason: &str| !matches!(reason, "" | "BLOCK_REASON_UNSPECIFIED");
        if read
            .prompt_feedback
            .is_some_and(|feedback| is_blocked(&feedback.block_reason.0))
        {
            return Err(ProviderError::ContentFiltered);
        }
        let candidates = read.candidates.unwrap_or_default();
        if candidates.is_empty() && self.finish.is_some() {
            return self.finish(events);
        }
        for candidate in candidates {
            // We ask for one candidate; a second would be another answer.
            if candidate.index.unwrap_or(0) == 0 {
                self.take_candidate(candidate, events)?;
            }
        }
        Ok(())
    }

    fn end(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        match self.finish {
            Some(_) => self.finish(events),
            None => Err(ProviderError::Truncated),
        }
    }

    fn is_finished(&self) -> bool {
        self.is_finished
    }
}

impl Answer {
    fn take_candidate(
        &mut self,
        candidate: Candidate<'_>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ProviderError> {
        // Before the finish reason: the chunk that has one has the last words too.
        let parts = candidate.content.and_then(|content| content.parts);
        for part in parts.unwrap_or_default() {
            self.take_part(part, events);
        }
        match &*candidate.finish_reason.0 {
            "" | "FINISH_REASON_UNSPECIFIED" => {}
            // The second is no word of Google's own, but of servers that speak its form: the calls decide anyway (D9).
            "STOP" | "FUNCTION_CALL" => self.finish = Some(FinishReason::Stop),
            "MAX_TOKENS" => self.finish = Some(FinishReason::Length),
            "SAFETY"
            | "RECITATION"
            | "BLOCKLIST"
            | "PROHIBITED_CONTENT"
            | "SPII"
            | "IMAGE_SAFETY"
            | "IMAGE_PROHIBITED_CONTENT"
            | "IMAGE_RECITATION" => {
                self.finish = Some(FinishReason::ContentFilter);
            }
            // Malformed calls and whatever else went wrong while the model wrote: another attempt may go well (B061).
            reason => return Err(refusal::by_finish_reason(reason)),
        }
        Ok(())
    }

    fn take_part(&mut self, part: Part<'_>, events: &mut Vec<ModelEvent>) {
        let signature = part.thought_signature.0.into_owned();
        if let Some(call) = part.function_call {
            self.take_call(&call, signature, events);
        } else if part.text.0.is_empty() {
            // A signature alone binds nothing that goes back.
        } else if part.thought == Some(true) {
            events.push(ModelEvent::Reasoning(part.text.0.into_owned()));
        } else {
            let text = part.text.0.into_owned();
            self.keep_text(&text, signature);
            self.calls.end_written_out(events);
            events.push(ModelEvent::Text(text));
        }
    }

    fn take_call(&mut self, call: &FunctionCall<'_>, signature: String, events: &mut Vec<ModelEvent>) {
        let slot = self.call_count;
        self.call_count += 1;
        let key = format!("part {slot}");
        let piece = ToolCallPiece {
            id: Some(&call.id.0),
            key: Some(&key),
            index: None,
            name: Some(&call.name.0),
            arguments: if call.args.0.is_empty() {
                "{}"
            } else {
                &call.args.0
            },
        };
        self.calls.take(piece, events);
        let what = What::Call { slot };
        self.parts.push(Said { what, signature });
    }

    /// Texts are joined unless one of them is signed.
    fn keep_text(&mut self, text: &str, signature: String) {
        if let Some(Said {
            what: What::Text(last),
            signature: last_signature,
        }) = self.parts.last_mut()
            && last_signature.is_empty()
            && signature.is_empty()
        {
            last.push_str(text);
            return;
        }
        let what = What::Text(text.to_owned());
        self.parts.push(Said { what, signature });
    }

    /// The answer is over and whole.
    fn finish(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        self.is_finished = true;
        self.calls.finish(self.finish, events)?;
        events.extend(self.vendor_state().map(ModelEvent::VendorState));
        events.extend(self.usage.take().map(|usage| ModelEvent::Usage(usage.into())));
        let reason = match self.finish {
            // Also said where calls are to be answered.
            Some(FinishReason::Stop) | None if self.calls.has_any() => FinishReason::ToolCalls,
            reason => reason.unwrap_or(FinishReason::Stop),
        };
        events.push(ModelEvent::Finish(reason));
        Ok(())
    }

    /// The parts in their order, beside calls with signatures. Calls are named by their slot: they go back as they are
    /// stored.
    fn vendor_state(&self) -> Option<Value> {
        let is_signed = |said: &Said| !said.signature.is_empty();
        if !self.calls.has_any() || !self.parts.iter().any(is_signed) {
            return None;
        }
        let parts = self.parts.iter().map(|said| {
            let mut part = match &said.what {
                What::Text(text) => json!({ "text": text }),
                What::Call { slot } => json!({ "slot": slot }),
            };
            if let Value::Object(members) = &mut part
                && is_signed(said)
            {
                members.insert("thoughtSignature".to_owned(), said.signature.as_str().into());
            }
            part
        });
        Some(json!({ "parts": parts.collect::<Vec<Value>>() }))
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
