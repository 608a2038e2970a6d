//! Deleting for good, and reading whole: erasing an owner, retention, export in parts.

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
use io_bridge::store::{BeginRun, DatabaseError, PAGE_MAX_BYTES, Persistence, Purge, Purged, Store};
use serde_json::{Value, json};
use sqlite::Sqlite;

const TABLES: [&str; 5] = ["threads", "messages", "message_pieces", "runs", "deleted_threads"];
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

fn begin_as(owner: &str, thread: &str, run_id: &str, now_ms: u64, text: &str) -> BeginRun {
    BeginRun {
        persistence: Persistence::Create(ResourceId::new(owner)),
        thread_id: ThreadId::new(thread),
        now_ms,
        deadline_ms: now_ms + RUN_MS,
        ..begin(run_id, vec![user_saying(&format!("of {run_id}"), text)])
    }
}

fn ended(sqlite: &Sqlite, begin: BeginRun) {
    let now_ms = begin.now_ms;
    let run = begun(sqlite, begin);
    let answer = assistant(&format!("answer of {}", run.run_id));
    let end_run = io_bridge::store::EndRun {
        now_ms,
        ..finished(vec![answer])
    };
    end(sqlite, &run, end_run);
}

fn delete(sqlite: &Sqlite, thread: &str, now_ms: u64) {
    block_on(Store::new(sqlite).delete_thread(&ThreadId::new(thread), None, now_ms)).unwrap();
}

/// Rows of an owner in each table; messages and pieces by their thread.
fn rows_of(sqlite: &Sqlite, owner: &str) -> [usize; 5] {
    TABLES.map(|table| {
        let condition = match table {
            "message_pieces" => format!("thread_id LIKE '{owner}%'"),
            _ => format!("resource_id = '{owner}'"),
        };
        sqlite
            .rows(&format!("SELECT 1 FROM {table} WHERE {condition}"))
            .len()
    })
}

fn erase_all(sqlite: &Sqlite, owner: &str) -> usize {
    let owner = ResourceId::new(owner);
    let mut batch_count = 1;
    let erase = || {
        block_on(Store::new(sqlite).erase_owner(&owner, "erased"))
            .unwrap()
            .state
    };
    while erase() == Purge::Incomplete {
        batch_count += 1;
    }
    batch_count
}

#[test]
fn an_erased_owner_has_nothing_left_and_others_lose_nothing() {
    let sqlite = Sqlite::new();
    let large = "x".repeat(1_500_000);
    for owner in ["ada", "bob"] {
        for index in 0..45 {
            let text = if index == 0 { large.as_str() } else { "Hi" };
            let thread = format!("{owner} {index}");
            ended(
                &sqlite,
                begin_as(owner, &thread, &format!("{owner} r{index}"), START_MS, text),
            );
        }
        // A superseded message is an owner's too.
        let resent = BeginRun {
            incoming: vec![
                user_saying(&format!("of {owner} r1"), "Hi"),
                user(&format!("{owner} new")),
            ],
            ..begin_as(
                owner,
                &format!("{owner} 1"),
                &format!("{owner} again"),
                START_MS,
                "",
            )
        };
        begun(&sqlite, resent);
        delete(&sqlite, &format!("{owner} 44"), START_MS);
    }
    assert_eq!(rows_of(&sqlite, "ada"), [44, 89, 2, 46, 1]);
    let of_bob = rows_of(&sqlite, "bob");
    // Twenty threads a batch.
    assert_eq!(erase_all(&sqlite, "ada"), 3);
    assert_eq!(rows_of(&sqlite, "ada"), [0; 5]);
    assert_eq!(rows_of(&sqlite, "bob"), of_bob);
    assert_eq!(erase_all(&sqlite, "ada"), 1);
}

#[test]
fn a_thread_larger_than_a_batch_goes_in_several() {
    let sqlite = Sqlite::new();
    for part in 0..5 {
        let list = (0..1000).map(|index| user(&format!("u{part}-{index}"))).collect();
        run(&sqlite, &format!("r{part}"), list, Vec::new());
    }
    assert_eq!(erase_all(&sqlite, OWNER), 3);
    assert_eq!(rows_of(&sqlite, OWNER), [0; 5]);
}

#[test]
fn a_live_run_of_an_erased_owner_stores_nothing_afterwards() {
    let sqlite = Sqlite::new();
    for part in 0..3 {
        let list = (0..1000).map(|index| user(&format!("u{part}-{index}"))).collect();
        run(&sqlite, &format!("r{part}"), list, Vec::new());
    }
    let live = begun(&sqlite, begin("live", vec![user("u")]));
    let owner = ResourceId::new(OWNER);
    // Between two batches the thread is still there.
    assert_eq!(
        block_on(Store::new(&sqlite).erase_owner(&owner, "erased"))
            .unwrap()
            .state,
        Purge::Incomplete
    );
    end(&sqlite, &live, finished(vec![assistant("late")]));
    assert_eq!(
        sqlite.rows("SELECT id FROM messages WHERE id = 'late'"),
        Vec::<String>::new()
    );
    erase_all(&sqlite, OWNER);
    end(&sqlite, &live, finished(vec![assistant("late")]));
    assert_eq!(rows_of(&sqlite, OWNER), [0; 5]);
}

#[test]
fn an_erasure_that_failed_half_way_is_taken_up_again() {
    let sqlite = Sqlite::new();
    for index in 0..45 {
        ended(
            &sqlite,
            begin_as(
                "ada",
                &format!("ada {index}"),
                &format!("r{index}"),
                START_MS,
                "Hi",
            ),
        );
    }
    let (store, owner) = (Store::new(&sqlite), ResourceId::new("ada"));
    let gone = DatabaseError::Unavailable("gone".to_owned());
    block_on(store.erase_owner(&owner, "erased")).unwrap();
    sqlite.set_fault(Some(gone));
    block_on(store.erase_owner(&owner, "erased")).unwrap_err();
    sqlite.set_fault(None);
    sqlite.lose_next_answer();
    block_on(store.erase_owner(&owner, "erased")).unwrap_err();
    assert_eq!(erase_all(&sqlite, "ada"), 1);
    assert_eq!(rows_of(&sqlite, "ada"), [0; 5]);
}

#[test]
fn retention_deletes_what_is_idle_of_every_owner_and_keeps_the_rest() {
    let sqlite = Sqlite::new();
    for owner in ["ada", "bob", "eve"] {
        for (thread, age) in [("old", 0), ("older", 1), ("new", 10)] {
            let now_ms = START_MS + age * DAY_MS;
            ended(
                &sqlite,
                begin_as(
                    owner,
                    &format!("{owner} {thread}"),
                    &format!("{thread} r"),
                    now_ms,
                    "Hi",
                ),
            );
        }
        ended(
            &sqlite,
            begin_as(owner, &format!("{owner} gone"), "gone r", START_MS, "Hi"),
        );
        delete(&sqlite, &format!("{owner} gone"), START_MS);
        ended(
            &sqlite,
            begin_as(owner, &format!("{owner} back"), "back r", START_MS, "Hi"),
        );
        ended(
            &sqlite,
            begin_as(
                owner,
                &format!("{owner} back"),
                "back r2",
                START_MS + 9 * DAY_MS,
                "Hi",
            ),
        );
    }
    let waiting = BeginRun {
        deadline_ms: START_MS + 20 * DAY_MS,
        ..begin_as("zoe", "zoe t", "waiting", START_MS, "Hi")
    };
    begun(&sqlite, waiting);
    let store = Store::new(&sqlite);
    assert_eq!(
        block_on(store.purge_idle(START_MS, "purged")),
        Ok(Purged {
            state: Purge::Complete,
            threads: Vec::new()
        })
    );
    assert_eq!(rows_of(&sqlite, "ada"), [4, 10, 0, 6, 1]);
    let purged = block_on(store.purge_idle(START_MS + 5 * DAY_MS, "purged")).unwrap();
    let mut gone: Vec<&str> = purged.threads.iter().map(ThreadId::as_str).collect();
    gone.sort_unstable();
    assert_eq!(purged.state, Purge::Complete);
    assert_eq!(
        gone,
        [
            "ada old",
            "ada older",
            "bob old",
            "bob older",
            "eve old",
            "eve older",
            "zoe t"
        ]
    );
    for owner in ["ada", "bob", "eve"] {
        let left = sqlite.rows(&format!(
            "SELECT id FROM threads WHERE resource_id = '{owner}' ORDER BY id"
        ));
        let expected = ["back", "new"].map(|thread| json!([format!("{owner} {thread}")]).to_string());
        assert_eq!(left, expected);
        assert_eq!(rows_of(&sqlite, owner), [2, 6, 0, 2, 0]);
    }
    // The id of a run that is not over stays taken.
    assert_eq!(rows_of(&sqlite, "zoe"), [0, 0, 0, 1, 0]);
}

fn parts(sqlite: &Sqlite, with_superseded: bool) -> Vec<Vec<Value>> {
    let (store, thread) = (Store::new(sqlite), ThreadId::new("t"));
    let (mut parts, mut place) = (Vec::new(), 0);
    loop {
        let part = block_on(store.thread_part(&thread, place, with_superseded)).unwrap();
        if part.messages.is_empty() {
            return parts;
        }
        parts.push(part.messages);
        place = part.next_place;
    }
}

fn message_ids(messages: &[Value]) -> Vec<&str> {
    messages
        .iter()
        .map(|row| row.get("id").and_then(Value::as_str).unwrap())
        .collect()
}

#[test]
fn an_export_is_the_whole_thread_in_order() {
    let sqlite = Sqlite::new();
    let list: Vec<_> = (0..450).map(|index| user(&format!("u{index}"))).collect();
    run(
        &sqlite,
        "r1",
        list,
        vec![calling("a", &["c"]), answering("m", "c", "1.0"), assistant("b")],
    );
    let parts = parts(&sqlite, false);
    let sizes: Vec<usize> = parts.iter().map(Vec::len).collect();
    assert_eq!(sizes, [200, 200, 53]);
    let whole = parts.concat();
    let expected: Vec<String> = (0..450)
        .map(|index| format!("u{index}"))
        .chain(["a", "m", "b"].map(str::to_owned))
        .collect();
    assert_eq!(message_ids(&whole), expected);
}

#[test]
fn an_export_has_superseded_messages_when_asked() {
    let sqlite = Sqlite::new();
    run(&sqlite, "r1", vec![user("u1")], vec![assistant("a1")]);
    run(&sqlite, "r2", vec![user("u1"), user("u2")], vec![assistant("a2")]);
    assert_eq!(message_ids(&parts(&sqlite, false).concat()), ["u1", "u2", "a2"]);
    assert_eq!(
        message_ids(&parts(&sqlite, true).concat()),
        ["u1", "a1", "u2", "a2"]
    );
}

#[test]
fn a_part_holds_no_more_bytes_than_a_page() {
    let sqlite = Sqlite::new();
    let mebibyte = "x".repeat(1024 * 1024);
    let list: Vec<_> = (0..12)
        .map(|index| user_saying(&format!("u{index}"), &mebibyte))
        .collect();
    run(&sqlite, "r1", list, Vec::new());
    let parts = parts(&sqlite, false);
    assert!(parts.len() > 1);
    for part in &parts {
        let bytes: usize = part.iter().map(|message| message.to_string().len()).sum();
        assert!(u64::try_from(bytes).unwrap() <= PAGE_MAX_BYTES, "{bytes}");
    }
    assert_eq!(parts.concat().len(), 12);
}
