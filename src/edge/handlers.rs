//! One function per route.

use serde_json::json;
use worker::{Env, Request};

use super::body::{BodyFault, read_text};
use super::env;
use super::log::ConsoleLog;
use super::reply::Answer;
use super::run_calls::{RunCall, RunObjects, Start};
use super::stream::describe;
use crate::api::error::ApiError;
use crate::api::route::Route;
use crate::config::{AgentConfig, Auth, Config, ListShape};
use crate::protocol::agent::Agent;
use crate::protocol::forwarded_props::ClientResource;
use crate::protocol::id::{AgentId, ObjectAddress, ResourceId, RunId, ToolCallAddress, ToolCallId};
use crate::protocol::input::RunAgentInput;
use crate::run::plan;
use crate::run::ports::{Level, Log};
use crate::tool::toolbox::ToolBox;

/// A request and all that is needed to answer it.
#[derive(Debug)]
pub struct Call<'a> {
    /// The request.
    pub request: &'a Request,
    /// The deployment.
    pub env: &'a Env,
    /// Its configuration.
    pub config: &'a Config,
    /// Its objects.
    pub objects: RunObjects,
    /// With the request's id on each line.
    pub log: &'a ConsoleLog,
    /// `x-request-id`
    pub request_id: &'a str,
}

impl Call<'_> {
    /// Answers the request.
    ///
    /// # Errors
    /// What is wrong with it, or with us.
    pub async fn answer(&self, route: Route) -> Result<Answer, ApiError> {
        match route {
            Route::DescribeService => Ok(self.describe_service()),
            Route::StartRun => self.start_run().await,
            Route::PostResult { run_id, tool_call_id } => self.post_result(run_id, tool_call_id).await,
            Route::ListAgents => Ok(self.list_agents()),
            Route::ReadAgent { agent_id } => self.read_agent(&agent_id),
            Route::ReadRun { .. }
            | Route::FollowRun { .. }
            | Route::CancelRun { .. }
            | Route::ListThreads
            | Route::CreateThread
            | Route::ReadThread { .. }
            | Route::UpdateThread { .. }
            | Route::DeleteThread { .. }
            | Route::ListMessages { .. } => Err(ApiError::persistence_not_configured()),
        }
    }

    fn describe_service(&self) -> Answer {
        let level = if env::database(self.env).is_some() { 4 } else { 2 };
        Answer::json(&json!({
            "name": env!("CARGO_PKG_NAME"),
            "version": env!("CARGO_PKG_VERSION"),
            "protocol": "io.intelligence/agent-protocol",
            "protocolVersion": crate::protocol::event::PROTOCOL_VERSION,
            "conformanceLevel": level,
        }))
    }

    async fn start_run(&self) -> Result<Answer, ApiError> {
        let body = self.body(self.config.limits.run_body_max_bytes).await?;
        let decoded = RunAgentInput::decode(&body)?;
        for warning in &decoded.warnings {
            let members: [(&str, &dyn std::fmt::Display); 2] =
                [("field", &warning.pointer), ("message", &warning.message)];
            self.log.line(Level::Warn, "input_ignored", &members);
        }
        let input = decoded.input;
        let agent = self.config.agent(input.forwarded_props.agent_id.as_ref());
        let agent = agent.ok_or_else(ApiError::agent_not_found)?;
        let principal: Option<ResourceId> = self.principal()?;
        let given = match &input.forwarded_props.resource_id {
            ClientResource::Given(id) => Some(id.clone()),
            ClientResource::Absent | ClientResource::Empty => None,
        };
        let start = Start {
            agent_id: AgentId::new(agent.id.as_str()),
            persistence: plan::persistence(&agent, &input, principal.as_ref()),
            owner: principal.or(given),
            request_id: self.request_id.to_owned(),
        };
        let address = self
            .objects
            .fresh()
            .map_err(|error| self.platform_fault("object_address", error))?;
        let answer = self.call_object(address, &RunCall::Start(start), &body).await?;
        if answer.is_success() {
            Ok(answer.with_headers(run_headers(address)))
        } else {
            Ok(answer)
        }
    }

    async fn post_result(&self, run_id: RunId, tool_call_id: ToolCallId) -> Result<Answer, ApiError> {
        let body = self.body(self.config.limits.result_body_max_bytes).await?;
        let address = ToolCallAddress::parse(tool_call_id.as_str()).map(|address| address.object);
        let address = address.filter(|object| self.objects.knows(*object));
        let address = address.ok_or_else(ApiError::tool_call_not_found)?;
        let call = RunCall::Deliver {
            run_id,
            tool_call_id,
            caller: self.principal()?,
            is_error: false,
        };
        self.call_object(address, &call, &body).await
    }

    fn list_agents(&self) -> Answer {
        let agents: Vec<_> = self
            .config
            .agents()
            .iter()
            .map(|agent| describe_agent(agent))
            .collect();
        match self.config.list_shape {
            ListShape::Object => Answer::json(&json!({ "agents": agents })),
            ListShape::Array => Answer::json(&agents),
        }
    }

    fn read_agent(&self, id: &AgentId) -> Result<Answer, ApiError> {
        let agent = self
            .config
            .agent(Some(id))
            .ok_or_else(ApiError::agent_not_found)?;
        Ok(Answer::json(&describe_agent(&agent)))
    }

    fn principal(&self) -> Result<Option<ResourceId>, ApiError> {
        match &self.config.auth {
            Auth::None => Ok(None),
            Auth::Bearer(_) => Err(ApiError::unauthenticated()),
        }
    }

    /// The body as text; JSON by its content type, and not over the limit.
    async fn body(&self, max_bytes: usize) -> Result<String, ApiError> {
        read_text(self.request.inner(), max_bytes)
            .await
            .map_err(|fault| match fault {
                BodyFault::TooLarge => ApiError::body_too_large(max_bytes),
                BodyFault::NotUtf8 | BodyFault::Broken => ApiError::invalid_json(format!("{fault}")),
            })
    }

    async fn call_object(
        &self,
        address: ObjectAddress,
        call: &RunCall,
        text: &str,
    ) -> Result<Answer, ApiError> {
        let response = self.objects.call(address, call, text).await;
        response
            .map(Answer::relayed)
            .map_err(|error| self.platform_fault("object_call", error))
    }

    fn platform_fault(&self, event: &'static str, error: worker::Error) -> ApiError {
        self.log
            .line(Level::Error, event, &[("error", &describe(&error.into()))]);
        ApiError::storage_unavailable()
    }
}

fn describe_agent(agent: &AgentConfig) -> Agent {
    let (server_tools, _) = ToolBox::new(&agent.tools, &[]);
    agent.describe(&server_tools.declarations())
}

/// Where a run is found again. Source: D17, contract 8.
fn run_headers(address: ObjectAddress) -> [(&'static str, String); 2] {
    [
        ("io-run-address", address.to_base64url()),
        ("io-run-generation", "0".to_owned()),
    ]
}
