//! The threads that the Mastra server of an agent keeps.

use std::rc::Rc;

use serde_json::Value;

use super::clock::PlatformClock;
use super::env;
use super::handlers::Call;
use super::refusal;
use super::reply::Answer;
use super::thread_handlers::{FoundPage, Threads, Told};
use super::upstreams::Upstreams;
use crate::api::error::ApiError;
use crate::api::reply;
use crate::config::AgentConfig;
use crate::config::agents::Memory;
use crate::protocol::id::{ResourceId, RunId, ThreadId};
use crate::protocol::thread::{MessageListRequest, NewThread, Page, Thread, ThreadListRequest, ThreadPatch};
use crate::provider::{ModelTarget, ProviderError};
use crate::run::halt::Halt;
use crate::run::kept_threads::KeptThreads;
use crate::run::ports::{Level, Log};
use crate::store::{Lookup, ThreadDetail};

/// The threads at an agent's server, as one request asks for them.
pub struct Keeper<'c> {
    call: &'c Call<'c>,
    agent: Rc<AgentConfig>,
    target: ModelTarget,
    http: Upstreams,
}

impl Keeper<'_> {
    fn threads(&self) -> KeptThreads<'_, Upstreams, PlatformClock> {
        let timeout_ms = self.agent.upstream_idle_timeout_ms;
        KeptThreads::new(&self.http, &PlatformClock, &self.target, timeout_ms)
    }
}

impl Threads for Keeper<'_> {
    fn has_cursors(&self) -> bool {
        false
    }

    fn list<'t>(&'t self, request: &'t ThreadListRequest) -> Told<'t, FoundPage> {
        Box::pin(async move {
            let page = self.call.of_server(self.threads().list(request).await)?;
            Ok((page, Vec::new()))
        })
    }

    fn create<'t>(
        &'t self,
        owner: &'t ResourceId,
        id: &'t ThreadId,
        new: &'t NewThread,
    ) -> Told<'t, Lookup<Thread>> {
        Box::pin(async move { self.call.of_server(self.threads().create(owner, id, new).await) })
    }

    fn read<'t>(
        &'t self,
        id: &'t ThreadId,
        caller: Option<&'t ResourceId>,
    ) -> Told<'t, Lookup<ThreadDetail>> {
        Box::pin(async move {
            let found = self.call.of_server(self.threads().thread(id, caller).await)?;
            Ok(match found {
                Lookup::Found(thread) => Lookup::Found(ThreadDetail {
                    thread,
                    active_runs: Vec::new(),
                }),
                Lookup::Foreign => Lookup::Foreign,
                Lookup::Unknown => Lookup::Unknown,
            })
        })
    }

    fn update<'t>(
        &'t self,
        id: &'t ThreadId,
        caller: Option<&'t ResourceId>,
        patch: &'t ThreadPatch,
    ) -> Told<'t, Lookup<Thread>> {
        Box::pin(async move {
            self.call
                .of_server(self.threads().update(id, caller, patch).await)
        })
    }

    fn delete<'t>(&'t self, id: &'t ThreadId, caller: Option<&'t ResourceId>) -> Told<'t, Lookup<()>> {
        Box::pin(async move { self.call.of_server(self.threads().delete(id, caller).await) })
    }

    fn messages<'t>(
        &'t self,
        request: &'t MessageListRequest,
        caller: Option<&'t ResourceId>,
    ) -> Told<'t, Lookup<Page<Value>>> {
        Box::pin(async move {
            self.call
                .of_server(self.threads().messages(request, caller).await)
        })
    }

    fn export<'t>(&'t self, thread: &'t Thread) -> Told<'t, Answer> {
        Box::pin(async move {
            let messages = self
                .call
                .of_server(self.threads().all_messages(&thread.id).await)?;
            let mut text = reply::thread_export_start(thread);
            text.push_str(&reply::thread_export_part(&messages, true));
            text.push_str(reply::THREAD_EXPORT_END);
            Ok(Answer::json(text))
        })
    }
}

impl Call<'_> {
    /// The threads of the server this request is about; `None` = our database has them.
    ///
    /// # Errors
    /// 503 when the agent lacks its secrets.
    pub fn kept_threads(&self) -> Result<Option<Keeper<'_>>, ApiError> {
        let agent = self.config.keeper_of_threads(self.query.agent().as_ref());
        agent.map(|agent| self.keeper_of(agent)).transpose()
    }

    fn keeper_of(&self, agent: Rc<AgentConfig>) -> Result<Keeper<'_>, ApiError> {
        let target = env::model_target(self.env, &agent, self.log)?;
        let http = Upstreams::new(self.env, self.ids.trace.clone());
        Ok(Keeper {
            call: self,
            agent,
            target,
            http,
        })
    }

    /// Deletes an owner's threads from every server that keeps some; says whether none is left.
    ///
    /// # Errors
    /// 502 when a server fails.
    pub async fn erase_kept_threads(&self, owner: &ResourceId) -> Result<bool, ApiError> {
        let mut is_complete = true;
        for agent in self.config.agents() {
            if agent.memory == Memory::Mastra {
                let keeper = self.keeper_of(Rc::clone(agent))?;
                is_complete &= self.of_server(keeper.threads().erase(owner).await)?;
            }
        }
        Ok(is_complete)
    }

    fn of_server<T>(&self, answer: Result<T, Halt>) -> Result<T, ApiError> {
        answer.map_err(|halt| self.server_error(halt))
    }

    /// What a server's failure is for the client; its own words are for the log.
    fn server_error(&self, halt: Halt) -> ApiError {
        let (error, detail) = match &halt {
            Halt::Upstream(error) => (error.to_string(), detail_of(error)),
            Halt::Failed(code) => (code.as_str().to_owned(), ""),
            Halt::Cancelled | Halt::Disconnected => (String::new(), ""),
        };
        self.log.line(
            Level::Warn,
            "upstream_failed",
            &[("error", &error), ("detail", &detail)],
        );
        refusal(halt.refusal(), &self.config.prefix, &RunId::new(""))
    }
}

fn detail_of(error: &ProviderError) -> &str {
    match error {
        ProviderError::Refused { detail, .. } | ProviderError::RateLimited { detail, .. } => detail,
        ProviderError::Malformed(what) | ProviderError::Configuration(what) => what,
        ProviderError::ContextLengthExceeded
        | ProviderError::ContentFiltered
        | ProviderError::OutputTruncated
        | ProviderError::Truncated => "",
    }
}
