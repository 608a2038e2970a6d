//! The protobuf binding: per event a length of four bytes, big-endian, and one `Event` message (D13).
//!
//! Encode only, written by hand into the caller's buffer; the bytes are those of the reference encoder. A keep-alive has
//! no form here: viewers of this binding are sent nothing while nothing happens.
//!
//! Source: AG-UI 4, PB-4 to PB-7.

use serde_json::Value;

use super::event_json;
use crate::protocol::event::{Event, EventKind, Outcome, PROTOCOL_VERSION, RunFinished, TokenUsage};
use crate::protocol::number as numbers;

const VARINT: u32 = 0;
const FIXED_64: u32 = 1;
const LENGTH_DELIMITED: u32 = 2;

/// Bytes of a frame's length.
const HEADER_BYTES: usize = 4;

/// Appends an event's whole frame.
pub fn encode_event(event: &Event, out: &mut Vec<u8>) {
    let start = out.len();
    out.extend_from_slice(&[0; HEADER_BYTES]);
    let (arm, kind) = numbers(event.kind());
    let message = open(out, arm);
    // Written even when it is empty, as the reference does: the type of TEXT_MESSAGE_START is 0.
    let base = open(out, 1);
    if kind > 0 {
        number(out, 1, kind);
    }
    close(out, base);
    members(event, out);
    close(out, message);
    let size_bytes = out.len() - start - HEADER_BYTES;
    let header = u32::try_from(size_bytes).unwrap_or(u32::MAX).to_be_bytes();
    if let Some(place) = out.get_mut(start..start + HEADER_BYTES) {
        place.copy_from_slice(&header);
    }
}

/// The same events as frames of this binding. `sse` holds whole frames of [`super::sse`]: a run's log is kept in that
/// form, and only viewers that come late need it in this one.
pub fn from_sse(sse: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for frame in sse.split(|byte| *byte == b'\n') {
        let event = frame.strip_prefix(b"data: ").and_then(event_json::decode);
        if let Some(event) = event {
            encode_event(&event, &mut out);
        }
    }
    out
}

/// The field of `Event` an event goes into, and its `EventType`: two different numberings.
fn numbers(kind: EventKind) -> (u32, u64) {
    match kind {
        EventKind::TextMessageStart => (1, 0),
        EventKind::TextMessageContent => (2, 1),
        EventKind::TextMessageEnd => (3, 2),
        EventKind::ToolCallStart => (4, 3),
        EventKind::ToolCallArgs => (5, 4),
        EventKind::ToolCallEnd => (6, 5),
        EventKind::RunStarted => (12, 11),
        EventKind::RunFinished => (13, 12),
        EventKind::RunError => (14, 13),
        EventKind::StepStarted => (15, 14),
        EventKind::StepFinished => (16, 15),
        EventKind::ToolCallResult => (22, 21),
        EventKind::ReasoningStart => (25, 24),
        EventKind::ReasoningMessageStart => (26, 25),
        EventKind::ReasoningMessageContent => (27, 26),
        EventKind::ReasoningMessageEnd => (28, 27),
        EventKind::ReasoningEnd => (30, 29),
    }
}

/// The fields after `base_event`, ascending. `text` is left out when empty, `optional` is not.
fn members(event: &Event, out: &mut Vec<u8>) {
    match event {
        Event::RunStarted { thread_id, run_id } => {
            text(out, 2, thread_id.as_str());
            text(out, 3, run_id.as_str());
            optional(out, 6, PROTOCOL_VERSION);
        }
        Event::RunFinished(finished) => run_finished(finished, out),
        Event::RunError { message, code } => {
            optional(out, 2, code.as_str());
            text(out, 3, message);
        }
        Event::StepStarted { step_name } | Event::StepFinished { step_name } => text(out, 2, step_name),
        Event::TextMessageStart { message_id } => {
            text(out, 2, message_id.as_str());
            optional(out, 3, "assistant");
        }
        Event::TextMessageContent { message_id, delta } => {
            text(out, 2, message_id.as_str());
            text(out, 3, delta);
        }
        Event::TextMessageEnd { message_id } => text(out, 2, message_id.as_str()),
        Event::ReasoningStart { message_id }
        | Event::ReasoningMessageEnd { message_id }
        | Event::ReasoningEnd { message_id } => text(out, 3, message_id.as_str()),
        Event::ReasoningMessageStart { message_id } => {
            text(out, 3, message_id.as_str());
            text(out, 4, "reasoning");
        }
        Event::ReasoningMessageContent { message_id, delta } => {
            text(out, 3, message_id.as_str());
            text(out, 4, delta);
        }
        Event::ToolCallStart {
            tool_call_id,
            tool_call_name,
            parent_message_id,
        } => {
            text(out, 2, tool_call_id.as_str());
            text(out, 3, tool_call_name);
            optional(out, 4, parent_message_id.as_str());
        }
        Event::ToolCallArgs { tool_call_id, delta } => {
            text(out, 2, tool_call_id.as_str());
            text(out, 3, delta);
        }
        Event::ToolCallEnd { tool_call_id } => text(out, 2, tool_call_id.as_str()),
        Event::ToolCallResult {
            message_id,
            tool_call_id,
            content,
        } => {
            text(out, 3, message_id.as_str());
            text(out, 4, tool_call_id.as_str());
            optional(out, 5, content);
            optional(out, 6, "tool");
        }
    }
}

fn run_finished(finished: &RunFinished, out: &mut Vec<u8>) {
    text(out, 2, finished.thread_id.as_str());
    text(out, 3, finished.run_id.as_str());
    // As in SSE: the schema has no `result: null`.
    if let Some(result) = finished.result.as_ref().filter(|result| !result.is_null()) {
        value(out, 4, result);
    }
    match &finished.outcome {
        Some(Outcome::Success { .. }) => text(out, 5, "success"),
        Some(Outcome::Cancelled) => text(out, 5, "cancelled"),
        None => {}
    }
    for entry in &finished.usage {
        usage(out, entry);
    }
    if let Some(Outcome::Success {
        pending_tool_call_ids,
    }) = &finished.outcome
    {
        for id in pending_tool_call_ids {
            optional(out, 8, id.as_str());
        }
    }
}

fn usage(out: &mut Vec<u8>, usage: &TokenUsage) {
    let entry = open(out, 7);
    for (field, label) in [(1, &usage.provider), (2, &usage.model)] {
        if let Some(label) = label {
            optional(out, field, label);
        }
    }
    let counts = [
        (3, usage.input_tokens),
        (4, usage.output_tokens),
        (5, usage.total_tokens),
        (6, usage.reasoning_tokens),
        (7, usage.cached_input_tokens),
        (8, usage.cache_write_input_tokens),
    ];
    for (field, count) in counts {
        if let Some(count) = count {
            number(out, field, count);
        }
    }
    close(out, entry);
}

/// `google.protobuf.Value`; all its numbers are doubles.
fn value(out: &mut Vec<u8>, field: u32, json: &Value) {
    let start = open(out, field);
    match json {
        Value::Null => number(out, 1, 0),
        Value::Number(double) => {
            tag(out, 2, FIXED_64);
            out.extend_from_slice(&numbers::double(double).unwrap_or(f64::NAN).to_le_bytes());
        }
        Value::String(string) => optional(out, 3, string),
        Value::Bool(flag) => number(out, 4, u64::from(*flag)),
        Value::Object(members) => {
            let object = open(out, 5);
            for (name, member) in members {
                let entry = open(out, 1);
                text(out, 1, name);
                value(out, 2, member);
                close(out, entry);
            }
            close(out, object);
        }
        Value::Array(items) => {
            let list = open(out, 6);
            for item in items {
                value(out, 1, item);
            }
            close(out, list);
        }
    }
    close(out, start);
}

fn text(out: &mut Vec<u8>, field: u32, text: &str) {
    if !text.is_empty() {
        optional(out, field, text);
    }
}

fn optional(out: &mut Vec<u8>, field: u32, text: &str) {
    tag(out, field, LENGTH_DELIMITED);
    varint(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

fn number(out: &mut Vec<u8>, field: u32, number: u64) {
    tag(out, field, VARINT);
    varint(out, number);
}

fn tag(out: &mut Vec<u8>, field: u32, wire_type: u32) {
    varint(out, u64::from(field << 3 | wire_type));
}

fn varint(out: &mut Vec<u8>, mut rest: u64) {
    while rest >= 0x80 {
        out.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    out.push(rest as u8);
}

/// Begins a message; [`close`] takes what this gives.
fn open(out: &mut Vec<u8>, field: u32) -> usize {
    tag(out, field, LENGTH_DELIMITED);
    out.len()
}

/// Puts the length, known only now, before the message.
fn close(out: &mut Vec<u8>, start: usize) {
    let (mut place, mut rest) = (start, out.len() - start);
    while rest >= 0x80 {
        out.insert(place, rest as u8 | 0x80);
        place += 1;
        rest >>= 7;
    }
    out.insert(place, rest as u8);
}

#[cfg(test)]
#[path = "protobuf_tests.rs"]
mod tests;
