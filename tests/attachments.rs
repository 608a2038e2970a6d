//! Attachments in a bucket: what is moved there, read back, and never left behind (contract 2.3, 4).

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

#[path = "support/bucket.rs"]
mod bucket;
#[path = "support/chat.rs"]
#[expect(dead_code, reason = "shared with other test crates")]
mod chat;
#[path = "support/sqlite.rs"]
#[expect(dead_code, reason = "shared with other test crates")]
mod sqlite;

use std::cell::Cell;

use bucket::Bucket;
use chat::*;
use futures::executor::block_on;
use io_bridge::protocol::id::{ObjectAddress, ResourceId, ThreadId};
use io_bridge::protocol::message::Message;
use io_bridge::protocol::thread::{MessageForm, MessageListRequest};
use io_bridge::store::{
    BeginRun, Database, DatabaseError, INLINE_MAX_BYTES, Lookup, PersistentRun, Purge, Row, Statement, Store,
    StoreError,
};
use serde_json::{Value, json};
use sqlite::Sqlite;

const HOUR_MS: u64 = 60 * 60 * 1000;

/// A picture of so many base64 characters, each filled with `fill`.
fn picture(fill: &str, length: usize) -> Value {
    json!({"type": "image", "source": {"type": "data", "value": fill.repeat(length), "mimeType": "image/png"}})
}

fn showing(id: &str, parts: Value) -> Message {
    message(json!({"id": id, "role": "user", "content": parts}))
}

/// Text, a large picture, a small one, a large document by a `data:` URL that JSON must escape, a large one elsewhere.
fn mixed(id: &str) -> Message {
    let elsewhere = format!("https://x.test/{}", "p".repeat(INLINE_MAX_BYTES));
    let document = format!("data:text/plain,\"{}\\", "é".repeat(INLINE_MAX_BYTES));
    showing(
        id,
        json!([
            {"type": "text", "text": "Look"},
            picture("A", 2_000_000),
            picture("B", 16),
            {"type": "document", "source": {"type": "url", "value": document}, "metadata": {"n": 1.0}},
            {"type": "video", "source": {"type": "url", "value": elsewhere}},
        ]),
    )
}

fn object(number: u8) -> ObjectAddress {
    ObjectAddress::from_hex(&format!("{number:064x}")).unwrap()
}

/// Runs to the end and moves.
fn run_and_move(sqlite: &Sqlite, bucket: &Bucket, number: u8, list: Vec<Message>) -> PersistentRun {
    let run_id = format!("r{number}");
    let run = run(
        sqlite,
        &run_id,
        list.clone(),
        vec![assistant(&format!("a{number}"))],
    );
    moved(&Store::new(sqlite).with_attachments(bucket), &run, number, &list).unwrap();
    run
}

fn moved<D: Database>(
    store: &Store<D, &Bucket>,
    run: &PersistentRun,
    number: u8,
    list: &[Message],
) -> Result<usize, StoreError> {
    block_on(store.move_attachments(run, list, &object(number).to_base64url(), START_MS))
}

fn drop_due(sqlite: &Sqlite, bucket: &Bucket, now_ms: u64) {
    let store = Store::new(sqlite).with_attachments(bucket);
    while block_on(store.drop_attachments(now_ms)).unwrap() == Purge::Incomplete {}
}

/// The thread as its owner reads it.
fn read(sqlite: &Sqlite, bucket: &Bucket) -> Vec<Message> {
    let request = MessageListRequest {
        thread_id: ThreadId::new("t"),
        limit: 500,
        offset: 0,
        form: MessageForm::AgUi,
        with_superseded: false,
    };
    let store = Store::new(sqlite).with_attachments(bucket);
    match block_on(store.messages(&request, None)).unwrap() {
        Lookup::Found(page) => page.items.into_iter().map(message).collect(),
        other => panic!("{other:?}"),
    }
}

/// Bytes of bodies and pieces.
fn stored_bytes(sqlite: &Sqlite) -> u64 {
    let sum = "SELECT (SELECT coalesce(sum(length(body)), 0) FROM messages)
      + (SELECT coalesce(sum(length(text)), 0) FROM message_pieces)";
    serde_json::from_str::<[u64; 1]>(&sqlite.rows(sum)[0]).unwrap()[0]
}

/// Keys rows refer to.
fn referred(sqlite: &Sqlite) -> Vec<String> {
    let mut keys = texts(
        sqlite,
        "SELECT k.value FROM messages m, json_each(m.attachments) k WHERE m.rowid > 0",
    );
    keys.sort();
    keys
}

fn keys(bucket: &Bucket) -> Vec<String> {
    bucket.lengths().into_iter().map(|(key, _)| key).collect()
}

#[test]
fn large_values_are_moved_and_read_back_as_they_were_sent() {
    let (sqlite, bucket) = (Sqlite::new(), Bucket::default());
    let sent = mixed("u1");
    let run = begun(&sqlite, begin("r1", vec![sent.clone()]));
    end(&sqlite, &run, finished(vec![assistant("a1")]));
    assert_eq!(sqlite.take_counts().0, 2, "a run with attachments is two batches");
    assert_eq!(bucket.lengths(), []);
    assert!(stored_bytes(&sqlite) > 2_000_000);

    let store = Store::new(&sqlite).with_attachments(&bucket);
    assert_eq!(moved(&store, &run, 1, std::slice::from_ref(&sent)), Ok(1));
    assert_eq!(sqlite.take_counts().0, 3, "which to move, the keys, the row");
    let address = object(1).to_base64url();
    let document = "data:text/plain,\"".len() + 2 * INLINE_MAX_BYTES + 1;
    assert_eq!(
        bucket.lengths(),
        [
            (format!("{address}/0"), 2_000_000),
            (format!("{address}/1"), document)
        ]
    );
    assert!(stored_bytes(&sqlite) < 20_000);
    assert_eq!(
        sqlite.rows("SELECT * FROM dropped_attachments"),
        Vec::<String>::new()
    );

    assert_eq!(read(&sqlite, &bucket), [sent.clone(), assistant("a1")]);
    let part = block_on(store.thread_part(&ThreadId::new("t"), 0, false)).unwrap();
    assert_eq!(message(part.messages[0].clone()), sent);
    let next = BeginRun {
        read_only: true,
        ..begin("r2", vec![user("u2")])
    };
    match block_on(store.begin_run(next)).unwrap() {
        io_bridge::store::Begun::Persistent(next) => {
            assert_eq!(next.model_input, [sent, assistant("a1"), user("u2")]);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_message_in_pieces_with_and_without_its_values_is_whole() {
    let (sqlite, bucket) = (Sqlite::new(), Bucket::default());
    let long = json!([{"type": "text", "text": "x".repeat(1_500_000)}, picture("A", 3_000_000)]);
    let sent = showing("u1", long);
    run_and_move(&sqlite, &bucket, 1, vec![sent.clone()]);
    assert_eq!(
        sqlite.rows("SELECT more_pieces FROM messages WHERE id = 'u1'"),
        ["[2]"]
    );
    assert_eq!(sqlite.rows("SELECT count(*) FROM message_pieces"), ["[2]"]);
    assert_eq!(read(&sqlite, &bucket)[0], sent);
    run_and_move(&sqlite, &bucket, 2, vec![sent.clone(), user("u2")]);
    assert_eq!(read(&sqlite, &bucket)[0], sent, "and after it was sent again");
}

#[test]
fn a_list_sent_again_moves_and_stores_nothing_new() {
    let (sqlite, bucket) = (Sqlite::new(), Bucket::default());
    let mut list = vec![mixed("u1")];
    run_and_move(&sqlite, &bucket, 1, list.clone());
    let objects = bucket.lengths();
    for number in 2..6 {
        list.push(user(&format!("u{number}")));
        sqlite.take_counts();
        run_and_move(&sqlite, &bucket, number, list.clone());
        assert_eq!(sqlite.take_counts().0, 4, "start, end, which to move, no keys");
        assert_eq!(bucket.lengths(), objects);
        assert!(stored_bytes(&sqlite) < 25_000);
    }
    assert_eq!(read(&sqlite, &bucket)[0], mixed("u1"));
    assert_eq!(
        sqlite.rows("SELECT * FROM dropped_attachments"),
        Vec::<String>::new()
    );
}

#[test]
fn a_changed_message_takes_its_new_values_and_drops_the_old() {
    let (sqlite, bucket) = (Sqlite::new(), Bucket::default());
    let first = showing("u1", json!([picture("A", 900_000)]));
    let second = showing("u1", json!([picture("A", 899_999), picture("B", 1)]));
    let third = showing("u1", json!([picture("C", 20_000), picture("D", 20_000)]));
    for (number, version) in (1..).zip([&first, &second, &third, &third]) {
        run_and_move(&sqlite, &bucket, number, vec![version.clone()]);
        drop_due(&sqlite, &bucket, START_MS);
        assert_eq!(read(&sqlite, &bucket)[0], *version, "version {number}");
        assert_eq!(keys(&bucket), referred(&sqlite));
    }
    run_and_move(&sqlite, &bucket, 9, vec![user_saying("u1", "no picture")]);
    drop_due(&sqlite, &bucket, START_MS);
    assert_eq!(read(&sqlite, &bucket)[0], user_saying("u1", "no picture"));
    assert_eq!(bucket.lengths(), []);
}

#[test]
fn a_result_of_parts_is_moved_by_its_call() {
    let (sqlite, bucket) = (Sqlite::new(), Bucket::default());
    let left = begun(&sqlite, begin("r0", vec![user("u1")]));
    let pending = io_bridge::store::EndRun {
        pending_tool_call_ids: calls(&["c1"]),
        ..finished(vec![calling("a0", &["c1"])])
    };
    end(&sqlite, &left, pending);
    // Its id is taken, so the result is stored under another.
    let shown = json!({"id": "u1", "role": "tool", "toolCallId": "c1", "content": [picture("A", 50_000)]});
    run_and_move(&sqlite, &bucket, 1, vec![message(shown.clone())]);
    assert_eq!(bucket.lengths().len(), 1);
    let mut stored = shown;
    stored["id"] = json!("u1#c1");
    assert_eq!(read(&sqlite, &bucket)[2], message(stored));
}

#[test]
fn whatever_deletes_messages_leaves_nothing_in_the_bucket() {
    let delete = |sqlite: &Sqlite| {
        block_on(Store::new(sqlite).delete_thread(&ThreadId::new("t"), None, START_MS)).unwrap();
    };
    let erase = |sqlite: &Sqlite| {
        block_on(Store::new(sqlite).erase_owner(&ResourceId::new(OWNER), "erased")).unwrap();
    };
    let retain = |sqlite: &Sqlite| {
        block_on(Store::new(sqlite).purge_idle(START_MS + HOUR_MS, "purged")).unwrap();
    };
    for remove in [delete as fn(&Sqlite), erase, retain] {
        let (sqlite, bucket) = (Sqlite::new(), Bucket::default());
        run_and_move(&sqlite, &bucket, 1, vec![mixed("u1")]);
        assert_eq!(bucket.lengths().len(), 2);
        remove(&sqlite);
        assert_eq!(sqlite.rows("SELECT * FROM messages"), Vec::<String>::new());
        bucket.set_away(true);
        let store = Store::new(&sqlite).with_attachments(&bucket);
        block_on(store.drop_attachments(START_MS)).unwrap_err();
        bucket.set_away(false);
        drop_due(&sqlite, &bucket, START_MS);
        assert_eq!(bucket.lengths(), []);
        assert_eq!(
            sqlite.rows("SELECT * FROM dropped_attachments"),
            Vec::<String>::new()
        );
    }
}

#[test]
fn a_thread_deleted_or_made_anew_before_the_move_is_not_touched() {
    for made_anew in [false, true] {
        let (sqlite, bucket) = (Sqlite::new(), Bucket::default());
        let old = run(&sqlite, "r1", vec![mixed("u1")], vec![]);
        block_on(Store::new(&sqlite).delete_thread(&ThreadId::new("t"), None, START_MS)).unwrap();
        if made_anew {
            run(&sqlite, "r2", vec![mixed("u1")], vec![]);
        }
        let store = Store::new(&sqlite).with_attachments(&bucket);
        assert_eq!(moved(&store, &old, 1, &[mixed("u1")]), Ok(0));
        assert_eq!(bucket.lengths(), []);
    }
}

/// Fails the batch of this number.
struct Failing<'a> {
    sqlite: &'a Sqlite,
    left: Cell<usize>,
    is_applied: bool,
}

impl Database for Failing<'_> {
    async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Vec<Row>>, DatabaseError> {
        let left = self.left.get();
        self.left.set(left.wrapping_sub(1));
        if left == 0 && self.is_applied {
            self.sqlite.lose_next_answer();
        } else if left == 0 {
            return Err(DatabaseError::Unavailable("overloaded".to_owned()));
        }
        self.sqlite.batch(statements).await
    }
}

#[test]
fn a_move_that_fails_anywhere_loses_nothing_and_leaves_nothing_behind() {
    let list = vec![mixed("u1"), showing("u2", json!([picture("C", 30_000)]))];
    // Batches of the database: which to move, the keys, the first row, the second row. Then objects.
    let batches = (0..4).flat_map(|batch| [(Some((batch, false)), None), (Some((batch, true)), None)]);
    let puts = (0..3).map(|put| (None, Some(put)));
    let mut case_count = 0;
    for (batch, put) in batches.chain(puts) {
        case_count += 1;
        let (sqlite, bucket) = (Sqlite::new(), Bucket::default());
        let run = run(&sqlite, "r1", list.clone(), vec![assistant("a1")]);
        let (left, is_applied) = batch.unwrap_or((usize::MAX, false));
        let database = Failing {
            sqlite: &sqlite,
            left: Cell::new(left),
            is_applied,
        };
        bucket.limit_puts(put);
        moved(&Store::new(&database).with_attachments(&bucket), &run, 1, &list).unwrap_err();
        bucket.limit_puts(None);
        let case = format!("batch {batch:?}, put {put:?}");
        let whole = [list.clone(), vec![assistant("a1")]].concat();
        assert_eq!(read(&sqlite, &bucket), whole, "{case}");
        // Within the hour the objects may still be waited for; then they go.
        drop_due(&sqlite, &bucket, START_MS);
        assert_eq!(read(&sqlite, &bucket), whole, "{case}");
        drop_due(&sqlite, &bucket, START_MS + HOUR_MS);
        assert_eq!(keys(&bucket), referred(&sqlite), "{case}");
        // The next run of a client that sends its list moves the rest.
        run_and_move(&sqlite, &bucket, 2, list.clone());
        assert_eq!(referred(&sqlite).len(), 3, "{case}");
        assert_eq!(keys(&bucket), referred(&sqlite), "{case}");
        assert_eq!(read(&sqlite, &bucket)[..2], list, "{case}");
    }
    println!("{case_count} ways to fail");
}

#[test]
fn two_runs_that_move_the_same_message_leave_one_copy() {
    let (sqlite, bucket) = (Sqlite::new(), Bucket::default());
    let list = [mixed("u1")];
    let first = begun(&sqlite, begin("r1", list.to_vec()));
    let second = begun(&sqlite, begin("r2", list.to_vec()));
    let store = Store::new(&sqlite).with_attachments(&bucket);
    // The second finds the row unmoved, and the first moves it before the second refers to it.
    struct Overtaken<'a>(
        &'a Sqlite,
        &'a Bucket,
        &'a PersistentRun,
        &'a [Message],
        Cell<usize>,
    );
    impl Database for Overtaken<'_> {
        async fn batch(&self, statements: Vec<Statement>) -> Result<Vec<Vec<Row>>, DatabaseError> {
            self.4.set(self.4.get() + 1);
            if self.4.get() == 3 {
                let store = Store::new(self.0).with_attachments(self.1);
                let moved = store
                    .move_attachments(self.2, self.3, &object(1).to_base64url(), START_MS)
                    .await;
                assert_eq!(moved, Ok(1));
            }
            self.0.batch(statements).await
        }
    }
    let overtaken = Overtaken(&sqlite, &bucket, &first, &list, Cell::new(0));
    moved(
        &Store::new(&overtaken).with_attachments(&bucket),
        &second,
        2,
        &list,
    )
    .unwrap();
    assert_eq!(bucket.lengths().len(), 4);
    drop_due(&sqlite, &bucket, START_MS);
    assert_eq!(keys(&bucket), referred(&sqlite));
    assert!(keys(&bucket)[0].starts_with(&object(1).to_base64url()));
    assert_eq!(read(&sqlite, &bucket), list);
    assert_eq!(moved(&store, &second, 3, &list), Ok(0));
}

#[test]
fn without_its_bucket_a_thread_is_not_read_and_without_an_object_the_rest_is() {
    let (sqlite, bucket) = (Sqlite::new(), Bucket::default());
    run_and_move(
        &sqlite,
        &bucket,
        1,
        vec![showing("u1", json!([picture("A", 20_000)]))],
    );
    let next = begin("r2", vec![user("u2")]);
    let begun = block_on(Store::new(&sqlite).begin_run(next));
    assert!(matches!(begun, Err(StoreError::Attachments(_))), "{begun:?}");
    bucket.clear();
    assert_eq!(
        read(&sqlite, &bucket)[..2],
        [showing("u1", json!([picture("A", 0)])), assistant("a1")]
    );
}

#[test]
fn large_messages_of_the_previous_version_stay_and_read_as_they_did() {
    let migrations = sqlite::migrations("migrations");
    let sqlite = Sqlite::migrated(&migrations[..3]);
    let sent = showing("u1", json!([picture("A", 1_000_000)]));
    let body = serde_json::to_string(&sent).unwrap();
    let (first, rest) = body.split_at(700_000);
    let quoted = |text: &str| format!("'{}'", text.replace('\'', "''"));
    sqlite.execute(&format!(
        "INSERT INTO threads (id, resource_id, incarnation, metadata, next_turn, created_at_ms, updated_at_ms)
           VALUES ('t', 'ada', 'i', '{{}}', 2, 1, 2);
         INSERT INTO messages (thread_id, id, resource_id, place, role, run_id, body, more_pieces, created_at_ms)
           VALUES ('t', 'u1', 'ada', 1048576, 'user', 'r', {}, 1, 1);
         INSERT INTO message_pieces VALUES ('t', 'u1', 1, {});",
        quoted(first),
        quoted(rest)
    ));
    for migration in &migrations[3..] {
        sqlite.execute(migration);
    }
    let bucket = Bucket::default();
    assert_eq!(read(&sqlite, &bucket), std::slice::from_ref(&sent));
    run_and_move(&sqlite, &bucket, 1, vec![sent.clone(), user("u2")]);
    assert_eq!(bucket.lengths(), []);
    assert_eq!(read(&sqlite, &bucket), [sent, user("u2"), assistant("a1")]);
    let changed = showing("u1", json!([picture("A", 20_000)]));
    run_and_move(&sqlite, &bucket, 2, vec![changed.clone()]);
    assert_eq!(read(&sqlite, &bucket)[0], changed);
    assert_eq!(bucket.lengths().len(), 1);
    // What the previous version writes while the new schema is there already.
    sqlite.execute(
        "UPDATE messages SET body = '{\"id\":\"u2\",\"role\":\"user\",\"content\":\"New\"}' WHERE id = 'u2'",
    );
    sqlite.execute("DELETE FROM messages WHERE id = 'u1'");
    drop_due(&sqlite, &bucket, START_MS);
    assert_eq!(bucket.lengths(), []);
}
