//! Typed payloads of upstreams, read from their text in one pass: unknown members are skipped, absent ones keep their
//! default, of a repeated one the last counts.
//!
//! What all types have in common works on `dyn Member`, so that a type costs a table and no code of its own.

use serde_json::Value;

use crate::protocol::json_cursor::{CursorFault, JsonCursor, unescaped};

/// What can stand at a member of a payload.
pub trait Member<'a> {
    /// Becomes what is next.
    ///
    /// # Errors
    /// [`CursorFault`]
    fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault>;
}

/// Makes a type of named members readable from an object: `payload!(Part<'a>: "text" => text, "thought" => thought);`
macro_rules! payload {
    ($type:ident $(<$life:lifetime>)?: $($name:literal => $field:ident),+ $(,)?) => {
        impl<'a> $crate::provider::payload::Member<'a> for $type $(<$life>)? {
            fn read(
                &mut self,
                json: &mut $crate::protocol::json_cursor::JsonCursor<'a>,
            ) -> Result<(), $crate::protocol::json_cursor::CursorFault> {
                $crate::provider::payload::read_object(json, &mut [$(($name, &mut self.$field)),+])
            }
        }
    };
}
pub(super) use payload;

/// Reads a payload from its whole text.
///
/// # Errors
/// [`CursorFault`]
pub fn read<'a, T: Member<'a> + Default>(text: &'a str) -> Result<T, CursorFault> {
    let mut payload = T::default();
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

/// `null` is none.
impl<'a, T: Member<'a> + Default> Member<'a> for Option<T> {
    fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
        *self = None;
        if json.take_null()? {
            return Ok(());
        }
        self.insert(T::default()).read(json)
    }
}

impl<'a, T: Member<'a> + Default> Member<'a> for Vec<T> {
    fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
        self.clear();
        let mut is_next = json.next_item(true)?;
        while is_next {
            let mut item = T::default();
            item.read(json)?;
            self.push(item);
            is_next = json.next_item(false)?;
        }
        Ok(())
    }
}

impl<'a, T: Member<'a>> Member<'a> for Box<T> {
    fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
        (**self).read(json)
    }
}

impl<'a> Member<'a> for u64 {
    fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
        *self = json.count()?;
        Ok(())
    }
}

impl<'a> Member<'a> for bool {
    fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
        *self = json.flag()?;
        Ok(())
    }
}

impl<'a> Member<'a> for String {
    fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
        *self = json.text()?.into_owned();
        Ok(())
    }
}

impl<'a> Member<'a> for Value {
    fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
        *self = json.value()?;
        Ok(())
    }
}

/// Any JSON as it is written; empty where there is none.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Raw<'a>(pub &'a str);

impl<'a> Member<'a> for Raw<'a> {
    fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
        self.0 = json.raw()?;
        Ok(())
    }
}

/// A member that may be of any form without breaking the rest: the default, where it cannot be read.
#[derive(Debug, Default)]
pub struct Lenient<T>(pub T);

impl<'a, T: Member<'a> + Default> Member<'a> for Lenient<T> {
    fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
        self.0 = read(json.raw()?).unwrap_or_default();
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
