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
#[serde(deny_unknown_fields)]
struct Wire {
    mode: Mode,
    #[serde(default)]
    tokens: Vec<WireToken>,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Mode {
    None,
    Bearer,
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
    let text = Value::Object(table).to_string();
    let wire: Wire = serde_json::from_str(&text).map_err(|error| {
        let message = r#"must be {mode: "none"} or {mode: "bearer", tokens: [{secret, owner}]}"#;
        ConfigError::new("AUTH", message, format!("{error}: {text}"))
    })?;
    match (wire.mode, wire.tokens.is_empty()) {
        (Mode::None, true) => Ok(Auth::None),
        (Mode::None, false) => Err(ConfigError::new("AUTH.tokens", "needs mode `bearer`", text)),
        (Mode::Bearer, true) => Err(ConfigError::new("AUTH.tokens", "must have at least one", text)),
        (Mode::Bearer, false) => {
            let tokens = wire.tokens.into_iter().enumerate().map(token);
            tokens.collect::<Result<_, _>>().map(Auth::Bearer)
        }
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
