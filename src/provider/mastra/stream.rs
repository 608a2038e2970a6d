//! The answer's chunks -> [`ModelEvent`]s.
//!
//! A step's end is passed on only when the next step begins, and only if the server has answered every call of the step:
//! calls left open at the end of the body are ours. The mark of the end is `[DONE]`, not `finish`: the server stores the
//! thread between the two, and stops when it is left before.

use serde_json::Value;

use super::super::sse_answer::SseAnswer;
use super::super::upstream_ids::UpstreamIds;
use super::super::{FinishReason, ModelEvent, ProviderError, refusal};
use super::chunk::{self, Call, Delta, Failure, Finish, Head, Outcome, Start};
use crate::list::List;
use crate::protocol::json;
use crate::protocol::json_cursor::is_json;
use crate::protocol::tool::ToolResult;
use crate::protocol::tool_result;
use crate::protocol::tree::json;

/// What the chunks said so far.
#[derive(Debug, Default)]
pub(super) struct Answer {
    message_id: String,
    /// The calls of this step.
    calls: Vec<StepCall>,
    next_slot: usize,
    is_text_open: bool,
    /// The step has said something.
    has_said: bool,
    /// The step is over; what is said next is of another.
    is_step_over: bool,
    /// A call waits for a person the server has no way to ask here.
    is_suspended: bool,
    /// `finish` came.
    is_complete: bool,
    is_finished: bool,
}

#[derive(Debug)]
struct StepCall {
    id: String,
    slot: usize,
    arguments: String,
    is_ended: bool,
    is_answered: bool,
}

impl SseAnswer for Answer {
    fn take(&mut self, chunk: &str, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        if self.is_complete {
            return Ok(());
        }
        let mut head = Head::default();
        chunk::read(chunk, &mut head)?;
        match &*head.kind.0 {
            kind @ ("text-delta" | "reasoning" | "reasoning-delta") => {
                let mut delta = Delta::default();
                head.members(chunk, &mut delta)?;
                self.take_words(kind == "text-delta", delta, events);
            }
            "start" | "step-start" => {
                let mut start = Start::default();
                head.members(chunk, &mut start)?;
                self.take_start(start);
            }
            "text-start" | "text-end" => self.end_text(events),
            kind @ ("tool-call-input-streaming-start"
            | "tool-call-streaming-start"
            | "tool-input-start"
            | "tool-call-delta"
            | "tool-input-delta"
            | "tool-call-input-streaming-end"
            | "tool-input-end"
            | "tool-call"
            | "tool-result"
            | "tool-error"
            | "tool-output-denied"
            | "tool-call-approval"
            | "tool-call-suspended") => {
                let mut call = Call::default();
                head.members(chunk, &mut call)?;
                let mut outcome = Outcome::default();
                if matches!(kind, "tool-result" | "tool-error" | "tool-output-denied") {
                    head.members(chunk, &mut outcome)?;
                }
                self.take_of_call(kind, &call, outcome, events);
            }
            kind @ ("step-finish" | "finish") => {
                let mut finish = Finish::default();
                head.members(chunk, &mut finish)?;
                let reason = self.end_step(&finish, events)?;
                if kind == "finish" {
                    self.take_finish(reason, &finish, events);
                }
            }
            kind @ ("error" | "tripwire") => {
                let mut failed = Failure::default();
                head.members(chunk, &mut failed)?;
                match kind {
                    "error" => return Err(failure(failed)),
                    _ if failed.retry == Value::Bool(true) => {}
                    _ => return Err(ProviderError::ContentFiltered),
                }
            }
            "abort" => return Err(refusal::by_finish_reason("abort")),
            // Data of the application's own, sources, other forms of what comes as text too, and what is yet unknown (B082).
            _ => {}
        }
        Ok(())
    }

    fn take_done(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        self.end_text(events);
        if !self.is_complete {
            // A chunk that cannot be written as JSON is left out by the server; `finish` may be one.
            if self
                .calls
                .iter()
                .any(|call| !call.is_ended && !call.is_written_out())
            {
                return Err(ProviderError::Truncated);
            }
            self.end_calls(events);
            self.conclude(None, events);
        }
        self.is_finished = true;
        Ok(())
    }

    fn end(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        if self.is_complete || self.is_suspended {
            return self.take_done(events);
        }
        Err(ProviderError::Truncated)
    }

    fn is_finished(&self) -> bool {
        self.is_finished
    }
}

impl Answer {
    fn take_start(&mut self, start: Start<'_>) {
        if !start.message_id.0.is_empty() {
            self.message_id = start.message_id.0.into_owned();
        }
    }

    /// A piece of text, or of reasoning.
    fn take_words(&mut self, is_text: bool, delta: Delta<'_>, events: &mut Vec<ModelEvent>) {
        let words = delta.into_text().0;
        if words.is_empty() {
            return;
        }
        self.say(events);
        let words = words.into_owned();
        events.push(if is_text {
            self.is_text_open = true;
            ModelEvent::Text(words)
        } else {
            ModelEvent::Reasoning(words)
        });
    }

    fn take_of_call(&mut self, kind: &str, call: &Call<'_>, outcome: Outcome, events: &mut Vec<ModelEvent>) {
        match kind {
            "tool-call-input-streaming-end" | "tool-input-end" => self.end_written_out(call, events),
            "tool-call" => self.take_call(call, events),
            "tool-result" => self.answer(call, result_of(outcome), events),
            "tool-error" => self.answer(call, error_of(&outcome.error), events),
            "tool-output-denied" => self.answer(call, denial_of(&outcome), events),
            "tool-call-approval" | "tool-call-suspended" => self.suspend(kind, call, events),
            // The start of the arguments, or a piece of them.
            _ => self.take_piece(call, events),
        }
    }

    fn end_text(&mut self, events: &mut Vec<ModelEvent>) {
        if std::mem::take(&mut self.is_text_open) {
            events.push(ModelEvent::TextEnd);
        }
    }

    /// Something is said: the first of it after a step's end begins the next one.
    fn say(&mut self, events: &mut Vec<ModelEvent>) {
        let is_over = std::mem::take(&mut self.is_step_over);
        if is_over && self.has_said && self.calls.iter().all(|call| call.is_answered) {
            events.push(ModelEvent::StepEnd);
            // Models number their calls anew in each step.
            self.calls.clear();
        }
        self.has_said = true;
    }

    /// The call of this id, announced if it is new; `None` while its tool is not known.
    fn announce(&mut self, call: &Call<'_>, events: &mut Vec<ModelEvent>) -> Option<&mut StepCall> {
        let id = call.call_id();
        if self.is_step_over || !self.calls.iter().any(|known| known.id == id) {
            let name = &*call.tool_name.0;
            if name.is_empty() {
                return None;
            }
            self.say(events);
            if !self.calls.iter().any(|known| known.id == id) {
                self.calls.push(StepCall {
                    id: id.to_owned(),
                    slot: self.next_slot,
                    arguments: String::new(),
                    is_ended: false,
                    is_answered: false,
                });
                events.push(ModelEvent::ToolCallStart {
                    slot: self.next_slot,
                    vendor_id: (!id.is_empty()).then(|| id.to_owned()),
                    name: name.to_owned(),
                });
                self.next_slot += 1;
            }
        }
        self.calls.iter_mut().rfind(|known| known.id == id)
    }

    fn take_piece(&mut self, call: &Call<'_>, events: &mut Vec<ModelEvent>) {
        if let Some(known) = self.announce(call, events) {
            known.append(call.piece(), events);
        }
    }

    /// The server says that the arguments are there. What does not read as JSON may be cut: the step's end tells.
    fn end_written_out(&mut self, call: &Call<'_>, events: &mut Vec<ModelEvent>) {
        let known = self.calls.iter_mut().rfind(|known| known.id == call.call_id());
        if let Some(known) = known.filter(|known| !known.arguments.is_empty() && known.is_written_out()) {
            known.end(events);
        }
    }

    /// The whole call; it was streamed before, or is here for the first time (B042).
    fn take_call(&mut self, call: &Call<'_>, events: &mut Vec<ModelEvent>) {
        if let Some(known) = self.announce(call, events) {
            if known.arguments.is_empty() {
                known.append(call.arguments(), events);
            }
            if known.is_written_out() {
                known.end(events);
            }
        }
    }

    /// A tool of the server's has answered; the first answer counts.
    fn answer(&mut self, call: &Call<'_>, result: Option<ToolResult>, events: &mut Vec<ModelEvent>) {
        let Some(ToolResult { content, is_error }) = result else {
            return;
        };
        if !self.calls.iter().any(|known| known.id == call.call_id()) {
            self.take_call(call, events);
        }
        let known = self.calls.iter_mut().rfind(|known| known.id == call.call_id());
        if let Some(known) = known.filter(|known| !known.is_answered) {
            known.end(events);
            known.is_answered = true;
            let slot = known.slot;
            events.push(ModelEvent::ToolCallResult {
                slot,
                content,
                is_error,
            });
        }
    }

    fn suspend(&mut self, kind: &str, call: &Call<'_>, events: &mut Vec<ModelEvent>) {
        let sentence = if kind == "tool-call-approval" {
            "The tool did not run: it needs an approval, which cannot be given here."
        } else {
            "The tool stopped to ask for more, which cannot be given here."
        };
        self.is_suspended = true;
        self.answer(call, Some(ToolResult::failure(sentence)), events);
    }

    /// Judges how a step ended, and gives the reason.
    fn end_step(
        &mut self,
        finish: &Finish<'_>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<FinishReason, ProviderError> {
        let is_cut = self.calls.iter().any(|call| !call.is_ended);
        let reason = match finish.reason() {
            "length" if is_cut => return Err(ProviderError::OutputTruncated),
            "length" => FinishReason::Length,
            "content-filter" if is_cut => return Err(ProviderError::ContentFiltered),
            "content-filter" => FinishReason::ContentFilter,
            "tripwire" => return Err(ProviderError::ContentFiltered),
            reason @ ("error" | "abort" | "aborted") => return Err(refusal::by_finish_reason(reason)),
            // The stream of the server's model was cut; the server would go on as if nothing had happened.
            "other" | "unknown" if !finish.has_raw_reason() => return Err(ProviderError::Truncated),
            _ => FinishReason::Stop,
        };
        self.end_text(events);
        self.end_calls(events);
        self.is_step_over = true;
        Ok(reason)
    }

    fn take_finish(&mut self, reason: FinishReason, finish: &Finish<'_>, events: &mut Vec<ModelEvent>) {
        let usage = finish.usage().and_then(chunk::Usage::to_token_usage);
        events.extend(usage.map(|usage| ModelEvent::Usage(usage.into())));
        self.is_complete = true;
        self.conclude(Some(reason), events);
    }

    /// A call the server has not answered is ours, and so is what to make of one it cannot go on with. All others are
    /// settled, whatever the model's reason was: the server has decided to stop.
    fn conclude(&mut self, reason: Option<FinishReason>, events: &mut Vec<ModelEvent>) {
        let has_open = self.calls.iter().any(|call| !call.is_answered);
        if !self.calls.is_empty() {
            let ids = UpstreamIds {
                message_id: Some(self.message_id.clone()).filter(|id| !id.is_empty()),
                tool_call_ids: self.calls.iter().map(|call| call.id.clone()).list(),
            };
            events.push(ModelEvent::VendorState(json!(ids)));
        }
        let reason = match reason {
            Some(FinishReason::ContentFilter) => Some(FinishReason::ContentFilter),
            _ if has_open || self.is_suspended => Some(FinishReason::ToolCalls),
            reason => reason,
        };
        events.extend(reason.map(ModelEvent::Finish));
    }

    fn end_calls(&mut self, events: &mut Vec<ModelEvent>) {
        for call in &mut self.calls {
            call.end(events);
        }
    }
}

impl StepCall {
    fn append(&mut self, piece: &str, events: &mut Vec<ModelEvent>) {
        if piece.is_empty() || self.is_ended {
            return;
        }
        self.arguments.push_str(piece);
        events.push(ModelEvent::ToolCallArguments {
            slot: self.slot,
            delta: piece.to_owned(),
        });
    }

    fn end(&mut self, events: &mut Vec<ModelEvent>) {
        if !self.is_ended {
            self.is_ended = true;
            events.push(ModelEvent::ToolCallEnd { slot: self.slot });
        }
    }

    /// Whether the arguments are nothing or the text of a whole object.
    fn is_written_out(&self) -> bool {
        let text = self.arguments.trim_ascii();
        text.is_empty() || (text.starts_with('{') && is_json(text))
    }
}

fn result_of(outcome: Outcome) -> Option<ToolResult> {
    if outcome.preliminary == Value::Bool(true) {
        return None;
    }
    let value = if outcome.result.is_null() {
        outcome.output
    } else {
        outcome.result
    };
    let ToolResult { content, .. } = tool_result::success(value);
    let is_error = outcome.is_error == Value::Bool(true);
    Some(ToolResult { content, is_error })
}

/// The words of a failed tool: an error of JavaScript's, whose own message may be in its cause. Never its stack.
fn error_of(error: &Value) -> Option<ToolResult> {
    let places = ["/message", "/cause/message", "/details/errorMessage", "/name"];
    let mut texts = places
        .into_iter()
        .filter_map(|place| json::at(error, place)?.as_str());
    let text = error.as_str().or_else(|| texts.find(|text| !text.is_empty()));
    Some(tool_result::failure(text.map_or(Value::Null, Value::from)))
}

fn denial_of(outcome: &Outcome) -> Option<ToolResult> {
    let sentence = match outcome.approval.reason.as_str() {
        Some(reason) if !reason.is_empty() => format!("The call was denied: {reason}"),
        Some(_) | None => "The call was denied.".to_owned(),
    };
    Some(ToolResult::failure(&sentence))
}

/// An error of the server, or of its model: then the status and the words of the model's vendor are inside.
fn failure(failure: Failure) -> ProviderError {
    let error = failure.error;
    let Some(status) = error.get("statusCode").and_then(Value::as_u64) else {
        return refusal::in_stream(json::text(&json!({ "error": error })).as_bytes());
    };
    let headers = error.get("responseHeaders").and_then(Value::as_object);
    let headers: Vec<(String, String)> = headers
        .into_iter()
        .flatten()
        .filter_map(|(name, value)| Some((name.to_ascii_lowercase(), value.as_str()?.to_owned())))
        .list();
    let body = error.get("responseBody").and_then(Value::as_str);
    let body = body.map_or_else(|| json::text(&json!({ "error": error })), str::to_owned);
    refusal::of_response(u16::try_from(status).unwrap_or(500), &headers, body.as_bytes())
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
