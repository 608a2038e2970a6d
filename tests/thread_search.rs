//! Searching an owner's threads (contract 4, `q`), and databases an earlier version filled.

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
use io_bridge::protocol::thread::{
    MessageForm, MessageListRequest, NewThread, Page, PageStart, Thread, ThreadListRequest, ThreadOrder,
    ThreadPatch,
};
use io_bridge::store::{BeginRun, Lookup, Store};
use sqlite::{Sqlite, migrations};

fn create(sqlite: &Sqlite, owner: &str, id: &str, title: &str) {
    let new = NewThread {
        title: Some(title.to_owned()),
        ..NewThread::default()
    };
    let (owner, id) = (ResourceId::new(owner), ThreadId::new(id));
    block_on(Store::new(sqlite).create_thread(&owner, &id, &new, "created", START_MS)).unwrap();
}

fn page(sqlite: &Sqlite, search: &str, limit: u32, start: PageStart) -> Page<Thread> {
    let request = ThreadListRequest {
        owner: ResourceId::new(OWNER),
        order: ThreadOrder::UpdatedAt,
        descending: false,
        search: Some(search.to_owned()),
        limit,
        start,
    };
    block_on(Store::new(sqlite).list_threads(&request)).unwrap()
}

fn thread_ids(page: &Page<Thread>) -> Vec<&str> {
    page.items.iter().map(|thread| thread.id.as_str()).collect()
}

fn found(sqlite: &Sqlite, search: &str) -> String {
    let page = page(sqlite, search, 100, PageStart::Offset(0));
    assert_eq!(page.total, u64::try_from(page.items.len()).unwrap());
    thread_ids(&page).join(" ")
}

#[test]
fn a_title_is_found_by_any_part_in_any_case_and_language() {
    let sqlite = Sqlite::new();
    create(&sqlite, OWNER, "a", "Äpfel aus ZÜRICH");
    create(&sqlite, OWNER, "b", "100%_sicher");
    create(&sqlite, OWNER, "c", "東京の天気");
    create(&sqlite, OWNER, "d", "Привет, Мир");
    create(&sqlite, "bob", "of bob", "Äpfel");
    for (search, expected) in [
        ("äpfel", "a"),
        ("ÄPFEL AUS", "a"),
        ("rich", "a"),
        ("%", "b"),
        ("_", "b"),
        ("100%_S", "b"),
        ("京の", "c"),
        ("привет, мир", "d"),
        ("'", ""),
        ("nothing", ""),
        ("i", "a b"),
    ] {
        assert_eq!(found(&sqlite, search), expected, "{search}");
    }
    let long = "é".repeat(512);
    create(&sqlite, OWNER, "e", &long);
    assert_eq!(found(&sqlite, &long.to_uppercase()), "e");
}

#[test]
fn every_way_to_a_title_can_be_searched() {
    let sqlite = Sqlite::new();
    let run = begun(&sqlite, begin("r1", vec![user_saying("u1", "Über uns")]));
    assert_eq!(found(&sqlite, "über"), "t");
    block_on(Store::new(&sqlite).set_generated_title(&run, "ÉCOLE")).unwrap();
    assert_eq!(
        (found(&sqlite, "école").as_str(), found(&sqlite, "über").as_str()),
        ("t", "")
    );
    let rename = ThreadPatch {
        title: Some("ÑANDÚ".to_owned()),
        metadata: None,
    };
    let id = ThreadId::new("t");
    block_on(Store::new(&sqlite).patch_thread(&id, None, &rename, START_MS)).unwrap();
    let metadata = ThreadPatch {
        title: None,
        metadata: Some(serde_json::Map::new()),
    };
    block_on(Store::new(&sqlite).patch_thread(&id, None, &metadata, START_MS)).unwrap();
    begun(&sqlite, begin("r2", vec![user_saying("u2", "Anders")]));
    assert_eq!(
        (found(&sqlite, "ñandú").as_str(), found(&sqlite, "école").as_str()),
        ("t", "")
    );
}

#[test]
fn a_search_pages_by_offset_and_by_cursor() {
    let sqlite = Sqlite::new();
    for index in 0..7 {
        create(
            &sqlite,
            OWNER,
            &format!("t{index}"),
            if index % 2 == 0 { "Even" } else { "Odd" },
        );
    }
    let first = page(&sqlite, "EVEN", 3, PageStart::Offset(0));
    assert_eq!(
        (thread_ids(&first), first.total, first.has_more),
        (vec!["t0", "t2", "t4"], 4, true)
    );
    let rest = page(&sqlite, "EVEN", 3, PageStart::Offset(3));
    assert_eq!(
        (thread_ids(&rest), rest.total, rest.has_more),
        (vec!["t6"], 4, false)
    );
    let cursor = PageStart::Cursor(first.next_cursor.unwrap());
    assert_eq!(page(&sqlite, "EVEN", 3, cursor), rest);
}

#[test]
fn a_database_of_the_previous_version_is_carried_over() {
    let migrations = migrations("migrations");
    let (first, later) = migrations.split_first().unwrap();
    let sqlite = Sqlite::migrated(std::slice::from_ref(first));
    let fill = "
INSERT INTO threads VALUES ('old', 'ada', 'i', 'Zürich WETTER', 'user', '{\"a\":1.0}', 2, 1, 2);
INSERT INTO runs VALUES ('r', 'ada', 'old', 'i', 'agent', 'o', 'finished', 1, NULL, 1, 9, 2);
INSERT INTO messages VALUES ('old', 'u', 'ada', 1048576, 'user', NULL, 'r', NULL, NULL,
  '{\"id\":\"u\",\"role\":\"user\",\"content\":\"Hi\"}', 1, 1);
INSERT INTO message_pieces VALUES ('old', 'u', 1, ' ');
INSERT INTO deleted_threads VALUES ('gone', 'ada', 1);";
    sqlite.execute(fill);
    let of_messages = "thread_id, id, resource_id, place, role, tool_call_id, run_id, superseded_by, pending_calls, body, \
                       more_pieces, created_at_ms";
    let kept = [
        ("*", "runs"),
        (of_messages, "messages"),
        ("*", "message_pieces"),
        ("*", "deleted_threads"),
    ]
    .map(|(columns, table)| format!("SELECT {columns} FROM {table}"));
    let before: Vec<_> = kept.iter().map(|sql| sqlite.rows(sql)).collect();
    for migration in later {
        sqlite.execute(migration);
    }
    let after: Vec<_> = kept.iter().map(|sql| sqlite.rows(sql)).collect();
    assert_eq!(after, before);
    for (search, expected) in [("wetter", "old"), ("zürich", "old"), ("Zürich", "old"), ("x", "")] {
        assert_eq!(found(&sqlite, search), expected, "{search}");
    }
    let counts = || sqlite.rows("SELECT message_count, row_count FROM threads WHERE id = 'old'");
    let total = |form| {
        let request = MessageListRequest {
            thread_id: ThreadId::new("old"),
            limit: 100,
            offset: 0,
            form,
            with_superseded: false,
        };
        match block_on(Store::new(&sqlite).messages(&request, None)).unwrap() {
            Lookup::Found(page) => (page.total, page.items.len()),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(counts(), ["[null,null]"]);
    assert_eq!(
        (total(MessageForm::AgUi), total(MessageForm::Mastra)),
        ((1, 1), (1, 1))
    );
    // What the previous version writes while the new schema is there already.
    sqlite.execute("UPDATE threads SET title = 'Basel' WHERE id = 'old'");
    assert_eq!(found(&sqlite, "BASEL"), "old");
    let next = BeginRun {
        thread_id: ThreadId::new("old"),
        ..begin("r2", vec![user("u2")])
    };
    let run = begun(&sqlite, next);
    let expected = vec![user_saying("u", "Hi"), user("u2")];
    assert_eq!((run.turn, &run.model_input), (2, &expected));
    assert_eq!(counts(), ["[2,2]"]);
    end(
        &sqlite,
        &run,
        finished(vec![
            calling("a2", &["c"]),
            answering("m2", "c", "1"),
            assistant("b2"),
        ]),
    );
    assert_eq!(counts(), ["[5,3]"]);
    assert_eq!(
        (total(MessageForm::AgUi), total(MessageForm::Mastra)),
        ((5, 5), (3, 3))
    );
}
