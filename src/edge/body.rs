//! Reading what was sent to us, never more than a limit.

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
