//! The events of a run as framed bytes: one copy in memory, read by every viewer at its own place (contract 8).
//!
//! The log keeps the newest events. What it forgets is gone, or, of a run whose events are stored, in the object's
//! SQLite; which of both is the affair of whoever owns the log.

use std::collections::VecDeque;

/// Bytes kept for viewers that come later; when they are exceeded, the older half goes.
pub const LOG_BYTES: usize = 1024 * 1024;

/// Most bytes kept for a viewer that is slower than others.
pub const LOG_MAX_BYTES: usize = 4 * LOG_BYTES;

/// Deltas are stored when this many bytes wait, and
const STORE_BYTES: usize = 64 * 1024;

/// when the oldest of them has waited this long, in milliseconds: never a row for each.
const STORE_EVERY_MS: u64 = 500;

/// A bounded log of framed events.
#[derive(Debug, Default)]
pub struct EventLog {
    bytes: Vec<u8>,
    /// Where each kept event ends, counted from the first byte of the run.
    ends: VecDeque<u64>,
    /// Bytes of the run before `bytes`.
    forgotten_bytes: u64,
    event_count: u64,
    /// Events that are in the object's storage.
    stored_count: u64,
    /// Since when an event waits to be stored, Unix milliseconds.
    waiting_since_ms: Option<u64>,
}

/// Events in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frames<'a> {
    /// Whole frames; empty = there are no events to read yet.
    pub bytes: &'a [u8],
    /// How many events of the run come before the first one that is not in `bytes`.
    pub next: u64,
}

/// Why a log cannot say what follows an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EventLogGap {
    /// Some of the events asked for are no longer kept.
    #[error("the events asked for are no longer kept")]
    Forgotten,
    /// Fewer events than that have happened.
    #[error("fewer events than that have happened")]
    Ahead,
}

impl EventLog {
    /// A log that goes on after `event_count` events, all of them stored.
    pub fn after(event_count: u64) -> Self {
        Self {
            event_count,
            stored_count: event_count,
            ..Self::default()
        }
    }

    /// Appends framed events; `ends` says where each ends within `frames`.
    pub fn append(&mut self, frames: &[u8], ends: &[usize], now_ms: u64) {
        let base = self.forgotten_bytes + self.bytes.len() as u64;
        self.bytes.extend_from_slice(frames);
        self.ends.extend(ends.iter().map(|end| base + *end as u64));
        self.event_count += ends.len() as u64;
        if !ends.is_empty() {
            self.waiting_since_ms.get_or_insert(now_ms);
        }
    }

    /// How many events the run has had.
    pub fn event_count(&self) -> u64 {
        self.event_count
    }

    /// Events after the first `after`: at most `max_bytes` of them, and at least one if there is one.
    ///
    /// # Errors
    /// [`EventLogGap`]
    pub fn read(&self, after: u64, max_bytes: usize) -> Result<Frames<'_>, EventLogGap> {
        let start = self.offset(after)?;
        let until = (self.forgotten_bytes + start as u64).saturating_add(max_bytes as u64);
        let first = self.event_count - self.ends.len() as u64;
        let fitting = first + self.ends.partition_point(|end| *end <= until) as u64;
        let next = fitting.max((after + 1).min(self.event_count));
        let bytes = self.bytes.get(start..self.offset(next)?);
        Ok(Frames {
            bytes: bytes.ok_or(EventLogGap::Forgotten)?,
            next,
        })
    }

    /// How many bytes follow the first `after` events; more than any log has when those are forgotten.
    pub fn bytes_after(&self, after: u64) -> usize {
        self.offset(after)
            .map_or(usize::MAX, |start| self.bytes.len() - start)
    }

    /// When what waits to be stored must be at the latest, Unix milliseconds; `None` = nothing waits.
    pub fn store_due_ms(&self) -> Option<u64> {
        Some(self.waiting_since_ms?.saturating_add(STORE_EVERY_MS))
    }

    /// Whether what waits to be stored must be now: at once when there is more among it than deltas.
    pub fn is_store_due(&self, has_structure: bool, now_ms: u64) -> bool {
        let is_late = self.store_due_ms().is_some_and(|due_ms| now_ms >= due_ms);
        has_structure || is_late || self.bytes_after(self.stored_count) >= STORE_BYTES
    }

    /// The events that wait to be stored, and how many come before them.
    pub fn unstored(&self) -> (u64, Frames<'_>) {
        let none = Frames {
            bytes: &[],
            next: self.event_count,
        };
        (
            self.stored_count,
            self.read(self.stored_count, usize::MAX).unwrap_or(none),
        )
    }

    /// Everything is stored.
    pub fn mark_stored(&mut self) {
        self.stored_count = self.event_count;
        self.waiting_since_ms = None;
    }

    /// How many events are stored.
    pub fn stored_count(&self) -> u64 {
        self.stored_count
    }

    /// Forgets old events once more than `max_bytes` are kept, down to half of that; never one that is not among the
    /// first `needless`.
    pub fn forget(&mut self, max_bytes: usize, needless: u64) {
        if self.bytes.len() <= max_bytes {
            return;
        }
        let excess = (self.bytes.len() - max_bytes / 2) as u64;
        let mut start = self.forgotten_bytes;
        let mut first = self.event_count - self.ends.len() as u64;
        while start - self.forgotten_bytes < excess
            && first < needless
            && let Some(end) = self.ends.pop_front()
        {
            start = end;
            first += 1;
        }
        self.bytes.drain(..(start - self.forgotten_bytes) as usize);
        self.forgotten_bytes = start;
    }

    /// Where the bytes after the first `after` events begin.
    fn offset(&self, after: u64) -> Result<usize, EventLogGap> {
        let missing = self.event_count.checked_sub(after).ok_or(EventLogGap::Ahead)?;
        let kept = self.ends.len() as u64;
        let skipped = kept.checked_sub(missing).ok_or(EventLogGap::Forgotten)?;
        let Some(last) = skipped.checked_sub(1) else {
            return Ok(0);
        };
        let end = self.ends.get(last as usize).ok_or(EventLogGap::Forgotten)?;
        Ok((end - self.forgotten_bytes) as usize)
    }
}

/// The frames behind the first `count` in bytes that hold whole frames.
pub fn skip_frames(mut frames: &[u8], count: u64) -> &[u8] {
    for _ in 0..count {
        // A frame's only line feeds are its own two.
        let end = memchr::memchr(b'\n', frames).map_or(frames.len(), |end| end + 2);
        frames = frames.get(end..).unwrap_or_default();
    }
    frames
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(bytes: &[u8], next: u64) -> Result<Frames<'_>, EventLogGap> {
        Ok(Frames { bytes, next })
    }

    #[test]
    fn every_reader_gets_what_it_has_not_seen() {
        let mut log = EventLog::default();
        assert_eq!(log.read(0, 100), frames(b"", 0));
        assert_eq!(log.read(1, 100), Err(EventLogGap::Ahead));
        log.append(b"abcc", &[1, 2, 4], 0);
        log.append(b"dd", &[2], 0);
        assert_eq!(log.event_count(), 4);
        assert_eq!(log.read(0, 100), frames(b"abccdd", 4));
        assert_eq!(log.read(2, usize::MAX), frames(b"ccdd", 4));
        assert_eq!(log.read(4, 100), frames(b"", 4));
        assert_eq!(log.read(5, 100), Err(EventLogGap::Ahead));
    }

    #[test]
    fn a_read_has_whole_events_and_always_one() {
        let mut log = EventLog::default();
        log.append(b"abccddd", &[1, 2, 4, 7], 0);
        assert_eq!(log.read(0, 3), frames(b"ab", 2));
        assert_eq!(log.read(2, 1), frames(b"cc", 3));
        assert_eq!(log.read(3, 3), frames(b"ddd", 4));
        assert_eq!(log.bytes_after(2), 5);
    }

    #[test]
    fn old_events_are_forgotten_whole_and_said_to_be() {
        let mut log = EventLog::default();
        for letter in b'a'..=b'e' {
            log.append(&[letter; 25], &[25], 0);
            log.forget(100, u64::MAX);
        }
        assert_eq!(log.event_count(), 5);
        assert_eq!(log.read(2, 100), Err(EventLogGap::Forgotten));
        assert_eq!(log.bytes_after(2), usize::MAX);
        let kept = log
            .read(3, 100)
            .map(|read| (read.bytes.len(), read.bytes[0], read.bytes[25]));
        assert_eq!(kept, Ok((50, b'd', b'e')));
        log.append(b"f", &[1], 0);
        assert_eq!(log.read(5, 100), frames(b"f", 6));
    }

    #[test]
    fn what_somebody_still_needs_is_not_forgotten() {
        let mut log = EventLog::default();
        log.append(b"abcdef", &[1, 2, 3, 4, 5, 6], 0);
        log.forget(4, 2);
        assert_eq!(log.read(1, 100), Err(EventLogGap::Forgotten));
        assert_eq!(log.read(2, 100), frames(b"cdef", 6));
        log.forget(2, 6);
        assert_eq!(log.read(5, 100), frames(b"f", 6));
    }

    #[test]
    fn deltas_wait_to_be_stored_and_anything_else_does_not() {
        let mut log = EventLog::after(7);
        assert_eq!(log.read(6, 100), Err(EventLogGap::Forgotten));
        log.append(b"", &[], 900);
        assert_eq!((log.is_store_due(false, 9000), log.store_due_ms()), (false, None));
        log.append(b"d", &[1], 1000);
        log.append(b"e", &[1], 1400);
        assert!(!log.is_store_due(false, 1499));
        assert_eq!(
            (log.is_store_due(false, 1500), log.store_due_ms()),
            (true, Some(1500))
        );
        assert!(log.is_store_due(true, 1400));
        assert_eq!(
            log.unstored(),
            (
                7,
                Frames {
                    bytes: b"de",
                    next: 9
                }
            )
        );
        log.mark_stored();
        assert_eq!((log.stored_count(), log.is_store_due(false, 9000)), (9, false));
        assert_eq!(log.store_due_ms(), None);
        log.append(&[b'x'; STORE_BYTES], &[STORE_BYTES], 9000);
        assert!(log.is_store_due(false, 9000));
    }

    #[test]
    fn frames_are_skipped_by_their_line_feeds() {
        let frames = b"data: a\n\ndata: b\n\ndata: c\n\n";
        assert_eq!(skip_frames(frames, 0), frames);
        assert_eq!(skip_frames(frames, 2), b"data: c\n\n");
        assert_eq!(skip_frames(frames, 4), b"");
    }
}
