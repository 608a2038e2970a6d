//! Breaking a run's object on purpose, for tests of what is left then. Compiled only with the feature `test-commands`,
//! which the shipped build never has: `scripts/build.mjs` looks, and so does `tests/e2e/test-commands.test.mjs`.
//!
//! `POST /test-commands/<io-run-address>/<command>`, outside the prefix, goes to that object and is obeyed there.

use std::rc::Rc;

use worker::{Env, Method, Request, Response, State};

use super::clock::PlatformClock;
use super::env::RUNS_BINDING;
use super::watchdog::Watchdog;
use crate::protocol::id::ObjectAddress;
use crate::run::ports::Clock;

/// What the path of a command starts with.
const PATH: &str = "/test-commands/";

/// How long after its answer a command is carried out, in milliseconds.
const CARRY_OUT_AFTER_MS: u64 = 50;

/// The Worker's side: hands a command to its object; `None` = the request is none.
pub async fn relay(request: &Request, env: &Env) -> Option<worker::Result<Response>> {
    let path = request.path();
    let (address, _) = path.strip_prefix(PATH)?.split_once('/')?;
    let address = ObjectAddress::from_base64url(address)?;
    let url = format!("https://run-object{path}");
    let obeyed = async {
        let namespace = env.durable_object(RUNS_BINDING)?;
        let stub = namespace.id_from_string(&address.to_hex())?.get_stub()?;
        stub.fetch_with_request(Request::new(&url, Method::Post)?).await
    };
    Some(obeyed.await)
}

/// The object's side: carries a command out; `None` = the request is none.
pub async fn obey(
    request: &Request,
    state: &Rc<State>,
    watchdog: &Watchdog,
) -> Option<worker::Result<Response>> {
    let path = request.path();
    let (_, command) = path.strip_prefix(PATH)?.split_once('/')?;
    match command {
        // The object is thrown away with its memory and its streams, as by a deployment.
        "reset" => watchdog.break_streams(),
        // A task of the object panics. It takes the whole isolate's memory along.
        "panic" => state.wait_until(panic_soon()),
        // The watchdog looks now instead of within half a minute.
        "alarm" => watchdog.rearm(std::time::Duration::ZERO).await,
        _ => return Some(Response::empty().map(|answer| answer.with_status(404))),
    }
    Some(Response::ok(command))
}

#[expect(clippy::panic, reason = "it is what the command is for")]
async fn panic_soon() {
    PlatformClock.sleep(CARRY_OUT_AFTER_MS).await;
    panic!("a test wanted this panic");
}
