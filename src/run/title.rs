//! A model-written title, after the run's terminal event (contract 4).

use super::Run;
use super::deadline::Deadline;
use super::ports::{EventSink, HttpBody, HttpClient, Level, Log, Ports};
use crate::protocol::forwarded_props::{ModelSettings, ToolChoice};
use crate::provider::{self, ModelCall, ModelEvent, ModelMessage, ModelRequest, ModelTarget, codec};

/// What the model is told; the demo provider knows its first words.
const INSTRUCTION: &str = "Write a title for this conversation: at most six words, in its language, without quotes, \
     a final full stop or any other text.";
/// Longest title taken, in characters. Source: contract 4.
const TITLE_MAX_CHARACTERS: usize = 50;
/// How long a title may take, in milliseconds: the object lives for it.
const TITLE_TIMEOUT_MS: u64 = 30_000;

impl<P: Ports, S: EventSink> Run<'_, P, S> {
    /// Replaces the thread's provisional title; a failure costs nothing but the title.
    pub(super) async fn write_title(&self) {
        let (Some(store), Some(run)) = (&self.store, &self.persistent) else {
            return;
        };
        if !self.setup.agent.generate_title || !run.has_provisional_title || run.read_only {
            return;
        }
        let deadline = Deadline::after(self.ports.clock(), TITLE_TIMEOUT_MS);
        let Some(Some(title)) = deadline.within(self.ask_for_title()).await else {
            return;
        };
        if let Err(error) = store.set_generated_title(run, &title).await {
            self.ports.log().line(
                Level::Warn,
                "title_not_stored",
                &[("threadId", &run.thread_id), ("error", &error)],
            );
        }
    }

    async fn ask_for_title(&self) -> Option<String> {
        let codec = codec(self.setup.target.wire);
        let mut events = Vec::new();
        // Thinking would use up what little a title may cost.
        let target = ModelTarget {
            wants_reasoning: false,
            ..self.setup.target.clone()
        };
        match provider::call(&target, &self.title_request()?).ok()? {
            ModelCall::Scripted(pieces) => {
                events.extend(pieces.into_iter().filter_map(|piece| piece.event.ok()))
            }
            ModelCall::Http(request) => {
                let response = self.ports.http().send(request).await.ok()?;
                let (mut body, mut decoder) = (response.body, codec.decoder());
                if !(200..300).contains(&response.status) {
                    return None;
                }
                while !decoder.is_finished() {
                    match body.next_chunk().await {
                        Some(Ok(bytes)) => decoder.feed(&bytes, &mut events).ok()?,
                        Some(Err(_)) => return None,
                        None => {
                            decoder.end(&mut events).ok()?;
                            break;
                        }
                    }
                }
            }
        }
        let text: String = events
            .into_iter()
            .filter_map(|event| {
                if let ModelEvent::Text(text) = event {
                    Some(text)
                } else {
                    None
                }
            })
            .collect();
        clean(&text)
    }

    fn title_request(&self) -> Option<ModelRequest> {
        let is_user = |message: &&ModelMessage| matches!(message, ModelMessage::User { .. });
        let question = self.conversation.iter().find(is_user)?.clone();
        let input = &self.setup.input;
        Some(ModelRequest {
            system: vec![INSTRUCTION.to_owned()],
            messages: vec![question],
            tools: Vec::new(),
            tool_choice: ToolChoice::None,
            settings: ModelSettings {
                max_output_tokens: Some(200),
                ..ModelSettings::default()
            },
            output_schema: None,
            state: None,
            unknown_props: serde_json::Map::new(),
            run_id: input.run_id.clone(),
            thread_id: input.thread_id.clone(),
            kept_thread: None,
        })
    }
}

/// The first line of what the model wrote, without quotes, cut at a word.
fn clean(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let line = line
        .trim_matches(['"', '\'', '\u{201c}', '\u{201d}', '#', '*', ' '])
        .trim_end_matches('.');
    let mut title = String::new();
    for word in line.split_whitespace() {
        if !title.is_empty() && title.chars().count() + 1 + word.chars().count() > TITLE_MAX_CHARACTERS {
            break;
        }
        if !title.is_empty() {
            title.push(' ');
        }
        title.push_str(word);
    }
    let title: String = title.chars().take(TITLE_MAX_CHARACTERS).collect();
    (!title.is_empty()).then_some(title)
}

#[cfg(test)]
mod tests {
    use super::clean;

    #[test]
    fn a_title_is_one_short_line_without_decoration() {
        assert_eq!(
            clean("\n \"Weather in Varna.\"\nmore"),
            Some("Weather in Varna".to_owned())
        );
        assert_eq!(clean(" \n"), None);
        assert_eq!(clean(&"word ".repeat(30)).map(|title| title.len()), Some(49));
        assert_eq!(clean(&"x".repeat(80)).map(|title| title.len()), Some(50));
    }
}
