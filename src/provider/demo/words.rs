//! Finds words, numbers and quotations in what a person wrote.

use crate::list::List;
use crate::platform::{is_alphanumeric, is_uppercase, lower_case, parse_double};
use crate::protocol::number;
use crate::protocol::parts;

/// Words that stand between a name and its value: "the color *to* blue".
const FILLERS: &[&str] = &[
    "to", "is", "as", "of", "the", "a", "an", "with", "be", "equals", "and", "for", "it", "set", "=",
    "saying",
];

/// Colors a newcomer is likely to name, for tools that paint something.
const COLORS: &[(&str, &str)] = &[
    ("red", "#ff0000"),
    ("green", "#008000"),
    ("blue", "#0000ff"),
    ("yellow", "#ffff00"),
    ("orange", "#ffa500"),
    ("purple", "#800080"),
    ("pink", "#ffc0cb"),
    ("brown", "#a52a2a"),
    ("black", "#000000"),
    ("white", "#ffffff"),
    ("gray", "#808080"),
    ("teal", "#008080"),
];

/// A text as words. Comparisons ignore case and punctuation around a word.
#[derive(Debug, Clone)]
pub(super) struct Words<'t> {
    words: Vec<&'t str>,
    /// For each word, whether a punctuation mark ends its phrase.
    ends_phrase: Vec<bool>,
    /// Lower-case words, each between two spaces.
    plain: String,
    quotes: Vec<&'t str>,
}

impl<'t> Words<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let is_separator =
            |character: char| character.is_whitespace() || matches!(character, ',' | ';' | ':' | '`');
        let (words, ends_phrase): (Vec<&str>, Vec<bool>) = text
            .split_inclusive(is_separator)
            .map(|chunk| (trim_word(chunk.trim_end_matches(is_separator)), chunk.trim_end()))
            .filter(|(word, _)| !word.is_empty())
            .map(|(word, chunk)| (word, chunk.ends_with(['.', '!', '?', ',', ';'])))
            .unzip();
        let plain = words.iter().fold(" ".to_owned(), |mut plain, word| {
            plain.push_str(&lower_case(word));
            plain.push(' ');
            plain
        });
        Self {
            words,
            ends_phrase,
            plain,
            quotes: quotations(text),
        }
    }

    /// Whether these words stand in the text one after the other.
    pub(super) fn has(&self, phrase: &str) -> bool {
        parts::has(&self.plain, &format!(" {phrase} "))
    }

    pub(super) fn has_any(&self, phrases: &[&str]) -> bool {
        phrases.iter().any(|phrase| self.has(phrase))
    }

    /// Whether the text begins with these words.
    pub(super) fn starts_with(&self, phrase: &str) -> bool {
        self.plain.starts_with(&format!(" {phrase} "))
    }

    pub(super) fn quotes(&self) -> &[&'t str] {
        &self.quotes
    }

    /// Every number, as it was written, but not the count of "3 times".
    pub(super) fn numbers(&self) -> impl Iterator<Item = &'t str> {
        let next = self.words.iter().skip(1).map(Some).chain([None]);
        self.words
            .iter()
            .zip(next)
            .filter(|(_, next)| next.is_none_or(|next| !next.eq_ignore_ascii_case("times")))
            .map(|(word, _)| *word)
            .filter(|word| parse_double(word).is_some_and(f64::is_finite))
    }

    /// The number that stands directly before this word: `3` of "3 times".
    pub(super) fn number_before(&self, unit: &str) -> Option<u64> {
        let pairs = self.words.iter().zip(self.words.iter().skip(1));
        let mut numbers = pairs.filter(|(_, next)| lower_case(next).trim_end_matches('s') == unit);
        numbers.find_map(|(number, _)| number::unsigned(number))
    }

    /// The rest of the phrase after a name, fillers skipped: "dark blue" in "the color to dark blue, please".
    pub(super) fn after(&self, name: &str) -> Option<&[&'t str]> {
        let name: Vec<&str> = name.split(' ').list();
        let is_name = |window: &[&str]| {
            let mut pairs = window.iter().zip(&name);
            pairs.all(|(word, name)| is_same_word(word, name))
        };
        let start = self.words.windows(name.len()).position(is_name)? + name.len();
        if self.ends_phrase.get(start - 1) == Some(&true) {
            return None;
        }
        let rest = self.words.get(start..)?;
        let is_end = |index: &usize| self.ends_phrase.get(start + index) == Some(&true);
        let count = (0..rest.len()).find(is_end).map_or(rest.len(), |last| last + 1);
        let phrase = rest.get(..count)?;
        let is_filler = |word: &&&str| FILLERS.contains(&lower_case(word).as_str());
        let skipped = phrase.iter().take_while(is_filler).count();
        phrase.get(skipped..).filter(|phrase| !phrase.is_empty())
    }

    /// The place in "the weather in New York today": words after a preposition, capitalised ones together.
    pub(super) fn place(&self) -> Option<String> {
        let phrase = ["in", "at", "near", "for", "to"]
            .iter()
            .find_map(|preposition| self.after(preposition))?;
        let is_capitalised = |word: &&&str| word.starts_with(is_uppercase);
        let count = phrase.iter().take_while(is_capitalised).count().max(1);
        phrase.get(..count).map(|words| parts::join(words, " "))
    }

    /// The first color named, as a word or as its hexadecimal code.
    pub(super) fn color(&self, as_hex: bool) -> Option<&'t str> {
        self.words.iter().find_map(|word| {
            let known = COLORS.iter().find(|(name, _)| word.eq_ignore_ascii_case(name));
            match known {
                Some((_, hex)) if as_hex => Some(*hex),
                Some(_) => Some(*word),
                None => (word.starts_with('#') && word.len() == 7).then_some(*word),
            }
        })
    }
}

/// A name as words: `backgroundColor`, `background_color` -> `background color`.
pub(super) fn name_words(name: &str) -> String {
    let mut words = String::new();
    let mut was_lower = false;
    for character in name.chars() {
        if !is_alphanumeric(character) {
            words.push(' ');
            was_lower = false;
            continue;
        }
        if is_uppercase(character) && was_lower {
            words.push(' ');
        }
        words.push(character);
        was_lower = !is_uppercase(character);
    }
    let words: Vec<&str> = words.split_whitespace().list();
    lower_case(&parts::join(&words, " "))
}

fn is_same_word(word: &str, name: &str) -> bool {
    let word = lower_case(word);
    word == name || (word == "colour" && name == "color") || (word == "color" && name == "colour")
}

fn trim_word(word: &str) -> &str {
    let is_mark = |character: char| matches!(character, '.' | '!' | '?' | '(' | ')' | '"' | '\'' | '“' | '”');
    word.trim_end_matches(is_mark).trim_start_matches(is_mark)
}

/// Texts in straight or curly double quotes.
fn quotations(text: &str) -> Vec<&str> {
    let mut quotes = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(['"', '“']) {
        let Some((quote, after)) = after.split_once(['"', '”']) else {
            break;
        };
        quotes.push(quote);
        rest = after;
    }
    quotes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_words() {
        for (name, words) in [
            ("setTheme", "set theme"),
            ("background_color", "background color"),
            ("getHTTPStatus", "get httpstatus"),
            ("mcp.search-files2", "mcp search files2"),
            ("x", "x"),
        ] {
            assert_eq!(name_words(name), words);
        }
    }

    #[test]
    fn values_are_found_behind_their_names() {
        let words = Words::of("Please set the background colour to Dark blue, size = 12!");
        assert_eq!(words.after("background color"), Some(&["Dark", "blue"][..]));
        assert_eq!(words.after("size"), Some(&["12"][..]));
        assert_eq!(words.after("12"), None);
        assert_eq!(words.after("theme"), None);
        assert_eq!(words.color(false), Some("blue"));
        assert_eq!(words.color(true), Some("#0000ff"));
        assert_eq!(words.numbers().collect::<Vec<_>>(), ["12"]);
    }

    #[test]
    fn phrases_counts_places_and_quotes_are_found() {
        let words = Words::of("What's the weather in New York? Ask 3 times: \"now\" or “later”.");
        assert!(words.has("the weather") && words.starts_with("what's the") && !words.has("weather the"));
        assert_eq!(words.number_before("time"), Some(3));
        assert_eq!(words.numbers().count(), 0);
        assert_eq!(words.place(), Some("New York".to_owned()));
        assert_eq!(words.quotes(), ["now", "later"]);
    }
}
