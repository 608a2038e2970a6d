use super::super::super::Secret;
use super::super::super::table::Wire;
use serde_json::json;

use super::*;

fn target() -> ModelTarget {
    ModelTarget {
        wire: Wire::Mastra,
        provider: "mastra",
        base_url: "http://m:4111/api".to_owned(),
        api_key: Some(Secret::new("key")),
        model: "my helper".to_owned(),
        headers: vec![("x-tenant".to_owned(), Secret::new("1"))],
        query: Vec::new(),
        wants_reasoning: false,
    }
}

#[test]
fn requests_name_the_agent_and_escape_what_clients_choose() {
    let (target, id) = (target(), ThreadId::new("a/b?"));
    let sent = |request: HttpRequest| (request.method, request.url, request.body.unwrap_or_default());
    let at = |path: &str| format!("http://m:4111/api/memory/threads{path}");
    let order = "%7B%22field%22%3A%22createdAt%22%2C%22direction%22%3A%22DESC%22%7D";
    let new = NewThread {
        id: None,
        title: Some("Plan".to_owned()),
        metadata: serde_json::from_str(r#"{"n":1.0}"#).unwrap(),
    };
    let patch = ThreadPatch {
        title: None,
        metadata: Some(Map::new()),
    };
    let owner = ResourceId::new("a&b");
    for (request, method, path, body) in [
        (
            list(&target, &owner, (ThreadOrder::CreatedAt, true), (2, 50)),
            "GET",
            format!("?agentId=my%20helper&resourceId=a%26b&page=2&perPage=50&orderBy={order}"),
            "",
        ),
        (
            read(&target, &id),
            "GET",
            "/a%2Fb%3F?agentId=my%20helper".to_owned(),
            "",
        ),
        (
            create(&target, &owner, &id, &new),
            "POST",
            "?agentId=my%20helper".to_owned(),
            r#"{"resourceId":"a&b","threadId":"a/b?","metadata":{"n":1.0},"title":"Plan"}"#,
        ),
        (
            update(&target, &id, &patch),
            "PATCH",
            "/a%2Fb%3F?agentId=my%20helper".to_owned(),
            r#"{"metadata":{}}"#,
        ),
        (
            delete(&target, &id),
            "DELETE",
            "/a%2Fb%3F?agentId=my%20helper".to_owned(),
            "",
        ),
        (
            messages(&target, &id, (0, 100)),
            "GET",
            format!("/a%2Fb%3F/messages?agentId=my%20helper&page=0&perPage=100&orderBy={order}"),
            "",
        ),
    ] {
        assert_eq!(sent(request), (method, at(&path), body.to_owned()));
    }
    let names: Vec<_> = read(&target, &id)
        .headers
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["accept", "authorization", "x-tenant"]);
}

#[test]
fn a_thread_without_title_or_metadata_has_none() {
    let body = br#"{"id":"t","resourceId":"ada","title":"","metadata":null,"createdAt":"1970-01-01T00:00:01.000Z","updatedAt":"1970-01-01T00:00:02.000Z"}"#;
    assert_eq!(
        read_thread(body),
        Ok(Thread {
            id: ThreadId::new("t"),
            title: None,
            resource_id: ResourceId::new("ada"),
            created_at_ms: 1000,
            updated_at_ms: 2000,
            metadata: Map::new(),
        })
    );
    for body in [
        "{}",
        "[]",
        "",
        r#"{"id":"t","resourceId":"a","createdAt":"x","updatedAt":"x"}"#,
    ] {
        assert_eq!(read_thread(body.as_bytes()), Err(UNREADABLE), "{body}");
    }
}

/// The messages of one stored message, as JSON.
fn of(role: &str, content: Value) -> Value {
    let stored =
        json!({ "id": "m", "role": role, "createdAt": "1970-01-01T00:00:01.000Z", "content": content });
    let page = json!({ "messages": [stored], "total": 1, "hasMore": false }).to_string();
    let kept = read_messages(page.as_bytes()).unwrap().items.remove(0);
    assert_eq!(kept.created_at_ms, 1000);
    serde_json::to_value(kept.messages).unwrap()
}

#[test]
fn a_stored_answer_is_its_texts_calls_and_results() {
    let call = |state: &str, id: &str, result: Value| {
        json!({ "type": "tool-invocation", "toolInvocation": {
            "state": state, "toolCallId": id, "toolName": "f", "args": { "n": 1.0 }, "result": result,
        } })
    };
    let parts = json!({ "format": 2, "parts": [
        { "type": "step-start" },
        { "type": "reasoning", "reasoning": "hm" },
        { "type": "text", "text": "First." },
        call("result", "c1", json!({ "ok": true })),
        call("call", "c2", Value::Null),
        { "type": "step-start" },
        call("result", "c3", json!("done")),
        { "type": "text", "text": "Last." },
    ] });
    let made = |id: &str| json!({ "id": id, "type": "function", "function": { "name": "f", "arguments": "{\"n\":1.0}" } });
    assert_eq!(
        of("assistant", parts),
        json!([
            { "id": "m", "role": "assistant", "content": "First.", "toolCalls": [made("c1"), made("c2")] },
            { "id": "m_c1", "role": "tool", "toolCallId": "c1", "content": "{\"ok\":true}" },
            { "id": "m_2", "role": "assistant", "toolCalls": [made("c3")] },
            { "id": "m_c3", "role": "tool", "toolCallId": "c3", "content": "done" },
            { "id": "m_3", "role": "assistant", "content": "Last." },
        ])
    );
}

#[test]
fn a_stored_question_keeps_its_parts() {
    let parts = json!({ "format": 2, "parts": [
        { "type": "text", "text": "What is this?" },
        { "type": "file", "data": "QUJD", "mimeType": "image/png" },
        { "type": "file", "data": "https://x.test/a.pdf", "mimeType": "application/pdf" },
    ] });
    assert_eq!(
        of("user", parts),
        json!([{ "id": "m", "role": "user", "content": [
            { "type": "text", "text": "What is this?" },
            { "type": "image", "source": { "type": "data", "value": "QUJD", "mimeType": "image/png" } },
            { "type": "document", "source": { "type": "url", "value": "https://x.test/a.pdf", "mimeType": "application/pdf" } },
        ] }])
    );
    let plain = json!([{ "id": "m", "role": "user", "content": "Hi" }]);
    assert_eq!(
        of(
            "user",
            json!({ "format": 2, "parts": [{ "type": "text", "text": "Hi" }] })
        ),
        plain
    );
    assert_eq!(of("user", json!("Hi")), plain);
    assert_eq!(of("system", json!("Hi")), json!([]));
}
