//! A whole thread, read in parts of bounded size.

use serde_json::Value;

use super::body::{MESSAGE_COLUMNS, StoredMessage};
use super::messages::{PAGE_MAX_BYTES, ROW_BYTES, seen};
use super::{Attachments, Database, Statement, Store, StoreError};
use crate::list::all;
use crate::protocol::id::ThreadId;

/// Messages of a part.
const PART_MAX_COUNT: u32 = 200;

/// A part of a thread's messages.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadPart {
    /// In the order of the thread, exactly as streamed; empty at the end.
    pub messages: Vec<Value>,
    /// Where the next part starts.
    pub next_place: u64,
}

impl<D: Database, A: Attachments> Store<D, A> {
    /// The messages from `place` on, 0 = all, as many as fit a part. The caller's right to the thread is already proven.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn thread_part(
        &self,
        thread_id: &ThreadId,
        place: u64,
        with_superseded: bool,
    ) -> Result<ThreadPart, StoreError> {
        let seen = seen(with_superseded);
        let sql = format!(
            "SELECT * FROM (
  SELECT *, sum(bytes) OVER (ORDER BY place) AS so_far FROM (
    SELECT {MESSAGE_COLUMNS}, {ROW_BYTES} AS bytes FROM messages m
    WHERE {seen} AND m.place >= ?3 ORDER BY m.place LIMIT {PART_MAX_COUNT}
  )
) WHERE so_far <= {PAGE_MAX_BYTES} OR so_far = bytes ORDER BY place"
        );
        let scope = vec![None::<&str>.into(), thread_id.as_str().into(), place.into()];
        let mut results = self.database.batch(vec![Statement::new(sql, scope)]).await?;
        let rows = results.pop().unwrap_or_default();
        let stored = self.stored_messages(thread_id.as_str(), &rows).await?;
        let next_place = stored.last().map_or(place, |last| last.place.saturating_add(1));
        let messages = stored.into_iter().map(StoredMessage::into_value);
        Ok(ThreadPart {
            messages: all(messages)?,
            next_place,
        })
    }
}
