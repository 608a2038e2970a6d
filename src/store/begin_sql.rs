//! SQL of the start batch.
//!
//! A batch cannot branch, so one write decides: the run row goes in if the thread is the owner's, the owner has no run
//! of this id and nothing is used up. Every other write asks for that row and the thread's turn ([`GATE`]), which the
//! last one takes; a batch sent again after its answer was lost therefore writes nothing and reads the same. In every
//! statement `?1` is the owner, `?2` the thread, `?3` the run, `?4` now and `?5` the run's object.

use super::body::MESSAGE_COLUMNS;
use super::messages::{COUNT_MESSAGES, count_rows};
use super::{Parameter, Quota, Statement};
use crate::list::List;
use crate::protocol::parts;

/// Places per turn: a message's place is turn * `TURN_PLACES` + index in the turn.
pub(super) const TURN_PLACES: u64 = 1 << 20;

/// Index in the turn of a run's first produced message; incoming ones are below.
pub(super) const PRODUCED_INDEX: u64 = 1 << 19;

/// Pending calls are looked for in this many messages that have any, newest first, so that a long thread of a client
/// that answers with its next run does not cost more and more.
const PENDING_MESSAGES_MAX: u32 = 64;

/// Whether a run of the thread waits for front-end results.
const WAITS: &str = "EXISTS (
    SELECT 1 FROM runs w INDEXED BY runs_live
    WHERE w.resource_id = +?1 AND w.thread_id = +?2 AND w.status IN ('running', 'waiting')
      AND w.status = 'waiting' AND w.deadline_ms > ?4
  )";

/// What a run finds: its thread, whether a run of it waits for front-end results, its own row and, without one, what its
/// owner has used. One row, whatever is there; what is missing is null.
pub(super) fn verdict(quota: &Quota) -> String {
    format!(
        "
SELECT t.resource_id AS owner, t.title_origin, {WAITS} AS waits,
  r.thread_id, r.incarnation, r.object, r.status, r.deadline_ms, r.turn{}
FROM (SELECT 1) LEFT JOIN threads t ON t.id = +?2 LEFT JOIN runs r ON r.id = +?3 AND r.resource_id = +?1",
        quota.columns("r.id IS NULL")
    )
}

/// `?6`: incarnation.
pub(super) fn create_thread(quota: &Quota) -> String {
    format!(
        "
INSERT INTO threads (
  id, resource_id, incarnation, metadata, next_turn, message_count, row_count, created_at_ms, updated_at_ms
)
SELECT ?2, ?1, ?6, '{{}}', 1, 0, 0, ?4, ?4
WHERE NOT EXISTS (SELECT 1 FROM runs WHERE id = +?3 AND resource_id = +?1)
  AND NOT EXISTS (SELECT 1 FROM threads WHERE id = +?2){}",
        quota.condition()
    )
}

/// Takes the turn, and counts a thread that an earlier version left uncounted. `?6`, `?7`: title, folded title.
pub(super) fn take_turn() -> String {
    format!(
        "
UPDATE threads SET
  message_count = coalesce(message_count, ({COUNT_MESSAGES})),
  row_count = coalesce(row_count, ({})),
  next_turn = next_turn + 1,
  updated_at_ms = max(updated_at_ms, ?4),
  title = coalesce(title, ?6),
  title_folded = CASE WHEN title IS NULL THEN ?7 ELSE title_folded END,
  title_origin = coalesce(title_origin, 'provisional')
WHERE id = +?2 AND resource_id = +?1 AND {GATE}",
        count_rows(false)
    )
}

/// First place of the run's turn, before and after the run row and the turn are written.
const TURN_START: &str = "(1048576 * coalesce(
    (SELECT turn FROM runs WHERE id = +?3 AND resource_id = +?1), (SELECT next_turn FROM threads WHERE id = +?2)
  ))";

/// The condition of every write but the two rows it stands on, the thread and the run.
const GATE: &str = "EXISTS (
    SELECT 1 FROM runs r CROSS JOIN threads t ON t.id = +?2
    WHERE r.id = +?3 AND r.resource_id = +?1 AND r.object = +?5
      AND r.turn = t.next_turn AND r.incarnation = t.incarnation
  )";

/// What all statements about the incoming messages share.
pub(super) struct Listing {
    /// Owner, thread, run, now, object: `?1` to `?5`.
    pub scope: [Parameter; 5],
    /// See `MessageList::identity_chunks`.
    pub identity_chunks: Vec<String>,
    /// Whether calls are answered.
    pub has_results: bool,
    /// Writes nothing while a run of the thread waits.
    pub only_if_nobody_waits: bool,
    /// Writes nothing once it is used up.
    pub quota: Quota,
}

impl Listing {
    /// A statement over `listed`, the incoming messages, and `shared`, those that were stored before this run: the columns
    /// named, each what is said of a stored message `m` and its entry `l` of the list. Whatever the statement asks of
    /// them belongs there: looking a stored message up again is another row read, for each of the list. `own`: its
    /// parameters from the given number on.
    fn statement(
        &self,
        (names, values): (&str, &str),
        own: Vec<Parameter>,
        sql: impl FnOnce(usize) -> String,
    ) -> Statement {
        let first_own = self.scope.len() + self.identity_chunks.len() + 1;
        let chunks: Vec<String> = (0..self.identity_chunks.len())
            .map(|chunk| format!("(?{})", self.scope.len() + 1 + chunk))
            .list();
        let results = if self.has_results {
            format!(
                "
  UNION ALL
  SELECT {values} FROM listed l CROSS JOIN messages m
    ON m.resource_id = +?1 AND m.thread_id = +?2 AND m.tool_call_id = l.call
  WHERE l.call IS NOT NULL AND m.place < {TURN_START}"
            )
        } else {
            String::new()
        };
        let sql = format!(
            "
WITH listed(i, id, call, role) AS (
  SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3
  FROM (VALUES {chunks}) chunk, json_each(chunk.column1)
),
shared({names}) AS MATERIALIZED (
  SELECT {values} FROM listed l CROSS JOIN messages m
    ON m.thread_id = +?2 AND m.id = l.id
  WHERE l.call IS NULL AND m.resource_id = +?1 AND m.place < {TURN_START}{results}
),
pending(place, call) AS (
  SELECT newest.place, c.value FROM (
    SELECT place, pending_calls FROM messages
    WHERE resource_id = +?1 AND thread_id = +?2 AND superseded_by IS NULL AND pending_calls IS NOT NULL
    ORDER BY place DESC LIMIT {PENDING_MESSAGES_MAX}
  ) newest, json_each(newest.pending_calls) c
)
{}",
            sql(first_own),
            chunks = parts::join(&chunks, ", "),
        );
        let mut parameters = self.scope.to_vec();
        parameters.extend(self.identity_chunks.iter().map(|chunk| chunk.as_str().into()));
        parameters.extend(own);
        Statement::new(sql, parameters)
    }

    /// Superseded messages of the list are visible again; stored messages after the last shared one, which therefore are
    /// not in the list, are hidden, but for those of live runs.
    pub fn show_listed_only(&self) -> Statement {
        let shared = (
            "message, place, is_hidden",
            "m.rowid, m.place, m.superseded_by IS NOT NULL",
        );
        self.statement(shared, Vec::new(), |_| {
            format!(
                "UPDATE messages SET superseded_by = CASE WHEN superseded_by IS NULL THEN ?3 END
WHERE {GATE} AND rowid IN (
  SELECT message FROM shared WHERE is_hidden
  UNION ALL
  SELECT m.rowid FROM messages m
  WHERE m.resource_id = +?1 AND m.thread_id = +?2 AND m.superseded_by IS NULL
    AND m.place > (SELECT max(place) FROM shared)
    AND m.run_id NOT IN (
      SELECT r.id FROM runs r INDEXED BY runs_live
      WHERE r.resource_id = +?1 AND r.thread_id = +?2 AND r.status IN ('running', 'waiting') AND r.deadline_ms > ?4
        AND r.id <> ?3
    )
)"
            )
        })
    }

    /// New messages after the last shared one, answers to pending calls wherever they are, and changed user content.
    /// `rows`: see `MessageList::row_chunks`.
    pub fn upsert(&self, rows: String) -> Statement {
        self.statement(("i", "l.i"), vec![rows.into()], |rows| {
            format!(
                "INSERT INTO messages (
  thread_id, id, resource_id, place, role, tool_call_id, run_id, body, more_pieces, digest, created_at_ms
)
SELECT
  ?2,
  CASE WHEN n.call IS NOT NULL AND EXISTS (SELECT 1 FROM messages m WHERE m.thread_id = +?2 AND m.id = n.id)
    THEN n.id || '#' || n.call ELSE n.id END,
  ?1, {TURN_START} + n.i, n.role, n.call, ?3, n.body, n.more, n.digest, ?4
FROM (
  SELECT value ->> 0 AS i, value ->> 1 AS id, value ->> 2 AS call, value ->> 3 AS role,
    value ->> 5 AS body, value ->> 6 AS more, value ->> 7 AS digest
  FROM json_each(?{rows})
) n
WHERE {GATE} AND CASE WHEN n.i IN (SELECT i FROM shared)
  THEN n.role = 'user'
  ELSE n.i > coalesce((SELECT max(i) FROM shared), -1) OR n.call IN (SELECT call FROM pending) END
ON CONFLICT (thread_id, id) DO UPDATE SET body = excluded.body, more_pieces = excluded.more_pieces,
    digest = excluded.digest, attachments = NULL, attachment_bytes = NULL
  WHERE messages.role = 'user' AND excluded.role = 'user'
    AND CASE WHEN messages.digest IS NULL OR excluded.digest IS NULL
      THEN messages.body <> excluded.body OR messages.more_pieces <> excluded.more_pieces
      ELSE messages.digest <> excluded.digest END
ON CONFLICT DO NOTHING"
            )
        })
    }

    /// Continuations of bodies. `rows`: see `MessageList::row_chunks`.
    pub fn upsert_pieces(&self, rows: String) -> Statement {
        let sql = insert_pieces(
            6,
            &format!("(m.place >= {TURN_START} OR m.role = 'user' AND n.role = 'user') AND {GATE}"),
        );
        let mut parameters = self.scope.to_vec();
        parameters.push(rows.into());
        Statement::new(sql, parameters)
    }

    /// The run row, which decides whether anything else is written.
    pub fn insert_run(&self, agent_id: &str, deadline_ms: u64) -> Statement {
        let nobody_waits = if self.only_if_nobody_waits {
            format!(" AND NOT {WAITS}")
        } else {
            String::new()
        };
        let sql = format!(
            "
INSERT INTO runs (
  id, resource_id, thread_id, incarnation, agent_id, object, status, turn, started_at_ms, deadline_ms
)
SELECT ?3, ?1, t.id, t.incarnation, ?6, ?5, 'running', t.next_turn, ?4, ?7
FROM threads t WHERE t.id = +?2 AND t.resource_id = +?1
  AND NOT EXISTS (SELECT 1 FROM runs WHERE id = +?3 AND resource_id = +?1){nobody_waits}{}",
            self.quota.condition()
        );
        let mut parameters = self.scope.to_vec();
        parameters.extend([agent_id.into(), deadline_ms.into()]);
        Statement::new(sql, parameters)
    }

    /// What the model is shown of the thread, as rows without `i`: the newest visible messages before the first shared
    /// one, `after_shared` of them if anything is shared, else `last_messages`. With results, everything from the
    /// oldest pending call on that an incoming message answers, too: without the call the answer would say nothing.
    ///
    /// Then stored versions of incoming messages, `i` being the index in the list; not where the incoming content counts.
    pub fn history(&self, last_messages: u64, after_shared: u64) -> Statement {
        let exchange = if self.has_results {
            format!(
                "
UNION ALL
SELECT NULL, {MESSAGE_COLUMNS} FROM messages m
WHERE {BEFORE_SHARED} AND m.place >= (SELECT min(p.place) FROM pending p WHERE p.call IN (SELECT call FROM listed))"
            )
        } else {
            String::new()
        };
        let shared = (
            "i, message, place, is_user",
            "l.i, m.rowid, m.place, m.role = 'user' AND l.role = 'user'",
        );
        self.statement(shared, vec![last_messages.into(), after_shared.into()], |first| {
            format!(
                "SELECT * FROM (
  SELECT NULL AS i, {MESSAGE_COLUMNS} FROM messages m
  WHERE {BEFORE_SHARED}
  ORDER BY m.place DESC
  LIMIT CASE WHEN EXISTS (SELECT 1 FROM shared) THEN ?{} ELSE ?{first} END
){exchange}
UNION ALL
SELECT s.i, {MESSAGE_COLUMNS} FROM shared s CROSS JOIN messages m ON m.rowid = s.message
WHERE NOT s.is_user",
                first + 1
            )
        })
    }
}

const BEFORE_SHARED: &str = "m.resource_id = +?1 AND m.thread_id = +?2 AND m.superseded_by IS NULL
  AND m.role NOT IN ('activity', 'reasoning')
  AND m.place < coalesce((SELECT min(place) FROM shared), (1048576 * coalesce(
    (SELECT turn FROM runs WHERE id = +?3 AND resource_id = +?1), (SELECT next_turn FROM threads WHERE id = +?2)
  )))";

/// Inserts continuations of messages `m` from rows `n` under a condition. A tool message is found by its call: its id
/// may have been taken. One whose values are in the bucket has not changed, or it would not refer to them any more.
pub(super) fn insert_pieces(rows_parameter: usize, condition: &str) -> String {
    format!(
        "
INSERT INTO message_pieces (thread_id, message_id, piece, text)
SELECT ?2, m.id, n.piece, n.text
FROM (
  SELECT value ->> 0 AS id, value ->> 1 AS call, value ->> 2 AS role, value ->> 3 AS piece, value ->> 4 AS text
  FROM json_each(?{rows_parameter})
) n CROSS JOIN messages m ON m.rowid = CASE WHEN n.call IS NULL
  THEN (SELECT rowid FROM messages WHERE thread_id = +?2 AND id = n.id)
  ELSE (SELECT rowid FROM messages WHERE resource_id = +?1 AND thread_id = +?2 AND tool_call_id = n.call) END
WHERE {condition} AND m.attachments IS NULL
ON CONFLICT (thread_id, message_id, piece) DO UPDATE SET text = excluded.text"
    )
}
