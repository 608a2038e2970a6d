//! Bytes read as texts.
//!
//! The standard library's own lossy reading brings a second decoder. The build refuses it (`scripts/build.mjs`).

use std::borrow::Cow;

/// The text of these bytes; `\u{FFFD}` stands for each part that is not UTF-8, as browsers have it.
pub fn lossy(bytes: &[u8]) -> Cow<'_, str> {
    let mut text = Vec::new();
    let mut rest = bytes;
    loop {
        let fault = match str::from_utf8(rest) {
            Ok(whole) if text.is_empty() => return Cow::Borrowed(whole),
            Ok(tail) => {
                text.extend_from_slice(tail.as_bytes());
                break;
            }
            Err(fault) => fault,
        };
        let (valid, other) = rest.split_at_checked(fault.valid_up_to()).unwrap_or_default();
        text.extend_from_slice(valid);
        text.extend_from_slice("\u{FFFD}".as_bytes());
        // Without a length, the bytes end within a character.
        rest = fault
            .error_len()
            .and_then(|length| other.get(length..))
            .unwrap_or_default();
    }
    Cow::Owned(String::from_utf8(text).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_the_library_reads_them() {
        let parts: [&[u8]; 12] = [
            b"",
            b"a",
            "é".as_bytes(),
            "€".as_bytes(),
            "😀".as_bytes(),
            b"\x80",
            b"\xC3",
            b"\xE2\x82",
            b"\xF0\x9F\x98",
            b"\xED\xA0\x80",
            b"\xC0\xAF",
            b"\xFF",
        ];
        for first in parts {
            for second in parts {
                for third in parts {
                    let bytes = [first, second, third].concat();
                    let (ours, expected) = (lossy(&bytes), String::from_utf8_lossy(&bytes));
                    assert_eq!(ours, expected, "{bytes:?}");
                    assert_eq!(
                        matches!(ours, Cow::Borrowed(_)),
                        matches!(expected, Cow::Borrowed(_)),
                        "{bytes:?}"
                    );
                }
            }
        }
    }
}
