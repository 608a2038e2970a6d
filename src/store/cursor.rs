//! Where a page of threads goes on: the sort key and id of its last row, opaque to clients.

use crate::protocol::json;
use crate::protocol::json::tree;
use crate::protocol::thread::ThreadOrder;
use crate::protocol::tree::json;

const BASE64URL: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// The last row of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cursor {
    /// The column the page was sorted by; a cursor of one order says nothing in the other.
    pub order: ThreadOrder,
    /// The row's time, Unix milliseconds.
    pub at_ms: u64,
    /// The row's id.
    pub id: String,
}

impl Cursor {
    /// The text a client gives back.
    pub fn encode(&self) -> String {
        encode_base64url(json::text(&json!([self.order, self.at_ms, self.id])).as_bytes())
    }

    /// Reads [`Self::encode`].
    pub fn decode(text: &str) -> Option<Self> {
        let json = String::from_utf8(decode_base64url(text)?).ok()?;
        let parts = tree(&json)?;
        let [order, at_ms, id] = parts.as_array()?.as_slice() else {
            return None;
        };
        let order_of = |known: &ThreadOrder| json!(known) == *order;
        Some(Self {
            order: [ThreadOrder::UpdatedAt, ThreadOrder::CreatedAt]
                .into_iter()
                .find(order_of)?,
            at_ms: at_ms.as_u64()?,
            id: id.as_str()?.to_owned(),
        })
    }
}

fn encode_base64url(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let bits = (0..3).fold(0u32, |bits, at| {
            bits << 8 | u32::from(chunk.get(at).copied().unwrap_or(0))
        });
        for at in 0..=chunk.len() {
            let sextet = usize::try_from(bits >> (18 - 6 * at) & 63).unwrap_or(0);
            text.extend(BASE64URL.get(sextet).map(|byte| char::from(*byte)));
        }
    }
    text
}

fn decode_base64url(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len() * 3 / 4);
    for chunk in text.as_bytes().chunks(4) {
        let mut bits = 0u32;
        for at in 0..4 {
            let sextet = match chunk.get(at) {
                Some(character) => BASE64URL.iter().position(|known| known == character)?,
                None => 0,
            };
            bits = bits << 6 | u32::try_from(sextet).ok()?;
        }
        let byte_count = chunk.len().checked_sub(1).filter(|count| *count > 0)?;
        for at in 0..byte_count {
            bytes.push(u8::try_from(bits >> (16 - 8 * at) & 255).ok()?);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_survives_the_round_trip() {
        for id in ["t", "t2", "t-3", "Gespräch \"4\"", ""] {
            for order in [ThreadOrder::UpdatedAt, ThreadOrder::CreatedAt] {
                let cursor = Cursor {
                    order,
                    at_ms: 1_800_000_000_123,
                    id: id.to_owned(),
                };
                let text = cursor.encode();
                assert!(text.bytes().all(|byte| BASE64URL.contains(&byte)), "{text}");
                assert_eq!(Cursor::decode(&text), Some(cursor));
            }
        }
    }

    #[test]
    fn other_texts_are_no_cursors() {
        for text in [
            "",
            "x",
            "????",
            "AAAA",
            "W10",
            &encode_base64url(br#"["title",1,"t"]"#),
        ] {
            assert_eq!(Cursor::decode(text), None, "{text}");
        }
    }
}
