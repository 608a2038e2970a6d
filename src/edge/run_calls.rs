//! What the Worker asks of a run's object: both sides of the call in one place.
//!
//! A call is one POST. Its body is a line of JSON, [`RunCall`], and after the line feed a text that is passed as it
//! is: large bodies are not escaped into JSON a second time.

use js_sys::{Object, Reflect, Uint8Array};
use serde::Serialize;
use wasm_bindgen::{JsCast, JsValue};
use web_sys::{Request, RequestInit, Response};

use super::bindings::{Namespace, ObjectId};
use super::body;
use super::reply::Answer;
use crate::binding::accept::Binding;
use crate::protocol::id::{AgentId, ObjectAddress, ResourceId, RunId, ToolCallId};
use crate::protocol::json;
use crate::protocol::read::{self, record, variants};
use crate::store::Persistence;

/// The platform routes by object; the address only has to be one.
const ANY_URL: &str = "https://run-object/";

/// What an object answers that has no run: no answer to a client has this status.
const NO_RUN_STATUS: u16 = 204;

/// What starts a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Start {
    /// The agent, alias resolved.
    pub agent_id: AgentId,
    /// Who owns the run.
    pub owner: Option<ResourceId>,
    /// How it treats its thread.
    pub persistence: Persistence,
    /// How its stream is framed.
    pub binding: Binding,
    /// For the log.
    pub request_id: String,
    /// The request's trace, as a header of its own.
    pub trace: String,
}

record!(Start:
    "agentId" => agent_id, "owner" => owner = None, "persistence" => persistence, "binding" => binding,
    "requestId" => request_id, "trace" => trace,
);

/// A call to a run's object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RunCall {
    /// Starts the run; the text is the client's `RunAgentInput`. Answers a stream or an error.
    Start(Start),
    /// Delivers a result; the text is its content.
    Deliver {
        /// Run of the URL.
        run_id: RunId,
        /// Call of the URL.
        tool_call_id: ToolCallId,
        /// Who delivers; absent = whoever knows the ids.
        caller: Option<ResourceId>,
        /// Whether the call failed.
        is_error: bool,
    },
    /// Asks for the state of the run.
    Status {
        /// Run of the URL.
        run_id: RunId,
        /// Who asks.
        caller: Option<ResourceId>,
    },
    /// Asks for the stream after the first `after` events.
    Events {
        /// Run of the URL.
        run_id: RunId,
        /// Who asks.
        caller: Option<ResourceId>,
        /// Events the client has seen.
        after: u64,
        /// Of which generation; absent = of the present one.
        generation: Option<u64>,
        /// How the stream is framed.
        binding: Binding,
    },
    /// Stops the run.
    Cancel {
        /// Run of the URL.
        run_id: RunId,
        /// Who asks.
        caller: Option<ResourceId>,
    },
}

variants!(RunCall:
    "start" => Start(start),
    "deliver" => Deliver {
        "runId" => run_id, "toolCallId" => tool_call_id, "caller" => caller = None, "isError" => is_error,
    },
    "status" => Status { "runId" => run_id, "caller" => caller = None },
    "events" => Events {
        "runId" => run_id, "caller" => caller = None, "after" => after, "generation" => generation = None,
        "binding" => binding,
    },
    "cancel" => Cancel { "runId" => run_id, "caller" => caller = None },
);

impl RunCall {
    /// Whether the call may be made again when it is not known whether it arrived.
    fn is_repeatable(&self) -> bool {
        match self {
            Self::Start(_) => false,
            // The first result wins and the same value again is the same answer.
            Self::Deliver { .. } | Self::Status { .. } | Self::Events { .. } | Self::Cancel { .. } => true,
        }
    }

    /// The object's side: takes a request apart. The Worker has kept its body small enough.
    pub async fn read(request: &Request) -> Option<(Self, String)> {
        let mut line = body::whole(request).await.ok()?;
        let end = line.iter().position(|byte| *byte == b'\n')?;
        let text = String::from_utf8(line.split_off(end + 1)).ok()?;
        Some((read::from_text(str::from_utf8(&line).ok()?).ok()?, text))
    }

    fn request(&self, text: &str) -> RequestInit {
        let mut body = json::text(self);
        body.push('\n');
        body.push_str(text);
        let init = RequestInit::new();
        init.set_method("POST");
        init.set_body(&Uint8Array::from(body.as_bytes()).into());
        init
    }
}

/// The objects that runs live in.
#[derive(Debug)]
pub struct RunObjects {
    namespace: Namespace,
}

impl RunObjects {
    /// Takes the binding.
    pub fn new(namespace: Namespace) -> Self {
        Self { namespace }
    }

    /// A fresh address, in a jurisdiction if there is to be one. Source: D17.
    ///
    /// # Errors
    /// What the platform said.
    pub fn fresh(&self, jurisdiction: Option<&str>) -> Result<ObjectAddress, JsValue> {
        let options = Object::new();
        if let Some(jurisdiction) = jurisdiction {
            Reflect::set(&options, &"jurisdiction".into(), &jurisdiction.into())?;
        }
        let id = self.namespace.unique_id(&options)?;
        ObjectAddress::from_hex(&id.to_hex())
            .ok_or_else(|| "an object id is not 64 hexadecimal digits".into())
    }

    /// Whether an address belongs to this namespace.
    pub fn knows(&self, address: ObjectAddress) -> bool {
        self.id(address).is_ok()
    }

    /// Calls an object and waits for the head of its answer; `None` = it has no run. A call that may be repeated is
    /// tried once more on a new stub when the object was reset under it (known fault B111).
    ///
    /// # Errors
    /// What the platform said.
    pub async fn call(
        &self,
        address: ObjectAddress,
        call: &RunCall,
        text: String,
    ) -> Result<Option<Answer>, JsValue> {
        let request = call.request(&text);
        drop(text);
        let response = match self.call_once(address, &request).await {
            Err(_) if call.is_repeatable() => self.call_once(address, &request).await?,
            response => response?,
        };
        let has_run = response.status() != NO_RUN_STATUS;
        Ok(has_run.then(|| Answer::relayed(&response)))
    }

    async fn call_once(&self, address: ObjectAddress, request: &RequestInit) -> Result<Response, JsValue> {
        let id = self.id(address)?;
        self.namespace.send(&id, ANY_URL, request).await?.dyn_into()
    }

    fn id(&self, address: ObjectAddress) -> Result<ObjectId, JsValue> {
        self.namespace.id_from_hex(&address.to_hex())
    }
}
