//! The fixed inputs. A change here changes the counts: write the baseline anew with it.

use io_bridge::config::AgentConfig;
use io_bridge::protocol::input::RunAgentInput;
use serde_json::{Value, json};

use crate::ports::{Encoding, measured, play};

/// A piece of work: its name, and what runs it and says what came of it.
pub type Work = (&'static str, fn() -> String);

pub const ALL: &[Work] = &[
    ("flood-openai-sse", || {
        flood("openai", &openai_flood(), Encoding::Sse)
    }),
    ("flood-openai-protobuf", || {
        flood("openai", &openai_flood(), Encoding::Protobuf)
    }),
    ("flood-anthropic-sse", || {
        flood("anthropic", &anthropic_flood(), Encoding::Sse)
    }),
    ("flood-openai-responses-sse", || {
        flood("openai-responses", &responses_flood(), Encoding::Sse)
    }),
    ("flood-google-sse", || {
        flood("google", &google_flood(), Encoding::Sse)
    }),
    ("flood-mastra-sse", || {
        flood("mastra", &mastra_flood(), Encoding::Sse)
    }),
    ("tool-loop-of-15-steps", tool_loop),
    ("input-of-2000-messages", long_input),
];

const DELTA_COUNT: usize = 5_000;

fn agent(provider: &str) -> AgentConfig {
    let members = json!({"id": "io-agent", "provider": provider, "model": "test", "tools": ["current_time"]});
    serde_json::from_value(members).expect("an agent")
}

fn body(messages: Value) -> Value {
    json!({"threadId": "", "runId": "r1", "messages": messages, "protocolVersion": "1.0"})
}

fn question() -> Value {
    json!([{"id": "m1", "role": "user", "content": "Count."}])
}

fn flood(provider: &str, answer: &str, encoding: Encoding) -> String {
    let sent = play(
        agent(provider),
        &body(question()),
        vec![answer.as_bytes().to_vec()],
        encoding,
    );
    // Around the deltas: RUN_STARTED, STEP_STARTED, TEXT_MESSAGE_START and their three ends.
    assert_eq!(
        sent.events.get(),
        DELTA_COUNT + 6,
        "the flood of {provider} broke off"
    );
    format!("{} events, {} bytes", sent.events.get(), sent.bytes.get())
}

fn deltas(frame: impl Fn(String) -> Value) -> String {
    (0..DELTA_COUNT)
        .map(|index| format!("data: {}\n\n", frame(format!(" word{index}"))))
        .collect()
}

fn openai_chunk(delta: Value, finish: Value) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_795_910_400, "model": "test",
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}],
    })
}

fn openai_end(reason: &str) -> String {
    format!(
        "data: {}\n\ndata: [DONE]\n\n",
        openai_chunk(json!({}), json!(reason))
    )
}

fn openai_flood() -> String {
    deltas(|text| openai_chunk(json!({"content": text}), Value::Null)) + &openai_end("stop")
}

fn anthropic_flood() -> String {
    let start = json!({"type": "message_start", "message": {"id": "a", "type": "message", "role": "assistant", "content": [], "usage": {"input_tokens": 1, "output_tokens": 1}}});
    let open =
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}});
    let end = [
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ];
    format!("data: {start}\n\ndata: {open}\n\n")
        + &deltas(
            |text| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
        )
        + &end.map(|event| format!("data: {event}\n\n")).concat()
}

fn responses_flood() -> String {
    let open = json!({"type": "response.created", "response": {"id": "r", "status": "in_progress"}});
    let end =
        json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "output": []}});
    format!("data: {open}\n\n")
        + &deltas(
            |text| json!({"type": "response.output_text.delta", "item_id": "i", "output_index": 0, "content_index": 0, "delta": text}),
        )
        + &format!("data: {end}\n\n")
}

fn google_flood() -> String {
    let chunk = |text: &str, more: Value| {
        let mut candidate = json!({"content": {"role": "model", "parts": [{"text": text}]}, "index": 0});
        for (key, value) in more.as_object().into_iter().flatten() {
            candidate[key] = value.clone();
        }
        json!({"candidates": [candidate]})
    };
    deltas(|text| chunk(&text, Value::Null))
        + &format!("data: {}\n\n", chunk("", json!({"finishReason": "STOP"})))
}

fn mastra_flood() -> String {
    let chunk =
        |kind: &str, payload: Value| json!({"type": kind, "runId": "r", "from": "AGENT", "payload": payload});
    let open = [
        chunk("start", json!({})),
        chunk("step-start", json!({"messageId": "m"})),
        chunk("text-start", json!({"id": "t"})),
    ];
    let end = [
        chunk("text-end", json!({"id": "t"})),
        chunk("step-finish", json!({"stepResult": {"reason": "stop"}})),
        chunk("finish", json!({"stepResult": {"reason": "stop"}})),
    ];
    open.map(|event| format!("data: {event}\n\n")).concat()
        + &deltas(|text| chunk("text-delta", json!({"id": "t", "text": text})))
        + &end.map(|event| format!("data: {event}\n\n")).concat()
        + "data: [DONE]\n\n"
}

/// Every step calls the built-in tool four times, until the last one answers.
fn tool_loop() -> String {
    let step = |step: usize| {
        let calls: String = (0..4)
            .map(|index| {
                let function = json!({"name": "current_time", "arguments": "{\"utcOffset\":\"+02:00\"}"});
                let call = json!({"index": index, "id": format!("s{step}c{index}"), "type": "function", "function": function});
                format!("data: {}\n\n", openai_chunk(json!({"tool_calls": [call]}), Value::Null))
            })
            .collect();
        (calls + &openai_end("tool_calls")).into_bytes()
    };
    let mut answers: Vec<_> = (0..14).map(step).collect();
    let last = format!(
        "data: {}\n\n",
        openai_chunk(json!({"content": "Late."}), Value::Null)
    ) + &openai_end("stop");
    answers.push(last.into_bytes());
    let sent = play(agent("openai"), &body(question()), answers, Encoding::Sse);
    // A run of 15 steps: 14 with four calls of four events, one with a text of three; two ends.
    assert_eq!(
        sent.events.get(),
        2 + 15 * 2 + 14 * 16 + 3,
        "the tool loop broke off"
    );
    format!("{} events, {} bytes", sent.events.get(), sent.bytes.get())
}

fn long_input() -> String {
    let messages: Vec<_> = (0..1_000)
        .flat_map(|turn| {
            let text = format!("Turn {turn}: {}", "a word \u{00e9} \"quoted\" \\ ".repeat(8));
            [
                json!({"id": format!("u{turn}"), "role": "user", "content": text}),
                json!({"id": format!("a{turn}"), "role": "assistant", "content": text}),
            ]
        })
        .collect();
    let text = body(Value::Array(messages)).to_string();
    let decoded = measured(|| RunAgentInput::decode(&text)).expect("a legal body");
    format!("{} messages", decoded.input.messages.len())
}
