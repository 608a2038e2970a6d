//! Random conversations through whole runs: both kinds of client in two tabs, front-end tools in both modes, clients
//! that leave at any event, runs beside each other, a database that fails. What was streamed is what is stored, and
//! sent back it changes nothing (contract 2.3, 2.6). `SCENES=<n>` plays as many as wanted, `SEED=<n>` that one alone.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashSet};
use std::rc::Rc;

use futures::executor::block_on;
use io_bridge::protocol::event::Event;
use io_bridge::protocol::id::ThreadId;
use io_bridge::protocol::thread::{MessageForm, MessageListRequest};
use io_bridge::protocol::tool::ToolResult;
use io_bridge::store::{DatabaseError, Lookup, Store};
use serde_json::{Value, json};

use crate::completions::{answer, call, finish, text};
use crate::read_back::streamed;
use crate::scene::{Answer, Piece, Played, Scene, SceneDatabase};

const SCENES: u64 = 150;
const RUNS: usize = 6;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % bound as u64).unwrap()
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

/// What was played, by name; the test fails if chance never makes one of them.
const KINDS: [&str; 11] = [
    "calls left to the next run and answered by it",
    "clients that leave",
    "database batches whose answer was lost",
    "end batches kept in the outbox",
    "lists sent back whole",
    "new messages only",
    "runs beside another",
    "runs of front-end tools in next-run mode",
    "runs of front-end tools in same-run mode",
    "upstreams that die",
    "whole lists",
];

type Counts = Rc<RefCell<BTreeMap<&'static str, u64>>>;

struct Conversation {
    thread: String,
    random: Random,
    database: SceneDatabase,
    counts: Counts,
    run_count: usize,
    /// What each tab shows.
    tabs: [Vec<Value>; 2],
    /// Ids at the last look, in order.
    seen: Vec<String>,
    /// After how many events clients left.
    left_after: Rc<RefCell<HashSet<usize>>>,
}

impl Conversation {
    fn count(&self, what: &'static str) {
        *self.counts.borrow_mut().entry(what).or_default() += 1;
    }

    fn stored(&self, with_superseded: bool) -> Vec<Value> {
        let request = MessageListRequest {
            thread_id: ThreadId::new(self.thread.as_str()),
            limit: 500,
            offset: 0,
            form: MessageForm::AgUi,
            with_superseded,
        };
        match block_on(Store::new(&self.database).messages(&request, None)).unwrap() {
            Lookup::Found(page) => page.items,
            Lookup::Unknown | Lookup::Foreign => Vec::new(),
        }
    }

    fn body(&mut self, messages: &[Value], mode: &str) -> Value {
        self.run_count += 1;
        json!({
            "threadId": self.thread, "runId": format!("{}-r{}", self.thread, self.run_count),
            "protocolVersion": "1.0", "messages": messages,
            "tools": [{"name": "pick", "description": "picks"}, {"name": "ping", "description": "pings"}],
            "forwardedProps": {"resourceId": "ada", "frontendTools": mode}
        })
    }

    fn question(&self) -> Value {
        json!({"id": format!("{}-u{}", self.thread, self.run_count), "role": "user", "content": "Hello"})
    }

    /// The list a tab sends: what it shows, perhaps cut back, or nothing of it; answers to what is left open; a question.
    fn list(&mut self, tab: usize) -> Vec<Value> {
        let mut list = if self.random.one_in(2) {
            self.count("whole lists");
            self.tabs[tab].clone()
        } else {
            self.count("new messages only");
            Vec::new()
        };
        if self.random.one_in(4) {
            let kept = self.random.below(list.len() + 1);
            list.truncate(kept);
        }
        let open = open_calls(&self.tabs[tab]);
        let is_answer = !open.is_empty() && self.random.one_in(2);
        if is_answer {
            self.count("calls left to the next run and answered by it");
            for made in open {
                list.push(
                    json!({"id": format!("of {made}"), "role": "tool", "toolCallId": made, "content": "1.0"}),
                );
            }
        } else {
            list.push(self.question());
        }
        list
    }

    /// What the model says, and whether it calls.
    fn answers(&mut self) -> Vec<Answer> {
        let calls =
            text("Look.") + &call(0, "pick", "{\"n\":1.0}") + &call(1, "ping", "{}") + &finish("tool_calls");
        match self.random.below(4) {
            0 => vec![Answer::ok(answer("Hi."))],
            1 => {
                self.count("upstreams that die");
                let half = Piece::Bytes(text("Half").into_bytes());
                vec![Answer::pieces(vec![half, Piece::Die])]
            }
            2 => vec![Answer::ok(calls), Answer::ok(answer("Done."))],
            _ => vec![
                Answer::ok(call(0, "ping", "{}") + &finish("tool_calls")),
                Answer::ok(calls),
                Answer::ok(answer("Done.")),
            ],
        }
    }

    fn scene(&mut self) -> Scene {
        let mut scene = Scene::new(json!({"maxRetries": 0}), self.answers()).on(&self.database);
        if self.random.one_in(3) {
            let event_count = 1 + self.random.below(24);
            self.count("clients that leave");
            self.left_after.borrow_mut().insert(event_count);
            scene.leaves_after = Some(event_count);
        }
        scene
    }

    fn run(&mut self) {
        let tab = self.random.below(2);
        let list = self.list(tab);
        let mode = ["same-run", "next-run"][self.random.below(2)];
        self.count(match mode {
            "same-run" => "runs of front-end tools in same-run mode",
            _ => "runs of front-end tools in next-run mode",
        });
        let body = self.body(&list, mode);
        let beside = self.beside();
        let fails_at_end = self.random.one_in(6);
        if self.random.one_in(6) {
            self.count("database batches whose answer was lost");
            self.database.lose_next_answer();
        }
        let at = self.random.below(12);
        let seen = RefCell::new(0);
        let database = self.database.clone();
        let scene = self.scene().on_event(move |event, control| {
            let count = seen.replace_with(|count| *count + 1);
            if count == at
                && let Some(play) = beside.borrow_mut().take()
            {
                play();
            }
            if let Event::ToolCallEnd { tool_call_id } = event {
                let content = "1.0".to_owned();
                control.mailbox.deliver(
                    tool_call_id,
                    ToolResult {
                        content,
                        is_error: false,
                    },
                );
            }
            if fails_at_end && matches!(event, Event::StepFinished { .. }) {
                database.set_fault(Some(DatabaseError::Unavailable("overloaded".to_owned())));
            }
        });
        let played = scene.play(&body);
        self.database.set_fault(None);
        self.deliver(&played);
        self.tabs[tab] = [list, streamed(&played)].concat();
        self.check(&played);
        if self.random.one_in(3) {
            self.tabs[1 - tab] = self.stored(false);
        }
    }

    /// A text run of somebody else's tab, to be played in the middle of another run.
    fn beside(&mut self) -> RefCell<Option<Box<dyn FnOnce()>>> {
        if !self.random.one_in(3) {
            return RefCell::new(None);
        }
        self.count("runs beside another");
        let body = self.body(&[self.question()], "same-run");
        let database = self.database.clone();
        RefCell::new(Some(Box::new(move || {
            Scene::new(json!({}), vec![Answer::ok(answer("Beside."))])
                .on(&database)
                .play(&body);
        })))
    }

    /// What the outbox does later.
    fn deliver(&self, played: &Played) {
        for (run, end) in played.ports.outbox.take() {
            self.count("end batches kept in the outbox");
            for _ in 0..2 {
                block_on(Store::new(&self.database).end_run(&run, end.clone())).unwrap();
            }
        }
    }

    fn check(&mut self, played: &Played) {
        let messages = self.stored(false);
        let ids: Vec<String> = messages.iter().map(id_of).collect();
        let now: HashSet<&String> = ids.iter().collect();
        assert_eq!(now.len(), ids.len(), "an id twice");
        let before: HashSet<&String> = self.seen.iter().collect();
        let stayed: Vec<&String> = self.seen.iter().filter(|id| now.contains(id)).collect();
        let known: Vec<&String> = ids.iter().filter(|id| before.contains(id)).collect();
        assert_eq!(stayed, known, "the order changed");
        // What was streamed is stored, in its order, and nothing else of that run.
        let streamed = streamed(played);
        let first = streamed.first().map(id_of);
        let of_run = first.and_then(|id| id.rsplit_once("-msg-").map(|(run, _)| format!("{run}-msg-")));
        if let Some(prefix) = of_run {
            let all = self.stored(true);
            let own = all
                .into_iter()
                .filter(|message| id_of(message).starts_with(&prefix));
            assert_eq!(own.collect::<Vec<_>>(), streamed);
        }
        // A call without a result, hidden ones included, is one that a next run may answer.
        let open: HashSet<String> = open_calls(&self.stored(true)).into_iter().collect();
        let pending: HashSet<String> = self
            .database
            .rows(&format!(
                "SELECT c.value FROM messages m, json_each(m.pending_calls) c WHERE m.thread_id = '{}'",
                self.thread
            ))
            .iter()
            .map(|row| serde_json::from_str::<[String; 1]>(row).unwrap()[0].clone())
            .collect();
        assert!(open.is_subset(&pending), "{open:?}");
        self.seen = ids;
    }

    fn feed_back(&mut self) {
        let before = self.stored(false);
        if before.is_empty() {
            return;
        }
        self.count("lists sent back whole");
        let body = self.body(&before, "same-run");
        let scene = Scene::new(json!({}), vec![Answer::ok(answer("And on."))]).on(&self.database);
        let played = scene.play(&body);
        assert_eq!(self.stored(false), [before, streamed(&played)].concat());
        self.check(&played);
    }
}

fn id_of(message: &Value) -> String {
    message["id"].as_str().unwrap().to_owned()
}

/// Calls a list makes and does not answer.
fn open_calls(messages: &[Value]) -> Vec<String> {
    let answered: HashSet<&str> = messages
        .iter()
        .filter_map(|message| message["toolCallId"].as_str())
        .collect();
    let made = messages
        .iter()
        .filter_map(|message| message["toolCalls"].as_array());
    made.flatten()
        .map(id_of)
        .filter(|id| !answered.contains(id.as_str()))
        .collect()
}

#[test]
fn what_was_streamed_is_stored_whoever_talks_and_whatever_breaks() {
    let seeds: Vec<u64> = match std::env::var("SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => (0..std::env::var("SCENES").map_or(SCENES, |count| count.parse().unwrap())).collect(),
    };
    let (counts, left_after) = (Counts::default(), Rc::<RefCell<HashSet<usize>>>::default());
    let database = SceneDatabase::new();
    for seed in &seeds {
        let mut conversation = Conversation {
            thread: format!("t{seed}"),
            random: Random(*seed),
            database: database.clone(),
            counts: counts.clone(),
            run_count: 0,
            tabs: [Vec::new(), Vec::new()],
            seen: Vec::new(),
            left_after: left_after.clone(),
        };
        let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..RUNS {
                conversation.run();
            }
            conversation.feed_back();
            conversation.feed_back();
        }));
        if let Err(panic) = played {
            eprintln!("failed with SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
    println!("{} conversations of {RUNS} runs and more", seeds.len());
    for (what, count) in counts.borrow().iter() {
        println!("{count:>8} {what}");
    }
    println!(
        "clients left after {} different counts of events",
        left_after.borrow().len()
    );
    if std::env::var("SEED").is_err() {
        assert_eq!(counts.borrow().keys().copied().collect::<Vec<_>>(), KINDS);
        assert_eq!(left_after.borrow().len(), 24);
    }
}
