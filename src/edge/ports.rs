//! The ports of a run, on the platform.

use std::rc::Rc;

use wasm_bindgen_futures::spawn_local;

use super::bucket::R2;
use super::clock::PlatformClock;
use super::database::D1;
use super::ids::RandomIds;
use super::log::ConsoleLog;
use super::metrics::Metrics;
use super::object_sql::ObjectSql;
use super::outbox::Outbox;
use super::upstreams::Upstreams;
use super::watchdog::{ALARM_EVERY, Watchdog};
use crate::run::keeper::Keeper;
use crate::run::mcp_lists::McpLists;
use crate::run::ports::{Level, Log, OutboxFull, Ports};
use crate::run::report::RunReport;
use crate::store::{EndRun, PersistentRun, end_batch};

/// All ports of one run.
#[derive(Debug)]
pub struct PlatformPorts {
    /// Models, agents and tools elsewhere.
    pub upstreams: Upstreams,
    /// `None` when the deployment has no database.
    pub database: Option<D1>,
    /// `None` when the deployment has no bucket.
    pub attachments: Option<R2>,
    /// `None` when the deployment has no search index.
    pub search: Option<D1>,
    /// Where the run's numbers go.
    pub metrics: Metrics,
    /// With the ids of the run on each line.
    pub log: ConsoleLog,
    /// Keeps what the database does not take.
    pub outbox: Outbox,
    /// Has it delivered.
    pub watchdog: Watchdog,
    /// This isolate's.
    pub mcp_lists: Rc<McpLists>,
    /// Keeps the run.
    pub keeper: Rc<Keeper<ObjectSql>>,
}

impl Ports for PlatformPorts {
    type Http = Upstreams;
    type Database = D1;
    type Attachments = Option<R2>;
    type Clock = PlatformClock;
    type Ids = RandomIds;
    type Log = ConsoleLog;
    type Storage = ObjectSql;

    fn http(&self) -> &Upstreams {
        &self.upstreams
    }

    fn database(&self) -> Option<&D1> {
        self.database.as_ref()
    }

    fn attachments(&self) -> &Option<R2> {
        &self.attachments
    }

    fn search(&self) -> Option<&D1> {
        self.search.as_ref()
    }

    fn clock(&self) -> &PlatformClock {
        &PlatformClock
    }

    fn ids(&self) -> &RandomIds {
        &RandomIds
    }

    fn log(&self) -> &ConsoleLog {
        &self.log
    }

    fn mcp_lists(&self) -> &McpLists {
        &self.mcp_lists
    }

    fn measure(&self, report: &RunReport<'_>) {
        if let Err(error) = self.metrics.write(report) {
            self.log
                .line(Level::Warn, "point_not_written", &[("error", &error)]);
        }
    }

    fn keeper(&self) -> &Keeper<ObjectSql> {
        &self.keeper
    }

    fn keep_undelivered(&self, run: &PersistentRun, end: &EndRun) -> Result<(), OutboxFull> {
        let batch = end_batch(run, end.clone()).map_err(|_| OutboxFull)?;
        if let Err(fault) = self.outbox.keep(&batch) {
            self.log
                .line(Level::Error, "end_batch_not_kept", &[("error", &fault.0)]);
            return Err(OutboxFull);
        }
        let watchdog = self.watchdog.clone();
        spawn_local(async move { watchdog.rearm(ALARM_EVERY).await });
        Ok(())
    }
}
