//! The WebSocket transport as data: how a socket is refused, and the frames its client sends. Source: contract 7.

use serde_json::Map;

use super::error::ApiError;
use crate::protocol::decode::{Object, Report};
use crate::protocol::json;
use crate::protocol::node::Node;
use crate::protocol::tree::json;

/// Close code of a socket whose run had its terminal event.
pub const CLOSE_DONE: u16 = 1000;

/// Close code of a socket whose run broke off.
pub const CLOSE_BROKEN: u16 = 1011;

/// The subprotocol whose next entry is a token, for clients that cannot set headers.
pub const TOKEN_PROTOCOL: &str = "bearer";

/// Longest reason of a close frame, in bytes. Source: RFC 6455 5.5.
const REASON_MAX_BYTES: usize = 123;

/// Close code for a refusal with this HTTP status: 4000 + status where clients act on the status, else 4400.
pub fn close_code(status: u16) -> u16 {
    match status {
        401 | 403 | 404 | 409 | 429 | 500..=599 => 4000 + status,
        _ => 4400,
    }
}

/// As much of an error's body as a close frame holds; the sentence comes first in it.
pub fn close_reason(body: &str) -> &str {
    let end = body.floor_char_boundary(REASON_MAX_BYTES);
    body.get(..end).unwrap_or_default()
}

/// Whether a request asks for a WebSocket.
pub fn is_handshake(method: &str, upgrade: Option<&str>) -> bool {
    method == "GET" && upgrade.is_some_and(|upgrade| upgrade.trim().eq_ignore_ascii_case("websocket"))
}

/// The token in `Sec-WebSocket-Protocol: bearer, <token>`.
pub fn protocol_token(protocols: Option<&str>) -> Option<&str> {
    let mut protocols = protocols?.split(',').map(str::trim);
    protocols.find(|protocol| protocol.eq_ignore_ascii_case(TOKEN_PROTOCOL))?;
    protocols.next().filter(|token| !token.is_empty())
}

/// What a PING is answered with.
pub const PONG: &str = r#"{"type":"PONG"}"#;

/// A frame of a client, after its input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientFrame {
    /// `{"type":"PING"}`: keeps the connection alive where a proxy drops silent ones. Pages cannot send the pings of the
    /// protocol below, and the platform cannot either.
    Ping,
    /// Everything else: a result, or what is refused as one.
    Result(ResultFrame),
}

/// A frame `{"type":"TOOL_RESULT","toolCallId","result"}`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResultFrame {
    /// The call, as far as the frame names one.
    pub tool_call_id: Option<String>,
    /// What a POST of the result would have as its body, or what is wrong with the frame.
    pub body: Result<String, ApiErrorBody>,
}

/// Status and body of an error, as a rejection repeats them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiErrorBody {
    /// HTTP status.
    pub status: u16,
    /// JSON text of D2.
    pub body: String,
}

impl From<ApiError> for ApiErrorBody {
    fn from(error: ApiError) -> Self {
        Self {
            status: error.status(),
            body: error.body(),
        }
    }
}

impl ClientFrame {
    /// Reads a frame.
    pub fn read(text: &str) -> Self {
        let mut object = match Object::parse(text) {
            Ok(object) => object,
            Err(fault) => {
                return Self::Result(ResultFrame {
                    tool_call_id: None,
                    body: Err(ApiError::from(fault).into()),
                });
            }
        };
        let mut report = Report::default();
        match object.take("type").and_then(Node::into_text).as_deref() {
            Some("PING") => return Self::Ping,
            Some("TOOL_RESULT") => {}
            Some(_) | None => report.issue(object.path("type"), "must be TOOL_RESULT or PING"),
        }
        Self::Result(ResultFrame::read(object, report))
    }
}

impl ResultFrame {
    /// `error` and `isError` may stand where a POST may have them (D16).
    fn read(mut object: Object<'_>, mut report: Report) -> Self {
        let tool_call_id = object.required_string("toolCallId", &mut report);
        if !object.has("result") && !object.has("error") {
            report.issue(object.path("result"), "is required");
        }
        let mut members = Map::new();
        for name in ["result", "error", "isError"] {
            if let Some(node) = object.take(name) {
                members.insert(name.to_owned(), node.into_value());
            }
        }
        let body = report.finish(json::text(&members)).map(|(body, _)| body);
        Self {
            tool_call_id,
            body: body.map_err(|fault| ApiError::from(fault).into()),
        }
    }
}

/// `{"type":"REJECTED","toolCallId"?,"status",...}` and the members of the error's body.
pub fn rejected(tool_call_id: Option<&str>, error: &ApiErrorBody) -> String {
    let mut members = Map::new();
    members.insert("type".to_owned(), json!("REJECTED"));
    if let Some(id) = tool_call_id {
        members.insert("toolCallId".to_owned(), json!(id));
    }
    members.insert("status".to_owned(), json!(error.status));
    if let Some(body) = json::object(&error.body) {
        members.extend(body);
    }
    json::text(&members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_find_the_status_in_the_close_code() {
        let table = [
            (400, 4400),
            (401, 4401),
            (403, 4403),
            (404, 4404),
            (405, 4400),
            (409, 4409),
            (410, 4400),
            (413, 4400),
            (415, 4400),
            (429, 4429),
            (500, 4500),
            (501, 4501),
            (502, 4502),
            (503, 4503),
        ];
        for (status, code) in table {
            assert_eq!(close_code(status), code, "{status}");
        }
    }

    #[test]
    fn a_reason_is_cut_between_characters() {
        assert_eq!(close_reason("{}"), "{}");
        let long = format!("{}é{}", "x".repeat(122), "y".repeat(100));
        assert_eq!(close_reason(&long), "x".repeat(122));
        assert_eq!(close_reason(&"x".repeat(124)), "x".repeat(123));
    }

    #[test]
    fn a_get_that_upgrades_to_a_websocket_is_a_handshake() {
        assert!(is_handshake("GET", Some("websocket")));
        assert!(is_handshake("GET", Some(" WebSocket ")));
        for (method, upgrade) in [("GET", None), ("GET", Some("h2c")), ("POST", Some("websocket"))] {
            assert!(!is_handshake(method, upgrade), "{method} {upgrade:?}");
        }
    }

    #[test]
    fn a_token_may_follow_the_subprotocol_bearer() {
        for (protocols, token) in [
            (None, None),
            (Some("bearer"), None),
            (Some("bearer, "), None),
            (Some("bearer, abc"), Some("abc")),
            (Some("chat,Bearer,abc.d-e"), Some("abc.d-e")),
            (Some("abc, other"), None),
        ] {
            assert_eq!(protocol_token(protocols), token, "{protocols:?}");
        }
    }

    #[test]
    fn a_result_frame_is_the_body_of_a_post() {
        let read = |text: &str| {
            let ClientFrame::Result(ResultFrame { tool_call_id, body }) = ClientFrame::read(text) else {
                unreachable!("{text} is no ping");
            };
            (tool_call_id, body.map_err(|error| error.body))
        };
        let taken = |id: &str, body: &str| (Some(id.to_owned()), Ok(body.to_owned()));
        assert_eq!(
            read(r#"{"type":"TOOL_RESULT","toolCallId":"c","result":{"b":1.0,"a":null},"x":1}"#),
            taken("c", r#"{"result":{"b":1.0,"a":null}}"#)
        );
        assert_eq!(
            read(r#"{"type":"TOOL_RESULT","toolCallId":"c","result":null}"#),
            taken("c", r#"{"result":null}"#)
        );
        assert_eq!(
            read(r#"{"type":"TOOL_RESULT","toolCallId":"c","error":"no","isError":true}"#),
            taken("c", r#"{"error":"no","isError":true}"#)
        );
        let (id, fault) = read(r#"{"type":"RESULT","toolCallId":"c"}"#);
        assert_eq!(id.as_deref(), Some("c"));
        assert_eq!(
            fault,
            Err(concat!(
                r#"{"error":"The request body is not valid.","code":"invalid_body","issues":["#,
                r#"{"field":"/type","message":"must be TOOL_RESULT or PING"},{"field":"/result","message":"is required"}]}"#
            )
            .to_owned())
        );
        let (id, fault) = read("hello");
        assert_eq!(id, None);
        assert!(fault.is_err());
    }

    #[test]
    fn a_ping_is_one_whatever_comes_with_it() {
        for ping in [r#"{"type":"PING"}"#, r#" {"id":1,"type":"PING","result":2} "#] {
            assert_eq!(ClientFrame::read(ping), ClientFrame::Ping);
        }
    }

    #[test]
    fn a_rejection_repeats_status_and_body() {
        let error = ApiErrorBody::from(ApiError::result_conflict());
        assert_eq!(
            rejected(Some("c"), &error),
            r#"{"type":"REJECTED","toolCallId":"c","status":409,"error":"This tool call has another result already.","code":"result_conflict"}"#
        );
        assert_eq!(
            rejected(None, &ApiErrorBody::from(ApiError::run_over())),
            r#"{"type":"REJECTED","status":410,"error":"This run is over.","code":"run_over"}"#
        );
    }
}
