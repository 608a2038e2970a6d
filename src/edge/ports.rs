//! The ports of a run, on the platform.

use super::clock::PlatformClock;
use super::database::D1;
use super::http::FetchClient;
use super::ids::RandomIds;
use super::log::ConsoleLog;
use crate::run::ports::{OutboxFull, Ports};
use crate::store::{EndRun, PersistentRun};

/// All ports of one run.
#[derive(Debug)]
pub struct PlatformPorts {
    /// `None` when the deployment has no database.
    pub database: Option<D1>,
    /// With the ids of the run on each line.
    pub log: ConsoleLog,
}

impl Ports for PlatformPorts {
    type Http = FetchClient;
    type Database = D1;
    type Clock = PlatformClock;
    type Ids = RandomIds;
    type Log = ConsoleLog;

    fn http(&self) -> &FetchClient {
        &FetchClient
    }

    fn database(&self) -> Option<&D1> {
        self.database.as_ref()
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

    fn keep_undelivered(&self, _run: &PersistentRun, _end: &EndRun) -> Result<(), OutboxFull> {
        Err(OutboxFull)
    }
}
