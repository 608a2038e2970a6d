//! What an owner may use, looked at inside the start batch: of two runs that start at once, the second finds what the
//! first has stored. Tokens are known when a run ends.
//!
//! Runs that wait for a front-end result are not counted as running (2.2). Runs that are not persistent have no row and
//! count for nothing here.

use serde::{Deserialize, Serialize};

use super::StoreError;
use super::row::Fields;

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
  FROM threads t CROSS JOIN messages m ON m.thread_id = t.id WHERE t.resource_id = +?1)";

fn running(now: &str) -> String {
    format!(
        "(SELECT count(*) FROM runs q
  WHERE q.resource_id = +?1 AND q.status IN ('running', 'waiting') AND q.status = 'running' AND q.deadline_ms > {now})"
    )
}

fn tokens(now: &str) -> String {
    format!(
        "(SELECT coalesce(sum(coalesce(
    u.value ->> 'totalTokens', coalesce(u.value ->> 'inputTokens', 0) + coalesce(u.value ->> 'outputTokens', 0)
  )), 0)
  FROM runs q CROSS JOIN json_each(q.usage) u WHERE q.resource_id = +?1 AND q.started_at_ms >= {now} - {now} % {DAY_MS})"
    )
}

impl Quota {
    /// The condition under which a thread or a run row goes in, beginning with `AND`; empty without a limit. `now` is the
    /// number of a parameter, such as `?4`.
    pub(super) fn condition(&self, now: &str) -> String {
        self.measures(now)
            .map(|(most, _, sql)| format!("\n  AND {sql} < {most}"))
            .collect()
    }

    /// What is used of what is limited, as more columns, which are null unless `when` holds.
    pub(super) fn columns(&self, when: &str, now: &str) -> String {
        self.measures(now)
            .map(|(_, column, sql)| format!(",\n  CASE WHEN {when} THEN {sql} END AS {column}"))
            .collect()
    }

    /// Most, name and SQL of what is limited, the cheapest first.
    fn measures(&self, now: &str) -> impl Iterator<Item = (u64, &'static str, String)> {
        [
            (self.running_max_count, "running", running(now)),
            (self.tokens_per_day_max_count, "tokens", tokens(now)),
            (self.stored_max_bytes, "stored", STORED.to_owned()),
        ]
        .into_iter()
        .filter_map(|(most, column, sql)| Some((most?, column, sql)))
    }

    /// What a row with [`Self::columns`] says is used up.
    pub(super) fn exhausted(&self, row: Fields<'_>) -> Result<Option<Exhausted>, StoreError> {
        for (most, column, exhausted) in [
            (self.running_max_count, "running", Exhausted::Running),
            (self.tokens_per_day_max_count, "tokens", Exhausted::Tokens),
            (self.stored_max_bytes, "stored", Exhausted::Stored),
        ] {
            if let Some(most) = most
                && row.optional_integer(column)?.is_some_and(|used| used >= most)
            {
                return Ok(Some(exhausted));
            }
        }
        Ok(None)
    }
}
