//! A run whose object is reset at any moment (contract 8).

use std::cell::Cell;
use std::rc::Rc;

use io_bridge::config::agents::OnDisconnect;
use io_bridge::protocol::id::{AgentId, ResourceId, RunId, ThreadId};
use io_bridge::protocol::tool::Tool;
use io_bridge::run::journal::{Next, RunRecord, beginning};
use io_bridge::run::ports::{ObjectStorage, SqlValue};
use io_bridge::store::{DatabaseError, Persistence, Quota, RunStatus, Store};
use io_bridge::tool::http::HttpTool;
use serde_json::{Value, json};

use crate::completions::{call, finish, text};
use crate::scene::{Answer, Piece, Played, START_MS, Scene, SceneDatabase, SceneObject};

const UPSTREAM: &str = "https://upstream.test/";
const TOOLS: &str = "https://tools.example/";

fn body() -> Value {
    json!({
        "threadId": "t", "runId": "r", "protocolVersion": "1.0",
        "messages": [{"id": "u", "role": "user", "content": "hello"}],
        "tools": [{"name": "pick", "description": "picks"}],
        "forwardedProps": {"resourceId": "ada"}
    })
}

fn http_tool(idempotent: bool) -> Rc<HttpTool> {
    Rc::new(HttpTool {
        declaration: Tool {
            name: "look".to_owned(),
            description: "looks".to_owned(),
            parameters: None,
        },
        method: "POST",
        url: format!("{TOOLS}look"),
        headers: vec![],
        idempotent,
        timeout_ms: 2_000,
        result_max_bytes: 1_000,
        allow_private: false,
    })
}

/// An upstream that answers by what it is asked: a look and a pick at once, then another pick, then the end.
fn model(request: &Value) -> String {
    let messages = request["messages"].as_array().unwrap();
    match messages
        .iter()
        .filter(|message| message["role"] == "tool")
        .count()
    {
        0 => {
            text("Let ")
                + &text("me see.")
                + &call(0, "look", "{}")
                + &call(1, "pick", r#"{"n":1}"#)
                + &finish("tool_calls")
        }
        2 => call(0, "pick", r#"{"n":2}"#) + &finish("tool_calls"),
        3 => text("Seen ") + &text("all.") + &finish("stop"),
        other => panic!("{other} results"),
    }
}

/// One life of the run.
fn scene(database: &SceneDatabase, tool_calls: &Rc<Cell<usize>>, idempotent: bool) -> Scene {
    let calls = Rc::clone(tool_calls);
    let mut scene = Scene::new(json!({"onDisconnect": "continue"}), vec![])
        .on(database)
        .server(UPSTREAM, |request| {
            let asked: Value = serde_json::from_str(request.body.as_deref().unwrap()).unwrap();
            let pieces = model(&asked);
            let pieces = pieces
                .split_inclusive("\n\n")
                .flat_map(|piece| [Piece::Pause(10), Piece::Bytes(piece.as_bytes().to_vec())]);
            Answer::pieces(pieces.collect())
        })
        .server(TOOLS, move |_| {
            calls.set(calls.get() + 1);
            Answer::of(200, "text/plain", "seen").after(5)
        });
    scene.tools.http = vec![http_tool(idempotent)];
    scene.posts(|call| format!("picked {}", call.arguments))
}

/// The story without ids of messages, results in the order of their calls.
fn told(played: &Played) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for line in played.story() {
        let words: Vec<&str> = line.split(' ').filter(|word| !word.contains("msg-")).collect();
        let line = words.join(" ");
        match lines.last_mut() {
            Some(last) if last.starts_with("TEXT ") && line.starts_with("TEXT ") => last.push_str(&line[5..]),
            _ => lines.push(line),
        }
    }
    lines
}

/// What is stored of the thread, without ids.
fn stored(database: &SceneDatabase) -> Vec<String> {
    let messages = database.rows("SELECT role, body FROM messages ORDER BY place");
    let mut lines: Vec<String> = messages
        .iter()
        .map(|row| {
            let [role, body]: [String; 2] = serde_json::from_str(row).unwrap();
            let body: Value = serde_json::from_str(&body).unwrap();
            let calls = body["toolCalls"].as_array().map_or(0, Vec::len);
            format!("{role} {} {calls} calls", body["content"])
        })
        .collect();
    lines.extend(database.rows("SELECT status, usage FROM runs"));
    lines
}

/// Plays the run, reset after so many waits; gives the whole story, and how often it was reset.
fn play_reset(after: &[usize], idempotent: bool) -> (Played, SceneDatabase, usize, usize) {
    let (database, object, tool_calls) = (SceneDatabase::new(), SceneObject::new(), Rc::default());
    for (resets, points) in after.iter().enumerate() {
        if let Some(played) = scene(&database, &tool_calls, idempotent).live(&body(), &object, Some(*points))
        {
            return (played, database, tool_calls.get(), resets);
        }
        let kept = object
            .kept()
            .expect("a durable run is kept before anything else happens");
        for (id, _, is_posted) in &kept.results {
            let is_known = kept.calls.iter().any(|call| call.id == *id);
            assert!(
                !is_posted || is_known,
                "{id} was answered and is forgotten, {after:?}"
            );
        }
    }
    let played = scene(&database, &tool_calls, idempotent).live(&body(), &object, None);
    (played.unwrap(), database, tool_calls.get(), after.len())
}

const TOLD: [&str; 26] = [
    "RUN_STARTED t r",
    "STEP_STARTED step-1",
    "TEXT_START",
    "TEXT Let me see.",
    "TEXT_END",
    "START c1 look in",
    "ARGS c1 {}",
    "END c1",
    "START c2 pick in",
    r#"ARGS c2 {"n":1}"#,
    "END c2",
    r#"RESULT c2 picked {"n":1}"#,
    "RESULT c1 seen",
    "STEP_FINISHED step-1",
    "STEP_STARTED step-2",
    "START c3 pick in",
    r#"ARGS c3 {"n":2}"#,
    "END c3",
    r#"RESULT c3 picked {"n":2}"#,
    "STEP_FINISHED step-2",
    "STEP_STARTED step-3",
    "TEXT_START",
    "TEXT Seen all.",
    "TEXT_END",
    "STEP_FINISHED step-3",
    "RUN_FINISHED",
];

#[test]
fn a_run_that_is_reset_at_any_moment_ends_as_its_undisturbed_twin() {
    let (twin, twin_database, calls, _) = play_reset(&[], true);
    assert_eq!(told(&twin), TOLD);

    assert_eq!(calls, 1);
    let mut reset_count = 0;
    for points in 0.. {
        let (played, database, _, resets) = play_reset(&[points], true);
        assert_eq!(
            sorted(told(&played)),
            sorted(told(&twin)),
            "reset after {points} waits"
        );
        assert_eq!(
            stored(&database),
            stored(&twin_database),
            "reset after {points} waits"
        );
        if resets == 0 {
            break;
        }
        reset_count += resets;
    }
    assert_eq!(reset_count, 21);
}

#[test]
fn resets_in_a_row_change_nothing_either() {
    let (twin, twin_database, ..) = play_reset(&[], true);
    for first in [0, 1, 4, 8, 11, 14] {
        for second in 0..5 {
            for third in [1, 4] {
                let (played, database, ..) = play_reset(&[first, second, third], true);
                assert_eq!(
                    sorted(told(&played)),
                    sorted(told(&twin)),
                    "{first} {second} {third}"
                );
                assert_eq!(
                    stored(&database),
                    stored(&twin_database),
                    "{first} {second} {third}"
                );
            }
        }
    }
}

#[test]
fn a_call_that_must_not_be_repeated_is_made_once_and_answered_once() {
    let mut interrupted_count = 0;
    for points in 0.. {
        let (played, _, tool_calls, resets) = play_reset(&[points], false);
        assert_eq!(tool_calls, 1, "reset after {points} waits");
        let answers: Vec<String> = told(&played)
            .into_iter()
            .filter(|line| line.starts_with("RESULT c1"))
            .collect();
        let is_interrupted = answers == [r#"RESULT c1 {"error":"The call was interrupted."}"#];
        assert!(is_interrupted || answers == ["RESULT c1 seen"], "{answers:?}");
        interrupted_count += usize::from(is_interrupted);
        if resets == 0 {
            break;
        }
    }
    assert!(interrupted_count > 0);
}

#[test]
fn a_wait_for_a_person_survives_and_its_deadline_still_comes() {
    let (database, object, tool_calls) = (SceneDatabase::new(), SceneObject::new(), Rc::default());
    let mut first = scene(&database, &tool_calls, true);
    first.agent.tool_timeout_ms = 60_000;
    assert!(first.without_posts().live(&body(), &object, Some(10)).is_none());
    let kept = object.kept().unwrap();
    let waits: Vec<(&str, u64)> = kept
        .calls
        .iter()
        .map(|call| (call.name.as_str(), call.expires_at_ms))
        .collect();
    let expires_at_ms = waits[0].1;
    assert_eq!((waits.len(), waits[0].0), (1, "pick"));
    assert_eq!(database.rows("SELECT status FROM runs"), [r#"["waiting"]"#]);

    let second = scene(&database, &tool_calls, true).without_posts();
    let played = second.at(1, |control| {
        assert_eq!(control.mailbox.pending().len(), 1);
    });
    let played = played.live(&body(), &object, None).unwrap();
    let late = told(&played)
        .into_iter()
        .find(|line| line.starts_with("RESULT c2"));
    assert_eq!(
        late.as_deref(),
        Some(r#"RESULT c2 {"error":"The tool did not answer in time."}"#)
    );
    assert!(START_MS + played.elapsed_ms >= expires_at_ms);
}

#[test]
fn a_run_that_gets_no_further_is_given_up_with_what_it_has() {
    let (database, object, tool_calls) = (SceneDatabase::new(), SceneObject::new(), Rc::default());
    assert!(
        scene(&database, &tool_calls, true)
            .live(&body(), &object, Some(11))
            .is_none()
    );
    let mut lives = 0;
    while object.kept().unwrap().next(START_MS) == Next::Resume {
        assert!(
            scene(&database, &tool_calls, true)
                .live(&body(), &object, Some(0))
                .is_none()
        );
        lives += 1;
    }
    assert_eq!((lives, object.kept().unwrap().next(START_MS)), (5, Next::GiveUp));
    let played = scene(&database, &tool_calls, true)
        .live(&body(), &object, None)
        .unwrap();
    assert_eq!(
        told(&played)[11..],
        [
            r#"RESULT c2 picked {"n":1}"#,
            "RESULT c1 seen",
            "STEP_FINISHED step-1",
            "RUN_ERROR run_interrupted",
        ]
    );
    assert_eq!(
        stored(&database),
        [
            r#"user "hello" 0 calls"#,
            r#"assistant "Let me see." 2 calls"#,
            r#"tool "picked {\"n\":1}" 0 calls"#,
            r#"tool "seen" 0 calls"#,
            r#"["failed",null]"#,
        ]
    );
}

#[test]
fn a_start_that_is_lost_goes_on_when_the_database_is_back() {
    let (twin, twin_database, ..) = play_reset(&[], true);
    let (database, object, tool_calls) = (SceneDatabase::new(), SceneObject::new(), Rc::default());
    let first = scene(&database, &tool_calls, true);
    assert!(first.live(&body(), &object, Some(0)).is_none());
    assert!(stored(&database).is_empty(), "the batch was not sent yet");

    database.set_fault(Some(DatabaseError::Unavailable("away".to_owned())));
    let away = database.clone();
    let second = scene(&database, &tool_calls, true).at(25_000, move |_| away.set_fault(None));
    let played = second.live(&body(), &object, None).unwrap();
    assert_eq!(sorted(told(&played)), sorted(told(&twin)));
    assert_eq!(stored(&database), stored(&twin_database));
    assert!(
        (25_000..35_000).contains(&played.elapsed_ms),
        "{}",
        played.elapsed_ms
    );
}

#[test]
fn a_start_is_not_stopped_by_what_it_has_used_of_its_quota_itself() {
    let (twin, ..) = play_reset(&[], true);
    let (database, object, tool_calls) = (SceneDatabase::new(), SceneObject::new(), Rc::default());
    let bounded = || {
        let mut bounded = scene(&database, &tool_calls, true);
        bounded.quota = Quota {
            running_max_count: Some(1),
            stored_max_bytes: Some(1),
            ..Quota::default()
        };
        bounded
    };
    assert!(bounded().live(&body(), &object, Some(1)).is_none());
    assert_eq!(database.rows("SELECT status FROM runs"), [r#"["running"]"#]);
    let played = bounded().live(&body(), &object, None).unwrap();
    assert_eq!(sorted(told(&played)), sorted(told(&twin)));
}

#[test]
fn a_start_that_another_object_has_made_meanwhile_leaves_its_run_alone() {
    let (_, twin_database, ..) = play_reset(&[], true);
    let (database, lost, tool_calls) = (SceneDatabase::new(), SceneObject::new(), Rc::default());
    let first = scene(&database, &tool_calls, true);
    assert!(first.live(&body(), &lost, Some(0)).is_none());
    let again = scene(&database, &tool_calls, true);
    assert!(again.live(&body(), &SceneObject::new(), None).is_some());
    let late = scene(&database, &tool_calls, true).live(&body(), &lost, None);
    assert_eq!(
        told(&late.unwrap()),
        ["RUN_STARTED t r", "RUN_ERROR run_interrupted"]
    );
    assert_eq!(stored(&database), stored(&twin_database));
}

#[test]
fn a_start_that_always_resets_its_object_is_closed() {
    let (database, object, tool_calls) = (SceneDatabase::new(), SceneObject::new(), Rc::default());
    for _ in 0..=5 {
        let life = scene(&database, &tool_calls, true);
        assert!(life.live(&body(), &object, Some(1)).is_none());
    }
    let kept = object.kept().unwrap();
    assert_eq!((kept.next(START_MS), kept.closing(START_MS)), (Next::Close, None));
}

#[test]
fn deltas_are_stored_within_half_a_second_also_when_no_event_follows() {
    let play = |on_disconnect: &str| {
        let pieces = [
            Piece::Bytes(text("Once").into_bytes()),
            Piece::Pause(100),
            Piece::Bytes(text(" upon").into_bytes()),
            Piece::Pause(300),
            Piece::Bytes(text(" a").into_bytes()),
            Piece::Pause(20_000),
            Piece::Bytes((text(" time") + &finish("stop")).into_bytes()),
        ];
        let scene = Scene::new(
            json!({"onDisconnect": on_disconnect, "keepAliveMs": 0}),
            vec![Answer::pieces(pieces.into())],
        );
        scene.on(&SceneDatabase::new()).play(&body())
    };
    let durable = play("continue");
    assert_eq!(durable.stored, [(0, 4), (600, 6), (20_400, 9), (20_400, 10)]);
    // One timer for the deltas, and the upstream's, whose place it took, once more: nothing looks again and again.
    assert_eq!(
        durable.ports.clock.sleep_count() - play("stop").ports.clock.sleep_count(),
        2
    );
}

#[test]
fn what_is_kept_ends_with_the_retention() {
    let (database, object, tool_calls) = (SceneDatabase::new(), SceneObject::new(), Rc::default());
    let played = scene(&database, &tool_calls, true)
        .live(&body(), &object, None)
        .unwrap();
    let kept = object.kept().unwrap();
    let ended_ms = START_MS + played.elapsed_ms;
    assert_eq!(kept.end, Some((RunStatus::Finished, ended_ms)));
    let until_ms = ended_ms + 600_000;
    assert_eq!(kept.next(until_ms - 1), Next::Serve { until_ms });
    assert_eq!(kept.next(until_ms), Next::Forget);
}

#[test]
fn a_run_that_is_not_durable_keeps_its_closed_segments_once_it_is_old() {
    let (database, object, tool_calls) = (SceneDatabase::new(), SceneObject::new(), Rc::default());
    let mut young = scene(&database, &tool_calls, true);
    young.agent.on_disconnect = OnDisconnect::Stop;
    assert!(young.live(&body(), &object, Some(9)).is_none());
    assert_eq!((object.kept(), object.storage.written.get()), (None, 0));

    let (database, object) = (SceneDatabase::new(), SceneObject::new());
    let mut old = scene(&database, &tool_calls, true);
    old.agent.on_disconnect = OnDisconnect::Stop;
    assert!(
        old.without_posts()
            .kept_from_its_start()
            .live(&body(), &object, Some(9))
            .is_none()
    );
    let kept = object.kept().unwrap();
    assert_eq!(kept.next(START_MS), Next::Close);
    let closing = kept.closing(START_MS + 7).unwrap();
    futures::executor::block_on(Store::new(&*database).end_run(&closing.run, closing.end)).unwrap();
    assert_eq!(
        stored(&database),
        [
            r#"user "hello" 0 calls"#,
            r#"assistant "Let me see." 2 calls"#,
            r#"tool "{\"error\":\"The call was interrupted.\"}" 0 calls"#,
            r#"tool "{\"error\":\"The call was interrupted.\"}" 0 calls"#,
            r#"["failed",null]"#,
        ]
    );
}

/// Results of one step come in any order.
fn sorted(mut told: Vec<String>) -> Vec<String> {
    told.sort();
    told
}

/// A panic takes us along, not the platform: it keeps the run by two calls that were prepared.
#[test]
fn what_the_platform_keeps_of_a_run_is_what_we_would_have_kept() {
    let object = SceneObject::new();
    let owner = ResourceId::new("ada");
    let run = RunRecord {
        run_id: RunId::new("r"),
        thread_id: ThreadId::new("t"),
        agent_id: AgentId::new("io-agent"),
        owner: Some(owner.clone()),
        persistence: Persistence::Create(owner),
        request_id: "request".to_owned(),
        trace: String::new(),
        started_at_ms: START_MS,
        event_retention_ms: None,
        input: String::new(),
    };
    let (sql, text) = beginning(&run).unwrap();
    for _ in 0..2 {
        for statement in sql.split(";\n") {
            let parameters = statement
                .matches("?1")
                .map(|_| SqlValue::Text(text.clone()))
                .collect();
            let statement = Box::leak(statement.to_owned().into_boxed_str());
            object.storage.exec(statement, parameters).unwrap();
        }
    }
    let kept = object.kept().unwrap();
    assert_eq!(kept.next(START_MS), Next::Close);
    assert_eq!((kept.run, kept.segments), (run, None));
}
