//! `AUTH`.

use serde::Deserialize;
use serde_json::Value;

use super::ConfigError;
use super::check::is_secret_name;
use super::variables::Variables;
use crate::protocol::id::{ResourceId, check_id};

/// How callers prove who they are. Source: D4.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Auth {
    /// Everybody may call; the client's resourceId is the owner.
    #[default]
    None,
    /// `authorization: Bearer <token>`; at least one token.
    Bearer(Vec<BearerToken>),
}

/// One token that is accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BearerToken {
    /// Name of the secret that holds it.
    pub secret: String,
    /// Whose it is.
    pub owner: TokenOwner,
}

/// Whom a token stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TokenOwner {
    /// One owner; another resourceId is refused.
    One(ResourceId),
    /// A trusted back end that speaks for all: the resourceId it sends is the owner.
    Any,
}

#[derive(Deserialize)]
#[serde(tag = "mode", rename_all = "lowercase", deny_unknown_fields)]
enum Wire {
    None {},
    Bearer { tokens: Vec<WireToken> },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WireToken {
    secret: String,
    owner: String,
}

/// Reads the variable.
pub(super) fn auth(vars: Variables<'_>) -> Result<Auth, ConfigError> {
    let table = vars.table("AUTH")?;
    if table.is_empty() {
        return Ok(Auth::None);
    }
    let value = Value::Object(table);
    let wire: Wire = serde_json::from_value(value.clone()).map_err(|error| {
        let message = r#"must be {mode: "none"} or {mode: "bearer", tokens: [{secret, owner}]}"#;
        ConfigError::new("AUTH", message, format!("{error}: {value}"))
    })?;
    match wire {
        Wire::None {} => Ok(Auth::None),
        Wire::Bearer { tokens } if tokens.is_empty() => {
            Err(ConfigError::new("AUTH.tokens", "must have at least one", value))
        }
        Wire::Bearer { tokens } => tokens
            .into_iter()
            .enumerate()
            .map(token)
            .collect::<Result<_, _>>()
            .map(Auth::Bearer),
    }
}

fn token((index, wire): (usize, WireToken)) -> Result<BearerToken, ConfigError> {
    if !is_secret_name(&wire.secret) {
        let key = format!("AUTH.tokens[{index}].secret");
        return Err(ConfigError::new(
            key,
            "must be the name of a secret, not a token",
            wire.secret,
        ));
    }
    if let Err(fault) = check_id(&wire.owner) {
        let key = format!("AUTH.tokens[{index}].owner");
        return Err(ConfigError::new(key, fault.to_string(), wire.owner));
    }
    Ok(BearerToken {
        secret: wire.secret,
        owner: match wire.owner.as_str() {
            "*" => TokenOwner::Any,
            owner => TokenOwner::One(ResourceId::new(owner)),
        },
    })
}
