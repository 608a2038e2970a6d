//! One JSON line per event on the platform's console; Workers Logs index the members.

use std::fmt::Display;

use serde_json::{Map, Value};

use crate::run::ports::{Level, Log};

/// Writes lines at or above a level, each with the ids of what it belongs to.
#[derive(Debug, Clone)]
pub struct ConsoleLog {
    least: Level,
    ids: Vec<(&'static str, String)>,
}

impl ConsoleLog {
    /// A log from this level up.
    pub fn new(least: Level) -> Self {
        Self {
            least,
            ids: Vec::new(),
        }
    }

    /// The same log, with one more id on each line.
    #[must_use]
    pub fn with(&self, name: &'static str, id: impl Into<String>) -> Self {
        let mut log = self.clone();
        log.ids.push((name, id.into()));
        log
    }
}

impl Log for ConsoleLog {
    fn line(&self, level: Level, event: &'static str, members: &[(&'static str, &dyn Display)]) {
        if level < self.least {
            return;
        }
        let mut line = Map::new();
        line.insert("level".to_owned(), name(level).into());
        line.insert("event".to_owned(), event.into());
        for (name, id) in &self.ids {
            line.insert((*name).to_owned(), id.as_str().into());
        }
        for (name, value) in members {
            line.insert((*name).to_owned(), value.to_string().into());
        }
        let line = Value::Object(line).to_string();
        match level {
            Level::Debug | Level::Info => worker::console_log!("{line}"),
            Level::Warn => worker::console_warn!("{line}"),
            Level::Error => worker::console_error!("{line}"),
        }
    }
}

fn name(level: Level) -> &'static str {
    match level {
        Level::Debug => "debug",
        Level::Info => "info",
        Level::Warn => "warn",
        Level::Error => "error",
    }
}
