//! When a key set is fetched, and how long it is used.
//!
//! An issuer changes its keys by adding one before it signs with it: a token of an unknown key asks again, but not more
//! often than [`UNKNOWN_KEY_PAUSE_MS`], so that forged tokens do not become requests. A set is used beyond its time
//! while the issuer cannot be reached.

use super::key::KeySet;

/// Shortest time between two fetches because of a key we do not know, in milliseconds.
pub const UNKNOWN_KEY_PAUSE_MS: u64 = 30_000;

/// Shortest time between a fetch that failed and the next, in milliseconds.
pub const FAILURE_PAUSE_MS: u64 = 5_000;

/// What is remembered of one key address.
#[derive(Debug, Clone, Default)]
pub struct JwksCache {
    set: Option<KeySet>,
    fetched_ms: u64,
    tried_ms: Option<u64>,
    has_failed: bool,
}

impl JwksCache {
    /// The set, if it is not older than this.
    pub fn usable(&self, now_ms: u64, age_max_ms: u64) -> Option<&KeySet> {
        let is_usable = now_ms.saturating_sub(self.fetched_ms) <= age_max_ms;
        self.set.as_ref().filter(|_| is_usable)
    }

    /// Whether to fetch now; if so, others meanwhile go on with what there is. `is_key_unknown`: there is a set, but
    /// it has no key for the token.
    pub fn begin_fetch(&mut self, now_ms: u64, fresh_ms: u64, is_key_unknown: bool) -> bool {
        let is_fresh = self.usable(now_ms, fresh_ms).is_some();
        let pause_ms = if is_fresh && is_key_unknown {
            UNKNOWN_KEY_PAUSE_MS
        } else if is_fresh {
            return false;
        } else if self.has_failed || self.set.is_some() {
            FAILURE_PAUSE_MS
        } else {
            0
        };
        let is_due = self
            .tried_ms
            .is_none_or(|tried_ms| now_ms.saturating_sub(tried_ms) >= pause_ms);
        if is_due {
            self.tried_ms = Some(now_ms);
        }
        is_due
    }

    /// What came of it; `None` = nothing, and the set there is stays.
    pub fn end_fetch(&mut self, set: Option<KeySet>, now_ms: u64) {
        self.has_failed = set.is_none();
        if set.is_some() {
            self.set = set;
            self.fetched_ms = now_ms;
        }
    }
}
