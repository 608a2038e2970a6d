//! `agents.toml` and what is put over it as the Worker reads them, from JSON: the same members and defaults as the build
//! script reads from the file, by the types' own attributes. A test holds the two together.

use super::agents::*;
use super::named::Named;
use super::server_tools::{self, HttpMethod, HttpToolConfig, McpServerConfig};
use super::table::{self, ProviderEntry, Wire};
use crate::protocol::json_cursor::{CursorFault, JsonCursor};
use crate::protocol::payload::Member;
use crate::protocol::read::{record, words};

record!(closed AgentsFile:
    "agents" => agents,
    "tools" => tools = Named::new(),
    "mcp" => mcp = Named::new(),
);

record!(closed AgentConfig:
    "id" => id,
    "name" => name = None,
    "description" => description = None,
    "aliases" => aliases = Vec::new(),
    "provider" => provider,
    "model" => model = String::new(),
    "baseUrl" => base_url = None,
    "apiKeySecret" => api_key_secret = None,
    "headers" => headers = Named::new(),
    "query" => query = Named::new(),
    "instructions" => instructions = String::new(),
    "modelSettings" => model_settings = ModelSettingsConfig::default(),
    "modelSettingsMax" => model_settings_max = ModelSettingsConfig::default(),
    "allowClientInstructions" => allow_client_instructions = default_true(),
    "mediaAddresses" => media_addresses = default_media_addresses(),
    "tools" => tools = Vec::new(),
    "mcp" => mcp = Vec::new(),
    "maxSteps" => max_steps = default_max_steps(),
    "runTimeoutMs" => run_timeout_ms = default_run_timeout_ms(),
    "upstreamIdleTimeoutMs" => upstream_idle_timeout_ms = default_upstream_idle_timeout_ms(),
    "firstResponseWaitMs" => first_response_wait_ms = default_first_response_wait_ms(),
    "toolTimeoutMs" => tool_timeout_ms = default_tool_timeout_ms(),
    "keepAliveMs" => keep_alive_ms = None,
    "maxRetries" => max_retries = default_max_retries(),
    "lastMessages" => last_messages = default_last_messages(),
    "validateToolArguments" => validate_tool_arguments = default_true(),
    "toolResultMaxBytes" => tool_result_max_bytes = default_tool_result_max_bytes(),
    "generateTitle" => generate_title = false,
    "persist" => persist = Persist::default(),
    "memory" => memory = Memory::default(),
    "onDisconnect" => on_disconnect = OnDisconnect::default(),
    "eventRetentionMs" => event_retention_ms = default_event_retention_ms(),
    "frontendTools" => frontend_tools = FrontendTools::default(),
    "toolCallStreaming" => tool_call_streaming = ToolCallStreaming::default(),
    "reasoning" => reasoning = Reasoning::default(),
    "showErrors" => show_errors = false,
);

record!(closed ModelSettingsConfig:
    "maxOutputTokens|maxTokens" => max_output_tokens = None,
    "temperature" => temperature = None,
    "topP" => top_p = None,
    "topK" => top_k = None,
    "presencePenalty" => presence_penalty = None,
    "frequencyPenalty" => frequency_penalty = None,
    "stopSequences" => stop_sequences = Vec::new(),
    "seed" => seed = None,
);

record!(closed HttpToolConfig:
    "description" => description,
    "url" => url,
    "parameters" => parameters = None,
    "method" => method = HttpMethod::default(),
    "headers" => headers = Named::new(),
    "idempotent" => idempotent = server_tools::default_true(),
    "timeoutMs" => timeout_ms = server_tools::default_timeout_ms(),
    "resultMaxBytes" => result_max_bytes = server_tools::default_result_max_bytes(),
    "allowPrivate" => allow_private = false,
);

record!(closed McpServerConfig:
    "url" => url,
    "headers" => headers = Named::new(),
    "allow" => allow = Vec::new(),
    "deny" => deny = Vec::new(),
    "prefix" => prefix = String::new(),
    "idempotent" => idempotent = server_tools::default_true(),
    "timeoutMs" => timeout_ms = server_tools::default_timeout_ms(),
    "resultMaxBytes" => result_max_bytes = server_tools::default_result_max_bytes(),
    "required" => required = false,
    "allowPrivate" => allow_private = false,
);

words!(Persist: "auto" => Auto, "always" => Always, "never" => Never);

words!(Memory: "d1" => D1, "mastra" => Mastra);

words!(OnDisconnect: "stop" => Stop, "continue" => Continue);

words!(FrontendTools: "same-run" => SameRun, "next-run" => NextRun);

words!(ToolCallStreaming: "held" => Held, "live" => Live);

words!(Reasoning: "hide" => Hide, "emit" => Emit);

words!(HttpMethod: "GET" => Get, "POST" => Post, "PUT" => Put, "PATCH" => Patch, "DELETE" => Delete);

impl<'a> Member<'a> for &'static ProviderEntry {
    fn blank() -> Self {
        &ProviderEntry {
            name: "",
            wire: Wire::Demo,
            base_url: "",
            api_key_secret: "",
        }
    }

    fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
        let mut name = String::new();
        name.read(json)?;
        *self = table::find(&name).ok_or_else(|| json.complain(table::unknown(&name)))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::protocol::read;

    /// Both readers take the file as the same, or do not take it.
    fn both_say(file: &Value) {
        let ours = read::from_value::<AgentsFile>(file).ok();
        let theirs = serde_json::from_value::<AgentsFile>(file.clone()).ok();
        assert_eq!(ours, theirs, "{file}");
    }

    #[test]
    fn the_worker_reads_what_the_build_script_reads() {
        let settings = json!({
            "maxOutputTokens": 1, "temperature": 0.5, "topP": 1, "topK": 2, "presencePenalty": -0.5,
            "frequencyPenalty": 1.5, "stopSequences": ["a"], "seed": -3,
        });
        let sparse = json!({
            "agents": [{"id": "a", "provider": "demo", "modelSettings": settings}],
            "tools": {"t": {"description": "d", "url": "u"}},
            "mcp": {"m": {"url": "u"}},
        });
        both_say(&sparse);
        let file = read::from_value::<AgentsFile>(&sparse).unwrap();
        let full = read::to_value(&file);
        both_say(&full);
        let values = [
            json!(null),
            json!(true),
            json!(false),
            json!(0),
            json!(7),
            json!(-1),
            json!(0.5),
            json!(5_000_000_000_u64),
            json!("x"),
            json!("openai"),
            json!([]),
            json!(["x"]),
            json!([1]),
            json!({}),
            json!({"x": "y"}),
            json!({"x": 1}),
            json!("always"),
            json!("never"),
            json!("mastra"),
            json!("continue"),
            json!("next-run"),
            json!("live"),
            json!("emit"),
            json!("POST"),
            json!("PUT"),
            json!("PATCH"),
            json!("DELETE"),
        ];
        for place in ["/agents/0", "/agents/0/modelSettings", "/tools/t", "/mcp/m", ""] {
            let members = full.pointer(place).unwrap().as_object().unwrap();
            for name in members.keys().map(String::as_str).chain(["maxTokens", "more"]) {
                // serde takes a struct from a list, too.
                let is_struct = name.starts_with("modelSettings");
                for value in values.iter().filter(|value| !(is_struct && value.is_array())) {
                    let mut changed = full.clone();
                    changed.pointer_mut(place).unwrap()[name] = value.clone();
                    both_say(&changed);
                }
                let mut without = full.clone();
                without
                    .pointer_mut(place)
                    .unwrap()
                    .as_object_mut()
                    .unwrap()
                    .remove(name);
                both_say(&without);
            }
        }
    }
}
