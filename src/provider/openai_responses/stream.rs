//! The answer's payloads -> [`ModelEvent`]s.
//!
//! Everything is told several times: in deltas, whole when a part is done, whole again when its item is done, and in the
//! whole response at the end. The first telling counts; later ones fill what was never told (B044).

use serde_json::Value;

use super::super::sse_answer::{NOT_A_PAYLOAD, SseAnswer};
use super::super::tool_call_merge::ToolCallMerge;
use super::super::{FinishReason, ModelEvent, ProviderError, refusal};
use super::event::{Item, Kind, Payload, Response};
use super::item::{Items, Naming};
use crate::protocol::payload;
use crate::protocol::tree::json;

/// Kinds of payload that mean something here; others, also future ones, are skipped. Matched whole: not every delta is
/// text.
const KINDS: &[&str] = &[
    "response.output_item.added",
    "response.output_item.done",
    "response.output_text.delta",
    "response.output_text.done",
    "response.refusal.delta",
    "response.refusal.done",
    "response.reasoning_text.delta",
    "response.reasoning_summary_text.delta",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.completed",
    "response.incomplete",
    "response.failed",
    "error",
];

/// What the payloads said so far.
#[derive(Debug, Default)]
pub(super) struct Answer {
    items: Items,
    calls: ToolCallMerge,
    is_finished: bool,
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
            "response.output_text.delta" | "response.refusal.delta" => {
                self.say_more(&read, events);
            }
            "response.output_text.done" => self.say_whole(&read, &read.text.0, events),
            "response.refusal.done" => self.say_whole(&read, &read.refusal.0, events),
            "response.reasoning_text.delta" | "response.reasoning_summary_text.delta"
                if !read.delta.0.is_empty() =>
            {
                events.push(ModelEvent::Reasoning(read.delta.0.into_owned()));
            }
            "response.function_call_arguments.delta" => {
                let call = self.items.call(&naming(&read), &mut self.calls);
                call.add_arguments(&read.delta.0, &mut self.calls, events);
            }
            "response.function_call_arguments.done" => {
                let call = self.items.call(&naming(&read), &mut self.calls);
                call.fill_arguments(&read.arguments.0, &mut self.calls, events);
            }
            "response.output_item.added" => {
                self.open(read.output_index, &read.item.unwrap_or_default(), events);
            }
            "response.output_item.done" => {
                self.close(read.output_index, *read.item.unwrap_or_default(), events);
            }
            "response.completed" => return self.finish(*read.response.unwrap_or_default(), None, events),
            "response.incomplete" => {
                let response = *read.response.unwrap_or_default();
                let reason = match &response.incomplete_details {
                    Some(details) if details.reason.0 == "content_filter" => FinishReason::ContentFilter,
                    Some(_) | None => FinishReason::Length,
                };
                return self.finish(response, Some(reason), events);
            }
            "response.failed" | "error" => return Err(refusal::in_stream(data.as_bytes())),
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

/// How a delta names its item.
fn naming<'a>(payload: &'a Payload<'_>) -> Naming<'a> {
    Naming {
        id: &payload.item_id.0,
        call_id: "",
        output_index: payload.output_index,
    }
}

impl Answer {
    fn say_more(&mut self, payload: &Payload<'_>, events: &mut Vec<ModelEvent>) {
        if !payload.delta.0.is_empty() {
            self.calls.end_written_out(events);
            let message = self.items.message(&naming(payload));
            message.say(payload.content_index, &payload.delta.0, events);
        }
    }

    fn say_whole(&mut self, payload: &Payload<'_>, text: &str, events: &mut Vec<ModelEvent>) {
        let message = self.items.message(&naming(payload));
        if !message.has_said(payload.content_index) && !text.is_empty() {
            self.calls.end_written_out(events);
            message.say(payload.content_index, text, events);
        }
    }

    fn open(&mut self, output_index: Option<u64>, item: &Item<'_>, events: &mut Vec<ModelEvent>) {
        let naming = Naming::of(item, output_index);
        match &*item.kind.0 {
            "message" => {
                self.items.message(&naming);
            }
            "function_call" => {
                let call = self.items.call(&naming, &mut self.calls);
                call.announce(item, &mut self.calls, events);
            }
            _ => {}
        }
    }

    fn close(&mut self, output_index: Option<u64>, item: Item<'_>, events: &mut Vec<ModelEvent>) {
        let naming = Naming::of(&item, output_index);
        match &*item.kind.0 {
            "message" => {
                let message = self.items.message(&naming);
                for (content_index, part) in (0..).zip(item.content.iter().flatten()) {
                    for text in [&part.text.0, &part.refusal.0] {
                        if !message.has_said(Some(content_index)) && !text.is_empty() {
                            self.calls.end_written_out(events);
                            message.say(Some(content_index), text, events);
                        }
                    }
                }
                message.close(&item.phase.0, events);
            }
            "function_call" => {
                let call = self.items.call(&naming, &mut self.calls);
                call.announce(&item, &mut self.calls, events);
                call.fill_arguments(&item.arguments.0, &mut self.calls, events);
                // A call that was cut is done too, and says so.
                if !matches!(&*item.status.0, "incomplete" | "in_progress") {
                    call.close(&mut self.calls, events);
                }
            }
            "reasoning" => self.items.keep_reasoning(item),
            _ => {}
        }
    }

    /// The vendor says that the answer is over.
    fn finish(
        &mut self,
        response: Response<'_>,
        reason: Option<FinishReason>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ProviderError> {
        self.is_finished = true;
        self.fill(response.output.unwrap_or_default(), events);
        let has_calls = self.calls.has_any();
        let reason = reason.unwrap_or(if has_calls {
            FinishReason::ToolCalls
        } else {
            FinishReason::Stop
        });
        self.calls.finish(Some(reason), events)?;
        events.extend(self.vendor_state().map(ModelEvent::VendorState));
        events.extend(
            response
                .usage
                .map(|usage| ModelEvent::Usage(usage.to_token_usage().into())),
        );
        events.push(ModelEvent::Finish(reason));
        Ok(())
    }

    /// Takes from the whole response the kinds of items no event told of, and the arguments no event had.
    fn fill(&mut self, output: Vec<Item<'_>>, events: &mut Vec<ModelEvent>) {
        let (has_said, has_calls) = (self.items.have_said(), self.calls.has_any());
        for (output_index, item) in (0..).zip(output) {
            match &*item.kind.0 {
                "message" if !has_said => self.close(Some(output_index), item, events),
                "function_call" if !has_calls => self.close(Some(output_index), item, events),
                "function_call" => {
                    if let Some(call) = self.items.known_call(&Naming::of(&item, None)) {
                        call.fill_arguments(&item.arguments.0, &mut self.calls, events);
                    }
                }
                _ => {}
            }
        }
    }

    /// The items in their order, beside calls that come after reasoning: it goes back in the place it had.
    fn vendor_state(&self) -> Option<Value> {
        let output = self.items.to_state().filter(|_| self.calls.has_any())?;
        Some(json!({ "output": output }))
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
