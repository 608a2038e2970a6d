//! Pages of a thread's messages in both forms (contract 4, D19).

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test stops at the first surprise"
)]

#[path = "support/chat.rs"]
#[expect(dead_code, reason = "shared with other test crates")]
mod chat;
#[path = "support/sqlite.rs"]
#[expect(dead_code, reason = "shared with other test crates")]
mod sqlite;

use chat::*;
use futures::executor::block_on;
use io_bridge::protocol::id::{ResourceId, ThreadId};
use io_bridge::protocol::message::Message;
use io_bridge::protocol::thread::{MessageForm, MessageListRequest, Page};
use io_bridge::store::{EndRun, Lookup, Store};
use serde_json::{Value, json};
use sqlite::Sqlite;

fn request(form: MessageForm) -> MessageListRequest {
    MessageListRequest {
        thread_id: ThreadId::new("t"),
        limit: 100,
        offset: 0,
        form,
        with_superseded: false,
    }
}

fn page(sqlite: &Sqlite, request: &MessageListRequest) -> Page<Value> {
    match block_on(Store::new(sqlite).messages(request, Some(&ResourceId::new(OWNER)))).unwrap() {
        Lookup::Found(page) => page,
        other => panic!("{other:?}"),
    }
}

fn row_ids(page: &Page<Value>) -> Vec<&str> {
    page.items.iter().map(|row| row["id"].as_str().unwrap()).collect()
}

/// Five turns of a question and an answer with a call.
fn five_turns() -> Sqlite {
    let sqlite = Sqlite::new();
    for turn in 1..=5 {
        let produced = vec![
            calling(&format!("a{turn}"), &[&format!("c{turn}")]),
            answering(&format!("m{turn}"), &format!("c{turn}"), "{\"ok\":true}"),
            assistant(&format!("b{turn}")),
        ];
        run(
            &sqlite,
            &format!("r{turn}"),
            vec![user(&format!("u{turn}"))],
            produced,
        );
    }
    sqlite
}

#[test]
fn ag_ui_messages_come_as_they_were_streamed() {
    let sqlite = Sqlite::new();
    let activity =
        message(json!({"id": "x", "role": "activity", "activityType": "p", "content": {"n": 1.0}}));
    let reasoning = message(json!({"id": "h", "role": "reasoning", "content": "hm"}));
    let incoming = vec![user("u1"), activity, reasoning];
    let produced = vec![
        calling("a1", &["c1", "c2"]),
        answering("m2", "c2", "two"),
        answering("m1", "c1", "one"),
        assistant("a2"),
    ];
    run(&sqlite, "r1", incoming.clone(), produced.clone());
    let expected: Vec<Value> = [incoming, produced]
        .concat()
        .iter()
        .map(|message| json!(message))
        .collect();
    assert_eq!(
        page(&sqlite, &request(MessageForm::AgUi)),
        Page {
            items: expected,
            total: 7,
            has_more: false,
            next_cursor: None
        }
    );
}

#[test]
fn pages_count_from_the_newest_and_come_oldest_first() {
    let sqlite = five_turns();
    let ag_ui = |limit, offset| {
        let request = MessageListRequest {
            limit,
            offset,
            ..request(MessageForm::AgUi)
        };
        let page = page(&sqlite, &request);
        let ids: Vec<String> = row_ids(&page).into_iter().map(str::to_owned).collect();
        (ids.join(" "), page.total, page.has_more)
    };
    assert_eq!(ag_ui(3, 0), ("a5 m5 b5".to_owned(), 20, true));
    assert_eq!(ag_ui(3, 3), ("m4 b4 u5".to_owned(), 20, true));
    assert_eq!(ag_ui(3, 17), ("u1 a1 m1".to_owned(), 20, false));
    assert_eq!(ag_ui(3, 18), ("u1 a1".to_owned(), 20, false));
    assert_eq!(ag_ui(3, 20), (String::new(), 20, false));
}

#[test]
fn mastra_pages_count_rows_of_their_own_form() {
    let sqlite = five_turns();
    let mastra = |limit, offset| {
        let request = MessageListRequest {
            limit,
            offset,
            ..request(MessageForm::Mastra)
        };
        let page = page(&sqlite, &request);
        let ids: Vec<String> = row_ids(&page).into_iter().map(str::to_owned).collect();
        (ids.join(" "), page.total, page.has_more)
    };
    assert_eq!(mastra(100, 0).0, "u1 a1 u2 a2 u3 a3 u4 a4 u5 a5");
    assert_eq!(mastra(3, 0), ("a4 u5 a5".to_owned(), 10, true));
    assert_eq!(mastra(3, 3), ("u3 a3 u4".to_owned(), 10, true));
    assert_eq!(mastra(3, 9), ("u1".to_owned(), 10, false));
    assert_eq!(mastra(3, 10), (String::new(), 10, false));
}

#[test]
fn a_mastra_page_reads_the_messages_of_its_rows_only() {
    let sqlite = five_turns();
    sqlite.take_counts();
    page(
        &sqlite,
        &MessageListRequest {
            limit: 2,
            ..request(MessageForm::Mastra)
        },
    );
    // The thread, the total, and u5 a5 m5 b5.
    assert_eq!(sqlite.take_counts(), (1, 3, 6));
}

#[test]
fn counting_rows_reads_an_index_and_no_message() {
    let sqlite = five_turns();
    for form in [MessageForm::AgUi, MessageForm::Mastra] {
        sqlite.take_plan();
        page(
            &sqlite,
            &MessageListRequest {
                limit: 2,
                ..request(form)
            },
        );
        let plan = sqlite.take_plan();
        let reads = |kind: &str| {
            let step = format!("SEARCH m USING {kind} messages_visible (resource_id=? AND thread_id=?");
            plan.iter().filter(|found| found.starts_with(&step)).count()
        };
        let counting = match form {
            MessageForm::AgUi => 1,
            // Once for the total, once for the bounds of the page.
            MessageForm::Mastra => 2,
        };
        assert_eq!(
            (reads("COVERING INDEX"), reads("INDEX")),
            (counting, 1),
            "{plan:#?}"
        );
    }
}

#[test]
fn pending_calls_wait_and_their_results_are_found_behind_later_turns() {
    let sqlite = Sqlite::new();
    let first = begun(&sqlite, begin("r1", vec![user("u1")]));
    let ended = EndRun {
        pending_tool_call_ids: calls(&["c1"]),
        ..finished(vec![calling("a1", &["c1", "c2"])])
    };
    end(&sqlite, &first, ended);
    run(&sqlite, "r2", vec![user("u2")], vec![assistant("a2")]);
    let invocations = || {
        let page = page(
            &sqlite,
            &MessageListRequest {
                limit: 3,
                ..request(MessageForm::Mastra)
            },
        );
        assert_eq!(row_ids(&page)[0], "a1");
        let parts = page.items[0]["content"]["parts"].clone();
        let parts = parts.as_array().unwrap().clone();
        parts
            .iter()
            .map(|part| {
                let invocation = &part["toolInvocation"];
                json!([
                    invocation["toolCallId"],
                    invocation["state"],
                    invocation["result"]
                ])
            })
            .collect::<Value>()
    };
    let interrupted = json!({"error": "The call was interrupted."});
    assert_eq!(
        invocations(),
        json!([["c1", "call", null], ["c2", "result", interrupted]])
    );
    run(
        &sqlite,
        "r3",
        vec![answering("m1", "c1", "{\"n\":1.0}")],
        Vec::new(),
    );
    assert_eq!(
        invocations().to_string(),
        r#"[["c1","result",{"n":1.0}],["c2","result",{"error":"The call was interrupted."}]]"#
    );
}

#[test]
fn superseded_messages_are_shown_on_request() {
    let sqlite = Sqlite::new();
    run(&sqlite, "r1", vec![user("u1")], vec![assistant("a1")]);
    run(&sqlite, "r2", vec![user("u1")], vec![assistant("a2")]);
    for (form, hidden, all) in [
        (MessageForm::AgUi, vec!["u1", "a2"], vec!["u1", "a1", "a2"]),
        (MessageForm::Mastra, vec!["u1", "a2"], vec!["u1", "a1"]),
    ] {
        assert_eq!(row_ids(&page(&sqlite, &request(form))), hidden);
        let with_superseded = MessageListRequest {
            with_superseded: true,
            ..request(form)
        };
        let page = page(&sqlite, &with_superseded);
        assert_eq!(row_ids(&page), all);
        assert_eq!(page.total, u64::try_from(all.len()).unwrap());
    }
}

#[test]
fn a_large_message_is_read_back_whole_in_both_forms() {
    let sqlite = Sqlite::new();
    let large = "é\"".repeat(700_000);
    run(
        &sqlite,
        "r1",
        vec![user_saying("u1", &large)],
        vec![assistant("a1")],
    );
    let expected = json!([user_saying("u1", &large), assistant("a1")]);
    assert_eq!(
        Value::Array(page(&sqlite, &request(MessageForm::AgUi)).items),
        expected
    );
    let mastra = page(&sqlite, &request(MessageForm::Mastra));
    assert_eq!(mastra.items[0]["content"]["parts"][0]["text"], json!(large));
}

#[test]
fn messages_are_the_owners() {
    let sqlite = Sqlite::new();
    let store = Store::new(&sqlite);
    let read = |caller: Option<&str>| {
        let caller = caller.map(ResourceId::new);
        block_on(store.messages(&request(MessageForm::Mastra), caller.as_ref())).unwrap()
    };
    assert_eq!(read(None), Lookup::Unknown);
    run(&sqlite, "r1", vec![user("u1")], vec![assistant("a1")]);
    assert_eq!(read(Some("bob")), Lookup::Foreign);
    assert!(matches!(read(None), Lookup::Found(page) if page.items.len() == 2));
}

#[test]
fn the_ag_ui_list_sent_back_changes_nothing() {
    let sqlite = five_turns();
    let list = page(&sqlite, &request(MessageForm::AgUi)).items;
    let back: Vec<Message> = list.iter().cloned().map(message).collect();
    let run = begun(&sqlite, begin("again", back.clone()));
    assert_eq!(run.model_input, back);
    assert_eq!(page(&sqlite, &request(MessageForm::AgUi)).items, list);
}

#[test]
fn a_page_over_the_byte_limit_ends_early_and_the_next_goes_on_there() {
    let sqlite = Sqlite::new();
    let mebibyte = "x".repeat(1024 * 1024);
    for turn in 0..12 {
        let asked = user_saying(&format!("u{turn}"), &mebibyte);
        run(
            &sqlite,
            &format!("r{turn}"),
            vec![asked],
            vec![assistant(&format!("a{turn}"))],
        );
    }
    let newest: Vec<String> = (0..12)
        .flat_map(|turn| [format!("u{turn}"), format!("a{turn}")])
        .collect();
    for form in [MessageForm::AgUi, MessageForm::Mastra] {
        let (mut seen, mut pages): (Vec<String>, usize) = (Vec::new(), 0);
        loop {
            let offset = u64::try_from(seen.len()).unwrap();
            let page = page(
                &sqlite,
                &MessageListRequest {
                    offset,
                    ..request(form)
                },
            );
            let bytes: usize = page.items.iter().map(|row| row.to_string().len()).sum();
            // The mastra form says a text twice.
            let limit = if form == MessageForm::AgUi { 8 } else { 16 } * 1024 * 1024;
            assert!(bytes <= limit, "{bytes}");
            assert_eq!(page.total, 24);
            seen.splice(0..0, row_ids(&page).into_iter().map(str::to_owned));
            pages += 1;
            assert_eq!(page.has_more, seen.len() < 24);
            if !page.has_more {
                break;
            }
        }
        assert_eq!((&seen, pages), (&newest, 3), "{form:?}");
    }
}

#[test]
fn a_message_over_the_byte_limit_is_a_page_of_its_own() {
    let sqlite = Sqlite::new();
    let huge = "x".repeat(9 * 1024 * 1024);
    run(
        &sqlite,
        "r1",
        vec![user_saying("u1", &huge)],
        vec![assistant("a1")],
    );
    for form in [MessageForm::AgUi, MessageForm::Mastra] {
        let first = page(&sqlite, &request(form));
        assert_eq!(
            (row_ids(&first), first.total, first.has_more),
            (vec!["a1"], 2, true)
        );
        let second = page(
            &sqlite,
            &MessageListRequest {
                offset: 1,
                ..request(form)
            },
        );
        assert_eq!(
            (row_ids(&second), second.total, second.has_more),
            (vec!["u1"], 2, false)
        );
    }
}
