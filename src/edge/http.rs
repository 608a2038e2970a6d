//! Outgoing HTTP over the platform's `fetch`.

use std::pin::pin;

use futures::future::select;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{
    AbortController, AbortSignal, Headers, RequestInit, RequestRedirect, Response, WorkerGlobalScope,
};

use super::clock::PlatformClock;
use super::stream::{ChunkReader, describe};
use crate::list::List;
use crate::provider::HttpRequest;
use crate::run::ports::{Clock, HttpBody, HttpClient, HttpError, HttpResponse, RESPONSE_HEADERS};

/// How long the rest of an answer that nobody waits for may take, in milliseconds, before the call is aborted.
const LEAVE_WAIT_MS: u64 = 1_000;

/// The platform's `fetch`.
#[derive(Debug, Clone, Copy)]
pub struct FetchClient;

impl HttpClient for FetchClient {
    type Body = FetchBody;

    async fn send(&self, mut request: HttpRequest) -> Result<HttpResponse<FetchBody>, HttpError> {
        let call = Call::new()?;
        let init = init(&request, &call.controller).map_err(fault)?;
        // The platform has the body now; it may be long, and the upstream slow to answer.
        let url = std::mem::take(&mut request.url);
        drop(request);
        let global: WorkerGlobalScope = js_sys::global().unchecked_into();
        let response = JsFuture::from(global.fetch_with_str_and_init(&url, &init))
            .await
            .map_err(fault)?;
        call.answer(response)
    }
}

/// A body being received; dropping it before its end aborts the call.
#[derive(Debug)]
pub struct FetchBody {
    chunks: ChunkReader,
    call: Option<Call>,
}

impl HttpBody for FetchBody {
    async fn next_chunk(&mut self) -> Option<Result<Vec<u8>, HttpError>> {
        let chunk = self.chunks.next_chunk().await;
        if chunk.is_none()
            && let Some(call) = self.call.take()
        {
            call.finish();
        }
        chunk.map(|chunk| chunk.map_err(HttpError))
    }

    fn leave(mut self) {
        if self.call.is_some() {
            spawn_local(async move {
                let rest = pin!(async { while let Some(Ok(_)) = self.next_chunk().await {} });
                select(rest, PlatformClock.sleep(LEAVE_WAIT_MS)).await;
            });
        }
    }
}

/// A call under way: aborted when dropped, unless it came to its end.
#[derive(Debug)]
pub(super) struct Call {
    controller: AbortController,
    finished: bool,
}

impl Call {
    pub fn new() -> Result<Self, HttpError> {
        let controller = AbortController::new().map_err(fault)?;
        Ok(Self {
            controller,
            finished: false,
        })
    }

    /// What tells the platform that the call is aborted.
    pub fn signal(&self) -> AbortSignal {
        self.controller.signal()
    }

    /// The answer whose body is now to be read.
    pub fn answer(self, response: JsValue) -> Result<HttpResponse<FetchBody>, HttpError> {
        let response: Response = response.dyn_into().map_err(fault)?;
        Ok(HttpResponse {
            status: response.status(),
            headers: headers_of(&response.headers()),
            body: FetchBody {
                chunks: ChunkReader::new(response.body()).map_err(HttpError)?,
                call: Some(self),
            },
        })
    }

    fn finish(mut self) {
        self.finished = true;
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.finished {
            self.controller.abort();
        }
    }
}

/// The request for the platform, but for its address. The platform makes it: one made here would be copied.
fn init(request: &HttpRequest, controller: &AbortController) -> Result<RequestInit, JsValue> {
    let headers = Headers::new()?;
    for (name, value) in &request.headers {
        headers.append(name, value)?;
    }
    let init = RequestInit::new();
    init.set_method(request.method);
    init.set_headers(&headers);
    // A followed redirect would carry a key in a vendor's own header to wherever it points.
    init.set_redirect(RequestRedirect::Manual);
    init.set_signal(Some(&controller.signal()));
    if let Some(body) = &request.body {
        init.set_body(&body.as_str().into());
    }
    Ok(init)
}

fn headers_of(headers: &Headers) -> Vec<(String, String)> {
    let header = |name: &str| Some((name.to_owned(), headers.get(name).ok()??));
    RESPONSE_HEADERS.into_iter().filter_map(header).list()
}

pub(super) fn fault(thrown: JsValue) -> HttpError {
    HttpError(describe(&thrown))
}
