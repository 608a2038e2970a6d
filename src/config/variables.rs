//! The deployment's variables: the one table of them, and how each is read.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use super::ConfigError;
use crate::list::List;
use crate::protocol::json;
use crate::protocol::parts;

/// One variable a deployment may set, as README's table shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// Name in `[vars]`.
    pub name: &'static str,
    /// What it holds.
    pub kind: VariableKind,
    /// The default, as it would be written.
    pub default: &'static str,
    /// Unit of a number; empty for other kinds.
    pub unit: &'static str,
    /// One sentence.
    pub meaning: &'static str,
}

/// What a variable holds. Everything but text may also arrive as a text that holds it as JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariableKind {
    /// A text.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// A whole number.
    Integer,
    /// `true` or `false`.
    Truth,
    /// A list of texts, or one text.
    List,
    /// A table.
    Table,
}

/// Every variable.
pub const VARIABLES: &[Variable] = &[
    Variable {
        name: "PREFIX",
        kind: VariableKind::Text,
        default: "/io-bridge",
        unit: "",
        meaning: "Path all routes start with; may be empty.",
    },
    Variable {
        name: "CORS_ORIGINS",
        kind: VariableKind::List,
        default: "*",
        unit: "",
        meaning: "Origins whose pages may call, such as `https://app.example.com` or `https://*.example.com`; a list turns credentials on.",
    },
    Variable {
        name: "AUTH",
        kind: VariableKind::Table,
        default: r#"{ mode = "none" }"#,
        unit: "",
        meaning: "Who may call: mode `none`, `bearer`, `jwt` or `header`; see docs/authentication.md.",
    },
    Variable {
        name: "ALLOW_UNAUTHENTICATED",
        kind: VariableKind::Truth,
        default: "false",
        unit: "",
        meaning: "Says that `AUTH` of mode `none` is meant; `make deploy` refuses it otherwise.",
    },
    Variable {
        name: "AGENTS",
        kind: VariableKind::Table,
        default: "{}",
        unit: "",
        meaning: "Agents by id: keys that override those of `agents.toml`, or whole further agents.",
    },
    Variable {
        name: "TOOLS",
        kind: VariableKind::Table,
        default: "{}",
        unit: "",
        meaning: "HTTP tools by name: keys that override those of `agents.toml`, or whole further tools.",
    },
    Variable {
        name: "MCP_SERVERS",
        kind: VariableKind::Table,
        default: "{}",
        unit: "",
        meaning: "MCP servers by name: keys that override those of `agents.toml`, or whole further servers.",
    },
    Variable {
        name: "LIST_SHAPE",
        kind: VariableKind::Word(&["object", "array"]),
        default: "object",
        unit: "",
        meaning: "Whether thread and agent lists are an object with paging or a bare array.",
    },
    Variable {
        name: "MESSAGE_FORMAT",
        kind: VariableKind::Word(&["mastra", "ag-ui"]),
        default: "mastra",
        unit: "",
        meaning: "Default form of a thread's messages.",
    },
    Variable {
        name: "LOG_LEVEL",
        kind: VariableKind::Word(&["debug", "info", "warn", "error"]),
        default: "info",
        unit: "",
        meaning: "Least grave log lines that are written.",
    },
    Variable {
        name: "JURISDICTION",
        kind: VariableKind::Text,
        default: "",
        unit: "",
        meaning: "Where the objects of runs are kept, such as `eu`; empty: near their first caller. Not on this machine. For threads see docs/security.md.",
    },
    Variable {
        name: "RETENTION_DAYS",
        kind: VariableKind::Integer,
        default: "0",
        unit: "days",
        meaning: "How long idle threads are kept, and run rows and traces of deleted threads; 0 = for ever. Needs a cron trigger.",
    },
    Variable {
        name: "RUN_BODY_MAX_BYTES",
        kind: VariableKind::Integer,
        default: "8388608",
        unit: "bytes",
        meaning: "Longest body of POST /run.",
    },
    Variable {
        name: "RESULT_BODY_MAX_BYTES",
        kind: VariableKind::Integer,
        default: "4194304",
        unit: "bytes",
        meaning: "Longest body of a tool result.",
    },
    Variable {
        name: "MESSAGES_MAX_COUNT",
        kind: VariableKind::Integer,
        default: "2000",
        unit: "messages",
        meaning: "Most messages in one POST /run.",
    },
    Variable {
        name: "TOOLS_MAX_COUNT",
        kind: VariableKind::Integer,
        default: "256",
        unit: "tools",
        meaning: "Most front-end tools in one POST /run.",
    },
    Variable {
        name: "JSON_MAX_DEPTH",
        kind: VariableKind::Integer,
        default: "127",
        unit: "levels",
        meaning: "Deepest nesting of a body of POST /run.",
    },
    Variable {
        name: "SCHEMA_MAX_BYTES",
        kind: VariableKind::Integer,
        default: "262144",
        unit: "bytes",
        meaning: "Largest JSON Schema in a body of POST /run.",
    },
    Variable {
        name: "SCHEMA_MAX_DEPTH",
        kind: VariableKind::Integer,
        default: "64",
        unit: "levels",
        meaning: "Deepest nesting of such a schema.",
    },
    Variable {
        name: "ID_MAX_BYTES",
        kind: VariableKind::Integer,
        default: "1024",
        unit: "bytes",
        meaning: "Longest id in a body of POST /run.",
    },
    Variable {
        name: "HEADERS_MAX_BYTES",
        kind: VariableKind::Integer,
        default: "32768",
        unit: "bytes",
        meaning: "Names and values of a request's headers.",
    },
    Variable {
        name: "RESULTS_PER_CALL_MAX_COUNT",
        kind: VariableKind::Integer,
        default: "32",
        unit: "results",
        meaning: "Most results that are looked at for one call; the first one wins.",
    },
    Variable {
        name: "SOCKET_FRAMES_MAX_COUNT",
        kind: VariableKind::Integer,
        default: "10000",
        unit: "frames",
        meaning: "Most frames a client may send over one socket.",
    },
    Variable {
        name: "CONCURRENT_RUNS_MAX_COUNT",
        kind: VariableKind::Integer,
        default: "100",
        unit: "runs",
        meaning: "Most persistent runs of one owner at work at the same time; those that wait for a front-end result do not count. 0 = any number.",
    },
    Variable {
        name: "TOKENS_PER_DAY_MAX_COUNT",
        kind: VariableKind::Integer,
        default: "0",
        unit: "tokens",
        meaning: "Most tokens of one owner's persistent runs of a day (UTC); 0 = any number.",
    },
    Variable {
        name: "STORED_MAX_BYTES",
        kind: VariableKind::Integer,
        default: "0",
        unit: "bytes",
        meaning: "Most bytes of one owner's stored messages, looked at when a run starts; 0 = any number. Setting it costs a read of them.",
    },
    Variable {
        name: "ATTACHMENT_MAX_BYTES",
        kind: VariableKind::Integer,
        default: "4194304",
        unit: "bytes",
        meaning: "Longest attachment (base64) of a run that may be stored, without an `ATTACHMENTS` bucket; longer ones are 413.",
    },
];

/// What they are called. The edge reads exactly these from its environment, and what README says of them stays out of it.
pub const VARIABLE_NAMES: [&str; VARIABLES.len()] = names();

const fn names() -> [&'static str; VARIABLES.len()] {
    let mut names = [""; VARIABLES.len()];
    let (mut places, mut variables): (&mut [&str], _) = (&mut names, VARIABLES);
    while let ([place, next_places @ ..], [variable, next_variables @ ..]) = (places, variables) {
        *place = variable.name;
        (places, variables) = (next_places, next_variables);
    }
    names
}

/// The variables of one deployment. Absent, `null` and undefined are the default.
#[derive(Debug, Clone, Copy)]
pub(super) struct Variables<'a>(pub &'a Map<String, Value>);

impl Variables<'_> {
    fn given(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    /// A text.
    pub fn text(&self, name: &'static str) -> Result<Option<&str>, ConfigError> {
        match self.given(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(ConfigError::new(name, "must be a text", other.clone())),
        }
    }

    /// One of the words its line of [`VARIABLES`] lists; the position in that list.
    pub fn word<T: Copy>(
        &self,
        name: &'static str,
        words: &[(&'static str, T)],
        default: T,
    ) -> Result<T, ConfigError> {
        let known: Vec<&str> = words.iter().map(|(word, _)| *word).list();
        let place = self.place(name, &known)?;
        let meant = place.and_then(|place| words.get(place));
        Ok(meant.map_or(default, |(_, meant)| *meant))
    }

    /// Which of these words it is.
    fn place(&self, name: &'static str, known: &[&str]) -> Result<Option<usize>, ConfigError> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        match known.iter().position(|word| *word == text) {
            Some(place) => Ok(Some(place)),
            None => {
                let message = format!("must be one of {}", parts::join(known, ", "));
                Err(ConfigError::new(name, message, text))
            }
        }
    }

    /// A whole number of this range.
    pub fn count(
        &self,
        name: &'static str,
        default: usize,
        range: &RangeInclusive<usize>,
    ) -> Result<usize, ConfigError> {
        let Some(value) = self.json(name)? else {
            return Ok(default);
        };
        value
            .as_u64()
            .and_then(|number| usize::try_from(number).ok())
            .filter(|number| range.contains(number))
            .ok_or_else(|| {
                ConfigError::new(
                    name,
                    format!("must be a whole number from {} to {}", range.start(), range.end()),
                    value.clone(),
                )
            })
    }

    /// `true` or `false`; absent = `false`.
    pub fn truth(&self, name: &'static str) -> Result<bool, ConfigError> {
        match self.json(name)? {
            None => Ok(false),
            Some(Value::Bool(truth)) => Ok(truth),
            Some(other) => Err(ConfigError::new(name, "must be true or false", other)),
        }
    }

    /// A table.
    pub fn table(&self, name: &'static str) -> Result<Map<String, Value>, ConfigError> {
        match self.json(name)? {
            None => Ok(Map::new()),
            Some(Value::Object(table)) => Ok(table),
            Some(other) => Err(ConfigError::new(name, "must be a table", other)),
        }
    }

    /// A list of texts; a text that is not JSON is the only one of it.
    pub fn texts(&self, name: &'static str) -> Result<Option<Vec<String>>, ConfigError> {
        let value = match self.given(name) {
            None => return Ok(None),
            Some(Value::String(text)) if !text.trim_start().starts_with('[') => {
                return Ok(Some(vec![text.clone()]));
            }
            Some(_) => self.json(name)?,
        };
        match value.as_ref().and_then(json::texts) {
            Some(texts) => Ok(Some(texts)),
            None => Err(ConfigError::new(
                name,
                "must be a list of texts",
                value.unwrap_or_default(),
            )),
        }
    }

    /// The value itself, or what a text holds as JSON.
    fn json(&self, name: &'static str) -> Result<Option<Value>, ConfigError> {
        match self.given(name) {
            None => Ok(None),
            Some(Value::String(text)) => json::tree(text)
                .map(Some)
                .ok_or_else(|| ConfigError::new(name, "must be JSON when it is a text", text.as_str())),
            Some(other) => Ok(Some(other.clone())),
        }
    }
}
