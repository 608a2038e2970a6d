//! The answer's bytes -> [`ModelEvent`]s.
//!
//! Ends are held until the body says it is over (`[DONE]`, or its end after a finish reason): some servers give a finish
//! reason with every chunk, and a call must not be run that a later chunk goes on with. Calls decide what follows, never
//! the finish reason (D9).

use std::borrow::Cow;

use serde_json::Value;

use super::super::sse_answer::Form;
use super::super::tool_call_merge::{ToolCallMerge, ToolCallPiece};
use super::super::wire_text::Text;
use super::super::{
    FinishReason, ModelDecoder, ModelEvent, ProviderError, UPSTREAM_EVENT_MAX_BYTES, refusal,
};
use super::delta::{Choice, Chunk, Delta, FunctionDelta, ToolCallDelta};
use super::plain_delta::PlainDeltas;
use crate::binding::sse_decoder::{SseDecoder, SseEvent};
use crate::protocol::event::TokenUsage;
use crate::protocol::json;
use crate::protocol::json_cursor::CursorFault;
use crate::protocol::json_text::heal_surrogates;
use crate::protocol::payload;
use crate::protocol::tree::json;
use crate::protocol::utf8;

const NOT_A_CHUNK: ProviderError = ProviderError::Malformed("an event is no chat completion chunk");

/// Reads one answer.
#[derive(Debug)]
pub(super) struct ChatDecoder {
    form: Form,
    sse: SseDecoder,
    answer: Answer,
}

impl ChatDecoder {
    pub fn new() -> Self {
        Self {
            form: Form::Unknown,
            sse: SseDecoder::new(UPSTREAM_EVENT_MAX_BYTES),
            answer: Answer::default(),
        }
    }
}

impl ModelDecoder for ChatDecoder {
    fn feed(&mut self, bytes: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        let Some(bytes) = self.form.take(bytes)? else {
            return Ok(());
        };
        let mut incoming = self.sse.feed(bytes);
        while !self.answer.is_finished
            && let Some(event) = incoming.next_event()?
        {
            self.answer.take_event(&event, events)?;
        }
        Ok(())
    }

    fn end(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        if self.answer.is_finished {
            return Ok(());
        }
        if let Form::Json(body) = &self.form {
            let text = utf8::lossy(body);
            let mut chunk: Chunk<'_> = payload::read(&text).map_err(|fault| match fault {
                CursorFault::Cut => ProviderError::Truncated,
                CursorFault::Unexpected => ProviderError::Malformed("the answer is no chat completion"),
            })?;
            let chunk = match chunk.result.take() {
                Some(result) => *result,
                None => chunk,
            };
            let is_whole =
                chunk.choices.is_none() && (chunk.response.is_some() || chunk.tool_calls.is_some());
            self.answer.take_chunk(chunk, body, events)?;
            if is_whole {
                self.answer.finish.get_or_insert(FinishReason::Stop);
            }
        } else if let Some(event) = self.sse.end()? {
            // A payload that cannot be read here was cut with the body.
            self.answer.take_event(&event, events).map_err(|error| {
                if error == NOT_A_CHUNK {
                    ProviderError::Truncated
                } else {
                    error
                }
            })?;
        }
        self.answer.end(events)
    }

    fn is_finished(&self) -> bool {
        self.answer.is_finished
    }
}

/// What the chunks said so far.
#[derive(Debug, Default)]
struct Answer {
    plain: PlainDeltas,
    calls: ToolCallMerge,
    reasoning: String,
    usage: Option<TokenUsage>,
    /// The last one given.
    finish: Option<FinishReason>,
    is_finished: bool,
}

impl Answer {
    fn take_event(
        &mut self,
        event: &SseEvent<'_>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ProviderError> {
        let data = event.data.trim_ascii();
        match data {
            "" => Ok(()),
            "[DONE]" => self.finish(events),
            _ if event.name == "error" => Err(refusal::in_stream(data.as_bytes())),
            _ => {
                if let Some(text) = self.plain.text(data) {
                    self.take_text(text, events);
                    return Ok(());
                }
                match payload::read(data) {
                    Ok(chunk) => self.take_chunk(chunk, data.as_bytes(), events),
                    Err(_) => self.take_healed(&heal_surrogates(data), events),
                }
            }
        }
    }

    /// Some proxies cut texts within a surrogate pair: each half is a character we do not know, and no broken chunk.
    fn take_healed(&mut self, data: &str, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        let chunk = payload::read(data).map_err(|_| NOT_A_CHUNK)?;
        self.take_chunk(chunk, data.as_bytes(), events)
    }

    fn take_chunk(
        &mut self,
        chunk: Chunk<'_>,
        payload: &[u8],
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ProviderError> {
        if chunk.error.is_some() || chunk.object.0 == "error" {
            return Err(refusal::in_stream(payload));
        }
        if let Some(usage) = chunk.usage.0 {
            self.usage = Some(usage.to_token_usage());
        }
        if chunk.choices.is_none() {
            return self.take_choice(
                native_choice(chunk.response, chunk.tool_calls, chunk.finish_reason),
                events,
            );
        }
        for choice in chunk.choices.unwrap_or_default() {
            // We ask for one choice; a second would be another answer.
            if choice.index.unwrap_or(0) == 0 {
                self.take_choice(choice, events)?;
            }
        }
        Ok(())
    }

    fn take_choice(&mut self, choice: Choice<'_>, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        // Before the finish reason: the chunk that has one may have the last words too (B050).
        if let Some(delta) = choice.delta.or_else(|| choice.message.map(|message| *message)) {
            self.take_delta(delta, events);
        }
        match &*choice.finish_reason.0 {
            "" => {}
            "length" | "max_tokens" | "model_length" => self.finish = Some(FinishReason::Length),
            "tool_calls" | "function_call" => self.finish = Some(FinishReason::ToolCalls),
            "content_filter" => self.finish = Some(FinishReason::ContentFilter),
            // vLLM and SGLang, when they give a request up.
            "abort" => return Err(ProviderError::Truncated),
            // OpenRouter, DeepSeek.
            reason @ ("error" | "insufficient_system_resource") => {
                return Err(refusal::by_finish_reason(reason));
            }
            _ => self.finish = Some(FinishReason::Stop),
        }
        Ok(())
    }

    fn take_text(&mut self, text: Cow<'_, str>, events: &mut Vec<ModelEvent>) {
        self.calls.end_written_out(events);
        events.push(ModelEvent::Text(text.into_owned()));
    }

    fn take_delta(&mut self, delta: Delta<'_>, events: &mut Vec<ModelEvent>) {
        // Servers that know both names of reasoning send it twice.
        let reasoning = if delta.reasoning_content.0.is_empty() {
            delta.reasoning
        } else {
            delta.reasoning_content
        };
        if !reasoning.0.is_empty() {
            self.reasoning.push_str(&reasoning.0);
            events.push(ModelEvent::Reasoning(reasoning.0.into_owned()));
        }
        // A refusal is what the model says instead of an answer, in words for the person: it is the answer.
        for text in [delta.content.0, delta.refusal.0] {
            if !text.is_empty() {
                self.take_text(text, events);
            }
        }
        for call in delta.tool_calls.into_iter().flatten() {
            let FunctionDelta { name, arguments } = call.function.unwrap_or(FunctionDelta {
                name: call.name,
                arguments: call.arguments,
            });
            let piece = ToolCallPiece {
                id: Some(&call.id.0),
                key: None,
                index: call.index.0,
                name: Some(&name.0),
                arguments: &arguments.0,
            };
            self.calls.take(piece, events);
        }
        if let Some(FunctionDelta { name, arguments }) = delta.function_call {
            let piece = ToolCallPiece {
                name: Some(&name.0),
                arguments: &arguments.0,
                ..ToolCallPiece::default()
            };
            self.calls.take(piece, events);
        }
    }

    /// The body is over: without a finish reason it was cut (B062).
    fn end(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        match self.finish {
            _ if self.is_finished => Ok(()),
            Some(_) => self.finish(events),
            None => Err(ProviderError::Truncated),
        }
    }

    /// The answer is over and whole: `[DONE]` alone says so too (B018).
    fn finish(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        self.is_finished = true;
        self.calls.finish(self.finish, events)?;
        if self.calls.has_any() && !self.reasoning.is_empty() {
            let reasoning = std::mem::take(&mut self.reasoning);
            events.push(ModelEvent::VendorState(json!({ "reasoning_content": reasoning })));
        }
        events.extend(self.usage.take().map(|usage| ModelEvent::Usage(usage.into())));
        events.push(ModelEvent::Finish(self.finish.unwrap_or(FinishReason::Stop)));
        Ok(())
    }
}

/// What Workers AI says in a dialect of its own, as a choice.
fn native_choice<'a>(
    response: Option<Value>,
    tool_calls: Option<Vec<ToolCallDelta<'a>>>,
    finish_reason: Text<'a>,
) -> Choice<'a> {
    let content = match response {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text,
        Some(value) => json::text(&value),
    };
    Choice {
        index: None,
        delta: Some(Delta {
            content: Text(content.into()),
            tool_calls,
            ..Delta::default()
        }),
        message: None,
        finish_reason,
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
