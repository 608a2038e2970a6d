//! README's tables are what the code says. `UPDATE_README=1 cargo test --test readme` writes them anew.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

use std::fmt::Write as _;

use io_bridge::api::error::ErrorCode;
use io_bridge::api::route::ROUTES;
use io_bridge::config::{AgentConfig, HttpToolConfig, McpServerConfig, VARIABLES, VariableKind};
use io_bridge::protocol::event::RunErrorCode;
use io_bridge::provider::table::PROVIDERS;
use io_bridge::run::halt::sentence;
use io_bridge::tool::NATIVE_TOOLS;
use serde::Serialize;

/// Meaning of each agent key; the keys and defaults come from the code.
const AGENT_KEYS: &[(&str, &str)] = &[
    ("id", "Id on the wire."),
    (
        "name",
        "Name for people; some clients select by it. Default: the id.",
    ),
    ("description", "One sentence."),
    ("aliases", "Other ids it answers to."),
    ("provider", "A name of the providers below."),
    ("model", "Model id."),
    ("baseUrl", "Address of the upstream. Default: the provider's."),
    (
        "apiKeySecret",
        "Name of the secret that holds the key; empty = none is sent. Default: the provider's.",
    ),
    (
        "headers",
        "Headers of every request to the upstream; `${NAME}` stands for a secret.",
    ),
    (
        "query",
        "Pairs added to the query of every request to the upstream.",
    ),
    ("instructions", "System text, of any length."),
    (
        "modelSettings",
        "`maxOutputTokens`, `temperature`, `topP`, `topK`, `presencePenalty`, `frequencyPenalty`, `stopSequences`, `seed`; a run's own win.",
    ),
    (
        "modelSettingsMax",
        "The most a run may ask for, by the same names; `maxOutputTokens` then holds for every run.",
    ),
    (
        "allowClientInstructions",
        "Whether clients may add system text (system messages, `instructions`, `system`): with it, whoever may call may tell the model what it is.",
    ),
    (
        "mediaAddresses",
        "Schemes and hosts of pictures and files that reach the model; others are left out.",
    ),
    ("tools", "Server tools by name."),
    ("mcp", "MCP servers by name."),
    (
        "maxSteps",
        "Model calls of a run; on the last one the model is told to call no tool.",
    ),
    (
        "runTimeoutMs",
        "Working time of a run; waiting for a person does not count.",
    ),
    ("upstreamIdleTimeoutMs", "Longest silence of the upstream."),
    (
        "firstResponseWaitMs",
        "How long a refusal of the upstream can still become an HTTP error.",
    ),
    ("toolTimeoutMs", "Deadline of a front-end call."),
    (
        "keepAliveMs",
        "Longest silence of our stream; 0 = no keep-alives. Default: 15000, and 5000 while a person is awaited.",
    ),
    ("maxRetries", "Attempts after the first, before the first output."),
    ("lastMessages", "Stored messages that reach the model."),
    (
        "validateToolArguments",
        "Check arguments against the declared schema.",
    ),
    ("toolResultMaxBytes", "Longest result towards the model."),
    (
        "generateTitle",
        "Replace a thread's first title by a model-written one.",
    ),
    ("persist", "`auto`: runs with a `resourceId`; `always`; `never`."),
    (
        "memory",
        "Who keeps the threads: `d1`, or `mastra` with that provider.",
    ),
    (
        "onDisconnect",
        "When the last viewer leaves: `stop`, or `continue`; then runs also go on after a reset.",
    ),
    (
        "eventRetentionMs",
        "How long events are kept after the end, with `continue`.",
    ),
    (
        "frontendTools",
        "`same-run`: results are posted into the run; `next-run`: the run ends, results come with the next.",
    ),
    (
        "toolCallStreaming",
        "`held`: arguments are sent when complete; `live`: as they arrive, where that is safe.",
    ),
    (
        "reasoning",
        "`hide`, or `emit`: ask for the model's reasoning and stream it to clients that send a `protocolVersion`.",
    ),
    ("showErrors", "Say failures in a text message too."),
];

/// Meaning of each key of an HTTP tool.
const HTTP_TOOL_KEYS: &[(&str, &str)] = &[
    ("description", "What it does, for the model."),
    ("url", "Address, with `{argument}` in path and query."),
    ("parameters", "JSON Schema of the arguments, an object."),
    ("method", "`GET`, `POST`, `PUT`, `PATCH` or `DELETE`."),
    ("headers", "Headers; `${NAME}` stands for a secret."),
    (
        "idempotent",
        "Whether a call that a reset left unanswered may be made again; `false`: it ends as an error.",
    ),
    ("timeoutMs", "Longest time for the whole call."),
    ("resultMaxBytes", "Longest answer; a longer one is an error."),
    ("allowPrivate", "Whether the host of `url` may be private."),
];

/// Meaning of each key of an MCP server.
const MCP_KEYS: &[(&str, &str)] = &[
    ("url", "Address of the endpoint."),
    ("headers", "Headers; `${NAME}` stands for a secret."),
    ("allow", "Its tools that are offered; empty = all."),
    ("deny", "Its tools that are not offered."),
    ("prefix", "What the names of its tools are prefixed with."),
    (
        "idempotent",
        "Whether calls that a reset left unanswered may be made again; `false`: they end as errors.",
    ),
    ("timeoutMs", "Longest time for a call; progress starts it anew."),
    ("resultMaxBytes", "Longest answer; a longer one is an error."),
    ("required", "Whether a run fails (502) without the server."),
    ("allowPrivate", "Whether the host of `url` may be private."),
];

/// What the events of a stream carry.
const EVENTS: &[(&str, &str)] = &[
    (
        "RUN_STARTED",
        "`threadId`, `runId`, `protocolVersion`; always first",
    ),
    (
        "RUN_FINISHED",
        "`threadId`, `runId`; for 1.0 peers `outcome`, `usage`, `result` where there is one; last",
    ),
    ("RUN_ERROR", "`message`, `code`; last"),
    ("STEP_STARTED", "`stepName`: `step-1`, `step-2`, ..."),
    ("STEP_FINISHED", "`stepName`"),
    ("TEXT_MESSAGE_START", "`messageId` (the stored one), `role`"),
    ("TEXT_MESSAGE_CONTENT", "`messageId`, `delta`"),
    ("TEXT_MESSAGE_END", "`messageId`"),
    (
        "REASONING_START",
        "`messageId`; these five only with `reasoning = \"emit\"`, for 1.0 peers",
    ),
    ("REASONING_MESSAGE_START", "`messageId` (the stored one), `role`"),
    ("REASONING_MESSAGE_CONTENT", "`messageId`, `delta`"),
    ("REASONING_MESSAGE_END", "`messageId`"),
    ("REASONING_END", "`messageId`"),
    (
        "TOOL_CALL_START",
        "`toolCallId`, `toolCallName`, `parentMessageId`",
    ),
    (
        "TOOL_CALL_ARGS",
        "`toolCallId`, `delta`; joined they are valid JSON",
    ),
    ("TOOL_CALL_END", "`toolCallId`: the front end runs the call now"),
    (
        "TOOL_CALL_RESULT",
        "`messageId`, `toolCallId`, `content`, `role`; once per call",
    ),
];

/// What is limited: the variable, or the binding.
const LIMITS: &[&str] = &[
    "RUN_BODY_MAX_BYTES",
    "RESULT_BODY_MAX_BYTES",
    "MESSAGES_MAX_COUNT",
    "TOOLS_MAX_COUNT",
    "JSON_MAX_DEPTH",
    "SCHEMA_MAX_BYTES",
    "SCHEMA_MAX_DEPTH",
    "ID_MAX_BYTES",
    "HEADERS_MAX_BYTES",
    "RESULTS_PER_CALL_MAX_COUNT",
    "SOCKET_FRAMES_MAX_COUNT",
    "CONCURRENT_RUNS_MAX_COUNT",
    "TOKENS_PER_DAY_MAX_COUNT",
    "STORED_MAX_BYTES",
    "ATTACHMENT_MAX_BYTES",
    "RUNS_PER_OWNER",
    "RUNS_PER_ADDRESS",
];

/// A limit, its default, and the test of `limits.test.mjs` that names it.
fn limits() -> String {
    let tests = include_str!("e2e/limits.test.mjs");
    let rows = LIMITS.iter().map(|limit| {
        let is_its = |line: &&str| line.starts_with("test(\"") && line.contains(limit);
        let line = tests.lines().find(is_its).unwrap_or_default();
        assert!(!line.is_empty(), "no test names {limit}");
        let test = line.split('"').nth(1).unwrap().to_owned();
        let known = VARIABLES.iter().find(|variable| variable.name == *limit);
        let default = known.map_or_else(
            || "unbound: none".to_owned(),
            |variable| match variable.default {
                "0" => "none".to_owned(),
                number => format!("{number} {}", variable.unit),
            },
        );
        vec![code(limit), default, test]
    });
    table(&["Limit", "Default", "Test in `tests/e2e/limits.test.mjs`"], rows)
}

fn table(head: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> String {
    let mut text = format!("| {} |\n|{}\n", head.join(" | "), " --- |".repeat(head.len()));
    for row in rows {
        let cells: Vec<String> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    }
    text
}

fn code(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!("`{text}`")
    }
}

fn agent_keys() -> String {
    let shortest: AgentConfig = serde_json::from_str(r#"{"id":"x","provider":"demo"}"#).unwrap();
    keys(&shortest, AGENT_KEYS, &["id", "provider"])
}

fn http_tool_keys() -> String {
    let shortest: HttpToolConfig = serde_json::from_str(r#"{"description":"x","url":"x"}"#).unwrap();
    keys(&shortest, HTTP_TOOL_KEYS, &["description", "url"])
}

fn mcp_keys() -> String {
    let shortest: McpServerConfig = serde_json::from_str(r#"{"url":"x"}"#).unwrap();
    keys(&shortest, MCP_KEYS, &["url"])
}

/// The table of a configuration's keys, from the shortest one and the meanings.
fn keys(shortest: &impl Serialize, meanings: &[(&str, &str)], needed: &[&str]) -> String {
    let defaults = serde_json::to_value(shortest).unwrap();
    let keys: Vec<&String> = defaults.as_object().unwrap().keys().collect();
    for key in &keys {
        assert!(
            meanings.iter().any(|(known, _)| known == key),
            "{key} has no meaning in the README"
        );
    }
    let rows = meanings.iter().map(|(key, meaning)| {
        let default = match (*key, &defaults[*key]) {
            (key, _) if needed.contains(&key) => "needed".to_owned(),
            (_, serde_json::Value::Null) => String::new(),
            (_, value) if *value == serde_json::json!("") || *value == serde_json::json!({}) => String::new(),
            (_, value) => code(&value.to_string()),
        };
        assert!(
            key.starts_with("modelSettings") || keys.iter().any(|known| known == key),
            "{key} is no key of this table"
        );
        vec![code(key), default, (*meaning).to_owned()]
    });
    table(&["Key", "Default", "Meaning"], rows)
}

fn kind(kind: VariableKind) -> String {
    match kind {
        VariableKind::Text => "text".to_owned(),
        VariableKind::Word(words) => words.iter().map(|word| code(word)).collect::<Vec<_>>().join(", "),
        VariableKind::Integer => "number".to_owned(),
        VariableKind::Truth => "`true`, `false`".to_owned(),
        VariableKind::List => "list".to_owned(),
        VariableKind::Table => "table".to_owned(),
    }
}

/// The rows of the table in the demo provider's own documentation.
fn demo() -> String {
    let source = include_str!("../src/provider/demo/mod.rs");
    let rows: Vec<&str> = source
        .lines()
        .filter_map(|line| line.strip_prefix("//! "))
        .filter(|line| line.starts_with('|'))
        .collect();
    assert!(rows.len() > 5, "the demo provider documents what it answers");
    rows.join("\n") + "\n"
}

fn tables() -> Vec<(&'static str, String)> {
    let routes = ROUTES.iter().map(|row| {
        let path = if row.path.is_empty() {
            "(the prefix itself)".to_owned()
        } else {
            code(row.path)
        };
        vec![
            row.method.as_str().to_owned(),
            path,
            row.level.as_str().to_owned(),
        ]
    });
    let events = EVENTS
        .iter()
        .map(|(name, members)| vec![(*name).to_owned(), (*members).to_owned()]);
    let run_errors = RunErrorCode::ALL
        .iter()
        .map(|it| vec![code(it.as_str()), sentence(*it).to_owned()]);
    let errors = ErrorCode::ALL.iter().map(|it| {
        vec![
            it.status().to_string(),
            code(it.as_str()),
            it.meaning().to_owned(),
        ]
    });
    let providers = PROVIDERS
        .iter()
        .map(|it| vec![code(it.name), code(it.base_url), code(it.api_key_secret)]);
    let tools = NATIVE_TOOLS.iter().map(|tool| {
        let tool = tool.declaration();
        vec![code(&tool.name), tool.description]
    });
    let variables = VARIABLES.iter().map(|it| {
        vec![
            code(it.name),
            kind(it.kind),
            code(it.default),
            it.unit.to_owned(),
            it.meaning.to_owned(),
        ]
    });
    vec![
        ("routes", table(&["Method", "Path", "Conformance level"], routes)),
        ("events", table(&["Event", "Members"], events)),
        ("run-errors", table(&["Code", "Message"], run_errors)),
        ("errors", table(&["Status", "Code", "Meaning"], errors)),
        ("agent-keys", agent_keys()),
        (
            "providers",
            table(&["Provider", "Base address", "Secret"], providers),
        ),
        ("tools", table(&["Tool", "What it does"], tools)),
        ("http-tool-keys", http_tool_keys()),
        ("mcp-keys", mcp_keys()),
        (
            "variables",
            table(&["Variable", "Type", "Default", "Unit", "Meaning"], variables),
        ),
        ("limits", limits()),
        ("demo", demo()),
    ]
}

#[test]
fn tables_are_what_the_code_says() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    let readme = std::fs::read_to_string(path).unwrap();
    let mut written = readme.clone();
    for (name, table) in tables() {
        let open = format!("<!-- table: {name} -->\n");
        let start = written.find(&open).unwrap_or_else(|| panic!("no table {name}")) + open.len();
        let end = start + written[start..].find("<!-- end -->").unwrap();
        written.replace_range(start..end, &table);
    }
    if std::env::var_os("UPDATE_README").is_some() {
        std::fs::write(path, &written).unwrap();
        return;
    }
    assert!(
        readme == written,
        "README's tables are old: UPDATE_README=1 cargo test --test readme"
    );
}

#[test]
fn every_limit_is_in_the_table() {
    let is_limit = |name: &str| {
        name.ends_with("_MAX_COUNT") || name.ends_with("_MAX_BYTES") || name.ends_with("_MAX_DEPTH")
    };
    for variable in VARIABLES.iter().filter(|variable| is_limit(variable.name)) {
        assert!(LIMITS.contains(&variable.name), "{} has no row", variable.name);
    }
}

#[test]
fn every_event_we_emit_is_in_the_table() {
    let kinds: Vec<&str> = io_bridge::protocol::event::EventKind::ALL
        .iter()
        .map(|kind| kind.as_str())
        .collect();
    let listed: Vec<&str> = EVENTS.iter().map(|(name, _)| *name).collect();
    assert_eq!(listed, kinds);
}
