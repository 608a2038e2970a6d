//! One client that watches a run: its place in the run's log, and the stream that is written to from there.
//!
//! The run never writes to a client; the viewer's own task does ([`super::viewers`]), at its client's pace.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Poll, Waker};

use js_sys::{Promise, Uint8Array};
use wasm_bindgen::JsValue;
use web_sys::{ReadableStream, WritableStreamDefaultWriter};

use super::stream::{ignore, pipe};
use crate::binding::accept::Binding;

/// One client that watches.
#[derive(Debug)]
pub struct Viewer {
    binding: Binding,
    writer: WritableStreamDefaultWriter,
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    /// Events it has been sent, or is being sent.
    seen: u64,
    wants_keep_alive: bool,
    is_gone: bool,
    pump: Option<Waker>,
}

impl Viewer {
    /// A viewer that has seen the first `seen` events, and the readable side of its stream.
    ///
    /// # Errors
    /// What the platform threw.
    pub fn open(binding: Binding, seen: u64) -> Result<(Rc<Self>, ReadableStream), JsValue> {
        let (writer, readable) = pipe()?;
        let viewer = Self {
            binding,
            writer,
            state: RefCell::new(State {
                seen,
                wants_keep_alive: false,
                is_gone: false,
                pump: None,
            }),
        };
        Ok((Rc::new(viewer), readable))
    }

    /// How its events are framed.
    pub fn binding(&self) -> Binding {
        self.binding
    }

    /// How many events it has been sent, or is being sent.
    pub fn seen(&self) -> u64 {
        self.state.borrow().seen
    }

    /// It is being sent the events before this one.
    pub fn advance(&self, seen: u64) {
        let mut state = self.state.borrow_mut();
        state.seen = seen;
        state.wants_keep_alive = false;
    }

    /// It is sent a keep-alive, unless it is sent something else. Protobuf has no form for it.
    pub fn keep_alive(&self) {
        self.state.borrow_mut().wants_keep_alive = self.binding == Binding::Sse;
        self.wake();
    }

    /// Whether a keep-alive is due; it is not any more then.
    pub fn take_keep_alive(&self) -> bool {
        std::mem::take(&mut self.state.borrow_mut().wants_keep_alive)
    }

    /// Whether the stream is over, however it ended.
    pub fn is_gone(&self) -> bool {
        self.state.borrow().is_gone
    }

    /// Writes bytes: the one copy out of our memory.
    pub fn write(&self, bytes: &[u8]) -> Promise {
        self.writer.write_with_chunk(&Uint8Array::from(bytes))
    }

    /// Ends the stream cleanly.
    pub fn close(&self) -> Promise {
        self.writer.close()
    }

    /// Breaks the stream now: its client sees a broken connection, never a clean end.
    pub fn abort(&self, reason: &str) {
        if self.end() {
            ignore(self.writer.abort_with_reason(&js_sys::Error::new(reason)));
        }
    }

    /// The stream is over; says whether it was not before.
    pub fn end(&self) -> bool {
        let was_gone = std::mem::replace(&mut self.state.borrow_mut().is_gone, true);
        self.wake();
        !was_gone
    }

    /// There may be something to do for its task.
    pub fn wake(&self) {
        let waker = self.state.borrow_mut().pump.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Waits for [`Self::wake`].
    pub fn park<T>(&self, waker: &Waker) -> Poll<T> {
        self.state.borrow_mut().pump = Some(waker.clone());
        Poll::Pending
    }
}
