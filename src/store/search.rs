//! The index of message texts, a database of its own.
//!
//! It only proposes: [`Store::search_threads`] takes a hit for what the main database still shows. So a row that was
//! left behind is harmless, and the whole index can be built anew (`scripts/reindex.mjs` writes the same rows).

use std::fmt::Write as _;

use serde_json::Value;

use super::begin_sql::TURN_PLACES;
use super::body::{MESSAGE_COLUMNS, chunks};
use super::row::Fields;
use super::{Attachments, Database, PersistentRun, Statement, Store, StoreError};
use crate::list::{List, all};
use crate::platform::is_alphanumeric;
use crate::protocol::id::{MessageId, ResourceId, ThreadId};
use crate::protocol::json;
use crate::protocol::message::{Message, MessageBody};
use crate::protocol::parts;
use crate::protocol::tree::json;

/// Characters of a message that are indexed.
const TEXT_MAX_CHARS: usize = 50_000;

/// Words of a search; more of them find nothing new.
const WORDS_MAX: usize = 32;

/// Hits of a search, newest first.
const HITS_MAX: u32 = 1000;

/// Rows of an owner or thread that one batch takes out.
const ROWS_MAX: u32 = 2000;

/// Words of a snippet.
const SNIPPET_WORDS: u32 = 24;

/// Stands between the characters of scripts that put no spaces between words: each becomes a word.
const ZERO_WIDTH_SPACE: char = '\u{200b}';

/// Those scripts: Thai, Lao, Myanmar, Khmer, Kana, Han.
const UNSPACED: [(char, char); 9] = [
    ('\u{0e00}', '\u{0eff}'),
    ('\u{1000}', '\u{109f}'),
    ('\u{1780}', '\u{17ff}'),
    ('\u{3040}', '\u{30ff}'),
    ('\u{31f0}', '\u{31ff}'),
    ('\u{3400}', '\u{9fff}'),
    ('\u{f900}', '\u{faff}'),
    ('\u{ff66}', '\u{ff9f}'),
    ('\u{20000}', '\u{323af}'),
];

/// A message whose text was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchHit {
    /// Its thread.
    pub thread_id: ThreadId,
    /// Its id.
    pub message_id: MessageId,
    /// Its row in the index; later indexed, higher.
    pub row: u64,
}

/// A message's text for the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexedText {
    /// Its id.
    pub message_id: MessageId,
    /// What it says.
    pub text: String,
}

/// The index over its [`Database`], the `SEARCH` binding.
#[derive(Debug, Clone)]
pub struct SearchIndex<D> {
    database: D,
}

impl<D: Database> SearchIndex<D> {
    /// The index in this database.
    pub fn new(database: D) -> Self {
        Self { database }
    }

    /// Messages of an owner that have all words of a text, each word as a whole or as a beginning; case and accents do
    /// not count.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn find(&self, owner: &ResourceId, search: &str) -> Result<Vec<SearchHit>, StoreError> {
        let Some(words) = words_expression(search) else {
            return Ok(Vec::new());
        };
        let sql = format!(
            "SELECT rowid AS row, thread_id, message_id FROM message_text
WHERE message_text MATCH ?1 AND resource_id = +?2 ORDER BY rowid DESC LIMIT {HITS_MAX}"
        );
        let expression = format!("keys : \"{}\" AND text : ({words})", owner_key(owner));
        let parameters = vec![expression.into(), owner.as_str().into()];
        let results = self.database.batch(vec![Statement::new(sql, parameters)]).await?;
        let hit = |row| {
            let fields = Fields(row);
            Ok(SearchHit {
                thread_id: fields.id("thread_id", ThreadId::new)?,
                message_id: fields.id("message_id", MessageId::new)?,
                row: fields.integer("row")?,
            })
        };
        all(results.iter().flatten().map(hit))
    }

    /// The words around what was found, by row.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn snippets(&self, search: &str, rows: &[u64]) -> Result<Vec<(u64, String)>, StoreError> {
        let Some(words) = words_expression(search).filter(|_| !rows.is_empty()) else {
            return Ok(Vec::new());
        };
        let sql = format!(
            "SELECT rowid AS row, snippet(message_text, 1, '', '', '…', {SNIPPET_WORDS}) AS snippet FROM message_text
WHERE message_text MATCH ?1 AND rowid IN (SELECT value FROM json_each(?2))"
        );
        let parameters = vec![
            format!("text : ({words})").into(),
            json::text(&json!(rows)).into(),
        ];
        let results = self.database.batch(vec![Statement::new(sql, parameters)]).await?;
        let mut snippets = Vec::new();
        for row in results.iter().flatten() {
            let snippet = Fields(row).text("snippet")?.replace(ZERO_WIDTH_SPACE, "");
            snippets.push((Fields(row).integer("row")?, snippet));
        }
        Ok(snippets)
    }

    /// Puts messages of a thread into the index, in place of what it had of them.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn put(
        &self,
        owner: &ResourceId,
        thread_id: &ThreadId,
        texts: &[IndexedText],
    ) -> Result<(), StoreError> {
        let mut statements = Vec::new();
        for IndexedText { message_id, .. } in texts {
            statements.push(delete(&message_key(thread_id, message_id)));
        }
        let keys = format!("{} {}", owner_key(owner), thread_key(thread_id));
        let rows = texts.iter().map(|IndexedText { message_id, text }| {
            let keys = format!("{keys} {}", message_key(thread_id, message_id));
            json::text(&json!([keys, indexable(text), message_id]))
        });
        for rows in chunks(rows) {
            statements.push(Statement::new(
                INSERT,
                vec![owner.as_str().into(), thread_id.as_str().into(), rows.into()],
            ));
        }
        if !statements.is_empty() {
            self.database.batch(statements).await?;
        }
        Ok(())
    }

    /// Takes a batch of a thread's rows out; `true` = nothing is left.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn forget_thread(&self, id: &ThreadId) -> Result<bool, StoreError> {
        self.forget(&thread_key(id)).await
    }

    /// Takes a batch of an owner's rows out; `true` = nothing is left.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn forget_owner(&self, owner: &ResourceId) -> Result<bool, StoreError> {
        self.forget(&owner_key(owner)).await
    }

    async fn forget(&self, key: &str) -> Result<bool, StoreError> {
        let remains = Statement::new(
            "SELECT EXISTS (SELECT 1 FROM message_text WHERE message_text MATCH ?1) AS remains",
            vec![format!("keys : \"{key}\"").into()],
        );
        let results = self.database.batch(vec![delete(key), remains]).await?;
        let row = results.last().and_then(|rows| rows.first());
        let remains = Fields(row.ok_or(StoreError::Corrupt("remains"))?).truth("remains")?;
        Ok(!remains)
    }
}

impl<D: Database, A: Attachments> Store<D, A> {
    /// What a run that has ended left to be found: the texts of its turn, and of the user message it answered, whose
    /// content a client may have replaced.
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn texts_to_index(&self, run: &PersistentRun) -> Result<Vec<IndexedText>, StoreError> {
        let sql = format!(
            "SELECT {MESSAGE_COLUMNS} FROM messages m
WHERE m.resource_id = +?1 AND m.thread_id = +?2 AND m.superseded_by IS NULL AND m.role IN ('user', 'assistant')
  AND m.place >= ?3 AND m.place < ?4
UNION
SELECT {MESSAGE_COLUMNS} FROM messages m
WHERE m.thread_id = +?2 AND m.id = +?5 AND m.resource_id = +?1 AND m.superseded_by IS NULL
ORDER BY 3"
        );
        let user_message_id = run.user_message_id.as_ref().map(|id| id.as_str());
        let parameters = vec![
            run.owner.as_str().into(),
            run.thread_id.as_str().into(),
            run.turn.saturating_mul(TURN_PLACES).into(),
            run.turn.saturating_add(1).saturating_mul(TURN_PLACES).into(),
            user_message_id.into(),
        ];
        let mut results = self.database.batch(vec![Statement::new(sql, parameters)]).await?;
        let rows = results.pop().unwrap_or_default();
        let mut texts = Vec::new();
        for stored in self.without_attachments(run.thread_id.as_str(), &rows).await? {
            let message = stored.into_message()?;
            if let Some(text) = text(&message).filter(|text| !text.trim().is_empty()) {
                texts.push(IndexedText {
                    message_id: message.id,
                    text,
                });
            }
        }
        Ok(texts)
    }
}

/// Parameters: owner, thread, rows `[keys, text, message id]`.
const INSERT: &str = "
INSERT INTO message_text (keys, text, resource_id, thread_id, message_id)
SELECT value ->> 0, value ->> 1, ?1, ?2, value ->> 2 FROM json_each(?3)";

fn delete(key: &str) -> Statement {
    let sql = format!(
        "DELETE FROM message_text WHERE rowid IN (
  SELECT rowid FROM message_text WHERE message_text MATCH ?1 LIMIT {ROWS_MAX}
)"
    );
    Statement::new(sql, vec![format!("keys : \"{key}\"").into()])
}

fn text(message: &Message) -> Option<String> {
    match &message.body {
        MessageBody::User { content } => Some(content.to_text()),
        MessageBody::Assistant { content, .. } => content.clone(),
        MessageBody::Tool { .. }
        | MessageBody::System { .. }
        | MessageBody::Developer { .. }
        | MessageBody::Activity { .. }
        | MessageBody::Reasoning { .. } => None,
    }
}

fn owner_key(owner: &ResourceId) -> String {
    key('o', owner.as_str())
}

fn thread_key(thread_id: &ThreadId) -> String {
    key('t', thread_id.as_str())
}

/// Message ids are unique in their thread only.
fn message_key(thread_id: &ThreadId, message_id: &MessageId) -> String {
    format!(
        "{}{}",
        key('m', thread_id.as_str()),
        key('x', message_id.as_str())
    )
}

/// An id as one word.
fn key(kind: char, id: &str) -> String {
    id.bytes().fold(kind.to_string(), |mut key, byte| {
        let _ = write!(key, "{byte:02x}");
        key
    })
}

fn indexable(text: &str) -> String {
    spaced(text.chars().take(TEXT_MAX_CHARS))
}

fn spaced(text: impl Iterator<Item = char>) -> String {
    let mut spaced = String::new();
    for character in text {
        let is_unspaced = UNSPACED
            .iter()
            .any(|(first, last)| (*first..=*last).contains(&character));
        if is_unspaced {
            spaced.extend([ZERO_WIDTH_SPACE, character, ZERO_WIDTH_SPACE]);
        } else {
            spaced.push(character);
        }
    }
    spaced
}

/// Every word of a person's text quoted, so that none of it is an operator; `None` without a word.
fn words_expression(search: &str) -> Option<String> {
    let words: Vec<String> = search
        .split_whitespace()
        .filter(|word| word.chars().any(is_alphanumeric))
        .take(WORDS_MAX)
        .map(|word| format!("\"{}\" *", spaced(word.chars()).replace('"', "\"\"")))
        .list();
    (!words.is_empty()).then(|| parts::join(&words, " AND "))
}

/// Hits as a parameter `[[thread, message, row], ...]`, the newest that fit one.
pub(super) fn hits_parameter(hits: &[SearchHit]) -> String {
    let rows = hits
        .iter()
        .map(|hit| json!([hit.thread_id, hit.message_id, hit.row]))
        .map(|row: Value| json::text(&row));
    chunks(rows).into_iter().next().unwrap_or_else(|| "[]".to_owned())
}
