//! Incremental reader of SSE bodies, for upstreams and MCP servers, whatever the chunking.
//!
//! Works on bytes: a character, a line end or a byte order mark may be cut anywhere. An event whose one `data` line and
//! blank line lie inside one chunk, which is what upstreams send, is handed out without a copy. Time is linear in the
//! bytes. `id` and `retry` are skipped: nobody here reconnects.
//! Source: WHATWG HTML, "Server-sent events", 9.2.6; known faults B001 to B016.

use std::borrow::Cow;

use memchr::memchr2;

use crate::protocol::utf8;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// One event of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent<'a> {
    /// The `event` field; empty when there is none.
    pub name: &'a str,
    /// The `data` lines joined with LF; bytes that are not UTF-8 became U+FFFD. Borrowed unless they did.
    pub data: Cow<'a, str>,
}

/// Why a body cannot be read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SseFault {
    /// A line, or the data of one event, is longer than the decoder's limit.
    #[error("an event of the stream is too long")]
    TooLong,
}

/// The state between two chunks of one body.
#[derive(Debug)]
pub struct SseDecoder {
    max_event_bytes: usize,
    /// The part of an unfinished line that came with earlier chunks.
    line: Vec<u8>,
    /// Data lines of the pending event, joined.
    data: Vec<u8>,
    has_data: bool,
    /// `event` field of the pending event.
    name: Vec<u8>,
    /// Whether the pending event was handed out: it is forgotten at the next call.
    is_delivered: bool,
    /// The last line ended with CR: an LF that follows belongs to it.
    skips_lf: bool,
    is_first_line: bool,
}

/// One line.
enum Field<'a> {
    Data(&'a [u8]),
    Event(&'a [u8]),
    /// A comment or a field that means nothing here.
    Skipped,
}

/// Where the data of a found event is.
enum Found<'a> {
    InChunk(&'a [u8]),
    InDecoder,
}

impl SseDecoder {
    /// A decoder for one body. `max_event_bytes` bounds each line and each event's data.
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            max_event_bytes,
            line: Vec::new(),
            data: Vec::new(),
            has_data: false,
            name: Vec::new(),
            is_delivered: false,
            skips_lf: false,
            is_first_line: true,
        }
    }

    /// Takes the next bytes. What the caller does not read from the returned events is lost.
    pub fn feed<'a>(&'a mut self, bytes: &'a [u8]) -> SseEvents<'a> {
        SseEvents {
            decoder: self,
            rest: bytes,
        }
    }

    /// The body ended: hands out what is pending, also when its blank line or last line end is missing. Whether that is
    /// a whole payload only the caller can tell (known fault B016).
    ///
    /// # Errors
    /// [`SseFault`]
    pub fn end(&mut self) -> Result<Option<SseEvent<'_>>, SseFault> {
        self.forget_delivered();
        self.take_carried_line()?;
        if !self.has_data {
            return Ok(None);
        }
        self.is_delivered = true;
        Ok(Some(self.event(&self.data)))
    }

    fn event<'s>(&'s self, data: &'s [u8]) -> SseEvent<'s> {
        SseEvent {
            // A name that is not UTF-8 is no name anybody waits for.
            name: std::str::from_utf8(&self.name).unwrap_or_default(),
            data: std::str::from_utf8(data).map_or_else(|_| utf8::lossy(data), Cow::Borrowed),
        }
    }

    fn forget_delivered(&mut self) {
        if self.is_delivered {
            self.is_delivered = false;
            self.forget_pending();
        }
    }

    fn forget_pending(&mut self) {
        self.data.clear();
        self.has_data = false;
        self.name.clear();
    }

    fn carry(&mut self, part: &[u8]) -> Result<(), SseFault> {
        if self.line.len() + part.len() > self.max_event_bytes {
            return Err(SseFault::TooLong);
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn take_carried_line(&mut self) -> Result<(), SseFault> {
        let mut line = std::mem::take(&mut self.line);
        let taken = self.field(&line).and_then(|field| self.take_field(field));
        line.clear();
        self.line = line;
        taken
    }

    /// Reads a line that is not blank.
    fn field<'l>(&mut self, line: &'l [u8]) -> Result<Field<'l>, SseFault> {
        if line.len() > self.max_event_bytes {
            return Err(SseFault::TooLong);
        }
        let line = self.without_byte_order_mark(line);
        // By far the most frequent line; spares it the search for the colon.
        if let Some(value) = line.strip_prefix(b"data:") {
            return Ok(Field::Data(without_leading_space(value)));
        }
        let mut halves = line.splitn(2, |byte| *byte == b':');
        let name = halves.next().unwrap_or_default();
        let value = without_leading_space(halves.next().unwrap_or_default());
        Ok(match name {
            b"data" => Field::Data(value),
            b"event" => Field::Event(value),
            _ => Field::Skipped,
        })
    }

    fn take_field(&mut self, field: Field<'_>) -> Result<(), SseFault> {
        match field {
            Field::Data(value) => self.append_data(value),
            Field::Event(value) => {
                self.name.clear();
                self.name.extend_from_slice(value);
                Ok(())
            }
            Field::Skipped => Ok(()),
        }
    }

    fn without_byte_order_mark<'l>(&mut self, line: &'l [u8]) -> &'l [u8] {
        if std::mem::take(&mut self.is_first_line) {
            line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line)
        } else {
            line
        }
    }

    fn append_data(&mut self, value: &[u8]) -> Result<(), SseFault> {
        if self.data.len() + 1 + value.len() > self.max_event_bytes {
            return Err(SseFault::TooLong);
        }
        if self.has_data {
            self.data.push(b'\n');
        }
        self.has_data = true;
        self.data.extend_from_slice(value);
        Ok(())
    }
}

/// The events that one chunk completes.
#[derive(Debug)]
pub struct SseEvents<'a> {
    decoder: &'a mut SseDecoder,
    rest: &'a [u8],
}

impl SseEvents<'_> {
    /// The next event; `None` when the chunk is used up.
    ///
    /// # Errors
    /// [`SseFault`]; the body cannot be read on then.
    pub fn next_event(&mut self) -> Result<Option<SseEvent<'_>>, SseFault> {
        self.decoder.forget_delivered();
        let Some(found) = self.find()? else {
            return Ok(None);
        };
        self.decoder.is_delivered = true;
        Ok(Some(match found {
            Found::InChunk(data) => self.decoder.event(data),
            Found::InDecoder => self.decoder.event(&self.decoder.data),
        }))
    }
}

impl<'a> SseEvents<'a> {
    fn find(&mut self) -> Result<Option<Found<'a>>, SseFault> {
        while let Some(line) = self.next_line()? {
            if !self.decoder.line.is_empty() {
                self.decoder.carry(line)?;
                self.decoder.take_carried_line()?;
            } else if line.is_empty() {
                if self.decoder.has_data {
                    return Ok(Some(Found::InDecoder));
                }
                self.decoder.is_first_line = false;
                self.decoder.forget_pending();
            } else if let Some(data) = self.take_whole_event(line)? {
                return Ok(Some(Found::InChunk(data)));
            }
        }
        Ok(None)
    }

    /// Cuts the next line off; a line without its end is carried over to the next chunk.
    fn next_line(&mut self) -> Result<Option<&'a [u8]>, SseFault> {
        self.skip_lf();
        let Some((line, rest)) =
            memchr2(b'\n', b'\r', self.rest).and_then(|end| self.rest.split_at_checked(end))
        else {
            self.decoder.carry(self.rest)?;
            self.rest = &[];
            return Ok(None);
        };
        self.rest = rest;
        self.skip_line_end();
        Ok(Some(line))
    }

    /// Skips an LF whose CR was the last byte of the line before.
    fn skip_lf(&mut self) {
        if self.decoder.skips_lf && !self.rest.is_empty() {
            self.decoder.skips_lf = false;
            self.rest = self.rest.strip_prefix(b"\n").unwrap_or(self.rest);
        }
    }

    /// Skips a line end if the rest of the chunk begins with one.
    fn skip_line_end(&mut self) -> bool {
        match self.rest {
            [b'\n', rest @ ..] => self.rest = rest,
            [b'\r', rest @ ..] => {
                self.rest = rest;
                self.decoder.skips_lf = true;
                self.skip_lf();
            }
            _ => return false,
        }
        true
    }

    /// Takes a line that lies whole in the chunk. Gives its data when it makes an event of its own: a `data` line, none
    /// before it, and a blank line after it.
    fn take_whole_event(&mut self, line: &'a [u8]) -> Result<Option<&'a [u8]>, SseFault> {
        let field = self.decoder.field(line)?;
        if let Field::Data(value) = field
            && !self.decoder.has_data
            && self.skip_line_end()
        {
            return Ok(Some(value));
        }
        self.decoder.take_field(field)?;
        Ok(None)
    }
}

fn without_leading_space(value: &[u8]) -> &[u8] {
    value.strip_prefix(b" ").unwrap_or(value)
}

#[cfg(test)]
#[path = "sse_decoder_tests.rs"]
mod tests;
