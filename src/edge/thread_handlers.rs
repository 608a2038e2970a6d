//! Handlers of the thread routes.

use futures::stream;

use super::clock::PlatformClock;
use super::database::D1;
use super::env;
use super::handlers::Call;
use super::ids::RandomIds;
use super::reply::Answer;
use crate::api::auth::Principal;
use crate::api::body::{THREAD_BODY_MAX_BYTES, confirmed_erasure, new_thread, thread_patch};
use crate::api::error::ApiError;
use crate::api::reply;
use crate::protocol::decode::Issue;
use crate::protocol::forwarded_props::ClientResource;
use crate::protocol::id::{ResourceId, ThreadId};
use crate::protocol::thread::Page;
use crate::run::ports::{Clock, IdSource, Level, Log};
use crate::store::{Lookup, Purge, Store, StoreError, ThreadListError};

/// Batches of one request to erase: no answer takes minutes, and the platform counts statements.
const ERASURE_MAX_BATCHES: usize = 20;

impl Call<'_> {
    /// `GET /threads`
    pub async fn list_threads(&self, principal: Option<Principal>) -> Result<Answer, ApiError> {
        let store = self.store()?;
        let caller = self.caller(principal, ClientResource::Absent)?;
        let owner = caller.list_owner()?;
        let request = self
            .query
            .thread_list(owner.cloned().unwrap_or_else(|| ResourceId::new("")))?;
        let page = match owner {
            Some(_) => store.list_threads(&request).await.map_err(|error| match error {
                ThreadListError::BadCursor => ApiError::invalid_query(vec![Issue {
                    pointer: "/cursor".to_owned(),
                    message: "must be the nextCursor of this list".to_owned(),
                }]),
                ThreadListError::Store(error) => self.store_error(&error),
            })?,
            None => Page {
                items: Vec::new(),
                total: 0,
                has_more: false,
                next_cursor: None,
            },
        };
        Ok(Answer::json(reply::thread_list(
            &page,
            &request,
            self.config.list_shape,
        )))
    }

    /// `POST /threads`
    pub async fn create_thread(&self, principal: Option<Principal>) -> Result<Answer, ApiError> {
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
    pub async fn read_thread(&self, principal: Option<Principal>, id: &ThreadId) -> Result<Answer, ApiError> {
        let store = self.store()?;
        let caller = self.caller(principal, ClientResource::Absent)?;
        let detail = self.found(store.thread(id, caller.owner(), PlatformClock.now_ms()).await)?;
        Ok(Answer::json(reply::thread(&detail.thread, &detail.active_runs)))
    }

    /// `PATCH /threads/:threadId`
    pub async fn update_thread(
        &self,
        principal: Option<Principal>,
        id: &ThreadId,
    ) -> Result<Answer, ApiError> {
        let store = self.store()?;
        let (patch, in_body) = thread_patch(&self.body(THREAD_BODY_MAX_BYTES).await?)?;
        let caller = self.caller(principal, in_body)?;
        let thread = store
            .patch_thread(id, caller.owner(), &patch, PlatformClock.now_ms())
            .await;
        Ok(Answer::json(reply::thread(&self.found(thread)?, &[])))
    }

    /// `DELETE /threads/:threadId`
    pub async fn delete_thread(
        &self,
        principal: Option<Principal>,
        id: &ThreadId,
    ) -> Result<Answer, ApiError> {
        let store = self.store()?;
        let caller = self.caller(principal, ClientResource::Absent)?;
        self.found(
            store
                .delete_thread(id, caller.owner(), PlatformClock.now_ms())
                .await,
        )?;
        Ok(Answer::json(reply::thread_deleted()))
    }

    /// `GET /threads/:threadId/messages`
    pub async fn list_messages(
        &self,
        principal: Option<Principal>,
        id: ThreadId,
    ) -> Result<Answer, ApiError> {
        let store = self.store()?;
        let caller = self.caller(principal, ClientResource::Absent)?;
        let request = self.query.message_list(id, self.config.message_form)?;
        let page = self.found(store.messages(&request, caller.owner()).await)?;
        self.written(reply::message_list(&page, &request))
    }

    /// `GET /threads/:threadId/export`: read and sent in parts, so that a thread of any size fits the memory.
    pub async fn export_thread(
        &self,
        principal: Option<Principal>,
        id: ThreadId,
    ) -> Result<Answer, ApiError> {
        let store = self.store()?;
        let caller = self.caller(principal, ClientResource::Absent)?;
        let with_superseded = self.query.thread_export()?;
        let detail = self.found(store.thread(&id, caller.owner(), PlatformClock.now_ms()).await)?;
        let start = reply::thread_export_start(&detail.thread);
        // What fails before the first part is an HTTP error, later a broken connection.
        let first = store.thread_part(&id, 0, with_superseded).await;
        let first = first.map_err(|error| self.store_error(&error))?;
        let parts = stream::try_unfold(Some((start, first, true)), move |state| {
            let (store, id) = (store.clone(), id.clone());
            async move {
                let Some((mut text, part, is_first)) = state else {
                    return Ok(None);
                };
                text.push_str(&reply::thread_export_part(&part.messages, is_first));
                if part.messages.is_empty() {
                    text.push_str(reply::THREAD_EXPORT_END);
                    return Ok(Some((text, None)));
                }
                let next = store.thread_part(&id, part.next_place, with_superseded).await?;
                Ok::<_, StoreError>(Some((text, Some((String::new(), next, false)))))
            }
        });
        Answer::json_stream(parts).map_err(|error| {
            self.log
                .line(Level::Error, "answer_not_written", &[("error", &error)]);
            ApiError::internal()
        })
    }

    /// `POST /owners/:resourceId/erase`
    pub async fn erase_owner(
        &self,
        principal: Option<Principal>,
        owner: ResourceId,
    ) -> Result<Answer, ApiError> {
        let store = self.store()?;
        self.caller(principal, ClientResource::Given(owner.clone()))?;
        confirmed_erasure(&self.body(THREAD_BODY_MAX_BYTES).await?, &owner)?;
        let mut purge = Purge::Incomplete;
        for _ in 0..ERASURE_MAX_BATCHES {
            let batch = store.erase_owner(&owner, &RandomIds.token()).await;
            purge = batch.map_err(|error| self.store_error(&error))?;
            if purge == Purge::Complete {
                break;
            }
        }
        Ok(Answer::json(reply::owner_erased(purge == Purge::Complete)))
    }

    fn store(&self) -> Result<Store<D1>, ApiError> {
        env::database(self.env)
            .map(Store::new)
            .ok_or_else(ApiError::persistence_not_configured)
    }

    fn found<T>(&self, lookup: Result<Lookup<T>, StoreError>) -> Result<T, ApiError> {
        match lookup.map_err(|error| self.store_error(&error))? {
            Lookup::Found(value) => Ok(value),
            Lookup::Foreign => Err(ApiError::forbidden()),
            Lookup::Unknown => Err(ApiError::thread_not_found()),
        }
    }
}
