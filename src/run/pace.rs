//! Every wait of a run goes through here: it keeps the stream alive, flushes before a pause, and ends the wait when a
//! limit, a cancel or a lost client says so.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use super::cancel::CancelSignal;
use super::emitter::Emitter;
use super::halt::Halt;
use super::ports::{Clock, EventSink, IdSource};
use crate::config::AgentConfig;
use crate::protocol::event::RunErrorCode;

/// Longest silence of our stream, Unix milliseconds. Source: contract 2.4.
const KEEP_ALIVE_MS: u64 = 15_000;
/// The same while a front-end result is awaited: a lost client shows at the second or third (D11).
const PARKED_KEEP_ALIVE_MS: u64 = 5_000;

/// What a wait is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitFor {
    /// The upstream: counts as work, ends after `upstreamIdleTimeoutMs`.
    Upstream,
    /// Work of our own (a back-off, a server tool); `until_ms` ends it without harm.
    Work {
        /// Unix milliseconds.
        until_ms: Option<u64>,
    },
    /// A person: does not count as work (D10); `until_ms` ends it without harm.
    Person {
        /// Unix milliseconds.
        until_ms: Option<u64>,
    },
    /// Work of our own and a person at once: counts as work, kept alive as for a person.
    WorkAndPerson {
        /// Unix milliseconds.
        until_ms: Option<u64>,
    },
}

/// How a wait ended.
#[derive(Debug, PartialEq, Eq)]
pub enum Waited<T> {
    /// What was waited for came.
    Came(T),
    /// `until_ms` came first.
    Due,
}

enum Woken {
    Came,
    Cancelled,
    Timer,
}

type Sleep = Pin<Box<dyn Future<Output = ()>>>;

/// The limits of one run in time.
pub struct Pace<'a, C> {
    clock: &'a C,
    cancel: &'a CancelSignal,
    keep_alive_ms: Option<u64>,
    parked_keep_alive_ms: Option<u64>,
    idle_timeout_ms: u64,
    /// When the head of the answer goes out at the latest (D14).
    head_due_ms: u64,
    /// When the working time is used up; moves while a person is awaited (D10).
    run_due_ms: u64,
    timer: Option<(u64, Sleep)>,
}

impl<'a, C: Clock> Pace<'a, C> {
    /// The limits of an agent's run that starts now.
    pub fn new(clock: &'a C, cancel: &'a CancelSignal, agent: &AgentConfig) -> Self {
        let now_ms = clock.now_ms();
        let keep_alive = |default_ms| match agent.keep_alive_ms {
            Some(0) => None,
            Some(ms) => Some(ms),
            None => Some(default_ms),
        };
        Self {
            clock,
            cancel,
            keep_alive_ms: keep_alive(KEEP_ALIVE_MS),
            parked_keep_alive_ms: keep_alive(PARKED_KEEP_ALIVE_MS),
            idle_timeout_ms: agent.upstream_idle_timeout_ms,
            head_due_ms: now_ms.saturating_add(agent.first_response_wait_ms),
            run_due_ms: now_ms.saturating_add(agent.run_timeout_ms),
            timer: None,
        }
    }

    /// The run goes on: it has this much working time left, in milliseconds.
    pub fn resume(&mut self, work_left_ms: u64) {
        self.run_due_ms = self.clock.now_ms().saturating_add(work_left_ms);
    }

    /// Unix milliseconds.
    pub fn now_ms(&self) -> u64 {
        self.clock.now_ms()
    }

    /// How long the answer may still be an HTTP error, in milliseconds.
    pub fn head_left_ms(&self) -> u64 {
        self.head_due_ms.saturating_sub(self.clock.now_ms())
    }

    /// Working time left, in milliseconds.
    pub fn work_left_ms(&self) -> u64 {
        self.run_due_ms.saturating_sub(self.clock.now_ms())
    }

    /// Waits for something. A wait that is over at once costs no timer and no flush.
    ///
    /// # Errors
    /// [`Halt`] when the run must stop instead.
    pub async fn wait<S: EventSink, I: IdSource, T>(
        &mut self,
        emitter: &mut Emitter<'_, S, I>,
        kind: WaitFor,
        future: impl Future<Output = T>,
    ) -> Result<Waited<T>, Halt> {
        let mut came = None;
        self.wait_until(emitter, kind, pin!(async { came = Some(future.await) }))
            .await?;
        Ok(came.map_or(Waited::Due, Waited::Came))
    }

    /// Waits for the end of a future, or until `until_ms`.
    async fn wait_until<S: EventSink, I: IdSource>(
        &mut self,
        emitter: &mut Emitter<'_, S, I>,
        kind: WaitFor,
        mut future: Pin<&mut dyn Future<Output = ()>>,
    ) -> Result<(), Halt> {
        if poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_ready())).await {
            return Ok(());
        }
        let started_ms = self.now_ms();
        emitter.flush(started_ms).await.map_err(|_| Halt::Disconnected)?;
        loop {
            let due_ms = self.next_due_ms(emitter, kind, started_ms);
            let woken = poll_fn(|context| {
                if future.as_mut().poll(context).is_ready() {
                    return Poll::Ready(Woken::Came);
                }
                if self.cancel.poll(context).is_ready() {
                    return Poll::Ready(Woken::Cancelled);
                }
                self.poll_timer(due_ms, context).map(|()| Woken::Timer)
            })
            .await;
            match woken {
                Woken::Came => break,
                Woken::Cancelled => return Err(Halt::Cancelled),
                Woken::Timer => {
                    if self.on_timer(emitter, kind, started_ms).await? {
                        break;
                    }
                }
            }
        }
        if let WaitFor::Person { .. } = kind {
            self.run_due_ms = self
                .run_due_ms
                .saturating_add(self.now_ms().saturating_sub(started_ms));
        }
        Ok(())
    }

    /// Acts on whatever is due; says whether `until_ms` came.
    async fn on_timer<S: EventSink, I: IdSource>(
        &mut self,
        emitter: &mut Emitter<'_, S, I>,
        kind: WaitFor,
        started_ms: u64,
    ) -> Result<bool, Halt> {
        let now_ms = self.now_ms();
        if !emitter.is_open() && now_ms >= self.head_due_ms {
            emitter.open()?;
        }
        // A silent upstream must not leave unstored what it said last.
        if emitter.store_due_ms().is_some_and(|due_ms| now_ms >= due_ms) {
            emitter.store();
        }
        match kind {
            WaitFor::Upstream | WaitFor::Work { .. } | WaitFor::WorkAndPerson { .. }
                if now_ms >= self.run_due_ms =>
            {
                return Err(Halt::Failed(RunErrorCode::RunTimeout));
            }
            WaitFor::Upstream if now_ms >= started_ms.saturating_add(self.idle_timeout_ms) => {
                return Err(Halt::Failed(RunErrorCode::UpstreamTimeout));
            }
            WaitFor::Work {
                until_ms: Some(until_ms),
            }
            | WaitFor::Person {
                until_ms: Some(until_ms),
            }
            | WaitFor::WorkAndPerson {
                until_ms: Some(until_ms),
            } if now_ms >= until_ms => {
                return Ok(true);
            }
            WaitFor::Upstream
            | WaitFor::Work { .. }
            | WaitFor::Person { .. }
            | WaitFor::WorkAndPerson { .. } => {}
        }
        if let Some(keep_alive_ms) = self.keep_alive_for(kind) {
            let due_ms = emitter.last_sent_ms().saturating_add(keep_alive_ms);
            if emitter.is_open() && !emitter.is_dirty() && now_ms >= due_ms {
                emitter.keep_alive();
            }
        }
        emitter.flush(now_ms).await.map_err(|_| Halt::Disconnected)?;
        Ok(false)
    }

    fn keep_alive_for(&self, kind: WaitFor) -> Option<u64> {
        match kind {
            WaitFor::Upstream | WaitFor::Work { .. } => self.keep_alive_ms,
            WaitFor::Person { .. } | WaitFor::WorkAndPerson { .. } => self.parked_keep_alive_ms,
        }
    }

    fn next_due_ms<S: EventSink, I: IdSource>(
        &self,
        emitter: &Emitter<'_, S, I>,
        kind: WaitFor,
        started_ms: u64,
    ) -> u64 {
        let limit_ms = match kind {
            WaitFor::Upstream => Some(
                self.run_due_ms
                    .min(started_ms.saturating_add(self.idle_timeout_ms)),
            ),
            WaitFor::Work { until_ms } | WaitFor::WorkAndPerson { until_ms } => {
                Some(until_ms.map_or(self.run_due_ms, |until| until.min(self.run_due_ms)))
            }
            WaitFor::Person { until_ms } => until_ms,
        };
        let sign_of_life_ms = if emitter.is_open() {
            self.keep_alive_for(kind)
                .map(|ms| emitter.last_sent_ms().saturating_add(ms))
        } else {
            Some(self.head_due_ms)
        };
        limit_ms
            .into_iter()
            .chain(sign_of_life_ms)
            .chain(emitter.store_due_ms())
            .min()
            .unwrap_or(u64::MAX)
    }

    /// One timer serves all waits: it is only replaced by an earlier one, and may fire early, which harms nothing.
    fn poll_timer(&mut self, due_ms: u64, context: &mut Context<'_>) -> Poll<()> {
        // A day at most: platform timers overflow above 2^31 ms. Never in the past: a timer that was set for now would
        // be replaced at every poll, and never fire.
        let now_ms = self.clock.now_ms();
        let due_ms = due_ms.clamp(now_ms, now_ms.saturating_add(86_400_000));
        let is_late = self.timer.as_ref().is_none_or(|(timer_ms, _)| *timer_ms > due_ms);
        if is_late {
            let sleep = self.clock.sleep(due_ms.saturating_sub(now_ms));
            self.timer = Some((due_ms, Box::pin(sleep)));
        }
        let Some((_, sleep)) = &mut self.timer else {
            return Poll::Pending;
        };
        let polled = sleep.as_mut().poll(context);
        if polled.is_ready() {
            self.timer = None;
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use futures::task::noop_waker_ref;

    use super::*;

    /// A clock whose timers need a turn of the platform, also those that are due at once.
    #[derive(Default)]
    struct PlatformLikeClock {
        started: Cell<usize>,
    }

    impl Clock for PlatformLikeClock {
        fn now_ms(&self) -> u64 {
            10
        }

        fn sleep(&self, _ms: u64) -> impl Future<Output = ()> + 'static {
            self.started.set(self.started.get() + 1);
            let mut has_turned = false;
            poll_fn(move |_| {
                if std::mem::replace(&mut has_turned, true) {
                    Poll::Ready(())
                } else {
                    Poll::Pending
                }
            })
        }
    }

    #[test]
    fn a_timer_for_what_is_overdue_is_set_once_and_fires() {
        let (clock, cancel) = (PlatformLikeClock::default(), CancelSignal::default());
        let agent: AgentConfig = serde_json::from_str(r#"{"id":"x","provider":"demo"}"#).unwrap();
        let mut pace = Pace::new(&clock, &cancel, &agent);
        let mut context = Context::from_waker(noop_waker_ref());
        assert_eq!(pace.poll_timer(5, &mut context), Poll::Pending);
        assert_eq!(pace.poll_timer(5, &mut context), Poll::Ready(()));
        assert_eq!(clock.started.get(), 1);
    }
}
