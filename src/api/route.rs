//! The one route table. A new route is a variant and a row here; the compiler then asks for its handler.

use super::error::ApiError;
use crate::list::List;
use crate::protocol::id::{AgentId, ResourceId, RunId, ThreadId, ToolCallId};
use crate::protocol::parts;
use crate::protocol::percent;

/// A request's destination, its path parameters decoded. Source: contract 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Route {
    /// `GET` the prefix itself: what this service is.
    DescribeService,
    /// `GET /openapi.json`: the API described for machines.
    DescribeApi,
    /// `GET /health`
    ReadHealth,
    /// `POST /run`
    StartRun,
    /// `GET /run` with `Upgrade: websocket`: a run over a WebSocket (contract 7).
    OpenSocket,
    /// `POST /runs/:runId/tool-calls/:toolCallId/result`
    PostResult {
        /// The run that waits.
        run_id: RunId,
        /// The call answered.
        tool_call_id: ToolCallId,
    },
    /// `GET /runs/:runId`
    ReadRun {
        /// The run.
        run_id: RunId,
    },
    /// `GET /runs/:runId/events`
    FollowRun {
        /// The run.
        run_id: RunId,
    },
    /// `POST /runs/:runId/cancel`
    CancelRun {
        /// The run.
        run_id: RunId,
    },
    /// `GET /threads`
    ListThreads,
    /// `POST /threads`
    CreateThread,
    /// `GET /threads/:threadId`
    ReadThread {
        /// The thread.
        thread_id: ThreadId,
    },
    /// `PATCH /threads/:threadId`
    UpdateThread {
        /// The thread.
        thread_id: ThreadId,
    },
    /// `DELETE /threads/:threadId`
    DeleteThread {
        /// The thread.
        thread_id: ThreadId,
    },
    /// `GET /threads/:threadId/messages`
    ListMessages {
        /// The thread.
        thread_id: ThreadId,
    },
    /// `GET /threads/:threadId/export`
    ExportThread {
        /// The thread.
        thread_id: ThreadId,
    },
    /// `POST /owners/:resourceId/erase`
    EraseOwner {
        /// The owner.
        resource_id: ResourceId,
    },
    /// `GET /agents`
    ListAgents,
    /// `GET /agents/:agentId`
    ReadAgent {
        /// Id or alias.
        agent_id: AgentId,
    },
}

/// Methods of the table; HEAD goes where GET goes and OPTIONS is answered before routing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// `GET`
    Get,
    /// `GET` with `Upgrade: websocket`.
    Handshake,
    /// `POST`
    Post,
    /// `PATCH`
    Patch,
    /// `DELETE`
    Delete,
}

impl Method {
    /// The method on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Handshake => "GET (WebSocket)",
            Self::Post => "POST",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// From which conformance level on a service has a route. Source: contract 1, 9.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// Part of every service; no level.
    Service,
    /// Level 1.
    Stream,
    /// Level 2.
    ToolResults,
    /// Level 3.
    Threads,
    /// Level 4.
    Agents,
    /// Ours; no level.
    Extension,
}

impl Level {
    /// As the documentation's table writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Service => "-",
            Self::Stream => "1",
            Self::ToolResults => "2",
            Self::Threads => "3",
            Self::Agents => "4",
            Self::Extension => "extension",
        }
    }
}

/// One row of [`ROUTES`].
#[derive(Debug)]
pub struct RouteRow {
    /// Method.
    pub method: Method,
    /// Path after the prefix; a segment `:name` is a parameter.
    pub path: &'static str,
    /// Conformance level.
    pub level: Level,
    open: fn(&Parameters) -> Option<Route>,
}

/// Every route.
pub const ROUTES: &[RouteRow] = &[
    row(Method::Get, "", Level::Service, |_| Some(Route::DescribeService)),
    row(Method::Get, "/openapi.json", Level::Extension, |_| {
        Some(Route::DescribeApi)
    }),
    row(Method::Get, "/health", Level::Extension, |_| {
        Some(Route::ReadHealth)
    }),
    row(Method::Post, "/run", Level::Stream, |_| Some(Route::StartRun)),
    row(Method::Handshake, "/run", Level::Extension, |_| {
        Some(Route::OpenSocket)
    }),
    row(
        Method::Post,
        "/runs/:runId/tool-calls/:toolCallId/result",
        Level::ToolResults,
        |path| {
            Some(Route::PostResult {
                run_id: path.run_id()?,
                tool_call_id: path.tool_call_id()?,
            })
        },
    ),
    row(Method::Get, "/threads", Level::Threads, |_| {
        Some(Route::ListThreads)
    }),
    row(Method::Post, "/threads", Level::Threads, |_| {
        Some(Route::CreateThread)
    }),
    row(Method::Get, "/threads/:threadId", Level::Threads, |path| {
        Some(Route::ReadThread {
            thread_id: path.thread_id()?,
        })
    }),
    row(Method::Patch, "/threads/:threadId", Level::Threads, |path| {
        Some(Route::UpdateThread {
            thread_id: path.thread_id()?,
        })
    }),
    row(Method::Delete, "/threads/:threadId", Level::Threads, |path| {
        Some(Route::DeleteThread {
            thread_id: path.thread_id()?,
        })
    }),
    row(
        Method::Get,
        "/threads/:threadId/messages",
        Level::Threads,
        |path| {
            Some(Route::ListMessages {
                thread_id: path.thread_id()?,
            })
        },
    ),
    row(Method::Get, "/agents", Level::Agents, |_| Some(Route::ListAgents)),
    row(Method::Get, "/agents/:agentId", Level::Agents, |path| {
        Some(Route::ReadAgent {
            agent_id: path.agent_id()?,
        })
    }),
    row(Method::Get, "/runs/:runId", Level::Extension, |path| {
        Some(Route::ReadRun {
            run_id: path.run_id()?,
        })
    }),
    row(Method::Get, "/runs/:runId/events", Level::Extension, |path| {
        Some(Route::FollowRun {
            run_id: path.run_id()?,
        })
    }),
    row(Method::Post, "/runs/:runId/cancel", Level::Extension, |path| {
        Some(Route::CancelRun {
            run_id: path.run_id()?,
        })
    }),
    row(
        Method::Get,
        "/threads/:threadId/export",
        Level::Extension,
        |path| {
            Some(Route::ExportThread {
                thread_id: path.thread_id()?,
            })
        },
    ),
    row(
        Method::Post,
        "/owners/:resourceId/erase",
        Level::Extension,
        |path| {
            Some(Route::EraseOwner {
                resource_id: path.resource_id()?,
            })
        },
    ),
];

const fn row(
    method: Method,
    path: &'static str,
    level: Level,
    open: fn(&Parameters) -> Option<Route>,
) -> RouteRow {
    RouteRow {
        method,
        path,
        level,
        open,
    }
}

/// Finds the route of a request. `prefix` is `""` or like `/io-bridge`; `path` is as in the URL, still encoded.
///
/// # Errors
/// 404 for a path nobody has, an empty or impossible parameter included; 405 with `Allow` for another method, also for
/// `GET /run` that is no handshake. A handshake nobody wants is a plain GET, as HTTP has it.
///
/// Source: contract 1, D2.
pub fn resolve(prefix: &str, method: &str, path: &str) -> Result<Route, ApiError> {
    let rest = path
        .strip_prefix(prefix)
        .filter(|rest| rest.is_empty() || rest.starts_with('/'));
    let rest = rest.ok_or_else(ApiError::route_not_found)?;
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let matching: Vec<(&RouteRow, Parameters)> = ROUTES
        .iter()
        .filter_map(|row| Some((row, Parameters::read(row.path, rest)?)))
        .list();
    if matching.is_empty() {
        return Err(ApiError::route_not_found());
    }
    let method = if method == "HEAD" { "GET" } else { method };
    let row_of = |method: &str| matching.iter().find(|(row, _)| row.method.as_str() == method);
    let handshake = Method::Handshake.as_str();
    match row_of(method).or_else(|| row_of("GET").filter(|_| method == handshake)) {
        Some((row, parameters)) => (row.open)(parameters).ok_or_else(ApiError::route_not_found),
        None => Err(ApiError::method_not_allowed(allow_header(
            matching.iter().map(|(row, _)| row.method),
        ))),
    }
}

/// The path of an address as the platform gives it, and its query if it has one.
pub fn path_and_query(url: &str) -> (&str, Option<&str>) {
    let (address, query) = match url.split_once('?') {
        Some((address, query)) => (address, Some(query)),
        None => (url, None),
    };
    let after_scheme = parts::split_once(address, "://").map_or(address, |(_, rest)| rest);
    let path = after_scheme.find('/').and_then(|start| after_scheme.get(start..));
    (path.unwrap_or("/"), query)
}

/// The template of a path, `/threads/:threadId`: for the log, which must not hold what a client wrote. `None` where no
/// route has the path.
pub fn template(prefix: &str, path: &str) -> Option<&'static str> {
    let rest = path.strip_prefix(prefix)?;
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let row = ROUTES
        .iter()
        .find(|row| Parameters::read(row.path, rest).is_some())?;
    Some(if row.path.is_empty() { "/" } else { row.path })
}

fn allow_header(methods: impl Iterator<Item = Method>) -> String {
    let mut names = Vec::new();
    for method in methods.filter(|method| *method != Method::Handshake) {
        names.push(method.as_str());
        if method == Method::Get {
            names.push("HEAD");
        }
    }
    names.push("OPTIONS");
    parts::join(&names, ", ")
}

/// Path of a run's event stream, as errors and clients write it. Source: D12.
pub fn events_path(prefix: &str, run_id: &RunId) -> String {
    format!("{prefix}/runs/{}/events", percent::encode(run_id.as_str()))
}

/// Path of a call's result below the prefix.
pub fn result_path(run_id: &RunId, tool_call_id: &str) -> String {
    format!(
        "/runs/{}/tool-calls/{}/result",
        percent::encode(run_id.as_str()),
        percent::encode(tool_call_id)
    )
}

/// The decoded parameters of a path, by their name in the template.
#[derive(Debug)]
struct Parameters(Vec<(&'static str, String)>);

impl Parameters {
    /// `None` when the path is not of this template, or a parameter is empty or no text.
    fn read(template: &'static str, path: &str) -> Option<Self> {
        let mut parameters = Vec::new();
        let mut segments = path.split('/');
        for expected in template.split('/') {
            let segment = segments.next()?;
            match expected.strip_prefix(':') {
                Some(_) if segment.is_empty() => return None,
                Some(name) => parameters.push((name, String::from_utf8(percent::decode(segment)).ok()?)),
                None if segment != expected => return None,
                None => {}
            }
        }
        segments.next().is_none().then_some(Self(parameters))
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, text)| text.as_str())
    }

    fn run_id(&self) -> Option<RunId> {
        RunId::parse(self.get("runId")?).ok()
    }

    fn thread_id(&self) -> Option<ThreadId> {
        ThreadId::parse(self.get("threadId")?).ok()
    }

    fn resource_id(&self) -> Option<ResourceId> {
        ResourceId::parse(self.get("resourceId")?).ok()
    }

    fn tool_call_id(&self) -> Option<ToolCallId> {
        ToolCallId::parse(self.get("toolCallId")?).ok()
    }

    fn agent_id(&self) -> Option<AgentId> {
        AgentId::parse(self.get("agentId")?).ok()
    }
}

#[cfg(test)]
#[path = "route_tests.rs"]
mod tests;
