//! The calls a run waits for, and the results that came: first result wins (contract 3).

/// Registered calls of one run and their results.
#[derive(Debug, Default)]
pub struct ToolMailbox {}
