//! The legal-next-event machine: every event of a stream passes through one [`Lifecycle`], ours and every test's.
//!
//! It judges and remembers; it never makes ids, never waits, never repairs. The emitter asks it what is still open and
//! closes that before a terminal event.

use serde::Serialize;

use super::event::{Event, Outcome, RunFinished};
use super::id::{MessageId, RunId, ThreadId, ToolCallId};
use super::index::KeySet;
use super::json_cursor;
use super::read::{record, words};

/// Which guarantee an event would break. Source: contract 2.4, "Lifecycle guarantees".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, thiserror::Error)]
pub enum LifecycleFault {
    /// Something came before RUN_STARTED.
    #[error("the run has not started")]
    RunNotStarted,
    /// A second RUN_STARTED.
    #[error("the run has started already")]
    RunAlreadyStarted,
    /// Something came after the terminal event.
    #[error("the run has ended")]
    RunEnded,
    /// RUN_FINISHED names another run or thread than RUN_STARTED.
    #[error("the terminal event names another run or thread")]
    OtherRun,
    /// A call, a result or reasoning outside a step, or STEP_FINISHED without a step.
    #[error("no step is open")]
    NoStepOpen,
    /// A step or a terminal event while a step is open.
    #[error("a step is open")]
    StepOpen,
    /// STEP_FINISHED names another step than the open one.
    #[error("another step is open")]
    OtherStep,
    /// Something would interleave with an open text, call or reasoning, or end the run over it.
    #[error("a text, a call or reasoning is open")]
    ItemOpen,
    /// CONTENT or END of a text that is not open.
    #[error("the text is not open")]
    TextNotOpen,
    /// A reasoning event out of its place: a span has one message, and both are open.
    #[error("the reasoning is not open")]
    ReasoningNotOpen,
    /// ARGS or END of a call that is not open.
    #[error("the call is not open")]
    CallNotOpen,
    /// A delta without characters.
    #[error("the delta is empty")]
    EmptyDelta,
    /// The joined ARGS of a call that is not live are not JSON (D8).
    #[error("the arguments are not JSON")]
    ArgumentsNotJson,
    /// A second START of one call id.
    #[error("the call id was used before")]
    CallIdReused,
    /// A message id that an earlier message of this run has.
    #[error("the message id was used before")]
    MessageIdReused,
    /// A call's parent is neither the nearest text of its step nor the id its step's calls share.
    #[error("the call has another parent message")]
    OtherParent,
    /// RESULT of a call that was never made.
    #[error("the call is unknown")]
    UnknownCall,
    /// A second RESULT of one call.
    #[error("the call has a result already")]
    ResultRepeated,
    /// RESULT content that is empty or the text `null`.
    #[error("the result has no content")]
    ResultWithoutContent,
    /// A text, a call or reasoning opens in a step that has sent a RESULT.
    #[error("the step has sent a result already")]
    AfterResult,
    /// The next step or the end of the run while a call has no RESULT and is not left to the next run (D15).
    #[error("a call has no result")]
    CallUnanswered,
    /// `pendingToolCallIds` are not the calls without a RESULT, in call order.
    #[error("the pending calls are not those without a result")]
    OtherPendingCalls,
    /// Anything but RUN_ERROR after a text outside a step: only the notice of `showErrors` stands there.
    #[error("only RUN_ERROR may follow a text outside a step")]
    AfterNotice,
}

/// Judges the events of one run in order and knows what is open.
///
/// Taking a TEXT_MESSAGE_CONTENT costs one id comparison and no allocation.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Lifecycle {
    run: Option<(ThreadId, RunId)>,
    has_ended: bool,
    step: Option<OpenStep>,
    text: Option<MessageId>,
    call: Option<OpenCall>,
    reasoning: Option<OpenReasoning>,
    /// A text was opened outside a step: the run can only fail now.
    has_notice: bool,
    /// Calls without a RESULT, in call order. All are of one step: the next cannot start before they are answered.
    unanswered: Vec<ToolCallId>,
    is_pending_allowed: bool,
    live_calls: KeySet<ToolCallId>,
    call_ids: KeySet<ToolCallId>,
    message_ids: KeySet<MessageId>,
}

record!(Lifecycle:
    "run" => run = None, "has_ended" => has_ended, "step" => step = None, "text" => text = None, "call" => call = None,
    "reasoning" => reasoning = None, "has_notice" => has_notice, "unanswered" => unanswered,
    "is_pending_allowed" => is_pending_allowed, "live_calls" => live_calls, "call_ids" => call_ids,
    "message_ids" => message_ids,
);

#[derive(Debug, Clone, PartialEq, Serialize)]
struct OpenStep {
    name: String,
    /// Parent of the step's next call: its nearest text, else the fresh id its calls share.
    parent: Option<MessageId>,
    has_result: bool,
}

record!(OpenStep: "name" => name, "parent" => parent = None, "has_result" => has_result);

#[derive(Debug, Clone, PartialEq, Serialize)]
struct OpenReasoning {
    id: MessageId,
    message: ReasoningMessage,
}

record!(OpenReasoning: "id" => id, "message" => message);

/// Where the one message of a span is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
enum ReasoningMessage {
    Ahead,
    Open,
    Ended,
}

words!(ReasoningMessage: "Ahead" => Ahead, "Open" => Open, "Ended" => Ended);

#[derive(Debug, Clone, PartialEq, Serialize)]
struct OpenCall {
    id: ToolCallId,
    /// Joined so far; stays empty for a live call.
    arguments: String,
    is_live: bool,
}

record!(OpenCall: "id" => id, "arguments" => arguments, "is_live" => is_live);

impl Lifecycle {
    /// A stream without events.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event.
    ///
    /// # Errors
    /// [`LifecycleFault`] when the event may not come now; the machine stays as it was.
    pub fn check(&mut self, event: &Event) -> Result<(), LifecycleFault> {
        self.check_phase(event)?;
        match event {
            Event::TextMessageContent { message_id, delta } => {
                require(
                    self.text.as_ref() == Some(message_id),
                    LifecycleFault::TextNotOpen,
                )?;
                require(!delta.is_empty(), LifecycleFault::EmptyDelta)
            }
            Event::RunStarted { thread_id, run_id } => {
                self.run = Some((thread_id.clone(), run_id.clone()));
                Ok(())
            }
            Event::RunFinished(finished) => self.finish_run(finished),
            Event::RunError { .. } => self.fail_run(),
            Event::StepStarted { step_name } => self.start_step(step_name),
            Event::StepFinished { step_name } => self.finish_step(step_name),
            Event::TextMessageStart { message_id } => self.start_text(message_id),
            Event::TextMessageEnd { message_id } => {
                require(
                    self.text.as_ref() == Some(message_id),
                    LifecycleFault::TextNotOpen,
                )?;
                self.text = None;
                Ok(())
            }
            Event::ReasoningStart { message_id } => self.start_reasoning(message_id),
            Event::ReasoningMessageStart { message_id } => {
                self.move_reasoning(message_id, ReasoningMessage::Ahead, ReasoningMessage::Open)
            }
            Event::ReasoningMessageContent { message_id, delta } => {
                self.move_reasoning(message_id, ReasoningMessage::Open, ReasoningMessage::Open)?;
                require(!delta.is_empty(), LifecycleFault::EmptyDelta)
            }
            Event::ReasoningMessageEnd { message_id } => {
                self.move_reasoning(message_id, ReasoningMessage::Open, ReasoningMessage::Ended)
            }
            Event::ReasoningEnd { message_id } => {
                self.move_reasoning(message_id, ReasoningMessage::Ended, ReasoningMessage::Ended)?;
                self.reasoning = None;
                Ok(())
            }
            Event::ToolCallStart {
                tool_call_id,
                parent_message_id,
                ..
            } => self.start_call(tool_call_id, parent_message_id),
            Event::ToolCallArgs { tool_call_id, delta } => self.take_arguments(tool_call_id, delta),
            Event::ToolCallEnd { tool_call_id } => self.end_call(tool_call_id),
            Event::ToolCallResult {
                message_id,
                tool_call_id,
                content,
            } => self.take_result(message_id, tool_call_id, content),
        }
    }

    /// Declares a call whose arguments are streamed as they arrive: they may end cut or invalid (D8).
    pub fn mark_live(&mut self, id: &ToolCallId) {
        self.live_calls.insert(id.clone());
    }

    /// Declares that this run leaves its unanswered calls to the next run (D15): an older peer's RUN_FINISHED cannot
    /// list them, and RUN_ERROR may still follow the step that made them.
    pub fn allow_pending(&mut self) {
        self.is_pending_allowed = true;
    }

    /// Whether RUN_STARTED was taken.
    pub fn has_started(&self) -> bool {
        self.run.is_some()
    }

    /// Whether the terminal event was taken.
    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The open text.
    pub fn open_text(&self) -> Option<&MessageId> {
        self.text.as_ref()
    }

    /// The open span of reasoning.
    pub fn open_reasoning(&self) -> Option<&MessageId> {
        self.reasoning.as_ref().map(|reasoning| &reasoning.id)
    }

    /// The open call.
    pub fn open_tool_call(&self) -> Option<&ToolCallId> {
        self.call.as_ref().map(|call| &call.id)
    }

    /// The open step.
    pub fn open_step(&self) -> Option<&str> {
        self.step.as_ref().map(|step| step.name.as_str())
    }

    /// Calls without a RESULT in call order, the open one included.
    pub fn unanswered_calls(&self) -> &[ToolCallId] {
        &self.unanswered
    }

    /// The END of what is open now. At most one item is open at a time; reasoning has two ends, its message's first.
    ///
    /// Before a terminal event: this until there is none, then an error RESULT for each of [`Self::unanswered_calls`], then
    /// [`Self::closing_step`].
    pub fn closing_item(&self) -> Option<Event> {
        let text_end = |id: &MessageId| Event::TextMessageEnd {
            message_id: id.clone(),
        };
        let call_end = |call: &OpenCall| Event::ToolCallEnd {
            tool_call_id: call.id.clone(),
        };
        let reasoning_end = |reasoning: &OpenReasoning| {
            let message_id = reasoning.id.clone();
            match reasoning.message {
                ReasoningMessage::Open => Event::ReasoningMessageEnd { message_id },
                ReasoningMessage::Ahead | ReasoningMessage::Ended => Event::ReasoningEnd { message_id },
            }
        };
        self.text
            .as_ref()
            .map(text_end)
            .or_else(|| self.call.as_ref().map(call_end))
            .or_else(|| self.reasoning.as_ref().map(reasoning_end))
    }

    /// The STEP_FINISHED of the open step.
    pub fn closing_step(&self) -> Option<Event> {
        self.step.as_ref().map(|step| Event::StepFinished {
            step_name: step.name.clone(),
        })
    }

    fn check_phase(&self, event: &Event) -> Result<(), LifecycleFault> {
        require(!self.has_ended, LifecycleFault::RunEnded)?;
        let is_start = matches!(event, Event::RunStarted { .. });
        match (&self.run, is_start) {
            (None, false) => Err(LifecycleFault::RunNotStarted),
            (Some(_), true) => Err(LifecycleFault::RunAlreadyStarted),
            (None, true) | (Some(_), false) => Ok(()),
        }
    }

    fn require_no_item(&self) -> Result<(), LifecycleFault> {
        require(
            self.text.is_none() && self.call.is_none() && self.reasoning.is_none(),
            LifecycleFault::ItemOpen,
        )
    }

    fn finish_run(&mut self, finished: &RunFinished) -> Result<(), LifecycleFault> {
        self.require_no_item()?;
        require(self.step.is_none(), LifecycleFault::StepOpen)?;
        require(!self.has_notice, LifecycleFault::AfterNotice)?;
        let is_same = self.run.as_ref().is_some_and(|(thread_id, run_id)| {
            *thread_id == finished.thread_id && *run_id == finished.run_id
        });
        require(is_same, LifecycleFault::OtherRun)?;
        match &finished.outcome {
            Some(Outcome::Success {
                pending_tool_call_ids,
            }) => require(
                *pending_tool_call_ids == self.unanswered,
                LifecycleFault::OtherPendingCalls,
            )?,
            Some(Outcome::Cancelled) => {
                require(self.unanswered.is_empty(), LifecycleFault::CallUnanswered)?;
            }
            None => require(
                self.unanswered.is_empty() || self.is_pending_allowed,
                LifecycleFault::CallUnanswered,
            )?,
        }
        self.has_ended = true;
        Ok(())
    }

    fn fail_run(&mut self) -> Result<(), LifecycleFault> {
        self.require_no_item()?;
        require(self.step.is_none(), LifecycleFault::StepOpen)?;
        require(
            self.unanswered.is_empty() || self.is_pending_allowed,
            LifecycleFault::CallUnanswered,
        )?;
        self.has_ended = true;
        Ok(())
    }

    fn start_step(&mut self, name: &str) -> Result<(), LifecycleFault> {
        self.require_no_item()?;
        require(!self.has_notice, LifecycleFault::AfterNotice)?;
        require(self.step.is_none(), LifecycleFault::StepOpen)?;
        require(self.unanswered.is_empty(), LifecycleFault::CallUnanswered)?;
        self.step = Some(OpenStep {
            name: name.to_owned(),
            parent: None,
            has_result: false,
        });
        Ok(())
    }

    fn finish_step(&mut self, name: &str) -> Result<(), LifecycleFault> {
        self.require_no_item()?;
        let open = self.open_step().ok_or(LifecycleFault::NoStepOpen)?;
        require(open == name, LifecycleFault::OtherStep)?;
        self.step = None;
        Ok(())
    }

    fn start_text(&mut self, id: &MessageId) -> Result<(), LifecycleFault> {
        self.require_no_item()?;
        require(!self.has_notice, LifecycleFault::AfterNotice)?;
        let has_result = self.step.as_ref().is_some_and(|step| step.has_result);
        require(!has_result, LifecycleFault::AfterResult)?;
        require(
            !self.message_ids.contains(id.as_str()),
            LifecycleFault::MessageIdReused,
        )?;
        match &mut self.step {
            Some(step) => step.parent = Some(id.clone()),
            None => {
                require(self.unanswered.is_empty(), LifecycleFault::CallUnanswered)?;
                self.has_notice = true;
            }
        }
        self.message_ids.insert(id.clone());
        self.text = Some(id.clone());
        Ok(())
    }

    fn start_reasoning(&mut self, id: &MessageId) -> Result<(), LifecycleFault> {
        self.require_no_item()?;
        let step = self.step.as_ref().ok_or(LifecycleFault::NoStepOpen)?;
        require(!step.has_result, LifecycleFault::AfterResult)?;
        require(
            self.message_ids.insert(id.clone()),
            LifecycleFault::MessageIdReused,
        )?;
        self.reasoning = Some(OpenReasoning {
            id: id.clone(),
            message: ReasoningMessage::Ahead,
        });
        Ok(())
    }

    fn move_reasoning(
        &mut self,
        id: &MessageId,
        from: ReasoningMessage,
        to: ReasoningMessage,
    ) -> Result<(), LifecycleFault> {
        let open = self.reasoning.as_mut();
        let open = open.filter(|open| open.id == *id && open.message == from);
        open.ok_or(LifecycleFault::ReasoningNotOpen)?.message = to;
        Ok(())
    }

    fn start_call(&mut self, id: &ToolCallId, parent: &MessageId) -> Result<(), LifecycleFault> {
        self.require_no_item()?;
        let step = self.step.as_mut().ok_or(LifecycleFault::NoStepOpen)?;
        require(!step.has_result, LifecycleFault::AfterResult)?;
        require(!self.call_ids.contains(id.as_str()), LifecycleFault::CallIdReused)?;
        match &step.parent {
            Some(expected) => require(expected == parent, LifecycleFault::OtherParent)?,
            None => {
                require(
                    self.message_ids.insert(parent.clone()),
                    LifecycleFault::MessageIdReused,
                )?;
                step.parent = Some(parent.clone());
            }
        }
        self.call_ids.insert(id.clone());
        self.unanswered.push(id.clone());
        self.call = Some(OpenCall {
            id: id.clone(),
            arguments: String::new(),
            is_live: self.live_calls.contains(id.as_str()),
        });
        Ok(())
    }

    fn open_call(&mut self, id: &ToolCallId) -> Result<&mut OpenCall, LifecycleFault> {
        self.call
            .as_mut()
            .filter(|call| call.id == *id)
            .ok_or(LifecycleFault::CallNotOpen)
    }

    fn take_arguments(&mut self, id: &ToolCallId, delta: &str) -> Result<(), LifecycleFault> {
        let call = self.open_call(id)?;
        require(!delta.is_empty(), LifecycleFault::EmptyDelta)?;
        if !call.is_live {
            call.arguments.push_str(delta);
        }
        Ok(())
    }

    fn end_call(&mut self, id: &ToolCallId) -> Result<(), LifecycleFault> {
        let call = self.open_call(id)?;
        let is_json = || json_cursor::is_json(&call.arguments);
        require(call.is_live || is_json(), LifecycleFault::ArgumentsNotJson)?;
        self.call = None;
        Ok(())
    }

    fn take_result(
        &mut self,
        message_id: &MessageId,
        id: &ToolCallId,
        content: &str,
    ) -> Result<(), LifecycleFault> {
        self.require_no_item()?;
        let step = self.step.as_mut().ok_or(LifecycleFault::NoStepOpen)?;
        require(self.call_ids.contains(id.as_str()), LifecycleFault::UnknownCall)?;
        let index = self.unanswered.iter().position(|open| open == id);
        let index = index.ok_or(LifecycleFault::ResultRepeated)?;
        let has_content = !content.is_empty() && content != "null";
        require(has_content, LifecycleFault::ResultWithoutContent)?;
        require(
            self.message_ids.insert(message_id.clone()),
            LifecycleFault::MessageIdReused,
        )?;
        self.unanswered.remove(index);
        step.has_result = true;
        Ok(())
    }
}

fn require(holds: bool, fault: LifecycleFault) -> Result<(), LifecycleFault> {
    if holds { Ok(()) } else { Err(fault) }
}

#[cfg(test)]
#[path = "lifecycle_tests.rs"]
mod tests;
