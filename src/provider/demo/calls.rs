//! Which tools a text asks for, and with what arguments.

use serde_json::Value;

use super::arguments::generate_arguments;
use super::script::Part;
use super::words::{Words, name_words};
use crate::list::List;
use crate::platform::{is_alphanumeric, is_uppercase, lower_case};
use crate::protocol::json_cursor::JsonCursor;
use crate::protocol::order::insert_in_order;
use crate::protocol::parts;
use crate::protocol::tool::Tool;

/// Words that ask for a tool.
const VERBS: &[&str] = &["call", "use", "run", "invoke", "execute", "try"];

const ALL_TOOLS: &[&str] = &[
    "all tools",
    "every tool",
    "all the tools",
    "all your tools",
    "each tool",
];

const TIME_QUESTIONS: &[&str] = &[
    "what time",
    "time is it",
    "current time",
    "the time now",
    "tell me the time",
    "what day",
    "which day",
    "what date",
    "the date",
    "today's date",
];

const REFUSALS: &[&str] = &["don't call", "do not call", "don't use", "do not use"];

/// Words behind "call" that are people, not tools.
const PERSONS: &[&str] = &[
    "me", "it", "him", "her", "us", "them", "you", "my", "your", "this", "that",
];

/// Most calls of one step.
const CALLS_MAX_COUNT: usize = 20;

/// For a text property when the person gave no text.
const SENTENCE: &str = "Hello from the demo.";

/// The server tool of ours that the demo knows by name.
pub(super) const CLOCK: &str = "current_time";

/// What a text asks for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Wish {
    /// No tool.
    Nothing,
    /// These calls, at least one.
    Calls(Vec<Part>),
    /// A tool nobody declared.
    UnknownTool(String),
}

/// A declared tool in the text.
struct Mention<'t> {
    start: usize,
    end: usize,
    tool: &'t Tool,
}

/// Reads a text.
pub(super) fn wish(text: &str, tools: &[Tool]) -> Wish {
    let words = Words::of(text);
    if words.has_any(REFUSALS) {
        return Wish::Nothing;
    }
    if words.has_any(VERBS) && words.has_any(ALL_TOOLS) && !tools.is_empty() {
        let calls = tools.iter().map(|tool| generated_call(tool, text, ""));
        return Wish::Calls(calls.take(CALLS_MAX_COUNT).list());
    }
    let mentions = mentions(text, &words, tools);
    if !mentions.is_empty() {
        return Wish::Calls(calls(text, &words, &mentions));
    }
    if words.has_any(TIME_QUESTIONS) {
        let clock = tools.iter().find(|tool| tool.name == CLOCK);
        return clock.map_or(Wish::UnknownTool(CLOCK.to_owned()), |tool| {
            Wish::Calls(vec![generated_call(tool, "", "")])
        });
    }
    unknown_tool(&words).map_or(Wish::Nothing, Wish::UnknownTool)
}

/// A call of this tool whatever the text says.
pub(super) fn forced_call(tool: &Tool, text: &str) -> Part {
    let arguments = json_object(text);
    match arguments {
        Some(arguments) => Part::Call {
            name: tool.name.clone(),
            arguments,
        },
        None => generated_call(tool, text, text),
    }
}

fn generated_call(tool: &Tool, text: &str, sentence: &str) -> Part {
    let sentence = sentence.trim_matches(|character: char| !is_alphanumeric(character));
    let sentence = if sentence.is_empty() { SENTENCE } else { sentence };
    Part::Call {
        name: tool.name.clone(),
        arguments: generate_arguments(tool.parameters.as_ref(), text, sentence),
    }
}

/// The declared tools named in the text, in its order; without any, the one tool whose name's words all occur.
fn mentions<'t>(text: &str, words: &Words<'_>, tools: &'t [Tool]) -> Vec<Mention<'t>> {
    let mut found: Vec<Mention<'t>> = Vec::new();
    let has_verb = words.has_any(VERBS);
    let mut by_length: Vec<&Tool> = Vec::new();
    for tool in tools.iter().filter(|tool| !tool.name.is_empty()) {
        insert_in_order(&mut by_length, tool, |tool| std::cmp::Reverse(tool.name.len()));
    }
    for tool in by_length {
        // A name that is an ordinary word ("search") only counts when the text asks for a tool.
        let is_plain = tool.name.chars().all(|character| character.is_ascii_lowercase());
        if !is_plain || has_verb || words.has(&format!("{} tool", tool.name)) {
            for (start, end) in places(text, &tool.name) {
                let is_free = found.iter().all(|other| end <= other.start || start >= other.end);
                if is_free {
                    insert_in_order(&mut found, Mention { start, end, tool }, |mention| mention.start);
                }
            }
        }
    }
    if found.is_empty() {
        let is_described = |tool: &&Tool| {
            let name = name_words(&tool.name);
            name.contains([' ']) && name.split(' ').all(|word| words.has(word))
        };
        found.extend(tools.iter().find(is_described).map(|tool| Mention {
            start: 0,
            end: 0,
            tool,
        }));
    }
    found
}

/// Where a name stands in the text by itself, whatever the case.
fn places(text: &str, name: &str) -> Vec<(usize, usize)> {
    let (text, name) = (text.to_ascii_lowercase(), name.to_ascii_lowercase());
    let is_part = |character: char| is_alphanumeric(character) || matches!(character, '_' | '-');
    let is_alone = |start: usize, end: usize| {
        let before = text.get(..start).and_then(|before| before.chars().next_back());
        let after = text.get(end..).and_then(|after| after.chars().next());
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    };
    parts::places(&text, &name)
        .map(|start| (start, start + name.len()))
        .filter(|(start, end)| is_alone(*start, *end))
        .list()
}

fn calls(text: &str, words: &Words<'_>, mentions: &[Mention<'_>]) -> Vec<Part> {
    let repeats = match words.number_before("time") {
        Some(count) => usize::try_from(count).unwrap_or(CALLS_MAX_COUNT).max(1),
        None if words.has("twice") => 2,
        None => 1,
    };
    let ends = mentions.iter().skip(1).map(|next| next.start).chain([text.len()]);
    let calls = mentions.iter().zip(ends).map(|(mention, end)| {
        let own = text.get(mention.end..end).unwrap_or_default();
        match json_object(own) {
            Some(arguments) => Part::Call {
                name: mention.tool.name.clone(),
                arguments,
            },
            // A lone tool's values may stand before its name.
            None if mentions.len() == 1 => generated_call(mention.tool, text, own),
            None => generated_call(mention.tool, own, own),
        }
    });
    calls
        .flat_map(|call| std::iter::repeat_n(call, repeats))
        .take(CALLS_MAX_COUNT)
        .list()
}

/// The first JSON object in the text, taken as it is: also one the tool's schema refuses.
fn json_object(text: &str) -> Option<Value> {
    let object = text.get(text.find('{')?..)?;
    JsonCursor::new(object).value().ok()
}

/// "call launch_rocket", "use the rocket tool".
fn unknown_tool(words: &Words<'_>) -> Option<String> {
    let behind_verb = VERBS.iter().find_map(|verb| words.after(verb));
    let (name, rest) = behind_verb?.split_first()?;
    let is_tool = rest.first().is_some_and(|next| next.eq_ignore_ascii_case("tool"));
    let is_call = words.starts_with("call") || words.starts_with("invoke");
    let is_person = PERSONS.contains(&lower_case(name).as_str());
    let is_identifier = name.contains(['_']) || name.chars().skip(1).any(is_uppercase);
    (is_tool || (is_call && !is_person) || (is_identifier && !is_person)).then(|| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, parameters: Value) -> Tool {
        Tool {
            name: name.to_owned(),
            description: String::new(),
            parameters: Some(parameters),
        }
    }

    fn tools() -> Vec<Tool> {
        let theme = json!({"type": "object", "properties": {"theme": {"enum": ["light", "dark"]}}, "required": ["theme"]});
        let message =
            json!({"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]});
        vec![
            tool("set_theme", theme),
            tool("showMessage", message),
            tool("search", json!({"type": "object"})),
            tool("set_theme_later", json!({"type": "object"})),
        ]
    }

    fn calls_of(text: &str) -> Vec<(String, Value)> {
        let Wish::Calls(calls) = wish(text, &tools()) else {
            return Vec::new();
        };
        calls
            .into_iter()
            .map(|call| match call {
                Part::Call { name, arguments } => (name, arguments),
                other => panic!("not a call: {other:?}"),
            })
            .collect()
    }

    fn call(name: &str, arguments: Value) -> (String, Value) {
        (name.to_owned(), arguments)
    }

    #[test]
    fn tools_are_called_by_name_description_or_all() {
        let light = || call("set_theme", json!({"theme": "light"}));
        let dark = || call("set_theme", json!({"theme": "dark"}));
        let message = |text: &str| call("showMessage", json!({ "message": text }));
        let search = || call("search", json!({}));
        let later = || call("set_theme_later", json!({}));
        let table = [
            ("call set_theme", vec![light()]),
            ("Use the SET_THEME tool with dark, please", vec![dark()]),
            ("set the theme to dark", vec![dark()]),
            ("call set_theme 3 times", vec![light(), light(), light()]),
            ("call set_theme twice", vec![light(), light()]),
            (
                r#"use set_theme with {"theme": "pink"}"#,
                vec![call("set_theme", json!({"theme": "pink"}))],
            ),
            ("use showMessage to say \"Hi there\"", vec![message("Hi there")]),
            ("call showMessage", vec![message("Hello from the demo.")]),
            ("call showMessage: Good morning!", vec![message("Good morning")]),
            ("call set_theme_later", vec![later()]),
            ("call search and set_theme dark", vec![search(), dark()]),
            (
                "call all tools",
                vec![light(), message("Hello from the demo."), search(), later()],
            ),
            ("I like to search", vec![]),
            ("don't call set_theme", vec![]),
            ("call me maybe", vec![]),
        ];
        for (text, calls) in table {
            assert_eq!(calls_of(text), calls, "{text}");
        }
    }

    #[test]
    fn tools_nobody_declared_are_named() {
        for (text, name) in [
            ("call launch_rocket", "launch_rocket"),
            ("use the rocket tool", "rocket"),
            ("please run launchRocket now", "launchRocket"),
            ("what time is it?", "current_time"),
        ] {
            assert_eq!(wish(text, &tools()), Wish::UnknownTool(name.to_owned()), "{text}");
        }
        for text in ["use simpler words", "call me", "try again", "hello", ""] {
            assert_eq!(wish(text, &tools()), Wish::Nothing, "{text}");
        }
    }
}
