//! The messages of AG-UI 1.0's protobuf binding that we send, for `prost` to encode: field numbers, types and presence
//! as AG-UI 4 lists them. Nothing here knows how our own encoder works.

use std::collections::BTreeMap;

use io_bridge::protocol::event::{self, Outcome};
use prost::{Message, Oneof};

#[derive(Clone, PartialEq, Message)]
pub struct Event {
    #[prost(
        oneof = "Arm",
        tags = "1, 2, 3, 4, 5, 6, 12, 13, 14, 15, 16, 22, 25, 26, 27, 28, 30"
    )]
    pub event: Option<Arm>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum Arm {
    #[prost(message, tag = "1")]
    TextMessageStart(TextMessageStart),
    #[prost(message, tag = "2")]
    TextMessageContent(Delta),
    #[prost(message, tag = "3")]
    TextMessageEnd(Named),
    #[prost(message, tag = "4")]
    ToolCallStart(ToolCallStart),
    #[prost(message, tag = "5")]
    ToolCallArgs(Delta),
    #[prost(message, tag = "6")]
    ToolCallEnd(Named),
    #[prost(message, tag = "12")]
    RunStarted(RunStarted),
    #[prost(message, tag = "13")]
    RunFinished(RunFinished),
    #[prost(message, tag = "14")]
    RunError(RunError),
    #[prost(message, tag = "15")]
    StepStarted(Named),
    #[prost(message, tag = "16")]
    StepFinished(Named),
    #[prost(message, tag = "22")]
    ToolCallResult(ToolCallResult),
    #[prost(message, tag = "25")]
    ReasoningStart(Reasoning),
    #[prost(message, tag = "26")]
    ReasoningMessageStart(ReasoningPiece),
    #[prost(message, tag = "27")]
    ReasoningMessageContent(ReasoningPiece),
    #[prost(message, tag = "28")]
    ReasoningMessageEnd(Reasoning),
    #[prost(message, tag = "30")]
    ReasoningEnd(Reasoning),
}

#[derive(Clone, PartialEq, Message)]
pub struct Base {
    #[prost(int32, tag = "1")]
    pub event_type: i32,
    #[prost(int64, optional, tag = "2")]
    pub timestamp: Option<i64>,
}

/// What has an id or a name and nothing else.
#[derive(Clone, PartialEq, Message)]
pub struct Named {
    #[prost(message, optional, tag = "1")]
    pub base_event: Option<Base>,
    #[prost(string, tag = "2")]
    pub name: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Delta {
    #[prost(message, optional, tag = "1")]
    pub base_event: Option<Base>,
    #[prost(string, tag = "2")]
    pub id: String,
    #[prost(string, tag = "3")]
    pub delta: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct Reasoning {
    #[prost(message, optional, tag = "1")]
    pub base_event: Option<Base>,
    #[prost(string, tag = "3")]
    pub message_id: String,
}

/// Role or delta.
#[derive(Clone, PartialEq, Message)]
pub struct ReasoningPiece {
    #[prost(message, optional, tag = "1")]
    pub base_event: Option<Base>,
    #[prost(string, tag = "3")]
    pub message_id: String,
    #[prost(string, tag = "4")]
    pub text: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct TextMessageStart {
    #[prost(message, optional, tag = "1")]
    pub base_event: Option<Base>,
    #[prost(string, tag = "2")]
    pub message_id: String,
    #[prost(string, optional, tag = "3")]
    pub role: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ToolCallStart {
    #[prost(message, optional, tag = "1")]
    pub base_event: Option<Base>,
    #[prost(string, tag = "2")]
    pub tool_call_id: String,
    #[prost(string, tag = "3")]
    pub tool_call_name: String,
    #[prost(string, optional, tag = "4")]
    pub parent_message_id: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct ToolCallResult {
    #[prost(message, optional, tag = "1")]
    pub base_event: Option<Base>,
    #[prost(string, tag = "3")]
    pub message_id: String,
    #[prost(string, tag = "4")]
    pub tool_call_id: String,
    #[prost(string, optional, tag = "5")]
    pub content: Option<String>,
    #[prost(string, optional, tag = "6")]
    pub role: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct RunStarted {
    #[prost(message, optional, tag = "1")]
    pub base_event: Option<Base>,
    #[prost(string, tag = "2")]
    pub thread_id: String,
    #[prost(string, tag = "3")]
    pub run_id: String,
    #[prost(string, optional, tag = "6")]
    pub protocol_version: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct RunError {
    #[prost(message, optional, tag = "1")]
    pub base_event: Option<Base>,
    #[prost(string, optional, tag = "2")]
    pub code: Option<String>,
    #[prost(string, tag = "3")]
    pub message: String,
}

#[derive(Clone, PartialEq, Message)]
pub struct RunFinished {
    #[prost(message, optional, tag = "1")]
    pub base_event: Option<Base>,
    #[prost(string, tag = "2")]
    pub thread_id: String,
    #[prost(string, tag = "3")]
    pub run_id: String,
    #[prost(message, optional, tag = "4")]
    pub result: Option<Value>,
    #[prost(string, tag = "5")]
    pub outcome: String,
    #[prost(message, repeated, tag = "7")]
    pub usage: Vec<Usage>,
    #[prost(string, repeated, tag = "8")]
    pub pending_tool_call_ids: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Usage {
    #[prost(string, optional, tag = "1")]
    pub provider: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub model: Option<String>,
    #[prost(int64, optional, tag = "3")]
    pub input_tokens: Option<i64>,
    #[prost(int64, optional, tag = "4")]
    pub output_tokens: Option<i64>,
    #[prost(int64, optional, tag = "5")]
    pub total_tokens: Option<i64>,
    #[prost(int64, optional, tag = "6")]
    pub reasoning_tokens: Option<i64>,
    #[prost(int64, optional, tag = "7")]
    pub cached_input_tokens: Option<i64>,
    #[prost(int64, optional, tag = "8")]
    pub cache_write_input_tokens: Option<i64>,
}

/// `google.protobuf.Value`
#[derive(Clone, PartialEq, Message)]
pub struct Value {
    #[prost(oneof = "Kind", tags = "1, 2, 3, 4, 5, 6")]
    pub kind: Option<Kind>,
}

#[derive(Clone, PartialEq, Oneof)]
pub enum Kind {
    #[prost(int32, tag = "1")]
    Null(i32),
    #[prost(double, tag = "2")]
    Number(f64),
    #[prost(string, tag = "3")]
    String(String),
    #[prost(bool, tag = "4")]
    Bool(bool),
    #[prost(message, tag = "5")]
    Struct(Struct),
    #[prost(message, tag = "6")]
    List(List),
}

/// `google.protobuf.Struct`
#[derive(Clone, PartialEq, Message)]
pub struct Struct {
    #[prost(btree_map = "string, message", tag = "1")]
    pub fields: BTreeMap<String, Value>,
}

/// `google.protobuf.ListValue`
#[derive(Clone, PartialEq, Message)]
pub struct List {
    #[prost(message, repeated, tag = "1")]
    pub values: Vec<Value>,
}

/// The message of one of our events.
pub fn message(event: &event::Event) -> Event {
    let text = |text: &str| text.to_owned();
    let some = |text: &str| Some(text.to_owned());
    let base = |event_type| {
        Some(Base {
            event_type,
            timestamp: None,
        })
    };
    let named = |event_type, name: &str| Named {
        base_event: base(event_type),
        name: name.to_owned(),
    };
    let delta = |event_type, id: &str, delta: &str| Delta {
        base_event: base(event_type),
        id: id.to_owned(),
        delta: delta.to_owned(),
    };
    let reasoning = |event_type, id: &str| Reasoning {
        base_event: base(event_type),
        message_id: id.to_owned(),
    };
    let piece = |event_type, id: &str, text: &str| ReasoningPiece {
        base_event: base(event_type),
        message_id: id.to_owned(),
        text: text.to_owned(),
    };
    use event::Event as Ours;
    let arm = match event {
        Ours::TextMessageStart { message_id } => Arm::TextMessageStart(TextMessageStart {
            base_event: base(0),
            message_id: text(message_id.as_str()),
            role: some("assistant"),
        }),
        Ours::TextMessageContent { message_id, delta: d } => {
            Arm::TextMessageContent(delta(1, message_id.as_str(), d))
        }
        Ours::TextMessageEnd { message_id } => Arm::TextMessageEnd(named(2, message_id.as_str())),
        Ours::ReasoningStart { message_id } => Arm::ReasoningStart(reasoning(24, message_id.as_str())),
        Ours::ReasoningMessageStart { message_id } => {
            Arm::ReasoningMessageStart(piece(25, message_id.as_str(), "reasoning"))
        }
        Ours::ReasoningMessageContent { message_id, delta } => {
            Arm::ReasoningMessageContent(piece(26, message_id.as_str(), delta))
        }
        Ours::ReasoningMessageEnd { message_id } => {
            Arm::ReasoningMessageEnd(reasoning(27, message_id.as_str()))
        }
        Ours::ReasoningEnd { message_id } => Arm::ReasoningEnd(reasoning(29, message_id.as_str())),
        Ours::ToolCallStart {
            tool_call_id,
            tool_call_name,
            parent_message_id,
        } => Arm::ToolCallStart(ToolCallStart {
            base_event: base(3),
            tool_call_id: text(tool_call_id.as_str()),
            tool_call_name: text(tool_call_name),
            parent_message_id: some(parent_message_id.as_str()),
        }),
        Ours::ToolCallArgs {
            tool_call_id,
            delta: d,
        } => Arm::ToolCallArgs(delta(4, tool_call_id.as_str(), d)),
        Ours::ToolCallEnd { tool_call_id } => Arm::ToolCallEnd(named(5, tool_call_id.as_str())),
        Ours::RunStarted { thread_id, run_id } => Arm::RunStarted(RunStarted {
            base_event: base(11),
            thread_id: text(thread_id.as_str()),
            run_id: text(run_id.as_str()),
            protocol_version: some("1.0"),
        }),
        Ours::RunFinished(finished) => Arm::RunFinished(run_finished(finished)),
        Ours::RunError { message, code } => Arm::RunError(RunError {
            base_event: base(13),
            code: some(code.as_str()),
            message: text(message),
        }),
        Ours::StepStarted { step_name } => Arm::StepStarted(named(14, step_name)),
        Ours::StepFinished { step_name } => Arm::StepFinished(named(15, step_name)),
        Ours::ToolCallResult {
            message_id,
            tool_call_id,
            content,
        } => Arm::ToolCallResult(ToolCallResult {
            base_event: base(21),
            message_id: text(message_id.as_str()),
            tool_call_id: text(tool_call_id.as_str()),
            content: some(content),
            role: some("tool"),
        }),
    };
    Event { event: Some(arm) }
}

fn run_finished(finished: &event::RunFinished) -> RunFinished {
    let (outcome, pending) = match &finished.outcome {
        None => ("", Vec::new()),
        Some(Outcome::Cancelled) => ("cancelled", Vec::new()),
        Some(Outcome::Success {
            pending_tool_call_ids,
        }) => ("success", pending_tool_call_ids.clone()),
    };
    RunFinished {
        base_event: Some(Base {
            event_type: 12,
            timestamp: None,
        }),
        thread_id: finished.thread_id.as_str().to_owned(),
        run_id: finished.run_id.as_str().to_owned(),
        // The schema has no `result: null`.
        result: finished
            .result
            .as_ref()
            .filter(|result| !result.is_null())
            .map(value),
        outcome: outcome.to_owned(),
        usage: finished.usage.iter().map(usage).collect(),
        pending_tool_call_ids: pending.iter().map(|id| id.as_str().to_owned()).collect(),
    }
}

fn usage(usage: &event::TokenUsage) -> Usage {
    let count = |count: Option<u64>| count.map(|count| i64::try_from(count).unwrap());
    Usage {
        provider: usage.provider.clone(),
        model: usage.model.clone(),
        input_tokens: count(usage.input_tokens),
        output_tokens: count(usage.output_tokens),
        total_tokens: count(usage.total_tokens),
        reasoning_tokens: count(usage.reasoning_tokens),
        cached_input_tokens: count(usage.cached_input_tokens),
        cache_write_input_tokens: count(usage.cache_write_input_tokens),
    }
}

fn value(json: &serde_json::Value) -> Value {
    let kind = match json {
        serde_json::Value::Null => Kind::Null(0),
        serde_json::Value::Bool(flag) => Kind::Bool(*flag),
        serde_json::Value::Number(number) => Kind::Number(number.to_string().parse().unwrap()),
        serde_json::Value::String(text) => Kind::String(text.clone()),
        serde_json::Value::Array(items) => Kind::List(List {
            values: items.iter().map(value).collect(),
        }),
        serde_json::Value::Object(members) => Kind::Struct(Struct {
            fields: members
                .iter()
                .map(|(name, member)| (name.clone(), value(member)))
                .collect(),
        }),
    };
    Value { kind: Some(kind) }
}
