use std::time::Duration;

use super::*;
use crate::protocol::decode::NOTE_MAX_COUNT;

#[test]
fn lone_surrogates_become_replacement_characters() {
    let decoded = decode(
        r#"{"threadId":"t","runId":"r","messages":[{"id":"u","role":"user","content":"\ud83d \ud83d\ude80 \\ud83d"}]}"#,
    );
    assert_eq!(
        decoded.input.messages,
        [user("u", Content::Text("\u{fffd} 🚀 \\ud83d".to_owned()))]
    );
}

#[test]
fn a_body_that_is_no_object_is_malformed() {
    for (body, message) in [
        ("", "The body is not valid JSON (line 1, column 0)."),
        ("[]", "The body must be a JSON object."),
        ("null", "The body must be a JSON object."),
        (
            "{\"threadId\":",
            "The body is not valid JSON (line 1, column 12).",
        ),
        ("{} {}", "The body is not valid JSON (line 1, column 4)."),
    ] {
        let message = message.to_owned();
        assert_eq!(
            RunAgentInput::decode(body),
            Err(InputError::Malformed { message }),
            "{body}"
        );
    }
    let deep = format!(r#"{{"state":{}"#, "[".repeat(100_000));
    let message = "The body is nested more than 127 levels deep.".to_owned();
    assert_eq!(
        RunAgentInput::decode(&deep),
        Err(InputError::Malformed { message })
    );
}

#[test]
fn no_cut_and_no_changed_byte_breaks_the_reader() {
    let body = r#"{"threadId":"é","runId":"\ud83d\ude80","protocolVersion":"1.0","messages":[{"id":"a","role":"user","content":[{"type":"image","source":{"type":"url","value":"🚀"}}]},{"id":"b","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}],"tools":[{"name":"n","description":"d","parameters":{"a":[1.0,-2e3]}}],"forwardedProps":{"agentId":"x","modelSettings":{"seed":1},"structuredOutput":{"schema":"{}"}}}"#;
    assert!(RunAgentInput::decode(body).is_ok());
    for at in 0..body.len() {
        let cut = String::from_utf8_lossy(&body.as_bytes()[..at]);
        assert!(
            matches!(RunAgentInput::decode(&cut), Err(InputError::Malformed { .. })),
            "{cut}"
        );
    }
    let mut state = 1u64;
    for _ in 0..20_000 {
        let mut bytes = body.as_bytes().to_vec();
        for _ in 0..3 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let (at, byte) = ((state >> 33) as usize % bytes.len(), (state >> 56) as u8);
            bytes[at] = if byte < 128 {
                b"{}[]\",:\\nu0d1e"[usize::from(byte) % 14]
            } else {
                byte
            };
        }
        // The verdict is free; that there is one is what is asserted.
        let _ = RunAgentInput::decode(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn large_bodies_take_linear_time() {
    let started = Stopwatch::start();
    let message = json!({"id": "u", "role": "user", "content": "x".repeat(10_000_000)});
    assert_eq!(
        decode_with(json!({"messages": [message]})).input.messages.len(),
        1
    );
    let escapes = format!(
        r#"{{"threadId":"t","runId":"r","messages":[],"state":"{}"}}"#,
        r"\ud83d".repeat(1_500_000)
    );
    assert_eq!(
        decode(&escapes).input.state,
        Some(Value::String("\u{fffd}".repeat(1_500_000)))
    );
    let members: Vec<String> = (0..200_000).map(|index| format!(r#""m{index}":0"#)).collect();
    let unknown = format!(
        r#"{{"threadId":"t","runId":"r","messages":[],{}}}"#,
        members.join(",")
    );
    assert_eq!(decode(&unknown).warnings.len(), NOTE_MAX_COUNT);
    let wrong = format!(
        r#"{{"threadId":"t","runId":"r","messages":[{}0]}}"#,
        "0,".repeat(200_000)
    );
    assert_eq!(issues_of(&wrong).len(), NOTE_MAX_COUNT);
    assert!(
        started.elapsed() < Duration::from_secs(30),
        "took {:?}",
        started.elapsed()
    );
}

/// A clock for tests only: the crate itself must never read one.
struct Stopwatch(std::time::Instant);

impl Stopwatch {
    #[expect(clippy::disallowed_methods, reason = "native test, no wasm")]
    fn start() -> Self {
        Self(std::time::Instant::now())
    }

    fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}
