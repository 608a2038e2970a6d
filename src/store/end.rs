//! The rest of a run's life in rows: waiting, ending, being forgotten, being found lost.

use super::begin_sql::{PRODUCED_INDEX, TURN_PLACES, insert_pieces};
use super::incoming::MessageList;
use super::title::folded;
use super::{
    Attachments, Database, EndRun, Parameter, PersistentRun, RunStatus, Statement, Store, StoreError,
};
use crate::protocol::id::{ObjectAddress, ResourceId, RunId};
use crate::protocol::json;
use crate::protocol::tree::json;

/// The thread the run began on still exists, not another one of the same id. Owner, thread, incarnation: `?1` to `?3`.
pub(super) const SAME_THREAD: &str =
    "EXISTS (SELECT 1 FROM threads WHERE id = +?2 AND resource_id = +?1 AND incarnation = +?3)";

/// Parameters: owner, run, incarnation, turn, status, usage, now. The turn is the run's alone, so the row is the
/// run's own and not that of a retry. A row that has ended stays as it is.
const END_RUN: &str = "
UPDATE runs SET status = ?5, usage = ?6, finished_at_ms = ?7
WHERE id = +?2 AND resource_id = +?1 AND incarnation = +?3 AND turn = +?4 AND status IN ('running', 'waiting')";

/// Parameters: owner, thread, incarnation, now.
const TOUCH_THREAD: &str = "
UPDATE threads SET updated_at_ms = max(updated_at_ms, ?4)
WHERE id = +?2 AND resource_id = +?1 AND incarnation = +?3";

/// Parameters: owner, run, incarnation, turn, status, deadline.
const SET_STATUS: &str = "
UPDATE runs SET status = ?5, deadline_ms = ?6
WHERE id = +?2 AND resource_id = +?1 AND incarnation = +?3 AND turn = +?4 AND status IN ('running', 'waiting')";

/// Parameters: owner, run, incarnation, turn.
const FORGET_RUN: &str = "
DELETE FROM runs
WHERE id = +?2 AND resource_id = +?1 AND incarnation = +?3 AND turn = +?4 AND status IN ('running', 'waiting')";

/// Parameters: owner, run, object, now.
const CLOSE_ORPHAN: &str = "
UPDATE runs SET status = 'failed', finished_at_ms = ?4
WHERE id = +?2 AND resource_id = +?1 AND object = +?3 AND status IN ('running', 'waiting')";

/// Parameters: owner, thread, incarnation, title, folded title.
const SET_GENERATED_TITLE: &str = "
UPDATE threads SET title = ?4, title_folded = ?5, title_origin = 'generated'
WHERE id = +?2 AND resource_id = +?1 AND incarnation = +?3 AND title_origin = 'provisional'";

impl<D: Database, A: Attachments> Store<D, A> {
    /// The end batch: everything produced and the final state, atomically. A thread deleted or re-created meanwhile
    /// is left alone; a run row already ended is not ended twice, and no message is stored twice.
    ///
    /// # Errors
    /// [`StoreError`]; nothing is half-written then.
    pub async fn end_run(&self, run: &PersistentRun, end: EndRun) -> Result<(), StoreError> {
        self.write(end_batch(run, end)?).await
    }

    /// Marks a run as waiting for front-end results, or as running again; past the new `deadline_ms` (Unix
    /// milliseconds) the row reads as failed.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn set_run_status(
        &self,
        run: &PersistentRun,
        status: RunStatus,
        deadline_ms: u64,
    ) -> Result<(), StoreError> {
        let [owner, id, incarnation, turn] = run_row(run);
        let parameters = vec![
            owner,
            id,
            incarnation,
            turn,
            status.as_str().into(),
            deadline_ms.into(),
        ];
        self.write_unless_read_only(run, Statement::new(SET_STATUS, parameters))
            .await
    }

    /// Forgets a run that was refused before its stream; its user message stays. Source: D12.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn forget_run(&self, run: &PersistentRun) -> Result<(), StoreError> {
        self.write_unless_read_only(run, Statement::new(FORGET_RUN, run_row(run).to_vec()))
            .await
    }

    /// Replaces a provisional title by a model-written one; a user's title is never overwritten. Source: contract 4.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn set_generated_title(&self, run: &PersistentRun, title: &str) -> Result<(), StoreError> {
        let [owner, thread, incarnation] = thread_row(run);
        let parameters = vec![owner, thread, incarnation, title.into(), folded(title).into()];
        self.write_unless_read_only(run, Statement::new(SET_GENERATED_TITLE, parameters))
            .await
    }

    /// Closes a run whose object lost it: running or waiting becomes failed, anything else stays. Source: contract 8.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn close_orphan(
        &self,
        owner: &ResourceId,
        run_id: &RunId,
        object: ObjectAddress,
        now_ms: u64,
    ) -> Result<(), StoreError> {
        let object = object.to_base64url();
        let parameters = vec![
            owner.as_str().into(),
            run_id.as_str().into(),
            object.into(),
            now_ms.into(),
        ];
        self.write(vec![Statement::new(CLOSE_ORPHAN, parameters)]).await
    }

    /// Runs a batch of [`end_batch`] that was kept because the database did not take it. May be done again.
    ///
    /// # Errors
    /// [`StoreError`]; nothing is half-written then.
    pub async fn write(&self, statements: Vec<Statement>) -> Result<(), StoreError> {
        if !statements.is_empty() {
            self.database.batch(statements).await?;
        }
        Ok(())
    }

    async fn write_unless_read_only(
        &self,
        run: &PersistentRun,
        statement: Statement,
    ) -> Result<(), StoreError> {
        if run.read_only {
            return Ok(());
        }
        self.write(vec![statement]).await
    }
}

/// The statements of [`Store::end_run`], for an object that keeps them when the database does not take them. Empty for
/// a read-only run.
///
/// # Errors
/// [`StoreError::Corrupt`] when a message has no JSON form.
pub fn end_batch(run: &PersistentRun, end: EndRun) -> Result<Vec<Statement>, StoreError> {
    if run.read_only {
        return Ok(Vec::new());
    }
    let [owner, thread, incarnation] = thread_row(run);
    let scope = || vec![owner.clone(), thread.clone(), incarnation.clone()];
    let turn_start = run.turn.saturating_mul(TURN_PLACES);
    let (rows, pieces) = MessageList::new(end.produced).row_chunks(&end.pending_tool_call_ids)?;
    let mut statements = Vec::new();
    for rows in rows {
        let mut parameters = scope();
        parameters.extend([
            (turn_start + PRODUCED_INDEX).into(),
            run.run_id.as_str().into(),
            run.user_message_id.as_ref().map(|id| id.as_str()).into(),
            end.now_ms.into(),
            rows.into(),
        ]);
        statements.push(Statement::new(insert_produced(), parameters));
    }
    for pieces in pieces {
        let mut parameters = scope();
        parameters.extend([turn_start.into(), pieces.into()]);
        let sql = insert_pieces(5, &format!("m.place >= ?4 AND {SAME_THREAD}"));
        statements.push(Statement::new(sql, parameters));
    }
    let [_, id, _, turn] = run_row(run);
    let usage = (!end.usage.is_empty()).then(|| json::text(&json!(end.usage)));
    let (status, now): (Parameter, Parameter) = (end.status.as_str().into(), end.now_ms.into());
    statements.push(Statement::new(
        END_RUN,
        vec![
            owner.clone(),
            id,
            incarnation.clone(),
            turn,
            status,
            usage.into(),
            now.clone(),
        ],
    ));
    statements.push(Statement::new(
        TOUCH_THREAD,
        vec![owner, thread, incarnation, now],
    ));
    Ok(statements)
}

/// First place, run, user message, now, rows: `?4` to `?8`.
fn insert_produced() -> String {
    format!(
        "
INSERT INTO messages (
  thread_id, id, resource_id, place, role, tool_call_id, run_id, superseded_by, pending_calls, body, more_pieces,
  created_at_ms
)
SELECT ?2, value ->> 1, ?1, ?4 + (value ->> 0), value ->> 3, value ->> 2, ?5,
  (SELECT superseded_by FROM messages WHERE thread_id = +?2 AND id = +?6),
  value ->> 4, value ->> 5, value ->> 6, ?7
FROM json_each(?8) WHERE {SAME_THREAD}
ON CONFLICT DO NOTHING"
    )
}

/// Owner, thread, incarnation.
fn thread_row(run: &PersistentRun) -> [Parameter; 3] {
    [
        run.owner.as_str().into(),
        run.thread_id.as_str().into(),
        run.incarnation.as_str().into(),
    ]
}

/// Owner, run, incarnation, turn.
fn run_row(run: &PersistentRun) -> [Parameter; 4] {
    [
        run.owner.as_str().into(),
        run.run_id.as_str().into(),
        run.incarnation.as_str().into(),
        run.turn.into(),
    ]
}
