//! The agent's events -> [`ModelEvent`]s.
//!
//! An agent answers its own calls in the stream and goes on. Whether it names its steps or not, what it says behind the
//! last of the results is a new step; calls it leaves without a result are ours. What is open at RUN_FINISHED is closed.

use serde_json::Value;

use super::super::sse_answer::{NOT_A_PAYLOAD, SseAnswer};
use super::super::upstream_ids::UpstreamIds;
use super::super::{FinishReason, ModelEvent, ProviderError, refusal};
use super::event::{Call, CallResult, Failed, Finished, Head, Message};
use crate::list::List;
use crate::protocol::index::KeySet;
use crate::protocol::json;
use crate::protocol::payload::{self, Member};
use crate::protocol::tool::ToolResult;
use crate::protocol::tool_result;
use crate::protocol::tree::json;

/// What the events said so far.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// The agent's id of the step's message.
    message_id: String,
    /// The text message whose text came last, if it is still open.
    open_text: Option<String>,
    /// Messages that are not the assistant's.
    other_messages: KeySet<String>,
    /// The calls of this step.
    calls: Vec<StepCall>,
    next_slot: usize,
    /// The call that pieces without an id go on with; it ends with the first other event.
    chunked_call: Option<String>,
    /// The message that chunks without an id go on with.
    chunked_message: String,
    has_said: bool,
    /// The agent said that a step is over.
    is_step_over: bool,
    is_finished: bool,
}

#[derive(Debug)]
struct StepCall {
    id: String,
    slot: usize,
    is_ended: bool,
    is_answered: bool,
}

impl SseAnswer for Answer {
    fn take(&mut self, event: &str, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        let mut head = Head::default();
        read(event, &mut head)?;
        let kind = &*head.kind.0;
        if kind != "TOOL_CALL_CHUNK" {
            self.end_chunked_call(events);
        }
        match kind {
            "TEXT_MESSAGE_START"
            | "TEXT_MESSAGE_CONTENT"
            | "TEXT_MESSAGE_CHUNK"
            | "TEXT_MESSAGE_END"
            | "REASONING_MESSAGE_CONTENT"
            | "REASONING_MESSAGE_CHUNK"
            | "THINKING_TEXT_MESSAGE_CONTENT" => {
                let mut message = Message::default();
                read(event, &mut message)?;
                match kind {
                    "TEXT_MESSAGE_START" => self.start_text(&message, events),
                    "TEXT_MESSAGE_CONTENT" => self.take_text(&message, events),
                    "TEXT_MESSAGE_CHUNK" => self.take_text_chunk(message, events),
                    "TEXT_MESSAGE_END" => self.end_text(&message, events),
                    _ => self.take_reasoning(message, events),
                }
            }
            "TOOL_CALL_START" | "TOOL_CALL_ARGS" | "TOOL_CALL_CHUNK" | "TOOL_CALL_END" => {
                let mut call = Call::default();
                read(event, &mut call)?;
                match kind {
                    "TOOL_CALL_START" => drop(self.announce(&call, events)),
                    "TOOL_CALL_ARGS" => self.take_arguments(&call, events),
                    "TOOL_CALL_CHUNK" => self.take_call_chunk(call, events),
                    _ => self.end_call(&call.tool_call_id.0, events),
                }
            }
            "TOOL_CALL_RESULT" => {
                let mut result = CallResult::default();
                read(event, &mut result)?;
                let content = tool_result::success(Value::from(&*result.content.0));
                self.answer(&result.tool_call_id.0, content, events);
            }
            "STEP_STARTED" | "STEP_FINISHED" => self.is_step_over = self.open_text.is_none(),
            "RUN_FINISHED" => {
                let mut finished = Finished::default();
                read(event, &mut finished)?;
                self.finish(&finished, events)?;
            }
            "RUN_ERROR" => {
                let mut failed = Failed::default();
                read(event, &mut failed)?;
                return Err(failure(&failed));
            }
            // State, activities, snapshots, what applications tell each other, and what is yet unknown.
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
    fn start_text(&mut self, message: &Message<'_>, events: &mut Vec<ModelEvent>) {
        let id = &*message.message_id.0;
        if matches!(&*message.role.0, "" | "assistant") {
            self.close_text(events);
        } else {
            self.other_messages.insert(id.into());
        }
    }

    fn take_text(&mut self, message: &Message<'_>, events: &mut Vec<ModelEvent>) {
        let (id, delta) = (&*message.message_id.0, &*message.delta.0);
        if delta.is_empty() || self.other_messages.contains(id) {
            return;
        }
        if self.open_text.as_deref() != Some(id) {
            self.close_text(events);
            self.say(events);
            self.open_text = Some(id.to_owned());
            id.clone_into(&mut self.message_id);
        }
        events.push(ModelEvent::Text(delta.to_owned()));
    }

    fn take_text_chunk(&mut self, mut message: Message<'_>, events: &mut Vec<ModelEvent>) {
        if message.message_id.0.is_empty() {
            message.message_id.0 = self.chunked_message.clone().into();
        } else {
            self.chunked_message = message.message_id.0.clone().into_owned();
        }
        if !matches!(&*message.role.0, "" | "assistant") {
            self.other_messages.insert(self.chunked_message.as_str().into());
        }
        self.take_text(&message, events);
    }

    fn end_text(&mut self, message: &Message<'_>, events: &mut Vec<ModelEvent>) {
        if self.open_text.as_deref() == Some(&*message.message_id.0) {
            self.close_text(events);
        }
    }

    fn close_text(&mut self, events: &mut Vec<ModelEvent>) {
        if self.open_text.take().is_some() {
            events.push(ModelEvent::TextEnd);
        }
    }

    fn take_reasoning(&mut self, message: Message<'_>, events: &mut Vec<ModelEvent>) {
        if !message.delta.0.is_empty() {
            self.say(events);
            events.push(ModelEvent::Reasoning(message.delta.0.into_owned()));
        }
    }

    /// Something is said. Behind the results of all calls, or behind a step of the agent's, it begins another step.
    fn say(&mut self, events: &mut Vec<ModelEvent>) {
        let is_step_over = std::mem::take(&mut self.is_step_over);
        let is_answered = self.calls.iter().all(|call| call.is_answered);
        if self.has_said && is_answered && (is_step_over || !self.calls.is_empty()) {
            self.close_text(events);
            events.extend(self.ids());
            events.push(ModelEvent::StepEnd);
            self.calls.clear();
            self.message_id.clear();
        }
        self.has_said = true;
    }

    /// The call of this id, announced if it is new; `None` while its tool is not known.
    fn announce(&mut self, call: &Call<'_>, events: &mut Vec<ModelEvent>) -> Option<&mut StepCall> {
        let (id, name) = (&*call.tool_call_id.0, &*call.tool_call_name.0);
        // An id that comes again with a name behind its result is another call's: some agents number them anew.
        let is_known = |known: &StepCall| known.id == id && (name.is_empty() || !known.is_answered);
        if !name.is_empty() && !self.calls.iter().any(is_known) {
            self.close_text(events);
            self.say(events);
            if !call.parent_message_id.0.is_empty() {
                (*call.parent_message_id.0).clone_into(&mut self.message_id);
            }
            events.push(ModelEvent::ToolCallStart {
                slot: self.next_slot,
                vendor_id: (!id.is_empty()).then(|| id.to_owned()),
                name: name.to_owned(),
            });
            self.calls.push(StepCall {
                id: id.to_owned(),
                slot: self.next_slot,
                is_ended: false,
                is_answered: false,
            });
            self.next_slot += 1;
        }
        self.calls.iter_mut().rfind(|known| known.id == id)
    }

    fn take_arguments(&mut self, call: &Call<'_>, events: &mut Vec<ModelEvent>) {
        if let Some(known) = self.announce(call, events)
            && !known.is_ended
            && !call.delta.0.is_empty()
        {
            events.push(ModelEvent::ToolCallArguments {
                slot: known.slot,
                delta: call.delta.0.to_string(),
            });
        }
    }

    fn take_call_chunk(&mut self, mut call: Call<'_>, events: &mut Vec<ModelEvent>) {
        let id = &*call.tool_call_id.0;
        match &self.chunked_call {
            Some(open) if id.is_empty() || id == open => call.tool_call_id.0 = open.clone().into(),
            Some(_) | None => {
                self.end_chunked_call(events);
                self.chunked_call = Some(call.tool_call_id.0.clone().into_owned());
            }
        }
        self.take_arguments(&call, events);
    }

    fn end_chunked_call(&mut self, events: &mut Vec<ModelEvent>) {
        if let Some(id) = self.chunked_call.take() {
            self.end_call(&id, events);
        }
    }

    fn end_call(&mut self, id: &str, events: &mut Vec<ModelEvent>) {
        if let Some(call) = self.calls.iter_mut().rfind(|call| call.id == id) {
            call.end(events);
        }
    }

    /// The agent has answered a call; the first answer counts.
    fn answer(&mut self, id: &str, result: ToolResult, events: &mut Vec<ModelEvent>) {
        let call = self.calls.iter_mut().rfind(|call| call.id == id);
        if let Some(call) = call.filter(|call| !call.is_answered) {
            call.end(events);
            call.is_answered = true;
            events.push(ModelEvent::ToolCallResult {
                slot: call.slot,
                content: result.content,
                is_error: result.is_error,
            });
        }
    }

    fn finish(&mut self, finished: &Finished, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        self.close_text(events);
        for call in &mut self.calls {
            call.end(events);
        }
        let is_asking = self.judge(finished, events)?;
        events.extend(
            finished
                .token_usage()
                .map(|usage| ModelEvent::Usage(usage.into())),
        );
        events.extend(self.ids());
        let has_open = self.calls.iter().any(|call| !call.is_answered);
        let is_cut = finished.result.get("finishReason").and_then(Value::as_str) == Some("length");
        events.push(ModelEvent::Finish(if has_open || is_asking {
            FinishReason::ToolCalls
        } else if is_cut {
            FinishReason::Length
        } else {
            FinishReason::Stop
        }));
        self.is_finished = true;
        Ok(())
    }

    /// Judges the outcome; says whether the agent asks for something that was refused here.
    fn judge(&mut self, finished: &Finished, events: &mut Vec<ModelEvent>) -> Result<bool, ProviderError> {
        let Some(outcome) = &finished.outcome else {
            return Ok(false);
        };
        match outcome.kind.as_str() {
            Some("interrupt") => {
                let interrupts = outcome.interrupts.iter().flatten();
                let asked: Vec<&str> = interrupts.filter_map(|it| it.tool_call_id.as_deref()).list();
                let is_about_calls = self.calls.iter().any(|call| asked.contains(&call.id.as_str()));
                for id in asked {
                    let sentence = "The tool did not run: it needs an approval, which cannot be given here.";
                    self.answer(id, ToolResult::failure(sentence), events);
                }
                if is_about_calls {
                    Ok(true)
                } else {
                    Err(refusal::by_finish_reason("interrupt"))
                }
            }
            Some("cancelled") => Err(refusal::by_finish_reason("cancelled")),
            Some(_) | None => Ok(false),
        }
    }

    /// The ids the agent knows the step's message by; they go back with it.
    fn ids(&self) -> Option<ModelEvent> {
        let ids = UpstreamIds {
            message_id: Some(self.message_id.clone()).filter(|id| !id.is_empty()),
            tool_call_ids: self.calls.iter().map(|call| call.id.clone()).list(),
        };
        (ids != UpstreamIds::default()).then(|| ModelEvent::VendorState(json!(ids)))
    }
}

impl StepCall {
    fn end(&mut self, events: &mut Vec<ModelEvent>) {
        if !self.is_ended {
            self.is_ended = true;
            events.push(ModelEvent::ToolCallEnd { slot: self.slot });
        }
    }
}

/// Reads an event to where it is to be.
fn read<'a>(event: &'a str, place: &mut dyn Member<'a>) -> Result<(), ProviderError> {
    payload::read_into(event, place).map_err(|_| NOT_A_PAYLOAD)
}

/// A failed run; servers like this one say by a code what failed. Source: contract 2.4.
fn failure(failed: &Failed<'_>) -> ProviderError {
    match &*failed.code.0 {
        "output_truncated" => ProviderError::OutputTruncated,
        "content_filtered" => ProviderError::ContentFiltered,
        "upstream_rate_limited" => ProviderError::RateLimited {
            retry_after_ms: None,
            detail: failed.code.0.to_string(),
        },
        code => {
            let code = Some(code).filter(|code| !code.is_empty());
            let error = json!({ "error": { "message": failed.message.0, "code": code } });
            refusal::in_stream(json::text(&error).as_bytes())
        }
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
