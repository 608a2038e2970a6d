//! Bytes from outside, changed at random: nothing panics, nothing runs without end, whatever comes in.
//!
//! Each target starts from the fixtures and the seeds below. A run of `cargo test` makes some thousand attempts;
//! `FUZZ_SECONDS=600 cargo test --release --test fuzz -- --nocapture` goes on for as long. Attempts follow from
//! `FUZZ_SEED` (default 1) and their number alone: what fails is printed and happens again.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    reason = "a test that cannot go on fails, and runs natively"
)]

#[path = "support/sqlite.rs"]
#[expect(dead_code, reason = "shared with other test crates")]
mod sqlite;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

use futures::executor::block_on;
use io_bridge::api::jwt::key::KeySet;
use io_bridge::api::jwt::token::Token;
use io_bridge::api::jwt_rules::Algorithm;
use io_bridge::api::query::Query;
use io_bridge::api::route;
use io_bridge::api::socket::protocol_token;
use io_bridge::binding::accept::Binding;
use io_bridge::binding::sse_decoder::SseDecoder;
use io_bridge::binding::{event_json, protobuf};
use io_bridge::protocol::id::{ObjectAddress, ResourceId, ThreadId, ToolCallAddress};
use io_bridge::protocol::input::RunAgentInput;
use io_bridge::protocol::thread::MessageForm;
use io_bridge::protocol::tool_result;
use io_bridge::provider::codec;
use io_bridge::provider::table::Wire;
use io_bridge::store::Store;
use io_bridge::tool::address::Address;
use io_bridge::tool::mcp::answer::AnswerDecoder;
use io_bridge::tool::mcp::{agreed_version, call_result};
use io_bridge::tool::schema::Schema;
use sqlite::Sqlite;

/// One attempt may take this long on a busy machine, unoptimised. What runs without end takes longer.
const ATTEMPT_MAX: Duration = Duration::from_secs(10);

/// Attempts of each target without `FUZZ_SECONDS`.
const ATTEMPTS: u64 = 400;

/// Longest input, in bytes.
const INPUT_MAX_BYTES: usize = 16 * 1024;

/// A small generator of numbers: the same ones everywhere.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut number = self.0;
        number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        number ^ (number >> 31)
    }

    fn below(&mut self, most: usize) -> usize {
        usize::try_from(self.next() % (most.max(1) as u64)).unwrap()
    }
}

/// What breaks parsers: halves of characters, escapes, edges of numbers, marks of our formats.
const PIECES: &[&[u8]] = &[
    b"\0",
    b"\r",
    b"\n\n",
    b"\r\n",
    b"\"",
    b"\\",
    b"\\u",
    b"\\ud800",
    b"\\udc00",
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"null",
    b"true",
    b"-",
    b"0",
    b"1e999",
    b"-1",
    b"18446744073709551616",
    b"0.0000001",
    b"1e-400",
    b"data:",
    b"event:",
    b"data: [DONE]",
    b"\xff",
    b"\xc3",
    b"\xf0\x9f",
    b"\xe2\x80\xa8",
    b"%",
    b"%F",
    b"%00",
    b"=",
    b"&",
    b";q=0",
    b"..",
    b"//",
    b"@",
    b"*",
    b"$ref",
    b"#",
    b"\xef\xbb\xbf",
    b"eyJ",
    b".",
    b"tc_",
];

fn mutated(dice: &mut Dice, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = corpus[dice.below(corpus.len())].clone();
    for _ in 0..=dice.below(6) {
        let at = dice.below(bytes.len() + 1);
        let end = (at + dice.below(32)).min(bytes.len());
        match dice.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
            1 => drop(bytes.splice(at..at, PIECES[dice.below(PIECES.len())].iter().copied())),
            2 => drop(bytes.drain(at..end)),
            3 => {
                let copy = bytes[at..end].to_vec();
                let times = 1 + dice.below(40);
                bytes.splice(at..at, copy.repeat(times));
            }
            4 => bytes.truncate(at),
            5 => {
                let other = &corpus[dice.below(corpus.len())];
                let from = dice.below(other.len() + 1);
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            _ => drop(bytes.splice(at..end, PIECES[dice.below(PIECES.len())].iter().copied())),
        }
        bytes.truncate(INPUT_MAX_BYTES);
    }
    bytes
}

/// Cuts bytes into two to four chunks.
fn chunks<'a>(dice: &mut Dice, bytes: &'a [u8]) -> Vec<&'a [u8]> {
    let mut cuts: Vec<usize> = (0..dice.below(4)).map(|_| dice.below(bytes.len() + 1)).collect();
    cuts.extend([0, bytes.len()]);
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

type Target = Box<dyn Fn(&[u8], &mut Dice)>;

fn text(work: impl Fn(&str) + 'static) -> Target {
    Box::new(move |bytes, _| work(&String::from_utf8_lossy(bytes)))
}

fn decoder(wire: Wire) -> Target {
    Box::new(move |bytes, dice| {
        let (mut decoder, mut events) = (codec(wire).decoder(), Vec::new());
        for chunk in chunks(dice, bytes) {
            if decoder.feed(chunk, &mut events).is_err() || decoder.is_finished() {
                return;
            }
        }
        let _ = decoder.end(&mut events);
    })
}

fn mcp(content_type: &'static str) -> Target {
    Box::new(move |bytes, dice| {
        let mut messages = Vec::new();
        let mut decoder = AnswerDecoder::new(Some(content_type), 64 * 1024).unwrap();
        for chunk in chunks(dice, bytes) {
            if decoder.feed(chunk, &mut messages).is_err() {
                return;
            }
        }
        let _ = decoder.end(&mut messages);
        if let Ok(value) = serde_json::from_slice(bytes) {
            let _ = (agreed_version(&value), call_result(&value));
        }
    })
}

fn sse() -> Target {
    Box::new(|bytes, dice| {
        let mut decoder = SseDecoder::new(4096);
        for chunk in chunks(dice, bytes) {
            let mut events = decoder.feed(chunk);
            loop {
                match events.next_event() {
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(_) => return,
                }
            }
        }
        let _ = decoder.end();
    })
}

/// Query parameters, and the cursors in them as the store reads them.
fn query() -> Target {
    let sqlite = Sqlite::new();
    text(move |text| {
        let query = Query::parse(text);
        read_all(&query);
        if let Ok(request) = query.thread_list(ResourceId::new("ada")) {
            let _ = block_on(Store::new(&sqlite).list_threads(&request));
        }
    })
}

fn read_all(query: &Query) {
    let _ = (query.resource(), query.agent(), query.thread_export());
    let _ = (query.run_events(), query.run_address());
    let _ = query.message_list(ThreadId::new("t"), MessageForm::Mastra);
}

fn schema(text: &str) {
    let Ok(value) = io_bridge::protocol::json::parse(text) else {
        return;
    };
    if let Ok(schema) = Schema::compile(&value) {
        let _ = schema.check(&value);
    }
}

fn path(text: &str) {
    for method in ["GET", "POST", "DELETE"] {
        let _ = route::resolve("/io-bridge", method, text);
    }
    let _ = (
        Address::parse(text).map(|address| (address.is_private(), address.resolve(text))),
        protocol_token(Some(text)),
    );
}

const JSON_SEEDS: &[&str] = &[
    r##"{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":[{"type":"text","text":"Hi"},{"type":"image","source":{"type":"url","value":"https://a.test/a.png"}}]},{"id":"a","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"x\":1.0}"}}]},{"id":"t","role":"tool","toolCallId":"c","content":"ok"}],"tools":[{"name":"f","description":"d","parameters":{"type":"object"}}],"context":[{"description":"d","value":"v"}],"state":{},"forwardedProps":{"resourceId":"ada","modelSettings":{"temperature":0.5,"maxTokens":7},"structuredOutput":{"schema":{}},"toolChoice":"auto"},"protocolVersion":"1.0"}"##,
    r#"{"result":{"content":[{"type":"text","text":"x"}],"structuredContent":{},"isError":false}}"#,
    r#"{"error":"no"}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"content":[{"type":"text","text":"x"}],"tools":[{"name":"f","inputSchema":{}}]}}"#,
    r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"anyOf":[{"type":"integer","minimum":1,"multipleOf":0.1},{"enum":["x",1.0]},{"type":"array","uniqueItems":true,"contains":{}}]}},"required":["a"]}"##,
    r#"{"keys":[{"kty":"EC","crv":"P-256","x":"x","y":"y","kid":"k"},{"kty":"RSA","n":"AQAB","e":"AQAB"}]}"#,
];

const TEXT_SEEDS: &[&str] = &[
    "limit=10&offset=2&orderBy=updatedAt&direction=DESC&cursor=MTIz&q=a%20b&format=ag-ui&superseded=true&after=3&generation=0",
    "resourceId=ada&page=1&perPage=5&address=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "application/vnd.ag-ui.event+proto;q=0.9, text/event-stream, */*;q=0.1",
    "tc_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA_1z",
    "/io-bridge/runs/a%2Fb/tool-calls/tc_1/result",
    "https://user@[::1]:8080/a/../b?c#d",
    "eyJhbGciOiJFUzI1NiIsImtpZCI6ImsifQ.eyJpc3MiOiJpIiwiZXhwIjoxfQ.AAAA",
    "bearer, eyJ.eyJ.AA",
];

fn corpus(folder: Option<&str>, seeds: &[&str]) -> Vec<Vec<u8>> {
    let mut corpus: Vec<Vec<u8>> = seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect();
    let Some(folder) = folder else {
        return corpus;
    };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/providers")
        .join(folder);
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    corpus.extend(
        files
            .iter()
            .filter(|file| file.extension().is_some_and(|kind| kind == "sse"))
            .map(|file| std::fs::read(file).unwrap()),
    );
    corpus
}

fn targets() -> BTreeMap<&'static str, (Target, Vec<Vec<u8>>)> {
    let json = || corpus(None, JSON_SEEDS);
    let texts = || corpus(None, TEXT_SEEDS);
    BTreeMap::from([
        (
            "run input",
            (text(|body| drop(RunAgentInput::decode(body))), json()),
        ),
        (
            "result body",
            (text(|body| drop(tool_result::decode(body))), json()),
        ),
        (
            "provider openai",
            (decoder(Wire::OpenAiChat), corpus(Some("openai-chat"), &[])),
        ),
        (
            "provider openai-responses",
            (
                decoder(Wire::OpenAiResponses),
                corpus(Some("openai-responses"), &[]),
            ),
        ),
        (
            "provider anthropic",
            (decoder(Wire::Anthropic), corpus(Some("anthropic"), &[])),
        ),
        (
            "provider google",
            (decoder(Wire::Google), corpus(Some("google"), &[])),
        ),
        (
            "provider mastra",
            (decoder(Wire::Mastra), corpus(Some("mastra"), &[])),
        ),
        (
            "provider ag-ui",
            (decoder(Wire::AgUi), corpus(Some("ag-ui"), &[])),
        ),
        (
            "provider workers-ai",
            (decoder(Wire::WorkersAi), corpus(Some("openai-chat"), &[])),
        ),
        ("sse", (sse(), corpus(Some("mastra"), &[]))),
        ("mcp json", (mcp("application/json"), json())),
        (
            "mcp events",
            (mcp("text/event-stream"), corpus(Some("ag-ui"), JSON_SEEDS)),
        ),
        (
            "protobuf",
            (
                Box::new(|bytes: &[u8], _: &mut Dice| {
                    let _ = (protobuf::from_sse(bytes), event_json::decode(bytes));
                }),
                corpus(Some("ag-ui"), &[]),
            ),
        ),
        (
            "ids",
            (
                text(|id| {
                    let _ = (
                        ToolCallAddress::parse(id),
                        ObjectAddress::from_base64url(id),
                        ObjectAddress::from_hex(id),
                    );
                }),
                texts(),
            ),
        ),
        (
            "accept",
            (
                text(|accept| {
                    let _ = Binding::from_accept(Some(accept));
                }),
                texts(),
            ),
        ),
        ("query", (query(), texts())),
        ("path and address", (text(path), texts())),
        ("schema", (text(schema), json())),
        (
            "token and keys",
            (
                text(|token| {
                    let _ = (Token::parse(token, Algorithm::ALL), KeySet::from_jwks(token));
                    let _ = KeySet::from_secret(token, &[Algorithm::Rs256]);
                }),
                [texts(), json()].concat(),
            ),
        ),
    ])
}

#[test]
fn changed_input_never_panics_and_never_runs_without_end() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("FUZZ_SEED").unwrap_or(1);
    let targets = targets();
    let time_of_each = number("FUZZ_SECONDS")
        .map(|seconds| Duration::from_secs(seconds) / u32::try_from(targets.len()).unwrap());
    for (name, (target, corpus)) in &targets {
        let started = Instant::now();
        let (mut count, mut slowest) = (0u64, Duration::ZERO);
        while time_of_each.map_or(count < ATTEMPTS, |most| started.elapsed() < most) {
            let mut dice = Dice(seed.wrapping_mul(0x1_0000_0000).wrapping_add(count));
            // The first attempts are the corpus as it is.
            let input = match corpus.get(usize::try_from(count).unwrap()) {
                Some(seed) => seed.clone(),
                None => mutated(&mut dice, corpus),
            };
            let attempt = Instant::now();
            let outcome = catch_unwind(AssertUnwindSafe(|| target(&input, &mut dice)));
            let taken = attempt.elapsed();
            let shown = String::from_utf8_lossy(&input);
            assert!(
                outcome.is_ok(),
                "{name}, seed {seed}, attempt {count} panics on {shown:?}"
            );
            assert!(
                taken < ATTEMPT_MAX,
                "{name}, seed {seed}, attempt {count} takes {taken:?} for {shown:?}"
            );
            slowest = slowest.max(taken);
            count += 1;
        }
        println!("{name:26} {count:>10} attempts, slowest {slowest:?}");
    }
}
