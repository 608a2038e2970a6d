//! The thread routes in SQL: list, create, read, change, delete. Source: contract 4.
//!
//! A `caller` of `None` is one without an owner where the id alone is the capability (D4).

use super::cursor::Cursor;
use super::row::Fields;
use super::search::{SearchHit, hits_parameter};
use super::title::folded;
use super::{Attachments, Database, Lookup, Parameter, Row, Statement, Store, StoreError};
use crate::protocol::id::{ResourceId, RunId, ThreadId};
use crate::protocol::json;
use crate::protocol::thread::{
    NewThread, Page, PageStart, Thread, ThreadListRequest, ThreadOrder, ThreadPatch,
};

/// Why there is no page of threads.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ThreadListError {
    /// The cursor is not one of ours, or of another order: 400.
    #[error("the cursor is not one this list gave out")]
    BadCursor,
    /// See [`StoreError`].
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// A page of threads and where a search found their messages.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundThreads {
    /// The page.
    pub page: Page<Thread>,
    /// The newest hit of each thread: `SearchHit::row`.
    pub hits: Vec<(ThreadId, u64)>,
}

/// A thread and its live runs.
#[derive(Debug, Clone, PartialEq)]
pub struct ThreadDetail {
    /// The thread.
    pub thread: Thread,
    /// `activeRuns` of the answer, when not empty. Source: contract 8.
    pub active_runs: Vec<RunId>,
}

const COLUMNS: &str = "id, title, resource_id, metadata, created_at_ms, updated_at_ms";

/// The thread `?2` of the caller `?1`, whoever owns it if that is null.
const CALLERS: &str = "id = +?2 AND (?1 IS NULL OR resource_id = +?1)";

/// Rows of thread `?2` may go: it is the caller's.
const CALLERS_THREAD_EXISTS: &str =
    "EXISTS (SELECT 1 FROM threads WHERE id = +?2 AND (?1 IS NULL OR resource_id = +?1))";

impl<D: Database, A: Attachments> Store<D, A> {
    /// A page of an owner's threads.
    ///
    /// # Errors
    /// [`ThreadListError`]
    pub async fn list_threads(&self, request: &ThreadListRequest) -> Result<Page<Thread>, ThreadListError> {
        Ok(self.search_threads(request, &[]).await?.page)
    }

    /// A page of an owner's threads; a search finds those with a hit among its visible messages too.
    ///
    /// # Errors
    /// [`ThreadListError`]
    pub async fn search_threads(
        &self,
        request: &ThreadListRequest,
        hits: &[SearchHit],
    ) -> Result<FoundThreads, ThreadListError> {
        let owner: Parameter = request.owner.as_str().into();
        let mut scope = vec![owner];
        if let Some(search) = &request.search {
            scope.extend([
                search.as_str().into(),
                folded(search).into(),
                hits_parameter(hits).into(),
            ]);
        }
        let selection = if request.search.is_some() { SEARCHED } else { OWNED };
        let count = format!(
            "{}SELECT count(*) AS total FROM threads WHERE {}",
            selection.with, selection.condition
        );
        let statements = vec![
            Statement::new(count, scope.clone()),
            page_statement(request, &selection, scope)?,
        ];
        let mut results = self
            .database
            .batch(statements)
            .await
            .map_err(StoreError::from)?
            .into_iter();
        let count = results.next().unwrap_or_default();
        let total = count.first().ok_or(StoreError::Corrupt("total"))?;
        let total = Fields(total).integer("total")?;

        let (mut items, mut hits) = (Vec::new(), Vec::new());
        for row in results.next().unwrap_or_default() {
            let thread = thread(&row)?;
            if let Some(hit) = Fields(&row).optional_integer("hit")? {
                hits.push((thread.id.clone(), hit));
            }
            items.push(thread);
        }
        let limit = usize::try_from(request.limit).unwrap_or(usize::MAX);
        let has_more = items.len() > limit;
        items.truncate(limit);
        let next_cursor = items.last().filter(|_| has_more).map(|last| {
            let cursor = Cursor {
                order: request.order,
                at_ms: match request.order {
                    ThreadOrder::UpdatedAt => last.updated_at_ms,
                    ThreadOrder::CreatedAt => last.created_at_ms,
                },
                id: last.id.to_string(),
            };
            cursor.encode()
        });
        let page = Page {
            items,
            total,
            has_more,
            next_cursor,
        };
        Ok(FoundThreads { page, hits })
    }

    /// Creates a thread, or finds the owner's thread of this id as it is. `incarnation` is a fresh random text.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn create_thread(
        &self,
        owner: &ResourceId,
        id: &ThreadId,
        new: &NewThread,
        incarnation: &str,
        now_ms: u64,
    ) -> Result<Lookup<Thread>, StoreError> {
        let insert = "
INSERT INTO threads (
  id, resource_id, incarnation, title, title_folded, title_origin, metadata, next_turn, message_count, row_count,
  created_at_ms, updated_at_ms
)
VALUES (?1, ?2, ?3, ?4, ?5, CASE WHEN ?4 IS NOT NULL THEN 'user' END, ?6, 1, 0, 0, ?7, ?7)
ON CONFLICT (id) DO NOTHING";
        let parameters = vec![
            id.as_str().into(),
            owner.as_str().into(),
            incarnation.into(),
            new.title.as_deref().into(),
            new.title.as_deref().map(folded).into(),
            json::text(&new.metadata).into(),
            now_ms.into(),
        ];
        let read = Statement::new(
            format!("SELECT {COLUMNS} FROM threads WHERE id = +?1"),
            vec![id.as_str().into()],
        );
        let results = self
            .database
            .batch(vec![Statement::new(insert, parameters), read])
            .await?;
        lookup(results.last().and_then(|rows| rows.first()), Some(owner))
    }

    /// A thread with its live runs.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn thread(
        &self,
        id: &ThreadId,
        caller: Option<&ResourceId>,
        now_ms: u64,
    ) -> Result<Lookup<ThreadDetail>, StoreError> {
        let live = format!(
            "
SELECT r.id FROM runs r INDEXED BY runs_live
WHERE r.resource_id = (SELECT resource_id FROM threads WHERE {CALLERS}) AND r.thread_id = +?2
  AND r.status IN ('running', 'waiting') AND r.deadline_ms > ?3
ORDER BY r.started_at_ms, r.id"
        );
        let mut parameters = scope(id, caller);
        parameters.push(now_ms.into());
        let read = Statement::new(
            format!("SELECT {COLUMNS} FROM threads WHERE id = +?1"),
            vec![id.as_str().into()],
        );
        let mut results = self
            .database
            .batch(vec![read, Statement::new(live, parameters)])
            .await?
            .into_iter();
        let found = results.next().unwrap_or_default();
        Ok(match lookup(found.first(), caller)? {
            Lookup::Found(thread) => {
                let runs = results.next().unwrap_or_default();
                let runs = runs.iter().map(|row| Fields(row).id("id", RunId::new));
                Lookup::Found(ThreadDetail {
                    thread,
                    active_runs: runs.collect::<Result<_, _>>()?,
                })
            }
            Lookup::Foreign => Lookup::Foreign,
            Lookup::Unknown => Lookup::Unknown,
        })
    }

    /// Changes a thread; a title given here is the user's and stays.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn patch_thread(
        &self,
        id: &ThreadId,
        caller: Option<&ResourceId>,
        patch: &ThreadPatch,
        now_ms: u64,
    ) -> Result<Lookup<Thread>, StoreError> {
        let update = format!(
            "
UPDATE threads SET
  title = coalesce(?3, title),
  title_folded = CASE WHEN ?3 IS NULL THEN title_folded ELSE ?6 END,
  title_origin = CASE WHEN ?3 IS NULL THEN title_origin ELSE 'user' END,
  metadata = coalesce(?4, metadata),
  updated_at_ms = max(updated_at_ms, ?5)
WHERE {CALLERS}"
        );
        let metadata = patch.metadata.clone().map(|metadata| json::text(&metadata));
        let mut parameters = scope(id, caller);
        let title = patch.title.as_deref();
        parameters.extend([
            title.into(),
            metadata.into(),
            now_ms.into(),
            title.map(folded).into(),
        ]);
        let read = Statement::new(
            format!("SELECT {COLUMNS} FROM threads WHERE id = +?1"),
            vec![id.as_str().into()],
        );
        let results = self
            .database
            .batch(vec![Statement::new(update, parameters), read])
            .await?;
        lookup(results.last().and_then(|rows| rows.first()), caller)
    }

    /// Deletes a thread with its messages; a thread its owner deleted before is found too. Run rows stay: their ids
    /// are taken for good (D12) and late results must learn that their run is over. Live runs store nothing afterwards,
    /// because the incarnation they began on is gone.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn delete_thread(
        &self,
        id: &ThreadId,
        caller: Option<&ResourceId>,
        now_ms: u64,
    ) -> Result<Lookup<()>, StoreError> {
        let tombstone = format!(
            "
INSERT INTO deleted_threads (id, resource_id, deleted_at_ms)
SELECT id, resource_id, ?3 FROM threads WHERE {CALLERS}
ON CONFLICT (id, resource_id) DO UPDATE SET deleted_at_ms = excluded.deleted_at_ms"
        );
        let mut tombstone_parameters = scope(id, caller);
        tombstone_parameters.push(now_ms.into());
        let scoped = |sql: String| Statement::new(sql, scope(id, caller));
        let statements = vec![
            Statement::new(
                "SELECT resource_id FROM threads WHERE id = +?1",
                vec![id.as_str().into()],
            ),
            scoped(format!("SELECT id FROM deleted_threads WHERE {CALLERS} LIMIT 1")),
            Statement::new(tombstone, tombstone_parameters),
            scoped(format!(
                "DELETE FROM message_pieces WHERE thread_id = +?2 AND {CALLERS_THREAD_EXISTS}"
            )),
            scoped(format!(
                "DELETE FROM messages WHERE thread_id = +?2 AND {CALLERS_THREAD_EXISTS}"
            )),
            scoped(format!("DELETE FROM threads WHERE {CALLERS}")),
        ];
        let mut results = self.database.batch(statements).await?.into_iter();
        let thread = results.next().unwrap_or_default();
        let deleted_before = results.next().is_some_and(|rows| !rows.is_empty());
        match thread.first() {
            Some(row) => {
                let owner = Fields(row).text("resource_id")?;
                let is_callers = caller.is_none_or(|caller| caller.as_str() == owner);
                Ok(if is_callers {
                    Lookup::Found(())
                } else {
                    Lookup::Foreign
                })
            }
            None if deleted_before => Ok(Lookup::Found(())),
            None => Ok(Lookup::Unknown),
        }
    }
}

/// Which threads a list has, as parts of its statements.
struct Selection {
    with: &'static str,
    condition: &'static str,
    hit: &'static str,
}

/// Threads of the owner `?1`.
const OWNED: Selection = Selection {
    with: "",
    condition: "resource_id = +?1",
    hit: "NULL",
};

/// Of those, the ones with the text `?2`, folded `?3`, in the title, or a hit of `?4` that is still to be seen.
/// No LIKE: D1 takes patterns of 50 bytes.
const SEARCHED: Selection = Selection {
    with: "WITH found(thread, hit) AS MATERIALIZED (
  SELECT m.thread_id, max(h.value ->> 2) FROM json_each(?4) h CROSS JOIN messages m
    ON m.thread_id = h.value ->> 0 AND m.id = h.value ->> 1
  WHERE m.resource_id = +?1 AND m.superseded_by IS NULL GROUP BY m.thread_id
)
",
    condition: "resource_id = +?1 AND (
  instr(title, ?2) > 0 OR instr(lower(title), ?3) > 0 OR instr(title_folded, ?3) > 0
  OR id IN (SELECT thread FROM found)
)",
    hit: "(SELECT hit FROM found WHERE thread = threads.id)",
};

/// `scope`: the parameters of the selection.
fn page_statement(
    request: &ThreadListRequest,
    selection: &Selection,
    scope: Vec<Parameter>,
) -> Result<Statement, ThreadListError> {
    let column = match request.order {
        ThreadOrder::UpdatedAt => "updated_at_ms",
        ThreadOrder::CreatedAt => "created_at_ms",
    };
    let (direction, after) = if request.descending {
        ("DESC", "<")
    } else {
        ("ASC", ">")
    };
    let order = format!("ORDER BY {column} {direction}, id {direction}");
    let Selection { with, condition, hit } = selection;
    let columns = format!("SELECT {COLUMNS}, {hit} AS hit FROM threads");
    let [limit, first, second] = [1, 2, 3].map(|own| scope.len() + own);
    let mut parameters = scope;
    // One row more than asked for says whether there are more.
    parameters.push((u64::from(request.limit) + 1).into());
    Ok(match &request.start {
        PageStart::Offset(offset) => {
            parameters.push((*offset).into());
            Statement::new(
                format!("{with}{columns} WHERE {condition} {order} LIMIT +?{limit} OFFSET +?{first}"),
                parameters,
            )
        }
        PageStart::Cursor(text) => {
            let cursor = Cursor::decode(text).filter(|cursor| cursor.order == request.order);
            let cursor = cursor.ok_or(ThreadListError::BadCursor)?;
            parameters.extend([cursor.at_ms.into(), cursor.id.into()]);
            Statement::new(
                format!(
                    "{with}{columns} WHERE {condition} AND ({column}, id) {after} (?{first}, ?{second}) {order} LIMIT +?{limit}"
                ),
                parameters,
            )
        }
    })
}

fn scope(id: &ThreadId, caller: Option<&ResourceId>) -> Vec<Parameter> {
    vec![caller.map(ResourceId::as_str).into(), id.as_str().into()]
}

fn lookup(row: Option<&Row>, caller: Option<&ResourceId>) -> Result<Lookup<Thread>, StoreError> {
    let Some(row) = row else {
        return Ok(Lookup::Unknown);
    };
    let thread = thread(row)?;
    let is_callers = caller.is_none_or(|caller| *caller == thread.resource_id);
    Ok(if is_callers {
        Lookup::Found(thread)
    } else {
        Lookup::Foreign
    })
}

fn thread(row: &Row) -> Result<Thread, StoreError> {
    let fields = Fields(row);
    let metadata = json::object(fields.text("metadata")?).ok_or(StoreError::Corrupt("metadata"))?;
    Ok(Thread {
        id: fields.id("id", ThreadId::new)?,
        title: fields.optional_text("title")?.map(str::to_owned),
        resource_id: fields.id("resource_id", ResourceId::new)?,
        created_at_ms: fields.integer("created_at_ms")?,
        updated_at_ms: fields.integer("updated_at_ms")?,
        metadata,
    })
}
