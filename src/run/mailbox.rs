//! The front-end calls a run waits for, and the results that came: first result wins (contract 3).
//!
//! Plain data behind a cell: the request that delivers and the loop that waits share no IO object. A result may come
//! before the loop asks for it, and is kept until it does.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Poll, Waker};

use serde::Serialize;

use crate::list::List;
use crate::protocol::id::ToolCallId;
use crate::protocol::read::record;
use crate::protocol::tool::ToolResult;

/// A registered call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExpectedCall {
    /// Id on the wire.
    pub id: ToolCallId,
    /// The tool's name.
    pub name: String,
    /// Arguments as JSON text.
    pub arguments: String,
    /// Deadline, Unix milliseconds.
    pub expires_at_ms: u64,
}

record!(ExpectedCall:
    "id" => id, "name" => name, "arguments" => arguments, "expires_at_ms" => expires_at_ms,
);

/// What became of a delivered result. Source: contract 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Delivery {
    /// The first result of the call: it counts.
    Accepted,
    /// The same value again: 200.
    Repeated,
    /// Another value: 409.
    Conflict,
    /// No such call: 404.
    Unknown,
    /// The call expired or the run is over: 410.
    Expired,
}

/// Registered calls of one run and their results.
#[derive(Debug, Default)]
pub struct ToolMailbox {
    state: RefCell<State>,
}

#[derive(Debug, Default)]
struct State {
    /// In order of registration.
    calls: Vec<Entry>,
    arrived: VecDeque<ToolCallId>,
    waker: Option<Waker>,
}

#[derive(Debug)]
struct Entry {
    call: ExpectedCall,
    phase: Phase,
}

#[derive(Debug)]
enum Phase {
    Waiting,
    Answered(ToolResult),
    Over,
}

impl State {
    fn entry(&mut self, id: &ToolCallId) -> Option<&mut Entry> {
        self.calls.iter_mut().find(|entry| entry.call.id == *id)
    }
}

impl ToolMailbox {
    /// Registers a call; must happen before its TOOL_CALL_END is sent.
    pub fn register(&self, call: ExpectedCall) {
        self.state.borrow_mut().calls.push(Entry {
            call,
            phase: Phase::Waiting,
        });
    }

    /// Registers the calls of a run that goes on, with the results that came before its object was reset. Those a
    /// client posted may be posted again; the others ended their calls.
    pub fn restore(&self, calls: Vec<ExpectedCall>, results: &[(ToolCallId, ToolResult, bool)]) {
        for call in calls {
            let known = results.iter().find(|(id, _, _)| *id == call.id);
            let phase = known.map(|(_, result, is_posted)| {
                if *is_posted {
                    Phase::Answered(result.clone())
                } else {
                    Phase::Over
                }
            });
            let id = call.id.clone();
            self.register(call);
            if let (Some(phase), Some(entry)) = (phase, self.state.borrow_mut().entry(&id)) {
                entry.phase = phase;
            }
        }
    }

    /// What [`Self::deliver`] would say.
    pub fn judge(&self, id: &ToolCallId, result: &ToolResult) -> Delivery {
        match self.state.borrow_mut().entry(id).map(|entry| &entry.phase) {
            None => Delivery::Unknown,
            Some(Phase::Answered(first)) if first == result => Delivery::Repeated,
            Some(Phase::Answered(_)) => Delivery::Conflict,
            Some(Phase::Over) => Delivery::Expired,
            Some(Phase::Waiting) => Delivery::Accepted,
        }
    }

    /// Takes a result from whoever posts it.
    pub fn deliver(&self, id: &ToolCallId, result: ToolResult) -> Delivery {
        let delivery = self.judge(id, &result);
        if delivery == Delivery::Accepted {
            let mut state = self.state.borrow_mut();
            if let Some(entry) = state.entry(id) {
                entry.phase = Phase::Answered(result);
            }
            state.arrived.push_back(id.clone());
            if let Some(waker) = state.waker.take() {
                waker.wake();
            }
        }
        delivery
    }

    /// The next result, in order of arrival.
    pub async fn next_result(&self) -> (ToolCallId, ToolResult) {
        poll_fn(|context| {
            let mut state = self.state.borrow_mut();
            while let Some(id) = state.arrived.pop_front() {
                if let Some(Entry {
                    phase: Phase::Answered(result),
                    ..
                }) = state.entry(&id)
                {
                    return Poll::Ready((id, result.clone()));
                }
            }
            state.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Calls without a result, in order of registration.
    pub fn pending(&self) -> Vec<ExpectedCall> {
        let state = self.state.borrow();
        let is_waiting = |entry: &&Entry| matches!(entry.phase, Phase::Waiting);
        let waiting = state.calls.iter().filter(is_waiting);
        waiting.map(|entry| entry.call.clone()).list()
    }

    /// The earliest deadline of a waiting call.
    pub fn next_deadline_ms(&self) -> Option<u64> {
        self.pending().iter().map(|call| call.expires_at_ms).min()
    }

    /// Ends the waiting calls whose deadline has come and names them.
    pub fn expire(&self, now_ms: u64) -> Vec<ToolCallId> {
        let due: Vec<ToolCallId> = self
            .pending()
            .into_iter()
            .filter(|call| call.expires_at_ms <= now_ms)
            .map(|call| call.id)
            .list();
        self.end_waiting(&due);
        due
    }

    /// Somebody else answered a call: what the front end says of it, or said already, does not count.
    pub fn withdraw(&self, id: &ToolCallId) {
        self.end_waiting(std::slice::from_ref(id));
    }

    /// The run is over: no waiting call takes a result any more.
    pub fn close(&self) {
        let waiting: Vec<ToolCallId> = self.pending().into_iter().map(|call| call.id).list();
        self.end_waiting(&waiting);
    }

    fn end_waiting(&self, ids: &[ToolCallId]) {
        let mut state = self.state.borrow_mut();
        for id in ids {
            if let Some(entry) = state.entry(id) {
                entry.phase = Phase::Over;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn call(id: &str, expires_at_ms: u64) -> ExpectedCall {
        let id = ToolCallId::new(id);
        ExpectedCall {
            id,
            name: "pick".to_owned(),
            arguments: "{}".to_owned(),
            expires_at_ms,
        }
    }

    fn result(content: &str) -> ToolResult {
        ToolResult {
            content: content.to_owned(),
            is_error: false,
        }
    }

    #[test]
    fn first_result_wins_and_is_kept_until_asked_for() {
        let mailbox = ToolMailbox::default();
        let (a, b) = (ToolCallId::new("a"), ToolCallId::new("b"));
        assert_eq!(mailbox.deliver(&a, result("1")), Delivery::Unknown);
        mailbox.register(call("a", 10));
        mailbox.register(call("b", 20));
        assert_eq!(mailbox.deliver(&b, result("2")), Delivery::Accepted);
        assert_eq!(mailbox.deliver(&b, result("2")), Delivery::Repeated);
        assert_eq!(mailbox.deliver(&b, result("3")), Delivery::Conflict);
        assert_eq!(
            mailbox.next_result().now_or_never(),
            Some((b.clone(), result("2")))
        );
        assert_eq!(mailbox.next_result().now_or_never(), None);
        assert_eq!(mailbox.pending(), vec![call("a", 10)]);
        assert_eq!(mailbox.deliver(&b, result("2")), Delivery::Repeated);
    }

    #[test]
    fn expired_and_closed_calls_take_nothing() {
        let mailbox = ToolMailbox::default();
        mailbox.register(call("a", 10));
        mailbox.register(call("b", 20));
        assert_eq!(mailbox.next_deadline_ms(), Some(10));
        assert_eq!(mailbox.expire(9), vec![]);
        assert_eq!(mailbox.expire(10), vec![ToolCallId::new("a")]);
        assert_eq!(
            mailbox.deliver(&ToolCallId::new("a"), result("1")),
            Delivery::Expired
        );
        mailbox.close();
        assert_eq!(
            mailbox.deliver(&ToolCallId::new("b"), result("1")),
            Delivery::Expired
        );
        assert_eq!(mailbox.next_deadline_ms(), None);
    }
}
