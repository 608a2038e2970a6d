//! The HTTP surface as data: which route, who calls, what an error looks like. Pure; knows nothing of runs.

pub mod auth;
pub mod body;
pub mod cors;
pub mod error;
pub mod error_code;
pub mod jwt;
pub mod jwt_rules;
pub mod limits;
pub mod openapi;
pub mod query;
pub mod reply;
pub mod route;
pub mod socket;
pub mod trace;
