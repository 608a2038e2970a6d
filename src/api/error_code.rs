//! The one place that knows HTTP statuses and the codes of error bodies.

macro_rules! error_codes {
    ($($status:literal $variant:ident = $code:literal, $meaning:literal;)*) => {
        /// The stable codes of error bodies, each with its one status. Source: contract D2.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorCode { $(#[doc = $meaning] $variant,)* }

        impl ErrorCode {
            /// Every code, by status.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The code on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $code,)* }
            }

            /// The HTTP status.
            pub fn status(self) -> u16 {
                match self { $(Self::$variant => $status,)* }
            }

            /// What it means, for people who read the documentation.
            pub fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning,)* }
            }
        }
    };
}

error_codes! {
    400 InvalidJson = "invalid_json", "The body is not JSON, or not an object where one is needed.";
    400 InvalidBody = "invalid_body", "Members of the body are missing or wrong; `issues` names them.";
    400 InvalidQuery = "invalid_query", "Query parameters are wrong; `issues` names them.";
    400 OwnerRequired = "owner_required", "A list or a new thread needs a `resourceId`, and so does a run whose id several owners use.";
    400 UnsupportedProtocolVersion = "unsupported_protocol_version", "The input declares another major than 1.";
    401 Unauthenticated = "unauthenticated", "No credentials, or wrong ones.";
    403 Forbidden = "forbidden", "The thread, run or resource belongs to another owner.";
    403 OwnerUnknown = "owner_unknown", "The token is good but names no owner.";
    403 ScopeMissing = "scope_missing", "The token lacks the scope this server asks for.";
    404 RouteNotFound = "route_not_found", "No such path.";
    404 AgentNotFound = "agent_not_found", "No agent has this id or alias.";
    404 ThreadNotFound = "thread_not_found", "No thread has this id.";
    404 RunNotFound = "run_not_found", "No run has this id.";
    404 ToolCallNotFound = "tool_call_not_found", "The run has no call of this id.";
    405 MethodNotAllowed = "method_not_allowed", "The path exists for other methods; see `Allow`.";
    409 RunConflict = "run_conflict", "The owner has a run of this id; `status`, `threadId` and `events` lead to it.";
    409 ResultConflict = "result_conflict", "The call has another result already.";
    409 GenerationChanged = "generation_changed", "The run was restarted; read its events from 0.";
    410 ToolCallExpired = "tool_call_expired", "The call's deadline has passed.";
    410 RunOver = "run_over", "The run has ended and takes or gives nothing more.";
    410 EventsForgotten = "events_forgotten", "The run lives, but its first events are no longer kept.";
    413 BodyTooLarge = "body_too_large", "The body, or something in it, is over a limit, which the sentence names.";
    413 HeadersTooLarge = "headers_too_large", "The headers are over their limit.";
    413 StorageFull = "storage_full", "The owner has stored as much as it may.";
    415 UnsupportedMediaType = "unsupported_media_type", "The body's content type is not JSON, or it is compressed.";
    429 RateLimited = "rate_limited", "Too many runs in a short time; see `Retry-After`.";
    429 TooManyRuns = "too_many_runs", "The owner has as many runs at work as it may; see `Retry-After`.";
    429 TokensUsedUp = "tokens_used_up", "The owner has used up its tokens of the day; see `Retry-After`.";
    429 TooManyFrames = "too_many_frames", "A client sent more frames over one socket than it may.";
    429 TooManyResults = "too_many_results", "Too many results were sent for one call.";
    429 UpstreamRateLimited = "upstream_rate_limited", "The model's provider asks to wait; see `Retry-After`.";
    500 InternalError = "internal_error", "A fault of this server.";
    500 ConfigInvalid = "config_invalid", "The deployment's configuration is wrong; the log says where.";
    501 PersistenceNotConfigured = "persistence_not_configured", "The deployment has no database.";
    502 UpstreamError = "upstream_error", "The model's provider refused or failed.";
    502 UpstreamTimeout = "upstream_timeout", "The model's provider did not answer in time.";
    502 UpstreamTruncated = "upstream_truncated", "The model's provider broke off its answer.";
    502 InvalidUpstreamResponse = "invalid_upstream_response", "The model's provider sent what its format does not allow.";
    502 ContentFiltered = "content_filtered", "The model's provider withheld the answer.";
    502 ContextLengthExceeded = "context_length_exceeded", "The messages are too long for the model.";
    503 AgentNotConfigured = "agent_not_configured", "The agent lacks its key or address.";
    503 IdentityUnavailable = "identity_unavailable", "The keys that check tokens cannot be had now; see `Retry-After`.";
    503 Unhealthy = "unhealthy", "A part of the deployment does not work; `checks` says which.";
    503 StorageUnavailable = "storage_unavailable", "The database cannot be reached now; see `Retry-After`.";
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn codes_are_unique_snake_case_and_cover_the_contracts_statuses() {
        let codes: HashSet<_> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(codes.len(), ErrorCode::ALL.len());
        assert!(
            codes
                .iter()
                .all(|code| code.bytes().all(|byte| byte == b'_' || byte.is_ascii_lowercase()))
        );
        let mut statuses: Vec<_> = ErrorCode::ALL.iter().map(|code| code.status()).collect();
        assert!(statuses.is_sorted());
        statuses.dedup();
        assert_eq!(
            statuses,
            [
                400, 401, 403, 404, 405, 409, 410, 413, 415, 429, 500, 501, 502, 503
            ]
        );
    }
}
