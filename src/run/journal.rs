//! What an object keeps of its run in its own SQLite: the event log, and records that say where the run stands.
//!
//! Calls are synchronous, and what is written between two waits is written together or not at all: so a record and the
//! events it speaks of are always both there. Every statement on these two tables is here.

use std::cell::Cell;

use serde::Serialize;

use super::checkpoint::{Checkpoint, Position, Segments};
use super::mailbox::ExpectedCall;
use super::ports::{ObjectStorage, SqlValue, StorageFault};
use crate::protocol::id::{AgentId, ResourceId, RunId, ThreadId, ToolCallId};
use crate::protocol::json;
use crate::protocol::read::{self, record, variants};
use crate::protocol::tool::ToolResult;
use crate::store::{Persistence, RunStatus};

/// Longest text or bytes of a row; the platform takes 2 MB.
const PIECE_MAX_BYTES: usize = 1024 * 1024;

/// Restarts without a new checkpoint in between, after which a run is given up: it may be what resets its object.
const RESTARTS_IN_VAIN_MAX: u64 = 5;

const IS_MADE: &str = "SELECT 1 FROM sqlite_master WHERE name = 'journal'";

/// Tables vanish with the object's storage while the object lives on: made when needed.
const CREATE: [&str; 2] = [
    "CREATE TABLE IF NOT EXISTS journal (
  number INTEGER NOT NULL, piece INTEGER NOT NULL, text TEXT NOT NULL, PRIMARY KEY (number, piece)
) WITHOUT ROWID, STRICT",
    "CREATE TABLE IF NOT EXISTS events (
  first_event INTEGER NOT NULL, piece INTEGER NOT NULL, event_count INTEGER NOT NULL, frames BLOB NOT NULL,
  PRIMARY KEY (first_event, piece)
) WITHOUT ROWID, STRICT",
];

const DROP: [&str; 2] = ["DROP TABLE IF EXISTS journal", "DROP TABLE IF EXISTS events"];

const INSERT_RECORD: &str = "INSERT INTO journal (number, piece, text) VALUES (?1, ?2, ?3)";
const DELETE_RECORD: &str = "DELETE FROM journal WHERE number = ?1";
const DELETE_HIDDEN_CALLS: &str = "
DELETE FROM journal WHERE number IN (
  SELECT number FROM journal WHERE number > ?1 AND piece = 0 AND substr(text, 1, 8) = '{\"call\":'
)";
const ALL_RECORDS: &str = "SELECT number, text FROM journal ORDER BY number, piece";

const INSERT_EVENTS: &str =
    "INSERT INTO events (first_event, piece, event_count, frames) VALUES (?1, ?2, ?3, ?4)";
const DELETE_EVENTS: &str = "DELETE FROM events WHERE first_event >= ?1";

/// The batch that has the event of this number, from 0.
const EVENTS_AT: &str = "
SELECT first_event, event_count, frames FROM events
WHERE first_event = (SELECT max(first_event) FROM events WHERE first_event <= ?1) ORDER BY piece";

const EVENT_COUNT: &str = "SELECT first_event + event_count FROM events ORDER BY first_event DESC LIMIT 1";

/// One thing that happened, in order.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Record {
    /// The run began.
    Run(RunRecord),
    /// A front-end call was registered.
    Call(ExpectedCall),
    /// A call of the open step was answered.
    Result {
        /// The call.
        id: ToolCallId,
        /// Its answer.
        result: ToolResult,
        /// Whether a client posted it: the same again is welcome then (contract 3).
        is_posted: bool,
    },
    /// Where the run can go on; takes the place of the one before.
    Checkpoint(Box<Checkpoint>),
    /// What is stored of the run if it is lost; takes the place of the one before.
    Segments(Box<Segments>),
    /// The run goes on after a reset, in a new generation.
    Restart,
    /// The run is over.
    End {
        /// How.
        status: RunStatus,
        /// When, Unix milliseconds.
        ended_at_ms: u64,
    },
}

variants!(Record:
    "restart" => Restart,
    "run" => Run(run),
    "call" => Call(call),
    "result" => Result { "id" => id, "result" => result, "isPosted" => is_posted },
    "checkpoint" => Checkpoint(checkpoint),
    "segments" => Segments(segments),
    "end" => End { "status" => status, "endedAtMs" => ended_at_ms },
);

/// What a run is, for an object that knows nothing else of it.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRecord {
    /// The client's id of the run.
    pub run_id: RunId,
    /// Its thread.
    pub thread_id: ThreadId,
    /// Its agent.
    pub agent_id: AgentId,
    /// Its owner; a run without one has no row in D1.
    pub owner: Option<ResourceId>,
    /// How it treats its thread.
    pub persistence: Persistence,
    /// For the log.
    pub request_id: String,
    /// Trace of the request that started it, as a header of its own.
    pub trace: String,
    /// Unix milliseconds.
    pub started_at_ms: u64,
    /// How long its events are kept after its end, in milliseconds; `None` = it stops with its last viewer, and with a
    /// reset.
    pub event_retention_ms: Option<u64>,
    /// The client's `RunAgentInput`, of a run that goes on after a reset.
    pub input: String,
}

record!(RunRecord:
    "runId" => run_id, "threadId" => thread_id, "agentId" => agent_id, "owner" => owner = None,
    "persistence" => persistence, "requestId" => request_id, "trace" => trace, "startedAtMs" => started_at_ms,
    "eventRetentionMs" => event_retention_ms = None, "input" => input,
);

impl RunRecord {
    /// Whether the run goes on without a viewer and after a reset.
    pub fn is_durable(&self) -> bool {
        self.event_retention_ms.is_some()
    }
}

/// Everything an object finds of its run.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept {
    /// The run.
    pub run: RunRecord,
    /// Where it can go on.
    pub checkpoint: Option<Checkpoint>,
    /// What is stored of it if it is lost.
    pub segments: Option<Segments>,
    /// The front-end calls that clients may know, in order.
    pub calls: Vec<ExpectedCall>,
    /// Those of the open step: nobody knows them before the next checkpoint.
    hidden_calls: Vec<ExpectedCall>,
    /// Results in order of arrival, and whether a client posted them.
    pub results: Vec<(ToolCallId, ToolResult, bool)>,
    /// How often it was restarted.
    pub generation: u64,
    /// How often since the last checkpoint.
    pub restarts_in_vain: u64,
    /// How it ended, and when (Unix milliseconds).
    pub end: Option<(RunStatus, u64)>,
}

/// What an object does that finds records of a run and no loop that drives it. Source: contract 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The run goes on from its checkpoint.
    Resume,
    /// The run ends at its checkpoint, as interrupted.
    GiveUp,
    /// The run is closed as failed, with what is known of it.
    Close,
    /// The run is over; its events are served until then, Unix milliseconds.
    Serve {
        /// Unix milliseconds.
        until_ms: u64,
    },
    /// Nothing is kept any longer.
    Forget,
}

impl Kept {
    fn new(run: RunRecord) -> Self {
        Self {
            run,
            checkpoint: None,
            segments: None,
            calls: Vec::new(),
            hidden_calls: Vec::new(),
            results: Vec::new(),
            generation: 0,
            restarts_in_vain: 0,
            end: None,
        }
    }

    fn add(&mut self, record: Record) {
        match record {
            Record::Run(run) => self.run = run,
            Record::Call(call) => self.hidden_calls.push(call),
            Record::Result {
                id,
                result,
                is_posted,
            } => self.results.push((id, result, is_posted)),
            Record::Checkpoint(checkpoint) => {
                self.checkpoint = Some(*checkpoint);
                self.calls.append(&mut self.hidden_calls);
                self.restarts_in_vain = 0;
            }
            Record::Segments(segments) => self.segments = Some(*segments),
            Record::Restart => {
                // Those that nobody was shown are gone since then.
                self.calls.append(&mut self.hidden_calls);
                self.generation += 1;
                self.restarts_in_vain += 1;
            }
            Record::End { status, ended_at_ms } => self.end = Some((status, ended_at_ms)),
        }
    }

    /// What is stored of the run when it is closed; `None` = nothing of it is known.
    pub fn closing(&self, now_ms: u64) -> Option<Segments> {
        let kept = self.segments.clone();
        let mut closing = kept.or_else(|| self.checkpoint.as_ref()?.segments())?;
        closing.end.now_ms = now_ms;
        Some(closing)
    }

    /// What to do now.
    pub fn next(&self, now_ms: u64) -> Next {
        let Some(retention_ms) = self.run.event_retention_ms else {
            return Next::Close;
        };
        match (self.end, &self.checkpoint) {
            (Some((_, ended_at_ms)), _) => {
                let until_ms = ended_at_ms.saturating_add(retention_ms);
                if now_ms < until_ms {
                    Next::Serve { until_ms }
                } else {
                    Next::Forget
                }
            }
            (None, None) => Next::Close,
            (None, Some(_)) if self.restarts_in_vain < RESTARTS_IN_VAIN_MAX => Next::Resume,
            // It never got to its thread, and has nothing to say there.
            (None, Some(checkpoint)) if checkpoint.position == Position::Starting => Next::Close,
            (None, Some(_)) => Next::GiveUp,
        }
    }
}

/// Events of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredEvents {
    /// How many events of the run come before the batch.
    pub first: u64,
    /// How many it has.
    pub count: u64,
    /// Their frames.
    pub frames: Vec<u8>,
}

/// SQL that begins a journal, and its `?1`: for the platform, which calls it when we no longer can.
///
/// # Errors
/// [`StorageFault`]
pub fn beginning(run: &RunRecord) -> Result<(String, String), StorageFault> {
    let record = Record::Run(run.clone());
    let text = json::text(&record);
    let [journal, events] = CREATE;
    let insert = "INSERT OR IGNORE INTO journal (number, piece, text) VALUES (1, 0, ?1)";
    Ok((format!("{journal};\n{events};\n{insert}"), text))
}

/// The journal of one object.
#[derive(Debug)]
pub struct Journal<S> {
    storage: S,
    /// Number of the next record.
    next_number: Cell<u64>,
    /// The record the next checkpoint takes the place of.
    replaceable: Cell<Option<u64>>,
}

impl<S: ObjectStorage> Journal<S> {
    /// The journal in this storage; nothing is read or written yet.
    pub fn new(storage: S) -> Self {
        Self {
            storage,
            next_number: Cell::new(1),
            replaceable: Cell::new(None),
        }
    }

    /// Appends a record.
    ///
    /// # Errors
    /// [`StorageFault`]
    pub fn append(&self, record: &Record) -> Result<(), StorageFault> {
        let number = self.next_number.get();
        if number == 1 {
            for table in CREATE {
                self.storage.exec(table, Vec::new())?;
            }
        }
        let mut text = json::text(record);
        let mut piece = 0;
        while !text.is_empty() {
            let rest = text.split_off(text.floor_char_boundary(PIECE_MAX_BYTES));
            let row = vec![number.into(), piece.into(), SqlValue::Text(text)];
            self.storage.exec(INSERT_RECORD, row)?;
            text = rest;
            piece += 1;
        }
        self.next_number.set(number + 1);
        match record {
            Record::Checkpoint(_) | Record::Segments(_) => {
                if let Some(older) = self.replaceable.replace(Some(number)) {
                    self.storage.exec(DELETE_RECORD, vec![older.into()])?;
                }
            }
            Record::Run(_)
            | Record::Call(_)
            | Record::Result { .. }
            | Record::Restart
            | Record::End { .. } => {}
        }
        Ok(())
    }

    /// Everything kept of the object's run; `None` = nothing is.
    ///
    /// # Errors
    /// [`StorageFault`], also when a record is not one of ours.
    pub fn read(&self) -> Result<Option<Kept>, StorageFault> {
        if self.storage.exec(IS_MADE, Vec::new())?.is_empty() {
            return Ok(None);
        }
        let mut records: Vec<(u64, String)> = Vec::new();
        for row in self.storage.exec(ALL_RECORDS, Vec::new())? {
            let Ok([SqlValue::Integer(number), SqlValue::Text(text)]) = <[SqlValue; 2]>::try_from(row) else {
                return Err(corrupt());
            };
            let number = u64::try_from(number).map_err(|_| corrupt())?;
            match records.last_mut() {
                Some((last, whole)) if *last == number => whole.push_str(&text),
                _ => records.push((number, text)),
            }
        }
        let mut kept: Option<Kept> = None;
        for (number, text) in records {
            self.next_number.set(number + 1);
            let record: Record = read::from_text(&text).map_err(|_| corrupt())?;
            if let Record::Checkpoint(_) | Record::Segments(_) = record {
                self.replaceable.set(Some(number));
            }
            match (&mut kept, record) {
                (Some(kept), record) => kept.add(record),
                (None, Record::Run(run)) => kept = Some(Kept::new(run)),
                (None, _) => return Err(corrupt()),
            }
        }
        Ok(kept)
    }

    /// Adds events to the stored log, which has `first` of them.
    ///
    /// # Errors
    /// [`StorageFault`]
    pub fn append_events(&self, first: u64, count: u64, frames: &[u8]) -> Result<(), StorageFault> {
        for (piece, frames) in (0u64..).zip(frames.chunks(PIECE_MAX_BYTES)) {
            let row = vec![
                first.into(),
                piece.into(),
                count.into(),
                SqlValue::Bytes(frames.to_vec()),
            ];
            self.storage.exec(INSERT_EVENTS, row)?;
        }
        Ok(())
    }

    /// The batch with the event behind the first `after`; `None` = there is none.
    ///
    /// # Errors
    /// [`StorageFault`]
    pub fn events_at(&self, after: u64) -> Result<Option<StoredEvents>, StorageFault> {
        let mut found: Option<StoredEvents> = None;
        for row in self.storage.exec(EVENTS_AT, vec![after.into()])? {
            let Ok(
                [
                    SqlValue::Integer(first),
                    SqlValue::Integer(count),
                    SqlValue::Bytes(frames),
                ],
            ) = <[SqlValue; 3]>::try_from(row)
            else {
                return Err(corrupt());
            };
            match &mut found {
                Some(batch) => batch.frames.extend_from_slice(&frames),
                None => {
                    found = Some(StoredEvents {
                        first: u64::try_from(first).map_err(|_| corrupt())?,
                        count: u64::try_from(count).map_err(|_| corrupt())?,
                        frames,
                    });
                }
            }
        }
        Ok(found.filter(|batch| batch.first.saturating_add(batch.count) > after))
    }

    /// How many events are stored.
    ///
    /// # Errors
    /// [`StorageFault`]
    pub fn event_count(&self) -> Result<u64, StorageFault> {
        let rows = self.storage.exec(EVENT_COUNT, Vec::new())?;
        match rows.first().map(Vec::as_slice) {
            Some([SqlValue::Integer(count)]) => u64::try_from(*count).map_err(|_| corrupt()),
            Some(_) => Err(corrupt()),
            None => Ok(0),
        }
    }

    /// Forgets everything.
    ///
    /// # Errors
    /// [`StorageFault`]
    pub fn clear(&self) -> Result<(), StorageFault> {
        for table in DROP {
            self.storage.exec(table, Vec::new())?;
        }
        Ok(())
    }

    /// Begins a new generation, whose log is the old one up to the checkpoint: what was finished is restated, with
    /// every id it had.
    ///
    /// # Errors
    /// [`StorageFault`]
    pub fn restart(&self, checkpoint: &Checkpoint) -> Result<(), StorageFault> {
        self.storage
            .exec(DELETE_EVENTS, vec![checkpoint.event_count.into()])?;
        // Calls of an answer that is asked for again were shown to nobody, and will have other ids or other meanings.
        let since = self.replaceable.get().unwrap_or(0);
        self.storage.exec(DELETE_HIDDEN_CALLS, vec![since.into()])?;
        self.append(&Record::Restart)
    }
}

fn corrupt() -> StorageFault {
    StorageFault("a record is not what was written".to_owned())
}
