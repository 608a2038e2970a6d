//! What the claims of a genuine token say: whether it holds here and now, and for whom.

use serde_json::{Map, Value};

use super::TokenFault;
use crate::api::auth::Principal;
use crate::api::jwt_rules::JwtRules;
use crate::list::List;
use crate::protocol::id::ResourceId;
use crate::protocol::number;

/// Whom the claims stand for. Source: RFC 7519, section 4.1.
///
/// # Errors
/// [`TokenFault`]
pub fn principal(
    claims: &Map<String, Value>,
    rules: &JwtRules,
    now_ms: u64,
) -> Result<Principal, TokenFault> {
    let now_s = now_ms as f64 / 1000.0;
    let skew_s = rules.clock_skew_ms as f64 / 1000.0;
    let time = |name: &str| claims.get(name).map(number::as_double);
    match time("exp") {
        Some(Some(expires_s)) if now_s < expires_s + skew_s => {}
        Some(_) | None => return Err(TokenFault::Expired),
    }
    match time("nbf") {
        None => {}
        Some(Some(starts_s)) if starts_s <= now_s + skew_s => {}
        Some(_) => return Err(TokenFault::NotYetValid),
    }
    if claims.get("iss").and_then(Value::as_str) != Some(&rules.issuer) {
        return Err(TokenFault::WrongIssuer);
    }
    if let Some(ours) = &rules.audiences
        && !texts(claims.get("aud"), |text| vec![text])
            .iter()
            .any(|audience| ours.iter().any(|our| our == audience))
    {
        return Err(TokenFault::WrongAudience);
    }
    let scopes = texts(find(claims, &rules.scope_claim), |text| {
        text.split_ascii_whitespace().list()
    });
    let has = |scope: &String| scopes.contains(&scope.as_str());
    if rules.admin_scope.as_ref().is_some_and(has) {
        return Ok(Principal::Admin);
    }
    if !rules.required_scope.as_ref().is_none_or(has) {
        return Err(TokenFault::ScopeMissing);
    }
    let owner = match find(claims, &rules.owner_claim) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) if number.is_u64() => number.to_string(),
        Some(_) | None => return Err(TokenFault::OwnerMissing),
    };
    ResourceId::parse(&owner)
        .map(Principal::Owner)
        .map_err(|_| TokenFault::OwnerMissing)
}

/// A claim by its whole name (some issuers name theirs like addresses, with dots), else by names with dots between.
fn find<'a>(claims: &'a Map<String, Value>, path: &str) -> Option<&'a Value> {
    if let Some(value) = claims.get(path) {
        return Some(value);
    }
    let mut names = path.split('.');
    let first = claims.get(names.next()?)?;
    names.try_fold(first, |value, name| value.as_object()?.get(name))
}

/// The texts of a claim that is a list of them, or one text taken apart.
fn texts<'a>(claim: Option<&'a Value>, split: impl FnOnce(&'a str) -> Vec<&'a str>) -> Vec<&'a str> {
    match claim {
        Some(Value::String(text)) => split(text),
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).list(),
        Some(_) | None => Vec::new(),
    }
}
