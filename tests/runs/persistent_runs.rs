//! What a run stores and reads of its thread (contract 2.2, 2.3, D12).

use io_bridge::protocol::event::Event;
use io_bridge::protocol::id::ResourceId;
use io_bridge::run::RunRefusal;
use io_bridge::store::{DatabaseError, RunStatus};
use serde_json::{Value, json};

use crate::completions::{answer, call, finish, text};
use crate::scene::{Answer, Piece, Scene, SceneDatabase};

fn body(run: &str, message: &str, content: &str) -> Value {
    json!({
        "threadId": "t", "runId": run, "protocolVersion": "1.0",
        "messages": [{"id": message, "role": "user", "content": content}],
        "tools": [{"name": "pick", "description": "picks"}],
        "forwardedProps": {"resourceId": "ada"}
    })
}

fn messages(database: &SceneDatabase) -> Vec<String> {
    database.rows("SELECT id, role, superseded_by FROM messages ORDER BY place")
}

fn runs(database: &SceneDatabase) -> Vec<String> {
    database.rows("SELECT id, status FROM runs ORDER BY started_at_ms, id")
}

#[test]
fn a_text_run_costs_two_batches_and_is_there_afterwards() {
    let database = SceneDatabase::new();
    let played = Scene::new(json!({}), vec![Answer::ok(answer("Hi."))])
        .on(&database)
        .play(&body("r1", "u1", "Hello there"));
    assert_eq!(played.story().last().unwrap(), "RUN_FINISHED");
    assert_eq!(database.take_counts().0, 2);
    assert_eq!(
        messages(&database),
        [r#"["u1","user",null]"#, r#"["r1-msg-1","assistant",null]"#]
    );
    assert_eq!(runs(&database), [r#"["r1","finished"]"#]);
    assert_eq!(database.rows("SELECT title FROM threads"), [r#"["Hello there"]"#]);
}

#[test]
fn the_next_run_remembers() {
    let database = SceneDatabase::new();
    Scene::new(json!({}), vec![Answer::ok(answer("Hi."))])
        .on(&database)
        .play(&body("r1", "u1", "Hello"));
    let played = Scene::new(json!({}), vec![Answer::ok(answer("Again."))])
        .on(&database)
        .play(&body("r2", "u2", "More"));
    assert_eq!(
        played.upstream_body(0)["messages"],
        json!([
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": "Hi."},
            {"role": "user", "content": "More"}
        ])
    );
}

#[test]
fn everything_is_stored_before_the_terminal_event() {
    let database = SceneDatabase::new();
    let seen = database.clone();
    Scene::new(json!({}), vec![Answer::ok(answer("Hi."))])
        .on(&database)
        .on_event(move |event, _| {
            if event.is_terminal() {
                assert_eq!(messages(&seen).len(), 2);
            }
        })
        .play(&body("r1", "u1", "Hello"));
}

#[test]
fn what_was_said_goes_out_before_the_end_is_stored() {
    let database = SceneDatabase::new();
    let played = Scene::new(json!({}), vec![Answer::ok(answer("Hi."))])
        .on(&database)
        .play(&body("r1", "u1", "Hello"));
    // Only the terminal event comes after the end batch.
    assert_eq!(played.flushes, [(0, 6, 1), (0, 7, 2)]);
}

#[test]
fn what_was_said_goes_out_while_the_database_fails() {
    let database = SceneDatabase::new();
    let away = database.clone();
    let played = Scene::new(json!({}), vec![Answer::ok(answer("Hi."))])
        .on(&database)
        .on_event(move |event, _| {
            if matches!(event, Event::StepFinished { .. }) {
                away.set_fault(Some(DatabaseError::Unavailable("overloaded".to_owned())));
            }
        })
        .play(&body("r1", "u1", "Hello"));
    assert_eq!(played.story().last().unwrap(), "RUN_FINISHED");
    // Six events at once; the last after three attempts at the end batch.
    assert_eq!(played.flushes, [(0, 6, 1), (300, 7, 1)]);
}

#[test]
fn another_owners_thread_and_a_used_run_id_are_refused() {
    let database = SceneDatabase::new();
    let play = |body: &Value| {
        Scene::new(json!({}), vec![Answer::ok(answer("Hi."))])
            .on(&database)
            .play(body)
    };
    play(&body("r1", "u1", "Hello"));
    let mut foreign = body("r1", "u2", "Hello");
    foreign["forwardedProps"]["resourceId"] = json!("bob");
    assert_eq!(play(&foreign).head, Err(RunRefusal::ForeignThread));
    let conflict = play(&body("r1", "u3", "Hello"));
    let thread_id = io_bridge::protocol::id::ThreadId::new("t");
    assert_eq!(
        conflict.head,
        Err(RunRefusal::Conflict {
            status: RunStatus::Finished,
            thread_id
        })
    );
    assert_eq!(messages(&database).len(), 2);
    foreign["threadId"] = json!("t2");
    assert_eq!(play(&foreign).head, Ok(()));
}

#[test]
fn a_refused_run_keeps_its_message_and_frees_its_id() {
    let database = SceneDatabase::new();
    let refused = Scene::new(json!({}), vec![Answer::refusal(401, &[], "")])
        .on(&database)
        .play(&body("r1", "u1", "Hello"));
    assert!(refused.head.is_err());
    assert_eq!(messages(&database), [r#"["u1","user",null]"#]);
    assert_eq!(runs(&database), Vec::<String>::new());
    let played = Scene::new(json!({}), vec![Answer::ok(answer("Hi."))])
        .on(&database)
        .play(&body("r1", "u1", "Hello"));
    assert_eq!(
        played.upstream_body(0)["messages"],
        json!([{"role": "user", "content": "Hello"}])
    );
    assert_eq!(
        messages(&database),
        [r#"["u1","user",null]"#, r#"["r1-msg-1","assistant",null]"#]
    );
}

#[test]
fn a_broken_run_stores_what_it_said_and_its_calls_interrupted() {
    let database = SceneDatabase::new();
    let first = Answer::ok(text("Look.") + &call(0, "pick", "{}") + &finish("tool_calls"));
    let mut scene = Scene::new(json!({}), vec![first]).on(&database);
    scene.leaves_after = Some(9);
    scene.play(&body("r1", "u1", "Hello"));
    assert_eq!(runs(&database), [r#"["r1","cancelled"]"#]);
    let roles = database.rows("SELECT role FROM messages ORDER BY place");
    assert_eq!(roles, [r#"["user"]"#, r#"["assistant"]"#, r#"["tool"]"#]);
    let played = Scene::new(json!({}), vec![Answer::ok(answer("Ok."))])
        .on(&database)
        .play(&body("r2", "u2", "Go on"));
    let asked = &played.upstream_body(0)["messages"];
    assert_eq!(asked[2]["content"], r#"{"error":"The call was interrupted."}"#);
    assert_eq!(asked[1]["tool_calls"][0]["id"], asked[2]["tool_call_id"]);
}

#[test]
fn while_a_person_is_awaited_a_run_without_resource_leaves_the_thread_alone() {
    let database = SceneDatabase::new();
    let other = database.clone();
    let first = Answer::ok(call(0, "pick", "{}") + &finish("tool_calls"));
    let played = Scene::new(json!({}), vec![first, Answer::ok(answer("Done."))])
        .on(&database)
        .at(1_000, move |control| {
            assert_eq!(runs(&other), [r#"["r1","waiting"]"#]);
            let mut sampling = body("r2", "s1", "Sample this");
            sampling["forwardedProps"] = json!({});
            let mut scene = Scene::new(json!({}), vec![Answer::ok(answer("Sampled."))]).on(&other);
            scene.principal = Some(ResourceId::new("ada"));
            let sampled = scene.play(&sampling);
            assert_eq!(
                sampled.upstream_body(0)["messages"],
                json!([{"role": "user", "content": "Sample this"}])
            );
            assert_eq!(messages(&other), [r#"["u1","user",null]"#]);
            let id = control.mailbox.pending()[0].id.clone();
            let result = io_bridge::protocol::tool::ToolResult {
                content: "1".to_owned(),
                is_error: false,
            };
            control.mailbox.deliver(&id, result);
        })
        .play(&body("r1", "u1", "Hello"));
    assert_eq!(played.story().last().unwrap(), "RUN_FINISHED");
    assert_eq!(runs(&database), [r#"["r1","finished"]"#]);
}

#[test]
fn calls_left_to_the_next_run_are_completed_by_its_messages() {
    let database = SceneDatabase::new();
    let agent = json!({"frontendTools": "next-run"});
    let first = Answer::ok(call(0, "pick", "{}") + &finish("tool_calls"));
    let played = Scene::new(agent.clone(), vec![first])
        .on(&database)
        .play(&body("r1", "u1", "Hello"));
    let last = played.wire().pop().unwrap();
    let id = last["outcome"]["pendingToolCallIds"][0].clone();
    let mut next = body("r2", "x", "x");
    next["messages"] = json!([{"id": "tool-1", "role": "tool", "toolCallId": id, "content": "red"}]);
    let played = Scene::new(agent, vec![Answer::ok(answer("Red it is."))])
        .on(&database)
        .play(&next);
    let asked = &played.upstream_body(0)["messages"];
    assert_eq!(asked[2]["content"], "red");
    let roles = database.rows("SELECT role FROM messages ORDER BY place");
    assert_eq!(
        roles,
        [
            r#"["user"]"#,
            r#"["assistant"]"#,
            r#"["tool"]"#,
            r#"["assistant"]"#
        ]
    );
}

#[test]
fn a_database_that_is_away_refuses_the_start_and_delays_the_end() {
    let database = SceneDatabase::new();
    let away = || DatabaseError::Unavailable("overloaded".to_owned());
    database.set_fault(Some(away()));
    let played = Scene::new(json!({}), vec![])
        .on(&database)
        .play(&body("r1", "u1", "Hello"));
    assert_eq!(played.head, Err(RunRefusal::StorageUnavailable));
    let failures = played
        .ports
        .log
        .0
        .borrow()
        .iter()
        .filter(|line| line.contains("database_failed"))
        .count();
    assert_eq!(failures, 3);
    database.set_fault(None);
    let breaking = database.clone();
    let played = Scene::new(json!({}), vec![Answer::ok(answer("Hi."))])
        .on(&database)
        .on_event(move |event, _| {
            if event.kind().as_str() == "STEP_FINISHED" {
                breaking.set_fault(Some(away()));
            }
        })
        .play(&body("r1", "u1", "Hello"));
    assert_eq!(played.story().last().unwrap(), "RUN_FINISHED");
    let kept = played.ports.outbox.borrow();
    assert_eq!(kept.len(), 1);
    let end = &kept[0].1;
    assert_eq!((end.status, end.produced.len()), (RunStatus::Finished, 1));
}

#[test]
fn a_read_only_run_reads_and_writes_nothing() {
    let database = SceneDatabase::new();
    Scene::new(json!({}), vec![Answer::ok(answer("Hi."))])
        .on(&database)
        .play(&body("r1", "u1", "Hello"));
    let mut reading = body("r2", "u2", "What?");
    reading["forwardedProps"]["memoryOptions"] = json!({"readOnly": true});
    let played = Scene::new(json!({}), vec![Answer::ok(answer("That."))])
        .on(&database)
        .play(&reading);
    assert_eq!(played.upstream_body(0)["messages"].as_array().unwrap().len(), 3);
    assert_eq!(messages(&database).len(), 2);
    assert_eq!(runs(&database).len(), 1);
}

#[test]
fn a_generated_title_replaces_the_provisional_one_after_the_end() {
    let database = SceneDatabase::new();
    let answers = vec![Answer::ok(answer("Hi.")), Answer::ok(answer("\"Greeting\""))];
    let played = Scene::new(json!({"generateTitle": true}), answers)
        .on(&database)
        .play(&body("r1", "u1", "Hello"));
    assert_eq!(database.rows("SELECT title FROM threads"), [r#"["Greeting"]"#]);
    assert_eq!(played.ports.http.requests.borrow().len(), 2);
    let played = Scene::new(json!({"generateTitle": true}), vec![Answer::ok(answer("Hi."))])
        .on(&database)
        .play(&body("r2", "u2", "Hm"));
    assert_eq!(played.ports.http.requests.borrow().len(), 1);
}

#[test]
fn an_empty_list_answers_the_stored_history() {
    let database = SceneDatabase::new();
    let broken = vec![Answer::pieces(vec![
        Piece::Bytes(text("Half").into_bytes()),
        Piece::Die,
    ])];
    Scene::new(json!({}), broken)
        .on(&database)
        .play(&body("r1", "u1", "Hello"));
    let mut again = body("r2", "x", "x");
    again["messages"] = json!([]);
    let played = Scene::new(json!({}), vec![Answer::ok(answer("Whole."))])
        .on(&database)
        .play(&again);
    assert_eq!(
        played.upstream_body(0)["messages"],
        json!([{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Half"}])
    );
}
