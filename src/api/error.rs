//! Errors as the API answers them: one function for each thing that can be said.

use std::ops::Deref;

use serde_json::{Map, Value};

pub use super::error_code::ErrorCode;
use crate::protocol::decode::{InputError, Issue};
use crate::protocol::event::RunErrorCode;
use crate::protocol::id::ThreadId;
use crate::protocol::json;
use crate::protocol::json::JSON_MAX_VALUE_COUNT;
use crate::protocol::tree::json;

/// Seconds a client is asked to wait when only time can help.
const RETRY_AFTER_S: u64 = 2;

/// Seconds until a run at work may have ended.
const RUNS_RETRY_AFTER_S: u64 = 5;

/// Seconds until the longest period of a rate-limit binding is over.
const RATE_RETRY_AFTER_S: u64 = 60;

/// Seconds to wait for an operator.
const OPERATOR_RETRY_AFTER_S: u64 = 60;

/// An answer that is not a success.
///
/// Wire: `{"error": "<sentence>", "code", "issues"?: [{"field","message"}], ...}`. Source: contract D2.
/// One pointer: every step of a request hands it on.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{}", self.message)]
pub struct ApiError(Box<Parts>);

/// What an [`ApiError`] says.
#[derive(Debug, Clone, PartialEq)]
pub struct Parts {
    /// Code and status.
    pub code: ErrorCode,
    /// One sentence for people, without private detail.
    pub message: String,
    /// The faults of a refused body or query.
    pub issues: Vec<Issue>,
    /// Members only this code has.
    pub members: Vec<(&'static str, Value)>,
    /// `Retry-After`, in seconds.
    pub retry_after_s: Option<u64>,
    /// `Allow`, of a 405.
    pub allow: Option<String>,
}

impl Deref for ApiError {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl ApiError {
    /// An error with nothing beside its code and sentence.
    fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self(Box::new(Parts {
            code,
            message: message.into(),
            issues: Vec::new(),
            members: Vec::new(),
            retry_after_s: None,
            allow: None,
        }))
    }

    fn after(mut self, retry_after_s: u64) -> Self {
        self.0.retry_after_s = Some(retry_after_s);
        self
    }

    fn with_issues(mut self, issues: Vec<Issue>) -> Self {
        self.0.issues = issues;
        self
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.code.status()
    }

    /// The body, compact JSON.
    pub fn body(&self) -> String {
        let mut body = Map::new();
        body.insert("error".to_owned(), json!(self.message));
        body.insert("code".to_owned(), json!(self.code.as_str()));
        if !self.issues.is_empty() {
            let issue = |issue: &Issue| json!({ "field": issue.pointer, "message": issue.message });
            body.insert("issues".to_owned(), self.issues.iter().map(issue).collect());
        }
        for (name, value) in &self.members {
            body.insert((*name).to_owned(), value.clone());
        }
        json::text(&body)
    }

    /// The headers this error adds to an answer, names in lower case.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        let mut headers = vec![("content-type", "application/json".to_owned())];
        if let Some(allow) = &self.allow {
            headers.push(("allow", allow.clone()));
        }
        if let Some(seconds) = self.retry_after_s {
            headers.push(("retry-after", seconds.to_string()));
        }
        if self.status() == 401 {
            headers.push(("www-authenticate", "Bearer".to_owned()));
        }
        headers
    }
}

/// One constructor per fault.
impl ApiError {
    /// The body is not JSON.
    pub fn invalid_json(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidJson, message)
    }

    /// The body has these faults.
    pub fn invalid_body(issues: Vec<Issue>) -> Self {
        Self::new(ErrorCode::InvalidBody, "The request body is not valid.").with_issues(issues)
    }

    /// No user or tool message to answer. Source: contract 2.1.
    pub fn nothing_to_answer() -> Self {
        Self::invalid_body(vec![Issue {
            pointer: "/messages".to_owned(),
            message: "must hold a user or tool message, or continue a thread that does".to_owned(),
        }])
    }

    /// The query has these faults.
    pub fn invalid_query(issues: Vec<Issue>) -> Self {
        Self::new(ErrorCode::InvalidQuery, "The query parameters are not valid.").with_issues(issues)
    }

    /// A list or a new thread without an owner (D4).
    pub fn owner_required() -> Self {
        Self::new(ErrorCode::OwnerRequired, "A resourceId is required.")
    }

    /// A run id that several owners use, from a caller who names neither owner nor object (D4, D12, D17).
    pub fn ambiguous_run() -> Self {
        Self::new(
            ErrorCode::OwnerRequired,
            "Several owners have a run of this id: a resourceId is required, or the run's address.",
        )
    }

    /// Another protocol major.
    pub fn unsupported_protocol_version() -> Self {
        let message = "This protocol version is not supported; the server speaks 1.0.";
        Self::new(ErrorCode::UnsupportedProtocolVersion, message)
    }

    /// No or wrong credentials.
    pub fn unauthenticated() -> Self {
        Self::new(ErrorCode::Unauthenticated, "Valid credentials are required.")
    }

    /// Somebody else's.
    pub fn forbidden() -> Self {
        Self::new(ErrorCode::Forbidden, "This belongs to another owner.")
    }

    /// A genuine token without an owner: no identity, no data.
    pub fn owner_unknown() -> Self {
        Self::new(ErrorCode::OwnerUnknown, "The token names no owner.")
    }

    /// A genuine token without the scope that is required.
    pub fn scope_missing() -> Self {
        Self::new(ErrorCode::ScopeMissing, "The token lacks the required scope.")
    }

    /// No such path.
    pub fn route_not_found() -> Self {
        Self::new(ErrorCode::RouteNotFound, "There is no such route.")
    }

    /// No such agent.
    pub fn agent_not_found() -> Self {
        Self::new(ErrorCode::AgentNotFound, "There is no such agent.")
    }

    /// No such thread.
    pub fn thread_not_found() -> Self {
        Self::new(ErrorCode::ThreadNotFound, "There is no such thread.")
    }

    /// No such run.
    pub fn run_not_found() -> Self {
        Self::new(ErrorCode::RunNotFound, "There is no such run.")
    }

    /// No such call.
    pub fn tool_call_not_found() -> Self {
        Self::new(ErrorCode::ToolCallNotFound, "There is no such tool call.")
    }

    /// The path exists for these methods, `GET, HEAD, OPTIONS`.
    pub fn method_not_allowed(allow: String) -> Self {
        let mut error = Self::new(
            ErrorCode::MethodNotAllowed,
            "This route does not take this method.",
        );
        error.0.allow = Some(allow);
        error
    }

    /// A run of this id exists (D12). `status` as in `GET /runs/:runId`, `events` the path of its event stream.
    pub fn run_conflict(status: &str, thread_id: &ThreadId, events: String) -> Self {
        let mut error = Self::new(ErrorCode::RunConflict, "A run with this id exists already.");
        error.0.members = vec![
            ("status", json!(status)),
            ("threadId", json!(thread_id)),
            ("events", json!(events)),
        ];
        error
    }

    /// A second, different result of one call.
    pub fn result_conflict() -> Self {
        Self::new(
            ErrorCode::ResultConflict,
            "This tool call has another result already.",
        )
    }

    /// The run's events are counted anew. `generation` is the one that counts now.
    pub fn generation_changed(generation: u64) -> Self {
        let message = "The run was restarted; its events must be read from the start.";
        let mut error = Self::new(ErrorCode::GenerationChanged, message);
        error.0.members.push(("generation", json!(generation)));
        error
    }

    /// A result after the call's deadline.
    pub fn tool_call_expired() -> Self {
        Self::new(ErrorCode::ToolCallExpired, "This tool call has expired.")
    }

    /// The run has ended.
    pub fn run_over() -> Self {
        Self::new(ErrorCode::RunOver, "This run is over.")
    }

    /// The run lives, but events the client has not seen are no longer kept. Source: contract 8.
    pub fn events_forgotten() -> Self {
        Self::new(
            ErrorCode::EventsForgotten,
            "The events asked for are no longer kept.",
        )
    }

    /// More events than the run has had. Source: contract 8.
    pub fn events_ahead() -> Self {
        Self::invalid_query(vec![Issue {
            pointer: "/after".to_owned(),
            message: "must not be more than the run's events".to_owned(),
        }])
    }

    /// More than this many bytes.
    pub fn body_too_large(limit_bytes: usize) -> Self {
        let message = format!("The request body is larger than {limit_bytes} bytes.");
        Self::new(ErrorCode::BodyTooLarge, message)
    }

    /// More than this many of something.
    pub fn too_many(what: &str, limit_count: usize) -> Self {
        Self::new(
            ErrorCode::BodyTooLarge,
            format!("There are more than {limit_count} {what}."),
        )
    }

    /// A compressed body: how large it is would show too late.
    pub fn unsupported_content_encoding() -> Self {
        let message = "The body must not be compressed: send it without a content-encoding.";
        Self::new(ErrorCode::UnsupportedMediaType, message)
    }

    /// Something of the body is larger, or nested deeper, than may be.
    pub fn part_too_large(sentence: String) -> Self {
        Self::new(ErrorCode::BodyTooLarge, sentence)
    }

    /// More than this many bytes of headers.
    pub fn headers_too_large(limit_bytes: usize) -> Self {
        let message = format!("The headers are larger than {limit_bytes} bytes.");
        Self::new(ErrorCode::HeadersTooLarge, message)
    }

    /// More bytes of messages than the owner may store.
    pub fn storage_full() -> Self {
        let message = "This owner has stored as much as it may; delete threads to go on.";
        Self::new(ErrorCode::StorageFull, message)
    }

    /// A rate-limit binding said no. Its period is ten seconds or a minute; it does not say which.
    pub fn rate_limited() -> Self {
        let error = Self::new(ErrorCode::RateLimited, "Too many runs in a short time.");
        error.after(RATE_RETRY_AFTER_S)
    }

    /// As many runs at work as the owner may have.
    pub fn too_many_runs() -> Self {
        let message = "Too many runs of this owner are at work.";
        Self::new(ErrorCode::TooManyRuns, message).after(RUNS_RETRY_AFTER_S)
    }

    /// No tokens left today.
    pub fn tokens_used_up(retry_after_s: u64) -> Self {
        let message = "This owner has used up its tokens of the day.";
        Self::new(ErrorCode::TokensUsedUp, message).after(retry_after_s)
    }

    /// More than this many frames over one socket.
    pub fn too_many_frames(limit_count: usize) -> Self {
        let message = format!("More than {limit_count} frames were sent over this socket.");
        Self::new(ErrorCode::TooManyFrames, message).after(OPERATOR_RETRY_AFTER_S)
    }

    /// One call was answered again and again.
    pub fn too_many_results() -> Self {
        let message = "Too many results were sent for this call.";
        Self::new(ErrorCode::TooManyResults, message).after(OPERATOR_RETRY_AFTER_S)
    }

    /// Not JSON by its content type.
    pub fn unsupported_media_type() -> Self {
        let message = "The content type must be application/json.";
        Self::new(ErrorCode::UnsupportedMediaType, message)
    }

    /// A fault of ours; the detail is in the log.
    pub fn internal() -> Self {
        Self::new(
            ErrorCode::InternalError,
            "The server failed to handle this request.",
        )
    }

    /// The deployment is configured wrongly: `mistake` names the key, never its value, which is in the log.
    pub fn config_invalid(mistake: &str) -> Self {
        let message = format!("The server is not configured correctly: {mistake}.");
        Self::new(ErrorCode::ConfigInvalid, message)
    }

    /// No database.
    pub fn persistence_not_configured() -> Self {
        let message = "This server keeps no threads: it has no database.";
        Self::new(ErrorCode::PersistenceNotConfigured, message)
    }

    /// The upstream failed before the stream began (D14). A limit of rates is 429, everything else 502.
    pub fn upstream_refused(code: RunErrorCode, retry_after_s: Option<u64>) -> Self {
        let (code, message) = match code {
            RunErrorCode::UpstreamRateLimited => {
                let message = "The model's provider is overloaded; try again later.";
                let error = Self::new(ErrorCode::UpstreamRateLimited, message);
                return error.after(retry_after_s.unwrap_or(RETRY_AFTER_S));
            }
            RunErrorCode::UpstreamTimeout => (
                ErrorCode::UpstreamTimeout,
                "The model's provider did not answer in time.",
            ),
            RunErrorCode::UpstreamTruncated => (
                ErrorCode::UpstreamTruncated,
                "The model's provider broke off its answer.",
            ),
            RunErrorCode::InvalidUpstreamResponse => (
                ErrorCode::InvalidUpstreamResponse,
                "The model's provider sent an answer that cannot be read.",
            ),
            RunErrorCode::ContentFiltered => (
                ErrorCode::ContentFiltered,
                "The model's provider withheld the answer.",
            ),
            RunErrorCode::ContextLengthExceeded => (
                ErrorCode::ContextLengthExceeded,
                "The messages are too long for the model.",
            ),
            RunErrorCode::UpstreamError
            | RunErrorCode::OutputTruncated
            | RunErrorCode::MaxStepsExceeded
            | RunErrorCode::RunTimeout
            | RunErrorCode::RunInterrupted
            | RunErrorCode::StorageError
            | RunErrorCode::Cancelled
            | RunErrorCode::InternalError => (
                ErrorCode::UpstreamError,
                "The model's provider refused the request.",
            ),
        };
        Self::new(code, message)
    }

    /// The agent has no key or no address; only an operator can help.
    pub fn agent_not_configured() -> Self {
        let error = Self::new(ErrorCode::AgentNotConfigured, "This agent is not configured.");
        error.after(OPERATOR_RETRY_AFTER_S)
    }

    /// Tokens cannot be checked.
    pub fn identity_unavailable() -> Self {
        let message = "Credentials cannot be checked now; try again.";
        Self::new(ErrorCode::IdentityUnavailable, message).after(RETRY_AFTER_S)
    }

    /// A part of the deployment does not work: `checks` as in the answer of a healthy one.
    pub fn unhealthy(checks: Value) -> Self {
        let message = "A part of this deployment does not work.";
        let mut error = Self::new(ErrorCode::Unhealthy, message);
        error.0.members = vec![("status", json!("failing")), ("checks", checks)];
        error.after(OPERATOR_RETRY_AFTER_S)
    }

    /// The database is down or overloaded.
    pub fn storage_unavailable() -> Self {
        let error = Self::new(
            ErrorCode::StorageUnavailable,
            "The storage is not available; try again.",
        );
        error.after(RETRY_AFTER_S)
    }
}

impl From<InputError> for ApiError {
    fn from(error: InputError) -> Self {
        match error {
            InputError::Malformed { message } => Self::invalid_json(message),
            InputError::Invalid { issues } => Self::invalid_body(issues),
            InputError::TooManyValues => Self::too_many("JSON values", JSON_MAX_VALUE_COUNT),
            InputError::UnsupportedVersion => Self::unsupported_protocol_version(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_body_is_shown_with_its_issues() {
        let error = ApiError::from(InputError::Invalid {
            issues: vec![Issue {
                pointer: "/runId".to_owned(),
                message: "is required".to_owned(),
            }],
        });
        assert_eq!(error.status(), 400);
        assert_eq!(
            error.body(),
            r#"{"error":"The request body is not valid.","code":"invalid_body","issues":[{"field":"/runId","message":"is required"}]}"#
        );
        assert_eq!(error.headers(), [("content-type", "application/json".to_owned())]);
    }

    #[test]
    fn too_many_json_values_are_413_and_name_the_limit() {
        let error = ApiError::from(InputError::TooManyValues);
        assert_eq!(error.status(), 413);
        assert_eq!(
            error.body(),
            r#"{"error":"There are more than 250000 JSON values.","code":"body_too_large"}"#
        );
    }

    #[test]
    fn a_run_conflict_leads_to_the_other_run() {
        let error = ApiError::run_conflict(
            "running",
            &ThreadId::new("t"),
            "/io-bridge/runs/r/events".to_owned(),
        );
        assert_eq!(
            error.body(),
            r#"{"error":"A run with this id exists already.","code":"run_conflict","status":"running","threadId":"t","events":"/io-bridge/runs/r/events"}"#
        );
    }

    #[test]
    fn headers_tell_what_a_client_may_do_next() {
        let with = |error: ApiError| error.headers().into_iter().skip(1).collect::<Vec<_>>();
        let header = |name, value: &str| vec![(name, value.to_owned())];
        assert_eq!(
            with(ApiError::method_not_allowed("GET".to_owned())),
            header("allow", "GET")
        );
        assert_eq!(
            with(ApiError::unauthenticated()),
            header("www-authenticate", "Bearer")
        );
        assert_eq!(with(ApiError::storage_unavailable()), header("retry-after", "2"));
        assert_eq!(
            with(ApiError::agent_not_configured()),
            header("retry-after", "60")
        );
        let limited = |seconds| ApiError::upstream_refused(RunErrorCode::UpstreamRateLimited, seconds);
        assert_eq!(with(limited(Some(7))), header("retry-after", "7"));
        assert_eq!(with(limited(None)), header("retry-after", "2"));
        assert_eq!(with(ApiError::forbidden()), Vec::new());
    }

    #[test]
    fn every_run_error_before_the_stream_is_429_or_502() {
        for code in RunErrorCode::ALL {
            let error = ApiError::upstream_refused(*code, None);
            let expected = if *code == RunErrorCode::UpstreamRateLimited {
                429
            } else {
                502
            };
            assert_eq!(error.status(), expected, "{code:?}");
        }
    }
}
