//! One run in numbers, for the log and for metrics. Never a text of anybody.

use std::fmt::Display;

use serde::Serialize;

use crate::protocol::event::{RunErrorCode, TokenUsage};
use crate::protocol::id::{RunId, ThreadId};
use crate::protocol::read::record;
use crate::store::RunStatus;

/// What is counted while a run works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RunCounts {
    /// Model calls that were begun, without their repetitions.
    pub step_count: u64,
    /// Repetitions of model calls.
    pub retry_count: u64,
    /// Calls of tools, those of unknown tools included.
    pub tool_call_count: u64,
    /// Body bytes received from the model's server.
    pub upstream_bytes: u64,
    /// From the start to the first text or call; absent when there was none.
    pub first_output_ms: Option<u64>,
}

record!(RunCounts:
    "stepCount" => step_count, "retryCount" => retry_count, "toolCallCount" => tool_call_count,
    "upstreamBytes" => upstream_bytes, "firstOutputMs" => first_output_ms = None,
);

/// How a run went.
#[derive(Debug, Clone, PartialEq)]
pub struct RunReport<'a> {
    /// The client's id of the run.
    pub run_id: &'a RunId,
    /// Its thread; may be empty.
    pub thread_id: &'a ThreadId,
    /// Its agent.
    pub agent_id: &'a str,
    /// Name of the provider.
    pub provider: &'a str,
    /// Model id.
    pub model: &'a str,
    /// Final state.
    pub status: RunStatus,
    /// Why it did not finish.
    pub code: Option<RunErrorCode>,
    /// From the start to the end, waiting for people included.
    pub duration_ms: u64,
    /// What was counted.
    pub counts: RunCounts,
    /// Tokens of all model calls.
    pub usage: &'a TokenUsage,
}

impl RunReport<'_> {
    /// The members of its log line; what is absent has none.
    pub fn members(&self) -> Vec<(&'static str, Box<dyn Display + '_>)> {
        let mut members: Vec<(&'static str, Box<dyn Display + '_>)> = vec![
            ("runId", Box::new(self.run_id)),
            ("threadId", Box::new(self.thread_id)),
            ("agentId", Box::new(self.agent_id)),
            ("provider", Box::new(self.provider)),
            ("model", Box::new(self.model)),
            ("status", Box::new(self.status.as_str())),
        ];
        if let Some(code) = self.code {
            members.push(("code", Box::new(code.as_str())));
        }
        let counted = [
            ("durationMs", Some(self.duration_ms)),
            ("firstOutputMs", self.counts.first_output_ms),
            ("stepCount", Some(self.counts.step_count)),
            ("retryCount", Some(self.counts.retry_count)),
            ("toolCallCount", Some(self.counts.tool_call_count)),
            ("upstreamBytes", Some(self.counts.upstream_bytes)),
            ("inputTokens", self.usage.input_tokens),
            ("outputTokens", self.usage.output_tokens),
        ];
        for (name, count) in counted {
            if let Some(count) = count {
                members.push((name, Box::new(count)));
            }
        }
        members
    }
}
