//! What is left when an object loses its memory: one row that names its run, and an alarm that looks after it.
//!
//! A reset or a panic takes the loop away and leaves the row. Whoever finds the row without a loop closes the run in
//! D1 and breaks the streams that still hang open (contract 8, first stage); before the row is there, a [`fuse`] does.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use futures::future::{Either, select};
use js_sys::Function;
use serde::{Deserialize, Serialize};
use wasm_bindgen::JsCast;
use worker::State;

use super::clock::{PlatformClock, call_later};
use super::fuse;
use super::log::ConsoleLog;
use super::outbox::Outbox;
use crate::protocol::id::{ResourceId, RunId};
use crate::run::ports::{Clock, Level, Log};

/// A run that lives this long gets its row, in milliseconds: most runs end before and cost no storage at all.
const ROW_AFTER_MS: u64 = 10_000;

/// How often the alarm looks.
pub const ALARM_EVERY: Duration = Duration::from_secs(30);

/// How long after the last answer the streams are broken, in milliseconds.
const BREAK_AFTER_MS: u32 = 100;

const ROW_KEY: &str = "run";

/// The run an object works for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WatchedRun {
    /// The client's id of the run.
    pub run_id: RunId,
    /// Its owner; a run without one has no row in D1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<ResourceId>,
}

/// The row and the alarm of one object.
#[derive(Debug, Clone)]
pub struct Watchdog {
    state: Rc<State>,
    log: ConsoleLog,
}

impl Watchdog {
    /// The watchdog of the object with this state.
    pub fn new(state: Rc<State>, log: ConsoleLog) -> Self {
        Self { state, log }
    }

    /// Drives a run's loop to its end, watched from its tenth second on; afterwards nothing is stored.
    pub async fn watch<T>(&self, run: &WatchedRun, drive: impl Future<Output = T>) -> T {
        let drive = fuse::guarded(self.reset(), drive);
        let is_armed = Cell::new(false);
        let arm = pin!(async {
            PlatformClock.sleep(ROW_AFTER_MS).await;
            is_armed.set(true);
            self.note("watchdog_not_armed", self.arm(run).await);
        });
        let end = match select(pin!(drive), arm).await {
            Either::Left((end, _)) => end,
            Either::Right(((), drive)) => drive.await,
        };
        if is_armed.get() {
            self.clear().await;
        }
        end
    }

    /// Looks again later.
    pub async fn rearm(&self, after: Duration) {
        self.note("watchdog_not_armed", self.state.storage().set_alarm(after).await);
    }

    /// The run whose loop is gone, if there is one.
    pub async fn orphan(&self) -> Option<WatchedRun> {
        match self.state.storage().get::<String>(ROW_KEY).await {
            Ok(row) => serde_json::from_str(&row?).ok(),
            Err(error) => {
                self.note("watchdog_not_read", Err(error));
                None
            }
        }
    }

    /// The run is over: forgets everything the object has stored, but for what the database must still take.
    pub async fn clear(&self) {
        let storage = self.state.storage();
        let cleared = if Outbox::new(Rc::clone(&self.state)).is_empty() {
            let no_alarm = storage.delete_alarm().await;
            no_alarm.and(storage.delete_all().await)
        } else {
            let no_row = storage.delete(ROW_KEY).await.map(|_| ());
            no_row.and(storage.set_alarm(ALARM_EVERY).await)
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
        let abort = fuse::method(self.state.as_raw(), "abort")?;
        let reset = abort.bind1(self.state.as_raw(), &"the run was interrupted".into());
        Some(reset.unchecked_into())
    }

    async fn arm(&self, run: &WatchedRun) -> worker::Result<()> {
        let storage = self.state.storage();
        storage.put(ROW_KEY, serde_json::to_string(run)?).await?;
        storage.set_alarm(ALARM_EVERY).await
    }

    fn note(&self, event: &'static str, done: worker::Result<()>) {
        if let Err(error) = done {
            self.log.line(Level::Error, event, &[("error", &error)]);
        }
    }
}
