//! Random conversations of both kinds of client, held against a plain reference of the rules (contract 2.3, 2.6) and
//! against what must be true of every history. A failing seed is printed; `SEED=<n>` runs that one alone.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

#[path = "support/chat.rs"]
#[expect(dead_code, reason = "shared with other test crates")]
mod chat;
#[path = "support/reference.rs"]
mod reference;
#[path = "support/sqlite.rs"]
#[expect(dead_code, reason = "shared with other test crates")]
mod sqlite;

use std::collections::HashSet;

use chat::*;
use futures::executor::block_on;
use io_bridge::protocol::id::{ResourceId, ThreadId, ToolCallId};
use io_bridge::protocol::message::Message;
use io_bridge::protocol::thread::{MessageForm, MessageListRequest, Page};
use io_bridge::store::{BeginRun, EndRun, Lookup, PersistentRun, Store};
use reference::{Reference, ReferenceRun, call_answered, calls_made};
use serde_json::Value;
use sqlite::Sqlite;

/// Unless `CONVERSATIONS` says otherwise.
const CONVERSATIONS: u64 = 200;
const STEPS: usize = 14;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % u64::try_from(bound).unwrap()).unwrap()
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

/// Says which seed failed.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("failed with SEED={}", self.0);
        }
    }
}

struct Conversation<'a> {
    seed: u64,
    random: Random,
    sqlite: &'a Sqlite,
    reference: Reference,
    live: Vec<(PersistentRun, ReferenceRun)>,
    /// Whether the client sends its whole list, or only what is new.
    sends_all: bool,
    next_id: usize,
    run_count: usize,
    retry_count: usize,
    /// Lists sent before; a client may go back to one.
    earlier: Vec<Vec<Message>>,
}

impl<'a> Conversation<'a> {
    fn new(seed: u64, sqlite: &'a Sqlite) -> Self {
        let mut random = Random(seed);
        Self {
            seed,
            sends_all: random.one_in(2),
            random,
            sqlite,
            reference: Reference::default(),
            live: Vec::new(),
            next_id: 0,
            run_count: 0,
            retry_count: 0,
            earlier: Vec::new(),
        }
    }

    fn fresh(&mut self, prefix: &str) -> String {
        self.next_id += 1;
        format!("{prefix}{}.{}", self.seed, self.next_id)
    }

    /// What the client sends: its view of the thread, perhaps cut back, and something new.
    fn list(&mut self) -> Vec<Message> {
        let mut list = if self.sends_all {
            self.reference.visible()
        } else {
            Vec::new()
        };
        if self.random.one_in(6) && !self.earlier.is_empty() {
            list = self.earlier[self.random.below(self.earlier.len())].clone();
        }
        if self.random.one_in(4) {
            // Edit or regenerate: everything from some message on is gone.
            let kept = self.random.below(list.len() + 1);
            list.truncate(kept);
        }
        if self.random.one_in(8) && !list.is_empty() {
            list.remove(self.random.below(list.len()));
        }
        if self.random.one_in(8) && !list.is_empty() {
            let at = self.random.below(list.len());
            let aside = user(&self.fresh("aside"));
            list.insert(at, aside);
        }
        if self.random.one_in(6) && !list.is_empty() {
            let at = self.random.below(list.len());
            let text = self.fresh("changed ");
            if list[at].role() == "user" {
                list[at] = user_saying(list[at].id.as_str(), &text);
            }
        }
        for call in sorted(self.reference.open_calls()) {
            if self.random.one_in(2) {
                let id = match self.random.below(6) {
                    0 => self.some_id(),
                    _ => self.fresh("t"),
                };
                let at = if self.random.one_in(4) {
                    self.random.below(list.len() + 1)
                } else {
                    list.len()
                };
                list.insert(at, answering(&id, &call, &format!("answer {id}")));
            }
        }
        if list.is_empty() || !self.random.one_in(4) {
            let new = self.fresh("u");
            list.push(user(&new));
        }
        let list = without_repeats(list);
        self.earlier.push(list.clone());
        list
    }

    /// An id that is taken, if there is one.
    fn some_id(&mut self) -> String {
        let visible = self.reference.visible();
        match visible.len() {
            0 => self.fresh("t"),
            count => visible[self.random.below(count)].id.to_string(),
        }
    }

    fn begin(&mut self) {
        let list = self.list();
        self.run_count += 1;
        let run_id = self.fresh("r");
        let last_messages = [0, 1, 3, 8, 40][self.random.below(5)];
        let start = BeginRun {
            last_messages,
            ..begin(&run_id, list.clone())
        };
        if self.random.one_in(6) {
            self.retry_count += 1;
            self.sqlite.lose_next_answer();
            block_on(Store::new(self.sqlite).begin_run(start.clone())).unwrap_err();
        }
        let run = begun(self.sqlite, start);
        let expected = self
            .reference
            .begin(&run_id, &list, usize::try_from(last_messages).unwrap());
        assert_eq!(
            run.model_input,
            expected.model_input,
            "{run_id} with {:?}",
            ids(&list)
        );
        let open: HashSet<String> = self.reference.open_calls();
        assert!(
            run.pending_tool_call_ids
                .iter()
                .all(|call| open.contains(call.as_str()))
        );
        self.live.push((run, expected));
    }

    fn end(&mut self) {
        let at = self.random.below(self.live.len());
        let (run, reference_run) = self.live.swap_remove(at);
        let mut produced = Vec::new();
        let mut pending = Vec::new();
        for _ in 0..self.random.below(3) {
            let calls: Vec<String> = (0..1 + self.random.below(3)).map(|_| self.fresh("c")).collect();
            let names: Vec<&str> = calls.iter().map(String::as_str).collect();
            produced.push(calling(&self.fresh("a"), &names));
            for call in &calls {
                match self.random.below(4) {
                    0 => pending.push(call.clone()),
                    1 => {}
                    _ => produced.push(answering(&self.fresh("m"), call, "{}")),
                }
            }
        }
        if !self.random.one_in(4) {
            produced.push(assistant(&self.fresh("a")));
        }
        let ended = EndRun {
            pending_tool_call_ids: pending
                .iter()
                .map(|call| ToolCallId::new(call.as_str()))
                .collect(),
            ..finished(produced.clone())
        };
        for _ in 0..1 + self.random.below(2) {
            end(self.sqlite, &run, ended.clone());
        }
        self.reference.end(&reference_run, &produced, &pending);
    }

    fn page(&self, form: MessageForm, limit: u32, offset: u64) -> Page<Value> {
        let request = MessageListRequest {
            thread_id: ThreadId::new("t"),
            limit,
            offset,
            form,
            with_superseded: false,
        };
        match block_on(Store::new(self.sqlite).messages(&request, Some(&ResourceId::new(OWNER)))).unwrap() {
            Lookup::Found(page) => page,
            other => panic!("{other:?}"),
        }
    }

    /// Ids and order, cheap enough for every step.
    fn check_order(&self) {
        let expected = self.reference.visible();
        assert_eq!(visible(self.sqlite), ids(&expected));
    }

    fn check_messages(&self) {
        let all = self.page(MessageForm::AgUi, 500, 0);
        let messages: Vec<Message> = all.items.iter().cloned().map(message).collect();
        assert_eq!(messages, self.reference.visible());
        let ids: HashSet<&str> = messages.iter().map(|message| message.id.as_str()).collect();
        assert_eq!(ids.len(), messages.len(), "an id twice");
        self.check_calls(&messages);
    }

    /// Pages of any size join to the whole.
    fn check_pages(&mut self) {
        for form in [MessageForm::AgUi, MessageForm::Mastra] {
            let whole = self.page(form, 500, 0);
            let limit = 3 + self.random.below(8);
            let mut pages: Vec<Vec<Value>> = Vec::new();
            for offset in (0..whole.items.len()).step_by(limit) {
                let (limit, offset) = (u32::try_from(limit).unwrap(), u64::try_from(offset).unwrap());
                pages.push(self.page(form, limit, offset).items);
            }
            pages.reverse();
            assert_eq!(pages.concat(), whole.items, "pages of {limit}");
            assert_eq!(whole.total, u64::try_from(whole.items.len()).unwrap());
        }
    }

    /// Every call is shown once: answered, pending or interrupted.
    fn check_calls(&self, messages: &[Message]) {
        let answered: HashSet<String> = messages.iter().filter_map(call_answered).collect();
        let open = self.reference.open_calls();
        let expected: Vec<(String, &str)> = messages
            .iter()
            .flat_map(calls_made)
            .map(|call| {
                let state = if open.contains(&call) {
                    "call"
                } else if answered.contains(&call) {
                    "result"
                } else {
                    "interrupted"
                };
                (call, state)
            })
            .collect();
        let mut shown = Vec::new();
        for row in self.page(MessageForm::Mastra, 500, 0).items {
            for part in row["content"]["parts"].as_array().unwrap() {
                let Some(invocation) = part.get("toolInvocation") else {
                    continue;
                };
                let interrupted = invocation["result"]["error"] == "The call was interrupted.";
                let state = match invocation["state"].as_str().unwrap() {
                    "result" if interrupted => "interrupted",
                    "result" => "result",
                    other => other,
                };
                shown.push((
                    invocation["toolCallId"].as_str().unwrap().to_owned(),
                    match state {
                        "call" => "call",
                        "interrupted" => "interrupted",
                        _ => "result",
                    },
                ));
            }
        }
        assert_eq!(shown, expected);
    }

    /// The list a client read, sent back: nothing doubles, nothing moves, nothing is hidden.
    fn feed_back(&mut self) {
        let before = self.page(MessageForm::AgUi, 500, 0).items;
        let back: Vec<Message> = before.iter().cloned().map(message).collect();
        let run_id = self.fresh("back");
        let run = begun(self.sqlite, begin(&run_id, back.clone()));
        assert_eq!(run.model_input, back);
        end(self.sqlite, &run, finished(Vec::new()));
        assert_eq!(self.page(MessageForm::AgUi, 500, 0).items, before);
    }

    fn delete(&self) {
        let (store, owner) = (Store::new(self.sqlite), ResourceId::new(OWNER));
        block_on(store.delete_thread(&ThreadId::new("t"), Some(&owner), START_MS)).unwrap();
        assert_eq!(self.sqlite.rows("SELECT id FROM messages"), Vec::<String>::new());
    }
}

fn sorted(calls: HashSet<String>) -> Vec<String> {
    let mut calls: Vec<String> = calls.into_iter().collect();
    calls.sort();
    calls
}

/// A client's list has no id twice.
fn without_repeats(list: Vec<Message>) -> Vec<Message> {
    let mut seen = HashSet::new();
    list.into_iter()
        .filter(|message| seen.insert(message.id.clone()))
        .collect()
}

fn conversation_count() -> u64 {
    std::env::var("CONVERSATIONS").map_or(CONVERSATIONS, |count| count.parse().unwrap())
}

#[test]
fn every_conversation_follows_the_rules() {
    let seeds = match std::env::var("SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..conversation_count()).collect::<Vec<u64>>(),
    };
    let (seed_count, mut run_count, mut retry_count) = (seeds.len(), 0, 0);
    let sqlite = Sqlite::new();
    for seed in seeds {
        let _seed = Seed(seed);
        let mut conversation = Conversation::new(seed, &sqlite);
        for _ in 0..STEPS {
            let may_begin = conversation.live.len() < 3;
            if conversation.live.is_empty() || may_begin && conversation.random.one_in(3) {
                conversation.begin();
            } else {
                conversation.end();
            }
            conversation.check_order();
        }
        while !conversation.live.is_empty() {
            conversation.end();
        }
        conversation.check_messages();
        conversation.check_pages();
        conversation.feed_back();
        conversation.delete();
        run_count += conversation.run_count;
        retry_count += conversation.retry_count;
    }
    println!("{seed_count} conversations, {run_count} runs, {retry_count} starts sent twice");
}
