//! What a thread costs, whatever its size: statements, rows and steps of the database per kind of run and read.
//! `cargo test --test size -- --nocapture` prints them.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

#[path = "support/chat.rs"]
#[expect(dead_code, reason = "shared with other test crates")]
mod chat;
#[path = "support/sqlite.rs"]
#[expect(dead_code, reason = "shared with other test crates")]
mod sqlite;

use chat::*;
use futures::executor::block_on;
use io_bridge::protocol::id::{ResourceId, RunId, ThreadId};
use io_bridge::protocol::message::Message;
use io_bridge::protocol::thread::{MessageForm, MessageListRequest, ThreadPatch};
use io_bridge::store::{BeginRun, Lookup, Quota, RunStatus, Store};
use sqlite::Sqlite;

/// Batches, statements, result rows, and steps of SQLite's machine, which follow the rows it touches.
type Costs = (usize, usize, usize, u64);

/// A thread of this many turns of a question and an answer, written as one list.
fn thread_of(turn_count: usize) -> Sqlite {
    let sqlite = Sqlite::new();
    for part in 0..turn_count.div_ceil(1000) {
        let turns = part * 1000..turn_count.min((part + 1) * 1000);
        let list = turns.flat_map(|turn| [user(&format!("u{turn}")), assistant(&format!("a{turn}"))]);
        run(&sqlite, &format!("part {part}"), list.collect(), Vec::new());
    }
    sqlite
}

fn costs(sqlite: &Sqlite, act: impl FnOnce()) -> Costs {
    sqlite.take_counts();
    sqlite.take_steps();
    act();
    let (batches, statements, rows) = sqlite.take_counts();
    (batches, statements, rows, sqlite.take_steps())
}

fn first_page(sqlite: &Sqlite, form: MessageForm) {
    let request = MessageListRequest {
        thread_id: ThreadId::new("t"),
        limit: 20,
        offset: 0,
        form,
        with_superseded: false,
    };
    let owner = ResourceId::new(OWNER);
    match block_on(Store::new(sqlite).messages(&request, Some(&owner))).unwrap() {
        Lookup::Found(page) => assert_eq!(page.items.len(), 20),
        other => panic!("{other:?}"),
    }
}

/// An owner of so many threads with a run each, all of them over.
fn owner_of(run_count: usize) -> Sqlite {
    let sqlite = Sqlite::new();
    for number in 0..run_count {
        let run = begun(&sqlite, begin_elsewhere(&format!("r{number}")));
        end(&sqlite, &run, finished(vec![assistant(&format!("a{number}"))]));
    }
    sqlite
}

/// A run on a thread of its own, of an owner that may have so many at work.
fn begin_elsewhere(run_id: &str) -> BeginRun {
    BeginRun {
        thread_id: ThreadId::new(format!("thread of {run_id}")),
        quota: Quota {
            running_max_count: Some(100),
            ..Quota::default()
        },
        ..begin(run_id, vec![user(&format!("u {run_id}"))])
    }
}

fn next_run(sqlite: &Sqlite, run_id: &str, list: Vec<Message>) {
    run(sqlite, run_id, list, vec![assistant(&format!("a {run_id}"))]);
}

/// Each kind of read and run on a thread, and what it costs.
fn all_costs(sqlite: &Sqlite) -> Vec<(&'static str, Costs)> {
    let newest: Vec<Message> = begun_window(sqlite);
    vec![
        (
            "first page, ag-ui",
            costs(sqlite, || first_page(sqlite, MessageForm::AgUi)),
        ),
        (
            "first page, mastra",
            costs(sqlite, || first_page(sqlite, MessageForm::Mastra)),
        ),
        (
            "run, new message only",
            costs(sqlite, || next_run(sqlite, "new", vec![user("u new")])),
        ),
        (
            "run, forty known messages and a new one",
            costs(sqlite, || {
                next_run(sqlite, "resent", [newest, vec![user("u resent")]].concat());
            }),
        ),
        (
            "run with a front-end call, which waits",
            costs(sqlite, || {
                let run = begun(sqlite, begin("waits", vec![user("u waits")]));
                for status in [RunStatus::Waiting, RunStatus::Running] {
                    block_on(Store::new(sqlite).set_run_status(&run, status, START_MS + RUN_MS)).unwrap();
                }
                end(
                    sqlite,
                    &run,
                    finished(vec![
                        calling("a waits", &["c"]),
                        answering("m", "c", "{}"),
                        assistant("b waits"),
                    ]),
                );
            }),
        ),
    ]
}

/// The newest forty messages, as a client has them.
fn begun_window(sqlite: &Sqlite) -> Vec<Message> {
    let read_only = BeginRun {
        read_only: true,
        ..begin("reads", vec![user("u")])
    };
    let mut window = begun(sqlite, read_only).model_input;
    window.pop();
    window
}

#[test]
fn a_thread_of_fifty_thousand_messages_costs_what_one_of_fifty_costs() {
    let (small, large) = (thread_of(25), thread_of(25_000));
    assert_eq!(large.rows("SELECT count(*) FROM messages"), ["[50000]"]);
    let (small, large) = (all_costs(&small), all_costs(&large));
    println!(
        "{:<42} {:>8} {:>10} {:>6} {:>12} {:>12}",
        "", "batches", "statements", "rows", "steps of 50", "of 50,000"
    );
    for ((kind, of_50), (_, of_50_000)) in small.iter().zip(&large) {
        let (batches, statements, rows, steps) = of_50;
        println!(
            "{kind:<42} {batches:>8} {statements:>10} {rows:>6} {steps:>12} {:>12}",
            of_50_000.3
        );
        assert_eq!(
            (batches, statements, rows),
            (&of_50_000.0, &of_50_000.1, &of_50_000.2),
            "{kind}"
        );
    }
    for ((kind, of_50), (_, of_50_000)) in small.iter().zip(&large) {
        assert!(
            of_50_000.3 * 2 <= of_50.3 * 3,
            "{kind}: {} steps instead of {}",
            of_50_000.3,
            of_50.3
        );
    }
}

/// What is done again and again to one run and one thread among all of their owner, and what it costs.
fn costs_of_one(sqlite: &Sqlite) -> Vec<(&'static str, Costs)> {
    let (store, owner) = (Store::new(sqlite), ResourceId::new(OWNER));
    let (thread_id, run_id) = (ThreadId::new("thread of new"), RunId::new("new"));
    let renamed = ThreadPatch {
        title: Some("Renamed".to_owned()),
        ..ThreadPatch::default()
    };
    vec![
        (
            "a run",
            costs(sqlite, || {
                let run = begun(sqlite, begin_elsewhere("new"));
                for status in [RunStatus::Waiting, RunStatus::Running] {
                    block_on(store.set_run_status(&run, status, START_MS + RUN_MS)).unwrap();
                }
                end(sqlite, &run, finished(vec![assistant("a new")]));
            }),
        ),
        (
            "its row",
            costs(sqlite, || {
                block_on(store.find_runs(&run_id, START_MS)).unwrap();
            }),
        ),
        (
            "its thread",
            costs(sqlite, || {
                block_on(store.thread(&thread_id, Some(&owner), START_MS)).unwrap();
            }),
        ),
        (
            "another title",
            costs(sqlite, || {
                block_on(store.patch_thread(&thread_id, Some(&owner), &renamed, START_MS)).unwrap();
            }),
        ),
        (
            "no thread any more",
            costs(sqlite, || {
                block_on(store.delete_thread(&thread_id, Some(&owner), START_MS)).unwrap();
            }),
        ),
    ]
}

#[test]
fn an_owner_of_two_thousand_runs_costs_what_one_of_twenty_costs() {
    assert_eq!(costs_of_one(&owner_of(20)), costs_of_one(&owner_of(2_000)));
}
