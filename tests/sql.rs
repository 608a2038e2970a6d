//! Runs in rows: verdicts, costs, ends, and what a batch sent twice does (contract 2.2, 2.3, 4, D12).

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
use io_bridge::protocol::read;
use io_bridge::store::{
    BeginRun, Begun, Database, DatabaseError, EndRun, Persistence, RunStatus, Statement, Store, StoreError,
    end_batch,
};
use serde_json::json;
use sqlite::Sqlite;

const RUNS: &str =
    "SELECT id, resource_id, thread_id, agent_id, status, turn, usage, started_at_ms, deadline_ms,
    finished_at_ms FROM runs ORDER BY resource_id, id";
const THREADS: &str =
    "SELECT id, resource_id, incarnation, title, title_origin, metadata, next_turn, created_at_ms,
    updated_at_ms FROM threads ORDER BY id";
const MESSAGES: &str = "SELECT thread_id, id, resource_id, place, role, tool_call_id, run_id, superseded_by,
    pending_calls, body, more_pieces, created_at_ms FROM messages ORDER BY place";

fn statuses(sqlite: &Sqlite) -> Vec<String> {
    texts(sqlite, "SELECT status FROM runs ORDER BY resource_id, id")
}

fn verdict(sqlite: &Sqlite, begin: BeginRun) -> Begun {
    block_on(Store::new(sqlite).begin_run(begin)).unwrap()
}

fn only_if_thread_exists(begin: BeginRun) -> BeginRun {
    BeginRun {
        persistence: Persistence::IfThreadExists(ResourceId::new(OWNER)),
        ..begin
    }
}

#[test]
fn a_text_run_is_two_batches_and_these_rows() {
    let sqlite = Sqlite::new();
    let run = begun(&sqlite, begin("r1", vec![user_saying("u1", "Hello there")]));
    let usage = TokenUsage {
        input_tokens: Some(7),
        ..TokenUsage::default()
    };
    let ended = EndRun {
        usage: vec![usage],
        ..finished(vec![assistant("a1")])
    };
    end(&sqlite, &run, ended);
    assert_eq!(sqlite.take_counts().0, 2);
    assert_eq!(
        sqlite.rows(RUNS),
        [json!([
            "r1",
            "ada",
            "t",
            "agent",
            "finished",
            1,
            "[{\"inputTokens\":7}]",
            START_MS,
            START_MS + RUN_MS,
            START_MS + 1000
        ])
        .to_string()]
    );
    assert_eq!(
        sqlite.rows(THREADS),
        [json!([
            "t",
            "ada",
            "of r1",
            "Hello there",
            "provisional",
            "{}",
            2,
            START_MS,
            START_MS + 1000
        ])
        .to_string()]
    );
    let (u1, a1) = (
        r#"{"id":"u1","role":"user","content":"Hello there"}"#,
        r#"{"id":"a1","role":"assistant","content":"a1"}"#,
    );
    assert_eq!(
        sqlite.rows(MESSAGES),
        [
            json!([
                "t",
                "u1",
                "ada",
                1 << 20,
                "user",
                null,
                "r1",
                null,
                null,
                u1,
                0,
                START_MS
            ])
            .to_string(),
            json!([
                "t",
                "a1",
                "ada",
                (1 << 20) + (1 << 19),
                "assistant",
                null,
                "r1",
                null,
                null,
                a1,
                0,
                START_MS + 1000
            ])
            .to_string(),
        ]
    );
}

#[test]
fn the_cost_does_not_grow_with_the_conversation() {
    let sqlite = Sqlite::new();
    let mut list = Vec::new();
    for turn in 0..100 {
        list.push(user(&format!("u{turn}")));
        let produced = assistant(&format!("a{turn}"));
        run(&sqlite, &format!("r{turn}"), list.clone(), vec![produced.clone()]);
        let (batches, statements, _) = sqlite.take_counts();
        assert_eq!((batches, statements), (2, 10), "turn {turn}");
        list.push(produced);
    }
    // Only the window is read: a verdict, forty messages.
    begun(&sqlite, begin("last", vec![user("new")]));
    assert_eq!(sqlite.take_counts().2, 41);
}

#[test]
fn a_thousand_messages_are_stored_in_one_batch() {
    let sqlite = Sqlite::new();
    let list: Vec<_> = (0..1000).map(|index| user(&format!("u{index}"))).collect();
    begun(&sqlite, begin("r1", list));
    assert_eq!(sqlite.take_counts().0, 1);
    assert_eq!(visible(&sqlite).len(), 1000);
}

#[test]
fn ids_longer_than_a_parameter_are_still_one_batch() {
    let sqlite = Sqlite::new();
    let list: Vec<_> = (0..3000).map(|index| user(&format!("{index:01024}"))).collect();
    begun(&sqlite, begin("r1", list.clone()));
    let again = begun(&sqlite, begin("r2", list.clone()));
    assert_eq!(sqlite.take_counts().0, 2);
    assert_eq!(again.model_input, list);
    assert_eq!(visible(&sqlite).len(), 3000);
}

#[test]
fn a_foreign_thread_is_named_and_left_alone() {
    let sqlite = Sqlite::new();
    run(&sqlite, "r1", vec![user("u1")], vec![assistant("a1")]);
    let before = [sqlite.rows(THREADS), sqlite.rows(MESSAGES), sqlite.rows(RUNS)];
    let bob = ResourceId::new("bob");
    for persistence in [Persistence::Create(bob.clone()), Persistence::IfThreadExists(bob)] {
        for read_only in [false, true] {
            let foreign = BeginRun {
                persistence: persistence.clone(),
                read_only,
                ..begin("r2", vec![user("u1"), user("u2")])
            };
            assert_eq!(verdict(&sqlite, foreign), Begun::ForeignThread);
        }
    }
    assert_eq!(
        [sqlite.rows(THREADS), sqlite.rows(MESSAGES), sqlite.rows(RUNS)],
        before
    );
}

#[test]
fn a_run_id_is_taken_once_per_owner() {
    let sqlite = Sqlite::new();
    let live = begun(&sqlite, begin("r1", vec![user("u1")]));
    let again = |now_ms: u64, thread: &str| BeginRun {
        object: begin("other", Vec::new()).object,
        thread_id: ThreadId::new(thread),
        now_ms,
        ..begin("r1", vec![user("u2")])
    };
    let conflict = |status| Begun::Conflict {
        status,
        thread_id: ThreadId::new("t"),
    };
    assert_eq!(
        verdict(&sqlite, again(START_MS, "t")),
        conflict(RunStatus::Running)
    );
    assert_eq!(
        verdict(&sqlite, again(START_MS, "t2")),
        conflict(RunStatus::Running)
    );
    assert_eq!(
        verdict(&sqlite, again(START_MS + RUN_MS, "t")),
        conflict(RunStatus::Failed)
    );
    end(&sqlite, &live, finished(Vec::new()));
    assert_eq!(
        verdict(&sqlite, again(START_MS, "t")),
        conflict(RunStatus::Finished)
    );
    // A refused run writes nothing, no thread either.
    assert_eq!(visible(&sqlite), ["u1"]);
    assert_eq!(texts(&sqlite, "SELECT id FROM threads"), ["t"]);

    let bobs = BeginRun {
        persistence: Persistence::Create(ResourceId::new("bob")),
        ..again(START_MS, "of bob")
    };
    assert!(matches!(verdict(&sqlite, bobs), Begun::Persistent(_)));
}

#[test]
fn without_a_resource_id_only_an_existing_thread_is_used() {
    let sqlite = Sqlite::new();
    let first = only_if_thread_exists(begin("r1", vec![user("u1")]));
    assert_eq!(verdict(&sqlite, first), Begun::Stateless);
    assert_eq!(sqlite.rows(THREADS), Vec::<String>::new());
    run(&sqlite, "r2", vec![user("u2")], vec![assistant("a2")]);
    let run = begun(&sqlite, only_if_thread_exists(begin("r3", vec![user("u3")])));
    assert_eq!(ids(&run.model_input), ["u2", "a2", "u3"]);
}

#[test]
fn a_thread_with_a_waiting_run_is_neither_read_nor_written_without_a_resource_id() {
    let sqlite = Sqlite::new();
    let waiting = begun(&sqlite, begin("r1", vec![user("u1")]));
    let store = Store::new(&sqlite);
    block_on(store.set_run_status(&waiting, RunStatus::Waiting, START_MS + 2 * RUN_MS)).unwrap();
    let before = [sqlite.rows(THREADS), sqlite.rows(MESSAGES), sqlite.rows(RUNS)];
    for read_only in [false, true] {
        let sampling = BeginRun {
            read_only,
            ..only_if_thread_exists(begin("r2", vec![user("u2")]))
        };
        assert_eq!(verdict(&sqlite, sampling), Begun::Stateless);
    }
    assert_eq!(
        [sqlite.rows(THREADS), sqlite.rows(MESSAGES), sqlite.rows(RUNS)],
        before
    );
    // With one, both run side by side.
    begun(&sqlite, begin("r3", vec![user("u3")]));
    block_on(store.set_run_status(&waiting, RunStatus::Running, START_MS + 3 * RUN_MS)).unwrap();
    begun(&sqlite, only_if_thread_exists(begin("r4", vec![user("u4")])));
    assert_eq!(visible(&sqlite), ["u1", "u3", "u4"]);
    assert_eq!(
        texts(
            &sqlite,
            "SELECT CAST(deadline_ms AS TEXT) FROM runs WHERE id = 'r1'"
        ),
        [(START_MS + 3 * RUN_MS).to_string()]
    );
}

#[test]
fn a_start_batch_sent_twice_is_one_start() {
    let sqlite = Sqlite::new();
    run(&sqlite, "r0", vec![user("u0")], vec![assistant("a0")]);
    let again = begin("r1", vec![user("u0"), user("u1")]);
    sqlite.lose_next_answer();
    let lost = block_on(Store::new(&sqlite).begin_run(again.clone()));
    assert_eq!(
        lost,
        Err(StoreError::Database(DatabaseError::Unavailable(
            "the answer was lost".to_owned()
        )))
    );
    let before = [sqlite.rows(THREADS), sqlite.rows(MESSAGES), sqlite.rows(RUNS)];
    let found = begun(&sqlite, again);
    assert_eq!(
        [sqlite.rows(THREADS), sqlite.rows(MESSAGES), sqlite.rows(RUNS)],
        before
    );
    assert_eq!(ids(&found.model_input), ["u0", "u1"]);
    assert_eq!((found.turn, found.incarnation.as_str()), (2, "of r0"));
}

#[test]
fn an_end_batch_sent_twice_is_one_end() {
    let sqlite = Sqlite::new();
    let run = begun(&sqlite, begin("r1", vec![user("u1")]));
    let statements = end_batch(&run, finished(vec![assistant("a1")])).unwrap();
    let kept = serde_json::to_string(&statements).unwrap();
    let statements: Vec<Statement> = read::from_text(&kept).unwrap();
    block_on(Store::new(&sqlite).write(statements.clone())).unwrap();
    let before = [sqlite.rows(THREADS), sqlite.rows(MESSAGES), sqlite.rows(RUNS)];
    block_on(Store::new(&sqlite).write(statements)).unwrap();
    assert_eq!(
        [sqlite.rows(THREADS), sqlite.rows(MESSAGES), sqlite.rows(RUNS)],
        before
    );
    // Another end keeps the first one's state, and adds no message under an id that is there.
    let late = EndRun {
        status: RunStatus::Failed,
        ..finished(vec![calling("a1", &["c"])])
    };
    end(&sqlite, &run, late);
    assert_eq!(
        [sqlite.rows(THREADS), sqlite.rows(MESSAGES), sqlite.rows(RUNS)],
        before
    );
}

#[test]
fn an_orphan_is_closed_and_its_late_messages_are_kept() {
    let sqlite = Sqlite::new();
    let store = Store::new(&sqlite);
    let started = begin("r1", vec![user("u1")]);
    let (owner, id) = (ResourceId::new(OWNER), RunId::new("r1"));
    let run = begun(&sqlite, started.clone());
    let other = begin("other", Vec::new()).object;
    block_on(store.close_orphan(&owner, &id, other, START_MS)).unwrap();
    assert_eq!(statuses(&sqlite), ["running"]);
    block_on(store.close_orphan(&owner, &id, started.object, START_MS)).unwrap();
    assert_eq!(statuses(&sqlite), ["failed"]);
    end(&sqlite, &run, finished(vec![assistant("a1")]));
    assert_eq!(statuses(&sqlite), ["failed"]);
    assert_eq!(visible(&sqlite), ["u1", "a1"]);
}

#[test]
fn a_forgotten_run_leaves_its_user_message_and_may_come_again() {
    let sqlite = Sqlite::new();
    run(&sqlite, "r0", vec![user("u0")], vec![assistant("a0")]);
    let refused = begun(&sqlite, begin("r1", vec![user("u1")]));
    block_on(Store::new(&sqlite).forget_run(&refused)).unwrap();
    assert_eq!(texts(&sqlite, "SELECT id FROM runs"), ["r0"]);
    assert_eq!(visible(&sqlite), ["u0", "a0", "u1"]);
    let retry = BeginRun {
        object: begin("other", Vec::new()).object,
        ..begin("r1", vec![user("u1")])
    };
    let retried = begun(&sqlite, retry);
    assert_eq!(ids(&retried.model_input), ["u0", "a0", "u1"]);
    // The refused attempt can no longer touch the row of the retry.
    block_on(Store::new(&sqlite).forget_run(&refused)).unwrap();
    end(&sqlite, &retried, finished(vec![assistant("a1")]));
    assert_eq!(visible(&sqlite), ["u0", "a0", "u1", "a1"]);
    assert_eq!(statuses(&sqlite), ["finished", "finished"]);
}

#[test]
fn read_only_reads_and_writes_nothing() {
    let sqlite = Sqlite::new();
    run(&sqlite, "r1", vec![user("u1")], vec![assistant("a1")]);
    let before = [sqlite.rows(THREADS), sqlite.rows(MESSAGES), sqlite.rows(RUNS)];
    let read_only = BeginRun {
        read_only: true,
        ..begin("r2", vec![user("u2")])
    };
    let run = begun(&sqlite, read_only.clone());
    assert_eq!(ids(&run.model_input), ["u1", "a1", "u2"]);
    let store = Store::new(&sqlite);
    block_on(store.set_run_status(&run, RunStatus::Waiting, START_MS)).unwrap();
    block_on(store.set_generated_title(&run, "A title")).unwrap();
    block_on(store.forget_run(&run)).unwrap();
    end(&sqlite, &run, finished(vec![assistant("a2")]));
    assert_eq!(
        [sqlite.rows(THREADS), sqlite.rows(MESSAGES), sqlite.rows(RUNS)],
        before
    );
    assert_eq!(sqlite.take_counts().0, 3);

    let elsewhere = BeginRun {
        thread_id: ThreadId::new("nowhere"),
        ..read_only
    };
    assert_eq!(ids(&begun(&sqlite, elsewhere).model_input), ["u2"]);
    assert_eq!(texts(&sqlite, "SELECT id FROM threads"), ["t"]);
}

#[test]
fn a_generated_title_replaces_only_ours() {
    let sqlite = Sqlite::new();
    let run = begun(&sqlite, begin("r1", vec![user("u1")]));
    assert!(run.has_provisional_title);
    block_on(Store::new(&sqlite).set_generated_title(&run, "Generated")).unwrap();
    block_on(Store::new(&sqlite).set_generated_title(&run, "Again")).unwrap();
    assert_eq!(texts(&sqlite, "SELECT title FROM threads"), ["Generated"]);
    assert!(!begun(&sqlite, begin("r2", vec![user("u2")])).has_provisional_title);
}

#[test]
fn a_message_larger_than_a_row_is_stored_in_pieces_and_read_back_whole() {
    let sqlite = Sqlite::new();
    // 2.1 million bytes, half of them to be escaped.
    let large = "\"é\\".repeat(525_000);
    let long = "é".repeat(600_000);
    let first = begun(&sqlite, begin("r1", vec![user_saying("u1", &long)]));
    let mut end_run = finished(vec![calling("a1", &["c1"]), answering("m1", "c1", &large)]);
    end_run.produced.push(assistant("a2"));
    end(&sqlite, &first, end_run);
    assert_eq!(sqlite.take_counts().0, 2);
    let second = begun(&sqlite, begin("r2", vec![user("u2")]));
    assert_eq!(
        second.model_input,
        [
            user_saying("u1", &long),
            calling("a1", &["c1"]),
            answering("m1", "c1", &large),
            assistant("a2"),
            user("u2")
        ]
    );
    // A shorter content of fewer pieces takes the place of the long one.
    let shorter = "x".repeat(800_000);
    begun(
        &sqlite,
        begin("r3", vec![user_saying("u1", &shorter), user("u3")]),
    );
    let fourth = begun(&sqlite, begin("r4", vec![user("u4")]));
    assert_eq!(fourth.model_input[0], user_saying("u1", &shorter));
}

#[test]
fn a_failing_statement_undoes_its_batch() {
    let sqlite = Sqlite::new();
    let insert = |status: &str| {
        let sql = "INSERT INTO runs (id, resource_id, thread_id, incarnation, agent_id, object, status, turn,
            started_at_ms, deadline_ms) VALUES (?1, 'o', 't', 'i', 'a', 'x', ?1, 1, 1, 1)";
        Statement::new(sql, vec![status.into()])
    };
    let result = block_on(sqlite.batch(vec![insert("running"), insert("sleeping")]));
    assert!(matches!(result, Err(DatabaseError::Constraint(_))), "{result:?}");
    assert_eq!(sqlite.rows(RUNS), Vec::<String>::new());
}

#[test]
fn a_database_that_is_down_is_an_error_of_the_store() {
    let sqlite = Sqlite::new();
    let fault = DatabaseError::Unavailable("overloaded".to_owned());
    sqlite.set_fault(Some(fault.clone()));
    let result = block_on(Store::new(&sqlite).begin_run(begin("r1", vec![user("u1")])));
    assert_eq!(result, Err(StoreError::Database(fault)));
    sqlite.set_fault(None);
    begun(&sqlite, begin("r1", vec![user("u1")]));
}
