//! Feeds recorded bytes to a codec, whole and in pieces, and sums up what the model said.

use std::collections::BTreeMap;

use io_bridge::protocol::event::TokenUsage;
use io_bridge::provider::{FinishReason, ModelEvent, Provider, ProviderError};
use serde_json::{Value, json};

/// Above this length a body is cut at every n-th byte only: cutting at every byte costs the square of it.
const EVERY_BYTE_MAX_BYTES: usize = 16 * 1024;

/// What a codec made of a body.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// Everything it appended.
    pub events: Vec<ModelEvent>,
    /// Whether the answer is whole.
    pub end: Result<(), ProviderError>,
}

/// Feeds these chunks as the run loop does: nothing after the end mark, and the end of the body only if there was none.
pub fn replay<'a>(codec: &dyn Provider, chunks: impl IntoIterator<Item = &'a [u8]>) -> Replay {
    let mut decoder = codec.decoder();
    let mut events = Vec::new();
    for chunk in chunks {
        if let Err(error) = decoder.feed(chunk, &mut events) {
            return Replay {
                events,
                end: Err(error),
            };
        }
        if decoder.is_finished() {
            return Replay { events, end: Ok(()) };
        }
    }
    let end = decoder.end(&mut events);
    Replay { events, end }
}

/// Feeds a body whole, in two pieces cut at every byte, and byte by byte, and requires the same of all.
pub fn replay_every_way(codec: &dyn Provider, body: &[u8]) -> Replay {
    let whole = replay(codec, [body]);
    let step = if body.len() > EVERY_BYTE_MAX_BYTES {
        body.len() / 499
    } else {
        1
    };
    for cut in (0..body.len()).step_by(step) {
        let (head, tail) = body.split_at(cut);
        assert_eq!(replay(codec, [head, tail]), whole, "cut at {cut}");
    }
    assert_eq!(replay(codec, body.chunks(1)), whole, "byte by byte");
    whole
}

/// One thing the model said.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// Text, its deltas joined.
    Text(String),
    /// Reasoning, its deltas joined.
    Reasoning(String),
    /// A call that ended.
    Call {
        /// The vendor's id.
        vendor_id: Option<String>,
        /// Its tool.
        name: String,
        /// Its arguments, parsed.
        arguments: Value,
    },
}

/// The sum of an answer's events.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Answer {
    /// What was said, in order; a call has the place of its start.
    pub said: Vec<Said>,
    /// Token counts.
    pub usage: Option<TokenUsage>,
    /// Why it ended.
    pub finish: Option<FinishReason>,
}

impl Answer {
    /// Sums events up, and requires of them what [`ModelEvent`] promises.
    pub fn of(events: &[ModelEvent]) -> Self {
        let mut answer = Self::default();
        let mut places = BTreeMap::new();
        let mut texts: BTreeMap<usize, String> = BTreeMap::new();
        let mut ended = Vec::new();
        for event in events {
            match event {
                ModelEvent::Text(delta) => {
                    assert!(!delta.is_empty(), "an empty text");
                    match answer.said.last_mut() {
                        Some(Said::Text(text)) => text.push_str(delta),
                        _ => answer.said.push(Said::Text(delta.clone())),
                    }
                }
                ModelEvent::Reasoning(delta) => match answer.said.last_mut() {
                    Some(Said::Reasoning(text)) => text.push_str(delta),
                    _ => answer.said.push(Said::Reasoning(delta.clone())),
                },
                ModelEvent::ToolCallStart {
                    slot,
                    vendor_id,
                    name,
                } => {
                    assert!(!name.is_empty(), "a nameless call");
                    assert_eq!(
                        places.insert(*slot, answer.said.len()),
                        None,
                        "two starts of a call"
                    );
                    answer.said.push(Said::Call {
                        vendor_id: vendor_id.clone(),
                        name: name.clone(),
                        arguments: Value::Null,
                    });
                }
                ModelEvent::ToolCallArguments { slot, delta } => {
                    assert!(!delta.is_empty(), "empty arguments");
                    assert!(
                        places.contains_key(slot) && !ended.contains(slot),
                        "arguments of a call not open"
                    );
                    texts.entry(*slot).or_default().push_str(delta);
                }
                ModelEvent::ToolCallEnd { slot } => {
                    assert!(
                        places.contains_key(slot) && !ended.contains(slot),
                        "end of a call not open"
                    );
                    ended.push(*slot);
                }
                ModelEvent::Usage(usage) => {
                    assert_eq!(answer.usage.replace(TokenUsage::clone(usage)), None, "two usages");
                }
                ModelEvent::Finish(finish) => {
                    assert_eq!(answer.finish.replace(*finish), None, "two finish reasons");
                }
                ModelEvent::TextEnd
                | ModelEvent::ToolCallResult { .. }
                | ModelEvent::StepEnd
                | ModelEvent::VendorState(_) => {}
            }
        }
        answer.fill_arguments(&places, &texts, &ended);
        answer
    }

    fn fill_arguments(
        &mut self,
        places: &BTreeMap<usize, usize>,
        texts: &BTreeMap<usize, String>,
        ended: &[usize],
    ) {
        for (slot, place) in places.iter().rev() {
            if !ended.contains(slot) {
                self.said.remove(*place);
            } else if let Said::Call { arguments, .. } = &mut self.said[*place] {
                let text = texts.get(slot);
                *arguments = text.map_or_else(|| json!({}), |text| serde_json::from_str(text).unwrap());
            }
        }
    }
}
