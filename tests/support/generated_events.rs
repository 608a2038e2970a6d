//! Events of every kind, made from a seed: odd texts of every length, every optional member there and not there, numbers
//! of every size.

use io_bridge::protocol::event::{Event, EventKind, Outcome, RunErrorCode, RunFinished, TokenUsage};
use io_bridge::protocol::id::{MessageId, RunId, ThreadId, ToolCallId};
use serde_json::{Map, Value};

/// Lengths around the boundaries of a varint, in characters.
const LENGTHS: [usize; 12] = [0, 0, 1, 1, 2, 3, 20, 126, 127, 128, 129, 300];

/// One in so many texts is longer than two bytes of a varint can say.
const ONE_LONG_IN: usize = 200;
const LONG: [usize; 3] = [16_383, 16_384, 100_000];

/// No digits: a JavaScript object would move members named by a number to its front.
const ALPHABETS: [&str; 6] = [
    "abcXYZ-_ ",
    "\"\\/\n\r\t\u{0}\u{1}\u{1f}\u{7f}",
    "\u{e9}\u{6f22}\u{1f600}\u{301}\u{202e}\u{200d}",
    "\u{2028}\u{2029}\u{85}\u{fffd}\u{ffff}\u{10ffff}",
    "dat: {}\n",
    "\u{80}\u{7ff}\u{800}\u{d7ff}\u{e000}\u{10000}",
];

/// As JSON writes them; the protocol's binary form has doubles only.
const NUMBERS: [&str; 14] = [
    "0",
    "-0",
    "1",
    "1.0",
    "-1",
    "-0.5",
    "0.1",
    "1e21",
    "1E-7",
    "5e-324",
    "1.7976931348623157e308",
    "9007199254740993",
    "-9223372036854775808",
    "123456789012345678901234567890",
];

/// Token counts: the schema ends at 2^53 - 1.
const COUNTS: [u64; 8] = [0, 1, 127, 128, 16_384, 1 << 31, 1 << 32, (1 << 53) - 1];

/// Gives events without end, the same for the same seed.
pub struct Events {
    /// State of a SplitMix64.
    state: u64,
}

impl Events {
    /// Starts anew.
    pub fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(bound).unwrap()).unwrap()
    }

    fn pick<T: Copy>(&mut self, among: &[T]) -> T {
        among[self.below(among.len())]
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(2) == 0).then(|| make(self))
    }

    fn several<T>(&mut self, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        (0..self.below(4)).map(|_| make(self)).collect()
    }

    fn text(&mut self) -> String {
        let is_long = self.below(ONE_LONG_IN) == 0;
        let length = self.pick(if is_long { &LONG[..] } else { &LENGTHS[..] });
        let alphabet: Vec<char> = self.pick(&ALPHABETS).chars().collect();
        (0..length).map(|_| self.pick(&alphabet)).collect()
    }

    fn thread_id(&mut self) -> ThreadId {
        ThreadId::new(self.text())
    }

    fn run_id(&mut self) -> RunId {
        RunId::new(self.text())
    }

    fn message_id(&mut self) -> MessageId {
        MessageId::new(self.text())
    }

    fn tool_call_id(&mut self) -> ToolCallId {
        ToolCallId::new(self.text())
    }

    fn json(&mut self, depth: usize) -> Value {
        match self.below(if depth == 0 { 4 } else { 6 }) {
            0 => Value::Null,
            1 => Value::Bool(self.below(2) == 0),
            2 => serde_json::from_str(self.pick(&NUMBERS)).unwrap(),
            3 => Value::String(self.text()),
            4 => Value::Array(self.several(|events| events.json(depth - 1))),
            _ => {
                let mut members = self.several(|events| (events.text(), events.json(depth - 1)));
                // In the order in which the oracles write a map.
                members.sort_by(|(one, _), (other, _)| one.cmp(other));
                Value::Object(Map::from_iter(members))
            }
        }
    }

    fn usage(&mut self) -> TokenUsage {
        let count = |events: &mut Self| events.maybe(|events| events.pick(&COUNTS));
        TokenUsage {
            provider: self.maybe(Self::text),
            model: self.maybe(Self::text),
            input_tokens: count(self),
            output_tokens: count(self),
            total_tokens: count(self),
            reasoning_tokens: count(self),
            cached_input_tokens: count(self),
            cache_write_input_tokens: count(self),
        }
    }

    fn outcome(&mut self) -> Outcome {
        if self.below(3) == 0 {
            return Outcome::Cancelled;
        }
        let first = self.tool_call_id();
        let mut pending_tool_call_ids = self.several(Self::tool_call_id);
        pending_tool_call_ids.push(first);
        Outcome::Success {
            pending_tool_call_ids,
        }
    }

    /// One event of this kind.
    pub fn of_kind(&mut self, kind: EventKind) -> Event {
        match kind {
            EventKind::RunStarted => Event::RunStarted {
                thread_id: self.thread_id(),
                run_id: self.run_id(),
            },
            EventKind::RunFinished => Event::RunFinished(RunFinished {
                thread_id: self.thread_id(),
                run_id: self.run_id(),
                result: self.maybe(|events| events.json(3)),
                outcome: self.maybe(Self::outcome),
                usage: self.several(Self::usage),
            }),
            EventKind::RunError => Event::RunError {
                message: self.text(),
                code: self.pick(RunErrorCode::ALL),
            },
            EventKind::StepStarted => Event::StepStarted {
                step_name: self.text(),
            },
            EventKind::StepFinished => Event::StepFinished {
                step_name: self.text(),
            },
            EventKind::TextMessageStart => Event::TextMessageStart {
                message_id: self.message_id(),
            },
            EventKind::TextMessageContent => Event::TextMessageContent {
                message_id: self.message_id(),
                delta: self.text(),
            },
            EventKind::TextMessageEnd => Event::TextMessageEnd {
                message_id: self.message_id(),
            },
            EventKind::ReasoningStart => Event::ReasoningStart {
                message_id: self.message_id(),
            },
            EventKind::ReasoningMessageStart => Event::ReasoningMessageStart {
                message_id: self.message_id(),
            },
            EventKind::ReasoningMessageContent => Event::ReasoningMessageContent {
                message_id: self.message_id(),
                delta: self.text(),
            },
            EventKind::ReasoningMessageEnd => Event::ReasoningMessageEnd {
                message_id: self.message_id(),
            },
            EventKind::ReasoningEnd => Event::ReasoningEnd {
                message_id: self.message_id(),
            },
            EventKind::ToolCallStart => Event::ToolCallStart {
                tool_call_id: self.tool_call_id(),
                tool_call_name: self.text(),
                parent_message_id: self.message_id(),
            },
            EventKind::ToolCallArgs => Event::ToolCallArgs {
                tool_call_id: self.tool_call_id(),
                delta: self.text(),
            },
            EventKind::ToolCallEnd => Event::ToolCallEnd {
                tool_call_id: self.tool_call_id(),
            },
            EventKind::ToolCallResult => Event::ToolCallResult {
                message_id: self.message_id(),
                tool_call_id: self.tool_call_id(),
                content: self.text(),
            },
        }
    }
}

impl Iterator for Events {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let kind = self.pick(EventKind::ALL);
        Some(self.of_kind(kind))
    }
}
