//! A run as the object keeps it in memory, while it lives and for as long as the object stays after it.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use super::outlet::Viewers;
use crate::api::error::ApiError;
use crate::protocol::id::{AgentId, ResourceId, RunId, ThreadId, ToolCallId};
use crate::protocol::tool::ToolResult;
use crate::run::description::RunDescription;
use crate::run::mailbox::Delivery;
use crate::run::{RunControl, RunEnd, RunSetup};
use crate::store::RunStatus;

/// A run and what other requests may do to it.
#[derive(Debug)]
pub struct LiveRun {
    /// The client's id of the run.
    pub run_id: RunId,
    /// Its thread.
    pub thread_id: ThreadId,
    /// Its agent.
    pub agent_id: AgentId,
    /// Its owner.
    pub owner: Option<ResourceId>,
    /// Unix milliseconds.
    pub started_at_ms: u64,
    /// Its mailbox and its cancel signal.
    pub control: RunControl,
    /// Who watches.
    pub viewers: Rc<Viewers>,
    /// How many results each call was sent.
    result_counts: RefCell<HashMap<ToolCallId, usize>>,
    /// Whether its loop has returned and its streams are over; a title may be written after the end of the run.
    pub is_done: Cell<bool>,
}

impl LiveRun {
    /// A run about to start.
    pub fn new(setup: &RunSetup, now_ms: u64) -> Self {
        Self {
            run_id: setup.input.run_id.clone(),
            thread_id: setup.input.thread_id.clone(),
            agent_id: AgentId::new(setup.agent.id.as_str()),
            owner: setup.owner.clone(),
            started_at_ms: now_ms,
            control: RunControl::default(),
            viewers: Rc::default(),
            result_counts: RefCell::default(),
            is_done: Cell::new(false),
        }
    }

    /// The loop has ended.
    pub fn end(&self, end: RunEnd, now_ms: u64) {
        let known = self.control.end.take();
        self.control.end.set(known.or(Some((end, now_ms))));
    }

    /// How and when (Unix milliseconds) it ended.
    pub fn ended(&self) -> Option<(RunStatus, u64)> {
        self.control.end.get().map(|(end, at_ms)| (end.status, at_ms))
    }

    /// Whether a request may touch this run: it names it, and is its owner's or names no owner (D4).
    ///
    /// # Errors
    /// 404 for another run, 403 for another owner.
    pub fn admit(&self, run_id: &RunId, caller: Option<&ResourceId>) -> Result<(), ApiError> {
        if *run_id != self.run_id {
            return Err(ApiError::run_not_found());
        }
        match (caller, &self.owner) {
            (Some(caller), Some(owner)) if caller != owner => Err(ApiError::forbidden()),
            (Some(_) | None, Some(_) | None) => Ok(()),
        }
    }

    /// Delivers a result. Source: contract 3.
    ///
    /// # Errors
    /// 404, 409 or 410; 429 when the call was sent `max_count` of them.
    pub fn deliver(&self, id: &ToolCallId, result: ToolResult, max_count: usize) -> Result<(), ApiError> {
        if self.ended().is_some() {
            return Err(ApiError::run_over());
        }
        let mut counts = self.result_counts.borrow_mut();
        if counts.get(id).is_some_and(|count| *count >= max_count) {
            return Err(ApiError::too_many_results());
        }
        let delivery = self.control.mailbox.deliver(id, result);
        if delivery != Delivery::Unknown {
            *counts.entry(id.clone()).or_default() += 1;
        }
        match delivery {
            Delivery::Accepted | Delivery::Repeated => Ok(()),
            Delivery::Conflict => Err(ApiError::result_conflict()),
            Delivery::Unknown => Err(ApiError::tool_call_not_found()),
            Delivery::Expired => Err(ApiError::tool_call_expired()),
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
        RunDescription {
            run_id: self.run_id.clone(),
            thread_id: self.thread_id.clone(),
            agent_id: self.agent_id.clone(),
            status: status.as_str(),
            generation: 0,
            started_at_ms: self.started_at_ms,
            finished_at_ms: self.ended().map(|(_, at_ms)| at_ms),
            event_count: Some(self.viewers.event_count()),
            pending,
        }
    }
}
