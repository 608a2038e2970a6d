//! How much a body of `POST /run` may hold, beyond what its grammar says. Every refusal names its limit.

use serde_json::Value;

use super::error::ApiError;
use crate::list::List;
use crate::protocol::decode::Issue;
use crate::protocol::forwarded_props::ClientResource;
use crate::protocol::id::ID_MAX_BYTES;
use crate::protocol::input::RunAgentInput;
use crate::protocol::json::{self, JSON_MAX_DEPTH};
use crate::protocol::message::{Message, MessageBody};

/// Most of everything in one input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InputLimits {
    /// Messages.
    pub messages_max_count: usize,
    /// Front-end tools.
    pub tools_max_count: usize,
    /// Nesting of the body.
    pub json_max_depth: usize,
    /// Bytes of one JSON Schema.
    pub schema_max_bytes: usize,
    /// Nesting of one JSON Schema.
    pub schema_max_depth: usize,
    /// Bytes of one id.
    pub id_max_bytes: usize,
}

impl InputLimits {
    /// Checks the text of an input before it is read.
    ///
    /// # Errors
    /// 413
    pub fn check_text(&self, text: &str) -> Result<(), ApiError> {
        let most = self.json_max_depth;
        // The reader looks at its own limit anyway.
        if most < JSON_MAX_DEPTH && json::is_deeper(text, most) {
            let sentence = format!("The body is nested more than {most} levels deep.");
            return Err(ApiError::part_too_large(sentence));
        }
        Ok(())
    }

    /// Checks an input.
    ///
    /// # Errors
    /// 413; 400 for an id that is too long.
    pub fn check(&self, input: &RunAgentInput) -> Result<(), ApiError> {
        if input.messages.len() > self.messages_max_count {
            return Err(ApiError::too_many("messages", self.messages_max_count));
        }
        if input.tools.len() > self.tools_max_count {
            return Err(ApiError::too_many("tools", self.tools_max_count));
        }
        for parameters in input.tools.iter().filter_map(|tool| tool.parameters.as_ref()) {
            self.check_schema("The parameters of a tool", parameters)?;
        }
        if let Some(schema) = &input.forwarded_props.output_schema {
            self.check_schema("The schema of the output", schema)?;
        }
        self.check_ids(input)
    }

    fn check_schema(&self, what: &str, schema: &Value) -> Result<(), ApiError> {
        let extent = Extent::of(schema);
        let sentence = if extent.bytes > self.schema_max_bytes {
            format!("{what} are larger than {} bytes.", self.schema_max_bytes)
        } else if extent.depth > self.schema_max_depth {
            format!(
                "{what} are nested more than {} levels deep.",
                self.schema_max_depth
            )
        } else {
            return Ok(());
        };
        Err(ApiError::part_too_large(sentence))
    }

    fn check_ids(&self, input: &RunAgentInput) -> Result<(), ApiError> {
        if self.id_max_bytes >= ID_MAX_BYTES {
            return Ok(());
        }
        let resource = match &input.forwarded_props.resource_id {
            ClientResource::Given(id) => id.as_str(),
            ClientResource::Absent | ClientResource::Empty => "",
        };
        let mut ids = vec![
            ("/threadId".to_owned(), input.thread_id.as_str()),
            ("/runId".to_owned(), input.run_id.as_str()),
            ("/forwardedProps/resourceId".to_owned(), resource),
        ];
        for (index, message) in input.messages.iter().enumerate() {
            message_ids(&format!("/messages/{index}"), message, &mut ids);
        }
        let too_long = ids.into_iter().filter(|(_, id)| id.len() > self.id_max_bytes);
        let message = format!("must be at most {} bytes long", self.id_max_bytes);
        let issues: Vec<Issue> = too_long
            .map(|(pointer, _)| Issue {
                pointer,
                message: message.clone(),
            })
            .list();
        if issues.is_empty() {
            Ok(())
        } else {
            Err(ApiError::invalid_body(issues))
        }
    }
}

fn message_ids<'a>(at: &str, message: &'a Message, ids: &mut Vec<(String, &'a str)>) {
    ids.push((format!("{at}/id"), message.id.as_str()));
    match &message.body {
        MessageBody::Assistant { tool_calls, .. } => {
            for (index, call) in tool_calls.iter().enumerate() {
                ids.push((format!("{at}/toolCalls/{index}/id"), call.id.as_str()));
            }
        }
        MessageBody::Tool { tool_call_id, .. } => {
            ids.push((format!("{at}/toolCallId"), tool_call_id.as_str()));
        }
        MessageBody::User { .. }
        | MessageBody::System { .. }
        | MessageBody::Developer { .. }
        | MessageBody::Activity { .. }
        | MessageBody::Reasoning { .. } => {}
    }
}

/// How large a value is: bytes of its compact text, escapes not counted, and levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Extent {
    bytes: usize,
    depth: usize,
}

impl Extent {
    /// Recursion ends: a value from outside is at most [`JSON_MAX_DEPTH`] deep.
    fn of(value: &Value) -> Self {
        let leaf = |bytes| Self { bytes, depth: 0 };
        match value {
            Value::Null | Value::Bool(_) => leaf(4),
            Value::Number(number) => leaf(number.as_str().len()),
            Value::String(text) => leaf(text.len() + 2),
            Value::Array(items) => Self::around(items.iter().map(Self::of)),
            Value::Object(members) => Self::around(members.iter().map(|(name, value)| {
                let Self { bytes, depth } = Self::of(value);
                let bytes = bytes + name.len() + 3;
                Self { bytes, depth }
            })),
        }
    }

    fn around(parts: impl Iterator<Item = Self>) -> Self {
        let empty = Self { bytes: 2, depth: 1 };
        parts.fold(empty, |all, part| Self {
            bytes: all.bytes + part.bytes + 1,
            depth: all.depth.max(part.depth + 1),
        })
    }
}

/// Checks the base64 values of an input that is to be stored without a bucket.
///
/// # Errors
/// 413
pub fn check_attachments(input: &RunAgentInput, attachment_max_bytes: usize) -> Result<(), ApiError> {
    let mut attachments = input.messages.iter().flat_map(Message::attachments);
    if attachments.all(|attachment| attachment.len() <= attachment_max_bytes) {
        return Ok(());
    }
    let sentence = format!("An attachment is larger than {attachment_max_bytes} bytes.");
    Err(ApiError::part_too_large(sentence))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LIMITS: InputLimits = InputLimits {
        messages_max_count: 2,
        tools_max_count: 2,
        json_max_depth: 10,
        schema_max_bytes: 60,
        schema_max_depth: 3,
        id_max_bytes: 20,
    };

    fn judged(more: Value) -> Result<(), ApiError> {
        let mut body = json!({ "threadId": "t", "runId": "r", "messages": [] });
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        let text = body.to_string();
        LIMITS.check_text(&text)?;
        LIMITS.check(&RunAgentInput::decode(&text).unwrap().input)
    }

    fn tool(parameters: Value) -> Value {
        json!({ "tools": [{ "name": "f", "description": "d", "parameters": parameters }] })
    }

    #[test]
    fn attachments_are_measured_by_their_base64_text() {
        let measured = |source: Value, limit: usize| {
            let content = json!([{ "type": "image", "source": source }]);
            let message = json!({ "id": "u", "role": "user", "content": content });
            let body = json!({ "threadId": "t", "runId": "r", "messages": [message] }).to_string();
            check_attachments(&RunAgentInput::decode(&body).unwrap().input, limit)
        };
        let over = ApiError::part_too_large("An attachment is larger than 7 bytes.".to_owned());
        for large in [
            json!({ "type": "data", "value": "AAAAAAAA", "mimeType": "image/png" }),
            json!({ "type": "url", "value": "DATA:,AA" }),
        ] {
            assert_eq!(measured(large.clone(), 8), Ok(()));
            assert_eq!(measured(large, 7), Err(over.clone()));
        }
        for elsewhere in [
            json!({ "type": "url", "value": "https://x.test/a.png" }),
            json!({ "type": "file", "value": "file-12345678" }),
        ] {
            assert_eq!(measured(elsewhere, 0), Ok(()));
        }
    }

    #[test]
    fn what_is_just_within_the_limits_is_taken() {
        let user = |id: &str| json!({ "id": id, "role": "user", "content": "x" });
        let long = "x".repeat(20);
        assert_eq!(judged(json!({ "messages": [user("a"), user(&long)] })), Ok(()));
        assert_eq!(
            judged(tool(json!({ "properties": { "a": { "type": "object" } } }))),
            Ok(())
        );
        assert_eq!(judged(json!({ "state": [[[[[[[[[]]]]]]]]] })), Ok(()));
    }

    #[test]
    fn what_is_over_a_limit_is_413_with_the_limit_named() {
        let user = |id: &str| json!({ "id": id, "role": "user", "content": "x" });
        let of_tool = "The parameters of a tool";
        for (more, sentence) in [
            (
                json!({ "messages": [user("a"), user("b"), user("c")] }),
                "There are more than 2 messages.".to_owned(),
            ),
            (
                json!({ "state": [[[[[[[[[[]]]]]]]]]] }),
                "The body is nested more than 10 levels deep.".to_owned(),
            ),
            (
                tool(json!({ "description": "x".repeat(60) })),
                format!("{of_tool} are larger than 60 bytes."),
            ),
            (
                tool(json!({ "a": { "b": { "c": { } } } })),
                format!("{of_tool} are nested more than 3 levels deep."),
            ),
        ] {
            let error = judged(more.clone()).expect_err(&more.to_string());
            assert_eq!((error.status(), error.message.clone()), (413, sentence));
        }
        let schema =
            json!({ "forwardedProps": { "structuredOutput": { "schema": { "title": "x".repeat(60) } } } });
        assert_eq!(judged(schema).unwrap_err().status(), 413);
    }

    #[test]
    fn ids_that_are_too_long_are_named_by_their_place() {
        let long = "x".repeat(21);
        let body = json!({
            "threadId": long,
            "forwardedProps": { "resourceId": long },
            "messages": [
                { "id": "a", "role": "assistant", "toolCalls": [
                    { "id": long, "type": "function", "function": { "name": "f", "arguments": "{}" } },
                ] },
                { "id": long, "role": "tool", "toolCallId": long, "content": "x" },
            ],
        });
        let error = judged(body).unwrap_err();
        let pointers: Vec<&str> = error.issues.iter().map(|issue| issue.pointer.as_str()).collect();
        let places = [
            "/threadId",
            "/forwardedProps/resourceId",
            "/messages/0/toolCalls/0/id",
            "/messages/1/id",
            "/messages/1/toolCallId",
        ];
        assert_eq!((error.status(), pointers), (400, places.to_vec()));
    }
}
