//! Random conversations of both kinds of client, held against a plain reference of the rules (contract 2.3, 2.6) and
//! against what must be true of every history, after every step. A failing seed is printed; `SEED=<n>` runs that one
//! alone, `CONVERSATIONS=<n>` as many as wanted.

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

use std::collections::{BTreeMap, HashSet};
use std::num::NonZero;
use std::thread::available_parallelism;

use chat::*;
use futures::executor::block_on;
use io_bridge::protocol::id::{ResourceId, ThreadId, ToolCallId};
use io_bridge::protocol::message::{Content, Message, MessageBody};
use io_bridge::protocol::thread::{MessageForm, MessageListRequest, Page};
use io_bridge::store::{BeginRun, EndRun, Lookup, PersistentRun, Store};
use reference::{Reference, ReferenceRun, call_answered, calls_made};
use serde_json::Value;
use sqlite::Sqlite;

/// Unless `CONVERSATIONS` says otherwise: where `CI` is set, and elsewhere.
const CONVERSATIONS_IN_CI: u64 = 10_000;
const CONVERSATIONS: u64 = 1000;

/// Starts and ends of a conversation; one in [`LONG_EVERY`] is long.
const STEPS: usize = 7;
const LONG_STEPS: usize = 24;
const LONG_EVERY: u64 = 16;

/// From this many conversations on, chance leaves out nothing.
const ENOUGH: u64 = 500;

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
    counts: Counts,
    /// Lists sent before; another tab may still show one.
    earlier: Vec<Vec<Message>>,
    /// Ids at the last look, in order.
    seen: Vec<String>,
    /// Calls at the last look, and their states.
    seen_calls: Vec<(String, &'static str)>,
}

/// What was played, by name.
#[derive(Default)]
struct Counts(BTreeMap<&'static str, u64>);

impl Counts {
    fn add(&mut self, what: &'static str) {
        self.add_all(what, 1);
    }

    fn add_all(&mut self, what: &'static str, count: u64) {
        *self.0.entry(what).or_default() += count;
    }
}

/// Everything a conversation may hold: the test fails if chance never makes one of them.
const KINDS: [&str; 16] = [
    "calls answered out of place",
    "calls answered under an id that is taken",
    "calls answered by a next run",
    "calls interrupted",
    "calls left to a next run",
    "concurrent starts",
    "edits and regenerations",
    "ends sent twice",
    "equal texts under a new id",
    "lists read and sent back",
    "lists with a gap or an aside",
    "runs",
    "starts sent twice",
    "starts by another tab",
    "starts with a window",
    "user messages changed in place",
];

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
            counts: Counts::default(),
            earlier: Vec::new(),
            seen: Vec::new(),
            seen_calls: Vec::new(),
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
            self.counts.add("starts by another tab");
        }
        self.change(&mut list);
        self.answer_calls(&mut list);
        if list.is_empty() || !self.random.one_in(4) {
            list.push(self.question());
        }
        let list = without_repeats(list);
        self.earlier.push(list.clone());
        list
    }

    fn change(&mut self, list: &mut Vec<Message>) {
        if self.random.one_in(4) {
            // Edit or regenerate: everything from some message on is gone.
            let kept = self.random.below(list.len() + 1);
            if kept < list.len() {
                self.counts.add("edits and regenerations");
            }
            list.truncate(kept);
        }
        if self.random.one_in(8) && !list.is_empty() {
            list.remove(self.random.below(list.len()));
            self.counts.add("lists with a gap or an aside");
        }
        if self.random.one_in(8) && !list.is_empty() {
            let at = self.random.below(list.len());
            let aside = user(&self.fresh("aside"));
            list.insert(at, aside);
            self.counts.add("lists with a gap or an aside");
        }
        if self.random.one_in(6) && !list.is_empty() {
            let at = self.random.below(list.len());
            let text = self.fresh("changed ");
            if list[at].role() == "user" {
                list[at] = user_saying(list[at].id.as_str(), &text);
                self.counts.add("user messages changed in place");
            }
        }
    }

    /// Results of calls that earlier runs left to this one, some of them.
    fn answer_calls(&mut self, list: &mut Vec<Message>) {
        for call in sorted(self.reference.open_calls()) {
            if self.random.one_in(2) {
                let id = match self.random.below(6) {
                    0 => {
                        self.counts.add("calls answered under an id that is taken");
                        self.some_id()
                    }
                    _ => self.fresh("t"),
                };
                let at = if self.random.one_in(4) {
                    self.counts.add("calls answered out of place");
                    self.random.below(list.len() + 1)
                } else {
                    list.len()
                };
                list.insert(at, answering(&id, &call, &format!("answer {id}")));
                self.counts.add("calls answered by a next run");
            }
        }
    }

    /// A new user message; sometimes it says what another has said.
    fn question(&mut self) -> Message {
        let new = self.fresh("u");
        let visible = self.reference.visible();
        let said = visible.iter().find_map(|message| match &message.body {
            MessageBody::User {
                content: Content::Text(text),
            } => Some(text),
            _ => None,
        });
        match said {
            Some(text) if self.random.one_in(4) => {
                self.counts.add("equal texts under a new id");
                user_saying(&new, text)
            }
            _ => user(&new),
        }
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
        self.counts.add("runs");
        if !self.live.is_empty() {
            self.counts.add("concurrent starts");
        }
        let run_id = self.fresh("r");
        let last_messages = [0, 1, 3, 8, 40][self.random.below(5)];
        let start = BeginRun {
            last_messages,
            ..begin(&run_id, list.clone())
        };
        if last_messages < 40 {
            self.counts.add("starts with a window");
        }
        if self.random.one_in(6) {
            self.counts.add("starts sent twice");
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
                    0 => {
                        self.counts.add("calls left to a next run");
                        pending.push(call.clone());
                    }
                    1 => self.counts.add("calls interrupted"),
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
        end(self.sqlite, &run, ended.clone());
        if self.random.one_in(2) {
            self.counts.add("ends sent twice");
            end(self.sqlite, &run, ended);
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

    /// What holds after every step.
    fn check(&mut self) {
        let all = self.page(MessageForm::AgUi, 500, 0);
        let messages: Vec<Message> = all.items.into_iter().map(message).collect();
        assert_eq!(messages, self.reference.visible());
        let ids: Vec<String> = messages.iter().map(|message| message.id.to_string()).collect();
        let now: HashSet<&str> = ids.iter().map(String::as_str).collect();
        assert_eq!(now.len(), ids.len(), "an id twice");
        let before: HashSet<&str> = self.seen.iter().map(String::as_str).collect();
        let stayed: Vec<&String> = self.seen.iter().filter(|id| now.contains(id.as_str())).collect();
        let known: Vec<&String> = ids.iter().filter(|id| before.contains(id.as_str())).collect();
        assert_eq!(stayed, known, "the order changed");
        self.check_calls(&messages);
        self.seen = ids;
    }

    /// Nothing is stored that no client and no run has made, once each.
    fn check_growth(&self) {
        let count = |sql: &str| serde_json::from_str::<[u64; 1]>(&self.sqlite.rows(sql)[0]).unwrap()[0];
        let made = u64::try_from(self.reference.message_count()).unwrap();
        assert_eq!(count("SELECT count(*) FROM messages"), made);
        assert_eq!(count("SELECT count(*) FROM message_pieces"), 0);
        assert_eq!(count("SELECT count(*) FROM threads"), 1);
    }

    /// Pages of any size join to the whole.
    fn check_pages(&mut self) {
        let form = [MessageForm::AgUi, MessageForm::Mastra][self.random.below(2)];
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

    /// Every call is shown once: answered, pending or interrupted.
    fn check_calls(&mut self, messages: &[Message]) {
        let answered: HashSet<String> = messages.iter().filter_map(call_answered).collect();
        let open = self.reference.open_calls();
        let expected: Vec<(String, &'static str)> = messages
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
        if expected == self.seen_calls {
            return;
        }
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
        self.seen_calls = expected;
    }

    /// The list a client read, sent back: nothing doubles, nothing moves, nothing is hidden.
    fn feed_back(&mut self) {
        let before = self.page(MessageForm::AgUi, 500, 0).items;
        if before.is_empty() {
            return;
        }
        self.counts.add("lists read and sent back");
        let back: Vec<Message> = before.iter().cloned().map(message).collect();
        let run_id = self.fresh("back");
        let run = begun(self.sqlite, begin(&run_id, back.clone()));
        let expected = self.reference.begin(&run_id, &back, 40);
        assert_eq!(run.model_input, back);
        end(self.sqlite, &run, finished(Vec::new()));
        self.reference.end(&expected, &[], &[]);
        assert_eq!(self.page(MessageForm::AgUi, 500, 0).items, before);
    }

    fn delete(&self) {
        let (store, owner) = (Store::new(self.sqlite), ResourceId::new(OWNER));
        block_on(store.delete_thread(&ThreadId::new("t"), Some(&owner), START_MS)).unwrap();
        assert_eq!(self.sqlite.rows("SELECT id FROM messages"), Vec::<String>::new());
    }

    fn play(mut self) -> Counts {
        let is_long = self.seed.is_multiple_of(LONG_EVERY);
        for _ in 0..if is_long { LONG_STEPS } else { STEPS } {
            let may_begin = self.live.len() < 3;
            if self.live.is_empty() || may_begin && self.random.one_in(3) {
                self.begin();
            } else {
                self.end();
            }
            self.check();
            if self.random.one_in(12) {
                self.feed_back();
            }
        }
        while !self.live.is_empty() {
            self.end();
            self.check();
        }
        self.check_growth();
        self.check_pages();
        self.feed_back();
        self.delete();
        self.counts
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

/// The conversations to play, in as many shares as there are threads to play them.
fn shares() -> Vec<Vec<u64>> {
    if let Ok(seed) = std::env::var("SEED") {
        return vec![vec![seed.parse().unwrap()]];
    }
    let usual = match std::env::var_os("CI") {
        Some(_) => CONVERSATIONS_IN_CI,
        None => CONVERSATIONS,
    };
    let count = std::env::var("CONVERSATIONS").map_or(usual, |count| count.parse().unwrap());
    let share_count = u64::try_from(available_parallelism().map_or(1, NonZero::get)).unwrap();
    let share = |first| (first..count).step_by(usize::try_from(share_count).unwrap());
    (0..share_count).map(|first| share(first).collect()).collect()
}

#[test]
fn every_conversation_follows_the_rules() {
    let play_share = |seeds: Vec<u64>| {
        let sqlite = Sqlite::new();
        let mut counts = Counts::default();
        for seed in seeds {
            let _seed = Seed(seed);
            for (what, count) in Conversation::new(seed, &sqlite).play().0 {
                counts.add_all(what, count);
            }
        }
        counts
    };
    let shares = shares();
    let seed_count = u64::try_from(shares.iter().map(Vec::len).sum::<usize>()).unwrap();
    let mut counts = Counts::default();
    std::thread::scope(|scope| {
        let threads: Vec<_> = shares
            .into_iter()
            .map(|share| scope.spawn(|| play_share(share)))
            .collect();
        for thread in threads {
            for (what, count) in thread.join().unwrap().0 {
                counts.add_all(what, count);
            }
        }
    });
    println!("{seed_count} conversations");
    for (what, count) in &counts.0 {
        println!("{count:>8} {what}");
    }
    if seed_count >= ENOUGH {
        assert_eq!(counts.0.into_keys().collect::<Vec<_>>(), sorted_kinds());
    }
}

fn sorted_kinds() -> Vec<&'static str> {
    let mut kinds = KINDS.to_vec();
    kinds.sort_unstable();
    kinds
}
