//! One run's conversation with one MCP server.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use futures::lock::Mutex;
use serde_json::{Map, Value};

use super::deadline::{Deadline, header};
use super::mcp_lists::{McpListing, McpLists};
use super::ports::{Clock, HttpBody, HttpClient, HttpResponse};
use crate::protocol::tool::ToolResult;
use crate::tool::mcp::answer::{AnswerDecoder, Incoming};
use crate::tool::mcp::{
    McpFault, McpServer, McpSession, PAGES_MAX_COUNT, SESSION_HEADER, agreed_version, call_result, message,
};

/// How long a message may take to which no answer is needed, in milliseconds.
const NOTICE_MS: u64 = 1000;

/// Speaks with one server. Its session is opened by the first call that needs it and ended by [`Self::leave`].
pub struct McpClient<'a, H, C> {
    server: Rc<McpServer>,
    http: &'a H,
    clock: &'a C,
    lists: &'a McpLists,
    session: Mutex<Option<Rc<McpSession>>>,
    last_id: Cell<u64>,
    /// Calls whose answer has not come, and whose server does not know yet that nobody waits.
    in_flight: RefCell<Vec<u64>>,
}

/// The answer to a request.
struct Answered {
    result: Value,
    session_id: Option<String>,
}

impl<'a, H: HttpClient, C: Clock> McpClient<'a, H, C> {
    /// A conversation that has not begun.
    pub fn new(server: Rc<McpServer>, http: &'a H, clock: &'a C, lists: &'a McpLists) -> Self {
        Self {
            server,
            http,
            clock,
            lists,
            session: Mutex::new(None),
            last_id: Cell::new(0),
            in_flight: RefCell::default(),
        }
    }

    /// The server.
    pub fn server(&self) -> &McpServer {
        &self.server
    }

    /// Its tools, from memory or, within `wait_ms`, from itself.
    pub async fn tools(&self, wait_ms: u64) -> McpListing {
        let name = &self.server.name;
        if let Some(listing) = self.lists.get(name, self.clock.now_ms()) {
            return listing;
        }
        let deadline = Deadline::after(self.clock, wait_ms.min(self.server.timeout_ms));
        let listed = deadline.within(self.list()).await;
        let listing = listed.unwrap_or(Err(McpFault::Timeout));
        self.lists.keep(name, listing.clone(), self.clock.now_ms());
        listing
    }

    async fn list(&self) -> McpListing {
        let session = self.connect().await?;
        let mut listed = Vec::new();
        let mut cursor: Option<String> = None;
        for _ in 0..PAGES_MAX_COUNT {
            let id = self.next_id();
            let page = message::list_tools(id, cursor.as_deref());
            let mut page = self.ask(Some(&session), id, &page).await?.result;
            if let Some(Value::Array(tools)) = page.get_mut("tools").map(Value::take) {
                listed.extend(tools);
            }
            cursor = page.get("nextCursor").and_then(Value::as_str).map(str::to_owned);
            if cursor.is_none() {
                break;
            }
        }
        Ok(Rc::new(self.server.offered(&listed)))
    }

    /// Calls a tool by its name on the server. A session the server has forgotten is opened once more.
    ///
    /// # Errors
    /// [`McpFault`]
    pub async fn call(&self, name: &str, arguments: &Map<String, Value>) -> Result<ToolResult, McpFault> {
        let called = self.call_once(name, arguments).await;
        let called = match called {
            Err(McpFault::SessionLost) => self.call_once(name, arguments).await,
            called => called,
        };
        called.map(|result| call_result(&result))
    }

    async fn call_once(&self, name: &str, arguments: &Map<String, Value>) -> Result<Value, McpFault> {
        let deadline = Deadline::after(self.clock, self.server.timeout_ms);
        let connected = deadline.within(self.connect()).await;
        let session = connected.unwrap_or(Err(McpFault::Timeout))?;
        let id = self.next_id();
        self.in_flight.borrow_mut().push(id);
        let call = message::call_tool(id, name, arguments);
        let answered = self.ask(Some(&session), id, &call).await;
        match answered {
            Err(McpFault::Timeout) => self.notify(&session, &message::cancelled(id)).await,
            Err(McpFault::SessionLost) => self.forget(&session).await,
            Ok(_) | Err(_) => {}
        }
        self.in_flight.borrow_mut().retain(|other| *other != id);
        answered.map(|answered| answered.result)
    }

    /// The session, opened if it is not.
    async fn connect(&self) -> Result<Rc<McpSession>, McpFault> {
        let mut open = self.session.lock().await;
        if let Some(session) = &*open {
            return Ok(Rc::clone(session));
        }
        if !self.server.is_allowed() {
            return Err(McpFault::Address);
        }
        let id = self.next_id();
        let answered = self.ask(None, id, &message::initialize(id)).await?;
        let session = Rc::new(McpSession {
            version: agreed_version(&answered.result)?,
            id: answered.session_id,
        });
        let response = self.send(Some(&session), &message::initialized()).await?;
        if !(200..300).contains(&response.status) {
            return Err(McpFault::Status(response.status));
        }
        *open = Some(Rc::clone(&session));
        Ok(session)
    }

    async fn forget(&self, session: &Rc<McpSession>) {
        let mut open = self.session.lock().await;
        if open.as_ref().is_some_and(|open| Rc::ptr_eq(open, session)) {
            *open = None;
        }
    }

    /// Sends a request and reads until its answer is there. Progress starts the time anew.
    async fn ask(
        &self,
        session: Option<&McpSession>,
        id: u64,
        request: &Value,
    ) -> Result<Answered, McpFault> {
        let mut deadline = Deadline::after(self.clock, self.server.timeout_ms);
        let sent = deadline.within(self.send(session, request)).await;
        let mut response = sent.unwrap_or(Err(McpFault::Timeout))?;
        match response.status {
            200..300 => {}
            404 if session.is_some_and(|session| session.id.is_some()) => return Err(McpFault::SessionLost),
            status => return Err(McpFault::Status(status)),
        }
        let session_id = header(&response.headers, SESSION_HEADER).map(str::to_owned);
        let content_type = header(&response.headers, "content-type");
        let mut decoder = AnswerDecoder::new(content_type, self.server.result_max_bytes)?;
        let mut messages = Vec::new();
        loop {
            let chunk = deadline.within(response.body.next_chunk()).await;
            let is_over = match chunk.ok_or(McpFault::Timeout)? {
                Some(chunk) => {
                    let chunk = chunk.map_err(|_| McpFault::Unreachable)?;
                    decoder.feed(&chunk, &mut messages)?;
                    false
                }
                None => {
                    decoder.end(&mut messages)?;
                    true
                }
            };
            for message in messages.drain(..) {
                match message {
                    Incoming::Response {
                        id: Some(answered),
                        outcome,
                    } if answered == id => {
                        return outcome.map(|result| Answered { result, session_id });
                    }
                    Incoming::Progress { token } if token == Some(id) => deadline.renew(),
                    Incoming::Response { .. } | Incoming::Progress { .. } => {}
                    Incoming::ToolsChanged => self.lists.forget(&self.server.name),
                    Incoming::Ping { id } => self.reply(session, &message::pong(&id)).await,
                    Incoming::Request { id } => self.reply(session, &message::not_offered(&id)).await,
                }
            }
            if is_over {
                return Err(McpFault::Ended);
            }
        }
    }

    async fn reply(&self, session: Option<&McpSession>, answer: &Value) {
        if let Some(session) = session {
            self.notify(session, answer).await;
        }
    }

    /// Says something whose fate changes nothing.
    async fn notify(&self, session: &McpSession, message: &Value) {
        let deadline = Deadline::after(self.clock, NOTICE_MS);
        let _ = deadline.within(self.send(Some(session), message)).await;
    }

    async fn send(
        &self,
        session: Option<&McpSession>,
        message: &Value,
    ) -> Result<HttpResponse<H::Body>, McpFault> {
        let sent = self.http.send(self.server.post(session, message)).await;
        sent.map_err(|_| McpFault::Unreachable)
    }

    fn next_id(&self) -> u64 {
        self.last_id.set(self.last_id.get() + 1);
        self.last_id.get()
    }

    /// Nobody needs the server any more: calls that were aborted are cancelled, the session is ended.
    pub async fn leave(&self) {
        let Some(session) = self.session.lock().await.take() else {
            return;
        };
        let deadline = Deadline::after(self.clock, NOTICE_MS);
        let aborted = std::mem::take(&mut *self.in_flight.borrow_mut());
        let farewell = async {
            for id in aborted {
                let _ = self.send(Some(&session), &message::cancelled(id)).await;
            }
            if let Some(request) = self.server.leave(&session) {
                let _ = self.http.send(request).await;
            }
        };
        let _ = deadline.within(farewell).await;
    }
}
