//! Workers AI: Cloudflare's models, through the Worker's own `AI` binding, or over the REST endpoint that is compatible
//! with Chat Completions.
//!
//! The binding takes a model and its inputs, which are a Chat Completions body but for a few members, and answers in one of
//! two dialects, depending on the model: Chat Completions chunks, or `{"response", "tool_calls"}`. The decoder reads both.
//! Source: Cloudflare, "Workers AI", "Workers Bindings" and "Function calling".

use serde_json::Value;

use super::super::{
    HttpRequest, ModelCall, ModelDecoder, ModelRequest, ModelTarget, Provider, ProviderError, refusal,
};
use super::{OpenAiChat, request, stream};
use crate::protocol::json;
use crate::protocol::message::ContentPart;

/// How a base address begins that is a binding of the Worker, not an address: the transport calls it by this name.
pub const BINDING: &str = "binding:";

/// The codec.
#[derive(Debug, Clone, Copy)]
pub struct WorkersAi;

impl Provider for WorkersAi {
    fn call(&self, target: &ModelTarget, request: &ModelRequest) -> Result<ModelCall, ProviderError> {
        target.check()?;
        if !target.base_url.starts_with(BINDING) {
            return OpenAiChat.call(target, request);
        }
        Ok(ModelCall::Http(HttpRequest {
            method: "POST",
            url: format!("{}/{}", target.base_url, target.model),
            headers: Vec::new(),
            body: Some(inputs(target, request)),
        }))
    }

    fn takes(&self, target: &ModelTarget, part: &ContentPart) -> bool {
        request::takes(target, part)
    }

    fn decoder(&self) -> Box<dyn ModelDecoder> {
        Box::new(stream::ChatDecoder::new())
    }

    fn refusal(&self, status: u16, headers: &[(String, String)], body: &[u8]) -> ProviderError {
        refusal::of_response(status, headers, body)
    }
}

/// The inputs of a model. The model is no part of them, a schema is given bare, and a text may not be `null`.
fn inputs(target: &ModelTarget, request: &ModelRequest) -> String {
    let body = request::body(target, request);
    let mut inputs = json::object(&body).unwrap_or_default();
    inputs.shift_remove("model");
    inputs.shift_remove("stream_options");
    if let Some(top_k) = request.settings.top_k {
        inputs.insert("top_k".to_owned(), top_k.into());
    }
    if let (Some(format), Some(schema)) = (inputs.get_mut("response_format"), &request.output_schema)
        && let Some(place) = format.get_mut("json_schema")
    {
        *place = schema.clone();
    }
    let messages = inputs.get_mut("messages").and_then(Value::as_array_mut);
    for message in messages.into_iter().flatten() {
        if let Some(content) = message.get_mut("content").filter(|content| content.is_null()) {
            *content = Value::from("");
        }
    }
    json::text(&inputs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::event::TokenUsage;
    use crate::protocol::forwarded_props::{ModelSettings, ToolChoice};
    use crate::protocol::id::{RunId, ThreadId};
    use crate::protocol::read;
    use crate::provider::table::Wire;
    use crate::provider::{FinishReason, ModelEvent, ModelMessage, ModelToolCall};
    use serde_json::json;

    fn target(base_url: &str) -> ModelTarget {
        ModelTarget {
            wire: Wire::WorkersAi,
            provider: "workers-ai",
            base_url: base_url.to_owned(),
            api_key: None,
            model: "@cf/meta/llama".to_owned(),
            headers: Vec::new(),
            query: Vec::new(),
            wants_reasoning: false,
        }
    }

    fn request() -> ModelRequest {
        let parts = json!([{ "type": "text", "text": "q" }]);
        let call = ModelToolCall {
            id: "c".to_owned(),
            name: "pick".to_owned(),
            arguments: "{}".to_owned(),
        };
        ModelRequest {
            system: vec![],
            messages: vec![
                ModelMessage::User {
                    parts: read::from_value(&parts).unwrap(),
                },
                ModelMessage::Assistant {
                    text: String::new(),
                    tool_calls: vec![call],
                    vendor_state: None,
                },
            ],
            tools: vec![],
            tool_choice: ToolChoice::Auto,
            settings: ModelSettings {
                top_k: Some(4),
                max_output_tokens: Some(9),
                ..ModelSettings::default()
            },
            output_schema: Some(json!({ "type": "object" })),
            state: None,
            unknown_props: serde_json::Map::new(),
            run_id: RunId::new("run"),
            thread_id: ThreadId::new("thread"),
            kept_thread: None,
        }
    }

    fn sent(base_url: &str) -> (String, Value) {
        let call = WorkersAi.call(&target(base_url), &request()).unwrap();
        let ModelCall::Http(request) = call else {
            return (String::new(), Value::Null);
        };
        (request.url, serde_json::from_str(&request.body.unwrap()).unwrap())
    }

    #[test]
    fn the_binding_takes_a_model_and_its_inputs() {
        let call =
            json!({ "id": "c", "type": "function", "function": { "name": "pick", "arguments": "{}" } });
        let expected = json!({
            "messages": [
                { "role": "user", "content": "q" },
                { "role": "assistant", "content": "", "tool_calls": [call] },
            ],
            "stream": true,
            "max_tokens": 9,
            "top_k": 4,
            "response_format": { "type": "json_schema", "json_schema": { "type": "object" } },
        });
        assert_eq!(
            sent("binding:AI"),
            ("binding:AI/@cf/meta/llama".to_owned(), expected)
        );
    }

    #[test]
    fn an_address_is_a_compatible_server() {
        let (url, body) = sent("https://api.cloudflare.com/client/v4/accounts/a/ai/v1");
        assert_eq!(
            url,
            "https://api.cloudflare.com/client/v4/accounts/a/ai/v1/chat/completions"
        );
        assert_eq!(body["model"], "@cf/meta/llama");
        assert_eq!(body["response_format"]["json_schema"]["name"], "answer");
    }

    fn read(body: &str) -> (Vec<ModelEvent>, Result<(), ProviderError>) {
        let mut decoder = WorkersAi.decoder();
        let mut events = Vec::new();
        if let Err(error) = decoder.feed(body.as_bytes(), &mut events) {
            return (events, Err(error));
        }
        let end = decoder.end(&mut events);
        (events, end)
    }

    fn stream(chunks: &[Value]) -> String {
        let frames = chunks.iter().map(|chunk| format!("data: {chunk}\n\n"));
        frames.collect::<String>() + "data: [DONE]\n\n"
    }

    fn call(slot: usize, delta: &str) -> [ModelEvent; 3] {
        let name = "pick".to_owned();
        let delta = delta.to_owned();
        [
            ModelEvent::ToolCallStart {
                slot,
                vendor_id: None,
                name,
            },
            ModelEvent::ToolCallArguments { slot, delta },
            ModelEvent::ToolCallEnd { slot },
        ]
    }

    #[test]
    fn text_in_the_dialect_of_its_own_is_text_whatever_json_it_is() {
        let said = [
            json!("It is "),
            json!(2),
            json!(1.5),
            json!(null),
            json!(""),
            json!(true),
        ];
        let mut chunks: Vec<_> = said
            .iter()
            .map(|said| json!({ "response": said, "p": "ab" }))
            .collect();
        chunks.push(json!({ "response": "", "usage": { "prompt_tokens": 3, "completion_tokens": 2 } }));
        let text = |text: &str| ModelEvent::Text(text.to_owned());
        let usage = TokenUsage {
            input_tokens: Some(3),
            output_tokens: Some(2),
            total_tokens: Some(5),
            ..TokenUsage::default()
        };
        let end = [
            ModelEvent::Usage(usage.into()),
            ModelEvent::Finish(FinishReason::Stop),
        ];
        let expected = [
            vec![text("It is "), text("2"), text("1.5"), text("true")],
            end.to_vec(),
        ]
        .concat();
        assert_eq!(read(&stream(&chunks)), (expected, Ok(())));
    }

    #[test]
    fn calls_in_the_dialect_of_its_own_come_whole_or_in_pieces() {
        let whole = json!({ "response": null, "tool_calls": [
            { "name": "pick", "arguments": { "n": 1 } },
            { "name": "pick", "arguments": "{\"n\":2}" },
        ] });
        let mut expected = [call(0, "{\"n\":1}"), call(1, "{\"n\":2}")].concat();
        expected.push(ModelEvent::Finish(FinishReason::Stop));
        assert_eq!(read(&stream(&[whole])), (expected, Ok(())));

        let piece = |call: Value| json!({ "tool_calls": [call] });
        let pieces = [
            piece(json!({ "id": "a", "index": 0, "type": "function", "function": { "name": "pick" } })),
            piece(json!({ "index": 0, "function": { "arguments": "{\"n\":" } })),
            piece(json!({ "index": 0, "function": { "arguments": "1}" } })),
            piece(json!({ "id": null, "type": null, "function": { "name": null, "arguments": "" } })),
            json!({ "finish_reason": "tool_calls" }),
        ];
        let (events, end) = read(&stream(&pieces));
        assert_eq!(end, Ok(()));
        assert_eq!(events.last(), Some(&ModelEvent::Finish(FinishReason::ToolCalls)));
        assert_eq!(events.len(), 5);
    }

    #[test]
    fn a_model_that_does_not_stream_answers_in_one_piece() {
        let said = vec![
            ModelEvent::Text("Hello".to_owned()),
            ModelEvent::Finish(FinishReason::Stop),
        ];
        let answer = json!({ "response": "Hello" });
        assert_eq!(read(&answer.to_string()), (said.clone(), Ok(())));
        let enveloped = json!({ "result": answer, "success": true, "errors": [] });
        assert_eq!(read(&enveloped.to_string()), (said, Ok(())));
        let object = json!({ "response": { "n": 1.0 } });
        assert_eq!(
            read(&object.to_string()).0[0],
            ModelEvent::Text("{\"n\":1.0}".to_owned())
        );
    }

    #[test]
    fn a_stream_without_its_mark_was_cut() {
        let body = "data: {\"response\":\"Hel\"}\n\n";
        assert_eq!(
            read(body),
            (
                vec![ModelEvent::Text("Hel".to_owned())],
                Err(ProviderError::Truncated)
            )
        );
    }

    #[test]
    fn errors_in_the_form_of_its_own_are_read() {
        for body in [
            json!({ "success": false, "errors": [{ "code": 7009, "message": "Upstream busy" }] }),
            json!({ "internalCode": 3040, "name": "CapacityError", "description": "Upstream busy" }),
        ] {
            let error = WorkersAi.refusal(500, &[], body.to_string().as_bytes());
            let expected = ProviderError::Refused {
                status: 500,
                retryable: true,
                retry_after_ms: None,
                detail: "Upstream busy".to_owned(),
            };
            assert_eq!(error, expected);
        }
    }
}
