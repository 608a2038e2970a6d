//! Server tools that are one HTTP request: arguments into a request, an answer into a result.
//!
//! Pure. An argument never decides which server is asked: templates have places in path and query only, and what goes
//! there is escaped.

use serde_json::{Map, Value};

use super::address::Address;
use super::template::{Part, parts};
use crate::list::List;
use crate::protocol::json;
use crate::protocol::parts;
use crate::protocol::percent;
use crate::protocol::tool::{Tool, ToolResult};
use crate::protocol::tool_result;
use crate::protocol::utf8;
use crate::provider::HttpRequest;
use crate::provider::Secret;

/// Redirects followed in one call.
pub const REDIRECTS_MAX_COUNT: usize = 5;

/// An HTTP tool with its secrets in place.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpTool {
    /// What the model is offered.
    pub declaration: Tool,
    /// `GET`, `POST`, `PUT`, `PATCH` or `DELETE`.
    pub method: &'static str,
    /// Template of the address.
    pub url: String,
    /// Header names in lower case.
    pub headers: Vec<(String, Secret)>,
    /// Whether a call may be made again after a reset that left it unanswered.
    pub idempotent: bool,
    /// Longest time for the whole call.
    pub timeout_ms: u64,
    /// Longest answer.
    pub result_max_bytes: usize,
    /// Whether the host of `url` may be private. Redirects may then lead to that server, and to public ones.
    pub allow_private: bool,
}

/// Why a call fails, worded for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HttpToolFault {
    /// An argument has no place in a path.
    #[error("The argument `{0}` must be a text or number that can stand in an address.")]
    Path(String),
    /// The address, or one it redirects to, is not allowed.
    #[error("The tool's address is not allowed.")]
    Address,
    /// It redirects without an end.
    #[error("The tool's server redirects too often.")]
    Redirects,
    /// Neither 2xx nor a redirect.
    #[error("The tool's server answered with status {0}.")]
    Status(u16),
    /// Longer than `result_max_bytes`.
    #[error("The tool's answer is longer than {0} bytes.")]
    TooLong(usize),
    /// Not in time.
    #[error("The tool did not answer in time.")]
    Timeout,
    /// No connection, or it died.
    #[error("The tool's server could not be reached.")]
    Unreachable,
    /// Neither JSON nor text.
    #[error("The tool's answer is neither JSON nor text.")]
    Binary,
}

impl HttpToolFault {
    /// The error result.
    pub fn result(&self) -> ToolResult {
        ToolResult::failure(&self.to_string())
    }
}

impl HttpTool {
    /// The request of a call. Arguments without a place in the template go into the query, or into the JSON body of a
    /// method that has one.
    ///
    /// # Errors
    /// [`HttpToolFault::Path`], [`HttpToolFault::Address`]
    pub fn request(&self, arguments: &Map<String, Value>) -> Result<HttpRequest, HttpToolFault> {
        let (path, query) = self.url.split_once('?').unwrap_or((&self.url, ""));
        let mut rest: Map<String, Value> = arguments.clone();
        let mut url = String::new();
        for part in parts(path).ok_or(HttpToolFault::Address)? {
            match part {
                Part::Text(text) => url.push_str(text),
                Part::Argument(name) => {
                    rest.shift_remove(name);
                    let text = arguments.get(name).and_then(path_text);
                    url.push_str(&text.ok_or_else(|| HttpToolFault::Path(name.to_owned()))?);
                }
            }
        }
        let address = Address::parse(&url).ok_or(HttpToolFault::Address)?;
        // A segment of dots would lead out of the path the configuration allows.
        if address
            .rest
            .split('/')
            .any(|segment| matches!(segment, "." | ".."))
        {
            return Err(HttpToolFault::Path("path".to_owned()));
        }
        if address.is_private() && !self.allow_private {
            return Err(HttpToolFault::Address);
        }
        let mut pairs: Vec<String> = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            pairs.extend(query_pairs(pair, arguments, &mut rest)?);
        }
        let has_body = matches!(self.method, "POST" | "PUT" | "PATCH");
        if !has_body {
            for (name, value) in &rest {
                pairs.extend(
                    texts(value)
                        .iter()
                        .map(|text| format!("{}={text}", percent::encode(name))),
                );
            }
        }
        if !pairs.is_empty() {
            url = format!("{url}?{}", parts::join(&pairs, "&"));
        }
        Ok(HttpRequest {
            method: self.method,
            url,
            headers: self.headers(has_body),
            body: has_body.then(|| json::text(&rest)),
        })
    }

    fn headers(&self, has_body: bool) -> Vec<(String, String)> {
        let own = self
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), value.expose().to_owned()));
        let mut headers: Vec<(String, String)> = own.list();
        let defaults = [
            ("accept", "application/json, text/*;q=0.9, */*;q=0.1"),
            ("user-agent", concat!("io-bridge/", env!("CARGO_PKG_VERSION"))),
            ("content-type", "application/json"),
        ];
        for (name, value) in defaults {
            let is_wanted = has_body || name != "content-type";
            if is_wanted && !headers.iter().any(|(own, _)| own == name) {
                headers.push((name.to_owned(), value.to_owned()));
            }
        }
        headers
    }

    /// The request a redirect asks for; `None` when the status is none. Headers stay with the server they were meant
    /// for, and nothing goes from `https` to `http`.
    ///
    /// # Errors
    /// [`HttpToolFault::Address`]
    pub fn redirected(
        &self,
        request: &HttpRequest,
        status: u16,
        location: Option<&str>,
    ) -> Result<Option<HttpRequest>, HttpToolFault> {
        let Some(location) = location.filter(|_| matches!(status, 301 | 302 | 303 | 307 | 308)) else {
            return Ok(None);
        };
        let from = Address::parse(&request.url).ok_or(HttpToolFault::Address)?;
        let url = from.resolve(location).ok_or(HttpToolFault::Address)?;
        let to = Address::parse(&url).ok_or(HttpToolFault::Address)?;
        let is_named = self.allow_private && self.is_own_server(&to);
        if (to.is_private() && !is_named) || (from.is_secure && !to.is_secure) {
            return Err(HttpToolFault::Address);
        }
        let mut redirected = request.clone();
        if !to.has_origin_of(&from) {
            let is_own = |name: &str| self.headers.iter().any(|(own, _)| own == name);
            redirected.headers.retain(|(name, _)| !is_own(name));
        }
        let is_read_again = match status {
            303 => request.method != "GET",
            301 | 302 => request.method == "POST",
            _ => false,
        };
        if is_read_again {
            redirected.method = "GET";
            redirected.body = None;
            redirected.headers.retain(|(name, _)| name != "content-type");
        }
        redirected.url = url;
        Ok(Some(redirected))
    }

    fn is_own_server(&self, address: &Address<'_>) -> bool {
        let origin = self.url.split('{').next().unwrap_or_default();
        Address::parse(origin).is_some_and(|own| address.has_origin_of(&own))
    }
}

/// The result of a 2xx answer: JSON, or text.
///
/// # Errors
/// [`HttpToolFault::Binary`]
pub fn read_answer(content_type: Option<&str>, body: Vec<u8>) -> Result<ToolResult, HttpToolFault> {
    if body.is_empty() {
        return Ok(tool_result::success(Value::Null));
    }
    let essence = content_type
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    let is_json = essence == "application/json" || essence.ends_with("+json");
    let is_text = essence.starts_with("text/")
        || matches!(
            essence.as_str(),
            "application/xml" | "application/x-ndjson" | "application/yaml"
        )
        || essence.ends_with("+xml");
    let text = match String::from_utf8(body) {
        Ok(text) => text,
        Err(error) if is_json || is_text => utf8::lossy(error.as_bytes()).into_owned(),
        Err(_) => return Err(HttpToolFault::Binary),
    };
    if !is_json && !is_text && text.contains(['\0']) {
        return Err(HttpToolFault::Binary);
    }
    let value = if is_json { json::parse(&text).ok() } else { None };
    Ok(tool_result::success(value.unwrap_or(Value::String(text))))
}

/// The pairs one pair of the template becomes: none without its argument, several for a list.
fn query_pairs(
    pair: &str,
    arguments: &Map<String, Value>,
    rest: &mut Map<String, Value>,
) -> Result<Vec<String>, HttpToolFault> {
    let parts = parts(pair).ok_or(HttpToolFault::Address)?;
    let mut expanded = vec![String::new()];
    for part in parts {
        let texts = match part {
            Part::Text(text) => vec![text.to_owned()],
            Part::Argument(name) => {
                rest.shift_remove(name);
                arguments.get(name).map(texts).unwrap_or_default()
            }
        };
        expanded = expanded
            .iter()
            .flat_map(|start| texts.iter().map(move |text| format!("{start}{text}")))
            .list();
    }
    Ok(expanded)
}

/// What a value is in a query, escaped: nothing for `null`, one text per item of a list, JSON for an object.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::Null => Vec::new(),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => vec![percent::encode(&json::text(value))],
        Value::String(text) => vec![percent::encode(text)],
        Value::Array(items) => {
            let text = |item: &Value| match item {
                Value::String(text) => percent::encode(text),
                other => percent::encode(&json::text(other)),
            };
            items.iter().map(text).list()
        }
    }
}

/// What a value is in a path; an empty one would change which path it is.
fn path_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(percent::encode(text)),
        Value::Bool(_) | Value::Number(_) => Some(percent::encode(&json::text(value))),
        Value::Null | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
