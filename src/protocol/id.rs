//! Ids: opaque strings, one newtype per noun, cheap to clone.

use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::index::Key;
use super::json_cursor::{CursorFault, JsonCursor};
use super::payload::{Member, text};
use super::tree::ToTree;

/// Longest id accepted from a client, in UTF-8 bytes. Source: contract 2.1.
pub const ID_MAX_BYTES: usize = 1024;

/// Why a text is not an id. Source: contract 2.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdFault {
    /// The text has no characters.
    #[error("must not be empty")]
    Empty,
    /// The text is longer than [`ID_MAX_BYTES`].
    #[error("must be at most 1024 bytes long")]
    TooLong,
    /// The text has a control character.
    #[error("must not contain control characters")]
    ControlCharacter,
    /// The text is `.` or `..`: a URL that names it, in whatever spelling, is taken for another path.
    #[error("must not be `.` or `..`, which no URL can address")]
    Dots,
}

/// Checks the shape every client-chosen id has.
///
/// # Errors
/// The first [`IdFault`] found.
pub fn check_id(text: &str) -> Result<(), IdFault> {
    if text.is_empty() {
        Err(IdFault::Empty)
    } else if text.len() > ID_MAX_BYTES {
        Err(IdFault::TooLong)
    } else if has_control_character(text.as_bytes()) {
        Err(IdFault::ControlCharacter)
    } else {
        Ok(())
    }
}

/// Whether a text has a character of Unicode's class Cc: U+0000 to U+001F, and U+007F to U+009F, which UTF-8 writes as
/// 0xC2 and the same byte.
fn has_control_character(bytes: &[u8]) -> bool {
    let mut before = 0;
    bytes.iter().any(|&byte| {
        let is_control = byte < b' ' || byte == 0x7f || (before == 0xc2 && byte < 0xa0);
        before = byte;
        is_control
    })
}

/// Checks an id that routes address.
///
/// # Errors
/// The first [`IdFault`] found.
pub fn check_addressable_id(text: &str) -> Result<(), IdFault> {
    if matches!(text, "." | "..") {
        return Err(IdFault::Dots);
    }
    check_id(text)
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident by $check:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        #[serde(transparent)]
        pub struct $name(Arc<str>);

        impl $name {
            /// Takes a text that is already known to be an id.
            pub fn new(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            /// Takes a client's text.
            ///
            /// # Errors
            /// [`IdFault`] when the text is not of an id's shape.
            pub fn parse(text: &str) -> Result<Self, IdFault> {
                $check(text).map(|()| Self(text.into()))
            }

            /// The text of the id.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl<'a> Member<'a> for $name {
            fn blank() -> Self {
                Self(Arc::default())
            }

            fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
                self.0 = text(json, "a string")?.into();
                Ok(())
            }
        }

        impl Key for $name {
            fn to_text(&self) -> Arc<str> {
                self.0.clone()
            }
        }

        impl ToTree for $name {
            fn to_tree(&self) -> Value {
                self.as_str().to_tree()
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{:?}", self.as_str())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    )*};
}

ids! {
    /// One run, as its client named it; unique per owner (D12).
    RunId by check_addressable_id;
    /// One conversation. The empty id is legal on `POST /run` only and always stateless (2.1).
    ThreadId by check_addressable_id;
    /// One message of a thread, on the wire and stored alike.
    MessageId by check_id;
    /// One call of a tool; ours are `tc_` + object address + `_` + counter (D17).
    ToolCallId by check_id;
    /// One configured agent.
    AgentId by check_id;
    /// An owner: the id a thread or a run belongs to.
    ResourceId by check_addressable_id;
}

/// Address of the Durable Object a run lives in: the 32 bytes of its platform id. Source: D17.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ObjectAddress([u8; 32]);

const BASE64URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const BASE64URL_LENGTH: usize = 43;

impl ObjectAddress {
    /// Takes the address from the platform's 64 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return None;
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            let [high, low] = pair else { return None };
            let value = |digit: &u8| char::from(*digit).to_digit(16);
            *byte = u8::try_from(value(high)? * 16 + value(low)?).ok()?;
        }
        Some(Self(bytes))
    }

    /// The platform's 64 lower-case hexadecimal digits.
    pub fn to_hex(self) -> String {
        use fmt::Write as _;
        let mut text = String::with_capacity(64);
        for byte in self.0 {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    /// The 43 base64url characters used inside a [`ToolCallId`] and in `io-run-address`.
    pub fn to_base64url(self) -> String {
        let mut text = String::with_capacity(BASE64URL_LENGTH);
        for chunk in self.0.chunks(3) {
            let mut bits = 0u32;
            for index in 0..3 {
                bits = bits << 8 | u32::from(chunk.get(index).copied().unwrap_or(0));
            }
            for index in 0..=chunk.len() {
                let sextet = usize::try_from(bits >> (18 - 6 * index) & 63).unwrap_or(0);
                text.push(char::from(BASE64URL.get(sextet).copied().unwrap_or(b'A')));
            }
        }
        text
    }

    /// Reads [`Self::to_base64url`]; only the canonical form is taken.
    pub fn from_base64url(text: &str) -> Option<Self> {
        if text.len() != BASE64URL_LENGTH {
            return None;
        }
        let mut bytes = [0u8; 32];
        let mut at = 0;
        let (mut bits, mut bit_count) = (0u32, 0);
        for character in text.bytes() {
            let sextet = BASE64URL.iter().position(|known| *known == character)?;
            bits = bits << 6 | u32::try_from(sextet).ok()?;
            bit_count += 6;
            if bit_count >= 8 {
                bit_count -= 8;
                *bytes.get_mut(at)? = u8::try_from(bits >> bit_count & 255).ok()?;
                at += 1;
            }
        }
        let address = Self(bytes);
        (at == 32 && address.to_base64url() == text).then_some(address)
    }
}

impl fmt::Debug for ObjectAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_base64url())
    }
}

/// A [`ToolCallId`] of ours taken apart: the object that holds the call, and the call's number there.
///
/// On the wire `tc_<43 base64url characters>_<base36 counter>`. Source: D17.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolCallAddress {
    /// The object of the call's run.
    pub object: ObjectAddress,
    /// Number of the call within the object, from 1.
    pub counter: u64,
}

impl ToolCallAddress {
    /// The id on the wire.
    pub fn to_id(self) -> ToolCallId {
        ToolCallId::new(format!(
            "tc_{}_{}",
            self.object.to_base64url(),
            base36(self.counter)
        ))
    }

    /// Takes an id apart; `None` when it is not of our form.
    pub fn parse(id: &str) -> Option<Self> {
        let (object, counter) = id.strip_prefix("tc_")?.split_at_checked(BASE64URL_LENGTH)?;
        let counter = counter.strip_prefix('_')?;
        let number = u64::from_str_radix(counter, 36).ok()?;
        let canonical = base36(number) == counter;
        canonical.then_some(Self {
            object: ObjectAddress::from_base64url(object)?,
            counter: number,
        })
    }
}

fn base36(mut number: u64) -> String {
    let mut digits = Vec::new();
    loop {
        let digit = u32::try_from(number % 36).unwrap_or(0);
        digits.push(char::from_digit(digit, 36).unwrap_or('0'));
        number /= 36;
        if number == 0 {
            return digits.into_iter().rev().collect();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_bounded_and_printable() {
        assert_eq!(RunId::parse(""), Err(IdFault::Empty));
        assert_eq!(RunId::parse("a\u{7}"), Err(IdFault::ControlCharacter));
        assert_eq!(RunId::parse(&"é".repeat(513)), Err(IdFault::TooLong));
        assert_eq!(
            RunId::parse(&"é".repeat(512)).map(|id| id.as_str().len()),
            Ok(1024)
        );
    }

    #[test]
    fn control_characters_are_those_of_unicode() {
        for character in '\0'..=char::MAX {
            let text = format!("é{character}\u{a0}");
            assert_eq!(
                has_control_character(text.as_bytes()),
                character.is_control(),
                "{character:?}"
            );
        }
    }

    #[test]
    fn ids_of_paths_are_not_what_a_url_takes_for_another_path() {
        for dots in [".", ".."] {
            assert_eq!(RunId::parse(dots), Err(IdFault::Dots));
            assert_eq!(ThreadId::parse(dots), Err(IdFault::Dots));
            assert_eq!(ResourceId::parse(dots), Err(IdFault::Dots));
            assert_eq!(MessageId::parse(dots), Ok(MessageId::new(dots)));
        }
        assert_eq!(ThreadId::parse("..."), Ok(ThreadId::new("...")));
    }

    #[test]
    fn tool_call_address_survives_the_round_trip() {
        for seed in 0..=255u8 {
            let mut bytes = [seed; 32];
            bytes[31] = seed.wrapping_mul(7);
            let object = ObjectAddress(bytes);
            let address = ToolCallAddress {
                object,
                counter: u64::from(seed) * 977,
            };
            assert_eq!(ToolCallAddress::parse(address.to_id().as_str()), Some(address));
            assert_eq!(ObjectAddress::from_hex(&object.to_hex()), Some(object));
        }
    }

    #[test]
    fn other_ids_are_not_addresses() {
        let id = ToolCallAddress {
            object: ObjectAddress([1; 32]),
            counter: 36,
        }
        .to_id();
        assert!(id.as_str().ends_with("_10"));
        for bad in [
            "",
            "tc_",
            "call_1",
            "tc_é",
            &id.as_str()[..46],
            &id.as_str().replace("_10", "_010"),
        ] {
            assert_eq!(ToolCallAddress::parse(bad), None, "{bad}");
        }
        assert_eq!(ToolCallAddress::parse(&id.as_str().replace("_10", "_+1")), None);
        // The last character carries two spare bits: only the canonical one is taken.
        let stretched = format!("{}B", &ObjectAddress([0; 32]).to_base64url()[..42]);
        assert_eq!(ObjectAddress::from_base64url(&stretched), None);
    }
}
