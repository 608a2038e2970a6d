//! Messages of a thread by role, as AG-UI writes them.

use serde::Serialize;
use serde_json::{Map, Value};

use super::id::{MessageId, ToolCallId};
use super::json_cursor::{CursorFault, JsonCursor};
use super::message_decode;
use super::parts;
use super::payload::Member;
use super::read::record;
use super::tool::ToolCall;
use crate::list::List;

/// One message of a conversation.
///
/// Wire: `{"id","role",...}` with the members of its [`MessageBody`]. Source: AG-UI 2.3.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Message {
    /// Id on the wire and in storage.
    pub id: MessageId,
    /// What the role says.
    #[serde(flatten)]
    pub body: MessageBody,
    /// Members every role may have, kept and given back as they came.
    #[serde(flatten)]
    pub extras: MessageExtras,
}

/// The part of a message that depends on its `role`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub enum MessageBody {
    /// What the person said.
    User {
        /// Text, or parts.
        content: Content,
    },
    /// What the model answered.
    Assistant {
        /// Text of the segment; absent when the message has calls only.
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<String>,
        /// Calls of the message, in order.
        #[serde(rename = "toolCalls", skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<ToolCall>,
    },
    /// System text of one run; never stored.
    System {
        /// The text.
        content: String,
    },
    /// As `System`.
    Developer {
        /// The text.
        content: String,
    },
    /// The answer to a call.
    Tool {
        /// The call answered: the message's second identity (2.3 rule 4).
        #[serde(rename = "toolCallId")]
        tool_call_id: ToolCallId,
        /// Text, or parts.
        content: Content,
        /// Set when the call failed at the client.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A client's own activity record; never reaches a model.
    Activity {
        /// Kind of activity.
        #[serde(rename = "activityType")]
        activity_type: String,
        /// Its data.
        content: Map<String, Value>,
    },
    /// Reasoning, streamed by us or kept by a client; never reaches a model.
    Reasoning {
        /// The text.
        content: String,
    },
}

/// Members that any role may carry beside its body.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct MessageExtras {
    /// Name of the author.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Opaque value of the producer that issued it.
    #[serde(rename = "encryptedValue", skip_serializing_if = "Option::is_none")]
    pub encrypted_value: Option<String>,
    /// The application's own data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
    /// Subagent that wrote the message.
    #[serde(rename = "subagentRunId", skip_serializing_if = "Option::is_none")]
    pub subagent_run_id: Option<String>,
}

/// Content of a user or tool message.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Content {
    /// A plain string.
    Text(String),
    /// Ordered parts.
    Parts(Vec<ContentPart>),
}

/// One part of a message's content. Source: AG-UI 2.4.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum ContentPart {
    /// Text.
    Text(TextPart),
    /// A picture.
    Image(MediaPart),
    /// Sound.
    Audio(MediaPart),
    /// A film.
    Video(MediaPart),
    /// A document, such as a PDF.
    Document(MediaPart),
}

/// `{"type":"text","text","id"?,"metadata"?}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TextPart {
    /// The text.
    pub text: String,
    /// Id of the part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The application's own data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
}

/// `{"type":"image"|...,"source","id"?,"metadata"?}`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MediaPart {
    /// Where the bytes are.
    pub source: MediaSource,
    /// Id of the part.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The application's own data.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
}

/// Where the bytes of a [`MediaPart`] are.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum MediaSource {
    /// In the message, base64.
    Data {
        /// Base64 text.
        value: String,
        /// Media type.
        #[serde(rename = "mimeType")]
        mime_type: String,
    },
    /// At an address; never fetched by us.
    Url {
        /// The address.
        value: String,
        /// Media type.
        #[serde(rename = "mimeType", skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
    /// A provider's own file handle; never read by us (AG-UI IN-5).
    File {
        /// The handle.
        value: String,
        /// Whose handle it is.
        #[serde(skip_serializing_if = "Option::is_none")]
        provider: Option<String>,
        /// Media type.
        #[serde(rename = "mimeType", skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
}

record!(MediaPart: "source" => source, "id" => id = None, "metadata" => metadata = None);

macro_rules! read_as_posted {
    ($($name:ident by $reader:ident, blank $blank:expr;)*) => {$(
        /// By the reader of posted messages, so that there is one; what it refuses or drops is an error here.
        impl<'a> Member<'a> for $name {
            fn blank() -> Self {
                $blank
            }

            fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
                *self = message_decode::$reader(json.node()?).map_err(|words| json.complain(words))?;
                Ok(())
            }
        }
    )*};
}

read_as_posted! {
    Message by read_message, blank Self::reasoning(MessageId::blank(), String::new());
    ContentPart by read_part, blank Self::Text(TextPart { text: String::new(), id: None, metadata: None });
    MediaSource by read_source, blank Self::Url { value: String::new(), mime_type: None };
}

impl Content {
    /// The text of all text parts, joined by blank lines.
    pub fn to_text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Parts(parts) => {
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
        }
    }
}

impl MediaSource {
    /// The bytes as text, where they are in the message: base64, or a `data:` URL.
    fn attachment(&self) -> Option<&str> {
        match self {
            Self::Data { value, .. } => Some(value),
            Self::Url { value, .. } if is_data_url(value) => Some(value),
            Self::Url { .. } | Self::File { .. } => None,
        }
    }

    fn attachment_mut(&mut self) -> Option<&mut String> {
        match self {
            Self::Data { value, .. } => Some(value),
            Self::Url { value, .. } if is_data_url(value) => Some(value),
            Self::Url { .. } | Self::File { .. } => None,
        }
    }
}

fn is_data_url(value: &str) -> bool {
    value
        .get(..5)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"))
}

impl ContentPart {
    /// The kind of a medium; `None` for text.
    pub fn medium(&self) -> Option<&'static str> {
        match self {
            Self::Text(_) => None,
            Self::Image(_) => Some("image"),
            Self::Audio(_) => Some("audio"),
            Self::Video(_) => Some("video"),
            Self::Document(_) => Some("document"),
        }
    }

    fn source(&self) -> Option<&MediaSource> {
        match self {
            Self::Text(_) => None,
            Self::Image(part) | Self::Audio(part) | Self::Video(part) | Self::Document(part) => {
                Some(&part.source)
            }
        }
    }

    fn source_mut(&mut self) -> Option<&mut MediaSource> {
        match self {
            Self::Text(_) => None,
            Self::Image(part) | Self::Audio(part) | Self::Video(part) | Self::Document(part) => {
                Some(&mut part.source)
            }
        }
    }
}

impl Message {
    /// The bytes its parts hold, as text: base64, or a `data:` URL.
    pub fn attachments(&self) -> impl Iterator<Item = &str> {
        let parts = match &self.body {
            MessageBody::User {
                content: Content::Parts(parts),
            }
            | MessageBody::Tool {
                content: Content::Parts(parts),
                ..
            } => parts.as_slice(),
            MessageBody::User { .. }
            | MessageBody::Tool { .. }
            | MessageBody::Assistant { .. }
            | MessageBody::System { .. }
            | MessageBody::Developer { .. }
            | MessageBody::Activity { .. }
            | MessageBody::Reasoning { .. } => &[],
        };
        parts.iter().filter_map(|part| part.source()?.attachment())
    }

    /// Shows each of [`Message::attachments`] to `replace`, in their order.
    pub fn replace_attachments(&mut self, mut replace: impl FnMut(&mut String)) {
        let parts = match &mut self.body {
            MessageBody::User {
                content: Content::Parts(parts),
            }
            | MessageBody::Tool {
                content: Content::Parts(parts),
                ..
            } => parts.as_mut_slice(),
            MessageBody::User { .. }
            | MessageBody::Tool { .. }
            | MessageBody::Assistant { .. }
            | MessageBody::System { .. }
            | MessageBody::Developer { .. }
            | MessageBody::Activity { .. }
            | MessageBody::Reasoning { .. } => &mut [],
        };
        for part in parts {
            if let Some(value) = part.source_mut().and_then(MediaSource::attachment_mut) {
                replace(value);
            }
        }
    }

    /// An assistant message of ours.
    pub fn assistant(id: MessageId, content: Option<String>, tool_calls: Vec<ToolCall>) -> Self {
        Self {
            id,
            body: MessageBody::Assistant { content, tool_calls },
            extras: MessageExtras::default(),
        }
    }

    /// A reasoning message of ours.
    pub fn reasoning(id: MessageId, content: String) -> Self {
        Self {
            id,
            body: MessageBody::Reasoning { content },
            extras: MessageExtras::default(),
        }
    }

    /// A tool message of ours.
    pub fn tool(id: MessageId, tool_call_id: ToolCallId, content: String) -> Self {
        let content = Content::Text(content);
        Self {
            id,
            body: MessageBody::Tool {
                tool_call_id,
                content,
                error: None,
            },
            extras: MessageExtras::default(),
        }
    }

    /// The `role` on the wire.
    pub fn role(&self) -> &'static str {
        match self.body {
            MessageBody::User { .. } => "user",
            MessageBody::Assistant { .. } => "assistant",
            MessageBody::System { .. } => "system",
            MessageBody::Developer { .. } => "developer",
            MessageBody::Tool { .. } => "tool",
            MessageBody::Activity { .. } => "activity",
            MessageBody::Reasoning { .. } => "reasoning",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::read;

    #[test]
    fn every_role_survives_the_round_trip() {
        for text in [
            r#"{"id":"u","role":"user","content":"hi","name":"Ada","metadata":{"n":1.0}}"#,
            r#"{"id":"u","role":"user","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"url","value":"https://x.test/a.png"}}]}"#,
            r#"{"id":"a","role":"assistant","content":"yes"}"#,
            r#"{"id":"a","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]}"#,
            r#"{"id":"s","role":"system","content":"be kind"}"#,
            r#"{"id":"d","role":"developer","content":"be brief"}"#,
            r#"{"id":"t","role":"tool","toolCallId":"c","content":"ok","error":"no"}"#,
            r#"{"id":"x","role":"activity","activityType":"plan","content":{"big":12345678901234567890123}}"#,
            r#"{"id":"r","role":"reasoning","content":"hm","encryptedValue":"z"}"#,
        ] {
            let message: Message = read::from_text(text).unwrap();
            assert_eq!(serde_json::to_string(&message).unwrap(), text);
        }
    }
}
