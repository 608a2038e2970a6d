//! Parts of an answer -> a scripted stream: small pieces with small pauses, always the same for the same answer.

use serde_json::Value;

use crate::protocol::event::TokenUsage;
use crate::protocol::json;
use crate::provider::{FinishReason, ModelEvent, ProviderError, ScriptedPiece};

/// Characters of a piece.
const PIECE_CHARACTERS: std::ops::RangeInclusive<u64> = 3..=12;

/// Pause before a piece, in milliseconds.
const PAUSE_MS: std::ops::RangeInclusive<u64> = 8..=30;

/// How many times longer the pauses of a slow answer are.
const SLOW_FACTOR: u64 = 15;

/// One part of an answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    Reasoning(String),
    Text(String),
    Call {
        name: String,
        arguments: Value,
    },
    Silence {
        ms: u64,
    },
    Fail(ProviderError),
    /// The answer ends here, and not by itself.
    Cut(FinishReason),
}

/// What shapes the stream beside its parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pace {
    pub(super) is_slow: bool,
    /// `maxOutputTokens` of the run; a token of ours is a word.
    pub(super) max_words: Option<usize>,
    /// Words of everything the model was asked.
    pub(super) input_words: u64,
    /// Calls of the conversation so far: vendor ids go on from there.
    pub(super) earlier_call_count: usize,
}

/// Writes the stream of an answer.
pub(super) fn script(parts: Vec<Part>, pace: Pace) -> Vec<ScriptedPiece> {
    let mut writer = Writer {
        pieces: Vec::new(),
        pattern: Pattern::of(&parts),
        pace,
        silence_ms: 0,
        output_words: 0,
        call_count: 0,
    };
    for part in parts {
        match part {
            Part::Reasoning(text) => writer.stream(&text, ModelEvent::Reasoning),
            Part::Text(text) => {
                if writer.text(&text) == Written::Cut {
                    return writer.finish(FinishReason::Length);
                }
            }
            Part::Call { name, arguments } => writer.call(name, &arguments),
            Part::Silence { ms } => writer.silence_ms += ms,
            Part::Fail(error) => {
                writer.push(Err(error));
                return writer.pieces;
            }
            Part::Cut(reason) => return writer.finish(reason),
        }
    }
    let reason = if writer.call_count > 0 {
        FinishReason::ToolCalls
    } else {
        FinishReason::Stop
    };
    writer.finish(reason)
}

/// Number of words, our tokens.
pub(super) fn word_count(text: &str) -> u64 {
    text.split_whitespace().count() as u64
}

#[derive(PartialEq)]
enum Written {
    Whole,
    Cut,
}

struct Writer {
    pieces: Vec<ScriptedPiece>,
    pattern: Pattern,
    pace: Pace,
    silence_ms: u64,
    output_words: u64,
    call_count: usize,
}

impl Writer {
    fn push(&mut self, event: Result<ModelEvent, ProviderError>) {
        let factor = if self.pace.is_slow { SLOW_FACTOR } else { 1 };
        let pause_ms = self.pattern.next_in(&PAUSE_MS) * factor;
        let after_ms = pause_ms + std::mem::take(&mut self.silence_ms);
        self.pieces.push(ScriptedPiece { after_ms, event });
    }

    fn stream(&mut self, text: &str, event: impl Fn(String) -> ModelEvent) {
        self.output_words += word_count(text);
        let mut characters = text.chars().peekable();
        while characters.peek().is_some() {
            let count = usize::try_from(self.pattern.next_in(&PIECE_CHARACTERS)).unwrap_or(1);
            let piece: String = characters.by_ref().take(count).collect();
            self.push(Ok(event(piece)));
        }
    }

    /// Text is cut at the run's token limit, as a model would be.
    fn text(&mut self, text: &str) -> Written {
        let used = usize::try_from(self.output_words).unwrap_or(usize::MAX);
        let left = self.pace.max_words.map(|max| max.saturating_sub(used));
        match left.and_then(|left| end_of_word(text, left)) {
            Some(end) => {
                self.stream(text.get(..end).unwrap_or(text), ModelEvent::Text);
                Written::Cut
            }
            None => {
                self.stream(text, ModelEvent::Text);
                Written::Whole
            }
        }
    }

    fn call(&mut self, name: String, arguments: &Value) {
        let slot = self.call_count;
        self.call_count += 1;
        let vendor_id = Some(format!("demo_{}", self.pace.earlier_call_count + self.call_count));
        self.push(Ok(ModelEvent::ToolCallStart {
            slot,
            vendor_id,
            name,
        }));
        self.stream(&json::text(arguments), |delta| ModelEvent::ToolCallArguments {
            slot,
            delta,
        });
        self.push(Ok(ModelEvent::ToolCallEnd { slot }));
    }

    fn finish(mut self, reason: FinishReason) -> Vec<ScriptedPiece> {
        let (input, output) = (self.pace.input_words, self.output_words);
        let usage = TokenUsage {
            input_tokens: Some(input),
            output_tokens: Some(output),
            total_tokens: Some(input + output),
            ..TokenUsage::default()
        };
        self.push(Ok(ModelEvent::Usage(usage.into())));
        self.push(Ok(ModelEvent::Finish(reason)));
        self.pieces
    }
}

/// Where the `count`-th word ends, when more words follow.
fn end_of_word(text: &str, count: usize) -> Option<usize> {
    let (mut offset, mut end, mut word_count) = (0, 0, 0);
    for chunk in text.split_inclusive(char::is_whitespace) {
        let word = chunk.trim_end();
        if !word.is_empty() {
            if word_count == count {
                return Some(end);
            }
            word_count += 1;
            end = offset + word.len();
        }
        offset += chunk.len();
    }
    None
}

/// Numbers that look random and are the same on every machine: FNV-1a of the answer, stepped by a xorshift.
struct Pattern(u64);

impl Pattern {
    fn of(parts: &[Part]) -> Self {
        let mut hash = 0xcbf2_9ce4_8422_2325_u64;
        for part in parts {
            let text = match part {
                Part::Reasoning(text) | Part::Text(text) => text.clone(),
                Part::Call { name, arguments } => format!("{name}{}", json::text(arguments)),
                Part::Silence { ms } => ms.to_string(),
                Part::Fail(_) | Part::Cut(_) => String::new(),
            };
            for byte in text.bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
        Self(hash | 1)
    }

    fn next_in(&mut self, range: &std::ops::RangeInclusive<u64>) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        range.start() + (self.0 >> 8) % (range.end() - range.start() + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace {
        is_slow: false,
        max_words: None,
        input_words: 7,
        earlier_call_count: 0,
    };

    fn finish(output: u64, reason: FinishReason) -> Vec<ModelEvent> {
        vec![
            ModelEvent::Usage(Box::new(TokenUsage {
                input_tokens: Some(7),
                output_tokens: Some(output),
                total_tokens: Some(7 + output),
                ..TokenUsage::default()
            })),
            ModelEvent::Finish(reason),
        ]
    }

    /// The events with their text pieces joined.
    fn events(parts: Vec<Part>, pace: Pace) -> (String, Vec<ModelEvent>) {
        let mut text = String::new();
        let mut others = Vec::new();
        for piece in script(parts, pace) {
            match piece.event.unwrap() {
                ModelEvent::Text(piece) => text.push_str(&piece),
                other => others.push(other),
            }
        }
        (text, others)
    }

    #[test]
    fn pieces_are_small_and_their_pauses_short() {
        let text = "Zwölf Boxkämpfer jagen 😀 Viktor quer über den großen Sylter Deich. ".repeat(20);
        let pieces = script(vec![Part::Text(text.clone())], PACE);
        let mut joined = String::new();
        for piece in &pieces {
            assert!(PAUSE_MS.contains(&piece.after_ms), "{piece:?}");
            if let Ok(ModelEvent::Text(text)) = &piece.event {
                joined.push_str(text);
                assert!(text.chars().count() <= 12, "{piece:?}");
            }
        }
        assert_eq!(joined, text);
        let sizes: std::collections::HashSet<u64> = pieces.iter().map(|piece| piece.after_ms).collect();
        assert!(sizes.len() > 10, "pauses vary");
        assert_eq!(script(vec![Part::Text(text)], PACE), pieces);
    }

    #[test]
    fn silence_and_slowness_are_pauses() {
        let parts = vec![Part::Silence { ms: 5_000 }, Part::Text("Hi".to_owned())];
        let fast: Vec<u64> = script(parts.clone(), PACE)
            .iter()
            .map(|piece| piece.after_ms)
            .collect();
        let slow: Vec<u64> = script(
            parts,
            Pace {
                is_slow: true,
                ..PACE
            },
        )
        .iter()
        .map(|piece| piece.after_ms)
        .collect();
        assert!((5_008..=5_030).contains(&fast[0]), "{fast:?}");
        assert_eq!(slow[0] - 5_000, (fast[0] - 5_000) * SLOW_FACTOR);
        assert_eq!(slow[1], fast[1] * SLOW_FACTOR);
    }

    #[test]
    fn a_text_ends_at_the_token_limit() {
        let parts = || vec![Part::Text("One two  three.\nFour".to_owned())];
        let limited = |max| {
            events(
                parts(),
                Pace {
                    max_words: Some(max),
                    ..PACE
                },
            )
        };
        assert_eq!(
            limited(2),
            ("One two".to_owned(), finish(2, FinishReason::Length))
        );
        assert_eq!(limited(0), (String::new(), finish(0, FinishReason::Length)));
        assert_eq!(
            limited(4),
            ("One two  three.\nFour".to_owned(), finish(4, FinishReason::Stop))
        );
    }

    #[test]
    fn a_failure_is_the_last_piece() {
        let parts = vec![
            Part::Text("Hi".to_owned()),
            Part::Fail(ProviderError::Truncated),
            Part::Text("never".to_owned()),
        ];
        let events: Vec<_> = script(parts, PACE).into_iter().map(|piece| piece.event).collect();
        assert_eq!(
            events,
            [
                Ok(ModelEvent::Text("Hi".to_owned())),
                Err(ProviderError::Truncated)
            ]
        );
    }
}
