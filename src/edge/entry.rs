//! What the platform calls.

use std::rc::Rc;

use js_sys::{Promise, Reflect};
use wasm_bindgen::prelude::*;
use web_sys::Request;
// Its part is what starts with the isolate: a panic's way to the log, and the isolate's reset after one.
use worker as _;

use super::bindings::{Context, Env, State, promise};
use super::fuse;
use super::run_object::RunObject;

/// Once per isolate: a panic's message and stack go to the log, then the platform's own hook resets the isolate.
#[wasm_bindgen(start)]
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

/// Every request.
#[wasm_bindgen]
pub fn fetch(request: Request, env: Env, context: Context) -> Promise {
    promise(Box::pin(async move {
        #[cfg(feature = "test-commands")]
        if let Some(obeyed) = super::test_commands::relay(&request, &env).await {
            return obeyed;
        }
        let answer = super::serve(&request, &env, &context).await;
        answer.into_response().map(JsValue::from)
    }))
}

/// The cron trigger.
#[wasm_bindgen]
pub fn scheduled(_event: JsValue, env: Env, _context: Context) -> Promise {
    promise(Box::pin(async move {
        super::retention::purge_idle(&env).await;
        Ok(JsValue::UNDEFINED)
    }))
}

/// The class of the objects that runs live in.
#[wasm_bindgen(js_name = RunObject)]
#[derive(Debug)]
pub struct RunObjectClass(Rc<RunObject>);

#[wasm_bindgen(js_class = RunObject)]
impl RunObjectClass {
    /// The object wakes.
    #[wasm_bindgen(constructor)]
    pub fn new(state: State, env: Env) -> Self {
        Self(Rc::new(RunObject::new(state, env)))
    }

    /// A call of the Worker.
    pub fn fetch(&self, request: Request) -> Promise {
        let object = Rc::clone(&self.0);
        promise(Box::pin(async move {
            #[cfg(feature = "test-commands")]
            if let Some(obeyed) = object.obey(&request).await {
                return obeyed;
            }
            let answer = object.fetch(&request).await;
            answer.into_response().map(JsValue::from)
        }))
    }

    /// The alarm it has set.
    pub fn alarm(&self) -> Promise {
        let object = Rc::clone(&self.0);
        promise(Box::pin(async move {
            object.alarm().await;
            Ok(JsValue::UNDEFINED)
        }))
    }
}
