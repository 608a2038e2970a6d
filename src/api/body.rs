//! Request bodies: their kind, their size, and those of the thread routes.

use serde_json::{Map, Value};

use super::error::ApiError;
use crate::protocol::decode::{Object, Report};
use crate::protocol::forwarded_props::ClientResource;
use crate::protocol::forwarded_props_decode::decode_resource_id;
use crate::protocol::id::{ResourceId, ThreadId};
use crate::protocol::json;
use crate::protocol::node::Node;
use crate::protocol::number;
use crate::protocol::thread::{NewThread, ThreadPatch};

/// Longest title, in characters. Source: contract 4.
pub const TITLE_MAX_CHARS: usize = 512;

/// Largest metadata, in bytes of its compact JSON text. Source: contract 4.
pub const METADATA_MAX_BYTES: usize = 64 * 1024;

/// Largest body of the thread routes, in bytes: title and metadata with every character escaped.
pub const THREAD_BODY_MAX_BYTES: usize = 512 * 1024;

/// Checks a `content-type` header. None at all is JSON; parameters are tolerated. Plain text is not JSON: a page of
/// another origin may send that without a preflight.
///
/// # Errors
/// 415
pub fn check_content_type(content_type: Option<&str>) -> Result<(), ApiError> {
    let essence = content_type
        .unwrap_or_default()
        .split(';')
        .next()
        .unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    let is_json =
        essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"));
    if essence.is_empty() || is_json {
        Ok(())
    } else {
        Err(ApiError::unsupported_media_type())
    }
}

/// Checks a `content-encoding` header.
///
/// # Errors
/// 415 for a compressed body.
pub fn check_content_encoding(content_encoding: Option<&str>) -> Result<(), ApiError> {
    let encoding = content_encoding.unwrap_or_default().trim();
    if encoding.is_empty() || encoding.eq_ignore_ascii_case("identity") {
        Ok(())
    } else {
        Err(ApiError::unsupported_content_encoding())
    }
}

/// Checks a `content-length` header before the body is read. One that is absent or no number says nothing.
///
/// # Errors
/// 413
pub fn check_content_length(content_length: Option<&str>, limit_bytes: usize) -> Result<(), ApiError> {
    let length = content_length
        .map(str::trim)
        .filter(|text| text.bytes().all(|byte| byte.is_ascii_digit()));
    match length {
        None | Some("") => Ok(()),
        Some(digits) => {
            let size = number::unsigned(digits).and_then(|size| size.try_into().ok());
            check_size(size.unwrap_or(usize::MAX), limit_bytes)
        }
    }
}

/// Checks how much of a body has been read.
///
/// # Errors
/// 413
pub fn check_size(body_bytes: usize, limit_bytes: usize) -> Result<(), ApiError> {
    if body_bytes <= limit_bytes {
        Ok(())
    } else {
        Err(ApiError::body_too_large(limit_bytes))
    }
}

/// Takes a body that was read whole as text.
///
/// # Errors
/// 400 when it is not UTF-8.
pub fn text(body: Vec<u8>) -> Result<String, ApiError> {
    String::from_utf8(body).map_err(|_| ApiError::invalid_json("The body is not valid UTF-8."))
}

/// Reads the body of `POST /threads`: `{threadId? | id?, resourceId?, title?, metadata?}`, or nothing. `null` is absent,
/// unknown members are ignored.
///
/// # Errors
/// 400, with every fault found.
///
/// Source: contract 4.
pub fn new_thread(body: &str) -> Result<(NewThread, ClientResource), ApiError> {
    let body = if body.trim().is_empty() { "{}" } else { body };
    let mut object = Object::parse(body)?;
    let mut report = Report::default();
    let (thread_id, id) = (
        optional_id(&mut object, "threadId", &mut report),
        optional_id(&mut object, "id", &mut report),
    );
    let new_thread = NewThread {
        id: thread_id.or(id),
        title: optional_title(&mut object, &mut report),
        metadata: optional_metadata(&mut object, &mut report).unwrap_or_default(),
    };
    let resource = decode_resource_id(&mut object, &mut report);
    let (read, _) = report.finish((new_thread, resource))?;
    Ok(read)
}

/// Reads the body of `PATCH /threads/:threadId`: `{title?, metadata?}`, and the `resourceId` some clients add: it names
/// the caller's owner, the thread's own cannot be changed.
///
/// # Errors
/// 400, with every fault found.
///
/// Source: contract 4.
pub fn thread_patch(body: &str) -> Result<(ThreadPatch, ClientResource), ApiError> {
    let mut object = Object::parse(body)?;
    let mut report = Report::default();
    let patch = ThreadPatch {
        title: optional_title(&mut object, &mut report),
        metadata: optional_metadata(&mut object, &mut report),
    };
    let resource = decode_resource_id(&mut object, &mut report);
    let (read, _) = report.finish((patch, resource))?;
    Ok(read)
}

/// Reads the owner that a body may name beside what it is for: `{resourceId?}`, or nothing at all. Source: D4.
///
/// # Errors
/// 400
pub fn resource(body: &str) -> Result<ClientResource, ApiError> {
    if body.trim().is_empty() {
        return Ok(ClientResource::Absent);
    }
    let mut report = Report::default();
    let resource = decode_resource_id(&mut Object::parse(body)?, &mut report);
    let (resource, _) = report.finish(resource)?;
    Ok(resource)
}

/// Reads the body of `POST /owners/:resourceId/erase`: `{"confirm": "<resourceId>"}`, the owner said once more.
///
/// # Errors
/// 400, with every fault found.
pub fn confirmed_erasure(body: &str, owner: &ResourceId) -> Result<(), ApiError> {
    let mut object = Object::parse(body)?;
    let mut report = Report::default();
    match object.take_some("confirm") {
        Some(Node::Text(text)) if text == owner.as_str() => {}
        Some(_) | None => report.issue(
            object.path("confirm"),
            "must be the resourceId that is to be erased",
        ),
    }
    report.finish(()).map(|_| ()).map_err(ApiError::from)
}

fn optional_id(object: &mut Object<'_>, name: &str, report: &mut Report) -> Option<ThreadId> {
    let text = object.take_some(name)?;
    let Node::Text(text) = text else {
        report.issue(object.path(name), "must be a string");
        return None;
    };
    ThreadId::parse(&text)
        .map_err(|fault| report.issue(object.path(name), &fault.to_string()))
        .ok()
}

fn optional_title(object: &mut Object<'_>, report: &mut Report) -> Option<String> {
    let title = object.take_some("title")?;
    match title {
        Node::Text(title) if title.chars().count() <= TITLE_MAX_CHARS => return Some(title.into_owned()),
        Node::Text(_) => report.issue(object.path("title"), "must be at most 512 characters long"),
        _ => report.issue(object.path("title"), "must be a string"),
    }
    None
}

fn optional_metadata(object: &mut Object<'_>, report: &mut Report) -> Option<Map<String, Value>> {
    let metadata = object.take_some("metadata")?.into_value();
    let bytes = json::text(&metadata).len();
    match metadata {
        Value::Object(metadata) if bytes <= METADATA_MAX_BYTES => return Some(metadata),
        Value::Object(_) => report.issue(object.path("metadata"), "must be at most 65536 bytes of JSON"),
        _ => report.issue(object.path("metadata"), "must be an object"),
    }
    None
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn issues<T>(result: Result<T, ApiError>) -> Vec<(String, String)> {
        let error = result.err().unwrap();
        assert_eq!(error.status(), 400);
        error
            .issues
            .iter()
            .cloned()
            .map(|issue| (issue.pointer, issue.message))
            .collect()
    }

    fn pairs(faults: &[(&str, &str)]) -> Vec<(String, String)> {
        faults
            .iter()
            .map(|(name, message)| ((*name).to_owned(), (*message).to_owned()))
            .collect()
    }

    #[test]
    fn a_body_may_name_the_caller_and_nothing_else_counts() {
        let read = |body| resource(body).map_err(|error| error.status());
        assert_eq!(read(" "), Ok(ClientResource::Absent));
        assert_eq!(read(r#"{"other":1}"#), Ok(ClientResource::Absent));
        assert_eq!(
            read(r#"{"resourceId":"ada"}"#),
            Ok(ClientResource::Given(ResourceId::new("ada")))
        );
        assert_eq!(read(r#"{"resourceId":1}"#), Err(400));
        assert_eq!(read("[]"), Err(400));
    }

    #[test]
    fn json_is_the_only_content_type_and_the_default() {
        for json in [
            None,
            Some(""),
            Some("application/json"),
            Some(" Application/JSON ; charset=utf-8"),
            Some("application/json;charset=\"x;y\""),
            Some("application/merge-patch+json"),
        ] {
            assert_eq!(check_content_type(json), Ok(()), "{json:?}");
        }
        for other in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "text/json",
            "application/jsonp",
            "+json",
            "*/*",
        ] {
            assert_eq!(
                check_content_type(Some(other)),
                Err(ApiError::unsupported_media_type()),
                "{other}"
            );
        }
    }

    #[test]
    fn a_body_comes_as_it_is() {
        for plain in [None, Some(""), Some(" Identity ")] {
            assert_eq!(check_content_encoding(plain), Ok(()), "{plain:?}");
        }
        for coded in ["gzip", "br", "identity, gzip", "x"] {
            let error = check_content_encoding(Some(coded)).err().unwrap();
            assert_eq!(error.status(), 415, "{coded}");
        }
    }

    #[test]
    fn a_body_over_its_limit_is_413_before_and_after_it_is_read() {
        for length in [None, Some(""), Some("10"), Some(" 9 "), Some("x"), Some("-1")] {
            assert_eq!(check_content_length(length, 10), Ok(()), "{length:?}");
        }
        let too_large = || Err(ApiError::body_too_large(10));
        assert_eq!(check_content_length(Some("11"), 10), too_large());
        assert_eq!(
            check_content_length(Some("99999999999999999999999"), 10),
            too_large()
        );
        assert_eq!(check_size(10, 10), Ok(()));
        assert_eq!(check_size(11, 10), too_large());
        assert_eq!(
            ApiError::body_too_large(10).body(),
            r#"{"error":"The request body is larger than 10 bytes.","code":"body_too_large"}"#
        );
    }

    #[test]
    fn a_body_is_utf_8() {
        assert_eq!(text("é".into()), Ok("é".to_owned()));
        assert_eq!(
            text(vec![b'"', 0xff]),
            Err(ApiError::invalid_json("The body is not valid UTF-8."))
        );
    }

    #[test]
    fn a_new_thread_may_say_everything_or_nothing() {
        let nothing = (NewThread::default(), ClientResource::Absent);
        for body in [
            "",
            " ",
            "{}",
            r#"{"threadId":null,"id":null,"title":null,"metadata":null,"resourceId":null,"x":1}"#,
        ] {
            assert_eq!(new_thread(body), Ok(nothing.clone()), "{body}");
        }
        let metadata = serde_json::from_str(r#"{"n":1.0}"#).unwrap();
        let everything = NewThread {
            id: Some(ThreadId::new("t")),
            title: Some("é".repeat(512)),
            metadata,
        };
        let body = format!(
            r#"{{"id":"other","threadId":"t","title":"{}","metadata":{{"n":1.0}},"resourceId":"ada"}}"#,
            "é".repeat(512)
        );
        let ada = ClientResource::Given(ResourceId::new("ada"));
        assert_eq!(new_thread(&body), Ok((everything, ada)));
        let by_id = NewThread {
            id: Some(ThreadId::new("t")),
            ..NewThread::default()
        };
        assert_eq!(
            new_thread(r#"{"id":"t","resourceId":""}"#),
            Ok((by_id, ClientResource::Empty))
        );
    }

    #[test]
    fn a_wrong_thread_is_refused_with_every_fault() {
        assert_eq!(
            issues(new_thread(
                r#"{"threadId":"","id":7,"title":1,"metadata":[],"resourceId":{}}"#
            )),
            pairs(&[
                ("/threadId", "must not be empty"),
                ("/id", "must be a string"),
                ("/title", "must be a string"),
                ("/metadata", "must be an object"),
                ("/resourceId", "must be a string"),
            ])
        );
        let long = json!({"title": "x".repeat(513), "metadata": {"k": "x".repeat(METADATA_MAX_BYTES - 7)}});
        assert_eq!(
            issues(thread_patch(&long.to_string())),
            pairs(&[
                ("/title", "must be at most 512 characters long"),
                ("/metadata", "must be at most 65536 bytes of JSON"),
            ])
        );
        let longest = json!({"metadata": {"k": "x".repeat(METADATA_MAX_BYTES - 8)}});
        assert!(thread_patch(&longest.to_string()).is_ok());
        assert_eq!(issues(thread_patch("[]")), Vec::new());
        assert_eq!(
            thread_patch("").map_err(|error| error.code.as_str()),
            Err("invalid_json")
        );
    }

    #[test]
    fn a_patch_changes_what_it_names() {
        let patch = ThreadPatch {
            title: Some(String::new()),
            metadata: Some(Map::new()),
        };
        assert_eq!(
            thread_patch(r#"{"title":"","metadata":{}}"#),
            Ok((patch, ClientResource::Absent))
        );
        assert_eq!(
            thread_patch("{}"),
            Ok((ThreadPatch::default(), ClientResource::Absent))
        );
    }

    #[test]
    fn an_erasure_says_its_owner_twice() {
        let ada = ResourceId::new("ada");
        assert_eq!(confirmed_erasure(r#"{"confirm":"ada"}"#, &ada), Ok(()));
        let wrong = pairs(&[("/confirm", "must be the resourceId that is to be erased")]);
        for body in [
            "{}",
            r#"{"confirm":"bob"}"#,
            r#"{"confirm":null}"#,
            r#"{"confirm":true}"#,
        ] {
            assert_eq!(issues(confirmed_erasure(body, &ada)), wrong, "{body}");
        }
        assert_eq!(confirmed_erasure("", &ada).err().unwrap().status(), 400);
    }
}
