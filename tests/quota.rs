//! What an owner may use: runs at work, tokens of a day, bytes stored (contract 2.2, last lines).

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
use io_bridge::protocol::event::TokenUsage;
use io_bridge::protocol::id::{ResourceId, RunId, ThreadId};
use io_bridge::store::{
    BeginRun, Begun, DAY_MS, EndRun, Exhausted, Persistence, PersistentRun, Quota, RunStatus, Store,
};
use sqlite::Sqlite;

const RUNNING: Quota = Quota {
    running_max_count: Some(2),
    tokens_per_day_max_count: None,
    stored_max_bytes: None,
};

fn attempt(sqlite: &Sqlite, run_id: &str, quota: Quota) -> Begun {
    let begin = BeginRun {
        thread_id: ThreadId::new(format!("thread of {run_id}")),
        quota,
        ..begin(run_id, vec![user(run_id)])
    };
    block_on(Store::new(sqlite).begin_run(begin)).unwrap()
}

fn taken(begun: Begun) -> PersistentRun {
    match begun {
        Begun::Persistent(run) => run,
        other => panic!("{other:?}"),
    }
}

fn rows(sqlite: &Sqlite) -> [usize; 3] {
    ["threads", "messages", "runs"].map(|table| sqlite.rows(&format!("SELECT * FROM {table}")).len())
}

#[test]
fn only_so_many_runs_of_an_owner_work_at_once() {
    let sqlite = Sqlite::new();
    let first = taken(attempt(&sqlite, "r1", RUNNING));
    taken(attempt(&sqlite, "r2", RUNNING));
    assert_eq!(
        attempt(&sqlite, "r3", RUNNING),
        Begun::Exhausted(Exhausted::Running)
    );
    // Nothing of it was written, not even its thread.
    assert_eq!(rows(&sqlite), [2, 2, 2]);
    end(&sqlite, &first, finished(Vec::new()));
    taken(attempt(&sqlite, "r3", RUNNING));
    let bobs = BeginRun {
        persistence: Persistence::Create(ResourceId::new("bob")),
        quota: RUNNING,
        thread_id: ThreadId::new("bob's"),
        ..begin("r1", vec![user("u")])
    };
    taken(block_on(Store::new(&sqlite).begin_run(bobs)).unwrap());
}

#[test]
fn runs_that_wait_or_were_lost_do_not_count() {
    let sqlite = Sqlite::new();
    let waiting = taken(attempt(&sqlite, "r1", RUNNING));
    let store = Store::new(&sqlite);
    block_on(store.set_run_status(&waiting, RunStatus::Waiting, START_MS + RUN_MS)).unwrap();
    let lost = taken(attempt(&sqlite, "r2", RUNNING));
    block_on(store.set_run_status(&lost, RunStatus::Running, START_MS)).unwrap();
    taken(attempt(&sqlite, "r3", RUNNING));
    taken(attempt(&sqlite, "r4", RUNNING));
    assert_eq!(
        attempt(&sqlite, "r5", RUNNING),
        Begun::Exhausted(Exhausted::Running)
    );
}

#[test]
fn a_batch_that_is_sent_again_is_the_run_it_was() {
    let sqlite = Sqlite::new();
    taken(attempt(&sqlite, "r1", RUNNING));
    let again = BeginRun {
        thread_id: ThreadId::new("thread of r2"),
        quota: RUNNING,
        ..begin("r2", vec![user("r2")])
    };
    let first = block_on(Store::new(&sqlite).begin_run(again.clone())).unwrap();
    assert_eq!(block_on(Store::new(&sqlite).begin_run(again)).unwrap(), first);
}

#[test]
fn tokens_are_counted_by_the_day() {
    let sqlite = Sqlite::new();
    let quota = Quota {
        tokens_per_day_max_count: Some(100),
        ..Quota::default()
    };
    let used = |total_tokens: Option<u64>, input_tokens: Option<u64>| EndRun {
        usage: vec![TokenUsage {
            total_tokens,
            input_tokens,
            output_tokens: Some(1),
            ..TokenUsage::default()
        }],
        ..finished(Vec::new())
    };
    let run = taken(attempt(&sqlite, "r1", quota));
    end(&sqlite, &run, used(Some(60), None));
    let run = taken(attempt(&sqlite, "r2", quota));
    end(&sqlite, &run, used(None, Some(39)));
    assert_eq!(attempt(&sqlite, "r3", quota), Begun::Exhausted(Exhausted::Tokens));
    let tomorrow = BeginRun {
        now_ms: START_MS - START_MS % DAY_MS + DAY_MS,
        quota,
        ..begin("r3", vec![user("u3")])
    };
    taken(block_on(Store::new(&sqlite).begin_run(tomorrow)).unwrap());
}

#[test]
fn stored_bytes_count_long_messages_whole() {
    let sqlite = Sqlite::new();
    let quota = |most: u64| Quota {
        stored_max_bytes: Some(most),
        ..Quota::default()
    };
    let long = vec![user_saying("u1", &"é".repeat(2_000_000))];
    run(&sqlite, "r1", long, vec![assistant("a1")]);
    assert!(matches!(
        attempt(&sqlite, "r2", quota(4_001_000)),
        Begun::Persistent(_)
    ));
    assert_eq!(
        attempt(&sqlite, "r3", quota(4_000_000)),
        Begun::Exhausted(Exhausted::Stored)
    );
}

/// Of two starts at once the second finds the first: nothing is decided before the batch.
#[test]
fn every_limit_is_looked_at_inside_the_start_batch() {
    let sqlite = Sqlite::new();
    let quota = Quota {
        running_max_count: Some(9),
        tokens_per_day_max_count: Some(9),
        stored_max_bytes: Some(9),
    };
    taken(attempt(&sqlite, "r1", quota));
    let (batches, limited, _) = sqlite.take_counts();
    assert_eq!(attempt(&sqlite, "r2", quota), Begun::Exhausted(Exhausted::Stored));
    assert_eq!((batches, sqlite.take_counts().0), (1, 1));
    assert_eq!(rows(&sqlite), [1, 1, 1]);
    let free = Sqlite::new();
    taken(attempt(&free, "r1", Quota::default()));
    assert_eq!(free.take_counts().1, limited);
}

#[test]
fn a_start_that_crosses_the_limit_itself_goes_in_whole() {
    let sqlite = Sqlite::new();
    let quota = Quota {
        stored_max_bytes: Some(100),
        ..Quota::default()
    };
    run(&sqlite, "r1", vec![user("u1")], vec![assistant("a1")]);
    let long: Vec<_> = (0..4)
        .map(|index| user_saying(&format!("l{index}"), &"é".repeat(2_000_000)))
        .collect();
    let list = [
        vec![
            user_saying("u1", "edited, and longer than what it was"),
            assistant("a1"),
        ],
        long,
    ]
    .concat();
    let begin = BeginRun {
        quota,
        ..begin("r2", list.clone())
    };
    // Sent again, it is still the run it was, though the limit is crossed now.
    for _ in 0..2 {
        let begun = block_on(Store::new(&sqlite).begin_run(begin.clone())).unwrap();
        assert_eq!(taken(begun).model_input, list);
    }
    assert_eq!(visible(&sqlite), ["u1", "a1", "l0", "l1", "l2", "l3"]);
    let refused = BeginRun {
        thread_id: ThreadId::new("another"),
        run_id: RunId::new("r3"),
        ..begin
    };
    assert_eq!(
        block_on(Store::new(&sqlite).begin_run(refused)).unwrap(),
        Begun::Exhausted(Exhausted::Stored)
    );
}

#[test]
fn a_run_that_would_not_be_stored_is_not_refused() {
    let sqlite = Sqlite::new();
    let quota = Quota {
        stored_max_bytes: Some(1),
        ..Quota::default()
    };
    run(&sqlite, "r1", vec![user("u1")], vec![assistant("a1")]);
    let begin = BeginRun {
        persistence: Persistence::IfThreadExists(ResourceId::new(OWNER)),
        thread_id: ThreadId::new("none"),
        quota,
        ..begin("r2", vec![user("u2")])
    };
    assert_eq!(
        block_on(Store::new(&sqlite).begin_run(begin)).unwrap(),
        Begun::Stateless
    );
}
