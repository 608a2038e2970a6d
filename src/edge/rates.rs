//! Rates, counted by bindings of the platform that a deployment may have.

use js_sys::{Function, Object, Reflect};
use wasm_bindgen::{JsCast, JsValue};

use super::bindings::{Env, settled};
use super::log::ConsoleLog;
use super::stream::describe;
use crate::run::ports::{Level, Log};

/// Name of the binding that counts an owner's runs.
pub const PER_OWNER: &str = "RUNS_PER_OWNER";

/// Name of the binding that counts the runs from one address.
pub const PER_ADDRESS: &str = "RUNS_PER_ADDRESS";

/// Whether one more is within the rate. `true` without the binding, and when it fails: it is no reason to stop all.
pub async fn admits(env: &Env, binding: &str, key: &str, log: &ConsoleLog) -> bool {
    let Some(limiter) = limiter(env, binding) else {
        return true;
    };
    match ask(&limiter, key).await {
        Ok(is_within) => is_within,
        Err(thrown) => {
            let error = describe(&thrown);
            log.line(
                Level::Error,
                "rate_not_counted",
                &[("binding", &binding), ("error", &error)],
            );
            true
        }
    }
}

/// Whether the deployment has the binding.
pub fn is_bound(env: &Env, binding: &str) -> bool {
    limiter(env, binding).is_some()
}

fn limiter(env: &Env, binding: &str) -> Option<JsValue> {
    let limiter = Reflect::get(env, &binding.into()).ok()?;
    limiter.is_object().then_some(limiter)
}

/// `limit({key})` -> `{success}`
async fn ask(limiter: &JsValue, key: &str) -> Result<bool, JsValue> {
    let limit: Function = Reflect::get(limiter, &"limit".into())?.dyn_into()?;
    let options = Object::new();
    Reflect::set(&options, &"key".into(), &key.into())?;
    let answer = settled(limit.call1(limiter, &options)?.dyn_into()).await?;
    Ok(Reflect::get(&answer, &"success".into())?.is_truthy())
}
