use serde_json::json;

use super::*;

fn tool(method: &'static str, url: &str) -> HttpTool {
    HttpTool {
        declaration: Tool {
            name: "t".to_owned(),
            description: "d".to_owned(),
            parameters: None,
        },
        method,
        url: url.to_owned(),
        headers: vec![("x-key".to_owned(), Secret::new("key-canary"))],
        idempotent: true,
        timeout_ms: 1,
        result_max_bytes: 1,
        allow_private: false,
    }
}

fn asked(
    method: &'static str,
    url: &str,
    arguments: Value,
) -> Result<(String, Option<String>), HttpToolFault> {
    let request = tool(method, url).request(arguments.as_object().unwrap())?;
    Ok((request.url, request.body))
}

fn header<'a>(request: &'a HttpRequest, name: &str) -> Option<&'a str> {
    let found = request.headers.iter().find(|(own, _)| own == name);
    found.map(|(_, value)| value.as_str())
}

#[test]
fn arguments_go_where_the_template_says() {
    let url = "https://a.example/users/{id}/orders?limit={limit}&fixed=1&range={from}-{to}";
    let all =
        json!({"id": "a/b c", "limit": 10.5, "from": 1, "to": true, "more": ["x", 2, null], "none": null});
    assert_eq!(
        asked("GET", url, all).unwrap(),
        (
            "https://a.example/users/a%2Fb%20c/orders?limit=10.5&fixed=1&range=1-true&more=x&more=2&more=null"
                .to_owned(),
            None
        )
    );
    assert_eq!(
        asked(
            "DELETE",
            url,
            json!({"id": 7, "to": 1, "limit": ["a&b", "\u{fc}"]})
        )
        .unwrap(),
        (
            "https://a.example/users/7/orders?limit=a%26b&limit=%C3%BC&fixed=1".to_owned(),
            None
        )
    );
    assert_eq!(
        asked(
            "POST",
            "https://a.example/{id}",
            json!({"id": "x", "b": {"n": 1.0}, "a": null})
        )
        .unwrap(),
        (
            "https://a.example/x".to_owned(),
            Some(r#"{"b":{"n":1.0},"a":null}"#.to_owned())
        )
    );
    assert_eq!(
        asked("PUT", "https://a.example/", json!({})).unwrap(),
        ("https://a.example/".to_owned(), Some("{}".to_owned()))
    );
}

#[test]
fn arguments_do_not_lead_out_of_the_path() {
    let url = "https://a.example/users/{id}";
    for id in [
        json!(".."),
        json!("."),
        json!(""),
        json!(null),
        json!([1]),
        json!({}),
    ] {
        let fault = asked("GET", url, json!({ "id": id })).unwrap_err();
        assert!(matches!(fault, HttpToolFault::Path(_)), "{fault:?}");
    }
    assert!(matches!(asked("GET", url, json!({})), Err(HttpToolFault::Path(name)) if name == "id"));
    for (id, path) in [
        ("../../admin", "..%2F..%2Fadmin"),
        ("%2e%2e", "%252e%252e"),
        ("a?b#c", "a%3Fb%23c"),
        ("...", "..."),
    ] {
        let (url, _) = asked("GET", url, json!({ "id": id })).unwrap();
        assert_eq!(url, format!("https://a.example/users/{path}"));
    }
}

#[test]
fn private_addresses_need_to_be_allowed() {
    let arguments = Map::new();
    for url in [
        "http://127.0.0.1:1/x",
        "http://localhost/",
        "http://169.254.169.254/latest",
    ] {
        let mut tool = tool("GET", url);
        assert_eq!(tool.request(&arguments), Err(HttpToolFault::Address));
        tool.allow_private = true;
        assert_eq!(tool.request(&arguments).unwrap().url, url);
    }
}

#[test]
fn headers_have_defaults_that_the_configuration_replaces() {
    let mut tool = tool("POST", "https://a.example/");
    let request = tool.request(&Map::new()).unwrap();
    assert_eq!(header(&request, "x-key"), Some("key-canary"));
    assert_eq!(header(&request, "content-type"), Some("application/json"));
    tool.method = "GET";
    tool.headers = vec![("accept".to_owned(), Secret::new("text/csv"))];
    let request = tool.request(&Map::new()).unwrap();
    assert_eq!(header(&request, "accept"), Some("text/csv"));
    assert_eq!(header(&request, "content-type"), None);
    assert!(!format!("{tool:?}").contains("csv"));
}

#[test]
fn redirects_are_checked_again() {
    let mut own = tool("POST", "https://a.example/x?y={y}");
    let request = own.request(json!({"a": 1}).as_object().unwrap()).unwrap();
    let go = |tool: &HttpTool, request: &HttpRequest, status, location: &str| {
        tool.redirected(request, status, Some(location))
    };
    let same = go(&own, &request, 307, "/z").unwrap().unwrap();
    assert_eq!((same.method, same.url.as_str()), ("POST", "https://a.example/z"));
    assert_eq!(header(&same, "x-key"), Some("key-canary"));
    assert_eq!(same.body, request.body);
    let other = go(&own, &request, 303, "https://b.example/").unwrap().unwrap();
    assert_eq!((other.method, other.body.as_deref()), ("GET", None));
    assert_eq!(
        (header(&other, "x-key"), header(&other, "content-type")),
        (None, None)
    );
    for location in [
        "http://a.example/",
        "https://10.0.0.1/",
        "https://localhost/",
        "file:///etc/passwd",
        "http:x",
    ] {
        assert_eq!(
            go(&own, &request, 302, location),
            Err(HttpToolFault::Address),
            "{location}"
        );
    }
    assert_eq!(go(&own, &request, 200, "/z"), Ok(None));
    assert_eq!(own.redirected(&request, 302, None), Ok(None));
    // A private server that is allowed may redirect to itself and to public ones, not to its neighbours.
    own.url = "http://127.0.0.1:8080/x".to_owned();
    own.allow_private = true;
    let request = own.request(&Map::new()).unwrap();
    assert!(go(&own, &request, 308, "/z").is_ok());
    assert!(go(&own, &request, 308, "https://b.example/").is_ok());
    assert_eq!(
        go(&own, &request, 308, "http://127.0.0.1:8081/"),
        Err(HttpToolFault::Address)
    );
    assert_eq!(
        go(&own, &request, 308, "http://169.254.169.254/"),
        Err(HttpToolFault::Address)
    );
}

#[test]
fn answers_are_json_or_text() {
    let read = |content_type: &str, body: &[u8]| {
        read_answer(Some(content_type), body.to_vec()).map(|result| {
            assert!(!result.is_error);
            result.content
        })
    };
    for (content_type, body, content) in [
        ("application/json", "{\"a\": 1.0}", r#"{"a":1.0}"#),
        ("application/problem+json; charset=utf-8", "[1]", "[1]"),
        ("APPLICATION/JSON", "null", r#"{"result":null}"#),
        ("application/json", "\"text\"", "text"),
        ("application/json", "{broken", "{broken"),
        ("application/json", "{\"error\":\"x\"}", r#"{"error":"x"}"#),
        ("text/plain", "null", r#""null""#),
        ("text/html", "<p>", "<p>"),
        ("application/octet-stream", "plain", "plain"),
        ("", "", r#"{"result":null}"#),
    ] {
        assert_eq!(
            read(content_type, body.as_bytes()).as_deref(),
            Ok(content),
            "{content_type} {body}"
        );
    }
    assert_eq!(read("text/plain", b"a\xff"), Ok("a\u{fffd}".to_owned()));
    assert_eq!(read("image/png", b"\x89PNG\xff"), Err(HttpToolFault::Binary));
    assert_eq!(
        read("application/octet-stream", b"a\0b"),
        Err(HttpToolFault::Binary)
    );
    assert_eq!(
        read_answer(None, b"x".to_vec()),
        Ok(tool_result::success(json!("x")))
    );
}
