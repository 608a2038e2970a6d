//! Who sends a signed token (JWT). Pure: signatures are checked and keys are fetched through [`JwtPorts`].
//!
//! The rules that keep others' mistakes out: the deployment, not the token, says which algorithms there are; a key only
//! ever checks the algorithm of its own type, so a public key is never an HMAC secret; the header's `kid` chooses among
//! the keys we have and no header member leads anywhere.

pub mod claims;
pub mod jwks_cache;
pub mod key;
pub mod token;

#[cfg(test)]
#[path = "jwt_tests.rs"]
mod tests;

use std::future::Future;

use super::auth::Principal;
use super::error::ApiError;
use super::jwt_rules::{Algorithm, JwtRules, KeySource};
use jwks_cache::JwksCache;
use key::{KeySet, VerificationKey};
use token::Token;

/// Most keys tried for a token that names none.
const KEYS_TRIED_MAX: usize = 8;

/// What the check of a token needs from outside.
pub trait JwtPorts {
    /// Whether the signature is the key's, over these bytes. A key the platform does not take is `false`.
    fn check_signature(
        &self,
        algorithm: Algorithm,
        key: &VerificationKey,
        signed: &[u8],
        signature: &[u8],
    ) -> impl Future<Output = bool>;

    /// The text of a key set; `None` = it could not be had, which the port has logged.
    fn fetch_keys(&self, url: &str) -> impl Future<Output = Option<String>>;

    /// The text of a secret.
    fn secret(&self, name: &str) -> Option<String>;

    /// Works on what is remembered of the deployment's one key address.
    fn with_cache<T>(&self, work: impl FnOnce(&mut JwksCache) -> T) -> T;

    /// Unix milliseconds.
    fn now_ms(&self) -> u64;
}

/// Why a token does not let its sender in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    /// No token was sent.
    #[error("there is no token")]
    Missing,
    /// Not three parts of base64url, two of them JSON objects; or a header we must not accept.
    #[error("the token is malformed")]
    Malformed,
    /// Signed in a way the deployment does not allow.
    #[error("the algorithm is not allowed")]
    AlgorithmRefused,
    /// None of the keys fits.
    #[error("no key fits")]
    KeyUnknown,
    /// The signature is not that of the key.
    #[error("the signature is wrong")]
    BadSignature,
    /// `exp` is missing or past.
    #[error("the token has expired")]
    Expired,
    /// `nbf` lies ahead.
    #[error("the token is not valid yet")]
    NotYetValid,
    /// `iss` is another.
    #[error("the issuer is another")]
    WrongIssuer,
    /// `aud` has none of ours.
    #[error("the audience is another")]
    WrongAudience,
    /// The owner's claim is missing or no id.
    #[error("the token names no owner")]
    OwnerMissing,
    /// The required scope is missing.
    #[error("the required scope is missing")]
    ScopeMissing,
    /// The deployment has no keys now.
    #[error("there are no keys")]
    KeysUnavailable,
}

impl From<TokenFault> for ApiError {
    fn from(fault: TokenFault) -> Self {
        match fault {
            TokenFault::Missing
            | TokenFault::Malformed
            | TokenFault::AlgorithmRefused
            | TokenFault::KeyUnknown
            | TokenFault::BadSignature
            | TokenFault::Expired
            | TokenFault::NotYetValid
            | TokenFault::WrongIssuer
            | TokenFault::WrongAudience => Self::unauthenticated(),
            TokenFault::OwnerMissing => Self::owner_unknown(),
            TokenFault::ScopeMissing => Self::scope_missing(),
            TokenFault::KeysUnavailable => Self::identity_unavailable(),
        }
    }
}

/// Checks a token: who sends it.
///
/// # Errors
/// [`TokenFault`]
pub async fn verify<P: JwtPorts>(
    text: Option<&str>,
    rules: &JwtRules,
    ports: &P,
) -> Result<Principal, TokenFault> {
    let token = Token::parse(text.ok_or(TokenFault::Missing)?, &rules.algorithms)?;
    let keys = keys(&token, rules, ports).await?;
    if keys.is_empty() {
        return Err(TokenFault::KeyUnknown);
    }
    for key in keys.iter().take(KEYS_TRIED_MAX) {
        let (signed, signature) = (token.signed.as_bytes(), &token.signature);
        if ports
            .check_signature(token.algorithm, key, signed, signature)
            .await
        {
            return claims::principal(&token.claims, rules, ports.now_ms());
        }
    }
    Err(TokenFault::BadSignature)
}

/// The keys that may have signed a token.
async fn keys<P: JwtPorts>(
    token: &Token,
    rules: &JwtRules,
    ports: &P,
) -> Result<Vec<VerificationKey>, TokenFault> {
    let (url, fresh_ms, grace_ms) = match &rules.keys {
        KeySource::Secret(name) => {
            let text = ports.secret(name).ok_or(TokenFault::KeysUnavailable)?;
            let set = KeySet::from_secret(&text, &rules.algorithms).ok_or(TokenFault::KeysUnavailable)?;
            return Ok(set.fitting(token.algorithm, token.key_id.as_deref()));
        }
        KeySource::Url {
            url,
            fresh_ms,
            grace_ms,
        } => (url, *fresh_ms, *grace_ms),
    };
    let now_ms = ports.now_ms();
    let known = |cache: &JwksCache| {
        let set = cache.usable(now_ms, fresh_ms.saturating_add(grace_ms));
        set.map(|set| set.fitting(token.algorithm, token.key_id.as_deref()))
    };
    let must_fetch = ports.with_cache(|cache| {
        let is_unknown = known(cache).is_some_and(|keys| keys.is_empty());
        cache.begin_fetch(now_ms, fresh_ms, is_unknown)
    });
    if must_fetch {
        let set = ports
            .fetch_keys(url)
            .await
            .and_then(|text| KeySet::from_jwks(&text));
        ports.with_cache(|cache| cache.end_fetch(set, ports.now_ms()));
    }
    ports
        .with_cache(|cache| known(cache))
        .ok_or(TokenFault::KeysUnavailable)
}
