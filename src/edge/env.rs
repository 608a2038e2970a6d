//! The deployment: its variables, secrets and bindings.

use std::cell::RefCell;
use std::rc::Rc;

use js_sys::{JSON, Reflect};
use serde_json::{Map, Value};
use wasm_bindgen::{JsCast, JsValue};

use super::bindings::{Env, Namespace};
use super::bucket::R2;
use super::database::D1;
use super::log::{ConsoleLog, LogLine};
use super::rates;
use super::run_calls::RunObjects;
use crate::api::cors::CorsOrigins;
use crate::api::error::ApiError;
use crate::config::agents::Reasoning;
use crate::config::server_tools::header_parts;
use crate::config::{AgentConfig, Auth, Config, ConfigError, LogLevel, VARIABLE_NAMES};
use crate::list::List;
use crate::protocol::json;
use crate::protocol::named::Named;
use crate::provider::openai_chat::workers_ai::BINDING;
use crate::provider::{ModelTarget, Secret};
use crate::run::ports::{Level, Log};
use crate::store::Store;

/// Name of the D1 binding; without it the deployment keeps no threads.
const DATABASE_BINDING: &str = "DB";

/// Name of the D1 binding of the search index; without it searches look at titles only.
const SEARCH_BINDING: &str = "SEARCH";

/// Name of the R2 binding of attachments; without it they stay in the database.
const ATTACHMENTS_BINDING: &str = "ATTACHMENTS";

/// Name of the Durable Object binding; without it nothing works.
pub const RUNS_BINDING: &str = "RUNS";

/// What requests need of the variables.
#[derive(Debug)]
pub struct Settings {
    /// The configuration.
    pub config: Config,
    /// Its origins, taken apart.
    pub cors: CorsOrigins,
}

thread_local! {
    /// Plain data only: a platform object must not outlive the request it came with.
    static SETTINGS: RefCell<Option<Result<Rc<Settings>, ConfigError>>> = const { RefCell::new(None) };
    static NOTES: RefCell<Vec<LogLine>> = const { RefCell::new(Vec::new()) };
}

/// The configuration, read once per isolate.
///
/// # Errors
/// The mistake in it.
pub fn settings(env: &Env) -> Result<Rc<Settings>, ConfigError> {
    SETTINGS.with_borrow_mut(|cached| cached.get_or_insert_with(|| load(env).map(Rc::new)).clone())
}

fn load(env: &Env) -> Result<Settings, ConfigError> {
    let config = Config::load(&variables(env))?;
    NOTES.set(notes(env, &config));
    let origins = config.cors_origins.as_deref().unwrap_or_default();
    let cors = CorsOrigins::parse(origins)
        .map_err(|fault| ConfigError::new("CORS_ORIGINS", "must hold origins", fault.to_string()))?;
    Ok(Settings { config, cors })
}

/// What a deployment does without.
fn notes(env: &Env, config: &Config) -> Vec<LogLine> {
    let log = ConsoleLog::new(level(config.log_level));
    let mut notes = Vec::new();
    if config.auth == Auth::None && !config.allow_unauthenticated {
        let detail: [(_, &dyn std::fmt::Display); 1] = [("AUTH", &"none: everybody may call")];
        notes.extend(log.to_line(Level::Warn, "unauthenticated", &detail));
    }
    for binding in [rates::PER_OWNER, rates::PER_ADDRESS] {
        if !rates::is_bound(env, binding) {
            notes.extend(log.to_line(Level::Info, "no_rate_limit", &[("binding", &binding)]));
        }
    }
    notes
}

/// What a deployment does without, for the log, once per isolate: loud, but not on every request.
pub fn take_notes() -> Vec<LogLine> {
    NOTES.take()
}

/// Every variable that is set, as the JSON it is or as text.
fn variables(env: &Env) -> Map<String, Value> {
    let mut variables = Map::new();
    for name in VARIABLE_NAMES {
        if let Some(value) = value(env, name) {
            variables.insert(name.to_owned(), value);
        }
    }
    variables
}

fn value(env: &Env, name: &str) -> Option<Value> {
    let value = get(env, name)?;
    if let Some(text) = value.as_string() {
        return Some(Value::String(text));
    }
    let json = JSON::stringify(&value).ok()?.as_string()?;
    json::tree(&json)
}

fn get(env: &Env, name: &str) -> Option<JsValue> {
    let value = Reflect::get(env, &name.into()).ok()?;
    (!value.is_null() && !value.is_undefined()).then_some(value)
}

/// A secret that is set and not empty.
pub fn secret(env: &Env, name: &str) -> Option<Secret> {
    let text = get(env, name)?.as_string()?;
    (!text.is_empty()).then(|| Secret::new(text))
}

/// The database, if the deployment has one.
pub fn database(env: &Env) -> Option<D1> {
    object(env, DATABASE_BINDING)
}

/// The bucket of attachments, if the deployment has one.
pub fn attachments(env: &Env) -> Option<R2> {
    object(env, ATTACHMENTS_BINDING)
}

/// The store of threads, if the deployment has a database.
pub fn store(env: &Env) -> Option<Store<D1, Option<R2>>> {
    let database = database(env)?;
    Some(Store::new(database).with_attachments(attachments(env)))
}

/// The search index, if the deployment has one; it is of no use without the database it is of.
pub fn search(env: &Env) -> Option<D1> {
    database(env)?;
    object(env, SEARCH_BINDING)
}

/// A binding that is an object of the platform.
fn object<T: JsCast>(env: &Env, name: &str) -> Option<T> {
    get(env, name)
        .filter(JsValue::is_object)
        .map(JsValue::unchecked_into)
}

/// The objects runs live in.
pub fn run_objects(env: &Env) -> Option<RunObjects> {
    object::<Namespace>(env, RUNS_BINDING).map(RunObjects::new)
}

/// From which level on log lines are written; all that are worth a look while the configuration is wrong.
pub fn log(env: &Env) -> ConsoleLog {
    let least = settings(env).map_or(LogLevel::Info, |settings| settings.config.log_level);
    ConsoleLog::new(level(least))
}

fn level(level: LogLevel) -> Level {
    match level {
        LogLevel::Debug => Level::Debug,
        LogLevel::Info => Level::Info,
        LogLevel::Warn => Level::Warn,
        LogLevel::Error => Level::Error,
    }
}

/// An agent's upstream with its key.
///
/// # Errors
/// 503 when a key, another secret or the binding is missing that the agent needs.
pub fn model_target(env: &Env, agent: &AgentConfig, log: &ConsoleLog) -> Result<ModelTarget, ApiError> {
    let entry = agent.provider_entry();
    let api_key = agent.api_key_secret_name().and_then(|name| secret(env, name));
    let base_url = agent.upstream_base_url();
    let lacks_binding = base_url
        .strip_prefix(BINDING)
        .is_some_and(|name| get(env, name).is_none());
    if lacks_binding || (api_key.is_none() && agent.requires_api_key()) {
        return Err(ApiError::agent_not_configured());
    }
    let headers = headers(env, &agent.headers, log).ok_or_else(ApiError::agent_not_configured)?;
    Ok(ModelTarget {
        wire: entry.wire,
        provider: entry.name,
        base_url: base_url.to_owned(),
        api_key,
        model: agent.model.clone(),
        headers,
        query: agent.query.iter().cloned().list(),
        wants_reasoning: agent.reasoning == Reasoning::Emit,
    })
}

/// Headers with their secrets; `None` when one is missing, which the log says.
pub fn headers(env: &Env, configured: &Named<String>, log: &ConsoleLog) -> Option<Vec<(String, Secret)>> {
    let resolve = |(name, value): &(String, String)| {
        let mut text = String::new();
        for part in header_parts(value)? {
            match part {
                Ok(plain) => text.push_str(plain),
                Err(name) => match secret(env, name) {
                    Some(secret) => text.push_str(secret.expose()),
                    None => {
                        log.line(Level::Error, "secret_missing", &[("name", &name)]);
                        return None;
                    }
                },
            }
        }
        Some((name.to_ascii_lowercase(), Secret::new(text)))
    };
    let mut resolved = Vec::new();
    for header in configured.iter() {
        resolved.push(resolve(header)?);
    }
    Some(resolved)
}
