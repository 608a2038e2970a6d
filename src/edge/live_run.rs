//! A run as the object keeps it in memory: while it lives, and while its events may be asked for after that.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use super::object_sql::ObjectSql;
use super::viewers::Viewers;
use super::watchdog::ALARM_EVERY;
use crate::api::error::ApiError;
use crate::protocol::id::{ResourceId, RunId, ToolCallId};
use crate::protocol::index::Index;
use crate::protocol::tool::ToolResult;
use crate::run::description::RunDescription;
use crate::run::journal::Kept;
use crate::run::keeper::Keeper;
use crate::run::mailbox::Delivery;
use crate::run::{RunControl, RunEnd};
use crate::store::RunStatus;

/// Longest pause between two looks at a durable run that waits for a person: who posts a result or asks for events looks
/// too.
const WAITING_ALARM_EVERY: Duration = Duration::from_secs(5 * 60);

/// A run and what other requests may do to it.
#[derive(Debug)]
pub struct LiveRun {
    /// What it is, and what is kept of it.
    pub keeper: Rc<Keeper<ObjectSql>>,
    /// How often it was restarted.
    pub generation: u64,
    /// Its mailbox and its cancel signal.
    pub control: RunControl,
    /// Who watches.
    pub viewers: Rc<Viewers>,
    /// How many results each call was sent.
    result_counts: RefCell<Index<ToolCallId, usize>>,
    /// Whether its loop has returned and its streams are over; a title may be written after the end of the run.
    pub is_done: Cell<bool>,
}

impl LiveRun {
    /// A run about to start.
    pub fn new(keeper: Keeper<ObjectSql>) -> Self {
        let keeper = Rc::new(keeper);
        Self {
            viewers: Rc::new(Viewers::new(Rc::clone(&keeper), 0, false)),
            keeper,
            generation: 0,
            control: RunControl::default(),
            result_counts: RefCell::default(),
            is_done: Cell::new(false),
        }
    }

    /// A run that goes on, or is over: its log has `event_count` events.
    pub fn restored(keeper: Keeper<ObjectSql>, kept: &Kept, generation: u64, event_count: u64) -> Self {
        let keeper = Rc::new(keeper);
        let control = RunControl::restored(kept);
        if let Some((status, at_ms)) = kept.end {
            let terminal_sent = true;
            control.ending.set(
                RunEnd {
                    status,
                    terminal_sent,
                },
                at_ms,
            );
            control.mailbox.close();
        }
        let is_over = kept.end.is_some();
        Self {
            viewers: Rc::new(Viewers::new(Rc::clone(&keeper), event_count, is_over)),
            keeper,
            generation,
            control,
            result_counts: RefCell::default(),
            is_done: Cell::new(is_over),
        }
    }

    /// How and when (Unix milliseconds) it ended.
    pub fn ended(&self) -> Option<(RunStatus, u64)> {
        self.control.ending.get().map(|(end, at_ms)| (end.status, at_ms))
    }

    /// Whether a request may touch this run: it names it, and is its owner's or names no owner (D4).
    ///
    /// # Errors
    /// 404 for another run, 403 for another owner.
    pub fn admit(&self, run_id: &RunId, caller: Option<&ResourceId>) -> Result<(), ApiError> {
        let run = self.keeper.run();
        if *run_id != run.run_id {
            return Err(ApiError::run_not_found());
        }
        match (caller, &run.owner) {
            (Some(caller), Some(owner)) if caller != owner => Err(ApiError::forbidden()),
            (Some(_) | None, Some(_) | None) => Ok(()),
        }
    }

    /// Whether its events may be read, by one who has seen some of this generation.
    ///
    /// # Errors
    /// 409 for another generation, 410 when they are over.
    pub fn admit_viewer(&self, generation: Option<u64>) -> Result<(), ApiError> {
        if generation.is_some_and(|generation| generation != self.generation) {
            return Err(ApiError::generation_changed(self.generation));
        }
        let is_over = self.ended().is_some() && !self.keeper.run().is_durable();
        if is_over {
            Err(ApiError::run_over())
        } else {
            Ok(())
        }
    }

    /// Delivers a result. Source: contract 3.
    ///
    /// # Errors
    /// 404, 409, 410, 429 when the call was sent `max_count` of them, or 503 when it could not be kept.
    pub fn deliver(&self, id: &ToolCallId, result: ToolResult, max_count: usize) -> Result<(), ApiError> {
        if self.ended().is_some() {
            return Err(ApiError::run_over());
        }
        let mut counts = self.result_counts.borrow_mut();
        if counts.get(id.as_str()).is_some_and(|count| *count >= max_count) {
            return Err(ApiError::too_many_results());
        }
        let delivered = self.control.deliver(&self.keeper, id, result);
        let delivery = delivered.map_err(|_| ApiError::storage_unavailable())?;
        if delivery != Delivery::Unknown {
            let count = counts.get(id.as_str()).map_or(0, |count| *count);
            counts.put(id.clone(), count + 1);
        }
        match delivery {
            Delivery::Accepted | Delivery::Repeated => Ok(()),
            Delivery::Conflict => Err(ApiError::result_conflict()),
            Delivery::Unknown => Err(ApiError::tool_call_not_found()),
            Delivery::Expired => Err(ApiError::tool_call_expired()),
        }
    }

    /// When the alarm looks again. A call's deadline fires from there if the loop is lost.
    pub fn next_look(&self, now_ms: u64) -> Duration {
        match self.control.mailbox.next_deadline_ms() {
            Some(deadline_ms) if self.keeper.run().is_durable() => {
                Duration::from_millis(deadline_ms.saturating_sub(now_ms)).min(WAITING_ALARM_EVERY)
            }
            Some(_) | None => ALARM_EVERY,
        }
    }

    /// Its state now. Source: contract 8.
    pub fn description(&self) -> RunDescription {
        let pending = self.control.mailbox.pending();
        let status = match self.ended() {
            Some((status, _)) => status,
            None if pending.is_empty() => RunStatus::Running,
            None => RunStatus::Waiting,
        };
        let run = self.keeper.run();
        RunDescription {
            run_id: run.run_id.clone(),
            thread_id: run.thread_id.clone(),
            agent_id: run.agent_id.clone(),
            status: status.as_str(),
            generation: Some(self.generation),
            started_at_ms: run.started_at_ms,
            finished_at_ms: self.ended().map(|(_, at_ms)| at_ms),
            event_count: Some(self.viewers.event_count()),
            pending,
        }
    }
}
