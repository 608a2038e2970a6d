//! Types of ours read from JSON: the one door.
//!
//! `serde` makes kilobytes of code of every type it reads. Here a type is a table, and one loop reads them all: see
//! `payload`. A record has all its members but those with a default; what is wrong is said in the words of serde.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::{Map, Value};

use super::json;
use super::json_cursor::{CursorFault, JsonCursor};
use super::json_text::unescaped;
use super::named::Named;
use super::number;
use super::parts;
use super::payload::{Member, mismatch, text};
use super::utf8;
use crate::list::List;
use crate::platform::parse_double;

/// Why a JSON value is not of a type; in the words of serde.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Mismatch(String);

/// Reads a type from a text.
///
/// # Errors
/// [`Mismatch`]
pub fn from_text<T: for<'a> Member<'a>>(text: &str) -> Result<T, Mismatch> {
    let mut place = T::blank();
    read_to(text, &mut place)?;
    Ok(place)
}

/// Reads a type from a value.
///
/// # Errors
/// [`Mismatch`]
pub fn from_value<T: for<'a> Member<'a>>(value: &Value) -> Result<T, Mismatch> {
    from_text(&json::text(value))
}

/// The tree of a type of ours, by way of its text: so each type has one writer.
pub fn to_value<T: Serialize + ?Sized>(of: &T) -> Value {
    json::tree(&json::text(of)).unwrap_or_default()
}

fn tree(text: &str) -> Result<Value, Mismatch> {
    let mut json = JsonCursor::new(text);
    json.whole().map_err(|_| Mismatch(json.syntax()))
}

/// Reads members of a value over those that a type has; what it needs may be missing.
///
/// # Errors
/// [`Mismatch`]
pub fn read_over<T: for<'a> Closed<'a>>(value: &Value, place: &mut T) -> Result<(), Mismatch> {
    let text = json::text(value);
    let mut json = JsonCursor::new(&text);
    let read = place.read_over(&mut json);
    told(&text, &mut json, read)
}

fn read_to<'a>(text: &'a str, place: &mut dyn Member<'a>) -> Result<(), Mismatch> {
    let mut json = JsonCursor::new(text);
    let read = place.read(&mut json);
    told(text, &mut json, read)
}

/// How reading a text went, in words.
fn told(text: &str, json: &mut JsonCursor<'_>, read: Result<(), CursorFault>) -> Result<(), Mismatch> {
    let Err(fault) = read.and_then(|()| json.end()) else {
        return Ok(());
    };
    // Text that is no JSON is named by its place.
    tree(text)?;
    Err(Mismatch(match json.complaint() {
        "" => fault.to_string(),
        complaint => complaint.to_owned(),
    }))
}

/// Names of members, several of one with `|` in between, and whether it may be absent.
pub type Members = &'static [(&'static str, bool)];

/// What an object must be to be a record.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// What is expected where it stands: `struct Name`.
    pub of: &'static str,
    /// In the order of their places.
    pub members: Members,
    /// Whether unknown members are refused.
    pub is_closed: bool,
    /// Whether only some of the members are read.
    pub is_part: bool,
}

impl Shape {
    /// Refuses, as it is compiled, more members than are told apart.
    pub const fn checked(self) -> Self {
        assert!(self.members.len() <= u64::BITS as usize);
        self
    }
}

/// A record that refuses unknown members.
pub trait Closed<'a>: Member<'a> {
    /// What its members are called.
    const MEMBERS: Members;

    /// Reads the members there are over its own.
    ///
    /// # Errors
    /// [`CursorFault`]
    fn read_over(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault>;
}

/// Makes a type of named members readable from an object that has them all, but for those with a default:
/// `record!(Part: "text" => text, "count" => count = 1);`. `record!(closed Part: ...)` refuses unknown members.
macro_rules! record {
    (closed $type:ident: $($name:literal => $field:ident $(= $default:expr)?),* $(,)?) => {
        $crate::protocol::read::record!(@member $type, true: $($name => $field $(= $default)?),*);

        impl<'a> $crate::protocol::read::Closed<'a> for $type {
            const MEMBERS: $crate::protocol::read::Members =
                $crate::protocol::read::record!(@names $($name $(= $default)?),*);

            fn read_over(
                &mut self,
                json: &mut $crate::protocol::json_cursor::JsonCursor<'a>,
            ) -> Result<(), $crate::protocol::json_cursor::CursorFault> {
                const SHAPE: $crate::protocol::read::Shape = $crate::protocol::read::Shape {
                    of: concat!("struct ", stringify!($type)),
                    members: <$type as $crate::protocol::read::Closed<'_>>::MEMBERS,
                    is_closed: true,
                    is_part: true,
                }.checked();
                $crate::protocol::read::read_record(json, &SHAPE, &mut [$(&mut self.$field),*])
            }
        }
    };
    ($type:ident: $($name:literal => $field:ident $(= $default:expr)?),* $(,)?) => {
        $crate::protocol::read::record!(@member $type, false: $($name => $field $(= $default)?),*);
    };
    (@member $type:ident, $is_closed:literal: $($name:literal => $field:ident $(= $default:expr)?),*) => {
        impl<'a> $crate::protocol::payload::Member<'a> for $type {
            fn blank() -> Self {
                Self { $($field: $crate::protocol::read::record!(@blank $($default)?)),* }
            }

            fn read(
                &mut self,
                json: &mut $crate::protocol::json_cursor::JsonCursor<'a>,
            ) -> Result<(), $crate::protocol::json_cursor::CursorFault> {
                const SHAPE: $crate::protocol::read::Shape = $crate::protocol::read::Shape {
                    of: concat!("struct ", stringify!($type)),
                    members: $crate::protocol::read::record!(@names $($name $(= $default)?),*),
                    is_closed: $is_closed,
                    is_part: false,
                }.checked();
                // Others are read to a blank place only.
                if $is_closed {
                    *self = Self::blank();
                }
                $crate::protocol::read::read_record(json, &SHAPE, &mut [$(&mut self.$field),*])
            }
        }
    };
    (@names $($name:literal $(= $default:expr)?),*) => {
        &[$(($name, $crate::protocol::read::record!(@has $($default)?))),*]
    };
    (@blank) => { $crate::protocol::payload::Member::blank() };
    (@blank $default:expr) => { $default };
    (@has) => { false };
    (@has $default:expr) => { true };
}
pub(crate) use record;

/// Makes an enum without values readable from a text: `words!(Colour: "red" => Red, "blue" => Blue);`
macro_rules! words {
    ($type:ident: $first_name:literal => $first:ident $(, $name:literal => $variant:ident)* $(,)?) => {
        impl<'a> $crate::protocol::payload::Member<'a> for $type {
            fn blank() -> Self {
                Self::$first
            }

            fn read(
                &mut self,
                json: &mut $crate::protocol::json_cursor::JsonCursor<'a>,
            ) -> Result<(), $crate::protocol::json_cursor::CursorFault> {
                const NAMES: &[&str] = &[$first_name $(, $name)*];
                let of = concat!("enum ", stringify!($type));
                let index = $crate::protocol::read::read_word(json, of, NAMES)?;
                if let Some(meant) = [Self::$first $(, Self::$variant)*].into_iter().nth(index) {
                    *self = meant;
                }
                Ok(())
            }
        }
    };
}
pub(crate) use words;

/// Makes an enum readable from the name of a variant, or from an object whose one member is named so and has the value:
/// `variants!(Shape: "point" => Point, "circle" => Circle(radius), "square" => Square { "side" => side });`
macro_rules! variants {
    ($type:ident: $($name:literal => $variant:ident $(($value:ident))? $({ $($members:tt)* })?),+ $(,)?) => {
        impl<'a> $crate::protocol::payload::Member<'a> for $type {
            fn blank() -> Self {
                $crate::protocol::read::variants!(@blank $($variant $(($value))? $({ $($members)* })?),+)
            }

            fn read(
                &mut self,
                json: &mut $crate::protocol::json_cursor::JsonCursor<'a>,
            ) -> Result<(), $crate::protocol::json_cursor::CursorFault> {
                enum Place { $($variant),+ }
                const NAMES: $crate::protocol::read::Members =
                    &[$(($name, $crate::protocol::read::variants!(@has $($value)? $({ $($members)* })?))),+];
                let of = concat!("enum ", stringify!($type));
                let opened = $crate::protocol::read::open_variant(json, of, NAMES)?;
                $(if opened.index == Place::$variant as usize {
                    *self = $crate::protocol::read::variants!(
                        @read json, $type $variant $(($value))? $({ $($members)* })?
                    );
                })+
                opened.close(json)
            }
        }
    };
    (@blank $variant:ident $(, $($rest:tt)*)?) => { Self::$variant };
    (@blank $variant:ident ($value:ident) $(, $($rest:tt)*)?) => {
        Self::$variant($crate::protocol::payload::Member::blank())
    };
    (@blank $variant:ident { $($name:literal => $field:ident $(= $default:expr)?),* $(,)? } $(, $($rest:tt)*)?) => {
        Self::$variant { $($field: $crate::protocol::read::record!(@blank $($default)?)),* }
    };
    (@has) => { false };
    (@has $($value:tt)+) => { true };
    (@read $json:ident, $type:ident $variant:ident) => { Self::$variant };
    (@read $json:ident, $type:ident $variant:ident ($value:ident)) => {{
        let mut $value = $crate::protocol::payload::Member::blank();
        $crate::protocol::payload::Member::read(&mut $value, $json)?;
        Self::$variant($value)
    }};
    (@read $json:ident, $type:ident $variant:ident {
        $($name:literal => $field:ident $(= $default:expr)?),* $(,)?
    }) => {{
        const SHAPE: $crate::protocol::read::Shape = $crate::protocol::read::Shape {
            of: concat!("struct variant ", stringify!($type), "::", stringify!($variant)),
            members: $crate::protocol::read::record!(@names $($name $(= $default)?),*),
            is_closed: false,
            is_part: false,
        }.checked();
        $(let mut $field = $crate::protocol::read::record!(@blank $($default)?);)*
        $crate::protocol::read::read_record($json, &SHAPE, &mut [$(&mut $field),*])?;
        Self::$variant { $($field),* }
    }};
}
pub(crate) use variants;

/// Reads a record's members to their places.
///
/// # Errors
/// [`CursorFault`]
pub fn read_record<'a>(
    json: &mut JsonCursor<'a>,
    shape: &Shape,
    places: &mut [&mut dyn Member<'a>],
) -> Result<(), CursorFault> {
    let start = json.position();
    let mut next = json
        .next_member(true)
        .map_err(|fault| mismatch(json, start, shape.of, fault))?;
    let mut seen: u64 = 0;
    while let Some(name) = next {
        let name = name_text(name);
        let known = || shape.members.iter().zip(0u64..);
        let found = known().find(|((names, _), _)| names.split('|').any(|known| known == name));
        match found {
            Some(((names, _), index)) => {
                if seen >> index & 1 == 1 {
                    return Err(json.complain(format!("duplicate field `{}`", first_of(names))));
                }
                seen |= 1 << index;
                if let Some(place) = usize::try_from(index)
                    .ok()
                    .and_then(|index| places.get_mut(index))
                {
                    place.read(json)?;
                }
            }
            None if shape.is_closed => {
                let names = shape.members.iter().flat_map(|(names, _)| names.split('|'));
                return Err(json.complain(unknown("field", &name, names)));
            }
            None => json.skip()?,
        }
        next = json.next_member(false)?;
    }
    if shape.is_part {
        return Ok(());
    }
    for ((names, may_be_absent), index) in shape.members.iter().zip(0u64..) {
        if !may_be_absent && seen >> index & 1 == 0 {
            return Err(json.complain(format!("missing field `{}`", first_of(names))));
        }
    }
    Ok(())
}

fn first_of(names: &'static str) -> &'static str {
    names.split('|').next().unwrap_or_default()
}

/// That a name is none of those.
fn unknown<'a>(what: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<String> = known.map(|name| format!("`{name}`")).list();
    let expected = match known.as_slice() {
        [] => format!("there are no {what}s"),
        [one] => format!("expected {one}"),
        [one, other] => format!("expected {one} or {other}"),
        several => format!("expected one of {}", parts::join(several, ", ")),
    };
    format!("unknown {what} `{name}`, {expected}")
}

fn name_text(name: &[u8]) -> String {
    unescaped(name).unwrap_or_else(|| utf8::lossy(name).into_owned())
}

/// Reads one of these words; gives its position.
///
/// # Errors
/// [`CursorFault`]
pub fn read_word(json: &mut JsonCursor<'_>, of: &str, words: &[&str]) -> Result<usize, CursorFault> {
    let word = text(json, of)?;
    let index = words.iter().position(|known| *known == word);
    index.ok_or_else(|| json.complain(unknown("variant", &word, words.iter().copied())))
}

/// A variant whose value, if it has one, is next.
#[derive(Debug)]
pub struct OpenVariant {
    /// Which of the enum's.
    pub index: usize,
    of: &'static str,
    start: usize,
    is_object: bool,
}

/// Reads which variant of an enum comes; of each is said whether it has a value.
///
/// # Errors
/// [`CursorFault`]
pub fn open_variant(
    json: &mut JsonCursor<'_>,
    of: &'static str,
    variants: Members,
) -> Result<OpenVariant, CursorFault> {
    let start = json.position();
    let is_object = json.peek() == b'{';
    let name = if is_object {
        json.next_member(true)?.map(name_text).unwrap_or_default()
    } else {
        text(json, of)?.into_owned()
    };
    let Some(index) = variants.iter().position(|(known, _)| *known == name) else {
        let names = variants.iter().map(|(known, _)| *known);
        return Err(json.complain(unknown("variant", &name, names)));
    };
    let has_value = variants.get(index).is_some_and(|(_, has_value)| *has_value);
    if has_value && !is_object || !has_value && is_object && !json.take_null()? {
        return Err(mismatch(json, start, of, CursorFault::Unexpected));
    }
    Ok(OpenVariant {
        index,
        of,
        start,
        is_object,
    })
}

impl OpenVariant {
    /// Nothing may come behind the variant.
    ///
    /// # Errors
    /// [`CursorFault`]
    pub fn close(self, json: &mut JsonCursor<'_>) -> Result<(), CursorFault> {
        if self.is_object && json.next_member(false)?.is_some() {
            return Err(mismatch(json, self.start, self.of, CursorFault::Unexpected));
        }
        Ok(())
    }
}

macro_rules! numbers {
    ($($type:ident by $parse:path),*) => {$(
        impl<'a> Member<'a> for $type {
            fn blank() -> Self {
                Self::default()
            }

            fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
                let start = json.position();
                match $parse(json.raw()?) {
                    Some(number) => *self = number,
                    None => return Err(mismatch(json, start, stringify!($type), CursorFault::Unexpected)),
                }
                Ok(())
            }
        }
    )*};
}

numbers! { u32 by integer, usize by integer, i64 by signed, f64 by parse_double }

fn signed(text: &str) -> Option<i64> {
    text.parse().ok()
}

fn integer<T: TryFrom<u64>>(text: &str) -> Option<T> {
    number::unsigned(text)?.try_into().ok()
}

impl<'a> Member<'a> for Map<String, Value> {
    fn blank() -> Self {
        Self::new()
    }

    fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
        let start = json.position();
        match json.value()? {
            Value::Object(members) => *self = members,
            _ => return Err(mismatch(json, start, "a map", CursorFault::Unexpected)),
        }
        Ok(())
    }
}

impl<'a, T: Member<'a>> Member<'a> for Named<T> {
    fn blank() -> Self {
        Self::new()
    }

    fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
        *self = Self::new();
        let mut next = next_name(json, true)?;
        while let Some(name) = next {
            let mut value = T::blank();
            value.read(json)?;
            self.insert(name, value);
            next = next_name(json, false)?;
        }
        Ok(())
    }
}

/// Enters a map, or leaves it where it has no (further) member; gives the next name. Then its value is next.
fn next_name(json: &mut JsonCursor<'_>, is_first: bool) -> Result<Option<String>, CursorFault> {
    let start = json.position();
    match json.next_member(is_first) {
        Ok(name) => Ok(name.map(name_text)),
        Err(fault) if is_first => Err(mismatch(json, start, "a map", fault)),
        Err(fault) => Err(fault),
    }
}

impl<'a, A: Member<'a>, B: Member<'a>> Member<'a> for (A, B) {
    fn blank() -> Self {
        (A::blank(), B::blank())
    }

    fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
        read_pair(json, [&mut self.0, &mut self.1])
    }
}

fn read_pair<'a>(json: &mut JsonCursor<'a>, places: [&mut dyn Member<'a>; 2]) -> Result<(), CursorFault> {
    let expected = "a tuple of size 2";
    let start = json.position();
    let mut is_next = json
        .next_item(true)
        .map_err(|fault| mismatch(json, start, expected, fault))?;
    for (place, count) in places.into_iter().zip(0..) {
        if !is_next {
            return Err(json.complain(format!("invalid length {count}, expected {expected}")));
        }
        place.read(json)?;
        is_next = json.next_item(false)?;
    }
    if is_next {
        return Err(json.complain(format!("invalid length 3, expected {expected}")));
    }
    Ok(())
}

impl<'a> Member<'a> for Cow<'static, str> {
    fn blank() -> Self {
        Self::default()
    }

    fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
        *self = Self::Owned(text(json, "a string")?.into_owned());
        Ok(())
    }
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
