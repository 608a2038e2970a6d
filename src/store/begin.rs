//! The start of a run: one batch, whatever the length of the conversation.

use super::begin_sql::{self, Listing, create_thread, take_turn};
use super::body::StoredMessage;
use super::incoming::{MessageList, made_calls, tool_call_id};
use super::row::Fields;
use super::title::{folded, provisional_title};
use super::{
    Attachments, BeginRun, Begun, Database, Parameter, Persistence, PersistentRun, Row, RunStatus, Statement,
    Store, StoreError,
};
use crate::protocol::id::{MessageId, ResourceId, ThreadId, ToolCallId};
use crate::protocol::index::KeySet;
use crate::protocol::message::{Message, MessageBody};
use crate::protocol::order::insert_in_order;
use crate::protocol::read;

impl<D: Database, A: Attachments> Store<D, A> {
    /// The start batch: verdicts, thread, new incoming messages, run row, history. Sending it again with the same
    /// object changes nothing and finds the same. Source: contract 2.2, 2.3, D12.
    ///
    /// # Errors
    /// [`StoreError`]; nothing is half-written then.
    pub async fn begin_run(&self, mut begin: BeginRun) -> Result<Begun, StoreError> {
        let owner = match &begin.persistence {
            Persistence::Stateless => return Ok(Begun::Stateless),
            Persistence::Create(owner) | Persistence::IfThreadExists(owner) => owner.clone(),
        };
        let list = MessageList::new(std::mem::take(&mut begin.incoming));
        let (listing, mut statements) = (listing(&begin, &owner, &list), Vec::new());
        if !begin.read_only {
            statements = writes(&begin, &listing, &list)?;
        }
        let write_count = statements.len();
        statements.extend(reads(&begin, &listing, &list));

        let mut results = self
            .database
            .batch(statements)
            .await?
            .into_iter()
            .skip(write_count);
        let found = results.next().unwrap_or_default();
        let found = Fields(found.first().ok_or(StoreError::Corrupt("verdict"))?);
        let place = match verdict(&begin, &owner, found)? {
            Ok(place) => place,
            Err(verdict) => return Ok(verdict),
        };
        let rows: Vec<Row> = results.next().unwrap_or_default();
        let messages = self.stored_messages(begin.thread_id.as_str(), &rows).await?;
        let list = list.into_vec();
        let (mut history, mut stored) = (Vec::new(), Vec::new());
        stored.resize_with(list.len(), || None);
        // The newest comes first. Boxed, because those of an exchange come the other way round.
        for (row, message) in rows.iter().zip(messages).rev() {
            match Fields(row).optional_integer("i")? {
                None => insert_in_order(&mut history, Box::new(message), |message| message.place),
                Some(index) => {
                    let version = usize::try_from(index)
                        .ok()
                        .and_then(|index| stored.get_mut(index));
                    version.map(|version: &mut Option<_>| version.get_or_insert(message));
                }
            }
        }
        history.dedup_by_key(|message| message.place);
        let history = history.into_iter().map(|message| *message);
        persistent_run(begin, owner, place, history, list.into_iter().zip(stored)).map(Begun::Persistent)
    }
}

/// What the verdict rows say about a run that may go on.
struct RunPlace {
    incarnation: String,
    turn: u64,
    has_provisional_title: bool,
}

fn listing(begin: &BeginRun, owner: &ResourceId, list: &MessageList) -> Listing {
    Listing {
        scope: [
            owner.as_str().into(),
            begin.thread_id.as_str().into(),
            begin.run_id.as_str().into(),
            begin.now_ms.into(),
            begin.object.to_base64url().into(),
        ],
        identity_chunks: list.identity_chunks(),
        has_results: list.has_results(),
        only_if_nobody_waits: match begin.persistence {
            Persistence::IfThreadExists(_) => true,
            Persistence::Create(_) | Persistence::Stateless => false,
        },
        quota: begin.quota,
    }
}

fn writes(begin: &BeginRun, listing: &Listing, list: &MessageList) -> Result<Vec<Statement>, StoreError> {
    let scoped = |own: Vec<Parameter>| [listing.scope.to_vec(), own].concat();
    let mut statements = Vec::new();
    match begin.persistence {
        Persistence::Create(_) => statements.push(Statement::new(
            create_thread(&begin.quota),
            scoped(vec![begin.incarnation.as_str().into()]),
        )),
        Persistence::IfThreadExists(_) | Persistence::Stateless => {}
    }
    statements.push(listing.insert_run(begin.agent_id.as_str(), begin.deadline_ms));
    let (rows, pieces) = list.row_chunks(&[])?;
    if !rows.is_empty() {
        statements.push(listing.show_listed_only());
    }
    statements.extend(rows.into_iter().map(|rows| listing.upsert(rows)));
    statements.extend(pieces.into_iter().map(|rows| listing.upsert_pieces(rows)));
    let title = provisional_title(list.as_slice());
    let title_folded = folded(&title);
    statements.push(Statement::new(
        take_turn(),
        scoped(vec![title.into(), title_folded.into()]),
    ));
    Ok(statements)
}

fn reads(begin: &BeginRun, listing: &Listing, list: &MessageList) -> Vec<Statement> {
    let [owner, thread, run, now, _] = listing.scope.clone();
    let last_messages = u64::from(begin.last_messages);
    let counted = u64::try_from(list.counted()).unwrap_or(u64::MAX);
    let after_shared = last_messages.saturating_sub(counted);
    vec![
        Statement::new(begin_sql::verdict(&begin.quota), vec![owner, thread, run, now]),
        listing.history(last_messages, after_shared),
    ]
}

/// `Err` holds the verdict of a run that does not go on with its thread.
fn verdict(
    begin: &BeginRun,
    owner: &ResourceId,
    found: Fields<'_>,
) -> Result<Result<RunPlace, Begun>, StoreError> {
    let thread_owner = found.optional_text("owner")?;
    if thread_owner.is_some_and(|found| found != owner.as_str()) {
        return Ok(Err(Begun::ForeignThread));
    }
    if let Some(object) = found.optional_text("object")? {
        if object == begin.object.to_base64url() {
            return Ok(Ok(RunPlace {
                incarnation: found.text("incarnation")?.to_owned(),
                turn: found.integer("turn")?,
                has_provisional_title: found.optional_text("title_origin")? == Some("provisional"),
            }));
        }
        let status = RunStatus::parse(found.text("status")?).ok_or(StoreError::Corrupt("status"))?;
        return Ok(Err(Begun::Conflict {
            status: status.at(begin.now_ms, found.integer("deadline_ms")?),
            thread_id: found.id("thread_id", ThreadId::new)?,
        }));
    }
    let must_exist = match begin.persistence {
        Persistence::IfThreadExists(_) => true,
        Persistence::Create(_) | Persistence::Stateless => false,
    };
    if must_exist && (thread_owner.is_none() || found.truth("waits")?) {
        return Ok(Err(Begun::Stateless));
    }
    if let Some(exhausted) = begin.quota.exhausted(found)? {
        return Ok(Err(Begun::Exhausted(exhausted)));
    }
    if begin.read_only {
        return Ok(Ok(RunPlace {
            incarnation: String::new(),
            turn: 0,
            has_provisional_title: false,
        }));
    }
    // The row is there unless nothing was written.
    Err(StoreError::Corrupt("runs"))
}

fn persistent_run(
    begin: BeginRun,
    owner: ResourceId,
    place: RunPlace,
    history: impl Iterator<Item = StoredMessage>,
    list: impl Iterator<Item = (Message, Option<StoredMessage>)>,
) -> Result<PersistentRun, StoreError> {
    let mut model_input = Vec::new();
    let mut open_calls: Vec<ToolCallId> = Vec::new();
    let mut take = |message: StoredMessage| {
        open_calls.extend(
            message
                .open_calls
                .iter()
                .map(|call| ToolCallId::new(call.as_str())),
        );
        message.into_message()
    };
    // A result whose call is outside the window would say nothing: the window starts behind it.
    let mut calls_before = KeySet::default();
    for message in history {
        let message = take(message)?;
        calls_before.extend(made_calls(&message).cloned());
        if tool_call_id(&message).is_none_or(|call| calls_before.contains(call.as_str())) {
            model_input.push(message);
        }
    }
    for (message, stored) in list {
        model_input.push(match stored {
            Some(version) => take(version)?,
            None => message,
        });
    }
    let answered: KeySet<_> = model_input.iter().filter_map(tool_call_id).cloned().collect();
    open_calls.retain(|call| !answered.contains(call.as_str()));
    let user_message_id = model_input.iter().rev().find_map(user_message_id);
    Ok(PersistentRun {
        run_id: begin.run_id,
        thread_id: begin.thread_id,
        owner,
        incarnation: place.incarnation,
        turn: place.turn,
        user_message_id,
        read_only: begin.read_only,
        model_input,
        pending_tool_call_ids: open_calls,
        has_provisional_title: place.has_provisional_title,
    })
}

fn user_message_id(message: &Message) -> Option<MessageId> {
    match message.body {
        MessageBody::User { .. } => Some(message.id.clone()),
        MessageBody::Assistant { .. }
        | MessageBody::System { .. }
        | MessageBody::Developer { .. }
        | MessageBody::Tool { .. }
        | MessageBody::Activity { .. }
        | MessageBody::Reasoning { .. } => None,
    }
}

impl StoredMessage {
    /// The message, under the id it is stored by.
    pub(super) fn into_message(self) -> Result<Message, StoreError> {
        let mut message: Message = read::from_text(&self.body).map_err(|_| StoreError::Corrupt("body"))?;
        message.id = MessageId::new(self.id);
        Ok(message)
    }
}
