//! A data point for each run, where the deployment has the Analytics Engine binding `METRICS`.

use js_sys::{Array, Function, Object, Reflect};
use wasm_bindgen::prelude::*;

use super::bindings::Env;
use super::stream::describe;
use crate::protocol::event::RunErrorCode;
use crate::run::report::RunReport;

/// Name of the binding; without it nothing is measured.
const BINDING: &str = "METRICS";

/// Where data points go.
#[derive(Debug)]
pub struct Metrics {
    dataset: Option<JsValue>,
}

impl Metrics {
    /// Takes the binding, if there is one.
    pub fn new(env: &Env) -> Self {
        let dataset = Reflect::get(env, &BINDING.into()).ok();
        Self {
            dataset: dataset.filter(|dataset| !dataset.is_undefined() && !dataset.is_null()),
        }
    }

    /// Writes a run's point; the order of its members is in `docs/operate.md`.
    ///
    /// # Errors
    /// What the platform said: the binding is of another kind.
    pub fn write(&self, report: &RunReport<'_>) -> Result<(), String> {
        let written = self
            .dataset
            .as_ref()
            .map_or(Ok(()), |dataset| write(dataset, report));
        written.map_err(|thrown| describe(&thrown))
    }
}

fn write(dataset: &JsValue, report: &RunReport<'_>) -> Result<(), JsValue> {
    let (counts, usage) = (report.counts, report.usage);
    let blobs = [
        report.status.as_str(),
        report.code.map_or("", RunErrorCode::as_str),
        report.agent_id,
        report.provider,
        report.model,
    ];
    let doubles = [
        Some(report.duration_ms),
        counts.first_output_ms,
        Some(counts.step_count),
        Some(counts.retry_count),
        Some(counts.tool_call_count),
        Some(counts.upstream_bytes),
        usage.input_tokens,
        usage.output_tokens,
    ];
    let point = Object::new();
    let put = |name: &str, list: Array| Reflect::set(&point, &name.into(), &list);
    put("indexes", Array::of1(&report.agent_id.into()))?;
    put(
        "blobs",
        blobs.iter().map(|text| JsValue::from_str(text)).collect(),
    )?;
    put(
        "doubles",
        doubles
            .iter()
            .map(|number| JsValue::from_f64(number.unwrap_or(0) as f64))
            .collect(),
    )?;
    let write: Function = Reflect::get(dataset, &"writeDataPoint".into())?.dyn_into()?;
    Reflect::apply(&write, dataset, &Array::of1(&point)).map(|_| ())
}
