//! Time and timers of the platform. The platform's clock stands still between two I/O events.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use wasm_bindgen::prelude::*;

use crate::run::ports::Clock;

#[wasm_bindgen]
extern "C" {
    /// Gives a number, or an object when the deployment has Node compatibility: the handle is opaque to us.
    #[wasm_bindgen(js_name = setTimeout)]
    fn set_timeout(callback: &JsValue, ms: f64) -> JsValue;

    #[wasm_bindgen(js_name = clearTimeout)]
    fn clear_timeout(handle: &JsValue);
}

/// Longest timer of the platform; a longer one would fire at once.
const TIMER_MAX_MS: u64 = 0x7fff_ffff;

/// The platform's clock.
#[derive(Debug, Clone, Copy)]
pub struct PlatformClock;

impl Clock for PlatformClock {
    fn now_ms(&self) -> u64 {
        js_sys::Date::now() as u64
    }

    fn sleep(&self, ms: u64) -> impl Future<Output = ()> + 'static {
        Sleep::start(ms)
    }
}

/// Calls a JavaScript function after a while, outside every Rust task.
pub fn call_later(function: &js_sys::Function, ms: u32) {
    set_timeout(function.as_ref(), f64::from(ms));
}

/// A call that comes after a while unless this is dropped before.
#[derive(Debug)]
pub struct DelayedCall {
    handle: JsValue,
}

impl DelayedCall {
    /// Calls the function after `ms` milliseconds, outside every Rust task.
    pub fn new(function: &js_sys::Function, ms: u32) -> Self {
        Self {
            handle: set_timeout(function.as_ref(), f64::from(ms)),
        }
    }
}

impl Drop for DelayedCall {
    fn drop(&mut self) {
        clear_timeout(&self.handle);
    }
}

/// A running timer; dropping it clears it, so no timer outlives its run (known fault B114).
struct Sleep {
    state: Rc<RefCell<Timer>>,
    handle: JsValue,
    _callback: Closure<dyn FnMut()>,
}

#[derive(Default)]
struct Timer {
    fired: bool,
    waker: Option<Waker>,
}

impl Sleep {
    fn start(ms: u64) -> Self {
        let state = Rc::new(RefCell::new(Timer::default()));
        let timer = Rc::clone(&state);
        let callback = Closure::new(move || {
            let waker = {
                let mut timer = timer.borrow_mut();
                timer.fired = true;
                timer.waker.take()
            };
            if let Some(waker) = waker {
                waker.wake();
            }
        });
        let handle = set_timeout(callback.as_ref(), ms.min(TIMER_MAX_MS) as f64);
        Self {
            state,
            handle,
            _callback: callback,
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut timer = self.state.borrow_mut();
        if timer.fired {
            return Poll::Ready(());
        }
        timer.waker = Some(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if !self.state.borrow().fired {
            clear_timeout(&self.handle);
        }
    }
}
