//! The stream of a run towards its viewers.
//!
//! The event path (architecture 4.4.7): an event is appended to one buffer, without a wait, a log line or a
//! JavaScript call; a flush hands the buffer to each viewer's queue.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::{Poll, Waker};

use futures::future::{Either, select};
use wasm_bindgen::JsValue;
use web_sys::ReadableStream;

use super::clock::PlatformClock;
use super::viewer::{QUEUE_FULL_MAX_MS, Viewer};
use crate::binding::accept::Binding;
use crate::binding::event_log::{EventLog, EventLogGap};
use crate::binding::{protobuf, sse};
use crate::config::agents::OnDisconnect;
use crate::protocol::event::Event;
use crate::run::ports::{Clock, EventSink, ViewersGone};

/// How long a flush waits for a client that lags, in milliseconds. Waiting paces the run to a client that reads.
const LAG_WAIT_MS: u64 = 250;

/// How long viewers may take to receive the rest after the end of the run, in milliseconds.
const CLOSE_WAIT_MS: u64 = 30_000;

/// Why a viewer could not be added.
#[derive(Debug)]
pub enum AttachFault {
    /// The log cannot say what follows the events the client has seen.
    Gap(EventLogGap),
    /// What the platform threw.
    Platform(JsValue),
}

/// All viewers of one run, and the log for those who come later.
#[derive(Debug, Default)]
pub struct Viewers {
    list: RefCell<Vec<Rc<Viewer>>>,
    log: RefCell<EventLog>,
    /// Whether a viewer of the protobuf binding was ever here: without one, no event is encoded twice.
    has_protobuf: Cell<bool>,
    flush: RefCell<Option<Waker>>,
}

impl Viewers {
    /// Adds a viewer that has seen the first `after` events: its stream, and the task that feeds it.
    ///
    /// # Errors
    /// [`AttachFault`]
    pub fn attach(
        self: &Rc<Self>,
        binding: Binding,
        after: u64,
    ) -> Result<(ReadableStream, impl Future<Output = ()> + 'static + use<>), AttachFault> {
        let (viewer, stream) = {
            let log = self.log.borrow();
            let backlog = log.since(after).map_err(AttachFault::Gap)?;
            let backlog = match binding {
                Binding::Sse => backlog.to_vec(),
                Binding::Protobuf => protobuf::from_sse(backlog),
            };
            Viewer::open(binding, backlog).map_err(AttachFault::Platform)?
        };
        if binding == Binding::Protobuf {
            self.has_protobuf.set(true);
        }
        self.list.borrow_mut().push(Rc::clone(&viewer));
        let viewers = Rc::clone(self);
        let pump = async move { viewer.pump(|| viewers.progress()).await };
        Ok((stream, pump))
    }

    /// How many events the viewers were sent.
    pub fn event_count(&self) -> u64 {
        self.log.borrow().event_count()
    }

    /// Ends every stream: cleanly after an earned terminal event, broken otherwise.
    pub async fn finish(&self, terminal_sent: bool) {
        if terminal_sent {
            self.close();
        } else {
            for viewer in self.list.borrow().iter() {
                viewer.abort("the run has no outcome");
            }
        }
        let all_gone = |list: &[Rc<Viewer>]| list.iter().all(|viewer| viewer.is_gone());
        if !self.wait(CLOSE_WAIT_MS, all_gone).await {
            for viewer in self.list.borrow().iter() {
                viewer.abort("the client does not read");
            }
        }
    }

    fn close(&self) {
        for viewer in self.list.borrow().iter() {
            viewer.close();
        }
    }

    fn deliver(&self, sse: &[u8], protobuf: &[u8]) {
        let now_ms = PlatformClock.now_ms();
        for viewer in self.list.borrow().iter() {
            match viewer.binding() {
                Binding::Sse => viewer.push(sse, now_ms),
                Binding::Protobuf => viewer.push(protobuf, now_ms),
            }
        }
    }

    /// Waits while every viewer lags: a short while, and as long as a full queue may stay full when all are full. So
    /// the fastest viewer paces the run.
    async fn settle(&self) {
        self.remove_gone();
        let any = |list: &[Rc<Viewer>], holds: fn(&Viewer) -> bool| {
            list.is_empty() || list.iter().any(|viewer| holds(viewer) || viewer.is_gone())
        };
        self.wait(LAG_WAIT_MS, |list| any(list, Viewer::keeps_up)).await;
        if !self
            .wait(QUEUE_FULL_MAX_MS, |list| any(list, |viewer| !viewer.is_full()))
            .await
        {
            for viewer in self.list.borrow().iter() {
                viewer.abort("the client does not read");
            }
        }
        self.remove_gone();
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
            *self.flush.borrow_mut() = Some(context.waker().clone());
            Poll::Pending
        });
        matches!(select(holding, PlatformClock.sleep(ms)).await, Either::Left(_))
    }

    fn remove_gone(&self) {
        self.list.borrow_mut().retain(|viewer| !viewer.is_gone());
    }

    fn progress(&self) {
        let waker = self.flush.borrow_mut().take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Where a run sends its events.
#[derive(Debug)]
pub struct Outlet {
    viewers: Rc<Viewers>,
    on_disconnect: OnDisconnect,
    frames: Vec<u8>,
    ends: Vec<usize>,
    /// The same events for viewers of the protobuf binding, and how many of them are in it.
    protobuf_frames: Vec<u8>,
    protobuf_count: usize,
    wants_keep_alive: bool,
    has_outcome: bool,
}

impl Outlet {
    /// An outlet to these viewers.
    pub fn new(viewers: Rc<Viewers>, on_disconnect: OnDisconnect) -> Self {
        Self {
            viewers,
            on_disconnect,
            frames: Vec::new(),
            ends: Vec::new(),
            protobuf_frames: Vec::new(),
            protobuf_count: 0,
            wants_keep_alive: false,
            has_outcome: false,
        }
    }
}

impl EventSink for Outlet {
    fn push(&mut self, event: &Event) {
        sse::encode_event(event, &mut self.frames);
        self.ends.push(self.frames.len());
        if self.viewers.has_protobuf.get() {
            protobuf::encode_event(event, &mut self.protobuf_frames);
            self.protobuf_count += 1;
        }
        self.has_outcome |= event.is_terminal();
    }

    fn push_keep_alive(&mut self) {
        self.wants_keep_alive = true;
    }

    async fn flush(&mut self) -> Result<(), ViewersGone> {
        if !self.ends.is_empty() {
            if self.viewers.has_protobuf.get() && self.protobuf_count < self.ends.len() {
                // The first such viewer came between an event and its flush.
                self.protobuf_frames = protobuf::from_sse(&self.frames);
            }
            self.viewers.log.borrow_mut().append(&self.frames, &self.ends);
            self.viewers.deliver(&self.frames, &self.protobuf_frames);
        } else if self.wants_keep_alive {
            // Protobuf has no form for it.
            self.viewers.deliver(sse::KEEP_ALIVE, &[]);
        }
        self.frames.clear();
        self.ends.clear();
        self.protobuf_frames.clear();
        self.protobuf_count = 0;
        self.wants_keep_alive = false;
        if self.has_outcome && !self.viewers.list.borrow().is_empty() {
            // Whoever is here gets the end. The run may have more to do, its viewers have not.
            self.viewers.close();
            return Ok(());
        }
        self.viewers.settle().await;
        match self.on_disconnect {
            OnDisconnect::Stop if self.viewers.list.borrow().is_empty() => Err(ViewersGone),
            OnDisconnect::Stop | OnDisconnect::Continue => Ok(()),
        }
    }
}
