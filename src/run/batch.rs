//! Batches of the database, again while it says that it may work later.

use std::future::Future;

use super::ports::{Clock, IdSource, Level, Log, Ports};
use crate::protocol::id::RunId;
use crate::store::{DatabaseError, StoreError};

/// Attempts at a database batch, and the pause before the second, in milliseconds; it doubles.
const DATABASE_ATTEMPTS: u32 = 3;
const DATABASE_PAUSE_MS: u64 = 100;

/// Runs a batch, again while the database says it may work later.
pub(super) async fn stored<P: Ports, T, F: Future<Output = Result<T, StoreError>>>(
    ports: &P,
    run_id: &RunId,
    batch: &'static str,
    mut attempt: impl FnMut() -> F,
) -> Result<T, StoreError> {
    let mut count = 1;
    loop {
        match attempt().await {
            Err(error) if may_work_later(ports, run_id, batch, &error, count).await => count += 1,
            done => return done,
        }
    }
}

/// Says so in the log that a batch failed; pauses if another attempt may do better.
async fn may_work_later<P: Ports>(
    ports: &P,
    run_id: &RunId,
    batch: &'static str,
    error: &StoreError,
    count: u32,
) -> bool {
    ports.log().line(
        Level::Error,
        "database_failed",
        &[
            ("runId", run_id),
            ("batch", &batch),
            ("attempt", &count),
            ("error", error),
        ],
    );
    let may_work = match error {
        StoreError::Database(DatabaseError::Unavailable(_)) | StoreError::Attachments(_) => true,
        StoreError::Database(DatabaseError::Constraint(_) | DatabaseError::Refused(_))
        | StoreError::Corrupt(_) => false,
    };
    if !may_work || count >= DATABASE_ATTEMPTS {
        return false;
    }
    let pause_ms = (DATABASE_PAUSE_MS << count) as f64 * (0.5 + ports.ids().fraction() / 2.0);
    ports.clock().sleep(pause_ms as u64).await;
    true
}
