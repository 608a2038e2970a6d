use super::*;

fn resolved(method: &str, path: &str) -> Result<Route, (u16, Option<String>)> {
    resolve("/io-bridge", method, path).map_err(|error| (error.status(), error.allow.clone()))
}

#[test]
fn every_row_is_reached_with_and_without_a_trailing_slash() {
    let thread_id = ThreadId::new("x");
    let run_id = RunId::new("x");
    let expected = [
        Route::DescribeService,
        Route::DescribeApi,
        Route::ReadHealth,
        Route::StartRun,
        Route::OpenSocket,
        Route::PostResult {
            run_id: run_id.clone(),
            tool_call_id: ToolCallId::new("x"),
        },
        Route::ListThreads,
        Route::CreateThread,
        Route::ReadThread {
            thread_id: thread_id.clone(),
        },
        Route::UpdateThread {
            thread_id: thread_id.clone(),
        },
        Route::DeleteThread {
            thread_id: thread_id.clone(),
        },
        Route::ListMessages {
            thread_id: thread_id.clone(),
        },
        Route::ListAgents,
        Route::ReadAgent {
            agent_id: AgentId::new("x"),
        },
        Route::ReadRun {
            run_id: run_id.clone(),
        },
        Route::FollowRun {
            run_id: run_id.clone(),
        },
        Route::CancelRun { run_id },
        Route::ExportThread { thread_id },
        Route::EraseOwner {
            resource_id: ResourceId::new("x"),
        },
    ];
    for prefix in ["/io-bridge", "", "/a/b"] {
        let reached: Vec<_> = ROUTES
            .iter()
            .map(|row| {
                let segments = row
                    .path
                    .split('/')
                    .map(|part| if part.starts_with(':') { "x" } else { part });
                let path = format!("{prefix}{}", segments.collect::<Vec<_>>().join("/"));
                let route = resolve(prefix, row.method.as_str(), &path).unwrap();
                assert_eq!(
                    resolve(prefix, row.method.as_str(), &format!("{path}/")),
                    Ok(route.clone())
                );
                route
            })
            .collect();
        assert_eq!(reached, expected);
    }
}

#[test]
fn the_log_knows_paths_by_their_templates() {
    assert_eq!(template("/p", "/p/threads/a%20b/"), Some("/threads/:threadId"));
    assert_eq!(template("", "/run"), Some("/run"));
    assert_eq!(template("/p", "/p"), Some("/"));
    assert_eq!(template("/p", "/p/nothing"), None);
    assert_eq!(template("/p", "/run"), None);
}

#[test]
fn parameters_are_percent_decoded() {
    assert_eq!(
        resolved("POST", "/io-bridge/runs/a%2Fb%20c/tool-calls/%F0%9F%9A%80/result"),
        Ok(Route::PostResult {
            run_id: RunId::new("a/b c"),
            tool_call_id: ToolCallId::new("🚀"),
        })
    );
    let percent = Route::ReadThread {
        thread_id: ThreadId::new("100%+"),
    };
    assert_eq!(resolved("GET", "/io-bridge/threads/100%+"), Ok(percent));
    assert_eq!(
        resolve("/p", "GET", &events_path("/p", &RunId::new("a/é?"))),
        Ok(Route::FollowRun {
            run_id: RunId::new("a/é?")
        })
    );
}

#[test]
fn what_nobody_has_is_404() {
    for path in [
        "",
        "/",
        "/io-bridgex",
        "/run",
        "/io-bridge//",
        "/io-bridge/Run",
        "/io-bridge/run/x",
        "/io-bridge/threads//messages",
        "/io-bridge/threads//",
        "/io-bridge/threads//export",
        "/io-bridge/owners//erase",
        "/io-bridge/owners/ada",
        "/io-bridge/threads/%FF",
        "/io-bridge/threads/%00",
        "/io-bridge/runs//tool-calls/c/result",
        "/io-bridge/runs/r/tool-calls//result",
        "/io-bridge/runs/r/tool-calls/c",
    ] {
        assert_eq!(resolved("GET", path), Err((404, None)), "{path}");
    }
    let long = format!("/io-bridge/agents/{}", "x".repeat(1025));
    assert_eq!(resolved("GET", &long), Err((404, None)));
}

#[test]
fn another_method_is_405_with_those_that_exist() {
    for (method, path, allow) in [
        ("GET", "/io-bridge/run", "POST, OPTIONS"),
        ("PUT", "/io-bridge", "GET, HEAD, OPTIONS"),
        ("DELETE", "/io-bridge/threads", "GET, HEAD, POST, OPTIONS"),
        ("DELETE", "/io-bridge/threads/", "GET, HEAD, POST, OPTIONS"),
        ("DELETE", "/io-bridge/owners/ada/erase", "POST, OPTIONS"),
        (
            "POST",
            "/io-bridge/threads/t",
            "GET, HEAD, PATCH, DELETE, OPTIONS",
        ),
        ("get", "/io-bridge/agents", "GET, HEAD, OPTIONS"),
        ("OPTIONS", "/io-bridge/runs/r/cancel", "POST, OPTIONS"),
    ] {
        assert_eq!(
            resolved(method, path),
            Err((405, Some(allow.to_owned()))),
            "{method} {path}"
        );
    }
}

#[test]
fn a_handshake_is_for_runs_and_a_plain_get_elsewhere() {
    let handshake = Method::Handshake.as_str();
    assert_eq!(resolved(handshake, "/io-bridge/run/"), Ok(Route::OpenSocket));
    assert_eq!(resolved(handshake, "/io-bridge/agents"), Ok(Route::ListAgents));
    assert_eq!(
        resolved(handshake, "/io-bridge/runs/r/cancel"),
        Err((405, Some("POST, OPTIONS".to_owned())))
    );
}

#[test]
fn a_result_path_leads_to_its_call() {
    let path = result_path(&RunId::new("a/b"), "c?");
    assert_eq!(
        resolve("/p", "POST", &format!("/p{path}")),
        Ok(Route::PostResult {
            run_id: RunId::new("a/b"),
            tool_call_id: ToolCallId::new("c?"),
        })
    );
    assert_eq!(
        resolve("/p", "POST", &format!("/p{}", result_path(&RunId::new("r"), ""))),
        Err(ApiError::route_not_found())
    );
}

#[test]
fn head_goes_where_get_goes() {
    assert_eq!(resolved("HEAD", "/io-bridge/agents"), Ok(Route::ListAgents));
    assert_eq!(
        resolved("HEAD", "/io-bridge/run"),
        Err((405, Some("POST, OPTIONS".to_owned())))
    );
}

#[test]
fn an_address_is_taken_apart_without_decoding_it() {
    let cases = [
        ("https://example.com/", ("/", None)),
        ("https://example.com:8080/a/b", ("/a/b", None)),
        ("https://example.com/a?b=/c?d", ("/a", Some("b=/c?d"))),
        ("https://example.com/a%3F%2Fb?", ("/a%3F%2Fb", Some(""))),
        ("https://example.com?b", ("/", Some("b"))),
        ("https://example.com", ("/", None)),
    ];
    for (url, parts) in cases {
        assert_eq!(path_and_query(url), parts, "{url}");
    }
}
