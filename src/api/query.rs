//! Query parameters of the list and run routes.

use serde_json::Value;

use super::error::ApiError;
use crate::list::List;
use crate::protocol::decode::Issue;
use crate::protocol::forwarded_props::ClientResource;
use crate::protocol::id::{AgentId, ObjectAddress, ResourceId, ThreadId};
use crate::protocol::json;
use crate::protocol::number;
use crate::protocol::percent;
use crate::protocol::thread::{MessageForm, MessageListRequest, PageStart, ThreadListRequest, ThreadOrder};
use crate::protocol::utf8;

/// Threads of a page: default and maximum. Source: contract 4.
pub const THREAD_PAGE_MAX_COUNT: u32 = 100;

/// Messages of a page. Source: contract 4.
pub const MESSAGE_PAGE_DEFAULT_COUNT: u32 = 100;

/// Messages of a page. Source: contract 4.
pub const MESSAGE_PAGE_MAX_COUNT: u32 = 500;

/// Longest `q`, in characters; a title has no more.
const SEARCH_MAX_CHARS: usize = 512;

/// Largest number SQLite and JavaScript both keep exact.
const NUMBER_MAX: u64 = (1 << 53) - 1;

/// A query string taken apart. Of a repeated parameter the first counts; one that is empty counts as absent, but for
/// `resourceId`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Query {
    parameters: Vec<(String, String)>,
}

/// What `GET /runs/:runId/events` asks for. Source: contract 8.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunEventsRequest {
    /// Events the client has seen.
    pub after_count: u64,
    /// Generation they were counted in; absent = whichever is current.
    pub generation: Option<u64>,
    /// The run's object, from `io-run-address`.
    pub address: Option<ObjectAddress>,
}

impl Query {
    /// Takes a query string with or without its `?`; `+` is a space.
    pub fn parse(text: &str) -> Self {
        let decode = |text: &str| utf8::lossy(&percent::decode(&text.replace('+', " "))).into_owned();
        let parameters = text
            .strip_prefix('?')
            .unwrap_or(text)
            .split('&')
            .filter(|pair| !pair.is_empty());
        let parameters = parameters.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        });
        Self {
            parameters: parameters.list(),
        }
    }

    fn first(&self, name: &str) -> Option<&str> {
        self.parameters
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// The owner the query names.
    ///
    /// # Errors
    /// 400 when it is no id.
    pub fn resource(&self) -> Result<ClientResource, ApiError> {
        self.read(|reader| match self.first("resourceId") {
            None => ClientResource::Absent,
            Some("") => ClientResource::Empty,
            Some(text) => match ResourceId::parse(text) {
                Ok(id) => ClientResource::Given(id),
                Err(fault) => {
                    reader.issue("resourceId", fault.to_string());
                    ClientResource::Absent
                }
            },
        })
    }

    /// The agent the query names, if that is an id: on thread routes it may be anybody's, and says only who keeps the
    /// threads. Source: contract 4.
    pub fn agent(&self) -> Option<AgentId> {
        AgentId::parse(self.first("agentId")?).ok()
    }

    /// What a thread list asks for: `limit`/`offset` or `page`/`perPage`, `cursor`, `orderBy`, `direction`, `q`. A limit
    /// over the maximum is the maximum. A cursor wins over an offset. Source: contract 4.
    ///
    /// # Errors
    /// 400 with the parameters that are wrong.
    pub fn thread_list(&self, owner: ResourceId) -> Result<ThreadListRequest, ApiError> {
        self.read(|reader| {
            let (limit, offset) = reader.page(THREAD_PAGE_MAX_COUNT, THREAD_PAGE_MAX_COUNT);
            let (order, descending) = reader.order();
            let start = match reader.value("cursor") {
                Some(cursor) => PageStart::Cursor(cursor.to_owned()),
                None => PageStart::Offset(offset),
            };
            let search = reader.search();
            ThreadListRequest {
                owner,
                order,
                descending,
                search,
                limit,
                start,
            }
        })
    }

    /// What a message list asks for: a page as for threads, `format`, `superseded`. Source: contract 4.
    ///
    /// # Errors
    /// 400 with the parameters that are wrong.
    pub fn message_list(
        &self,
        thread_id: ThreadId,
        default: MessageForm,
    ) -> Result<MessageListRequest, ApiError> {
        self.read(|reader| {
            let (limit, offset) = reader.page(MESSAGE_PAGE_DEFAULT_COUNT, MESSAGE_PAGE_MAX_COUNT);
            let forms = [("mastra", MessageForm::Mastra), ("ag-ui", MessageForm::AgUi)];
            let form = reader
                .word("format", &forms, "must be mastra or ag-ui")
                .unwrap_or(default);
            let with_superseded = reader.superseded();
            MessageListRequest {
                thread_id,
                limit,
                offset,
                form,
                with_superseded,
            }
        })
    }

    /// Whether an export has superseded messages too, `superseded`.
    ///
    /// # Errors
    /// 400 when it is no truth value.
    pub fn thread_export(&self) -> Result<bool, ApiError> {
        self.read(Reader::superseded)
    }

    /// Whether health is asked of all parts, `deep`.
    ///
    /// # Errors
    /// 400 when it is no truth value.
    pub fn deep_health(&self) -> Result<bool, ApiError> {
        self.read(|reader| {
            let words = [("1", true), ("true", true), ("0", false), ("false", false)];
            reader.word("deep", &words, "must be 1 or 0").unwrap_or(false)
        })
    }

    /// What a viewer of a run asks for. Source: contract 8.
    ///
    /// # Errors
    /// 400 with the parameters that are wrong.
    pub fn run_events(&self) -> Result<RunEventsRequest, ApiError> {
        self.read(|reader| RunEventsRequest {
            after_count: reader.number("after", 0).unwrap_or(0),
            generation: reader.number("generation", 0),
            address: reader.address(),
        })
    }

    /// The object of a run, `address`, as the other run routes take it. Source: D17.
    ///
    /// # Errors
    /// 400 when it is no address.
    pub fn run_address(&self) -> Result<Option<ObjectAddress>, ApiError> {
        self.read(Reader::address)
    }

    fn read<'a, T>(&'a self, read: impl FnOnce(&mut Reader<'a>) -> T) -> Result<T, ApiError> {
        let mut reader = Reader {
            query: self,
            issues: Vec::new(),
        };
        let value = read(&mut reader);
        if reader.issues.is_empty() {
            Ok(value)
        } else {
            Err(ApiError::invalid_query(reader.issues))
        }
    }
}

/// A query being read, all its faults collected.
struct Reader<'a> {
    query: &'a Query,
    issues: Vec<Issue>,
}

impl<'a> Reader<'a> {
    fn issue(&mut self, name: &str, message: impl Into<String>) {
        self.issues.push(Issue {
            pointer: format!("/{name}"),
            message: message.into(),
        });
    }

    fn value(&self, name: &str) -> Option<&'a str> {
        self.query.first(name).filter(|value| !value.is_empty())
    }

    fn word<T: Copy>(&mut self, name: &str, words: &[(&str, T)], fault: &str) -> Option<T> {
        let value = self.value(name)?;
        let found = words
            .iter()
            .find(|(word, _)| *word == value)
            .map(|(_, meaning)| *meaning);
        if found.is_none() {
            self.issue(name, fault);
        }
        found
    }

    /// A number from `least`; one larger than [`NUMBER_MAX`] counts as that.
    fn number(&mut self, name: &str, least: u64) -> Option<u64> {
        let value = self.value(name)?;
        if value.bytes().all(|byte| byte.is_ascii_digit()) {
            let number = number::unsigned(value).unwrap_or(NUMBER_MAX).min(NUMBER_MAX);
            if number >= least {
                return Some(number);
            }
        }
        self.issue(name, format!("must be a whole number from {least}"));
        None
    }

    /// (limit, offset); `limit`/`offset` win over `perPage`/`page`.
    fn page(&mut self, default: u32, most: u32) -> (u32, u64) {
        let (limit, per_page) = (self.number("limit", 1), self.number("perPage", 1));
        let (offset, page) = (self.number("offset", 0), self.number("page", 0));
        let limit = match limit.or(per_page) {
            Some(limit) => u32::try_from(limit).unwrap_or(most).min(most),
            None => default,
        };
        let from_page = page.unwrap_or(0).saturating_mul(u64::from(limit)).min(NUMBER_MAX);
        (limit, offset.unwrap_or(from_page))
    }

    /// (column, descending). `orderBy` is a name or, as Mastra's clients write it, `{"field","direction"}`.
    fn order(&mut self) -> (ThreadOrder, bool) {
        let text = self.value("orderBy").unwrap_or("updatedAt");
        let object = if text.starts_with('{') {
            json::parse(text).unwrap_or_default()
        } else {
            Value::Null
        };
        let member = |name: &str| object.get(name).map(|value| value.as_str().unwrap_or_default());
        let field = if object.is_object() {
            member("field").unwrap_or("updatedAt")
        } else {
            text
        };
        let order = match field {
            "updatedAt" => ThreadOrder::UpdatedAt,
            "createdAt" => ThreadOrder::CreatedAt,
            _ => {
                self.issue("orderBy", "must be updatedAt or createdAt");
                ThreadOrder::default()
            }
        };
        let (name, direction) = match (self.value("direction"), member("direction")) {
            (Some(direction), _) => ("direction", direction),
            (None, Some(direction)) => ("orderBy", direction),
            (None, None) => ("direction", "DESC"),
        };
        let descending = direction.eq_ignore_ascii_case("DESC");
        if !descending && !direction.eq_ignore_ascii_case("ASC") {
            self.issue(name, "must have the direction ASC or DESC");
        }
        (order, descending)
    }

    fn superseded(&mut self) -> bool {
        self.word(
            "superseded",
            &[("true", true), ("false", false)],
            "must be true or false",
        )
        .unwrap_or(false)
    }

    /// `q` without the blanks around it; nothing left = everything.
    fn search(&mut self) -> Option<String> {
        let text = self.value("q")?.trim();
        if text.chars().count() > SEARCH_MAX_CHARS {
            self.issue("q", format!("must have at most {SEARCH_MAX_CHARS} characters"));
        }
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn address(&mut self) -> Option<ObjectAddress> {
        let address = ObjectAddress::from_base64url(self.value("address")?);
        if address.is_none() {
            self.issue("address", "must be the io-run-address of a run");
        }
        address
    }
}

#[cfg(test)]
#[path = "query_tests.rs"]
mod tests;
