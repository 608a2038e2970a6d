//! `CORS_ORIGINS`.

use super::ConfigError;
use super::variables::Variables;

const NAME: &str = "CORS_ORIGINS";

/// The allowed origins, `None` = any.
pub(super) fn origins(vars: Variables<'_>) -> Result<Option<Vec<String>>, ConfigError> {
    let Some(origins) = vars.texts(NAME)? else {
        return Ok(None);
    };
    if origins.iter().any(|origin| origin == "*") {
        return match origins.len() {
            1 => Ok(None),
            _ => Err(ConfigError::new(NAME, "must not have `*` beside others", origins)),
        };
    }
    for origin in &origins {
        if !is_origin(origin) {
            let message = "must be `*`, or origins such as `https://app.example.com` or `https://*.example.com`, without a path";
            return Err(ConfigError::new(NAME, message, origin.as_str()));
        }
    }
    Ok(Some(
        origins.iter().map(|origin| origin.to_ascii_lowercase()).collect(),
    ))
}

/// `scheme://host[:port]`; a wildcard stands for the first labels and needs two labels after it.
fn is_origin(text: &str) -> bool {
    let Some((scheme, authority)) = text.split_once("://") else {
        return false;
    };
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !authority.ends_with(']') => (host, Some(port)),
        Some(_) | None => (authority, None),
    };
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    is_scheme && is_host(host) && port.is_none_or(|port| port.parse::<u16>().is_ok())
}

fn is_host(host: &str) -> bool {
    if let Some(address) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address.parse::<std::net::Ipv6Addr>().is_ok();
    }
    let (domain, least_label_count) = match host.strip_prefix("*.") {
        Some(domain) => (domain, 2),
        None => (host, 1),
    };
    let is_label = |label: &str| {
        !label.is_empty()
            && label
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
    };
    domain.split('.').all(is_label) && domain.split('.').count() >= least_label_count
}
