//! Threads that a Mastra server keeps (contract 4, 6): our ownership rule in front of one that has none, and its pages.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use futures::FutureExt;
use io_bridge::protocol::event::RunErrorCode;
use io_bridge::protocol::id::{ResourceId, ThreadId};
use io_bridge::protocol::thread::{
    MessageForm, MessageListRequest, NewThread, PageStart, ThreadListRequest, ThreadOrder, ThreadPatch,
};
use io_bridge::provider::table::Wire;
use io_bridge::provider::{HttpRequest, ModelTarget};
use io_bridge::run::halt::Halt;
use io_bridge::run::kept_threads::KeptThreads;
use io_bridge::store::Lookup;
use serde_json::{Value, json};

use crate::http::SceneHttp;
use crate::scene::{Answer, SceneClock};

/// A memory server without auth, as it is by default: whoever asks gets everything.
#[derive(Default)]
struct Memory {
    threads: BTreeMap<String, Value>,
    messages: Vec<Value>,
}

impl Memory {
    fn thread(&mut self, id: &str, owner: &str) {
        let at = "2026-11-29T00:00:00.000Z";
        let thread = json!({ "id": id, "resourceId": owner, "title": "", "metadata": null, "createdAt": at, "updatedAt": at });
        self.threads.insert(id.to_owned(), thread);
    }

    fn answer(&mut self, request: &HttpRequest) -> Answer {
        let ok = |body: Value| Answer::of(200, "application/json", body.to_string());
        let (path, query) = request.url.split_once('?').unwrap();
        let path = path
            .strip_prefix("http://memory.test/api/memory/threads")
            .unwrap();
        let parameter = |name: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs
                .find(|(key, _)| *key == name)
                .map(|(_, value)| value.to_owned())
        };
        assert_eq!(parameter("agentId").as_deref(), Some("helper"));
        let (id, rest) = path
            .trim_start_matches('/')
            .split_once('/')
            .unwrap_or((path.trim_start_matches('/'), ""));
        let page = || {
            let number = |name: &str| parameter(name).unwrap().parse::<usize>().unwrap();
            (number("page"), number("perPage"))
        };
        let body = || serde_json::from_str::<Value>(request.body.as_deref().unwrap()).unwrap();
        match (request.method, id, rest) {
            ("GET", "", "") => {
                // Not even filtered: the rule in front must not rely on it.
                let all: Vec<_> = self.threads.values().cloned().collect();
                let (page, size) = page();
                let rows: Vec<_> = all.iter().skip(page * size).take(size).cloned().collect();
                let has_more = all.len() > (page + 1) * size;
                ok(
                    json!({ "threads": rows, "total": all.len(), "page": page, "perPage": size, "hasMore": has_more }),
                )
            }
            ("POST", "", "") => {
                let body = body();
                let (id, owner) = (
                    body["threadId"].as_str().unwrap(),
                    body["resourceId"].as_str().unwrap(),
                );
                self.thread(id, owner);
                self.threads.get_mut(id).unwrap()["title"] = body["title"].clone();
                ok(self.threads[id].clone())
            }
            (_, id, _) if !self.threads.contains_key(id) => Answer::of(404, "application/json", "{}"),
            ("GET", id, "") => ok(self.threads[id].clone()),
            ("PATCH", id, "") => {
                self.threads.get_mut(id).unwrap()["title"] = body()["title"].clone();
                ok(self.threads[id].clone())
            }
            ("DELETE", id, "") => {
                self.threads.remove(id);
                ok(json!({ "result": "Thread deleted" }))
            }
            ("GET", _, "messages") => {
                let (page, size) = page();
                let newest: Vec<_> = self
                    .messages
                    .iter()
                    .rev()
                    .skip(page * size)
                    .take(size)
                    .cloned()
                    .collect();
                let oldest_first: Vec<_> = newest.into_iter().rev().collect();
                let total = self.messages.len();
                let has_more = total > (page + 1) * size;
                ok(json!({ "messages": oldest_first, "total": total, "hasMore": has_more }))
            }
            other => panic!("{other:?}"),
        }
    }
}

/// Calls the threads of a server with this content, and gives what the server holds afterwards.
fn with<T>(
    memory: &Rc<RefCell<Memory>>,
    act: impl AsyncFnOnce(&KeptThreads<'_, SceneHttp, SceneClock>) -> T,
) -> T {
    let clock = SceneClock::default();
    let server = memory.clone();
    let serve = Box::new(move |request: &HttpRequest| server.borrow_mut().answer(request));
    let http = SceneHttp::new(
        clock.clone(),
        vec![],
        vec![("http://memory.test".to_owned(), serve)],
    );
    let target = target();
    let threads = KeptThreads::new(&http, &clock, &target, 1000);
    act(&threads).now_or_never().expect("nothing to wait for")
}

fn target() -> ModelTarget {
    ModelTarget {
        wire: Wire::Mastra,
        provider: "mastra",
        base_url: "http://memory.test".to_owned(),
        api_key: None,
        model: "helper".to_owned(),
        headers: vec![],
        query: vec![],
        wants_reasoning: false,
    }
}

fn memory(threads: &[(&str, &str)]) -> Rc<RefCell<Memory>> {
    let mut memory = Memory::default();
    for (id, owner) in threads {
        memory.thread(id, owner);
    }
    Rc::new(RefCell::new(memory))
}

fn owners(memory: &Rc<RefCell<Memory>>) -> Vec<(String, String)> {
    let memory = memory.borrow();
    let pair =
        |(id, thread): (&String, &Value)| (id.clone(), thread["resourceId"].as_str().unwrap().to_owned());
    memory.threads.iter().map(pair).collect()
}

/// What became of a lookup.
fn kind<T>(found: Result<Lookup<T>, Halt>) -> &'static str {
    match found.unwrap() {
        Lookup::Found(_) => "found",
        Lookup::Foreign => "foreign",
        Lookup::Unknown => "unknown",
    }
}

fn messages(form: MessageForm, limit: u32, offset: u64) -> MessageListRequest {
    MessageListRequest {
        thread_id: ThreadId::new("t"),
        limit,
        offset,
        form,
        with_superseded: false,
    }
}

#[test]
fn a_thread_of_another_owner_is_neither_shown_nor_touched() {
    let memory = memory(&[("t", "ada")]);
    let (id, ada, bob) = (ThreadId::new("t"), ResourceId::new("ada"), ResourceId::new("bob"));
    let patch = ThreadPatch {
        title: Some("Mine".to_owned()),
        metadata: None,
    };
    let before = memory.borrow().threads.clone();
    let told = with(&memory, async |threads| {
        [
            kind(threads.thread(&id, Some(&bob)).await),
            kind(threads.update(&id, Some(&bob), &patch).await),
            kind(threads.delete(&id, Some(&bob)).await),
            kind(threads.create(&bob, &id, &NewThread::default()).await),
            kind(
                threads
                    .messages(&messages(MessageForm::Mastra, 10, 0), Some(&bob))
                    .await,
            ),
        ]
    });
    assert_eq!(told, ["foreign"; 5]);
    assert_eq!(memory.borrow().threads, before);
    let told = with(&memory, async |threads| {
        [
            // Without an owner the id is the capability (D4).
            kind(threads.thread(&id, None).await),
            kind(threads.update(&id, Some(&ada), &patch).await),
            kind(threads.create(&ada, &id, &NewThread::default()).await),
            kind(threads.delete(&id, Some(&ada)).await),
            kind(threads.delete(&id, Some(&ada)).await),
            kind(threads.create(&bob, &id, &NewThread::default()).await),
        ]
    });
    assert_eq!(told, ["found", "found", "found", "found", "unknown", "found"]);
    assert_eq!(owners(&memory), [("t".to_owned(), "bob".to_owned())]);
}

#[test]
fn a_list_has_the_owners_threads_whatever_the_server_gives() {
    let memory = memory(&[("a", "ada"), ("b", "bob"), ("c", "ada")]);
    memory.borrow_mut().threads.get_mut("c").unwrap()["title"] = json!("Große Pläne");
    let list = |search: Option<&str>| {
        let request = ThreadListRequest {
            owner: ResourceId::new("ada"),
            order: ThreadOrder::UpdatedAt,
            descending: true,
            search: search.map(str::to_owned),
            limit: 100,
            start: PageStart::Offset(0),
        };
        let page = with(&memory, async |threads| threads.list(&request).await.unwrap());
        page.items
            .iter()
            .map(|thread| thread.id.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(list(None), ["a", "c"]);
    assert_eq!(list(Some("PLÄNE")), ["c"]);
    assert_eq!(list(Some("nothing")), Vec::<String>::new());
}

#[test]
fn any_offset_and_limit_is_made_of_the_servers_pages() {
    let memory = memory(&[("t", "ada")]);
    for number in 0..250 {
        let at = format!("2026-11-29T00:{:02}:{:02}.000Z", number / 60, number % 60);
        let role = if number % 2 == 0 { "user" } else { "assistant" };
        let content = json!({ "format": 2, "parts": [{ "type": "text", "text": number.to_string() }] });
        let message =
            json!({ "id": format!("m{number}"), "role": role, "createdAt": at, "content": content });
        memory.borrow_mut().messages.push(message);
    }
    for (limit, offset, expected, has_more) in [
        (3, 0, 247..250, true),
        (3, 2, 245..248, true),
        (100, 7, 143..243, true),
        (500, 0, 0..250, false),
        (30, 240, 0..10, false),
        (10, 250, 0..0, false),
    ] {
        for form in [MessageForm::Mastra, MessageForm::AgUi] {
            let request = messages(form, limit, offset);
            let found = with(&memory, async |threads| {
                threads.messages(&request, None).await.unwrap()
            });
            let Lookup::Found(page) = found else {
                panic!("not found");
            };
            let ids: Vec<_> = page
                .items
                .iter()
                .map(|row| row["id"].as_str().unwrap().to_owned())
                .collect();
            let expected: Vec<_> = expected.clone().map(|number| format!("m{number}")).collect();
            assert_eq!(ids, expected, "{limit} {offset} {form:?}");
            assert_eq!(
                (page.total, page.has_more),
                (250, has_more),
                "{limit} {offset} {form:?}"
            );
        }
    }
}

#[test]
fn rows_are_in_the_form_both_shipped_uis_read() {
    let memory = memory(&[("t", "ada")]);
    let invocation =
        json!({ "state": "result", "toolCallId": "c", "toolName": "f", "args": {}, "result": { "ok": 1 } });
    let parts = json!([
        { "type": "step-start" },
        { "type": "text", "text": "Look." },
        { "type": "tool-invocation", "toolInvocation": invocation },
    ]);
    let at = "2026-11-29T00:00:00.000Z";
    let stored = json!({ "id": "m", "role": "assistant", "createdAt": at, "content": { "format": 2, "parts": parts } });
    memory.borrow_mut().messages.push(stored);
    let request = messages(MessageForm::Mastra, 10, 0);
    let found = with(&memory, async |threads| {
        threads.messages(&request, None).await.unwrap()
    });
    let Lookup::Found(page) = found else {
        panic!("not found");
    };
    let call = json!({ "id": "c", "type": "function", "function": { "name": "f", "arguments": "{}" } });
    let parts = json!([
        { "type": "text", "text": "Look." },
        { "type": "tool-invocation", "toolInvocation": invocation },
    ]);
    assert_eq!(
        page.items,
        [json!({
            "id": "m", "role": "assistant", "createdAt": at, "threadId": "t", "resourceId": "ada", "type": "v2",
            "content": { "format": 2, "parts": parts, "content": "Look." }, "toolCalls": [call],
        })]
    );
}

#[test]
fn an_erasure_takes_the_owners_threads_and_nobody_elses() {
    let memory = memory(&[("a", "ada"), ("b", "bob"), ("c", "ada")]);
    let ada = ResourceId::new("ada");
    assert!(with(&memory, async |threads| threads.erase(&ada).await.unwrap()));
    assert_eq!(owners(&memory), [("b".to_owned(), "bob".to_owned())]);
}

#[test]
fn a_server_that_fails_is_an_upstream_that_failed() {
    let read = |answer: Answer| {
        let clock = SceneClock::default();
        let http = SceneHttp::new(clock.clone(), vec![answer], vec![]);
        let target = target();
        let threads = KeptThreads::new(&http, &clock, &target, 1000);
        let id = ThreadId::new("t");
        let read = threads.thread(&id, None).now_or_never().expect("an answer");
        read.err().map(|halt| halt.code())
    };
    assert_eq!(
        read(Answer::of(500, "text/plain", "private")),
        Some(RunErrorCode::UpstreamError)
    );
    assert_eq!(
        read(Answer::refusal(429, &[("retry-after", "3")], "")),
        Some(RunErrorCode::UpstreamRateLimited)
    );
    assert_eq!(
        read(Answer::of(200, "text/html", "<html>")),
        Some(RunErrorCode::InvalidUpstreamResponse)
    );
    assert_eq!(
        read(Answer::pieces(vec![crate::http::Piece::Die])),
        Some(RunErrorCode::UpstreamTruncated)
    );
}
