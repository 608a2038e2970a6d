//! The shape nearly every chunk of an answer has, one piece of text and nothing else, read in one pass.
//!
//! Whatever is not exactly so (another member, another choice, a finish reason, a call) is left to `delta`, which reads
//! every chunk: this says the same at a fifth of its instructions.

use std::borrow::Cow;

/// The text of a chunk that is nothing but text; `None` = read it with `delta`.
pub(super) fn plain_text(chunk: &str) -> Option<Cow<'_, str>> {
    let mut scan = Scan { text: chunk, at: 0 };
    let mut text = None;
    scan.members(|scan, name| match name {
        "id" | "model" | "system_fingerprint" | "service_tier" | "provider" | "obfuscation" => {
            scan.text_or_null()
        }
        "object" => scan.literal("\"chat.completion.chunk\""),
        "created" => scan.whole_number(),
        "usage" => scan.literal("null"),
        "choices" => {
            scan.mark(b'[')?;
            scan.blank();
            scan.members(|scan, name| choice_member(scan, name, &mut text))?;
            scan.blank();
            scan.mark(b']')
        }
        _ => None,
    })?;
    scan.blank();
    text.filter(|text| scan.at == chunk.len() && !text.is_empty())
}

fn choice_member<'a>(scan: &mut Scan<'a>, name: &str, text: &mut Option<Cow<'a, str>>) -> Option<()> {
    match name {
        "index" => scan.literal("0"),
        "logprobs" | "finish_reason" => scan.literal("null"),
        "delta" => scan.members(|scan, name| match name {
            "role" => scan.text_or_null(),
            "refusal" | "reasoning" | "reasoning_content" | "tool_calls" | "function_call" => {
                scan.literal("null")
            }
            "content" if text.is_none() => {
                *text = Some(scan.text()?);
                Some(())
            }
            _ => None,
        }),
        _ => None,
    }
}

/// A JSON text and how far it is read. Every step that finds something else than it wants gives `None`.
///
/// Byte by byte, without iterators: what is read here must not depend on how much the compiler inlines.
struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Scan<'a> {
    /// The next byte; 0, which JSON has nowhere, at the end.
    #[inline(always)]
    fn next(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    #[inline(always)]
    fn blank(&mut self) {
        while let b' ' | b'\n' | b'\r' | b'\t' = self.next() {
            self.at += 1;
        }
    }

    #[inline(always)]
    fn mark(&mut self, mark: u8) -> Option<()> {
        let is_there = self.next() == mark;
        self.at += usize::from(is_there);
        is_there.then_some(())
    }

    fn literal(&mut self, literal: &str) -> Option<()> {
        let end = self.at + literal.len();
        let is_there = self.text.as_bytes().get(self.at..end)? == literal.as_bytes();
        self.at = end;
        is_there.then_some(())
    }

    /// Digits that begin with no zero.
    fn whole_number(&mut self) -> Option<()> {
        if !matches!(self.next(), b'1'..=b'9') {
            return None;
        }
        while self.next().is_ascii_digit() {
            self.at += 1;
        }
        Some(())
    }

    fn text_or_null(&mut self) -> Option<()> {
        if self.next() == b'n' {
            return self.literal("null");
        }
        self.plain().map(drop)
    }

    /// A text without escapes.
    fn plain(&mut self) -> Option<&'a str> {
        self.mark(b'"')?;
        let start = self.at;
        for byte in self.text.as_bytes().get(start..)? {
            if matches!(*byte, b'"' | b'\\' | ..b' ') {
                break;
            }
            self.at += 1;
        }
        let end = self.at;
        self.mark(b'"')?;
        self.text.get(start..end)
    }

    /// A text, escapes read.
    fn text(&mut self) -> Option<Cow<'a, str>> {
        let start = self.at;
        if let Some(text) = self.plain() {
            return Some(Cow::Borrowed(text));
        }
        let mut texts = serde_json::Deserializer::from_str(self.text.get(start..)?).into_iter::<String>();
        let text = texts.next()?.ok()?;
        self.at = start + texts.byte_offset();
        Some(Cow::Owned(text))
    }

    /// An object whose members `each` takes in their order, at their value.
    fn members(&mut self, mut each: impl FnMut(&mut Self, &str) -> Option<()>) -> Option<()> {
        self.mark(b'{')?;
        loop {
            self.blank();
            let name = self.plain()?;
            self.blank();
            self.mark(b':')?;
            self.blank();
            each(self, name)?;
            self.blank();
            if self.mark(b',').is_none() {
                return self.mark(b'}');
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::delta::Chunk;
    use super::*;

    /// What `delta` reads of a chunk that is nothing but text.
    fn by_serde(chunk: &str) -> Option<String> {
        let chunk: Chunk<'_> = serde_json::from_str(chunk).ok()?;
        let mut choices = chunk.choices?;
        let delta = choices.pop()?.delta?;
        Some(delta.content.0.into_owned())
    }

    #[test]
    fn a_chunk_of_every_vendor_is_read_as_serde_reads_it() {
        for chunk in [
            r#"{"id":"c1","object":"chat.completion.chunk","created":1795910400,"model":"m","service_tier":"default","system_fingerprint":null,"choices":[{"index":0,"delta":{"content":" w\u00f6rd"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"aZ9"}"#,
            r#"{"choices":[{"delta":{"content":"a"}}]}"#,
            r#"{ "choices" : [ { "index" : 0 , "delta" : { "role" : "assistant" , "content" : "a\n\"b\"\\" , "refusal" : null } , "finish_reason" : null } ] } "#,
            r#"{"id":"x","provider":"P","choices":[{"index":0,"delta":{"role":"assistant","content":"\ud83d\ude00 é","reasoning":null},"finish_reason":null,"logprobs":null}]}"#,
        ] {
            let text = plain_text(chunk).map(Cow::into_owned);
            assert!(text.is_some(), "{chunk}");
            assert_eq!(text, by_serde(chunk), "{chunk}");
        }
    }

    #[test]
    fn everything_else_is_left_to_serde() {
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
    fn a_chunk_cut_anywhere_is_no_plain_text() {
        let chunk = r#"{"id":"c1","choices":[{"index":0,"delta":{"content":" w\u00f6rd é"},"finish_reason":null}],"usage":null}"#;
        assert!(plain_text(chunk).is_some());
        for (end, _) in chunk.char_indices() {
            assert_eq!(plain_text(&chunk[..end]), None, "{}", &chunk[..end]);
        }
    }
}
