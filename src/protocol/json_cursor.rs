//! JSON text read in one pass: no tree, nothing copied but texts with escapes.
//!
//! For what is read once per token. Byte by byte, without iterators and without a type parameter: so it is small, and
//! its speed does not depend on how much the compiler inlines.

use std::borrow::Cow;

use serde_json::Value;

use super::json_text::{heal_surrogates, meant, plain_end};
use super::node::Node;
use super::number;

/// Containers within one another that typed reading enters; as many as `serde_json` does.
const DEPTH_MAX: u8 = 127;

/// Why a text was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum CursorFault {
    /// The text ended within the value.
    #[error("the JSON text is cut")]
    Cut,
    /// No JSON, or a value of another kind.
    #[error("the JSON text is not of the kind wanted")]
    Unexpected,
}

/// A JSON text and how far it is read.
#[derive(Debug)]
pub struct JsonCursor<'a> {
    text: &'a str,
    at: usize,
    depth: u8,
    /// Whether a half of a surrogate pair that is alone is read as U+FFFD.
    heals: bool,
    /// What stood not where reading ended: a mark, `\\` for an escape, a blank for a plain character, `0` for a digit.
    missing: u8,
    /// What is wrong with the text, where more is known than a fault says; else empty.
    complaint: String,
}

/// Whether a text is one JSON value.
pub fn is_json(text: &str) -> bool {
    let mut json = JsonCursor::new(text);
    json.skip().and_then(|()| json.end()).is_ok()
}

impl<'a> JsonCursor<'a> {
    /// At the beginning of a text.
    pub fn new(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            heals: false,
            missing: 0,
            complaint: String::new(),
        }
    }

    /// As [`Self::new`], for a text from outside: a half of a surrogate pair that is alone is read as U+FFFD.
    pub fn healing(text: &'a str) -> Self {
        Self {
            heals: true,
            ..Self::new(text)
        }
    }

    /// How far the text is read, in bytes.
    pub fn position(&self) -> usize {
        self.at
    }

    /// Goes on from a place where another cursor was, in a text that is the same up to there.
    pub fn go_on_at(&mut self, position: usize) {
        self.at = position;
    }

    /// Says in words what is wrong with the text.
    #[cold]
    pub fn complain(&mut self, words: String) -> CursorFault {
        self.complaint = words;
        CursorFault::Unexpected
    }

    /// What is wrong with the text; empty where nothing was said of it.
    pub fn complaint(&self) -> &str {
        &self.complaint
    }

    /// Nothing but blanks may be left.
    ///
    /// # Errors
    /// [`CursorFault::Unexpected`]
    pub fn end(&mut self) -> Result<(), CursorFault> {
        self.peek();
        if self.at == self.text.len() {
            Ok(())
        } else {
            Err(CursorFault::Unexpected)
        }
    }

    /// The byte a value begins with, or whatever else is next; 0, which JSON has nowhere, at the end.
    #[inline(always)]
    pub fn peek(&mut self) -> u8 {
        loop {
            let byte = self.byte();
            if byte > b' ' || !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                return byte;
            }
            self.at += 1;
        }
    }

    /// `null`, if it is next.
    ///
    /// # Errors
    /// [`CursorFault`]
    pub fn take_null(&mut self) -> Result<bool, CursorFault> {
        if self.peek() != b'n' {
            return Ok(false);
        }
        self.word("null").map(|()| true)
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// [`CursorFault`]
    pub fn flag(&mut self) -> Result<bool, CursorFault> {
        if self.peek() == b't' {
            self.word("true").map(|()| true)
        } else {
            self.word("false").map(|()| false)
        }
    }

    /// A whole number from 0 to [`u64::MAX`], written as one.
    ///
    /// # Errors
    /// [`CursorFault`]
    pub fn count(&mut self) -> Result<u64, CursorFault> {
        self.peek();
        let digits = self.raw()?;
        // Of numbers only digits parse; texts and the like never do.
        number::unsigned(digits).ok_or(CursorFault::Unexpected)
    }

    /// A text.
    ///
    /// # Errors
    /// [`CursorFault`]
    pub fn text(&mut self) -> Result<Cow<'a, str>, CursorFault> {
        self.peek();
        let start = self.at;
        self.mark(b'"')?;
        self.skip_plain();
        if self.byte() == b'"' {
            let text = self.text.get(start + 1..self.at).unwrap_or_default();
            self.at += 1;
            return Ok(Cow::Borrowed(text));
        }
        self.skip_text_rest()?;
        let written = self.text.get(start + 1..self.at - 1).unwrap_or_default();
        match meant(written) {
            Some(text) => Ok(Cow::Owned(text)),
            None => self.healed(written),
        }
    }

    #[cold]
    fn healed(&self, written: &str) -> Result<Cow<'a, str>, CursorFault> {
        let healed = self.heals.then(|| heal_surrogates(written));
        healed
            .and_then(|written| meant(&written))
            .map(Cow::Owned)
            .ok_or(CursorFault::Unexpected)
    }

    /// Any value, taken apart.
    ///
    /// # Errors
    /// [`CursorFault`]
    pub fn node(&mut self) -> Result<Node<'a>, CursorFault> {
        // A tree counts its own levels only.
        let outer_depth = std::mem::take(&mut self.depth);
        let node = self.branch();
        self.depth = outer_depth;
        node
    }

    /// The value that the text is, taken apart.
    ///
    /// # Errors
    /// [`CursorFault`]
    pub fn whole_node(&mut self) -> Result<Node<'a>, CursorFault> {
        let node = self.node()?;
        self.end()?;
        Ok(node)
    }

    /// Any value, as a tree.
    ///
    /// # Errors
    /// [`CursorFault`]
    pub fn value(&mut self) -> Result<Value, CursorFault> {
        self.node().map(Node::into_value)
    }

    /// The value that the text is, as a tree.
    ///
    /// # Errors
    /// [`CursorFault`]
    pub fn whole(&mut self) -> Result<Value, CursorFault> {
        self.whole_node().map(Node::into_value)
    }

    fn branch(&mut self) -> Result<Node<'a>, CursorFault> {
        match self.peek() {
            b'"' => self.text().map(Node::Text),
            b'{' => {
                let mut members = Vec::new();
                while self.enter(members.is_empty(), b'{', b'}')? {
                    let name = self.text()?;
                    self.peek();
                    self.mark(b':')?;
                    members.push((name, self.branch()?));
                }
                Ok(Node::Object(members))
            }
            b'[' => {
                let mut items = Vec::new();
                while self.next_item(items.is_empty())? {
                    items.push(self.branch()?);
                }
                Ok(Node::List(items))
            }
            b't' => self.known("true", Node::Bool(true)),
            b'f' => self.known("false", Node::Bool(false)),
            b'n' => self.known("null", Node::Null),
            b'-' | b'0'..=b'9' => self.raw().map(Node::Number),
            _ => Err(self.fault(0)),
        }
    }

    /// A word that stands for a value; what differs is where reading ends.
    fn known(&mut self, word: &str, node: Node<'a>) -> Result<Node<'a>, CursorFault> {
        let read = self.word(word);
        if read.is_err() {
            let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
            let same = word.bytes().zip(rest).take_while(|(one, other)| one == *other);
            self.at += same.count();
        }
        read.map(|()| node)
    }

    /// Where reading ended: the line, and the last byte that was looked at in it; both count from 1.
    #[cold]
    pub fn place(&self) -> (usize, usize) {
        let end = self.text.len().min(self.at + 1);
        let seen = self.text.as_bytes().get(..end).unwrap_or_default();
        let lines = seen.split(|byte| *byte == b'\n');
        lines.fold((0, 0), |(line, _), last| (line + 1, last.len()))
    }

    /// Why a text is no JSON, in the words of serde.
    #[cold]
    pub fn syntax(&self) -> String {
        let words = match self.missing {
            _ if self.at >= self.text.len() => "EOF while parsing a value",
            b'"' => "key must be a string",
            b':' => "expected `:`",
            b'}' => "expected `,` or `}`",
            b']' => "expected `,` or `]`",
            b'\\' => "invalid escape",
            b' ' => "control character (\\u0000-\\u001F) found while parsing a string",
            b'0' => "invalid number",
            _ => "expected value",
        };
        let (line, column) = self.place();
        format!("{words} at line {line} column {column}")
    }

    /// Any value, as it is written.
    ///
    /// # Errors
    /// [`CursorFault`]
    pub fn raw(&mut self) -> Result<&'a str, CursorFault> {
        self.peek();
        let start = self.at;
        self.skip()?;
        Ok(self.text.get(start..self.at).unwrap_or_default())
    }

    /// Enters an object, or leaves it where it has no (further) member. Gives the next member's name as it is written
    /// between its quotes; then its value is next.
    ///
    /// # Errors
    /// [`CursorFault`]
    pub fn next_member(&mut self, is_first: bool) -> Result<Option<&'a [u8]>, CursorFault> {
        if !self.enter(is_first, b'{', b'}')? {
            return Ok(None);
        }
        self.name().map(Some)
    }

    /// Enters a list, or leaves it where it has no (further) item. Then an item is next.
    ///
    /// # Errors
    /// [`CursorFault`]
    pub fn next_item(&mut self, is_first: bool) -> Result<bool, CursorFault> {
        self.enter(is_first, b'[', b']')
    }

    /// Goes over exactly this.
    ///
    /// # Errors
    /// [`CursorFault`]
    #[inline(always)]
    pub fn literal(&mut self, literal: &str) -> Result<(), CursorFault> {
        self.peek();
        self.word(literal)
    }

    /// Goes over any value.
    ///
    /// # Errors
    /// [`CursorFault`]
    pub fn skip(&mut self) -> Result<(), CursorFault> {
        // The marks that close what is open. A scalar needs none, and then nothing is allocated.
        let mut open = Vec::new();
        loop {
            match self.peek() {
                b'"' => {
                    self.at += 1;
                    self.skip_text_rest()?;
                }
                b'{' => {
                    self.at += 1;
                    if self.peek() != b'}' {
                        open.push(b'}');
                        self.name()?;
                        continue;
                    }
                    self.at += 1;
                }
                b'[' => {
                    self.at += 1;
                    if self.peek() != b']' {
                        open.push(b']');
                        continue;
                    }
                    self.at += 1;
                }
                b't' => self.word("true")?,
                b'f' => self.word("false")?,
                b'n' => self.word("null")?,
                _ => self.skip_number()?,
            }
            loop {
                let Some(close) = open.last().copied() else {
                    return Ok(());
                };
                if self.peek() == b',' {
                    self.at += 1;
                    if close == b'}' {
                        self.name()?;
                    }
                    break;
                }
                self.mark(close)?;
                open.pop();
            }
        }
    }

    #[inline(always)]
    fn enter(&mut self, is_first: bool, open: u8, close: u8) -> Result<bool, CursorFault> {
        let next = self.peek();
        if is_first {
            self.mark(open)?;
            if self.depth == DEPTH_MAX {
                return Err(CursorFault::Unexpected);
            }
            self.depth += 1;
            if self.peek() != close {
                return Ok(true);
            }
        } else if next == b',' {
            self.at += 1;
            return Ok(true);
        }
        self.mark(close)?;
        self.depth = self.depth.saturating_sub(1);
        Ok(false)
    }

    /// The next byte; 0 at the end.
    #[inline(always)]
    fn byte(&self) -> u8 {
        self.text.as_bytes().get(self.at).copied().unwrap_or(0)
    }

    #[inline(always)]
    fn mark(&mut self, mark: u8) -> Result<(), CursorFault> {
        if self.byte() != mark {
            return Err(self.fault(mark));
        }
        self.at += 1;
        Ok(())
    }

    #[cold]
    #[inline(never)]
    fn fault(&mut self, missing: u8) -> CursorFault {
        self.missing = missing;
        if self.at >= self.text.len() {
            CursorFault::Cut
        } else {
            CursorFault::Unexpected
        }
    }

    fn word(&mut self, word: &str) -> Result<(), CursorFault> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if rest.starts_with(word.as_bytes()) {
            self.at += word.len();
            return Ok(());
        }
        Err(if word.as_bytes().starts_with(rest) {
            CursorFault::Cut
        } else {
            CursorFault::Unexpected
        })
    }

    /// Goes to the next byte of a text that is not meant as it stands.
    #[inline(always)]
    fn skip_plain(&mut self) {
        self.at = plain_end(self.text.as_bytes(), self.at);
    }

    /// Goes behind the mark that closes a text.
    fn skip_text_rest(&mut self) -> Result<(), CursorFault> {
        loop {
            self.skip_plain();
            match self.byte() {
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\\' => self.at += 1,
                _ => return Err(self.fault(b' ')),
            }
            match self.byte() {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 1,
                b'u' => {
                    for _ in 0..4 {
                        self.at += 1;
                        if !self.byte().is_ascii_hexdigit() {
                            return Err(self.fault(b'\\'));
                        }
                    }
                    self.at += 1;
                }
                _ => return Err(self.fault(b'\\')),
            }
        }
    }

    fn name(&mut self) -> Result<&'a [u8], CursorFault> {
        self.peek();
        self.mark(b'"')?;
        let start = self.at;
        self.skip_plain();
        if self.byte() == b'"' {
            self.at += 1;
        } else {
            self.skip_text_rest()?;
        }
        let end = self.at - 1;
        self.peek();
        self.mark(b':')?;
        Ok(self.text.as_bytes().get(start..end).unwrap_or_default())
    }

    fn skip_number(&mut self) -> Result<(), CursorFault> {
        if self.byte() == b'-' {
            self.at += 1;
        }
        if self.byte() == b'0' {
            self.at += 1;
        } else {
            self.skip_digits()?;
        }
        if self.byte() == b'.' {
            self.at += 1;
            self.skip_digits()?;
        }
        if let b'e' | b'E' = self.byte() {
            self.at += 1;
            if let b'+' | b'-' = self.byte() {
                self.at += 1;
            }
            self.skip_digits()?;
        }
        Ok(())
    }

    /// At least one digit.
    fn skip_digits(&mut self) -> Result<(), CursorFault> {
        if !self.byte().is_ascii_digit() {
            return Err(self.fault(b'0'));
        }
        while self.byte().is_ascii_digit() {
            self.at += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "json_cursor_tests.rs"]
mod tests;
