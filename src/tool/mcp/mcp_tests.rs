use serde_json::json;

use super::answer::{AnswerDecoder, Incoming};
use super::*;

fn server() -> McpServer {
    McpServer {
        name: "docs".to_owned(),
        url: "https://mcp.example/mcp".to_owned(),
        headers: vec![
            ("authorization".to_owned(), Secret::new("Bearer key-canary")),
            ("accept".to_owned(), Secret::new("text/html")),
        ],
        allow: vec![],
        deny: vec![],
        prefix: String::new(),
        idempotent: true,
        timeout_ms: 1,
        result_max_bytes: 1000,
        required: false,
        allow_private: false,
    }
}

fn pairs<'a>(pairs: &[(&'a str, &'a str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn requests_carry_what_the_transport_asks_for() {
    let both = ("accept", "application/json, text/event-stream");
    let key = ("authorization", "Bearer key-canary");
    let json_type = ("content-type", "application/json");
    let first = server().post(None, &message::initialize(1));
    assert_eq!(first.headers, pairs(&[key, both, json_type]));
    let body: Value = serde_json::from_str(first.body.as_deref().unwrap()).unwrap();
    assert_eq!(body["params"]["protocolVersion"], "2025-11-25");
    let session = McpSession {
        id: Some("s1".to_owned()),
        version: "2025-06-18",
    };
    let version = ("mcp-protocol-version", "2025-06-18");
    let later = server().post(Some(&session), &message::list_tools(2, Some("c")));
    assert_eq!(
        later.headers,
        pairs(&[key, both, version, ("mcp-session-id", "s1"), json_type])
    );
    assert_eq!(
        later.body.as_deref(),
        Some(r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"cursor":"c"}}"#)
    );
    let leave = server().leave(&session).unwrap();
    assert_eq!((leave.method, leave.body), ("DELETE", None));
    assert_eq!(
        server().leave(&McpSession {
            id: None,
            version: "2025-11-25"
        }),
        None
    );
    assert!(!format!("{:?}", server()).contains("canary"));
}

#[test]
fn private_servers_need_to_be_allowed() {
    let mut server = server();
    assert!(server.is_allowed());
    server.url = "http://localhost:3001/mcp".to_owned();
    assert!(!server.is_allowed());
    server.allow_private = true;
    assert!(server.is_allowed());
}

#[test]
fn tools_are_offered_by_the_lists_and_under_names_vendors_take() {
    let listed = [
        json!({"name": "read.file/x", "description": "Reads.", "inputSchema": {"$schema": "u", "type": "object"}}),
        json!({"name": "wipe", "title": "Wipe"}),
        json!({"name": "other", "inputSchema": 1}),
        json!({"name": ""}),
        json!({"description": "nameless"}),
    ];
    let names = |server: &McpServer| -> Vec<String> {
        let offered = server.offered(&listed);
        offered.into_iter().map(|tool| tool.declaration.name).collect()
    };
    let mut server = server();
    assert_eq!(names(&server), ["read_file_x", "wipe", "other"]);
    let [first, second, ..] = &server.offered(&listed)[..] else {
        panic!()
    };
    assert_eq!(
        (first.name.as_str(), &first.declaration.parameters),
        ("read.file/x", &Some(json!({"type": "object"})))
    );
    assert_eq!(
        (
            second.declaration.description.as_str(),
            &second.declaration.parameters
        ),
        ("Wipe", &None)
    );
    server.deny = vec!["wipe".to_owned()];
    server.prefix = "docs_".to_owned();
    assert_eq!(names(&server), ["docs_read_file_x", "docs_other"]);
    server.allow = vec!["wipe".to_owned(), "other".to_owned()];
    assert_eq!(names(&server), ["docs_other"]);
}

#[test]
fn older_versions_are_accepted_and_unknown_ones_are_not() {
    for version in PROTOCOL_VERSIONS {
        assert_eq!(
            agreed_version(&json!({ "protocolVersion": version })),
            Ok(version)
        );
    }
    assert_eq!(
        agreed_version(&json!({"protocolVersion": "2099-01-01"})),
        Err(McpFault::Version)
    );
    assert_eq!(agreed_version(&json!({})), Err(McpFault::Version));
}

fn read(content_type: &str, body: &str) -> Result<Vec<Incoming>, McpFault> {
    let mut whole = Vec::new();
    let mut decoder = AnswerDecoder::new(Some(content_type), 200)?;
    let outcome = decoder
        .feed(body.as_bytes(), &mut whole)
        .and_then(|()| decoder.end(&mut whole));
    // The same, cut at every byte.
    let mut cut = Vec::new();
    let mut decoder = AnswerDecoder::new(Some(content_type), 200)?;
    let fed = body.bytes().try_for_each(|byte| decoder.feed(&[byte], &mut cut));
    assert_eq!(fed.and_then(|()| decoder.end(&mut cut)), outcome);
    assert_eq!(cut, whole);
    outcome.map(|()| whole)
}

fn response(id: u64, result: Value) -> Incoming {
    Incoming::Response {
        id: Some(id),
        outcome: Ok(result),
    }
}

#[test]
fn a_json_answer_is_one_message_or_several() {
    let json_type = "application/json; charset=utf-8";
    assert_eq!(
        read(json_type, r#"{"jsonrpc":"2.0","id":7,"result":{"n":1.0}}"#),
        Ok(vec![response(7, json!({"n": 1.0}))])
    );
    assert_eq!(
        read(
            json_type,
            r#"[{"method":"notifications/tools/list_changed"},{"id":1,"result":{}}]"#
        ),
        Ok(vec![Incoming::ToolsChanged, response(1, json!({}))])
    );
    for body in ["", "{", "oops"] {
        assert_eq!(read(json_type, body), Err(McpFault::Malformed));
    }
    assert_eq!(read(json_type, &" ".repeat(201)), Err(McpFault::TooLong(200)));
    for other in ["text/html", ""] {
        assert_eq!(read(other, "{}"), Err(McpFault::Malformed));
    }
}

#[test]
fn an_event_stream_tells_messages_one_by_one() {
    let stream = concat!(
        "id: 1\ndata:\n\n",
        ": comment\n\n",
        "event: message\ndata: {\"method\":\"notifications/progress\",\"params\":{\"progressToken\":3}}\n\n",
        "data: {\"method\":\"notifications/message\",\"params\":{}}\n\n",
        "data: {\"id\":\"p\",\"method\":\"ping\"}\n\n",
        "data: {\"id\":0,\"method\":\"sampling/createMessage\"}\n\n",
        "event: other\ndata: {\"id\":3,\"result\":{}}\n\n",
        "data: {\"id\":3,\ndata: \"result\":{}}\n\n",
        "data: {\"id\":4,\"error\":{\"code\":-32602,\"message\":\"Unknown tool\"}}\n\n",
        "data: {\"id\":5,\"result\":null}\n\n",
        "data: {\"id\":6,\"result\":{}}",
    );
    assert_eq!(
        read("text/event-stream", stream),
        Ok(vec![
            Incoming::Progress { token: Some(3) },
            Incoming::Ping { id: json!("p") },
            Incoming::Request { id: json!(0) },
            response(3, json!({})),
            Incoming::Response {
                id: Some(4),
                outcome: Err(McpFault::Refused("Unknown tool".to_owned()))
            },
            Incoming::Response {
                id: Some(5),
                outcome: Err(McpFault::Malformed)
            },
            response(6, json!({})),
        ])
    );
    assert_eq!(read("text/event-stream", "data: {\"id\":6,\"resu"), Ok(vec![]));
    assert_eq!(
        read("text/event-stream", "data: nonsense\n\n"),
        Err(McpFault::Malformed)
    );
    let long = format!("data: {}\n\n", "x".repeat(300));
    assert_eq!(read("text/event-stream", &long), Err(McpFault::TooLong(200)));
}

#[test]
fn a_result_is_kept_whole() {
    let result =
        json!({"content": [{"type": "text", "text": "x"}], "structuredContent": {"n": 1.0}, "isError": true});
    assert_eq!(
        call_result(&result),
        ToolResult {
            content: result.to_string(),
            is_error: true
        }
    );
    assert!(!call_result(&json!({"content": []})).is_error);
    assert_eq!(sentence(" \n"), "The tool's server reported an error.");
    assert_eq!(sentence(&"\u{fc}".repeat(2000)).len(), 2000);
}
