//! What the demo says to a request.

use super::arguments::generate;
use super::calls::{CLOCK, Wish, forced_call, wish};
use super::script::Part;
use super::texts;
use super::turn::Turn;
use super::words::Words;
use crate::list::List;
use crate::protocol::forwarded_props::ToolChoice;
use crate::protocol::json;
use crate::protocol::parts;
use crate::provider::{FinishReason, ProviderError};

const MEMORY_QUESTIONS: &[&str] = &[
    "what did i say",
    "what did i write",
    "what have i said",
    "do you remember",
    "what do you remember",
    "my previous message",
    "my last message",
];

const TOOL_QUESTIONS: &[&str] = &[
    "list tools",
    "list your tools",
    "what tools",
    "which tools",
    "your tools",
];

/// Words of a "long" answer.
const LONG_WORD_COUNT: usize = 400;

/// Most words on request.
const WORDS_MAX_COUNT: u64 = 5_000;

/// Longest silence on request, in seconds.
const SILENCE_MAX_S: u64 = 600;

/// Longer than any head waits for: the refusal reaches the client at once (D14).
const RATE_LIMIT_RETRY_AFTER_MS: u64 = 30_000;

/// Decides the parts of the answer.
pub(super) fn answer(turn: &Turn<'_>) -> Vec<Part> {
    if turn.asks_for_title {
        return text(texts::title(&turn.text));
    }
    let Some(command) = command(turn) else {
        return follow_up(turn);
    };
    let words = Words::of(command);
    if let Some(parts) = failure(&words) {
        return parts;
    }
    let wish = wish(command, turn.tools);
    if let Some(calls) = chosen_calls(turn, &wish) {
        return announced(calls, &words);
    }
    if let Some(schema) = turn.output_schema {
        return text(json::text(&generate(schema, &turn.text, &turn.text)));
    }
    refused_wish(turn, &wish)
        .map(text)
        .or_else(|| known_command(turn, &words))
        .unwrap_or_else(|| follow_up(turn))
}

/// Nothing is left to do but to answer: in JSON if asked for, else from the results, else to the text.
fn follow_up(turn: &Turn<'_>) -> Vec<Part> {
    match turn.output_schema {
        Some(schema) => text(json::text(&generate(schema, &turn.text, &turn.text))),
        None if turn.results.is_empty() => text(texts::greeting(&turn.text, turn.media_count, turn.tools)),
        None => text(texts::results(turn.results)),
    }
}

/// The part of the text this step is about: "call a then call b" takes two steps and a third to answer. `None` when
/// all that was asked for is done.
fn command<'t>(turn: &'t Turn<'_>) -> Option<&'t str> {
    let whole = turn.text.as_str();
    if Words::of(whole).has("forever") {
        return Some(whole);
    }
    let segments: Vec<&str> = parts::split(whole, " then ")
        .map(|segment| {
            let segment = segment.trim();
            segment
                .strip_suffix(" and")
                .unwrap_or(segment)
                .trim_end_matches(',')
        })
        .filter(|segment| !segment.is_empty())
        .list();
    let is_call = |segment: &&str| matches!(wish(segment, turn.tools), Wish::Calls(_));
    if segments.first().is_some_and(is_call) {
        segments.get(turn.step_count).copied()
    } else {
        (turn.step_count == 0).then_some(whole)
    }
}

fn text(text: String) -> Vec<Part> {
    vec![Part::Text(text)]
}

/// The calls of this step, tool choice honoured.
fn chosen_calls(turn: &Turn<'_>, wish: &Wish) -> Option<Vec<Part>> {
    let wished = match wish {
        Wish::Calls(calls) => Some(calls.clone()),
        Wish::Nothing | Wish::UnknownTool(_) => None,
    };
    match turn.tool_choice {
        ToolChoice::None => None,
        ToolChoice::Auto => wished,
        ToolChoice::Required => {
            let first = turn.tools.first();
            wished.or_else(|| first.map(|tool| vec![forced_call(tool, &turn.text)]))
        }
        ToolChoice::Function(name) => {
            let is_chosen = |part: &Part| matches!(part, Part::Call { name: called, .. } if called == name);
            let wished: Vec<Part> = wished.unwrap_or_default().into_iter().filter(is_chosen).list();
            let tool = turn.tools.iter().find(|tool| tool.name == *name)?;
            Some(if wished.is_empty() {
                vec![forced_call(tool, &turn.text)]
            } else {
                wished
            })
        }
    }
}

/// Says before the calls what is called, unless asked to be silent about it.
fn announced(calls: Vec<Part>, words: &Words<'_>) -> Vec<Part> {
    if words.has_any(&["silently", "quietly"]) {
        return calls;
    }
    let names: Vec<&str> = calls
        .iter()
        .filter_map(|part| match part {
            Part::Call { name, .. } => Some(name.as_str()),
            Part::Reasoning(_) | Part::Text(_) | Part::Silence { .. } | Part::Fail(_) | Part::Cut(_) => None,
        })
        .list();
    let announcement = Part::Text(texts::announcement(&names));
    std::iter::once(announcement).chain(calls).list()
}

/// Why a wished call is not made.
fn refused_wish(turn: &Turn<'_>, wish: &Wish) -> Option<String> {
    match (wish, turn.tool_choice) {
        (_, ToolChoice::Function(name)) => Some(texts::unknown_tool(name, turn.tools)),
        (Wish::Calls(_), ToolChoice::None) => Some(texts::TOOLS_FORBIDDEN.to_owned()),
        (Wish::Calls(_), ToolChoice::Auto | ToolChoice::Required) | (Wish::Nothing, _) => None,
        // Without tools an earlier result is still the better answer: tools are withheld on the last step (D10).
        (Wish::UnknownTool(_), _) if !turn.results.is_empty() => None,
        (Wish::UnknownTool(name), _) if name == CLOCK => Some(format!(
            "I have no clock: the tool `{CLOCK}` is not offered to me."
        )),
        (Wish::UnknownTool(name), _) => Some(texts::unknown_tool(name, turn.tools)),
    }
}

/// Failures on request: before any output, or after some.
fn failure(words: &Words<'_>) -> Option<Vec<Part>> {
    let begun = |ending: Part| {
        let start = "This answer will not reach its end, because you asked it to fail. ";
        Some(vec![Part::Text(start.to_owned()), ending])
    };
    let starts_with = |phrases: &[&str]| phrases.iter().any(|phrase| words.starts_with(phrase));
    let refused = |status| ProviderError::Refused {
        status,
        retryable: false,
        retry_after_ms: None,
        detail: "the demo was asked to fail".to_owned(),
    };
    if starts_with(&["fail before", "refuse"]) {
        Some(vec![Part::Fail(refused(400))])
    } else if starts_with(&["rate limit"]) {
        Some(vec![Part::Fail(ProviderError::RateLimited {
            retry_after_ms: Some(RATE_LIMIT_RETRY_AFTER_MS),
            detail: "the demo was asked to limit the rate".to_owned(),
        })])
    } else if starts_with(&["fail context"]) {
        Some(vec![Part::Fail(ProviderError::ContextLengthExceeded)])
    } else if starts_with(&["fail cut"]) {
        begun(Part::Fail(ProviderError::Truncated))
    } else if starts_with(&["fail length"]) {
        begun(Part::Cut(FinishReason::Length))
    } else if starts_with(&["fail filter"]) {
        begun(Part::Cut(FinishReason::ContentFilter))
    } else if starts_with(&["fail", "please fail"]) {
        begun(Part::Fail(refused(200)))
    } else {
        None
    }
}

/// Answers in text to what the demo knows.
fn known_command(turn: &Turn<'_>, words: &Words<'_>) -> Option<Vec<Part>> {
    let seconds = words
        .number_before("second")
        .map(|seconds| seconds.min(SILENCE_MAX_S));
    let word_count = words
        .number_before("word")
        .map(|count| count.clamp(1, WORDS_MAX_COUNT));
    let is_silence = ["silence", "wait", "pause"]
        .iter()
        .any(|word| words.starts_with(word));
    match (seconds, word_count) {
        (Some(seconds), _) if is_silence || words.has("silent") => Some(vec![
            Part::Text(format!("I will say nothing for {seconds} seconds. ")),
            Part::Silence { ms: seconds * 1000 },
            Part::Text("Here I am again.".to_owned()),
        ]),
        (_, Some(count)) => Some(text(texts::long(
            usize::try_from(count).unwrap_or(LONG_WORD_COUNT),
        ))),
        _ if words.starts_with("long") || words.has("long answer") => {
            Some(text(texts::long(LONG_WORD_COUNT)))
        }
        _ if words.has("markdown") => Some(text(texts::MARKDOWN.to_owned())),
        _ if words.has_any(MEMORY_QUESTIONS) => Some(text(texts::memory(&turn.earlier_texts))),
        _ if words.has_any(TOOL_QUESTIONS) => Some(text(texts::tool_list(turn.tools))),
        _ if words.starts_with("think") => Some(vec![
            Part::Reasoning(texts::REASONING.to_owned()),
            Part::Text(texts::greeting(&turn.text, turn.media_count, turn.tools)),
        ]),
        _ => None,
    }
}
