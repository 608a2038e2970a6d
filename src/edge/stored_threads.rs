//! The threads that are in our database.

use js_sys::Uint8Array;
use serde_json::Value;
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
use super::thread_handlers::{ERASURE_MAX_BATCHES, FoundPage, Threads, Told};
use crate::api::error::ApiError;
use crate::api::reply;
use crate::protocol::decode::Issue;
use crate::protocol::id::{ResourceId, ThreadId};
use crate::protocol::thread::{MessageListRequest, NewThread, Page, Thread, ThreadListRequest, ThreadPatch};
use crate::run::ports::{Clock, IdSource, Level, Log};
use crate::store::{
    FoundThreads, Lookup, Purge, SearchHit, SearchIndex, Store, StoreError, ThreadDetail, ThreadListError,
    ThreadPart,
};

/// The threads of our database, as one request asks for them.
pub struct StoredThreads<'c> {
    /// The request.
    pub call: &'c Call<'c>,
    /// The database.
    pub store: Store<D1, Option<R2>>,
}

impl Threads for StoredThreads<'_> {
    fn has_cursors(&self) -> bool {
        true
    }

    fn list<'t>(&'t self, request: &'t ThreadListRequest) -> Told<'t, FoundPage> {
        Box::pin(async move {
            let hits = self.call.hits(request).await;
            let found = self.store.search_threads(request, &hits).await;
            let found = found.map_err(|error| match error {
                ThreadListError::BadCursor => ApiError::invalid_query(vec![Issue {
                    pointer: "/cursor".to_owned(),
                    message: "must be the nextCursor of this list".to_owned(),
                }]),
                ThreadListError::Store(error) => self.call.store_error(&error),
            })?;
            let snippets = self.call.snippets(request, &found).await;
            Ok((found.page, snippets))
        })
    }

    fn create<'t>(
        &'t self,
        owner: &'t ResourceId,
        id: &'t ThreadId,
        new: &'t NewThread,
    ) -> Told<'t, Lookup<Thread>> {
        Box::pin(async move {
            let (incarnation, now_ms) = (RandomIds.token(), PlatformClock.now_ms());
            self.of_store(
                self.store
                    .create_thread(owner, id, new, &incarnation, now_ms)
                    .await,
            )
        })
    }

    fn read<'t>(
        &'t self,
        id: &'t ThreadId,
        caller: Option<&'t ResourceId>,
    ) -> Told<'t, Lookup<ThreadDetail>> {
        Box::pin(async move { self.of_store(self.store.thread(id, caller, PlatformClock.now_ms()).await) })
    }

    fn update<'t>(
        &'t self,
        id: &'t ThreadId,
        caller: Option<&'t ResourceId>,
        patch: &'t ThreadPatch,
    ) -> Told<'t, Lookup<Thread>> {
        Box::pin(async move {
            let now_ms = PlatformClock.now_ms();
            self.of_store(self.store.patch_thread(id, caller, patch, now_ms).await)
        })
    }

    fn delete<'t>(&'t self, id: &'t ThreadId, caller: Option<&'t ResourceId>) -> Told<'t, Lookup<()>> {
        Box::pin(async move {
            let now_ms = PlatformClock.now_ms();
            let deleted = self.of_store(self.store.delete_thread(id, caller, now_ms).await)?;
            if let Lookup::Found(()) = deleted {
                self.forget(id).await;
            }
            Ok(deleted)
        })
    }

    fn messages<'t>(
        &'t self,
        request: &'t MessageListRequest,
        caller: Option<&'t ResourceId>,
    ) -> Told<'t, Lookup<Page<Value>>> {
        Box::pin(async move { self.of_store(self.store.messages(request, caller).await) })
    }

    /// Read and sent in parts, so that a thread of any size fits the memory.
    fn export<'t>(&'t self, thread: &'t Thread) -> Told<'t, Answer> {
        Box::pin(async move {
            let with_superseded = self.call.query.thread_export()?;
            let start = reply::thread_export_start(thread);
            // What fails before the first part is an HTTP error, later a broken connection.
            let first = self.of_store(self.store.thread_part(&thread.id, 0, with_superseded).await)?;
            let (writer, body) = pipe().map_err(|thrown| {
                let error = describe(&thrown);
                self.call
                    .log
                    .line(Level::Error, "answer_not_written", &[("error", &error)]);
                ApiError::internal()
            })?;
            let export = Export {
                store: self.store.clone(),
                id: thread.id.clone(),
                with_superseded,
                writer,
            };
            spawn_local(async move { export.send(start, first).await });
            Ok(Answer::json_stream(body))
        })
    }
}

impl StoredThreads<'_> {
    /// What belongs to a thread that is gone, elsewhere.
    async fn forget(&self, id: &ThreadId) {
        if let Some(index) = self.call.search_index()
            && let Err(error) = index.forget_thread(id).await
        {
            self.call.index_failed(&error);
        }
        if let Err(error) = self.call.drop_attachments(&self.store).await {
            self.call
                .log
                .line(Level::Warn, "attachments_not_dropped", &[("error", &error)]);
        }
    }

    fn of_store<T>(&self, answer: Result<T, StoreError>) -> Result<T, ApiError> {
        answer.map_err(|error| self.call.store_error(&error))
    }
}

impl Call<'_> {
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

    async fn snippets(&self, request: &ThreadListRequest, found: &FoundThreads) -> Vec<(ThreadId, String)> {
        let (Some(search), Some(index)) = (&request.search, self.search_index()) else {
            return Vec::new();
        };
        let rows: Vec<u64> = found.hits.iter().map(|(_, row)| *row).collect();
        let snippets = index.snippets(search, &rows).await.unwrap_or_else(|error| {
            self.index_failed(&error);
            Vec::new()
        });
        let mut of_threads = Vec::new();
        for (thread, hit) in &found.hits {
            if let Some((_, snippet)) = snippets.iter().find(|(row, _)| row == hit) {
                of_threads.push((thread.clone(), snippet.clone()));
            }
        }
        of_threads
    }

    /// The search index, if there is one.
    pub fn search_index(&self) -> Option<SearchIndex<D1>> {
        env::search(self.env).map(SearchIndex::new)
    }

    /// The index is a convenience: an answer without it is still right.
    fn index_failed(&self, error: &StoreError) {
        self.log
            .line(Level::Warn, "search_index_failed", &[("error", error)]);
    }

    /// Deletes from the bucket what no message refers to any more; what is too much for one request goes with the next.
    pub async fn drop_attachments(&self, store: &Store<D1, Option<R2>>) -> Result<Purge, StoreError> {
        let mut purge = Purge::Incomplete;
        for _ in 0..ERASURE_MAX_BATCHES {
            purge = store.drop_attachments(PlatformClock.now_ms()).await?;
            if purge == Purge::Complete {
                break;
            }
        }
        Ok(purge)
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
