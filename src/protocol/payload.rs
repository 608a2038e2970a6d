//! Types read from their JSON text in one pass. Those of others are payloads: unknown members are skipped, absent ones
//! keep their default, of a repeated one the last counts. For our own see `read`.
//!
//! What all types have in common works on `dyn Member`, so that a type costs a table and no code of its own.

use std::borrow::Cow;

use serde_json::Value;

use super::json;
use super::json_cursor::{CursorFault, JsonCursor};
use super::json_text::unescaped;

/// What can stand at a member of an object.
pub trait Member<'a> {
    /// What it is before it is read.
    fn blank() -> Self
    where
        Self: Sized;

    /// Becomes what is next.
    ///
    /// # Errors
    /// [`CursorFault`]
    fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault>;
}

/// Makes a type of named members readable from an object: `payload!(Part<'a>: "text" => text, "thought" => thought);`
macro_rules! payload {
    ($type:ident $(<$life:lifetime>)?: $($name:literal => $field:ident),+ $(,)?) => {
        impl<'a> $crate::protocol::payload::Member<'a> for $type $(<$life>)? {
            fn blank() -> Self {
                Self::default()
            }

            fn read(
                &mut self,
                json: &mut $crate::protocol::json_cursor::JsonCursor<'a>,
            ) -> Result<(), $crate::protocol::json_cursor::CursorFault> {
                $crate::protocol::payload::read_object(json, &mut [$(($name, &mut self.$field)),+])
            }
        }
    };
}
pub(crate) use payload;

/// Reads a payload from its whole text.
///
/// # Errors
/// [`CursorFault`]
pub fn read<'a, T: Member<'a>>(text: &'a str) -> Result<T, CursorFault> {
    let mut payload = T::blank();
    read_into(text, &mut payload)?;
    Ok(payload)
}

/// As [`read`], to where the payload is to be: large ones are not moved for every token.
///
/// # Errors
/// [`CursorFault`]
pub fn read_into<'a>(text: &'a str, payload: &mut dyn Member<'a>) -> Result<(), CursorFault> {
    let mut json = JsonCursor::new(text);
    payload.read(&mut json)?;
    json.end()
}

/// Reads an object's members to their places.
///
/// # Errors
/// [`CursorFault`]
pub fn read_object<'a>(
    json: &mut JsonCursor<'a>,
    members: &mut [(&str, &mut dyn Member<'a>)],
) -> Result<(), CursorFault> {
    let mut next = json.next_member(true)?;
    while let Some(name) = next {
        let is_known = read_member(json, members, name)?
            || match unescaped(name) {
                Some(name) => read_member(json, members, name.as_bytes())?,
                None => false,
            };
        if !is_known {
            json.skip()?;
        }
        next = json.next_member(false)?;
    }
    Ok(())
}

/// Reads the value of the member of this name, if there is one.
fn read_member<'a>(
    json: &mut JsonCursor<'a>,
    members: &mut [(&str, &mut dyn Member<'a>)],
    name: &[u8],
) -> Result<bool, CursorFault> {
    for (known, member) in members {
        // Lengths first: that calls nothing.
        if known.len() == name.len() && known.as_bytes() == name {
            member.read(json)?;
            return Ok(true);
        }
    }
    Ok(false)
}

/// Says what stands at a place instead of what was expected there.
#[cold]
#[inline(never)]
pub(super) fn mismatch(
    json: &mut JsonCursor<'_>,
    start: usize,
    expected: &str,
    fault: CursorFault,
) -> CursorFault {
    json.go_on_at(start);
    let Ok(value) = json.value() else {
        return fault;
    };
    let is_whole = value.is_u64() || value.is_i64();
    let is_out_of_range = is_whole && matches!(expected, "u32" | "u64" | "usize" | "i64");
    let kind = if is_out_of_range { "value" } else { "type" };
    let found = match value {
        Value::Null => "null".to_owned(),
        Value::Bool(flag) => format!("boolean `{flag}`"),
        Value::Number(number) if is_whole => format!("integer `{number}`"),
        Value::Number(number) => format!("floating point `{number}`"),
        text @ Value::String(_) => format!("string {}", json::text(&text)),
        Value::Array(_) => "sequence".to_owned(),
        Value::Object(_) => "map".to_owned(),
    };
    json.complain(format!("invalid {kind}: {found}, expected {expected}"))
}

/// A text that is expected to be something.
pub(super) fn text<'a>(json: &mut JsonCursor<'a>, expected: &str) -> Result<Cow<'a, str>, CursorFault> {
    let start = json.position();
    json.text()
        .map_err(|fault| mismatch(json, start, expected, fault))
}

/// `null` is none.
impl<'a, T: Member<'a>> Member<'a> for Option<T> {
    fn blank() -> Self {
        None
    }

    fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
        *self = None;
        if json.take_null()? {
            return Ok(());
        }
        self.insert(T::blank()).read(json)
    }
}

/// What grows item by item.
trait Items<'a> {
    fn read_another(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault>;
}

impl<'a, T: Member<'a>> Items<'a> for Vec<T> {
    fn read_another(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
        self.push(T::blank());
        self.last_mut().map_or(Ok(()), |item| item.read(json))
    }
}

fn read_items<'a>(json: &mut JsonCursor<'a>, items: &mut dyn Items<'a>) -> Result<(), CursorFault> {
    let start = json.position();
    let mut is_next = json
        .next_item(true)
        .map_err(|fault| mismatch(json, start, "a sequence", fault))?;
    while is_next {
        items.read_another(json)?;
        is_next = json.next_item(false)?;
    }
    Ok(())
}

impl<'a, T: Member<'a>> Member<'a> for Vec<T> {
    fn blank() -> Self {
        Self::new()
    }

    fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
        self.clear();
        read_items(json, self)
    }
}

impl<'a, T: Member<'a>> Member<'a> for Box<T> {
    fn blank() -> Self {
        Self::new(T::blank())
    }

    fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
        (**self).read(json)
    }
}

impl<'a> Member<'a> for u64 {
    fn blank() -> Self {
        0
    }

    fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
        let start = json.position();
        *self = json
            .count()
            .map_err(|fault| mismatch(json, start, "u64", fault))?;
        Ok(())
    }
}

impl<'a> Member<'a> for bool {
    fn blank() -> Self {
        false
    }

    fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
        let start = json.position();
        *self = json
            .flag()
            .map_err(|fault| mismatch(json, start, "a boolean", fault))?;
        Ok(())
    }
}

impl<'a> Member<'a> for String {
    fn blank() -> Self {
        Self::new()
    }

    fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
        *self = text(json, "a string")?.into_owned();
        Ok(())
    }
}

impl<'a> Member<'a> for Value {
    fn blank() -> Self {
        Self::Null
    }

    fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
        *self = json.value()?;
        Ok(())
    }
}

/// Any JSON as it is written; empty where there is none.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Raw<'a>(pub &'a str);

impl<'a> Member<'a> for Raw<'a> {
    fn blank() -> Self {
        Self::default()
    }

    fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
        self.0 = json.raw()?;
        Ok(())
    }
}

/// A member that may be of any form without breaking the rest: the default, where it cannot be read.
#[derive(Debug, Default)]
pub struct Lenient<T>(pub T);

impl<'a, T: Member<'a>> Member<'a> for Lenient<T> {
    fn blank() -> Self {
        Self(T::blank())
    }

    fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
        self.0 = read(json.raw()?).unwrap_or_else(|_| T::blank());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Default, PartialEq)]
    struct Part<'a> {
        name: Raw<'a>,
        count: Option<u64>,
        is_last: Option<bool>,
        parts: Option<Vec<Part<'a>>>,
        inner: Option<Box<Part<'a>>>,
    }

    payload!(Part<'a>:
        "name" => name, "count" => count, "isLast" => is_last, "parts" => parts, "inner" => inner,
    );

    #[test]
    fn members_are_read_by_name_and_the_rest_is_skipped() {
        let text = r#" {"count":1,"x":[{"count":9}],"is\u004cast":true,"name":{"a" : 1.0},"count":2,
            "parts":[{"count":null},{}],"inner":{"inner":{}}} "#;
        let expected = Part {
            name: Raw(r#"{"a" : 1.0}"#),
            count: Some(2),
            is_last: Some(true),
            parts: Some(vec![Part::default(), Part::default()]),
            inner: Some(Box::new(Part {
                inner: Some(Box::default()),
                ..Part::default()
            })),
        };
        assert_eq!(read(text), Ok(expected));
        let last_counts = r#"{"count":1,"parts":[{}],"count":null,"parts":[]}"#;
        let expected = Part {
            parts: Some(vec![]),
            ..Part::default()
        };
        assert_eq!(read(last_counts), Ok(expected));
    }

    #[test]
    fn a_member_of_another_kind_is_a_fault() {
        for text in [
            r#"{"count":"1"}"#,
            r#"{"count":1.5}"#,
            r#"{"isLast":0}"#,
            r#"{"parts":{}}"#,
            r#"{"parts":[1]}"#,
            r#"{"inner":[]}"#,
            r#"{"count":1}x"#,
            r#"{"x":01}"#,
            "[]",
            "null",
        ] {
            assert_eq!(read::<Part<'_>>(text), Err(CursorFault::Unexpected), "{text}");
        }
        assert_eq!(read::<Part<'_>>(r#"{"count":1"#), Err(CursorFault::Cut));
    }

    #[test]
    fn a_lenient_member_is_none_where_it_cannot_be_read() {
        let count = |text| read::<Lenient<Option<u64>>>(text).map(|count| count.0);
        assert_eq!(count("7"), Ok(Some(7)));
        for text in ["null", "\"7\"", "7.0", "{\"a\":[]}"] {
            assert_eq!(count(text), Ok(None), "{text}");
        }
        assert_eq!(count("tru"), Err(CursorFault::Cut));
    }
}
