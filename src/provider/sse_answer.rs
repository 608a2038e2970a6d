//! The frame of every codec whose upstream streams JSON payloads as SSE: from bytes to payloads, to the end of the body.

use std::borrow::Cow;

use super::{ModelDecoder, ModelEvent, ProviderError, UPSTREAM_EVENT_MAX_BYTES, refusal};
use crate::binding::sse_decoder::{SseDecoder, SseFault};
use crate::protocol::json_cursor::{CursorFault, JsonCursor};
use crate::protocol::json_text::heal_surrogates;
use crate::protocol::utf8;

/// A payload that is not JSON of the wire format. At the end of the body it was cut: [`ProviderError::Truncated`].
pub const NOT_A_PAYLOAD: ProviderError = ProviderError::Malformed("an event is not of this wire format");

/// What an answer's payloads said so far.
pub trait SseAnswer {
    /// Takes the `data` of one event; never blank, never `[DONE]`, which is no payload on any of these wire formats
    /// (B020) but may be a mark, see [`Self::take_done`]. The type is read from the payload: proxies drop the event name.
    ///
    /// # Errors
    /// [`NOT_A_PAYLOAD`], and then nothing of it was taken; or the failure the payload tells of.
    fn take(&mut self, payload: &str, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError>;

    /// Takes the mark `[DONE]`, which most of these wire formats do not have.
    ///
    /// # Errors
    /// [`ProviderError::Truncated`] when what came before is no whole answer.
    fn take_done(&mut self, _events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        Ok(())
    }

    /// The body ended without the end mark.
    ///
    /// # Errors
    /// [`ProviderError::Truncated`] unless the wire format has no other end mark.
    fn end(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError>;

    /// Whether the end mark was seen.
    fn is_finished(&self) -> bool;
}

/// Reads one answer.
pub struct SseAnswerDecoder {
    form: Form,
    sse: SseDecoder,
    answer: Box<dyn SseAnswer>,
}

/// What the body is, told by its first byte that is not blank: the decoder does not see the content type, and servers
/// and the proxies before them give wrong ones.
#[derive(Debug)]
pub enum Form {
    /// Nothing but blanks came yet.
    Unknown,
    /// A stream.
    Events,
    /// One JSON value: a server that does not stream, or an error with status 200.
    Json(Vec<u8>),
}

impl Form {
    /// Takes the next bytes: keeps those of JSON, gives back those of a stream.
    ///
    /// # Errors
    /// [`ProviderError::Malformed`] for a page, and for JSON that is too long.
    pub fn take<'a>(&mut self, mut bytes: &'a [u8]) -> Result<Option<&'a [u8]>, ProviderError> {
        if matches!(self, Self::Unknown) {
            let rest = bytes.trim_ascii_start();
            match rest.first() {
                None => {}
                Some(b'{' | b'[') => {
                    *self = Self::Json(Vec::new());
                    // Blanks of earlier chunks were not kept either, and not all of them are blanks to JSON.
                    bytes = rest;
                }
                Some(b'<') => return Err(ProviderError::Malformed("the answer is a page, not a stream")),
                Some(_) => *self = Self::Events,
            }
        }
        match self {
            Self::Unknown | Self::Events => Ok(Some(bytes)),
            Self::Json(body) if body.len() + bytes.len() > UPSTREAM_EVENT_MAX_BYTES => {
                Err(SseFault::TooLong.into())
            }
            Self::Json(body) => {
                body.extend_from_slice(bytes);
                Ok(None)
            }
        }
    }
}

impl SseAnswerDecoder {
    /// A decoder for one body.
    pub fn new(answer: impl SseAnswer + 'static) -> Self {
        Self {
            form: Form::Unknown,
            sse: SseDecoder::new(UPSTREAM_EVENT_MAX_BYTES),
            answer: Box::new(answer),
        }
    }
}

impl ModelDecoder for SseAnswerDecoder {
    fn feed(&mut self, bytes: &[u8], events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        let Some(bytes) = self.form.take(bytes)? else {
            return Ok(());
        };
        let mut incoming = self.sse.feed(bytes);
        while !self.answer.is_finished()
            && let Some(event) = incoming.next_event()?
        {
            take(&mut *self.answer, &event.data, events)?;
        }
        Ok(())
    }

    fn end(&mut self, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        if self.answer.is_finished() {
            return Ok(());
        }
        if let Form::Json(body) = &self.form {
            return Err(json_failure(body));
        }
        if let Some(event) = self.sse.end()? {
            take(&mut *self.answer, &event.data, events).map_err(|error| {
                if error == NOT_A_PAYLOAD {
                    ProviderError::Truncated
                } else {
                    error
                }
            })?;
        }
        if self.answer.is_finished() {
            return Ok(());
        }
        self.answer.end(events)
    }

    fn is_finished(&self) -> bool {
        self.answer.is_finished()
    }
}

fn take(answer: &mut dyn SseAnswer, data: &str, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
    match data.trim_ascii() {
        "" => Ok(()),
        "[DONE]" => answer.take_done(events),
        payload => match answer.take(payload, events) {
            Err(NOT_A_PAYLOAD) => take_healed(answer, payload, events),
            taken => taken,
        },
    }
}

/// Some proxies cut texts within a surrogate pair: each half is a character we do not know, and no broken payload.
fn take_healed(
    answer: &mut dyn SseAnswer,
    payload: &str,
    events: &mut Vec<ModelEvent>,
) -> Result<(), ProviderError> {
    match heal_surrogates(payload) {
        Cow::Borrowed(_) => Err(NOT_A_PAYLOAD),
        Cow::Owned(healed) => answer.take(&healed, events),
    }
}

/// A body that is JSON instead of a stream is no answer: we asked for a stream.
fn json_failure(body: &[u8]) -> ProviderError {
    match JsonCursor::new(&utf8::lossy(body)).whole() {
        Ok(value) if value.get(0).unwrap_or(&value).get("error").is_some() => refusal::in_stream(body),
        Err(CursorFault::Cut) => ProviderError::Truncated,
        Ok(_) | Err(CursorFault::Unexpected) => ProviderError::Malformed("the answer is not a stream"),
    }
}

impl From<SseFault> for ProviderError {
    fn from(fault: SseFault) -> Self {
        match fault {
            SseFault::TooLong => Self::Malformed("an event is too long"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finished by `end`, fails at `?`, anything else is text.
    #[derive(Debug, Default)]
    struct Echo {
        is_finished: bool,
    }

    impl SseAnswer for Echo {
        fn take(&mut self, payload: &str, events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
            match payload {
                "?" => return Err(NOT_A_PAYLOAD),
                "end" => self.is_finished = true,
                text => events.push(ModelEvent::Text(text.to_owned())),
            }
            Ok(())
        }

        fn end(&mut self, _events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
            Err(ProviderError::Truncated)
        }

        fn is_finished(&self) -> bool {
            self.is_finished
        }
    }

    /// What was said, and whether the answer was finished before the body's end, or how it failed.
    fn read<'a>(chunks: impl IntoIterator<Item = &'a [u8]>) -> (usize, Result<bool, ProviderError>) {
        let mut decoder = SseAnswerDecoder::new(Echo::default());
        let mut events = Vec::new();
        for chunk in chunks {
            if let Err(error) = decoder.feed(chunk, &mut events) {
                return (events.len(), Err(error));
            }
        }
        let is_finished = decoder.is_finished();
        let end = decoder.end(&mut events).map(|()| is_finished);
        (events.len(), end)
    }

    #[test]
    fn a_body_ends_as_its_last_payload_says_wherever_it_is_cut() {
        let refused = |detail: &str| ProviderError::Refused {
            status: 200,
            retryable: true,
            retry_after_ms: None,
            detail: detail.to_owned(),
        };
        let cases = [
            ("data: a\n\ndata: end\n\ndata: ?\n\n", (1, Ok(true))),
            ("data: a\n\ndata: [DONE]\n\ndata:\n\ndata: end", (1, Ok(false))),
            ("data: a\n\n", (1, Err(ProviderError::Truncated))),
            ("data: a\n\ndata: ?", (1, Err(ProviderError::Truncated))),
            ("data: a\n\ndata: ?\n\n", (1, Err(NOT_A_PAYLOAD))),
            ("", (0, Err(ProviderError::Truncated))),
            (
                "\n<html>",
                (
                    0,
                    Err(ProviderError::Malformed("the answer is a page, not a stream")),
                ),
            ),
            (r#"[{"error":{"message":"busy"}}]"#, (0, Err(refused("busy")))),
            (
                r#" {"text":1}"#,
                (0, Err(ProviderError::Malformed("the answer is not a stream"))),
            ),
            (r#"{"error":{"mess"#, (0, Err(ProviderError::Truncated))),
            (" \u{c}{", (0, Err(ProviderError::Truncated))),
        ];
        for (body, expected) in cases {
            let bytes = body.as_bytes();
            assert_eq!(read([bytes]), expected, "{body}");
            for cut in 0..bytes.len() {
                let (head, tail) = bytes.split_at(cut);
                assert_eq!(read([head, tail]), expected, "{body} cut at {cut}");
            }
            assert_eq!(read(bytes.chunks(1)), expected, "{body} byte by byte");
        }
    }
}
