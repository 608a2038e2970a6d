//! An answer as the platform wants it.

use std::borrow::Cow;

use js_sys::{Reflect, Uint8Array};
use wasm_bindgen::JsValue;
use web_sys::{Headers, ReadableStream, Response, ResponseInit};

use super::frames::WebSocket;
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
    body: Body,
    /// The client's end, of a handshake's answer.
    socket: Option<WebSocket>,
    /// Of an error, for the log.
    code: Option<&'static str>,
}

#[derive(Debug)]
enum Body {
    Empty,
    Text(String),
    Stream(ReadableStream),
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
        Self::new(204, Body::Empty)
    }

    /// 200 with JSON text.
    pub fn json(text: String) -> Self {
        Self::new(200, Body::Text(text)).with_headers([JSON])
    }

    /// 200 with JSON text that comes in pieces.
    pub fn json_stream(pieces: ReadableStream) -> Self {
        Self::new(200, Body::Stream(pieces)).with_headers([JSON])
    }

    /// An error. Source: D2.
    pub fn error(error: &ApiError) -> Self {
        let answer = Self::new(error.status(), Body::Text(error.body()));
        Self {
            code: Some(error.code.as_str()),
            ..answer.with_headers(error.headers())
        }
    }

    /// 200 with a run's stream.
    pub fn stream(binding: Binding, stream: ReadableStream) -> Self {
        Self::new(200, Body::Stream(stream))
            .with_headers([("content-type", binding.media_type())])
            .with_headers(STREAM)
    }

    /// 101: the connection goes on as a WebSocket.
    pub fn socket(client: WebSocket) -> Self {
        Self {
            socket: Some(client),
            ..Self::new(101, Body::Empty)
        }
    }

    /// The answer of a run's object, its body untouched.
    pub fn relayed(response: &Response) -> Self {
        let body = response.body().map_or(Body::Empty, Body::Stream);
        Self {
            relayed: Some(response.headers()),
            ..Self::new(response.status(), body)
        }
    }

    fn new(status: u16, body: Body) -> Self {
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
            Body::Empty => Some(0),
            Body::Text(text) => Some(text.len()),
            Body::Stream(_) => None,
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
        if let Body::Stream(stream) = std::mem::replace(&mut self.body, Body::Empty) {
            ignore(stream.cancel());
        }
        self
    }

    /// The platform's response. A header whose value is not one for HTTP is left out: it could only come from a
    /// client's own text.
    ///
    /// # Errors
    /// What the platform threw.
    pub fn into_response(self) -> Result<Response, JsValue> {
        let init = ResponseInit::new();
        init.set_status(self.status);
        if let Some(relayed) = &self.relayed {
            init.set_headers(relayed);
        }
        if let Some(socket) = &self.socket {
            Reflect::set(&init, &"webSocket".into(), socket)?;
        }
        let response = match self.body {
            Body::Empty => Response::new_with_opt_readable_stream_and_init(None, &init)?,
            Body::Text(text) => {
                let bytes = Uint8Array::from(text.as_bytes());
                Response::new_with_opt_buffer_source_and_init(Some(&bytes), &init)?
            }
            Body::Stream(stream) => Response::new_with_opt_readable_stream_and_init(Some(&stream), &init)?,
        };
        // Those of the response itself: the platform has copied what it was made with.
        let headers = response.headers();
        if self.relayed.is_some() {
            // The platform says the length itself.
            headers.delete("content-length")?;
        }
        for (name, value) in &self.headers {
            let _ = headers.append(name, value);
        }
        Ok(response)
    }
}

impl From<ApiError> for Answer {
    fn from(error: ApiError) -> Self {
        Self::error(&error)
    }
}
