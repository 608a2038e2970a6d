//! Addresses with places for arguments: `https://api.example.com/users/{id}?units={units}`.
//!
//! Plain data without paths into the crate: the build script reads it too.

/// A piece of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part<'a> {
    /// Stands as it is.
    Text(&'a str),
    /// The place of the argument of this name.
    Argument(&'a str),
}

/// Takes a template, or a piece of one, apart; `None` when its braces do not pair.
pub fn parts(template: &str) -> Option<Vec<Part<'_>>> {
    let mut parts = Vec::new();
    let mut rest = template;
    while let Some((text, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}')?;
        if text.contains(['}']) || name.is_empty() || name.contains(['{']) {
            return None;
        }
        if !text.is_empty() {
            parts.push(Part::Text(text));
        }
        parts.push(Part::Argument(name));
        rest = after;
    }
    if rest.contains(['}']) {
        return None;
    }
    if !rest.is_empty() {
        parts.push(Part::Text(rest));
    }
    Some(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_is_text_and_places() {
        use Part::{Argument, Text};
        for (template, expected) in [
            ("/a", Some(vec![Text("/a")])),
            (
                "/{a}{b}/c",
                Some(vec![Text("/"), Argument("a"), Argument("b"), Text("/c")]),
            ),
            ("", Some(vec![])),
            ("/{a", None),
            ("/a}", None),
            ("/{}", None),
            ("/{a{b}}", None),
        ] {
            assert_eq!(parts(template), expected, "{template}");
        }
    }
}
