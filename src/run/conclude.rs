//! The end of a run: everything closed, everything stored, then the terminal event (2.4).

use futures::future::join;
use serde::Serialize;

use super::batch::stored;
use super::checkpoint::Position;
use super::halt::{Halt, sentence};
use super::ports::{Clock, EventSink, IdSource, Level, Log, Ports};
use super::report::RunReport;
use super::{Run, RunEnd};
use crate::list::List;
use crate::protocol::event::{Event, Outcome, RunErrorCode, RunFinished, TokenUsage};
use crate::protocol::id::ToolCallId;
use crate::protocol::lifecycle::LifecycleFault;
use crate::protocol::read::variants;
use crate::protocol::tool::ToolResult;
use crate::protocol::tree::json;
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

/// How a run ends. Once it is kept nothing changes it but a storage that fails.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Conclusion {
    /// The model has answered.
    Complete,
    /// The answer is cut at the limit this run's client set (D9).
    AtLimit,
    /// These calls are left to the next run's messages (2.6).
    Pending(Vec<ToolCallId>),
    /// Somebody stopped it.
    Cancelled,
    /// RUN_ERROR.
    Failed(RunErrorCode),
}

variants!(Conclusion:
    "complete" => Complete, "atLimit" => AtLimit, "pending" => Pending(ids), "cancelled" => Cancelled,
    "failed" => Failed(code),
);

impl From<Result<Finish, Halt>> for Conclusion {
    fn from(outcome: Result<Finish, Halt>) -> Self {
        match outcome {
            Ok(Finish::Complete) => Self::Complete,
            Ok(Finish::AtLimit) => Self::AtLimit,
            Ok(Finish::Pending(ids)) => Self::Pending(ids),
            Err(Halt::Cancelled | Halt::Disconnected) => Self::Cancelled,
            Err(halt @ (Halt::Upstream(_) | Halt::Failed(_))) => Self::Failed(halt.code()),
        }
    }
}

impl Conclusion {
    fn status(&self) -> RunStatus {
        match self {
            Self::Complete | Self::AtLimit | Self::Pending(_) => RunStatus::Finished,
            Self::Cancelled => RunStatus::Cancelled,
            Self::Failed(_) => RunStatus::Failed,
        }
    }

    fn code(&self) -> Option<RunErrorCode> {
        match self {
            Self::Complete | Self::AtLimit | Self::Pending(_) => None,
            Self::Cancelled => Some(RunErrorCode::Cancelled),
            Self::Failed(code) => Some(*code),
        }
    }
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
            self.move_attachments().await;
            return RunEnd {
                status: RunStatus::Failed,
                terminal_sent: false,
            };
        }
        let conclusion = Conclusion::from(outcome);
        let conclusion = match self.close_all(&conclusion) {
            Ok(()) => conclusion,
            Err(fault) => {
                self.log_fault(fault);
                Conclusion::Failed(RunErrorCode::InternalError)
            }
        };
        if self.ports.keeper().run().is_durable() {
            self.keep(|| Position::Ending(conclusion.clone()));
        }
        self.end(conclusion).await
    }

    /// Stores the end and says it.
    pub(super) async fn end(mut self, conclusion: Conclusion) -> RunEnd {
        let conclusion = match self.store_end(&conclusion).await {
            Ok(()) => conclusion,
            Err(()) => Conclusion::Failed(RunErrorCode::StorageError),
        };
        let status = conclusion.status();
        self.log_end(status, conclusion.code());
        let terminal_sent = self.send_terminal(&conclusion).await;
        let end = RunEnd {
            status,
            terminal_sent,
        };
        let now_ms = self.pace.now_ms();
        if terminal_sent {
            self.note_kept(self.ports.keeper().keep_end(status, now_ms));
        }
        self.control.ending.set(end, now_ms);
        self.leave_servers().await;
        self.index_texts().await;
        self.move_attachments().await;
        if status == RunStatus::Finished {
            self.write_title().await;
        }
        end
    }

    /// What is open END, missing RESULTs as errors, STEP_FINISHED.
    fn close_all(&mut self, conclusion: &Conclusion) -> Result<(), LifecycleFault> {
        self.emitter.end_item()?;
        if !matches!(conclusion, Conclusion::Pending(_)) {
            for id in self.emitter.unanswered() {
                let kept = self.kept_results.iter().chain(&self.known_results);
                let known = kept.rev().find(|(known, _)| *known == id);
                let result = known.map_or_else(ToolResult::interrupted, |(_, result)| result.clone());
                self.emitter.result(&id, result)?;
            }
        }
        self.emitter.end_step()
    }

    /// Stores the end; what was said before it goes out first, or meanwhile if clients are slow.
    async fn store_end(&mut self, conclusion: &Conclusion) -> Result<(), ()> {
        let (Some(store), Some(run)) = (&self.store, &self.persistent) else {
            return Ok(());
        };
        let end = EndRun {
            status: conclusion.status(),
            produced: self.emitter.produced().to_vec(),
            pending_tool_call_ids: match conclusion {
                Conclusion::Pending(ids) => ids.clone(),
                Conclusion::Complete
                | Conclusion::AtLimit
                | Conclusion::Cancelled
                | Conclusion::Failed(_) => Vec::new(),
            },
            usage: self.usage(),
            now_ms: self.ports.clock().now_ms(),
        };
        let run_id = &self.setup.input.run_id;
        let storing = async {
            // A turn for the streams: a database in the same process, as in development, would hold them up.
            self.ports.clock().sleep(0).await;
            stored(self.ports, run_id, "end", || store.end_run(run, end.clone())).await
        };
        // Whether anybody watches changes nothing of what is stored.
        let (_, stored) = join(self.emitter.flush(end.now_ms), storing).await;
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

    /// Takes large values of the incoming messages out of the database. A failure leaves them there, whole.
    async fn move_attachments(&self) {
        let (Some(store), Some(run)) = (&self.store, &self.persistent) else {
            return;
        };
        let messages = &self.setup.input.messages;
        let prefix = format!(
            "{}/{}",
            self.setup.object.to_base64url(),
            self.ports.ids().token()
        );
        let now_ms = self.ports.clock().now_ms();
        let moved = store.move_attachments(run, messages, &prefix, now_ms).await;
        let dropped = match moved {
            Ok(_) => store.drop_attachments(now_ms).await,
            Err(error) => Err(error),
        };
        if let Err(error) = dropped {
            let members: [(&'static str, &dyn std::fmt::Display); 2] =
                [("threadId", &run.thread_id), ("error", &error)];
            self.ports
                .log()
                .line(Level::Warn, "attachments_not_moved", &members);
        }
    }

    async fn send_terminal(&mut self, conclusion: &Conclusion) -> bool {
        let sent = self.push_terminal(conclusion);
        if let Err(fault) = sent {
            self.log_fault(fault);
            return false;
        }
        self.emitter.flush(self.pace.now_ms()).await.is_ok()
    }

    fn push_terminal(&mut self, conclusion: &Conclusion) -> Result<(), LifecycleFault> {
        let event = match conclusion {
            Conclusion::Complete => self.finished(None, None),
            Conclusion::AtLimit => self.finished(Some(json!({ "finishReason": "length" })), None),
            Conclusion::Pending(ids) => {
                let pending_tool_call_ids = ids.clone();
                self.finished(
                    None,
                    Some(Outcome::Success {
                        pending_tool_call_ids,
                    }),
                )
            }
            Conclusion::Cancelled if self.setup.input.declares_version => {
                self.finished(None, Some(Outcome::Cancelled))
            }
            Conclusion::Cancelled => self.failed(RunErrorCode::Cancelled)?,
            Conclusion::Failed(code) => self.failed(*code)?,
        };
        self.emitter.terminal(event)
    }

    /// RUN_ERROR, and before it what `showErrors` says.
    fn failed(&mut self, code: RunErrorCode) -> Result<Event, LifecycleFault> {
        let message = sentence(code).to_owned();
        if self.setup.agent.show_errors {
            self.emitter
                .notice(format!("The answer was interrupted: {message}"))?;
        }
        Ok(Event::RunError { message, code })
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

    pub(super) fn usage(&self) -> Vec<TokenUsage> {
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
        let members: Vec<_> = members.iter().map(|(name, value)| (*name, &**value)).list();
        self.ports.log().line(Level::Info, "run_ended", &members);
        self.ports.measure(&report);
    }
}
