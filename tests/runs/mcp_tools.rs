//! MCP servers in a run (contract 2.5): sessions, lists, calls, and servers that fail in every way.

use std::rc::Rc;

use io_bridge::provider::HttpRequest;
use io_bridge::run::RunRefusal;
use io_bridge::run::mcp_lists::McpLists;
use io_bridge::tool::mcp::McpServer;
use serde_json::{Value, json};

use crate::completions::{answer, call, finish};
use crate::scene::{Answer, Piece, Played, Scene};

const URL: &str = "https://mcp.example/mcp";

fn body() -> Value {
    json!({
        "threadId": "t", "runId": "r", "protocolVersion": "1.0",
        "messages": [{"id": "u", "role": "user", "content": "hello"}]
    })
}

fn server() -> McpServer {
    McpServer {
        name: "docs".to_owned(),
        url: URL.to_owned(),
        headers: vec![],
        allow: vec![],
        deny: vec![],
        prefix: "docs_".to_owned(),
        idempotent: true,
        timeout_ms: 2_000,
        result_max_bytes: 10_000,
        required: false,
        allow_private: false,
    }
}

/// A run whose first answer calls the server's `echo` this often and whose second says "Done.".
fn scene(server: McpServer, call_count: u32) -> Scene {
    let made: String = (0..call_count)
        .map(|index| call(index, "docs_echo", "{\"n\":1.0}"))
        .collect();
    let answers = vec![
        Answer::ok(made + &finish("tool_calls")),
        Answer::ok(answer("Done.")),
    ];
    let mut scene = Scene::new(json!({"keepAliveMs": 0}), answers);
    scene.tools.mcp = vec![Rc::new(server)];
    scene
}

fn message(request: &HttpRequest) -> Value {
    let text = request.body.as_deref().unwrap_or("null");
    serde_json::from_str(text).unwrap()
}

fn response(request: &HttpRequest, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": message(request)["id"], "result": result})
}

fn as_json(request: &HttpRequest, result: &Value) -> Answer {
    Answer::of(200, "application/json", response(request, result).to_string())
}

fn as_events(messages: &[Value]) -> Answer {
    let frames: String = messages
        .iter()
        .map(|message| format!("data: {message}\n\n"))
        .collect();
    Answer::of(200, "text/event-stream", frames)
}

/// A well-behaved server; `call` answers `tools/call`.
fn serve(call: impl Fn(&HttpRequest) -> Answer + 'static) -> impl Fn(&HttpRequest) -> Answer {
    move |request| match message(request)["method"].as_str() {
        Some("initialize") => {
            as_json(request, &json!({"protocolVersion": "2025-06-18"})).with("mcp-session-id", "s1")
        }
        Some("tools/list") => {
            let tool = json!({"name": "echo", "description": "echoes", "inputSchema": {"type": "object"}});
            as_json(request, &json!({ "tools": [tool] }))
        }
        Some("tools/call") => call(request),
        Some(_) | None => Answer::of(202, "text/plain", ""),
    }
}

fn echo(request: &HttpRequest) -> Answer {
    let arguments = message(request)["params"]["arguments"].to_string();
    as_json(
        request,
        &json!({"content": [{"type": "text", "text": arguments}]}),
    )
}

/// What the server was asked, in short, with the session each named.
fn asked(played: &Played) -> Vec<String> {
    let requests = played.ports.http.requests_to(URL);
    let line = |request: &HttpRequest| {
        let session = request.headers.iter().find(|(name, _)| name == "mcp-session-id");
        let message = message(request);
        let method = message["method"].as_str().unwrap_or(request.method).to_owned();
        match session {
            Some((_, session)) => format!("{method} {session}"),
            None => method,
        }
    };
    requests.iter().map(line).collect()
}

fn results(played: &Played) -> Vec<String> {
    let story = played.story();
    let results = story.iter().filter_map(|line| line.strip_prefix("RESULT "));
    results.map(str::to_owned).collect()
}

#[test]
fn a_run_lists_calls_and_leaves() {
    let played = scene(server(), 2).server(URL, serve(echo)).play(&body());
    let result = r#"{"content":[{"type":"text","text":"{\"n\":1.0}"}]}"#;
    assert_eq!(results(&played), [format!("c1 {result}"), format!("c2 {result}")]);
    assert_eq!(played.upstream_body(1)["messages"][2]["content"], "{\"n\":1.0}");
    assert_eq!(
        asked(&played),
        [
            "initialize",
            "notifications/initialized s1",
            "tools/list s1",
            "tools/call s1",
            "tools/call s1",
            "DELETE s1"
        ]
    );
    let call = &message(&played.ports.http.requests_to(URL)[3]);
    assert_eq!(
        call["params"],
        json!({"name": "echo", "arguments": {"n": 1.0}, "_meta": {"progressToken": 3}})
    );
    assert_eq!(played.ports.http.open_count(), 0);
}

#[test]
fn a_list_is_read_once_for_many_runs_until_it_is_old_or_changed() {
    let lists = Rc::new(McpLists::default());
    let play = |call: fn(&HttpRequest) -> Answer| {
        let mut scene = scene(server(), 1);
        scene.lists = lists.clone();
        scene.server(URL, serve(call)).play(&body())
    };
    assert_eq!(asked(&play(echo))[2], "tools/list s1");
    let changed = |request: &HttpRequest| {
        as_events(&[
            json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}),
            response(request, &json!({"content": []})),
        ])
    };
    assert_eq!(
        asked(&play(changed)),
        [
            "initialize",
            "notifications/initialized s1",
            "tools/call s1",
            "DELETE s1"
        ]
    );
    assert_eq!(asked(&play(echo))[2], "tools/list s1");
    assert!(lists.get("docs", crate::scene::START_MS + 299_999).is_some());
    assert!(lists.get("docs", crate::scene::START_MS + 300_000).is_none());
}

#[test]
fn a_list_of_several_pages_is_read_to_its_end() {
    let pages = |request: &HttpRequest| match message(request)["method"].as_str() {
        Some("tools/list") => {
            let cursor = message(request)["params"]["cursor"]
                .as_str()
                .map_or(0, |text| text.parse().unwrap());
            let tool = json!({"name": format!("tool{cursor}")});
            let mut page = json!({ "tools": [tool] });
            if cursor < 2 {
                page["nextCursor"] = json!((cursor + 1).to_string());
            }
            as_json(request, &page)
        }
        _ => serve(echo)(request),
    };
    let mut scene = scene(server(), 0);
    scene.answers = vec![Answer::ok(answer("Hi."))];
    let played = scene.server(URL, pages).play(&body());
    let offered = played.upstream_body(0)["tools"].clone();
    let names: Vec<&Value> = offered
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| &tool["function"]["name"])
        .collect();
    assert_eq!(names, ["docs_tool0", "docs_tool1", "docs_tool2"]);
}

#[test]
fn a_server_that_is_down_costs_its_tools_and_a_warning() {
    let hang = |_: &HttpRequest| Answer::pieces(vec![Piece::Hang]).after(1_000_000);
    let refuse = |_: &HttpRequest| Answer::of(500, "text/plain", "private words");
    let other = |request: &HttpRequest| as_json(request, &json!({"protocolVersion": "2099-01-01"}));
    type Server = Box<dyn Fn(&HttpRequest) -> Answer>;
    let servers: [(Server, u64, &str); 3] = [
        (Box::new(hang), 1_000, "The tool did not answer in time."),
        (Box::new(refuse), 0, "The tool's server answered with status 500."),
        (
            Box::new(other),
            0,
            "The tool's server speaks another version of the protocol.",
        ),
    ];
    for (serve, elapsed_ms, sentence) in servers {
        let mut scene = scene(server(), 0);
        scene.answers = vec![Answer::ok(answer("Hi."))];
        scene.agent.first_response_wait_ms = 1_000;
        let played = scene.server(URL, serve).play(&body());
        assert_eq!(played.story().last().unwrap(), "RUN_FINISHED");
        assert_eq!(played.upstream_body(0).get("tools"), None);
        let warning = format!("Warn mcp_server_failed server=docs error={sentence}");
        assert!(
            played.ports.log.0.borrow().contains(&warning),
            "{:?}",
            played.ports.log.0
        );
        assert_eq!(
            (played.elapsed_ms, played.ports.http.open_count()),
            (elapsed_ms, 0)
        );
    }
}

#[test]
fn a_run_cannot_start_without_a_server_it_needs() {
    let mut needed = server();
    needed.required = true;
    let played = scene(needed, 0)
        .server(URL, |_| Answer::of(500, "text/plain", ""))
        .play(&body());
    assert!(
        matches!(played.head, Err(RunRefusal::UpstreamRefused(_))),
        "{:?}",
        played.head
    );
    assert_eq!(played.ports.http.requests_to("https://upstream.test/"), []);
}

#[test]
fn a_private_server_is_not_asked_unless_it_is_allowed() {
    let mut private = server();
    private.url = "http://127.0.0.1:9/mcp".to_owned();
    let mut scene = scene(private, 0);
    scene.answers = vec![Answer::ok(answer("Hi."))];
    let played = scene.play(&body());
    assert_eq!(played.ports.http.requests_to("http://127"), []);
    assert_eq!(played.story().last().unwrap(), "RUN_FINISHED");
}

#[test]
fn calls_that_fail_are_error_results() {
    let cut = |request: &HttpRequest| {
        let progress =
            json!({"method": "notifications/progress", "params": {"progressToken": message(request)["id"]}});
        as_events(&[progress])
    };
    let stranger =
        |_: &HttpRequest| as_events(&[json!({"id": 99, "result": {}}), json!({"id": null, "error": {}})]);
    let unknown = |request: &HttpRequest| {
        let error = json!({"code": -32602, "message": "Unknown tool: echo"});
        let id = message(request)["id"].clone();
        Answer::of(
            200,
            "application/json",
            json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string(),
        )
    };
    let failed = |request: &HttpRequest| {
        as_json(
            request,
            &json!({"content": [{"type": "text", "text": "no"}], "isError": true}),
        )
    };
    let silent = |_: &HttpRequest| {
        let mut answer = as_events(&[]);
        answer.pieces.push(Piece::Hang);
        answer
    };
    let dead = |_: &HttpRequest| {
        let mut answer = as_events(&[]);
        answer.pieces.push(Piece::Die);
        answer
    };
    type Call = Box<dyn Fn(&HttpRequest) -> Answer>;
    let error = |sentence: &str| json!({ "error": sentence }).to_string();
    let cases: Vec<(Call, String)> = vec![
        // Known fault B133.
        (Box::new(cut), error("The tool's server broke off its answer.")),
        (
            Box::new(stranger),
            error("The tool's server broke off its answer."),
        ),
        (Box::new(unknown), error("Unknown tool: echo")),
        (
            Box::new(failed),
            r#"{"content":[{"type":"text","text":"no"}],"isError":true}"#.to_owned(),
        ),
        (
            Box::new(|_| Answer::of(401, "text/plain", "private words")),
            error("The tool's server answered with status 401."),
        ),
        (
            Box::new(|_| Answer::of(202, "text/plain", "")),
            error("The tool's server sent what cannot be read."),
        ),
        (
            Box::new(|_| Answer::of(200, "application/json", "x".repeat(10_001))),
            error("The tool's answer is longer than 10000 bytes."),
        ),
        (Box::new(silent), error("The tool did not answer in time.")),
        (Box::new(dead), error("The tool's server could not be reached.")),
    ];
    for (call, content) in cases {
        let played = scene(server(), 1).server(URL, serve(call)).play(&body());
        assert_eq!(results(&played), [format!("c1 {content}")]);
        assert_eq!(played.story().last().unwrap(), "RUN_FINISHED");
        assert_eq!(played.ports.http.open_count(), 0);
    }
}

#[test]
fn a_late_call_is_cancelled_and_progress_gives_it_more_time() {
    let working = |request: &HttpRequest| {
        let id = message(request)["id"].clone();
        let progress = json!({"method": "notifications/progress", "params": {"progressToken": id}});
        let frame = Piece::Bytes(format!("data: {progress}\n\n").into_bytes());
        let mut answer = as_events(&[]);
        answer.pieces = vec![
            Piece::Pause(1_500),
            frame.clone(),
            Piece::Pause(1_500),
            frame,
            Piece::Hang,
        ];
        answer
    };
    let played = scene(server(), 1).server(URL, serve(working)).play(&body());
    assert_eq!(
        results(&played),
        ["c1 {\"error\":\"The tool did not answer in time.\"}"]
    );
    assert_eq!(played.elapsed_ms, 5_000);
    let requests = played.ports.http.requests_to(URL);
    assert_eq!(asked(&played)[4..], ["notifications/cancelled s1", "DELETE s1"]);
    assert_eq!(
        message(&requests[4])["params"]["requestId"],
        message(&requests[3])["id"]
    );
}

#[test]
fn a_cancelled_run_cancels_its_calls_after_the_terminal_event() {
    let played = scene(server(), 1)
        .server(URL, serve(|_| Answer::pieces(vec![Piece::Hang]).after(1_000_000)))
        .at(500, |control| control.cancel.set())
        .play(&body());
    assert_eq!(results(&played), ["c1 {\"error\":\"The call was interrupted.\"}"]);
    assert_eq!(
        played.story().last().unwrap(),
        "RUN_FINISHED {\"type\":\"cancelled\"}"
    );
    assert_eq!(asked(&played)[4..], ["notifications/cancelled s1", "DELETE s1"]);
    assert_eq!((played.elapsed_ms, played.ports.http.open_count()), (500, 0));
}

#[test]
fn a_session_the_server_forgot_is_opened_once_more() {
    let count = std::cell::Cell::new(0);
    let forgetful = move |request: &HttpRequest| {
        count.set(count.get() + 1);
        if count.get() == 1 {
            return Answer::of(404, "application/json", "{}");
        }
        echo(request)
    };
    let played = scene(server(), 1).server(URL, serve(forgetful)).play(&body());
    assert!(results(&played)[0].contains("content"), "{:?}", results(&played));
    assert_eq!(
        asked(&played)[3..],
        [
            "tools/call s1",
            "initialize",
            "notifications/initialized s1",
            "tools/call s1",
            "DELETE s1"
        ]
    );
}

#[test]
fn a_server_that_asks_is_answered() {
    let curious = |request: &HttpRequest| {
        as_events(&[
            json!({"jsonrpc": "2.0", "id": "p1", "method": "ping"}),
            json!({"jsonrpc": "2.0", "id": 7, "method": "sampling/createMessage", "params": {}}),
            response(request, &json!({"content": []})),
        ])
    };
    let played = scene(server(), 1).server(URL, serve(curious)).play(&body());
    assert_eq!(results(&played), ["c1 {\"content\":[]}"]);
    let requests = played.ports.http.requests_to(URL);
    assert_eq!(
        message(&requests[4]),
        json!({"jsonrpc": "2.0", "id": "p1", "result": {}})
    );
    assert_eq!(message(&requests[5])["error"]["code"], -32601);
}

#[test]
fn pictures_reach_a_model_that_takes_them_in_results() {
    let frames = |events: &[Value]| -> String {
        let frame = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
        events.iter().map(frame).collect()
    };
    let block = json!({"type": "tool_use", "id": "toolu_1", "name": "docs_echo", "input": {}});
    let calls = frames(&[
        json!({"type": "message_start", "message": {"id": "msg_1", "role": "assistant", "content": []}}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "input_json_delta", "partial_json": "{}"}}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}),
        json!({"type": "message_stop"}),
    ]);
    let says = frames(&[
        json!({"type": "message_start", "message": {"id": "msg_2", "role": "assistant", "content": []}}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
        json!({"type": "message_stop"}),
    ]);
    let mut scene = Scene::new(
        json!({"provider": "anthropic", "model": "claude-sonnet-4-5"}),
        vec![Answer::ok(calls), Answer::ok(says)],
    );
    scene.tools.mcp = vec![Rc::new(server())];
    let draw = |request: &HttpRequest| {
        let image = json!({"type": "image", "data": "AA==", "mimeType": "image/png"});
        as_json(request, &json!({ "content": [image] }))
    };
    let played = scene.server(URL, serve(draw)).play(&body());
    assert_eq!(
        results(&played),
        [r#"c1 {"content":[{"type":"image","data":"AA==","mimeType":"image/png"}]}"#]
    );
    assert_eq!(
        played.upstream_body(1)["messages"][2]["content"][0]["content"],
        json!([
            {"type": "text", "text": "[image/png]"},
            {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA=="}}
        ])
    );
}
