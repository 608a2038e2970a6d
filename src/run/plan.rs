//! What a run's input and its agent decide before anything is asked: persistence and who answers front-end calls.

use super::RunSetup;
use super::boundary;
use crate::config::AgentConfig;
use crate::config::agents::{FrontendTools, Memory, Persist, Reasoning};
use crate::protocol::forwarded_props::{
    ClientResource, ForwardedProps, FrontendToolsMode, ModelSettings, ToolChoice,
};
use crate::protocol::id::ResourceId;
use crate::protocol::input::RunAgentInput;
use crate::provider::KeptThread;
use crate::store::Persistence;

/// Owner of a run whose agent always persists and whose client names nobody. Source: contract 2.2.
const ANONYMOUS: &str = "anonymous";

/// How a run treats its thread; `principal` is the authenticated owner, if there is one. Source: contract 2.2 (D5).
pub fn persistence(
    agent: &AgentConfig,
    input: &RunAgentInput,
    principal: Option<&ResourceId>,
) -> Persistence {
    if input.thread_id.as_str().is_empty() || agent.memory == Memory::Mastra {
        return Persistence::Stateless;
    }
    let props = &input.forwarded_props;
    let given = match &props.resource_id {
        ClientResource::Given(id) => Some(id),
        ClientResource::Absent | ClientResource::Empty => None,
    };
    let planned = match (agent.persist, &props.resource_id) {
        (Persist::Never, _) => Persistence::Stateless,
        (Persist::Always, _) => Persistence::Create(
            principal
                .or(given)
                .cloned()
                .unwrap_or_else(|| ResourceId::new(ANONYMOUS)),
        ),
        (Persist::Auto, ClientResource::Given(id)) => Persistence::Create(principal.unwrap_or(id).clone()),
        (Persist::Auto, ClientResource::Empty) => principal
            .cloned()
            .map_or(Persistence::Stateless, Persistence::Create),
        (Persist::Auto, ClientResource::Absent) => principal
            .cloned()
            .map_or(Persistence::Stateless, Persistence::IfThreadExists),
    };
    match planned {
        // A run that only asks for one front-end call must not make a thread (2.1, toolChoice).
        Persistence::Create(owner) if names_frontend_tool(input) => Persistence::IfThreadExists(owner),
        planned => planned,
    }
}

/// Whether `toolChoice` names a tool this run declares.
pub fn names_frontend_tool(input: &RunAgentInput) -> bool {
    match &input.forwarded_props.tool_choice {
        Some(ToolChoice::Function(name)) => input.tools.iter().any(|tool| tool.name == *name),
        Some(ToolChoice::Auto | ToolChoice::None | ToolChoice::Required) | None => false,
    }
}

/// The thread as the upstream keeps it; `None` = it keeps none for this run, by the same rule as for threads of our own,
/// except that a thread is never looked up. Source: contract 2.2.
pub fn kept_thread(setup: &RunSetup) -> Option<KeptThread> {
    let (agent, props) = (&setup.agent, &setup.input.forwarded_props);
    if agent.memory != Memory::Mastra
        || setup.input.thread_id.as_str().is_empty()
        || names_frontend_tool(&setup.input)
    {
        return None;
    }
    let owner = match (agent.persist, &props.resource_id) {
        (Persist::Never, _) | (Persist::Auto, ClientResource::Absent) => None,
        (Persist::Auto, ClientResource::Empty | ClientResource::Given(_)) => setup.owner.clone(),
        (Persist::Always, _) => {
            let anonymous = || Some(ResourceId::new(ANONYMOUS));
            setup.owner.clone().or_else(anonymous)
        }
    };
    Some(KeptThread {
        owner: owner?,
        last_messages: props.last_messages,
        is_read_only: props.read_only,
    })
}

/// How this run's front-end calls are answered. Source: contract 2.1, D15.
pub fn frontend_mode(setup: &RunSetup) -> FrontendTools {
    if names_frontend_tool(&setup.input) {
        return FrontendTools::NextRun;
    }
    match setup.input.forwarded_props.frontend_tools {
        Some(FrontendToolsMode::SameRun) => FrontendTools::SameRun,
        Some(FrontendToolsMode::NextRun) => FrontendTools::NextRun,
        None => setup.agent.frontend_tools,
    }
}

/// Whether reasoning is streamed: the agent says so, and the peer knows these events. One that declares no version may be
/// as old as the clients that fail at an event they do not know. Source: AG-UI 6.
pub fn emits_reasoning(setup: &RunSetup) -> bool {
    setup.agent.reasoning == Reasoning::Emit && setup.input.declares_version
}

/// The agent's settings under the run's own, within the agent's bounds.
pub fn settings(agent: &AgentConfig, props: &ForwardedProps) -> ModelSettings {
    let (own, base) = (&props.model_settings, agent.model_settings());
    let own = own.clone();
    let settings = ModelSettings {
        max_output_tokens: own.max_output_tokens.or(base.max_output_tokens),
        temperature: own.temperature.or(base.temperature),
        top_p: own.top_p.or(base.top_p),
        top_k: own.top_k.or(base.top_k),
        presence_penalty: own.presence_penalty.or(base.presence_penalty),
        frequency_penalty: own.frequency_penalty.or(base.frequency_penalty),
        stop_sequences: if own.stop_sequences.is_empty() {
            base.stop_sequences
        } else {
            own.stop_sequences
        },
        seed: own.seed.or(base.seed),
        max_retries: own.max_retries.or(base.max_retries),
    };
    boundary::bounded(settings, agent)
}
