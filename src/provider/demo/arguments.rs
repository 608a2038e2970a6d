//! A JSON Schema and a person's words -> a value that fits the schema.
//!
//! Values named in the text win, then `const`, `enum`, `default`, `examples`, then something small that fits. What the
//! schema checker judges but a generator would have to search for (`not`, `if`, `contains` with a maximum) is left to
//! luck.

use std::cell::Cell;

use serde_json::{Map, Value};

use super::shape::{
    Kind, count, decimals, fits, fitted, format_sample, is_null, json_number, kind, merge, number_candidates,
    rounded, sample, texts,
};
use super::words::{Words, name_words};
use crate::platform::lower_case;
use crate::protocol::json;
use crate::protocol::number;
use crate::protocol::parts;

/// Deeper than this only what a schema requires is generated.
const OPTIONAL_DEPTH_MAX: usize = 4;

/// Deeper than this nothing is: a schema that requires itself has no finite value.
const DEPTH_MAX: usize = 32;

/// Schemas looked at for one value: small schemas can describe values without end.
const WORK_MAX: u32 = 5_000;

/// Most items or properties generated because a schema asks for them.
const MINIMUM_MAX_COUNT: usize = 200;

/// Property names whose value is a whole sentence.
const SENTENCES: &[&str] = &[
    "message",
    "text",
    "query",
    "content",
    "prompt",
    "question",
    "input",
    "body",
    "description",
    "title",
    "note",
    "comment",
    "task",
    "reason",
    "summary",
    "search",
    "subject",
];

const PLACES: &[&str] = &[
    "city",
    "location",
    "place",
    "country",
    "address",
    "destination",
    "region",
];

const OFF_WORDS: &[&str] = &[
    "off", "false", "no", "disable", "disabled", "hide", "close", "stop", "not",
];

/// A value for `schema`, which is also the document its `$ref`s point into. `text` is searched for values; `sentence`
/// is what a property without a value of its own gets if it holds sentences.
pub(super) fn generate(schema: &Value, text: &str, sentence: &str) -> Value {
    let mut generator = Generator {
        document: schema,
        sentence,
        words: Words::of(text),
        work_left: Cell::new(WORK_MAX),
        numbers_used: 0,
        quotes_used: 0,
    };
    generator.value(schema, "", 0)
}

/// The arguments of a call: always an object.
pub(super) fn generate_arguments(schema: Option<&Value>, text: &str, sentence: &str) -> Value {
    match schema.map(|schema| generate(schema, text, sentence)) {
        Some(Value::Object(object)) => Value::Object(object),
        Some(_) | None => Value::Object(Map::new()),
    }
}

struct Generator<'a> {
    document: &'a Value,
    sentence: &'a str,
    words: Words<'a>,
    work_left: Cell<u32>,
    numbers_used: usize,
    quotes_used: usize,
}

impl Generator<'_> {
    fn value(&mut self, schema: &Value, name: &str, depth: usize) -> Value {
        if depth > DEPTH_MAX || self.work_left.get() == 0 {
            return Value::Null;
        }
        let schema = self.flattened(schema, depth);
        if let Some(value) = schema.get("const") {
            return value.clone();
        }
        if let Some(allowed) = schema.get("enum").and_then(Value::as_array) {
            return self.one_of(allowed);
        }
        let sample = sample(&schema);
        match kind(&schema) {
            Kind::Object => match sample {
                Some(object @ Value::Object(_)) => object,
                Some(_) | None => self.object(&schema, depth),
            },
            Kind::Array => sample.unwrap_or_else(|| self.array(&schema, name, depth)),
            Kind::Number { is_integer } => self.number(&schema, is_integer, sample),
            Kind::Boolean => {
                let said = self.words.has_any(OFF_WORDS).then_some(Value::Bool(false));
                said.or(sample).unwrap_or(Value::Bool(true))
            }
            Kind::String => self.string(&schema, name, sample),
            Kind::Null => Value::Null,
        }
    }

    /// The schema with its reference followed, its `allOf` merged in and its first sensible alternative chosen.
    fn flattened(&self, schema: &Value, depth: usize) -> Map<String, Value> {
        let mut flat = schema.as_object().cloned().unwrap_or_default();
        let work_left = self.work_left.get().saturating_sub(1);
        self.work_left.set(work_left);
        if depth > DEPTH_MAX || work_left == 0 {
            return flat;
        }
        if let Some(reference) = flat.shift_remove("$ref") {
            let pointer = reference.as_str().and_then(|text| text.strip_prefix('#'));
            if let Some(target) = pointer.and_then(|pointer| json::at(self.document, pointer)) {
                merge(&mut flat, self.flattened(target, depth + 1));
            }
        }
        if let Some(Value::Array(all)) = flat.shift_remove("allOf") {
            for part in &all {
                merge(&mut flat, self.flattened(part, depth + 1));
            }
        }
        for keyword in ["oneOf", "anyOf"] {
            if let Some(Value::Array(alternatives)) = flat.shift_remove(keyword) {
                let flattened = alternatives.iter().map(|one| self.flattened(one, depth + 1));
                let (nulls, others): (Vec<_>, Vec<_>) = flattened.partition(is_null);
                if let Some(chosen) = others.into_iter().chain(nulls).next() {
                    merge(&mut flat, chosen);
                }
            }
        }
        flat
    }

    /// The allowed value the text names, else the first.
    fn one_of(&self, allowed: &[Value]) -> Value {
        let is_said = |value: &&Value| match value {
            Value::String(text) => {
                !text.is_empty() && (self.words.has(&lower_case(text)) || self.words.has(&name_words(text)))
            }
            Value::Number(number) => self.words.has(&number.to_string()),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => false,
        };
        let chosen = allowed.iter().find(is_said).or_else(|| allowed.first());
        chosen.cloned().unwrap_or(Value::Null)
    }

    fn object(&mut self, schema: &Map<String, Value>, depth: usize) -> Value {
        let mut object = Map::new();
        let empty = Map::new();
        let properties = schema
            .get("properties")
            .and_then(Value::as_object)
            .unwrap_or(&empty);
        let mut required = texts(schema.get("required"));
        let dependents = schema.get("dependentRequired").and_then(Value::as_object);
        for (name, property) in properties {
            let is_said = || self.words.after(&name_words(name)).is_some();
            let is_wanted = required.contains(&name.as_str()) || (depth < OPTIONAL_DEPTH_MAX && is_said());
            if is_wanted {
                object.insert(name.clone(), self.value(property, name, depth + 1));
                required.extend(texts(dependents.and_then(|dependents| dependents.get(name))));
            }
        }
        let additional = schema
            .get("additionalProperties")
            .cloned()
            .unwrap_or(Value::Bool(true));
        for name in required {
            if !object.contains_key(name) {
                let schema = properties.get(name).unwrap_or(&additional);
                object.insert(name.to_owned(), self.value(schema, name, depth + 1));
            }
        }
        let min_count = count(schema, "minProperties").unwrap_or(0).min(MINIMUM_MAX_COUNT);
        for (name, property) in properties {
            if object.len() < min_count && !object.contains_key(name) {
                object.insert(name.clone(), self.value(property, name, depth + 1));
            }
        }
        for number in 1..=min_count {
            if object.len() < min_count && additional != Value::Bool(false) {
                object.insert(
                    format!("property{number}"),
                    self.value(&additional, "", depth + 1),
                );
            }
        }
        Value::Object(object)
    }

    fn array(&mut self, schema: &Map<String, Value>, name: &str, depth: usize) -> Value {
        let mut items: Vec<Value> = Vec::new();
        let (prefix, rest) = match schema.get("items") {
            Some(Value::Array(prefix)) => (Some(prefix), schema.get("additionalItems")),
            rest => (schema.get("prefixItems").and_then(Value::as_array), rest),
        };
        for item in prefix.into_iter().flatten() {
            items.push(self.value(item, name, depth + 1));
        }
        let contained = schema.get("contains");
        let any = Value::Bool(true);
        let item = rest.filter(|item| **item != Value::Bool(false)).or(contained);
        let wish = usize::from(item.is_some() && depth < OPTIONAL_DEPTH_MAX);
        let contained_count = usize::from(contained.is_some());
        let min_count = count(schema, "minItems")
            .unwrap_or(0)
            .max(wish)
            .max(contained_count);
        let min_count = min_count.min(count(schema, "maxItems").unwrap_or(usize::MAX));
        let item = item.unwrap_or(&any);
        let is_unique = schema.get("uniqueItems") == Some(&Value::Bool(true));
        // A schema may ask for more distinct items than it allows values: the attempts are bounded.
        for attempt in 0..min_count.min(MINIMUM_MAX_COUNT) * 2 {
            if items.len() >= min_count {
                break;
            }
            let value = self.value(item, name, depth + 1);
            let value = if is_unique && items.contains(&value) {
                self.other_value(item, value, attempt)
            } else {
                value
            };
            if !is_unique || !items.contains(&value) {
                items.push(value);
            }
        }
        Value::Array(items)
    }

    /// A value beside `value`, for lists that must not repeat.
    fn other_value(&self, schema: &Value, value: Value, attempt: usize) -> Value {
        let schema = self.flattened(schema, 0);
        if let Some(allowed) = schema.get("enum").and_then(Value::as_array) {
            return allowed.get(attempt).cloned().unwrap_or(value);
        }
        match value {
            Value::Number(number) => {
                let step = schema
                    .get("multipleOf")
                    .and_then(number::as_double)
                    .unwrap_or(1.0);
                let sum = number::double(&number).map(|number| number + step * rounded(attempt));
                let numeric = sum.and_then(|sum| json_number(sum, decimals(&schema)));
                numeric.map_or(Value::Number(number), Value::Number)
            }
            Value::String(text) => fitted(&schema, format!("{attempt} {text}")),
            Value::Bool(is_on) => Value::Bool(!is_on),
            other @ (Value::Null | Value::Array(_) | Value::Object(_)) => other,
        }
    }

    /// The next number of the text if it fits, else the sample, else the first round number that fits.
    fn number(&mut self, schema: &Map<String, Value>, is_integer: bool, sample: Option<Value>) -> Value {
        let said = self.words.numbers().nth(self.numbers_used);
        let said = said.and_then(json::tree);
        if let Some(Value::Number(number)) = said {
            let fits = number::double(&number).is_some_and(|number| fits(schema, is_integer, number));
            if fits {
                self.numbers_used += 1;
                return Value::Number(number);
            }
        }
        sample.unwrap_or_else(|| {
            let candidates = number_candidates(schema);
            let chosen = candidates
                .into_iter()
                .find(|number| fits(schema, is_integer, *number));
            let number = json_number(chosen.unwrap_or(0.0), decimals(schema));
            number.map_or(Value::Null, Value::Number)
        })
    }

    fn string(&mut self, schema: &Map<String, Value>, name: &str, sample: Option<Value>) -> Value {
        let format = schema
            .get("format")
            .and_then(Value::as_str)
            .and_then(format_sample);
        let said = if format.is_some() {
            None
        } else {
            self.said_string(schema, name)
        };
        match (said, sample, format) {
            (Some(said), _, _) => fitted(schema, said),
            (None, Some(sample), _) => sample,
            (None, None, Some(format)) => Value::String(format.to_owned()),
            (None, None, None) => fitted(schema, self.invented_string(name)),
        }
    }

    /// What the text says about a property.
    fn said_string(&mut self, schema: &Map<String, Value>, name: &str) -> Option<String> {
        let name = name_words(name);
        let last = name.rsplit(' ').next().unwrap_or_default();
        let is_color = ["color", "colour", "background"].contains(&last);
        if is_color {
            let hints = ["pattern", "description"].map(|key| schema.get(key).and_then(Value::as_str));
            let as_hex = hints
                .iter()
                .flatten()
                .any(|hint| hint.contains(['#']) || parts::has(hint, "hex"));
            if let Some(color) = self.words.color(as_hex) {
                return Some(color.to_owned());
            }
        }
        if let Some(quote) = self.words.quotes().get(self.quotes_used) {
            self.quotes_used += 1;
            return Some((*quote).to_owned());
        }
        let named = self.words.after(&name).or_else(|| self.words.after(last));
        if let Some((first, _)) = named.and_then(<[_]>::split_first) {
            let is_sentence = SENTENCES.contains(&last);
            let said = if is_sentence {
                parts::join(named.unwrap_or_default(), " ")
            } else {
                (*first).to_owned()
            };
            return Some(said);
        }
        let is_place = PLACES.contains(&last);
        is_place.then(|| self.words.place()).flatten()
    }

    fn invented_string(&self, name: &str) -> String {
        let name = name_words(name);
        let holds_sentences = SENTENCES.iter().any(|sentence| name.ends_with(sentence));
        let invented = if holds_sentences { self.sentence } else { "example" };
        invented.to_owned()
    }
}
