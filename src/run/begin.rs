//! The start of a run: its start batch, and the conversation that comes of it.

use futures::future::join;

use super::batch::stored;
use super::ports::{EventSink, IdSource, Level, Log, Ports};
use super::{Run, RunRefusal, boundary, prompt, server_calls};
use crate::protocol::event::RunErrorCode;
use crate::protocol::id::AgentId;
use crate::protocol::message::{Message, MessageBody};
use crate::provider::{ModelMessage, codec};
use crate::store::{BeginRun, Begun, Persistence};

/// Grace beyond a run's own limits before its row reads as failed, in milliseconds. Source: D12.
pub(super) const DEADLINE_GRACE_MS: u64 = 60_000;

impl<P: Ports, S: EventSink> Run<'_, P, S> {
    /// The start batch and the conversation it gives; MCP servers are asked for their tools meanwhile.
    pub(super) async fn begin(&mut self) -> Result<(), RunRefusal> {
        let servers = self.servers.clone();
        let wait_ms = self.setup.agent.first_response_wait_ms;
        let (messages, listings) = join(self.history(), server_calls::listings(&servers, wait_ms)).await;
        let mut messages = messages?;
        self.keep_boundary(&mut messages);
        if self.equip(listings).is_err() {
            self.forget().await;
            return Err(RunRefusal::UpstreamRefused(RunErrorCode::UpstreamError));
        }
        if !prompt::has_question(&messages) {
            self.forget().await;
            return Err(RunRefusal::NothingToAnswer);
        }
        let pending = self
            .persistent
            .as_ref()
            .map_or(&[][..], |run| &run.pending_tool_call_ids);
        let max_bytes = self.setup.agent.tool_result_max_bytes;
        self.conversation = prompt::conversation(messages, pending, max_bytes);
        self.warn_of_parts();
        Ok(())
    }

    /// The messages the conversation is made of; of a stored run, what its start batch finds.
    async fn history(&mut self) -> Result<Vec<Message>, RunRefusal> {
        let persistence = self.setup.persistence.clone();
        let (Some(store), true) = (self.store.clone(), persistence != Persistence::Stateless) else {
            return Ok(self.take_messages());
        };
        let (input, agent) = (&self.setup.input, &self.setup.agent);
        let begin = BeginRun {
            run_id: input.run_id.clone(),
            thread_id: input.thread_id.clone(),
            agent_id: AgentId::new(agent.id.as_str()),
            object: self.setup.object,
            persistence,
            read_only: input.forwarded_props.read_only,
            incoming: input.messages.clone(),
            last_messages: input.forwarded_props.last_messages.unwrap_or(agent.last_messages),
            now_ms: self.started_ms,
            deadline_ms: self
                .started_ms
                .saturating_add(agent.run_timeout_ms)
                .saturating_add(DEADLINE_GRACE_MS),
            incarnation: self.ports.ids().token(),
            quota: self.setup.quota,
        };
        let begun = stored(self.ports, &self.setup.input.run_id, "start", || {
            store.begin_run(begin.clone())
        })
        .await;
        match begun.map_err(|_| RunRefusal::StorageUnavailable)? {
            Begun::Stateless => Ok(self.take_messages()),
            Begun::ForeignThread => Err(RunRefusal::ForeignThread),
            Begun::Exhausted(exhausted) => Err(RunRefusal::Exhausted(exhausted)),
            Begun::Conflict { status, thread_id } => Err(RunRefusal::Conflict { status, thread_id }),
            Begun::Persistent(mut run) => {
                let messages = std::mem::take(&mut run.model_input);
                self.persistent = Some(run);
                Ok(messages)
            }
        }
    }

    /// The messages of a run that stores none of them. Those that are system text stay: every step says them.
    fn take_messages(&mut self) -> Vec<Message> {
        let mut taken = Vec::new();
        for message in std::mem::take(&mut self.setup.input.messages) {
            match message.body {
                MessageBody::System { .. } | MessageBody::Developer { .. } => &mut self.setup.input.messages,
                MessageBody::User { .. }
                | MessageBody::Assistant { .. }
                | MessageBody::Tool { .. }
                | MessageBody::Activity { .. }
                | MessageBody::Reasoning { .. } => &mut taken,
            }
            .push(message);
        }
        taken
    }

    /// What the agent does not take from clients is left out, and the log says so.
    fn keep_boundary(&self, messages: &mut [Message]) {
        let (agent, input) = (&self.setup.agent, &self.setup.input);
        let mut left_out = vec![("media", boundary::admit_media(messages, &agent.media_addresses))];
        if !agent.allow_client_instructions {
            left_out.push(("instructions", prompt::client_instructions(input).count()));
        }
        for (what, count) in left_out.into_iter().filter(|(_, count)| *count > 0) {
            let members: [(&'static str, &dyn std::fmt::Display); 3] =
                [("runId", &input.run_id), ("what", &what), ("count", &count)];
            self.ports.log().line(Level::Warn, "input_left_out", &members);
        }
    }

    /// Media the upstream has no place for are left out, not refused (AG-UI IN-4).
    fn warn_of_parts(&self) {
        let (codec, target) = (codec(self.setup.target.wire), &self.setup.target);
        let parts = self.conversation.iter().flat_map(|message| match message {
            ModelMessage::User { parts } => parts.as_slice(),
            ModelMessage::Assistant { .. } | ModelMessage::ToolResults(_) => &[],
        });
        for part in parts {
            if let Some(kind) = part.medium().filter(|_| !codec.takes(target, part)) {
                let run_id = &self.setup.input.run_id;
                let members: [(&'static str, &dyn std::fmt::Display); 2] =
                    [("runId", run_id), ("kind", &kind)];
                self.ports
                    .log()
                    .line(Level::Warn, "content_part_skipped", &members);
            }
        }
    }

    /// A run refused before its stream does not use up its id (D12).
    pub(super) async fn forget(&self) {
        if let (Some(store), Some(run)) = (&self.store, &self.persistent) {
            let _ = stored(self.ports, &self.setup.input.run_id, "forget", || {
                store.forget_run(run)
            })
            .await;
        }
    }
}
