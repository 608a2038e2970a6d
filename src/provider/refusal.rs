//! What a server says instead of an answer, by status or inside a stream, for every codec: error objects differ between
//! vendors less than between the servers of one wire format.
//!
//! Codes decide where there are any; message texts only where servers have no code for it.

use serde_json::Value;

use super::ProviderError;
use crate::list::List;
use crate::platform::parse_double;
use crate::protocol::json;
use crate::protocol::number;
use crate::protocol::parts;
use crate::protocol::utf8;

/// Longest detail for the log, in characters.
const DETAIL_MAX_CHARS: usize = 500;

/// Reads a response whose status is no success.
pub(super) fn of_response(status: u16, headers: &[(String, String)], body: &[u8]) -> ProviderError {
    let report = Report::read(body);
    let retry_after_ms = header_wait_ms(headers).or(report.wait_ms);
    report.into_error(status, retry_after_ms)
}

/// Reads an error event's payload.
pub(super) fn in_stream(payload: &[u8]) -> ProviderError {
    let report = Report::read(payload);
    let retry_after_ms = report.wait_ms;
    // Status 200 says that the refusal came inside a stream; a status the payload names says more.
    let status = report.status.unwrap_or(200);
    report.into_error(status, retry_after_ms)
}

/// A finish reason that says the server failed; it has no words.
pub(super) fn by_finish_reason(reason: &str) -> ProviderError {
    ProviderError::Refused {
        status: 200,
        retryable: true,
        retry_after_ms: None,
        detail: format!("finish_reason {reason}"),
    }
}

/// An error as any of the servers writes it: `{"error":{"message","type","code"}}`, `{"error":"text","code"}`, `{"message"}`,
/// `{"detail"}`, `{"response":{"error"}}`, `{"errors":[{"message"}]}`,
/// `{"description"}`, or one of these in a list.
#[derive(Debug, Default)]
struct Report {
    message: String,
    /// `code`, `type` and `status` where they are texts, in lower case.
    kinds: Vec<String>,
    /// `code` or `status` where it is an HTTP status of a failure.
    status: Option<u16>,
    wait_ms: Option<u64>,
}

impl Report {
    fn read(payload: &[u8]) -> Self {
        // A page of a proxy is no report and is never copied.
        let Some(value) = json::tree(&utf8::lossy(payload)) else {
            return Self::default();
        };
        let value = value.get(0).unwrap_or(&value);
        let error = ["/error", "/response/error", "/errors/0"]
            .into_iter()
            .filter_map(|place| json::at(value, place))
            .find(|error| !error.is_null())
            .unwrap_or(value);
        let text = |name: &str| error.get(name).and_then(Value::as_str);
        let message = error
            .as_str()
            .or_else(|| text("message"))
            .or_else(|| text("detail"))
            .or_else(|| text("description"))
            .unwrap_or_default();
        // Beside an error that is only a text: servers like this one.
        let labelled = if error.is_string() { value } else { error };
        let labels = || {
            ["code", "type", "status"]
                .into_iter()
                .filter_map(|name| labelled.get(name))
        };
        Self {
            message: message.to_owned(),
            kinds: labels()
                .filter_map(Value::as_str)
                .map(str::to_ascii_lowercase)
                .list(),
            status: labels().find_map(failure_status),
            wait_ms: body_wait_ms(error, message),
        }
    }

    fn into_error(self, status: u16, retry_after_ms: Option<u64>) -> ProviderError {
        if self.says_too_long(status) {
            return ProviderError::ContextLengthExceeded;
        }
        if self.is_kind(&[
            "content_filter",
            "content_policy_violation",
            "responsibleaipolicyviolation",
        ]) {
            return ProviderError::ContentFiltered;
        }
        let detail = self.detail();
        // A spent quota too: what the client is told is the same, and a wait may end it.
        let rate_limits = [
            "rate_limit_exceeded",
            "rate_limit_error",
            "too_many_requests",
            "resource_exhausted",
            "insufficient_quota",
        ];
        if status == 429 || self.is_kind(&rate_limits) {
            return ProviderError::RateLimited {
                retry_after_ms,
                detail,
            };
        }
        ProviderError::Refused {
            status,
            retryable: self.is_retryable(status),
            retry_after_ms,
            detail,
        }
    }

    fn is_kind(&self, kinds: &[&str]) -> bool {
        self.kinds.iter().any(|kind| kinds.contains(&kind.as_str()))
    }

    /// Whether the server says that the request does not fit its model.
    fn says_too_long(&self, status: u16) -> bool {
        if self.is_kind(&["context_length_exceeded", "exceed_context_size_error"]) {
            return true;
        }
        // Anthropic, Google, vLLM, Ollama, Mistral, llama.cpp, Groq and others have only words.
        let message = self.message.to_ascii_lowercase();
        let phrases = [
            "context length",
            "context size",
            "context window",
            "context limit",
            "maximum context",
            "prompt is too long",
            "prompt is longer than",
            "too many tokens",
            "input token count",
            "request too large",
        ];
        matches!(status, 200 | 400 | 413 | 422) && phrases.iter().any(|phrase| parts::has(&message, phrase))
    }

    fn is_retryable(&self, status: u16) -> bool {
        match status {
            408 | 409 | 500..=599 => true,
            // A failure inside a stream, unless it says that the request is at fault.
            200 => !self.is_kind(&[
                "invalid_request_error",
                "invalid_api_key",
                "authentication_error",
                "permission_error",
                "not_found_error",
                "model_not_found",
            ]),
            _ => false,
        }
    }

    /// The server's words without addresses and keys, for the log.
    fn detail(&self) -> String {
        let words = self
            .kinds
            .iter()
            .map(String::as_str)
            .chain(self.message.split_whitespace());
        let safe: Vec<&str> = words
            .map(|word| if is_private(word) { "[removed]" } else { word })
            .list();
        if safe.is_empty() {
            return "no readable error".to_owned();
        }
        parts::join(&safe, " ").chars().take(DETAIL_MAX_CHARS).collect()
    }
}

/// Whether a word may be an address or (part of) a key. Identifiers of errors and models have no such run.
fn is_private(word: &str) -> bool {
    let runs = || word.split(|character: char| !character.is_ascii_alphanumeric());
    let is_key = |run: &str| run.len() >= 20 && run.bytes().any(|byte| byte.is_ascii_digit());
    parts::has(word, "://")
        || word.contains(['@'])
        || parts::has(word, "sk-")
        || parts::has(word, "***")
        || runs().any(is_key)
}

fn failure_status(label: &Value) -> Option<u16> {
    let number = label.as_u64().or_else(|| number::unsigned(label.as_str()?))?;
    u16::try_from(number)
        .ok()
        .filter(|status| (400..600).contains(status))
}

/// `retry-after-ms`, else `retry-after` in seconds. Its date form has become seconds before: a codec has no clock.
fn header_wait_ms(headers: &[(String, String)]) -> Option<u64> {
    let number = |name: &str| {
        let (_, value) = headers.iter().find(|(known, _)| known == name)?;
        parse_double(value.trim())
    };
    number("retry-after-ms")
        .or_else(|| number("retry-after").map(seconds_to_ms))
        .and_then(to_ms)
}

/// Waits that servers name in the body: `retry_after` in seconds, Google's `retryDelay`, OpenAI's "try again in 1.2s".
fn body_wait_ms(error: &Value, message: &str) -> Option<u64> {
    let member = error
        .get("retry_after")
        .and_then(number::as_double)
        .map(seconds_to_ms)
        .and_then(to_ms);
    let delay = || {
        let details = error.get("details")?.as_array()?;
        duration_ms(
            details
                .iter()
                .find_map(|detail| detail.get("retryDelay"))?
                .as_str()?,
        )
    };
    let words = || {
        let (_, after) = parts::split_once(message, "try again in ")?;
        duration_ms(after.split_whitespace().next()?)
    };
    member.or_else(delay).or_else(words)
}

/// `250ms`, `1.2s`, `6m0s`, `1h2m3s`; a point that ends the sentence is ignored.
fn duration_ms(text: &str) -> Option<u64> {
    let mut rest = text.trim_end_matches(['.', ',']);
    let mut sum_ms = 0.0;
    while !rest.is_empty() {
        let number_end = rest.find(|character: char| !character.is_ascii_digit() && character != '.')?;
        let (number, after) = rest.split_at_checked(number_end)?;
        let unit_end = after
            .find(|character: char| character.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(unit_end)?;
        let unit_ms = match unit {
            "ms" => 1.0,
            "s" => 1000.0,
            "m" => 60_000.0,
            "h" => 3_600_000.0,
            _ => return None,
        };
        sum_ms += parse_double(number)? * unit_ms;
        rest = after;
    }
    to_ms(sum_ms)
}

fn seconds_to_ms(seconds: f64) -> f64 {
    seconds * 1000.0
}

/// Rounded up: a wait is at least as long as asked. A negative one is none, an endless one is 31 years.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the range is checked before"
)]
fn to_ms(ms: f64) -> Option<u64> {
    (ms >= 0.0).then(|| ms.ceil().min(1e12) as u64)
}

#[cfg(test)]
#[path = "refusal_tests.rs"]
mod tests;
