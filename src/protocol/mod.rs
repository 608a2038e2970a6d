//! The contract as types: no IO, no async, no clock. Everything else may use this module; it uses nothing of ours.

pub mod agent;
pub mod base64;
pub mod decode;
pub mod event;
pub mod forwarded_props;
pub mod forwarded_props_decode;
pub mod id;
pub mod index;
pub mod input;
mod input_decode;
#[cfg(test)]
mod input_tests;
pub mod json;
pub mod json_cursor;
pub mod json_text;
mod json_writer;
pub mod lifecycle;
pub mod message;
mod message_decode;
pub mod named;
pub mod node;
pub mod number;
pub mod order;
pub mod parts;
pub mod payload;
pub mod percent;
pub mod read;
pub mod thread;
pub mod time;
pub mod tool;
pub mod tool_result;
pub mod tree;
pub mod utf8;
