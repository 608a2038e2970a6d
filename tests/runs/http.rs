//! Scripted servers: what each does with a request, at which moment.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use io_bridge::provider::HttpRequest;
use io_bridge::run::ports::{Clock, HttpBody, HttpClient, HttpError, HttpResponse, RESPONSE_HEADERS};

use crate::scene::SceneClock;

/// One thing an upstream does with its body.
#[derive(Debug, Clone)]
pub enum Piece {
    /// Sends bytes.
    Bytes(Vec<u8>),
    /// Is silent, in milliseconds.
    Pause(u64),
    /// The connection dies.
    Die,
    /// Never sends anything again.
    Hang,
}

/// One answer of the upstream.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub head_after_ms: u64,
    pub pieces: Vec<Piece>,
}

impl Answer {
    /// 200 with this body in one piece.
    pub fn ok(body: impl Into<String>) -> Self {
        Self::pieces(vec![Piece::Bytes(body.into().into_bytes())])
    }

    /// A status, and a body of a content type.
    pub fn of(status: u16, content_type: &str, body: impl Into<String>) -> Self {
        Self {
            status,
            headers: vec![("content-type".to_owned(), content_type.to_owned())],
            ..Self::ok(body)
        }
    }

    /// The same with a header more.
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same after a pause.
    pub fn after(mut self, head_after_ms: u64) -> Self {
        self.head_after_ms = head_after_ms;
        self
    }

    pub fn pieces(pieces: Vec<Piece>) -> Self {
        Self {
            status: 200,
            headers: vec![],
            head_after_ms: 0,
            pieces,
        }
    }

    pub fn refusal(status: u16, headers: &[(&str, &str)], body: &str) -> Self {
        let headers = headers
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        Self {
            status,
            headers,
            head_after_ms: 0,
            pieces: vec![Piece::Bytes(body.as_bytes().to_vec())],
        }
    }
}

/// What a server answers.
pub type Serve = Box<dyn Fn(&HttpRequest) -> Answer>;

/// The model's server answers from a list, every other by what it is asked.
pub struct SceneHttp {
    clock: SceneClock,
    answers: RefCell<VecDeque<Answer>>,
    servers: Vec<(String, Serve)>,
    pub requests: RefCell<Vec<HttpRequest>>,
    pub dropped_bodies: Rc<Cell<usize>>,
    open: Rc<Cell<usize>>,
    /// Most calls that were under way at once.
    pub most_open: Cell<usize>,
}

/// Counts a call while it is under way.
struct Open(Rc<Cell<usize>>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl SceneHttp {
    pub fn new(clock: SceneClock, answers: Vec<Answer>, servers: Vec<(String, Serve)>) -> Self {
        Self {
            clock,
            answers: RefCell::new(answers.into()),
            servers,
            requests: RefCell::default(),
            dropped_bodies: Rc::default(),
            open: Rc::default(),
            most_open: Cell::default(),
        }
    }

    /// Requests whose address begins so, in order.
    pub fn requests_to(&self, address: &str) -> Vec<HttpRequest> {
        let requests = self.requests.borrow();
        let matching = requests.iter().filter(|request| request.url.starts_with(address));
        matching.cloned().collect()
    }

    /// Calls under way.
    pub fn open_count(&self) -> usize {
        self.open.get()
    }

    fn answer(&self, request: &HttpRequest) -> Option<Answer> {
        let server = self
            .servers
            .iter()
            .find(|(address, _)| request.url.starts_with(address.as_str()));
        match server {
            Some((_, serve)) => Some(serve(request)),
            None => self.answers.borrow_mut().pop_front(),
        }
    }
}

pub struct SceneBody {
    clock: SceneClock,
    pieces: VecDeque<Piece>,
    dropped: Rc<Cell<usize>>,
    _open: Open,
}

impl Drop for SceneBody {
    fn drop(&mut self) {
        self.dropped.set(self.dropped.get() + 1);
    }
}

impl HttpClient for SceneHttp {
    type Body = SceneBody;

    async fn send(&self, request: HttpRequest) -> Result<HttpResponse<SceneBody>, HttpError> {
        let answer = self.answer(&request);
        self.requests.borrow_mut().push(request);
        let answer = answer.ok_or(HttpError("no answer scripted".to_owned()))?;
        self.open.set(self.open.get() + 1);
        self.most_open.set(self.most_open.get().max(self.open.get()));
        let open = Open(self.open.clone());
        if answer.head_after_ms > 0 {
            self.clock.sleep(answer.head_after_ms).await;
        }
        let body = SceneBody {
            clock: self.clock.clone(),
            pieces: answer.pieces.into(),
            dropped: self.dropped_bodies.clone(),
            _open: open,
        };
        Ok(HttpResponse {
            status: answer.status,
            headers: read_headers(answer.headers),
            body,
        })
    }
}

/// Those a run may see.
fn read_headers(headers: Vec<(String, String)>) -> Vec<(String, String)> {
    let is_read = |(name, _): &(String, String)| RESPONSE_HEADERS.contains(&name.as_str());
    headers.into_iter().filter(is_read).collect()
}

impl HttpBody for SceneBody {
    async fn next_chunk(&mut self) -> Option<Result<Vec<u8>, HttpError>> {
        loop {
            match self.pieces.pop_front()? {
                Piece::Bytes(bytes) => return Some(Ok(bytes)),
                Piece::Pause(ms) => self.clock.sleep(ms).await,
                Piece::Die => return Some(Err(HttpError("connection lost".to_owned()))),
                Piece::Hang => futures::future::pending::<()>().await,
            }
        }
    }
}
