//! What every handler has, and the handlers of the service and its agents. Runs and threads have files of their own.

use futures::future::LocalBoxFuture;
use web_sys::Request;

use super::RequestIds;
use super::bindings::Env;
use super::body::{self, BodyFault};
use super::env;
use super::header;
use super::identity::{Identity, authenticate};
use super::log::ConsoleLog;
use super::reply::Answer;
use super::run_calls::RunObjects;
use super::server_tools::declarations;
use crate::api::auth::{Caller, Principal, join_resources};
use crate::api::body::{check_content_encoding, check_content_length, check_content_type, text};
use crate::api::error::ApiError;
use crate::api::openapi;
use crate::api::query::Query;
use crate::api::reply;
use crate::api::route::Route;
use crate::config::{AgentConfig, Config};
use crate::protocol::agent::Agent;
use crate::protocol::forwarded_props::ClientResource;
use crate::protocol::id::AgentId;
use crate::run::ports::{Level, Log};
use crate::store::{AttachmentError, DatabaseError, StoreError};

/// What the service speaks with threads, in a database or at the default agent's server, and without. Source: contract 9.
const LEVEL_WITH_THREADS: u8 = 4;
const LEVEL_WITHOUT_THREADS: u8 = 2;

/// A request and all that is needed to answer it.
#[derive(Debug)]
pub struct Call<'a> {
    /// The request.
    pub request: &'a Request,
    /// Its query.
    pub query: Query,
    /// The deployment.
    pub env: &'a Env,
    /// Its configuration.
    pub config: &'a Config,
    /// Its objects.
    pub objects: RunObjects,
    /// With the request's id on each line.
    pub log: &'a ConsoleLog,
    /// What tells it from others.
    pub ids: &'a RequestIds,
    /// Who sends it.
    pub identity: Identity,
}

impl Call<'_> {
    /// Answers the request.
    ///
    /// # Errors
    /// What is wrong with it, or with us.
    pub async fn answer(&self, route: Route) -> Result<Answer, ApiError> {
        // What the service is may be asked by anybody; everything else needs the credentials the deployment wants. What
        // comes over a socket is checked when it comes.
        if let Route::DescribeService = route {
            return Ok(self.describe_service());
        }
        if let Route::DescribeApi = route {
            return self.describe_api();
        }
        if let Route::ReadHealth = route
            && !self.query.deep_health()?
        {
            return Ok(self.liveness());
        }
        if let Route::OpenSocket = route {
            return self.open_socket();
        }
        let principal = self.principal().await?;
        // Boxed, so that each is a function of its own: the platform compiles what is called, and no more.
        let answering: LocalBoxFuture<'_, _> = match route {
            Route::DescribeService => return Ok(self.describe_service()),
            Route::DescribeApi => return self.describe_api(),
            Route::OpenSocket => return self.open_socket(),
            Route::ReadHealth => Box::pin(self.deep_health(principal)),
            Route::StartRun => Box::pin(self.start_run(principal)),
            Route::PostResult { run_id, tool_call_id } => {
                Box::pin(self.post_result(principal, run_id, tool_call_id))
            }
            Route::ReadRun { run_id } => Box::pin(self.read_run(principal, run_id)),
            Route::FollowRun { run_id } => Box::pin(self.follow_run(principal, run_id)),
            Route::CancelRun { run_id } => Box::pin(self.cancel_run(principal, run_id)),
            Route::ListThreads => Box::pin(self.list_threads(principal)),
            Route::CreateThread => Box::pin(self.create_thread(principal)),
            Route::ReadThread { thread_id } => Box::pin(self.read_thread(principal, thread_id)),
            Route::UpdateThread { thread_id } => Box::pin(self.update_thread(principal, thread_id)),
            Route::DeleteThread { thread_id } => Box::pin(self.delete_thread(principal, thread_id)),
            Route::ListMessages { thread_id } => Box::pin(self.list_messages(principal, thread_id)),
            Route::ExportThread { thread_id } => Box::pin(self.export_thread(principal, thread_id)),
            Route::EraseOwner { resource_id } => Box::pin(self.erase_owner(principal, resource_id)),
            Route::ListAgents => Box::pin(self.list_agents()),
            Route::ReadAgent { agent_id } => Box::pin(self.read_agent(agent_id)),
        };
        answering.await
    }

    fn describe_service(&self) -> Answer {
        let has_threads = env::database(self.env).is_some() || self.config.keeper_of_threads(None).is_some();
        let level = if has_threads {
            LEVEL_WITH_THREADS
        } else {
            LEVEL_WITHOUT_THREADS
        };
        Answer::json(reply::service(
            env!("CARGO_PKG_NAME"),
            env!("CARGO_PKG_VERSION"),
            level,
        ))
    }

    fn describe_api(&self) -> Result<Answer, ApiError> {
        Ok(Answer::json(openapi::document(
            env!("CARGO_PKG_VERSION"),
            &self.config.prefix,
        )))
    }

    async fn list_agents(&self) -> Result<Answer, ApiError> {
        let mut agents: Vec<Agent> = Vec::new();
        // One after the other: servers that several agents have are asked once.
        for agent in self.config.agents() {
            agents.push(self.describe(agent).await);
        }
        Ok(Answer::json(reply::agent_list(&agents, self.config.list_shape)))
    }

    async fn read_agent(&self, id: AgentId) -> Result<Answer, ApiError> {
        let agent = self
            .config
            .agent(Some(&id))
            .ok_or_else(ApiError::agent_not_found)?;
        Ok(Answer::json(reply::agent(&self.describe(&agent).await)))
    }

    async fn describe(&self, agent: &AgentConfig) -> Agent {
        agent.describe(&declarations(self.env, self.config, agent, self.log, &self.ids.trace).await)
    }

    async fn principal(&self) -> Result<Option<Principal>, ApiError> {
        match &self.identity {
            Identity::Claimed(credentials) => {
                authenticate(self.env, &self.config.auth, credentials, self.log).await
            }
            Identity::Proven(principal) => Ok(principal.clone()),
        }
    }

    /// The caller: who was authenticated, and the owner that query and body name.
    pub fn caller(&self, principal: Option<Principal>, in_body: ClientResource) -> Result<Caller, ApiError> {
        Caller::new(principal, join_resources(self.query.resource()?, in_body)?)
    }

    /// The body as text; JSON by its content type, and not over the limit.
    pub async fn body(&self, max_bytes: usize) -> Result<String, ApiError> {
        check_content_type(header(self.request, "content-type").as_deref())?;
        check_content_encoding(header(self.request, "content-encoding").as_deref())?;
        let declared = check_content_length(header(self.request, "content-length").as_deref(), max_bytes);
        let keep_bytes = if declared.is_ok() { max_bytes } else { 0 };
        let bytes = body::read(self.request, keep_bytes)
            .await
            .map_err(|fault| match fault {
                BodyFault::TooLarge => ApiError::body_too_large(max_bytes),
                BodyFault::Broken => ApiError::invalid_json("The body could not be read."),
            })?;
        text(bytes)
    }

    /// What a failure of the store is for the client.
    pub fn store_error(&self, error: &StoreError) -> ApiError {
        let (detail, answer) = match error {
            StoreError::Database(DatabaseError::Unavailable(detail)) => {
                (detail.as_str(), ApiError::storage_unavailable())
            }
            StoreError::Database(DatabaseError::Constraint(detail) | DatabaseError::Refused(detail)) => {
                (detail.as_str(), ApiError::internal())
            }
            StoreError::Attachments(AttachmentError(detail)) => {
                (detail.as_str(), ApiError::storage_unavailable())
            }
            StoreError::Corrupt(what) => (*what, ApiError::internal()),
        };
        self.log.line(
            Level::Error,
            "store_failed",
            &[("error", error), ("detail", &detail)],
        );
        answer
    }
}
