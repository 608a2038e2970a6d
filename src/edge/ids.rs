//! Fresh ids and random numbers of the platform.

use uuid::Uuid;

use crate::protocol::id::MessageId;
use crate::run::ports::IdSource;

/// Ids from the platform's random source.
#[derive(Debug, Clone, Copy)]
pub struct RandomIds;

/// An id for `x-request-id`.
pub fn request_id() -> String {
    Uuid::new_v4().to_string()
}

/// A random number of 122 bits, for a trace that begins here.
pub fn random() -> u128 {
    Uuid::new_v4().as_u128()
}

/// A random number, for the span of a call of ours.
pub fn span() -> u64 {
    getrandom::u64().unwrap_or_default()
}

impl IdSource for RandomIds {
    fn message_id(&self) -> MessageId {
        MessageId::new(Uuid::new_v4().to_string())
    }

    fn token(&self) -> String {
        getrandom::u64().map_or_else(
            |_| Uuid::new_v4().simple().to_string(),
            |number| format!("{number:016x}"),
        )
    }

    fn fraction(&self) -> f64 {
        // Without randomness every retry waits the middle of its range: harmless.
        getrandom::u32().map_or(0.5, |number| f64::from(number) / f64::from(u32::MAX))
    }
}
