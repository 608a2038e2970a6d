//! The demo provider, row by row of the table it documents: whole event lists with the pieces of each text joined.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

#[path = "support/demo.rs"]
mod demo;

use demo::{Said, pieces, request, said, tool, user};
use io_bridge::protocol::event::TokenUsage;
use io_bridge::protocol::forwarded_props::{ModelSettings, ToolChoice};
use io_bridge::protocol::message::ContentPart;
use io_bridge::protocol::read;
use io_bridge::protocol::tool::Tool;
use io_bridge::provider::{
    FinishReason, ModelEvent, ModelMessage, ModelRequest, ModelToolCall, ModelToolResult, ProviderError,
};
use serde_json::{Value, json};

fn with_tools(text: &str) -> ModelRequest {
    ModelRequest {
        tools: tools(),
        ..request(text)
    }
}

fn tools() -> Vec<Tool> {
    let color = json!({ "type": "string", "description": "A CSS color" });
    let none = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    vec![
        tool(
            "set_color",
            json!({ "type": "object", "properties": { "color": color }, "required": ["color"] }),
        ),
        tool("current_time", none),
    ]
}

/// Adds the step in which the demo made these calls and got these results.
fn answered(mut request: ModelRequest, results: &[(&str, &str, bool)]) -> ModelRequest {
    let id = |index: usize| format!("call_{index}");
    let call = |(index, (name, _, _)): (usize, &(&str, &str, bool))| ModelToolCall {
        id: id(index),
        name: (*name).to_owned(),
        arguments: "{}".to_owned(),
    };
    let result = |(index, (name, content, is_error)): (usize, &(&str, &str, bool))| ModelToolResult {
        tool_call_id: id(index),
        name: (*name).to_owned(),
        content: (*content).to_owned(),
        images: vec![],
        is_error: *is_error,
    };
    request.messages.push(ModelMessage::Assistant {
        text: String::new(),
        tool_calls: results.iter().enumerate().map(call).collect(),
        vendor_state: None,
    });
    request.messages.push(ModelMessage::ToolResults(
        results.iter().enumerate().map(result).collect(),
    ));
    request
}

fn text(text: &str) -> Vec<Said> {
    vec![Said::Text(text.to_owned()), Said::Finish(FinishReason::Stop)]
}

fn calls(announcement: &str, calls: &[(&str, Value)]) -> Vec<Said> {
    let calls = calls
        .iter()
        .map(|(name, arguments)| Said::Call((*name).to_owned(), arguments.clone()));
    let text = (!announcement.is_empty()).then(|| Said::Text(announcement.to_owned()));
    text.into_iter()
        .chain(calls)
        .chain([Said::Finish(FinishReason::ToolCalls)])
        .collect()
}

fn only_text(request: &ModelRequest) -> String {
    match said(request).as_slice() {
        [Said::Text(text), Said::Finish(FinishReason::Stop)] => text.clone(),
        other => panic!("not a text: {other:?}"),
    }
}

const HINTS: &str = "I am the demo model: I need no key and no network, and I answer the same question always the same \
     way. Try `markdown`, `write 200 words`, `think`, `what did I say`, `slow`, `silence 20 seconds` or `fail`.";

#[test]
fn an_unknown_text_is_quoted_and_gets_hints() {
    assert_eq!(
        said(&request("Good morning")),
        text(&format!("You wrote: \"Good morning\".\n\n{HINTS}"))
    );
    assert_eq!(
        said(&with_tools("Good morning")),
        text(&format!(
            "You wrote: \"Good morning\".\n\n{HINTS} My tools are `set_color` and `current_time`. Say `call \
             set_color`, or `call all tools`."
        ))
    );
    assert_eq!(
        said(&request(" ")),
        text(&format!("You sent no text.\n\n{HINTS}"))
    );
}

#[test]
fn attachments_are_noticed() {
    let mut request = request("Look");
    let image = json!([{ "type": "image", "source": { "type": "url", "value": "https://x.test/a.png" } }]);
    let image: Vec<ContentPart> = read::from_value(&image).unwrap();
    if let Some(ModelMessage::User { parts }) = request.messages.first_mut() {
        parts.extend(image);
    }
    let answer =
        format!("You wrote: \"Look\". It came with an attachment, which I cannot look at.\n\n{HINTS}");
    assert_eq!(said(&request), text(&answer));
}

#[test]
fn the_same_request_gives_the_same_pieces() {
    for text in ["Good morning", "call all tools", "write 100 words", "fail"] {
        assert_eq!(pieces(&with_tools(text)), pieces(&with_tools(text)));
    }
    let pauses = |text: &str| -> Vec<u64> {
        pieces(&request(text))
            .iter()
            .map(|piece| piece.after_ms)
            .collect()
    };
    assert_ne!(pauses("Good morning"), pauses("Good evening"));
}

#[test]
fn tools_are_called_on_request() {
    let table = [
        (
            "call set_color",
            calls(
                "I will call `set_color`.",
                &[("set_color", json!({ "color": "example" }))],
            ),
        ),
        (
            "set the color to Red",
            calls(
                "I will call `set_color`.",
                &[("set_color", json!({ "color": "Red" }))],
            ),
        ),
        (
            r#"use set_color with {"color": 1.0}"#,
            calls(
                "I will call `set_color`.",
                &[(
                    "set_color",
                    json!({ "color": serde_json::from_str::<Value>("1.0").unwrap() }),
                )],
            ),
        ),
        (
            "call set_color with blue and current_time",
            calls(
                "I will call `set_color` and `current_time`.",
                &[
                    ("set_color", json!({ "color": "blue" })),
                    ("current_time", json!({})),
                ],
            ),
        ),
        (
            "call all tools",
            calls(
                "I will call `set_color` and `current_time`.",
                &[
                    ("set_color", json!({ "color": "example" })),
                    ("current_time", json!({})),
                ],
            ),
        ),
        (
            "call current_time 3 times",
            calls(
                "I will call `current_time` 3 times.",
                &vec![("current_time", json!({})); 3],
            ),
        ),
        (
            "silently call current_time",
            calls("", &[("current_time", json!({}))]),
        ),
        (
            "What time is it?",
            calls("I will call `current_time`.", &[("current_time", json!({}))]),
        ),
    ];
    for (text, expected) in table {
        assert_eq!(said(&with_tools(text)), expected, "{text}");
    }
}

#[test]
fn tools_it_has_not_are_named_with_those_it_has() {
    assert_eq!(
        said(&with_tools("call launch_rocket")),
        text("I have no tool named `launch_rocket`. My tools are `set_color` and `current_time`.")
    );
    assert_eq!(
        said(&request("use the rocket tool")),
        text("I have no tool named `rocket`. No tools are offered to me here.")
    );
    assert_eq!(
        said(&request("what time is it")),
        text("I have no clock: the tool `current_time` is not offered to me.")
    );
    assert_eq!(
        said(&with_tools("Which tools do you have?")),
        text("My tools are `set_color` and `current_time`.")
    );
}

#[test]
fn results_are_told() {
    let time = r#"{"iso":"2026-11-29T20:24:39.000Z","unixMs":1795983879000,"weekday":"Sunday"}"#;
    let request = answered(
        with_tools("call all tools"),
        &[
            ("set_color", "painted", false),
            ("current_time", time, false),
            ("set_color", r#"{"error":"No paint left."}"#, true),
            ("set_color", "out of paint", true),
        ],
    );
    assert_eq!(
        said(&request),
        text(
            "The tool `set_color` answered: painted\n\nIt is Sunday, 2026-11-29T20:24:39.000Z.\n\nThe tool `set_color` \
             failed: No paint left.\n\nThe tool `set_color` failed: out of paint"
        )
    );
}

#[test]
fn steps_follow_each_other() {
    let first = with_tools("call set_color red, then call current_time then markdown");
    assert_eq!(
        said(&first),
        calls(
            "I will call `set_color`.",
            &[("set_color", json!({ "color": "red" }))]
        )
    );
    let second = answered(first, &[("set_color", "painted", false)]);
    assert_eq!(
        said(&second),
        calls("I will call `current_time`.", &[("current_time", json!({}))])
    );
    let third = answered(second, &[("current_time", "noon", false)]);
    assert!(only_text(&third).starts_with("## A sample of Markdown"));
    let fourth = answered(third, &[("current_time", "later", false)]);
    assert_eq!(said(&fourth), text("The tool `current_time` answered: later"));
}

#[test]
fn calls_go_on_forever_until_tools_are_withheld() {
    let mut request = with_tools("call current_time forever");
    for _ in 0..3 {
        assert_eq!(
            said(&request),
            calls("I will call `current_time`.", &[("current_time", json!({}))])
        );
        request = answered(request, &[("current_time", "noon", false)]);
    }
    request.tools.clear();
    assert_eq!(said(&request), text("The tool `current_time` answered: noon"));
}

#[test]
fn a_new_message_starts_a_new_turn() {
    let mut request = answered(
        with_tools("call current_time"),
        &[("current_time", "noon", false)],
    );
    request.messages.push(user("call current_time"));
    let vendor_ids: Vec<_> = pieces(&request)
        .into_iter()
        .filter_map(|piece| match piece.event {
            Ok(ModelEvent::ToolCallStart { vendor_id, .. }) => vendor_id,
            _ => None,
        })
        .collect();
    assert_eq!(vendor_ids, ["demo_2"]);
}

#[test]
fn tool_choice_is_honoured() {
    let choose = |text: &str, tool_choice: ToolChoice| {
        said(&ModelRequest {
            tool_choice,
            ..with_tools(text)
        })
    };
    let color =
        |announcement: &str, color: &str| calls(announcement, &[("set_color", json!({ "color": color }))]);
    assert_eq!(
        choose("call set_color", ToolChoice::None),
        text("I may not call tools in this answer.")
    );
    assert_eq!(
        choose("Hello", ToolChoice::Required),
        color("I will call `set_color`.", "example")
    );
    let chosen = |name: &str| ToolChoice::Function(name.to_owned());
    assert_eq!(
        choose("paint it pink", chosen("set_color")),
        color("I will call `set_color`.", "pink")
    );
    assert_eq!(
        choose("call all tools", chosen("current_time")),
        calls("I will call `current_time`.", &[("current_time", json!({}))])
    );
    assert_eq!(
        choose("Hello", chosen("launch_rocket")),
        text("I have no tool named `launch_rocket`. My tools are `set_color` and `current_time`.")
    );
}

#[test]
fn memory_is_what_the_request_holds() {
    let mut request = request("My name is Ada.");
    request.messages.push(ModelMessage::Assistant {
        text: "Hello Ada.".to_owned(),
        tool_calls: Vec::new(),
        vendor_state: None,
    });
    request.messages.push(user("I like tea."));
    request.messages.push(user("What did I say?"));
    assert_eq!(
        said(&request),
        text("Before this message you said:\n\n1. \"My name is Ada.\"\n2. \"I like tea.\"")
    );
    let first = self::request("What did I say?");
    assert_eq!(
        said(&first),
        text("This is the first message of yours that I can see.")
    );
}

#[test]
fn long_answers_have_the_words_asked_for() {
    for (text, count) in [
        ("write 200 words", 200),
        ("long", 400),
        ("Write 1 word.", 1),
        ("write 99999 words", 5000),
    ] {
        assert_eq!(
            only_text(&request(text)).split_whitespace().count(),
            count,
            "{text}"
        );
    }
}

#[test]
fn markdown_has_a_list_a_code_block_and_a_table() {
    let sample = only_text(&request("show me some markdown"));
    for mark in ["\n1. first\n", "\n```rust\n", "\n| --- | --- |\n", "\n> "] {
        assert!(sample.contains(mark), "{mark}");
    }
}

#[test]
fn reasoning_comes_before_the_answer() {
    match said(&request("think about it")).as_slice() {
        [
            Said::Reasoning(_),
            Said::Text(text),
            Said::Finish(FinishReason::Stop),
        ] => {
            assert!(text.starts_with("You wrote: \"think about it\"."));
        }
        other => panic!("no reasoning: {other:?}"),
    }
}

#[test]
fn silence_lasts_as_long_as_asked() {
    let pieces = pieces(&request("silence 20 seconds"));
    let longest = pieces.iter().map(|piece| piece.after_ms).max().unwrap();
    assert!((20_008..=20_030).contains(&longest), "{longest}");
    assert_eq!(
        said(&request("silence 20 seconds")),
        text("I will say nothing for 20 seconds. Here I am again.")
    );
}

#[test]
fn slow_answers_have_longer_pauses() {
    let pieces = pieces(&request("slow, please"));
    assert!(pieces.iter().all(|piece| (120..=450).contains(&piece.after_ms)));
}

#[test]
fn failures_come_where_they_were_asked_for() {
    let start =
        || Said::Text("This answer will not reach its end, because you asked it to fail. ".to_owned());
    let refused = |status| {
        Said::Failure(ProviderError::Refused {
            status,
            retryable: false,
            retry_after_ms: None,
            detail: "the demo was asked to fail".to_owned(),
        })
    };
    let rate_limited = Said::Failure(ProviderError::RateLimited {
        retry_after_ms: Some(30_000),
        detail: "the demo was asked to limit the rate".to_owned(),
    });
    let table = [
        ("fail", vec![start(), refused(200)]),
        ("Please fail.", vec![start(), refused(200)]),
        ("fail cut", vec![start(), Said::Failure(ProviderError::Truncated)]),
        ("fail length", vec![start(), Said::Finish(FinishReason::Length)]),
        (
            "fail filter",
            vec![start(), Said::Finish(FinishReason::ContentFilter)],
        ),
        ("fail before", vec![refused(400)]),
        ("refuse", vec![refused(400)]),
        ("rate limit", vec![rate_limited]),
        (
            "fail context",
            vec![Said::Failure(ProviderError::ContextLengthExceeded)],
        ),
    ];
    for (text, expected) in table {
        assert_eq!(said(&request(text)), expected, "{text}");
    }
    let after_a_call = answered(
        with_tools("call current_time then fail"),
        &[("current_time", "noon", false)],
    );
    assert_eq!(said(&after_a_call), [start(), refused(200)]);
    assert!(only_text(&request("why did it fail")).starts_with("You wrote"));
}

#[test]
fn words_are_the_tokens() {
    let limited = ModelRequest {
        settings: ModelSettings {
            max_output_tokens: Some(3),
            ..ModelSettings::default()
        },
        ..request("write 200 words")
    };
    assert_eq!(
        said(&limited),
        [
            Said::Text("A run begins".to_owned()),
            Said::Finish(FinishReason::Length)
        ]
    );
    let counts = pieces(&limited).into_iter().find_map(|piece| match piece.event {
        Ok(ModelEvent::Usage(usage)) => Some(*usage),
        _ => None,
    });
    let expected = TokenUsage {
        input_tokens: Some(5),
        output_tokens: Some(3),
        total_tokens: Some(8),
        ..TokenUsage::default()
    };
    assert_eq!(counts, Some(expected));
}

#[test]
fn titles_are_the_first_words() {
    let title = |text: &str| {
        only_text(&ModelRequest {
            system: vec!["Write a title for this conversation.".to_owned()],
            ..with_tools(text)
        })
    };
    assert_eq!(
        title("call all tools and tell me what they say"),
        "Call all tools and tell me"
    );
    assert_eq!(title("élan vital?"), "Élan vital");
    assert_eq!(title("  "), "New chat");
}

#[test]
fn structured_output_fits_its_schema() {
    let schema = json!({
        "type": "object",
        "properties": {
            "city": { "type": "string" },
            "degrees": { "type": "number", "minimum": -50, "maximum": 50 },
            "sky": { "enum": ["clear", "cloudy"] }
        },
        "required": ["city", "degrees", "sky"],
        "additionalProperties": false
    });
    let mut request =
        with_tools("call current_time, then tell the weather in New York: cloudy and 21.5 degrees");
    request.output_schema = Some(schema);
    assert_eq!(
        said(&request),
        calls("I will call `current_time`.", &[("current_time", json!({}))])
    );
    let request = answered(request, &[("current_time", "noon", false)]);
    assert_eq!(
        said(&request),
        text(r#"{"city":"New York","degrees":21.5,"sky":"cloudy"}"#)
    );
}
