//! OpenAI Chat Completions and every compatible server, Workers AI among them.
//!
//! `request` writes the body, `delta` types the answer's chunks, `plain_delta` reads the
//! plainest of them faster, `stream` turns them into events. Source: OpenAI API reference, "Chat Completions"; known faults B021 to B073.

mod delta;
mod dialect;
mod plain_delta;
mod request;
mod stream;
pub mod workers_ai;

use super::{ModelCall, ModelDecoder, ModelRequest, ModelTarget, Provider, ProviderError, refusal};
use crate::protocol::message::ContentPart;

/// The codec.
#[derive(Debug, Clone, Copy)]
pub struct OpenAiChat;

impl Provider for OpenAiChat {
    fn call(&self, target: &ModelTarget, request: &ModelRequest) -> Result<ModelCall, ProviderError> {
        target.check()?;
        let url = format!("{}/chat/completions", target.base_url.trim_end_matches('/'));
        Ok(target.post(url, request::body(target, request)))
    }

    fn unknown_settings(&self) -> &'static [&'static str] {
        &["topK"]
    }

    fn takes(&self, target: &ModelTarget, part: &ContentPart) -> bool {
        request::takes(target, part)
    }

    fn decoder(&self) -> Box<dyn ModelDecoder> {
        Box::new(stream::ChatDecoder::new())
    }

    fn refusal(&self, status: u16, headers: &[(String, String)], body: &[u8]) -> ProviderError {
        refusal::of_response(status, headers, body)
    }
}
