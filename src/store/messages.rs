//! Pages of a thread's messages, newest first in counting and oldest first in the answer. Source: contract 4 (D19).

use serde_json::Value;

use super::body::{MESSAGE_COLUMNS, StoredMessage, chunks};
use super::mastra_form::{Results, mastra_rows};
use super::row::Fields;
use super::{Attachments, Database, Lookup, Parameter, Row, Statement, Store, StoreError};
use crate::list::{List, all};
use crate::protocol::id::{ResourceId, ThreadId, ToolCallId};
use crate::protocol::index::KeySet;
use crate::protocol::json;
use crate::protocol::message::Message;
use crate::protocol::thread::{MessageForm, MessageListRequest, Page};
use crate::protocol::tree::json;

/// A page that would hold more bytes of stored bodies ends early; its first row is always there. A Worker has 128 MB
/// for several requests at once, and a page is in memory as rows, as JSON and as text.
pub const PAGE_MAX_BYTES: u64 = 8 * 1024 * 1024;

/// Bytes of a message `m`: its body, its pieces counted as full, and what the bucket holds of it.
pub(super) const ROW_BYTES: &str =
    "length(CAST(m.body AS BLOB)) + m.more_pieces * 700000 + coalesce(m.attachment_bytes, 0)";

/// The messages `m` a request may see. `?1` is the caller or null, `?2` the thread.
pub(super) fn seen(with_superseded: bool) -> String {
    let mut condition = "m.thread_id = +?2
  AND m.resource_id = (SELECT resource_id FROM threads WHERE id = +?2 AND (?1 IS NULL OR resource_id = +?1))"
        .to_owned();
    if !with_superseded {
        condition.push_str("\n  AND m.superseded_by IS NULL");
    }
    condition
}

/// Messages of thread `?2` that are to be seen by its owner or, if `?1` is null, by anybody.
pub(super) const COUNT_MESSAGES: &str = "SELECT count(*) FROM messages m WHERE m.thread_id = +?2
  AND m.resource_id = (SELECT resource_id FROM threads WHERE id = +?2 AND (?1 IS NULL OR resource_id = +?1))
  AND m.superseded_by IS NULL";

/// Where rows of the mastra form start: at each user message, and at the first answer behind one. Results belong to
/// their calls, wherever they stand. Reads the index only.
fn starts(with_superseded: bool) -> String {
    let is_visible = if with_superseded {
        ""
    } else {
        "AND before.superseded_by IS NULL"
    };
    format!(
        "SELECT m.place FROM messages m
  WHERE {} AND m.role IN ('user', 'assistant') AND (m.role = 'user' OR coalesce((
    SELECT before.role FROM messages before
    WHERE before.resource_id = m.resource_id AND before.thread_id = m.thread_id {is_visible}
      AND before.role IN ('user', 'assistant') AND before.place < m.place
    ORDER BY before.place DESC LIMIT 1
  ), 'user') = 'user')",
        seen(with_superseded)
    )
}

/// Rows of the mastra form of thread `?2`.
pub(super) fn count_rows(with_superseded: bool) -> String {
    format!("SELECT count(*) FROM ({})", starts(with_superseded))
}

impl<D: Database, A: Attachments> Store<D, A> {
    /// A page of the thread's messages in the form asked for. `caller`: `None` where the id alone is the capability
    /// (D4).
    ///
    /// # Errors
    /// [`StoreError`]
    pub async fn messages(
        &self,
        request: &MessageListRequest,
        caller: Option<&ResourceId>,
    ) -> Result<Lookup<Page<Value>>, StoreError> {
        let thread = request.thread_id.as_str();
        let scope: Vec<Parameter> = vec![caller.map(ResourceId::as_str).into(), thread.into()];
        let mut paged = scope.clone();
        paged.extend([u64::from(request.limit).into(), request.offset.into()]);
        let (count, page) = match request.form {
            MessageForm::AgUi => ag_ui_statements(request.with_superseded),
            MessageForm::Mastra => mastra_statements(request.with_superseded),
        };
        let statements = vec![
            Statement::new(
                "SELECT resource_id FROM threads WHERE id = +?1",
                vec![thread.into()],
            ),
            Statement::new(count, scope),
            Statement::new(page, paged),
        ];
        let mut results = self.database.batch(statements).await?.into_iter();
        let owner_rows = results.next().unwrap_or_default();
        let Some(owner) = owner_rows.first() else {
            return Ok(Lookup::Unknown);
        };
        let owner = Fields(owner).id("resource_id", ResourceId::new)?;
        if caller.is_some_and(|caller| *caller != owner) {
            return Ok(Lookup::Foreign);
        }
        let count = results.next().unwrap_or_default();
        let total = Fields(count.first().ok_or(StoreError::Corrupt("total"))?).integer("total")?;
        let rows = results.next().unwrap_or_default();
        let items = self.items(request, &owner, &rows).await?;
        let shown = u64::try_from(items.len()).unwrap_or(u64::MAX);
        Ok(Lookup::Found(Page {
            items,
            total,
            has_more: request.offset.saturating_add(shown) < total,
            next_cursor: None,
        }))
    }

    async fn items(
        &self,
        request: &MessageListRequest,
        owner: &ResourceId,
        rows: &[Row],
    ) -> Result<Vec<Value>, StoreError> {
        let stored = self.stored_messages(request.thread_id.as_str(), rows).await?;
        match request.form {
            MessageForm::AgUi => all(stored.into_iter().map(StoredMessage::into_value)),
            MessageForm::Mastra => {
                let mut open_calls = KeySet::default();
                let mut messages = Vec::with_capacity(stored.len());
                for message in stored {
                    open_calls.extend(
                        message
                            .open_calls
                            .iter()
                            .map(|call| ToolCallId::new(call.as_str())),
                    );
                    messages.push((message.created_at_ms, message.into_message()?));
                }
                let mut results = Results::of(&messages, open_calls);
                let elsewhere = results.missing(&messages);
                if !elsewhere.is_empty() {
                    results.add(self.results_elsewhere(request, owner, &elsewhere).await?);
                }
                Ok(mastra_rows(&request.thread_id, owner, messages, &results))
            }
        }
    }

    /// Results that do not stand behind their call on the page: a call that was pending while the person went on.
    /// A second batch, because only the messages say which calls lack a result, and hardly any does.
    async fn results_elsewhere(
        &self,
        request: &MessageListRequest,
        owner: &ResourceId,
        calls: &[ToolCallId],
    ) -> Result<Vec<Message>, StoreError> {
        let visible = if request.with_superseded {
            ""
        } else {
            "AND m.superseded_by IS NULL"
        };
        let sql = format!(
            "
SELECT {MESSAGE_COLUMNS} FROM json_each(?3) wanted CROSS JOIN messages m
  ON m.resource_id = +?1 AND m.thread_id = +?2 AND m.tool_call_id = wanted.value
WHERE TRUE {visible}"
        );
        let thread_id: &ThreadId = &request.thread_id;
        let wanted = chunks(calls.iter().map(|call| json::text(&json!(call))));
        let statements = wanted.into_iter().map(|calls| {
            let parameters = vec![owner.as_str().into(), thread_id.as_str().into(), calls.into()];
            Statement::new(sql.clone(), parameters)
        });
        let rows = self.database.batch(statements.list()).await?.concat();
        let results = self.stored_messages(thread_id.as_str(), &rows).await?;
        all(results.into_iter().map(StoredMessage::into_message))
    }
}

fn ag_ui_statements(with_superseded: bool) -> (String, String) {
    let seen = seen(with_superseded);
    (
        if with_superseded {
            format!("SELECT count(*) AS total FROM messages m WHERE {seen}")
        } else {
            format!("SELECT coalesce(message_count, ({COUNT_MESSAGES})) AS total FROM threads WHERE id = +?2")
        },
        format!(
            "SELECT * FROM (
  SELECT *, sum(bytes) OVER (ORDER BY place DESC) AS so_far FROM (
    SELECT {MESSAGE_COLUMNS}, {ROW_BYTES} AS bytes FROM messages m
    WHERE {seen} ORDER BY m.place DESC LIMIT +?3 OFFSET +?4
  )
) WHERE so_far <= {PAGE_MAX_BYTES} OR so_far = bytes ORDER BY place"
        ),
    )
}

fn mastra_statements(with_superseded: bool) -> (String, String) {
    let starts = starts(with_superseded);
    let seen = seen(with_superseded);
    (
        if with_superseded {
            format!("SELECT ({}) AS total", count_rows(true))
        } else {
            format!(
                "SELECT coalesce(row_count, ({})) AS total FROM threads WHERE id = +?2",
                count_rows(false)
            )
        },
        format!(
            "WITH starts AS MATERIALIZED ({starts} ORDER BY m.place DESC LIMIT +?3 + ?4),
page AS MATERIALIZED (
SELECT *, sum(bytes) OVER (ORDER BY place DESC) AS so_far FROM (
SELECT {MESSAGE_COLUMNS}, {ROW_BYTES} AS bytes FROM messages m
WHERE {seen} AND m.role NOT IN ('activity', 'reasoning')
  AND m.place >= (SELECT min(place) FROM (SELECT place FROM starts ORDER BY place DESC LIMIT +?3 OFFSET +?4))
  AND m.place < CASE WHEN ?4 > 0
    THEN (SELECT place FROM starts ORDER BY place DESC LIMIT 1 OFFSET +?4 - 1)
    ELSE {PLACE_MAX} END
)),
page_starts AS (SELECT place, so_far FROM page WHERE place IN (SELECT place FROM starts))
SELECT * FROM page WHERE place >= coalesce(
  (SELECT min(place) FROM page_starts WHERE so_far <= {PAGE_MAX_BYTES}), (SELECT max(place) FROM page_starts)
)
ORDER BY place"
        ),
    )
}

/// Above every place.
const PLACE_MAX: u64 = 1 << 53;

impl StoredMessage {
    /// The message as JSON, under the id it is stored by.
    pub(super) fn into_value(self) -> Result<Value, StoreError> {
        let mut value = json::tree(&self.body).ok_or(StoreError::Corrupt("body"))?;
        match value.get_mut("id") {
            Some(id) => *id = Value::String(self.id),
            None => return Err(StoreError::Corrupt("body")),
        }
        Ok(value)
    }
}
