use serde_json::json;

use super::*;
use crate::binding::sse;
use crate::protocol::event::RunErrorCode;
use crate::protocol::id::{MessageId, RunId, ThreadId, ToolCallId};

fn frame(event: &Event) -> Vec<u8> {
    let mut out = Vec::new();
    encode_event(event, &mut out);
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The message of a frame, its length checked.
fn message(event: &Event) -> String {
    let frame = frame(event);
    let (header, message) = frame.split_at(HEADER_BYTES);
    assert_eq!(header, (message.len() as u32).to_be_bytes());
    hex(message)
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

/// What the reference encoder writes. Source: AG-UI 4.
fn vectors() -> Vec<(Event, &'static str)> {
    let message_id = || MessageId::new("m");
    let tool_call_id = || ToolCallId::new("c");
    let step_name = || "s".to_owned();
    vec![
        (
            Event::RunStarted {
                thread_id: ThreadId::new("t"),
                run_id: RunId::new("r"),
            },
            "620f0a02080b1201741a01723203312e30",
        ),
        (Event::RunFinished(finished()), "6a0a0a02080c1201741a0172"),
        (
            Event::RunError {
                message: "boom".to_owned(),
                code: RunErrorCode::Cancelled,
            },
            // The published vector has the code `E`; ours are of a closed set.
            "72150a02080d120963616e63656c6c65641a04626f6f6d",
        ),
        (
            Event::StepStarted {
                step_name: step_name(),
            },
            "7a070a02080e120173",
        ),
        (
            Event::StepFinished {
                step_name: step_name(),
            },
            "8201070a02080f120173",
        ),
        (
            Event::TextMessageStart {
                message_id: message_id(),
            },
            "0a100a0012016d1a09617373697374616e74",
        ),
        (
            Event::TextMessageContent {
                message_id: message_id(),
                delta: "hi".to_owned(),
            },
            "120b0a02080112016d1a026869",
        ),
        (
            Event::TextMessageEnd {
                message_id: message_id(),
            },
            // The published vector has a timestamp, which we do not send.
            "1a070a02080212016d",
        ),
        (
            Event::ReasoningStart {
                message_id: message_id(),
            },
            "ca01070a0208181a016d",
        ),
        (
            Event::ReasoningMessageStart {
                message_id: message_id(),
            },
            "d201120a0208191a016d2209726561736f6e696e67",
        ),
        (
            Event::ReasoningMessageContent {
                message_id: message_id(),
                delta: "hm".to_owned(),
            },
            "da010b0a02081a1a016d2202686d",
        ),
        (
            Event::ReasoningMessageEnd {
                message_id: message_id(),
            },
            "e201070a02081b1a016d",
        ),
        (
            Event::ReasoningEnd {
                message_id: message_id(),
            },
            "f201070a02081d1a016d",
        ),
        (
            Event::ToolCallStart {
                tool_call_id: tool_call_id(),
                tool_call_name: "n".to_owned(),
                parent_message_id: message_id(),
            },
            "220d0a0208031201631a016e22016d",
        ),
        (
            Event::ToolCallArgs {
                tool_call_id: tool_call_id(),
                delta: "{}".to_owned(),
            },
            "2a0b0a0208041201631a027b7d",
        ),
        (
            Event::ToolCallEnd {
                tool_call_id: tool_call_id(),
            },
            "32070a020805120163",
        ),
        (
            Event::ToolCallResult {
                message_id: MessageId::new("q"),
                tool_call_id: tool_call_id(),
                content: "ok".to_owned(),
            },
            "b201140a0208151a01712201632a026f6b3204746f6f6c",
        ),
    ]
}

/// RUN_FINISHED as 1.0 peers may see it.
fn finished_vectors() -> Vec<(Event, &'static str)> {
    vec![
        (
            Event::RunFinished(RunFinished {
                result: Some(json!({"a": 1})),
                outcome: Some(Outcome::Success {
                    pending_tool_call_ids: vec![ToolCallId::new("c")],
                }),
                usage: vec![TokenUsage {
                    provider: Some("p".to_owned()),
                    input_tokens: Some(0),
                    output_tokens: Some(2),
                    ..TokenUsage::default()
                }],
                ..finished()
            }),
            "6a330a02080c1201741a017222122a100a0e0a0161120911000000000000f03f2a07737563636573733a070a017018002002420163",
        ),
        (
            Event::RunFinished(RunFinished {
                outcome: Some(Outcome::Cancelled),
                ..finished()
            }),
            "6a150a02080c1201741a01722a0963616e63656c6c6564",
        ),
    ]
}

#[test]
fn each_kind_has_the_bytes_of_the_reference() {
    let kinds: Vec<_> = vectors().iter().map(|(event, _)| event.kind()).collect();
    assert_eq!(kinds, EventKind::ALL);
    for (event, bytes) in vectors().into_iter().chain(finished_vectors()) {
        assert_eq!(message(&event), bytes, "{event:?}");
    }
}

#[test]
fn empty_texts_are_left_out_and_optional_ones_are_not() {
    let empty = Event::TextMessageContent {
        message_id: MessageId::new("m"),
        delta: String::new(),
    };
    assert_eq!(message(&empty), "12070a02080112016d");
    let stateless = Event::RunStarted {
        thread_id: ThreadId::new(""),
        run_id: RunId::new("r"),
    };
    assert_eq!(message(&stateless), "620c0a02080b1a01723203312e30");
    let orphan = Event::ToolCallStart {
        tool_call_id: ToolCallId::new("c"),
        tool_call_name: "n".to_owned(),
        parent_message_id: MessageId::new(""),
    };
    assert_eq!(message(&orphan), "220c0a0208031201631a016e2200");
}

#[test]
fn lengths_over_one_byte_are_varints() {
    let long = Event::StepStarted {
        step_name: "s".repeat(300),
    };
    assert_eq!(
        message(&long),
        format!("7ab3020a02080e12ac02{}", "73".repeat(300))
    );
}

#[test]
fn every_json_value_has_its_arm() {
    let result = json!([null, true, "x", {"": -0.5}]);
    let event = Event::RunFinished(RunFinished {
        result: Some(result),
        ..finished()
    });
    assert_eq!(
        message(&event),
        [
            "6a2c0a02080c1201741a0172",           // RUN_FINISHED t, r
            "2220",                               // result
            "321e",                               // a list of
            "0a020800",                           // null
            "0a022001",                           // true
            "0a031a0178",                         // "x"
            "0a0f2a0d0a0b120911000000000000e0bf", // an object whose member without a name is -0.5
        ]
        .concat()
    );
}

#[test]
fn frames_of_the_log_become_the_same_frames() {
    let (mut log, mut expected) = (Vec::new(), Vec::new());
    let awkward = Event::TextMessageContent {
        message_id: MessageId::new("m"),
        delta: "line\n\ndata: \"é 😀\"\r".to_owned(),
    };
    let events = vectors()
        .into_iter()
        .chain(finished_vectors())
        .map(|(event, _)| event);
    for event in events.chain([awkward]) {
        sse::encode_event(&event, &mut log);
        log.extend_from_slice(sse::KEEP_ALIVE);
        encode_event(&event, &mut expected);
    }
    assert_eq!(hex(&from_sse(&log)), hex(&expected));
    assert_eq!(from_sse(b""), b"");
}
