//! Whole runs on scripted ports and a real database engine: what a client sees, what is stored, what the model is asked.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test stops at the first surprise"
)]

mod ag_ui;
#[path = "../support/bucket.rs"]
#[expect(dead_code, reason = "shared with other test crates")]
mod bucket;
mod completions;
mod conversations;
mod frontend_tools;
mod http;
mod kept_threads;
mod lifecycle;
mod limits;
mod mastra;
mod mcp_tools;
#[path = "../support/object_sqlite.rs"]
mod object_sqlite;
mod persistent_runs;
mod read_back;
mod reasoning;
mod resets;
mod scene;
mod scene_ports;
mod server_tools;
#[path = "../support/sqlite.rs"]
#[expect(dead_code, reason = "shared with other test crates")]
mod sqlite;
