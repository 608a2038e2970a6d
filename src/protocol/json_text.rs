//! Texts as JSON writes them between quotes, with and without escapes.

use std::borrow::Cow;

/// Where the bytes end that stand for themselves within a JSON text: before a quote, a backslash or a control character.
pub fn plain_end(bytes: &[u8], start: usize) -> usize {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    // Sets the highest bit of a byte that is below `limit`, and perhaps of bytes behind that one.
    const fn below(word: u64, limit: u8) -> u64 {
        word.wrapping_sub(ONES * limit as u64) & !word
    }
    let mut at = start;
    // Eight bytes at a time.
    while let Some(eight) = bytes.get(at..at + 8).and_then(|eight| eight.try_into().ok()) {
        let word = u64::from_le_bytes(eight);
        let quotes = below(word ^ (ONES * b'"' as u64), 1);
        let backslashes = below(word ^ (ONES * b'\\' as u64), 1);
        let found = (quotes | backslashes | below(word, b' ')) & (ONES << 7);
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while let Some(byte) = bytes.get(at)
        && !matches!(byte, b'"' | b'\\' | ..b' ')
    {
        at += 1;
    }
    at
}

/// The name that is meant by one with escapes, as it is written between its quotes; `None` = as it is written.
pub fn unescaped(name: &[u8]) -> Option<String> {
    if plain_end(name, 0) == name.len() {
        return None;
    }
    meant(std::str::from_utf8(name).ok()?)
}

/// What a text with escapes means, as it is written between its quotes; `None` = a half of a surrogate pair is alone.
pub(super) fn meant(written: &str) -> Option<String> {
    let bytes = written.as_bytes();
    let mut meant = String::with_capacity(bytes.len());
    let mut at = 0;
    loop {
        let end = plain_end(bytes, at);
        meant.push_str(written.get(at..end)?);
        let Some(mark) = bytes.get(end + 1) else {
            return Some(meant);
        };
        at = end + 2;
        meant.push(match mark {
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => code_point(written, &mut at)?,
            itself => char::from(*itself),
        });
    }
}

fn code_point(written: &str, at: &mut usize) -> Option<char> {
    let unit = code_unit(written, *at)?;
    *at += 4;
    if !(0xD800..0xDC00).contains(&unit) {
        return char::from_u32(unit.into());
    }
    if written.get(*at..*at + 2)? != "\\u" {
        return None;
    }
    let low = code_unit(written, *at + 2)?;
    *at += 6;
    char::decode_utf16([unit, low]).next()?.ok()
}

/// The code unit that four hexadecimal digits at this byte write.
pub fn code_unit(written: &str, at: usize) -> Option<u16> {
    let unit = u64::from_str_radix(written.get(at..at + 4)?, 16).ok()?;
    u16::try_from(unit).ok()
}

/// Replaces each `\uD800`-`\uDFFF` escape that has no partner by `\ufffd`, so that the text parses and whatever is
/// stored or sent on is valid Unicode (known fault B067). Takes JSON text, not a decoded string; linear.
pub fn heal_surrogates(text: &str) -> Cow<'_, str> {
    let mut healed = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(offset) = text.get(at..).and_then(|rest| rest.find('\\')) {
        let escape = at + offset;
        at = match escaped_unit(text, escape) {
            Some(0xD800..=0xDBFF) if matches!(escaped_unit(text, escape + 6), Some(0xDC00..=0xDFFF)) => {
                escape + 12
            }
            Some(0xD800..=0xDFFF) => {
                healed.push_str(text.get(copied..escape).unwrap_or_default());
                healed.push_str("\\ufffd");
                copied = escape + 6;
                copied
            }
            Some(_) => escape + 6,
            None => escape + 2,
        };
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    healed.push_str(text.get(copied..).unwrap_or_default());
    Cow::Owned(healed)
}

/// The code unit of the `\uXXXX` escape that starts at this byte.
fn escaped_unit(text: &str, at: usize) -> Option<u16> {
    if text.get(at..at + 2)? != "\\u" {
        return None;
    }
    code_unit(text, at + 2)
}

/// Appends a text as JSON.
pub fn write_text(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    let mut at = 0;
    out.push(b'"');
    loop {
        let end = plain_end(bytes, at);
        out.extend_from_slice(bytes.get(at..end).unwrap_or_default());
        let Some(byte) = bytes.get(end) else {
            return out.push(b'"');
        };
        out.push(b'\\');
        match *byte {
            8 => out.push(b'b'),
            12 => out.push(b'f'),
            b'\n' => out.push(b'n'),
            b'\r' => out.push(b'r'),
            b'\t' => out.push(b't'),
            mark @ (b'"' | b'\\') => out.push(mark),
            control => out.extend_from_slice(format!("u{control:04x}").as_bytes()),
        }
        at = end + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lone_surrogates_are_replaced() {
        for (text, healed) in [
            (r#""plain""#, r#""plain""#),
            (r#""\ud83d\ude80 \u00e9""#, r#""\ud83d\ude80 \u00e9""#),
            (r#""\ud83d""#, r#""\ufffd""#),
            (r#""\uDE80\uD83D""#, r#""\ufffd\ufffd""#),
            (r#""\ud83d\ud83d\ude80""#, r#""\ufffd\ud83d\ude80""#),
            (r#""\ud83d\n\ude80""#, r#""\ufffd\n\ufffd""#),
            (r#""\\ud83d""#, r#""\\ud83d""#),
            (r#""\\\ud83d""#, r#""\\\ufffd""#),
            (r#""a\ud83dé""#, r#""a\ufffdé""#),
            (r#""\ud8"#, r#""\ud8"#),
            ("\"\\é\\ud83d\"", "\"\\é\\ud83d\""),
        ] {
            assert_eq!(heal_surrogates(text), healed, "{text}");
        }
        assert!(matches!(heal_surrogates(r#""\ud83d\ude80""#), Cow::Borrowed(_)));
    }
}
