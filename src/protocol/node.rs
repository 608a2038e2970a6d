//! A JSON value that borrows what it can from its text.
//!
//! What is read once and taken apart, as posted bodies and stored messages are, needs no hash map per object and no copy
//! of each name.

use std::borrow::Cow;

use serde_json::{Map, Value};

/// A value, borrowed from a text.
#[derive(Debug)]
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
            Self::List(items) => {
                let mut values = Vec::with_capacity(items.len());
                for item in items {
                    values.push(item.into_value());
                }
                Value::Array(values)
            }
            Self::Object(members) => Value::Object(into_map(members)),
        }
    }

    /// Whether it is `null`.
    pub fn is_null(&self) -> bool {
        matches!(self, Self::Null)
    }

    /// Its text, if it is one.
    pub fn into_text(self) -> Option<String> {
        match self {
            Self::Text(text) => Some(text.into_owned()),
            Self::Null | Self::Bool(_) | Self::Number(_) | Self::List(_) | Self::Object(_) => None,
        }
    }
}

/// Members as a tree that owns them.
pub fn into_map(members: Vec<(Cow<'_, str>, Node<'_>)>) -> Map<String, Value> {
    let mut map = Map::new();
    for (name, node) in members {
        map.insert(name.into_owned(), node.into_value());
    }
    map
}
