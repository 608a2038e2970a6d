//! Bytes <-> events: how a stream's events are framed, and how framed streams of others are read. Pure.

pub mod accept;
pub mod event_json;
pub mod event_log;
pub mod protobuf;
pub mod sse;
pub mod sse_decoder;
