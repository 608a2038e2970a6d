//! Streamed pieces of tool calls -> whole calls.
