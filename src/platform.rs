//! What JavaScript's engine has anyway, and the standard library would bring along: 25 KiB of tables for letters and for
//! numbers. The one thing of the platform that all may use; off the Worker it is the standard library.

/// A text in lower case.
pub fn lower_case(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    engine::lower_case(text)
}

/// A text in upper case.
pub fn upper_case(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_uppercase();
    }
    engine::upper_case(text)
}

/// Whether a character is a letter or a number of any script.
pub fn is_alphanumeric(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_alphanumeric();
    }
    engine::is_alphanumeric(character)
}

/// Whether a character is a letter in upper case.
pub fn is_uppercase(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_uppercase();
    }
    engine::is_uppercase(character)
}

/// The double nearest to a decimal number such as `-1.5e3`; infinite beyond a double's range.
pub fn parse_double(text: &str) -> Option<f64> {
    let is_decimal = |byte| matches!(byte, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
    if text.is_empty() || !text.bytes().all(is_decimal) {
        return None;
    }
    engine::parse_double(text)
}

#[cfg(target_arch = "wasm32")]
mod engine {
    use js_sys::{JsString, RegExp};
    use wasm_bindgen::JsValue;

    pub(super) fn lower_case(text: &str) -> String {
        JsString::from(text).to_lower_case().into()
    }

    pub(super) fn upper_case(text: &str) -> String {
        JsString::from(text).to_upper_case().into()
    }

    pub(super) fn is_alphanumeric(character: char) -> bool {
        is_of("[\\p{Alphabetic}\\p{N}]", character)
    }

    pub(super) fn is_uppercase(character: char) -> bool {
        is_of("\\p{Uppercase}", character)
    }

    fn is_of(class: &str, character: char) -> bool {
        RegExp::new(class, "u").test(character.encode_utf8(&mut [0; 4]))
    }

    /// What is no number is NaN, which no text of digits stands for.
    pub(super) fn parse_double(text: &str) -> Option<f64> {
        let double = JsValue::from_str(text).unchecked_into_f64();
        (!double.is_nan()).then_some(double)
    }
}

#[cfg(not(target_arch = "wasm32"))]
mod engine {
    pub(super) fn lower_case(text: &str) -> String {
        text.to_lowercase()
    }

    pub(super) fn upper_case(text: &str) -> String {
        text.to_uppercase()
    }

    pub(super) fn is_alphanumeric(character: char) -> bool {
        character.is_alphanumeric()
    }

    pub(super) fn is_uppercase(character: char) -> bool {
        character.is_uppercase()
    }

    pub(super) fn parse_double(text: &str) -> Option<f64> {
        text.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_of_any_script_have_their_case() {
        assert_eq!(lower_case("ABC Ärger ΟΔΟΣ İ"), "abc ärger οδος i\u{307}");
        assert_eq!(upper_case("abc ärger straße ﬁ"), "ABC ÄRGER STRASSE FI");
        assert_eq!(
            (lower_case("A-1"), upper_case("a-1")),
            ("a-1".to_owned(), "A-1".to_owned())
        );
    }

    #[test]
    fn characters_of_any_script_are_told_apart() {
        for letter in ['a', 'Z', '7', 'ä', 'Σ', '字', 'ि', '٣', 'Ⅷ', '½'] {
            assert!(is_alphanumeric(letter), "{letter}");
        }
        for other in ['-', ' ', '_', '…', '\u{301}', '🚀', '€'] {
            assert!(!is_alphanumeric(other), "{other}");
        }
        let upper: String = "aZ7äÄσΣ字ǅⅧ".chars().filter(|c| is_uppercase(*c)).collect();
        assert_eq!(upper, "ZÄΣⅧ");
    }

    #[test]
    fn a_double_is_read_from_digits_only() {
        let table = [
            ("0", Some(0.0)),
            ("-1.5e3", Some(-1500.0)),
            (".5", Some(0.5)),
            ("5.", Some(5.0)),
            ("+1", Some(1.0)),
            ("0.1", Some(0.1)),
            ("1e999", Some(f64::INFINITY)),
            ("9007199254740993", Some(9_007_199_254_740_992.0)),
            ("2.2250738585072011e-308", Some(2.225_073_858_507_201e-308)),
            ("", None),
            (".", None),
            ("1e", None),
            ("1.2.3", None),
            ("--1", None),
            ("inf", None),
            ("NaN", None),
            ("0x10", None),
            (" 1", None),
        ];
        for (text, double) in table {
            assert_eq!(parse_double(text), double, "{text}");
        }
    }
}
