//! Every reader of bytes from outside, with what it starts from: the fixtures, the seeds below, and the inputs kept from
//! earlier searches. `tests/fuzz.rs` and `fuzz/readers.rs` take them from here.
//!
//! What a reader does follows from its bytes alone. It fails by a panic.

use std::path::{Path, PathBuf};

use futures::executor::block_on;
use io_bridge::api::body;
use io_bridge::api::jwt::key::KeySet;
use io_bridge::api::jwt::token::Token;
use io_bridge::api::jwt_rules::Algorithm;
use io_bridge::api::query::Query;
use io_bridge::api::route;
use io_bridge::api::socket::{ClientFrame, protocol_token};
use io_bridge::api::trace::Trace;
use io_bridge::binding::accept::Binding;
use io_bridge::binding::sse_decoder::{SseDecoder, SseFault};
use io_bridge::binding::{event_json, protobuf};
use io_bridge::protocol::id::{ObjectAddress, ResourceId, ThreadId, ToolCallAddress};
use io_bridge::protocol::input::RunAgentInput;
use io_bridge::protocol::json_cursor::{JsonCursor, is_json};
use io_bridge::protocol::json_text::write_text;
use io_bridge::protocol::thread::MessageForm;
use io_bridge::protocol::{json, tool_result};
use io_bridge::provider::codec;
use io_bridge::provider::mastra::threads;
use io_bridge::provider::table::Wire;
use io_bridge::store::Store;
use io_bridge::tool::address::Address;
use io_bridge::tool::http::read_answer;
use io_bridge::tool::mcp::answer::{AnswerDecoder, Incoming};
use io_bridge::tool::mcp::{McpFault, agreed_version, call_result};
use io_bridge::tool::schema::Schema;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::replay::replay;
use super::sqlite::Sqlite;

/// What a reader does with bytes.
pub type Read = Box<dyn Fn(&[u8])>;

/// One reader.
pub struct Reader {
    /// Its name, which is also that of its file of kept inputs.
    pub name: &'static str,
    /// Reads.
    pub read: Read,
    /// The fixtures and the seeds below.
    pub seeds: Vec<Vec<u8>>,
    /// Inputs found by `make fuzz-coverage` that reach what the seeds do not.
    pub kept: Vec<Vec<u8>>,
}

/// All of them.
pub fn readers() -> Vec<Reader> {
    let json = || texts(JSON_SEEDS);
    let words = || texts(TEXT_SEEDS);
    vec![
        reader(
            "run-input",
            json(),
            text(|body| drop(RunAgentInput::decode(body))),
        ),
        reader(
            "result-body",
            json(),
            text(|body| drop(tool_result::decode(body))),
        ),
        reader("json-cursor", json(), text(both_readers_of_json)),
        reader("bodies", json(), text(bodies)),
        reader(
            "provider-openai",
            sse_fixtures("openai-chat"),
            decoder(Wire::OpenAiChat),
        ),
        reader(
            "provider-openai-responses",
            sse_fixtures("openai-responses"),
            decoder(Wire::OpenAiResponses),
        ),
        reader(
            "provider-anthropic",
            sse_fixtures("anthropic"),
            decoder(Wire::Anthropic),
        ),
        reader("provider-google", sse_fixtures("google"), decoder(Wire::Google)),
        reader("provider-mastra", sse_fixtures("mastra"), decoder(Wire::Mastra)),
        reader("provider-ag-ui", sse_fixtures("ag-ui"), decoder(Wire::AgUi)),
        reader(
            "provider-workers-ai",
            sse_fixtures("openai-chat"),
            decoder(Wire::WorkersAi),
        ),
        reader("refusals", json(), Box::new(refusals)),
        reader("mastra-threads", json(), Box::new(mastra_threads)),
        reader("sse", sse_fixtures("mastra"), Box::new(sse)),
        reader("mcp-json", json(), mcp("application/json")),
        reader(
            "mcp-events",
            [sse_fixtures("ag-ui"), json()].concat(),
            mcp("text/event-stream"),
        ),
        reader("http-tool", json(), Box::new(http_tool)),
        reader("protobuf", sse_fixtures("ag-ui"), Box::new(events)),
        reader("ids", words(), text(ids)),
        reader("accept", words(), text(headers)),
        reader("query", words(), query()),
        reader("path-and-address", words(), text(path)),
        reader("schema", json(), text(schema)),
        reader("token-and-keys", [words(), json()].concat(), text(token)),
    ]
}

fn reader(name: &'static str, seeds: Vec<Vec<u8>>, read: Read) -> Reader {
    let kept = kept(name);
    Reader {
        name,
        read,
        seeds,
        kept,
    }
}

fn text(read: impl Fn(&str) + 'static) -> Read {
    Box::new(move |bytes| read(&String::from_utf8_lossy(bytes)))
}

/// What is JSON, and which, our reader and serde's say alike; and our writer of texts writes as serde's.
fn both_readers_of_json(text: &str) {
    assert_eq!(is_json(text), serde_json::from_str::<IgnoredAny>(text).is_ok());
    let mut json = JsonCursor::new(text);
    let value = json.value().ok().filter(|_| json.end().is_ok());
    assert_eq!(value, serde_json::from_str::<Value>(text).ok());
    let mut written = Vec::new();
    write_text(text, &mut written);
    assert_eq!(written, serde_json::to_vec(text).unwrap());
}

/// Cuts bytes into up to four chunks, at places that follow from the bytes.
fn chunks(bytes: &[u8]) -> Vec<&[u8]> {
    let mut hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3)
    });
    let mut chunks = Vec::new();
    let mut rest = bytes;
    for _ in 0..3 {
        let at = usize::try_from(hash % (rest.len() as u64 + 1)).unwrap();
        let (head, tail) = rest.split_at(at);
        chunks.push(head);
        (rest, hash) = (tail, hash.rotate_left(21).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    }
    chunks.push(rest);
    chunks
}

/// A body says the same however it is cut.
fn decoder(wire: Wire) -> Read {
    Box::new(move |bytes| {
        let codec = codec(wire);
        assert_eq!(
            replay(codec, chunks(bytes)),
            replay(codec, [bytes]),
            "cut or whole"
        );
    })
}

const WIRES: [Wire; 7] = [
    Wire::OpenAiChat,
    Wire::OpenAiResponses,
    Wire::Anthropic,
    Wire::Google,
    Wire::Mastra,
    Wire::AgUi,
    Wire::WorkersAi,
];

fn refusals(bytes: &[u8]) {
    for wire in WIRES {
        for status in [400, 404, 429, 500] {
            let _ = codec(wire).refusal(status, &[], bytes);
        }
    }
}

fn mastra_threads(bytes: &[u8]) {
    let _ = (threads::read_thread(bytes), threads::read_threads(bytes));
    let _ = threads::read_messages(bytes);
}

fn sse(bytes: &[u8]) {
    let read = |chunks: Vec<&[u8]>| {
        let (mut decoder, mut found) = (SseDecoder::new(4096), Vec::new());
        for chunk in chunks {
            let mut events = decoder.feed(chunk);
            while let Some(event) = events.next_event()? {
                found.push((event.name.to_owned(), event.data.into_owned()));
            }
        }
        let last = decoder.end()?;
        found.extend(last.map(|event| (event.name.to_owned(), event.data.into_owned())));
        Ok::<_, SseFault>(found)
    };
    assert_eq!(read(chunks(bytes)), read(vec![bytes]), "cut or whole");
}

fn mcp(content_type: &'static str) -> Read {
    let read = move |chunks: Vec<&[u8]>| {
        let mut messages = Vec::<Incoming>::new();
        let mut decoder = AnswerDecoder::new(Some(content_type), 64 * 1024)?;
        for chunk in chunks {
            decoder.feed(chunk, &mut messages)?;
        }
        decoder.end(&mut messages)?;
        Ok::<_, McpFault>(messages)
    };
    Box::new(move |bytes| {
        assert_eq!(read(chunks(bytes)), read(vec![bytes]), "cut or whole");
        if let Ok(value) = serde_json::from_slice(bytes) {
            let _ = (agreed_version(&value), call_result(&value));
        }
    })
}

fn http_tool(bytes: &[u8]) {
    for content_type in ["application/json", "text/plain", "text/html; charset=x"] {
        let _ = read_answer(Some(content_type), bytes.to_vec());
    }
}

fn events(bytes: &[u8]) {
    let _ = (protobuf::from_sse(bytes), event_json::decode(bytes));
}

fn bodies(text: &str) {
    let _ = (
        body::new_thread(text),
        body::thread_patch(text),
        body::resource(text),
    );
    let _ = body::confirmed_erasure(text, &ResourceId::new("ada"));
    let _ = ClientFrame::read(text);
}

/// Each address has one name.
fn ids(id: &str) {
    if let Some(address) = ToolCallAddress::parse(id) {
        assert_eq!(address.to_id().as_str(), id);
    }
    if let Some(object) = ObjectAddress::from_base64url(id) {
        assert_eq!(object.to_base64url(), id);
    }
    if let Some(object) = ObjectAddress::from_hex(id) {
        assert_eq!(object.to_hex(), id.to_ascii_lowercase());
    }
}

fn headers(text: &str) {
    let _ = (Binding::from_accept(Some(text)), Trace::parse(text));
    let _ = (
        body::check_content_type(Some(text)),
        body::check_content_length(Some(text), 9),
    );
}

/// Query parameters, and the cursors in them as the store reads them.
fn query() -> Read {
    let sqlite = Sqlite::new();
    text(move |text| {
        let query = Query::parse(text);
        let _ = (query.resource(), query.agent(), query.thread_export());
        let _ = (query.run_events(), query.run_address(), query.deep_health());
        let _ = query.message_list(ThreadId::new("t"), MessageForm::Mastra);
        if let Ok(request) = query.thread_list(ResourceId::new("ada")) {
            let _ = block_on(Store::new(&sqlite).list_threads(&request));
        }
    })
}

fn schema(text: &str) {
    let Ok(value) = json::parse(text) else {
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
    if let Some(address) = Address::parse(text) {
        let _ = (address.is_private(), address.resolve(text));
    }
    let _ = protocol_token(Some(text));
}

fn token(text: &str) {
    let _ = (Token::parse(text, Algorithm::ALL), KeySet::from_jwks(text));
    let _ = KeySet::from_secret(text, &[Algorithm::Rs256]);
}

const JSON_SEEDS: &[&str] = &[
    r##"{"threadId":"t","runId":"r","messages":[{"id":"m","role":"user","content":[{"type":"text","text":"Hi"},{"type":"image","source":{"type":"url","value":"https://a.test/a.png"}}]},{"id":"a","role":"assistant","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{\"x\":1.0}"}}]},{"id":"t","role":"tool","toolCallId":"c","content":"ok"}],"tools":[{"name":"f","description":"d","parameters":{"type":"object"}}],"context":[{"description":"d","value":"v"}],"state":{},"forwardedProps":{"resourceId":"ada","modelSettings":{"temperature":0.5,"maxTokens":7},"structuredOutput":{"schema":{}},"toolChoice":"auto"},"protocolVersion":"1.0"}"##,
    r#"{"result":{"content":[{"type":"text","text":"x"}],"structuredContent":{},"isError":false}}"#,
    r#"{"error":"no"}"#,
    r#"{"error":{"message":"m","type":"t","code":"context_length_exceeded","param":null}}"#,
    r#"{"type":"TOOL_RESULT","toolCallId":"tc_1","result":{"a":1.0},"isError":true}"#,
    r#"{"threadId":"t","resourceId":"ada","title":"T","metadata":{"a":1},"confirm":"ada"}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"content":[{"type":"text","text":"x"}],"tools":[{"name":"f","inputSchema":{}}]}}"#,
    r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/b"}},"$defs":{"b":{"anyOf":[{"type":"integer","minimum":1,"multipleOf":0.1},{"enum":["x",1.0]},{"type":"array","uniqueItems":true,"contains":{}}]}},"required":["a"]}"##,
    r#"{"keys":[{"kty":"EC","crv":"P-256","x":"x","y":"y","kid":"k"},{"kty":"RSA","n":"AQAB","e":"AQAB"}]}"#,
    r#"{"threads":[{"id":"t","resourceId":"ada","title":"T","createdAt":"2026-01-02T03:04:05.006Z","updatedAt":"2026-01-02T03:04:05.006Z","metadata":{}}],"total":1,"hasMore":false}"#,
    r#"{"messages":[{"id":"m","role":"assistant","createdAt":"2026-01-02T03:04:05.006Z","threadId":"t","content":{"format":2,"parts":[{"type":"text","text":"x"},{"type":"tool-invocation","toolInvocation":{"state":"result","toolCallId":"c","toolName":"f","args":{},"result":1}}]}}],"total":1,"hasMore":false}"#,
];

const TEXT_SEEDS: &[&str] = &[
    "limit=10&offset=2&orderBy=updatedAt&direction=DESC&cursor=MTIz&q=a%20b&format=ag-ui&superseded=true&after=3&generation=0",
    "resourceId=ada&page=1&perPage=5&address=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    "application/vnd.ag-ui.event+proto;q=0.9, text/event-stream, */*;q=0.1",
    "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "tc_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA_1z",
    "/io-bridge/runs/a%2Fb/tool-calls/tc_1/result",
    "https://user@[::1]:8080/a/../b?c#d",
    "eyJhbGciOiJFUzI1NiIsImtpZCI6ImsifQ.eyJpc3MiOiJpIiwiZXhwIjoxfQ.AAAA",
    "bearer, eyJ.eyJ.AA",
];

fn texts(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}

/// The project's folder, from here and from `fuzz/`.
fn fixtures() -> PathBuf {
    let from = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = from.ancestors().map(|folder| folder.join("tests/fixtures"));
    folders.into_iter().find(|folder| folder.is_dir()).unwrap()
}

fn sse_fixtures(folder: &str) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(fixtures().join("providers").join(folder)).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|kind| kind == "sse"));
    files.sort();
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

/// One in a line, all but printable ASCII, and the backslash, as `\xNN`.
fn kept(name: &str) -> Vec<Vec<u8>> {
    let file = fixtures().join("fuzz").join(format!("{name}.txt"));
    let Ok(text) = std::fs::read_to_string(file) else {
        return Vec::new();
    };
    text.lines().map(unescaped).collect()
}

fn unescaped(line: &str) -> Vec<u8> {
    let mut pieces = line.split("\\x");
    let mut bytes = pieces.next().unwrap_or_default().as_bytes().to_vec();
    for piece in pieces {
        let (code, rest) = piece.split_at(2);
        bytes.push(u8::from_str_radix(code, 16).unwrap());
        bytes.extend(rest.bytes());
    }
    bytes
}
