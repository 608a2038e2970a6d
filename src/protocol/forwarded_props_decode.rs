//! Reading `forwardedProps`: options are wishes, so a wrong one is ignored; who and whose is never guessed.

use serde_json::{Number, Value};

use super::decode::{Object, Path, Report};
use super::forwarded_props::{ClientResource, ForwardedProps, FrontendToolsMode, ModelSettings, ToolChoice};
use super::id::{AgentId, ResourceId};
use super::node::Node;
use super::{json, number};
use crate::list::List;

/// Reads the object. `null` is absent; a wrong type is a warning, but an issue for `agentId` and `resourceId`.
/// Source: contract 2.1, table of forwardedProps.
pub(super) fn decode_forwarded_props(node: Node<'_>, at: &Path<'_>, report: &mut Report) -> ForwardedProps {
    let Some(object) = Object::open(node, at, report) else {
        return ForwardedProps::default();
    };
    let mut props = Props { object };
    let (last_messages, read_only) = props.memory_options(report);
    ForwardedProps {
        agent_id: props.agent_id(report),
        resource_id: decode_resource_id(&mut props.object, report),
        last_messages,
        read_only,
        model_settings: props.model_settings(report),
        output_schema: props.output_schema(report),
        instructions: ["instructions", "system"]
            .into_iter()
            .filter_map(|name| props.text(name, report))
            .filter(|text| !text.trim().is_empty())
            .list(),
        tool_choice: props.read("toolChoice", report, "is not a tool choice", tool_choice),
        frontend_tools: props.read(
            "frontendTools",
            report,
            "is not same-run or next-run",
            frontend_tools,
        ),
        unknown: props.object.into_rest(),
    }
}

/// Reads a `resourceId` member; empty is not absent (contract 2.2).
pub fn decode_resource_id(object: &mut Object<'_>, report: &mut Report) -> ClientResource {
    match object.take_some("resourceId") {
        None => ClientResource::Absent,
        Some(Node::Text(text)) if text.is_empty() => ClientResource::Empty,
        Some(Node::Text(text)) => match ResourceId::parse(&text) {
            Ok(id) => ClientResource::Given(id),
            Err(fault) => {
                report.issue(object.path("resourceId"), &fault.to_string());
                ClientResource::Absent
            }
        },
        Some(_) => {
            report.issue(object.path("resourceId"), "must be a string");
            ClientResource::Absent
        }
    }
}

/// An object of options, read by wishes.
struct Props<'a> {
    object: Object<'a>,
}

impl Props<'_> {
    /// Takes a member and reads it; what `read` refuses is ignored with a warning.
    fn read<T>(
        &mut self,
        name: &str,
        report: &mut Report,
        fault: &str,
        read: impl FnOnce(Value) -> Option<T>,
    ) -> Option<T> {
        let read_value = read(self.object.take_some(name)?.into_value());
        if read_value.is_none() {
            report.warn(self.object.path(name), &format!("{fault} and was ignored"));
        }
        read_value
    }

    fn text(&mut self, name: &str, report: &mut Report) -> Option<String> {
        self.read(name, report, "is not a string", |value| match value {
            Value::String(text) => Some(text),
            _ => None,
        })
    }

    fn number(&mut self, name: &str, report: &mut Report) -> Option<f64> {
        self.read(name, report, "is not a number", |value| number::as_double(&value))
    }

    fn count(&mut self, name: &str, report: &mut Report) -> Option<u32> {
        self.read(name, report, "is not a whole number from 0", |value| {
            count(&value)
        })
    }

    fn positive(&mut self, name: &str, report: &mut Report) -> Option<u32> {
        self.read(name, report, "is not a whole number from 1", |value| {
            count(&value).filter(|count| *count > 0)
        })
    }

    fn agent_id(&mut self, report: &mut Report) -> Option<AgentId> {
        match self.object.take_some("agentId")? {
            Node::Text(text) => AgentId::parse(&text)
                .map_err(|fault| report.issue(self.object.path("agentId"), &fault.to_string()))
                .ok(),
            _ => {
                report.issue(self.object.path("agentId"), "must be a string");
                None
            }
        }
    }

    /// `lastMessages` and `readOnly`; Mastra's other memory options are ignored without a word.
    fn memory_options(&mut self, report: &mut Report) -> (Option<u32>, bool) {
        let options = self.object.take_some("memoryOptions");
        let path = self.object.path("memoryOptions");
        let Some(mut options) = open(options, &path, report) else {
            return (None, false);
        };
        let last_messages = options.read(
            "lastMessages",
            report,
            "is not a whole number from 0, nor false",
            |value| match value {
                Value::Bool(false) => Some(0),
                value => count(&value),
            },
        );
        let read_only = options.read("readOnly", report, "is not a boolean", |value| value.as_bool());
        (last_messages, read_only.unwrap_or(false))
    }

    fn model_settings(&mut self, report: &mut Report) -> ModelSettings {
        let settings = self.object.take_some("modelSettings");
        let path = self.object.path("modelSettings");
        let Some(mut settings) = open(settings, &path, report) else {
            return ModelSettings::default();
        };
        let max_tokens = settings.positive("maxTokens", report);
        let read = ModelSettings {
            max_output_tokens: settings.positive("maxOutputTokens", report).or(max_tokens),
            temperature: settings.number("temperature", report),
            top_p: settings.number("topP", report),
            top_k: settings.positive("topK", report),
            presence_penalty: settings.number("presencePenalty", report),
            frequency_penalty: settings.number("frequencyPenalty", report),
            stop_sequences: settings
                .read("stopSequences", report, "is not an array of strings", |value| {
                    json::texts(&value)
                })
                .unwrap_or_default(),
            seed: settings.read("seed", report, "is not a whole number", |value| match value {
                Value::Number(number) => whole_number(&number),
                _ => None,
            }),
            max_retries: settings.count("maxRetries", report),
        };
        settings.object.ignore_rest(report);
        read
    }

    /// `structuredOutput.schema`: an object, or its JSON text. An empty one constrains nothing.
    fn output_schema(&mut self, report: &mut Report) -> Option<Value> {
        let output = self.object.take_some("structuredOutput");
        let path = self.object.path("structuredOutput");
        let mut output = open(output, &path, report)?;
        let schema = output.read(
            "schema",
            report,
            "is not a JSON Schema object",
            |value| match value {
                Value::String(text) if text.trim().is_empty() => Some(Value::Object(serde_json::Map::new())),
                Value::String(text) => json::parse(&text).ok().filter(Value::is_object),
                value => Some(value).filter(Value::is_object),
            },
        );
        schema.filter(|schema| schema.as_object().is_some_and(|members| !members.is_empty()))
    }
}

fn open<'a>(node: Option<Node<'a>>, at: &'a Path<'a>, report: &mut Report) -> Option<Props<'a>> {
    match node? {
        node @ Node::Object(_) => Object::open(node, at, report).map(|object| Props { object }),
        _ => {
            report.warn(*at, "is not an object and was ignored");
            None
        }
    }
}

fn tool_choice(value: Value) -> Option<ToolChoice> {
    match value.as_str() {
        Some("auto") => return Some(ToolChoice::Auto),
        Some("none") => return Some(ToolChoice::None),
        Some("required") => return Some(ToolChoice::Required),
        Some(_) => return None,
        None => {}
    }
    let name = json::at(&value, "/function/name")?.as_str()?;
    let is_function = value.get("type").and_then(Value::as_str) == Some("function") && !name.is_empty();
    is_function.then(|| ToolChoice::Function(name.to_owned()))
}

fn frontend_tools(value: Value) -> Option<FrontendToolsMode> {
    match value.as_str()? {
        "same-run" => Some(FrontendToolsMode::SameRun),
        "next-run" => Some(FrontendToolsMode::NextRun),
        _ => None,
    }
}

/// A whole number from 0, `2.0` and `2e1` included; larger ones than fit count as the largest.
fn count(value: &Value) -> Option<u32> {
    let Value::Number(number) = value else { return None };
    let number = whole_number(number)?;
    u64::try_from(number)
        .ok()
        .map(|number| u32::try_from(number).unwrap_or(u32::MAX))
}

fn whole_number(number: &Number) -> Option<i64> {
    /// Up to here a double is exact.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    number.as_i64().or_else(|| {
        number::double(number)
            .filter(|double| double.abs() <= EXACT)
            .and_then(number::whole)
    })
}
