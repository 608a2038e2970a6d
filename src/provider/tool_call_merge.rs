//! Streamed pieces of tool calls -> [`ModelEvent`]s of whole calls, for every codec whose calls come in pieces.
//!
//! Upstreams disagree on what a piece carries: the id may come once, always, late or never; the index may be missing, the
//! same for all calls, or count something else; the name may come last or again and again. [`ToolCallMerge::take`] has
//! the rules. Source: known faults B021 to B037.

use super::{FinishReason, ModelEvent, ProviderError};
use crate::protocol::json_cursor::is_json;

/// What one delta says about a call. Absent and empty members are the same.
#[derive(Debug, Clone, Copy, Default)]
pub struct ToolCallPiece<'a> {
    /// The vendor's id of the call.
    pub id: Option<&'a str>,
    /// Another name deltas use for the call, where results go under `id` (Responses: item id).
    pub key: Option<&'a str>,
    /// A number deltas use for the call: a hint, not a position.
    pub index: Option<u64>,
    /// The tool's name, whole.
    pub name: Option<&'a str>,
    /// More argument text.
    pub arguments: &'a str,
}

/// Why an open call is no complete call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolCallFault {
    /// No piece named its tool.
    Nameless,
    /// Its arguments are neither nothing nor the text of a JSON object.
    NotAnObject,
}

/// The calls of one answer.
#[derive(Debug, Default)]
pub struct ToolCallMerge {
    calls: Vec<Call>,
}

#[derive(Debug, Default)]
struct Call {
    id: String,
    key: String,
    index: Option<u64>,
    /// Empty until known; START waits for it.
    name: String,
    arguments: String,
    progress: Progress,
    /// END was sent.
    is_ended: bool,
    /// No later piece can be meant for it. Repeats of its name may still follow its END (B026).
    is_over: bool,
}

impl ToolCallMerge {
    /// Takes one piece. It belongs to the call of the same key or id, else, without a new id, to the latest open call of
    /// its index, else to the latest open one. A new id starts a call also under a known index, and so does a name beside
    /// which the call found cannot be the one meant. A piece with neither id nor name never starts a second call.
    pub fn take(&mut self, piece: ToolCallPiece<'_>, events: &mut Vec<ModelEvent>) {
        let piece = piece.without_blanks();
        let slot = match self.find(&piece) {
            Found::Call(slot) => slot,
            Found::New => {
                self.calls.push(Call::default());
                self.calls.len() - 1
            }
            Found::Nothing => return,
        };
        if let Some(call) = self.calls.get_mut(slot).filter(|call| !call.is_over) {
            call.take(slot, &piece, events);
        }
        self.end_whole(events);
    }

    /// Ends the calls that nothing can be added to, in slot order: they may run while the next is still written (D8). An
    /// empty object waits for the next call, because some servers send one ahead of the real arguments.
    fn end_whole(&mut self, events: &mut Vec<ModelEvent>) {
        let last = self.calls.len().saturating_sub(1);
        for (slot, call) in self
            .calls
            .iter_mut()
            .enumerate()
            .filter(|(_, call)| !call.is_ended)
        {
            let is_settled = call.progress.has_members || slot < last;
            if !call.progress.is_complete || !is_settled || call.fault().is_some() {
                break;
            }
            call.send_end(slot, events);
        }
    }

    /// Whether the answer has calls.
    pub fn has_any(&self) -> bool {
        !self.calls.is_empty()
    }

    /// Whether a call is open.
    pub fn has_open(&self) -> bool {
        self.calls.iter().any(|call| !call.is_ended)
    }

    /// What the first open call that is not complete lacks.
    pub fn fault(&self) -> Option<ToolCallFault> {
        self.calls
            .iter()
            .filter(|call| !call.is_ended)
            .find_map(Call::fault)
    }

    /// Whether every open call has the text of a whole object. One without any arguments has not: they may still come.
    pub fn are_written_out(&self) -> bool {
        self.calls
            .iter()
            .all(|call| call.is_ended || (call.progress.is_complete && call.fault().is_none()))
    }

    /// Ends every open call, in slot order. What a call lacks is asked before, with [`Self::fault`].
    pub fn end_all(&mut self, events: &mut Vec<ModelEvent>) {
        for (slot, call) in self.calls.iter_mut().enumerate() {
            call.end(slot, events);
        }
    }

    /// The answer is over: ends every open call that is whole.
    ///
    /// # Errors
    /// What became of the answer when an open call is not, or was withheld.
    pub fn finish(
        &mut self,
        reason: Option<FinishReason>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<(), ProviderError> {
        match (self.fault(), reason) {
            (_, Some(FinishReason::ContentFilter)) if self.has_open() => Err(ProviderError::ContentFiltered),
            // A call that has no arguments yet may have been cut before them.
            (_, Some(FinishReason::Length)) if !self.are_written_out() => Err(ProviderError::OutputTruncated),
            (Some(ToolCallFault::Nameless), _) => Err(ProviderError::Malformed("a tool call has no name")),
            (Some(ToolCallFault::NotAnObject), None) => Err(ProviderError::Truncated),
            (Some(ToolCallFault::NotAnObject) | None, _) => {
                self.end_all(events);
                Ok(())
            }
        }
    }

    /// Ends the call of this index: for vendors that say when a call is complete.
    pub fn end_index(&mut self, index: u64, events: &mut Vec<ModelEvent>) {
        let found = self
            .calls
            .iter_mut()
            .enumerate()
            .rfind(|(_, call)| call.index == Some(index));
        if let Some((slot, call)) = found {
            call.end(slot, events);
        }
    }

    /// Ends the open calls if the arguments of all of them are written out: text comes after them, or the vendor says that
    /// one is over. Otherwise they may be interleaved with what comes, or cut, and stay open.
    pub fn end_written_out(&mut self, events: &mut Vec<ModelEvent>) {
        let is_complete =
            |call: &Call| call.is_ended || (call.progress.is_complete && call.fault().is_none());
        if self.calls.iter().all(is_complete) {
            self.end_all(events);
        }
    }

    fn find(&self, piece: &ToolCallPiece<'_>) -> Found {
        // Both against both: some servers give in one member what they announced in the other (B029).
        let is_named = |call: &Call| {
            let mut names = [piece.key, piece.id].into_iter().flatten();
            names.any(|name| name == call.key || name == call.id)
        };
        // An id that comes again under another index with a whole call of its own is no repeat.
        let is_repeat = |call: &Call| !(call.index != piece.index && call.is_closed_to(piece));
        if let Some((slot, call)) = self.calls.iter().enumerate().rfind(|(_, call)| is_named(call)) {
            return if is_repeat(call) {
                Found::Call(slot)
            } else {
                Found::New
            };
        }
        let of_index = piece
            .index
            .and_then(|index| self.latest_open(|call| call.index == Some(index)));
        let latest = self.latest_open(|_| true);
        let candidate = if piece.index.is_some() { of_index } else { latest };
        match (piece.id.or(piece.key), piece.name) {
            (Some(_), _) => Found::or_new(candidate.filter(|(_, call)| call.lacks(piece))),
            (None, Some(_)) => Found::or_new(candidate.filter(|(_, call)| !call.is_closed_to(piece))),
            (None, None) if piece.arguments.is_empty() => Found::Nothing,
            (None, None) => {
                // A complete call needs no more arguments: then the index means something else (B025).
                let unfinished = |found: &(usize, &Call)| !found.1.progress.is_complete;
                let by_hint = of_index.filter(unfinished).or_else(|| latest.filter(unfinished));
                match by_hint.or(of_index).or(latest) {
                    Some((slot, _)) => Found::Call(slot),
                    None if self.calls.is_empty() => Found::New,
                    None => Found::Nothing,
                }
            }
        }
    }

    fn latest_open(&self, is_meant: impl Fn(&Call) -> bool) -> Option<(usize, &Call)> {
        self.calls
            .iter()
            .enumerate()
            .rfind(|(_, call)| !call.is_over && is_meant(call))
    }
}

enum Found {
    Call(usize),
    New,
    Nothing,
}

impl Found {
    fn or_new(candidate: Option<(usize, &Call)>) -> Self {
        candidate.map_or(Self::New, |(slot, _)| Self::Call(slot))
    }
}

impl ToolCallPiece<'_> {
    fn without_blanks(self) -> Self {
        let not_empty = |text: &&str| !text.is_empty();
        Self {
            id: self.id.filter(not_empty),
            key: self.key.filter(not_empty),
            name: self.name.filter(not_empty),
            ..self
        }
    }
}

impl Call {
    /// Whether a piece with a new id can only be this call's, whose id had not come yet.
    fn lacks(&self, piece: &ToolCallPiece<'_>) -> bool {
        let id_is_free = piece.id.is_none() || self.id.is_empty();
        let key_is_free = piece.key.is_none() || self.key.is_empty();
        id_is_free && key_is_free && !self.is_closed_to(piece)
    }

    /// Whether a piece's name shows that it belongs to another call: a different name, or the same with arguments for a
    /// call that has all of its own.
    fn is_closed_to(&self, piece: &ToolCallPiece<'_>) -> bool {
        let Some(name) = piece.name.filter(|_| !self.name.is_empty()) else {
            return false;
        };
        name != self.name || (self.progress.is_complete && !piece.arguments.is_empty())
    }

    fn take(&mut self, slot: usize, piece: &ToolCallPiece<'_>, events: &mut Vec<ModelEvent>) {
        set_once(&mut self.id, piece.id);
        set_once(&mut self.key, piece.key);
        self.index = self.index.or(piece.index);
        if self.is_ended {
            return;
        }
        let delta = self.append(piece.arguments);
        if !self.name.is_empty() {
            push_arguments(slot, delta, events);
        } else if let Some(name) = piece.name {
            name.clone_into(&mut self.name);
            events.push(ModelEvent::ToolCallStart {
                slot,
                vendor_id: (!self.id.is_empty()).then(|| self.id.clone()),
                name: name.to_owned(),
            });
            push_arguments(slot, &self.arguments, events);
        }
    }

    /// Appends argument text and gives what of it counts: blanks in front and the text `null` are nothing.
    fn append<'p>(&mut self, arguments: &'p str) -> &'p str {
        let delta = if self.arguments.is_empty() {
            Some(arguments.trim_ascii_start())
                .filter(|text| text.trim_ascii_end() != "null")
                .unwrap_or_default()
        } else {
            arguments
        };
        self.progress.take(delta);
        self.arguments.push_str(delta);
        delta
    }

    fn fault(&self) -> Option<ToolCallFault> {
        if self.name.is_empty() {
            return Some(ToolCallFault::Nameless);
        }
        let is_object = || self.progress.is_complete && is_json(&self.arguments);
        (!self.arguments.is_empty() && !is_object()).then_some(ToolCallFault::NotAnObject)
    }

    fn end(&mut self, slot: usize, events: &mut Vec<ModelEvent>) {
        self.is_over = true;
        self.send_end(slot, events);
    }

    fn send_end(&mut self, slot: usize, events: &mut Vec<ModelEvent>) {
        if !self.is_ended && !self.name.is_empty() {
            self.is_ended = true;
            events.push(ModelEvent::ToolCallEnd { slot });
        }
    }
}

fn set_once(member: &mut String, value: Option<&str>) {
    if let Some(value) = value.filter(|_| member.is_empty()) {
        value.clone_into(member);
    }
}

fn push_arguments(slot: usize, delta: &str, events: &mut Vec<ModelEvent>) {
    if !delta.is_empty() {
        events.push(ModelEvent::ToolCallArguments {
            slot,
            delta: delta.to_owned(),
        });
    }
}

/// How far the text of a JSON object is written, told without parsing it again for every piece.
#[derive(Debug, Default)]
struct Progress {
    depth: usize,
    is_in_string: bool,
    is_escaped: bool,
    /// The brace that opened the object is closed.
    is_complete: bool,
    /// Something but blanks stands between the braces.
    has_members: bool,
}

impl Progress {
    fn take(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' if self.is_in_string => self.is_escaped = true,
                b'"' => {
                    self.has_members = true;
                    self.is_in_string = !self.is_in_string;
                }
                _ if self.is_in_string => {}
                b'{' | b'[' => {
                    self.has_members |= self.depth > 0;
                    self.depth += 1;
                }
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.is_complete |= self.depth == 0 && byte == b'}';
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
#[path = "tool_call_merge_tests.rs"]
mod tests;
