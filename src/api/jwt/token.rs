//! A token taken apart, nothing in it believed yet.

use serde_json::{Map, Value};

use super::TokenFault;
use crate::api::jwt_rules::Algorithm;
use crate::protocol::{base64, json};

/// Longest token, in bytes; headers end about there anyway.
pub const TOKEN_MAX_BYTES: usize = 16 * 1024;

/// A compact JWS whose payload is a JSON object. Source: RFC 7515, section 7.1; RFC 7519.
#[derive(Debug, Clone, PartialEq)]
pub struct Token {
    /// How it says it is signed; one the deployment allows.
    pub algorithm: Algorithm,
    /// `kid`, to choose among the keys we have.
    pub key_id: Option<String>,
    /// The claims, not to be believed before the signature is checked.
    pub claims: Map<String, Value>,
    /// What is signed.
    pub signed: String,
    /// The signature.
    pub signature: Vec<u8>,
}

impl Token {
    /// Takes a token apart.
    ///
    /// # Errors
    /// [`TokenFault::Malformed`], [`TokenFault::AlgorithmRefused`]
    pub fn parse(text: &str, allowed: &[Algorithm]) -> Result<Self, TokenFault> {
        if text.len() > TOKEN_MAX_BYTES {
            return Err(TokenFault::Malformed);
        }
        let (signed, signature) = text.rsplit_once('.').ok_or(TokenFault::Malformed)?;
        let (header, claims) = signed.split_once('.').ok_or(TokenFault::Malformed)?;
        let header = object(header)?;
        // An extension that must be understood, and is not. Source: RFC 7515, section 4.1.11.
        if header.contains_key("crit") || !is_token_type(header.get("typ")) {
            return Err(TokenFault::Malformed);
        }
        let algorithm = header.get("alg").and_then(Value::as_str);
        let algorithm = algorithm
            .and_then(Algorithm::parse)
            .filter(|algorithm| allowed.contains(algorithm));
        let key_id = match header.get("kid") {
            None => None,
            Some(Value::String(id)) => Some(id.clone()),
            Some(_) => return Err(TokenFault::Malformed),
        };
        Ok(Self {
            algorithm: algorithm.ok_or(TokenFault::AlgorithmRefused)?,
            key_id,
            claims: object(claims)?,
            signed: signed.to_owned(),
            signature: base64::decode_url(signature).ok_or(TokenFault::Malformed)?,
        })
    }
}

fn object(part: &str) -> Result<Map<String, Value>, TokenFault> {
    let bytes = base64::decode_url(part).ok_or(TokenFault::Malformed)?;
    let text = str::from_utf8(&bytes).map_err(|_| TokenFault::Malformed)?;
    json::object(text).ok_or(TokenFault::Malformed)
}

/// An access or identity token; a logout token, say, of the same issuer lets nobody in. Source: RFC 8725, section 3.11.
fn is_token_type(kind: Option<&Value>) -> bool {
    match kind {
        None => true,
        Some(kind) => kind.as_str().is_some_and(|kind| {
            let name = kind.to_ascii_lowercase();
            let name = name.strip_prefix("application/").unwrap_or(&name);
            name == "jwt" || name == "at+jwt"
        }),
    }
}
