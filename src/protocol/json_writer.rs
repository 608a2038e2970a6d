//! Types of ours and trees written as JSON: the one door, see `json::text`.
//!
//! Writing to memory cannot fail, and there is one format. `serde_json`'s writer may fail and has several, which each
//! member of each type pays for in code.

use std::fmt::Display;

use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::Number;

use super::json_text::write_text;

/// What `serde_json` calls the struct, and its member, by which a number hands over its digits.
const NUMBER: &str = "$serde_json::private::Number";

/// A type that refuses to be written: none of ours does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("cannot be written as JSON")]
pub struct Refused;

impl serde::ser::Error for Refused {
    fn custom<T: Display>(_message: T) -> Self {
        Self
    }
}

/// A value as JSON, without blanks. What follows is cut where a type refuses to be written: none of ours does.
pub fn text<T: Serialize + ?Sized>(value: &T) -> String {
    let mut writer = JsonWriter::default();
    let _ = value.serialize(&mut writer);
    writer.into_text()
}

/// The text so far.
#[derive(Debug, Default)]
struct JsonWriter {
    out: Vec<u8>,
    /// Whether the next text is the digits of a number.
    is_number: bool,
}

type Written = Result<(), Refused>;

impl JsonWriter {
    fn into_text(self) -> String {
        String::from_utf8(self.out).unwrap_or_default()
    }

    fn append(&mut self, text: &str) -> Written {
        self.out.extend_from_slice(text.as_bytes());
        Ok(())
    }

    /// A comma, unless this is the first of what the mark opened.
    fn next_of(&mut self, open: u8) {
        if self.out.last() != Some(&open) {
            self.out.push(b',');
        }
    }

    fn name(&mut self, name: &str) {
        if !self.is_number {
            self.next_of(b'{');
            write_text(name, &mut self.out);
            self.out.push(b':');
        }
    }

    fn open_struct(&mut self, name: &str) {
        if name == NUMBER {
            self.is_number = true;
        } else {
            self.out.push(b'{');
        }
    }

    fn close_struct(&mut self) -> Written {
        if !std::mem::take(&mut self.is_number) {
            self.out.push(b'}');
        }
        Ok(())
    }

    fn open_variant(&mut self, name: &str) {
        self.out.push(b'{');
        self.name(name);
    }
}

impl<'a> Serializer for &'a mut JsonWriter {
    type Ok = ();
    type Error = Refused;
    type SerializeSeq = Self;
    type SerializeTuple = Self;
    type SerializeTupleStruct = Self;
    type SerializeTupleVariant = Variant<'a>;
    type SerializeMap = Self;
    type SerializeStruct = Self;
    type SerializeStructVariant = Variant<'a>;

    fn serialize_bool(self, value: bool) -> Written {
        self.append(if value { "true" } else { "false" })
    }

    fn serialize_i8(self, value: i8) -> Written {
        self.serialize_i64(value.into())
    }

    fn serialize_i16(self, value: i16) -> Written {
        self.serialize_i64(value.into())
    }

    fn serialize_i32(self, value: i32) -> Written {
        self.serialize_i64(value.into())
    }

    fn serialize_i64(self, value: i64) -> Written {
        self.append(&value.to_string())
    }

    fn serialize_u8(self, value: u8) -> Written {
        self.serialize_u64(value.into())
    }

    fn serialize_u16(self, value: u16) -> Written {
        self.serialize_u64(value.into())
    }

    fn serialize_u32(self, value: u32) -> Written {
        self.serialize_u64(value.into())
    }

    fn serialize_u64(self, value: u64) -> Written {
        self.append(&value.to_string())
    }

    fn serialize_f32(self, value: f32) -> Written {
        self.serialize_f64(value.into())
    }

    fn serialize_f64(self, value: f64) -> Written {
        let number = Number::from_f64(value);
        self.append(number.as_ref().map_or("null", Number::as_str))
    }

    fn serialize_char(self, value: char) -> Written {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Written {
        if self.is_number {
            return self.append(value);
        }
        write_text(value, &mut self.out);
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Written {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Written {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Written {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Written {
        self.append("null")
    }

    fn serialize_unit_struct(self, _name: &'static str) -> Written {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _name: &'static str, _index: u32, variant: &'static str) -> Written {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _name: &'static str, value: &T) -> Written {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        value: &T,
    ) -> Written {
        self.open_variant(variant);
        value.serialize(&mut *self)?;
        self.append("}")
    }

    fn serialize_seq(self, _length: Option<usize>) -> Result<Self, Refused> {
        self.out.push(b'[');
        Ok(self)
    }

    fn serialize_tuple(self, _length: usize) -> Result<Self, Refused> {
        self.serialize_seq(None)
    }

    fn serialize_tuple_struct(self, _name: &'static str, _length: usize) -> Result<Self, Refused> {
        self.serialize_seq(None)
    }

    fn serialize_tuple_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Variant<'a>, Refused> {
        self.open_variant(variant);
        self.out.push(b'[');
        Ok(Variant(self))
    }

    fn serialize_map(self, _length: Option<usize>) -> Result<Self, Refused> {
        self.out.push(b'{');
        Ok(self)
    }

    fn serialize_struct(self, name: &'static str, _length: usize) -> Result<Self, Refused> {
        self.open_struct(name);
        Ok(self)
    }

    fn serialize_struct_variant(
        self,
        _name: &'static str,
        _index: u32,
        variant: &'static str,
        _length: usize,
    ) -> Result<Variant<'a>, Refused> {
        self.open_variant(variant);
        self.out.push(b'{');
        Ok(Variant(self))
    }
}

impl SerializeSeq for &mut JsonWriter {
    type Ok = ();
    type Error = Refused;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Written {
        self.next_of(b'[');
        value.serialize(&mut **self)
    }

    fn end(self) -> Written {
        self.append("]")
    }
}

impl SerializeTuple for &mut JsonWriter {
    type Ok = ();
    type Error = Refused;

    fn serialize_element<T: Serialize + ?Sized>(&mut self, value: &T) -> Written {
        SerializeSeq::serialize_element(self, value)
    }

    fn end(self) -> Written {
        SerializeSeq::end(self)
    }
}

impl SerializeTupleStruct for &mut JsonWriter {
    type Ok = ();
    type Error = Refused;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Written {
        SerializeSeq::serialize_element(self, value)
    }

    fn end(self) -> Written {
        SerializeSeq::end(self)
    }
}

impl SerializeMap for &mut JsonWriter {
    type Ok = ();
    type Error = Refused;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Written {
        self.next_of(b'{');
        let start = self.out.len();
        key.serialize(&mut **self)?;
        if self.out.get(start) != Some(&b'"') {
            self.out.insert(start, b'"');
            self.out.push(b'"');
        }
        self.append(":")
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Written {
        value.serialize(&mut **self)
    }

    fn end(self) -> Written {
        self.append("}")
    }
}

impl SerializeStruct for &mut JsonWriter {
    type Ok = ();
    type Error = Refused;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Written {
        self.name(name);
        value.serialize(&mut **self)
    }

    fn end(self) -> Written {
        self.close_struct()
    }
}

/// A variant with its name around its members or items.
#[derive(Debug)]
struct Variant<'a>(&'a mut JsonWriter);

impl SerializeTupleVariant for Variant<'_> {
    type Ok = ();
    type Error = Refused;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, value: &T) -> Written {
        SerializeSeq::serialize_element(&mut self.0, value)
    }

    fn end(self) -> Written {
        self.0.append("]}")
    }
}

impl SerializeStructVariant for Variant<'_> {
    type Ok = ();
    type Error = Refused;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Written {
        SerializeStruct::serialize_field(&mut self.0, name, value)
    }

    fn end(self) -> Written {
        self.0.append("}}")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Serialize;
    use serde_json::Value;

    use super::*;

    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Whole {
        small: i8,
        wide: (u64, i64),
        broken: f64,
        real: f64,
        letter: char,
        absent: Option<u8>,
        #[serde(skip_serializing_if = "Option::is_none")]
        left_out: Option<u8>,
        unit: (),
        nothing: Nothing,
        shapes: Vec<Shape>,
        tagged: Vec<Tagged>,
        by_number: BTreeMap<u8, bool>,
        tree: Value,
        #[serde(flatten)]
        rest: BTreeMap<&'static str, Pair>,
    }

    #[derive(Serialize)]
    struct Nothing;

    #[derive(Serialize)]
    struct Pair(u8, &'static str);

    #[derive(Serialize)]
    enum Shape {
        Point,
        Circle(u8),
        Line(u8, u8),
        Square { side: f32, name: String },
    }

    #[derive(Serialize)]
    #[serde(tag = "type")]
    enum Tagged {
        Empty,
        Full { numbers: Vec<u8> },
    }

    fn whole() -> Whole {
        let tree = r#"{"big":123456789012345678901234567890,"exact":[1.0,-0,1e+400],"none":{},"list":[]}"#;
        Whole {
            small: -8,
            wide: (u64::MAX, i64::MIN),
            broken: f64::NAN,
            real: 0.5,
            letter: '"',
            absent: None,
            left_out: None,
            unit: (),
            nothing: Nothing,
            shapes: vec![
                Shape::Point,
                Shape::Circle(1),
                Shape::Line(1, 2),
                Shape::Square {
                    side: 1.5,
                    name: "a".to_owned(),
                },
            ],
            tagged: vec![Tagged::Empty, Tagged::Full { numbers: vec![1, 2] }],
            by_number: BTreeMap::from([(1, true), (2, false)]),
            tree: serde_json::from_str(tree).unwrap(),
            rest: BTreeMap::from([("x", Pair(1, "y"))]),
        }
    }

    #[test]
    fn types_are_written_as_serde_json_writes_them() {
        let whole = whole();
        assert_eq!(text(&whole), serde_json::to_string(&whole).unwrap());
    }

    #[test]
    fn every_character_is_written_as_serde_json_writes_it() {
        let characters: String = ('\0'..='\u{ff}').chain(['\u{2028}', '🚀']).collect();
        for length in 0..20 {
            let padded = format!("{}{characters}", "x".repeat(length));
            assert_eq!(text(&padded), serde_json::to_string(&padded).unwrap());
        }
    }
}
