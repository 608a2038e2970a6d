//! What still happens when the isolate's memory is lost.
//!
//! A panic takes every task of its isolate along, of other runs too, and what they wrote to stays open and silent. Timers
//! of the platform live on. So a living task puts one off, again and again; nobody does after a panic, and it fires.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;

use futures::future::{Either, select};
use js_sys::{Function, Reflect};
use wasm_bindgen::{JsCast, JsValue};

use super::clock::{DelayedCall, PlatformClock};
use crate::run::ports::Clock;

/// When the timer fires, in milliseconds: sooner than clients that count silence as death (45 s) give up, and than the
/// watchdog's alarm looks.
pub const FIRES_AFTER_MS: u32 = 25_000;

/// How often it is put off, in milliseconds.
const PUT_OFF_EVERY_MS: u64 = 10_000;

/// A method of an object of the platform, not bound to it yet.
pub fn method(object: &JsValue, name: &str) -> Option<Function> {
    Reflect::get(object, &name.into()).ok()?.dyn_into().ok()
}

/// Drives a task to its end; should its memory be lost before, the platform calls `fire`.
pub async fn guarded<T>(fire: Option<Function>, task: impl Future<Output = T>) -> T {
    let Some(fire) = fire else {
        return task.await;
    };
    match select(pin!(task), pin!(put_off(&fire))).await {
        Either::Left((end, _)) => end,
        Either::Right((never, _)) => match never {},
    }
}

async fn put_off(fire: &Function) -> Infallible {
    loop {
        let _timer = DelayedCall::new(fire, FIRES_AFTER_MS);
        PlatformClock.sleep(PUT_OFF_EVERY_MS).await;
    }
}
