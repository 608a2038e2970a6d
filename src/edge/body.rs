//! Reading what was sent to us, never more than a limit.

use crate::protocol::number;
use js_sys::{ArrayBuffer, Uint8Array};
use wasm_bindgen::JsCast;
use wasm_bindgen_futures::JsFuture;
use web_sys::Request;

use super::stream::ChunkReader;

/// Why a body was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyFault {
    /// It has more bytes than the limit; the rest was not read.
    #[error("the body is too large")]
    TooLarge,
    /// The connection failed.
    #[error("the body could not be read")]
    Broken,
}

/// How much of a body that nobody wants is still taken, in bytes. A client that is cut off while it sends may never
/// see the answer that says why.
const UNWANTED_MAX_BYTES: usize = 64 * 1024 * 1024;

/// Reads a whole body of at most `max_bytes`; of a longer one nothing is kept.
///
/// # Errors
/// [`BodyFault`]
pub async fn read(request: &Request, max_bytes: usize) -> Result<Vec<u8>, BodyFault> {
    let says_its_size = request.headers().get("content-length").ok().flatten();
    let says_its_size = says_its_size.and_then(|size| number::unsigned(&size));
    if says_its_size.is_some_and(|size| size <= max_bytes as u64) {
        return whole(request).await;
    }
    in_chunks(request, max_bytes).await
}

/// Reads a body that is known to be small enough: a step of the platform's, not one for each chunk.
///
/// # Errors
/// [`BodyFault::Broken`]
pub async fn whole(request: &Request) -> Result<Vec<u8>, BodyFault> {
    let reading = request.array_buffer().map_err(|_| BodyFault::Broken)?;
    let bytes = JsFuture::from(reading).await.map_err(|_| BodyFault::Broken)?;
    Ok(Uint8Array::new(bytes.unchecked_ref::<ArrayBuffer>()).to_vec())
}

async fn in_chunks(request: &Request, max_bytes: usize) -> Result<Vec<u8>, BodyFault> {
    let mut chunks = ChunkReader::new(request.body()).map_err(|_| BodyFault::Broken)?;
    let mut bytes = Vec::new();
    let mut size_bytes = 0usize;
    while let Some(chunk) = chunks.next_chunk().await {
        let chunk = chunk.map_err(|_| BodyFault::Broken)?;
        size_bytes = size_bytes.saturating_add(chunk.len());
        if size_bytes <= max_bytes {
            bytes.extend_from_slice(&chunk);
        } else if size_bytes <= UNWANTED_MAX_BYTES {
            bytes = Vec::new();
        } else {
            break;
        }
    }
    if size_bytes <= max_bytes {
        Ok(bytes)
    } else {
        Err(BodyFault::TooLarge)
    }
}

/// Takes a body nobody has read out of the client's way.
pub async fn discard(request: &Request) {
    if request.body().is_some() && !request.body_used() {
        let _ = read(request, 0).await;
    }
}
