//! One call of an HTTP tool, redirects included.

use serde_json::{Map, Value};

use super::deadline::{BodyFault, Deadline, header, read_body};
use super::ports::{Clock, HttpClient};
use crate::protocol::tool::ToolResult;
use crate::tool::http::{HttpTool, HttpToolFault, REDIRECTS_MAX_COUNT, read_answer};

/// Runs the call. Dropping the future aborts it.
///
/// # Errors
/// [`HttpToolFault`]
pub(super) async fn call_http(
    http: &impl HttpClient,
    clock: &impl Clock,
    tool: &HttpTool,
    arguments: &Map<String, Value>,
) -> Result<ToolResult, HttpToolFault> {
    let deadline = Deadline::after(clock, tool.timeout_ms);
    let called = deadline.within(follow(http, tool, arguments)).await;
    called.unwrap_or(Err(HttpToolFault::Timeout))
}

async fn follow(
    http: &impl HttpClient,
    tool: &HttpTool,
    arguments: &Map<String, Value>,
) -> Result<ToolResult, HttpToolFault> {
    let mut request = tool.request(arguments)?;
    for _ in 0..=REDIRECTS_MAX_COUNT {
        let response = http.send(request.clone()).await;
        let mut response = response.map_err(|_| HttpToolFault::Unreachable)?;
        if (200..300).contains(&response.status) {
            let content_type = header(&response.headers, "content-type");
            let body = read_body(&mut response.body, tool.result_max_bytes).await;
            let body = body.map_err(|fault| match fault {
                BodyFault::Broken(_) => HttpToolFault::Unreachable,
                BodyFault::TooLong => HttpToolFault::TooLong(tool.result_max_bytes),
            })?;
            return read_answer(content_type, body);
        }
        let location = header(&response.headers, "location");
        let next = tool.redirected(&request, response.status, location)?;
        // Leaving here drops the body, which frees its connection (known fault B135).
        request = next.ok_or(HttpToolFault::Status(response.status))?;
    }
    Err(HttpToolFault::Redirects)
}
