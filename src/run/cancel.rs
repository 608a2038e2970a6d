//! The signal that stops a run from outside.

use std::cell::{Cell, RefCell};
use std::task::{Context, Poll, Waker};

/// Set once by the cancel route, seen by the loop at its next wait.
#[derive(Debug, Default)]
pub struct CancelSignal {
    is_set: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl CancelSignal {
    /// Stops the run; again is nothing.
    pub fn set(&self) {
        self.is_set.set(true);
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    /// Ready once set.
    pub fn poll(&self, context: &Context<'_>) -> Poll<()> {
        if self.is_set.get() {
            return Poll::Ready(());
        }
        *self.waker.borrow_mut() = Some(context.waker().clone());
        Poll::Pending
    }
}
