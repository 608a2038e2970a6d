//! A client's JSON Schema -> the part of JSON Schema that answers can be bound to.
//!
//! Bounds of numbers, lengths and counts, patterns and notes are dropped: an answer bound to the rest may miss them, as an
//! unbound one may. Objects are closed, which is demanded. A schema whose meaning that would change is not bound at all.
//! Source: Anthropic, "Structured outputs", limitations.

use crate::list::List;
use serde_json::{Map, Value};

/// Formats the vendor knows; another is refused.
const FORMATS: &[&str] = &[
    "date-time",
    "time",
    "date",
    "duration",
    "email",
    "hostname",
    "uri",
    "ipv4",
    "ipv6",
    "uuid",
];

/// The schema as the vendor takes it; `None` when it has none for it.
pub(super) fn bindable(schema: &Value) -> Option<Value> {
    let root = schema.as_object()?;
    if root.get("type")? != "object" || has_recursion(schema) {
        return None;
    }
    bound(schema)
}

fn bound(schema: &Value) -> Option<Value> {
    let mut kept = Map::new();
    for (keyword, value) in schema.as_object()? {
        let value = match keyword.as_str() {
            "type" | "required" | "const" | "title" | "description" | "default" | "$ref" => value.clone(),
            "enum" => value
                .as_array()?
                .iter()
                .all(|item| !item.is_array() && !item.is_object())
                .then(|| value.clone())?,
            "format" if FORMATS.contains(&value.as_str()?) => value.clone(),
            "properties" | "$defs" | "definitions" => bound_members(value)?,
            "items" => bound(value)?,
            "anyOf" | "allOf" => bound_list(value)?,
            "minItems" if value.as_u64().is_some_and(|count| count <= 1) => value.clone(),
            "additionalProperties"
            | "format"
            | "minItems"
            | "minimum"
            | "maximum"
            | "exclusiveMinimum"
            | "exclusiveMaximum"
            | "multipleOf"
            | "minLength"
            | "maxLength"
            | "pattern"
            | "maxItems"
            | "uniqueItems"
            | "minProperties"
            | "maxProperties"
            | "$schema"
            | "$id"
            | "$comment"
            | "examples"
            | "deprecated"
            | "readOnly"
            | "writeOnly" => continue,
            _ => return None,
        };
        kept.insert(keyword.clone(), value);
    }
    if is_of_objects(&kept) {
        // A map of any names, closed, would hold nothing.
        let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        if !is_closed && !kept.get("properties").is_some_and(is_filled) {
            return None;
        }
        kept.insert("additionalProperties".to_owned(), false.into());
    }
    Some(Value::Object(kept))
}

fn is_of_objects(schema: &Map<String, Value>) -> bool {
    let names_object = |kind: &Value| match kind {
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "object"),
        kind => kind == "object",
    };
    schema.contains_key("properties") || schema.get("type").is_some_and(names_object)
}

fn bound_members(schemas: &Value) -> Option<Value> {
    let mut members = Map::new();
    for (name, schema) in schemas.as_object()? {
        members.insert(name.clone(), bound(schema)?);
    }
    Some(Value::Object(members))
}

fn bound_list(schemas: &Value) -> Option<Value> {
    let mut items = Vec::new();
    for schema in schemas.as_array()? {
        items.push(bound(schema)?);
    }
    Some(Value::Array(items))
}

fn is_filled(properties: &Value) -> bool {
    properties.as_object().is_some_and(|members| !members.is_empty())
}

/// Whether a schema may lead back to itself: one with a reference to its root, or a definition with any reference.
fn has_recursion(schema: &Value) -> bool {
    let definitions = ["$defs", "definitions"]
        .into_iter()
        .filter_map(|name| schema.get(name))
        .list();
    let is_local =
        |reference: &str| reference.starts_with("#/$defs/") || reference.starts_with("#/definitions/");
    let mut all = Vec::new();
    references(schema, &mut all);
    let mut inside = Vec::new();
    for definition in definitions {
        references(definition, &mut inside);
    }
    !inside.is_empty() || !all.into_iter().all(is_local)
}

fn references<'a>(schema: &'a Value, found: &mut Vec<&'a str>) {
    match schema {
        Value::Object(members) => {
            found.extend(members.get("$ref").and_then(Value::as_str));
            members.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_closed_and_bounds_dropped() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "degrees": { "type": "number", "minimum": -90.0, "description": "Celsius" },
                "days": { "type": "array", "items": { "$ref": "#/$defs/day" }, "minItems": 1, "maxItems": 7 },
                "note": { "anyOf": [{ "type": "string", "format": "email" }, { "type": "null" }] },
                "code": { "type": "string", "format": "zip", "pattern": "^[0-9]+$" },
            },
            "required": ["degrees"],
            "additionalProperties": true,
            "$defs": { "day": { "type": "object", "properties": { "d": { "enum": [1, "a", null] } } } },
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "degrees": { "type": "number", "description": "Celsius" },
                "days": { "type": "array", "items": { "$ref": "#/$defs/day" }, "minItems": 1 },
                "note": { "anyOf": [{ "type": "string", "format": "email" }, { "type": "null" }] },
                "code": { "type": "string" },
            },
            "required": ["degrees"],
            "$defs": { "day": {
                "type": "object",
                "properties": { "d": { "enum": [1, "a", null] } },
                "additionalProperties": false,
            } },
            "additionalProperties": false,
        });
        assert_eq!(bindable(&schema), Some(expected));
    }

    #[test]
    fn a_schema_that_would_mean_something_else_is_not_bound() {
        for schema in [
            json!(true),
            json!({ "type": "array", "items": { "type": "string" } }),
            json!({ "type": "object" }),
            json!({ "type": "object", "additionalProperties": { "type": "string" } }),
            json!({ "type": "object", "properties": { "a": { "type": ["object", "null"] } } }),
            json!({ "type": "object", "properties": { "a": { "oneOf": [] } } }),
            json!({ "type": "object", "properties": { "a": { "enum": [[1]] } } }),
            json!({ "type": "object", "properties": { "a": { "not": {} } } }),
            json!({ "type": "object", "properties": { "a": { "$ref": "#" } } }),
            json!({ "type": "object", "properties": { "a": { "$ref": "https://x.test/a" } } }),
            json!({
                "type": "object",
                "properties": { "a": { "$ref": "#/$defs/a" } },
                "$defs": { "a": { "type": "array", "items": { "$ref": "#/$defs/a" } } },
            }),
        ] {
            assert_eq!(bindable(&schema), None, "{schema}");
        }
    }
}
