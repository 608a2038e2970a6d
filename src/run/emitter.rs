//! The one door to the stream: every event of a run passes the lifecycle here, and what passes is what will be stored.

use futures::channel::oneshot;
use serde::Serialize;

use super::RunRefusal;
use super::ports::{EventSink, IdSource, StorageFault, ViewersGone};
use super::transcript::Transcript;
use crate::protocol::event::Event;
use crate::protocol::id::{MessageId, RunId, ThreadId, ToolCallId};
use crate::protocol::lifecycle::{Lifecycle, LifecycleFault};
use crate::protocol::message::Message;
use crate::protocol::read::record;
use crate::protocol::tool::{ToolCall, ToolResult};

/// Sends the events of one run in their legal order.
pub struct Emitter<'a, S, I> {
    sink: S,
    ids: &'a I,
    head: Option<oneshot::Sender<Result<(), RunRefusal>>>,
    thread_id: ThreadId,
    run_id: RunId,
    lifecycle: Lifecycle,
    transcript: Transcript,
    step: u32,
    /// Parent of this step's calls: the nearest text segment, else an id shared by them (contract 2.4).
    call_parent: Option<MessageId>,
    has_output: bool,
    last_sent_ms: u64,
    is_dirty: bool,
}

type Emitted = Result<(), LifecycleFault>;

/// What an emitter remembers of its stream, as data.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EmitterState {
    lifecycle: Lifecycle,
    transcript: Transcript,
    step: u32,
    call_parent: Option<MessageId>,
}

record!(EmitterState:
    "lifecycle" => lifecycle, "transcript" => transcript, "step" => step, "callParent" => call_parent = None,
);

impl EmitterState {
    /// What was said so far.
    pub fn produced(&self) -> &[Message] {
        self.transcript.messages()
    }
}

impl<'a, S: EventSink, I: IdSource> Emitter<'a, S, I> {
    /// A closed door: nothing is sent before [`Self::open`].
    pub fn new(
        sink: S,
        ids: &'a I,
        head: oneshot::Sender<Result<(), RunRefusal>>,
        (thread_id, run_id): (ThreadId, RunId),
    ) -> Self {
        Self {
            sink,
            ids,
            head: Some(head),
            thread_id,
            run_id,
            lifecycle: Lifecycle::default(),
            transcript: Transcript::default(),
            step: 0,
            call_parent: None,
            has_output: false,
            last_sent_ms: 0,
            is_dirty: false,
        }
    }

    /// Goes on where another emitter was. The answer to who started the run is a stream: it is too late for another.
    pub fn resumed(sink: S, ids: &'a I, (thread_id, run_id): (ThreadId, RunId), state: EmitterState) -> Self {
        Self {
            sink,
            ids,
            head: None,
            thread_id,
            run_id,
            lifecycle: state.lifecycle,
            transcript: state.transcript,
            step: state.step,
            call_parent: state.call_parent,
            has_output: false,
            last_sent_ms: 0,
            is_dirty: false,
        }
    }

    /// Where it is now.
    pub fn state(&self) -> EmitterState {
        EmitterState {
            lifecycle: self.lifecycle.clone(),
            transcript: self.transcript.clone(),
            step: self.step,
            call_parent: self.call_parent.clone(),
        }
    }

    /// Puts everything into the object's storage, and says how many events there are.
    ///
    /// # Errors
    /// [`StorageFault`]
    pub fn commit(&mut self) -> Result<u64, StorageFault> {
        self.sink.commit()
    }

    /// Whether the answer is a stream already.
    pub fn is_open(&self) -> bool {
        self.head.is_none()
    }

    /// A model call begins: nothing of it went out yet.
    pub fn begin_model_call(&mut self) {
        self.has_output = false;
    }

    /// Whether text, reasoning or a call of this model call went out: no attempt is repeated after that.
    pub fn has_output(&self) -> bool {
        self.has_output
    }

    /// What was said so far.
    pub fn produced(&self) -> &[Message] {
        self.transcript.messages()
    }

    /// What would be stored if the run ended here: the same, and calls without a result interrupted.
    pub fn closed(&self) -> Vec<Message> {
        let mut transcript = self.transcript.clone();
        for id in self.lifecycle.unanswered_calls() {
            transcript.add_result(self.ids.message_id(), id, ToolResult::interrupted().content);
        }
        transcript.messages().to_vec()
    }

    /// Answers by HTTP instead of a stream; nothing is sent afterwards.
    pub fn refuse(&mut self, refusal: RunRefusal) {
        if let Some(head) = self.head.take() {
            let _ = head.send(Err(refusal));
        }
    }

    /// Starts the stream: RUN_STARTED and the step begun meanwhile. Source: D14.
    pub fn open(&mut self) -> Emitted {
        let Some(head) = self.head.take() else {
            return Ok(());
        };
        // A client that left before the head is noticed at the first flush.
        let _ = head.send(Ok(()));
        self.start()
    }

    /// RUN_STARTED, unless it was sent.
    pub fn start(&mut self) -> Emitted {
        if self.lifecycle.has_started() {
            return Ok(());
        }
        self.send(Event::RunStarted {
            thread_id: self.thread_id.clone(),
            run_id: self.run_id.clone(),
        })?;
        if self.step > 0 {
            self.send_step_started()
        } else {
            Ok(())
        }
    }

    /// Begins the next step; before the stream is open its event waits for [`Self::open`].
    pub fn begin_step(&mut self) -> Emitted {
        self.step += 1;
        self.call_parent = None;
        if self.is_open() {
            self.send_step_started()
        } else {
            Ok(())
        }
    }

    /// Ends the open step, if one is.
    pub fn end_step(&mut self) -> Emitted {
        self.end_item()?;
        self.lifecycle
            .closing_step()
            .map_or(Ok(()), |event| self.send(event))
    }

    /// Sends a piece of text, in the open segment or a new one.
    pub fn text(&mut self, delta: String) -> Emitted {
        if delta.is_empty() {
            return Ok(());
        }
        self.has_output = true;
        let message_id = match self.lifecycle.open_text() {
            Some(open) => open.clone(),
            None => {
                self.end_reasoning()?;
                self.begin_text()?
            }
        };
        self.transcript.append_text(&delta);
        self.send(Event::TextMessageContent { message_id, delta })
    }

    /// Sends a piece of reasoning, in the open span or a new one.
    pub fn reasoning(&mut self, delta: String) -> Emitted {
        if delta.is_empty() {
            return Ok(());
        }
        self.has_output = true;
        let message_id = match self.lifecycle.open_reasoning() {
            Some(open) => open.clone(),
            None => {
                self.end_text()?;
                self.begin_reasoning()?
            }
        };
        self.transcript.append_reasoning(&delta);
        self.send(Event::ReasoningMessageContent { message_id, delta })
    }

    /// Ends the open text segment or span of reasoning, if one is.
    pub fn end_item(&mut self) -> Emitted {
        self.end_text()?;
        self.end_reasoning()
    }

    /// Ends the open text segment, if one is.
    pub fn end_text(&mut self) -> Emitted {
        match self.lifecycle.open_text().cloned() {
            Some(message_id) => self.send(Event::TextMessageEnd { message_id }),
            None => Ok(()),
        }
    }

    /// Says a sentence that is shown but neither stored nor given to a model (`showErrors`); after the last step, before
    /// RUN_ERROR.
    pub fn notice(&mut self, sentence: String) -> Emitted {
        self.end_item()?;
        let message_id = self.ids.message_id();
        self.send(Event::TextMessageStart {
            message_id: message_id.clone(),
        })?;
        self.send(Event::TextMessageContent {
            message_id: message_id.clone(),
            delta: sentence,
        })?;
        self.send(Event::TextMessageEnd { message_id })
    }

    /// Sends a whole call.
    pub fn call(&mut self, call: ToolCall) -> Emitted {
        self.begin_call(&call.id, &call.name, false)?;
        self.call_arguments(&call.id, call.arguments.clone())?;
        self.end_call(call)
    }

    /// Opens a call; `is_live` when its arguments follow as they arrive (D8).
    pub fn begin_call(&mut self, id: &ToolCallId, name: &str, is_live: bool) -> Emitted {
        self.end_item()?;
        self.has_output = true;
        let parent_message_id = self
            .call_parent
            .get_or_insert_with(|| self.ids.message_id())
            .clone();
        if is_live {
            self.lifecycle.mark_live(id);
        }
        let tool_call_name = name.to_owned();
        self.send(Event::ToolCallStart {
            tool_call_id: id.clone(),
            tool_call_name,
            parent_message_id,
        })
    }

    /// Sends argument text of the open call.
    pub fn call_arguments(&mut self, id: &ToolCallId, delta: String) -> Emitted {
        if delta.is_empty() {
            return Ok(());
        }
        self.send(Event::ToolCallArgs {
            tool_call_id: id.clone(),
            delta,
        })
    }

    /// Ends the open call; what will be stored of it is `call`.
    pub fn end_call(&mut self, call: ToolCall) -> Emitted {
        let id = call.id.clone();
        if let Some(parent) = self.call_parent.clone() {
            self.transcript.add_call(&parent, call);
        }
        self.send(Event::ToolCallEnd { tool_call_id: id })
    }

    /// Sends the one result of a call.
    pub fn result(&mut self, id: &ToolCallId, result: ToolResult) -> Emitted {
        self.end_item()?;
        let message_id = self.ids.message_id();
        self.transcript
            .add_result(message_id.clone(), id, result.content.clone());
        self.send(Event::ToolCallResult {
            message_id,
            tool_call_id: id.clone(),
            content: result.content,
        })
    }

    /// Calls that have no result yet, in call order.
    pub fn unanswered(&self) -> Vec<ToolCallId> {
        self.lifecycle.unanswered_calls().to_vec()
    }

    /// Leaves the unanswered calls to the next run (2.6).
    pub fn leave_pending(&mut self) {
        self.lifecycle.allow_pending();
    }

    /// Sends a terminal event; everything must be closed.
    pub fn terminal(&mut self, event: Event) -> Emitted {
        self.send(event)
    }

    /// Sends a keep-alive.
    pub fn keep_alive(&mut self) {
        self.sink.push_keep_alive();
        self.is_dirty = true;
    }

    /// When something was last handed to the viewers, Unix milliseconds.
    pub fn last_sent_ms(&self) -> u64 {
        self.last_sent_ms
    }

    /// Whether something waits for [`Self::flush`].
    pub fn is_dirty(&self) -> bool {
        self.is_dirty
    }

    /// When what was handed to the viewers must be stored, Unix milliseconds; `None` = nothing waits for that.
    pub fn store_due_ms(&self) -> Option<u64> {
        self.sink.store_due_ms()
    }

    /// Stores that.
    pub fn store(&mut self) {
        self.sink.store();
    }

    /// Hands everything to the viewers.
    ///
    /// # Errors
    /// [`ViewersGone`]
    pub async fn flush(&mut self, now_ms: u64) -> Result<(), ViewersGone> {
        if !self.is_dirty {
            return Ok(());
        }
        self.is_dirty = false;
        self.last_sent_ms = now_ms;
        self.sink.flush().await
    }

    fn begin_text(&mut self) -> Result<MessageId, LifecycleFault> {
        let message_id = self.ids.message_id();
        self.transcript.open_text(message_id.clone());
        self.call_parent = Some(message_id.clone());
        self.send(Event::TextMessageStart {
            message_id: message_id.clone(),
        })?;
        Ok(message_id)
    }

    /// A span and its one message share an id, which is the stored one.
    fn begin_reasoning(&mut self) -> Result<MessageId, LifecycleFault> {
        let message_id = self.ids.message_id();
        self.transcript.open_reasoning(message_id.clone());
        self.send(Event::ReasoningStart {
            message_id: message_id.clone(),
        })?;
        self.send(Event::ReasoningMessageStart {
            message_id: message_id.clone(),
        })?;
        Ok(message_id)
    }

    fn end_reasoning(&mut self) -> Emitted {
        let Some(message_id) = self.lifecycle.open_reasoning().cloned() else {
            return Ok(());
        };
        self.send(Event::ReasoningMessageEnd {
            message_id: message_id.clone(),
        })?;
        self.send(Event::ReasoningEnd { message_id })
    }

    fn send_step_started(&mut self) -> Emitted {
        self.send(Event::StepStarted {
            step_name: format!("step-{}", self.step),
        })
    }

    fn send(&mut self, event: Event) -> Emitted {
        self.lifecycle.check(&event)?;
        self.sink.push(&event);
        self.is_dirty = true;
        Ok(())
    }
}
