//! A WebSocket of the platform, and what its client sends.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};

use wasm_bindgen::prelude::*;

#[wasm_bindgen]
extern "C" {
    /// Both ends of a connection.
    pub type WebSocketPair;

    /// Makes one.
    #[wasm_bindgen(constructor, catch)]
    pub fn new() -> Result<WebSocketPair, JsValue>;

    /// 0 = the client's end, 1 = ours.
    #[wasm_bindgen(method, indexing_getter)]
    pub fn end(this: &WebSocketPair, index: u32) -> WebSocket;

    /// An end of a connection.
    #[derive(Debug)]
    pub type WebSocket;

    /// Takes the connection.
    #[wasm_bindgen(method, catch)]
    pub fn accept(this: &WebSocket) -> Result<(), JsValue>;

    /// Sends a frame.
    #[wasm_bindgen(method, catch)]
    pub fn send(this: &WebSocket, text: &str) -> Result<(), JsValue>;

    /// Closes the connection.
    #[wasm_bindgen(method, catch)]
    pub fn close(this: &WebSocket, code: u16, reason: &str) -> Result<(), JsValue>;

    #[wasm_bindgen(method, js_name = addEventListener)]
    fn add_listener(this: &WebSocket, kind: &str, listener: &JsValue);

    #[wasm_bindgen(method, js_name = removeEventListener)]
    fn remove_listener(this: &WebSocket, kind: &str, listener: &JsValue);

    type SocketEvent;

    /// Absent where the event is no message.
    #[wasm_bindgen(method, getter)]
    fn data(this: &SocketEvent) -> JsValue;
}

/// The events of a socket: with the first one frames come, with any other they end.
const EVENTS: [&str; 3] = ["message", "close", "error"];

/// What a client sends.
pub enum Frame {
    /// As it has to be.
    Text(String),
    /// As it must not be.
    Binary,
}

/// The frames of a client; none follow after it has closed, however that was.
pub struct Frames<'a> {
    socket: &'a WebSocket,
    inbox: Rc<RefCell<Inbox>>,
    listener: Closure<dyn FnMut(SocketEvent)>,
}

#[derive(Default)]
struct Inbox {
    frames: VecDeque<Frame>,
    is_closed: bool,
    waker: Option<Waker>,
}

impl<'a> Frames<'a> {
    /// Listens to a socket.
    pub fn of(socket: &'a WebSocket) -> Self {
        let inbox = Rc::<RefCell<Inbox>>::default();
        let to = Rc::clone(&inbox);
        let listener = Closure::new(move |event: SocketEvent| {
            let data = event.data();
            let waker = {
                let mut inbox = to.borrow_mut();
                if data.is_undefined() {
                    inbox.is_closed = true;
                } else {
                    let frame = data.as_string().map_or(Frame::Binary, Frame::Text);
                    inbox.frames.push_back(frame);
                }
                inbox.waker.take()
            };
            if let Some(waker) = waker {
                waker.wake();
            }
        });
        for kind in EVENTS {
            socket.add_listener(kind, listener.as_ref());
        }
        Self {
            socket,
            inbox,
            listener,
        }
    }

    /// The next one.
    pub async fn next(&mut self) -> Option<Frame> {
        poll_fn(|context| {
            let mut inbox = self.inbox.borrow_mut();
            match inbox.frames.pop_front() {
                Some(frame) => return Poll::Ready(Some(frame)),
                None if inbox.is_closed => return Poll::Ready(None),
                None => {}
            }
            inbox.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}

impl Drop for Frames<'_> {
    fn drop(&mut self) {
        for kind in EVENTS {
            self.socket.remove_listener(kind, self.listener.as_ref());
        }
    }
}
