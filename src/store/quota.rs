//! What an owner may use. Runs at work are counted inside the start batch, so that of two that start at once one is the
//! last; tokens and bytes just before it.
//!
//! Runs that wait for a front-end result are not counted as running (2.2). Runs that are not persistent have no row and
//! count for nothing here.

use serde::{Deserialize, Serialize};

use super::row::Fields;
use super::{Parameter, Row, Statement, StoreError};

/// Milliseconds of the day that tokens are counted in, which begins at midnight UTC.
pub const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Most of each that an owner may have; `None` = as much as it likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Quota {
    /// Runs at work at the same time.
    pub running_max_count: Option<u64>,
    /// Tokens of the runs that started today. A run that is at work goes on beyond it.
    pub tokens_per_day_max_count: Option<u64>,
    /// Bytes of stored messages.
    pub stored_max_bytes: Option<u64>,
}

/// What is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exhausted {
    /// Too many runs are at work.
    Running,
    /// Today's tokens.
    Tokens,
    /// The room for messages.
    Stored,
}

/// The owner is `?1` in all of them.
const STORED: &str =
    "(SELECT coalesce(sum(length(CAST(m.body AS BLOB)) + coalesce(m.attachment_bytes, 0) + coalesce((
    SELECT sum(length(CAST(p.text AS BLOB))) FROM message_pieces p
    WHERE m.more_pieces > 0 AND p.thread_id = m.thread_id AND p.message_id = m.id
  ), 0)), 0)
  FROM threads t CROSS JOIN messages m ON m.thread_id = t.id WHERE t.resource_id = ?1)";

fn running(now: &str) -> String {
    format!(
        "(SELECT count(*) FROM runs q
  WHERE q.resource_id = ?1 AND q.status IN ('running', 'waiting') AND q.status = 'running' AND q.deadline_ms > {now})"
    )
}

fn tokens(now: &str) -> String {
    format!(
        "(SELECT coalesce(sum(coalesce(
    u.value ->> 'totalTokens', coalesce(u.value ->> 'inputTokens', 0) + coalesce(u.value ->> 'outputTokens', 0)
  )), 0)
  FROM runs q CROSS JOIN json_each(q.usage) u WHERE q.resource_id = ?1 AND q.started_at_ms >= {now} - {now} % {DAY_MS})"
    )
}

impl Quota {
    /// The condition of a write in the start batch, beginning with `AND`; empty without a limit of running runs. `now`
    /// is the number of a parameter, such as `?4`.
    pub(super) fn condition(&self, now: &str) -> String {
        match self.running_max_count {
            Some(most) => format!("\n  AND {} < {most}", running(now)),
            None => String::new(),
        }
    }

    /// How many runs are at work; `None` = that does not matter.
    pub(super) fn running(&self, owner: &Parameter, now: &Parameter) -> Option<Statement> {
        self.running_max_count?;
        let sql = format!("SELECT {} AS running", running("?2"));
        Some(Statement::new(sql, vec![owner.clone(), now.clone()]))
    }

    /// What is used of the rest, which is looked at before the start batch: it changes inside it. `None` = that does not
    /// matter.
    pub(super) fn used(&self, owner: &Parameter, now: &Parameter) -> Option<Statement> {
        let columns = [
            self.tokens_per_day_max_count
                .map(|_| format!("{} AS tokens", tokens("?2"))),
            self.stored_max_bytes.map(|_| format!("{STORED} AS stored")),
        ];
        let columns: Vec<String> = columns.into_iter().flatten().collect();
        let sql = format!("SELECT {}, ?2 AS now", columns.join(", "));
        (!columns.is_empty()).then(|| Statement::new(sql, vec![owner.clone(), now.clone()]))
    }

    /// What a row of [`Self::running`] or [`Self::used`] says is used up.
    pub(super) fn exhausted(&self, row: Option<&Row>) -> Result<Option<Exhausted>, StoreError> {
        let Some(row) = row else {
            return Ok(None);
        };
        for (most, column, exhausted) in [
            (self.running_max_count, "running", Exhausted::Running),
            (self.tokens_per_day_max_count, "tokens", Exhausted::Tokens),
            (self.stored_max_bytes, "stored", Exhausted::Stored),
        ] {
            if let Some(most) = most
                && row.contains_key(column)
                && Fields(row).integer(column)? >= most
            {
                return Ok(Some(exhausted));
            }
        }
        Ok(None)
    }
}
