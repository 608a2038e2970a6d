//! Where a run sends its events.
//!
//! The event path (architecture 4.4.7): an event is appended to one buffer, without a wait, a log line or a JavaScript
//! call; a flush adds the buffer to the log that all viewers read.

use std::rc::Rc;

use super::bindings::State;
use super::log::ConsoleLog;
use super::stream::describe;
use super::viewers::Viewers;
use crate::binding::sse;
use crate::protocol::event::Event;
use crate::run::ports::{EventSink, Level, Log, StorageFault, ViewersGone};

/// The sink of one run.
#[derive(Debug)]
pub struct Outlet {
    state: State,
    viewers: Rc<Viewers>,
    /// Whether the run goes on when nobody watches.
    is_durable: bool,
    log: ConsoleLog,
    frames: Vec<u8>,
    ends: Vec<usize>,
    /// Whether other events than deltas are among the frames.
    has_structure: bool,
    /// Whether such events of a durable run were written, and may not be safe yet.
    is_unsafe: bool,
    wants_keep_alive: bool,
    has_outcome: bool,
}

impl Outlet {
    /// An outlet to these viewers.
    pub fn new(state: State, viewers: Rc<Viewers>, is_durable: bool, log: ConsoleLog) -> Self {
        Self {
            state,
            viewers,
            is_durable,
            log,
            frames: Vec::new(),
            ends: Vec::new(),
            has_structure: false,
            is_unsafe: false,
            wants_keep_alive: false,
            has_outcome: false,
        }
    }

    fn append(&mut self) {
        self.note(self.viewers.append(&self.frames, &self.ends, self.has_structure));
        self.is_unsafe |= self.is_durable && self.has_structure;
        self.frames.clear();
        self.ends.clear();
        self.has_structure = false;
    }

    fn note(&self, stored: Result<(), StorageFault>) {
        if let Err(fault) = stored {
            let detail: [(_, &dyn std::fmt::Display); 1] = [("error", &fault.0)];
            self.log.line(Level::Error, "events_not_stored", &detail);
        }
    }
}

impl EventSink for Outlet {
    fn push(&mut self, event: &Event) {
        sse::encode_event(event, &mut self.frames);
        self.ends.push(self.frames.len());
        self.has_structure |= !event.is_delta();
        self.has_outcome |= event.is_terminal();
    }

    fn push_keep_alive(&mut self) {
        self.wants_keep_alive = true;
    }

    fn commit(&mut self) -> Result<u64, StorageFault> {
        self.append();
        self.viewers.commit()
    }

    fn store_due_ms(&self) -> Option<u64> {
        self.viewers.store_due_ms()
    }

    fn store(&mut self) {
        self.note(self.viewers.commit().map(|_| ()));
    }

    async fn flush(&mut self) -> Result<(), ViewersGone> {
        if !self.ends.is_empty() {
            self.append();
        }
        if std::mem::take(&mut self.is_unsafe) {
            // The platform holds answers back until what was written before them is safe, but not the pieces of a stream.
            if let Err(error) = self.state.storage().sync().await {
                let error = describe(&error);
                self.log
                    .line(Level::Error, "events_not_stored", &[("error", &error)]);
            }
        }
        if std::mem::take(&mut self.wants_keep_alive) {
            self.viewers.keep_alive();
        }
        self.viewers.release();
        if self.has_outcome {
            // Whoever is here gets the end. The run may have more to do, its viewers have not.
            self.viewers.complete();
        } else {
            self.viewers.settle().await;
        }
        if self.is_durable || !self.viewers.is_empty() {
            Ok(())
        } else {
            Err(ViewersGone)
        }
    }
}
