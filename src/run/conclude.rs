//! The end of a run: everything closed, everything stored, then the terminal event (2.4).

use serde_json::json;

use super::halt::{Halt, sentence};
use super::ports::{Clock, EventSink, Level, Log, Ports};
use super::report::RunReport;
use super::{Run, RunEnd};
use crate::protocol::event::{Event, Outcome, RunErrorCode, RunFinished, TokenUsage};
use crate::protocol::id::ToolCallId;
use crate::protocol::lifecycle::LifecycleFault;
use crate::protocol::tool::ToolResult;
use crate::store::{EndRun, RunStatus, SearchIndex};

/// How the steps ended well.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Finish {
    /// The model has answered.
    Complete,
    /// The answer is cut at the limit this run's client set (D9).
    AtLimit,
    /// These calls are left to the next run's messages (2.6).
    Pending(Vec<ToolCallId>),
}

impl<P: Ports, S: EventSink> Run<'_, P, S> {
    /// Ends the run, whatever happened.
    pub(super) async fn conclude(mut self, outcome: Result<Finish, Halt>) -> RunEnd {
        self.control.mailbox.close();
        if outcome == Err(Halt::Cancelled) {
            // Who cancels gets an outcome, not the error of an upstream that did nothing wrong.
            let _ = self.emitter.open();
        }
        if let (Err(halt), false) = (&outcome, self.emitter.is_open()) {
            self.log_end(RunStatus::Failed, Some(halt.code()));
            self.forget().await;
            self.emitter.refuse(halt.refusal());
            self.leave_servers().await;
            return RunEnd {
                status: RunStatus::Failed,
                terminal_sent: false,
            };
        }
        let outcome = match self.close_all(&outcome) {
            Ok(()) => outcome,
            Err(fault) => {
                self.log_fault(fault);
                Err(Halt::Failed(RunErrorCode::InternalError))
            }
        };
        let status = match &outcome {
            Ok(_) => RunStatus::Finished,
            Err(Halt::Cancelled | Halt::Disconnected) => RunStatus::Cancelled,
            Err(Halt::Upstream(_) | Halt::Failed(_)) => RunStatus::Failed,
        };
        let (status, outcome) = match self.store_end(status, &outcome).await {
            Ok(()) => (status, outcome),
            Err(()) => (RunStatus::Failed, Err(Halt::Failed(RunErrorCode::StorageError))),
        };
        self.log_end(status, outcome.as_ref().err().map(Halt::code));
        let terminal_sent = self.send_terminal(&outcome).await;
        let end = RunEnd {
            status,
            terminal_sent,
        };
        self.control.end.set(Some((end, self.pace.now_ms())));
        self.leave_servers().await;
        self.index_texts().await;
        if status == RunStatus::Finished {
            self.write_title().await;
        }
        end
    }

    /// What is open END, missing RESULTs as errors, STEP_FINISHED.
    fn close_all(&mut self, outcome: &Result<Finish, Halt>) -> Result<(), LifecycleFault> {
        self.emitter.end_item()?;
        if !matches!(outcome, Ok(Finish::Pending(_))) {
            for id in self.emitter.unanswered() {
                let known = self.known_results.iter().find(|(known, _)| *known == id);
                let result = known.map_or_else(ToolResult::interrupted, |(_, result)| result.clone());
                self.emitter.result(&id, result)?;
            }
        }
        self.emitter.end_step()
    }

    async fn store_end(&self, status: RunStatus, outcome: &Result<Finish, Halt>) -> Result<(), ()> {
        let (Some(store), Some(run)) = (&self.store, &self.persistent) else {
            return Ok(());
        };
        let pending_tool_call_ids = match outcome {
            Ok(Finish::Pending(ids)) => ids.clone(),
            Ok(Finish::Complete | Finish::AtLimit) | Err(_) => Vec::new(),
        };
        let end = EndRun {
            status,
            produced: self.emitter.produced().to_vec(),
            pending_tool_call_ids,
            usage: self.usage(),
            now_ms: self.ports.clock().now_ms(),
        };
        let stored = self.stored("end", || store.end_run(run, end.clone())).await;
        stored
            .or_else(|_| self.ports.keep_undelivered(run, &end))
            .map_err(|_| ())
    }

    /// Makes what was said findable. A failure leaves the texts of this run out of the index, which can be built anew.
    async fn index_texts(&self) {
        let (Some(store), Some(run), Some(search)) = (&self.store, &self.persistent, self.ports.search())
        else {
            return;
        };
        if run.read_only {
            return;
        }
        let indexed = match store.texts_to_index(run).await {
            Ok(texts) => {
                let index = SearchIndex::new(search);
                index.put(&run.owner, &run.thread_id, &texts).await
            }
            Err(error) => Err(error),
        };
        if let Err(error) = indexed {
            let members: [(&'static str, &dyn std::fmt::Display); 2] =
                [("threadId", &run.thread_id), ("error", &error)];
            self.ports.log().line(Level::Warn, "texts_not_indexed", &members);
        }
    }

    async fn send_terminal(&mut self, outcome: &Result<Finish, Halt>) -> bool {
        let sent = self.push_terminal(outcome);
        if let Err(fault) = sent {
            self.log_fault(fault);
            return false;
        }
        self.emitter.flush(self.pace.now_ms()).await.is_ok()
    }

    fn push_terminal(&mut self, outcome: &Result<Finish, Halt>) -> Result<(), LifecycleFault> {
        let knows_outcomes = self.setup.input.declares_version;
        let event = match outcome {
            Ok(Finish::Complete) => self.finished(None, None),
            Ok(Finish::AtLimit) => self.finished(Some(json!({ "finishReason": "length" })), None),
            Ok(Finish::Pending(ids)) => {
                let pending_tool_call_ids = ids.clone();
                self.finished(
                    None,
                    Some(Outcome::Success {
                        pending_tool_call_ids,
                    }),
                )
            }
            Err(Halt::Cancelled | Halt::Disconnected) if knows_outcomes => {
                self.finished(None, Some(Outcome::Cancelled))
            }
            Err(halt) => {
                let code = halt.code();
                let message = sentence(code).to_owned();
                if self.setup.agent.show_errors {
                    self.emitter
                        .notice(format!("The answer was interrupted: {message}"))?;
                }
                Event::RunError { message, code }
            }
        };
        self.emitter.terminal(event)
    }

    /// RUN_FINISHED; what only a 1.0 peer knows is left out for others (2.4).
    fn finished(&self, result: Option<serde_json::Value>, outcome: Option<Outcome>) -> Event {
        let input = &self.setup.input;
        let knows = input.declares_version;
        Event::RunFinished(RunFinished {
            thread_id: input.thread_id.clone(),
            run_id: input.run_id.clone(),
            result: result.filter(|_| knows),
            outcome: outcome.filter(|_| knows),
            usage: if knows { self.usage() } else { Vec::new() },
        })
    }

    fn usage(&self) -> Vec<TokenUsage> {
        if self.usage == TokenUsage::default() {
            return Vec::new();
        }
        let total = self.usage.input_tokens.zip(self.usage.output_tokens);
        vec![TokenUsage {
            provider: Some(self.setup.target.provider.to_owned()),
            model: Some(self.setup.target.model.clone()),
            total_tokens: total.map(|(input, output)| input.saturating_add(output)),
            ..self.usage.clone()
        }]
    }

    fn log_fault(&self, fault: LifecycleFault) {
        let run_id = self.setup.input.run_id.as_str();
        self.ports.log().line(
            Level::Error,
            "lifecycle_broken",
            &[("runId", &run_id), ("error", &fault)],
        );
    }

    fn log_end(&self, status: RunStatus, code: Option<RunErrorCode>) {
        let report = RunReport {
            run_id: &self.setup.input.run_id,
            thread_id: &self.setup.input.thread_id,
            agent_id: &self.setup.agent.id,
            provider: self.setup.target.provider,
            model: &self.setup.target.model,
            status,
            code,
            duration_ms: self.ports.clock().now_ms().saturating_sub(self.started_ms),
            counts: self.counts,
            usage: &self.usage,
        };
        let members = report.members();
        let members: Vec<_> = members.iter().map(|(name, value)| (*name, &**value)).collect();
        self.ports.log().line(Level::Info, "run_ended", &members);
        self.ports.measure(&report);
    }
}
