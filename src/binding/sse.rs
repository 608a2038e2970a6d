//! The SSE binding: one `data: <JSON>` frame per event, LF only (contract 2.4, D7).
//!
//! Written by hand into the caller's buffer: no value tree and no allocation per delta. JSON escapes every line break
//! inside a text, so a frame's only LFs are its own two.

use serde::Serialize;

use crate::protocol::event::{Event, EventKind, PROTOCOL_VERSION, RunFinished};
use crate::protocol::json;
use crate::protocol::json_text::write_text;

/// The comment sent while nothing else is. Source: contract 2.4.
pub const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// Appends an event's whole frame: `data: {"type":...}\n\n`. Source: contract 2.4.
pub fn encode_event(event: &Event, out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: ");
    encode_json(event, out);
    out.extend_from_slice(b"\n\n");
}

/// Appends an event's JSON object: `type` first, then its members in the schema's order, absent ones left out.
///
/// Source: contract 2.4, AG-UI 2.1.
pub fn encode_json(event: &Event, out: &mut Vec<u8>) {
    match event {
        Event::TextMessageContent { message_id, delta } => {
            // Nearly every event is one of these: the constant part is one copy.
            out.extend_from_slice(br#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"#);
            write_text(message_id.as_str(), out);
            member(out, r#","delta":"#, delta);
        }
        Event::RunStarted { thread_id, run_id } => {
            open(out, event.kind());
            member(out, r#","threadId":"#, thread_id.as_str());
            member(out, r#","runId":"#, run_id.as_str());
            member(out, r#","protocolVersion":"#, PROTOCOL_VERSION);
        }
        Event::RunFinished(finished) => {
            open(out, event.kind());
            run_finished(out, finished);
        }
        Event::RunError { message, code } => {
            open(out, event.kind());
            member(out, r#","message":"#, message);
            member(out, r#","code":"#, code.as_str());
        }
        Event::StepStarted { step_name } | Event::StepFinished { step_name } => {
            open(out, event.kind());
            member(out, r#","stepName":"#, step_name);
        }
        Event::TextMessageStart { message_id } => {
            open(out, event.kind());
            member(out, r#","messageId":"#, message_id.as_str());
            member(out, r#","role":"#, "assistant");
        }
        Event::ReasoningMessageStart { message_id } => {
            open(out, event.kind());
            member(out, r#","messageId":"#, message_id.as_str());
            member(out, r#","role":"#, "reasoning");
        }
        Event::ReasoningMessageContent { message_id, delta } => {
            open(out, event.kind());
            member(out, r#","messageId":"#, message_id.as_str());
            member(out, r#","delta":"#, delta);
        }
        Event::TextMessageEnd { message_id }
        | Event::ReasoningStart { message_id }
        | Event::ReasoningMessageEnd { message_id }
        | Event::ReasoningEnd { message_id } => {
            open(out, event.kind());
            member(out, r#","messageId":"#, message_id.as_str());
        }
        Event::ToolCallStart {
            tool_call_id,
            tool_call_name,
            parent_message_id,
        } => {
            open(out, event.kind());
            member(out, r#","toolCallId":"#, tool_call_id.as_str());
            member(out, r#","toolCallName":"#, tool_call_name);
            member(out, r#","parentMessageId":"#, parent_message_id.as_str());
        }
        Event::ToolCallArgs { tool_call_id, delta } => {
            open(out, event.kind());
            member(out, r#","toolCallId":"#, tool_call_id.as_str());
            member(out, r#","delta":"#, delta);
        }
        Event::ToolCallEnd { tool_call_id } => {
            open(out, event.kind());
            member(out, r#","toolCallId":"#, tool_call_id.as_str());
        }
        Event::ToolCallResult {
            message_id,
            tool_call_id,
            content,
        } => {
            open(out, event.kind());
            member(out, r#","messageId":"#, message_id.as_str());
            member(out, r#","toolCallId":"#, tool_call_id.as_str());
            member(out, r#","content":"#, content);
            member(out, r#","role":"#, "tool");
        }
    }
    out.push(b'}');
}

fn run_finished(out: &mut Vec<u8>, finished: &RunFinished) {
    member(out, r#","threadId":"#, finished.thread_id.as_str());
    member(out, r#","runId":"#, finished.run_id.as_str());
    // The schema has no `result: null`.
    if let Some(result) = finished.result.as_ref().filter(|result| !result.is_null()) {
        json_member(out, r#","result":"#, result);
    }
    if let Some(outcome) = &finished.outcome {
        json_member(out, r#","outcome":"#, outcome);
    }
    if !finished.usage.is_empty() {
        json_member(out, r#","usage":"#, &finished.usage);
    }
}

fn open(out: &mut Vec<u8>, kind: EventKind) {
    out.extend_from_slice(br#"{"type":""#);
    out.extend_from_slice(kind.as_str().as_bytes());
    out.push(b'"');
}

fn member(out: &mut Vec<u8>, key: &str, text: &str) {
    out.extend_from_slice(key.as_bytes());
    write_text(text, out);
}

fn json_member<T: Serialize + ?Sized>(out: &mut Vec<u8>, key: &str, member: &T) {
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(json::text(member).as_bytes());
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::protocol::event::{Outcome, RunErrorCode, TokenUsage};
    use crate::protocol::id::{MessageId, RunId, ThreadId, ToolCallId};

    fn frame(event: &Event) -> String {
        let mut out = Vec::new();
        encode_event(event, &mut out);
        String::from_utf8(out).unwrap()
    }

    fn content(delta: &str) -> Event {
        Event::TextMessageContent {
            message_id: MessageId::new("m"),
            delta: delta.to_owned(),
        }
    }

    fn finished() -> RunFinished {
        RunFinished {
            thread_id: ThreadId::new("t"),
            run_id: RunId::new("r"),
            result: None,
            outcome: None,
            usage: Vec::new(),
        }
    }

    /// One event of each kind with its object on the wire.
    fn table() -> Vec<(Event, &'static str)> {
        let message_id = || MessageId::new("m");
        let tool_call_id = || ToolCallId::new("c");
        let step_name = || "step-1".to_owned();
        vec![
            (
                Event::RunStarted {
                    thread_id: ThreadId::new(""),
                    run_id: RunId::new("r"),
                },
                r#"{"type":"RUN_STARTED","threadId":"","runId":"r","protocolVersion":"1.0"}"#,
            ),
            (
                Event::RunFinished(finished()),
                r#"{"type":"RUN_FINISHED","threadId":"t","runId":"r"}"#,
            ),
            (
                Event::RunError {
                    message: "It failed.".to_owned(),
                    code: RunErrorCode::StorageError,
                },
                r#"{"type":"RUN_ERROR","message":"It failed.","code":"storage_error"}"#,
            ),
            (
                Event::StepStarted {
                    step_name: step_name(),
                },
                r#"{"type":"STEP_STARTED","stepName":"step-1"}"#,
            ),
            (
                Event::StepFinished {
                    step_name: step_name(),
                },
                r#"{"type":"STEP_FINISHED","stepName":"step-1"}"#,
            ),
            (
                Event::TextMessageStart {
                    message_id: message_id(),
                },
                r#"{"type":"TEXT_MESSAGE_START","messageId":"m","role":"assistant"}"#,
            ),
            (
                content("Hi "),
                r#"{"type":"TEXT_MESSAGE_CONTENT","messageId":"m","delta":"Hi "}"#,
            ),
            (
                Event::TextMessageEnd {
                    message_id: message_id(),
                },
                r#"{"type":"TEXT_MESSAGE_END","messageId":"m"}"#,
            ),
            (
                Event::ReasoningStart {
                    message_id: message_id(),
                },
                r#"{"type":"REASONING_START","messageId":"m"}"#,
            ),
            (
                Event::ReasoningMessageStart {
                    message_id: message_id(),
                },
                r#"{"type":"REASONING_MESSAGE_START","messageId":"m","role":"reasoning"}"#,
            ),
            (
                Event::ReasoningMessageContent {
                    message_id: message_id(),
                    delta: "hm".to_owned(),
                },
                r#"{"type":"REASONING_MESSAGE_CONTENT","messageId":"m","delta":"hm"}"#,
            ),
            (
                Event::ReasoningMessageEnd {
                    message_id: message_id(),
                },
                r#"{"type":"REASONING_MESSAGE_END","messageId":"m"}"#,
            ),
            (
                Event::ReasoningEnd {
                    message_id: message_id(),
                },
                r#"{"type":"REASONING_END","messageId":"m"}"#,
            ),
            (
                Event::ToolCallStart {
                    tool_call_id: tool_call_id(),
                    tool_call_name: "f".to_owned(),
                    parent_message_id: message_id(),
                },
                r#"{"type":"TOOL_CALL_START","toolCallId":"c","toolCallName":"f","parentMessageId":"m"}"#,
            ),
            (
                Event::ToolCallArgs {
                    tool_call_id: tool_call_id(),
                    delta: r#"{"a":1.0}"#.to_owned(),
                },
                r#"{"type":"TOOL_CALL_ARGS","toolCallId":"c","delta":"{\"a\":1.0}"}"#,
            ),
            (
                Event::ToolCallEnd {
                    tool_call_id: tool_call_id(),
                },
                r#"{"type":"TOOL_CALL_END","toolCallId":"c"}"#,
            ),
            (
                Event::ToolCallResult {
                    message_id: message_id(),
                    tool_call_id: tool_call_id(),
                    content: "ok".to_owned(),
                },
                r#"{"type":"TOOL_CALL_RESULT","messageId":"m","toolCallId":"c","content":"ok","role":"tool"}"#,
            ),
        ]
    }

    #[test]
    fn each_kind_is_one_whole_frame() {
        let table = table();
        let kinds: Vec<_> = table.iter().map(|(event, _)| event.kind()).collect();
        assert_eq!(kinds, EventKind::ALL);
        for (event, object) in table {
            assert_eq!(frame(&event), format!("data: {object}\n\n"));
        }
    }

    #[test]
    fn run_finished_carries_what_its_peer_may_see() {
        let event = Event::RunFinished(RunFinished {
            result: Some(json!({"finishReason": "length"})),
            outcome: Some(Outcome::Success {
                pending_tool_call_ids: vec![ToolCallId::new("c")],
            }),
            usage: vec![TokenUsage {
                provider: Some("demo".to_owned()),
                input_tokens: Some(3),
                ..TokenUsage::default()
            }],
            ..finished()
        });
        assert_eq!(
            frame(&event),
            concat!(
                r#"data: {"type":"RUN_FINISHED","threadId":"t","runId":"r","result":{"finishReason":"length"},"#,
                r#""outcome":{"type":"success","pendingToolCallIds":["c"]},"#,
                r#""usage":[{"provider":"demo","inputTokens":3}]}"#,
                "\n\n"
            )
        );
        let event = Event::RunFinished(RunFinished {
            result: Some(Value::Null),
            outcome: Some(Outcome::Cancelled),
            ..finished()
        });
        assert_eq!(
            frame(&event),
            "data: {\"type\":\"RUN_FINISHED\",\"threadId\":\"t\",\"runId\":\"r\",\"outcome\":{\"type\":\"cancelled\"}}\n\n"
        );
    }

    #[test]
    fn texts_are_escaped_and_come_back_exactly() {
        let escapes = [
            ("\"\\", r#""\"\\""#),
            ("a\r\n\tb", r#""a\r\n\tb""#),
            ("\u{0}\u{1b}\u{1f}\u{7f}", "\"\\u0000\\u001b\\u001f\u{7f}\""),
            ("\u{2028}\u{2029}", "\"\u{2028}\u{2029}\""),
            ("é 漢 😀", "\"é 漢 😀\""),
        ];
        for (text, escaped) in escapes {
            let frame = frame(&content(text));
            assert_eq!(
                frame,
                format!(
                    "data: {{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"m\",\"delta\":{escaped}}}\n\n"
                )
            );
            assert_eq!(frame.matches(['\n', '\r']).count(), 2);
            let object: Value = serde_json::from_str(&frame["data: ".len()..]).unwrap();
            assert_eq!(object["delta"], json!(text));
        }
    }

    #[test]
    fn frames_are_appended() {
        let mut out = KEEP_ALIVE.to_vec();
        encode_event(&content("a"), &mut out);
        encode_json(&content("b"), &mut out);
        assert_eq!(
            String::from_utf8(out).unwrap(),
            concat!(
                ": keep-alive\n\n",
                "data: {\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"m\",\"delta\":\"a\"}\n\n",
                "{\"type\":\"TEXT_MESSAGE_CONTENT\",\"messageId\":\"m\",\"delta\":\"b\"}"
            )
        );
    }
}
