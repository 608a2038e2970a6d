//! Run rows, read by the routes that address a run.

use super::row::Fields;
use super::{Attachments, Database, Parameter, Row, RunStatus, Statement, Store, StoreError};
use crate::list::all;
use crate::protocol::id::{AgentId, ObjectAddress, ResourceId, RunId, ThreadId};

/// What is kept of a run, also after its thread is gone. Source: contract 3, 8, D12.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunRow {
    /// The run.
    pub run_id: RunId,
    /// Its owner.
    pub owner: ResourceId,
    /// Its thread; may be deleted.
    pub thread_id: ThreadId,
    /// Its agent.
    pub agent_id: AgentId,
    /// The object it lives or lived in.
    pub object: ObjectAddress,
    /// Its state; a live one past its deadline reads as failed.
    pub status: RunStatus,
    /// Unix milliseconds.
    pub started_at_ms: u64,
    /// Unix milliseconds; absent while it lives, and of a run that was lost.
    pub finished_at_ms: Option<u64>,
}

const COLUMNS: &str = "
SELECT id, resource_id, thread_id, agent_id, object, status, deadline_ms, started_at_ms, finished_at_ms FROM runs";

/// Ids are unique per owner only, and clients choose them: this many owners' runs are looked at.
const SAME_ID_MAX: u32 = 100;

impl<D: Database, A: Attachments> Store<D, A> {
    /// The owner's run of this id.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn run_row(
        &self,
        owner: &ResourceId,
        run_id: &RunId,
        now_ms: u64,
    ) -> Result<Option<RunRow>, StoreError> {
        let sql = format!("{COLUMNS} WHERE id = +?1 AND resource_id = +?2");
        let parameters = vec![run_id.as_str().into(), owner.as_str().into()];
        Ok(self.run_rows(sql, parameters, now_ms).await?.into_iter().next())
    }

    /// The runs of this id, whoever owns them, at most a hundred: to tell a foreign run from none, and for callers
    /// without an owner (D4).
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn find_runs(&self, run_id: &RunId, now_ms: u64) -> Result<Vec<RunRow>, StoreError> {
        let sql = format!("{COLUMNS} WHERE id = +?1 ORDER BY resource_id LIMIT {SAME_ID_MAX}");
        self.run_rows(sql, vec![run_id.as_str().into()], now_ms).await
    }

    async fn run_rows(
        &self,
        sql: String,
        parameters: Vec<Parameter>,
        now_ms: u64,
    ) -> Result<Vec<RunRow>, StoreError> {
        let results = self.database.batch(vec![Statement::new(sql, parameters)]).await?;
        all(results.iter().flatten().map(|row| run_row(row, now_ms)))
    }
}

fn run_row(row: &Row, now_ms: u64) -> Result<RunRow, StoreError> {
    let fields = Fields(row);
    let status = RunStatus::parse(fields.text("status")?).ok_or(StoreError::Corrupt("status"))?;
    Ok(RunRow {
        run_id: fields.id("id", RunId::new)?,
        owner: fields.id("resource_id", ResourceId::new)?,
        thread_id: fields.id("thread_id", ThreadId::new)?,
        agent_id: fields.id("agent_id", AgentId::new)?,
        object: ObjectAddress::from_base64url(fields.text("object")?).ok_or(StoreError::Corrupt("object"))?,
        status: status.at(now_ms, fields.integer("deadline_ms")?),
        started_at_ms: fields.integer("started_at_ms")?,
        finished_at_ms: fields.optional_integer("finished_at_ms")?,
    })
}
