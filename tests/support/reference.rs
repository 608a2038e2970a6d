//! The rules of history (contract 2.3, 2.6) once more, as plainly as they can be said over a list in memory.

use std::collections::{HashMap, HashSet};

use io_bridge::protocol::id::MessageId;
use io_bridge::protocol::message::{Message, MessageBody};

/// A stored message.
struct Entry {
    message: Message,
    /// Turn and index.
    place: (usize, usize),
    run: String,
    superseded: bool,
}

/// A thread: its messages in order, and what is known of its runs and calls.
#[derive(Default)]
pub struct Reference {
    entries: Vec<Entry>,
    live: HashSet<String>,
    /// Calls ever left for a next run.
    pending: HashSet<String>,
    turn: usize,
}

/// A run that began.
pub struct ReferenceRun {
    pub id: String,
    pub model_input: Vec<Message>,
    turn: usize,
    user: Option<MessageId>,
}

/// The call a message answers.
pub fn call_answered(message: &Message) -> Option<String> {
    match &message.body {
        MessageBody::Tool { tool_call_id, .. } => Some(tool_call_id.to_string()),
        _ => None,
    }
}

/// The calls a message makes.
pub fn calls_made(message: &Message) -> Vec<String> {
    match &message.body {
        MessageBody::Assistant { tool_calls, .. } => {
            tool_calls.iter().map(|call| call.id.to_string()).collect()
        }
        _ => Vec::new(),
    }
}

impl Reference {
    /// Messages that reads show.
    pub fn visible(&self) -> Vec<Message> {
        let visible = self.entries.iter().filter(|entry| !entry.superseded);
        visible.map(|entry| entry.message.clone()).collect()
    }

    /// Messages that are stored, hidden ones too.
    pub fn message_count(&self) -> usize {
        self.entries.len()
    }

    /// Calls among the visible messages that nobody has answered and a run may.
    pub fn open_calls(&self) -> HashSet<String> {
        let made = self.visible().iter().flat_map(calls_made).collect::<Vec<_>>();
        let is_answered = |call: &String| {
            self.entries
                .iter()
                .any(|entry| call_answered(&entry.message).as_ref() == Some(call))
        };
        made.into_iter()
            .filter(|call| self.pending.contains(call) && !is_answered(call))
            .collect()
    }

    /// Starts a run with the client's list.
    pub fn begin(&mut self, run: &str, list: &[Message], last_messages: usize) -> ReferenceRun {
        let shared: HashMap<usize, usize> = list
            .iter()
            .enumerate()
            .filter_map(|(index, message)| Some((index, self.find(message)?)))
            .collect();
        let stored: HashSet<usize> = shared.values().copied().collect();
        for (at, entry) in self.entries.iter_mut().enumerate() {
            if stored.contains(&at) {
                entry.superseded = false;
            } else if stored.iter().max().is_some_and(|last| at > *last) {
                entry.superseded |= !self.live.contains(&entry.run);
            }
        }
        let model_input = self.model_input(list, &shared, last_messages);
        let last_shared = shared.keys().max().copied();
        let open = self.open_calls();
        for (index, message) in list.iter().enumerate() {
            let is_user = message.role() == "user";
            match shared.get(&index) {
                Some(at) if is_user && self.entries[*at].message.role() == "user" => {
                    self.entries[*at].message = message.clone();
                }
                Some(_) => {}
                None => {
                    let answers = call_answered(message).is_some_and(|call| open.contains(&call));
                    if last_shared.is_none_or(|last| index > last) || answers {
                        self.insert(message.clone(), (self.turn, index), run, false);
                    }
                }
            }
        }
        self.live.insert(run.to_owned());
        self.turn += 1;
        let user = model_input.iter().rev().find(|message| message.role() == "user");
        ReferenceRun {
            id: run.to_owned(),
            user: user.map(|message| message.id.clone()),
            model_input,
            turn: self.turn - 1,
        }
    }

    /// Ends a run with what it produced.
    pub fn end(&mut self, run: &ReferenceRun, produced: &[Message], pending: &[String]) {
        let of_user = self
            .entries
            .iter()
            .find(|entry| Some(&entry.message.id) == run.user.as_ref());
        let superseded = of_user.is_some_and(|entry| entry.superseded);
        for (index, message) in produced.iter().enumerate() {
            if self.find(message).is_none() {
                self.insert(
                    message.clone(),
                    (run.turn, usize::MAX / 2 + index),
                    &run.id,
                    superseded,
                );
            }
        }
        self.pending.extend(pending.iter().cloned());
        self.live.remove(&run.id);
    }

    fn find(&self, message: &Message) -> Option<usize> {
        self.entries
            .iter()
            .position(|entry| match call_answered(message) {
                Some(call) => call_answered(&entry.message) == Some(call),
                None => entry.message.id == message.id,
            })
    }

    fn insert(&mut self, mut message: Message, place: (usize, usize), run: &str, superseded: bool) {
        if self.entries.iter().any(|entry| entry.message.id == message.id) {
            let call = call_answered(&message).unwrap();
            message.id = MessageId::new(format!("{}#{call}", message.id));
        }
        let run = run.to_owned();
        self.entries.push(Entry {
            message,
            place,
            run,
            superseded,
        });
        self.entries.sort_by_key(|entry| entry.place);
    }

    fn model_input(
        &self,
        list: &[Message],
        shared: &HashMap<usize, usize>,
        last_messages: usize,
    ) -> Vec<Message> {
        let first_shared = shared.values().min().copied().unwrap_or(self.entries.len());
        let before: Vec<&Entry> = self.entries[..first_shared]
            .iter()
            .filter(|entry| {
                !entry.superseded && matches!(entry.message.role(), "user" | "assistant" | "tool")
            })
            .collect();
        let window = if shared.is_empty() {
            last_messages
        } else {
            last_messages.saturating_sub(list.len())
        };
        let answered: HashSet<String> = list.iter().filter_map(call_answered).collect();
        let is_continued = |entry: &&Entry| {
            let made = calls_made(&entry.message);
            made.iter()
                .any(|call| self.pending.contains(call) && answered.contains(call))
        };
        let start = before.len().saturating_sub(window);
        let start = before
            .iter()
            .position(is_continued)
            .map_or(start, |at| at.min(start));
        let mut calls = HashSet::new();
        let mut input = Vec::new();
        for entry in &before[start..] {
            calls.extend(calls_made(&entry.message));
            if call_answered(&entry.message).is_none_or(|call| calls.contains(&call)) {
                input.push(entry.message.clone());
            }
        }
        for (index, message) in list.iter().enumerate() {
            input.push(match shared.get(&index).map(|at| &self.entries[*at].message) {
                Some(stored) if stored.role() != "user" || message.role() != "user" => stored.clone(),
                Some(_) | None => message.clone(),
            });
        }
        input
    }
}
