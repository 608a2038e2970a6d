//! Configuration: the embedded `agents.toml` and the deployment's variables, checked once.

pub mod agents;

pub use agents::{AgentConfig, AgentsFile};
