//! Reading what a client or another part of the Worker sent, never more than a limit.

use web_sys::Request;

use super::stream::ChunkReader;

/// Why a body was not read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BodyFault {
    /// It has more bytes than the limit; the rest was not read.
    #[error("the body is too large")]
    TooLarge,
    /// It is not UTF-8.
    #[error("the body is not UTF-8")]
    NotUtf8,
    /// The connection failed.
    #[error("the body could not be read")]
    Broken,
}

/// Reads a body as text of at most `max_bytes`, without its byte order mark.
///
/// # Errors
/// [`BodyFault`]
pub async fn read_text(request: &Request, max_bytes: usize) -> Result<String, BodyFault> {
    let declared = request.headers().get("content-length").ok().flatten();
    if declared
        .and_then(|length| length.parse::<usize>().ok())
        .is_some_and(|length| length > max_bytes)
    {
        return Err(BodyFault::TooLarge);
    }
    let mut chunks = ChunkReader::new(request.body()).map_err(|_| BodyFault::Broken)?;
    let mut bytes = Vec::new();
    while let Some(chunk) = chunks.next_chunk().await {
        let chunk = chunk.map_err(|_| BodyFault::Broken)?;
        if bytes.len() + chunk.len() > max_bytes {
            return Err(BodyFault::TooLarge);
        }
        bytes.extend_from_slice(&chunk);
    }
    let text = String::from_utf8(bytes).map_err(|_| BodyFault::NotUtf8)?;
    match text.strip_prefix('\u{feff}') {
        Some(rest) => Ok(rest.to_owned()),
        None => Ok(text),
    }
}
