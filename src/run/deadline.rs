//! A moment until which something may take.

use std::future::Future;
use std::pin::{Pin, pin};

use futures::future::select;

use super::ports::{Clock, HttpBody, HttpError};

/// When a piece of work must be done; it may move.
#[derive(Debug)]
pub(super) struct Deadline<'a, C> {
    clock: &'a C,
    timeout_ms: u64,
    due_ms: u64,
}

impl<'a, C: Clock> Deadline<'a, C> {
    /// This many milliseconds from now.
    pub fn after(clock: &'a C, timeout_ms: u64) -> Self {
        Self {
            clock,
            timeout_ms,
            due_ms: clock.now_ms().saturating_add(timeout_ms),
        }
    }

    /// The time starts anew.
    pub fn renew(&mut self) {
        self.due_ms = self.clock.now_ms().saturating_add(self.timeout_ms);
    }

    /// What the future gives, unless the moment comes first.
    pub async fn within<T>(&self, future: impl Future<Output = T>) -> Option<T> {
        let mut value = None;
        self.pass(pin!(async { value = Some(future.await) })).await;
        value
    }

    async fn pass(&self, future: Pin<&mut dyn Future<Output = ()>>) {
        let left_ms = self.due_ms.saturating_sub(self.clock.now_ms());
        select(future, pin!(self.clock.sleep(left_ms))).await;
    }
}

/// Why a body was not read to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BodyFault {
    /// The connection died.
    Broken(HttpError),
    /// It is longer than the limit; the rest is not read.
    TooLong,
}

/// Reads a whole body of at most `max_bytes`.
pub(super) async fn read_body(body: &mut impl HttpBody, max_bytes: usize) -> Result<Vec<u8>, BodyFault> {
    let mut bytes = Vec::new();
    while let Some(chunk) = body.next_chunk().await {
        let chunk = chunk.map_err(BodyFault::Broken)?;
        if bytes.len() + chunk.len() > max_bytes {
            return Err(BodyFault::TooLong);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// A header of an answer.
pub(super) fn header<'h>(headers: &'h [(String, String)], name: &str) -> Option<&'h str> {
    let found = headers.iter().find(|(own, _)| own == name);
    found.map(|(_, value)| value.as_str())
}
