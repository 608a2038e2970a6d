//! Message bodies in rows: cut into pieces on the way in, put together on the way out.

use super::attachments::reattach;
use super::row::Fields;
use super::{AnyDatabase, Attachments, Database, Row, Statement, Store, StoreError};
use crate::protocol::json;
use crate::protocol::read;
use crate::protocol::tree::json;

/// Longest piece of a body, in UTF-8 bytes. A body is JSON text, so writing it into a JSON parameter at most doubles
/// it: one piece always fits [`CHUNK_MAX_BYTES`]. Source: D1's 2 MB for a row or value (known fault B103).
pub(super) const PIECE_MAX_BYTES: usize = 700_000;

/// Longest `json_each` parameter, in UTF-8 bytes.
const CHUNK_MAX_BYTES: usize = 1_500_000;

/// Cuts a body at character boundaries; never empty.
pub(super) fn pieces(body: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = body;
    while rest.len() > PIECE_MAX_BYTES {
        let end = (1..=PIECE_MAX_BYTES)
            .rev()
            .find(|at| rest.is_char_boundary(*at))
            .unwrap_or(rest.len());
        let Some((piece, after)) = rest.split_at_checked(end) else {
            break;
        };
        pieces.push(piece);
        rest = after;
    }
    pieces.push(rest);
    pieces
}

/// Joins JSON rows to as few JSON arrays as fit a parameter each.
pub(super) fn chunks(rows: impl IntoIterator<Item = String>) -> Vec<String> {
    joined(&mut rows.into_iter())
}

fn joined(rows: &mut dyn Iterator<Item = String>) -> Vec<String> {
    let mut chunks: Vec<String> = Vec::new();
    for row in rows {
        match chunks.last_mut() {
            Some(chunk) if chunk.len() + row.len() + 1 < CHUNK_MAX_BYTES => chunk.push(','),
            Some(_) | None => chunks.push("[".to_owned()),
        }
        if let Some(chunk) = chunks.last_mut() {
            chunk.push_str(&row);
        }
    }
    for chunk in &mut chunks {
        chunk.push(']');
    }
    chunks
}

/// A row of a message: its id, its place and its whole body.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct StoredMessage {
    pub id: String,
    pub role: String,
    pub place: u64,
    pub created_at_ms: u64,
    /// Calls marked pending that have no result in storage.
    pub open_calls: Vec<String>,
    /// Keys of values in the bucket, a JSON array; they stand in the body where the values were.
    pub attachments: Option<String>,
    /// JSON text.
    pub body: String,
}

/// Columns [`StoredMessage`] is read from, of `messages m`.
pub(super) const MESSAGE_COLUMNS: &str = "
  m.id, m.role, m.place, m.created_at_ms, m.body, m.more_pieces, m.attachments,
  (SELECT json_group_array(c.value) FROM json_each(m.pending_calls) c
   WHERE NOT EXISTS (
     SELECT 1 FROM messages t
     WHERE t.resource_id = m.resource_id AND t.thread_id = m.thread_id AND t.tool_call_id = c.value
   )) AS open_calls";

impl<D: Database, A: Attachments> Store<D, A> {
    /// Reads messages of one thread whose owner is already proven, whole.
    pub(super) async fn stored_messages(
        &self,
        thread_id: &str,
        rows: &[Row],
    ) -> Result<Vec<StoredMessage>, StoreError> {
        let mut messages = read_messages(&self.database, thread_id, rows).await?;
        reattach(&self.attachments, &mut messages).await?;
        Ok(messages)
    }

    /// Reads them with keys in the place of values that are in the bucket.
    pub(super) async fn without_attachments(
        &self,
        thread_id: &str,
        rows: &[Row],
    ) -> Result<Vec<StoredMessage>, StoreError> {
        read_messages(&self.database, thread_id, rows).await
    }
}

/// Only a body that is in pieces costs a second batch: reading the pieces in the first one would read every row of the
/// page twice, for messages that hardly anyone has.
async fn read_messages(
    database: &dyn AnyDatabase,
    thread_id: &str,
    rows: &[Row],
) -> Result<Vec<StoredMessage>, StoreError> {
    let mut messages = Vec::with_capacity(rows.len());
    let mut piece_counts: Vec<(String, u64)> = Vec::new();
    for row in rows {
        let fields = Fields(row);
        let message = StoredMessage {
            id: fields.text("id")?.to_owned(),
            role: fields.text("role")?.to_owned(),
            place: fields.integer("place")?,
            created_at_ms: fields.integer("created_at_ms")?,
            open_calls: read::from_text(fields.text("open_calls")?)
                .map_err(|_| StoreError::Corrupt("open_calls"))?,
            attachments: fields.optional_text("attachments")?.map(str::to_owned),
            body: fields.text("body")?.to_owned(),
        };
        let more = fields.integer("more_pieces")?;
        if more > 0 && piece_counts.iter().all(|(id, _)| *id != message.id) {
            piece_counts.push((message.id.clone(), more));
        }
        messages.push(message);
    }
    let wanted = chunks(
        piece_counts
            .iter()
            .map(|(id, count)| json::text(&json!([id, count]))),
    );
    let statements: Vec<Statement> = wanted
        .into_iter()
        .map(|ids| Statement::new(PIECES, vec![thread_id.into(), ids.into()]))
        .collect();
    if statements.is_empty() {
        return Ok(messages);
    }
    for row in database.run(statements).await?.iter().flatten() {
        let (id, text) = (Fields(row).text("message_id")?, Fields(row).text("text")?);
        if let Some(message) = messages.iter_mut().find(|message| message.id == id) {
            message.body.push_str(text);
        }
    }
    Ok(messages)
}

/// A replaced body may leave pieces of a longer one behind: the count says which are alive.
const PIECES: &str = "
SELECT p.message_id, p.text
FROM json_each(?2) wanted CROSS JOIN message_pieces p
  ON p.thread_id = +?1 AND p.message_id = wanted.value ->> 0 AND p.piece <= wanted.value ->> 1
ORDER BY p.message_id, p.piece";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_cut_at_characters_and_join_to_the_body() {
        assert_eq!(pieces(""), [""]);
        assert_eq!(pieces("short"), ["short"]);
        let body = "é".repeat(PIECE_MAX_BYTES);
        let body = format!("x{body}");
        let cut = pieces(&body);
        let lengths: Vec<usize> = cut.iter().map(|piece| piece.len()).collect();
        assert_eq!(lengths, [PIECE_MAX_BYTES - 1, PIECE_MAX_BYTES, 2]);
        assert_eq!(cut.concat(), body);
    }

    #[test]
    fn chunks_are_arrays_below_the_limit() {
        assert_eq!(chunks([]), Vec::<String>::new());
        assert_eq!(chunks(["[1]".to_owned(), "[2]".to_owned()]), ["[[1],[2]]"]);
        let row = format!("[\"{}\"]", "\\\"".repeat(PIECE_MAX_BYTES));
        let chunks = chunks([row.clone(), "[1]".to_owned(), row]);
        assert_eq!(chunks.len(), 2);
        assert!(chunks.iter().all(|chunk| chunk.len() < CHUNK_MAX_BYTES));
    }
}
