//! Nodes and a value -> violations.

use serde_json::{Map, Value};

use super::decimal::Decimal;
use super::{
    ArrayKeyword, Bound, Combination, Comparison, Counted, JsonType, Keyword, Node, NodeId, ObjectKeyword,
    VIOLATIONS_MAX_COUNT, Violation,
};
use crate::list::List;
use crate::protocol::json;
use crate::protocol::parts;

/// Keywords applied, values compared, names looked up and texts counted (64 bytes are one) in one check. Alternatives
/// inside alternatives multiply: without a bound a small schema could keep us busy without end.
const WORK_MAX: u32 = 100_000;

/// Bytes of a text that cost as much as a keyword.
const BYTES_PER_WORK: usize = 64;

/// Deepest chain of schemas applied inside each other: JSON nests 128 levels, each a property and a reference. The stack
/// of the platform is one megabyte.
const DEPTH_MAX: u32 = 256;

/// Longest list of allowed values quoted in a message, in bytes.
const QUOTE_MAX_BYTES: usize = 400;

pub(super) fn check(nodes: &[Node], value: &Value) -> Result<(), Vec<Violation>> {
    let mut checker = Checker {
        nodes,
        work_left: WORK_MAX,
        depth: 0,
        violations_max_count: VIOLATIONS_MAX_COUNT,
    };
    let mut violations = Vec::new();
    checker.apply(0, value, &Place::Root, &mut violations);
    violations.truncate(VIOLATIONS_MAX_COUNT);
    // Once the work is used up nothing is judged any more, and what was said last may be wrong: nothing valid is refused.
    if violations.is_empty() || checker.work_left == 0 {
        Ok(())
    } else {
        Err(violations)
    }
}

/// Where in the value we are, as a list through the stack: a pointer is written only for a violation.
enum Place<'p> {
    Root,
    Property(&'p Place<'p>, &'p str),
    Item(&'p Place<'p>, usize),
}

impl Place<'_> {
    fn pointer(&self) -> String {
        let mut pointer = String::new();
        self.write_pointer(&mut pointer);
        pointer
    }

    fn write_pointer(&self, pointer: &mut String) {
        match self {
            Self::Root => {}
            Self::Property(parent, name) => {
                parent.write_pointer(pointer);
                pointer.push('/');
                pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
            }
            Self::Item(parent, index) => {
                parent.write_pointer(pointer);
                pointer.push_str(&format!("/{index}"));
            }
        }
    }

    fn violation(&self, message: impl Into<String>) -> Violation {
        Violation {
            pointer: self.pointer(),
            message: message.into(),
        }
    }
}

struct Checker<'s> {
    nodes: &'s [Node],
    work_left: u32,
    depth: u32,
    /// One while only the verdict counts.
    violations_max_count: usize,
}

impl Checker<'_> {
    fn apply(&mut self, id: NodeId, value: &Value, place: &Place<'_>, out: &mut Vec<Violation>) {
        if self.depth >= DEPTH_MAX {
            self.work_left = 0;
            return;
        }
        self.depth += 1;
        let nodes = self.nodes;
        for keyword in nodes.get(id).into_iter().flatten() {
            if out.len() < self.violations_max_count && self.can_work() {
                self.apply_keyword(keyword, value, place, out);
            }
        }
        self.depth -= 1;
    }

    fn apply_keyword(
        &mut self,
        keyword: &Keyword,
        value: &Value,
        place: &Place<'_>,
        out: &mut Vec<Violation>,
    ) {
        match (keyword, value) {
            (Keyword::Never, _) => out.push(place.violation("must not be here")),
            (Keyword::Type(types), _) => out.extend(check_type(types, value, place)),
            (Keyword::Enum(allowed), _) => {
                let is_among = allowed.iter().any(|allowed| self.is_equal(allowed, value));
                if !is_among && self.can_work() {
                    out.push(none_of(allowed, place));
                }
            }
            (Keyword::Number(comparison, limit), Value::Number(number)) => {
                out.extend(check_number(*comparison, &Decimal::of(number), limit, place));
            }
            (Keyword::Count(counted, bound, limit), _) => {
                if let Some((count, what)) = self.count(*counted, value) {
                    out.extend(check_count(*bound, *limit, count, what, place));
                }
            }
            (Keyword::Array(keyword), Value::Array(items)) => self.apply_to_array(keyword, items, place, out),
            (Keyword::Object(keyword), Value::Object(object)) => {
                self.apply_to_object(keyword, object, place, out);
            }
            (Keyword::Combination(combination), _) => self.combine(combination, value, place, out),
            (Keyword::Number(..) | Keyword::Array(_) | Keyword::Object(_), _) => {}
        }
    }

    fn can_work(&mut self) -> bool {
        self.spend(1)
    }

    /// Whether there is work left after this much.
    fn spend(&mut self, work: usize) -> bool {
        let work = u32::try_from(work).unwrap_or(u32::MAX);
        self.work_left = self.work_left.saturating_sub(work);
        self.work_left > 0
    }

    /// How many there are, and the word for them; nothing for a value of another type, or once the work is used up.
    fn count(&mut self, counted: Counted, value: &Value) -> Option<(usize, &'static str)> {
        match (counted, value) {
            (Counted::Characters, Value::String(text)) => self
                .spend(text.len() / BYTES_PER_WORK)
                .then(|| (text.chars().count(), "characters")),
            (Counted::Items, Value::Array(items)) => Some((items.len(), "items")),
            (Counted::Properties, Value::Object(object)) => Some((object.len(), "properties")),
            (Counted::Characters | Counted::Items | Counted::Properties, _) => None,
        }
    }

    /// Equality of JSON: numbers by value, members of objects in any order. `false` once the work is used up.
    fn is_equal(&mut self, one: &Value, other: &Value) -> bool {
        if !self.can_work() {
            return false;
        }
        match (one, other) {
            (Value::Number(one), Value::Number(other)) => {
                let length = one.as_str().len() + other.as_str().len();
                self.spend(length / BYTES_PER_WORK) && Decimal::of(one) == Decimal::of(other)
            }
            (Value::String(one), Value::String(other)) => {
                one.len() == other.len() && self.spend(one.len() / BYTES_PER_WORK) && one == other
            }
            (Value::Array(one), Value::Array(other)) => {
                one.len() == other.len()
                    && one
                        .iter()
                        .zip(other)
                        .all(|(one, other)| self.is_equal(one, other))
            }
            (Value::Object(one), Value::Object(other)) => {
                let mut has_equal = |(name, value): (&String, &Value)| {
                    other.get(name).is_some_and(|other| self.is_equal(value, other))
                };
                one.len() == other.len() && one.iter().all(&mut has_equal)
            }
            (one, other) => one == other,
        }
    }

    fn violations_of(&mut self, id: NodeId, value: &Value, place: &Place<'_>) -> Vec<Violation> {
        let mut violations = Vec::new();
        self.apply(id, value, place, &mut violations);
        violations
    }

    fn fits(&mut self, id: NodeId, value: &Value, place: &Place<'_>) -> bool {
        let max_count = std::mem::replace(&mut self.violations_max_count, 1);
        let is_fitting = self.violations_of(id, value, place).is_empty();
        self.violations_max_count = max_count;
        is_fitting
    }

    fn apply_to_array(
        &mut self,
        keyword: &ArrayKeyword,
        items: &[Value],
        place: &Place<'_>,
        out: &mut Vec<Violation>,
    ) {
        match keyword {
            ArrayKeyword::UniqueItems => {
                for (index, item) in items.iter().enumerate() {
                    let mut earlier = items.iter().take(index);
                    let repeats = earlier.any(|other| self.work_left == 0 || self.is_equal(other, item));
                    if self.work_left == 0 {
                        return;
                    }
                    if repeats {
                        out.push(Place::Item(place, index).violation("must not repeat an earlier item"));
                    }
                }
            }
            ArrayKeyword::PrefixItems(schemas) => {
                for (index, (item, schema)) in items.iter().zip(schemas).enumerate() {
                    self.apply(*schema, item, &Place::Item(place, index), out);
                }
            }
            ArrayKeyword::Items { from, schema } => {
                for (index, item) in items.iter().enumerate().skip(*from) {
                    self.apply(*schema, item, &Place::Item(place, index), out);
                }
            }
            ArrayKeyword::Contains { schema, min, max } => {
                let fitting = items
                    .iter()
                    .filter(|item| self.can_work() && self.fits(*schema, item, place))
                    .count();
                let what = "items of the form the schema's `contains` asks for";
                out.extend(check_count(Bound::AtLeast, *min, fitting, what, place));
                out.extend(max.and_then(|max| check_count(Bound::AtMost, max, fitting, what, place)));
            }
        }
    }

    fn apply_to_object(
        &mut self,
        keyword: &ObjectKeyword,
        object: &Map<String, Value>,
        place: &Place<'_>,
        out: &mut Vec<Violation>,
    ) {
        match keyword {
            ObjectKeyword::Required(names) if !self.spend(names.len()) => {}
            ObjectKeyword::Required(names) => {
                let missing = names.iter().filter(|name| !object.contains_key(*name));
                out.extend(missing.map(|name| place.violation(format!("must have the property `{name}`"))));
            }
            ObjectKeyword::Properties(properties) => {
                if !self.spend(properties.len()) {
                    return;
                }
                for (name, schema) in properties {
                    if let Some(value) = object.get(name) {
                        self.apply(*schema, value, &Place::Property(place, name), out);
                    }
                }
            }
            ObjectKeyword::AdditionalProperties { known, schema } => {
                if !self.spend(object.len()) {
                    return;
                }
                let is_never = matches!(self.nodes.get(*schema).map(Vec::as_slice), Some([Keyword::Never]));
                for (name, value) in object.iter().filter(|(name, _)| !known.contains(name)) {
                    if is_never {
                        out.push(place.violation(format!("must not have the property `{name}`")));
                    } else {
                        self.apply(*schema, value, &Place::Property(place, name), out);
                    }
                }
            }
            ObjectKeyword::PropertyNames(schema) => {
                for name in object.keys() {
                    if !self.fits(*schema, &Value::String(name.clone()), place) {
                        out.push(place.violation(format!("must not have a property named `{name}`")));
                    }
                }
            }
            ObjectKeyword::DependentRequired(dependents) => {
                let names = dependents.iter().map(|(_, needed)| needed.len() + 1);
                if !self.spend(names.sum()) {
                    return;
                }
                for (name, needed) in dependents.iter().filter(|(name, _)| object.contains_key(name)) {
                    let missing = needed.iter().filter(|needed| !object.contains_key(*needed));
                    let message = |needed| format!("must have the property `{needed}` beside `{name}`");
                    out.extend(missing.map(|needed| place.violation(message(needed))));
                }
            }
        }
    }

    fn combine(
        &mut self,
        combination: &Combination,
        value: &Value,
        place: &Place<'_>,
        out: &mut Vec<Violation>,
    ) {
        match combination {
            Combination::Reference(schema) => self.apply(*schema, value, place, out),
            Combination::AllOf(schemas) => {
                for schema in schemas {
                    self.apply(*schema, value, place, out);
                }
            }
            Combination::AnyOf(schemas) => {
                if !schemas.iter().any(|schema| self.fits(*schema, value, place)) {
                    self.report_closest(schemas, value, place, out);
                }
            }
            Combination::OneOf(schemas) => {
                match schemas
                    .iter()
                    .filter(|schema| self.fits(**schema, value, place))
                    .count()
                {
                    0 => self.report_closest(schemas, value, place, out),
                    1 => {}
                    count => out.push(place.violation(format!(
                        "must fit exactly one of {} alternatives, not {count}",
                        schemas.len()
                    ))),
                }
            }
            Combination::Not(schema) => {
                if self.fits(*schema, value, place) {
                    out.push(place.violation("must not fit the schema that `not` excludes"));
                }
            }
            Combination::If {
                condition,
                then,
                otherwise,
            } => {
                let branch = if self.fits(*condition, value, place) {
                    then
                } else {
                    otherwise
                };
                if let Some(schema) = branch {
                    self.apply(*schema, value, place, out);
                }
            }
        }
    }

    /// No alternative fits: says so, and what the one nearest to fitting lacks.
    fn report_closest(
        &mut self,
        schemas: &[NodeId],
        value: &Value,
        place: &Place<'_>,
        out: &mut Vec<Violation>,
    ) {
        out.push(place.violation(format!("must fit one of {} alternatives", schemas.len())));
        let attempts = schemas
            .iter()
            .map(|schema| self.violations_of(*schema, value, place));
        let pointer = place.pointer();
        // An alternative that got the value's own type right is nearer than one with a single violation at the top.
        let distance = |violations: &Vec<Violation>| {
            let at_top = violations
                .iter()
                .filter(|violation| violation.pointer == pointer)
                .count();
            (at_top, violations.len())
        };
        out.extend(attempts.min_by_key(distance).unwrap_or_default());
    }
}

fn check_type(types: &[JsonType], value: &Value, place: &Place<'_>) -> Option<Violation> {
    let is_of_type = |expected: &JsonType| match (expected, value) {
        (JsonType::Integer, Value::Number(number)) => Decimal::of(number).is_integer(),
        (expected, value) => *expected == type_of(value),
    };
    if types.iter().any(is_of_type) {
        return None;
    }
    let expected: Vec<_> = types.iter().map(|expected| expected.with_article()).list();
    let actual = match value {
        // "an integer, not a number" would not say what is wrong with 1.5.
        Value::Number(number) => number.to_string(),
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => {
            type_of(value).with_article().to_owned()
        }
    };
    Some(place.violation(format!(
        "must be {}, not {actual}",
        parts::join(&expected, " or ")
    )))
}

fn type_of(value: &Value) -> JsonType {
    match value {
        Value::Null => JsonType::Null,
        Value::Bool(_) => JsonType::Boolean,
        Value::Number(_) => JsonType::Number,
        Value::String(_) => JsonType::String,
        Value::Array(_) => JsonType::Array,
        Value::Object(_) => JsonType::Object,
    }
}

fn none_of(allowed: &[Value], place: &Place<'_>) -> Violation {
    let mut list = String::new();
    for (index, value) in allowed.iter().enumerate() {
        let room = QUOTE_MAX_BYTES.saturating_sub(list.len());
        let Some(quoted) = quoted(value, room) else {
            list.push_str(if index == 0 {
                "the value the schema names"
            } else {
                ", ..."
            });
            break;
        };
        if index > 0 {
            list.push_str(", ");
        }
        list.push_str(&quoted);
    }
    let message = if allowed.len() == 1 {
        format!("must be {list}")
    } else {
        format!("must be one of {list}")
    };
    place.violation(message)
}

/// A value as JSON text of at most so many bytes. One that is surely longer is not written at all.
fn quoted(value: &Value, max_bytes: usize) -> Option<String> {
    leave_room(value, &mut max_bytes.clone())?;
    Some(json::text(value)).filter(|text| text.len() <= max_bytes)
}

/// Takes from the room what a value takes at least; `None` = there is not as much.
fn leave_room(value: &Value, room: &mut usize) -> Option<()> {
    let least_bytes = match value {
        Value::String(text) => text.len(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => 1,
    };
    *room = room.checked_sub(least_bytes)?;
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| leave_room(item, room)),
        Value::Object(members) => members.iter().try_for_each(|(name, member)| {
            *room = room.checked_sub(name.len())?;
            leave_room(member, room)
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Some(()),
    }
}

fn check_number(
    comparison: Comparison,
    number: &Decimal,
    limit: &Decimal,
    place: &Place<'_>,
) -> Option<Violation> {
    let (fits, demand) = match comparison {
        Comparison::Minimum => (number >= limit, "at least"),
        Comparison::ExclusiveMinimum => (number > limit, "greater than"),
        Comparison::Maximum => (number <= limit, "at most"),
        Comparison::ExclusiveMaximum => (number < limit, "less than"),
        Comparison::MultipleOf => (number.is_multiple_of(limit), "a multiple of"),
    };
    (!fits).then(|| place.violation(format!("must be {demand} {limit}")))
}

fn check_count(bound: Bound, limit: u64, count: usize, what: &str, place: &Place<'_>) -> Option<Violation> {
    let number = u64::try_from(count).unwrap_or(u64::MAX);
    let (fits, demand) = match bound {
        Bound::AtLeast => (number >= limit, "at least"),
        Bound::AtMost => (number <= limit, "at most"),
    };
    (!fits).then(|| place.violation(format!("must have {demand} {limit} {what}, not {count}")))
}
