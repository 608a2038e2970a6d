//! Keeping where a run stands, and going on from there after a reset (contract 8).

use super::answer::{CallState, ModelAnswer};
use super::begin::DEADLINE_GRACE_MS;
use super::checkpoint::{Checkpoint, Position, Segments};
use super::conclude::Finish;
use super::emitter::Emitter;
use super::halt::Halt;
use super::journal::Kept;
use super::keeper::Keeper;
use super::mailbox::Delivery;
use super::pace::WaitFor;
use super::ports::{Clock, EventSink, Level, Log, ObjectStorage, Ports, StorageFault};
use super::server_calls;
use super::{Run, RunControl, RunEnd, RunRefusal, RunSetup};
use crate::list::List;
use crate::protocol::event::RunErrorCode;
use crate::protocol::id::ToolCallId;
use crate::protocol::tool::ToolResult;
use crate::store::{EndRun, Persistence, Quota, RunStatus};
use crate::tool::toolbox::ToolOwner;

/// How long a run that starts again waits for the database between its attempts, in milliseconds.
const DATABASE_AWAY_MS: u64 = 10_000;

/// What a run goes on with.
#[derive(Debug, Clone, PartialEq)]
pub struct Resumption {
    /// Where it stood.
    pub checkpoint: Checkpoint,
    /// Every result that was kept, in order of arrival.
    pub results: Vec<(ToolCallId, ToolResult)>,
    /// Whether it ends there instead, as interrupted.
    pub is_given_up: bool,
}

impl RunControl {
    /// The control of a run that goes on, or is over: it knows the calls and results that were kept.
    pub fn restored(kept: &Kept) -> Self {
        let control = Self::default();
        control.mailbox.restore(kept.calls.clone(), &kept.results);
        control
    }

    /// Takes a posted result. Of a durable run it is kept first: what was acknowledged is not forgotten (contract 3).
    ///
    /// # Errors
    /// [`StorageFault`]: nothing was taken.
    pub fn deliver<K: ObjectStorage>(
        &self,
        keeper: &Keeper<K>,
        id: &ToolCallId,
        result: ToolResult,
    ) -> Result<Delivery, StorageFault> {
        if self.mailbox.judge(id, &result) == Delivery::Accepted {
            keeper.keep_result(id, &result, true)?;
        }
        Ok(self.mailbox.deliver(id, result))
    }
}

/// Goes on to the end; `control` is [`RunControl::restored`].
pub async fn resume<P: Ports, S: EventSink>(
    setup: RunSetup,
    resumption: Resumption,
    ports: &P,
    control: &RunControl,
    sink: S,
) -> RunEnd {
    let Resumption {
        checkpoint,
        results,
        is_given_up,
    } = resumption;
    let (mut run, position) = Run::restored(setup, checkpoint, ports, control, sink);
    let (step, answer) = match position {
        Position::Starting => {
            let outcome = run.start_again().await;
            return run.conclude(outcome).await;
        }
        Position::Ending(conclusion) => {
            control.mailbox.close();
            return run.end(conclusion).await;
        }
        Position::Asking { step } => (step, None),
        Position::Answering { step, answer } => (step, Some(answer)),
    };
    if let Some(answer) = &answer {
        let is_of_step = |(id, _): &(ToolCallId, _)| answer.calls.iter().any(|call| call.id == *id);
        run.kept_results = results.into_iter().filter(is_of_step).list();
    }
    let outcome = if is_given_up {
        run.interrupted()
    } else {
        run.go_on(step, answer).await
    };
    run.conclude(outcome).await
}

impl<'a, P: Ports, S: EventSink> Run<'a, P, S> {
    fn restored(
        setup: RunSetup,
        checkpoint: Checkpoint,
        ports: &'a P,
        control: &'a RunControl,
        sink: S,
    ) -> (Self, Position) {
        let ids = (setup.input.thread_id.clone(), setup.input.run_id.clone());
        let emitter = Emitter::resumed(sink, ports.ids(), ids, checkpoint.emitter);
        let mut run = Self::new(setup, ports, control, emitter);
        run.pace.resume(checkpoint.work_left_ms);
        run.persistent = checkpoint.persistent;
        run.conversation = checkpoint.conversation;
        run.known_results = checkpoint.known_results;
        run.usage = checkpoint.usage;
        run.counts = checkpoint.counts;
        run.is_shortened = checkpoint.is_shortened;
        run.started_ms = checkpoint.started_ms;
        (run, checkpoint.position)
    }

    /// Keeps a durable run before its start batch, if that gives it a row: without one nobody would find it again.
    pub(super) fn keep_start(&mut self) {
        let has_row = self.store.is_some()
            && self.setup.persistence != Persistence::Stateless
            && !self.setup.input.forwarded_props.read_only;
        if has_row && self.ports.keeper().run().is_durable() {
            self.keep(|| Position::Starting);
        }
    }

    /// Sends the start batch again, which finds what it has written. Who asked for the run had no answer, and finds it by
    /// its row.
    async fn start_again(&mut self) -> Result<Finish, Halt> {
        self.emitter.start()?;
        // It was let in, and must not be stopped by what it has used itself.
        self.setup.quota = Quota::default();
        while let Err(refusal) = self.begin().await {
            if refusal != RunRefusal::StorageUnavailable {
                return Err(Halt::Failed(RunErrorCode::RunInterrupted));
            }
            let pause = self.ports.clock().sleep(DATABASE_AWAY_MS);
            let work = WaitFor::Work { until_ms: None };
            self.pace.wait(&mut self.emitter, work, pause).await?;
        }
        if self.persistent.is_none() {
            return Err(Halt::Failed(RunErrorCode::RunInterrupted));
        }
        self.renew_row().await;
        self.keep(|| Position::Asking { step: 1 });
        self.steps(1).await
    }

    fn interrupted(&mut self) -> Result<Finish, Halt> {
        self.emitter.start()?;
        Err(Halt::Failed(RunErrorCode::RunInterrupted))
    }

    async fn go_on(&mut self, step: u32, answer: Option<ModelAnswer>) -> Result<Finish, Halt> {
        self.emitter.start()?;
        self.renew_row().await;
        let wait_ms = self.setup.agent.first_response_wait_ms;
        let listings = server_calls::listings(&self.servers, wait_ms).await;
        if self.equip(listings).is_err() {
            return Err(Halt::Failed(RunErrorCode::UpstreamError));
        }
        let Some(answer) = answer else {
            return self.steps(step).await;
        };
        self.refuse_repetition(&answer);
        match self.finish_step(step, answer).await? {
            Some(finish) => Ok(finish),
            None => self.steps(step.saturating_add(1)).await,
        }
    }

    /// The row's deadline was counted without the time the object was away.
    async fn renew_row(&mut self) {
        let now_ms = self.pace.now_ms();
        let waits = self.control.mailbox.pending();
        let until_ms = waits.iter().map(|call| call.expires_at_ms).max();
        self.is_parked = until_ms.is_some();
        let status = match until_ms {
            Some(_) => RunStatus::Waiting,
            None => RunStatus::Running,
        };
        let work_ms = self.pace.work_left_ms().saturating_add(DEADLINE_GRACE_MS);
        let deadline_ms = until_ms.unwrap_or(now_ms).max(now_ms).saturating_add(work_ms);
        self.mark(status, deadline_ms).await;
    }

    /// Calls that were under way and must not be made twice are answered with an error.
    fn refuse_repetition(&mut self, answer: &ModelAnswer) {
        for call in &answer.calls {
            let is_open =
                call.state == CallState::Server && !self.kept_results.iter().any(|(id, _)| *id == call.id);
            if is_open && !self.may_repeat(&call.name) {
                let result = ToolResult::interrupted();
                self.note_kept(self.ports.keeper().keep_result(&call.id, &result, false));
                self.kept_results.push((call.id.clone(), result));
            }
        }
    }

    fn may_repeat(&self, name: &str) -> bool {
        match self.toolbox.owner(name) {
            Some(ToolOwner::Native(_)) => true,
            Some(ToolOwner::Http(tool)) => tool.idempotent,
            Some(ToolOwner::Mcp { server, .. }) => self
                .servers
                .get(server)
                .is_some_and(|server| server.server().idempotent),
            Some(ToolOwner::Frontend) | None => false,
        }
    }

    /// Keeps where the run stands, or what is stored of it if it is lost.
    pub(super) fn keep(&mut self, position: impl FnOnce() -> Position) {
        let keeper = self.ports.keeper();
        let kept = if keeper.run().is_durable() {
            let committed = self.emitter.commit();
            committed.and_then(|event_count| keeper.keep_checkpoint(self.checkpoint(event_count, position())))
        } else {
            self.segments()
                .map_or(Ok(()), |segments| keeper.keep_segments(segments))
        };
        self.note_kept(kept);
    }

    fn checkpoint(&self, event_count: u64, position: Position) -> Checkpoint {
        Checkpoint {
            event_count,
            position,
            emitter: self.emitter.state(),
            persistent: self.persistent.clone(),
            conversation: self.conversation.clone(),
            known_results: self.known_results.clone(),
            usage: self.usage.clone(),
            counts: self.counts,
            is_shortened: self.is_shortened,
            started_ms: self.started_ms,
            work_left_ms: self.pace.work_left_ms(),
        }
    }

    fn segments(&self) -> Option<Segments> {
        let run = self.persistent.clone().filter(|run| !run.read_only)?;
        let produced = self.emitter.closed();
        let end = EndRun {
            status: RunStatus::Failed,
            produced,
            pending_tool_call_ids: Vec::new(),
            usage: self.usage(),
            now_ms: self.pace.now_ms(),
        };
        (!end.produced.is_empty()).then_some(Segments { run, end })
    }

    /// A run goes on without what could not be kept.
    pub(super) fn note_kept(&self, kept: Result<(), StorageFault>) {
        if let Err(fault) = kept {
            self.ports.log().line(
                Level::Error,
                "run_not_kept",
                &[
                    ("runId", &self.setup.input.run_id),
                    ("error", &fault),
                    ("detail", &fault.0),
                ],
            );
        }
    }
}
