//! The contract as types: no IO, no async, no clock. Everything else may use this module; it uses nothing of ours.

pub mod agent;
pub mod event;
pub mod forwarded_props;
pub mod id;
pub mod input;
pub mod json;
pub mod lifecycle;
pub mod message;
pub mod thread;
pub mod time;
pub mod tool;
