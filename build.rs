//! Checks `agents.toml` and embeds it as JSON.

fn main() {}
