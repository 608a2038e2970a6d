//! What the platform calls.

#![expect(
    clippy::disallowed_methods,
    reason = "the macro's own way out for a handler that fails; ours does not"
)]

use js_sys::{Promise, Reflect};
use wasm_bindgen::JsValue;
use worker::{Context, Env, Request, Response, ScheduleContext, ScheduledEvent, event, wasm_bindgen};

use super::fuse;

/// Once per isolate: a panic's message and stack go to the log, then the platform's own hook resets the isolate.
#[event(start)]
fn start() {
    let platform_hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        console_error_panic_hook::hook(panic);
        platform_hook(panic);
    }));
    quicken_microtasks();
}

/// The executor asks for a microtask with every task it wakes. A reaction to a settled promise is the same, and costs an
/// eighth of the platform's `queueMicrotask`. The promise belongs to no request, since none is there yet.
fn quicken_microtasks() {
    let settled = Promise::resolve(&JsValue::UNDEFINED);
    if let Some(then) = fuse::method(&settled, "then") {
        let queue = then.bind0(&settled);
        // Where it cannot be set, all is as it was.
        let _ = Reflect::set(&js_sys::global(), &"queueMicrotask".into(), &queue);
    }
}

/// Every request. Never an `Err`: the platform would show it as a bare text.
#[event(fetch)]
async fn fetch(request: Request, env: Env, context: Context) -> worker::Result<Response> {
    #[cfg(feature = "test-commands")]
    if let Some(obeyed) = super::test_commands::relay(&request, &env).await {
        return obeyed;
    }
    Ok(super::serve(request, env, &context).await)
}

/// The cron trigger.
#[event(scheduled)]
async fn scheduled(_event: ScheduledEvent, env: Env, _context: ScheduleContext) {
    super::retention::purge_idle(&env).await;
}
