//! All viewers of one run, and the log they read from.
//!
//! The log is one for all: a viewer has a place in it, not a copy. What the log has forgotten a viewer reads from the
//! object's storage, if the run is durable; otherwise it was too slow, and is cut off.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

use futures::future::{Either, select};
use js_sys::Promise;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::JsFuture;
use web_sys::ReadableStream;

use super::clock::PlatformClock;
use super::object_sql::ObjectSql;
use super::viewer::Viewer;
use crate::binding::accept::Binding;
use crate::binding::event_log::{EventLog, EventLogGap, LOG_BYTES, LOG_MAX_BYTES, skip_frames};
use crate::binding::{protobuf, sse};
use crate::run::keeper::Keeper;
use crate::run::ports::{Clock, StorageFault};

/// Most bytes written to a viewer at once, but for an event that is longer.
const WRITE_MAX_BYTES: usize = 256 * 1024;

/// With this many bytes before it a client lags behind.
const LAG_BYTES: usize = 64 * 1024;

/// How long a run waits for clients that all lag, in milliseconds. Waiting paces the run to a client that reads.
const LAG_WAIT_MS: u64 = 250;

/// A viewer that takes nothing of what is written to it is looked at this often, in milliseconds, and cut off the second
/// time.
const STUCK_CHECK_MS: u64 = 15_000;

/// How long viewers may take to receive the rest after the end of the run, in milliseconds.
const CLOSE_WAIT_MS: u64 = 30_000;

/// Longest wait of a run for its slowest clients, in milliseconds, before all of them are cut off.
const FULL_WAIT_MS: u64 = 30_000;

/// Why a viewer could not be added.
#[derive(Debug)]
pub enum AttachFault {
    /// The log cannot say what follows the events the client has seen.
    Gap(EventLogGap),
    /// What the platform threw.
    Platform(JsValue),
}

/// The viewers of one run.
#[derive(Debug)]
pub struct Viewers {
    list: RefCell<Vec<Rc<Viewer>>>,
    log: RefCell<EventLog>,
    keeper: Rc<Keeper<ObjectSql>>,
    /// How many events may be sent: those behind them may not be safe yet.
    released: Cell<u64>,
    /// Whether events are stored: not those of a run that is not durable, and not after a failure.
    is_stored: Cell<bool>,
    /// Whether no more events come: who has seen all of them is done.
    is_complete: Cell<bool>,
    run: RefCell<Option<Waker>>,
}

enum Task {
    Write(Promise),
    Close(Promise),
    Stop,
}

impl Viewers {
    /// No viewers of a run whose log has `event_count` events, all of them stored.
    pub fn new(keeper: Rc<Keeper<ObjectSql>>, event_count: u64, is_complete: bool) -> Self {
        Self {
            list: RefCell::default(),
            log: RefCell::new(EventLog::after(event_count)),
            released: Cell::new(event_count),
            is_stored: Cell::new(keeper.run().is_durable()),
            keeper,
            is_complete: Cell::new(is_complete),
            run: RefCell::default(),
        }
    }

    /// Adds a viewer that has seen the first `after` events: its stream, and the task that feeds it.
    ///
    /// # Errors
    /// [`AttachFault`]
    pub fn attach(
        self: &Rc<Self>,
        binding: Binding,
        after: u64,
    ) -> Result<(ReadableStream, impl Future<Output = ()> + 'static + use<>), AttachFault> {
        match self.log.borrow().read(after, 0) {
            Ok(_) => {}
            Err(EventLogGap::Forgotten) if self.keeper.run().is_durable() => {}
            Err(gap) => return Err(AttachFault::Gap(gap)),
        }
        let (viewer, stream) = Viewer::open(binding, after).map_err(AttachFault::Platform)?;
        self.list.borrow_mut().push(Rc::clone(&viewer));
        let viewers = Rc::clone(self);
        Ok((stream, async move { viewers.feed(&viewer).await }))
    }

    /// How many events the run has had.
    pub fn event_count(&self) -> u64 {
        self.log.borrow().event_count()
    }

    /// Whether nobody watches.
    pub fn is_empty(&self) -> bool {
        self.list.borrow().is_empty()
    }

    /// Adds events to the log. `has_structure` = there are others than deltas among them: of a durable run those are
    /// stored before anybody is sent them.
    ///
    /// # Errors
    /// [`StorageFault`]: from now on the log is as that of any other run.
    pub fn append(&self, frames: &[u8], ends: &[usize], has_structure: bool) -> Result<(), StorageFault> {
        let mut log = self.log.borrow_mut();
        let now_ms = PlatformClock.now_ms();
        log.append(frames, ends, now_ms);
        let mut stored = Ok(());
        if self.is_stored.get() && log.is_store_due(has_structure, now_ms) {
            stored = self.store(&mut log);
        }
        if self.is_stored.get() {
            let stored_count = log.stored_count();
            log.forget(LOG_BYTES, stored_count);
        } else {
            let seen = self.list.borrow().iter().map(|viewer| viewer.seen()).min();
            log.forget(LOG_BYTES, seen.unwrap_or(u64::MAX));
            log.forget(LOG_MAX_BYTES, u64::MAX);
        }
        stored
    }

    /// When what is not stored yet must be, Unix milliseconds; `None` = nothing is to be stored.
    pub fn store_due_ms(&self) -> Option<u64> {
        self.log.borrow().store_due_ms().filter(|_| self.is_stored.get())
    }

    /// Stores what is not stored yet, and says how many events there are.
    ///
    /// # Errors
    /// [`StorageFault`]
    pub fn commit(&self) -> Result<u64, StorageFault> {
        let mut log = self.log.borrow_mut();
        if !self.is_stored.get() {
            return Err(StorageFault("the events before were not stored".to_owned()));
        }
        self.store(&mut log)?;
        Ok(log.event_count())
    }

    fn store(&self, log: &mut EventLog) -> Result<(), StorageFault> {
        let (first, events) = log.unstored();
        let count = events.next - first;
        if count > 0 {
            let stored = self.keeper.begin().and_then(|()| {
                let journal = self.keeper.journal();
                journal.append_events(first, count, events.bytes)
            });
            if let Err(fault) = stored {
                self.is_stored.set(false);
                return Err(fault);
            }
        }
        log.mark_stored();
        Ok(())
    }

    /// Everybody is sent what is new.
    pub fn release(&self) {
        self.released.set(self.event_count());
        for viewer in self.list.borrow().iter() {
            viewer.wake();
        }
    }

    /// Everybody is sent a keep-alive.
    pub fn keep_alive(&self) {
        for viewer in self.list.borrow().iter() {
            viewer.keep_alive();
        }
    }

    /// No more events come: streams end cleanly once their viewers have seen all.
    pub fn complete(&self) {
        self.is_complete.set(true);
        self.release();
    }

    /// Ends every stream: cleanly after an earned terminal event, broken otherwise.
    pub async fn finish(&self, terminal_sent: bool) {
        if terminal_sent {
            self.complete();
        } else {
            self.abort_all("the run has no outcome");
        }
        let all_gone = |list: &[Rc<Viewer>]| list.iter().all(|viewer| viewer.is_gone());
        if !self.wait(CLOSE_WAIT_MS, all_gone).await {
            self.abort_all("the client does not read");
        }
        self.remove_gone();
    }

    /// Waits while every viewer lags: a short while, and longer while all are about to be forgotten. So the fastest
    /// viewer paces the run. A durable run waits for nobody; it only lets the viewers' tasks run.
    pub async fn settle(&self) {
        self.remove_gone();
        let any = |list: &[Rc<Viewer>], max_bytes: usize| {
            let log = self.log.borrow();
            let keeps_up =
                |viewer: &Rc<Viewer>| log.bytes_after(viewer.seen()) < max_bytes || viewer.is_gone();
            list.is_empty() || list.iter().any(keeps_up)
        };
        if self.is_stored.get() {
            self.wait(0, |list| any(list, LAG_BYTES)).await;
            return;
        }
        self.wait(LAG_WAIT_MS, |list| any(list, LAG_BYTES)).await;
        if !self.wait(FULL_WAIT_MS, |list| any(list, LOG_BYTES)).await {
            self.abort_all("the client does not read");
        }
        self.remove_gone();
    }

    fn abort_all(&self, reason: &str) {
        for viewer in self.list.borrow().iter() {
            viewer.abort(reason);
        }
    }

    /// Waits for a state of the viewers; says whether it came in time.
    async fn wait(&self, ms: u64, holds: impl Fn(&[Rc<Viewer>]) -> bool) -> bool {
        if holds(&self.list.borrow()) {
            return true;
        }
        let holding = poll_fn(|context| {
            if holds(&self.list.borrow()) {
                return Poll::Ready(());
            }
            *self.run.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        });
        matches!(select(holding, PlatformClock.sleep(ms)).await, Either::Left(_))
    }

    fn remove_gone(&self) {
        self.list.borrow_mut().retain(|viewer| !viewer.is_gone());
    }

    /// The life of a viewer: writes what it has not seen until its stream is over.
    async fn feed(&self, viewer: &Viewer) {
        let mut patience = Patience::new();
        loop {
            let written = match poll_fn(|context| self.poll_task(viewer, context.waker())).await {
                Task::Write(writing) => patience.with(writing).await,
                Task::Close(closing) => {
                    let closed = patience.with(closing).await;
                    viewer.end();
                    closed
                }
                Task::Stop => break,
            };
            match written {
                Some(Ok(_)) => {}
                Some(Err(_)) => {
                    viewer.end();
                }
                None => viewer.abort("the client does not read"),
            }
            self.progress();
        }
        self.progress();
        self.remove_gone();
    }

    fn poll_task(&self, viewer: &Viewer, waker: &Waker) -> Poll<Task> {
        if viewer.is_gone() {
            return Poll::Ready(Task::Stop);
        }
        let seen = viewer.seen();
        let log = self.log.borrow();
        let released = self.released.get();
        let released_bytes = log.bytes_after(seen).saturating_sub(log.bytes_after(released));
        match log.read(seen, released_bytes.min(WRITE_MAX_BYTES)) {
            Ok(_) if seen >= released => {}
            Ok(events) if events.next > seen => {
                viewer.advance(events.next);
                return Poll::Ready(Task::Write(write(viewer, events.bytes)));
            }
            Ok(_) => {}
            Err(EventLogGap::Forgotten | EventLogGap::Ahead) => {
                return Poll::Ready(self.write_stored(viewer, seen));
            }
        }
        if self.is_complete.get() {
            Poll::Ready(Task::Close(viewer.close()))
        } else if viewer.take_keep_alive() {
            Poll::Ready(Task::Write(viewer.write(sse::KEEP_ALIVE)))
        } else {
            viewer.park(waker)
        }
    }

    fn write_stored(&self, viewer: &Viewer, seen: u64) -> Task {
        if let Ok(Some(batch)) = self.keeper.journal().events_at(seen) {
            let events = skip_frames(&batch.frames, seen.saturating_sub(batch.first));
            viewer.advance(batch.first + batch.count);
            return Task::Write(write(viewer, events));
        }
        viewer.abort("the client is too slow");
        Task::Stop
    }

    fn progress(&self) {
        let waker = self.run.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

fn write(viewer: &Viewer, events: &[u8]) -> Promise {
    match viewer.binding() {
        Binding::Sse => viewer.write(events),
        Binding::Protobuf => viewer.write(&protobuf::from_sse(events)),
    }
}

/// Sees that a client takes what is written to it. One timer serves all writes to a viewer.
struct Patience(Pin<Box<dyn Future<Output = ()>>>);

impl Patience {
    fn new() -> Self {
        Self(Box::pin(PlatformClock.sleep(STUCK_CHECK_MS)))
    }

    /// What became of a write; `None` = the client does not take it.
    async fn with(&mut self, writing: Promise) -> Option<Result<JsValue, JsValue>> {
        let mut writing = JsFuture::from(writing);
        for _ in 0..2 {
            match select(&mut writing, &mut self.0).await {
                Either::Left((written, _)) => return Some(written),
                Either::Right(((), _)) => *self = Self::new(),
            }
        }
        None
    }
}
