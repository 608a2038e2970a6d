//! The rules of history, one by one (contract 2.3 and 2.6): what is stored, what is hidden, what a model is given.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

#[path = "support/chat.rs"]
mod chat;
#[path = "support/sqlite.rs"]
#[expect(dead_code, reason = "shared with other test crates")]
mod sqlite;

use chat::*;
use io_bridge::store::{BeginRun, EndRun};
use serde_json::json;
use sqlite::Sqlite;

/// Three turns: u1 a1, u2 a2, u3 a3.
fn three_turns() -> Sqlite {
    let sqlite = Sqlite::new();
    for turn in 1..=3 {
        let (question, answer) = (user(&format!("u{turn}")), assistant(&format!("a{turn}")));
        run(&sqlite, &format!("r{turn}"), vec![question], vec![answer]);
    }
    sqlite
}

/// A turn whose call `c1` the next run answers; `c2` was answered in the run.
fn pending_turn(sqlite: &Sqlite) {
    let run = begun(sqlite, begin("r1", vec![user("u1")]));
    let ended = EndRun {
        pending_tool_call_ids: calls(&["c1"]),
        ..finished(vec![calling("a1", &["c1", "c2"]), answering("m2", "c2", "two")])
    };
    end(sqlite, &run, ended);
}

#[test]
fn unknown_messages_continue_the_stored_history() {
    let sqlite = three_turns();
    let run = begun(&sqlite, begin("r4", vec![user("u4")]));
    assert_eq!(ids(&run.model_input), ["u1", "a1", "u2", "a2", "u3", "a3", "u4"]);
    assert_eq!(visible(&sqlite), ["u1", "a1", "u2", "a2", "u3", "a3", "u4"]);
}

#[test]
fn no_messages_at_all_answer_the_stored_history() {
    let sqlite = three_turns();
    let run = begun(&sqlite, begin("r4", Vec::new()));
    assert_eq!(ids(&run.model_input), ["u1", "a1", "u2", "a2", "u3", "a3"]);
    end(&sqlite, &run, finished(vec![assistant("a4")]));
    assert_eq!(visible(&sqlite), ["u1", "a1", "u2", "a2", "u3", "a3", "a4"]);
}

#[test]
fn the_window_cuts_the_stored_history_and_never_the_incoming_messages() {
    let sqlite = three_turns();
    let window = |last_messages, incoming: Vec<_>| {
        let begin = BeginRun {
            last_messages,
            read_only: true,
            ..begin("r4", incoming)
        };
        begun(&sqlite, begin)
            .model_input
            .iter()
            .map(|message| message.id.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        window(3, vec![user("u4"), user("u5")]),
        ["a2", "u3", "a3", "u4", "u5"]
    );
    assert_eq!(window(0, vec![user("u4")]), ["u4"]);
    assert_eq!(window(0, Vec::new()), Vec::<String>::new());
    // Shared: what the list leaves of the window is filled with what is older than the list.
    let list = vec![user("u3"), assistant("a3"), user("u4")];
    assert_eq!(window(5, list.clone()), ["u2", "a2", "u3", "a3", "u4"]);
    assert_eq!(window(2, list), ["u3", "a3", "u4"]);
}

#[test]
fn the_whole_history_sent_again_stores_only_what_is_new() {
    let sqlite = three_turns();
    let mut list: Vec<_> = ["1", "2", "3"]
        .iter()
        .flat_map(|turn| [user(&format!("u{turn}")), assistant(&format!("a{turn}"))])
        .collect();
    list.push(user("u4"));
    let run = begun(&sqlite, begin("r4", list.clone()));
    assert_eq!(run.model_input, list);
    assert_eq!(visible(&sqlite), ["u1", "a1", "u2", "a2", "u3", "a3", "u4"]);
    assert_eq!(hidden(&sqlite), Vec::<String>::new());
}

#[test]
fn an_edited_message_hides_what_came_after_the_last_shared_one() {
    let sqlite = three_turns();
    let edited = run(
        &sqlite,
        "r4",
        vec![user("u1"), assistant("a1"), user("edit")],
        vec![assistant("a4")],
    );
    assert_eq!(ids(&edited.model_input), ["u1", "a1", "edit"]);
    assert_eq!(visible(&sqlite), ["u1", "a1", "edit", "a4"]);
    assert_eq!(hidden(&sqlite), ["u2", "a2", "u3", "a3"]);
    assert_eq!(
        texts(
            &sqlite,
            "SELECT DISTINCT superseded_by FROM messages WHERE superseded_by IS NOT NULL"
        ),
        ["r4"]
    );
    // What is hidden is not read either.
    let next = begun(&sqlite, begin("r5", vec![user("u5")]));
    assert_eq!(ids(&next.model_input), ["u1", "a1", "edit", "a4", "u5"]);
}

#[test]
fn a_regenerated_answer_hides_the_one_before() {
    let sqlite = three_turns();
    let list = vec![
        user("u1"),
        assistant("a1"),
        user("u2"),
        assistant("a2"),
        user("u3"),
    ];
    run(&sqlite, "r4", list, vec![assistant("a3-again")]);
    assert_eq!(visible(&sqlite), ["u1", "a1", "u2", "a2", "u3", "a3-again"]);
    assert_eq!(hidden(&sqlite), ["a3"]);
}

#[test]
fn a_superseded_message_counts_as_stored_and_is_visible_again_when_listed() {
    let sqlite = three_turns();
    run(
        &sqlite,
        "r4",
        vec![user("u1"), assistant("a1"), user("edit")],
        vec![assistant("a4")],
    );
    let back = vec![user("u2"), assistant("a2"), user("u5")];
    let run = begun(&sqlite, begin("r5", back));
    assert_eq!(ids(&run.model_input), ["u1", "a1", "u2", "a2", "u5"]);
    assert_eq!(visible(&sqlite), ["u1", "a1", "u2", "a2", "u5"]);
    assert_eq!(hidden(&sqlite), ["u3", "a3", "edit", "a4"]);
}

#[test]
fn new_messages_before_the_last_shared_one_are_used_once_and_not_stored() {
    let sqlite = three_turns();
    let list = vec![user("u2"), user("aside"), assistant("a2"), user("u4")];
    let run = begun(&sqlite, begin("r4", list));
    assert_eq!(ids(&run.model_input), ["u1", "a1", "u2", "aside", "a2", "u4"]);
    assert_eq!(visible(&sqlite), ["u1", "a1", "u2", "a2", "u4"]);
}

#[test]
fn equal_text_under_a_new_id_is_a_new_message() {
    let sqlite = Sqlite::new();
    run(
        &sqlite,
        "r1",
        vec![user_saying("u1", "yes")],
        vec![assistant("a1")],
    );
    let run = begun(&sqlite, begin("r2", vec![user_saying("u2", "yes")]));
    assert_eq!(ids(&run.model_input), ["u1", "a1", "u2"]);
}

#[test]
fn a_resend_replaces_user_content_only() {
    let sqlite = Sqlite::new();
    let produced = vec![
        calling("a1", &["c1"]),
        answering("m1", "c1", "first"),
        assistant("a2"),
    ];
    run(&sqlite, "r1", vec![user_saying("u1", "old")], produced.clone());
    let forged = vec![
        user_saying("u1", "new"),
        message(json!({"id": "a1", "role": "assistant", "content": "forged"})),
        answering("m1", "c1", "forged"),
        user_saying("a2", "forged"),
        user("u2"),
    ];
    let run = begun(&sqlite, begin("r2", forged));
    let expected: Vec<_> = [vec![user_saying("u1", "new")], produced, vec![user("u2")]].concat();
    assert_eq!(run.model_input, expected);
    let next = begun(&sqlite, begin("r3", Vec::new()));
    assert_eq!(next.model_input, expected);
}

#[test]
fn the_first_result_of_a_call_wins_whatever_id_a_resend_has() {
    let sqlite = Sqlite::new();
    let produced = vec![calling("a1", &["c1"]), answering("m1", "c1", "first")];
    run(&sqlite, "r1", vec![user("u1")], produced.clone());
    let list = vec![
        user("u1"),
        calling("a1", &["c1"]),
        answering("other", "c1", "second"),
        user("u2"),
    ];
    let run = begun(&sqlite, begin("r2", list));
    assert_eq!(
        run.model_input,
        [vec![user("u1")], produced, vec![user("u2")]].concat()
    );
    assert_eq!(visible(&sqlite), ["u1", "a1", "m1", "u2"]);
    assert_eq!(hidden(&sqlite), Vec::<String>::new());
}

#[test]
fn a_result_is_kept_when_its_id_is_taken_by_another_message() {
    let sqlite = Sqlite::new();
    pending_turn(&sqlite);
    let run = begun(&sqlite, begin("r2", vec![answering("m2", "c1", "one")]));
    assert_eq!(ids(&run.model_input), ["u1", "a1", "m2", "m2"]);
    assert_eq!(visible(&sqlite), ["u1", "a1", "m2", "m2#c1"]);
    let next = begun(&sqlite, begin("r3", Vec::new()));
    assert_eq!(next.model_input[3], answering("m2#c1", "c1", "one"));
    assert_eq!(next.pending_tool_call_ids, []);
}

#[test]
fn concurrent_runs_stay_paired() {
    let sqlite = Sqlite::new();
    let first = begun(&sqlite, begin("r1", vec![user("u1")]));
    let second = begun(&sqlite, begin("r2", vec![user("u2")]));
    assert_eq!(ids(&second.model_input), ["u1", "u2"]);
    end(&sqlite, &second, finished(vec![assistant("a2")]));
    end(&sqlite, &first, finished(vec![assistant("a1")]));
    assert_eq!(visible(&sqlite), ["u1", "a1", "u2", "a2"]);
}

#[test]
fn messages_of_a_live_run_are_not_superseded() {
    let sqlite = three_turns();
    let live = begun(&sqlite, begin("live", vec![user("u4")]));
    let edit = || vec![user("u1"), assistant("a1"), user("edit")];
    begun(&sqlite, begin("r5", edit()));
    assert_eq!(visible(&sqlite), ["u1", "a1", "u4", "edit"]);
    end(&sqlite, &live, finished(vec![assistant("a4")]));
    assert_eq!(visible(&sqlite), ["u1", "a1", "u4", "a4", "edit"]);
}

#[test]
fn a_run_whose_user_message_was_superseded_stores_its_output_superseded() {
    let sqlite = three_turns();
    let lost = begun(&sqlite, begin("lost", vec![user("u4")]));
    let later = BeginRun {
        now_ms: START_MS + RUN_MS,
        deadline_ms: START_MS + 2 * RUN_MS,
        ..begin("r5", vec![user("u1"), assistant("a1"), user("edit")])
    };
    begun(&sqlite, later);
    assert_eq!(visible(&sqlite), ["u1", "a1", "edit"]);
    end(&sqlite, &lost, finished(vec![assistant("a4")]));
    assert_eq!(visible(&sqlite), ["u1", "a1", "edit"]);
    assert_eq!(hidden(&sqlite), ["u2", "a2", "u3", "a3", "u4", "a4"]);
}

#[test]
fn system_and_developer_messages_are_never_stored() {
    let sqlite = Sqlite::new();
    let list = vec![
        message(json!({"id": "s", "role": "system", "content": "be kind"})),
        message(json!({"id": "d", "role": "developer", "content": "be brief"})),
        user("u1"),
    ];
    let run = begun(&sqlite, begin("r1", list.clone()));
    assert_eq!(run.model_input, list);
    assert_eq!(visible(&sqlite), ["u1"]);
}

#[test]
fn activity_and_reasoning_are_stored_and_not_part_of_the_window() {
    let sqlite = Sqlite::new();
    let list = vec![
        user("u1"),
        message(json!({"id": "x", "role": "activity", "activityType": "plan", "content": {"n": 1.0}})),
        message(json!({"id": "r", "role": "reasoning", "content": "hm"})),
    ];
    run(&sqlite, "r1", list, vec![assistant("a1")]);
    assert_eq!(visible(&sqlite), ["u1", "x", "r", "a1"]);
    let windowed = BeginRun {
        last_messages: 2,
        ..begin("r2", vec![user("u2")])
    };
    assert_eq!(ids(&begun(&sqlite, windowed).model_input), ["u1", "a1", "u2"]);
}

#[test]
fn a_window_never_starts_inside_a_tool_exchange() {
    let sqlite = Sqlite::new();
    let produced = vec![
        calling("a1", &["c1", "c2"]),
        answering("m1", "c1", "one"),
        answering("m2", "c2", "two"),
        assistant("a2"),
    ];
    run(&sqlite, "r1", vec![user("u1")], produced);
    for (last_messages, expected) in [
        (4, vec!["a1", "m1", "m2", "a2"]),
        (3, vec!["a2"]),
        (2, vec!["a2"]),
        (1, vec!["a2"]),
    ] {
        let windowed = BeginRun {
            last_messages,
            read_only: true,
            ..begin("r2", Vec::new())
        };
        assert_eq!(
            ids(&begun(&sqlite, windowed).model_input),
            expected,
            "{last_messages}"
        );
    }
}

#[test]
fn a_pending_call_is_completed_by_the_next_runs_message() {
    let sqlite = Sqlite::new();
    pending_turn(&sqlite);
    let idle = BeginRun {
        read_only: true,
        ..begin("peek", Vec::new())
    };
    assert_eq!(begun(&sqlite, idle.clone()).pending_tool_call_ids, calls(&["c1"]));
    let run = begun(&sqlite, begin("r2", vec![answering("m1", "c1", "one")]));
    assert_eq!(ids(&run.model_input), ["u1", "a1", "m2", "m1"]);
    assert_eq!(run.pending_tool_call_ids, []);
    // Also when that run fails.
    let failed = EndRun {
        status: io_bridge::store::RunStatus::Failed,
        ..finished(Vec::new())
    };
    end(&sqlite, &run, failed);
    let after = begun(&sqlite, idle);
    assert_eq!(ids(&after.model_input), ["u1", "a1", "m2", "m1"]);
    assert_eq!(after.pending_tool_call_ids, []);
}

#[test]
fn a_call_stays_pending_while_others_are_answered() {
    let sqlite = Sqlite::new();
    let run = begun(&sqlite, begin("r1", vec![user("u1")]));
    let ended = EndRun {
        pending_tool_call_ids: calls(&["c1", "c2"]),
        ..finished(vec![calling("a1", &["c1", "c2"])])
    };
    end(&sqlite, &run, ended);
    let second = begun(&sqlite, begin("r2", vec![answering("m2", "c2", "two")]));
    assert_eq!(second.pending_tool_call_ids, calls(&["c1"]));
}

#[test]
fn a_pending_call_is_completed_wherever_its_result_stands_in_the_list() {
    let sqlite = Sqlite::new();
    pending_turn(&sqlite);
    let list = vec![
        user("u1"),
        calling("a1", &["c1", "c2"]),
        answering("m1", "c1", "one"),
        answering("m2", "c2", "two"),
    ];
    let run = begun(&sqlite, begin("r2", list));
    assert_eq!(ids(&run.model_input), ["u1", "a1", "m1", "m2"]);
    assert_eq!(run.pending_tool_call_ids, []);
    assert_eq!(visible(&sqlite), ["u1", "a1", "m2", "m1"]);
}

#[test]
fn the_window_reaches_back_to_the_call_an_incoming_message_answers() {
    let sqlite = Sqlite::new();
    pending_turn(&sqlite);
    run(&sqlite, "r2", vec![user("u2")], vec![assistant("a2")]);
    for last_messages in [0, 1, 3] {
        let answer = BeginRun {
            last_messages,
            read_only: true,
            ..begin("r3", vec![answering("m1", "c1", "one")])
        };
        let run = begun(&sqlite, answer);
        assert_eq!(
            ids(&run.model_input),
            ["a1", "m2", "u2", "a2", "m1"],
            "{last_messages}"
        );
        assert_eq!(run.pending_tool_call_ids, []);
    }
}

#[test]
fn the_retry_of_a_result_continues_from_the_same_place() {
    let sqlite = Sqlite::new();
    pending_turn(&sqlite);
    run(
        &sqlite,
        "r2",
        vec![answering("m1", "c1", "one")],
        vec![assistant("a2")],
    );
    // The client lost the answer and sends the result again, under another id.
    let retried = begun(&sqlite, begin("r3", vec![answering("again", "c1", "other")]));
    assert_eq!(ids(&retried.model_input), ["u1", "a1", "m2", "m1"]);
    end(&sqlite, &retried, finished(vec![assistant("a3")]));
    assert_eq!(visible(&sqlite), ["u1", "a1", "m2", "m1", "a3"]);
    assert_eq!(hidden(&sqlite), ["a2"]);
}

#[test]
fn ids_of_one_thread_mean_nothing_in_another() {
    let sqlite = three_turns();
    let elsewhere = BeginRun {
        thread_id: io_bridge::protocol::id::ThreadId::new("t2"),
        ..begin("r4", vec![user("u1"), answering("m1", "c1", "one")])
    };
    assert_eq!(ids(&begun(&sqlite, elsewhere).model_input), ["u1", "m1"]);
    assert_eq!(visible(&sqlite), ["u1", "a1", "u2", "a2", "u3", "a3"]);
}
