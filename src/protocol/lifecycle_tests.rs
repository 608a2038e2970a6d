use super::*;
use crate::protocol::event::RunErrorCode;
use LifecycleFault as Fault;

fn run_started() -> Event {
    Event::RunStarted {
        thread_id: ThreadId::new("t"),
        run_id: RunId::new("r"),
    }
}

fn run_finished(outcome: Option<Outcome>) -> Event {
    Event::RunFinished(RunFinished {
        thread_id: ThreadId::new("t"),
        run_id: RunId::new("r"),
        result: None,
        outcome,
        usage: Vec::new(),
    })
}

fn run_error() -> Event {
    Event::RunError {
        message: "It failed.".to_owned(),
        code: RunErrorCode::UpstreamError,
    }
}

/// A stream in short: `S1` / `s1` a step opens / closes, `T` / `t` a text, `.` its content, `C` / `c` a call, `R` its
/// result, `(` / `)` a span of reasoning, `[` / `]` its message, `~` its content, `+` RUN_STARTED, `$` RUN_FINISHED, `!`
/// RUN_ERROR. What follows the letter is the id; `C1<m1` names the
/// parent, `{2` the arguments of call 2.
fn event(short: &str) -> Event {
    let (letter, id) = short.split_at(1);
    let message_id = || MessageId::new(format!("m{id}"));
    let tool_call_id = || ToolCallId::new(format!("c{id}"));
    let step_name = || format!("step-{id}");
    match letter {
        "+" => run_started(),
        "$" => run_finished(None),
        "!" => run_error(),
        "S" => Event::StepStarted {
            step_name: step_name(),
        },
        "s" => Event::StepFinished {
            step_name: step_name(),
        },
        "T" => Event::TextMessageStart {
            message_id: message_id(),
        },
        "." => Event::TextMessageContent {
            message_id: message_id(),
            delta: "x".to_owned(),
        },
        "t" => Event::TextMessageEnd {
            message_id: message_id(),
        },
        "(" => Event::ReasoningStart {
            message_id: message_id(),
        },
        "[" => Event::ReasoningMessageStart {
            message_id: message_id(),
        },
        "~" => Event::ReasoningMessageContent {
            message_id: message_id(),
            delta: "x".to_owned(),
        },
        "]" => Event::ReasoningMessageEnd {
            message_id: message_id(),
        },
        ")" => Event::ReasoningEnd {
            message_id: message_id(),
        },
        "C" => {
            let (id, parent) = id.split_once('<').unwrap();
            Event::ToolCallStart {
                tool_call_id: ToolCallId::new(format!("c{id}")),
                tool_call_name: "f".to_owned(),
                parent_message_id: MessageId::new(parent),
            }
        }
        "{" => Event::ToolCallArgs {
            tool_call_id: tool_call_id(),
            delta: "{}".to_owned(),
        },
        "c" => Event::ToolCallEnd {
            tool_call_id: tool_call_id(),
        },
        "R" => Event::ToolCallResult {
            message_id: MessageId::new(format!("r{id}")),
            tool_call_id: tool_call_id(),
            content: "ok".to_owned(),
        },
        other => panic!("no event {other}"),
    }
}

fn after(shorts: &str) -> Lifecycle {
    let mut lifecycle = Lifecycle::new();
    for short in shorts.split_whitespace() {
        assert_eq!(lifecycle.check(&event(short)), Ok(()), "{short} in {shorts}");
    }
    lifecycle
}

const GOLDEN: &str = "+ S1 T1 .1 .1 t1 C1<m1 {1 c1 C2<m1 {2 c2 R2 R1 s1 S2 T2 .2 t2 s2 $";

#[test]
fn the_golden_order_passes() {
    let lifecycle = after(GOLDEN);
    assert!(lifecycle.has_started() && lifecycle.has_ended());
    assert_eq!(lifecycle.unanswered_calls(), []);
    assert_eq!(lifecycle.closing_item(), None);
    assert_eq!(lifecycle.closing_step(), None);
}

#[test]
fn every_other_legal_shape_passes() {
    for shorts in [
        "+ $",
        "+ !",
        "+ S1 s1 $",
        "+ S1 T1 t1 T2 .2 t2 s1 $",
        // No text: the step's calls share one fresh parent; a later text takes over.
        "+ S1 C1<p {1 c1 C2<p {2 c2 T3 t3 C3<m3 {3 c3 R1 R2 R3 s1 $",
        // Reasoning before a text, between a text and its calls, and alone.
        "+ S1 (1 [1 ~1 ~1 ]1 )1 T2 .2 t2 (3 [3 ~3 ]3 )3 C1<m2 {1 c1 R1 s1 S2 (4 [4 ]4 )4 s2 $",
        // The notice of showErrors.
        "+ S1 T1 .1 t1 s1 T2 .2 t2 !",
        "+ T1 .1 t1 !",
    ] {
        after(shorts);
    }
}

#[test]
fn each_breach_is_named_and_changes_nothing() {
    let table = [
        ("", "S1", Fault::RunNotStarted),
        ("", "!", Fault::RunNotStarted),
        ("+", "+", Fault::RunAlreadyStarted),
        ("+ $", "!", Fault::RunEnded),
        ("+ !", "$", Fault::RunEnded),
        ("+ $", "+", Fault::RunEnded),
        ("+", "s1", Fault::NoStepOpen),
        ("+", "C1<p", Fault::NoStepOpen),
        ("+ S1 C1<p {1 c1 s1", "R1", Fault::NoStepOpen),
        ("+ S1", "S1", Fault::StepOpen),
        ("+ S1", "S2", Fault::StepOpen),
        ("+ S1", "$", Fault::StepOpen),
        ("+ S1", "!", Fault::StepOpen),
        ("+ S1", "s2", Fault::OtherStep),
        ("+ S1 T1", "C1<m1", Fault::ItemOpen),
        ("+ S1 T1", "T2", Fault::ItemOpen),
        ("+ S1 T1", "s1", Fault::ItemOpen),
        ("+ S1 T1", "S2", Fault::ItemOpen),
        ("+ S1 T1", "$", Fault::ItemOpen),
        ("+ S1 T1", "!", Fault::ItemOpen),
        ("+ S1 C1<p", "C2<p", Fault::ItemOpen),
        ("+ S1 C1<p", "T1", Fault::ItemOpen),
        ("+ S1 C1<p {1", "R1", Fault::ItemOpen),
        ("+ S1 (1", "T2", Fault::ItemOpen),
        ("+ S1 (1 [1", "C1<p", Fault::ItemOpen),
        ("+ S1 (1 [1 ~1", "s1", Fault::ItemOpen),
        ("+ S1 (1 [1 ]1", "(2", Fault::ItemOpen),
        ("+ S1 (1", "!", Fault::ItemOpen),
        ("+ S1 T1", "(2", Fault::ItemOpen),
        ("+ S1 C1<p", "(2", Fault::ItemOpen),
        ("+", "(1", Fault::NoStepOpen),
        ("+ S1 T1 t1", "(1", Fault::MessageIdReused),
        ("+ S1 C1<p {1 c1 R1", "(1", Fault::AfterResult),
        ("+ S1", "[1", Fault::ReasoningNotOpen),
        ("+ S1 (1", "[2", Fault::ReasoningNotOpen),
        ("+ S1 (1", "~1", Fault::ReasoningNotOpen),
        ("+ S1 (1", ")1", Fault::ReasoningNotOpen),
        ("+ S1 (1 [1", "[1", Fault::ReasoningNotOpen),
        ("+ S1 (1 [1", ")1", Fault::ReasoningNotOpen),
        ("+ S1 (1 [1 ]1", "~1", Fault::ReasoningNotOpen),
        ("+ S1 (1 [1 ]1", "[1", Fault::ReasoningNotOpen),
        ("+ S1 (1 [1 ]1", "]1", Fault::ReasoningNotOpen),
        ("+ S1", ".1", Fault::TextNotOpen),
        ("+ S1 T1", ".2", Fault::TextNotOpen),
        ("+ S1 T1 t1", ".1", Fault::TextNotOpen),
        ("+ S1 T1 t1", "t1", Fault::TextNotOpen),
        ("+ S1", "{1", Fault::CallNotOpen),
        ("+ S1 C1<p", "{2", Fault::CallNotOpen),
        ("+ S1 C1<p {1 c1", "c1", Fault::CallNotOpen),
        ("+ S1 C1<p", "c1", Fault::ArgumentsNotJson),
        ("+ S1 C1<p {1 {1", "c1", Fault::ArgumentsNotJson),
        ("+ S1 C1<p {1 c1", "C1<p", Fault::CallIdReused),
        ("+ S1 C1<p {1 c1 R1 s1 S2", "C1<q", Fault::CallIdReused),
        ("+ S1 T1 t1", "T1", Fault::MessageIdReused),
        ("+ S1 T1 t1 s1 S2", "C1<m1", Fault::MessageIdReused),
        ("+ S1 C1<m1 {1 c1", "T1", Fault::MessageIdReused),
        ("+ S1 C1<r1 {1 c1", "R1", Fault::MessageIdReused),
        ("+ S1 T1 t1 T2 t2", "C1<m1", Fault::OtherParent),
        ("+ S1 C1<p {1 c1", "C2<q", Fault::OtherParent),
        ("+ S1", "R1", Fault::UnknownCall),
        ("+ S1 C1<p {1 c1 R1", "R1", Fault::ResultRepeated),
        ("+ S1 C1<p {1 c1 R1", "C2<p", Fault::AfterResult),
        ("+ S1 C1<p {1 c1 R1", "T1", Fault::AfterResult),
        ("+ S1 C1<p {1 c1 s1", "S2", Fault::CallUnanswered),
        ("+ S1 C1<p {1 c1 s1", "$", Fault::CallUnanswered),
        ("+ S1 C1<p {1 c1 s1", "!", Fault::CallUnanswered),
        ("+ S1 C1<p {1 c1 s1", "T1", Fault::CallUnanswered),
        ("+ T1 t1", "S1", Fault::AfterNotice),
        ("+ T1 t1", "T2", Fault::AfterNotice),
        ("+ T1 t1", "$", Fault::AfterNotice),
    ];
    for (before, short, fault) in table {
        let mut lifecycle = after(before);
        let state = format!("{lifecycle:?}");
        assert_eq!(
            lifecycle.check(&event(short)),
            Err(fault),
            "{short} after {before}"
        );
        assert_eq!(format!("{lifecycle:?}"), state, "{short} after {before}");
    }
}

#[test]
fn a_delta_is_never_empty() {
    let mut text = after("+ S1 T1");
    let delta = String::new();
    let message_id = MessageId::new("m1");
    assert_eq!(
        text.check(&Event::TextMessageContent { message_id, delta }),
        Err(Fault::EmptyDelta)
    );
    let mut call = after("+ S1 C1<p");
    let tool_call_id = ToolCallId::new("c1");
    let delta = String::new();
    assert_eq!(
        call.check(&Event::ToolCallArgs { tool_call_id, delta }),
        Err(Fault::EmptyDelta)
    );
}

#[test]
fn a_result_says_something() {
    for content in ["", "null"] {
        let mut lifecycle = after("+ S1 C1<p {1 c1");
        let result = Event::ToolCallResult {
            message_id: MessageId::new("r1"),
            tool_call_id: ToolCallId::new("c1"),
            content: content.to_owned(),
        };
        assert_eq!(lifecycle.check(&result), Err(Fault::ResultWithoutContent));
    }
}

#[test]
fn a_live_call_may_end_with_cut_arguments() {
    let mut lifecycle = after("+ S1");
    lifecycle.mark_live(&ToolCallId::new("c1"));
    for short in ["C1<p", "{1", "{1", "c1", "R1", "s1", "!"] {
        assert_eq!(lifecycle.check(&event(short)), Ok(()), "{short}");
    }
}

#[test]
fn the_end_names_the_run_that_started() {
    for (thread_id, run_id) in [("t", "other"), ("other", "r")] {
        let finished = Event::RunFinished(RunFinished {
            thread_id: ThreadId::new(thread_id),
            run_id: RunId::new(run_id),
            result: None,
            outcome: None,
            usage: Vec::new(),
        });
        assert_eq!(after("+").check(&finished), Err(Fault::OtherRun));
    }
}

#[test]
fn unanswered_calls_are_left_to_the_next_run_only_by_name_or_by_leave() {
    const PENDING: &str = "+ S1 C1<p {1 c1 C2<p {2 c2 C3<p {3 c3 R2 s1";
    let success = |ids: &[&str]| {
        let pending_tool_call_ids = ids.iter().map(|id| ToolCallId::new(*id)).collect();
        run_finished(Some(Outcome::Success {
            pending_tool_call_ids,
        }))
    };
    assert_eq!(after(PENDING).check(&success(&["c1", "c3"])), Ok(()));
    for wrong in [&["c3", "c1"][..], &["c1"], &["c1", "c2", "c3"], &[]] {
        assert_eq!(
            after(PENDING).check(&success(wrong)),
            Err(Fault::OtherPendingCalls)
        );
    }
    assert_eq!(
        after(PENDING).check(&run_finished(Some(Outcome::Cancelled))),
        Err(Fault::CallUnanswered)
    );
    let mut older_peer = after(PENDING);
    older_peer.allow_pending();
    assert_eq!(older_peer.check(&run_finished(None)), Ok(()));
    let mut failed_storage = after(PENDING);
    failed_storage.allow_pending();
    assert_eq!(failed_storage.check(&run_error()), Ok(()));
}

#[test]
fn what_is_open_can_be_closed_in_order_at_any_point() {
    let shorts: Vec<&str> = GOLDEN.split_whitespace().collect();
    // A call's three events are held and sent together (D8): no cut falls between them.
    let is_cut = |count: usize| !matches!(shorts.get(count), Some(next) if next.starts_with(['{', 'c']));
    for count in (1..shorts.len()).filter(|count| is_cut(*count)) {
        let mut lifecycle = after(&shorts[..count].join(" "));
        if let Some(end) = lifecycle.closing_item() {
            assert_eq!(lifecycle.check(&end), Ok(()));
        }
        for id in lifecycle.unanswered_calls().to_vec() {
            let message_id = MessageId::new(format!("error-{id}"));
            let content = "{\"error\":\"The call was interrupted.\"}".to_owned();
            let result = Event::ToolCallResult {
                message_id,
                tool_call_id: id,
                content,
            };
            assert_eq!(lifecycle.check(&result), Ok(()));
        }
        if let Some(finished) = lifecycle.closing_step() {
            assert_eq!(lifecycle.check(&finished), Ok(()));
        }
        assert_eq!(lifecycle.check(&run_error()), Ok(()), "after {count} events");
    }
}

#[test]
fn it_says_what_is_open() {
    let lifecycle = after("+ S1 T1 .1");
    assert_eq!(lifecycle.open_text(), Some(&MessageId::new("m1")));
    assert_eq!(lifecycle.open_step(), Some("step-1"));
    assert_eq!(lifecycle.closing_item(), Some(event("t1")));
    assert_eq!(lifecycle.closing_step(), Some(event("s1")));
    let lifecycle = after("+ S1 C1<p {1 c1 C2<p");
    assert_eq!(lifecycle.open_tool_call(), Some(&ToolCallId::new("c2")));
    assert_eq!(
        lifecycle.unanswered_calls(),
        [ToolCallId::new("c1"), ToolCallId::new("c2")]
    );
    assert_eq!(lifecycle.closing_item(), Some(event("c2")));
}

#[test]
fn reasoning_has_two_ends_its_messages_first() {
    let close = |shorts: &str| {
        let mut lifecycle = after(shorts);
        let mut closed = Vec::new();
        while let Some(end) = lifecycle.closing_item() {
            assert_eq!(lifecycle.check(&end), Ok(()));
            closed.push(end);
        }
        closed
    };
    assert_eq!(close("+ S1 (1 [1 ~1"), [event("]1"), event(")1")]);
    assert_eq!(close("+ S1 (1 [1 ]1"), [event(")1")]);
}
