//! Names of the native tools: what an agent's `tools` may list.
//!
//! Plain data without paths into the crate: the build script reads it too. A test holds it against
//! [`NATIVE_TOOLS`](super::NATIVE_TOOLS).

/// Every native tool's name.
pub const NATIVE_TOOL_NAMES: &[&str] = &["current_time"];
