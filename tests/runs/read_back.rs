//! What a run streamed is what its thread reads back, and sent back it changes nothing (contract 2.3, D19).

use futures::executor::block_on;
use io_bridge::protocol::event::Event;
use io_bridge::protocol::id::ThreadId;
use io_bridge::protocol::thread::{MessageForm, MessageListRequest};
use io_bridge::protocol::tool::ToolResult;
use io_bridge::store::{Lookup, Store};
use serde_json::{Value, json};

use crate::completions::{answer, call, delta, finish, text};
use crate::scene::{Answer, Played, Scene, SceneDatabase};

fn body(run: &str, messages: &Value, front_end_tools: &str) -> Value {
    json!({
        "threadId": "t", "runId": run, "protocolVersion": "1.0", "messages": messages,
        "tools": [{"name": "pick", "description": "picks"}, {"name": "ping", "description": "pings"}],
        "forwardedProps": {"resourceId": "ada", "frontendTools": front_end_tools}
    })
}

fn read_back(database: &SceneDatabase) -> Vec<Value> {
    let request = MessageListRequest {
        thread_id: ThreadId::new("t"),
        limit: 500,
        offset: 0,
        form: MessageForm::AgUi,
        with_superseded: false,
    };
    match block_on(Store::new(database).messages(&request, None)).unwrap() {
        Lookup::Found(page) => page.items,
        other => panic!("{other:?}"),
    }
}

/// The messages a client makes of a stream.
pub fn streamed(played: &Played) -> Vec<Value> {
    let mut messages: Vec<Value> = Vec::new();
    let find = |messages: &mut Vec<Value>, id: &str| {
        messages
            .iter()
            .position(|message| message["id"] == id)
            .unwrap_or_else(|| {
                messages.push(json!({"id": id, "role": "assistant"}));
                messages.len() - 1
            })
    };
    for event in &played.events {
        match event {
            Event::TextMessageContent { message_id, delta } => {
                let at = find(&mut messages, message_id.as_str());
                let so_far = messages[at]["content"].as_str().unwrap_or_default().to_owned();
                messages[at]["content"] = json!(so_far + delta);
            }
            Event::ReasoningMessageContent { message_id, delta } => {
                let at = find(&mut messages, message_id.as_str());
                let so_far = messages[at]["content"].as_str().unwrap_or_default().to_owned();
                messages[at]["role"] = json!("reasoning");
                messages[at]["content"] = json!(so_far + delta);
            }
            Event::ToolCallStart {
                tool_call_id,
                tool_call_name,
                parent_message_id,
            } => {
                let at = find(&mut messages, parent_message_id.as_str());
                let started = json!({"id": tool_call_id, "type": "function", "function": {"name": tool_call_name, "arguments": ""}});
                match messages[at]["toolCalls"].as_array_mut() {
                    Some(calls) => calls.push(started),
                    None => messages[at]["toolCalls"] = json!([started]),
                }
            }
            Event::ToolCallArgs { tool_call_id, delta } => {
                let calls = messages
                    .iter_mut()
                    .filter_map(|message| message.get_mut("toolCalls")?.as_array_mut());
                let open = calls
                    .flatten()
                    .find(|call| call["id"] == json!(tool_call_id))
                    .unwrap();
                let so_far = open["function"]["arguments"].as_str().unwrap().to_owned();
                open["function"]["arguments"] = json!(so_far + delta);
            }
            Event::ToolCallResult {
                message_id,
                tool_call_id,
                content,
            } => messages.push(
                json!({"id": message_id, "role": "tool", "toolCallId": tool_call_id, "content": content}),
            ),
            _ => {}
        }
    }
    messages
}

fn two_calls() -> Answer {
    Answer::ok(
        text("Look.") + &call(0, "pick", "{\"n\":1.0}") + &call(1, "ping", "{}") + &finish("tool_calls"),
    )
}

/// Sends back what was read, with nothing new, and reads again.
fn fed_back(database: &SceneDatabase, run: &str) {
    let before = read_back(database);
    let played = Scene::new(json!({}), vec![Answer::ok(answer("And on."))])
        .on(database)
        .play(&body(run, &json!(before), "same-run"));
    assert_eq!(read_back(database), [before, streamed(&played)].concat());
}

#[test]
fn a_run_with_front_end_results_reads_back_as_streamed() {
    let database = SceneDatabase::new();
    let asked = json!([{"id": "u1", "role": "user", "content": "Hello"}]);
    let played = Scene::new(json!({}), vec![two_calls(), Answer::ok(answer("Done."))])
        .on(&database)
        .on_event(|event, control| {
            if let Event::ToolCallEnd { tool_call_id } = event {
                let result = ToolResult {
                    content: "1.0".to_owned(),
                    is_error: false,
                };
                control.mailbox.deliver(tool_call_id, result);
            }
        })
        .play(&body("r1", &asked, "same-run"));
    let expected = [asked.as_array().unwrap().clone(), streamed(&played)].concat();
    assert_eq!(expected.len(), 5);
    assert_eq!(read_back(&database), expected);
    fed_back(&database, "r2");
    fed_back(&database, "r3");
}

#[test]
fn emitted_reasoning_reads_back_as_streamed_and_reaches_no_model() {
    let database = SceneDatabase::new();
    let asked = json!([{"id": "u1", "role": "user", "content": "Hello"}]);
    let thought = |words: &str| delta(json!({ "reasoning_content": words }));
    let first =
        thought("Hm") + &thought("m.") + &text("Look.") + &thought("So.") + &call(0, "current_time", "{}");
    let agent = || json!({"reasoning": "emit", "tools": ["current_time"]});
    let played = Scene::new(
        agent(),
        vec![
            Answer::ok(first + &finish("tool_calls")),
            Answer::ok(thought("Now.") + &answer("Noon.")),
        ],
    )
    .on(&database)
    .play(&body("r1", &asked, "same-run"));
    let expected = [asked.as_array().unwrap().clone(), streamed(&played)].concat();
    let roles: Vec<_> = expected
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(
        roles,
        [
            "user",
            "reasoning",
            "assistant",
            "reasoning",
            "tool",
            "reasoning",
            "assistant"
        ]
    );
    let stored = read_back(&database);
    // A result stands directly behind the message that made its call.
    let by_id = |messages: &[Value]| {
        let mut messages = messages.to_vec();
        messages.sort_by_key(|message| message["id"].as_str().unwrap().to_owned());
        messages
    };
    assert_eq!(by_id(&stored), by_id(&expected));
    let sent = played.ports.http.requests_to("https://upstream.test/");
    assert!(
        sent.iter()
            .all(|request| !request.body.as_deref().unwrap().contains("Hmm."))
    );
    fed_back(&database, "r2");
    assert_eq!(read_back(&database).len(), stored.len() + 1);
}

#[test]
fn calls_left_for_the_next_run_read_back_as_streamed_and_answered() {
    let database = SceneDatabase::new();
    let asked = json!([{"id": "u1", "role": "user", "content": "Hello"}]);
    let played = Scene::new(json!({}), vec![two_calls()])
        .on(&database)
        .play(&body("r1", &asked, "next-run"));
    let mut list = [asked.as_array().unwrap().clone(), streamed(&played)].concat();
    assert_eq!(read_back(&database), list);
    for made in list[1]["toolCalls"].as_array().unwrap().clone() {
        let id = format!("of {}", made["function"]["name"].as_str().unwrap());
        list.push(json!({"id": id, "role": "tool", "toolCallId": made["id"], "content": "1.0"}));
    }
    let played = Scene::new(json!({}), vec![Answer::ok(answer("Done."))])
        .on(&database)
        .play(&body("r2", &json!(list), "next-run"));
    assert_eq!(read_back(&database), [list, streamed(&played)].concat());
    fed_back(&database, "r3");
}
