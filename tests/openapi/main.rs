//! The API's description says what the code does, and the code does nothing it does not say.
//!
//! A new route, error, event, query parameter or body member fails a test here until `src/api/openapi.json` has it.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

mod answers;
#[path = "../support/chat.rs"]
#[expect(dead_code, reason = "shared with other test crates")]
mod chat;
#[path = "../support/sqlite.rs"]
#[expect(dead_code, reason = "shared with other test crates")]
mod sqlite;

use std::collections::{BTreeMap, BTreeSet};

use io_bridge::api::body;
use io_bridge::api::error::{ApiError, ErrorCode};
use io_bridge::api::openapi::document;
use io_bridge::api::query::Query;
use io_bridge::api::route::{Method, ROUTES};
use io_bridge::protocol::event::RunErrorCode;
use io_bridge::protocol::id::{ResourceId, ThreadId};
use io_bridge::protocol::input::RunAgentInput;
use io_bridge::protocol::thread::MessageForm;
use serde_json::{Map, Value, json};

fn described() -> Value {
    serde_json::from_str(&document("1.2.3", "/io-bridge")).unwrap()
}

/// Follows a reference, if it is one.
fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(reference) => document.pointer(reference.trim_start_matches('#')).unwrap(),
        None => value,
    }
}

/// Every operation with its method and path.
fn operations(document: &Value) -> Vec<(String, String, Map<String, Value>)> {
    let mut found = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            if let Some(operation) = operation.as_object() {
                found.push((method.to_uppercase(), path.clone(), operation.clone()));
            }
        }
    }
    found
}

fn set<T: Into<String>>(names: impl IntoIterator<Item = T>) -> BTreeSet<String> {
    names.into_iter().map(Into::into).collect()
}

#[test]
fn every_route_is_described_and_nothing_else() {
    let document = described();
    let said = operations(&document);
    let said = set(said.iter().map(|(method, path, _)| format!("{method} {path}")));
    let served = ROUTES.iter().map(|row| {
        let method = match row.method {
            Method::Handshake => "GET",
            other => other.as_str(),
        };
        let segments = row.path.split('/').map(|part| match part.strip_prefix(':') {
            Some(name) => format!("{{{name}}}"),
            None => part.to_owned(),
        });
        let path = segments.collect::<Vec<_>>().join("/");
        format!("{method} {}", if path.is_empty() { "/" } else { &path })
    });
    assert_eq!(said, set(served));
}

#[test]
fn every_operation_has_an_answer_of_its_own() {
    for (method, path, operation) in operations(&described()) {
        let success = match operation["operationId"].as_str().unwrap() {
            "openSocket" => "101",
            _ => "200",
        };
        let responses = operation["responses"].as_object().unwrap();
        assert!(responses.contains_key(success), "{method} {path}");
        assert!(responses.contains_key("500"), "{method} {path}");
    }
}

#[test]
fn the_parameters_of_a_path_are_declared() {
    let document = described();
    for (path, item) in document["paths"].as_object().unwrap() {
        let in_path = path.split('/').filter_map(|part| part.strip_prefix('{'));
        let in_path = set(in_path.map(|part| part.trim_end_matches('}')));
        let declared = item["parameters"].as_array().into_iter().flatten();
        let declared = declared.map(|one| resolve(&document, one)["name"].as_str().unwrap());
        assert_eq!(in_path, set(declared), "{path}");
    }
}

#[test]
fn the_version_the_prefix_and_the_tables_come_from_the_code() {
    let at_root: Value = serde_json::from_str(&document("2.0.0", "")).unwrap();
    assert_eq!(at_root["servers"], json!([{"url": "/"}]));
    let document = described();
    assert_eq!(document["info"]["version"], "1.2.3");
    assert_eq!(document["servers"], json!([{"url": "/io-bridge"}]));
    let codes = RunErrorCode::ALL.iter().map(|code| code.as_str());
    assert_eq!(
        document["components"]["schemas"]["RunError"]["properties"]["code"]["enum"],
        Value::from(codes.collect::<Vec<_>>())
    );
}

#[test]
fn every_error_is_some_routes_and_every_named_error_exists() {
    let source: Value = serde_json::from_str(include_str!("../../src/api/openapi.json")).unwrap();
    let known = set(ErrorCode::ALL.iter().map(|code| code.as_str()));
    for (method, path, operation) in operations(&source) {
        let named = operation.get("x-errors").and_then(Value::as_array);
        for code in named.into_iter().flatten() {
            assert!(known.contains(code.as_str().unwrap()), "{method} {path}: {code}");
        }
    }
    let mut used = BTreeSet::new();
    for (method, path, operation) in operations(&described()) {
        for (status, response) in operation["responses"].as_object().unwrap() {
            let codes = &response["content"]["application/json"]["schema"]["properties"]["code"]["enum"];
            for code in codes.as_array().into_iter().flatten() {
                let code = code.as_str().unwrap();
                let entry = ErrorCode::ALL
                    .iter()
                    .find(|entry| entry.as_str() == code)
                    .unwrap();
                assert_eq!(entry.status().to_string(), *status, "{method} {path}: {code}");
                used.insert(code.to_owned());
            }
        }
    }
    assert_eq!(used, known);
}

/// Query parameters by operation, without `resourceId`, which every route of an owner has.
fn query_parameters(document: &Value, operation: &Map<String, Value>) -> BTreeSet<String> {
    let parameters = operation.get("parameters").and_then(Value::as_array);
    let parameters = parameters.into_iter().flatten();
    let names = parameters.map(|one| resolve(document, one)["name"].as_str().unwrap());
    set(names.filter(|name| *name != "resourceId"))
}

/// Names of the parameters a reader of queries complains about when every one of them is wrong.
fn complaints<T>(read: impl Fn(&Query) -> Result<T, ApiError>, names: &BTreeSet<String>) -> BTreeSet<String> {
    let wrong = |name: &String| format!("{name}={}", "x".repeat(600));
    let query = names.iter().map(wrong).collect::<Vec<_>>().join("&");
    let error = read(&Query::parse(&query)).err().unwrap();
    set(error
        .issues
        .iter()
        .map(|issue| issue.pointer.trim_start_matches('/')))
}

#[test]
fn every_query_parameter_is_described_where_it_is_read() {
    let document = described();
    let operations = operations(&document);
    let mut by_id: BTreeMap<&str, BTreeSet<String>> = operations
        .iter()
        .map(|(_, _, it)| {
            (
                it["operationId"].as_str().unwrap(),
                query_parameters(&document, it),
            )
        })
        .collect();
    let all: BTreeSet<String> = by_id.values().flatten().cloned().collect();
    let mut threads = complaints(|query| query.thread_list(ResourceId::new("ada")), &all);
    // Any text may be a cursor; the store refuses those it did not write.
    threads.insert("cursor".to_owned());
    assert_eq!(by_id["readHealth"], complaints(Query::deep_health, &all));
    // Any agent may be named on a thread route.
    for id in [
        "listThreads",
        "createThread",
        "readThread",
        "updateThread",
        "deleteThread",
        "listMessages",
        "exportThread",
    ] {
        assert!(by_id.get_mut(id).unwrap().remove("agentId"), "{id}");
    }
    assert_eq!(by_id["listThreads"], threads);
    let messages = |query: &Query| query.message_list(ThreadId::new("t"), MessageForm::Mastra);
    assert_eq!(by_id["listMessages"], complaints(messages, &all));
    assert_eq!(by_id["exportThread"], complaints(Query::thread_export, &all));
    assert_eq!(by_id["followRun"], complaints(Query::run_events, &all));
    assert_eq!(by_id["readRun"], complaints(Query::run_address, &all));
    assert_eq!(by_id["cancelRun"], complaints(Query::run_address, &all));
    let mut read = literals(include_str!("../../src/api/query.rs"));
    // Values, and the members of an `orderBy` that is an object.
    for value in [
        "createdAt",
        "updatedAt",
        "field",
        "mastra",
        "true",
        "false",
        "resourceId",
    ] {
        assert!(read.remove(value), "{value} is no literal of query.rs any more");
    }
    assert_eq!(all, read);
}

/// The identifiers in quotes of a source, its tests left out.
fn literals(source: &str) -> BTreeSet<String> {
    let code = source.split("#[cfg(test)]").next().unwrap();
    let code: String = code
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect();
    let quoted = code.split('"').skip(1).step_by(2);
    set(quoted.filter(|text| {
        text.starts_with(|first: char| first.is_ascii_lowercase())
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric())
    }))
}

fn properties(document: &Value, schema: &str) -> BTreeSet<String> {
    let schema = &document["components"]["schemas"][schema];
    let names = schema["properties"]
        .as_object()
        .unwrap_or_else(|| panic!("no properties: {schema}"));
    set(names.keys())
}

#[test]
fn every_member_of_a_body_is_described() {
    let document = described();
    let sources = [
        (
            include_str!("../../src/protocol/input_decode.rs"),
            &["RunAgentInput", "Tool", "ContextEntry", "ResumeEntry"][..],
            &[][..],
            &["messages"][..],
        ),
        (
            include_str!("../../src/protocol/message_decode.rs"),
            &["Message", "Part", "Source", "ToolCall", "FunctionCall"],
            &[
                "activity",
                "assistant",
                "audio",
                "binary",
                "developer",
                "document",
                "file",
                "image",
                "messages",
                "reasoning",
                "system",
                "tool",
                "user",
                "video",
            ],
            &[],
        ),
        (
            include_str!("../../src/protocol/forwarded_props_decode.rs"),
            &[
                "ForwardedProps",
                "MemoryOptions",
                "ModelSettings",
                "StructuredOutput",
                "ToolChoice",
            ],
            &["auto", "none", "required"],
            &[],
        ),
        (
            include_str!("../../src/api/body.rs"),
            &["NewThread", "ThreadPatch", "CancelBody", "Erasure"],
            &["identity"],
            &["resourceId"],
        ),
        (
            include_str!("../../src/protocol/tool_result.rs"),
            &["ResultBody"],
            // Of the parts of an MCP result.
            &[
                "audio", "data", "image", "mimeType", "null", "resource", "text", "type",
            ],
            &[],
        ),
    ];
    for (source, schemas, values, read_elsewhere) in sources {
        let mut said: BTreeSet<String> = schemas.iter().flat_map(|it| properties(&document, it)).collect();
        for name in read_elsewhere {
            assert!(said.remove(*name), "{name} is not described in {schemas:?}");
        }
        let mut read = literals(source);
        for value in values {
            assert!(read.remove(*value), "{value} is no literal any more: {schemas:?}");
        }
        assert_eq!(said, read, "{schemas:?}");
    }
}

#[test]
fn the_examples_of_bodies_are_taken_as_they_are() {
    let document = described();
    let content = |path: &str, method: &str| {
        document["paths"][path][method]["requestBody"]["content"]["application/json"].clone()
    };
    let runs = content("/run", "post");
    for (name, example) in runs["examples"].as_object().unwrap() {
        let decoded = RunAgentInput::decode(&example["value"].to_string()).unwrap();
        assert_eq!(decoded.warnings, [], "{name}");
    }
    body::new_thread(&content("/threads", "post")["example"].to_string()).unwrap();
    body::thread_patch(&content("/threads/{threadId}", "patch")["example"].to_string()).unwrap();
    let erasure = content("/owners/{resourceId}/erase", "post")["example"].to_string();
    body::confirmed_erasure(&erasure, &ResourceId::new("ada")).unwrap();
}
