//! Reading a stream of the platform chunk by chunk.
//!
//! The `worker` crate's own reader turns an aborted body into a clean end; here an error stays an error.

use js_sys::{Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{ReadableStream, ReadableStreamDefaultReader};

/// Reads one stream.
#[derive(Debug)]
pub struct ChunkReader {
    reader: Option<ReadableStreamDefaultReader>,
}

impl ChunkReader {
    /// Locks the stream; `None` is a body that has no bytes.
    ///
    /// # Errors
    /// The platform's words when somebody else reads the stream.
    pub fn new(stream: Option<ReadableStream>) -> Result<Self, String> {
        let reader = stream
            .map(|stream| ReadableStreamDefaultReader::new(&stream))
            .transpose()
            .map_err(|error| describe(&error))?;
        Ok(Self { reader })
    }

    /// The next bytes; `None` at the end, and after an error.
    pub async fn next_chunk(&mut self) -> Option<Result<Vec<u8>, String>> {
        let reading = self.reader.as_ref()?.read();
        let chunk = match JsFuture::from(reading).await {
            Ok(result) => bytes_of(&result),
            Err(error) => Err(describe(&error)),
        };
        match chunk {
            Ok(Some(bytes)) => Some(Ok(bytes)),
            Ok(None) => {
                self.reader = None;
                None
            }
            Err(error) => {
                self.reader = None;
                Some(Err(error))
            }
        }
    }
}

impl Drop for ChunkReader {
    fn drop(&mut self) {
        if let Some(reader) = self.reader.take() {
            ignore(reader.cancel());
        }
    }
}

/// `{done: true}` = `None`, `{value: Uint8Array}` = its bytes.
fn bytes_of(result: &JsValue) -> Result<Option<Vec<u8>>, String> {
    let member = |name: &str| Reflect::get(result, &name.into()).map_err(|error| describe(&error));
    if member("done")?.is_truthy() {
        return Ok(None);
    }
    let chunk = member("value")?.dyn_into::<Uint8Array>();
    chunk
        .map(|bytes| Some(bytes.to_vec()))
        .map_err(|_| "a chunk is not bytes".to_owned())
}

/// Lets a promise run on. Its outcome changes nothing, but a rejection nobody handles would be reported as a fault.
pub fn ignore(promise: Promise) {
    spawn_local(async move {
        let _ = JsFuture::from(promise).await;
    });
}

/// The words of a thrown value, for the log.
pub fn describe(thrown: &JsValue) -> String {
    thrown.dyn_ref::<js_sys::Error>().map_or_else(
        || thrown.as_string().unwrap_or_else(|| "unknown".to_owned()),
        |error| String::from(error.message()),
    )
}
