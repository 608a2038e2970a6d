//! A schema document -> nodes. Subschemas are nodes of their own, so references are indices and circles cost nothing.

use serde_json::{Map, Value};

use super::decimal::Decimal;
use super::{
    ArrayKeyword, Bound, Combination, Comparison, Counted, JsonType, Keyword, Node, NodeId, ObjectKeyword,
    SchemaFault,
};
use crate::protocol::index::{Index, KeySet};
use crate::protocol::{json, number};

/// Most subschemas of one document.
const NODES_MAX_COUNT: usize = 10_000;

/// Deepest nesting of subschemas, as deep as JSON itself may be nested.
const DEPTH_MAX: usize = 128;

/// Boxed: it is handed on at every keyword.
type Fault = Box<SchemaFault>;

pub(super) fn compile(document: &Value) -> Result<Vec<Node>, Fault> {
    let mut compiler = Compiler {
        nodes: Vec::new(),
        by_pointer: Index::default(),
        referenced: Vec::new(),
    };
    compiler.node(document, String::new(), 0)?;
    // References wait in a list instead of on the stack: a chain of them may be as long as the document.
    while let Some((pointer, from)) = compiler.referenced.pop() {
        if !compiler.by_pointer.contains(&pointer) {
            let schema = json::at(document, &pointer);
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
    by_pointer: Index<String, NodeId>,
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
    fn malformed(&self, keyword: &'static str) -> Fault {
        let pointer = self.pointer.clone();
        Box::new(SchemaFault::MalformedKeyword { pointer, keyword })
    }

    fn number(&self, keyword: &'static str) -> Result<Option<Decimal>, Fault> {
        match self.object.get(keyword) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(Decimal::of(number))),
            Some(_) => Err(self.malformed(keyword)),
        }
    }

    fn count(&self, keyword: &'static str) -> Result<Option<u64>, Fault> {
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

    fn strings(&self, keyword: &'static str, value: &Value) -> Result<Vec<String>, Fault> {
        let items = value.as_array().ok_or_else(|| self.malformed(keyword))?;
        let mut texts = Vec::new();
        for item in items {
            let text = item.as_str().ok_or_else(|| self.malformed(keyword))?;
            texts.push(text.to_owned());
        }
        Ok(texts)
    }

    fn members(&self, keyword: &'static str) -> Result<Option<&Map<String, Value>>, Fault> {
        match self.object.get(keyword) {
            None => Ok(None),
            Some(Value::Object(members)) => Ok(Some(members)),
            Some(_) => Err(self.malformed(keyword)),
        }
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
    fn node(&mut self, schema: &Value, pointer: String, depth: usize) -> Result<NodeId, Fault> {
        if let Some(id) = self.by_pointer.get(pointer.as_str()) {
            return Ok(*id);
        }
        if self.nodes.len() >= NODES_MAX_COUNT || depth > DEPTH_MAX {
            return Err(SchemaFault::TooLarge.into());
        }
        let id = self.nodes.len();
        self.nodes.push((Vec::new(), None));
        self.by_pointer.add(pointer.clone(), id);
        let (mut keywords, mut target) = (Vec::new(), None);
        match schema {
            Value::Bool(true) => {}
            Value::Bool(false) => keywords.push(Keyword::Never),
            Value::Object(object) => {
                let source = Source {
                    object,
                    pointer,
                    depth,
                };
                target = self.reference(&source)?;
                values(&source, &mut keywords)?;
                numbers(&source, &mut keywords)?;
                counts(&source, &mut keywords)?;
                self.arrays(&source, &mut keywords)?;
                self.objects(&source, &mut keywords)?;
                self.combinations(&source, &mut keywords)?;
            }
            Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err(SchemaFault::NotASchema { pointer }.into());
            }
        }
        if let Some(node) = self.nodes.get_mut(id) {
            *node = (keywords, target);
        }
        Ok(id)
    }

    /// Turns the pointers of references into node ids.
    fn link(self) -> Result<Vec<Node>, Fault> {
        let mut nodes = Vec::with_capacity(self.nodes.len());
        for (mut keywords, target) in self.nodes {
            if let Some(pointer) = target {
                let id = self.by_pointer.get(pointer.as_str()).copied();
                let id = id.ok_or(SchemaFault::UnknownReference { pointer })?;
                keywords.insert(0, Keyword::Combination(Combination::Reference(id)));
            }
            nodes.push(keywords);
        }
        Ok(nodes)
    }

    /// The pointer a schema refers to, queued for compilation.
    fn reference(&mut self, source: &Source<'_>) -> Result<Option<String>, Fault> {
        let unknown = || {
            let pointer = source.pointer.clone();
            Fault::from(SchemaFault::UnknownReference { pointer })
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

    fn child(&mut self, source: &Source<'_>, keyword: &str) -> Result<Option<NodeId>, Fault> {
        let Some(schema) = source.object.get(keyword) else {
            return Ok(None);
        };
        let pointer = source.child_pointer(&[keyword]);
        self.node(schema, pointer, source.depth + 1).map(Some)
    }

    fn list(&mut self, source: &Source<'_>, keyword: &'static str) -> Result<Option<Vec<NodeId>>, Fault> {
        let Some(value) = source.object.get(keyword) else {
            return Ok(None);
        };
        let schemas = value.as_array().ok_or_else(|| source.malformed(keyword))?;
        let mut list = Vec::new();
        for (index, schema) in schemas.iter().enumerate() {
            let pointer = source.child_pointer(&[keyword, &index.to_string()]);
            list.push(self.node(schema, pointer, source.depth + 1)?);
        }
        Ok(Some(list))
    }

    fn arrays(&mut self, source: &Source<'_>, keywords: &mut Vec<Keyword>) -> Result<(), Fault> {
        if source.object.get("uniqueItems") == Some(&Value::Bool(true)) {
            keywords.push(Keyword::Array(ArrayKeyword::UniqueItems));
        }
        // Draft 7: `items` as a list is what 2020-12 calls `prefixItems`, and `additionalItems` its `items`.
        let is_draft_7 = source.object.get("items").is_some_and(Value::is_array);
        let (prefix, rest) = if is_draft_7 {
            ("items", "additionalItems")
        } else {
            ("prefixItems", "items")
        };
        let (prefix, rest) = (self.list(source, prefix)?, self.child(source, rest)?);
        let from = prefix.as_ref().map_or(0, Vec::len);
        if let Some(schemas) = prefix {
            keywords.push(Keyword::Array(ArrayKeyword::PrefixItems(schemas)));
        }
        if let Some(schema) = rest {
            keywords.push(Keyword::Array(ArrayKeyword::Items { from, schema }));
        }
        if let Some(schema) = self.child(source, "contains")? {
            let min = source.count("minContains")?.unwrap_or(1);
            let max = source.count("maxContains")?;
            keywords.push(Keyword::Array(ArrayKeyword::Contains { schema, min, max }));
        }
        Ok(())
    }

    fn objects(&mut self, source: &Source<'_>, keywords: &mut Vec<Keyword>) -> Result<(), Fault> {
        if let Some(required) = source.object.get("required") {
            keywords.push(Keyword::Object(ObjectKeyword::Required(
                source.strings("required", required)?,
            )));
        }
        let mut known = KeySet::default();
        if let Some(members) = source.members("properties")? {
            let mut properties = Vec::new();
            for (name, schema) in members {
                let pointer = source.child_pointer(&["properties", name]);
                properties.push((name.clone(), self.node(schema, pointer, source.depth + 1)?));
                known.insert(name.as_str().into());
            }
            keywords.push(Keyword::Object(ObjectKeyword::Properties(properties)));
        }
        if !source.object.contains_key("patternProperties")
            && let Some(schema) = self.child(source, "additionalProperties")?
        {
            keywords.push(Keyword::Object(ObjectKeyword::AdditionalProperties {
                known,
                schema,
            }));
        }
        if let Some(schema) = self.child(source, "propertyNames")? {
            keywords.push(Keyword::Object(ObjectKeyword::PropertyNames(schema)));
        }
        if let Some(members) = source.members("dependentRequired")? {
            let mut dependents = Vec::new();
            for (name, names) in members {
                dependents.push((name.clone(), source.strings("dependentRequired", names)?));
            }
            keywords.push(Keyword::Object(ObjectKeyword::DependentRequired(dependents)));
        }
        Ok(())
    }

    fn combinations(&mut self, source: &Source<'_>, keywords: &mut Vec<Keyword>) -> Result<(), Fault> {
        for (keyword, of_list) in [
            ("allOf", Combination::AllOf as fn(_) -> _),
            ("anyOf", Combination::AnyOf),
            ("oneOf", Combination::OneOf),
        ] {
            if let Some(schemas) = self.list(source, keyword)? {
                keywords.push(Keyword::Combination(of_list(schemas)));
            }
        }
        if let Some(schema) = self.child(source, "not")? {
            keywords.push(Keyword::Combination(Combination::Not(schema)));
        }
        if let Some(condition) = self.child(source, "if")? {
            keywords.push(Keyword::Combination(Combination::If {
                condition,
                then: self.child(source, "then")?,
                otherwise: self.child(source, "else")?,
            }));
        }
        Ok(())
    }
}

fn values(source: &Source<'_>, keywords: &mut Vec<Keyword>) -> Result<(), Fault> {
    if let Some(value) = source.object.get("type") {
        let names = match value {
            Value::String(name) => vec![name.clone()],
            value => source.strings("type", value)?,
        };
        let types = names.iter().map(|name| JsonType::parse(name));
        let types: Option<_> = types.collect();
        keywords.push(Keyword::Type(types.ok_or_else(|| source.malformed("type"))?));
    }
    if let Some(values) = source.object.get("enum") {
        let values = values.as_array().ok_or_else(|| source.malformed("enum"))?;
        keywords.push(Keyword::Enum(values.clone()));
    }
    if let Some(value) = source.object.get("const") {
        keywords.push(Keyword::Enum(vec![value.clone()]));
    }
    Ok(())
}

/// A bound and its exclusive form, which draft 4 and OpenAPI 3.0 write as a boolean beside the bound.
const NUMBERS: [[(&str, Comparison); 2]; 2] = [
    [
        ("minimum", Comparison::Minimum),
        ("exclusiveMinimum", Comparison::ExclusiveMinimum),
    ],
    [
        ("maximum", Comparison::Maximum),
        ("exclusiveMaximum", Comparison::ExclusiveMaximum),
    ],
];

fn numbers(source: &Source<'_>, keywords: &mut Vec<Keyword>) -> Result<(), Fault> {
    for [(name, inclusive), (exclusive_name, exclusive)] in NUMBERS {
        let bound = source.number(name)?;
        let flag = source.object.get(exclusive_name).and_then(Value::as_bool);
        let (bound, exclusive_bound) = match flag {
            Some(true) => (None, bound),
            Some(false) => (bound, None),
            None => (bound, source.number(exclusive_name)?),
        };
        for (comparison, bound) in [(inclusive, bound), (exclusive, exclusive_bound)] {
            if let Some(bound) = bound {
                keywords.push(Keyword::Number(comparison, bound));
            }
        }
    }
    if let Some(divisor) = source.number("multipleOf")? {
        if !divisor.is_positive() {
            return Err(source.malformed("multipleOf"));
        }
        keywords.push(Keyword::Number(Comparison::MultipleOf, divisor));
    }
    Ok(())
}

const COUNTS: [(&str, Counted, Bound); 6] = [
    ("minLength", Counted::Characters, Bound::AtLeast),
    ("maxLength", Counted::Characters, Bound::AtMost),
    ("minItems", Counted::Items, Bound::AtLeast),
    ("maxItems", Counted::Items, Bound::AtMost),
    ("minProperties", Counted::Properties, Bound::AtLeast),
    ("maxProperties", Counted::Properties, Bound::AtMost),
];

fn counts(source: &Source<'_>, keywords: &mut Vec<Keyword>) -> Result<(), Fault> {
    for (name, counted, bound) in COUNTS {
        if let Some(limit) = source.count(name)? {
            keywords.push(Keyword::Count(counted, bound, limit));
        }
    }
    Ok(())
}

/// Refuses nodes that reach themselves without going deeper into the value: checking them would never end.
fn refuse_circles(nodes: &[Node]) -> Result<(), Fault> {
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
                State::Open => return Err(SchemaFault::EndlessReference.into()),
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
