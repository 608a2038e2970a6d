//! A run as `GET /runs/:runId` shows it.

use serde_json::{Map, Value};

use super::mailbox::ExpectedCall;
use crate::protocol::id::{AgentId, RunId, ThreadId};
use crate::protocol::time::iso_8601;
use crate::protocol::tree::json;

/// What is known of a run, from its object while it lives and from its row after that.
///
/// Wire: `{"runId","threadId","agentId","status","generation"?,"startedAt","finishedAt"?,"eventCount"?,
/// "pendingToolCalls":[{"toolCallId","toolName","arguments","expiresAt"}]}`, times ISO-8601 UTC. A row has neither the
/// generation nor the number of events, and there are no events to ask for by them. Source: contract 8.
#[derive(Debug, Clone, PartialEq)]
pub struct RunDescription {
    /// The client's id of the run.
    pub run_id: RunId,
    /// Its thread.
    pub thread_id: ThreadId,
    /// Its agent.
    pub agent_id: AgentId,
    /// `running`, `waiting`, `finished`, `failed` or `cancelled`.
    pub status: &'static str,
    /// How often it was restarted; a row does not have it.
    pub generation: Option<u64>,
    /// Unix milliseconds.
    pub started_at_ms: u64,
    /// Unix milliseconds.
    pub finished_at_ms: Option<u64>,
    /// Events of this generation so far.
    pub event_count: Option<u64>,
    /// Calls it waits for.
    pub pending: Vec<ExpectedCall>,
}

impl RunDescription {
    /// The body.
    pub fn to_json(&self) -> Value {
        let mut body = Map::new();
        let mut put = |name: &str, value: Value| body.insert(name.to_owned(), value);
        put("runId", json!(self.run_id));
        put("threadId", json!(self.thread_id));
        put("agentId", json!(self.agent_id));
        put("status", json!(self.status));
        if let Some(generation) = self.generation {
            put("generation", json!(generation));
        }
        put("startedAt", json!(iso_8601(self.started_at_ms)));
        if let Some(finished_at_ms) = self.finished_at_ms {
            put("finishedAt", json!(iso_8601(finished_at_ms)));
        }
        if let Some(event_count) = self.event_count {
            put("eventCount", json!(event_count));
        }
        put(
            "pendingToolCalls",
            self.pending.iter().map(pending_call).collect(),
        );
        Value::Object(body)
    }
}

fn pending_call(call: &ExpectedCall) -> Value {
    json!({
        "toolCallId": call.id,
        "toolName": call.name,
        "arguments": call.arguments,
        "expiresAt": iso_8601(call.expires_at_ms),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::id::ToolCallId;

    #[test]
    fn a_waiting_run_names_what_it_waits_for() {
        let run = RunDescription {
            run_id: RunId::new("r"),
            thread_id: ThreadId::new(""),
            agent_id: AgentId::new("demo"),
            status: "waiting",
            generation: Some(0),
            started_at_ms: 1_000,
            finished_at_ms: None,
            event_count: Some(7),
            pending: vec![ExpectedCall {
                id: ToolCallId::new("tc_1"),
                name: "pick".to_owned(),
                arguments: "{\"n\":1.0}".to_owned(),
                expires_at_ms: 61_000,
            }],
        };
        assert_eq!(
            run.to_json().to_string(),
            r#"{"runId":"r","threadId":"","agentId":"demo","status":"waiting","generation":0,"startedAt":"1970-01-01T00:00:01.000Z","eventCount":7,"pendingToolCalls":[{"toolCallId":"tc_1","toolName":"pick","arguments":"{\"n\":1.0}","expiresAt":"1970-01-01T00:01:01.000Z"}]}"#
        );
    }

    #[test]
    fn an_ended_run_read_from_its_row_has_an_end_and_says_nothing_of_events() {
        let run = RunDescription {
            run_id: RunId::new("r"),
            thread_id: ThreadId::new("t"),
            agent_id: AgentId::new("demo"),
            status: "finished",
            generation: None,
            started_at_ms: 0,
            finished_at_ms: Some(5),
            event_count: None,
            pending: Vec::new(),
        };
        assert_eq!(
            run.to_json().to_string(),
            r#"{"runId":"r","threadId":"t","agentId":"demo","status":"finished","startedAt":"1970-01-01T00:00:00.000Z","finishedAt":"1970-01-01T00:00:00.005Z","pendingToolCalls":[]}"#
        );
    }
}
