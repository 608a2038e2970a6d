//! What a run said so far, as the messages that will be stored: ids, order and grouping as streamed.

use serde::Serialize;

use crate::protocol::id::{MessageId, ToolCallId};
use crate::protocol::message::{Message, MessageBody};
use crate::protocol::read::record;
use crate::protocol::tool::ToolCall;

/// Assistant, tool and reasoning messages of a run, each call's results directly behind the message that made it.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Transcript {
    messages: Vec<Message>,
}

record!(Transcript: "messages" => messages);

impl Transcript {
    /// Opens a text segment: a new assistant message.
    pub fn open_text(&mut self, id: MessageId) {
        self.messages
            .push(Message::assistant(id, Some(String::new()), Vec::new()));
    }

    /// Continues the newest text segment.
    pub fn append_text(&mut self, delta: &str) {
        if let Some(Message {
            body: MessageBody::Assistant {
                content: Some(text), ..
            },
            ..
        }) = self.messages.last_mut()
        {
            text.push_str(delta);
        }
    }

    /// Opens a span of reasoning: a new reasoning message.
    pub fn open_reasoning(&mut self, id: MessageId) {
        self.messages.push(Message::reasoning(id, String::new()));
    }

    /// Continues the newest span of reasoning.
    pub fn append_reasoning(&mut self, delta: &str) {
        if let Some(Message {
            body: MessageBody::Reasoning { content },
            ..
        }) = self.messages.last_mut()
        {
            content.push_str(delta);
        }
    }

    /// Adds a call to the assistant message of this id, which is made if absent.
    pub fn add_call(&mut self, parent: &MessageId, call: ToolCall) {
        let found = self
            .messages
            .iter_mut()
            .rev()
            .find(|message| message.id == *parent);
        if let Some(Message {
            body: MessageBody::Assistant { tool_calls, .. },
            ..
        }) = found
        {
            tool_calls.push(call);
        } else {
            self.messages
                .push(Message::assistant(parent.clone(), None, vec![call]));
        }
    }

    /// Adds a result behind its call's message and the results that message has already.
    pub fn add_result(&mut self, id: MessageId, call: &ToolCallId, content: String) {
        let has_call = |message: &Message| match &message.body {
            MessageBody::Assistant { tool_calls, .. } => tool_calls.iter().any(|known| known.id == *call),
            _ => false,
        };
        let Some(owner) = self.messages.iter().rposition(has_call) else {
            return;
        };
        let results = self.messages.iter().skip(owner + 1);
        let behind = results
            .take_while(|message| matches!(message.body, MessageBody::Tool { .. }))
            .count();
        self.messages
            .insert(owner + 1 + behind, Message::tool(id, call.clone(), content));
    }

    /// The messages in order.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }
}
