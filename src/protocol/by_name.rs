//! A deserializer around another that reads structs from objects only.
//!
//! `serde_json` also reads a struct from a list of its members in their order: as much code again for every type, and
//! no JSON of ours or of a vendor's is written so.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;

/// The deserializer, visitor, access or seed inside, with structs read by name.
pub(super) struct ByName<T>(pub T);

macro_rules! forward {
    ($($method:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
            self.0.$method(ByName(visitor))
        }
    )*};
}

impl<'de, D: Deserializer<'de>> Deserializer<'de> for ByName<D> {
    type Error = D::Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(ByName(visitor))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, ByName(visitor))
    }

    forward! {
        deserialize_any deserialize_bool deserialize_i64 deserialize_u64 deserialize_f64 deserialize_str
        deserialize_string deserialize_option deserialize_seq deserialize_map deserialize_identifier
        deserialize_ignored_any
    }

    // What no payload has.
    forward_to_deserialize_any! {
        i8 i16 i32 u8 u16 u32 f32 char bytes byte_buf unit unit_struct tuple tuple_struct enum
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for ByName<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    fn visit_bool<E: serde::de::Error>(self, flag: bool) -> Result<V::Value, E> {
        self.0.visit_bool(flag)
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<V::Value, E> {
        self.0.visit_i64(number)
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<V::Value, E> {
        self.0.visit_u64(number)
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<V::Value, E> {
        self.0.visit_f64(number)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<V::Value, E> {
        self.0.visit_str(text)
    }

    fn visit_borrowed_str<E: serde::de::Error>(self, text: &'de str) -> Result<V::Value, E> {
        self.0.visit_borrowed_str(text)
    }

    fn visit_string<E: serde::de::Error>(self, text: String) -> Result<V::Value, E> {
        self.0.visit_string(text)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(ByName(inner))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(ByName(inner))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(ByName(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(ByName(members))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for ByName<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(ByName(from))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for ByName<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(ByName(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for ByName<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(ByName(seed))
    }
}
