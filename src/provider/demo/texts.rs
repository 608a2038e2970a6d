//! The demo's sentences.

use serde_json::Value;

use crate::list::List;
use crate::platform::upper_case;
use crate::protocol::json;
use crate::protocol::parts;
use crate::protocol::tool::Tool;
use crate::provider::ModelToolResult;

/// Longest quotation of a result or a message, in characters.
const QUOTE_MAX_CHARACTERS: usize = 600;

/// Words of a title.
const TITLE_MAX_WORDS: usize = 6;

const FILLING: &str = "A run begins with a question and ends with exactly one last event. Between them the answer \
    arrives in small pieces, so that a reader sees the first words while the last ones are still being written. Tools \
    may be called along the way, some here and some in the browser, and the run waits for their results without \
    losing its thread. Whatever is opened is closed again, and whatever fails says so in one plain sentence. ";

pub(super) const MARKDOWN: &str = "## A sample of Markdown\n\n\
    Some *emphasis*, some **strong words**, some `code`, and a [link](https://example.com/).\n\n\
    1. first\n2. second\n   - nested\n3. third\n\n\
    ```rust\nfn main() {\n    println!(\"Hello from the demo.\");\n}\n```\n\n\
    | Event | Sent |\n| --- | --- |\n| RUN_STARTED | first |\n| RUN_FINISHED | last |\n\n\
    > A quotation closes the sample.\n";

pub(super) const REASONING: &str = "The person wants to see reasoning. It never becomes part of the answer, so this \
    is the place to think aloud: what was asked, which tools could help, and what to say.";

/// Exactly `count` words.
pub(super) fn long(count: usize) -> String {
    let words: Vec<&str> = FILLING.split_whitespace().cycle().take(count).list();
    parts::join(&words, " ")
}

pub(super) fn title(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().take(TITLE_MAX_WORDS).list();
    let title = parts::join(&words, " ");
    let title = title.trim_matches(|character: char| character.is_ascii_punctuation());
    let mut characters = title.chars();
    match characters.next() {
        Some(first) => upper_case(&first.to_string()) + characters.as_str(),
        None => "New chat".to_owned(),
    }
}

pub(super) fn announcement(names: &[&str]) -> String {
    match names {
        [name] => format!("I will call `{name}`."),
        names if names.iter().all(|name| Some(name) == names.first()) => {
            format!(
                "I will call `{}` {} times.",
                names.first().unwrap_or(&""),
                names.len()
            )
        }
        names => format!("I will call {}.", listed(names)),
    }
}

pub(super) fn unknown_tool(name: &str, tools: &[Tool]) -> String {
    format!("I have no tool named `{name}`. {}", tool_list(tools))
}

pub(super) fn tool_list(tools: &[Tool]) -> String {
    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).list();
    if names.is_empty() {
        "No tools are offered to me here.".to_owned()
    } else {
        format!("My tools are {}.", listed(&names))
    }
}

pub(super) const TOOLS_FORBIDDEN: &str = "I may not call tools in this answer.";

/// What came out of the calls, one paragraph each.
pub(super) fn results(results: &[ModelToolResult]) -> String {
    let paragraphs: Vec<String> = results.iter().map(result).list();
    parts::join(&paragraphs, "\n\n")
}

fn result(result: &ModelToolResult) -> String {
    let value: Option<Value> = json::tree(&result.content);
    let member = |name: &str| {
        value
            .as_ref()
            .and_then(|value| value.get(name))
            .and_then(Value::as_str)
    };
    let name = &result.name;
    match (member("error"), member("iso"), member("weekday")) {
        (Some(error), _, _) => format!("The tool `{name}` failed: {}", quoted(error)),
        (None, Some(iso), Some(weekday)) if !result.is_error => format!("It is {weekday}, {iso}."),
        (None, _, _) => {
            let verb = if result.is_error { "failed" } else { "answered" };
            format!("The tool `{name}` {verb}: {}", quoted(&result.content))
        }
    }
}

pub(super) fn memory(earlier_texts: &[String]) -> String {
    if earlier_texts.is_empty() {
        return "This is the first message of yours that I can see.".to_owned();
    }
    let lines = earlier_texts
        .iter()
        .enumerate()
        .map(|(index, text)| format!("{}. \"{}\"", index + 1, quoted(text)));
    let lines: Vec<String> = lines.list();
    format!("Before this message you said:\n\n{}", parts::join(&lines, "\n"))
}

/// For a text that asks for nothing the demo knows.
pub(super) fn greeting(text: &str, media_count: usize, tools: &[Tool]) -> String {
    let mut greeting = if text.trim().is_empty() {
        "You sent no text.".to_owned()
    } else {
        format!("You wrote: \"{}\".", quoted(text.trim()))
    };
    match media_count {
        0 => {}
        1 => greeting.push_str(" It came with an attachment, which I cannot look at."),
        count => greeting.push_str(&format!(
            " It came with {count} attachments, which I cannot look at."
        )),
    }
    greeting.push_str(
        "\n\nI am the demo model: I need no key and no network, and I answer the same question always the same way. \
         Try `markdown`, `write 200 words`, `think`, `what did I say`, `slow`, `silence 20 seconds` or `fail`.",
    );
    if let Some(tool) = tools.first() {
        greeting.push_str(&format!(
            " {} Say `call {}`, or `call all tools`.",
            tool_list(tools),
            tool.name
        ));
    }
    greeting
}

fn listed(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).list();
    match names.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", parts::join(others, ", ")),
        None => String::new(),
    }
}

fn quoted(text: &str) -> String {
    match text.char_indices().nth(QUOTE_MAX_CHARACTERS) {
        Some((end, _)) => format!("{}...", text.get(..end).unwrap_or(text)),
        None => text.to_owned(),
    }
}
