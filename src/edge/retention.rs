//! The cron trigger: deletes what has been idle longer than the deployment keeps it.

use super::bindings::Env;
use super::bucket::R2;
use super::clock::PlatformClock;
use super::database::D1;
use super::env;
use super::ids::RandomIds;
use super::log::ConsoleLog;
use crate::protocol::id::ThreadId;
use crate::run::ports::{Clock, IdSource, Level, Log};
use crate::store::{Purge, SearchIndex, Store};

/// Batches of one occasion; the next goes on where this one stopped.
const BATCHES_MAX: usize = 50;

/// Deletes what is due: with `RETENTION_DAYS` idle threads, and in any case what is left over in the bucket. Nothing
/// without a database.
pub async fn purge_idle(env: &Env) {
    let log = env::log(env);
    let Ok(settings) = env::settings(env) else {
        log.line(Level::Error, "config_invalid", &[]);
        return;
    };
    let Some(store) = env::store(env) else {
        return;
    };
    if let Some(retention_ms) = settings.config.retention_ms {
        purge(&store, retention_ms, env, &log).await;
    }
    drop_attachments(&store, &log).await;
}

async fn purge(store: &Store<D1, Option<R2>>, retention_ms: u64, env: &Env, log: &ConsoleLog) {
    let search = env::search(env).map(SearchIndex::new);
    let before_ms = PlatformClock.now_ms().saturating_sub(retention_ms);
    for batch in 1..=BATCHES_MAX {
        match store.purge_idle(before_ms, &RandomIds.token()).await {
            Ok(purged) => {
                forget(&purged.threads, search.as_ref(), log).await;
                if purged.state == Purge::Complete {
                    log.line(Level::Info, "idle_purged", &[("batchCount", &batch)]);
                    return;
                }
            }
            Err(error) => {
                log.line(Level::Error, "idle_not_purged", &[("error", &error)]);
                return;
            }
        }
    }
    log.line(Level::Warn, "idle_purge_goes_on", &[("batchCount", &BATCHES_MAX)]);
}

/// Deletes from the bucket what no message refers to any more, also what a crash has left there.
async fn drop_attachments(store: &Store<D1, Option<R2>>, log: &ConsoleLog) {
    for _ in 0..BATCHES_MAX {
        match store.drop_attachments(PlatformClock.now_ms()).await {
            Ok(Purge::Complete) => return,
            Ok(Purge::Incomplete) => {}
            Err(error) => {
                return log.line(Level::Error, "attachments_not_dropped", &[("error", &error)]);
            }
        }
    }
}

/// Takes threads that are gone out of the search index.
async fn forget(threads: &[ThreadId], search: Option<&SearchIndex<D1>>, log: &ConsoleLog) {
    let Some(index) = search else {
        return;
    };
    for thread in threads {
        loop {
            match index.forget_thread(thread).await {
                Ok(true) => break,
                Ok(false) => {}
                Err(error) => {
                    log.line(Level::Warn, "search_index_failed", &[("error", &error)]);
                    break;
                }
            }
        }
    }
}
