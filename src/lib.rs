//! io-bridge: a Cloudflare Worker that serves the io.Intelligence Agent Protocol.
//!
//! A pure core (`protocol`, `binding`, `provider`, `tool`, `store`, `run`, `api`, `config`) that compiles and is
//! tested on any machine, and one thin shell (`edge`) that exists only on wasm and takes no decisions.
//! Who may use whom: `protocol` is used by all; `binding` by `provider`, `tool` and `edge`; `provider`, `tool` and
//! `store` by `run`; `run`, `api` and `config` by `edge`; `platform`,
//! `beside` and `list` by all. Never upward. `tests/module_directions.rs` holds this.

pub mod api;
pub mod beside;
pub mod binding;
pub mod config;
#[cfg(target_arch = "wasm32")]
mod edge;
pub mod list;
pub mod platform;
pub mod protocol;
pub mod provider;
pub mod run;
pub mod store;
pub mod tool;
