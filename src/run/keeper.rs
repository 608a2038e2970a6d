//! Decides what of a run is kept for the case that its object is reset, and when.
//!
//! A durable run (`onDisconnect = "continue"`) keeps everything it needs to go on, from its start. Any other keeps the
//! end it gets if it is lost, and only once it has lived for a while: most runs end before and cost no storage at all.

use std::cell::{Cell, RefCell};

use super::checkpoint::{Checkpoint, Segments};
use super::journal::{Journal, Record, RunRecord};
use super::mailbox::ExpectedCall;
use super::ports::{ObjectStorage, StorageFault};
use crate::protocol::id::ToolCallId;
use crate::protocol::tool::ToolResult;
use crate::store::RunStatus;

type Kept = Result<(), StorageFault>;

/// Keeps one run.
#[derive(Debug)]
pub struct Keeper<S> {
    journal: Journal<S>,
    run: RunRecord,
    has_begun: Cell<bool>,
    /// Whether the end of the run is kept.
    is_over: Cell<bool>,
    /// Of a run that is not durable and has not lived long enough.
    latest: RefCell<Option<Box<Segments>>>,
}

impl<S: ObjectStorage> Keeper<S> {
    /// Keeps a run that starts now.
    pub fn new(storage: S, run: RunRecord) -> Self {
        Self {
            journal: Journal::new(storage),
            run,
            has_begun: Cell::new(false),
            is_over: Cell::new(false),
            latest: RefCell::default(),
        }
    }

    /// Keeps a run that goes on, or one that is over.
    pub fn resumed(journal: Journal<S>, run: RunRecord) -> Self {
        Self {
            journal,
            run,
            has_begun: Cell::new(true),
            is_over: Cell::new(false),
            latest: RefCell::default(),
        }
    }

    /// The run.
    pub fn run(&self) -> &RunRecord {
        &self.run
    }

    /// The event log and the records.
    pub fn journal(&self) -> &Journal<S> {
        &self.journal
    }

    /// Whether the end of the run is kept: its events are for a while, too.
    pub fn is_over(&self) -> bool {
        self.is_over.get()
    }

    /// Stores what the run is; again is nothing.
    ///
    /// # Errors
    /// [`StorageFault`]
    pub fn begin(&self) -> Kept {
        if self.has_begun.get() {
            return Ok(());
        }
        self.journal.append(&Record::Run(self.run.clone()))?;
        self.has_begun.set(true);
        match self.latest.take() {
            Some(segments) => self.journal.append(&Record::Segments(segments)),
            None => Ok(()),
        }
    }

    /// Keeps where a durable run stands.
    ///
    /// # Errors
    /// [`StorageFault`]
    pub fn keep_checkpoint(&self, checkpoint: Checkpoint) -> Kept {
        self.begin()?;
        self.journal.append(&Record::Checkpoint(Box::new(checkpoint)))
    }

    /// Keeps what is stored of any other run if it is lost.
    ///
    /// # Errors
    /// [`StorageFault`]
    pub fn keep_segments(&self, segments: Segments) -> Kept {
        let segments = Box::new(segments);
        if self.has_begun.get() {
            return self.journal.append(&Record::Segments(segments));
        }
        self.latest.replace(Some(segments));
        Ok(())
    }

    /// Keeps a front-end call of a durable run, before it is shown.
    ///
    /// # Errors
    /// [`StorageFault`]
    pub fn keep_call(&self, call: &ExpectedCall) -> Kept {
        self.keep_if_durable(|| Record::Call(call.clone()))
    }

    /// Keeps a result of a durable run: before it is acknowledged, if a client posted it, and before it is shown.
    ///
    /// # Errors
    /// [`StorageFault`]
    pub fn keep_result(&self, id: &ToolCallId, result: &ToolResult, is_posted: bool) -> Kept {
        self.keep_if_durable(|| Record::Result {
            id: id.clone(),
            result: result.clone(),
            is_posted,
        })
    }

    /// Keeps how a durable run ended.
    ///
    /// # Errors
    /// [`StorageFault`]
    pub fn keep_end(&self, status: RunStatus, ended_at_ms: u64) -> Kept {
        self.keep_if_durable(|| Record::End { status, ended_at_ms })?;
        self.is_over.set(self.run.is_durable() && self.has_begun.get());
        Ok(())
    }

    fn keep_if_durable(&self, record: impl FnOnce() -> Record) -> Kept {
        if self.run.is_durable() && self.has_begun.get() {
            self.journal.append(&record())
        } else {
            Ok(())
        }
    }
}
