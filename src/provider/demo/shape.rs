//! What a JSON Schema object without references says about its values.

use serde_json::{Map, Number, Value};

use crate::list::List;
use crate::protocol::json;
use crate::protocol::number;

/// Most characters a text is drawn out to because a schema asks for them.
const CHARACTERS_MAX_COUNT: usize = 2_000;

pub(super) enum Kind {
    Object,
    Array,
    Number { is_integer: bool },
    Boolean,
    String,
    Null,
}

/// The declared type, `null` only when there is no other; a schema that declares none is known by its keywords.
pub(super) fn kind(schema: &Map<String, Value>) -> Kind {
    let declared = match schema.get("type") {
        Some(Value::Array(types)) => {
            let mut names = types.iter().filter_map(Value::as_str);
            names.find(|name| *name != "null").or(Some("null"))
        }
        other => other.and_then(Value::as_str),
    };
    let has = |keywords: &[&str]| keywords.iter().any(|keyword| schema.contains_key(*keyword));
    match declared {
        Some("object") => Kind::Object,
        Some("array") => Kind::Array,
        Some("integer") => Kind::Number { is_integer: true },
        Some("number") => Kind::Number { is_integer: false },
        Some("boolean") => Kind::Boolean,
        Some("null") => Kind::Null,
        None if has(&["properties", "required", "additionalProperties", "minProperties"]) => Kind::Object,
        None if has(&["items", "prefixItems", "minItems", "contains"]) => Kind::Array,
        None if has(&[
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "multipleOf",
        ]) =>
        {
            Kind::Number { is_integer: false }
        }
        Some(_) | None => Kind::String,
    }
}

pub(super) fn is_null(schema: &Map<String, Value>) -> bool {
    matches!(kind(schema), Kind::Null) || schema.get("const") == Some(&Value::Null)
}

/// `default`, else the first of `examples`, else `example`; `null` says nothing.
pub(super) fn sample(schema: &Map<String, Value>) -> Option<Value> {
    let examples = schema.get("examples").and_then(Value::as_array);
    let candidates = [
        schema.get("default"),
        examples.and_then(|examples| examples.first()),
        schema.get("example"),
    ];
    candidates
        .into_iter()
        .flatten()
        .find(|value| !value.is_null())
        .cloned()
}

/// Adds the demands of `other`: properties and required names unite, other keywords of `flat` stay, bounds narrow.
pub(super) fn merge(flat: &mut Map<String, Value>, other: Map<String, Value>) {
    for (keyword, theirs) in other {
        match (flat.get_mut(&keyword), theirs) {
            (None, theirs) => {
                flat.insert(keyword, theirs);
            }
            (Some(Value::Object(mine)), Value::Object(theirs)) if keyword == "properties" => {
                for (name, schema) in theirs {
                    match mine.get_mut(&name) {
                        Some(Value::Object(property)) => {
                            merge(property, schema.as_object().cloned().unwrap_or_default());
                        }
                        Some(_) | None => {
                            mine.insert(name, schema);
                        }
                    }
                }
            }
            (Some(Value::Array(mine)), Value::Array(theirs)) if keyword == "required" => {
                for name in theirs {
                    if !mine.contains(&name) {
                        mine.push(name);
                    }
                }
            }
            (Some(mine), theirs) => {
                let raises = keyword.starts_with("min") || keyword == "exclusiveMinimum";
                let lowers = keyword.starts_with("max") || keyword == "exclusiveMaximum";
                let (one, two) = (number::as_double(mine), number::as_double(&theirs));
                if (raises && two > one) || (lowers && two.is_some() && two < one) {
                    *mine = theirs;
                }
            }
        }
    }
}

pub(super) fn texts(value: Option<&Value>) -> Vec<&str> {
    let items = value.and_then(Value::as_array);
    items.into_iter().flatten().filter_map(Value::as_str).list()
}

pub(super) fn count(schema: &Map<String, Value>, keyword: &str) -> Option<usize> {
    let count = number::as_double(schema.get(keyword)?)?;
    usize::try_from(number::whole(count.round())?).ok()
}

/// A bound and whether it is exclusive, in any of its spellings.
fn bound(schema: &Map<String, Value>, inclusive: &str, exclusive: &str) -> Option<(f64, bool)> {
    let plain = schema.get(inclusive).and_then(number::as_double);
    match schema.get(exclusive) {
        Some(Value::Bool(is_exclusive)) => plain.map(|bound| (bound, *is_exclusive)),
        Some(value) => number::as_double(value).map(|bound| (bound, true)),
        None => plain.map(|bound| (bound, false)),
    }
}

pub(super) fn fits(schema: &Map<String, Value>, is_integer: bool, number: f64) -> bool {
    let above = bound(schema, "minimum", "exclusiveMinimum")
        .is_none_or(|(min, is_exclusive)| number > min || (number == min && !is_exclusive));
    let below = bound(schema, "maximum", "exclusiveMaximum")
        .is_none_or(|(max, is_exclusive)| number < max || (number == max && !is_exclusive));
    let divisor = schema.get("multipleOf").and_then(number::as_double);
    let is_multiple = divisor.is_none_or(|divisor| {
        let quotient = number / divisor;
        (quotient - quotient.round()).abs() < 1e-9
    });
    above && below && is_multiple && (!is_integer || number.fract() == 0.0)
}

/// Numbers to try: round ones first, then those near the bounds.
pub(super) fn number_candidates(schema: &Map<String, Value>) -> Vec<f64> {
    let min = bound(schema, "minimum", "exclusiveMinimum").map(|(min, _)| min);
    let max = bound(schema, "maximum", "exclusiveMaximum").map(|(max, _)| max);
    let mut candidates = vec![1.0, 0.0];
    for bound in [min, max].into_iter().flatten() {
        candidates.extend([bound, bound.ceil(), bound.floor(), bound + 1.0, bound - 1.0]);
        candidates.extend([bound.floor() + 1.0, bound.ceil() - 1.0]);
        if let Some(step) = schema.get("multipleOf").and_then(number::as_double) {
            let nearest = (bound / step).round();
            candidates.extend([nearest, nearest + 1.0, nearest - 1.0].map(|count| count * step));
        }
    }
    if let (Some(min), Some(max)) = (min, max) {
        candidates.push(min.midpoint(max));
    }
    candidates.extend(schema.get("multipleOf").and_then(number::as_double));
    candidates
}

/// Digits after the point that a multiple of the schema's `multipleOf` may have; absent = as many as needed.
pub(super) fn decimals(schema: &Map<String, Value>) -> Option<usize> {
    let step = json::text(schema.get("multipleOf")?);
    if step.contains(['e', 'E']) {
        return None;
    }
    Some(step.split_once('.').map_or(0, |(_, fraction)| fraction.len()))
}

/// Written without the rounding faults of a float: three steps of 0.1 are 0.3.
pub(super) fn json_number(number: f64, decimals: Option<usize>) -> Option<Number> {
    let scale = decimals.map_or(1.0, |count| (0..count).fold(1.0, |scale, _| scale * 10.0));
    let rounded = (number * scale).round() / scale;
    let exact = if decimals.is_some() && rounded.is_finite() {
        rounded
    } else {
        number
    };
    number::text(exact).parse().ok()
}

pub(super) fn rounded(count: usize) -> f64 {
    u32::try_from(count).map_or(f64::from(u32::MAX), f64::from)
}

/// A text cut or drawn out to the schema's length.
pub(super) fn fitted(schema: &Map<String, Value>, text: String) -> Value {
    let min_count = count(schema, "minLength").unwrap_or(0);
    let max_count = count(schema, "maxLength").unwrap_or(usize::MAX);
    let filler = if text.is_empty() { "example" } else { &text };
    let missing = min_count
        .min(CHARACTERS_MAX_COUNT)
        .saturating_sub(text.chars().count());
    let drawn_out = text.chars().chain(filler.chars().cycle().take(missing));
    Value::String(drawn_out.take(max_count).collect())
}

pub(super) fn format_sample(format: &str) -> Option<&'static str> {
    Some(match format {
        "date" => "2027-01-15",
        "time" => "09:30:00Z",
        "date-time" => "2027-01-15T09:30:00Z",
        "duration" => "PT30M",
        "email" => "ada@example.com",
        "uri" | "url" => "https://example.com/",
        "uuid" => "00000000-0000-4000-8000-000000000000",
        "hostname" => "example.com",
        "ipv4" => "192.0.2.1",
        "ipv6" => "2001:db8::1",
        _ => return None,
    })
}
