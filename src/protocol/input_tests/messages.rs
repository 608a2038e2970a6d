use super::*;
use crate::protocol::id::ToolCallId;
use crate::protocol::message::ContentPart;
use crate::protocol::read;
use crate::protocol::tool::ToolCall;

#[test]
fn every_role_is_taken_with_its_extras() {
    let messages = r#"[{"id":"u","role":"user","content":[{"type":"text","text":"a","id":"p","metadata":1},{"type":"image","source":{"type":"url","value":"https://x.test/a.png"}},{"type":"audio","source":{"type":"data","value":"AA==","mimeType":"audio/wav"},"metadata":[null]},{"type":"document","source":{"type":"file","value":"f1","provider":"openai"}}],"name":"Ada","encryptedValue":"e","metadata":{"n":1.0},"subagentRunId":"s"},{"id":"a","role":"assistant","content":"yes","toolCalls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{"},"encryptedValue":"e"}]},{"id":"s","role":"system","content":"be kind"},{"id":"d","role":"developer","content":"be brief"},{"id":"t","role":"tool","toolCallId":"c","content":[{"type":"text","text":"ok"}],"error":"no","encryptedValue":"z"},{"id":"x","role":"activity","activityType":"plan","content":{"big":12345678901234567890123}},{"id":"r","role":"reasoning","content":"hm","encryptedValue":"z"}]"#;
    let decoded = decode(&format!(r#"{{"threadId":"","runId":"r","messages":{messages}}}"#));
    assert_eq!(decoded.warnings, Vec::new());
    assert_eq!(serde_json::to_string(&decoded.input.messages).unwrap(), messages);
    assert_eq!(decoded.input.thread_id, ThreadId::new(""));
}

#[test]
fn unknown_union_members_go_alone_or_take_their_container_along() {
    let decoded = decode_with(json!({"messages": [
        {"id": 7, "role": "critic"},
        {"id": "u", "role": "user", "content": [
            {"type": "hologram"},
            {"type": "image", "source": {"type": "blockchain"}},
            {"type": "text", "text": "left"}]},
        {"id": "a", "role": "assistant", "toolCalls": [{"type": "custom", "id": 7}]},
    ]}));
    assert_eq!(
        warnings_of(&decoded),
        [
            ("/messages/0/role", "is not a known role; the message was ignored"),
            (
                "/messages/1/content/0/type",
                "is not a known kind of part; the part was ignored"
            ),
            (
                "/messages/1/content/1/source/type",
                "is not a known kind of source; the part was ignored"
            ),
            (
                "/messages/2/toolCalls/0/type",
                "is not a known kind of call; the call was ignored"
            ),
        ]
    );
    let left: Vec<ContentPart> = read::from_text(r#"[{"type": "text", "text": "left"}]"#).unwrap();
    assert_eq!(
        decoded.input.messages,
        [
            user("u", Content::Parts(left)),
            Message::assistant(MessageId::new("a"), None, Vec::new()),
        ]
    );
}

#[test]
fn binary_parts_of_older_clients_become_media() {
    let decoded = decode_with(json!({"messages": [{"id": "u", "role": "user", "content": [
        {"type": "binary", "mimeType": "image/png", "data": "AA==", "url": "https://x.test/", "filename": "a.png"},
        {"type": "binary", "mimeType": "audio/wav", "url": "https://x.test/"},
        {"type": "binary", "mimeType": "video/mp4", "data": "", "url": "https://x.test/"},
        {"type": "binary", "url": "https://x.test/a"},
        {"type": "binary", "mimeType": "application/pdf", "id": "f1"},
        {"type": "binary", "data": "AA=="},
        {"type": "binary", "mimeType": 7},
    ]}]}));
    let MessageBody::User { content } = &decoded.input.messages[0].body else {
        panic!()
    };
    assert_eq!(
        serde_json::to_value(content).unwrap(),
        json!([
            {"type": "image", "source": {"type": "data", "value": "AA==", "mimeType": "image/png"}, "metadata": {"filename": "a.png"}},
            {"type": "audio", "source": {"type": "url", "value": "https://x.test/", "mimeType": "audio/wav"}},
            {"type": "video", "source": {"type": "url", "value": "https://x.test/", "mimeType": "video/mp4"}},
            {"type": "document", "source": {"type": "url", "value": "https://x.test/a"}},
        ])
    );
    assert_eq!(decoded.warnings.len(), 7);
    assert_eq!(
        warnings_of(&decoded)[6].1,
        "is a binary part without usable data or url and was ignored"
    );
}

#[test]
fn a_repeated_message_id_keeps_its_place_and_takes_the_last_content() {
    let text = |text: &str| Content::Text(text.to_owned());
    let decoded = decode_with(json!({"messages": [
        {"id": "1", "role": "user", "content": "a"}, {"id": "2", "role": "user", "content": "b"},
        {"id": "1", "role": "user", "content": "c"}, {"id": "1", "role": "user", "content": "d"}]}));
    assert_eq!(
        decoded.input.messages,
        [user("1", text("d")), user("2", text("b"))]
    );
    let replaced = "has the id of an earlier message and replaced it";
    assert_eq!(
        warnings_of(&decoded),
        [("/messages/2", replaced), ("/messages/3", replaced)]
    );
}

#[test]
fn a_full_call_is_taken_apart() {
    let call = json!({"id": "c", "type": "function", "function": {"name": "f", "arguments": "not json"},
        "encryptedValue": "e", "metadata": {}});
    let decoded = decode_with(
        json!({"messages": [{"id": "a", "role": "assistant", "content": "", "toolCalls": [call]}]}),
    );
    let call = ToolCall {
        id: ToolCallId::new("c"),
        name: "f".to_owned(),
        arguments: "not json".to_owned(),
        encrypted_value: Some("e".to_owned()),
    };
    let message = Message::assistant(MessageId::new("a"), Some(String::new()), vec![call]);
    assert_eq!(decoded.input.messages, [message]);
}
