//! `AUTH`.

use std::mem::take;

use serde_json::Value;

use super::ConfigError;
use super::check::is_secret_name;
use super::variables::Variables;
use crate::api::jwt_rules::{Algorithm, JwtRules, KeySource};
use crate::list::{List, all};
use crate::protocol::id::{ResourceId, check_addressable_id};
use crate::protocol::json;
use crate::protocol::json_cursor::{CursorFault, JsonCursor};
use crate::protocol::parts;
use crate::protocol::payload::Member;
use crate::protocol::read::{self, Mismatch, record};

/// How callers prove who they are. Source: D4.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Auth {
    /// Everybody may call; the client's resourceId is the owner.
    #[default]
    None,
    /// `authorization: Bearer <token>`; at least one token.
    Bearer(Vec<BearerToken>),
    /// A token signed by an issuer.
    Jwt(JwtRules),
    /// A gateway in front has authenticated the caller and says who it is.
    Header(GatewayRules),
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

/// How the gateway says who calls. Header names are in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayRules {
    /// Header with the owner; `*` = a trusted back end.
    pub owner_header: String,
    /// What shows that it is the gateway; `None` = nobody else can reach this Worker.
    pub proof: Option<GatewayProof>,
}

/// A header that holds a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GatewayProof {
    /// The header.
    pub header: String,
    /// Name of the secret.
    pub secret: String,
}

const MODES: &str = "none, bearer, jwt, header";

const TOKEN_HEADER: &str = "authorization";

const MINUTE_MS: u64 = 60 * 1000;

const DAY_MS: u64 = 24 * 60 * MINUTE_MS;

struct NoKeys {}

struct BearerWire {
    tokens: Vec<TokenWire>,
}

struct TokenWire {
    secret: String,
    owner: String,
}

struct JwtWire {
    issuer: String,
    audience: Texts,
    jwks_url: Option<String>,
    key_secret: Option<String>,
    algorithms: Option<Vec<String>>,
    owner_claim: String,
    scope_claim: String,
    admin_scope: Option<String>,
    required_scope: Option<String>,
    token_header: Option<String>,
    clock_skew_ms: u64,
    jwks_cache_ms: u64,
    jwks_grace_ms: u64,
}

struct HeaderWire {
    owner_header: String,
    proof_header: Option<String>,
    proof_secret: Option<String>,
}

/// One text, or a list of them.
enum Texts {
    One(String),
    Several(Vec<String>),
}

record!(closed NoKeys:);

record!(closed BearerWire: "tokens" => tokens = Vec::new());

record!(closed TokenWire: "secret" => secret, "owner" => owner);

record!(closed JwtWire:
    "issuer" => issuer,
    "audience" => audience,
    "jwksUrl" => jwks_url = None,
    "keySecret" => key_secret = None,
    "algorithms" => algorithms = None,
    "ownerClaim" => owner_claim = "sub".to_owned(),
    "scopeClaim" => scope_claim = "scope".to_owned(),
    "adminScope" => admin_scope = None,
    "requiredScope" => required_scope = None,
    "tokenHeader" => token_header = None,
    "clockSkewMs" => clock_skew_ms = MINUTE_MS,
    "jwksCacheMs" => jwks_cache_ms = 10 * MINUTE_MS,
    "jwksGraceMs" => jwks_grace_ms = DAY_MS,
);

record!(closed HeaderWire:
    "ownerHeader" => owner_header, "proofHeader" => proof_header = None, "proofSecret" => proof_secret = None,
);

impl<'a> Member<'a> for Texts {
    fn blank() -> Self {
        Self::One(String::new())
    }

    fn read(&mut self, json: &mut JsonCursor<'a>) -> Result<(), CursorFault> {
        if json.peek() == b'"' {
            let mut text = String::new();
            text.read(json)?;
            *self = Self::One(text);
        } else {
            let mut texts = Vec::new();
            texts.read(json)?;
            *self = Self::Several(texts);
        }
        Ok(())
    }
}

/// Reads the variable.
// Apart: see `Config::from_vars`.
#[inline(never)]
pub(super) fn auth(vars: Variables<'_>) -> Result<Auth, ConfigError> {
    let mut table = vars.table("AUTH")?;
    if table.is_empty() {
        return Ok(Auth::None);
    }
    let mode = table.shift_remove("mode");
    let rest = Value::Object(table);
    match mode.as_ref().and_then(Value::as_str) {
        Some("none") => members::<NoKeys>(&rest).map(|_| Auth::None),
        Some("bearer") => bearer(members(&rest)?).map(Auth::Bearer),
        Some("jwt") => jwt(&mut members(&rest)?).map(Auth::Jwt),
        Some("header") => gateway(members(&rest)?).map(Auth::Header),
        _ => Err(ConfigError::new(
            "AUTH.mode",
            format!("must be one of {MODES}"),
            Value::Object(vars.table("AUTH")?),
        )),
    }
}

fn members<T: for<'a> Member<'a>>(table: &Value) -> Result<T, ConfigError> {
    read::from_value(table).map_err(|error| unfit(table, &error))
}

fn unfit(table: &Value, error: &Mismatch) -> ConfigError {
    let message = "must have the keys of its mode, each of its form";
    ConfigError::new("AUTH", message, format!("{error}: {}", json::text(table)))
}

// Apart: see `Config::from_vars`.
#[inline(never)]
fn bearer(wire: BearerWire) -> Result<Vec<BearerToken>, ConfigError> {
    if wire.tokens.is_empty() {
        return Err(ConfigError::new("AUTH.tokens", "must have at least one", ""));
    }
    all(wire.tokens.into_iter().enumerate().map(token))
}

fn token((index, wire): (usize, TokenWire)) -> Result<BearerToken, ConfigError> {
    let secret = secret_name(wire.secret, || format!("AUTH.tokens[{index}].secret"), "a token")?;
    if let Err(fault) = check_addressable_id(&wire.owner) {
        let key = format!("AUTH.tokens[{index}].owner");
        return Err(ConfigError::new(key, fault.to_string(), wire.owner));
    }
    Ok(BearerToken {
        secret,
        owner: match wire.owner.as_str() {
            "*" => TokenOwner::Any,
            owner => TokenOwner::One(ResourceId::new(owner)),
        },
    })
}

// Apart: see `Config::from_vars`.
#[inline(never)]
fn jwt(wire: &mut JwtWire) -> Result<JwtRules, ConfigError> {
    let source = (wire.jwks_url.take(), wire.key_secret.take());
    let (keys, usual): (KeySource, &[Algorithm]) = match source {
        (Some(url), None) if is_key_address(&url) => (
            KeySource::Url {
                url,
                fresh_ms: in_range("AUTH.jwksCacheMs", wire.jwks_cache_ms)?,
                grace_ms: in_range("AUTH.jwksGraceMs", wire.jwks_grace_ms)?,
            },
            &[Algorithm::Rs256, Algorithm::Es256, Algorithm::EdDsa],
        ),
        (Some(url), None) => {
            let message = "must be an https address (http for this machine) without user, query or fragment";
            return Err(ConfigError::new("AUTH.jwksUrl", message, url));
        }
        (None, Some(name)) => {
            let name = secret_name(name, || "AUTH.keySecret".to_owned(), "a key")?;
            (KeySource::Secret(name), &[])
        }
        (Some(_), Some(_)) | (None, None) => {
            return Err(ConfigError::new(
                "AUTH",
                "must have either jwksUrl or keySecret",
                "",
            ));
        }
    };
    for (key, text) in [
        ("AUTH.issuer", Some(&wire.issuer)),
        ("AUTH.ownerClaim", Some(&wire.owner_claim)),
        ("AUTH.scopeClaim", Some(&wire.scope_claim)),
        ("AUTH.adminScope", wire.admin_scope.as_ref()),
        ("AUTH.requiredScope", wire.required_scope.as_ref()),
    ] {
        if text.is_some_and(String::is_empty) {
            return Err(ConfigError::new(key, "must not be empty", ""));
        }
    }
    Ok(JwtRules {
        token_header: header_name("AUTH.tokenHeader", wire.token_header.take())?
            .unwrap_or_else(|| TOKEN_HEADER.to_owned()),
        algorithms: algorithms(wire.algorithms.take(), &keys, usual)?,
        keys,
        audiences: audiences(&wire.audience)?,
        clock_skew_ms: in_range("AUTH.clockSkewMs", wire.clock_skew_ms)?,
        issuer: take(&mut wire.issuer),
        owner_claim: take(&mut wire.owner_claim),
        scope_claim: take(&mut wire.scope_claim),
        admin_scope: wire.admin_scope.take(),
        required_scope: wire.required_scope.take(),
    })
}

/// A deployment says one kind of signature: what a public key checks, or what a shared secret does.
fn algorithms(
    names: Option<Vec<String>>,
    keys: &KeySource,
    usual: &[Algorithm],
) -> Result<Vec<Algorithm>, ConfigError> {
    let key = "AUTH.algorithms";
    let Some(names) = names.filter(|names| !names.is_empty()) else {
        return if usual.is_empty() {
            Err(ConfigError::new(key, "is needed beside keySecret", ""))
        } else {
            Ok(usual.to_vec())
        };
    };
    let read = names.iter().map(|name| Algorithm::parse(name).ok_or(()));
    let Ok(algorithms) = all(read) else {
        let known: Vec<&str> = Algorithm::ALL.iter().map(|known| known.as_str()).list();
        let message = format!("must be some of {}", parts::join(&known, ", "));
        return Err(ConfigError::new(key, message, names));
    };
    let is_shared = algorithms.contains(&Algorithm::Hs256);
    let has_public_keys = match keys {
        KeySource::Url { .. } => true,
        KeySource::Secret(_) => algorithms.iter().any(|other| *other != Algorithm::Hs256),
    };
    if is_shared && has_public_keys {
        let message = "must have HS256 alone, and with keySecret";
        return Err(ConfigError::new(key, message, names));
    }
    Ok(algorithms)
}

fn audiences(audience: &Texts) -> Result<Option<Vec<String>>, ConfigError> {
    let list = match audience {
        Texts::One(text) if text == "*" => return Ok(None),
        Texts::One(text) => vec![text.clone()],
        Texts::Several(list) => list.clone(),
    };
    if list.is_empty() || list.iter().any(|text| text.is_empty() || text == "*") {
        let message = "must be texts, or `*` alone to accept the issuer's tokens for any application";
        return Err(ConfigError::new("AUTH.audience", message, list));
    }
    Ok(Some(list))
}

// Apart: see `Config::from_vars`.
#[inline(never)]
fn gateway(wire: HeaderWire) -> Result<GatewayRules, ConfigError> {
    let owner_header = header_name("AUTH.ownerHeader", Some(wire.owner_header))?.unwrap_or_default();
    let proof_header = header_name("AUTH.proofHeader", wire.proof_header)?;
    let proof = match (proof_header, wire.proof_secret) {
        (None, None) => None,
        (Some(header), Some(secret)) if header != owner_header => Some(GatewayProof {
            header,
            secret: secret_name(secret, || "AUTH.proofSecret".to_owned(), "its value")?,
        }),
        (Some(header), Some(_)) => {
            return Err(ConfigError::new(
                "AUTH.proofHeader",
                "must be another than ownerHeader",
                header,
            ));
        }
        (Some(_), None) | (None, Some(_)) => {
            return Err(ConfigError::new(
                "AUTH",
                "must have both proofHeader and proofSecret, or neither",
                "",
            ));
        }
    };
    Ok(GatewayRules { owner_header, proof })
}

fn in_range(key: &'static str, ms: u64) -> Result<u64, ConfigError> {
    if ms <= 7 * DAY_MS {
        return Ok(ms);
    }
    Err(ConfigError::new(
        key,
        "must be at most a week in milliseconds",
        ms,
    ))
}

fn header_name(key: &'static str, name: Option<String>) -> Result<Option<String>, ConfigError> {
    let Some(name) = name else {
        return Ok(None);
    };
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if name.is_empty() || !name.bytes().all(is_token) {
        return Err(ConfigError::new(key, "must be the name of a header", name));
    }
    Ok(Some(name.to_ascii_lowercase()))
}

fn secret_name(name: String, key: impl Fn() -> String, not: &str) -> Result<String, ConfigError> {
    if is_secret_name(&name) {
        return Ok(name);
    }
    let message = format!("must be the name of a secret, not {not}");
    Err(ConfigError::new(key(), message, name))
}

/// Keys that came over an open line would be anybody's.
fn is_key_address(url: &str) -> bool {
    let is_plain = |rest: &str| {
        !rest.is_empty() && !rest.contains(['@', '?', '#', '\\']) && !rest.contains(char::is_whitespace)
    };
    match (url.strip_prefix("https://"), url.strip_prefix("http://")) {
        (Some(rest), _) => is_plain(rest),
        (None, Some(rest)) => {
            let host = rest.split(['/', ':']).next();
            is_plain(rest) && matches!(host, Some("localhost" | "127.0.0.1"))
        }
        (None, None) => false,
    }
}

#[cfg(test)]
#[path = "auth_tests.rs"]
mod tests;
