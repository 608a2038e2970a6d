//! A schema document -> nodes. Subschemas are nodes of their own, so references are indices and circles cost nothing.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::decimal::Decimal;
use super::{
    ArrayKeyword, Combination, JsonType, Keyword, Node, NodeId, NumberKeyword, ObjectKeyword, SchemaFault,
    TextKeyword,
};
use crate::protocol::number;

/// Most subschemas of one document.
const NODES_MAX_COUNT: usize = 10_000;

/// Deepest nesting of subschemas, as deep as JSON itself may be nested.
const DEPTH_MAX: usize = 128;

pub(super) fn compile(document: &Value) -> Result<Vec<Node>, SchemaFault> {
    let mut compiler = Compiler {
        nodes: Vec::new(),
        by_pointer: HashMap::new(),
        referenced: Vec::new(),
    };
    compiler.node(document, String::new(), 0)?;
    // References wait in a list instead of on the stack: a chain of them may be as long as the document.
    while let Some((pointer, from)) = compiler.referenced.pop() {
        if !compiler.by_pointer.contains_key(&pointer) {
            let schema = document.pointer(&pointer);
            let schema = schema.ok_or(SchemaFault::UnknownReference { pointer: from })?;
            compiler.node(schema, pointer, 0)?;
        }
    }
    let nodes = compiler.link()?;
    refuse_circles(&nodes)?;
    Ok(nodes)
}

struct Compiler {
    nodes: Vec<(Node, Option<String>)>,
    by_pointer: HashMap<String, NodeId>,
    /// Pointers referred to, each with the pointer of the schema that refers.
    referenced: Vec<(String, String)>,
}

/// One schema object being compiled.
struct Source<'a> {
    object: &'a Map<String, Value>,
    pointer: String,
    depth: usize,
}

impl Source<'_> {
    fn malformed(&self, keyword: &'static str) -> SchemaFault {
        SchemaFault::MalformedKeyword {
            pointer: self.pointer.clone(),
            keyword,
        }
    }

    fn number(&self, keyword: &'static str) -> Result<Option<Decimal>, SchemaFault> {
        match self.object.get(keyword) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(Decimal::of(number))),
            Some(_) => Err(self.malformed(keyword)),
        }
    }

    fn count(&self, keyword: &'static str) -> Result<Option<u64>, SchemaFault> {
        let Some(value) = self.object.get(keyword) else {
            return Ok(None);
        };
        // `2.0` is a count too.
        let whole = |double| u64::try_from(number::whole(double)?).ok();
        value
            .as_u64()
            .or_else(|| number::as_double(value).and_then(whole))
            .map(Some)
            .ok_or_else(|| self.malformed(keyword))
    }

    fn strings(&self, keyword: &'static str, value: &Value) -> Result<Vec<String>, SchemaFault> {
        let texts = value.as_array().and_then(|items| {
            items
                .iter()
                .map(|item| item.as_str().map(str::to_owned))
                .collect()
        });
        texts.ok_or_else(|| self.malformed(keyword))
    }

    fn child_pointer(&self, tokens: &[&str]) -> String {
        let mut pointer = self.pointer.clone();
        for token in tokens {
            pointer.push('/');
            pointer.push_str(&token.replace('~', "~0").replace('/', "~1"));
        }
        pointer
    }
}

impl Compiler {
    fn node(&mut self, schema: &Value, pointer: String, depth: usize) -> Result<NodeId, SchemaFault> {
        if let Some(id) = self.by_pointer.get(&pointer) {
            return Ok(*id);
        }
        if self.nodes.len() >= NODES_MAX_COUNT || depth > DEPTH_MAX {
            return Err(SchemaFault::TooLarge);
        }
        let id = self.nodes.len();
        self.nodes.push((Vec::new(), None));
        self.by_pointer.insert(pointer.clone(), id);
        let (keywords, target) = match schema {
            Value::Bool(true) => (Vec::new(), None),
            Value::Bool(false) => (vec![Keyword::Never], None),
            Value::Object(object) => {
                let source = Source {
                    object,
                    pointer,
                    depth,
                };
                let target = self.reference(&source)?;
                let mut keywords = values(&source)?;
                keywords.extend(numbers(&source)?.into_iter().map(Keyword::Number));
                keywords.extend(texts(&source)?.into_iter().map(Keyword::Text));
                keywords.extend(self.arrays(&source)?.into_iter().map(Keyword::Array));
                keywords.extend(self.objects(&source)?.into_iter().map(Keyword::Object));
                keywords.extend(self.combinations(&source)?.into_iter().map(Keyword::Combination));
                (keywords, target)
            }
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err(SchemaFault::NotASchema { pointer });
            }
        };
        if let Some(node) = self.nodes.get_mut(id) {
            *node = (keywords, target);
        }
        Ok(id)
    }

    /// Turns the pointers of references into node ids.
    fn link(self) -> Result<Vec<Node>, SchemaFault> {
        let by_pointer = self.by_pointer;
        let link = |(mut keywords, target): (Node, Option<String>)| {
            if let Some(pointer) = target {
                let id = by_pointer.get(&pointer).copied();
                let id = id.ok_or(SchemaFault::UnknownReference { pointer })?;
                keywords.insert(0, Keyword::Combination(Combination::Reference(id)));
            }
            Ok(keywords)
        };
        self.nodes.into_iter().map(link).collect()
    }

    /// The pointer a schema refers to, queued for compilation.
    fn reference(&mut self, source: &Source<'_>) -> Result<Option<String>, SchemaFault> {
        let unknown = || SchemaFault::UnknownReference {
            pointer: source.pointer.clone(),
        };
        let dynamic = ["$dynamicRef", "$recursiveRef"];
        if dynamic.iter().any(|keyword| source.object.contains_key(*keyword)) {
            return Err(unknown());
        }
        let Some(reference) = source.object.get("$ref") else {
            return Ok(None);
        };
        let text = reference.as_str().ok_or_else(|| source.malformed("$ref"))?;
        let fragment = text
            .strip_prefix('#')
            .and_then(percent_decoded)
            .ok_or_else(unknown)?;
        if !fragment.is_empty() && !fragment.starts_with('/') {
            return Err(unknown());
        }
        self.referenced.push((fragment.clone(), source.pointer.clone()));
        Ok(Some(fragment))
    }

    fn child(&mut self, source: &Source<'_>, keyword: &str) -> Result<Option<NodeId>, SchemaFault> {
        let compile = |schema| self.node(schema, source.child_pointer(&[keyword]), source.depth + 1);
        source.object.get(keyword).map(compile).transpose()
    }

    fn list(
        &mut self,
        source: &Source<'_>,
        keyword: &'static str,
    ) -> Result<Option<Vec<NodeId>>, SchemaFault> {
        let Some(value) = source.object.get(keyword) else {
            return Ok(None);
        };
        let schemas = value.as_array().ok_or_else(|| source.malformed(keyword))?;
        let compile = |(index, schema): (usize, &Value)| {
            let pointer = source.child_pointer(&[keyword, &index.to_string()]);
            self.node(schema, pointer, source.depth + 1)
        };
        schemas
            .iter()
            .enumerate()
            .map(compile)
            .collect::<Result<_, _>>()
            .map(Some)
    }

    fn arrays(&mut self, source: &Source<'_>) -> Result<Vec<ArrayKeyword>, SchemaFault> {
        let mut keywords = Vec::new();
        keywords.extend(source.count("minItems")?.map(ArrayKeyword::MinItems));
        keywords.extend(source.count("maxItems")?.map(ArrayKeyword::MaxItems));
        if source.object.get("uniqueItems") == Some(&Value::Bool(true)) {
            keywords.push(ArrayKeyword::UniqueItems);
        }
        // Draft 7: `items` as a list is what 2020-12 calls `prefixItems`, and `additionalItems` its `items`.
        let is_draft_7 = source.object.get("items").is_some_and(Value::is_array);
        let (prefix, rest) = if is_draft_7 {
            (
                self.list(source, "items")?,
                self.child(source, "additionalItems")?,
            )
        } else {
            (self.list(source, "prefixItems")?, self.child(source, "items")?)
        };
        let from = prefix.as_ref().map_or(0, Vec::len);
        keywords.extend(prefix.map(ArrayKeyword::PrefixItems));
        keywords.extend(rest.map(|schema| ArrayKeyword::Items { from, schema }));
        if let Some(schema) = self.child(source, "contains")? {
            let min = source.count("minContains")?.unwrap_or(1);
            let max = source.count("maxContains")?;
            keywords.push(ArrayKeyword::Contains { schema, min, max });
        }
        Ok(keywords)
    }

    fn objects(&mut self, source: &Source<'_>) -> Result<Vec<ObjectKeyword>, SchemaFault> {
        let mut keywords = Vec::new();
        keywords.extend(source.count("minProperties")?.map(ObjectKeyword::MinProperties));
        keywords.extend(source.count("maxProperties")?.map(ObjectKeyword::MaxProperties));
        if let Some(required) = source.object.get("required") {
            keywords.push(ObjectKeyword::Required(source.strings("required", required)?));
        }
        let mut known = HashSet::new();
        if let Some(properties) = source.object.get("properties") {
            let properties = properties
                .as_object()
                .ok_or_else(|| source.malformed("properties"))?;
            known = properties.keys().cloned().collect();
            let compile = |(name, schema): (&String, &Value)| {
                let pointer = source.child_pointer(&["properties", name]);
                Ok((name.clone(), self.node(schema, pointer, source.depth + 1)?))
            };
            let properties = properties
                .iter()
                .map(compile)
                .collect::<Result<_, SchemaFault>>()?;
            keywords.push(ObjectKeyword::Properties(properties));
        }
        if !source.object.contains_key("patternProperties") {
            let additional = self.child(source, "additionalProperties")?;
            keywords.extend(additional.map(|schema| ObjectKeyword::AdditionalProperties { known, schema }));
        }
        keywords.extend(
            self.child(source, "propertyNames")?
                .map(ObjectKeyword::PropertyNames),
        );
        if let Some(dependents) = source.object.get("dependentRequired") {
            let malformed = || source.malformed("dependentRequired");
            let read = |(name, names): (&String, &Value)| {
                Ok((name.clone(), source.strings("dependentRequired", names)?))
            };
            let dependents = dependents.as_object().ok_or_else(malformed)?.iter().map(read);
            keywords.push(ObjectKeyword::DependentRequired(
                dependents.collect::<Result<_, SchemaFault>>()?,
            ));
        }
        Ok(keywords)
    }

    fn combinations(&mut self, source: &Source<'_>) -> Result<Vec<Combination>, SchemaFault> {
        let mut keywords = Vec::new();
        keywords.extend(self.list(source, "allOf")?.map(Combination::AllOf));
        keywords.extend(self.list(source, "anyOf")?.map(Combination::AnyOf));
        keywords.extend(self.list(source, "oneOf")?.map(Combination::OneOf));
        keywords.extend(self.child(source, "not")?.map(Combination::Not));
        if let Some(condition) = self.child(source, "if")? {
            keywords.push(Combination::If {
                condition,
                then: self.child(source, "then")?,
                otherwise: self.child(source, "else")?,
            });
        }
        Ok(keywords)
    }
}

fn values(source: &Source<'_>) -> Result<Vec<Keyword>, SchemaFault> {
    let mut keywords = Vec::new();
    let malformed = || source.malformed("type");
    match source.object.get("type") {
        None => {}
        Some(Value::String(name)) => {
            keywords.push(Keyword::Type(vec![JsonType::parse(name).ok_or_else(malformed)?]));
        }
        Some(value) => {
            let names = source.strings("type", value)?;
            let types = names.iter().map(|name| JsonType::parse(name));
            keywords.push(Keyword::Type(types.collect::<Option<_>>().ok_or_else(malformed)?));
        }
    }
    if let Some(values) = source.object.get("enum") {
        let values = values.as_array().ok_or_else(|| source.malformed("enum"))?;
        keywords.push(Keyword::Enum(values.clone()));
    }
    if let Some(value) = source.object.get("const") {
        keywords.push(Keyword::Enum(vec![value.clone()]));
    }
    Ok(keywords)
}

fn numbers(source: &Source<'_>) -> Result<Vec<NumberKeyword>, SchemaFault> {
    let mut keywords = Vec::new();
    keywords.extend(bounds(
        source,
        ["minimum", "exclusiveMinimum"],
        [NumberKeyword::Minimum, NumberKeyword::ExclusiveMinimum],
    )?);
    keywords.extend(bounds(
        source,
        ["maximum", "exclusiveMaximum"],
        [NumberKeyword::Maximum, NumberKeyword::ExclusiveMaximum],
    )?);
    if let Some(divisor) = source.number("multipleOf")? {
        if !divisor.is_positive() {
            return Err(source.malformed("multipleOf"));
        }
        keywords.push(NumberKeyword::MultipleOf(divisor));
    }
    Ok(keywords)
}

/// A bound and its exclusive form, which draft 4 and OpenAPI 3.0 write as a boolean beside the bound.
fn bounds(
    source: &Source<'_>,
    [name, exclusive_name]: [&'static str; 2],
    [inclusive, exclusive]: [fn(Decimal) -> NumberKeyword; 2],
) -> Result<Vec<NumberKeyword>, SchemaFault> {
    let bound = source.number(name)?;
    let flag = source.object.get(exclusive_name).and_then(Value::as_bool);
    let (bound, exclusive_bound) = match flag {
        Some(true) => (None, bound),
        Some(false) => (bound, None),
        None => (bound, source.number(exclusive_name)?),
    };
    Ok(bound
        .map(inclusive)
        .into_iter()
        .chain(exclusive_bound.map(exclusive))
        .collect())
}

fn texts(source: &Source<'_>) -> Result<Vec<TextKeyword>, SchemaFault> {
    let mut keywords = Vec::new();
    keywords.extend(source.count("minLength")?.map(TextKeyword::MinLength));
    keywords.extend(source.count("maxLength")?.map(TextKeyword::MaxLength));
    Ok(keywords)
}

/// Refuses nodes that reach themselves without going deeper into the value: checking them would never end.
fn refuse_circles(nodes: &[Node]) -> Result<(), SchemaFault> {
    #[derive(Clone, Copy, PartialEq)]
    enum State {
        New,
        Open,
        Done,
    }
    let mut states = vec![State::New; nodes.len()];
    for root in 0..nodes.len() {
        // Depth first with an explicit stack; `true` marks the way back.
        let mut stack = vec![(root, false)];
        while let Some((id, is_leaving)) = stack.pop() {
            let Some(state) = states.get_mut(id) else { continue };
            if is_leaving {
                *state = State::Done;
                continue;
            }
            match *state {
                State::Done => continue,
                State::Open => return Err(SchemaFault::EndlessReference),
                State::New => *state = State::Open,
            }
            stack.push((id, true));
            for keyword in nodes.get(id).into_iter().flatten() {
                if let Keyword::Combination(combination) = keyword {
                    stack.extend(combination.nodes().into_iter().map(|id| (id, false)));
                }
            }
        }
    }
    Ok(())
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let mut digit = || rest.next().and_then(|digit| char::from(digit).to_digit(16));
            bytes.push(u8::try_from(digit()? * 16 + digit()?).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}
