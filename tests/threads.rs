//! The thread routes in rows (contract 4): lists, cursors, titles, deletion, and the runs of a thread (8).

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
use io_bridge::protocol::id::{AgentId, ResourceId, RunId, ThreadId};
use io_bridge::protocol::thread::{
    NewThread, Page, PageStart, Thread, ThreadListRequest, ThreadOrder, ThreadPatch,
};
use io_bridge::store::{
    BeginRun, Lookup, Persistence, RunRow, RunStatus, Store, ThreadDetail, ThreadListError,
};
use serde_json::json;
use sqlite::Sqlite;

fn owner() -> ResourceId {
    ResourceId::new(OWNER)
}

fn t() -> ThreadId {
    ThreadId::new("t")
}

fn create_as(sqlite: &Sqlite, owner: &str, id: &str, title: Option<&str>, now_ms: u64) -> Lookup<Thread> {
    let new = NewThread {
        title: title.map(str::to_owned),
        ..NewThread::default()
    };
    let (owner, id) = (ResourceId::new(owner), ThreadId::new(id));
    block_on(Store::new(sqlite).create_thread(&owner, &id, &new, "created", now_ms)).unwrap()
}

fn create(sqlite: &Sqlite, id: &str, now_ms: u64) {
    assert!(matches!(
        create_as(sqlite, OWNER, id, None, now_ms),
        Lookup::Found(_)
    ));
}

fn list(sqlite: &Sqlite, limit: u32, start: PageStart) -> Page<Thread> {
    let request = ThreadListRequest {
        owner: owner(),
        order: ThreadOrder::UpdatedAt,
        descending: true,
        search: None,
        limit,
        start,
    };
    block_on(Store::new(sqlite).list_threads(&request)).unwrap()
}

fn thread_ids(page: &Page<Thread>) -> Vec<&str> {
    page.items.iter().map(|thread| thread.id.as_str()).collect()
}

fn detail(sqlite: &Sqlite, caller: Option<&str>, now_ms: u64) -> Lookup<ThreadDetail> {
    let caller = caller.map(ResourceId::new);
    block_on(Store::new(sqlite).thread(&t(), caller.as_ref(), now_ms)).unwrap()
}

fn delete(sqlite: &Sqlite, caller: Option<&str>) -> Lookup<()> {
    let caller = caller.map(ResourceId::new);
    block_on(Store::new(sqlite).delete_thread(&t(), caller.as_ref(), START_MS)).unwrap()
}

fn patch(sqlite: &Sqlite, caller: Option<&str>, patch: &ThreadPatch, now_ms: u64) -> Lookup<Thread> {
    let caller = caller.map(ResourceId::new);
    block_on(Store::new(sqlite).patch_thread(&t(), caller.as_ref(), patch, now_ms)).unwrap()
}

fn titled(title: &str) -> ThreadPatch {
    ThreadPatch {
        title: Some(title.to_owned()),
        metadata: None,
    }
}

#[test]
fn a_thread_is_created_once_and_its_id_is_taken_for_others() {
    let sqlite = Sqlite::new();
    let thread = Thread {
        id: t(),
        title: Some("Mine".to_owned()),
        resource_id: owner(),
        created_at_ms: START_MS,
        updated_at_ms: START_MS,
        metadata: serde_json::Map::new(),
    };
    let found = Lookup::Found(thread);
    assert_eq!(create_as(&sqlite, OWNER, "t", Some("Mine"), START_MS), found);
    assert_eq!(create_as(&sqlite, OWNER, "t", Some("Other"), START_MS + 1), found);
    assert_eq!(create_as(&sqlite, "bob", "t", None, START_MS), Lookup::Foreign);
}

#[test]
fn lists_are_one_owners_newest_first() {
    let sqlite = Sqlite::new();
    assert_eq!(
        list(&sqlite, 100, PageStart::Offset(0)),
        Page {
            items: Vec::new(),
            total: 0,
            has_more: false,
            next_cursor: None
        }
    );
    create(&sqlite, "first", START_MS);
    create(&sqlite, "second", START_MS + 1);
    create_as(&sqlite, "bob", "of bob", None, START_MS + 2);
    let page = list(&sqlite, 100, PageStart::Offset(0));
    assert_eq!(thread_ids(&page), ["second", "first"]);
    assert_eq!((page.total, page.has_more, page.next_cursor), (2, false, None));
}

#[test]
fn every_order_and_direction_pages_by_offset_without_gaps() {
    let sqlite = Sqlite::new();
    // Equal times: ties are broken by id.
    for id in ["a", "b", "c", "d", "e"] {
        create(&sqlite, id, START_MS);
    }
    for order in [ThreadOrder::UpdatedAt, ThreadOrder::CreatedAt] {
        for (descending, expected) in [(true, "edcba"), (false, "abcde")] {
            let mut seen = String::new();
            for offset in [0, 2, 4] {
                let request = ThreadListRequest {
                    owner: owner(),
                    order,
                    descending,
                    search: None,
                    limit: 2,
                    start: PageStart::Offset(offset),
                };
                let page = block_on(Store::new(&sqlite).list_threads(&request)).unwrap();
                assert_eq!((page.total, page.has_more), (5, offset < 4));
                seen.extend(thread_ids(&page));
            }
            assert_eq!(seen, expected);
        }
    }
}

#[test]
fn a_cursor_goes_on_where_its_page_ended_although_threads_move() {
    let sqlite = Sqlite::new();
    for (id, at_ms) in [("a", 1), ("b", 2), ("c", 3), ("d", 4)] {
        create(&sqlite, id, START_MS + at_ms);
    }
    let first = list(&sqlite, 2, PageStart::Offset(0));
    assert_eq!(thread_ids(&first), ["d", "c"]);
    create(&sqlite, "e", START_MS + 5);
    let cursor = first.next_cursor.unwrap();
    let second = list(&sqlite, 2, PageStart::Cursor(cursor.clone()));
    assert_eq!(thread_ids(&second), ["b", "a"]);
    assert_eq!(
        (second.total, second.has_more, second.next_cursor),
        (5, false, None)
    );

    let by_creation = ThreadListRequest {
        owner: owner(),
        order: ThreadOrder::CreatedAt,
        descending: true,
        search: None,
        limit: 2,
        start: PageStart::Cursor(cursor),
    };
    let store = Store::new(&sqlite);
    assert_eq!(
        block_on(store.list_threads(&by_creation)),
        Err(ThreadListError::BadCursor)
    );
    let nonsense = ThreadListRequest {
        start: PageStart::Cursor("nonsense".to_owned()),
        ..by_creation
    };
    assert_eq!(
        block_on(store.list_threads(&nonsense)),
        Err(ThreadListError::BadCursor)
    );
}

#[test]
fn a_run_moves_its_thread_to_the_top() {
    let sqlite = Sqlite::new();
    create(&sqlite, "t", START_MS - 2);
    create(&sqlite, "other", START_MS - 1);
    run(&sqlite, "r1", vec![user("u1")], vec![assistant("a1")]);
    let page = list(&sqlite, 100, PageStart::Offset(0));
    assert_eq!(thread_ids(&page), ["t", "other"]);
    assert_eq!(page.items[0].updated_at_ms, START_MS + 1000);
}

#[test]
fn the_first_run_names_a_thread_that_has_no_title() {
    let sqlite = Sqlite::new();
    let title = || texts(&sqlite, "SELECT title FROM threads WHERE id = 't'");
    create(&sqlite, "t", START_MS);
    assert!(begun(&sqlite, begin("r1", vec![user_saying("u1", "Hello")])).has_provisional_title);
    assert_eq!(title(), ["Hello"]);
    begun(&sqlite, begin("r2", vec![user_saying("u2", "Another")]));
    assert_eq!(title(), ["Hello"]);
}

#[test]
fn a_users_title_is_never_overwritten() {
    let sqlite = Sqlite::new();
    let title = || texts(&sqlite, "SELECT title FROM threads WHERE id = 't'");
    create_as(&sqlite, OWNER, "t", Some("Mine"), START_MS);
    let run = begun(&sqlite, begin("r1", vec![user("u1")]));
    assert!(!run.has_provisional_title);
    block_on(Store::new(&sqlite).set_generated_title(&run, "Generated")).unwrap();
    assert_eq!(title(), ["Mine"]);
    // A rename while the title is being written by a model.
    let sqlite = Sqlite::new();
    let run = begun(&sqlite, begin("r1", vec![user("u1")]));
    patch(&sqlite, Some(OWNER), &titled("Renamed"), START_MS);
    block_on(Store::new(&sqlite).set_generated_title(&run, "Generated")).unwrap();
    assert_eq!(
        texts(&sqlite, "SELECT title FROM threads WHERE id = 't'"),
        ["Renamed"]
    );
}

#[test]
fn a_patch_replaces_what_it_names() {
    let sqlite = Sqlite::new();
    assert_eq!(
        patch(&sqlite, Some(OWNER), &titled("x"), START_MS),
        Lookup::Unknown
    );
    create_as(&sqlite, OWNER, "t", Some("Mine"), START_MS);
    assert_eq!(
        patch(&sqlite, Some("bob"), &titled("x"), START_MS),
        Lookup::Foreign
    );
    let metadata = json!({"a": 1.0, "b": {"c": 12_345_678_901_234_567_890_u64}});
    let with_metadata = ThreadPatch {
        title: None,
        metadata: metadata.as_object().cloned(),
    };
    let mut expected = Thread {
        id: t(),
        title: Some("Mine".to_owned()),
        resource_id: owner(),
        created_at_ms: START_MS,
        updated_at_ms: START_MS + 5,
        metadata: metadata.as_object().cloned().unwrap(),
    };
    let patched = patch(&sqlite, Some(OWNER), &with_metadata, START_MS + 5);
    assert_eq!(patched, Lookup::Found(expected.clone()));
    let replaced = ThreadPatch {
        title: Some("Renamed".to_owned()),
        metadata: json!({"z": null}).as_object().cloned(),
    };
    expected.title = Some("Renamed".to_owned());
    expected.metadata = replaced.metadata.clone().unwrap();
    expected.updated_at_ms = START_MS + 6;
    // Without an owner the id is the capability.
    assert_eq!(
        patch(&sqlite, None, &replaced, START_MS + 6),
        Lookup::Found(expected)
    );
}

#[test]
fn a_thread_names_its_live_runs() {
    let sqlite = Sqlite::new();
    assert_eq!(detail(&sqlite, None, START_MS), Lookup::Unknown);
    run(&sqlite, "done", vec![user("u0")], Vec::new());
    begun(&sqlite, begin("r1", vec![user("u1")]));
    let waiting = begun(&sqlite, begin("r2", vec![user("u2")]));
    let store = Store::new(&sqlite);
    block_on(store.set_run_status(&waiting, RunStatus::Waiting, START_MS + 2 * RUN_MS)).unwrap();
    let active = |caller, now_ms| match detail(&sqlite, caller, now_ms) {
        Lookup::Found(detail) => detail.active_runs,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        active(Some(OWNER), START_MS),
        [RunId::new("r1"), RunId::new("r2")]
    );
    assert_eq!(active(None, START_MS + RUN_MS), [RunId::new("r2")]);
    assert_eq!(detail(&sqlite, Some("bob"), START_MS), Lookup::Foreign);
}

#[test]
fn a_deleted_thread_is_gone_with_its_messages_and_may_be_deleted_again() {
    let sqlite = Sqlite::new();
    assert_eq!(delete(&sqlite, Some(OWNER)), Lookup::Unknown);
    let large = "x".repeat(1_500_000);
    run(
        &sqlite,
        "r1",
        vec![user_saying("u1", &large)],
        vec![assistant("a1")],
    );
    assert_eq!(delete(&sqlite, Some("bob")), Lookup::Foreign);
    assert_eq!(visible(&sqlite), ["u1", "a1"]);
    assert_eq!(delete(&sqlite, Some(OWNER)), Lookup::Found(()));
    for table in ["threads", "messages", "message_pieces"] {
        assert_eq!(
            sqlite.rows(&format!("SELECT 1 FROM {table}")),
            Vec::<String>::new(),
            "{table}"
        );
    }
    assert_eq!(detail(&sqlite, Some(OWNER), START_MS), Lookup::Unknown);
    assert_eq!(delete(&sqlite, Some(OWNER)), Lookup::Found(()));
    assert_eq!(delete(&sqlite, None), Lookup::Found(()));
    assert_eq!(delete(&sqlite, Some("bob")), Lookup::Unknown);
    // The run's id stays taken, and its row still says that it is over.
    let row = block_on(Store::new(&sqlite).run_row(&owner(), &RunId::new("r1"), START_MS)).unwrap();
    assert_eq!(row.unwrap().status, RunStatus::Finished);
}

#[test]
fn an_old_run_never_writes_a_thread_deleted_or_made_anew() {
    let sqlite = Sqlite::new();
    let old = begun(&sqlite, begin("old", vec![user("u1")]));
    delete(&sqlite, Some(OWNER));
    end(&sqlite, &old, finished(vec![assistant("a1")]));
    assert_eq!(sqlite.rows("SELECT id FROM messages"), Vec::<String>::new());
    assert_eq!(texts(&sqlite, "SELECT status FROM runs"), ["finished"]);

    let sqlite = Sqlite::new();
    let old = begun(&sqlite, begin("old", vec![user("u1")]));
    delete(&sqlite, Some(OWNER));
    run(&sqlite, "new", vec![user("u2")], vec![assistant("a2")]);
    block_on(Store::new(&sqlite).set_generated_title(&old, "Old title")).unwrap();
    let late = io_bridge::store::EndRun {
        now_ms: START_MS + 9999,
        ..finished(vec![assistant("a1")])
    };
    end(&sqlite, &old, late);
    assert_eq!(visible(&sqlite), ["u2", "a2"]);
    assert_eq!(
        sqlite.rows("SELECT title, updated_at_ms FROM threads"),
        [json!(["u2", START_MS + 1000]).to_string()]
    );
}

#[test]
fn run_rows_tell_owners_apart() {
    let sqlite = Sqlite::new();
    let store = Store::new(&sqlite);
    let of_ada = begin("r1", vec![user("u1")]);
    let of_bob = BeginRun {
        persistence: Persistence::Create(ResourceId::new("bob")),
        thread_id: ThreadId::new("of bob"),
        ..begin("r1", vec![user("u1")])
    };
    begun(&sqlite, of_ada.clone());
    begun(&sqlite, of_bob);
    let row = |owner: &str, thread: &str, status| RunRow {
        run_id: RunId::new("r1"),
        owner: ResourceId::new(owner),
        thread_id: ThreadId::new(thread),
        agent_id: AgentId::new("agent"),
        object: of_ada.object,
        status,
        started_at_ms: START_MS,
        finished_at_ms: None,
    };
    let r1 = RunId::new("r1");
    assert_eq!(
        block_on(store.run_row(&owner(), &r1, START_MS)),
        Ok(Some(row(OWNER, "t", RunStatus::Running)))
    );
    assert_eq!(
        block_on(store.run_row(&ResourceId::new("eve"), &r1, START_MS)),
        Ok(None)
    );
    assert_eq!(
        block_on(store.find_runs(&r1, START_MS + RUN_MS)),
        Ok(vec![
            row(OWNER, "t", RunStatus::Failed),
            row("bob", "of bob", RunStatus::Failed)
        ])
    );
    assert_eq!(
        block_on(store.find_runs(&RunId::new("r2"), START_MS)),
        Ok(Vec::new())
    );
}
