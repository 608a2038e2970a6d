//! The output items of an answer, found by whatever their events name them: item id, else call id, else output index
//! (B029, B030).

use serde_json::Value;

use super::super::ModelEvent;
use super::super::tool_call_merge::{ToolCallMerge, ToolCallPiece};
use super::event;
use crate::protocol::tree::json;

/// How an event names an item. Empty = not at all.
#[derive(Debug, Clone, Copy)]
pub(super) struct Naming<'a> {
    pub id: &'a str,
    pub call_id: &'a str,
    pub output_index: Option<u64>,
}

/// The names an item was opened with.
#[derive(Debug)]
struct Names {
    id: String,
    call_id: String,
    output_index: Option<u64>,
}

/// The items in the order they arrived in.
#[derive(Debug, Default)]
pub(super) struct Items {
    messages: Vec<Message>,
    calls: Vec<Call>,
    /// Reasoning: its place, and what must go back of it.
    reasoning: Vec<(usize, Value)>,
    count: usize,
}

/// Text.
#[derive(Debug)]
pub(super) struct Message {
    /// The number of items that arrived before.
    place: usize,
    names: Names,
    text: String,
    phase: String,
    /// Numbers of the content parts that have said something.
    said: Vec<u64>,
    is_closed: bool,
}

/// A call.
#[derive(Debug)]
pub(super) struct Call {
    /// The number of items that arrived before.
    place: usize,
    names: Names,
    slot: usize,
    /// Names the call towards [`ToolCallMerge`].
    key: String,
    has_arguments: bool,
    is_closed: bool,
}

impl<'a> Naming<'a> {
    /// How an item names itself.
    pub fn of(item: &'a event::Item<'_>, output_index: Option<u64>) -> Self {
        Self {
            id: &item.id.0,
            call_id: &item.call_id.0,
            output_index,
        }
    }

    fn to_names(self) -> Names {
        Names {
            id: self.id.to_owned(),
            call_id: self.call_id.to_owned(),
            output_index: self.output_index,
        }
    }

    fn is_of(&self, names: &Names) -> bool {
        let is_known = |name: &&str| !name.is_empty() && (**name == names.id || **name == names.call_id);
        [self.id, self.call_id].iter().any(is_known)
    }

    /// Whether it may mean an open item of other names: some servers give new ids with every event.
    fn may_be_of(&self, names: &Names) -> bool {
        let is_same_call = self.call_id.is_empty() || names.call_id.is_empty();
        let is_same_place = match (self.output_index, names.output_index) {
            (Some(one), Some(other)) => one == other,
            (None, _) | (_, None) => true,
        };
        is_same_call && is_same_place
    }
}

impl Items {
    /// The message that is named; a new one if there is none.
    pub fn message(&mut self, naming: &Naming<'_>) -> &mut Message {
        let named = |message: &Message| naming.is_of(&message.names);
        let possible = |message: &Message| !message.is_closed && naming.may_be_of(&message.names);
        let found = self.messages.iter().rposition(named);
        let found = found.or_else(|| self.messages.iter().rposition(possible));
        let count = &mut self.count;
        found_or_new(&mut self.messages, found, || Message {
            place: next(count),
            names: naming.to_names(),
            text: String::new(),
            phase: String::new(),
            said: Vec::new(),
            is_closed: false,
        })
    }

    /// The call that is named; a new one, made known to `merge`, if there is none.
    pub fn call(&mut self, naming: &Naming<'_>, merge: &mut ToolCallMerge) -> &mut Call {
        let named = |call: &Call| naming.is_of(&call.names);
        let possible = |call: &Call| !call.is_closed && naming.may_be_of(&call.names);
        let found = self.calls.iter().rposition(named);
        let found = found.or_else(|| self.calls.iter().rposition(possible));
        let (slot, count) = (self.calls.len(), &mut self.count);
        found_or_new(&mut self.calls, found, || {
            let call = Call {
                place: next(count),
                names: naming.to_names(),
                slot,
                key: format!("call {slot}"),
                has_arguments: false,
                is_closed: false,
            };
            // Without a name yet, so there is nothing to say.
            merge.take(call.piece(), &mut Vec::new());
            call
        })
    }

    /// The call that is named by an id.
    pub fn known_call(&mut self, naming: &Naming<'_>) -> Option<&mut Call> {
        self.calls.iter_mut().find(|call| naming.is_of(&call.names))
    }

    /// Keeps reasoning that can go back: only what is encrypted can, since nothing is stored at the vendor.
    pub fn keep_reasoning(&mut self, item: event::Item<'_>) {
        if item.encrypted_content.0.is_empty() {
            return;
        }
        let place = next(&mut self.count);
        let kept = json!({
            "type": "reasoning",
            "id": item.id.0,
            "summary": item.summary.filter(Value::is_array).unwrap_or_else(|| json!([])),
            "encrypted_content": item.encrypted_content.0,
        });
        self.reasoning.push((place, kept));
    }

    /// Whether a message has said anything.
    pub fn have_said(&self) -> bool {
        self.messages.iter().any(|message| !message.said.is_empty())
    }

    /// Every item in its place, if there is reasoning among them. Calls are named by their slot: they go back as they are
    /// stored.
    pub fn to_state(&self) -> Option<Value> {
        if self.reasoning.is_empty() {
            return None;
        }
        let messages = self
            .messages
            .iter()
            .map(|message| (message.place, message.to_state()));
        let calls = self.calls.iter();
        let calls = calls.map(|call| (call.place, json!({ "type": "function_call", "slot": call.slot })));
        let mut state = vec![Value::Null; self.count];
        for (place, item) in messages.chain(calls).chain(self.reasoning.iter().cloned()) {
            if let Some(known) = state.get_mut(place) {
                *known = item;
            }
        }
        Some(Value::Array(state))
    }
}

/// The item that was found; a new one if there was none.
#[expect(
    clippy::indexing_slicing,
    reason = "it is the place of one that was found, or of the new one"
)]
fn found_or_new<T>(items: &mut Vec<T>, found: Option<usize>, new: impl FnOnce() -> T) -> &mut T {
    let place = found.unwrap_or_else(|| {
        items.push(new());
        items.len() - 1
    });
    &mut items[place]
}

fn next(count: &mut usize) -> usize {
    *count += 1;
    *count - 1
}

impl Message {
    /// Whether a content part has said anything.
    pub fn has_said(&self, content_index: Option<u64>) -> bool {
        self.said.contains(&content_index.unwrap_or(0))
    }

    /// Says more of a content part.
    pub fn say(&mut self, content_index: Option<u64>, text: &str, events: &mut Vec<ModelEvent>) {
        let content_index = content_index.unwrap_or(0);
        if !self.said.contains(&content_index) {
            self.said.push(content_index);
        }
        self.text.push_str(text);
        events.push(ModelEvent::Text(text.to_owned()));
    }

    /// The message is over.
    pub fn close(&mut self, phase: &str, events: &mut Vec<ModelEvent>) {
        phase.clone_into(&mut self.phase);
        if !std::mem::replace(&mut self.is_closed, true) && !self.said.is_empty() {
            events.push(ModelEvent::TextEnd);
        }
    }

    fn to_state(&self) -> Value {
        let mut state = json!({ "type": "message", "text": self.text });
        if let Value::Object(members) = &mut state
            && !self.phase.is_empty()
        {
            members.insert("phase".to_owned(), self.phase.as_str().into());
        }
        state
    }
}

impl Call {
    /// Tells its id and its tool's name.
    pub fn announce(
        &mut self,
        item: &event::Item<'_>,
        merge: &mut ToolCallMerge,
        events: &mut Vec<ModelEvent>,
    ) {
        if self.names.call_id.is_empty() {
            self.names.call_id = item.call_id.0.to_string();
        }
        let piece = ToolCallPiece {
            id: Some(&item.call_id.0),
            name: Some(&item.name.0),
            ..self.piece()
        };
        merge.take(piece, events);
    }

    /// More argument text.
    pub fn add_arguments(
        &mut self,
        arguments: &str,
        merge: &mut ToolCallMerge,
        events: &mut Vec<ModelEvent>,
    ) {
        if !arguments.is_empty() {
            self.has_arguments = true;
            let piece = ToolCallPiece {
                arguments,
                ..self.piece()
            };
            merge.take(piece, events);
        }
    }

    /// The whole argument text, for a call that had none.
    pub fn fill_arguments(
        &mut self,
        arguments: &str,
        merge: &mut ToolCallMerge,
        events: &mut Vec<ModelEvent>,
    ) {
        if !self.has_arguments {
            self.add_arguments(arguments, merge, events);
        }
    }

    /// The vendor says that it is whole.
    pub fn close(&mut self, merge: &mut ToolCallMerge, events: &mut Vec<ModelEvent>) {
        self.is_closed = true;
        merge.end_index(self.index(), events);
    }

    fn piece(&self) -> ToolCallPiece<'_> {
        ToolCallPiece {
            key: Some(&self.key),
            index: Some(self.index()),
            ..ToolCallPiece::default()
        }
    }

    fn index(&self) -> u64 {
        self.slot as u64
    }
}
