//! How every JSON body is read: all faults collected with their place, what is not known dropped with a warning.
//!
//! A reader that meets a fault notes it and goes on with a stand-in value; [`Report::finish`] refuses the whole body
//! then, so no stand-in ever leaves this crate's decoders.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};

use super::id::IdFault;
use super::json::{self, JsonFault};
use super::node::{Node, into_map};

/// Most issues, and most warnings, that are kept of one body.
pub const NOTE_MAX_COUNT: usize = 20;

/// Longest member name written into a pointer, in characters: a name is the client's text.
const POINTER_NAME_MAX_CHARS: usize = 64;

/// Why a body is refused. Source: contract 2.1, D2, AG-UI 3 (rule 5).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// Not JSON, or not an object.
    #[error("{message}")]
    Malformed {
        /// One sentence for the client.
        message: String,
    },
    /// Known members that are missing or of the wrong type.
    #[error("the body has {} invalid member(s)", issues.len())]
    Invalid {
        /// At least one, at most [`NOTE_MAX_COUNT`], in reading order.
        issues: Vec<Issue>,
    },
    /// More JSON values than [`json::JSON_MAX_VALUE_COUNT`].
    #[error("the body holds too many JSON values")]
    TooManyValues,
    /// A protocol major we do not speak.
    #[error("this protocol version is not supported")]
    UnsupportedVersion,
}

impl From<JsonFault> for InputError {
    fn from(fault: JsonFault) -> Self {
        match fault {
            JsonFault::Syntax { .. } | JsonFault::TooDeep => Self::Malformed {
                message: format!("The body is {fault}."),
            },
            JsonFault::TooManyValues => Self::TooManyValues,
        }
    }
}

/// One fault of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// RFC 6901 pointer.
    pub pointer: String,
    /// What is wrong, to be read after the pointer: `must be a string`.
    pub message: String,
}

/// Something in a body that was ignored. For the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// RFC 6901 pointer; long member names are cut.
    pub pointer: String,
    /// What happened, to be read after the pointer: `is not known and was ignored`.
    pub message: String,
}

/// Where a value stands in the body; written as an RFC 6901 pointer.
#[derive(Debug, Clone, Copy)]
pub enum Path<'a> {
    /// The body itself.
    Root,
    /// A member of an object.
    Member(&'a Path<'a>, &'a str),
    /// An item of a list.
    Item(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Item(list, index) => write!(f, "{list}/{index}"),
            Self::Member(object, name) => {
                let name: String = name.chars().take(POINTER_NAME_MAX_CHARS).collect();
                write!(f, "{object}/{}", name.replace('~', "~0").replace('/', "~1"))
            }
        }
    }
}

/// What was found wrong with a body so far.
#[derive(Debug, Default)]
pub struct Report {
    issues: Vec<Issue>,
    warnings: Vec<Warning>,
}

impl Report {
    /// Notes a fault: the body will be refused.
    pub fn issue(&mut self, at: Path<'_>, message: &str) {
        if self.issues.len() < NOTE_MAX_COUNT {
            let (pointer, message) = (at.to_string(), message.to_owned());
            self.issues.push(Issue { pointer, message });
        }
    }

    /// Notes something that is ignored.
    pub fn warn(&mut self, at: Path<'_>, message: &str) {
        if self.warnings.len() < NOTE_MAX_COUNT {
            let (pointer, message) = (at.to_string(), message.to_owned());
            self.warnings.push(Warning { pointer, message });
        }
    }

    /// Gives the value and the warnings of a body without faults.
    ///
    /// # Errors
    /// [`InputError::Invalid`] with every fault noted.
    pub fn finish<T>(self, value: T) -> Result<(T, Vec<Warning>), InputError> {
        if self.issues.is_empty() {
            Ok((value, self.warnings))
        } else {
            Err(InputError::Invalid { issues: self.issues })
        }
    }
}

/// An object being read: members are taken out by name, the rest is what we do not know.
#[derive(Debug)]
pub struct Object<'a> {
    members: Vec<(Cow<'a, str>, Node<'a>)>,
    at: &'a Path<'a>,
}

impl<'a> Object<'a> {
    /// Parses a body that must be one object.
    ///
    /// # Errors
    /// [`InputError::Malformed`], [`InputError::TooManyValues`]
    pub fn parse(body: &'a str) -> Result<Self, InputError> {
        match json::parse_node(body)? {
            Node::Object(members) => Ok(Self {
                members,
                at: &Path::Root,
            }),
            _ => Err(InputError::Malformed {
                message: "The body must be a JSON object.".to_owned(),
            }),
        }
    }

    /// Opens a value that must be an object; anything else is an issue and `None`.
    pub fn open(node: Node<'a>, at: &'a Path<'a>, report: &mut Report) -> Option<Self> {
        match node {
            Node::Object(members) => Some(Self { members, at }),
            _ => {
                report.issue(*at, "must be an object");
                None
            }
        }
    }

    /// The place of a member.
    pub fn path<'b>(&'b self, name: &'b str) -> Path<'b> {
        Path::Member(self.at, name)
    }

    /// Takes a member, whatever it is; the order of the others stays.
    pub fn take(&mut self, name: &str) -> Option<Node<'a>> {
        let mut taken = None;
        self.members.retain_mut(|(own, node)| {
            let is_other = own != name;
            if !is_other {
                taken = Some(std::mem::replace(node, Node::Null));
            }
            is_other
        });
        taken
    }

    /// Takes a member whose explicit `null` means absent.
    pub fn take_some(&mut self, name: &str) -> Option<Node<'a>> {
        self.take(name).filter(|node| !node.is_null())
    }

    /// Takes a member that older clients send as `null`: that is absent, with a warning. Source: AG-UI 3 (rule 6).
    pub fn take_legacy(&mut self, name: &str, report: &mut Report) -> Option<Node<'a>> {
        let node = self.take(name)?;
        if node.is_null() {
            report.warn(self.path(name), "was null and counts as absent");
            return None;
        }
        Some(node)
    }

    /// Whether a member is there, whatever it is.
    pub fn has(&self, name: &str) -> bool {
        self.members.iter().any(|(own, _)| own == name)
    }

    /// Takes a member of any type but `null`.
    pub fn optional_any(&mut self, name: &str, report: &mut Report) -> Option<Value> {
        let node = self.take(name)?;
        if node.is_null() {
            report.issue(self.path(name), "must not be null");
            return None;
        }
        Some(node.into_value())
    }

    /// Takes a string member; missing or another type is an issue and `None`.
    pub fn required_string(&mut self, name: &str, report: &mut Report) -> Option<String> {
        match self.take(name) {
            Some(Node::Text(text)) => return Some(text.into_owned()),
            Some(_) => report.issue(self.path(name), "must be a string"),
            None => report.issue(self.path(name), "is required"),
        }
        None
    }

    /// As [`Self::required_string`] with an empty stand-in.
    pub fn string(&mut self, name: &str, report: &mut Report) -> String {
        self.required_string(name, report).unwrap_or_default()
    }

    /// Takes a string member that may be absent but not `null`.
    pub fn optional_string(&mut self, name: &str, report: &mut Report) -> Option<String> {
        match self.take(name)? {
            Node::Text(text) => Some(text.into_owned()),
            _ => {
                report.issue(self.path(name), "must be a string");
                None
            }
        }
    }

    /// Takes an id; `parse` says what an id is, `stand_in` makes one after a fault.
    pub fn id<I>(
        &mut self,
        name: &str,
        parse: fn(&str) -> Result<I, IdFault>,
        stand_in: fn(&'static str) -> I,
        report: &mut Report,
    ) -> I {
        match self.take(name) {
            Some(Node::Text(text)) => match parse(&text) {
                Ok(id) => return id,
                Err(fault) => report.issue(self.path(name), &fault.to_string()),
            },
            Some(_) => report.issue(self.path(name), "must be a string"),
            None => report.issue(self.path(name), "is required"),
        }
        stand_in("")
    }

    /// Takes an object member whose inside is not ours to judge.
    pub fn optional_map(&mut self, name: &str, report: &mut Report) -> Option<Map<String, Value>> {
        match self.take(name)?.into_value() {
            Value::Object(members) => Some(members),
            _ => {
                report.issue(self.path(name), "must be an object");
                None
            }
        }
    }

    /// Takes a list and reads its items one by one; what `read` drops is left out. Missing is empty, unless required.
    pub fn list<T>(
        &mut self,
        name: &str,
        required: bool,
        report: &mut Report,
        read: impl FnMut(Node<'_>, &Path<'_>, &mut Report) -> Option<T>,
    ) -> Vec<T> {
        match self.take(name) {
            Some(node) => read_list(node, &self.path(name), report, read),
            None if required => {
                report.issue(self.path(name), "is required");
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    /// Ends the reading: every member left is not known, and said so.
    pub fn ignore_rest(self, report: &mut Report) {
        for (name, _) in &self.members {
            report.warn(Path::Member(self.at, name), "is not known and was ignored");
        }
    }

    /// Ends the reading and gives the members left.
    pub fn into_rest(self) -> Map<String, Value> {
        into_map(self.members)
    }
}

/// Reads a value that must be a list, item by item.
pub fn read_list<T>(
    node: Node<'_>,
    at: &Path<'_>,
    report: &mut Report,
    mut read: impl FnMut(Node<'_>, &Path<'_>, &mut Report) -> Option<T>,
) -> Vec<T> {
    let mut list = Vec::new();
    read_items(node, at, report, &mut |item, at, report| {
        list.extend(read(item, at, report))
    });
    list
}

/// Once for all types of lists.
fn read_items(
    node: Node<'_>,
    at: &Path<'_>,
    report: &mut Report,
    read: &mut dyn FnMut(Node<'_>, &Path<'_>, &mut Report),
) {
    let Node::List(items) = node else {
        return report.issue(*at, "must be an array");
    };
    for (index, item) in items.into_iter().enumerate() {
        read(item, &Path::Item(at, index), report);
    }
}
