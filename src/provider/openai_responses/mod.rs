//! OpenAI Responses, without state at the vendor: `store` is off and every request carries the conversation.
//!
//! Sent: system texts as `instructions`; text, pictures, PDFs and OpenAI's own file handles; calls and results;
//! `maxTokens`, and `temperature` and `topP` to models that do not reason; `toolChoice`; a schema as `text.format`; a wish
//! for summaries where reasoning is to be shown. Read: text and refusals as text, reasoning (kept from the answer; encrypted items go back beside the calls of the same run),
//! calls from whatever event tells of them, the end, usage.
//!
//! Left out, because there is no place for them: `topK`, penalties, `stopSequences`, `seed`, unknown forwardedProps, sound,
//! films, and documents other than PDF.
//!
//! `request` writes the body, `event` types the answer's payloads, `stream` turns them into events. Source: OpenAI API
//! reference, "Responses"; known faults B029, B030, B033, B044, B060.

mod event;
mod item;
mod request;
mod stream;

use super::sse_answer::SseAnswerDecoder;
use super::{ModelCall, ModelDecoder, ModelRequest, ModelTarget, Provider, ProviderError, refusal};
use crate::protocol::message::ContentPart;

/// The codec.
#[derive(Debug, Clone, Copy)]
pub struct OpenAiResponses;

impl Provider for OpenAiResponses {
    fn call(&self, target: &ModelTarget, request: &ModelRequest) -> Result<ModelCall, ProviderError> {
        target.check()?;
        let url = format!("{}/responses", target.base_url.trim_end_matches('/'));
        Ok(target.post(url, request::body(target, request)))
    }

    fn unknown_settings(&self) -> &'static [&'static str] {
        &[
            "topK",
            "presencePenalty",
            "frequencyPenalty",
            "stopSequences",
            "seed",
        ]
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
