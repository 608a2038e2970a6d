//! Attachments: base64 values of incoming messages, in a bucket where the deployment has one.
//!
//! The start batch stores a message whole, whatever it holds, so a start that fails leaves nothing in the bucket. After
//! the run the values are moved, and their row keeps the keys. A key is written into `dropped_attachments` before its
//! object is made and struck out by the batch whose row refers to it; triggers write there what deleted or replaced
//! rows referred to. So at any moment an object has a row that refers to it, or one that has it deleted.

use std::future::Future;

use futures::future::LocalBoxFuture;

use super::body::{StoredMessage, chunks, pieces};
use super::end::SAME_THREAD;
use super::incoming::{digest, tool_call_id};
use super::row::Fields;
use super::{Database, Parameter, PersistentRun, Purge, Statement, Store, StoreError};
use crate::protocol::json;
use crate::protocol::message::Message;
use crate::protocol::parts;
use crate::protocol::read;
use crate::protocol::tree::json;

/// Values up to this length stay in their row, in bytes: fetching them would cost more than it saves.
pub const INLINE_MAX_BYTES: usize = 16 * 1024;

/// How long an object may be without a row that refers to it before it is deleted, in milliseconds.
const UNREFERRED_MS: u64 = 60 * 60 * 1000;

/// Objects deleted at once; R2 takes 1,000.
const DROPPED_MAX: usize = 500;

/// Values read at once: a Worker has six connections, and an isolate 128 MB.
const READS_MAX: usize = 4;

/// The bucket port. A value is a text: what a part held, exactly as it was sent.
pub trait Attachments {
    /// Whether there is a bucket; without one nothing is moved.
    fn is_bound(&self) -> bool;

    /// Makes an object.
    fn put(&self, key: &str, value: &str) -> impl Future<Output = Result<(), AttachmentError>>;

    /// Reads objects at once, a few; `None` where there is none of a key.
    fn get(&self, keys: &[String]) -> impl Future<Output = Result<Vec<Option<String>>, AttachmentError>>;

    /// Deletes objects, those that are there.
    fn delete(&self, keys: &[String]) -> impl Future<Output = Result<(), AttachmentError>>;
}

/// The bucket for what is there once for all kinds.
pub(super) trait AnyBucket {
    fn read<'b>(
        &'b self,
        keys: &'b [String],
    ) -> LocalBoxFuture<'b, Result<Vec<Option<String>>, AttachmentError>>;
}

impl<A: Attachments> AnyBucket for A {
    fn read<'b>(
        &'b self,
        keys: &'b [String],
    ) -> LocalBoxFuture<'b, Result<Vec<Option<String>>, AttachmentError>> {
        Box::pin(self.get(keys))
    }
}

/// The bucket failed; the text is for the log only.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the bucket of attachments is not available")]
pub struct AttachmentError(pub String);

/// A deployment without a bucket.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoBucket;

impl Attachments for NoBucket {
    fn is_bound(&self) -> bool {
        false
    }

    async fn put(&self, _key: &str, _value: &str) -> Result<(), AttachmentError> {
        Err(unbound())
    }

    async fn get(&self, _keys: &[String]) -> Result<Vec<Option<String>>, AttachmentError> {
        Err(unbound())
    }

    async fn delete(&self, _keys: &[String]) -> Result<(), AttachmentError> {
        Err(unbound())
    }
}

impl<A: Attachments> Attachments for Option<A> {
    fn is_bound(&self) -> bool {
        self.as_ref().is_some_and(Attachments::is_bound)
    }

    async fn put(&self, key: &str, value: &str) -> Result<(), AttachmentError> {
        self.as_ref().ok_or_else(unbound)?.put(key, value).await
    }

    async fn get(&self, keys: &[String]) -> Result<Vec<Option<String>>, AttachmentError> {
        self.as_ref().ok_or_else(unbound)?.get(keys).await
    }

    async fn delete(&self, keys: &[String]) -> Result<(), AttachmentError> {
        self.as_ref().ok_or_else(unbound)?.delete(keys).await
    }
}

impl<A: Attachments + ?Sized> Attachments for &A {
    fn is_bound(&self) -> bool {
        (**self).is_bound()
    }

    async fn put(&self, key: &str, value: &str) -> Result<(), AttachmentError> {
        (**self).put(key, value).await
    }

    async fn get(&self, keys: &[String]) -> Result<Vec<Option<String>>, AttachmentError> {
        (**self).get(keys).await
    }

    async fn delete(&self, keys: &[String]) -> Result<(), AttachmentError> {
        (**self).delete(keys).await
    }
}

fn unbound() -> AttachmentError {
    AttachmentError("no bucket is bound".to_owned())
}

/// Whether a message has a value that is moved.
pub(super) fn is_movable(message: &Message) -> bool {
    message.attachments().any(is_large)
}

fn is_large(value: &str) -> bool {
    value.len() > INLINE_MAX_BYTES
}

/// A message whose large values are replaced by keys.
struct Cut {
    /// JSON text.
    body: String,
    values: Vec<(String, String)>,
}

impl Cut {
    fn of(message: &Message, keys: &[String]) -> Result<Self, StoreError> {
        let mut message = message.clone();
        let mut keys = keys.iter();
        let mut values = Vec::new();
        message.replace_attachments(|value| {
            let key = if is_large(value) { keys.next() } else { None };
            if let Some(key) = key {
                values.push((key.clone(), std::mem::replace(value, key.clone())));
            }
        });
        let body = json::text(&message);
        Ok(Self { body, values })
    }
}

/// Rows `[index, id, call or null, digest]` whose message is stored exactly so, not moved yet. Parameters: owner,
/// thread, incarnation, rows.
const MOVABLE: &str = "
SELECT n.i, m.id
FROM (
  SELECT value ->> 0 AS i, value ->> 1 AS id, value ->> 2 AS call, value ->> 3 AS digest FROM json_each(?4)
) n CROSS JOIN messages m ON m.rowid = CASE WHEN n.call IS NULL
  THEN (SELECT rowid FROM messages WHERE thread_id = +?2 AND id = n.id)
  ELSE (SELECT rowid FROM messages WHERE resource_id = +?1 AND thread_id = +?2 AND tool_call_id = n.call) END
WHERE m.resource_id = +?1 AND m.digest = n.digest AND m.attachments IS NULL
  AND EXISTS (SELECT 1 FROM threads WHERE id = +?2 AND resource_id = +?1 AND incarnation = +?3)";

/// Parameters: keys, due.
const ANNOUNCE: &str = "
INSERT INTO dropped_attachments (key, due_at_ms) SELECT value, ?2 FROM json_each(?1) WHERE TRUE
ON CONFLICT (key) DO UPDATE SET due_at_ms = excluded.due_at_ms";

/// The row refers to the objects. Owner, thread, incarnation, message, keys: `?1` to `?5`.
const REFERS: &str = "EXISTS (SELECT 1 FROM messages WHERE thread_id = +?2 AND id = +?4 AND resource_id = +?1 AND attachments = +?5)";

/// Parameters: keys. Rows that refer to them have struck them out.
const DROP_THE_REST: &str = "
UPDATE dropped_attachments SET due_at_ms = 0 WHERE key IN (SELECT value FROM json_each(?1))";

/// Parameters: now, how many.
const DROPPED: &str = "
SELECT key FROM dropped_attachments WHERE due_at_ms <= ?1 ORDER BY due_at_ms LIMIT +?2";

/// Parameters: keys.
const FORGET_DROPPED: &str = "DELETE FROM dropped_attachments WHERE key IN (SELECT value FROM json_each(?1))";

impl<D: Database, A: Attachments> Store<D, A> {
    /// Moves the large values of a run's incoming messages into the bucket, of those that are stored as they came and
    /// hold their values still. Says how many messages were moved. `prefix` is what the
    /// keys begin with, and no earlier move has used it.
    ///
    /// # Errors
    /// [`StoreError`]; every message is whole then, moved or not.
    pub async fn move_attachments(
        &self,
        run: &PersistentRun,
        incoming: &[Message],
        prefix: &str,
        now_ms: u64,
    ) -> Result<usize, StoreError> {
        let movable: Vec<&Message> = incoming.iter().filter(|message| is_movable(message)).collect();
        if run.read_only || movable.is_empty() || !self.attachments.is_bound() {
            return Ok(0);
        }
        let found = self.movable(run, &movable).await?;
        let mut planned = Vec::new();
        let mut key_count = 0;
        for (message, id) in found {
            let large_count = message.attachments().filter(|value| is_large(value)).count();
            let keys: Vec<String> = (key_count..key_count + large_count)
                .map(|number| format!("{prefix}/{number}"))
                .collect();
            key_count += large_count;
            planned.push((message, id, keys));
        }
        let all: Vec<&String> = planned.iter().flat_map(|(_, _, keys)| keys).collect();
        let due = now_ms.saturating_add(UNREFERRED_MS);
        let announce = Statement::new(ANNOUNCE, vec![json::text(&json!(all)).into(), due.into()]);
        self.database.batch(vec![announce]).await?;
        for (message, id, keys) in &planned {
            let cut = Cut::of(message, keys)?;
            for (key, value) in &cut.values {
                self.attachments.put(key, value).await?;
            }
            self.database.batch(refer(run, message, id, &cut)?).await?;
        }
        Ok(planned.len())
    }

    /// The messages of `candidates` to be moved, with the ids they are stored by.
    async fn movable<'m>(
        &self,
        run: &PersistentRun,
        candidates: &[&'m Message],
    ) -> Result<Vec<(&'m Message, String)>, StoreError> {
        let mut rows = Vec::new();
        for (index, message) in candidates.iter().enumerate() {
            let body = json::text(message);
            rows.push(json::text(&json!([
                index,
                message.id,
                tool_call_id(message),
                digest(&body)
            ])));
        }
        let statements = chunks(rows).into_iter().map(|rows| {
            let mut parameters = scope(run);
            parameters.push(rows.into());
            Statement::new(MOVABLE, parameters)
        });
        let mut found = Vec::new();
        for row in self.database.batch(statements.collect()).await?.iter().flatten() {
            let fields = Fields(row);
            let index = usize::try_from(fields.integer("i")?).unwrap_or(usize::MAX);
            if let Some(message) = candidates.get(index) {
                found.push((*message, fields.text("id")?.to_owned()));
            }
        }
        Ok(found)
    }

    /// Deletes a batch of the objects no row refers to any more.
    ///
    /// # Errors
    /// [`StoreError`]; the same call goes on.
    pub async fn drop_attachments(&self, now_ms: u64) -> Result<Purge, StoreError> {
        if !self.attachments.is_bound() {
            return Ok(Purge::Complete);
        }
        let limit = u64::try_from(DROPPED_MAX).unwrap_or(u64::MAX);
        let due = Statement::new(DROPPED, vec![now_ms.into(), limit.into()]);
        let rows = self.database.batch(vec![due]).await?.concat();
        let keys = rows.iter().map(|row| Fields(row).text("key").map(str::to_owned));
        let keys: Vec<String> = keys.collect::<Result<_, _>>()?;
        if !keys.is_empty() {
            self.attachments.delete(&keys).await?;
            let forget = Statement::new(FORGET_DROPPED, vec![json::text(&json!(keys)).into()]);
            self.database.batch(vec![forget]).await?;
        }
        Ok(if keys.len() < DROPPED_MAX {
            Purge::Complete
        } else {
            Purge::Incomplete
        })
    }
}

/// Puts the values back that the bucket holds. One that is gone there is empty: the rest of the thread is readable
/// still.
pub(super) async fn reattach(
    bucket: &dyn AnyBucket,
    messages: &mut [StoredMessage],
) -> Result<(), StoreError> {
    for message in messages {
        let keys: Vec<String> = match &message.attachments {
            Some(keys) => read::from_text(keys).map_err(|_| StoreError::Corrupt("attachments"))?,
            None => continue,
        };
        for keys in keys.chunks(READS_MAX) {
            let values = bucket.read(keys).await?;
            for (key, value) in keys.iter().zip(values) {
                let (key, value) = (
                    json::text(&json!(key)),
                    json::text(&json!(value.unwrap_or_default())),
                );
                if let Some((before, after)) = parts::split_once(&message.body, &key) {
                    message.body = parts::join(&[before, &value, after], "");
                }
            }
        }
    }
    Ok(())
}

/// The batch that cuts a row down to its keys, if it is still the message that was moved; otherwise the objects are due.
fn refer(run: &PersistentRun, message: &Message, id: &str, cut: &Cut) -> Result<Vec<Statement>, StoreError> {
    let whole = json::text(message);
    let pieces = pieces(&cut.body);
    let more: Parameter = u64::try_from(pieces.len() - 1).unwrap_or(u64::MAX).into();
    let keys: Vec<&String> = cut.values.iter().map(|(key, _)| key).collect();
    let keys = json::text(&json!(keys));
    let byte_count: usize = cut.values.iter().map(|(_, value)| value.len()).sum();
    let mut of_row = scope(run);
    of_row.extend([id.into(), keys.as_str().into()]);
    let with = |own: Vec<Parameter>| [of_row.clone(), own].concat();
    let mut statements = vec![
        Statement::new(
            format!(
                "UPDATE messages SET body = ?6, more_pieces = ?7, attachments = ?5, attachment_bytes = ?8
WHERE thread_id = +?2 AND id = +?4 AND resource_id = +?1 AND digest = +?9 AND attachments IS NULL AND {SAME_THREAD}"
            ),
            with(vec![
                pieces.first().copied().unwrap_or_default().into(),
                more.clone(),
                u64::try_from(byte_count).unwrap_or(u64::MAX).into(),
                digest(&whole).into(),
            ]),
        ),
        Statement::new(
            format!(
                "DELETE FROM message_pieces WHERE thread_id = +?2 AND message_id = +?4 AND piece > ?6
  AND {REFERS}"
            ),
            with(vec![more]),
        ),
    ];
    for (piece, text) in (0u64..).zip(&pieces).skip(1) {
        statements.push(Statement::new(
            format!(
                "INSERT INTO message_pieces (thread_id, message_id, piece, text) SELECT ?2, ?4, ?6, ?7
WHERE {REFERS}
ON CONFLICT (thread_id, message_id, piece) DO UPDATE SET text = excluded.text"
            ),
            with(vec![piece.into(), (*text).into()]),
        ));
    }
    statements.push(Statement::new(
        format!(
            "DELETE FROM dropped_attachments WHERE key IN (SELECT value FROM json_each(?5))
  AND {REFERS}"
        ),
        of_row,
    ));
    statements.push(Statement::new(DROP_THE_REST, vec![keys.into()]));
    Ok(statements)
}

/// Owner, thread, incarnation.
fn scope(run: &PersistentRun) -> Vec<Parameter> {
    vec![
        run.owner.as_str().into(),
        run.thread_id.as_str().into(),
        run.incarnation.as_str().into(),
    ]
}
