//! Upstreams of every kind: addresses by `fetch`, `binding:NAME/MODEL` by that binding of the Worker (Workers AI).

use js_sys::{Function, JSON, Object, Promise, Reflect};
use wasm_bindgen::prelude::*;

use super::bindings::{Env, settled};
use super::http::{Call, FetchBody, FetchClient, fault};
use super::ids;
use crate::api::trace::{self, Trace};
use crate::provider::HttpRequest;
use crate::provider::openai_chat::workers_ai::BINDING;
use crate::run::ports::{HttpClient, HttpError, HttpResponse};

/// The client of one run.
#[derive(Debug)]
pub struct Upstreams {
    bindings: JsValue,
    trace: Trace,
}

impl Upstreams {
    /// A client that knows this deployment's bindings; what it calls belongs to the trace.
    pub fn new(env: &Env, trace: Trace) -> Self {
        let bindings: &JsValue = env.as_ref();
        Self {
            bindings: bindings.clone(),
            trace,
        }
    }
}

impl HttpClient for Upstreams {
    type Body = FetchBody;

    async fn send(&self, mut request: HttpRequest) -> Result<HttpResponse<FetchBody>, HttpError> {
        let target = request
            .url
            .strip_prefix(BINDING)
            .and_then(|rest| rest.split_once('/'));
        let Some((binding, model)) = target else {
            let traceparent = self.trace.header(ids::span());
            request.headers.push((trace::HEADER.into(), traceparent));
            return FetchClient.send(request).await;
        };
        let call = Call::new()?;
        let inputs = request.body.as_deref().unwrap_or("{}");
        let running = run(&self.bindings, binding, model, inputs, &call);
        let response = settled(running).await.map_err(fault)?;
        call.answer(response)
    }
}

/// `env.NAME.run(model, inputs, options)`, asked for the HTTP response behind it: that has the status of a failure.
fn run(bindings: &JsValue, name: &str, model: &str, inputs: &str, call: &Call) -> Result<Promise, JsValue> {
    let binding = Reflect::get(bindings, &name.into())?;
    if binding.is_undefined() {
        return Err(format!("the Worker has no binding {name}").into());
    }
    let run: Function = Reflect::get(&binding, &"run".into())?.dyn_into()?;
    let options = Object::new();
    Reflect::set(&options, &"returnRawResponse".into(), &true.into())?;
    Reflect::set(&options, &"signal".into(), &call.signal())?;
    run.call3(&binding, &model.into(), &JSON::parse(inputs)?, &options)?
        .dyn_into()
}
