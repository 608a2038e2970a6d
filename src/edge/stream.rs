//! Streams of the platform: reading one chunk by chunk, and making one.
//!
//! The `worker` crate's own reader turns an aborted body into a clean end; here an error stays an error.

use js_sys::{ArrayBuffer, Promise, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::{JsFuture, spawn_local};
use web_sys::{
    ReadableStream, ReadableStreamByobReader, ReadableStreamDefaultReader, WritableStream,
    WritableStreamDefaultWriter,
};

#[wasm_bindgen]
extern "C" {
    /// The platform's own pipe: bytes pass without a JavaScript call per chunk.
    type IdentityTransformStream;

    #[wasm_bindgen(constructor, catch)]
    fn new() -> Result<IdentityTransformStream, JsValue>;

    #[wasm_bindgen(method, getter)]
    fn readable(this: &IdentityTransformStream) -> ReadableStream;

    #[wasm_bindgen(method, getter)]
    fn writable(this: &IdentityTransformStream) -> WritableStream;
}

/// A pipe: where it is written to, and where what was written is read.
///
/// # Errors
/// What the platform threw.
pub fn pipe() -> Result<(WritableStreamDefaultWriter, ReadableStream), JsValue> {
    let pipe = IdentityTransformStream::new()?;
    Ok((pipe.writable().get_writer()?, pipe.readable()))
}

/// Bytes taken at once: few at first, since most of what is read is short; twice as many after each read that was full,
/// so that what has arrived meanwhile comes in one read, however small its pieces were sent.
const READ_BYTES: u32 = 4 * 1024;
const READ_MAX_BYTES: u32 = 64 * 1024;

/// Reads one stream.
#[derive(Debug)]
pub struct ChunkReader {
    reader: Option<Reader>,
}

#[derive(Debug)]
enum Reader {
    /// A stream of the platform's own, read into the one buffer that goes back and forth.
    Bytes(ReadableStreamByobReader, ArrayBuffer),
    /// A stream made in JavaScript, which has chunks of its own.
    Chunks(ReadableStreamDefaultReader),
}

impl Reader {
    fn new(stream: &ReadableStream) -> Result<Self, JsValue> {
        match ReadableStreamByobReader::new(stream) {
            Ok(reader) => Ok(Self::Bytes(reader, ArrayBuffer::new(READ_BYTES))),
            Err(_) => ReadableStreamDefaultReader::new(stream).map(Self::Chunks),
        }
    }

    fn read(&self) -> Promise {
        match self {
            Self::Bytes(reader, buffer) => reader.read_with_array_buffer_view(&Uint8Array::new(buffer)),
            Self::Chunks(reader) => reader.read(),
        }
    }

    /// `{done: true}` = `None`, `{value: Uint8Array}` = its bytes.
    fn take(&mut self, result: &JsValue) -> Result<Option<Vec<u8>>, String> {
        let member = |name: &str| Reflect::get(result, &name.into()).map_err(|error| describe(&error));
        if member("done")?.is_truthy() {
            return Ok(None);
        }
        let chunk = member("value")?.dyn_into::<Uint8Array>();
        let chunk = chunk.map_err(|_| "a chunk is not bytes".to_owned())?;
        if let Self::Bytes(_, buffer) = self {
            let size_bytes = chunk.buffer().byte_length();
            *buffer = if chunk.length() == size_bytes && size_bytes < READ_MAX_BYTES {
                ArrayBuffer::new(size_bytes * 2)
            } else {
                chunk.buffer()
            };
        }
        Ok(Some(chunk.to_vec()))
    }

    fn cancel(&self) -> Promise {
        match self {
            Self::Bytes(reader, _) => reader.cancel(),
            Self::Chunks(reader) => reader.cancel(),
        }
    }
}

impl ChunkReader {
    /// Locks the stream; `None` is a body that has no bytes.
    ///
    /// # Errors
    /// The platform's words when somebody else reads the stream.
    pub fn new(stream: Option<ReadableStream>) -> Result<Self, String> {
        let reader = stream.map(|stream| Reader::new(&stream)).transpose();
        reader
            .map(|reader| Self { reader })
            .map_err(|error| describe(&error))
    }

    /// The next bytes; `None` at the end, and after an error.
    pub async fn next_chunk(&mut self) -> Option<Result<Vec<u8>, String>> {
        let reader = self.reader.as_mut()?;
        let chunk = match JsFuture::from(reader.read()).await {
            Ok(result) => reader.take(&result),
            Err(error) => Err(describe(&error)),
        };
        if !matches!(chunk, Ok(Some(_))) {
            self.reader = None;
        }
        chunk.transpose()
    }
}

impl Drop for ChunkReader {
    fn drop(&mut self) {
        if let Some(reader) = self.reader.take() {
            ignore(reader.cancel());
        }
    }
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
