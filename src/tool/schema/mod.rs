//! JSON Schema: the subset that occurs in tool parameters and structured output.
//!
//! Checked: `type`, `enum`, `const`; `minimum`, `maximum`, both exclusive forms (numbers, and draft 4's booleans),
//! `multipleOf`; `minLength`, `maxLength` (in characters); `prefixItems`, `items` (draft 7's array form with
//! `additionalItems` too), `contains` with its bounds, `minItems`, `maxItems`, `uniqueItems`; `properties`, `required`,
//! `additionalProperties`, `propertyNames`, `dependentRequired`, `minProperties`, `maxProperties`; `allOf`, `anyOf`,
//! `oneOf`, `not`, `if`/`then`/`else`; local `$ref` (`#`, `#/...`).
//!
//! Ignored, so that more passes than the standard allows: `format`, `unevaluated*`, and `pattern` and
//! `patternProperties`, because most schemas come with a request and a hostile pattern could run without end. Beside
//! `patternProperties`, `additionalProperties` is ignored as well. Numbers are compared by value: `1` is `1.0`.
//!
//! Pure, and bounded on hostile schemas: node count, nesting, work per check and violations all have limits.

mod check;
mod compile;
mod decimal;

use std::fmt;

use serde_json::Value;

use crate::list::List;
use crate::protocol::index::KeySet;
use decimal::Decimal;

/// Most violations one check reports: enough to mend a call, short enough for a prompt.
pub const VIOLATIONS_MAX_COUNT: usize = 8;

/// A compiled schema.
#[derive(Debug, Clone)]
pub struct Schema {
    nodes: Vec<Node>,
}

/// Index into [`Schema::nodes`]; the root is 0.
type NodeId = usize;

type Node = Vec<Keyword>;

/// Why a schema cannot be compiled: it is not checked then, with a warning. Source: contract 2.5.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaFault {
    /// A schema is neither an object nor a boolean.
    #[error("the schema at `{pointer}` is neither an object nor a boolean")]
    NotASchema {
        /// JSON pointer into the schema.
        pointer: String,
    },
    /// A keyword's value is not of the keyword's type.
    #[error("`{keyword}` at `{pointer}` is malformed")]
    MalformedKeyword {
        /// JSON pointer to the schema that has the keyword.
        pointer: String,
        /// The keyword.
        keyword: &'static str,
    },
    /// A reference that leaves the document, is dynamic, or leads nowhere.
    #[error("the reference at `{pointer}` cannot be followed")]
    UnknownReference {
        /// JSON pointer to the schema that refers.
        pointer: String,
    },
    /// References lead in a circle without going deeper into the value.
    #[error("a reference leads back to itself")]
    EndlessReference,
    /// More nodes or deeper nesting than we compile.
    #[error("the schema is too large")]
    TooLarge,
}

/// One way in which a value does not fit, worded for the model that made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// JSON pointer into the value; empty = the whole value.
    pub pointer: String,
    /// What must hold there: `must be a string, not a number`.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            write!(f, "the value {}", self.message)
        } else {
            write!(f, "`{}` {}", self.pointer, self.message)
        }
    }
}

/// One demand of a schema. Those about one type of value leave every other value alone.
#[derive(Debug, Clone)]
enum Keyword {
    /// The schema `false`.
    Never,
    Type(Vec<JsonType>),
    /// `enum`, and `const` as an `enum` of one.
    Enum(Vec<Value>),
    Number(Comparison, Decimal),
    Count(Counted, Bound, u64),
    Array(ArrayKeyword),
    Object(ObjectKeyword),
    Combination(Combination),
}

/// How a number must stand to the one in the schema.
#[derive(Debug, Clone, Copy)]
enum Comparison {
    Minimum,
    ExclusiveMinimum,
    Maximum,
    ExclusiveMaximum,
    MultipleOf,
}

/// What there is a number of, in values of one type.
#[derive(Debug, Clone, Copy)]
enum Counted {
    Characters,
    Items,
    Properties,
}

#[derive(Debug, Clone, Copy)]
enum Bound {
    AtLeast,
    AtMost,
}

#[derive(Debug, Clone)]
enum ArrayKeyword {
    UniqueItems,
    PrefixItems(Vec<NodeId>),
    Items {
        /// Index of the first item it is about.
        from: usize,
        schema: NodeId,
    },
    Contains {
        schema: NodeId,
        min: u64,
        max: Option<u64>,
    },
}

#[derive(Debug, Clone)]
enum ObjectKeyword {
    Required(Vec<String>),
    Properties(Vec<(String, NodeId)>),
    AdditionalProperties {
        /// The names `properties` has.
        known: KeySet<String>,
        schema: NodeId,
    },
    PropertyNames(NodeId),
    DependentRequired(Vec<(String, Vec<String>)>),
}

/// Subschemas about the very value their own schema is about.
#[derive(Debug, Clone)]
enum Combination {
    Reference(NodeId),
    AllOf(Vec<NodeId>),
    AnyOf(Vec<NodeId>),
    OneOf(Vec<NodeId>),
    Not(NodeId),
    If {
        condition: NodeId,
        then: Option<NodeId>,
        otherwise: Option<NodeId>,
    },
}

impl Combination {
    fn nodes(&self) -> Vec<NodeId> {
        match self {
            Self::Reference(id) | Self::Not(id) => vec![*id],
            Self::AllOf(ids) | Self::AnyOf(ids) | Self::OneOf(ids) => ids.clone(),
            Self::If {
                condition,
                then,
                otherwise,
            } => [Some(*condition), *then, *otherwise].into_iter().flatten().list(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JsonType {
    Null,
    Boolean,
    Integer,
    Number,
    String,
    Array,
    Object,
}

impl JsonType {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "null" => Self::Null,
            "boolean" => Self::Boolean,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "string" => Self::String,
            "array" => Self::Array,
            "object" => Self::Object,
            _ => return None,
        })
    }

    fn with_article(self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean => "a boolean",
            Self::Integer => "an integer",
            Self::Number => "a number",
            Self::String => "a string",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }
}

impl Schema {
    /// Compiles a schema document.
    ///
    /// # Errors
    /// [`SchemaFault`] when the document is not a schema of the subset.
    pub fn compile(document: &Value) -> Result<Self, SchemaFault> {
        match compile::compile(document) {
            Ok(nodes) => Ok(Self { nodes }),
            Err(fault) => Err(*fault),
        }
    }

    /// Checks a value. When the check would take unreasonable work, what is left unchecked counts as fitting.
    ///
    /// # Errors
    /// The violations in document order, from one to [`VIOLATIONS_MAX_COUNT`].
    pub fn check(&self, value: &Value) -> Result<(), Vec<Violation>> {
        check::check(&self.nodes, value)
    }
}

#[cfg(test)]
#[path = "schema_tests.rs"]
mod tests;
