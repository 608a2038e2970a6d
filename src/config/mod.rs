//! Configuration: the embedded `agents.toml` and the deployment's variables, checked once.
//!
//! Knows of the rest only the vocabulary: ids, the provider table, the names of the native tools, the rules of tokens.
//! Never holds a secret's value, only its name.

mod agent;
pub mod agents;
mod auth;
pub mod check;
mod check_tools;
mod merge;
mod read;
pub mod server_tools;
mod variables;

use std::ops::{Deref, RangeInclusive};
use std::rc::Rc;

use serde_json::{Map, Value};

pub use agents::{AgentConfig, AgentsFile};
pub use auth::{Auth, BearerToken, GatewayProof, GatewayRules, TokenOwner};
pub use server_tools::{HttpToolConfig, McpServerConfig};
pub use variables::{VARIABLE_NAMES, VARIABLES, Variable, VariableKind};

use crate::list::List;
use crate::protocol::id::{AgentId, ID_MAX_BYTES};
use crate::protocol::json::{self, JSON_MAX_DEPTH};
use crate::protocol::named::{self, Named};
pub use crate::protocol::thread::ListShape;
use crate::protocol::thread::MessageForm;
use crate::provider::table;
use crate::tool::names as tool_names;
use crate::tool::template as tool_template;
use variables::Variables;

/// `agents.toml` as the build script checked it.
const EMBEDDED_AGENTS: &str = include_str!(concat!(env!("OUT_DIR"), "/agents.json"));

/// A mistake in the configuration: every request is answered 500 `config_invalid` with this text. One pointer: every
/// step of reading hands it on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} {}", self.key, self.message)]
pub struct ConfigError(Box<Mistake>);

/// What a [`ConfigError`] says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The variable, or the path of a key inside it: `AGENTS.helper.maxSteps`.
    pub key: String,
    /// What must hold; never has the value.
    pub message: String,
    /// The value and what else helps; for the log only.
    pub detail: String,
}

impl Deref for ConfigError {
    type Target = Mistake;

    fn deref(&self) -> &Mistake {
        &self.0
    }
}

impl ConfigError {
    /// A mistake at a key; the value is for the log only.
    pub fn new(key: impl Into<String>, message: impl Into<String>, value: impl Into<Value>) -> Self {
        Self(Box::new(Mistake {
            key: key.into(),
            message: message.into(),
            detail: detail(value.into()),
        }))
    }
}

fn detail(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => json::text(&other),
    }
}

/// The whole configuration, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Path all routes start with: empty, or `/...` without a slash at the end.
    pub prefix: String,
    /// Origins whose pages may call, as they were written; never empty; `None` = any. The edge has `api::cors` read
    /// them once, which knows what an origin is.
    pub cors_origins: Option<Vec<String>>,
    /// How callers prove who they are.
    pub auth: Auth,
    /// Whether it is meant that everybody may call.
    pub allow_unauthenticated: bool,
    /// Shape of lists. Source: D18.
    pub list_shape: ListShape,
    /// Default form of a thread's messages. Source: D19.
    pub message_form: MessageForm,
    /// Least grave log lines that are written.
    pub log_level: LogLevel,
    /// Where the objects of runs are kept; `None` = near their first caller.
    pub jurisdiction: Option<String>,
    /// How long idle threads are kept, in milliseconds; `None` = for ever.
    pub retention_ms: Option<u64>,
    /// What a request may weigh.
    pub limits: Limits,
    agents: Vec<Rc<AgentConfig>>,
    tools: Named<Box<HttpToolConfig>>,
    mcp: Named<Box<McpServerConfig>>,
}

/// How grave a log line must be to be written, in rising order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum LogLevel {
    /// All.
    Debug,
    /// What happened, and worse.
    #[default]
    Info,
    /// What was dropped, ignored or degraded, and worse.
    Warn,
    /// What failed.
    Error,
}

/// What a request may weigh, and an owner use; more is 413 or 429.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Body of `POST /run`.
    pub run_body_max_bytes: usize,
    /// Body of a tool result. Source: contract 3.
    pub result_body_max_bytes: usize,
    /// Messages in one `POST /run`.
    pub messages_max_count: usize,
    /// Front-end tools in one `POST /run`.
    pub tools_max_count: usize,
    /// Nesting of a body of `POST /run`.
    pub json_max_depth: usize,
    /// A JSON Schema in a body of `POST /run`.
    pub schema_max_bytes: usize,
    /// Its nesting.
    pub schema_max_depth: usize,
    /// An id in a body of `POST /run`. Source: contract 2.1.
    pub id_max_bytes: usize,
    /// Names and values of a request's headers.
    pub headers_max_bytes: usize,
    /// POSTs of a result of one call.
    pub results_per_call_max_count: usize,
    /// Frames a client may send over one socket.
    pub socket_frames_max_count: usize,
    /// Runs of one owner at work at the same time, waiting ones not counted; 0 = any number.
    pub concurrent_runs_max_count: usize,
    /// Tokens of one owner's runs of a day; 0 = any number.
    pub tokens_per_day_max_count: usize,
    /// Bytes of one owner's stored messages; 0 = any number.
    pub stored_max_bytes: usize,
    /// Longest base64 value of a message that is stored without a bucket, in bytes.
    pub attachment_max_bytes: usize,
}

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// A century.
const RETENTION_DAYS_MAX: usize = 36_500;

const MIB: usize = 1024 * 1024;

/// What fits a number of every platform.
const COUNT_MOST: usize = 2_000_000_000;

/// The platform refuses bodies over 100 MB, and an isolate has 128 MB for the body and all that is made of it.
const BODY_MOST: usize = 32 * MIB;

/// The variables of the limits in the order of [`Limits`], and what each may be.
const LIMITS: [(&str, RangeInclusive<usize>); 15] = [
    ("RUN_BODY_MAX_BYTES", 1..=BODY_MOST),
    ("RESULT_BODY_MAX_BYTES", 1..=BODY_MOST),
    ("MESSAGES_MAX_COUNT", 1..=100_000),
    ("TOOLS_MAX_COUNT", 1..=10_000),
    ("JSON_MAX_DEPTH", 8..=JSON_MAX_DEPTH),
    ("SCHEMA_MAX_BYTES", 1..=BODY_MOST),
    ("SCHEMA_MAX_DEPTH", 1..=JSON_MAX_DEPTH),
    ("ID_MAX_BYTES", 16..=ID_MAX_BYTES),
    ("HEADERS_MAX_BYTES", 1024..=128 * 1024),
    ("RESULTS_PER_CALL_MAX_COUNT", 1..=10_000),
    ("SOCKET_FRAMES_MAX_COUNT", 1..=1_000_000),
    ("CONCURRENT_RUNS_MAX_COUNT", 0..=100_000),
    ("TOKENS_PER_DAY_MAX_COUNT", 0..=COUNT_MOST),
    ("STORED_MAX_BYTES", 0..=COUNT_MOST),
    ("ATTACHMENT_MAX_BYTES", 0..=BODY_MOST),
];

impl Default for Limits {
    fn default() -> Self {
        Self {
            run_body_max_bytes: 8 * MIB,
            result_body_max_bytes: 4 * MIB,
            messages_max_count: 2000,
            tools_max_count: 256,
            json_max_depth: JSON_MAX_DEPTH,
            schema_max_bytes: 256 * 1024,
            schema_max_depth: 64,
            id_max_bytes: ID_MAX_BYTES,
            headers_max_bytes: 32 * 1024,
            results_per_call_max_count: 32,
            socket_frames_max_count: 10_000,
            concurrent_runs_max_count: 100,
            tokens_per_day_max_count: 0,
            stored_max_bytes: 0,
            attachment_max_bytes: 4 * MIB,
        }
    }
}

impl Config {
    /// The embedded agents under the variables of this deployment.
    ///
    /// # Errors
    /// The first mistake found.
    pub fn load(vars: &Map<String, Value>) -> Result<Self, ConfigError> {
        Self::from_vars(EMBEDDED_AGENTS, vars)
    }

    /// Agents (JSON of [`AgentsFile`], as the build script checks it) under the variables of a deployment, by their names
    /// in [`VARIABLES`]; others are not looked at.
    ///
    /// Every isolate begins with this, and V8 compiles a function whole when it first runs: what few deployments use are
    /// functions apart, which the compiler may not put into this one.
    ///
    /// # Errors
    /// The first mistake found.
    pub fn from_vars(embedded_agents_json: &str, vars: &Map<String, Value>) -> Result<Self, ConfigError> {
        let vars = Variables(vars);
        let file = merge::file(
            embedded_agents_json,
            &merge::Overrides {
                agents: vars.table("AGENTS")?,
                tools: vars.table("TOOLS")?,
                mcp: vars.table("MCP_SERVERS")?,
            },
        )?;
        Ok(Self {
            prefix: prefix(vars)?,
            cors_origins: cors_origins(vars)?,
            auth: auth::auth(vars)?,
            allow_unauthenticated: vars.truth("ALLOW_UNAUTHENTICATED")?,
            list_shape: vars.word(
                "LIST_SHAPE",
                &[("object", ListShape::Object), ("array", ListShape::Array)],
                ListShape::default(),
            )?,
            message_form: vars.word(
                "MESSAGE_FORMAT",
                &[("mastra", MessageForm::Mastra), ("ag-ui", MessageForm::AgUi)],
                MessageForm::Mastra,
            )?,
            log_level: vars.word(
                "LOG_LEVEL",
                &[
                    ("debug", LogLevel::Debug),
                    ("info", LogLevel::Info),
                    ("warn", LogLevel::Warn),
                    ("error", LogLevel::Error),
                ],
                LogLevel::default(),
            )?,
            jurisdiction: jurisdiction(vars)?,
            retention_ms: retention_ms(vars)?,
            limits: limits(vars)?,
            agents: file.agents.into_iter().map(Rc::new).list(),
            tools: file.tools,
            mcp: file.mcp,
        })
    }

    /// The agents in order; the first is the default. Never empty.
    pub fn agents(&self) -> &[Rc<AgentConfig>] {
        &self.agents
    }

    /// The HTTP tools an agent has, with their names.
    pub fn http_tools(&self, agent: &AgentConfig) -> Vec<(&str, &HttpToolConfig)> {
        let named = agent.tools.iter().filter_map(|name| self.tools.get(name));
        named.map(|(name, tool)| (name.as_str(), &**tool)).list()
    }

    /// The MCP servers an agent has, with their names.
    pub fn mcp_servers(&self, agent: &AgentConfig) -> Vec<(&str, &McpServerConfig)> {
        let named = agent.mcp.iter().filter_map(|name| self.mcp.get(name));
        named.map(|(name, server)| (name.as_str(), &**server)).list()
    }

    /// The agent whose server keeps the threads a thread route is about; `None` = they are in our database. The agent a
    /// client names decides, where there is one; else the default agent: a shipped UI names agents nobody has.
    pub fn keeper_of_threads(&self, agent_id: Option<&AgentId>) -> Option<Rc<AgentConfig>> {
        let named = agent_id.and_then(|id| self.agent(Some(id)));
        let agent = named.or_else(|| self.agent(None))?;
        (agent.memory == agents::Memory::Mastra).then_some(agent)
    }

    /// An agent by id or alias; `None` as the id means the default agent.
    pub fn agent(&self, id: Option<&AgentId>) -> Option<Rc<AgentConfig>> {
        let Some(id) = id else {
            return self.agents.first().cloned();
        };
        self.agents
            .iter()
            .find(|agent| agent.answers_to(id.as_str()))
            .cloned()
    }
}

fn jurisdiction(vars: Variables<'_>) -> Result<Option<String>, ConfigError> {
    let Some(name) = vars.text("JURISDICTION")?.filter(|name| !name.is_empty()) else {
        return Ok(None);
    };
    if name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-') {
        return Ok(Some(name.to_owned()));
    }
    let message = "must be a jurisdiction of the platform, such as `eu`";
    Err(ConfigError::new("JURISDICTION", message, name))
}

fn retention_ms(vars: Variables<'_>) -> Result<Option<u64>, ConfigError> {
    let days = vars.count("RETENTION_DAYS", 0, &(0..=RETENTION_DAYS_MAX))?;
    let days = u64::try_from(days).unwrap_or(u64::MAX);
    Ok((days > 0).then(|| days.saturating_mul(DAY_MS)))
}

// Apart: see `Config::from_vars`.
#[inline(never)]
fn prefix(vars: Variables<'_>) -> Result<String, ConfigError> {
    let Some(text) = vars.text("PREFIX")? else {
        return Ok("/io-bridge".to_owned());
    };
    let is_segment = |segment: &str| {
        !segment.is_empty()
            && !matches!(segment, "." | "..")
            && segment
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte))
    };
    let is_prefix = text.is_empty()
        || text
            .strip_prefix('/')
            .is_some_and(|rest| rest.split('/').all(is_segment));
    if is_prefix {
        Ok(text.to_owned())
    } else {
        let message = "must be empty, or `/` with segments of letters, digits, `-`, `_`, `.` and `~`, and not end with `/`";
        Err(ConfigError::new("PREFIX", message, text))
    }
}

// Apart: see `Config::from_vars`.
#[inline(never)]
fn cors_origins(vars: Variables<'_>) -> Result<Option<Vec<String>>, ConfigError> {
    let name = "CORS_ORIGINS";
    match vars.texts(name)? {
        Some(origins) if origins.is_empty() => {
            let message = "must not be an empty list: leave it out to allow any origin";
            Err(ConfigError::new(name, message, origins))
        }
        Some(origins) if origins == ["*"] => Ok(None),
        origins => Ok(origins),
    }
}

// Apart: see `Config::from_vars`.
#[inline(never)]
fn limits(vars: Variables<'_>) -> Result<Limits, ConfigError> {
    let mut limits = Limits::default();
    let places = [
        &mut limits.run_body_max_bytes,
        &mut limits.result_body_max_bytes,
        &mut limits.messages_max_count,
        &mut limits.tools_max_count,
        &mut limits.json_max_depth,
        &mut limits.schema_max_bytes,
        &mut limits.schema_max_depth,
        &mut limits.id_max_bytes,
        &mut limits.headers_max_bytes,
        &mut limits.results_per_call_max_count,
        &mut limits.socket_frames_max_count,
        &mut limits.concurrent_runs_max_count,
        &mut limits.tokens_per_day_max_count,
        &mut limits.stored_max_bytes,
        &mut limits.attachment_max_bytes,
    ];
    for (place, (name, range)) in places.into_iter().zip(&LIMITS) {
        *place = vars.count(name, *place, range)?;
    }
    Ok(limits)
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
