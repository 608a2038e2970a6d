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

/// Reads a whole body of at most `max_bytes`; one that is longer is left as soon as that is known.
///
/// # Errors
/// [`BodyFault`]
pub async fn read(request: &Request, max_bytes: usize) -> Result<Vec<u8>, BodyFault> {
    let mut chunks = ChunkReader::new(request.body()).map_err(|_| BodyFault::Broken)?;
    let mut bytes = Vec::new();
    while let Some(chunk) = chunks.next_chunk().await {
        let chunk = chunk.map_err(|_| BodyFault::Broken)?;
        if bytes.len() + chunk.len() > max_bytes {
            return Err(BodyFault::TooLarge);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}
