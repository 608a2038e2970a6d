//! Reading the body of `POST /run`.

use super::decode::{InputError, Object, Path, Report, Warning};
use super::forwarded_props::ForwardedProps;
use super::forwarded_props_decode::decode_forwarded_props;
use super::id::{RunId, ThreadId, check_addressable_id};
use super::index::KeySet;
use super::input::{ContextEntry, RunAgentInput};
use super::message_decode::decode_messages;
use super::node::Node;
use super::tool::Tool;

/// A body that was accepted, and what was ignored in it.
#[derive(Debug, Clone, PartialEq)]
pub struct Decoded {
    /// The checked input.
    pub input: RunAgentInput,
    /// What was dropped or bent, for the log; at most [`super::decode::NOTE_MAX_COUNT`].
    pub warnings: Vec<Warning>,
}

impl RunAgentInput {
    /// Reads a body. Whether there is anything to answer is not judged here: the history may hold it.
    ///
    /// # Errors
    /// [`InputError`], with every fault found and not only the first.
    ///
    /// Source: contract 2.1, AG-UI 2.2-2.4 and 3.
    pub fn decode(body: &str) -> Result<Decoded, InputError> {
        let mut object = Object::parse(body)?;
        let report = &mut Report::default();
        let declares_version = decode_version(&mut object, report)?;
        let input = Self {
            thread_id: decode_thread_id(&mut object, report),
            run_id: object.id("runId", RunId::parse, RunId::new, report),
            messages: decode_messages(&mut object, report),
            tools: decode_tools(&mut object, report),
            context: object.list("context", false, report, decode_context_entry),
            forwarded_props: decode_props(&mut object, report),
            declares_version,
            state: object.take_legacy("state", report).map(Node::into_value),
        };
        if object.has("parentRunId") {
            object.id("parentRunId", RunId::parse, RunId::new, report);
        }
        if object.has("resume") {
            report.warn(
                object.path("resume"),
                "was ignored: no run of this server waits for one",
            );
            object.list("resume", false, report, check_resume_entry);
        }
        object.ignore_rest(report);
        let (input, warnings) = std::mem::take(report).finish(input)?;
        Ok(Decoded { input, warnings })
    }
}

/// Whether the peer declared a version. Major 1 in any minor is served, and so is what cannot be read as a version.
/// Source: AG-UI VER-2 to VER-5.
fn decode_version(object: &mut Object<'_>, report: &mut Report) -> Result<bool, InputError> {
    if !object.has("protocolVersion") {
        return Ok(false);
    }
    let Some(version) = object.optional_string("protocolVersion", report) else {
        return Ok(true);
    };
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match version.split_once('.') {
        Some((major, minor)) if is_number(major) && is_number(minor) => {
            if major.trim_start_matches('0') != "1" {
                return Err(InputError::UnsupportedVersion);
            }
            if !minor.trim_start_matches('0').is_empty() {
                report.warn(
                    object.path("protocolVersion"),
                    "is newer than ours; 1.0 is spoken",
                );
            }
        }
        _ => report.warn(
            object.path("protocolVersion"),
            "is not MAJOR.MINOR; 1.0 is spoken",
        ),
    }
    Ok(true)
}

/// The one id that may be empty: then the run is stateless.
fn decode_thread_id(object: &mut Object<'_>, report: &mut Report) -> ThreadId {
    let text = object.string("threadId", report);
    if !text.is_empty()
        && let Err(fault) = check_addressable_id(&text)
    {
        report.issue(object.path("threadId"), &fault.to_string());
    }
    ThreadId::new(text)
}

/// Tools by name: a vendor refuses a request that offers a name twice, or none.
fn decode_tools(object: &mut Object<'_>, report: &mut Report) -> Vec<Tool> {
    let mut names = KeySet::default();
    object.list("tools", false, report, |item, at, report| {
        let tool = decode_tool(item, at, report)?;
        if tool.name.is_empty() {
            report.warn(*at, "has no name and was ignored");
            return None;
        }
        if !names.insert(tool.name.clone()) {
            report.warn(*at, "has the name of an earlier tool and was ignored");
            return None;
        }
        Some(tool)
    })
}

fn decode_tool(node: Node<'_>, at: &Path<'_>, report: &mut Report) -> Option<Tool> {
    let mut object = Object::open(node, at, report)?;
    let tool = Tool {
        name: object.string("name", report),
        description: object.string("description", report),
        parameters: object.take_legacy("parameters", report).map(Node::into_value),
    };
    object.optional_map("metadata", report);
    object.ignore_rest(report);
    Some(tool)
}

fn decode_context_entry(node: Node<'_>, at: &Path<'_>, report: &mut Report) -> Option<ContextEntry> {
    let mut object = Object::open(node, at, report)?;
    let entry = ContextEntry {
        description: object.string("description", report),
        value: object.string("value", report),
    };
    object.ignore_rest(report);
    Some(entry)
}

/// `resume` is checked like everything else and then dropped (AG-UI INT-6).
fn check_resume_entry(node: Node<'_>, at: &Path<'_>, report: &mut Report) -> Option<()> {
    let mut object = Object::open(node, at, report)?;
    object.string("interruptId", report);
    object.string("status", report);
    object.take_legacy("payload", report);
    object.optional_map("metadata", report);
    object.ignore_rest(report);
    None
}

fn decode_props(object: &mut Object<'_>, report: &mut Report) -> ForwardedProps {
    match object.take_legacy("forwardedProps", report) {
        Some(props @ Node::Object(_)) => {
            decode_forwarded_props(props, &object.path("forwardedProps"), report)
        }
        Some(_) => {
            report.warn(object.path("forwardedProps"), "is not an object and was ignored");
            ForwardedProps::default()
        }
        None => ForwardedProps::default(),
    }
}
