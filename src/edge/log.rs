//! One JSON line per event on the platform's console; Workers Logs index the members.

use std::fmt::Display;

use serde_json::{Map, Value};
use web_sys::console;

use super::reply::Answer;
use crate::protocol::json;
use crate::protocol::number;
use crate::run::ports::{Level, Log};

/// A line that may be written.
#[derive(Debug)]
pub struct LogLine {
    level: Level,
    text: String,
}

impl LogLine {
    /// Writes it. The first line of a process takes the platform long.
    pub fn write(&self) {
        let text = self.text.as_str().into();
        match self.level {
            Level::Debug | Level::Info => console::log_1(&text),
            Level::Warn => console::warn_1(&text),
            Level::Error => console::error_1(&text),
        }
    }
}

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

/// Ends of the names of members that are numbers: names have their units.
const UNITS: [&str; 4] = ["Ms", "Bytes", "Count", "Tokens"];

impl ConsoleLog {
    /// The one line of a request with this answer. `template` stands for the path, whose ids are the client's.
    pub fn request(
        &self,
        method: &str,
        template: Option<&'static str>,
        answer: &Answer,
        duration_ms: u64,
    ) -> Option<LogLine> {
        let (status, code, bytes) = (answer.status(), answer.code(), answer.body_bytes());
        let mut members: Vec<(&'static str, &dyn Display)> = vec![("method", &method)];
        if let Some(template) = &template {
            members.push(("route", template));
        }
        members.push(("status", &status));
        if let Some(code) = &code {
            members.push(("code", code));
        }
        members.push(("durationMs", &duration_ms));
        if let Some(bytes) = &bytes {
            members.push(("answerBytes", bytes));
        }
        self.to_line(Level::Info, "request", &members)
    }

    /// What [`Log::line`] writes; `None` below the least level.
    pub fn to_line(
        &self,
        level: Level,
        event: &'static str,
        members: &[(&'static str, &dyn Display)],
    ) -> Option<LogLine> {
        if level < self.least {
            return None;
        }
        let mut line = Map::new();
        line.insert("level".to_owned(), name(level).into());
        line.insert("event".to_owned(), event.into());
        for (name, id) in &self.ids {
            line.insert((*name).to_owned(), id.as_str().into());
        }
        for (name, shown) in members {
            line.insert((*name).to_owned(), value(name, *shown));
        }
        let text = json::text(&line);
        Some(LogLine { level, text })
    }
}

/// A member's value: a number where its name says so.
fn value(name: &str, value: &dyn Display) -> Value {
    let text = value.to_string();
    let is_number = matches!(name, "status" | "attempt") || UNITS.iter().any(|unit| name.ends_with(unit));
    match number::unsigned(&text) {
        Some(number) if is_number => number.into(),
        Some(_) | None => text.into(),
    }
}

impl Log for ConsoleLog {
    fn line(&self, level: Level, event: &'static str, members: &[(&'static str, &dyn Display)]) {
        if let Some(line) = self.to_line(level, event, members) {
            line.write();
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
