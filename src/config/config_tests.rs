use serde_json::json;

use super::*;
use crate::protocol::id::ResourceId;
use crate::protocol::tool::Tool;

const FILE: &str = r#"{"agents": [
    {"id": "one", "aliases": ["uno"], "provider": "demo", "instructions": "Be kind."},
    {"id": "two", "name": "Two", "provider": "openai", "model": "m", "modelSettings": {"temperature": 0.3}}
]}"#;

fn config(vars: Value) -> Result<Config, ConfigError> {
    let Value::Object(vars) = vars else {
        panic!("not a table")
    };
    Config::from_vars(FILE, &vars)
}

/// Public text and log detail of the mistake.
fn mistake(vars: Value) -> (String, String) {
    let error = config(vars).unwrap_err();
    (error.to_string(), error.detail.clone())
}

fn ids(config: &Config) -> Vec<&str> {
    config.agents().iter().map(|agent| agent.id.as_str()).collect()
}

#[test]
fn the_file_means_to_the_worker_what_it_means_to_the_build_script() {
    let file: agents::AgentsFile = toml::from_str(include_str!("../../agents.toml")).unwrap();
    assert_eq!(crate::protocol::read::from_text(EMBEDDED_AGENTS), Ok(file));
}

#[test]
fn without_variables_everything_has_its_default() {
    let config = config(json!({})).unwrap();
    assert_eq!(
        config,
        Config {
            prefix: "/io-bridge".to_owned(),
            cors_origins: None,
            auth: Auth::None,
            allow_unauthenticated: false,
            list_shape: ListShape::Object,
            message_form: MessageForm::Mastra,
            log_level: LogLevel::Info,
            jurisdiction: None,
            retention_ms: None,
            limits: Limits {
                run_body_max_bytes: 8_388_608,
                result_body_max_bytes: 4_194_304,
                messages_max_count: 2000,
                tools_max_count: 256,
                json_max_depth: 127,
                schema_max_bytes: 262_144,
                schema_max_depth: 64,
                id_max_bytes: 1024,
                headers_max_bytes: 32_768,
                results_per_call_max_count: 32,
                socket_frames_max_count: 10_000,
                concurrent_runs_max_count: 100,
                tokens_per_day_max_count: 0,
                stored_max_bytes: 0,
                attachment_max_bytes: 4_194_304,
            },
            agents: config.agents.clone(),
            tools: Named::new(),
            mcp: Named::new(),
        }
    );
    assert_eq!(ids(&config), ["one", "two"]);
}

#[test]
fn the_table_of_variables_tells_the_defaults_that_hold() {
    let told: Map<String, Value> = VARIABLES
        .iter()
        .map(|variable| {
            let default = match variable.name {
                "AUTH" => json!({ "mode": "none" }),
                _ => json!(variable.default),
            };
            (variable.name.to_owned(), default)
        })
        .collect();
    assert_eq!(config(Value::Object(told)), config(json!({})));
}

#[test]
fn every_variable_of_the_table_is_read() {
    // A value that fits no kind is refused under the variable's name.
    for variable in VARIABLES {
        let error = config(json!({ variable.name: [[]] })).unwrap_err();
        assert_eq!(error.key, variable.name);
    }
}

#[test]
fn the_shipped_files_are_sound() {
    let text = include_str!("../../wrangler.toml");
    let wrangler: toml::Table = text.parse().unwrap();
    let vars = wrangler
        .get("vars")
        .map_or(json!({}), |vars| serde_json::to_value(vars).unwrap());
    let vars = vars.as_object().unwrap();
    for name in vars.keys() {
        assert!(
            VARIABLES.iter().any(|variable| variable.name == name),
            "{name} is no variable"
        );
    }
    let config = Config::load(vars).unwrap();
    for id in ["io-agent", "ioAgent"] {
        let agent = config.agent(Some(&AgentId::new(id))).unwrap();
        assert_eq!(Some(&agent), config.agents().first());
        assert_eq!(agent.display_name(), "io-agent");
    }
}

#[test]
fn values_may_arrive_as_json_text() {
    let plain = config(json!({
        "CORS_ORIGINS": ["https://a.example", "https://*.b.example:8443"],
        "AUTH": {"mode": "bearer", "tokens": [{"secret": "T1", "owner": "u1"}, {"secret": "T2", "owner": "*"}]},
        "AGENTS": {"one": {"maxSteps": 3, "modelSettings": {"temperature": 1.0}}},
        "MESSAGES_MAX_COUNT": 7,
    }))
    .unwrap();
    let text = config(json!({
        "CORS_ORIGINS": r#"["https://a.example", "https://*.b.example:8443"]"#,
        "AUTH": r#"{"mode": "bearer", "tokens": [{"secret": "T1", "owner": "u1"}, {"secret": "T2", "owner": "*"}]}"#,
        "AGENTS": r#"{"one": {"maxSteps": 3, "modelSettings": {"temperature": 1.0}}}"#,
        "MESSAGES_MAX_COUNT": "7",
    }))
    .unwrap();
    assert_eq!(plain, text);
    assert_eq!(
        plain.auth,
        Auth::Bearer(vec![
            BearerToken {
                secret: "T1".to_owned(),
                owner: TokenOwner::One(ResourceId::new("u1"))
            },
            BearerToken {
                secret: "T2".to_owned(),
                owner: TokenOwner::Any
            },
        ])
    );
    assert_eq!(plain.limits.messages_max_count, 7);
}

#[test]
fn prefixes_are_normal_paths() {
    for good in ["", "/a", "/a/b-c_d.e~f"] {
        assert_eq!(config(json!({ "PREFIX": good })).unwrap().prefix, good);
    }
    for bad in ["/", "a", "/a/", "//a", "/a b", "/a?b", "/../a", "/%61"] {
        let (text, detail) = mistake(json!({ "PREFIX": bad }));
        assert!(text.starts_with("PREFIX must be empty, or "), "{text}");
        assert_eq!(detail, bad);
    }
}

#[test]
fn origins_are_a_list_or_one_text() {
    let origins = |value: Value| config(json!({ "CORS_ORIGINS": value })).unwrap().cors_origins;
    assert_eq!(origins(json!("*")), None);
    assert_eq!(origins(json!(["*"])), None);
    let one = Some(vec!["https://a.example".to_owned()]);
    assert_eq!(origins(json!("https://a.example")), one);
    assert_eq!(origins(json!(r#"["https://a.example"]"#)), one);
    let (text, _) = mistake(json!({ "CORS_ORIGINS": [] }));
    assert_eq!(
        text,
        "CORS_ORIGINS must not be an empty list: leave it out to allow any origin"
    );
}

#[test]
fn mistakes_name_the_key_and_keep_the_value_for_the_log() {
    let secret = "s3cret-value";
    let cases = [
        (
            json!({ "LIST_SHAPE": secret }),
            "LIST_SHAPE must be one of object, array",
        ),
        (
            json!({ "LOG_LEVEL": secret }),
            "LOG_LEVEL must be one of debug, info, warn, error",
        ),
        (
            json!({ "TOOLS_MAX_COUNT": secret }),
            "TOOLS_MAX_COUNT must be JSON when it is a text",
        ),
        (json!({ "AUTH": [secret] }), "AUTH must be a table"),
        (
            json!({ "AUTH": {"mode": secret} }),
            "AUTH.mode must be one of none, bearer, jwt, header",
        ),
        (
            json!({ "AUTH": {"mode": "bearer", "tokens": [{"secret": secret, "owner": "u"}]} }),
            "AUTH.tokens[0].secret must be the name of a secret, not a token",
        ),
        (json!({ "AGENTS": {"one": secret} }), "AGENTS.one must be a table"),
        (
            json!({ "AGENTS": {"one": {"modl": secret}} }),
            "AGENTS.one.modl is not a key of an agent",
        ),
        (
            json!({ "AGENTS": {"one": {"maxSteps": secret}} }),
            "AGENTS.one.maxSteps has a value of the wrong form",
        ),
        (
            json!({ "AGENTS": {"one": {"provider": secret}} }),
            "AGENTS.one.provider has a value of the wrong form",
        ),
        (
            json!({ "AGENTS": {"one": {"id": secret}} }),
            "AGENTS.one.id must be the name of its table",
        ),
        (
            json!({ "AGENTS": {"one": {"apiKeySecret": secret}} }),
            "AGENTS.one.apiKeySecret must be the name of a secret, not a key",
        ),
        (
            json!({ "AGENTS": {"one": {"tools": [secret]}} }),
            "AGENTS.one.tools must name server tools; there are: current_time",
        ),
        (
            json!({ "AGENTS": {"two": {"baseUrl": secret}} }),
            "AGENTS.two.baseUrl must be an http or https address without user, query or fragment",
        ),
    ];
    for (vars, expected) in cases {
        let (text, detail) = mistake(vars.clone());
        assert_eq!(text, expected);
        assert!(detail.contains(secret), "{vars}: {detail}");
    }
    let (text, _) = mistake(json!({ "AUTH": {"mode": "bearer", "tokens": []} }));
    assert_eq!(text, "AUTH.tokens must have at least one");
}

#[test]
fn agents_of_the_variable_override_keys_and_come_after_those_of_the_file() {
    let config = config(json!({ "AGENTS": {
        "new": {"provider": "openai", "model": "x", "baseUrl": "http://127.0.0.1:9/v1/", "aliases": ["neu"]},
        "two": {"model": "n", "modelSettings": {"topP": 0.5}, "keepAliveMs": 50},
    }}))
    .unwrap();
    assert_eq!(ids(&config), ["one", "two", "new"]);
    let two = config.agent(Some(&AgentId::new("two"))).unwrap();
    assert_eq!(
        (two.model.as_str(), two.display_name(), two.keep_alive_ms),
        ("n", "Two", Some(50))
    );
    assert_eq!(
        two.model_settings(),
        crate::protocol::forwarded_props::ModelSettings {
            top_p: Some(0.5),
            max_retries: Some(2),
            ..Default::default()
        }
    );
    let new = config.agent(Some(&AgentId::new("neu"))).unwrap();
    assert_eq!(new.upstream_base_url(), "http://127.0.0.1:9/v1");
    assert_eq!(new.api_key_secret_name(), Some("OPENAI_API_KEY"));
}

#[test]
fn a_key_is_needed_by_who_names_one_and_by_the_providers_own_server() {
    let own = json!({"provider": "openai", "model": "x"});
    let with = |key: &str, value: &str| {
        let mut agent = own.clone();
        agent[key] = json!(value);
        agent
    };
    let compatible = with("baseUrl", "http://127.0.0.1:9/v1");
    let mut named = compatible.clone();
    named["apiKeySecret"] = json!("KEY");
    let keyless = with("apiKeySecret", "");
    let demo = json!({"provider": "demo"});
    for (agent, needed) in [
        (keyless, false),
        (own.clone(), true),
        (compatible, false),
        (named, true),
        (demo, false),
    ] {
        let config = config(json!({ "AGENTS": {"a": agent} })).unwrap();
        let agent = config.agent(Some(&AgentId::new("a"))).unwrap();
        assert_eq!(agent.requires_api_key(), needed, "{agent:?}");
    }
}

#[test]
fn headers_of_an_agent_are_checked_as_those_of_a_tool() {
    for (keys, expected) in [
        (
            json!({"headers": {"x-a": "${sk-1}"}}),
            "AGENTS.one.headers must name secrets in `${NAME}`",
        ),
        (
            json!({"query": {"": "x"}}),
            "AGENTS.one.query must not have an empty name",
        ),
    ] {
        assert_eq!(mistake(json!({ "AGENTS": {"one": keys} })).0, expected);
    }
}

#[test]
fn the_agent_a_client_names_or_else_the_default_one_keeps_the_threads() {
    let keeper = |variables: Value, named: Option<&str>| {
        let config = config(variables).unwrap();
        let id = named.map(AgentId::new);
        let keeper = config.keeper_of_threads(id.as_ref());
        keeper.map(|agent| agent.id.clone())
    };
    let helper = json!({"provider": "mastra", "model": "h", "memory": "mastra", "aliases": ["h"]});
    let beside = json!({ "AGENTS": {"helper": helper} });
    assert_eq!(keeper(beside.clone(), None), None);
    assert_eq!(keeper(beside.clone(), Some("one")), None);
    assert_eq!(keeper(beside.clone(), Some("nobody")), None);
    assert_eq!(keeper(beside, Some("h")), Some("helper".to_owned()));
    let first = json!({"provider": "mastra", "model": "h", "memory": "mastra"});
    let first = json!({ "AGENTS": {"one": first, "two": {"memory": "d1"}} });
    assert_eq!(keeper(first.clone(), None), Some("one".to_owned()));
    assert_eq!(keeper(first.clone(), Some("nobody")), Some("one".to_owned()));
    assert_eq!(keeper(first, Some("two")), None);
}

#[test]
fn an_added_agent_needs_a_provider() {
    let (text, _) = mistake(json!({ "AGENTS": {"new": {"model": "x"}} }));
    assert_eq!(
        text,
        "AGENTS.new.provider is needed: `agents.toml` has no agent of this id"
    );
}

#[test]
fn agents_are_found_by_id_alias_and_absence() {
    let config = config(json!({})).unwrap();
    let found = |id: Option<&str>| {
        config
            .agent(id.map(AgentId::new).as_ref())
            .map(|agent| agent.id.clone())
    };
    assert_eq!(found(None).as_deref(), Some("one"));
    assert_eq!(found(Some("uno")).as_deref(), Some("one"));
    assert_eq!(found(Some("two")).as_deref(), Some("two"));
    assert_eq!(found(Some("Two")), None);
}

#[test]
fn a_description_shows_what_is_true_and_nothing_private() {
    let config =
        config(json!({ "AGENTS": {"two": {"description": "D", "instructions": "hidden"}} })).unwrap();
    let tool = Tool {
        name: "t".to_owned(),
        description: "d".to_owned(),
        parameters: None,
    };
    let two = config.agent(Some(&AgentId::new("two"))).unwrap();
    assert_eq!(
        serde_json::to_value(two.describe(&[tool])).unwrap(),
        json!({
            "id": "two",
            "name": "Two",
            "description": "D",
            "provider": "openai",
            "modelId": "m",
            "capabilities": {
                "identity": {"name": "Two", "type": "io-bridge"},
                "transport": {"streaming": true, "websocket": true, "httpBinary": true},
                "tools": {
                    "supported": true,
                    "parallelCalls": true,
                    "clientProvided": true,
                    "items": [{"name": "t", "description": "d"}],
                },
                "execution": {"maxIterations": 16, "maxExecutionTime": 900_000},
                "output": {"structuredOutput": true},
                "multimodal": {"input": {"image": true, "audio": true, "pdf": true}},
            },
        })
    );
}

#[test]
fn server_tools_come_from_the_file_and_from_variables() {
    let file = r#"{"agents": [{"id": "a", "provider": "demo", "tools": ["current_time", "quote"], "mcp": ["docs"]}],
        "tools": {"quote": {"description": "Quotes.", "url": "https://api.example/quote"}},
        "mcp": {"docs": {"url": "https://mcp.example/mcp", "deny": ["wipe"]}}}"#;
    let vars = json!({
        "TOOLS": {"quote": {"url": "https://staging.example/quote", "headers": {"authorization": "Bearer ${KEY}"}},
                  "more": {"description": "More.", "url": "http://localhost:1/{x}", "allowPrivate": true,
                           "parameters": {"type": "object", "properties": {"x": {"type": "string"}}}}},
        "MCP_SERVERS": {"docs": {"timeoutMs": 5}},
    });
    let config = Config::from_vars(file, vars.as_object().unwrap()).unwrap();
    let agent = config.agent(None).unwrap();
    let [("quote", quote)] = config.http_tools(&agent)[..] else {
        panic!("{:?}", config.http_tools(&agent))
    };
    assert_eq!(quote.url, "https://staging.example/quote");
    assert_eq!(
        (quote.description.as_str(), quote.timeout_ms),
        ("Quotes.", 30_000)
    );
    let [("docs", docs)] = config.mcp_servers(&agent)[..] else {
        panic!("{:?}", config.mcp_servers(&agent))
    };
    assert_eq!(
        (docs.deny.as_slice(), docs.timeout_ms),
        (&["wipe".to_owned()][..], 5)
    );
}

#[test]
fn mistakes_in_server_tools_name_their_key() {
    let tool = |keys: Value| {
        let mut tool = json!({"description": "d", "url": "https://a.example/"});
        tool.as_object_mut()
            .unwrap()
            .extend(keys.as_object().unwrap().clone());
        mistake(json!({ "TOOLS": { "t": tool } })).0
    };
    let url = "TOOLS.t.url must be an http or https address without user or fragment, with `{argument}` in path and query only";
    for (keys, told) in [
        (json!({"url": "ftp://a.example"}), url),
        (json!({"url": "https://{host}/"}), url),
        (json!({"url": "https://a.example{x}/"}), url),
        (json!({"url": "https://a.example/#x"}), url),
        (
            json!({"url": "https://a.example/{x"}),
            "TOOLS.t.url has braces that do not pair",
        ),
        (
            json!({"url": "https://a.example/{x}"}),
            "TOOLS.t.url names an argument that `parameters.properties` does not have",
        ),
        (
            json!({"description": " "}),
            "TOOLS.t.description must say what the tool does",
        ),
        (
            json!({"parameters": {"type": "array"}}),
            "TOOLS.t.parameters must be a JSON Schema with `type = \"object\"`",
        ),
        (
            json!({"headers": {"a b": "x"}}),
            "TOOLS.t.headers has a name that no header may have",
        ),
        (
            json!({"headers": {"a": "x\ny"}}),
            "TOOLS.t.headers has a value that no header may have",
        ),
        (
            json!({"headers": {"a": "${x"}}),
            "TOOLS.t.headers has a value whose `${` has no `}`",
        ),
        (
            json!({"headers": {"a": "${sk-1}"}}),
            "TOOLS.t.headers must name secrets in `${NAME}`",
        ),
        (
            json!({"timeoutMs": 0}),
            "TOOLS.t.timeoutMs must be from 1 to 86400000",
        ),
        (
            json!({"resultMaxBytes": 1}),
            "TOOLS.t.resultMaxBytes must be from 256 to 33554432",
        ),
        (
            json!({"method": "HEAD"}),
            "TOOLS.t has a key of the wrong form, an unknown key, or lacks one",
        ),
    ] {
        assert_eq!(tool(keys), told);
    }
    for (vars, told) in [
        (
            json!({"TOOLS": {"current_time": {"description": "d", "url": "https://a.example/"}}}),
            "TOOLS.current_time has the name of a tool that is built in",
        ),
        (
            json!({"MCP_SERVERS": {"a.b": {"url": "https://a.example/mcp?x=y"}}}),
            "MCP_SERVERS.a.b must be named by 1 to 64 letters, digits, `-` or `_`",
        ),
        (
            json!({"MCP_SERVERS": {"m": {"url": "x"}}}),
            "MCP_SERVERS.m.url must be an http or https address without user or fragment",
        ),
        (
            json!({"MCP_SERVERS": {"m": {"url": "https://a.example/", "prefix": "a."}}}),
            "MCP_SERVERS.m.prefix must be at most 32 letters, digits, `-` or `_`",
        ),
        (json!({"MCP_SERVERS": {"m": 1}}), "MCP_SERVERS.m must be a table"),
        (
            json!({"AGENTS": {"one": {"mcp": ["m"]}}}),
            "AGENTS.one.mcp must name MCP servers; there are: ",
        ),
    ] {
        assert_eq!(mistake(vars).0, told);
    }
}

#[test]
fn retention_is_in_days_and_off_at_zero() {
    let retention = |days: Value| config(json!({"RETENTION_DAYS": days})).map(|config| config.retention_ms);
    assert_eq!(retention(json!(0)), Ok(None));
    assert_eq!(retention(json!("30")), Ok(Some(30 * 86_400_000)));
    assert_eq!(
        mistake(json!({"RETENTION_DAYS": 36_501})),
        (
            "RETENTION_DAYS must be a whole number from 0 to 36500".to_owned(),
            "36501".to_owned()
        )
    );
}

#[test]
fn a_jurisdiction_is_a_name_of_the_platforms() {
    let read = |name: &str| config(json!({ "JURISDICTION": name })).map(|config| config.jurisdiction);
    assert_eq!(read("eu"), Ok(Some("eu".to_owned())));
    assert_eq!(read(""), Ok(None));
    assert_eq!(
        read("EU!").map_err(|error| error.to_string()),
        Err("JURISDICTION must be a jurisdiction of the platform, such as `eu`".to_owned())
    );
}
