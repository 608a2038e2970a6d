//! What an owner may use, looked at inside the start batch: of two runs that start at once, the second finds what the
//! first has stored. Tokens are known when a run ends.
//!
//! Runs that wait for a front-end result are not counted as running (2.2). Runs that are not persistent have no row and
//! count for nothing here.

use super::StoreError;
use super::row::Fields;

/// Milliseconds of the day that tokens are counted in, which begins at midnight UTC.
pub const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Most of each that an owner may have; `None` = as much as it likes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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

/// In all of them `?1` is the owner and `?4` now.
fn stored() -> String {
    "(SELECT coalesce(sum(length(CAST(m.body AS BLOB)) + coalesce(m.attachment_bytes, 0) + coalesce((
    SELECT sum(length(CAST(p.text AS BLOB))) FROM message_pieces p
    WHERE m.more_pieces > 0 AND p.thread_id = m.thread_id AND p.message_id = m.id
  ), 0)), 0)
  FROM threads t CROSS JOIN messages m ON m.thread_id = t.id WHERE t.resource_id = +?1)"
        .to_owned()
}

fn running() -> String {
    "(SELECT count(*) FROM runs q INDEXED BY runs_live
  WHERE q.resource_id = +?1 AND q.status IN ('running', 'waiting') AND q.status = 'running' AND q.deadline_ms > ?4)"
        .to_owned()
}

fn tokens() -> String {
    format!(
        "(SELECT coalesce(sum(coalesce(
    u.value ->> 'totalTokens', coalesce(u.value ->> 'inputTokens', 0) + coalesce(u.value ->> 'outputTokens', 0)
  )), 0)
  FROM runs q CROSS JOIN json_each(q.usage) u WHERE q.resource_id = +?1 AND q.started_at_ms >= ?4 - ?4 % {DAY_MS})"
    )
}

/// Something that may be limited.
struct Measure {
    column: &'static str,
    used: fn() -> String,
    exhausted: Exhausted,
}

impl Quota {
    /// The condition under which a thread or a run row goes in, beginning with `AND`; empty without a limit.
    pub(super) fn condition(&self) -> String {
        self.measures()
            .map(|(most, measure)| format!("\n  AND {} < {most}", (measure.used)()))
            .collect()
    }

    /// What is used of what is limited, as more columns, which are null unless `when` holds.
    pub(super) fn columns(&self, when: &str) -> String {
        self.measures()
            .map(|(_, Measure { column, used, .. })| {
                format!(",\n  CASE WHEN {when} THEN {} END AS {column}", used())
            })
            .collect()
    }

    /// What a row with [`Self::columns`] says is used up.
    pub(super) fn exhausted(&self, row: Fields<'_>) -> Result<Option<Exhausted>, StoreError> {
        for (most, measure) in self.measures() {
            let used = row.optional_integer(measure.column)?;
            if used.is_some_and(|used| used >= most) {
                return Ok(Some(measure.exhausted));
            }
        }
        Ok(None)
    }

    /// What is limited and how far, the cheapest to look at first.
    fn measures(&self) -> impl Iterator<Item = (u64, Measure)> {
        let measure = |column, used, exhausted| Measure {
            column,
            used,
            exhausted,
        };
        [
            (
                self.running_max_count,
                measure("running", running, Exhausted::Running),
            ),
            (
                self.tokens_per_day_max_count,
                measure("tokens", tokens, Exhausted::Tokens),
            ),
            (
                self.stored_max_bytes,
                measure("stored", stored, Exhausted::Stored),
            ),
        ]
        .into_iter()
        .filter_map(|(most, measure)| Some((most?, measure)))
    }
}
