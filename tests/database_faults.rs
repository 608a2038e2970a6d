//! A database that fails at every batch of a run, before it took the batch and after (contract 2.3): nothing is lost,
//! nothing is doubled, and the order holds.

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
use io_bridge::protocol::id::{ResourceId, ThreadId};
use io_bridge::protocol::read;
use io_bridge::store::{
    Begun, DatabaseError, EndRun, PersistentRun, RunStatus, Statement, Store, StoreError, end_batch,
};
use sqlite::Sqlite;

/// How a batch fails.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fault {
    /// It is not applied.
    Refused,
    /// It is applied, and nobody hears of it.
    AnswerLost,
}

const FAULTS: [Fault; 2] = [Fault::Refused, Fault::AnswerLost];

/// Everything that is stored.
fn rows(sqlite: &Sqlite) -> Vec<Vec<String>> {
    [
        "threads",
        "messages ORDER BY place",
        "message_pieces",
        "runs",
        "deleted_threads",
    ]
    .iter()
    .map(|table| sqlite.rows(&format!("SELECT * FROM {table}")))
    .collect()
}

/// Tries once with the fault, then again as the retries do.
fn with_fault<T>(sqlite: &Sqlite, fault: Option<Fault>, attempt: impl Fn() -> Result<T, StoreError>) -> T {
    match fault {
        None => {}
        Some(Fault::Refused) => {
            sqlite.set_fault(Some(DatabaseError::Unavailable("overloaded".to_owned())));
            assert!(attempt().is_err());
            sqlite.set_fault(None);
        }
        Some(Fault::AnswerLost) => {
            sqlite.lose_next_answer();
            assert!(attempt().is_err());
        }
    }
    attempt().unwrap()
}

/// Two runs, the first with a call that waits; the given batch of it meets the fault. Start, waiting, running, end:
/// 0 to 3.
fn conversation(failing: Option<(usize, Fault)>) -> Vec<Vec<String>> {
    let sqlite = Sqlite::new();
    let store = Store::new(&sqlite);
    let fault = |batch: usize| failing.filter(|(at, _)| *at == batch).map(|(_, fault)| fault);
    let large = "x".repeat(800_000);
    let first = begin("r1", vec![user_saying("u1", &large)]);
    let run = match with_fault(&sqlite, fault(0), || block_on(store.begin_run(first.clone()))) {
        Begun::Persistent(run) => run,
        other => panic!("{other:?}"),
    };
    for (batch, status) in [(1, RunStatus::Waiting), (2, RunStatus::Running)] {
        with_fault(&sqlite, fault(batch), || {
            block_on(store.set_run_status(&run, status, START_MS + 2 * RUN_MS))
        });
    }
    let produced = vec![
        calling("a1", &["c1"]),
        answering("m1", "c1", &large),
        assistant("b1"),
    ];
    let ended = finished(produced);
    with_fault(&sqlite, fault(3), || block_on(store.end_run(&run, ended.clone())));
    let next = begun(&sqlite, begin("r2", vec![user("u2")]));
    assert_eq!(ids(&next.model_input), ["u1", "a1", "m1", "b1", "u2"]);
    end(&sqlite, &next, finished(vec![assistant("b2")]));
    rows(&sqlite)
}

#[test]
fn a_batch_that_failed_or_whose_answer_was_lost_leaves_the_rows_of_one_that_did_not() {
    let expected = conversation(None);
    for batch in 0..4 {
        for fault in FAULTS {
            assert!(
                conversation(Some((batch, fault))) == expected,
                "batch {batch}, {fault:?}"
            );
        }
    }
}

/// A run whose end batch the database does not take: what the outbox keeps, as it keeps it.
fn kept(sqlite: &Sqlite, run: &PersistentRun, ended: EndRun) -> Vec<Statement> {
    sqlite.set_fault(Some(DatabaseError::Unavailable("overloaded".to_owned())));
    block_on(Store::new(sqlite).end_run(run, ended.clone())).unwrap_err();
    sqlite.set_fault(None);
    let text = serde_json::to_string(&end_batch(run, ended).unwrap()).unwrap();
    read::from_text(&text).unwrap()
}

fn produced_by(run_id: &str) -> EndRun {
    finished(vec![
        calling(&format!("a {run_id}"), &[&format!("c {run_id}")]),
        answering(&format!("m {run_id}"), &format!("c {run_id}"), "{}"),
        assistant(&format!("b {run_id}")),
    ])
}

#[test]
fn a_kept_end_is_delivered_once_and_in_its_place_among_later_runs() {
    let in_order = [
        "u1", "a r1", "m r1", "b r1", "u2", "a r2", "m r2", "b r2", "u3", "a r3", "m r3", "b r3",
    ];
    // After how many later runs the kept batch arrives, and how its first delivery goes.
    for later_count in 0..=2 {
        for fault in [None, Some(Fault::Refused), Some(Fault::AnswerLost)] {
            let sqlite = Sqlite::new();
            let run = begun(&sqlite, begin("r1", vec![user("u1")]));
            let batch = kept(&sqlite, &run, produced_by("r1"));
            assert_eq!(visible(&sqlite), ["u1"]);
            let later = |number: usize| {
                let run_id = format!("r{number}");
                let run = begun(&sqlite, begin(&run_id, vec![user(&format!("u{number}"))]));
                end(&sqlite, &run, produced_by(&run_id));
            };
            (2..2 + later_count).for_each(later);
            let deliver = || block_on(Store::new(&sqlite).write(batch.clone()));
            with_fault(&sqlite, fault, deliver);
            (2 + later_count..4).for_each(later);
            assert_eq!(visible(&sqlite), in_order, "{later_count} later, {fault:?}");
            let before = rows(&sqlite);
            deliver().unwrap();
            assert_eq!(rows(&sqlite), before, "delivered once more");
            assert_eq!(texts(&sqlite, "SELECT DISTINCT status FROM runs"), ["finished"]);
        }
    }
}

#[test]
fn several_kept_ends_of_concurrent_runs_may_arrive_in_any_order() {
    for order in [[0, 1], [1, 0]] {
        let sqlite = Sqlite::new();
        let runs =
            ["r1", "r2"].map(|run_id| begun(&sqlite, begin(run_id, vec![user(&format!("u {run_id}"))])));
        let batches = runs
            .each_ref()
            .map(|run| kept(&sqlite, run, produced_by(run.run_id.as_str())));
        for at in order {
            let batch = batches.get(at).unwrap().clone();
            block_on(Store::new(&sqlite).write(batch)).unwrap();
        }
        let expected = ["u r1", "a r1", "m r1", "b r1", "u r2", "a r2", "m r2", "b r2"];
        assert_eq!(visible(&sqlite), expected);
    }
}

#[test]
fn a_run_whose_thread_was_deleted_or_made_anew_writes_nothing_whatever_fails() {
    let delete = |sqlite: &Sqlite| {
        let owner = ResourceId::new(OWNER);
        block_on(Store::new(sqlite).delete_thread(&ThreadId::new("t"), Some(&owner), START_MS)).unwrap();
    };
    let of_thread = |sqlite: &Sqlite| {
        [
            sqlite.rows("SELECT * FROM threads"),
            sqlite.rows("SELECT * FROM messages"),
            sqlite.rows("SELECT * FROM message_pieces"),
        ]
    };
    for made_anew in [false, true] {
        for waits in [false, true] {
            for fault in [None, Some(Fault::Refused), Some(Fault::AnswerLost)] {
                let sqlite = Sqlite::new();
                let store = Store::new(&sqlite);
                let old = begun(&sqlite, begin("old", vec![user("u1")]));
                if waits {
                    block_on(store.set_run_status(&old, RunStatus::Waiting, START_MS + RUN_MS)).unwrap();
                }
                delete(&sqlite);
                if made_anew {
                    run(&sqlite, "new", vec![user("u1")], vec![assistant("a new")]);
                }
                let before = of_thread(&sqlite);
                block_on(store.set_run_status(&old, RunStatus::Running, START_MS + RUN_MS)).unwrap();
                let batch = kept(&sqlite, &old, produced_by("old"));
                with_fault(&sqlite, fault, || block_on(store.write(batch.clone())));
                block_on(store.set_generated_title(&old, "Old")).unwrap();
                assert_eq!(
                    of_thread(&sqlite),
                    before,
                    "made anew: {made_anew}, waits: {waits}, {fault:?}"
                );
            }
        }
    }
}

#[test]
fn a_start_that_met_a_deletion_between_its_tries_stores_nothing() {
    let sqlite = Sqlite::new();
    let store = Store::new(&sqlite);
    let start = begin("r1", vec![user("u1")]);
    sqlite.lose_next_answer();
    block_on(store.begin_run(start.clone())).unwrap_err();
    block_on(store.delete_thread(&ThreadId::new("t"), None, START_MS)).unwrap();
    // The row of the first try is there, its thread is not: the run goes on, and stores nothing.
    let run = match block_on(store.begin_run(start)).unwrap() {
        Begun::Persistent(run) => run,
        other => panic!("{other:?}"),
    };
    end(&sqlite, &run, finished(vec![assistant("a1")]));
    assert_eq!(sqlite.rows("SELECT id FROM threads"), Vec::<String>::new());
    assert_eq!(sqlite.rows("SELECT id FROM messages"), Vec::<String>::new());
    assert_eq!(texts(&sqlite, "SELECT status FROM runs"), ["finished"]);
}
