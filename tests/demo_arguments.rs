//! What the demo provider calls tools with: values from the text, and values made up to fit the schema.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "support/demo.rs"]
mod demo;

use demo::{Said, pieces, request, said, tool};
use io_bridge::provider::FinishReason;
use io_bridge::tool::schema::Schema;
use serde_json::{Value, json};

/// Schemas as front ends declare them, each with the arguments made up for "call it".
#[test]
fn generated_arguments_fit_their_schema() {
    let node = json!({ "type": "object", "required": ["name", "children"], "additionalProperties": false, "properties": {
        "name": { "type": "string" }, "children": { "type": "array", "items": { "$ref": "#/$defs/node" } } } });
    let schemas = [
        json!({}),
        json!({ "type": "object", "required": ["anything"] }),
        object(json!({ "type": "string", "minLength": 40, "maxLength": 42 })),
        object(json!({ "type": "string", "maxLength": 3 })),
        object(json!({ "type": ["null", "integer"], "minimum": 10, "maximum": 12 })),
        object(json!({ "type": "integer", "exclusiveMinimum": 10, "exclusiveMaximum": 12 })),
        object(json!({ "type": "integer", "multipleOf": 7, "minimum": 8 })),
        object(json!({ "type": "number", "multipleOf": 0.1, "minimum": 0.25, "maximum": 0.35 })),
        object(json!({ "type": "number", "exclusiveMinimum": 0, "maximum": 0.5 })),
        object(json!({ "minimum": 3, "exclusiveMinimum": true })),
        object(json!({ "const": { "kind": 1 } })),
        object(json!({ "enum": [null, "a"] })),
        object(json!({ "type": "boolean" })),
        object(json!({ "type": "null" })),
        object(json!({ "type": "array", "minItems": 3, "items": { "type": "string" }, "uniqueItems": true })),
        object(
            json!({ "type": "array", "minItems": 3, "items": { "type": "number", "multipleOf": 0.1 }, "uniqueItems": true }),
        ),
        object(
            json!({ "type": "array", "minItems": 2, "items": { "enum": ["a", "b"] }, "uniqueItems": true }),
        ),
        object(
            json!({ "type": "array", "prefixItems": [{ "type": "string" }, { "type": "number" }], "items": false }),
        ),
        object(
            json!({ "type": "array", "items": [{ "type": "string" }], "additionalItems": { "type": "number" }, "minItems": 3 }),
        ),
        object(json!({ "type": "array", "contains": { "const": 5 } })),
        object(json!({ "type": "array", "maxItems": 0, "items": { "type": "string" } })),
        object(json!({ "type": "object", "minProperties": 2, "additionalProperties": { "type": "number" } })),
        object(
            json!({ "type": "object", "properties": { "a": { "type": "string" }, "b": {} }, "minProperties": 1 }),
        ),
        object(
            json!({ "type": "object", "properties": { "a": {}, "b": { "type": "number" } }, "required": ["a"],
            "dependentRequired": { "a": ["b"] } }),
        ),
        object(json!({ "anyOf": [{ "type": "null" }, { "type": "string", "format": "date-time" }] })),
        object(json!({ "oneOf": [
            { "type": "object", "properties": { "type": { "const": "box" }, "width": { "type": "number" } }, "required": ["type", "width"] },
            { "type": "object", "properties": { "type": { "const": "ball" } }, "required": ["type"] }
        ] })),
        object(json!({ "allOf": [
            { "type": "object", "properties": { "a": { "minimum": 2 } }, "required": ["a"] },
            { "properties": { "a": { "minimum": 5 }, "b": { "type": "string" } }, "required": ["b"] }
        ] })),
        json!({ "$defs": { "node": node }, "$ref": "#/$defs/node" }),
        json!({ "definitions": { "a/b": { "type": "integer", "minimum": 4 } }, "type": "object", "required": ["x"],
            "properties": { "x": { "$ref": "#/definitions/a~1b" } } }),
        object(json!({ "type": "string", "default": "preset" })),
        object(json!({ "type": "integer", "examples": [42] })),
        object(json!(true)),
    ];
    for (schema, text) in schemas.iter().flat_map(|schema| {
        [
            "call it",
            "call it with value off",
            "call it with value 3",
            "call it, value \"quoted\" 11 0.3",
        ]
        .map(|text| (schema, text))
    }) {
        let mut request = request(text);
        request.tools = vec![tool("it", schema.clone())];
        let said = said(&request);
        let [
            Said::Text(_),
            Said::Call(_, arguments),
            Said::Finish(FinishReason::ToolCalls),
        ] = said.as_slice()
        else {
            panic!("no call: {said:?}");
        };
        let violations = Schema::compile(schema).unwrap().check(arguments);
        assert_eq!(violations, Ok(()), "{text}: {arguments} for {schema}");
    }
}

fn object(value: Value) -> Value {
    json!({ "type": "object", "properties": { "value": value }, "required": ["value"], "additionalProperties": false })
}

#[test]
fn samples_and_words_fill_the_arguments() {
    let arguments = |schema: Value, text: &str| {
        let mut request = request(text);
        request.tools = vec![tool("it", schema)];
        match said(&request)
            .into_iter()
            .find(|said| matches!(said, Said::Call(..)))
        {
            Some(Said::Call(_, arguments)) => arguments,
            other => panic!("no call: {other:?}"),
        }
    };
    let preset = object(json!({ "type": "string", "default": "preset" }));
    assert_eq!(arguments(preset.clone(), "call it"), json!({ "value": "preset" }));
    assert_eq!(
        arguments(preset, "call it with value other"),
        json!({ "value": "other" })
    );
    let point = json!({ "type": "object", "properties": { "x": { "type": "number" }, "y": { "type": "number" },
        "label": { "type": "string" }, "backgroundColor": { "type": "string", "description": "as hex" } },
        "required": ["x", "y"] });
    assert_eq!(
        arguments(point.clone(), "call it at 3 4.50"),
        serde_json::from_str::<Value>(r#"{"x":3,"y":4.50}"#).unwrap()
    );
    assert_eq!(
        arguments(point, "call it with label home, 1 2, background color red"),
        json!({ "x": 1, "y": 2, "label": "home", "backgroundColor": "#ff0000" })
    );
    let message = json!({ "type": "object", "properties": { "message": { "type": "string" } }, "required": ["message"] });
    assert_eq!(
        arguments(message, "use it to greet the whole world"),
        json!({ "message": "to greet the whole world" })
    );
}

#[test]
fn schemas_without_an_end_get_some_answer() {
    let again = json!({ "$ref": "#" });
    let endless =
        json!({ "type": "object", "properties": { "a": again, "b": again }, "required": ["a", "b"] });
    let huge =
        object(json!({ "type": "array", "minItems": 1e9, "items": { "type": "string", "minLength": 1e9 } }));
    for schema in [endless, huge] {
        let mut request = request("call it");
        request.tools = vec![tool("it", schema)];
        let size: usize = pieces(&request).len();
        assert!(size > 3 && size < 200_000, "{size}");
    }
}
