//! Thread routes of agents whose server keeps the threads: our ownership rule in front of a Mastra server.
//!
//! The server is asked who owns a thread before anything is done with it, because it does not ask itself. Source:
//! contract 4, 6, D4.

use serde_json::Value;

use super::deadline::{BodyFault, Deadline, read_body};
use super::halt::Halt;
use super::ports::{Clock, HttpClient};
use crate::list::List;
use crate::platform::lower_case;
use crate::protocol::event::RunErrorCode;
use crate::protocol::id::{ResourceId, ThreadId};
use crate::protocol::message::Message;
use crate::protocol::parts;
use crate::protocol::read;
use crate::protocol::thread::{
    MessageForm, MessageListRequest, NewThread, Page, PageStart, Thread, ThreadListRequest, ThreadPatch,
};
use crate::provider::mastra::threads::{self, KeptMessage, PAGE_MAX_COUNT};
use crate::provider::{
    HttpRequest, ModelTarget, ProviderError, REFUSAL_BODY_MAX_BYTES, UPSTREAM_EVENT_MAX_BYTES, codec,
};
use crate::store::{Lookup, kept_rows};

/// Pages of one answer that needs all of a thread, or all threads of an owner: a request has only so many subrequests.
const PAGES_MAX_COUNT: u64 = 40;

/// The threads of one agent's server.
pub struct KeptThreads<'a, H, C> {
    http: &'a H,
    clock: &'a C,
    target: &'a ModelTarget,
    timeout_ms: u64,
}

/// What was found, or how the server failed.
type Found<T> = Result<Lookup<T>, Halt>;

impl<'a, H: HttpClient, C: Clock> KeptThreads<'a, H, C> {
    /// The threads of this target; each of its answers may take `timeout_ms`.
    pub fn new(http: &'a H, clock: &'a C, target: &'a ModelTarget, timeout_ms: u64) -> Self {
        Self {
            http,
            clock,
            target,
            timeout_ms,
        }
    }

    /// A page of an owner's threads. Cursors are not given out, so one is never right. A search looks at titles.
    ///
    /// # Errors
    /// [`Halt`]
    pub async fn list(&self, request: &ThreadListRequest) -> Result<Page<Thread>, Halt> {
        let offset = match request.start {
            PageStart::Offset(offset) => offset,
            PageStart::Cursor(_) => 0,
        };
        let limit = u64::from(request.limit.max(1));
        let Some(search) = &request.search else {
            let page = self
                .rows(offset, limit, |page| self.threads(request, page))
                .await?;
            return Ok(page);
        };
        let mut all = self.all(|page| self.threads(request, page)).await?;
        let search = lower_case(search);
        all.retain(|thread| {
            let title = thread.title.as_deref().unwrap_or_default();
            parts::has(&lower_case(title), &search)
        });
        Ok(part(all, offset, limit))
    }

    /// A thread.
    ///
    /// # Errors
    /// [`Halt`]
    pub async fn thread(&self, id: &ThreadId, caller: Option<&ResourceId>) -> Found<Thread> {
        let Some(body) = self.ask(threads::read(self.target, id)).await? else {
            return Ok(Lookup::Unknown);
        };
        let thread = threads::read_thread(&body)?;
        let is_callers = caller.is_none_or(|caller| *caller == thread.resource_id);
        Ok(if is_callers {
            Lookup::Found(thread)
        } else {
            Lookup::Foreign
        })
    }

    /// Creates a thread, or finds the owner's thread of this id as it is.
    ///
    /// # Errors
    /// [`Halt`]
    pub async fn create(&self, owner: &ResourceId, id: &ThreadId, new: &NewThread) -> Found<Thread> {
        match self.thread(id, Some(owner)).await? {
            Lookup::Unknown => {}
            known => return Ok(known),
        }
        let body = self.ask(threads::create(self.target, owner, id, new)).await?;
        body.map_or(Ok(Lookup::Unknown), |body| {
            Ok(Lookup::Found(threads::read_thread(&body)?))
        })
    }

    /// Changes a thread.
    ///
    /// # Errors
    /// [`Halt`]
    pub async fn update(
        &self,
        id: &ThreadId,
        caller: Option<&ResourceId>,
        patch: &ThreadPatch,
    ) -> Found<Thread> {
        match self.thread(id, caller).await? {
            Lookup::Found(_) => {}
            other => return Ok(other),
        }
        let body = self.ask(threads::update(self.target, id, patch)).await?;
        body.map_or(Ok(Lookup::Unknown), |body| {
            Ok(Lookup::Found(threads::read_thread(&body)?))
        })
    }

    /// Deletes a thread with its messages. The server remembers nothing of it: the second time it is unknown.
    ///
    /// # Errors
    /// [`Halt`]
    pub async fn delete(&self, id: &ThreadId, caller: Option<&ResourceId>) -> Found<()> {
        match self.thread(id, caller).await? {
            Lookup::Found(_) => {}
            Lookup::Foreign => return Ok(Lookup::Foreign),
            Lookup::Unknown => return Ok(Lookup::Unknown),
        }
        let body = self.ask(threads::delete(self.target, id)).await?;
        Ok(body.map_or(Lookup::Unknown, |_| Lookup::Found(())))
    }

    /// Deletes threads of an owner; says whether none is left.
    ///
    /// # Errors
    /// [`Halt`]
    pub async fn erase(&self, owner: &ResourceId) -> Result<bool, Halt> {
        let order = Default::default();
        let per_page = u32::try_from(PAGES_MAX_COUNT).unwrap_or(PAGE_MAX_COUNT);
        let request = threads::list(self.target, owner, (order, true), (0, per_page));
        let Some(body) = self.ask(request).await? else {
            return Ok(true);
        };
        let page = threads::read_threads(&body)?;
        for thread in page.items.iter().filter(|thread| thread.resource_id == *owner) {
            self.ask(threads::delete(self.target, &thread.id)).await?;
        }
        Ok(!page.has_more)
    }

    /// A page of a thread's messages in the form asked for. In the protocol's own form a stored message is several, so
    /// the whole thread is read for it.
    ///
    /// # Errors
    /// [`Halt`]
    pub async fn messages(
        &self,
        request: &MessageListRequest,
        caller: Option<&ResourceId>,
    ) -> Found<Page<Value>> {
        let id = &request.thread_id;
        let owner = match self.thread(id, caller).await? {
            Lookup::Found(thread) => thread.resource_id,
            Lookup::Foreign => return Ok(Lookup::Foreign),
            Lookup::Unknown => return Ok(Lookup::Unknown),
        };
        let limit = u64::from(request.limit.max(1));
        let page = match request.form {
            MessageForm::AgUi => {
                let mut rows = self.all_messages(id).await?;
                rows.reverse();
                part(rows, request.offset, limit)
            }
            MessageForm::Mastra => {
                let newest_first = |page: (u64, u32)| async move {
                    let mut page = self.kept_messages(id, page).await?;
                    page.items.reverse();
                    Ok(page)
                };
                let page = self.rows(request.offset, limit, newest_first).await?;
                let rows = page.items.into_iter().flat_map(|kept| {
                    let at = |message: Message| (kept.created_at_ms, message);
                    kept_rows(id, &owner, kept.messages.into_iter().map(at).list())
                });
                Page {
                    items: rows.list(),
                    total: page.total,
                    has_more: page.has_more,
                    next_cursor: None,
                }
            }
        };
        let Page {
            mut items,
            total,
            has_more,
            next_cursor,
        } = page;
        items.reverse();
        Ok(Lookup::Found(Page {
            items,
            total,
            has_more,
            next_cursor,
        }))
    }

    /// All messages of a thread in the protocol's own form, oldest first, as far as `PAGES_MAX_COUNT` pages reach.
    ///
    /// # Errors
    /// [`Halt`]
    pub async fn all_messages(&self, id: &ThreadId) -> Result<Vec<Value>, Halt> {
        let newest_first = |page: (u64, u32)| async move {
            let mut page = self.kept_messages(id, page).await?;
            page.items.reverse();
            Ok(page)
        };
        let mut kept = self.all(newest_first).await?;
        kept.reverse();
        let messages = kept.into_iter().flat_map(|kept| kept.messages);
        Ok(messages.map(|message| read::to_value(&message)).list())
    }

    async fn threads(&self, request: &ThreadListRequest, page: (u64, u32)) -> Result<Page<Thread>, Halt> {
        let order = (request.order, request.descending);
        let asked = threads::list(self.target, &request.owner, order, page);
        let Some(body) = self.ask(asked).await? else {
            return Ok(Page::empty());
        };
        let mut page = threads::read_threads(&body)?;
        // A server that does not know the filter would give everybody's.
        page.items.retain(|thread| thread.resource_id == request.owner);
        Ok(page)
    }

    async fn kept_messages(&self, id: &ThreadId, page: (u64, u32)) -> Result<Page<KeptMessage>, Halt> {
        match self.ask(threads::messages(self.target, id, page)).await? {
            Some(body) => Ok(threads::read_messages(&body)?),
            None => Ok(Page::empty()),
        }
    }

    /// `limit` rows behind the first `offset`, from a server that knows pages only: those of two pages, unless the
    /// offset is the beginning of one.
    async fn rows<T, F: Future<Output = Result<Page<T>, Halt>>>(
        &self,
        offset: u64,
        limit: u64,
        read: impl Fn((u64, u32)) -> F,
    ) -> Result<Page<T>, Halt> {
        // Pages of ours may be larger than the server's.
        let per_page = limit.min(u64::from(PAGE_MAX_COUNT));
        let size = u32::try_from(per_page).unwrap_or(PAGE_MAX_COUNT);
        let (first, skipped) = (offset / per_page, offset % per_page);
        let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
        let mut page = read((first, size)).await?;
        let skipped = usize::try_from(skipped)
            .unwrap_or(usize::MAX)
            .min(page.items.len());
        page.items.drain(..skipped);
        let mut next = first;
        while page.items.len() < wanted && page.has_more {
            next += 1;
            let more = read((next, size)).await?;
            page.has_more = more.has_more && !more.items.is_empty();
            page.items.extend(more.items);
        }
        page.items.truncate(wanted);
        let shown = u64::try_from(page.items.len()).unwrap_or(u64::MAX);
        page.has_more = offset.saturating_add(shown) < page.total;
        Ok(page)
    }

    /// Every row, as far as `PAGES_MAX_COUNT` pages reach.
    async fn all<T, F: Future<Output = Result<Page<T>, Halt>>>(
        &self,
        read: impl Fn((u64, u32)) -> F,
    ) -> Result<Vec<T>, Halt> {
        let mut all = Vec::new();
        for number in 0..PAGES_MAX_COUNT {
            let page = read((number, PAGE_MAX_COUNT)).await?;
            all.extend(page.items);
            if !page.has_more {
                break;
            }
        }
        Ok(all)
    }

    /// Sends a request and reads its answer; `None` = 404.
    async fn ask(&self, request: HttpRequest) -> Result<Option<Vec<u8>>, Halt> {
        let deadline = Deadline::after(self.clock, self.timeout_ms);
        let timeout = Err(Halt::Failed(RunErrorCode::UpstreamTimeout));
        deadline.within(self.send(request)).await.unwrap_or(timeout)
    }

    async fn send(&self, request: HttpRequest) -> Result<Option<Vec<u8>>, Halt> {
        let unreachable = |detail: String| ProviderError::Refused {
            status: 0,
            retryable: true,
            retry_after_ms: None,
            detail,
        };
        let sent = self.http.send(request).await;
        let mut response = sent.map_err(|error| unreachable(error.0))?;
        let is_success = (200..300).contains(&response.status);
        let max_bytes = if is_success {
            UPSTREAM_EVENT_MAX_BYTES
        } else {
            REFUSAL_BODY_MAX_BYTES
        };
        let body = read_body(&mut response.body, max_bytes).await;
        match (is_success, response.status, body) {
            (true, _, Ok(body)) => Ok(Some(body)),
            (true, _, Err(BodyFault::Broken(_))) => Err(ProviderError::Truncated.into()),
            (true, _, Err(BodyFault::TooLong)) => {
                Err(ProviderError::Malformed("an answer is too long").into())
            }
            (false, 404, _) => Ok(None),
            (false, status, body) => {
                let body = body.unwrap_or_default();
                let codec = codec(self.target.wire);
                Err(codec.refusal(status, &response.headers, &body).into())
            }
        }
    }
}

/// `limit` of these rows behind the first `offset`.
fn part<T>(rows: Vec<T>, offset: u64, limit: u64) -> Page<T> {
    let total = rows.len();
    let index = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
    let items: Vec<T> = rows.into_iter().skip(index(offset)).take(index(limit)).list();
    Page {
        has_more: index(offset).saturating_add(items.len()) < total,
        items,
        total: u64::try_from(total).unwrap_or(u64::MAX),
        next_cursor: None,
    }
}
