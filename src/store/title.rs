//! The provisional title of a thread.

use crate::platform::lower_case;
use crate::protocol::message::{Message, MessageBody};

/// Longest provisional title, in characters. Source: contract 4.
const TITLE_MAX_CHARS: usize = 50;

/// Title of a thread whose first run has no text.
const NO_TEXT: &str = "New chat";

/// A text as searches compare it.
pub(super) fn folded(text: &str) -> String {
    lower_case(text)
}

/// The first user text cut at a word; a first word that is too long is cut itself. Source: contract 4.
pub(super) fn provisional_title(messages: &[Message]) -> String {
    messages
        .iter()
        .find_map(|message| {
            match &message.body {
                MessageBody::User { content } => Some(cut_at_word(&content.to_text())),
                MessageBody::Assistant { .. }
                | MessageBody::System { .. }
                | MessageBody::Developer { .. }
                | MessageBody::Tool { .. }
                | MessageBody::Activity { .. }
                | MessageBody::Reasoning { .. } => None,
            }
            .filter(|title| !title.is_empty())
        })
        .unwrap_or_else(|| NO_TEXT.to_owned())
}

/// Line breaks and runs of blanks and control characters become one blank each.
fn cut_at_word(text: &str) -> String {
    let mut title = String::new();
    let mut char_count = 0;
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    for word in words.filter(|word| !word.is_empty()) {
        let word_char_count = word.chars().count();
        if title.is_empty() {
            title.extend(word.chars().take(TITLE_MAX_CHARS));
            char_count = word_char_count;
        } else {
            char_count += 1 + word_char_count;
            if char_count > TITLE_MAX_CHARS {
                break;
            }
            title.push(' ');
            title.push_str(word);
        }
    }
    title
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::read;

    fn title_of(content: serde_json::Value) -> String {
        let message = json!({"id": "u", "role": "user", "content": content});
        provisional_title(&[read::from_value(&message).unwrap()])
    }

    #[test]
    fn the_title_is_the_first_user_text_cut_at_a_word() {
        assert_eq!(
            title_of(json!("  What is\n\nthe weather? ")),
            "What is the weather?"
        );
        assert_eq!(
            title_of(json!("\u{0}Red\u{1b}[31m\u{7f}\u{85}alert\u{0}")),
            "Red [31m alert"
        );
        let fifty = format!("{} {}", "a".repeat(24), "b".repeat(25));
        assert_eq!(title_of(json!(fifty)), fifty);
        assert_eq!(title_of(json!(format!("{fifty}c"))), "a".repeat(24));
        assert_eq!(title_of(json!("é".repeat(51))), "é".repeat(50));
        assert_eq!(title_of(json!(format!("{} x", "é".repeat(51)))), "é".repeat(50));
    }

    #[test]
    fn a_run_without_text_is_a_new_chat() {
        let picture = json!([{"type": "image", "source": {"type": "url", "value": "https://x.test/a.png"}}]);
        assert_eq!(title_of(picture), "New chat");
        assert_eq!(title_of(json!(" \n")), "New chat");
        assert_eq!(title_of(json!("\u{0}\u{7}")), "New chat");
        assert_eq!(provisional_title(&[]), "New chat");
    }
}
