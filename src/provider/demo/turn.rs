//! What a request is about: the last thing the person said, and how far its answer has come.

use serde_json::Value;

use super::script::word_count;
use crate::list::List;
use crate::protocol::forwarded_props::ToolChoice;
use crate::protocol::message::ContentPart;
use crate::protocol::parts;
use crate::protocol::tool::Tool;
use crate::provider::{ModelMessage, ModelRequest, ModelToolResult};

/// A request as the demo sees it.
#[derive(Debug, Clone)]
pub(super) struct Turn<'r> {
    /// The last user message's text.
    pub(super) text: String,
    /// How many pictures, sounds, films and documents came with it.
    pub(super) media_count: usize,
    /// Texts of the user messages before it, oldest first.
    pub(super) earlier_texts: Vec<String>,
    /// Steps of this turn that are done: groups of results after the last user message.
    pub(super) step_count: usize,
    /// The results directly before this answer.
    pub(super) results: &'r [ModelToolResult],
    pub(super) tools: &'r [Tool],
    pub(super) tool_choice: &'r ToolChoice,
    pub(super) output_schema: Option<&'r Value>,
    pub(super) asks_for_title: bool,
    pub(super) input_words: u64,
    pub(super) earlier_call_count: usize,
}

impl<'r> Turn<'r> {
    pub(super) fn of(request: &'r ModelRequest) -> Self {
        let mut turn = Self {
            text: String::new(),
            media_count: 0,
            earlier_texts: Vec::new(),
            step_count: 0,
            results: &[],
            tools: &request.tools,
            tool_choice: &request.tool_choice,
            output_schema: request.output_schema.as_ref(),
            asks_for_title: request
                .system
                .first()
                .is_some_and(|text| text.starts_with("Write a title")),
            input_words: request.system.iter().map(|text| word_count(text)).sum(),
            earlier_call_count: 0,
        };
        for message in &request.messages {
            turn.take(message);
        }
        turn.earlier_texts.retain(|text| !text.trim().is_empty());
        turn
    }

    fn take(&mut self, message: &'r ModelMessage) {
        self.results = &[];
        match message {
            ModelMessage::User { parts } => {
                let text = text_of(parts);
                self.input_words += word_count(&text);
                self.earlier_texts.push(std::mem::replace(&mut self.text, text));
                self.media_count = parts
                    .iter()
                    .filter(|part| !matches!(part, ContentPart::Text(_)))
                    .count();
                self.step_count = 0;
            }
            ModelMessage::Assistant { text, tool_calls, .. } => {
                self.input_words += word_count(text);
                self.earlier_call_count += tool_calls.len();
            }
            ModelMessage::ToolResults(results) => {
                self.input_words += results
                    .iter()
                    .map(|result| word_count(&result.content))
                    .sum::<u64>();
                self.results = results;
                self.step_count += 1;
            }
        }
    }
}

fn text_of(parts: &[ContentPart]) -> String {
    let texts: Vec<&str> = parts
        .iter()
        .filter_map(|part| match part {
            ContentPart::Text(part) => Some(part.text.as_str()),
            ContentPart::Image(_)
            | ContentPart::Audio(_)
            | ContentPart::Video(_)
            | ContentPart::Document(_) => None,
        })
        .list();
    parts::join(&texts, "\n\n")
}
