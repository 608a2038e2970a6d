//! Handlers of the thread routes.

use std::collections::HashMap;
use std::rc::Rc;

use js_sys::Uint8Array;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::WritableStreamDefaultWriter;

use super::bucket::R2;
use super::clock::PlatformClock;
use super::database::D1;
use super::env;
use super::handlers::Call;
use super::ids::RandomIds;
use super::reply::Answer;
use super::stream::{describe, ignore, pipe};
use crate::api::auth::Principal;
use crate::api::body::{THREAD_BODY_MAX_BYTES, confirmed_erasure, new_thread, thread_patch};
use crate::api::error::ApiError;
use crate::api::reply;
use crate::config::AgentConfig;
use crate::config::agents::Memory;
use crate::protocol::decode::Issue;
use crate::protocol::forwarded_props::ClientResource;
use crate::protocol::id::{ResourceId, ThreadId};
use crate::protocol::thread::{Page, ThreadListRequest};
use crate::run::ports::{Clock, IdSource, Level, Log};
use crate::store::{
    FoundThreads, Lookup, Purge, SearchHit, SearchIndex, Store, StoreError, ThreadListError, ThreadPart,
};

/// Batches of one request to erase: no answer takes minutes, and the platform counts statements.
const ERASURE_MAX_BATCHES: usize = 20;

impl Call<'_> {
    /// `GET /threads`
    pub async fn list_threads(&self, principal: Option<Principal>) -> Result<Answer, ApiError> {
        if let Some(keeper) = self.keeper()? {
            return self.list_kept_threads(&keeper, principal).await;
        }
        let store = self.store()?;
        let caller = self.caller(principal, ClientResource::Absent)?;
        let owner = caller.list_owner()?;
        let request = self
            .query
            .thread_list(owner.cloned().unwrap_or_else(|| ResourceId::new("")))?;
        let shape = self.config.list_shape;
        if owner.is_none() {
            return Ok(Answer::json(reply::thread_list(&Page::empty(), &request, shape)));
        }
        let hits = self.hits(&request).await;
        let found = store
            .search_threads(&request, &hits)
            .await
            .map_err(|error| match error {
                ThreadListError::BadCursor => ApiError::invalid_query(vec![Issue {
                    pointer: "/cursor".to_owned(),
                    message: "must be the nextCursor of this list".to_owned(),
                }]),
                ThreadListError::Store(error) => self.store_error(&error),
            })?;
        let snippets = self.snippets(&request, &found).await;
        Ok(Answer::json(reply::found_thread_list(
            &found.page,
            &request,
            shape,
            &snippets,
        )))
    }

    /// What the index finds; without it a search looks at titles only.
    async fn hits(&self, request: &ThreadListRequest) -> Vec<SearchHit> {
        let (Some(search), Some(index)) = (&request.search, self.search_index()) else {
            return Vec::new();
        };
        let hits = index.find(&request.owner, search).await;
        hits.unwrap_or_else(|error| {
            self.index_failed(&error);
            Vec::new()
        })
    }

    async fn snippets(&self, request: &ThreadListRequest, found: &FoundThreads) -> HashMap<ThreadId, String> {
        let (Some(search), Some(index)) = (&request.search, self.search_index()) else {
            return HashMap::new();
        };
        let rows: Vec<u64> = found.hits.values().copied().collect();
        let mut snippets = index.snippets(search, &rows).await.unwrap_or_else(|error| {
            self.index_failed(&error);
            HashMap::new()
        });
        let of_threads = found.hits.iter();
        of_threads
            .filter_map(|(thread, row)| Some((thread.clone(), snippets.remove(row)?)))
            .collect()
    }

    fn search_index(&self) -> Option<SearchIndex<D1>> {
        env::search(self.env).map(SearchIndex::new)
    }

    /// The index is a convenience: an answer without it is still right.
    fn index_failed(&self, error: &StoreError) {
        self.log
            .line(Level::Warn, "search_index_failed", &[("error", error)]);
    }

    /// `POST /threads`
    pub async fn create_thread(&self, principal: Option<Principal>) -> Result<Answer, ApiError> {
        if let Some(keeper) = self.keeper()? {
            return self.create_kept_thread(&keeper, principal).await;
        }
        let store = self.store()?;
        let (new, in_body) = new_thread(&self.body(THREAD_BODY_MAX_BYTES).await?)?;
        let caller = self.caller(principal, in_body)?;
        let owner = caller.new_thread_owner()?;
        let id = new
            .id
            .clone()
            .unwrap_or_else(|| ThreadId::new(RandomIds.message_id().as_str()));
        let (incarnation, now_ms) = (RandomIds.token(), PlatformClock.now_ms());
        let thread = store.create_thread(owner, &id, &new, &incarnation, now_ms).await;
        Ok(Answer::json(reply::thread(&self.found(thread)?, &[])))
    }

    /// `GET /threads/:threadId`
    pub async fn read_thread(&self, principal: Option<Principal>, id: ThreadId) -> Result<Answer, ApiError> {
        if let Some(keeper) = self.keeper()? {
            return self.read_kept_thread(&keeper, principal, &id).await;
        }
        let store = self.store()?;
        let caller = self.caller(principal, ClientResource::Absent)?;
        let detail = self.found(store.thread(&id, caller.owner(), PlatformClock.now_ms()).await)?;
        Ok(Answer::json(reply::thread(&detail.thread, &detail.active_runs)))
    }

    /// `PATCH /threads/:threadId`
    pub async fn update_thread(
        &self,
        principal: Option<Principal>,
        id: ThreadId,
    ) -> Result<Answer, ApiError> {
        if let Some(keeper) = self.keeper()? {
            return self.update_kept_thread(&keeper, principal, &id).await;
        }
        let store = self.store()?;
        let (patch, in_body) = thread_patch(&self.body(THREAD_BODY_MAX_BYTES).await?)?;
        let caller = self.caller(principal, in_body)?;
        let thread = store
            .patch_thread(&id, caller.owner(), &patch, PlatformClock.now_ms())
            .await;
        Ok(Answer::json(reply::thread(&self.found(thread)?, &[])))
    }

    /// `DELETE /threads/:threadId`
    pub async fn delete_thread(
        &self,
        principal: Option<Principal>,
        id: ThreadId,
    ) -> Result<Answer, ApiError> {
        if let Some(keeper) = self.keeper()? {
            return self.delete_kept_thread(&keeper, principal, &id).await;
        }
        let store = self.store()?;
        let caller = self.caller(principal, ClientResource::Absent)?;
        self.found(
            store
                .delete_thread(&id, caller.owner(), PlatformClock.now_ms())
                .await,
        )?;
        if let Some(index) = self.search_index()
            && let Err(error) = index.forget_thread(&id).await
        {
            self.index_failed(&error);
        }
        if let Err(error) = self.drop_attachments(&store).await {
            self.log
                .line(Level::Warn, "attachments_not_dropped", &[("error", &error)]);
        }
        Ok(Answer::json(reply::thread_deleted()))
    }

    /// `GET /threads/:threadId/messages`
    pub async fn list_messages(
        &self,
        principal: Option<Principal>,
        id: ThreadId,
    ) -> Result<Answer, ApiError> {
        if let Some(keeper) = self.keeper()? {
            return self.list_kept_messages(&keeper, principal, id).await;
        }
        let store = self.store()?;
        let caller = self.caller(principal, ClientResource::Absent)?;
        let request = self.query.message_list(id, self.config.message_form)?;
        let page = self.found(store.messages(&request, caller.owner()).await)?;
        Ok(Answer::json(reply::message_list(&page, &request)))
    }

    /// `GET /threads/:threadId/export`: read and sent in parts, so that a thread of any size fits the memory.
    pub async fn export_thread(
        &self,
        principal: Option<Principal>,
        id: ThreadId,
    ) -> Result<Answer, ApiError> {
        if let Some(keeper) = self.keeper()? {
            return self.export_kept_thread(&keeper, principal, &id).await;
        }
        let store = self.store()?;
        let caller = self.caller(principal, ClientResource::Absent)?;
        let with_superseded = self.query.thread_export()?;
        let detail = self.found(store.thread(&id, caller.owner(), PlatformClock.now_ms()).await)?;
        let start = reply::thread_export_start(&detail.thread);
        // What fails before the first part is an HTTP error, later a broken connection.
        let first = store.thread_part(&id, 0, with_superseded).await;
        let first = first.map_err(|error| self.store_error(&error))?;
        let (writer, body) = pipe().map_err(|thrown| {
            let error = describe(&thrown);
            self.log
                .line(Level::Error, "answer_not_written", &[("error", &error)]);
            ApiError::internal()
        })?;
        let export = Export {
            store,
            id,
            with_superseded,
            writer,
        };
        spawn_local(async move { export.send(start, first).await });
        Ok(Answer::json_stream(body))
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

    /// Deletes from the bucket what no message refers to any more; what is too much for one request goes with the next.
    async fn drop_attachments(&self, store: &Store<D1, Option<R2>>) -> Result<Purge, StoreError> {
        let mut purge = Purge::Incomplete;
        for _ in 0..ERASURE_MAX_BATCHES {
            purge = store.drop_attachments(PlatformClock.now_ms()).await?;
            if purge == Purge::Complete {
                break;
            }
        }
        Ok(purge)
    }

    fn store(&self) -> Result<Store<D1, Option<R2>>, ApiError> {
        env::store(self.env).ok_or_else(ApiError::persistence_not_configured)
    }

    fn found<T>(&self, lookup: Result<Lookup<T>, StoreError>) -> Result<T, ApiError> {
        match lookup.map_err(|error| self.store_error(&error))? {
            Lookup::Found(value) => Ok(value),
            Lookup::Foreign => Err(ApiError::forbidden()),
            Lookup::Unknown => Err(ApiError::thread_not_found()),
        }
    }
}

/// A thread on its way to a client, as fast as the client reads.
struct Export {
    store: Store<D1, Option<R2>>,
    id: ThreadId,
    with_superseded: bool,
    writer: WritableStreamDefaultWriter,
}

impl Export {
    /// Sends what the body starts with, the first part and those that follow; a part that cannot be read breaks the
    /// connection.
    async fn send(&self, start: String, first: ThreadPart) {
        let (mut text, mut part, mut is_first) = (start, first, true);
        while !part.messages.is_empty() {
            text.push_str(&reply::thread_export_part(&part.messages, is_first));
            if !self.write(&text).await {
                return;
            }
            let next = self
                .store
                .thread_part(&self.id, part.next_place, self.with_superseded);
            part = match next.await {
                Ok(next) => next,
                Err(error) => {
                    let reason = js_sys::Error::new(&error.to_string());
                    return ignore(self.writer.abort_with_reason(&reason));
                }
            };
            (text, is_first) = (String::new(), false);
        }
        text.push_str(reply::THREAD_EXPORT_END);
        if self.write(&text).await {
            ignore(self.writer.close());
        }
    }

    /// Whether the client still reads.
    async fn write(&self, text: &str) -> bool {
        let written = self.writer.write_with_chunk(&Uint8Array::from(text.as_bytes()));
        JsFuture::from(written).await.is_ok()
    }
}
