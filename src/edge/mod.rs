//! The shell on the platform, wasm only: requests in, answers out, ports for the core. It takes no decisions.
//!
//! The only place that touches `worker`, `js_sys` and `web_sys`.

mod bindings;
mod body;
mod bucket;
mod clock;
mod database;
mod entry;
mod env;
mod frames;
mod fuse;
mod handlers;
mod health;
mod http;
mod identity;
mod ids;
mod kept_thread_handlers;
mod live_run;
mod log;
mod metrics;
mod object_sql;
mod outbox;
mod outlet;
mod ports;
mod rates;
mod reply;
mod retention;
mod run_calls;
mod run_handlers;
mod run_object;
mod server_tools;
mod socket;
mod stored_threads;
mod stream;
#[cfg(feature = "test-commands")]
mod test_commands;
mod thread_handlers;
mod upstreams;
mod viewer;
mod viewers;
mod watchdog;

use js_sys::Array;
use web_sys::Request;

use crate::api::cors::CorsOrigins;
use crate::api::error::ApiError;
use crate::api::query::Query;
use crate::api::route::{self, Method, events_path};
use crate::api::socket::is_handshake;
use crate::api::trace::{self, Trace};
use crate::config::Config;
use crate::protocol::event::RunErrorCode;
use crate::protocol::id::RunId;
use crate::run::RunRefusal;
use crate::run::ports::{Clock, Level, Log};
use crate::store::{DAY_MS, Exhausted};
use bindings::{Context, Env};
use clock::PlatformClock;
use handlers::Call;
use identity::{Credentials, Identity};
use log::LogLine;
use reply::Answer;

/// What tells a request from others: in the log, and for those it makes us call.
#[derive(Debug, Clone)]
struct RequestIds {
    /// `x-request-id`
    request_id: String,
    trace: Trace,
}

impl RequestIds {
    /// The caller's trace, if it has one that can be read.
    fn of(request: &Request) -> Self {
        let trace = header(request, trace::HEADER).and_then(|header| Trace::parse(&header));
        Self {
            request_id: ids::request_id(),
            trace: trace.unwrap_or_else(|| Trace::begin(ids::random())),
        }
    }

    fn log(&self, env: &Env) -> log::ConsoleLog {
        env::log(env)
            .with("requestId", self.request_id.as_str())
            .with("traceId", self.trace.id())
    }
}

/// Answers a request, whatever happens.
async fn serve(request: &Request, env: &Env, context: &Context) -> Answer {
    let started_ms = PlatformClock.now_ms();
    let ids = RequestIds::of(request);
    let log = ids.log(env);
    let origin = header(request, "origin");
    let method = request.method();
    let (cors, prefix, answer) = match env::settings(env) {
        Err(error) => {
            log.line(
                Level::Error,
                "config_invalid",
                &[("error", &error), ("detail", &error.detail)],
            );
            (
                CorsOrigins::Any.answer_headers(origin.as_deref()),
                String::new(),
                Answer::from(ApiError::config_invalid(&error.to_string())),
            )
        }
        // Before authentication: a browser sends no credentials with a preflight (known fault B126).
        Ok(settings) if method == "OPTIONS" => {
            let requested = header(request, "access-control-request-headers");
            let headers = settings
                .cors
                .preflight_headers(origin.as_deref(), requested.as_deref());
            (headers, settings.config.prefix.clone(), Answer::no_content())
        }
        Ok(settings) => {
            let credentials = Credentials::of(&settings.config.auth, |name| header(request, name));
            let identity = Identity::Claimed(credentials);
            let answer = handle(request, env, &settings.config, &log, &ids, identity).await;
            (
                settings.cors.answer_headers(origin.as_deref()),
                settings.config.prefix.clone(),
                answer.unwrap_or_else(Answer::from),
            )
        }
    };
    let url = request.url();
    let template = route::template(&prefix, route::path_and_query(&url).0);
    let duration_ms = PlatformClock.now_ms().saturating_sub(started_ms);
    log_later(context, log.request(&method, template, &answer, duration_ms));
    let answer = answer
        .with_headers(cors)
        .with_headers([("x-request-id", ids.request_id)]);
    body::discard(request).await;
    if method == "HEAD" {
        answer.without_body()
    } else {
        answer
    }
}

/// Logs a request, and before the first one what the deployment does without. The answer does not wait for that.
fn log_later(context: &Context, line: Option<LogLine>) {
    let mut lines = env::take_notes();
    lines.extend(line);
    if !lines.is_empty() {
        context.wait_until(Box::pin(async move {
            PlatformClock.sleep(0).await;
            lines.iter().for_each(LogLine::write);
        }));
    }
}

async fn handle(
    request: &Request,
    env: &Env,
    config: &Config,
    log: &log::ConsoleLog,
    ids: &RequestIds,
    identity: Identity,
) -> Result<Answer, ApiError> {
    let limit_bytes = config.limits.headers_max_bytes;
    if headers_bytes(request) > limit_bytes {
        return Err(ApiError::headers_too_large(limit_bytes));
    }
    let Some(objects) = env::run_objects(env) else {
        log.line(
            Level::Error,
            "config_invalid",
            &[("error", &"the RUNS binding is missing")],
        );
        return Err(ApiError::config_invalid("RUNS must be bound"));
    };
    let method = request.method();
    let method = if is_handshake(&method, header(request, "upgrade").as_deref()) {
        Method::Handshake.as_str()
    } else {
        &method
    };
    let url = request.url();
    let (path, query) = route::path_and_query(&url);
    let route = route::resolve(&config.prefix, method, path)?;
    let call = Call {
        request,
        query: Query::parse(query.unwrap_or_default()),
        env,
        config,
        objects,
        log,
        ids,
        identity,
    };
    call.answer(route).await
}

/// Bytes of the names and values of a request's headers, counted by the platform: `name,value` for each.
fn headers_bytes(request: &Request) -> usize {
    let pairs = Array::from(&request.headers());
    let (length, comma_count) = (pairs.join("").length(), pairs.length());
    length.saturating_sub(comma_count) as usize
}

/// A header of a request.
fn header(request: &Request, name: &str) -> Option<String> {
    request.headers().get(name).ok().flatten()
}

/// Why a run has no stream, as HTTP. Source: contract D3, D12, D14.
fn refusal(refusal: RunRefusal, prefix: &str, run_id: &RunId) -> ApiError {
    match refusal {
        RunRefusal::ForeignThread => ApiError::forbidden(),
        RunRefusal::Exhausted(Exhausted::Running) => ApiError::too_many_runs(),
        RunRefusal::Exhausted(Exhausted::Stored) => ApiError::storage_full(),
        RunRefusal::Exhausted(Exhausted::Tokens) => {
            let into_the_day_ms = PlatformClock.now_ms() % DAY_MS;
            ApiError::tokens_used_up((DAY_MS - into_the_day_ms).div_ceil(1000))
        }
        RunRefusal::Conflict { status, thread_id } => {
            ApiError::run_conflict(status.as_str(), &thread_id, events_path(prefix, run_id))
        }
        RunRefusal::NothingToAnswer => ApiError::nothing_to_answer(),
        RunRefusal::StorageUnavailable => ApiError::storage_unavailable(),
        RunRefusal::AgentNotConfigured(_) => ApiError::agent_not_configured(),
        RunRefusal::UpstreamRateLimited { retry_after_s } => {
            ApiError::upstream_refused(RunErrorCode::UpstreamRateLimited, Some(retry_after_s))
        }
        RunRefusal::UpstreamRefused(code) => ApiError::upstream_refused(code, None),
        RunRefusal::Internal => ApiError::internal(),
    }
}

/// A sixth of the code of the standard library's, and as fast.
#[global_allocator]
static ALLOCATOR: talc::wasm::WasmDynamicTalc = talc::wasm::new_wasm_dynamic_allocator();
