//! Texts found in texts, and made of texts.
//!
//! The standard library's own ways to look for a `&str` in a text bring their searcher, and through the panics of slices all
//! that prints texts for debugging, 14 KB of wasm. The build refuses them (`scripts/build.mjs`). `contains('x')` does, too, for
//! characters that take several bytes; `contains(['x'])` does not.

use memchr::memchr;

/// Where a part begins in a text first, in bytes.
///
/// Takes as long as both lengths multiplied when the text repeats the part's beginning: one of the two is always short.
pub fn find(text: &str, part: &str) -> Option<usize> {
    let (text, part) = (text.as_bytes(), part.as_bytes());
    let Some(first) = part.first() else {
        return Some(0);
    };
    let mut from = 0;
    loop {
        from += memchr(*first, text.get(from..)?)?;
        if text.get(from..)?.starts_with(part) {
            return Some(from);
        }
        from += 1;
    }
}

/// Whether a part is in a text.
pub fn has(text: &str, part: &str) -> bool {
    find(text, part).is_some()
}

/// What is before and after a part where it is first.
pub fn split_once<'a>(text: &'a str, part: &str) -> Option<(&'a str, &'a str)> {
    let start = find(text, part)?;
    Some((text.get(..start)?, text.get(start + part.len()..)?))
}

/// Where a part begins in a text, from first to last, in bytes; never inside an earlier place. An empty part has none.
pub fn places(text: &str, part: &str) -> impl Iterator<Item = usize> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let rest = text.get(from..).filter(|_| !part.is_empty())?;
        let start = from + find(rest, part)?;
        from = start + part.len();
        Some(start)
    })
}

/// What a part separates, from first to last.
pub fn split<'a>(text: &'a str, part: &'a str) -> impl Iterator<Item = &'a str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let whole = rest?;
        let (before, after) = match split_once(whole, part) {
            Some((before, after)) => (before, Some(after)),
            None => (whole, None),
        };
        rest = after;
        Some(before)
    })
}

/// Texts with a separator between each two.
pub fn join<T: AsRef<str>>(texts: &[T], separator: &str) -> String {
    joined(&mut texts.iter().map(AsRef::as_ref), separator)
}

fn joined(texts: &mut dyn Iterator<Item = &str>, separator: &str) -> String {
    let mut whole = texts.next().unwrap_or_default().to_owned();
    for text in texts {
        whole.push_str(separator);
        whole.push_str(text);
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_joined_as_the_library_joins_them() {
        let texts = ["", "a", "é", "", "bc"];
        for count in 0..=texts.len() {
            let texts = &texts[..count];
            assert_eq!(join(texts, ", "), texts.join(", "));
        }
    }

    #[test]
    fn parts_are_found_as_the_library_finds_them() {
        let letters = [
            "", "a", "b", "é", "ab", "ba", "aa", "éa", "aé", "aab", "aba", "abaabé",
        ];
        for text in letters
            .iter()
            .flat_map(|first| letters.map(|second| format!("{first}{second}")))
        {
            for part in letters {
                assert_eq!(find(&text, part), text.find(part), "{part:?} in {text:?}");
                assert_eq!(has(&text, part), text.contains(part), "{part:?} in {text:?}");
                assert_eq!(
                    split_once(&text, part),
                    text.split_once(part),
                    "{part:?} in {text:?}"
                );
                if !part.is_empty() {
                    let parts: Vec<_> = split(&text, part).collect();
                    assert_eq!(
                        parts,
                        text.split(part).collect::<Vec<_>>(),
                        "{part:?} in {text:?}"
                    );
                    let expected: Vec<_> = text.match_indices(part).map(|(start, _)| start).collect();
                    assert_eq!(
                        places(&text, part).collect::<Vec<_>>(),
                        expected,
                        "{part:?} in {text:?}"
                    );
                }
            }
        }
    }
}
