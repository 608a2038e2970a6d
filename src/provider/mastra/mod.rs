//! An agent of a Mastra server, driven by `POST /api/agents/:agentId/stream`; the agent's `model` is the id there.
//!
//! Sent: texts and media of the person; every assistant message in the one form that keeps arguments and results of its
//! calls together; our tools as `clientTools`; settings, `toolChoice`, a schema as `structuredOutput`; system texts as
//! `system`, beside the agent's own; unknown forwardedProps as `requestContext`. Where the server keeps the thread, `memory`
//! and only what is new.
//!
//! Read: text, reasoning, calls and the results of the server's own tools, its steps, its usage. Not sent is our run id:
//! the server's runs share one space of ids, and ids that clients choose are unique per owner only (D12).
//!
//! `request` writes the body, `chunk` types the answer's chunks, `stream` turns them into events. Source: contract 6;
//! Mastra server 1.x, "Agents API"; known faults B042, B062, B064, B080, B082.

mod chunk;
mod messages;
mod request;
mod stream;
pub mod threads;

use super::sse_answer::SseAnswerDecoder;
use super::{ModelCall, ModelDecoder, ModelRequest, ModelTarget, Provider, ProviderError, refusal};
use crate::protocol::message::ContentPart;
use crate::protocol::percent;

/// The codec.
#[derive(Debug, Clone, Copy)]
pub struct Mastra;

impl Provider for Mastra {
    fn call(&self, target: &ModelTarget, request: &ModelRequest) -> Result<ModelCall, ProviderError> {
        target.check()?;
        let url = url(&target.base_url, &target.model);
        Ok(target.post(url, request::body(request)))
    }

    fn runs_tools(&self) -> bool {
        true
    }

    fn takes(&self, _target: &ModelTarget, part: &ContentPart) -> bool {
        request::takes(part)
    }

    fn decoder(&self) -> Box<dyn ModelDecoder> {
        Box::new(SseAnswerDecoder::new(stream::Answer::default()))
    }

    fn refusal(&self, status: u16, headers: &[(String, String)], body: &[u8]) -> ProviderError {
        refusal::of_response(status, headers, body)
    }
}

fn url(base_url: &str, agent_id: &str) -> String {
    format!("{}/agents/{}/stream", api(base_url), percent::encode(agent_id))
}

/// Base addresses are given with and without the prefix all routes of a Mastra server have.
fn api(base_url: &str) -> String {
    let base_url = base_url.trim_end_matches('/');
    let base_url = base_url.strip_suffix("/api").unwrap_or(base_url);
    format!("{base_url}/api")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_is_one_segment_behind_the_prefix() {
        for (base_url, agent_id, expected) in [
            (
                "http://m:4111",
                "helper",
                "http://m:4111/api/agents/helper/stream",
            ),
            (
                "http://m/api/",
                "a-b_c.d~1",
                "http://m/api/agents/a-b_c.d~1/stream",
            ),
            (
                "https://m/x",
                "a/b ü?",
                "https://m/x/api/agents/a%2Fb%20%C3%BC%3F/stream",
            ),
        ] {
            assert_eq!(url(base_url, agent_id), expected);
        }
    }
}
