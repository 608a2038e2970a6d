//! The alarm that looks after a run whose object may lose its memory.
//!
//! A reset or a panic takes the loop away and leaves what is kept (`run::journal`). The alarm, or whoever asks for the
//! run before it, finds that without a loop (contract 8). Streams that a panic left open are broken by a [`fuse`].

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;

use futures::future::{Either, select};
use js_sys::{Function, Reflect};
use wasm_bindgen::{JsCast, JsValue};

use super::bindings::State;
use super::clock::{DelayedCall, PlatformClock, call_later};
use super::fuse;
use super::log::ConsoleLog;
use super::object_sql::ObjectSql;
use super::outbox::Outbox;
use super::stream::describe;
use crate::run::journal::{Journal, RunRecord, beginning};
use crate::run::keeper::Keeper;
use crate::run::ports::{Clock, Level, Log};

/// A run that is not durable is kept from this age on, in milliseconds: most runs end before and cost no storage at all.
const KEPT_AFTER_MS: u64 = 10_000;

/// When the platform does what a lost run that is not kept wanted, in milliseconds: before its streams are broken.
const WILL_AFTER_MS: u32 = fuse::FIRES_AFTER_MS - 1_000;

/// When the alarm looks then: after its streams are broken, for that takes the object's loop along. In milliseconds.
const WILL_LOOKS_AFTER_MS: u64 = fuse::FIRES_AFTER_MS as u64 + 1_000;

/// How often the alarm looks.
pub const ALARM_EVERY: Duration = Duration::from_secs(30);

/// How long after the last answer the streams are broken, in milliseconds.
const BREAK_AFTER_MS: u32 = 100;

/// The row and the alarm of one object.
#[derive(Debug, Clone)]
pub struct Watchdog {
    state: State,
    log: ConsoleLog,
}

impl Watchdog {
    /// The watchdog of the object with this state.
    pub fn new(state: State, log: ConsoleLog) -> Self {
        Self { state, log }
    }

    /// Drives a run's loop to its end, watched: a durable run from its start, another from its tenth second on.
    /// Afterwards nothing is stored but the events of a durable run, for as long as they are kept.
    pub async fn watch<T>(&self, keeper: &Keeper<ObjectSql>, drive: impl Future<Output = T>) -> T {
        let drive = fuse::guarded(self.reset(), drive);
        let is_armed = Cell::new(keeper.run().is_durable());
        let arm = pin!(async {
            if !is_armed.get() {
                let will = self.will(keeper.run());
                PlatformClock.sleep(KEPT_AFTER_MS).await;
                drop(will);
                is_armed.set(true);
                if let Err(fault) = keeper.begin() {
                    self.log
                        .line(Level::Error, "run_not_kept", &[("error", &fault.0)]);
                }
            }
            self.rearm(ALARM_EVERY).await;
        });
        let end = match select(pin!(drive), arm).await {
            Either::Left((end, _)) => end,
            Either::Right(((), drive)) => drive.await,
        };
        match keeper.run().event_retention_ms {
            // An alarm that has a batch to deliver comes first.
            Some(retention_ms) if keeper.is_over() => {
                if Outbox::new(&self.state).is_empty() {
                    self.rearm(Duration::from_millis(retention_ms)).await;
                }
            }
            Some(_) | None if is_armed.get() => self.clear().await,
            Some(_) | None => {}
        }
        end
    }

    /// What the platform does for a run that is not kept yet, should its memory be lost: keeps what it is, and sets the
    /// alarm that closes its row. `None` = it has no row.
    fn will(&self, run: &RunRecord) -> Option<[DelayedCall; 2]> {
        run.owner.as_ref()?;
        let (sql, text) = beginning(run).ok()?;
        let storage = Reflect::get(&self.state, &"storage".into()).ok()?;
        let database = Reflect::get(&storage, &"sql".into()).ok()?;
        let keep = fuse::method(&database, "exec")?.bind2(&database, &sql.into(), &text.into());
        let looks_at_ms = PlatformClock.now_ms() + WILL_LOOKS_AFTER_MS;
        let look = fuse::method(&storage, "setAlarm")?.bind1(&storage, &JsValue::from(looks_at_ms as f64));
        let calls: [Function; 2] = [keep.unchecked_into(), look.unchecked_into()];
        Some(calls.map(|call| DelayedCall::new(&call, WILL_AFTER_MS)))
    }

    /// Looks again later.
    pub async fn rearm(&self, after: Duration) {
        self.note("watchdog_not_armed", self.state.storage().set_alarm(after).await);
    }

    /// The run is over: forgets everything the object has stored, but for what the database must still take.
    pub async fn clear(&self) {
        let storage = self.state.storage();
        let cleared = if Outbox::new(&self.state).is_empty() {
            storage.clear().await
        } else {
            if let Err(fault) = Journal::new(ObjectSql::new(&self.state)).clear() {
                self.log
                    .line(Level::Error, "watchdog_not_cleared", &[("error", &fault.0)]);
            }
            storage.set_alarm(ALARM_EVERY).await
        };
        self.note("watchdog_not_cleared", cleared);
    }

    /// Resets the object, which breaks every stream it still holds open.
    pub fn break_streams(&self) {
        if let Some(reset) = self.reset() {
            call_later(&reset, BREAK_AFTER_MS);
        }
    }

    /// What resets the object. To be called from a timer of the platform: within one of our tasks it would take the
    /// isolate's executor with it.
    fn reset(&self) -> Option<Function> {
        let abort = fuse::method(&self.state, "abort")?;
        let reset = abort.bind1(&self.state, &"the run was interrupted".into());
        Some(reset.unchecked_into())
    }

    fn note(&self, event: &'static str, done: Result<(), JsValue>) {
        if let Err(thrown) = done {
            self.log
                .line(Level::Error, event, &[("error", &describe(&thrown))]);
        }
    }
}
