//! Handlers of the thread routes, wherever the threads are.

use std::rc::Rc;

use futures::future::LocalBoxFuture;
use serde_json::Value;

use super::bucket::R2;
use super::database::D1;
use super::env;
use super::handlers::Call;
use super::ids::RandomIds;
use super::reply::Answer;
use super::stored_threads::StoredThreads;
use crate::api::auth::{Caller, Principal};
use crate::api::body::{THREAD_BODY_MAX_BYTES, confirmed_erasure, new_thread, thread_patch};
use crate::api::error::ApiError;
use crate::api::reply;
use crate::config::AgentConfig;
use crate::config::agents::Memory;
use crate::protocol::decode::Issue;
use crate::protocol::forwarded_props::ClientResource;
use crate::protocol::id::{ResourceId, ThreadId};
use crate::protocol::thread::{
    MessageListRequest, NewThread, Page, PageStart, Thread, ThreadListRequest, ThreadPatch,
};
use crate::run::ports::IdSource;
use crate::store::{Lookup, Purge, Store, ThreadDetail};

/// Batches of one request to erase: no answer takes minutes, and the platform counts statements.
pub const ERASURE_MAX_BATCHES: usize = 20;

/// What threads answer, or why not, as HTTP.
pub type Told<'t, T> = LocalBoxFuture<'t, Result<T, ApiError>>;

/// The threads a request is about: in our database, or at the server of the agent that keeps them. `caller`: `None`
/// where the id alone is the capability (D4).
pub trait Threads {
    /// Whether a list goes on by cursors, too.
    fn has_cursors(&self) -> bool;

    /// A page of an owner's threads, and what a search found in their messages.
    fn list<'t>(&'t self, request: &'t ThreadListRequest) -> Told<'t, FoundPage>;

    /// Creates a thread, or finds the owner's thread of this id as it is.
    fn create<'t>(
        &'t self,
        owner: &'t ResourceId,
        id: &'t ThreadId,
        new: &'t NewThread,
    ) -> Told<'t, Lookup<Thread>>;

    /// A thread.
    fn read<'t>(&'t self, id: &'t ThreadId, caller: Option<&'t ResourceId>)
    -> Told<'t, Lookup<ThreadDetail>>;

    /// Changes a thread.
    fn update<'t>(
        &'t self,
        id: &'t ThreadId,
        caller: Option<&'t ResourceId>,
        patch: &'t ThreadPatch,
    ) -> Told<'t, Lookup<Thread>>;

    /// Deletes a thread with all that belongs to it.
    fn delete<'t>(&'t self, id: &'t ThreadId, caller: Option<&'t ResourceId>) -> Told<'t, Lookup<()>>;

    /// A page of a thread's messages.
    fn messages<'t>(
        &'t self,
        request: &'t MessageListRequest,
        caller: Option<&'t ResourceId>,
    ) -> Told<'t, Lookup<Page<Value>>>;

    /// All of a thread that was found.
    fn export<'t>(&'t self, thread: &'t Thread) -> Told<'t, Answer>;
}

/// A page of threads, and the words around what was found in one.
pub type FoundPage = (Page<Thread>, Vec<(ThreadId, String)>);

impl Call<'_> {
    /// `GET /threads`
    pub async fn list_threads(&self, principal: Option<Principal>) -> Result<Answer, ApiError> {
        let threads = self.threads()?;
        let caller = self.caller(principal, ClientResource::Absent)?;
        let owner = caller.list_owner()?;
        let request = self
            .query
            .thread_list(owner.cloned().unwrap_or_else(|| ResourceId::new("")))?;
        if let PageStart::Cursor(_) = request.start
            && !threads.has_cursors()
        {
            return Err(ApiError::invalid_query(vec![Issue {
                pointer: "/cursor".to_owned(),
                message: "must be left out: the server that keeps these threads has pages only".to_owned(),
            }]));
        }
        let (page, snippets) = match owner {
            Some(_) => threads.list(&request).await?,
            None => (Page::empty(), Vec::new()),
        };
        Ok(Answer::json(reply::thread_list(
            &page,
            &request,
            self.config.list_shape,
            &snippets,
        )))
    }

    /// `POST /threads`
    pub async fn create_thread(&self, principal: Option<Principal>) -> Result<Answer, ApiError> {
        let threads = self.threads()?;
        let (new, in_body) = new_thread(&self.body(THREAD_BODY_MAX_BYTES).await?)?;
        let caller = self.caller(principal, in_body)?;
        let fresh = || ThreadId::new(RandomIds.message_id().as_str());
        let id = new.id.clone().unwrap_or_else(fresh);
        let created = threads.create(caller.new_thread_owner()?, &id, &new).await?;
        Ok(Answer::json(reply::thread(&found(created)?, &[])))
    }

    /// `GET /threads/:threadId`
    pub async fn read_thread(&self, principal: Option<Principal>, id: ThreadId) -> Result<Answer, ApiError> {
        let (threads, caller) = self.threads_and_caller(principal)?;
        let detail = found(threads.read(&id, caller.owner()).await?)?;
        Ok(Answer::json(reply::thread(&detail.thread, &detail.active_runs)))
    }

    /// `PATCH /threads/:threadId`
    pub async fn update_thread(
        &self,
        principal: Option<Principal>,
        id: ThreadId,
    ) -> Result<Answer, ApiError> {
        let threads = self.threads()?;
        let (patch, in_body) = thread_patch(&self.body(THREAD_BODY_MAX_BYTES).await?)?;
        let caller = self.caller(principal, in_body)?;
        let updated = threads.update(&id, caller.owner(), &patch).await?;
        Ok(Answer::json(reply::thread(&found(updated)?, &[])))
    }

    /// `DELETE /threads/:threadId`
    pub async fn delete_thread(
        &self,
        principal: Option<Principal>,
        id: ThreadId,
    ) -> Result<Answer, ApiError> {
        let (threads, caller) = self.threads_and_caller(principal)?;
        found(threads.delete(&id, caller.owner()).await?)?;
        Ok(Answer::json(reply::thread_deleted()))
    }

    /// `GET /threads/:threadId/messages`
    pub async fn list_messages(
        &self,
        principal: Option<Principal>,
        id: ThreadId,
    ) -> Result<Answer, ApiError> {
        let (threads, caller) = self.threads_and_caller(principal)?;
        let request = self.query.message_list(id, self.config.message_form)?;
        let page = found(threads.messages(&request, caller.owner()).await?)?;
        Ok(Answer::json(reply::message_list(&page, &request)))
    }

    /// `GET /threads/:threadId/export`
    pub async fn export_thread(
        &self,
        principal: Option<Principal>,
        id: ThreadId,
    ) -> Result<Answer, ApiError> {
        let (threads, caller) = self.threads_and_caller(principal)?;
        let detail = found(threads.read(&id, caller.owner()).await?)?;
        threads.export(&detail.thread).await
    }

    /// `POST /owners/:resourceId/erase`
    pub async fn erase_owner(
        &self,
        principal: Option<Principal>,
        owner: ResourceId,
    ) -> Result<Answer, ApiError> {
        let keeps_threads = |agent: &Rc<AgentConfig>| agent.memory == Memory::Mastra;
        let store = match self.store() {
            Err(_) if self.config.agents().iter().any(keeps_threads) => None,
            store => Some(store?),
        };
        self.caller(principal, ClientResource::Given(owner.clone()))?;
        confirmed_erasure(&self.body(THREAD_BODY_MAX_BYTES).await?, &owner)?;
        let is_kept_complete = self.erase_kept_threads(&owner).await?;
        let is_stored_complete = match store {
            Some(store) => self.erase_stored(&store, &owner).await?,
            None => true,
        };
        Ok(Answer::json(reply::owner_erased(
            is_kept_complete && is_stored_complete,
        )))
    }

    async fn erase_stored(
        &self,
        store: &Store<D1, Option<R2>>,
        owner: &ResourceId,
    ) -> Result<bool, ApiError> {
        let mut purge = Purge::Incomplete;
        for _ in 0..ERASURE_MAX_BATCHES {
            let batch = store.erase_owner(owner, &RandomIds.token()).await;
            purge = batch.map_err(|error| self.store_error(&error))?.state;
            if purge == Purge::Complete {
                break;
            }
        }
        let mut is_complete = purge == Purge::Complete;
        if is_complete {
            let dropped = self.drop_attachments(store).await;
            is_complete = dropped.map_err(|error| self.store_error(&error))? == Purge::Complete;
        }
        // Last, because a run that was ending may have written while the threads were still there.
        if let (true, Some(index)) = (is_complete, self.search_index()) {
            is_complete = false;
            for _ in 0..ERASURE_MAX_BATCHES {
                let forgotten = index.forget_owner(owner).await;
                is_complete = forgotten.map_err(|error| self.store_error(&error))?;
                if is_complete {
                    break;
                }
            }
        }
        Ok(is_complete)
    }

    fn store(&self) -> Result<Store<D1, Option<R2>>, ApiError> {
        env::store(self.env).ok_or_else(ApiError::persistence_not_configured)
    }

    fn threads_and_caller(
        &self,
        principal: Option<Principal>,
    ) -> Result<(Box<dyn Threads + '_>, Caller), ApiError> {
        Ok((self.threads()?, self.caller(principal, ClientResource::Absent)?))
    }

    fn threads(&self) -> Result<Box<dyn Threads + '_>, ApiError> {
        if let Some(kept) = self.kept_threads()? {
            return Ok(Box::new(kept));
        }
        let store = self.store()?;
        Ok(Box::new(StoredThreads { call: self, store }))
    }
}

fn found<T>(lookup: Lookup<T>) -> Result<T, ApiError> {
    match lookup {
        Lookup::Found(value) => Ok(value),
        Lookup::Foreign => Err(ApiError::forbidden()),
        Lookup::Unknown => Err(ApiError::thread_not_found()),
    }
}
