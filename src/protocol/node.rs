//! A JSON value that borrows what it can from its text.
//!
//! What is read once and taken apart, as posted bodies and stored messages are, needs no hash map per object and no copy
//! of each name.

use std::borrow::Cow;

use serde_json::Value;

use crate::list::List;

/// A value, borrowed from a text.
#[derive(Debug, Clone, PartialEq)]
pub enum Node<'t> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number as it is written.
    Number(&'t str),
    /// A text as it is meant.
    Text(Cow<'t, str>),
    /// A list.
    List(Vec<Self>),
    /// Members in their order; of a repeated one the last counts.
    Object(Vec<(Cow<'t, str>, Self)>),
}

impl Node<'_> {
    /// The same as a tree that owns everything; a repeated member keeps its first place.
    pub fn into_value(self) -> Value {
        match self {
            Self::Null => Value::Null,
            Self::Bool(flag) => Value::Bool(flag),
            // What was read as a number parses as one.
            Self::Number(digits) => digits.parse().map_or(Value::Null, Value::Number),
            Self::Text(text) => Value::String(text.into_owned()),
            Self::List(items) => Value::Array(items.into_iter().map(Self::into_value).list()),
            Self::Object(members) => {
                let members = members.into_iter();
                Value::Object(
                    members
                        .map(|(name, value)| (name.into_owned(), value.into_value()))
                        .collect(),
                )
            }
        }
    }

    /// Its text, if it is one.
    pub fn into_text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.into_owned()),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::List(_) | Self::Object(_) => None,
        }
    }
}
