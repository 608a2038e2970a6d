//! The newest events of a run as framed bytes, for viewers that come later (contract 8).

use std::collections::VecDeque;

/// Most bytes kept; when they are exceeded, the older half goes.
pub const EVENT_LOG_MAX_BYTES: usize = 1024 * 1024;

/// A bounded log of framed events.
#[derive(Debug, Default)]
pub struct EventLog {
    bytes: Vec<u8>,
    /// Where each kept event ends, counted from the first byte of the run.
    ends: VecDeque<usize>,
    /// Bytes of the run before `bytes`.
    forgotten_bytes: usize,
    event_count: u64,
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
    /// Appends framed events; `ends` says where each ends within `frames`.
    pub fn append(&mut self, frames: &[u8], ends: &[usize]) {
        let base = self.forgotten_bytes + self.bytes.len();
        self.bytes.extend_from_slice(frames);
        self.ends.extend(ends.iter().map(|end| base + end));
        self.event_count += ends.len() as u64;
        if self.bytes.len() > EVENT_LOG_MAX_BYTES {
            self.forget();
        }
    }

    /// How many events the run has had.
    pub fn event_count(&self) -> u64 {
        self.event_count
    }

    /// The frames of all events after the first `after`.
    ///
    /// # Errors
    /// [`EventLogGap`]
    pub fn since(&self, after: u64) -> Result<&[u8], EventLogGap> {
        let missing = self.event_count.checked_sub(after).ok_or(EventLogGap::Ahead)?;
        let kept = self.ends.len() as u64;
        let start = match kept.checked_sub(missing) {
            None => return Err(EventLogGap::Forgotten),
            Some(0) => 0,
            Some(skipped) => {
                let last = usize::try_from(skipped - 1)
                    .ok()
                    .and_then(|index| self.ends.get(index));
                last.map_or(0, |end| end - self.forgotten_bytes)
            }
        };
        self.bytes.get(start..).ok_or(EventLogGap::Forgotten)
    }

    fn forget(&mut self) {
        let total = self.forgotten_bytes + self.bytes.len();
        let mut start = self.forgotten_bytes;
        while total - start > EVENT_LOG_MAX_BYTES / 2
            && let Some(end) = self.ends.pop_front()
        {
            start = end;
        }
        self.bytes.drain(..start - self.forgotten_bytes);
        self.forgotten_bytes = start;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_viewer_gets_what_it_has_not_seen() {
        let mut log = EventLog::default();
        assert_eq!(log.since(0), Ok(&b""[..]));
        assert_eq!(log.since(1), Err(EventLogGap::Ahead));
        log.append(b"abcc", &[1, 2, 4]);
        log.append(b"dd", &[2]);
        assert_eq!(log.event_count(), 4);
        assert_eq!(log.since(0), Ok(&b"abccdd"[..]));
        assert_eq!(log.since(2), Ok(&b"ccdd"[..]));
        assert_eq!(log.since(4), Ok(&b""[..]));
        assert_eq!(log.since(5), Err(EventLogGap::Ahead));
    }

    #[test]
    fn old_events_are_forgotten_whole_and_said_to_be() {
        let mut log = EventLog::default();
        let quarter = EVENT_LOG_MAX_BYTES / 4;
        for letter in b'a'..=b'e' {
            log.append(&vec![letter; quarter], &[quarter]);
        }
        assert_eq!(log.event_count(), 5);
        assert_eq!(log.since(2), Err(EventLogGap::Forgotten));
        let kept = log.since(3).map(|bytes| (bytes.len(), bytes[0], bytes[quarter]));
        assert_eq!(kept, Ok((2 * quarter, b'd', b'e')));
        log.append(b"f", &[1]);
        assert_eq!(log.since(5), Ok(&b"f"[..]));
        assert_eq!(log.since(4).map(<[u8]>::len), Ok(quarter + 1));
    }

    #[test]
    fn an_event_larger_than_the_log_is_counted_and_not_kept() {
        let mut log = EventLog::default();
        log.append(&vec![0; EVENT_LOG_MAX_BYTES + 1], &[EVENT_LOG_MAX_BYTES + 1]);
        assert_eq!(log.since(0), Err(EventLogGap::Forgotten));
        assert_eq!(log.since(1), Ok(&b""[..]));
    }
}
