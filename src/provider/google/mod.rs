//! Google Gemini: `streamGenerateContent` as SSE.
//!
//! Sent: system texts as `systemInstruction`; text, pictures, sound, films, PDFs and text files, in the message, by
//! address, or by Google's own file handles; calls and results; every setting but `maxRetries`; `toolChoice`; a schema as
//! `responseJsonSchema`, or as system text where the model does not allow that; `includeThoughts` where reasoning is to be
//! shown. Read: text, thoughts (kept from the answer;
//! signatures go back with their calls in the same run), calls, finish reasons, usage.
//!
//! Left out: unknown forwardedProps, which have no place; stop sequences after the fifth, seeds over 32 bits, media of types
//! that Gemini does not know, addresses other than `https:`, and other providers' file handles.
//!
//! `model` says what a model takes, `request` writes the body, `event` types the answer's payloads, `stream` turns them
//! into events. Source: Gemini API reference, "Generating content", "Thought signatures"; known faults B033, B037, B047,
//! B054, B061.

mod event;
mod model;
mod request;
mod stream;

use super::sse_answer::SseAnswerDecoder;
use super::{
    HttpRequest, ModelCall, ModelDecoder, ModelRequest, ModelTarget, Provider, ProviderError, Secret, refusal,
};
use crate::protocol::message::ContentPart;

/// The codec.
#[derive(Debug, Clone, Copy)]
pub struct Google;

impl Provider for Google {
    fn call(&self, target: &ModelTarget, request: &ModelRequest) -> Result<ModelCall, ProviderError> {
        target.check()?;
        let mut headers = vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            ("accept".to_owned(), "text/event-stream".to_owned()),
        ];
        let key = |key: &Secret| ("x-goog-api-key".to_owned(), key.expose().to_owned());
        headers.extend(target.api_key.as_ref().map(key));
        Ok(ModelCall::Http(HttpRequest {
            method: "POST",
            url: url(target),
            headers,
            body: Some(request::body(target, request)),
        }))
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

/// A model may be named with its collection, such as `tunedModels/mine`.
fn url(target: &ModelTarget) -> String {
    let base_url = target.base_url.trim_end_matches('/');
    let collection = if target.model.contains(['/']) {
        ""
    } else {
        "models/"
    };
    format!(
        "{base_url}/{collection}{}:streamGenerateContent?alt=sse",
        target.model
    )
}
