//! The index of message texts (contract 4, `q` with a `SEARCH` binding), on its own migrations.

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
use io_bridge::protocol::thread::{PageStart, ThreadListRequest, ThreadOrder};
use io_bridge::store::{BeginRun, Persistence, PersistentRun, SearchIndex, Store};
use serde_json::json;
use sqlite::{Sqlite, migrations};

struct Databases {
    main: Sqlite,
    index: Sqlite,
}

impl Databases {
    fn new() -> Self {
        Self {
            main: Sqlite::new(),
            index: Sqlite::migrated(&migrations("migrations-search")),
        }
    }

    fn run_as(&self, owner: &str, thread: &str, run_id: &str, asked: &str, answered: &str) -> PersistentRun {
        let begin = BeginRun {
            persistence: Persistence::Create(ResourceId::new(owner)),
            thread_id: ThreadId::new(thread),
            ..begin(run_id, vec![user_saying(&format!("u {run_id}"), asked)])
        };
        let run = begun(&self.main, begin);
        let answer = message(json!({"id": format!("a {run_id}"), "role": "assistant", "content": answered}));
        end(&self.main, &run, finished(vec![answer]));
        self.indexed(run)
    }

    fn indexed(&self, run: PersistentRun) -> PersistentRun {
        let texts = block_on(Store::new(&self.main).texts_to_index(&run)).unwrap();
        block_on(SearchIndex::new(&self.index).put(&run.owner, &run.thread_id, &texts)).unwrap();
        run
    }

    /// Ids of the threads found and their snippets.
    fn found_by(&self, owner: &str, search: &str) -> Vec<(String, Option<String>)> {
        let owner = ResourceId::new(owner);
        let index = SearchIndex::new(&self.index);
        let hits = block_on(index.find(&owner, search)).unwrap();
        let request = ThreadListRequest {
            owner,
            order: ThreadOrder::CreatedAt,
            descending: false,
            search: Some(search.to_owned()),
            limit: 100,
            start: PageStart::Offset(0),
        };
        let found = block_on(Store::new(&self.main).search_threads(&request, &hits)).unwrap();
        assert_eq!(found.page.total, u64::try_from(found.page.items.len()).unwrap());
        let rows: Vec<u64> = found.hits.iter().map(|(_, row)| *row).collect();
        let snippets = block_on(index.snippets(search, &rows)).unwrap();
        let threads = found.page.items.iter();
        threads
            .map(|thread| {
                let hit = found.hits.iter().find(|(id, _)| *id == thread.id);
                let snippet = hit.and_then(|(_, hit)| snippets.iter().find(|(row, _)| row == hit));
                (thread.id.to_string(), snippet.map(|(_, text)| text.clone()))
            })
            .collect()
    }

    fn found(&self, search: &str) -> String {
        let found = self.found_by(OWNER, search);
        let ids: Vec<&str> = found.iter().map(|(id, _)| id.as_str()).collect();
        ids.join(" ")
    }

    fn row_count(&self) -> usize {
        self.index.rows("SELECT rowid FROM message_text").len()
    }
}

#[test]
fn words_of_any_language_are_found_whole_or_by_their_beginning() {
    let databases = Databases::new();
    for (thread, asked, answered) in [
        ("t1", "One", "Die Bäckerei öffnet um acht."),
        ("t2", "Two", "明日は東京で雨が降ります。"),
        ("t3", "Three", "Привет, мир! It costs 12.50 € (don't ask)."),
        ("t4", "Four", "สวัสดีชาวโลก"),
        ("t5", "Five", "say \"NEAR(a b)\" OR NOT x AND text : keys *"),
    ] {
        databases.run_as(OWNER, thread, &format!("r {thread}"), asked, answered);
    }
    for (search, expected) in [
        ("bäckerei", "t1"),
        ("BACKER acht", "t1"),
        ("äckerei", ""),
        ("東京", "t2"),
        ("京東", ""),
        ("雨が", "t2"),
        ("привет", "t3"),
        ("МИР", "t3"),
        ("12.50", "t3"),
        ("don't", "t3"),
        ("ชาวโลก", "t4"),
        ("\"NEAR(a", "t5"),
        ("OR", "t5"),
        ("text : keys *", "t5"),
        ("* - \" (", ""),
        ("o616461", ""),
        ("acht мир", ""),
    ] {
        assert_eq!(databases.found(search), expected, "{search}");
    }
}

#[test]
fn a_snippet_shows_the_words_around_and_a_title_needs_none() {
    let databases = Databases::new();
    let long = format!(
        "{}The needle is here. {}",
        "hay ".repeat(200),
        "straw ".repeat(200)
    );
    databases.run_as(OWNER, "t1", "r1", "First question", &long);
    databases.run_as(OWNER, "t2", "r2", "Needle in the title", "東京の天気");
    let found = databases.found_by(OWNER, "needle");
    let [(first, Some(snippet)), (second, Some(asked))] = found.as_slice() else {
        panic!("{found:?}")
    };
    assert_eq!(
        (first.as_str(), second.as_str(), asked.as_str()),
        ("t1", "t2", "Needle in the title")
    );
    assert!(
        snippet.contains("needle is here") && snippet.starts_with('…') && snippet.ends_with('…'),
        "{snippet}"
    );
    assert!(snippet.len() < 200, "{snippet}");
    // Part of a word: the title has it, no message begins with it.
    assert_eq!(databases.found_by(OWNER, "eedle"), [("t2".to_owned(), None)]);
    assert_eq!(
        databases.found_by(OWNER, "東京"),
        [("t2".to_owned(), Some("東京の天気".to_owned()))]
    );
}

#[test]
fn nobody_finds_what_is_another_owners() {
    let databases = Databases::new();
    databases.run_as("bob", "of bob", "r1", "Secret plan", "A secret.");
    databases.run_as("ad", "of ad", "r2", "Secret plan", "A secret.");
    assert_eq!(databases.found_by(OWNER, "secret"), []);
    assert_eq!(databases.found_by("bob", "secret").len(), 1);
}

#[test]
fn what_is_hidden_changed_or_deleted_is_not_found() {
    let databases = Databases::new();
    databases.run_as(OWNER, "t", "r1", "Apples", "Pears");
    // Regenerated: the first answer is superseded.
    let regenerated = BeginRun {
        incoming: vec![user_saying("u r1", "Plums")],
        ..begin("r2", Vec::new())
    };
    let run = begun(&databases.main, regenerated);
    end(
        &databases.main,
        &run,
        finished(vec![message(
            json!({"id": "a2", "role": "assistant", "content": "Cherries"}),
        )]),
    );
    databases.indexed(run);
    assert_eq!(databases.found("pears"), "");
    assert_eq!(databases.found("cherries"), "t");
    // Its text was replaced under the same id.
    assert_eq!(databases.found("plums"), "t");
    assert_eq!(databases.row_count(), 3);
    let thread = ThreadId::new("t");
    block_on(Store::new(&databases.main).delete_thread(&thread, None, START_MS)).unwrap();
    assert_eq!(databases.found("cherries"), "");
    assert_eq!(
        block_on(SearchIndex::new(&databases.index).forget_thread(&thread)),
        Ok(true)
    );
    assert_eq!(databases.row_count(), 0);
}

#[test]
fn forgetting_an_owner_leaves_the_others() {
    let databases = Databases::new();
    databases.run_as("bob", "of bob", "r1", "Apples", "Pears");
    databases.run_as(OWNER, "t", "r1", "Apples", "Pears");
    let index = SearchIndex::new(&databases.index);
    assert_eq!(block_on(index.forget_owner(&ResourceId::new(OWNER))), Ok(true));
    assert_eq!(databases.row_count(), 2);
    assert_eq!(databases.found_by("bob", "pears").len(), 1);
}

#[test]
fn indexing_a_run_again_changes_nothing() {
    let databases = Databases::new();
    let run = databases.run_as(OWNER, "t", "r1", "Apples", "Pears");
    databases.indexed(run);
    assert_eq!(databases.row_count(), 2);
    assert_eq!(databases.found("apples pears"), "");
    assert_eq!(databases.found("pears"), "t");
}
