use serde_json::Map;

use super::*;
use crate::protocol::forwarded_props::{ClientResource, FrontendToolsMode, ModelSettings, ToolChoice};
use crate::protocol::id::{AgentId, ResourceId};

#[test]
fn forwarded_props_are_read_whole() {
    let decoded = decode_with(json!({"forwardedProps": {
        "mine": {"a": null}, "agentId": "io", "resourceId": "ada", "other": null,
        "memoryOptions": {"lastMessages": 5, "readOnly": true, "semanticRecall": {}},
        "modelSettings": {"maxTokens": 9, "maxOutputTokens": 10, "temperature": 0.5, "topP": 1, "topK": 2.0,
            "presencePenalty": -1, "frequencyPenalty": 0.25, "stopSequences": ["x"], "seed": -7, "maxRetries": 0},
        "structuredOutput": {"schema": "{\"type\":\"object\"}", "model": "x"},
        "system": "second", "instructions": "first",
        "toolChoice": {"type": "function", "function": {"name": "open"}},
        "frontendTools": "next-run",
    }}));
    assert_eq!(decoded.warnings, Vec::new());
    let unknown: Map<String, Value> = serde_json::from_str(r#"{"mine":{"a":null},"other":null}"#).unwrap();
    let expected = ForwardedProps {
        agent_id: Some(AgentId::new("io")),
        resource_id: ClientResource::Given(ResourceId::new("ada")),
        last_messages: Some(5),
        read_only: true,
        model_settings: ModelSettings {
            max_output_tokens: Some(10),
            temperature: Some(0.5),
            top_p: Some(1.0),
            top_k: Some(2),
            presence_penalty: Some(-1.0),
            frequency_penalty: Some(0.25),
            stop_sequences: vec!["x".to_owned()],
            seed: Some(-7),
            max_retries: Some(0),
        },
        output_schema: Some(json!({"type": "object"})),
        instructions: vec!["first".to_owned(), "second".to_owned()],
        tool_choice: Some(ToolChoice::Function("open".to_owned())),
        frontend_tools: Some(FrontendToolsMode::NextRun),
        unknown,
    };
    assert_eq!(decoded.input.forwarded_props, expected);
}

#[test]
fn wrong_wishes_are_ignored_with_a_warning_and_nulls_without() {
    let decoded = decode_with(json!({"forwardedProps": {
        "memoryOptions": {"lastMessages": -1, "readOnly": "yes"},
        "modelSettings": {"maxTokens": 0, "temperature": "hot", "topK": 1.5, "stopSequences": [1], "seed": {}, "mood": 1},
        "structuredOutput": [], "instructions": 7, "system": " ", "toolChoice": {"type": "tool"},
        "frontendTools": "sometimes",
    }}));
    assert_eq!(decoded.input, smallest());
    assert_eq!(
        warnings_of(&decoded),
        [
            (
                "/memoryOptions/lastMessages",
                "is not a whole number from 0, nor false and was ignored"
            ),
            ("/memoryOptions/readOnly", "is not a boolean and was ignored"),
            (
                "/modelSettings/maxTokens",
                "is not a whole number from 1 and was ignored"
            ),
            ("/modelSettings/temperature", "is not a number and was ignored"),
            (
                "/modelSettings/topK",
                "is not a whole number from 1 and was ignored"
            ),
            (
                "/modelSettings/stopSequences",
                "is not an array of strings and was ignored"
            ),
            ("/modelSettings/seed", "is not a whole number and was ignored"),
            ("/modelSettings/mood", "is not known and was ignored"),
            ("/structuredOutput", "is not an object and was ignored"),
            ("/instructions", "is not a string and was ignored"),
            ("/toolChoice", "is not a tool choice and was ignored"),
            ("/frontendTools", "is not same-run or next-run and was ignored"),
        ]
        .map(|(pointer, message)| (format!("/forwardedProps{pointer}"), message))
        .each_ref()
        .map(|(pointer, message)| (pointer.as_str(), *message))
    );
    let nulls = decode_with(json!({"forwardedProps": {
        "agentId": null, "resourceId": null, "memoryOptions": null, "modelSettings": {"seed": null},
        "structuredOutput": {"schema": null}, "instructions": null, "toolChoice": null, "frontendTools": null}}));
    assert_eq!(
        nulls,
        Decoded {
            input: smallest(),
            warnings: Vec::new()
        }
    );
    let text = decode_with(json!({"forwardedProps": "all"}));
    assert_eq!(text.input, smallest());
    assert_eq!(
        warnings_of(&text),
        [("/forwardedProps", "is not an object and was ignored")]
    );
}

#[test]
fn memory_and_output_options_that_ask_for_nothing_mean_nothing() {
    for (last_messages, expected) in [
        (json!(false), Some(0)),
        (json!(0), Some(0)),
        (json!(true), None),
        (json!(12.0), Some(12)),
        (json!(1e12), Some(u32::MAX)),
        (json!(0.5), None),
    ] {
        let props = json!({"forwardedProps": {"memoryOptions": {"lastMessages": last_messages}}});
        assert_eq!(
            decode_with(props).input.forwarded_props.last_messages,
            expected,
            "{last_messages}"
        );
    }
    for output in [
        json!({}),
        json!({"schema": {}}),
        json!({"schema": ""}),
        json!({"schema": "{}"}),
    ] {
        let decoded = decode_with(json!({"forwardedProps": {"structuredOutput": output}}));
        assert_eq!(
            decoded,
            Decoded {
                input: smallest(),
                warnings: Vec::new()
            },
            "{output}"
        );
    }
    let decoded = decode_with(json!({"forwardedProps": {"structuredOutput": {"schema": "{nope"}}}));
    assert_eq!(decoded.input, smallest());
    let message = "is not a JSON Schema object and was ignored";
    assert_eq!(
        warnings_of(&decoded),
        [("/forwardedProps/structuredOutput/schema", message)]
    );
}

#[test]
fn agent_and_owner_are_never_guessed() {
    for (props, pointer, message) in [
        (
            json!({"agentId": 1}),
            "/forwardedProps/agentId",
            "must be a string",
        ),
        (
            json!({"agentId": ""}),
            "/forwardedProps/agentId",
            "must not be empty",
        ),
        (
            json!({"resourceId": {}}),
            "/forwardedProps/resourceId",
            "must be a string",
        ),
        (
            json!({"resourceId": "\n"}),
            "/forwardedProps/resourceId",
            "must not contain control characters",
        ),
    ] {
        let body = json!({"threadId": "t", "runId": "r", "messages": [], "forwardedProps": props});
        assert_eq!(
            issues_of(&body.to_string()),
            [(pointer.to_owned(), message.to_owned())]
        );
    }
    let empty = decode_with(json!({"forwardedProps": {"resourceId": ""}}));
    assert_eq!(empty.input.forwarded_props.resource_id, ClientResource::Empty);
}
