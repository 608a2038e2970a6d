//! End batches the database did not take, kept in the object's own SQLite until it does (contract 2.3).
//!
//! The object's table for them; its statements are here, as `store` has those of the database.

use std::time::Duration;

use super::bindings::State;
use super::clock::PlatformClock;
use super::log::ConsoleLog;
use super::object_sql::ObjectSql;
use crate::protocol::json;
use crate::protocol::read;
use crate::run::ports::{Clock, Level, Log, ObjectStorage, SqlValue, StorageFault};
use crate::store::{Database, Statement, Store, StoreError};

/// Longest text of a row in bytes; the platform takes 2 MB.
const PIECE_MAX_BYTES: usize = 1024 * 1024;

/// The first pause between two tries in milliseconds; later ones are half the time waited so far.
const PAUSE_MIN_MS: u64 = 30_000;

/// The longest pause, in milliseconds.
const PAUSE_MAX_MS: u64 = 60 * 60 * 1000;

/// After this time, in milliseconds, a batch is given up: by then somebody has read the log.
const AGE_MAX_MS: u64 = 7 * 24 * 60 * 60 * 1000;

const IS_MADE: &str = "SELECT 1 FROM sqlite_master WHERE name = 'outbox'";

/// Tables vanish with `delete_all` while the object lives on: made when needed. `kept_at` is Unix milliseconds.
const CREATE: &str = "
CREATE TABLE IF NOT EXISTS outbox (
  kept_at INTEGER NOT NULL, piece INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (kept_at, piece)
) WITHOUT ROWID, STRICT";

const INSERT: &str = "
INSERT INTO outbox (kept_at, piece, text)
SELECT max(?1, coalesce((SELECT max(kept_at) FROM outbox) + (?2 = 0), 0)), ?2, ?3";

const OLDEST: &str = "
SELECT kept_at, text FROM outbox WHERE kept_at = (SELECT min(kept_at) FROM outbox) ORDER BY piece";

const DELETE: &str = "DELETE FROM outbox WHERE kept_at = ?1";

/// The batches of one object, in order.
#[derive(Debug, Clone)]
pub struct Outbox {
    sql: ObjectSql,
}

/// Why a batch is still here.
#[derive(Debug, thiserror::Error)]
enum OutboxError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("what was kept is not what was written")]
    Corrupt,
}

impl Outbox {
    /// The outbox of the object with this state.
    pub fn new(state: &State) -> Self {
        Self {
            sql: ObjectSql::new(state),
        }
    }

    /// Keeps a batch; all of it or nothing, since nothing is awaited in between.
    ///
    /// # Errors
    /// The storage took nothing.
    pub fn keep(&self, batch: &[Statement]) -> Result<(), StorageFault> {
        self.sql.exec(CREATE, Vec::new())?;
        let now_ms = PlatformClock.now_ms();
        let mut text = json::text(batch);
        let mut piece: u64 = 0;
        while !text.is_empty() {
            let rest = text.split_off(text.floor_char_boundary(PIECE_MAX_BYTES));
            let row = vec![now_ms.into(), piece.into(), SqlValue::Text(text)];
            self.sql.exec(INSERT, row)?;
            text = rest;
            piece += 1;
        }
        Ok(())
    }

    /// Gives the database every batch, oldest first, and forgets those it took. Says how long to wait before the next
    /// try; `None` = nothing is left.
    pub async fn deliver<D: Database>(&self, store: &Store<D>, log: &ConsoleLog) -> Option<Duration> {
        loop {
            let (kept_at_ms, text) = match self.oldest() {
                Ok(oldest) => oldest?,
                Err(fault) => {
                    log.line(Level::Error, "outbox_not_read", &[("error", &fault.0)]);
                    return Some(Duration::from_millis(PAUSE_MIN_MS));
                }
            };
            if let Err(error) = write(store, &text).await {
                let age_ms = PlatformClock.now_ms().saturating_sub(kept_at_ms);
                log.line(
                    Level::Error,
                    "end_batch_not_delivered",
                    &[("error", &error), ("ageMs", &age_ms)],
                );
                if age_ms < AGE_MAX_MS {
                    return Some(Duration::from_millis(
                        (age_ms / 2).clamp(PAUSE_MIN_MS, PAUSE_MAX_MS),
                    ));
                }
            }
            if let Err(fault) = self.sql.exec(DELETE, vec![kept_at_ms.into()]) {
                log.line(Level::Error, "outbox_not_cleared", &[("error", &fault.0)]);
                return Some(Duration::from_millis(PAUSE_MIN_MS));
            }
        }
    }

    /// Whether nothing is kept, as far as can be seen.
    pub fn is_empty(&self) -> bool {
        self.oldest().is_ok_and(|batch| batch.is_none())
    }

    /// Whether anything has been kept since the object was cleared.
    pub fn is_made(&self) -> bool {
        self.sql
            .exec(IS_MADE, Vec::new())
            .is_ok_and(|rows| !rows.is_empty())
    }

    /// When the oldest batch was kept, Unix milliseconds, and its text.
    fn oldest(&self) -> Result<Option<(u64, String)>, StorageFault> {
        let mut oldest = None;
        if !self.is_made() {
            return Ok(None);
        }
        for row in self.sql.exec(OLDEST, Vec::new())? {
            if let [SqlValue::Integer(kept_at_ms), SqlValue::Text(piece)] = row.as_slice() {
                let kept_at_ms = u64::try_from(*kept_at_ms).unwrap_or(0);
                let (_, text) = oldest.get_or_insert_with(|| (kept_at_ms, String::new()));
                text.push_str(piece);
            }
        }
        Ok(oldest)
    }
}

async fn write<D: Database>(store: &Store<D>, text: &str) -> Result<(), OutboxError> {
    let batch: Vec<Statement> = read::from_text(text).map_err(|_| OutboxError::Corrupt)?;
    Ok(store.write(batch).await?)
}
