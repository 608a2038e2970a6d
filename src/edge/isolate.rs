//! How an isolate starts, and what becomes of it after a panic.
//!
//! The Worker's JavaScript, which `worker-build` makes, keeps a state for the wasm: whether a panic has left its memory
//! as it must not be used again, and which of its instances this is. It makes the next one when it is called next.

use js_sys::{Error, Promise, Reflect};
use wasm_bindgen::prelude::*;
use web_sys::console;

use super::fuse;

#[wasm_bindgen(inline_js = "export const state = { criticalError: false, instanceId: 0 };")]
extern "C" {
    type State;

    #[wasm_bindgen(thread_local_v2, js_name = state)]
    static STATE: State;

    #[wasm_bindgen(method, setter, js_name = criticalError)]
    fn set_critical_error(this: &State, is_critical: bool);

    #[wasm_bindgen(method, getter, js_name = instanceId)]
    fn instance_id(this: &State) -> u32;

    #[wasm_bindgen(method, setter, js_name = instanceId)]
    fn set_instance_id(this: &State, id: u32);
}

/// The state, for the Worker's JavaScript, which knows it by this name.
#[wasm_bindgen(js_name = __worker_init_state)]
pub fn state() -> JsValue {
    STATE.with(|state| state.into())
}

/// Once per instance.
#[wasm_bindgen(start, private)]
fn start() {
    std::panic::set_hook(Box::new(|panic| {
        log(&panic.to_string());
        STATE.with(|state| state.set_critical_error(true));
    }));
    wasm_bindgen::handler::set_on_abort(wasm_bindgen::handler::schedule_reinit);
    STATE.with(|state| state.set_instance_id(state.instance_id() + 1));
    quicken_microtasks();
}

/// A panic goes to the log with its stack.
fn log(message: &str) {
    let stack = Reflect::get(&Error::new(""), &"stack".into());
    let stack = stack.ok().and_then(|stack| stack.as_string());
    let text = format!("{message}\n\nStack:\n\n{}", stack.unwrap_or_default());
    console::error_1(&text.into());
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
