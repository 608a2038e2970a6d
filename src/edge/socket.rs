//! The WebSocket transport: one run per socket (contract 7). The socket ends here, in the Worker; the run's object
//! knows only a stream.
//!
//! What comes over a socket is handled as the request it stands for: the first frame as `POST /run`, a result as the
//! POST of its own route. So the rules of those routes are the rules here.

use std::pin::pin;

use futures::future::{Either, select};
use js_sys::Function;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::spawn_local;
use web_sys::{Headers, Request, RequestInit};

use super::bindings::Env;
use super::clock::PlatformClock;
use super::env;
use super::frames::{Frame, Frames, WebSocket, WebSocketPair};
use super::fuse;
use super::handlers::Call;
use super::identity::{Credentials, Identity, authenticate};
use super::log::ConsoleLog;
use super::reply::Answer;
use super::run_handlers::ADDRESS_HEADER;
use super::stream::{ChunkReader, describe};
use super::{RequestIds, handle, header};
use crate::api::auth::Principal;
use crate::api::error::ApiError;
use crate::api::route::{self, result_path};
use crate::api::socket::{
    ApiErrorBody, CLOSE_BROKEN, CLOSE_DONE, ClientFrame, PONG, TOKEN_PROTOCOL, close_code, close_reason,
    protocol_token, rejected,
};
use crate::binding::sse_decoder::SseDecoder;
use crate::protocol::id::RunId;
use crate::protocol::input::RunAgentInput;
use crate::protocol::utf8;
use crate::run::ports::{Clock, Level, Log};

/// How long a client may take to send its input, in milliseconds.
const INPUT_WAIT_MS: u64 = 30_000;

/// Longest event of our own stream, in bytes; a tool result is the largest part of one.
const EVENT_MAX_BYTES: usize = 64 * 1024 * 1024;

/// Why a socket is closed with [`CLOSE_BROKEN`].
const BROKEN_REASON: &str = "The run was interrupted.";

/// How a socket is closed.
struct Close {
    code: u16,
    reason: String,
}

impl Close {
    fn new(code: u16, reason: &str) -> Self {
        let reason = close_reason(reason).to_owned();
        Self { code, reason }
    }

    fn refused(error: &ApiErrorBody) -> Self {
        Self::new(close_code(error.status), &error.body)
    }
}

impl Call<'_> {
    /// `GET /run` with `Upgrade: websocket`. A refusal is a close code: pages cannot read the status of a handshake.
    pub fn open_socket(&self) -> Result<Answer, ApiError> {
        let pair = WebSocketPair::new().map_err(|thrown| self.socket_error(&thrown))?;
        let protocols = header(self.request, "sec-websocket-protocol");
        let token = protocol_token(protocols.as_deref());
        let url = self.request.url();
        let line = Line {
            env: self.env.clone(),
            log: self.log.clone(),
            ids: self.ids.clone(),
            prefix: self.config.prefix.clone(),
            query: route::path_and_query(&url).1.map(str::to_owned),
            origin: header(self.request, "origin"),
            credentials: Credentials::of(&self.config.auth, |name| header(self.request, name))
                .or_token(token),
            address: header(self.request, ADDRESS_HEADER),
            frames_max_count: self.config.limits.socket_frames_max_count,
        };
        let server = pair.end(1);
        spawn_local(async move { line.serve(&server).await });
        let answer = Answer::socket(pair.end(0));
        Ok(if token.is_some() {
            answer.with_headers([("sec-websocket-protocol", TOKEN_PROTOCOL)])
        } else {
            answer
        })
    }

    fn socket_error(&self, thrown: &JsValue) -> ApiError {
        self.log
            .line(Level::Error, "socket_not_opened", &[("error", &describe(thrown))]);
        ApiError::internal()
    }
}

/// What is kept of the handshake.
struct Line {
    env: Env,
    log: ConsoleLog,
    ids: RequestIds,
    prefix: String,
    query: Option<String>,
    origin: Option<String>,
    credentials: Credentials,
    /// Where the client is.
    address: Option<String>,
    frames_max_count: usize,
}

impl Line {
    /// The whole life of a socket.
    async fn serve(&self, socket: &WebSocket) {
        let mut frames = Frames::of(socket);
        if socket.accept().is_err() {
            return;
        }
        let close = fuse::guarded(break_off(socket), self.run(socket, &mut frames)).await;
        self.log
            .line(Level::Info, "socket_closed", &[("code", &close.code)]);
        // The client may have closed it already.
        let _ = socket.close(close.code, &close.reason);
    }

    async fn authenticate(&self) -> Result<Option<Principal>, ApiError> {
        let settings =
            env::settings(&self.env).map_err(|error| ApiError::config_invalid(&error.to_string()))?;
        authenticate(&self.env, &settings.config.auth, &self.credentials, &self.log).await
    }

    async fn run(&self, socket: &WebSocket, frames: &mut Frames<'_>) -> Close {
        let refuse = |error: ApiError| Close::refused(&error.into());
        let is_welcome =
            env::settings(&self.env).is_ok_and(|settings| settings.cors.admits(self.origin.as_deref()));
        if !is_welcome {
            return refuse(ApiError::forbidden());
        }
        let input = match select(pin!(frames.next()), PlatformClock.sleep(INPUT_WAIT_MS)).await {
            Either::Left((Some(Frame::Text(input)), _)) => input,
            Either::Left((Some(Frame::Binary), _)) | Either::Right(_) => {
                return refuse(ApiError::invalid_json("The first frame must be the run's input."));
            }
            Either::Left((None, _)) => return Close::new(CLOSE_DONE, ""),
        };
        // Once: a token that ends while its socket is open does not take the run's results away from it.
        let principal = match self.authenticate().await {
            Ok(principal) => principal,
            Err(error) => return refuse(error),
        };
        let (status, body) = match self.post("/run", &input, &principal).await {
            Ok(answer) => answer,
            Err(error) => return refuse(error),
        };
        let run_id = match RunAgentInput::decode(&input) {
            Ok(decoded) if status == 200 => decoded.input.run_id,
            Ok(_) | Err(_) => return Close::refused(&error_body(status, body).await),
        };
        drop(input);
        let sending = pin!(send_events(socket, body));
        let taking = pin!(self.take_results(socket, frames, &run_id, &principal));
        match select(sending, taking).await {
            Either::Left((close, _)) => close,
            // The client has gone, or sends without end. Dropping the stream tells the run.
            Either::Right((close, _)) => close,
        }
    }

    /// Delivers results until the client is gone, or has sent as many frames as it may; the input was one.
    async fn take_results(
        &self,
        socket: &WebSocket,
        frames: &mut Frames<'_>,
        run_id: &RunId,
        principal: &Option<Principal>,
    ) -> Close {
        for _ in 1..self.frames_max_count {
            let Some(frame) = frames.next().await else {
                return Close::new(CLOSE_DONE, "");
            };
            let frame = match frame {
                Frame::Text(text) => ClientFrame::read(&text),
                // Read as what it is not: the rejection says so.
                Frame::Binary => ClientFrame::read(""),
            };
            let result = match frame {
                ClientFrame::Result(result) => result,
                ClientFrame::Ping if socket.send(PONG).is_ok() => continue,
                ClientFrame::Ping => return Close::new(CLOSE_DONE, ""),
            };
            let id = result.tool_call_id.as_deref();
            let refused = match (id, result.body) {
                (_, Err(error)) => Some(error),
                (id, Ok(body)) => {
                    let path = result_path(run_id, id.unwrap_or_default());
                    self.deliver(&path, &body, principal).await.err()
                }
            };
            if let Some(error) = refused
                && socket.send(&rejected(id, &error)).is_err()
            {
                return Close::new(CLOSE_DONE, "");
            }
        }
        Close::refused(&ApiError::too_many_frames(self.frames_max_count).into())
    }

    async fn deliver(
        &self,
        path: &str,
        body: &str,
        principal: &Option<Principal>,
    ) -> Result<(), ApiErrorBody> {
        let (status, answer) = self.post(path, body, principal).await?;
        if status == 200 {
            Ok(())
        } else {
            Err(error_body(status, answer).await)
        }
    }

    /// Handles a POST to a path below the prefix as if it had come by itself: status and body of its answer.
    async fn post(
        &self,
        path: &str,
        body: &str,
        principal: &Option<Principal>,
    ) -> Result<(u16, ChunkReader), ApiError> {
        let settings =
            env::settings(&self.env).map_err(|error| ApiError::config_invalid(&error.to_string()))?;
        let request = self
            .request(path, body)
            .map_err(|thrown| self.not_made(&thrown))?;
        let identity = Identity::Proven(principal.clone());
        let started_ms = PlatformClock.now_ms();
        let config = &settings.config;
        let answer = handle(&request, &self.env, config, &self.log, &self.ids, identity).await;
        let answer = answer.unwrap_or_else(Answer::from);
        let status = answer.status();
        let url = request.url();
        let template = route::template(&self.prefix, route::path_and_query(&url).0);
        let duration_ms = PlatformClock.now_ms().saturating_sub(started_ms);
        if let Some(line) = self.log.request("WEBSOCKET", template, &answer, duration_ms) {
            line.write();
        }
        let response = answer.into_response();
        let response = response.map_err(|thrown| self.not_made(&thrown))?;
        let body = ChunkReader::new(response.body()).map_err(|_| ApiError::internal())?;
        Ok((status, body))
    }

    fn not_made(&self, thrown: &JsValue) -> ApiError {
        let error = describe(thrown);
        self.log
            .line(Level::Error, "socket_request_not_made", &[("error", &error)]);
        ApiError::internal()
    }

    fn request(&self, path: &str, body: &str) -> Result<Request, JsValue> {
        let headers = Headers::new()?;
        headers.set("content-type", "application/json")?;
        if let Some(address) = &self.address {
            headers.set(ADDRESS_HEADER, address)?;
        }
        let init = RequestInit::new();
        init.set_method("POST");
        init.set_headers(&headers);
        init.set_body(&body.into());
        let query = self
            .query
            .as_ref()
            .map_or(String::new(), |query| format!("?{query}"));
        // It goes nowhere; the host only has to be one.
        let url = format!("https://socket{}{path}{query}", self.prefix);
        Request::new_with_str_and_init(&url, &init)
    }
}

/// What closes a socket whose run broke off.
fn break_off(socket: &WebSocket) -> Option<Function> {
    let close = fuse::method(socket, "close")?;
    let broken = close.bind2(socket, &CLOSE_BROKEN.into(), &BROKEN_REASON.into());
    Some(broken.unchecked_into())
}

/// Sends each event of a run's stream as a frame of its own. Keep-alives are comments and end here.
async fn send_events(socket: &WebSocket, mut body: ChunkReader) -> Close {
    let broken = || Close::new(CLOSE_BROKEN, BROKEN_REASON);
    let mut decoder = SseDecoder::new(EVENT_MAX_BYTES);
    while let Some(chunk) = body.next_chunk().await {
        let Ok(bytes) = chunk else {
            return broken();
        };
        let mut events = decoder.feed(&bytes);
        loop {
            match events.next_event() {
                Ok(Some(event)) if socket.send(&event.data).is_ok() => {}
                Ok(None) => break,
                Ok(Some(_)) | Err(_) => return broken(),
            }
        }
    }
    // A run's stream ends cleanly only after its terminal event.
    Close::new(CLOSE_DONE, "")
}

async fn error_body(status: u16, mut body: ChunkReader) -> ApiErrorBody {
    let mut bytes = Vec::new();
    while let Some(Ok(chunk)) = body.next_chunk().await {
        bytes.extend_from_slice(&chunk);
    }
    let body = utf8::lossy(&bytes).into_owned();
    ApiErrorBody { status, body }
}
