//! Deleting for good: everything of an owner, and what is older than the deployment keeps. Both go in batches of
//! bounded size, one call per batch, and may be stopped and taken up again between any two.

use super::row::Fields;
use super::{Attachments, Database, Parameter, Statement, Store, StoreError};
use crate::list::all;
use crate::protocol::id::{ResourceId, ThreadId};

/// Threads one batch works on.
const THREADS_MAX: u32 = 20;

/// Messages, run rows or tombstones one batch deletes.
const ROWS_MAX: u32 = 2000;

/// Pieces of large messages one batch deletes; each has up to 700 kB.
const PIECES_MAX: u32 = 64;

/// Whether a purge is through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purge {
    /// Nothing is left.
    Complete,
    /// The next batch finds more.
    Incomplete,
}

/// What a batch has done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Purged {
    /// Whether that was all.
    pub state: Purge,
    /// Threads that are gone now.
    pub threads: Vec<ThreadId>,
}

/// What a batch deletes, as the parts of its statements.
struct Selection {
    /// Ids of the next threads, oldest first.
    threads: String,
    /// Keys (id, resource_id) of the next run rows.
    runs: String,
    /// Keys (id, resource_id) of the next tombstones.
    tombstones: String,
    parameters: Vec<Parameter>,
}

impl<D: Database, A: Attachments> Store<D, A> {
    /// Deletes a batch of everything of an owner: threads, messages, run rows and tombstones. Runs that are still live
    /// store nothing afterwards. `incarnation` is a fresh random text.
    ///
    /// # Errors
    /// [`StoreError`]; nothing is half-deleted then, and the same call goes on.
    pub async fn erase_owner(&self, owner: &ResourceId, incarnation: &str) -> Result<Purged, StoreError> {
        let of_owner = |columns: &str, table: &str, order: &str, limit: u32| {
            format!("SELECT {columns} FROM {table} WHERE resource_id = +?1 ORDER BY {order} LIMIT {limit}")
        };
        let selection = Selection {
            threads: of_owner("id", "threads", "updated_at_ms, id", THREADS_MAX),
            runs: of_owner("id, resource_id", "runs", "started_at_ms", ROWS_MAX),
            tombstones: of_owner("id, resource_id", "deleted_threads", "deleted_at_ms", ROWS_MAX),
            parameters: vec![owner.as_str().into()],
        };
        self.purge(selection, incarnation).await
    }

    /// Deletes a batch of what has been idle since before `before_ms` (Unix milliseconds): threads with their messages,
    /// rows of runs that are over, tombstones. `incarnation` is a fresh random text.
    ///
    /// # Errors
    /// [`StoreError`]; nothing is half-deleted then, and the same call goes on.
    pub async fn purge_idle(&self, before_ms: u64, incarnation: &str) -> Result<Purged, StoreError> {
        let selection = Selection {
            threads: idle("id", "threads", "updated_at_ms", "TRUE", THREADS_MAX),
            runs: idle(
                "id, found.resource_id",
                "runs",
                "started_at_ms",
                "(found.status NOT IN ('running', 'waiting') OR found.deadline_ms < ?1)",
                ROWS_MAX,
            ),
            tombstones: idle(
                "id, found.resource_id",
                "deleted_threads",
                "deleted_at_ms",
                "TRUE",
                ROWS_MAX,
            ),
            parameters: vec![before_ms.into()],
        };
        self.purge(selection, incarnation).await
    }

    async fn purge(&self, selection: Selection, incarnation: &str) -> Result<Purged, StoreError> {
        let Selection {
            threads,
            runs,
            tombstones,
            parameters,
        } = selection;
        let statement = |sql: String| Statement::new(sql, parameters.clone());
        let mut fence = parameters.clone();
        fence.push(incarnation.into());
        let own = |table: &str, limit: u32| {
            statement(format!(
                "DELETE FROM {table} WHERE rowid IN (
  SELECT {table}.rowid FROM ({threads}) thread CROSS JOIN {table} ON {table}.thread_id = thread.id LIMIT {limit}
)"
            ))
        };
        let statements = vec![
            // Runs that began before write nothing from here on.
            Statement::new(
                format!("UPDATE threads SET incarnation = ?2 WHERE id IN ({threads})"),
                fence,
            ),
            own("message_pieces", PIECES_MAX),
            own("messages", ROWS_MAX),
            statement(format!(
                "DELETE FROM threads WHERE id IN ({threads})
  AND NOT EXISTS (SELECT 1 FROM messages WHERE thread_id = threads.id)
  AND NOT EXISTS (SELECT 1 FROM message_pieces WHERE thread_id = threads.id)
RETURNING id AS thread"
            )),
            statement(format!("DELETE FROM runs WHERE (id, resource_id) IN ({runs})")),
            statement(format!(
                "DELETE FROM deleted_threads WHERE (id, resource_id) IN ({tombstones})"
            )),
            statement(format!(
                "SELECT EXISTS ({threads}) OR EXISTS ({runs}) OR EXISTS ({tombstones}) AS remains"
            )),
        ];
        let results = self.database.batch(statements).await?;
        let row = results.last().and_then(|rows| rows.first());
        let remains = Fields(row.ok_or(StoreError::Corrupt("remains"))?).truth("remains")?;
        let gone = results.iter().flatten().filter(|row| row.contains_key("thread"));
        Ok(Purged {
            state: if remains {
                Purge::Incomplete
            } else {
                Purge::Complete
            },
            threads: all(gone.map(|row| Fields(row).id("thread", ThreadId::new)))?,
        })
    }
}

/// Rows whose time is before `?1`. One seek per owner in an index that starts with the owner: an index by time alone
/// would cost every run a row to write.
fn idle(columns: &str, table: &str, time: &str, condition: &str, limit: u32) -> String {
    format!(
        "WITH RECURSIVE owner(resource_id) AS (
    SELECT min(resource_id) FROM {table}
    UNION ALL
    SELECT (SELECT min(next.resource_id) FROM {table} next WHERE next.resource_id > owner.resource_id)
    FROM owner WHERE owner.resource_id IS NOT NULL
  )
  SELECT found.{columns} FROM owner CROSS JOIN {table} found
    ON found.resource_id = owner.resource_id AND found.{time} < ?1 AND {condition}
  LIMIT {limit}"
    )
}
