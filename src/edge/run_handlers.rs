//! Handlers of the routes that start and address runs.

use std::fmt::Display;

use wasm_bindgen::JsValue;

use super::clock::PlatformClock;
use super::env;
use super::handlers::Call;
use super::header;
use super::ids;
use super::rates;
use super::reply::Answer;
use super::run_calls::{RunCall, Start};
use super::stream::describe;
use crate::api::auth::{Caller, Principal};
use crate::api::body::{self, THREAD_BODY_MAX_BYTES};
use crate::api::error::ApiError;
use crate::api::limits::{self, InputLimits};
use crate::binding::accept::Binding;
use crate::config::Limits;
use crate::config::agents::OnDisconnect;
use crate::protocol::forwarded_props::ClientResource;
use crate::protocol::id::{AgentId, ObjectAddress, ResourceId, RunId, ToolCallAddress, ToolCallId};
use crate::protocol::input::RunAgentInput;
use crate::protocol::json;
use crate::protocol::tool_result;
use crate::run::description::RunDescription;
use crate::run::plan;
use crate::run::ports::{Clock, Level, Log};
use crate::store::{Persistence, RunRow, RunStatus, Store};

/// Where the platform says who a request comes from.
pub const ADDRESS_HEADER: &str = "cf-connecting-ip";

impl Call<'_> {
    /// `POST /run`
    pub async fn start_run(&self, principal: Option<Principal>) -> Result<Answer, ApiError> {
        let limits = &self.config.limits;
        let text = self.body(limits.run_body_max_bytes).await?;
        let input_limits = input_limits(limits);
        input_limits.check_text(&text)?;
        let decoded = RunAgentInput::decode(&text)?;
        for warning in &decoded.warnings {
            let members: [(&str, &dyn Display); 2] =
                [("field", &warning.pointer), ("message", &warning.message)];
            self.log.line(Level::Warn, "input_ignored", &members);
        }
        let mut input = decoded.input;
        input_limits.check(&input)?;
        let agent = self.config.agent(input.forwarded_props.agent_id.as_ref());
        let agent = agent.ok_or_else(ApiError::agent_not_found)?;
        let caller = self.caller(principal, input.forwarded_props.resource_id)?;
        env::model_target(self.env, &agent, self.log)?;
        input.forwarded_props.resource_id = caller.resource().clone();
        let principal = match caller.principal() {
            Some(Principal::Owner(owner)) => Some(owner),
            Some(Principal::Admin) | None => None,
        };
        let persistence = plan::persistence(&agent, &input, principal);
        let is_stored = persistence != Persistence::Stateless && !input.forwarded_props.read_only;
        if is_stored && env::attachments(self.env).is_none() {
            limits::check_attachments(&input, limits.attachment_max_bytes)?;
        }
        self.check_rates(caller.owner()).await?;
        let call = RunCall::Start(Start {
            agent_id: AgentId::new(agent.id.as_str()),
            owner: owner(&persistence, &caller),
            persistence,
            binding: self.binding(),
            request_id: self.ids.request_id.clone(),
            trace: self.ids.trace.header(ids::span()),
        });
        let address = self
            .objects
            .fresh(self.config.jurisdiction.as_deref())
            .map_err(|thrown| self.object_error(thrown))?;
        // The object has it all now; it may be long, and the model slow to answer.
        let run_id = input.run_id.clone();
        drop(input);
        let answer = match self.call(address, &call, text).await {
            Ok(answer) => answer.ok_or_else(ApiError::internal)?,
            Err(error) if agent.on_disconnect == OnDisconnect::Stop => return Err(error),
            Err(error) => self.find_started(address, run_id, &caller).await.ok_or(error)?,
        };
        Ok(if answer.is_success() {
            with_address(answer, address)
        } else {
            answer
        })
    }

    /// The stream of a durable run whose object was reset under the call that started it: it goes on if it was kept.
    async fn find_started(&self, address: ObjectAddress, run_id: RunId, caller: &Caller) -> Option<Answer> {
        let call = RunCall::Events {
            run_id,
            caller: caller.owner().cloned(),
            after: 0,
            generation: None,
            binding: self.binding(),
        };
        self.call(address, &call, String::new()).await.ok().flatten()
    }

    /// `POST /runs/:runId/tool-calls/:toolCallId/result`. The object is found from the call's id alone. Source: D17.
    pub async fn post_result(
        &self,
        principal: Option<Principal>,
        run_id: RunId,
        tool_call_id: ToolCallId,
    ) -> Result<Answer, ApiError> {
        let body = self.body(self.config.limits.result_body_max_bytes).await?;
        let result = tool_result::decode(&body)?;
        let caller = self.caller(principal, ClientResource::Absent)?;
        let address = ToolCallAddress::parse(tool_call_id.as_str()).map(|address| address.object);
        let address = address.filter(|object| self.objects.knows(*object));
        let address = address.ok_or_else(ApiError::tool_call_not_found)?;
        let call = RunCall::Deliver {
            run_id: run_id.clone(),
            tool_call_id,
            caller: caller.owner().cloned(),
            is_error: result.is_error,
        };
        match self.call(address, &call, result.content).await? {
            Some(answer) => Ok(answer),
            None => {
                self.lost_row(&run_id, &caller, address).await?;
                Err(ApiError::run_over())
            }
        }
    }

    /// `GET /runs/:runId`
    pub async fn read_run(&self, principal: Option<Principal>, run_id: RunId) -> Result<Answer, ApiError> {
        let caller = self.caller(principal, ClientResource::Absent)?;
        let call = RunCall::Status {
            run_id: run_id.clone(),
            caller: caller.owner().cloned(),
        };
        match self
            .call_run(&run_id, &caller, self.query.run_address()?, &call)
            .await?
        {
            (_, Some(answer)) => Ok(answer),
            (address, None) => self.describe_row(&run_id, &caller, address).await,
        }
    }

    /// `GET /runs/:runId/events`
    pub async fn follow_run(&self, principal: Option<Principal>, run_id: RunId) -> Result<Answer, ApiError> {
        let caller = self.caller(principal, ClientResource::Absent)?;
        let request = self.query.run_events()?;
        let call = RunCall::Events {
            run_id: run_id.clone(),
            caller: caller.owner().cloned(),
            after: request.after_count,
            generation: request.generation,
            binding: self.binding(),
        };
        match self.call_run(&run_id, &caller, request.address, &call).await? {
            (address, Some(answer)) if answer.is_success() => Ok(with_address(answer, address)),
            (_, Some(answer)) => Ok(answer),
            (address, None) => {
                self.lost_row(&run_id, &caller, address).await?;
                Err(ApiError::run_over())
            }
        }
    }

    /// `POST /runs/:runId/cancel`; of a run that is over, its state.
    pub async fn cancel_run(&self, principal: Option<Principal>, run_id: RunId) -> Result<Answer, ApiError> {
        let body = self.body(THREAD_BODY_MAX_BYTES).await?;
        let caller = self.caller(principal, body::resource(&body)?)?;
        let call = RunCall::Cancel {
            run_id: run_id.clone(),
            caller: caller.owner().cloned(),
        };
        match self
            .call_run(&run_id, &caller, self.query.run_address()?, &call)
            .await?
        {
            (_, Some(answer)) => Ok(answer),
            (address, None) => self.describe_row(&run_id, &caller, address).await,
        }
    }

    /// Calls the object of a run: at the address the client gave, else where its row says. No answer = the object does
    /// not have the run any more, if it ever had one.
    async fn call_run(
        &self,
        run_id: &RunId,
        caller: &Caller,
        address: Option<ObjectAddress>,
        call: &RunCall,
    ) -> Result<(ObjectAddress, Option<Answer>), ApiError> {
        let address = match address {
            Some(address) if self.objects.knows(address) => address,
            Some(_) => return Err(ApiError::run_not_found()),
            None => self.row(run_id, caller, None).await?.object,
        };
        Ok((address, self.call(address, call, String::new()).await?))
    }

    /// Runs per minute of an owner and of an address, where the deployment has bindings that count them.
    async fn check_rates(&self, owner: Option<&ResourceId>) -> Result<(), ApiError> {
        let address = header(self.request, ADDRESS_HEADER);
        let keys = [
            (rates::PER_OWNER, owner.map(ResourceId::as_str)),
            (rates::PER_ADDRESS, address.as_deref()),
        ];
        for (binding, key) in keys {
            if let Some(key) = key
                && !rates::admits(self.env, binding, key, self.log).await
            {
                return Err(ApiError::rate_limited());
            }
        }
        Ok(())
    }

    fn binding(&self) -> Binding {
        Binding::from_accept(header(self.request, "accept").as_deref())
    }

    async fn describe_row(
        &self,
        run_id: &RunId,
        caller: &Caller,
        address: ObjectAddress,
    ) -> Result<Answer, ApiError> {
        let row = self.lost_row(run_id, caller, address).await?;
        let description = RunDescription {
            run_id: row.run_id,
            thread_id: row.thread_id,
            agent_id: row.agent_id,
            status: row.status.as_str(),
            generation: None,
            started_at_ms: row.started_at_ms,
            finished_at_ms: row.finished_at_ms,
            event_count: None,
            pending: Vec::new(),
        };
        Ok(Answer::json(json::text(&description.to_json())))
    }

    /// The row of a run whose object does not have it any more. A row that is still live lost its object's memory to a
    /// crash too early for the watchdog: who finds it closes it (contract 8).
    async fn lost_row(
        &self,
        run_id: &RunId,
        caller: &Caller,
        address: ObjectAddress,
    ) -> Result<RunRow, ApiError> {
        let mut row = self.row(run_id, caller, Some(address)).await?;
        if is_live(row.status)
            && let Some(database) = env::database(self.env)
        {
            let now_ms = PlatformClock.now_ms();
            let closed = Store::new(database)
                .close_orphan(&row.owner, run_id, address, now_ms)
                .await;
            closed.map_err(|error| self.store_error(&error))?;
            row.status = RunStatus::Failed;
            row.finished_at_ms = Some(now_ms);
        }
        Ok(row)
    }

    /// The row of a run the caller may touch. Several owners may have runs of one id (D12): who names neither owner nor
    /// object is not answered about an arbitrary one.
    ///
    /// # Errors
    /// 404 without one, 403 when there are only others', 400 when it is not known which is meant.
    async fn row(
        &self,
        run_id: &RunId,
        caller: &Caller,
        object: Option<ObjectAddress>,
    ) -> Result<RunRow, ApiError> {
        let database = env::database(self.env).ok_or_else(ApiError::run_not_found)?;
        let rows = Store::new(database)
            .find_runs(run_id, PlatformClock.now_ms())
            .await;
        let mut rows = rows.map_err(|error| self.store_error(&error))?;
        rows.retain(|row| object.is_none_or(|object| row.object == object));
        let exists = !rows.is_empty();
        rows.retain(|row| caller.may_touch(&row.owner).is_ok());
        match (rows.pop(), rows.is_empty()) {
            (Some(row), true) => Ok(row),
            (Some(_), false) => Err(ApiError::ambiguous_run()),
            (None, _) if exists => Err(ApiError::forbidden()),
            (None, _) => Err(ApiError::run_not_found()),
        }
    }

    async fn call(
        &self,
        address: ObjectAddress,
        call: &RunCall,
        text: String,
    ) -> Result<Option<Answer>, ApiError> {
        let answer = self.objects.call(address, call, text).await;
        answer.map_err(|thrown| self.object_error(thrown))
    }

    /// The platform could not reach an object, or reset it under the call: it may work again in a moment.
    fn object_error(&self, thrown: JsValue) -> ApiError {
        self.log.line(
            Level::Error,
            "object_call_failed",
            &[("error", &describe(&thrown))],
        );
        ApiError::storage_unavailable()
    }
}

fn input_limits(limits: &Limits) -> InputLimits {
    InputLimits {
        messages_max_count: limits.messages_max_count,
        tools_max_count: limits.tools_max_count,
        json_max_depth: limits.json_max_depth,
        schema_max_bytes: limits.schema_max_bytes,
        schema_max_depth: limits.schema_max_depth,
        id_max_bytes: limits.id_max_bytes,
    }
}

/// The owner of a run: who its thread belongs to, else who calls.
fn owner(persistence: &Persistence, caller: &Caller) -> Option<ResourceId> {
    match persistence {
        Persistence::Create(owner) | Persistence::IfThreadExists(owner) => Some(owner.clone()),
        Persistence::Stateless => caller.owner().cloned(),
    }
}

fn is_live(status: RunStatus) -> bool {
    match status {
        RunStatus::Running | RunStatus::Waiting => true,
        RunStatus::Finished | RunStatus::Failed | RunStatus::Cancelled => false,
    }
}

/// Where a run is found again. Source: D17.
fn with_address(answer: Answer, address: ObjectAddress) -> Answer {
    answer.with_headers([("io-run-address", address.to_base64url())])
}
