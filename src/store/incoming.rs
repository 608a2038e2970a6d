//! The messages of one batch on their way into rows.

use super::StoreError;
use super::attachments::is_movable;
use super::body::{chunks, pieces};
use crate::list::List;
use crate::protocol::id::{MessageId, ToolCallId};
use crate::protocol::index::KeySet;
use crate::protocol::json;
use crate::protocol::message::{Message, MessageBody};
use crate::protocol::tree::json;

/// Messages in order, no identity twice.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MessageList {
    messages: Vec<Message>,
}

impl MessageList {
    /// Drops what says the same identity again: the first one wins, as it would in storage. The identity of a tool
    /// message is its call; if its id is taken by another message it gets one derived from both, because the answer to
    /// a call must not be lost to a client that reuses ids.
    pub fn new(messages: Vec<Message>) -> Self {
        let is_result = |message: &&Message| tool_call_id(message).is_some();
        let others: KeySet<MessageId> = messages
            .iter()
            .filter(|message| !is_result(message))
            .map(|message| message.id.clone())
            .collect();
        let mut ids = KeySet::default();
        let mut calls = KeySet::default();
        let mut kept = Vec::with_capacity(messages.len());
        for mut message in messages {
            let is_new = match &message.body {
                MessageBody::System { .. } | MessageBody::Developer { .. } => true,
                MessageBody::Tool { tool_call_id, .. } => {
                    let is_new = calls.insert(tool_call_id.clone());
                    if is_new && (others.contains(message.id.as_str()) || !ids.insert(message.id.clone())) {
                        message.id = MessageId::new(format!("{}#{tool_call_id}", message.id));
                    }
                    is_new
                }
                MessageBody::User { .. }
                | MessageBody::Assistant { .. }
                | MessageBody::Activity { .. }
                | MessageBody::Reasoning { .. } => ids.insert(message.id.clone()),
            };
            if is_new {
                kept.push(message);
            }
        }
        Self { messages: kept }
    }

    /// The messages.
    pub fn as_slice(&self) -> &[Message] {
        &self.messages
    }

    /// The messages.
    pub fn into_vec(self) -> Vec<Message> {
        self.messages
    }

    /// How many of them `lastMessages` counts. Source: contract 2.3.
    pub fn counted(&self) -> usize {
        let counted = |message: &&Message| match message.body {
            MessageBody::User { .. } | MessageBody::Assistant { .. } | MessageBody::Tool { .. } => true,
            MessageBody::System { .. }
            | MessageBody::Developer { .. }
            | MessageBody::Activity { .. }
            | MessageBody::Reasoning { .. } => false,
        };
        self.messages.iter().filter(counted).count()
    }

    /// Whether a call is answered.
    pub fn has_results(&self) -> bool {
        self.messages
            .iter()
            .any(|message| tool_call_id(message).is_some())
    }

    /// JSON arrays of `[index, id, call or null, role]`; at least one.
    pub fn identity_chunks(&self) -> Vec<String> {
        let rows = self.stored().map(|(index, message)| {
            json::text(&json!([index, message.id, tool_call_id(message), message.role()]))
        });
        let mut chunks = chunks(rows);
        if chunks.is_empty() {
            chunks.push("[]".to_owned());
        }
        chunks
    }

    /// JSON arrays of `[index, id, call or null, role, pending calls or null, body, more pieces, digest or null]`
    /// and of `[id, call or null, role, piece, text]`.
    pub fn row_chunks(&self, pending: &[ToolCallId]) -> Result<(Vec<String>, Vec<String>), StoreError> {
        let mut rows = Vec::new();
        let mut piece_rows = Vec::new();
        for (index, message) in self.stored() {
            let body = json::text(message);
            let pieces = pieces(&body);
            let (id, call, role) = (&message.id, tool_call_id(message), message.role());
            let pending = pending_calls(message, pending);
            let more = pieces.len() - 1;
            let digest = (more > 0 || is_movable(message)).then(|| digest(&body));
            rows.push(json::text(&json!([
                index,
                id,
                call,
                role,
                pending,
                pieces.first(),
                more,
                digest
            ])));
            for (piece, text) in pieces.iter().enumerate().skip(1) {
                piece_rows.push(json::text(&json!([id, call, role, piece, text])));
            }
        }
        Ok((chunks(rows), chunks(piece_rows)))
    }

    /// System and developer messages are of one run and never stored.
    fn stored(&self) -> impl Iterator<Item = (usize, &Message)> {
        let is_stored = |message: &Message| match message.body {
            MessageBody::System { .. } | MessageBody::Developer { .. } => false,
            MessageBody::User { .. }
            | MessageBody::Assistant { .. }
            | MessageBody::Tool { .. }
            | MessageBody::Activity { .. }
            | MessageBody::Reasoning { .. } => true,
        };
        self.messages
            .iter()
            .enumerate()
            .filter(move |(_, message)| is_stored(message))
    }
}

/// Length and hash (FNV-1a) of a body: tells one version of a message from another.
pub(super) fn digest(body: &str) -> String {
    let hash = body.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{}:{hash:016x}", body.len())
}

/// The call a tool message answers.
pub(super) fn tool_call_id(message: &Message) -> Option<&ToolCallId> {
    match &message.body {
        MessageBody::Tool { tool_call_id, .. } => Some(tool_call_id),
        MessageBody::User { .. }
        | MessageBody::Assistant { .. }
        | MessageBody::System { .. }
        | MessageBody::Developer { .. }
        | MessageBody::Activity { .. }
        | MessageBody::Reasoning { .. } => None,
    }
}

/// The calls a message makes.
pub(super) fn made_calls(message: &Message) -> impl Iterator<Item = &ToolCallId> {
    let calls = match &message.body {
        MessageBody::Assistant { tool_calls, .. } => tool_calls.as_slice(),
        MessageBody::User { .. }
        | MessageBody::Tool { .. }
        | MessageBody::System { .. }
        | MessageBody::Developer { .. }
        | MessageBody::Activity { .. }
        | MessageBody::Reasoning { .. } => &[],
    };
    calls.iter().map(|call| &call.id)
}

fn pending_calls(message: &Message, pending: &[ToolCallId]) -> Option<String> {
    let calls: Vec<&ToolCallId> = made_calls(message).filter(|call| pending.contains(*call)).list();
    (!calls.is_empty()).then(|| json::text(&json!(calls)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::read;

    fn list(texts: &[&str]) -> MessageList {
        MessageList::new(texts.iter().map(|text| read::from_text(text).unwrap()).collect())
    }

    fn ids(list: &MessageList) -> Vec<&str> {
        list.as_slice()
            .iter()
            .map(|message| message.id.as_str())
            .collect()
    }

    #[test]
    fn the_first_of_an_identity_wins() {
        let list = list(&[
            r#"{"id":"s","role":"system","content":"a"}"#,
            r#"{"id":"s","role":"system","content":"b"}"#,
            r#"{"id":"u","role":"user","content":"first"}"#,
            r#"{"id":"u","role":"user","content":"second"}"#,
            r#"{"id":"t1","role":"tool","toolCallId":"c1","content":"first"}"#,
            r#"{"id":"t2","role":"tool","toolCallId":"c1","content":"second"}"#,
            r#"{"id":"t1","role":"tool","toolCallId":"c2","content":"reused id"}"#,
            r#"{"id":"a","role":"tool","toolCallId":"c3","content":"an id of another message"}"#,
            r#"{"id":"a","role":"assistant","content":"kept"}"#,
        ]);
        assert_eq!(ids(&list), ["s", "s", "u", "t1", "t1#c2", "a#c3", "a"]);
        assert_eq!(list.counted(), 5);
        assert_eq!(
            list.identity_chunks(),
            [concat!(
                r#"[[2,"u",null,"user"],[3,"t1","c1","tool"],[4,"t1#c2","c2","tool"],"#,
                r#"[5,"a#c3","c3","tool"],[6,"a",null,"assistant"]]"#
            )]
        );
    }

    #[test]
    fn an_empty_list_is_an_empty_array() {
        assert_eq!(list(&[]).identity_chunks(), ["[]"]);
    }
}
