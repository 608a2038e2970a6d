//! Another agent that speaks AG-UI: a `RunAgentInput` posted to the base address, its events read as what the model said.
//!
//! Sent: the whole history, ids made from its content; system texts as a system message; our tools; `state`; unknown
//! forwardedProps, beside them `modelSettings`, `toolChoice` and `structuredOutput` as this server reads them itself, and
//! the agent's `model`, if it has one, as `agentId`. The thread's id is ours; the run's id is ours too for the first
//! request of a run, and made from it for those behind it.
//!
//! Read: text, reasoning, calls in either form, results of the agent's own tools, the usage; all else is dropped, such as
//! state and activities, for which our stream has no events. What the agent left open at its end is closed.
//!
//! `request` writes the body, `event` types the events, `stream` reads them. Source: contract 6; AG-UI 1.0, "HTTP SSE".

mod event;
mod request;
mod stream;

use super::sse_answer::SseAnswerDecoder;
use super::{ModelCall, ModelDecoder, ModelRequest, ModelTarget, Provider, ProviderError, refusal};

/// The codec.
#[derive(Debug, Clone, Copy)]
pub struct AgUi;

impl Provider for AgUi {
    fn call(&self, target: &ModelTarget, request: &ModelRequest) -> Result<ModelCall, ProviderError> {
        target.check()?;
        let url = target.base_url.clone();
        Ok(target.post(url, request::body(target, request)))
    }

    fn runs_tools(&self) -> bool {
        true
    }

    fn decoder(&self) -> Box<dyn ModelDecoder> {
        Box::new(SseAnswerDecoder::new(stream::Answer::default()))
    }

    fn refusal(&self, status: u16, headers: &[(String, String)], body: &[u8]) -> ProviderError {
        refusal::of_response(status, headers, body)
    }
}
