//! The shape nearly every chunk of an answer has, one piece of text and nothing else, read in one pass.
//!
//! Whatever is not exactly so (another member, another choice, a finish reason, a call) is left to `delta`, which reads
//! every chunk: this says the same at a fraction of its instructions.

use std::borrow::Cow;

use crate::protocol::json_cursor::{CursorFault, JsonCursor};

/// Reads the chunks of one answer.
#[derive(Debug, Default)]
pub(super) struct PlainDeltas {
    /// What stood before the text of the last plain chunk: most servers begin all chunks of an answer alike.
    head: String,
}

/// The object a member is in.
enum Level {
    Chunk,
    Choice,
    Delta,
}

/// Members of a chunk that say nothing. Lists: as patterns, names are compared byte by byte, in kilobytes of code.
const SKIPPED: &[&[u8]] = &[
    b"id",
    b"created",
    b"model",
    b"system_fingerprint",
    b"service_tier",
    b"provider",
    b"obfuscation",
];

/// Members of a delta that have no value beside a text.
const EMPTY: &[&[u8]] = &[
    b"refusal",
    b"reasoning",
    b"reasoning_content",
    b"tool_calls",
    b"function_call",
];

impl PlainDeltas {
    /// The text of a chunk that is nothing but text; `None` = read it with `delta`.
    pub fn text<'a>(&mut self, chunk: &'a str) -> Option<Cow<'a, str>> {
        self.read(chunk).ok()?.filter(|text| !text.is_empty())
    }

    fn read<'a>(&mut self, chunk: &'a str) -> Result<Option<Cow<'a, str>>, CursorFault> {
        let mut json = JsonCursor::new(chunk);
        let (mut level, mut is_first, mut text) = (Level::Chunk, true, None);
        if !self.head.is_empty() && chunk.starts_with(&self.head) {
            json.go_on_at(self.head.len());
            (level, is_first, text) = (Level::Delta, false, Some(json.text()?));
        }
        loop {
            let Some(name) = json.next_member(is_first)? else {
                is_first = false;
                level = match level {
                    Level::Delta => Level::Choice,
                    Level::Choice => json.literal("]").map(|()| Level::Chunk)?,
                    Level::Chunk => return json.end().map(|()| text),
                };
                continue;
            };
            is_first = false;
            match (&level, name) {
                (Level::Chunk, b"usage") | (Level::Choice, b"finish_reason" | b"logprobs") => {
                    json.literal("null")?;
                }
                (Level::Chunk, b"object") => json.literal("\"chat.completion.chunk\"")?,
                (Level::Chunk, b"choices") if text.is_none() && json.next_item(true)? => {
                    (level, is_first) = (Level::Choice, true);
                }
                (Level::Choice, b"index") => json.literal("0")?,
                (Level::Choice, b"delta") if text.is_none() => (level, is_first) = (Level::Delta, true),
                (Level::Delta, b"content") if text.is_none() => {
                    let head = chunk.get(..json.position()).unwrap_or_default();
                    text = Some(json.text()?);
                    head.clone_into(&mut self.head);
                }
                (Level::Delta, b"role") => json.skip()?,
                (Level::Chunk, name) if SKIPPED.contains(&name) => json.skip()?,
                (Level::Delta, name) if EMPTY.contains(&name) => json.literal("null")?,
                _ => return Err(CursorFault::Unexpected),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::delta::Chunk;
    use super::*;
    use crate::protocol::payload;

    fn plain_text(chunk: &str) -> Option<Cow<'_, str>> {
        PlainDeltas::default().text(chunk)
    }

    /// What `delta` reads of a chunk that is nothing but text.
    fn by_delta(chunk: &str) -> Option<String> {
        let chunk: Chunk<'_> = payload::read(chunk).ok()?;
        let mut choices = chunk.choices?;
        let delta = choices.pop()?.delta?;
        Some(delta.content.0.into_owned())
    }

    #[test]
    fn a_chunk_of_every_vendor_is_read_as_delta_reads_it() {
        for chunk in [
            r#"{"id":"c1","object":"chat.completion.chunk","created":1795910400,"model":"m","service_tier":"default","system_fingerprint":null,"choices":[{"index":0,"delta":{"content":" w\u00f6rd"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"aZ9"}"#,
            r#"{"choices":[{"delta":{"content":"a"}}]}"#,
            r#"{ "choices" : [ { "index" : 0 , "delta" : { "role" : "assistant" , "content" : "a\n\"b\"\\" , "refusal" : null } , "finish_reason" : null } ] } "#,
            r#"{"id":"x","provider":"P","choices":[{"index":0,"delta":{"role":"assistant","content":"\ud83d\ude00 é","reasoning":null},"finish_reason":null,"logprobs":null}]}"#,
        ] {
            let text = plain_text(chunk).map(Cow::into_owned);
            assert!(text.is_some(), "{chunk}");
            assert_eq!(text, by_delta(chunk), "{chunk}");
        }
    }

    #[test]
    fn everything_else_is_left_to_delta() {
        for chunk in [
            "",
            "[DONE]",
            "{}",
            r#"{"choices":[]}"#,
            r#"{"choices":[{"index":1,"delta":{"content":"a"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"a"}},{"index":1,"delta":{"content":"b"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":""}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":null}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"a","content":"b"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"a","tool_calls":[]}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"a","reasoning":"b"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"prompt_tokens":1}}"#,
            r#"{"object":"error","choices":[{"index":0,"delta":{"content":"a"}}]}"#,
            r#"{"error":"x","choices":[{"index":0,"delta":{"content":"a"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"a"}}]}x"#,
            r#"{"choices":[{"index":00,"delta":{"content":"a"}}]}"#,
            r#"{"created":01,"choices":[{"index":0,"delta":{"content":"a"}}]}"#,
            r#"{"choices":[{"index":0,"delta":{"content":"\ud83d"}}]}"#,
            "{\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\u{1}\"}}]}",
            r#"{"choices":[{"index":0,"delta":{"content":"a"}}],}"#,
        ] {
            assert_eq!(plain_text(chunk), None, "{chunk}");
        }
    }

    #[test]
    fn chunks_that_begin_alike_are_read_from_their_text_on() {
        let mut deltas = PlainDeltas::default();
        let head = r#"{"id":"c1","choices":[{"index":0,"delta":{"content":"#;
        for (tail, expected) in [
            (r#""one"}}]}"#, Some("one")),
            (
                r#""two"}, "finish_reason":null}],"obfuscation":"aZ9" } "#,
                Some("two"),
            ),
            (r#""t\\hree","role":null}}]}"#, Some("t\\hree")),
            (r#""four"},"finish_reason":"stop"}]}"#, None),
            (r#""five"}}],"choices":[]}"#, None),
            (r#""six","content":"7"}}]}"#, None),
            (r#""seven"}}]"#, None),
            (r#"null}}]}"#, None),
            (r#""eight"}}]}"#, Some("eight")),
        ] {
            let chunk = format!("{head}{tail}");
            assert_eq!(deltas.text(&chunk).as_deref(), expected, "{chunk}");
        }
        let other = r#"{"id":"c2","choices":[{"delta":{"content":"nine"}}]}"#;
        assert_eq!(deltas.text(other).as_deref(), Some("nine"));
    }

    #[test]
    fn a_chunk_cut_anywhere_is_no_plain_text() {
        let chunk = r#"{"id":"c1","choices":[{"index":0,"delta":{"content":" w\u00f6rd é"},"finish_reason":null}],"usage":null}"#;
        assert!(plain_text(chunk).is_some());
        for (end, _) in chunk.char_indices() {
            assert_eq!(plain_text(&chunk[..end]), None, "{}", &chunk[..end]);
        }
    }
}
