//! What every provider must do, whatever its wire. A new one is an arm in [`conformance`] and a folder of fixtures:
//!
//! - `<scenario>.sse`: the bytes in which its upstream gives the answer that [`answers`] describes;
//! - `<scenario>.json`: `{status, headers, body}`, the upstream's way to refuse as [`refusals`] describes;
//! - `<scenario>.request.json`: `{method, url, headers, body}`, the request it must send for [`requests`].
//!
//! A scenario a provider cannot have is named in its arm with the reason; a fixture for it is then a failure too.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test that cannot go on fails"
)]

#[path = "support/model_requests.rs"]
mod model_requests;
#[path = "support/replay.rs"]
mod replay;

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use io_bridge::protocol::event::TokenUsage;
use io_bridge::protocol::message::ContentPart;
use io_bridge::protocol::read;
use io_bridge::provider::table::{self, PROVIDERS, ProviderEntry, Wire};
use io_bridge::provider::{FinishReason, ModelCall, ModelRequest, ModelTarget, ProviderError, Secret, codec};
use replay::{Answer, Said};
use serde_json::{Map, Value, json};

/// How a wire format takes part.
enum Conformance {
    /// With the fixtures of this folder of `tests/fixtures/providers`, all but the scenarios named here with the reason.
    Fixtures {
        folder: &'static str,
        skipped: &'static [(&'static str, &'static str)],
    },
    /// Not at all, for this reason.
    Exempt(&'static str),
}

fn conformance(wire: Wire) -> Conformance {
    match wire {
        Wire::Demo => Conformance::Exempt("it sends and reads no bytes"),
        Wire::OpenAiChat => Conformance::Fixtures {
            folder: "openai-chat",
            skipped: &[],
        },
        Wire::OpenAiResponses => Conformance::Fixtures {
            folder: "openai-responses",
            skipped: &[],
        },
        Wire::WorkersAi => Conformance::Exempt(
            "with an address it is the compatible server above, and its binding has tests of its own",
        ),
        Wire::AgUi => Conformance::Fixtures {
            folder: "ag-ui",
            skipped: &[(
                "content_filter",
                "the protocol has no finish reasons; an agent that withholds its answer fails",
            )],
        },
        Wire::Mastra => Conformance::Fixtures {
            folder: "mastra",
            skipped: &[(
                "context_length_exceeded",
                "a Mastra server opens its stream before it asks its model, and says it there",
            )],
        },
        Wire::Anthropic => Conformance::Fixtures {
            folder: "anthropic",
            skipped: &[],
        },
        Wire::Google => Conformance::Fixtures {
            folder: "google",
            skipped: &[("limit_in_tool_call", "calls come whole or not at all")],
        },
    }
}

/// How an answer ends for the one who reads it.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    Whole(FinishReason),
    Truncated,
    OutputTruncated,
    /// An error of the upstream's own, which may pass.
    Failed,
}

/// The answers: scenario, what is said, how it ends.
fn answers() -> Vec<(&'static str, Vec<Said>, End)> {
    let text = |text: &str| Said::Text(text.to_owned());
    let call = |id: &str, name: &str, arguments: Value| Said::Call {
        vendor_id: Some(id.to_owned()),
        name: name.to_owned(),
        arguments,
    };
    let weather = || call("call_a", "get_weather", json!({ "city": "Varna" }));
    let calls = End::Whole(FinishReason::ToolCalls);
    let stop = End::Whole(FinishReason::Stop);
    vec![
        ("text", vec![text("Hello, wörld.")], stop),
        ("tool_call", vec![weather()], calls),
        (
            "parallel_tool_calls",
            vec![weather(), call("call_b", "get_time", json!({}))],
            calls,
        ),
        ("text_and_tool_call", vec![text("Let me look."), weather()], calls),
        (
            "reasoning",
            vec![Said::Reasoning("Thinking.".to_owned()), text("42")],
            stop,
        ),
        ("empty_deltas", vec![text("some")], stop),
        ("truncated", vec![text("The answer is")], End::Truncated),
        ("error_mid_stream", vec![text("Once upon")], End::Failed),
        (
            "limit_in_text",
            vec![text("A long")],
            End::Whole(FinishReason::Length),
        ),
        ("limit_in_tool_call", vec![], End::OutputTruncated),
        (
            "content_filter",
            vec![text("It begins")],
            End::Whole(FinishReason::ContentFilter),
        ),
    ]
}

/// The usage that comes with `text`.
fn usage() -> TokenUsage {
    TokenUsage {
        input_tokens: Some(12),
        output_tokens: Some(5),
        total_tokens: Some(17),
        reasoning_tokens: Some(2),
        cached_input_tokens: Some(4),
        ..TokenUsage::default()
    }
}

/// The refusals: scenario, and whether an error is the right one.
type RefusalScenario = (&'static str, fn(&ProviderError) -> bool);

fn refusals() -> Vec<RefusalScenario> {
    vec![
        ("rate_limited", |error| {
            matches!(
                error,
                ProviderError::RateLimited {
                    retry_after_ms: Some(2000),
                    ..
                }
            )
        }),
        ("unauthorized", |error| {
            matches!(
                error,
                ProviderError::Refused {
                    status: 401,
                    retryable: false,
                    ..
                }
            )
        }),
        ("overloaded", |error| {
            matches!(
                error,
                ProviderError::Refused {
                    status: 503 | 529,
                    retryable: true,
                    retry_after_ms: None,
                    ..
                }
            )
        }),
        ("context_length_exceeded", |error| {
            matches!(error, ProviderError::ContextLengthExceeded)
        }),
    ]
}

/// The requests by scenario.
fn requests() -> Vec<(&'static str, ModelRequest)> {
    let mut requests = vec![
        ("plain", model_requests::plain()),
        ("tool_results", model_requests::tool_results()),
        ("roles_in_a_row", model_requests::roles_in_a_row()),
        ("settings", model_requests::settings()),
        ("structured_output", model_requests::structured_output()),
        ("media", model_requests::media()),
    ];
    requests.extend(model_requests::tool_choices());
    requests
}

/// One provider on its way through the suite.
struct Candidate {
    entry: &'static ProviderEntry,
    folder: PathBuf,
    skipped: BTreeSet<&'static str>,
}

impl Candidate {
    /// One provider of every wire format that takes part.
    fn all() -> Vec<Self> {
        let mut wires = Vec::new();
        let mut candidates = Vec::new();
        for entry in PROVIDERS {
            if wires.contains(&entry.wire) {
                continue;
            }
            wires.push(entry.wire);
            match conformance(entry.wire) {
                Conformance::Exempt(reason) => assert!(!reason.is_empty()),
                Conformance::Fixtures { folder, skipped } => candidates.push(Self {
                    entry,
                    folder: PathBuf::from(env!("CARGO_MANIFEST_DIR"))
                        .join("tests/fixtures/providers")
                        .join(folder),
                    skipped: skipped.iter().map(|(scenario, _)| *scenario).collect(),
                }),
            }
        }
        candidates
    }

    /// A scenario's fixture; `None` when the provider skips it.
    fn fixture(&self, scenario: &str, ending: &str) -> Option<Vec<u8>> {
        let path = self.folder.join(format!("{scenario}.{ending}"));
        if self.skipped.contains(scenario) {
            assert!(
                !path.exists(),
                "{} is skipped and has {}",
                self.entry.name,
                path.display()
            );
            return None;
        }
        Some(fs::read(&path).unwrap_or_else(|fault| panic!("{}: {fault}", path.display())))
    }

    fn target(&self) -> ModelTarget {
        ModelTarget {
            wire: self.entry.wire,
            provider: self.entry.name,
            base_url: "https://upstream.example.test/v1".to_owned(),
            api_key: Some(Secret::new("the-key")),
            model: "model-1".to_owned(),
            headers: Vec::new(),
            query: Vec::new(),
            wants_reasoning: false,
        }
    }
}

#[test]
fn every_provider_reads_every_answer_wherever_it_is_cut() {
    for candidate in Candidate::all() {
        for (scenario, said, end) in answers() {
            let Some(body) = candidate.fixture(scenario, "sse") else {
                continue;
            };
            let replay = replay::replay_every_way(codec(candidate.entry.wire), &body);
            let answer = Answer::of(&replay.events);
            let ended = match (&replay.end, answer.finish) {
                (Ok(()), Some(finish)) => End::Whole(finish),
                (Err(ProviderError::Truncated), None) => End::Truncated,
                (Err(ProviderError::OutputTruncated), None) => End::OutputTruncated,
                (
                    Err(ProviderError::Refused { retryable: true, .. } | ProviderError::RateLimited { .. }),
                    None,
                ) => End::Failed,
                unexpected => panic!("{} {scenario}: {unexpected:?}", candidate.entry.name),
            };
            assert_eq!(
                (answer.said, ended),
                (said, end),
                "{} {scenario}",
                candidate.entry.name
            );
            if scenario == "text" {
                assert_eq!(answer.usage, Some(usage()), "{} usage", candidate.entry.name);
            }
        }
    }
}

#[test]
fn every_provider_reads_every_refusal() {
    for candidate in Candidate::all() {
        for (scenario, is_right) in refusals() {
            let Some(fixture) = candidate.fixture(scenario, "json") else {
                continue;
            };
            let fixture: Value = serde_json::from_slice(&fixture).unwrap();
            let status = u16::try_from(fixture["status"].as_u64().unwrap()).unwrap();
            let header =
                |(name, value): (&String, &Value)| (name.clone(), value.as_str().unwrap().to_owned());
            let headers: Vec<_> = fixture["headers"]
                .as_object()
                .unwrap()
                .iter()
                .map(header)
                .collect();
            let body = fixture["body"].as_str().unwrap();
            let error = codec(candidate.entry.wire).refusal(status, &headers, body.as_bytes());
            assert!(is_right(&error), "{} {scenario}: {error:?}", candidate.entry.name);
        }
    }
}

#[test]
fn every_provider_writes_every_request() {
    for candidate in Candidate::all() {
        for (scenario, request) in requests() {
            let Some(expected) = candidate.fixture(scenario, "request.json") else {
                continue;
            };
            let expected: Value = serde_json::from_slice(&expected).unwrap();
            let ModelCall::Http(sent) = codec(candidate.entry.wire)
                .call(&candidate.target(), &request)
                .unwrap()
            else {
                panic!("{} {scenario}: nothing to send", candidate.entry.name);
            };
            let headers: Map<String, Value> = sent
                .headers
                .into_iter()
                .map(|(name, value)| (name, value.into()))
                .collect();
            let body: Value = serde_json::from_str(&sent.body.unwrap()).unwrap();
            let sent = json!({ "method": sent.method, "url": sent.url, "headers": headers, "body": body });
            assert_eq!(sent, expected, "{} {scenario}: {sent:#}", candidate.entry.name);
        }
    }
}

#[test]
fn every_skipped_scenario_exists_and_has_a_reason() {
    let answers = answers();
    let requests = requests();
    let mut scenarios: BTreeSet<&str> = answers.iter().map(|(scenario, ..)| *scenario).collect();
    scenarios.extend(refusals().iter().map(|(scenario, _)| *scenario));
    scenarios.extend(requests.iter().map(|(scenario, _)| *scenario));
    for entry in PROVIDERS {
        if let Conformance::Fixtures { skipped, .. } = conformance(entry.wire) {
            for (scenario, reason) in skipped {
                assert!(
                    scenarios.contains(scenario) && !reason.is_empty(),
                    "{} {scenario}",
                    entry.name
                );
            }
        }
    }
}

#[test]
fn a_target_without_an_address_or_a_model_is_not_configured() {
    for candidate in Candidate::all() {
        let whole = candidate.target();
        let without_address = ModelTarget {
            base_url: String::new(),
            ..whole.clone()
        };
        let without_model = ModelTarget {
            model: String::new(),
            ..whole.clone()
        };
        let lacking = [
            (true, without_address),
            (candidate.entry.wire.needs_model(), without_model),
        ];
        for (_, target) in lacking.into_iter().filter(|(is_needed, _)| *is_needed) {
            let call = codec(target.wire).call(&target, &model_requests::plain());
            assert!(
                matches!(call, Err(ProviderError::Configuration(_))),
                "{}: {call:?}",
                target.provider
            );
        }
        let without_key = ModelTarget {
            api_key: None,
            ..whole
        };
        let Ok(ModelCall::Http(sent)) = codec(without_key.wire).call(&without_key, &model_requests::plain())
        else {
            continue;
        };
        assert!(
            !format!("{sent:?}").contains("the-key"),
            "{}",
            without_key.provider
        );
        assert!(
            !sent.headers.iter().any(|(_, value)| value.trim() == "Bearer"),
            "{}",
            without_key.provider
        );
    }
}

#[test]
fn every_provider_says_which_media_it_takes() {
    let part = |kind: &str, mime_type: &str| -> ContentPart {
        let source = json!({ "type": "data", "value": "QUJD", "mimeType": mime_type });
        read::from_value(&json!({ "type": kind, "source": source })).unwrap()
    };
    let media = [
        part("image", "image/png"),
        part("audio", "audio/wav"),
        part("video", "video/mp4"),
        part("document", "application/pdf"),
    ];
    for (name, base_url, expected) in [
        ("openai", "https://api.openai.com/v1", [true, true, false, true]),
        (
            "mistral",
            "https://api.mistral.ai/v1",
            [true, false, false, false],
        ),
        ("openai-responses", "https://x.test", [true, false, false, true]),
        ("anthropic", "https://x.test", [true, false, false, true]),
        ("google", "https://x.test", [true, true, true, true]),
        ("mastra", "https://x.test", [true, true, true, true]),
        ("ag-ui", "https://x.test", [true, true, true, true]),
    ] {
        let entry = table::find(name).unwrap();
        let target = ModelTarget {
            wire: entry.wire,
            provider: entry.name,
            base_url: base_url.to_owned(),
            api_key: None,
            model: "m".to_owned(),
            headers: Vec::new(),
            query: Vec::new(),
            wants_reasoning: false,
        };
        let takes = media
            .each_ref()
            .map(|part| codec(entry.wire).takes(&target, part));
        assert_eq!(takes, expected, "{name}");
    }
}
