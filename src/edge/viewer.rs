//! One client that watches a run: a bounded queue of bytes and the stream they are written to.
//!
//! The run only appends to the queue; the viewer's own task, [`Viewer::pump`], writes. So no client's pace can
//! hold up another.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use js_sys::Uint8Array;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;
use web_sys::{ReadableStream, WritableStream, WritableStreamDefaultWriter};

use super::stream::ignore;
use crate::binding::accept::Binding;

/// With this many bytes waiting a client lags behind.
const LAG_BYTES: usize = 64 * 1024;

/// A queue of this many bytes is full.
pub const QUEUE_FULL_BYTES: usize = 1024 * 1024;

/// Longest time a queue may stay full, in milliseconds; its viewer is cut off then.
pub const QUEUE_FULL_MAX_MS: u64 = 30_000;

/// A queue is never longer than this, whatever the time: other viewers may be fast enough to keep the run going.
const QUEUE_MAX_BYTES: usize = 4 * QUEUE_FULL_BYTES;

#[wasm_bindgen]
extern "C" {
    /// The platform's own pipe: bytes pass without a JavaScript call per chunk.
    type IdentityTransformStream;

    #[wasm_bindgen(constructor, catch)]
    fn new() -> Result<IdentityTransformStream, JsValue>;

    #[wasm_bindgen(method, getter)]
    fn readable(this: &IdentityTransformStream) -> ReadableStream;

    #[wasm_bindgen(method, getter)]
    fn writable(this: &IdentityTransformStream) -> WritableStream;
}

/// One client that watches.
#[derive(Debug)]
pub struct Viewer {
    binding: Binding,
    writer: WritableStreamDefaultWriter,
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    queue: Vec<u8>,
    phase: Phase,
    full_since_ms: Option<u64>,
    pump: Option<Waker>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Open,
    /// Nothing more comes; the stream is closed once the queue is empty.
    Closing,
    /// The stream is closed, aborted or lost.
    Gone,
}

enum Task {
    Write(Uint8Array),
    Close,
    Stop,
}

impl Viewer {
    /// A viewer that is sent `backlog` first, and the readable side of its stream.
    ///
    /// # Errors
    /// What the platform threw.
    pub fn open(binding: Binding, backlog: Vec<u8>) -> Result<(Rc<Self>, ReadableStream), JsValue> {
        let pipe = IdentityTransformStream::new()?;
        let viewer = Self {
            binding,
            writer: pipe.writable().get_writer()?,
            state: RefCell::new(State {
                queue: backlog,
                phase: Phase::Open,
                full_since_ms: None,
                pump: None,
            }),
        };
        Ok((Rc::new(viewer), pipe.readable()))
    }

    /// How its events are framed.
    pub fn binding(&self) -> Binding {
        self.binding
    }

    /// Appends bytes; a viewer that is too far behind is cut off instead.
    pub fn push(&self, bytes: &[u8], now_ms: u64) {
        let is_hopeless = {
            let mut state = self.state.borrow_mut();
            if state.phase != Phase::Open {
                return;
            }
            // One event may be longer than any queue: only what waited before it shows how far behind a client is.
            let waiting_bytes = state.queue.len();
            state.queue.extend_from_slice(bytes);
            let is_full = state.queue.len() >= QUEUE_FULL_BYTES;
            state.full_since_ms = is_full.then(|| state.full_since_ms.unwrap_or(now_ms));
            let full_ms = state
                .full_since_ms
                .map_or(0, |since_ms| now_ms.saturating_sub(since_ms));
            full_ms >= QUEUE_FULL_MAX_MS || waiting_bytes > QUEUE_MAX_BYTES
        };
        if is_hopeless {
            self.abort("the client does not read");
        } else {
            self.wake_pump();
        }
    }

    /// Whether little waits to be written: the client keeps up.
    pub fn keeps_up(&self) -> bool {
        self.state.borrow().queue.len() < LAG_BYTES
    }

    /// Whether the queue is full.
    pub fn is_full(&self) -> bool {
        self.state.borrow().queue.len() >= QUEUE_FULL_BYTES
    }

    /// Whether the stream is over, however it ended.
    pub fn is_gone(&self) -> bool {
        self.state.borrow().phase == Phase::Gone
    }

    /// Ends the stream cleanly once the queue is written.
    pub fn close(&self) {
        {
            let mut state = self.state.borrow_mut();
            if state.phase == Phase::Open {
                state.phase = Phase::Closing;
            }
        }
        self.wake_pump();
    }

    /// Breaks the stream now: its client sees a broken connection, never a clean end.
    pub fn abort(&self, reason: &str) {
        if self.end() {
            ignore(self.writer.abort_with_reason(&js_sys::Error::new(reason)));
        }
        self.wake_pump();
    }

    /// Writes the queue until the stream is over; `progress` is told after each write.
    pub async fn pump(&self, progress: impl Fn()) {
        loop {
            let written = match poll_fn(|context| self.poll_task(context.waker())).await {
                Task::Write(chunk) => JsFuture::from(self.writer.write_with_chunk(&chunk)).await,
                Task::Close => {
                    let closed = JsFuture::from(self.writer.close()).await;
                    self.end();
                    closed
                }
                Task::Stop => break,
            };
            if written.is_err() {
                self.end();
            }
            progress();
        }
        progress();
    }

    fn poll_task(&self, waker: &Waker) -> Poll<Task> {
        let mut state = self.state.borrow_mut();
        match state.phase {
            Phase::Gone => Poll::Ready(Task::Stop),
            Phase::Open | Phase::Closing if !state.queue.is_empty() => {
                // The one copy out of our memory.
                let chunk = Uint8Array::from(state.queue.as_slice());
                state.queue.clear();
                Poll::Ready(Task::Write(chunk))
            }
            Phase::Closing => Poll::Ready(Task::Close),
            Phase::Open => {
                state.pump = Some(waker.clone());
                Poll::Pending
            }
        }
    }

    /// Says whether this call ended it.
    fn end(&self) -> bool {
        let mut state = self.state.borrow_mut();
        let was_there = state.phase != Phase::Gone;
        state.phase = Phase::Gone;
        state.queue = Vec::new();
        was_there
    }

    fn wake_pump(&self) {
        let waker = self.state.borrow_mut().pump.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}
