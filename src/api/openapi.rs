//! The API described for machines, OpenAPI 3.1.
//!
//! `openapi.json` is written by hand; what the code has in tables comes from there: the version, the prefix, the errors
//! of each route, the codes of RUN_ERROR. `tests/openapi` holds the rest to the code.

use serde_json::{Map, Value};

use super::error::ErrorCode;
use crate::list::List;
use crate::protocol::event::RunErrorCode;
use crate::protocol::json;
use crate::protocol::parts;
use crate::protocol::tree::json;

/// The hand-written part, without blanks.
const SOURCE: &str = include_str!(concat!(env!("OUT_DIR"), "/openapi.json"));

/// Member of an operation in the source: the codes of its own errors.
const ERRORS: &str = "x-errors";

/// The description of a deployment: its version, and its prefix as the address of the server.
pub fn document(version: &str, prefix: &str) -> String {
    let mut document = json::tree(SOURCE).unwrap_or_default();
    put(document.get_mut("info"), "version", json!(version));
    let server = if prefix.is_empty() { "/" } else { prefix };
    put(Some(&mut document), "servers", json!([{ "url": server }]));
    let codes: Vec<_> = RunErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    let code = ["components", "schemas", "RunError", "properties", "code"]
        .into_iter()
        .try_fold(&mut document, Value::get_mut);
    put(code, "enum", json!(codes));
    if let Some(Value::Object(paths)) = document.get_mut("paths") {
        for (path, item) in paths {
            let operations = item.as_object_mut().into_iter().flatten();
            for operation in operations.filter_map(|(_, operation)| operation.as_object_mut()) {
                add_errors(path, operation);
            }
        }
    }
    json::text(&document)
}

fn put(object: Option<&mut Value>, name: &str, value: Value) {
    if let Some(Value::Object(members)) = object {
        members.insert(name.to_owned(), value);
    }
}

/// The errors of an operation, one response for each status.
fn add_errors(path: &str, operation: &mut Map<String, Value>) {
    let own = operation.shift_remove(ERRORS).unwrap_or_default();
    let is_public = operation.contains_key("security");
    let is_its = |code: &ErrorCode| match code {
        ErrorCode::InternalError | ErrorCode::ConfigInvalid | ErrorCode::HeadersTooLarge => true,
        // A parameter that is no id makes a path nobody has.
        ErrorCode::RouteNotFound => path.contains(['{']),
        ErrorCode::Unauthenticated
        | ErrorCode::OwnerUnknown
        | ErrorCode::ScopeMissing
        | ErrorCode::IdentityUnavailable => !is_public,
        other => own
            .as_array()
            .is_some_and(|own| own.iter().any(|own| own == other.as_str())),
    };
    let codes: Vec<ErrorCode> = ErrorCode::ALL.iter().copied().filter(is_its).list();
    let Some(Value::Object(responses)) = operation.get_mut("responses") else {
        return;
    };
    for same_status in codes.chunk_by(|one, next| one.status() == next.status()) {
        if let Some(first) = same_status.first() {
            let response = error_response(first.status(), same_status);
            responses.insert(first.status().to_string(), response);
        }
    }
}

fn error_response(status: u16, codes: &[ErrorCode]) -> Value {
    let told = |code: &ErrorCode| format!("`{}`: {}", code.as_str(), code.meaning());
    let description: Vec<String> = codes.iter().map(told).list();
    let codes: Vec<_> = codes.iter().map(|code| code.as_str()).list();
    let mut response = json!({
        "description": parts::join(&description, "\n\n"),
        "content": { "application/json": { "schema": {
            "$ref": "#/components/schemas/Error",
            "properties": { "code": { "enum": codes } },
        } } },
    });
    let header = match status {
        401 => Some(("www-authenticate", "string")),
        405 => Some(("allow", "string")),
        429 | 503 => Some(("retry-after", "integer")),
        _ => None,
    };
    if let Some((name, kind)) = header {
        put(
            Some(&mut response),
            "headers",
            json!({ name: { "schema": { "type": kind } } }),
        );
    }
    response
}
