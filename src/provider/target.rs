//! Where and as whom an upstream is called.

use std::fmt::Write as _;

use super::table::Wire;
use super::{HttpRequest, ModelCall, ProviderError};
use crate::protocol::percent;

/// Where and as whom to call: the agent's configuration with its secrets resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelTarget {
    /// How the upstream is driven.
    pub wire: Wire,
    /// Name in the provider table.
    pub provider: &'static str,
    /// Base address without a trailing slash.
    pub base_url: String,
    /// Key, when the provider takes one.
    pub api_key: Option<Secret>,
    /// Model id.
    pub model: String,
    /// Headers of the agent's own, names in lower case; each stands in the place of one the codec writes.
    pub headers: Vec<(String, Secret)>,
    /// Pairs the agent adds to the query.
    pub query: Vec<(String, String)>,
    /// Whether the model is asked to show its reasoning, where its vendor shows none unasked.
    pub wants_reasoning: bool,
}

impl ModelTarget {
    /// Checks what every wire over HTTP needs.
    ///
    /// # Errors
    /// [`ProviderError::Configuration`]
    pub fn check(&self) -> Result<(), ProviderError> {
        if self.base_url.is_empty() {
            return Err(ProviderError::Configuration("it has no base address"));
        }
        if self.model.is_empty() && self.wire.needs_model() {
            return Err(ProviderError::Configuration("it has no model"));
        }
        Ok(())
    }

    /// A call that posts JSON, carries the key as a bearer token and asks for SSE: what most wires do.
    pub(super) fn post(&self, url: String, body: String) -> ModelCall {
        let mut headers = vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            ("accept".to_owned(), "text/event-stream".to_owned()),
        ];
        headers.extend(self.bearer());
        ModelCall::Http(HttpRequest {
            method: "POST",
            url,
            headers,
            body: Some(body),
        })
    }

    /// A request for JSON with the key as a bearer token, and the agent's own headers and query.
    pub(super) fn json(&self, method: &'static str, url: String, body: Option<String>) -> HttpRequest {
        let mut headers = vec![("accept".to_owned(), "application/json".to_owned())];
        if body.is_some() {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        headers.extend(self.bearer());
        self.address(HttpRequest {
            method,
            url,
            headers,
            body,
        })
    }

    /// The key as a bearer token.
    fn bearer(&self) -> Option<(String, String)> {
        let key = self.api_key.as_ref()?;
        Some(("authorization".to_owned(), format!("Bearer {}", key.expose())))
    }

    /// A request with the agent's own headers and query.
    pub(super) fn address(&self, mut request: HttpRequest) -> HttpRequest {
        for (name, value) in &self.headers {
            request.headers.retain(|(written, _)| written != name);
            request.headers.push((name.clone(), value.expose().to_owned()));
        }
        for (name, value) in &self.query {
            let mark = if request.url.contains(['?']) { '&' } else { '?' };
            // Writing to a text cannot fail.
            let _ = write!(
                request.url,
                "{mark}{}={}",
                percent::encode(name),
                percent::encode(value)
            );
        }
        request
    }
}

/// A secret: never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a secret's value.
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value, for the one header it goes into.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Address and headers of a request of this target.
    fn sent(headers: &[(&str, &str)], query: &[(&str, &str)], url: &str) -> (String, Vec<(String, String)>) {
        let target = ModelTarget {
            wire: Wire::OpenAiChat,
            provider: "openai",
            base_url: "https://x.test".to_owned(),
            api_key: Some(Secret::new("key")),
            model: "m".to_owned(),
            headers: headers
                .iter()
                .map(|(name, value)| ((*name).to_owned(), Secret::new(*value)))
                .collect(),
            query: query
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect(),
            wants_reasoning: false,
        };
        let ModelCall::Http(request) = target.post(url.to_owned(), "{}".to_owned()) else {
            panic!("not a request");
        };
        let request = target.address(request);
        let written = request.headers.into_iter();
        let own = written.filter(|(name, _)| !matches!(name.as_str(), "content-type" | "accept"));
        (request.url, own.collect())
    }

    #[test]
    fn headers_of_the_agent_stand_in_the_place_of_the_codecs() {
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let (_, headers) = sent(&[], &[], "https://x.test");
        assert_eq!(headers, [header("authorization", "Bearer key")]);
        let (_, headers) = sent(
            &[("authorization", "Basic x"), ("x-a", "1")],
            &[],
            "https://x.test",
        );
        assert_eq!(headers, [header("authorization", "Basic x"), header("x-a", "1")]);
    }

    #[test]
    fn pairs_of_the_agent_follow_the_codecs_query() {
        let pairs = [("api-version", "2024-10-21"), ("a b", "c&d=é")];
        let (url, _) = sent(&[], &pairs, "https://x.test/p");
        assert_eq!(
            url,
            "https://x.test/p?api-version=2024-10-21&a%20b=c%26d%3D%C3%A9"
        );
        let (url, _) = sent(&[], &pairs[..1], "https://x.test/p?alt=sse");
        assert_eq!(url, "https://x.test/p?alt=sse&api-version=2024-10-21");
    }

    #[test]
    fn secrets_are_not_printed() {
        assert_eq!(format!("{:?}", Secret::new("key")), "Secret(..)");
    }
}
