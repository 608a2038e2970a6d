//! An answer as the platform wants it.

use std::borrow::Cow;

use futures::{Stream, StreamExt};
use web_sys::ReadableStream;
use worker::{Headers, Response, ResponseBody, WebSocket};

use super::stream::ignore;
use crate::api::error::ApiError;
use crate::binding::accept::Binding;

/// Status, headers and body of an answer.
#[derive(Debug)]
pub struct Answer {
    status: u16,
    /// Of the object whose answer it is.
    relayed: Option<Headers>,
    headers: Vec<(Cow<'static, str>, String)>,
    body: ResponseBody,
    /// The client's end, of a handshake's answer.
    socket: Option<WebSocket>,
    /// Of an error, for the log.
    code: Option<&'static str>,
}

const JSON: (&str, &str) = ("content-type", "application/json");

/// Headers of a run's stream beside its content type. Source: contract 2.4.
const STREAM: [(&str, &str); 2] = [
    ("cache-control", "no-cache, no-transform"),
    ("x-accel-buffering", "no"),
];

impl Answer {
    /// 204: for the preflight (D1), and from an object that has no run.
    pub fn no_content() -> Self {
        Self::new(204, ResponseBody::Empty)
    }

    /// 200 with JSON text.
    pub fn json(text: String) -> Self {
        Self::new(200, ResponseBody::Body(text.into_bytes())).with_headers([JSON])
    }

    /// 200 with JSON text that comes in pieces; a piece that fails breaks the connection.
    ///
    /// # Errors
    /// The platform made no stream.
    pub fn json_stream<S, E>(pieces: S) -> worker::Result<Self>
    where
        S: Stream<Item = Result<String, E>> + 'static,
        E: std::fmt::Display,
    {
        let pieces = pieces.map(|piece| {
            piece
                .map(String::into_bytes)
                .map_err(|error| worker::Error::RustError(error.to_string()))
        });
        let (_, body) = Response::from_stream(pieces)?.into_parts();
        Ok(Self::new(200, body).with_headers([JSON]))
    }

    /// An error. Source: D2.
    pub fn error(error: &ApiError) -> Self {
        let answer = Self::new(error.status(), ResponseBody::Body(error.body().into_bytes()));
        Self {
            code: Some(error.code.as_str()),
            ..answer.with_headers(error.headers())
        }
    }

    /// 200 with a run's stream.
    pub fn stream(binding: Binding, stream: ReadableStream) -> Self {
        Self::new(200, ResponseBody::Stream(stream))
            .with_headers([("content-type", binding.media_type())])
            .with_headers(STREAM)
    }

    /// 101: the connection goes on as a WebSocket.
    pub fn socket(client: WebSocket) -> Self {
        Self {
            socket: Some(client),
            ..Self::new(101, ResponseBody::Empty)
        }
    }

    /// The answer of a run's object, its body untouched. A fetched response's headers cannot be changed: a copy can.
    pub fn relayed(response: Response) -> Self {
        let headers = response.headers().clone();
        // The platform says the length itself.
        let _ = headers.delete("content-length");
        let status = response.status_code();
        let (_, body) = response.into_parts();
        Self {
            relayed: Some(headers),
            ..Self::new(status, body)
        }
    }

    fn new(status: u16, body: ResponseBody) -> Self {
        Self {
            status,
            relayed: None,
            headers: Vec::new(),
            body,
            socket: None,
            code: None,
        }
    }

    /// Whether it is a success.
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// HTTP status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// Code of an error that was made here, not one that an object answered.
    pub fn code(&self) -> Option<&'static str> {
        self.code
    }

    /// Length of the body, where it is known before it is sent.
    pub fn body_bytes(&self) -> Option<usize> {
        match &self.body {
            ResponseBody::Empty => Some(0),
            ResponseBody::Body(bytes) => Some(bytes.len()),
            ResponseBody::Stream(_) => None,
        }
    }

    /// Adds headers.
    #[must_use]
    pub fn with_headers<N, V>(mut self, headers: impl IntoIterator<Item = (N, V)>) -> Self
    where
        N: Into<Cow<'static, str>>,
        V: Into<String>,
    {
        self.headers.extend(
            headers
                .into_iter()
                .map(|(name, value)| (name.into(), value.into())),
        );
        self
    }

    /// Drops the body, for HEAD; the headers stay as they are.
    #[must_use]
    pub fn without_body(mut self) -> Self {
        if let ResponseBody::Stream(stream) = std::mem::replace(&mut self.body, ResponseBody::Empty) {
            ignore(stream.cancel());
        }
        self
    }

    /// The platform's response. A header whose value is not one for HTTP is left out: it could only come from a
    /// client's own text.
    pub fn into_response(self) -> Response {
        let headers = self.relayed.unwrap_or_default();
        for (name, value) in &self.headers {
            let _ = headers.append(name, value);
        }
        let response = Response::builder().with_status(self.status).with_headers(headers);
        match self.socket {
            Some(socket) => response.with_websocket(socket),
            None => response,
        }
        .body(self.body)
    }
}

impl From<ApiError> for Answer {
    fn from(error: ApiError) -> Self {
        Self::error(&error)
    }
}
