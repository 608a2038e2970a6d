//! Types read from JSON: the one door.
//!
//! `serde_json` makes kilobytes of code of every type it reads: from text or from a tree, each struct as an object and
//! as a list. This goes over a tree, takes a struct from an object only, and leaves what types have in common in
//! functions of its own.

use std::fmt::Display;
use std::vec;

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, Error as _, Expected, MapAccess, SeqAccess,
    Unexpected, VariantAccess, Visitor,
};
use serde::{Serialize, forward_to_deserialize_any};
use serde_json::{Map, Number, Value, map};

/// Why a JSON value is not of a type; in the words of serde.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
#[expect(
    clippy::box_collection,
    reason = "one pointer: every member of every type hands it on"
)]
pub struct Mismatch(Box<String>);

impl Mismatch {
    #[cold]
    #[inline(never)]
    fn new(message: String) -> Self {
        Self(Box::new(message))
    }
}

/// Reads a type from a text.
///
/// # Errors
/// [`Mismatch`]
pub fn from_text<T: Deserialize<'static>>(text: &str) -> Result<T, Mismatch> {
    from_value(tree(text)?)
}

/// Reads a type from a value.
///
/// # Errors
/// [`Mismatch`]
pub fn from_value<T: Deserialize<'static>>(value: Value) -> Result<T, Mismatch> {
    T::deserialize(Reader(value))
}

/// The tree of a type of ours, by way of its text: so each type has one writer.
///
/// # Errors
/// [`Mismatch`]
pub fn to_value<T: Serialize + ?Sized>(of: &T) -> Result<Value, Mismatch> {
    let text = serde_json::to_string(of).map_err(|error| Mismatch::new(error.to_string()))?;
    tree(&text)
}

fn tree(text: &str) -> Result<Value, Mismatch> {
    serde_json::from_str(text).map_err(|error| Mismatch::new(error.to_string()))
}

impl serde::de::Error for Mismatch {
    fn custom<T: Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        match found {
            Unexpected::Unit => Self::new(format!("invalid type: null, expected {expected}")),
            found => Self::new(format!("invalid type: {found}, expected {expected}")),
        }
    }

    fn missing_field(name: &'static str) -> Self {
        Self::new(format!("missing field `{name}`"))
    }

    fn duplicate_field(name: &'static str) -> Self {
        Self::new(format!("duplicate field `{name}`"))
    }
}

/// A value that is read.
struct Reader(Value);

#[cold]
#[inline(never)]
fn mismatch(value: &Value, expected: &dyn Expected) -> Mismatch {
    let found = match value {
        Value::Null => Unexpected::Unit,
        Value::Bool(flag) => Unexpected::Bool(*flag),
        Value::Number(number) => match digits(number) {
            Digits::Natural(number) => Unexpected::Unsigned(number),
            Digits::Negative(number) => Unexpected::Signed(number),
            Digits::Float(number) => Unexpected::Float(number),
        },
        Value::String(text) => Unexpected::Str(text),
        Value::Array(_) => Unexpected::Seq,
        Value::Object(_) => Unexpected::Map,
    };
    Mismatch::invalid_type(found, expected)
}

enum Digits {
    Natural(u64),
    Negative(i64),
    Float(f64),
}

fn digits(number: &Number) -> Digits {
    match (number.as_u64(), number.as_i64()) {
        (Some(number), _) => Digits::Natural(number),
        (None, Some(number)) => Digits::Negative(number),
        // What is beyond a double is no number that a type of ours could hold.
        (None, None) => Digits::Float(number.as_f64().unwrap_or(f64::INFINITY)),
    }
}

macro_rules! numbers {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
            self.number(visitor)
        }
    )*};
}

macro_rules! texts {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
            match self.0 {
                Value::String(text) => visitor.visit_string(text),
                other => Err(mismatch(&other, &visitor)),
            }
        }
    )*};
}

impl Reader {
    fn number<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.0 {
            Value::Number(number) => match digits(&number) {
                Digits::Natural(number) => visitor.visit_u64(number),
                Digits::Negative(number) => visitor.visit_i64(number),
                Digits::Float(number) => visitor.visit_f64(number),
            },
            other => Err(mismatch(&other, &visitor)),
        }
    }
}

impl<'de> Deserializer<'de> for Reader {
    type Error = Mismatch;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.0 {
            Value::Null => visitor.visit_unit(),
            Value::Bool(flag) => visitor.visit_bool(flag),
            // As serde_json hands a number on, so that it keeps every digit.
            Value::Number(number) => number
                .deserialize_any(visitor)
                .map_err(|error| Mismatch::new(error.to_string())),
            Value::String(text) => visitor.visit_string(text),
            Value::Array(items) => visitor.visit_seq(Items(items.into_iter())),
            Value::Object(members) => visitor.visit_map(Members::new(members)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.0 {
            Value::Null => visitor.visit_none(),
            value => visitor.visit_some(Self(value)),
        }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.0 {
            Value::Bool(flag) => visitor.visit_bool(flag),
            other => Err(mismatch(&other, &visitor)),
        }
    }

    numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_u8 deserialize_u16
        deserialize_u32 deserialize_u64 deserialize_f32 deserialize_f64
    }

    texts! { deserialize_str deserialize_string deserialize_char deserialize_identifier }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.0 {
            Value::Array(items) => visitor.visit_seq(Items(items.into_iter())),
            other => Err(mismatch(&other, &visitor)),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Mismatch> {
        match self.0 {
            Value::Array(items) if items.len() > length => {
                Err(Mismatch::invalid_length(items.len(), &visitor))
            }
            items => Self(items).deserialize_seq(visitor),
        }
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        self.deserialize_tuple(length, visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        match self.0 {
            Value::Object(members) => visitor.visit_map(Members::new(members)),
            other => Err(mismatch(&other, &visitor)),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        match Variant::of(self.0) {
            Ok(variant) => visitor.visit_enum(variant),
            Err(other) => Err(mismatch(&other, &visitor)),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! { bytes byte_buf unit unit_struct }
}

struct Items(vec::IntoIter<Value>);

impl<'de> SeqAccess<'de> for Items {
    type Error = Mismatch;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, Mismatch> {
        self.0
            .next()
            .map(|item| seed.deserialize(Reader(item)))
            .transpose()
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.0.len())
    }
}

struct Members {
    rest: map::IntoIter,
    value: Value,
}

impl Members {
    fn new(members: Map<String, Value>) -> Self {
        Self {
            rest: members.into_iter(),
            value: Value::Null,
        }
    }

    #[inline(never)]
    fn next_name(&mut self) -> Option<String> {
        let (name, value) = self.rest.next()?;
        self.value = value;
        Some(name)
    }
}

impl<'de> MapAccess<'de> for Members {
    type Error = Mismatch;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Mismatch> {
        self.next_name()
            .map(|name| seed.deserialize(Name(&name)))
            .transpose()
    }

    // One function for all members of a type.
    #[inline(never)]
    fn next_value_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<T::Value, Mismatch> {
        seed.deserialize(Reader(self.value.take()))
    }
}

/// A member's or a variant's name that is read.
struct Name<'a>(&'a str);

impl<'de> Deserializer<'de> for Name<'_> {
    type Error = Mismatch;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mismatch> {
        visitor.visit_str(self.0)
    }

    // Ids are names of members, too.
    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct seq tuple
        tuple_struct map struct enum identifier ignored_any
    }
}

/// `"Name"`, or `{"Name": value}`.
struct Variant {
    name: String,
    value: Value,
}

impl Variant {
    fn of(value: Value) -> Result<Self, Value> {
        match value {
            Value::String(name) => Ok(Self {
                name,
                value: Value::Null,
            }),
            Value::Object(members) if members.len() == 1 => match members.into_iter().next() {
                Some((name, value)) => Ok(Self { name, value }),
                None => Err(Value::Null),
            },
            other => Err(other),
        }
    }
}

impl<'de> EnumAccess<'de> for Variant {
    type Error = Mismatch;
    type Variant = Reader;

    fn variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<(T::Value, Reader), Mismatch> {
        let variant = seed.deserialize(Name(&self.name))?;
        Ok((variant, Reader(self.value)))
    }
}

impl<'de> VariantAccess<'de> for Reader {
    type Error = Mismatch;

    fn unit_variant(self) -> Result<(), Mismatch> {
        match self.0 {
            Value::Null => Ok(()),
            other => Err(mismatch(&other, &"unit variant")),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, Mismatch> {
        seed.deserialize(self)
    }

    fn tuple_variant<V: Visitor<'de>>(self, length: usize, visitor: V) -> Result<V::Value, Mismatch> {
        self.deserialize_tuple(length, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mismatch> {
        self.deserialize_map(visitor)
    }
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
