//! Our own events read back from their JSON: a run's log is kept as SSE, and not every viewer reads that.

use serde_json::{Map, Value};

use crate::protocol::event::{Event, EventKind, Outcome, RunErrorCode, RunFinished};
use crate::protocol::id::{MessageId, RunId, ThreadId, ToolCallId};
use crate::protocol::json;
use crate::protocol::read;

/// Reads an object that [`super::sse::encode_json`] wrote; `None` for any other.
pub fn decode(json: &[u8]) -> Option<Event> {
    let json = str::from_utf8(json).ok()?;
    let mut object = Members {
        left: json::object(json)?,
        is_whole: true,
    };
    let name = object.text("type");
    let kind = EventKind::ALL.iter().find(|kind| kind.as_str() == name)?;
    let event = match kind {
        EventKind::RunStarted => Event::RunStarted {
            thread_id: object.thread_id(),
            run_id: object.run_id(),
        },
        EventKind::RunFinished => Event::RunFinished(run_finished(&mut object)?),
        EventKind::RunError => Event::RunError {
            message: object.text("message"),
            code: run_error_code(&object.text("code"))?,
        },
        EventKind::StepStarted => Event::StepStarted {
            step_name: object.text("stepName"),
        },
        EventKind::StepFinished => Event::StepFinished {
            step_name: object.text("stepName"),
        },
        EventKind::TextMessageStart => Event::TextMessageStart {
            message_id: object.message_id("messageId"),
        },
        EventKind::TextMessageContent => Event::TextMessageContent {
            message_id: object.message_id("messageId"),
            delta: object.text("delta"),
        },
        EventKind::TextMessageEnd => Event::TextMessageEnd {
            message_id: object.message_id("messageId"),
        },
        EventKind::ReasoningStart => Event::ReasoningStart {
            message_id: object.message_id("messageId"),
        },
        EventKind::ReasoningMessageStart => Event::ReasoningMessageStart {
            message_id: object.message_id("messageId"),
        },
        EventKind::ReasoningMessageContent => Event::ReasoningMessageContent {
            message_id: object.message_id("messageId"),
            delta: object.text("delta"),
        },
        EventKind::ReasoningMessageEnd => Event::ReasoningMessageEnd {
            message_id: object.message_id("messageId"),
        },
        EventKind::ReasoningEnd => Event::ReasoningEnd {
            message_id: object.message_id("messageId"),
        },
        EventKind::ToolCallStart => Event::ToolCallStart {
            tool_call_id: object.tool_call_id(),
            tool_call_name: object.text("toolCallName"),
            parent_message_id: object.message_id("parentMessageId"),
        },
        EventKind::ToolCallArgs => Event::ToolCallArgs {
            tool_call_id: object.tool_call_id(),
            delta: object.text("delta"),
        },
        EventKind::ToolCallEnd => Event::ToolCallEnd {
            tool_call_id: object.tool_call_id(),
        },
        EventKind::ToolCallResult => Event::ToolCallResult {
            message_id: object.message_id("messageId"),
            tool_call_id: object.tool_call_id(),
            content: object.text("content"),
        },
    };
    object.is_whole.then_some(event)
}

fn run_finished(object: &mut Members) -> Option<RunFinished> {
    let outcome = match object.left.shift_remove("outcome") {
        Some(outcome) => Some(read_outcome(&outcome)?),
        None => None,
    };
    let usage = object
        .left
        .shift_remove("usage")
        .unwrap_or(Value::Array(Vec::new()));
    Some(RunFinished {
        thread_id: object.thread_id(),
        run_id: object.run_id(),
        result: object.left.shift_remove("result"),
        outcome,
        usage: read::from_value(&usage).ok()?,
    })
}

fn read_outcome(outcome: &Value) -> Option<Outcome> {
    match outcome.get("type")?.as_str()? {
        "cancelled" => Some(Outcome::Cancelled),
        "success" => {
            let ids = json::texts(outcome.get("pendingToolCallIds")?)?;
            Some(Outcome::Success {
                pending_tool_call_ids: ids.into_iter().map(ToolCallId::new).collect(),
            })
        }
        _ => None,
    }
}

fn run_error_code(text: &str) -> Option<RunErrorCode> {
    RunErrorCode::ALL
        .iter()
        .copied()
        .find(|code| code.as_str() == text)
}

/// What is left to read of an object.
struct Members {
    left: Map<String, Value>,
    /// Whether every text that was looked for was there.
    is_whole: bool,
}

impl Members {
    fn text(&mut self, name: &str) -> String {
        match self.left.shift_remove(name) {
            Some(Value::String(text)) => text,
            _ => {
                self.is_whole = false;
                String::new()
            }
        }
    }

    fn thread_id(&mut self) -> ThreadId {
        ThreadId::new(self.text("threadId"))
    }

    fn run_id(&mut self) -> RunId {
        RunId::new(self.text("runId"))
    }

    fn message_id(&mut self, name: &str) -> MessageId {
        MessageId::new(self.text(name))
    }

    fn tool_call_id(&mut self) -> ToolCallId {
        ToolCallId::new(self.text("toolCallId"))
    }
}
