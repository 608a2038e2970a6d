//! Breaking a run's object on purpose, for tests of what is left then. Compiled only with the feature `test-commands`,
//! which the shipped build never has: `scripts/build.mjs` looks, and so does `tests/e2e/test-commands.test.mjs`.
//!
//! `POST /test-commands/<io-run-address>/<command>`, outside the prefix, goes to that object and is obeyed there.

use js_sys::Reflect;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Request, RequestInit, Response, ResponseInit};

use super::bindings::{Env, Namespace, State};
use super::clock::PlatformClock;
use super::env::RUNS_BINDING;
use super::watchdog::Watchdog;
use crate::api::route::path_and_query;
use crate::protocol::id::ObjectAddress;
use crate::run::ports::Clock;

/// What the path of a command starts with.
const PATH: &str = "/test-commands/";

/// How long after its answer a command is carried out, in milliseconds.
const CARRY_OUT_AFTER_MS: u64 = 50;

/// The Worker's side: hands a command to its object; `None` = the request is none.
pub async fn relay(request: &Request, env: &Env) -> Option<Result<JsValue, JsValue>> {
    let url = request.url();
    let (path, _) = path_and_query(&url);
    let (address, _) = path.strip_prefix(PATH)?.split_once('/')?;
    let address = ObjectAddress::from_base64url(address)?;
    let url = format!("https://run-object{path}");
    let obeyed = async {
        let namespace: Namespace = Reflect::get(env, &RUNS_BINDING.into())?.unchecked_into();
        let id = namespace.id_from_hex(&address.to_hex())?;
        let init = RequestInit::new();
        init.set_method("POST");
        namespace.send(&id, &url, &init).await
    };
    Some(obeyed.await)
}

/// The object's side: carries a command out; `None` = the request is none.
pub async fn obey(request: &Request, state: &State, watchdog: &Watchdog) -> Option<Result<JsValue, JsValue>> {
    let url = request.url();
    let (path, _) = path_and_query(&url);
    let (_, command) = path.strip_prefix(PATH)?.split_once('/')?;
    let init = ResponseInit::new();
    match command {
        // The object is thrown away with its memory and its streams, as by a deployment.
        "reset" => watchdog.break_streams(),
        // A task of the object panics. It takes the whole isolate's memory along.
        "panic" => state.wait_until(Box::pin(panic_soon())),
        // The watchdog looks now instead of within half a minute.
        "alarm" => watchdog.rearm(std::time::Duration::ZERO).await,
        _ => init.set_status(404),
    }
    Some(Response::new_with_opt_str_and_init(Some(command), &init).map(JsValue::from))
}

#[expect(clippy::panic, reason = "it is what the command is for")]
async fn panic_soon() {
    PlatformClock.sleep(CARRY_OUT_AFTER_MS).await;
    panic!("a test wanted this panic");
}
