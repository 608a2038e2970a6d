use super::*;

fn headers(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

fn refused(status: u16, retryable: bool, detail: &str) -> ProviderError {
    ProviderError::Refused {
        status,
        retryable,
        retry_after_ms: None,
        detail: detail.to_owned(),
    }
}

#[test]
fn the_status_decides_whether_another_attempt_may_succeed() {
    for (status, retryable) in [
        (400, false),
        (401, false),
        (403, false),
        (404, false),
        (408, true),
        (409, true),
        (413, false),
        (422, false),
        (500, true),
        (502, true),
        (503, true),
        (529, true),
        (302, false),
    ] {
        let page = b"<html><body>secret page</body></html>";
        assert_eq!(
            of_response(status, &[], page),
            refused(status, retryable, "no readable error"),
            "{status}"
        );
    }
}

#[test]
fn a_rate_limit_keeps_the_wait_the_server_names() {
    let body = br#"{"error":{"message":"slow down","type":"rate_limit_error"}}"#;
    let in_words = br#"{"error":{"message":"Please try again in 1m2.5s.","code":"rate_limit_exceeded"}}"#;
    let google = br#"[{"error":{"code":429,"message":"x","status":"RESOURCE_EXHAUSTED","details":[{},{"retryDelay":"3s"}]}}]"#;
    for (pairs, body, expected_ms) in [
        (&[("retry-after", "2")][..], &body[..], Some(2000)),
        (&[("retry-after", "0.25")], body, Some(250)),
        (
            &[("retry-after-ms", "1500"), ("retry-after", "2")],
            body,
            Some(1500),
        ),
        (&[("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT")], body, None),
        (&[("retry-after", "-1")], body, None),
        (&[], body, None),
        (&[], in_words, Some(62_500)),
        (&[("retry-after", "5")], in_words, Some(5000)),
        (&[], google, Some(3000)),
        (&[], br#"{"error":{"retry_after":1.5}}"#, Some(1500)),
        (&[], b"<html>", None),
    ] {
        let ProviderError::RateLimited { retry_after_ms, .. } = of_response(429, &headers(pairs), body)
        else {
            panic!("no rate limit: {pairs:?}");
        };
        assert_eq!(
            retry_after_ms,
            expected_ms,
            "{pairs:?} {}",
            String::from_utf8_lossy(body)
        );
    }
}

#[test]
fn a_503_may_name_a_wait_too() {
    let expected = ProviderError::Refused {
        status: 503,
        retryable: true,
        retry_after_ms: Some(7000),
        detail: "no readable error".to_owned(),
    };
    assert_eq!(of_response(503, &headers(&[("retry-after", "7")]), b""), expected);
}

#[test]
fn a_request_that_does_not_fit_is_told_by_code_or_by_words() {
    for body in [
        r#"{"error":{"message":"x","code":"context_length_exceeded"}}"#,
        r#"{"error":{"message":"x","type":"exceed_context_size_error","code":400}}"#,
        r#"{"object":"error","message":"This model's maximum context length is 4096 tokens."}"#,
        r#"{"error":"prompt is too long: 9 tokens > 8 maximum"}"#,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 9 + 8 > 10"}}"#,
        r#"{"error":{"code":400,"message":"The input token count (9) exceeds the maximum number of tokens allowed (8).","status":"INVALID_ARGUMENT"}}"#,
        r#"{"type":"response.failed","response":{"error":{"code":"context_length_exceeded","message":"x"}}}"#,
    ] {
        assert_eq!(
            of_response(400, &[], body.as_bytes()),
            ProviderError::ContextLengthExceeded,
            "{body}"
        );
        assert_eq!(
            in_stream(body.as_bytes()),
            ProviderError::ContextLengthExceeded,
            "{body}"
        );
    }
    let outage = br#"{"error":{"message":"the context window service is down"}}"#;
    assert_eq!(
        of_response(503, &[], outage),
        refused(503, true, "the context window service is down")
    );
}

#[test]
fn a_filtered_request_is_told_by_its_code() {
    let body = br#"{"error":{"message":"x","code":"content_filter","status":400}}"#;
    assert_eq!(of_response(400, &[], body), ProviderError::ContentFiltered);
}

#[test]
fn an_error_inside_a_stream_is_classified_as_one_outside() {
    for (payload, expected) in [
        (
            r#"{"error":{"message":"engine queue is full","type":"server_error","code":503}}"#,
            refused(503, true, "server_error engine queue is full"),
        ),
        (
            r#"{"error":"worker crashed"}"#,
            refused(200, true, "worker crashed"),
        ),
        (r#"worker crashed"#, refused(200, true, "no readable error")),
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"busy"}}"#,
            refused(200, true, "overloaded_error busy"),
        ),
        (
            r#"{"type":"response.failed","response":{"error":{"code":"server_error","message":"sorry"}}}"#,
            refused(200, true, "server_error sorry"),
        ),
        (
            r#"{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}"#,
            refused(503, true, "unavailable busy"),
        ),
        (
            r#"{"error":{"message":"no","type":"invalid_request_error"}}"#,
            refused(200, false, "invalid_request_error no"),
        ),
        (
            r#"{"error":{"message":"no","code":"401"}}"#,
            refused(401, false, "401 no"),
        ),
        (
            r#"{"error":{"message":"slow","code":429}}"#,
            ProviderError::RateLimited {
                retry_after_ms: None,
                detail: "slow".to_owned(),
            },
        ),
    ] {
        assert_eq!(in_stream(payload.as_bytes()), expected, "{payload}");
    }
}

#[test]
fn the_detail_has_no_key_and_no_address_and_an_end() {
    let body = br#"{"error":{"message":"Incorrect API key provided: sk-proj-abc. See https://example.test/keys?k=1 or org-AbCdEfGhIjKlMnOp12345678","code":"invalid_api_key"}}"#;
    let expected = "invalid_api_key Incorrect API key provided: [removed] See [removed] or [removed]";
    assert_eq!(of_response(401, &[], body), refused(401, false, expected));
    let long = format!(r#"{{"error":"{}"}}"#, "word ".repeat(1000));
    let ProviderError::Refused { detail, .. } = of_response(400, &[], long.as_bytes()) else {
        panic!("not refused");
    };
    assert_eq!(detail.chars().count(), DETAIL_MAX_CHARS);
}
