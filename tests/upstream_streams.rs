//! The recorded cases of `fixtures/upstream-streams.json`, for every wire format: what users of
//! comparable systems reported as faults. Each body is replayed whole, cut at every byte, and byte by byte.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

#[path = "support/replay.rs"]
mod replay;

use std::collections::BTreeMap;

use io_bridge::provider::table::Wire;
use io_bridge::provider::{FinishReason, ProviderError, codec};
use replay::{Answer, Replay, Said};
use serde::Deserialize;
use serde_json::Value;

#[derive(Deserialize)]
struct Case {
    id: String,
    provider: String,
    status: u16,
    headers: BTreeMap<String, String>,
    chunks: Vec<String>,
    expect: Expected,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Expected {
    text: String,
    tool_calls: Vec<ExpectedCall>,
    outcome: String,
}

#[derive(Debug, PartialEq, Deserialize)]
struct ExpectedCall {
    name: String,
    arguments: Value,
}

/// The wire format of a case.
fn wire_of(provider: &str) -> Wire {
    match provider {
        "openai-chat" => Wire::OpenAiChat,
        "anthropic" => Wire::Anthropic,
        "openai-responses" => Wire::OpenAiResponses,
        "gemini" => Wire::Google,
        "mastra" => Wire::Mastra,
        other => panic!("a wire format nobody decided about: {other}"),
    }
}

fn cases() -> Vec<Case> {
    serde_json::from_str(include_str!("fixtures/upstream-streams.json")).unwrap()
}

impl Case {
    fn body(&self) -> Vec<u8> {
        self.chunks.iter().flat_map(|chunk| bytes_of(chunk)).collect()
    }

    fn run(&self, wire: Wire) -> Replay {
        if self.status == 200 {
            return replay::replay_every_way(codec(wire), &self.body());
        }
        let headers: Vec<_> = self.headers.clone().into_iter().collect();
        Replay {
            events: vec![],
            end: Err(codec(wire).refusal(self.status, &headers, &self.body())),
        }
    }
}

/// `b64:` marks base64, for chunks that are not UTF-8 by themselves.
fn bytes_of(chunk: &str) -> Vec<u8> {
    let Some(base64) = chunk.strip_prefix("b64:") else {
        return chunk.as_bytes().to_vec();
    };
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut bytes = Vec::new();
    let (mut bits, mut bit_count) = (0_u32, 0);
    for character in base64.trim_end_matches('=').bytes() {
        let value = alphabet.iter().position(|known| *known == character).unwrap();
        bits = (bits << 6) | u32::try_from(value).unwrap();
        bit_count += 6;
        if bit_count >= 8 {
            bit_count -= 8;
            bytes.push(u8::try_from((bits >> bit_count) & 0xFF).unwrap());
        }
    }
    bytes
}

/// How a run ends that sees this answer; D9 judges the finish reasons.
fn outcome(replay: &Replay, answer: &Answer) -> &'static str {
    let has_calls = answer.said.iter().any(|said| matches!(said, Said::Call { .. }));
    match (&replay.end, answer.finish) {
        (Err(_), _) | (Ok(()), Some(FinishReason::ContentFilter)) => "error",
        (Ok(()), Some(FinishReason::Length)) if !has_calls => "error",
        (Ok(()), _) => "finished",
    }
}

#[test]
fn every_case_shows_what_it_expects_wherever_its_body_is_cut() {
    let mut tried = 0;
    for case in cases() {
        let wire = wire_of(&case.provider);
        tried += 1;
        let replay = case.run(wire);
        let answer = Answer::of(&replay.events);
        let mut text = String::new();
        let mut tool_calls = Vec::new();
        for said in &answer.said {
            match said {
                Said::Text(more) => text.push_str(more),
                Said::Reasoning(_) => {}
                Said::Call { name, arguments, .. } => tool_calls.push(ExpectedCall {
                    name: name.clone(),
                    arguments: arguments.clone(),
                }),
            }
        }
        let shown = (text, tool_calls, outcome(&replay, &answer).to_owned());
        let expected = (case.expect.text, case.expect.tool_calls, case.expect.outcome);
        assert_eq!(shown, expected, "{}: {replay:?}", case.id);
    }
    assert_eq!(tried, 74);
}

#[test]
fn every_failing_case_fails_for_its_own_reason() {
    let refused = |status, detail: &str| ProviderError::Refused {
        status,
        retryable: true,
        retry_after_ms: None,
        detail: detail.to_owned(),
    };
    let expected = BTreeMap::from([
        ("an-07", refused(200, "overloaded_error Too busy right now")),
        ("an-08", refused(200, "api_error Internal server error")),
        ("an-09", ProviderError::Truncated),
        (
            "an-12",
            ProviderError::Refused {
                status: 529,
                retryable: true,
                retry_after_ms: Some(1000),
                detail: "overloaded_error Too busy right now".to_owned(),
            },
        ),
        (
            "an-14",
            ProviderError::Refused {
                status: 400,
                retryable: false,
                retry_after_ms: None,
                detail: "invalid_request_error messages.2: a tool_use block has no tool_result after it"
                    .to_owned(),
            },
        ),
        ("ge-04", refused(200, "finish_reason MALFORMED_FUNCTION_CALL")),
        ("ge-08", refused(503, "unavailable Model busy, try later.")),
        ("ge-09", ProviderError::Truncated),
        (
            "ge-10",
            ProviderError::RateLimited {
                retry_after_ms: Some(3000),
                detail: "resource_exhausted Quota reached".to_owned(),
            },
        ),
        ("ma-06", ProviderError::Truncated),
        ("oc-26", ProviderError::OutputTruncated),
        ("oc-37", refused(503, "server_error engine queue is full")),
        ("oc-39", refused(200, "worker crashed")),
        (
            "oc-41",
            ProviderError::Malformed("the answer is a page, not a stream"),
        ),
        ("oc-42", ProviderError::Truncated),
        (
            "oc-46",
            ProviderError::Malformed("an event is no chat completion chunk"),
        ),
        (
            "oc-47",
            ProviderError::RateLimited {
                retry_after_ms: Some(2000),
                detail: "rate_limit_exceeded rate_limit_error slow down".to_owned(),
            },
        ),
        ("oc-49", refused(503, "no readable error")),
        ("oc-50", ProviderError::ContextLengthExceeded),
        (
            "or-06",
            ProviderError::RateLimited {
                retry_after_ms: None,
                detail: "rate_limit_exceeded error Too many requests".to_owned(),
            },
        ),
        ("or-07", ProviderError::OutputTruncated),
    ]);
    let cases = cases();
    let failed: BTreeMap<&str, ProviderError> = cases
        .iter()
        .filter_map(|case| Some((case.id.as_str(), case.run(wire_of(&case.provider)).end.err()?)))
        .collect();
    assert_eq!(failed, expected);
}
