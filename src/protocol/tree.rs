//! JSON trees as they are written in the code: `json!({ "name": name, "list": [1, null] })`.
//!
//! As `serde_json::json!`, but for what code it makes: there every member is some hundred bytes, and every type in one is
//! written a second time, for trees.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::event::TokenUsage;
use super::message::ContentPart;
use super::thread::ThreadOrder;
use super::tool::{Tool, ToolCall};
use crate::list::List;

/// What can stand in a tree.
pub trait ToTree {
    /// The tree of it.
    fn to_tree(&self) -> Value;
}

/// Makes a tree of JSON with expressions in it.
macro_rules! json {
    (@object [$($done:tt)*]) => { $crate::protocol::tree::object(vec![$($done)*]) };
    (@object [$($done:tt)*] $name:tt: null $(, $($rest:tt)*)?) => {
        $crate::protocol::tree::json!(@object [$($done)* ($name, ::serde_json::Value::Null),] $($($rest)*)?)
    };
    (@object [$($done:tt)*] $name:tt: { $($inner:tt)* } $(, $($rest:tt)*)?) => {
        $crate::protocol::tree::json!(
            @object [$($done)* ($name, $crate::protocol::tree::json!({ $($inner)* })),] $($($rest)*)?
        )
    };
    (@object [$($done:tt)*] $name:tt: [ $($inner:tt)* ] $(, $($rest:tt)*)?) => {
        $crate::protocol::tree::json!(
            @object [$($done)* ($name, $crate::protocol::tree::json!([ $($inner)* ])),] $($($rest)*)?
        )
    };
    (@object [$($done:tt)*] $name:tt: $value:expr $(, $($rest:tt)*)?) => {
        $crate::protocol::tree::json!(
            @object [$($done)* ($name, $crate::protocol::tree::ToTree::to_tree(&$value)),] $($($rest)*)?
        )
    };
    ({ $($members:tt)* }) => { $crate::protocol::tree::json!(@object [] $($members)*) };
    ([ $($item:tt),* $(,)? ]) => { ::serde_json::Value::Array(vec![$($crate::protocol::tree::json!($item)),*]) };
    ([ $($item:expr),* $(,)? ]) => {
        ::serde_json::Value::Array(vec![$($crate::protocol::tree::ToTree::to_tree(&$item)),*])
    };
    (null) => { ::serde_json::Value::Null };
    ($value:expr) => { $crate::protocol::tree::ToTree::to_tree(&$value) };
}
pub(crate) use json;

/// An object of these members.
pub fn object(members: Vec<(&str, Value)>) -> Value {
    let mut map = Map::new();
    for (name, value) in members {
        map.insert(name.to_owned(), value);
    }
    Value::Object(map)
}

impl<T: ToTree + ?Sized> ToTree for &T {
    fn to_tree(&self) -> Value {
        (**self).to_tree()
    }
}

impl<T: ToTree> ToTree for Option<T> {
    fn to_tree(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::to_tree)
    }
}

impl<T: ToTree> ToTree for [T] {
    fn to_tree(&self) -> Value {
        Value::Array(self.iter().map(T::to_tree).list())
    }
}

impl<T: ToTree> ToTree for Vec<T> {
    fn to_tree(&self) -> Value {
        self.as_slice().to_tree()
    }
}

impl<T: ToTree, const COUNT: usize> ToTree for [T; COUNT] {
    fn to_tree(&self) -> Value {
        self.as_slice().to_tree()
    }
}

impl ToTree for str {
    fn to_tree(&self) -> Value {
        Value::String(self.to_owned())
    }
}

impl ToTree for String {
    fn to_tree(&self) -> Value {
        self.as_str().to_tree()
    }
}

impl ToTree for Cow<'_, str> {
    fn to_tree(&self) -> Value {
        (**self).to_tree()
    }
}

impl ToTree for Value {
    fn to_tree(&self) -> Value {
        self.clone()
    }
}

impl ToTree for Map<String, Value> {
    fn to_tree(&self) -> Value {
        Value::Object(self.clone())
    }
}

/// Makes types trees by way of their text: so each has one writer.
macro_rules! trees_of_text {
    ($($type:ident)*) => {$(
        impl $crate::protocol::tree::ToTree for $type {
            fn to_tree(&self) -> ::serde_json::Value {
                $crate::protocol::read::to_value(self)
            }
        }
    )*};
}
pub(crate) use trees_of_text;

trees_of_text! { ContentPart ThreadOrder TokenUsage Tool ToolCall }

macro_rules! scalars {
    ($($type:ident)*) => {$(
        impl ToTree for $type {
            fn to_tree(&self) -> Value {
                Value::from(*self)
            }
        }
    )*};
}

scalars! { bool u8 u16 u32 u64 usize i32 i64 }
