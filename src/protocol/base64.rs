//! Base64 in, bytes out. Only the canonical form is taken: one text per value, so that no two tokens are the same one.

/// Decodes base64url without padding. Source: RFC 7515, section 2.
pub fn decode_url(text: &str) -> Option<Vec<u8>> {
    decode(text.as_bytes(), [b'-', b'_'])
}

/// Decodes standard base64 with its padding.
pub fn decode_standard(text: &str) -> Option<Vec<u8>> {
    let digits = text.trim_end_matches('=');
    let padding = text.len() - digits.len();
    (text.len().is_multiple_of(4) && padding <= 2)
        .then(|| decode(digits.as_bytes(), [b'+', b'/']))
        .flatten()
}

/// Base64 digits without padding; `last` are the digits for 62 and 63.
fn decode(digits: &[u8], last: [u8; 2]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(digits.len() / 4 * 3 + 2);
    let (mut bits, mut bit_count) = (0u32, 0u32);
    for digit in digits {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            digit if *digit == last[0] => 62,
            digit if *digit == last[1] => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(value);
        bit_count += 6;
        if bit_count >= 8 {
            bit_count -= 8;
            bytes.push(u8::try_from(bits >> bit_count & 0xff).ok()?);
        }
    }
    // A lone digit holds no byte, and spare bits must be zero.
    (bit_count < 6 && bits & ((1 << bit_count) - 1) == 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vectors_of_rfc_4648_are_read() {
        for (text, bytes) in [
            ("", ""),
            ("Zg", "f"),
            ("Zm8", "fo"),
            ("Zm9v", "foo"),
            ("Zm9vYg", "foob"),
            ("Zm9vYmE", "fooba"),
            ("Zm9vYmFy", "foobar"),
        ] {
            assert_eq!(decode_url(text).as_deref(), Some(bytes.as_bytes()), "{text}");
            let padded = format!("{text}{}", "=".repeat((4 - text.len() % 4) % 4));
            assert_eq!(
                decode_standard(&padded).as_deref(),
                Some(bytes.as_bytes()),
                "{padded}"
            );
        }
        assert_eq!(decode_url("-_8"), Some(vec![0xfb, 0xff]));
        assert_eq!(decode_standard("+/8="), Some(vec![0xfb, 0xff]));
    }

    #[test]
    fn other_forms_are_refused() {
        for text in ["Z", "Zh", "Zm9", "Zg==", "Zm9v\n", "Zm 8", "+/8", "é", "Zm9vY"] {
            assert_eq!(decode_url(text), None, "{text}");
        }
        for text in ["Zg", "Zg=", "Zg===", "=", "====", "Zh==", "-_8=", "Zm=v"] {
            assert_eq!(decode_standard(text), None, "{text}");
        }
    }
}
