//! Cross-origin rules as data: which headers a preflight and every other answer carry.

use crate::list::all;
use crate::protocol::parts;

/// Response headers a page may read. Source: contract 1.
pub const EXPOSED_HEADERS: &str = "x-request-id, retry-after, io-run-address, io-run-generation";

/// How long a browser may keep a preflight's answer, in seconds; the longest that all of them honour.
const MAX_AGE_S: &str = "7200";

const ALLOWED_METHODS: &str = "GET, HEAD, POST, PATCH, DELETE, OPTIONS";

/// Allowed when a preflight names no header.
const USUAL_HEADERS: &str = "authorization, content-type";

/// A header to be set, name in lower case.
pub type Header = (&'static str, String);

/// Which pages may call. Any page, then without credentials; or listed ones, then with credentials: the two are never
/// combined (known fault B127).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum CorsOrigins {
    /// Every origin, `*`.
    #[default]
    Any,
    /// These origins.
    List(Vec<AllowedOrigin>),
}

/// One entry of an origin list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedOrigin {
    /// `https://app.example.com`
    Exact(String),
    /// `https://*.example.com`: every subdomain at any depth, not the domain itself.
    Subdomains {
        /// `https://`
        scheme: String,
        /// `.example.com`, with `:port` if it has one.
        suffix: String,
    },
}

/// An entry that is no origin.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{entry}` is not an origin like https://app.example.com or https://*.example.com")]
pub struct OriginFault {
    /// The entry.
    pub entry: String,
}

impl CorsOrigins {
    /// Reads the configured list; an empty one and `["*"]` mean any origin.
    ///
    /// # Errors
    /// [`OriginFault`] for the first entry that is no origin, `*` beside others included.
    pub fn parse(entries: &[String]) -> Result<Self, OriginFault> {
        match entries {
            [] => Ok(Self::Any),
            [entry] if entry == "*" => Ok(Self::Any),
            entries => all(entries.iter().map(|entry| AllowedOrigin::parse(entry))).map(Self::List),
        }
    }

    /// Whether a page may open a WebSocket, which browsers do not ask a preflight for. Who names no origin is no page.
    pub fn admits(&self, origin: Option<&str>) -> bool {
        match (self, origin) {
            (Self::Any, _) | (Self::List(_), None) => true,
            (Self::List(list), Some(origin)) => list.iter().any(|allowed| allowed.covers(origin)),
        }
    }

    /// The headers of every answer, errors and streams included (known fault B126).
    pub fn answer_headers(&self, origin: Option<&str>) -> Vec<Header> {
        let mut headers = vec![("vary", "Origin".to_owned())];
        if self.push_origin(origin, &mut headers) {
            headers.push(("access-control-expose-headers", EXPOSED_HEADERS.to_owned()));
        }
        headers
    }

    /// The headers of the 204 that answers OPTIONS, whatever the path; no credentials are needed for it. Every header
    /// an allowed origin asks for is allowed, by name: `*` would not cover `authorization` (known fault B125).
    pub fn preflight_headers(&self, origin: Option<&str>, requested_headers: Option<&str>) -> Vec<Header> {
        let mut headers = vec![("vary", "Origin, Access-Control-Request-Headers".to_owned())];
        if self.push_origin(origin, &mut headers) {
            headers.push(("access-control-allow-methods", ALLOWED_METHODS.to_owned()));
            headers.push(("access-control-allow-headers", allowed_headers(requested_headers)));
            headers.push(("access-control-max-age", MAX_AGE_S.to_owned()));
        }
        headers
    }

    /// Adds what names the origin; `false` when the origin may not call.
    fn push_origin(&self, origin: Option<&str>, headers: &mut Vec<Header>) -> bool {
        match (self, origin) {
            (Self::Any, _) => {
                headers.push(("access-control-allow-origin", "*".to_owned()));
                true
            }
            (Self::List(list), Some(origin)) if list.iter().any(|allowed| allowed.covers(origin)) => {
                headers.push(("access-control-allow-origin", origin.to_owned()));
                headers.push(("access-control-allow-credentials", "true".to_owned()));
                true
            }
            (Self::List(_), _) => false,
        }
    }
}

fn allowed_headers(requested: Option<&str>) -> String {
    let is_token = |name: &&str| {
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
    };
    let names: Vec<&str> = requested
        .unwrap_or_default()
        .split(',')
        .map(str::trim)
        .filter(is_token)
        .collect();
    if names.is_empty() {
        USUAL_HEADERS.to_owned()
    } else {
        parts::join(&names, ", ")
    }
}

impl AllowedOrigin {
    fn parse(entry: &str) -> Result<Self, OriginFault> {
        let fault = || OriginFault {
            entry: entry.to_owned(),
        };
        let text = entry.trim().to_ascii_lowercase();
        let text = text.strip_suffix('/').unwrap_or(&text);
        let (scheme, host) = parts::split_once(text, "://").ok_or_else(fault)?;
        let is_scheme = !scheme.is_empty()
            && scheme
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte));
        let domain = host.strip_prefix("*.").unwrap_or(host);
        if !is_scheme
            || domain.is_empty()
            || domain.starts_with(['.', ':'])
            || !domain.bytes().all(is_host_byte)
        {
            return Err(fault());
        }
        Ok(if domain == host {
            Self::Exact(text.to_owned())
        } else {
            Self::Subdomains {
                scheme: format!("{scheme}://"),
                suffix: format!(".{domain}"),
            }
        })
    }

    /// Browsers write origins in lower case; the comparison is exact.
    fn covers(&self, origin: &str) -> bool {
        match self {
            Self::Exact(exact) => exact == origin,
            Self::Subdomains { scheme, suffix } => origin
                .strip_prefix(scheme.as_str())
                .and_then(|host| host.strip_suffix(suffix.as_str()))
                .is_some_and(|name| {
                    let is_name_byte =
                        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
                    !name.is_empty() && name.bytes().all(is_name_byte)
                }),
        }
    }
}

/// Of a host name, an address, or a port after it.
fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b':' | b'[' | b']')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(entries: &[&str]) -> CorsOrigins {
        CorsOrigins::parse(
            &entries
                .iter()
                .map(|entry| (*entry).to_owned())
                .collect::<Vec<_>>(),
        )
        .unwrap()
    }

    fn owned(headers: &[(&'static str, &str)]) -> Vec<Header> {
        headers
            .iter()
            .map(|(name, value)| (*name, (*value).to_owned()))
            .collect()
    }

    #[test]
    fn any_origin_means_no_credentials() {
        for origins in [list(&[]), list(&["*"]), CorsOrigins::default()] {
            for origin in [None, Some("https://evil.test"), Some("null")] {
                assert_eq!(
                    origins.answer_headers(origin),
                    owned(&[
                        ("vary", "Origin"),
                        ("access-control-allow-origin", "*"),
                        ("access-control-expose-headers", EXPOSED_HEADERS),
                    ])
                );
            }
        }
    }

    #[test]
    fn only_pages_of_listed_origins_may_open_a_socket() {
        let origins = list(&["https://app.example.com"]);
        for (origin, is_welcome) in [
            (None, true),
            (Some("https://app.example.com"), true),
            (Some("https://evil.test"), false),
            (Some("null"), false),
        ] {
            assert_eq!(origins.admits(origin), is_welcome, "{origin:?}");
            assert!(CorsOrigins::Any.admits(origin));
        }
    }

    #[test]
    fn a_listed_origin_is_echoed_with_credentials_and_no_other() {
        let origins = list(&["https://App.example.com/", "http://localhost:4003"]);
        assert_eq!(
            origins.answer_headers(Some("https://app.example.com")),
            owned(&[
                ("vary", "Origin"),
                ("access-control-allow-origin", "https://app.example.com"),
                ("access-control-allow-credentials", "true"),
                ("access-control-expose-headers", EXPOSED_HEADERS),
            ])
        );
        for origin in [
            None,
            Some("https://evil.test"),
            Some("http://localhost:4004"),
            Some("http://app.example.com"),
        ] {
            assert_eq!(
                origins.answer_headers(origin),
                owned(&[("vary", "Origin")]),
                "{origin:?}"
            );
            let refused = owned(&[("vary", "Origin, Access-Control-Request-Headers")]);
            assert_eq!(
                origins.preflight_headers(origin, Some("x-a")),
                refused,
                "{origin:?}"
            );
        }
    }

    #[test]
    fn a_preflight_allows_every_header_asked_for() {
        let headers = |requested| CorsOrigins::Any.preflight_headers(Some("https://a.test"), requested);
        assert_eq!(
            headers(Some("authorization,content-type, x-mastra-client-type")),
            owned(&[
                ("vary", "Origin, Access-Control-Request-Headers"),
                ("access-control-allow-origin", "*"),
                (
                    "access-control-allow-methods",
                    "GET, HEAD, POST, PATCH, DELETE, OPTIONS"
                ),
                (
                    "access-control-allow-headers",
                    "authorization, content-type, x-mastra-client-type"
                ),
                ("access-control-max-age", "7200"),
            ])
        );
        for (requested, allowed) in [
            (None, "authorization, content-type"),
            (Some(""), "authorization, content-type"),
            (Some("x-ü, x-a\r\nset-cookie: b,, X_B"), "X_B"),
        ] {
            assert_eq!(headers(requested)[3].1, allowed, "{requested:?}");
        }
    }

    #[test]
    fn subdomain_entries_cover_subdomains_only() {
        let origins = list(&["https://*.example.com", "http://*.localhost:4003"]);
        let allows = |origin| origins.answer_headers(Some(origin)).len() > 1;
        assert!(allows("https://a.example.com"));
        assert!(allows("https://a.b.example.com"));
        assert!(allows("http://x.localhost:4003"));
        for origin in [
            "https://example.com",
            "https://.example.com",
            "http://a.example.com",
            "https://evilexample.com",
            "https://evil.test/.example.com",
            "https://evil.test#.example.com",
            "https://a.example.com.evil.test",
            "https://a.example.com:8443",
            "http://x.localhost",
        ] {
            assert!(!allows(origin), "{origin}");
        }
    }

    #[test]
    fn entries_that_are_no_origins_are_named() {
        for entry in [
            "",
            "app.example.com",
            "https://",
            "https://a/b",
            "https://*",
            "https://*.",
            "*://a",
            "https://a b",
        ] {
            let entries = ["https://a.test".to_owned(), entry.to_owned()];
            assert_eq!(
                CorsOrigins::parse(&entries),
                Err(OriginFault {
                    entry: entry.to_owned()
                })
            );
        }
        let mixed = ["*".to_owned(), "https://a.test".to_owned()];
        assert_eq!(
            CorsOrigins::parse(&mixed),
            Err(OriginFault {
                entry: "*".to_owned()
            })
        );
    }
}
