//! The server tools of a run: what they are at its start, and their calls, which run beside each other and beside the
//! people who answer front-end calls (2.5).

use std::pin::pin;
use std::rc::Rc;

use futures::future::{Either, LocalBoxFuture, select};
use serde_json::Value;

use super::Run;
use super::answer::{AnsweredCall, CallState, ModelAnswer};
use super::halt::Halt;
use super::http_call::call_http;
use super::mcp_client::McpClient;
use super::mcp_lists::{McpListing, McpLists};
use super::pace::{WaitFor, Waited};
use super::ports::{Clock, EventSink, HttpClient, Level, Log, Ports};
use crate::beside::Beside;
use crate::list::List;
use crate::protocol::id::ToolCallId;
use crate::protocol::json;
use crate::protocol::tool::{Tool, ToolResult};
use crate::tool::mcp::McpTool;
use crate::tool::toolbox::{ServerTools, ToolBox, ToolOwner};

/// Requests of tools at once: the platform has six connections for an invocation, and the database needs one (known
/// fault B135). More calls wait for their turn.
const CALLS_AT_ONCE: usize = 5;

/// Least time a server has to list its tools, whatever `firstResponseWaitMs` says, in milliseconds.
const LIST_WAIT_MIN_MS: u64 = 1000;

/// A run's conversations with its MCP servers, in the agent's order.
pub(super) type Servers<'a, P> = Vec<Rc<McpClient<'a, <P as Ports>::Http, <P as Ports>::Clock>>>;

/// What a step waits for.
type Results<'a> = Beside<'a, (ToolCallId, ToolResult)>;

/// The lists of servers, asked beside each other, within `wait_ms` each.
pub(super) async fn listings<H: HttpClient, C: Clock>(
    servers: &[Rc<McpClient<'_, H, C>>],
    wait_ms: u64,
) -> Vec<McpListing> {
    let wait_ms = wait_ms.max(LIST_WAIT_MIN_MS);
    let asked = servers
        .iter()
        .map(|server| -> LocalBoxFuture<'_, _> { Box::pin(server.tools(wait_ms)) });
    Beside::new(CALLS_AT_ONCE, asked.list()).all().await
}

/// The conversations are over.
async fn leave<H: HttpClient, C: Clock>(servers: &[Rc<McpClient<'_, H, C>>]) {
    let farewells = servers
        .iter()
        .map(|server| -> LocalBoxFuture<'_, _> { Box::pin(server.leave()) });
    Beside::new(CALLS_AT_ONCE, farewells.list()).all().await;
}

/// The server tools of an agent as discovery shows them. A server that cannot be reached offers none.
pub async fn describe_tools<H: HttpClient, C: Clock, L: Log>(
    names: &[String],
    tools: &ServerTools,
    (http, clock, lists, log): (&H, &C, &McpLists, &L),
    wait_ms: u64,
) -> Vec<Tool> {
    let connect = |server: &Rc<_>| Rc::new(McpClient::new(Rc::clone(server), http, clock, lists));
    let servers: Vec<_> = tools.mcp.iter().map(connect).list();
    let listings = listings(&servers, wait_ms).await;
    leave(&servers).await;
    for (server, listing) in servers.iter().zip(&listings) {
        if let Err(fault) = listing {
            let members: [(_, &dyn std::fmt::Display); 2] =
                [("server", &server.server().name), ("error", fault)];
            log.line(Level::Warn, "mcp_server_failed", &members);
        }
    }
    let (toolbox, _) = ToolBox::new(names, tools, &offered(listings), &[]);
    toolbox.declarations()
}

/// Tools by server; none of one that failed.
pub(super) fn offered(listings: Vec<McpListing>) -> Vec<Rc<Vec<McpTool>>> {
    listings.into_iter().map(Result::unwrap_or_default).list()
}

impl<'a, P: Ports, S: EventSink> Run<'a, P, S> {
    /// Puts the run's tools together. Fails when a server is missing that the agent cannot do without.
    pub(super) fn equip(&mut self, listings: Vec<McpListing>) -> Result<(), ()> {
        let mut is_complete = true;
        let log = self.ports.log();
        for (server, listing) in self.servers.iter().zip(&listings) {
            let Err(fault) = listing else { continue };
            let server = server.server();
            is_complete &= !server.required;
            let members: [(_, &dyn std::fmt::Display); 2] = [("server", &server.name), ("error", fault)];
            log.line(Level::Warn, "mcp_server_failed", &members);
        }
        let (names, tools) = (&self.setup.agent.tools, &self.setup.tools);
        let (toolbox, clashes) = ToolBox::new(names, tools, &offered(listings), &self.setup.input.tools);
        for name in &clashes {
            log.line(Level::Warn, "tool_name_clash", &[("tool", name)]);
        }
        self.toolbox = toolbox;
        if is_complete { Ok(()) } else { Err(()) }
    }

    /// The calls of a step that are ours and not `answered`, running. Dropping the stream aborts them.
    fn start_server_calls(&self, answer: &ModelAnswer, answered: &[(ToolCallId, ToolResult)]) -> Results<'a> {
        let ours = answer
            .calls
            .iter()
            .filter(|call| call.state == CallState::Server && !has(answered, call));
        let (native, remote): (Vec<_>, Vec<_>) =
            ours.partition(|call| matches!(self.toolbox.owner(&call.name), Some(ToolOwner::Native(_))));
        // What is answered at once does not queue behind what takes its time.
        let calls: Vec<_> = native
            .into_iter()
            .chain(remote)
            .map(|call| self.server_call(call))
            .list();
        Beside::new(CALLS_AT_ONCE, calls)
    }

    fn server_call(&self, call: &AnsweredCall) -> LocalBoxFuture<'a, (ToolCallId, ToolResult)> {
        let (id, ports) = (call.id.clone(), self.ports);
        let arguments = json::object(&call.arguments).unwrap_or_default();
        match self.toolbox.owner(&call.name) {
            Some(ToolOwner::Native(tool)) => {
                let arguments = Value::Object(arguments);
                Box::pin(async move { (id, tool.call(&arguments, ports.clock().now_ms())) })
            }
            Some(ToolOwner::Http(tool)) => Box::pin(async move {
                let called = call_http(ports.http(), ports.clock(), &tool, &arguments).await;
                (id, called.unwrap_or_else(|fault| fault.result()))
            }),
            Some(ToolOwner::Mcp { server, name }) => {
                let server = self.servers.get(server).cloned();
                Box::pin(async move {
                    let Some(server) = server else {
                        return (id, ToolResult::interrupted());
                    };
                    let called = server.call(&name, &arguments).await;
                    (id, called.unwrap_or_else(|fault| fault.result()))
                })
            }
            Some(ToolOwner::Frontend) | None => Box::pin(async move { (id, ToolResult::interrupted()) }),
        }
    }

    /// Waits until every call of the step has its result or its deadline, whoever runs it, and sends each as it comes.
    pub(super) async fn await_results(
        &mut self,
        answer: &ModelAnswer,
        results: &mut Vec<(ToolCallId, ToolResult)>,
    ) -> Result<(), Halt> {
        let kept = std::mem::take(&mut self.kept_results);
        for (id, result) in &kept {
            self.emitter.result(id, result.clone())?;
        }
        let count = |state: CallState| {
            let open = |call: &&AnsweredCall| call.state == state && !has(&kept, call);
            answer.calls.iter().filter(open).count()
        };
        let (mut awaited, mut running) = (count(CallState::Frontend), count(CallState::Server));
        let mut server_results = self.start_server_calls(answer, &kept);
        results.extend(kept);
        while awaited > 0 || running > 0 {
            let until_ms = self.control.mailbox.next_deadline_ms();
            let kind = match (running, awaited) {
                (0, _) => WaitFor::Person { until_ms },
                (_, 0) => WaitFor::Work { until_ms: None },
                (_, _) => WaitFor::WorkAndPerson { until_ms },
            };
            let posted = self.control.mailbox.next_result();
            let next = async {
                if running == 0 {
                    return (posted.await, false);
                }
                match select(pin!(server_results.next()), pin!(posted)).await {
                    Either::Left((Some((_, result)), _)) => (result, true),
                    Either::Left((None, posted)) => (posted.await, false),
                    Either::Right((result, _)) => (result, false),
                }
            };
            let (came, is_posted) = match self.pace.wait(&mut self.emitter, kind, next).await? {
                Waited::Came((result, true)) => {
                    running -= 1;
                    (vec![result], false)
                }
                Waited::Came((result, false)) => {
                    awaited = awaited.saturating_sub(1);
                    (vec![result], true)
                }
                Waited::Due => {
                    let expired = self.control.mailbox.expire(self.pace.now_ms());
                    awaited = awaited.saturating_sub(expired.len());
                    let late = |id| (id, ToolResult::failure("The tool did not answer in time."));
                    (expired.into_iter().map(late).list(), false)
                }
            };
            for (id, result) in came {
                // What was posted is kept since it was taken.
                if !is_posted {
                    self.note_kept(self.ports.keeper().keep_result(&id, &result, false));
                }
                self.emitter.result(&id, result.clone())?;
                results.push((id, result));
            }
        }
        self.is_parked = false;
        Ok(())
    }

    /// The run needs its MCP servers no more.
    pub(super) async fn leave_servers(&self) {
        leave(&self.servers).await;
    }
}

fn has(results: &[(ToolCallId, ToolResult)], call: &AnsweredCall) -> bool {
    results.iter().any(|(id, _)| *id == call.id)
}
