//! The thread routes for agents whose Mastra server keeps the threads: the same answers, from another store.

use std::rc::Rc;

use super::clock::PlatformClock;
use super::env;
use super::handlers::Call;
use super::ids::RandomIds;
use super::refusal;
use super::reply::Answer;
use super::upstreams::Upstreams;
use crate::api::auth::Principal;
use crate::api::body::{THREAD_BODY_MAX_BYTES, new_thread, thread_patch};
use crate::api::error::ApiError;
use crate::api::reply;
use crate::config::AgentConfig;
use crate::config::agents::Memory;
use crate::protocol::decode::Issue;
use crate::protocol::forwarded_props::ClientResource;
use crate::protocol::id::{ResourceId, RunId, ThreadId};
use crate::protocol::thread::{Page, PageStart};
use crate::provider::{ModelTarget, ProviderError};
use crate::run::halt::Halt;
use crate::run::kept_threads::KeptThreads;
use crate::run::ports::{IdSource, Level, Log};
use crate::store::Lookup;

/// An agent whose server keeps threads, ready to be asked.
pub struct Keeper {
    agent: Rc<AgentConfig>,
    target: ModelTarget,
    http: Upstreams,
}

impl Keeper {
    fn threads(&self) -> KeptThreads<'_, Upstreams, PlatformClock> {
        let timeout_ms = self.agent.upstream_idle_timeout_ms;
        KeptThreads::new(&self.http, &PlatformClock, &self.target, timeout_ms)
    }
}

impl Call<'_> {
    /// Whose server keeps the threads this request is about; `None` = our database does.
    ///
    /// # Errors
    /// 503 when that agent lacks its secrets.
    pub fn keeper(&self) -> Result<Option<Keeper>, ApiError> {
        let agent = self.config.keeper_of_threads(self.query.agent().as_ref());
        agent.map(|agent| self.keeper_of(agent)).transpose()
    }

    fn keeper_of(&self, agent: Rc<AgentConfig>) -> Result<Keeper, ApiError> {
        let target = env::model_target(self.env, &agent, self.log)?;
        let http = Upstreams::new(self.env, self.ids.trace.clone());
        Ok(Keeper { agent, target, http })
    }

    /// `GET /threads`
    ///
    /// # Errors
    /// As its namesake without `kept`; 502 when the server fails.
    pub async fn list_kept_threads(
        &self,
        keeper: &Keeper,
        principal: Option<Principal>,
    ) -> Result<Answer, ApiError> {
        let caller = self.caller(principal, ClientResource::Absent)?;
        let owner = caller.list_owner()?;
        let request = self
            .query
            .thread_list(owner.cloned().unwrap_or_else(|| ResourceId::new("")))?;
        if let PageStart::Cursor(_) = request.start {
            return Err(ApiError::invalid_query(vec![Issue {
                pointer: "/cursor".to_owned(),
                message: "must be left out: the server that keeps these threads has pages only".to_owned(),
            }]));
        }
        let page = match owner {
            Some(_) => self.of_server(keeper.threads().list(&request).await)?,
            None => Page::empty(),
        };
        Ok(Answer::json(reply::thread_list(
            &page,
            &request,
            self.config.list_shape,
        )))
    }

    /// `POST /threads`
    ///
    /// # Errors
    /// As [`Self::list_kept_threads`].
    pub async fn create_kept_thread(
        &self,
        keeper: &Keeper,
        principal: Option<Principal>,
    ) -> Result<Answer, ApiError> {
        let (new, in_body) = new_thread(&self.body(THREAD_BODY_MAX_BYTES).await?)?;
        let caller = self.caller(principal, in_body)?;
        let fresh = || ThreadId::new(RandomIds.message_id().as_str());
        let id = new.id.clone().unwrap_or_else(fresh);
        let created = keeper
            .threads()
            .create(caller.new_thread_owner()?, &id, &new)
            .await;
        Ok(Answer::json(reply::thread(&self.kept(created)?, &[])))
    }

    /// `GET /threads/:threadId`
    ///
    /// # Errors
    /// As [`Self::list_kept_threads`].
    pub async fn read_kept_thread(
        &self,
        keeper: &Keeper,
        principal: Option<Principal>,
        id: &ThreadId,
    ) -> Result<Answer, ApiError> {
        let caller = self.caller(principal, ClientResource::Absent)?;
        let thread = self.kept(keeper.threads().thread(id, caller.owner()).await)?;
        Ok(Answer::json(reply::thread(&thread, &[])))
    }

    /// `PATCH /threads/:threadId`
    ///
    /// # Errors
    /// As [`Self::list_kept_threads`].
    pub async fn update_kept_thread(
        &self,
        keeper: &Keeper,
        principal: Option<Principal>,
        id: &ThreadId,
    ) -> Result<Answer, ApiError> {
        let (patch, in_body) = thread_patch(&self.body(THREAD_BODY_MAX_BYTES).await?)?;
        let caller = self.caller(principal, in_body)?;
        let updated = keeper.threads().update(id, caller.owner(), &patch).await;
        Ok(Answer::json(reply::thread(&self.kept(updated)?, &[])))
    }

    /// `DELETE /threads/:threadId`
    ///
    /// # Errors
    /// As [`Self::list_kept_threads`].
    pub async fn delete_kept_thread(
        &self,
        keeper: &Keeper,
        principal: Option<Principal>,
        id: &ThreadId,
    ) -> Result<Answer, ApiError> {
        let caller = self.caller(principal, ClientResource::Absent)?;
        self.kept(keeper.threads().delete(id, caller.owner()).await)?;
        Ok(Answer::json(reply::thread_deleted()))
    }

    /// `GET /threads/:threadId/messages`
    ///
    /// # Errors
    /// As [`Self::list_kept_threads`].
    pub async fn list_kept_messages(
        &self,
        keeper: &Keeper,
        principal: Option<Principal>,
        id: ThreadId,
    ) -> Result<Answer, ApiError> {
        let caller = self.caller(principal, ClientResource::Absent)?;
        let request = self.query.message_list(id, self.config.message_form)?;
        let page = self.kept(keeper.threads().messages(&request, caller.owner()).await)?;
        Ok(Answer::json(reply::message_list(&page, &request)))
    }

    /// `GET /threads/:threadId/export`
    ///
    /// # Errors
    /// As [`Self::list_kept_threads`].
    pub async fn export_kept_thread(
        &self,
        keeper: &Keeper,
        principal: Option<Principal>,
        id: &ThreadId,
    ) -> Result<Answer, ApiError> {
        let caller = self.caller(principal, ClientResource::Absent)?;
        let thread = self.kept(keeper.threads().thread(id, caller.owner()).await)?;
        let messages = self.of_server(keeper.threads().all_messages(id).await)?;
        let mut text = reply::thread_export_start(&thread);
        text.push_str(&reply::thread_export_part(&messages, true));
        text.push_str(reply::THREAD_EXPORT_END);
        Ok(Answer::json(text))
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

    fn kept<T>(&self, found: Result<Lookup<T>, Halt>) -> Result<T, ApiError> {
        match self.of_server(found)? {
            Lookup::Found(value) => Ok(value),
            Lookup::Foreign => Err(ApiError::forbidden()),
            Lookup::Unknown => Err(ApiError::thread_not_found()),
        }
    }

    /// What a server's failure is for the client; its own words are for the log.
    fn of_server<T>(&self, answer: Result<T, Halt>) -> Result<T, ApiError> {
        answer.map_err(|halt| {
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
        })
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
