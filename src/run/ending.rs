//! How a run ended: decided once, and waited for by whoever asked for it.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::task::{Poll, Waker};

use super::RunEnd;

/// Set once.
#[derive(Debug, Default)]
pub struct Ending {
    end: Cell<Option<(RunEnd, u64)>>,
    waiting: RefCell<Vec<Waker>>,
}

impl Ending {
    /// The run has ended, at this time (Unix milliseconds); what was known before stays.
    pub fn set(&self, end: RunEnd, at_ms: u64) {
        if self.end.get().is_none() {
            self.end.set(Some((end, at_ms)));
        }
        for waker in self.waiting.take() {
            waker.wake();
        }
    }

    /// How and when (Unix milliseconds) it ended.
    pub fn get(&self) -> Option<(RunEnd, u64)> {
        self.end.get()
    }

    /// Waits until it is known.
    pub async fn known(&self) -> (RunEnd, u64) {
        poll_fn(|context| match self.end.get() {
            Some(end) => Poll::Ready(end),
            None => {
                self.waiting.borrow_mut().push(context.waker().clone());
                Poll::Pending
            }
        })
        .await
    }
}
