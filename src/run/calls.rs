//! The calls of a step: who runs them, when they are shown, and their results in order of arrival (2.5).

use serde_json::{Map, Value};

use super::Run;
use super::answer::{AnsweredCall, CallState, ModelAnswer};
use super::halt::Halt;
use super::live::LiveCalls;
use super::mailbox::ExpectedCall;
use super::ports::{EventSink, Level, Log, Ports};
use super::prompt;
use crate::config::agents::FrontendTools;
use crate::list::List;
use crate::protocol::id::{ToolCallAddress, ToolCallId};
use crate::protocol::json;
use crate::protocol::parts;
use crate::protocol::tool::{ToolCall, ToolResult};
use crate::protocol::tool_result;
use crate::provider::{ModelMessage, codec};
use crate::store::RunStatus;
use crate::tool::toolbox::ToolOwner;

impl AnsweredCall {
    pub(super) fn to_tool_call(&self) -> ToolCall {
        let (id, name, arguments) = (self.id.clone(), self.name.clone(), self.arguments.clone());
        ToolCall {
            id,
            name,
            arguments,
            encrypted_value: None,
        }
    }
}

impl<P: Ports, S: EventSink> Run<'_, P, S> {
    /// A fresh call id that leads back to this run's object (D17).
    pub(super) fn next_call_id(&mut self) -> ToolCallId {
        self.counts.tool_call_count += 1;
        ToolCallAddress {
            object: self.setup.object,
            counter: self.counts.tool_call_count,
        }
        .to_id()
    }

    /// Decides who runs a call; with a fault, what its result says.
    pub(super) fn judge(&self, name: &str, arguments: &str) -> (CallState, Option<ToolResult>) {
        let owner = match self.toolbox.owner(name) {
            // Withheld or not, it runs.
            None if codec(self.setup.target.wire).runs_tools() => return (CallState::Upstream, None),
            _ if self.are_tools_withheld => {
                let fault = ToolResult::failure("No tool may be called any more.");
                return (CallState::Hidden, Some(fault));
            }
            Some(owner) => owner,
            None => {
                let sentence = format!("There is no tool named `{name}`.");
                return (CallState::Hidden, Some(ToolResult::failure(&sentence)));
            }
        };
        let Some(parsed) = json::object(arguments) else {
            // ARGS must join to valid JSON, so such a call cannot be shown, whoever owns it.
            let fault = ToolResult::failure("The arguments are not a JSON object.");
            return (CallState::Hidden, Some(fault));
        };
        if let Some(fault) = self.schema_fault(name, parsed) {
            return match owner {
                ToolOwner::Frontend => (CallState::Hidden, Some(fault)),
                ToolOwner::Native(_) | ToolOwner::Http(_) | ToolOwner::Mcp { .. } => {
                    (CallState::Settled, Some(fault))
                }
            };
        }
        match owner {
            ToolOwner::Native(_) | ToolOwner::Http(_) | ToolOwner::Mcp { .. } => (CallState::Server, None),
            ToolOwner::Frontend => match self.frontend_mode {
                FrontendTools::SameRun => (CallState::Frontend, None),
                FrontendTools::NextRun => (CallState::Pending, None),
            },
        }
    }

    fn schema_fault(&self, name: &str, arguments: Map<String, Value>) -> Option<ToolResult> {
        if !self.setup.agent.validate_tool_arguments {
            return None;
        }
        let schema = match self.toolbox.schema(name)? {
            Ok(schema) => schema,
            Err(fault) => {
                self.ports.log().line(
                    Level::Warn,
                    "schema_not_checked",
                    &[("tool", &name), ("error", &fault)],
                );
                return None;
            }
        };
        let violations = schema.check(&Value::Object(arguments)).err()?;
        let listed = violations
            .iter()
            .map(|violation| format!("{}: {}", violation.pointer, violation.message));
        let sentence = format!(
            "The arguments do not fit the tool's schema. {}",
            parts::join(&listed.list(), "; ")
        );
        Some(ToolResult::failure(&sentence))
    }

    /// Shows a complete call: START, ARGS, END together, a front-end call registered before (contract 3).
    pub(super) async fn show(&mut self, slot: usize, answer: &mut ModelAnswer) -> Result<(), Halt> {
        let Some(call) = answer.calls.iter_mut().find(|call| call.slot == slot) else {
            return Ok(());
        };
        if call.arguments.trim().is_empty() {
            call.arguments = "{}".to_owned();
        }
        let (state, fault) = match call.state {
            // The upstream has answered it while it was held.
            CallState::Answered => (CallState::Answered, None),
            CallState::Open
            | CallState::Hidden
            | CallState::Settled
            | CallState::Upstream
            | CallState::Server
            | CallState::Frontend
            | CallState::Pending => self.judge(&call.name, &call.arguments),
        };
        call.state = state.clone();
        if matches!(state, CallState::Upstream | CallState::Answered)
            && json::object(&call.arguments).is_none()
        {
            // ARGS must join to valid JSON, and an upstream that runs such a call runs it without arguments.
            call.arguments = "{}".to_owned();
        }
        let call = call.clone();
        if let Some(fault) = fault {
            self.known_results.push((call.id.clone(), fault));
        }
        match state {
            CallState::Hidden | CallState::Open => return Ok(()),
            CallState::Frontend => self.expect(&call).await,
            CallState::Settled
            | CallState::Upstream
            | CallState::Answered
            | CallState::Server
            | CallState::Pending => {}
        }
        self.emitter.call(call.to_tool_call())?;
        Ok(())
    }

    /// Registers a front-end call. The run reads as waiting before the client can act on the call, so that what the
    /// client starts meanwhile leaves the thread alone (2.2).
    async fn expect(&mut self, call: &AnsweredCall) {
        let now_ms = self.pace.now_ms();
        let expires_at_ms = now_ms.saturating_add(self.setup.agent.tool_timeout_ms);
        let (id, name, arguments) = (call.id.clone(), call.name.clone(), call.arguments.clone());
        let call = ExpectedCall {
            id,
            name,
            arguments,
            expires_at_ms,
        };
        self.note_kept(self.ports.keeper().keep_call(&call));
        self.control.mailbox.register(call);
        if !std::mem::replace(&mut self.is_parked, true) {
            self.mark_waiting(expires_at_ms).await;
        }
    }

    async fn mark_waiting(&self, expires_at_ms: u64) {
        let deadline_ms = expires_at_ms.saturating_add(self.pace.work_left_ms());
        self.mark(RunStatus::Waiting, deadline_ms).await;
    }

    /// What the run's row says; past the deadline (Unix milliseconds) it reads as failed.
    pub(super) async fn mark(&self, status: RunStatus, deadline_ms: u64) {
        let (Some(store), Some(run)) = (&self.store, &self.persistent) else {
            return;
        };
        if let Err(error) = store.set_run_status(run, status, deadline_ms).await {
            let run_id = self.setup.input.run_id.as_str();
            self.ports.log().line(
                Level::Warn,
                "run_status_not_stored",
                &[("runId", &run_id), ("error", &error)],
            );
        }
    }

    /// The upstream ran a call itself. It may do so for a call we took for ours, too: then nobody else answers it.
    pub(super) fn settle_upstream(
        &mut self,
        slot: usize,
        result: ToolResult,
        answer: &mut ModelAnswer,
        live: &LiveCalls,
    ) {
        let Some(call) = answer.calls.iter_mut().find(|call| call.slot == slot) else {
            return;
        };
        match call.state {
            CallState::Open if live.holds(slot) => {}
            CallState::Open | CallState::Hidden | CallState::Settled | CallState::Answered => return,
            CallState::Frontend => self.control.mailbox.withdraw(&call.id),
            CallState::Upstream | CallState::Server | CallState::Pending => {}
        }
        call.state = CallState::Answered;
        self.known_results.push((call.id.clone(), result));
    }

    /// Answers every call of the step, then remembers both for the model. Says whether calls were left pending.
    pub(super) async fn answer_calls(&mut self, answer: ModelAnswer) -> Result<bool, Halt> {
        let mut results = self.show_known_results(&answer)?;
        for call in &answer.calls {
            if call.state == CallState::Upstream {
                self.emitter.result(&call.id, ToolResult::interrupted())?;
                results.push((call.id.clone(), ToolResult::interrupted()));
            }
        }
        self.await_results(&answer, &mut results).await?;
        let has_pending = answer.calls.iter().any(|call| call.state == CallState::Pending);
        self.remember(answer, &results);
        Ok(has_pending)
    }

    /// Sends the results that came before their turn, in order of arrival, and gives them. Those of hidden calls are for
    /// the model only.
    fn show_known_results(&mut self, answer: &ModelAnswer) -> Result<Vec<(ToolCallId, ToolResult)>, Halt> {
        let known_results = std::mem::take(&mut self.known_results);
        for (id, result) in &known_results {
            let is_shown = |call: &AnsweredCall| call.id == *id && call.state != CallState::Hidden;
            if answer.calls.iter().any(is_shown) {
                self.emitter.result(id, result.clone())?;
            }
        }
        Ok(known_results)
    }

    /// Adds the step to what the model is asked next.
    fn remember(&mut self, answer: ModelAnswer, results: &[(ToolCallId, ToolResult)]) {
        if answer.text.trim().is_empty() && answer.calls.is_empty() {
            return;
        }
        let max_bytes = self.setup.agent.tool_result_max_bytes;
        let calls: Vec<ToolCall> = answer.calls.iter().map(AnsweredCall::to_tool_call).list();
        let answers = calls.iter().map(|call| {
            let found = results
                .iter()
                .find(|(id, _)| *id == call.id)
                .map(|(_, result)| result.clone());
            let found = found.unwrap_or_else(ToolResult::interrupted);
            let mut told = prompt::model_result(call, &found, max_bytes);
            told.images = tool_result::model_images(&found.content);
            told
        });
        let answers: Vec<_> = answers.list();
        self.conversation.push(ModelMessage::Assistant {
            text: answer.text,
            tool_calls: calls.iter().map(prompt::model_call).list(),
            vendor_state: answer.vendor_state,
        });
        if !answers.is_empty() {
            self.conversation.push(ModelMessage::ToolResults(answers));
        }
    }

    /// The upstream ended a step of its own and goes on: ours ends with it.
    pub(super) fn end_upstream_step(&mut self, answer: &mut ModelAnswer) -> Result<(), Halt> {
        let ended = std::mem::take(answer);
        let mut results = self.show_known_results(&ended)?;
        for id in self.emitter.unanswered() {
            self.control.mailbox.withdraw(&id);
            self.emitter.result(&id, ToolResult::interrupted())?;
            results.push((id, ToolResult::interrupted()));
        }
        self.remember(ended, &results);
        self.emitter.end_step()?;
        self.emitter.begin_step()?;
        Ok(())
    }
}
