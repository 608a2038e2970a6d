//! Percent-encoding of path segments and query strings, ours and those of others.

/// Decodes `%XX`; a `%` without two hexadecimal digits stays as it is, as browsers' URL parsers have it.
pub fn decode(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    loop {
        rest = match rest {
            [b'%', high, low, tail @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                bytes.push(hex(*high) << 4 | hex(*low));
                tail
            }
            [byte, tail @ ..] => {
                bytes.push(*byte);
                tail
            }
            [] => return bytes,
        };
    }
}

fn hex(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

/// Encodes a text as one segment of a path, or one name or value of a query: only unreserved characters stay (RFC 3986, 2.3).
pub fn encode(text: &str) -> String {
    use std::fmt::Write as _;
    let mut segment = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                segment.push(char::from(byte))
            }
            _ => {
                let _ = write!(segment, "%{byte:02X}");
            }
        }
    }
    segment
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_survives_the_round_trip() {
        let text: String = (0..=0x2ff).filter_map(char::from_u32).collect();
        assert_eq!(decode(&encode(&text)), text.as_bytes());
        assert_eq!(encode("a/b é?"), "a%2Fb%20%C3%A9%3F");
    }

    #[test]
    fn a_percent_sign_that_encodes_nothing_stays() {
        assert_eq!(decode("100%"), b"100%");
        assert_eq!(decode("%4"), b"%4");
        assert_eq!(decode("%zz%2"), b"%zz%2");
        assert_eq!(decode("%%41+%+1"), b"%A+%+1");
        assert_eq!(decode("%ff%C3"), b"\xff\xc3");
    }
}
