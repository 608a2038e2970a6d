//! Anthropic Messages.
//!
//! Sent: system texts as `system`; text, pictures and PDFs; calls and results, the results of a step first in the one user
//! message behind them; `maxTokens` (required there, so there is a default), `temperature`, `topP`, `topK`,
//! `stopSequences` as far as the model takes them; `toolChoice`; a schema as `output_config.format`, or as system text
//! where the model or the schema does not allow that; `thinking` where reasoning is to be shown, and no sampling settings
//! beside it. Read: text, thinking (kept from the answer, and sent back with its
//! signature beside the calls of the same run), calls, stop reasons, usage with its cache counts.
//!
//! Left out, because there is no place for them: `presencePenalty`, `frequencyPenalty`, `seed`, unknown forwardedProps,
//! sound, films, documents other than PDF, addresses other than `https:`, and providers' file handles.
//!
//! `model` says what a model takes, `request`, `schema` and `thinking` write the body, `event` types the answer's payloads, `stream`
//! turns them into events. Source: Anthropic API reference, "Messages" and "Streaming"; known faults B033, B052, B073.

mod event;
mod model;
mod request;
mod schema;
mod stream;
mod thinking;

use super::sse_answer::SseAnswerDecoder;
use super::{
    HttpRequest, ModelCall, ModelDecoder, ModelRequest, ModelTarget, Provider, ProviderError, Secret, refusal,
};
use crate::protocol::message::ContentPart;

/// The version of the API whose shapes are used here.
const VERSION: &str = "2023-06-01";

/// The codec.
#[derive(Debug, Clone, Copy)]
pub struct Anthropic;

impl Provider for Anthropic {
    fn call(&self, target: &ModelTarget, request: &ModelRequest) -> Result<ModelCall, ProviderError> {
        target.check()?;
        let mut headers = vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            ("accept".to_owned(), "text/event-stream".to_owned()),
            ("anthropic-version".to_owned(), VERSION.to_owned()),
        ];
        let key = |key: &Secret| ("x-api-key".to_owned(), key.expose().to_owned());
        headers.extend(target.api_key.as_ref().map(key));
        Ok(ModelCall::Http(HttpRequest {
            method: "POST",
            url: url(&target.base_url),
            headers,
            body: Some(request::body(target, request)),
        }))
    }

    fn unknown_settings(&self) -> &'static [&'static str] {
        &["presencePenalty", "frequencyPenalty", "seed"]
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

/// Base addresses are given with and without the version: Anthropic's own is without, most servers' are with it.
fn url(base_url: &str) -> String {
    let base_url = base_url.trim_end_matches('/');
    let base_url = base_url.strip_suffix("/v1").unwrap_or(base_url);
    format!("{base_url}/v1/messages")
}
