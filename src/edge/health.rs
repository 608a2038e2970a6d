//! `GET /health`: whether the Worker answers, and with `deep=1` whether what it needs does.

use serde_json::{Map, Value};

use super::env;
use super::handlers::Call;
use super::reply::Answer;
use super::run_calls::RunCall;
use super::server_tools::server_tools;
use super::stream::describe;
use crate::api::auth::Principal;
use crate::api::error::ApiError;
use crate::api::reply;
use crate::config::AgentConfig;
use crate::protocol::id::RunId;
use crate::protocol::tree::json;
use crate::run::ports::{Level, Log};
use crate::store::{Database, Statement};

const OK: &str = "ok";
const FAILING: &str = "failing";
const ABSENT: &str = "absent";
const NOT_CONFIGURED: &str = "not_configured";

impl Call<'_> {
    /// Whether the Worker answers. Asks nobody.
    pub fn liveness(&self) -> Answer {
        Answer::json(reply::health(OK, None))
    }

    /// Asks the databases and an object, and looks at each agent's configuration. Says what works, never why not: that
    /// is in the log. For who runs the deployment.
    pub async fn deep_health(&self, principal: Option<Principal>) -> Result<Answer, ApiError> {
        match principal {
            None | Some(Principal::Admin) => {}
            Some(Principal::Owner(_)) => return Err(ApiError::forbidden()),
        }
        let mut checks = Map::new();
        checks.insert(
            "database".to_owned(),
            json!(self.check_database(env::database(self.env)).await),
        );
        checks.insert(
            "search".to_owned(),
            json!(self.check_database(env::search(self.env)).await),
        );
        checks.insert("object".to_owned(), json!(self.check_object().await));
        let agents = self.config.agents().iter();
        let agents = agents.map(|agent| (agent.id.clone(), json!(self.check_agent(agent))));
        checks.insert("agents".to_owned(), Value::Object(agents.collect()));
        let checks = Value::Object(checks);
        if is_well(&checks) {
            Ok(Answer::json(reply::health(OK, Some(checks))))
        } else {
            Err(ApiError::unhealthy(checks))
        }
    }

    async fn check_database(&self, database: Option<impl Database>) -> &'static str {
        let Some(database) = database else {
            return ABSENT;
        };
        let answered = database
            .batch(vec![Statement::new("SELECT 1 AS one", Vec::new())])
            .await;
        self.judged("database", answered.map_err(|error| error.to_string()))
    }

    /// Asks a fresh object for a run it does not have; it keeps nothing of that.
    async fn check_object(&self) -> &'static str {
        let status = RunCall::Status {
            run_id: RunId::new("health"),
            caller: None,
        };
        let answered = match self.objects.fresh(self.config.jurisdiction.as_deref()) {
            Ok(address) => self.objects.call(address, &status, String::new()).await,
            Err(thrown) => Err(thrown),
        };
        self.judged("object", answered.map_err(|thrown| describe(&thrown)))
    }

    /// Whether an agent has the key, the binding and the secrets its configuration names.
    fn check_agent(&self, agent: &AgentConfig) -> &'static str {
        let target = env::model_target(self.env, agent, self.log);
        let tools = server_tools(self.env, self.config, agent, self.log);
        if target.is_ok() && tools.is_ok() {
            OK
        } else {
            NOT_CONFIGURED
        }
    }

    fn judged<T>(&self, part: &'static str, answered: Result<T, String>) -> &'static str {
        let Err(error) = answered else {
            return OK;
        };
        self.log
            .line(Level::Error, "unhealthy", &[("part", &part), ("error", &error)]);
        FAILING
    }
}

fn is_well(checks: &Value) -> bool {
    match checks {
        Value::Object(parts) => parts.values().all(is_well),
        Value::String(state) => state == OK || state == ABSENT,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => true,
    }
}
