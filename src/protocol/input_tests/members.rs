use super::*;
use crate::protocol::decode::{Issue, NOTE_MAX_COUNT};
use crate::protocol::input::ContextEntry;
use crate::protocol::message::{ContentPart, MediaPart, MediaSource};
use crate::protocol::tool::Tool;

#[test]
fn three_members_are_enough() {
    let decoded = decode(r#"{"threadId":"t","runId":"r","messages":[]}"#);
    assert_eq!(
        decoded,
        Decoded {
            input: smallest(),
            warnings: Vec::new()
        }
    );
}

#[test]
fn what_a_client_of_1_0_sends_is_taken_whole() {
    let decoded = decode(
        r#"{"threadId":"t","runId":"r","protocolVersion":"1.0","parentRunId":"p","state":{"n":1.0},
            "messages":[{"id":"u1","role":"user","content":"hi"}],
            "tools":[{"name":"open","description":"Opens","parameters":{"type":"object"},"metadata":{"k":1}},
                     {"name":"close","description":"Closes"}],
            "context":[{"description":"user","value":"Ada"}],"forwardedProps":{}}"#,
    );
    let input = RunAgentInput {
        messages: vec![user("u1", Content::Text("hi".to_owned()))],
        tools: vec![
            Tool {
                name: "open".to_owned(),
                description: "Opens".to_owned(),
                parameters: Some(json!({"type": "object"})),
            },
            Tool {
                name: "close".to_owned(),
                description: "Closes".to_owned(),
                parameters: None,
            },
        ],
        context: vec![ContextEntry {
            description: "user".to_owned(),
            value: "Ada".to_owned(),
        }],
        declares_version: true,
        state: Some(serde_json::from_str(r#"{"n":1.0}"#).unwrap()),
        ..smallest()
    };
    assert_eq!(
        decoded,
        Decoded {
            input,
            warnings: Vec::new()
        }
    );
}

#[test]
fn unknown_members_are_dropped_at_any_depth_with_a_warning() {
    let decoded = decode_with(json!({
        "extra": 1,
        "a/b~c": 2,
        "messages": [{"id": "u", "role": "user", "extra": {}, "content": [
            {"type": "image", "extra": 1, "source": {"type": "url", "value": "v", "extra": 1}}]},
            {"id": "a", "role": "assistant", "toolCalls": [{"id": "c", "type": "function", "extra": 1,
                "function": {"name": "f", "arguments": "", "extra": 1}}]},
            {"id": "t", "role": "tool", "toolCallId": "c", "content": "", "name": "not for tools"}],
        "tools": [{"name": "n", "description": "d", "extra": 1}],
        "context": [{"description": "d", "value": "v", "extra": 1}],
    }));
    assert_eq!(
        warnings_of(&decoded),
        [
            "/messages/0/content/0/source/extra",
            "/messages/0/content/0/extra",
            "/messages/0/extra",
            "/messages/1/toolCalls/0/function/extra",
            "/messages/1/toolCalls/0/extra",
            "/messages/2/name",
            "/tools/0/extra",
            "/context/0/extra",
            "/extra",
            "/a~1b~0c",
        ]
        .map(|pointer| (pointer, "is not known and was ignored"))
    );
    let roles: Vec<_> = decoded.input.messages.iter().map(Message::role).collect();
    assert_eq!(roles, ["user", "assistant", "tool"]);
}

#[test]
fn open_objects_are_never_changed_inside() {
    let open =
        r#"{"z":null,"type":"hologram","n":[1.0,1e+400,-0,12345678901234567890123],"a":{"role":"critic"}}"#;
    let body = format!(
        r#"{{"threadId":"t","runId":"r","state":{open},"tools":[{{"name":"n","description":"d","parameters":{open}}}],
        "messages":[{{"id":"x","role":"activity","activityType":"plan","content":{open},"metadata":{open}}}],
        "forwardedProps":{{"mine":{open},"structuredOutput":{{"schema":{open}}}}}}}"#
    );
    let Decoded { input, warnings } = decode(&body);
    assert_eq!(warnings, Vec::new());
    assert_eq!(input.state.unwrap().to_string(), open);
    assert_eq!(input.tools[0].parameters.as_ref().unwrap().to_string(), open);
    assert_eq!(input.forwarded_props.unknown["mine"].to_string(), open);
    assert_eq!(input.forwarded_props.output_schema.unwrap().to_string(), open);
    let MessageBody::Activity { content, .. } = &input.messages[0].body else {
        panic!()
    };
    assert_eq!(serde_json::to_string(content).unwrap(), open);
    assert_eq!(
        serde_json::to_string(&input.messages[0].extras.metadata).unwrap(),
        open
    );
}

#[test]
fn all_faults_are_named_with_their_pointers() {
    let body = r#"{"runId":"","threadId":7,"parentRunId":null,"tools":null,"context":{},"resume":[{"interruptId":1}],
        "messages":[[],{"role":"user"},{"id":"a\u0007","role":"assistant","content":1,"toolCalls":[{"id":"","function":{"name":null,"arguments":{}}}]},
            {"id":"x","content":"no role"},{"id":"t","role":"tool","content":null,"metadata":null},
            {"id":"p","role":"user","content":[{"type":"text"},{"type":"image"},{"type":"text","text":"","metadata":null}]}]}"#;
    let expected = [
        ("/threadId", "must be a string"),
        ("/runId", "must not be empty"),
        ("/messages/0", "must be an object"),
        ("/messages/1/content", "is required"),
        ("/messages/1/id", "is required"),
        ("/messages/2/content", "must be a string"),
        ("/messages/2/toolCalls/0/type", "is required"),
        ("/messages/2/toolCalls/0/id", "must not be empty"),
        ("/messages/2/toolCalls/0/function/name", "must be a string"),
        ("/messages/2/toolCalls/0/function/arguments", "must be a string"),
        ("/messages/2/id", "must not contain control characters"),
        ("/messages/3/role", "is required"),
        ("/messages/4/toolCallId", "is required"),
        ("/messages/4/content", "must be a string or an array of parts"),
        ("/messages/4/metadata", "must be an object"),
        ("/messages/5/content/0/text", "is required"),
        ("/messages/5/content/1/source", "is required"),
        ("/messages/5/content/2/metadata", "must not be null"),
        ("/tools", "must be an array"),
        ("/context", "must be an array"),
    ];
    assert_eq!(
        expected.len(),
        NOTE_MAX_COUNT,
        "the report is full: what follows is not named"
    );
    assert_eq!(
        issues_of(body),
        expected.map(|(pointer, message)| (pointer.to_owned(), message.to_owned()))
    );
}

#[test]
fn the_three_required_members_are_asked_for() {
    let required = |pointer: &str| (pointer.to_owned(), "is required".to_owned());
    assert_eq!(
        issues_of("{}"),
        ["/threadId", "/runId", "/messages"].map(required)
    );
    let wrong =
        r#"{"threadId":"t","runId":"r","messages":{},"parentRunId":"","resume":{},"protocolVersion":1}"#;
    let wrong_issues = [
        ("/protocolVersion", "must be a string"),
        ("/messages", "must be an array"),
        ("/parentRunId", "must not be empty"),
        ("/resume", "must be an array"),
    ];
    assert_eq!(
        issues_of(wrong),
        wrong_issues.map(|(pointer, message)| (pointer.to_owned(), message.to_owned()))
    );
}

#[test]
fn long_ids_are_refused_and_the_longest_is_taken() {
    let body = |length: usize| {
        format!(
            r#"{{"threadId":"{0}","runId":"{0}","messages":[]}}"#,
            "x".repeat(length)
        )
    };
    assert_eq!(decode(&body(1024)).input.run_id.as_str().len(), 1024);
    let issue = |pointer: &str| (pointer.to_owned(), "must be at most 1024 bytes long".to_owned());
    assert_eq!(issues_of(&body(1025)), ["/threadId", "/runId"].map(issue));
}

#[test]
fn legacy_nulls_are_absent() {
    let decoded = decode_with(json!({
        "state": null, "forwardedProps": null,
        "tools": [{"name": "n", "description": "", "parameters": null}],
        "messages": [
            {"id": "a", "role": "assistant", "content": null, "toolCalls": null},
            {"id": "u", "role": "user", "content": [
                {"type": "image", "source": {"type": "url", "value": "v"}, "metadata": null}]}],
        "resume": [{"interruptId": "i", "status": "resolved", "payload": null}],
    }));
    let null = "was null and counts as absent";
    assert_eq!(
        warnings_of(&decoded),
        [
            ("/messages/1/content/0/metadata", null),
            ("/tools/0/parameters", null),
            ("/forwardedProps", null),
            ("/state", null),
            ("/resume", "was ignored: no run of this server waits for one"),
            ("/resume/0/payload", null),
        ]
    );
    let picture = MediaPart {
        source: MediaSource::Url {
            value: "v".to_owned(),
            mime_type: None,
        },
        id: None,
        metadata: None,
    };
    let input = RunAgentInput {
        messages: vec![
            Message::assistant(MessageId::new("a"), None, Vec::new()),
            user("u", Content::Parts(vec![ContentPart::Image(picture)])),
        ],
        tools: vec![Tool {
            name: "n".to_owned(),
            description: String::new(),
            parameters: None,
        }],
        ..smallest()
    };
    assert_eq!(decoded.input, input);
}

#[test]
fn a_tool_name_is_offered_once_and_never_empty() {
    let tool = |name: &str, description: &str| json!({"name": name, "description": description});
    let decoded = decode_with(json!({"tools": [tool("a", "1"), tool("", "2"), tool("a", "3")]}));
    let kept: Vec<_> = decoded
        .input
        .tools
        .iter()
        .map(|tool| tool.description.as_str())
        .collect();
    assert_eq!(kept, ["1"]);
    assert_eq!(
        warnings_of(&decoded),
        [
            ("/tools/1", "has no name and was ignored"),
            ("/tools/2", "has the name of an earlier tool and was ignored")
        ]
    );
}

#[test]
fn only_another_major_is_refused() {
    for (version, warning) in [
        ("1.0", None),
        ("01.00", None),
        ("1.1", Some("is newer than ours; 1.0 is spoken")),
        (
            "1.99999999999999999999999",
            Some("is newer than ours; 1.0 is spoken"),
        ),
        ("draft", Some("is not MAJOR.MINOR; 1.0 is spoken")),
        ("2", Some("is not MAJOR.MINOR; 1.0 is spoken")),
        ("2.0.1", Some("is not MAJOR.MINOR; 1.0 is spoken")),
        ("", Some("is not MAJOR.MINOR; 1.0 is spoken")),
        ("+2.0", Some("is not MAJOR.MINOR; 1.0 is spoken")),
    ] {
        let decoded = decode_with(json!({"protocolVersion": version}));
        assert!(decoded.input.declares_version);
        let expected: Vec<_> = warning
            .into_iter()
            .map(|warning| ("/protocolVersion", warning))
            .collect();
        assert_eq!(warnings_of(&decoded), expected, "{version}");
    }
    for version in ["2.0", "0.9", "99999999999999999999.0"] {
        // Another major may have another shape: its version is judged before anything else.
        let body = json!({"protocolVersion": version, "messages": 7}).to_string();
        assert_eq!(
            RunAgentInput::decode(&body),
            Err(InputError::UnsupportedVersion),
            "{version}"
        );
    }
}

#[test]
fn issues_and_warnings_name_the_place() {
    let issue = Issue {
        pointer: "/runId".to_owned(),
        message: "is required".to_owned(),
    };
    let error = InputError::Invalid { issues: vec![issue] };
    assert_eq!(error.to_string(), "the body has 1 invalid member(s)");
    let long = format!(
        r#"{{"threadId":"t","runId":"r","messages":[],"{}":0}}"#,
        "x".repeat(1000)
    );
    let pointer = format!("/{}", "x".repeat(64));
    assert_eq!(
        warnings_of(&decode(&long)),
        [(pointer.as_str(), "is not known and was ignored")]
    );
}

#[test]
fn of_a_repeated_member_the_last_counts_and_nothing_is_left_of_the_others() {
    let body = r#"{"threadId":1,"runId":"r","messages":[],"threadId":"","messages":[{"role":"user","id":"u","content":1,"content":"hi"}],"threadId":"t"}"#;
    let decoded = decode(body);
    assert_eq!(decoded.warnings, []);
    assert_eq!(decoded.input.thread_id, ThreadId::new("t"));
    assert_eq!(
        decoded.input.messages,
        [user("u", Content::Text("hi".to_owned()))]
    );
}
