//! Arguments streamed as they arrive: one call at a time, everything else held behind it (D8).

use super::Run;
use super::answer::{AnsweredCall, CallState, ModelAnswer};
use super::halt::Halt;
use super::ports::{EventSink, Ports};
use crate::config::agents::{FrontendTools, ToolCallStreaming};
use crate::protocol::json_cursor::is_json;
use crate::protocol::tool::{ToolCall, ToolResult};
use crate::tool::toolbox::ToolOwner;

/// The live call of an answer and what waits behind it.
#[derive(Debug, Default)]
pub(super) struct LiveCalls {
    open: Option<usize>,
    held: Vec<Held>,
}

#[derive(Debug)]
enum Held {
    Text(String),
    Reasoning(String),
    Complete(usize),
}

impl LiveCalls {
    /// Keeps text back while a live call is open, or while a call is held; says whether it did.
    pub fn hold_text(&mut self, delta: &str) -> bool {
        let is_behind = self.open.is_some() || !self.held.is_empty();
        if is_behind {
            self.held.push(Held::Text(delta.to_owned()));
        }
        is_behind
    }

    /// Whether a complete call is held.
    pub fn holds(&self, slot: usize) -> bool {
        let is_it = |held: &Held| matches!(held, Held::Complete(held) if *held == slot);
        self.held.iter().any(is_it)
    }

    /// The same for reasoning.
    pub fn hold_reasoning(&mut self, delta: &str) -> bool {
        let is_behind = self.open.is_some() || !self.held.is_empty();
        if is_behind {
            self.held.push(Held::Reasoning(delta.to_owned()));
        }
        is_behind
    }
}

impl<P: Ports, S: EventSink> Run<'_, P, S> {
    /// A call was announced: it gets its id, and starts at once if it may be live.
    pub(super) fn announce(
        &mut self,
        slot: usize,
        name: String,
        answer: &mut ModelAnswer,
        live: &mut LiveCalls,
    ) -> Result<(), Halt> {
        let id = self.next_call_id();
        if live.open.is_none() && live.held.is_empty() && self.may_be_live(&name) {
            self.emitter.begin_call(&id, &name, true)?;
            live.open = Some(slot);
        }
        answer.calls.push(AnsweredCall {
            slot,
            id,
            name,
            arguments: String::new(),
            state: CallState::Open,
        });
        Ok(())
    }

    /// More argument text of a call.
    pub(super) fn add_arguments(
        &mut self,
        slot: usize,
        delta: String,
        answer: &mut ModelAnswer,
        live: &LiveCalls,
    ) -> Result<(), Halt> {
        let Some(call) = answer.calls.iter_mut().find(|call| call.slot == slot) else {
            return Ok(());
        };
        call.arguments.push_str(&delta);
        if live.open == Some(slot) {
            self.emitter.call_arguments(&call.id, delta)?;
        }
        Ok(())
    }

    /// The arguments of a call are complete: it is shown now, or behind the live call.
    pub(super) async fn complete(
        &mut self,
        slot: usize,
        answer: &mut ModelAnswer,
        live: &mut LiveCalls,
    ) -> Result<(), Halt> {
        let is_open = |call: &AnsweredCall| call.slot == slot && call.state == CallState::Open;
        if live.holds(slot) || !answer.calls.iter().any(is_open) {
            return Ok(());
        }
        match live.open {
            None => self.show_or_hold(slot, answer, live).await,
            Some(open) if open != slot => {
                live.held.push(Held::Complete(slot));
                Ok(())
            }
            Some(_) => {
                live.open = None;
                self.show_live_end(slot, answer)?;
                for held in std::mem::take(&mut live.held) {
                    match held {
                        Held::Text(delta) if live.hold_text(&delta) => {}
                        Held::Text(delta) => self.emitter.text(delta)?,
                        Held::Reasoning(delta) if live.hold_reasoning(&delta) => {}
                        Held::Reasoning(delta) => self.emitter.reasoning(delta)?,
                        Held::Complete(slot) => self.show_or_hold(slot, answer, live).await?,
                    }
                }
                Ok(())
            }
        }
    }

    /// A front end acts on a call as soon as it sees it. A run that goes on after a reset must know the call then, so it
    /// is shown when the answer is complete and kept, and whatever comes after it with it.
    async fn show_or_hold(
        &mut self,
        slot: usize,
        answer: &mut ModelAnswer,
        live: &mut LiveCalls,
    ) -> Result<(), Halt> {
        let name = answer.calls.iter().find(|call| call.slot == slot);
        let is_frontend = name.is_some_and(|call| {
            self.frontend_mode == FrontendTools::SameRun
                && matches!(self.toolbox.owner(&call.name), Some(ToolOwner::Frontend))
        });
        let is_durable = self.ports.keeper().run().is_durable();
        if is_durable && (is_frontend || !live.held.is_empty()) {
            live.held.push(Held::Complete(slot));
            return Ok(());
        }
        self.show(slot, answer).await
    }

    /// Shows what was held: the answer is complete.
    pub(super) async fn release(
        &mut self,
        answer: &mut ModelAnswer,
        live: &mut LiveCalls,
    ) -> Result<(), Halt> {
        for held in std::mem::take(&mut live.held) {
            match held {
                Held::Text(delta) => self.emitter.text(delta)?,
                Held::Reasoning(delta) => self.emitter.reasoning(delta)?,
                Held::Complete(slot) => self.show(slot, answer).await?,
            }
        }
        Ok(())
    }

    /// The upstream died over an open live call: it is closed and answered, and what was held is let go.
    pub(super) fn cut_live(&mut self, answer: &mut ModelAnswer, live: &mut LiveCalls) -> Result<(), Halt> {
        let Some(slot) = live.open.take() else {
            return Ok(());
        };
        let Some(call) = answer.calls.iter_mut().find(|call| call.slot == slot) else {
            return Ok(());
        };
        self.known_results
            .push((call.id.clone(), ToolResult::failure("The call was cut off.")));
        call.state = CallState::Settled;
        let call = ToolCall {
            id: call.id.clone(),
            name: call.name.clone(),
            arguments: "{}".to_owned(),
            encrypted_value: None,
        };
        self.emitter.end_call(call)?;
        for held in std::mem::take(&mut live.held) {
            match held {
                Held::Text(delta) => self.emitter.text(delta)?,
                Held::Reasoning(delta) => self.emitter.reasoning(delta)?,
                Held::Complete(_) => {}
            }
        }
        Ok(())
    }

    fn may_be_live(&self, name: &str) -> bool {
        self.setup.agent.tool_call_streaming == ToolCallStreaming::Live
            && match self.toolbox.owner(name) {
                Some(ToolOwner::Native(_) | ToolOwner::Http(_) | ToolOwner::Mcp { .. }) => true,
                Some(ToolOwner::Frontend) => self.frontend_mode == FrontendTools::NextRun,
                None => false,
            }
    }

    fn show_live_end(&mut self, slot: usize, answer: &mut ModelAnswer) -> Result<(), Halt> {
        let Some(call) = answer.calls.iter_mut().find(|call| call.slot == slot) else {
            return Ok(());
        };
        if call.arguments.trim().is_empty() {
            call.arguments = "{}".to_owned();
            self.emitter.call_arguments(&call.id, call.arguments.clone())?;
        }
        let (state, fault) = self.judge(&call.name, &call.arguments);
        // Its START is out already: a fault cannot hide it any more.
        let state = if let CallState::Hidden = state {
            CallState::Settled
        } else {
            state
        };
        if let Some(fault) = fault {
            self.known_results.push((call.id.clone(), fault));
        }
        let is_json = is_json(&call.arguments);
        if !is_json {
            call.arguments = "{}".to_owned();
        }
        call.state = state;
        let call = call.to_tool_call();
        self.emitter.end_call(call)?;
        Ok(())
    }
}
