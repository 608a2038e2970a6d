//! Where compatible servers differ so that one request cannot serve all.

/// What a server wants, decided by the host of the base address alone: the model's name says nothing about its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dialect {
    /// `max_completion_tokens`, which OpenAI's reasoning models demand, instead of `max_tokens`, which every other server
    /// knows.
    pub max_completion_tokens: bool,
    /// `reasoning_content` goes back with every assistant message that has calls; others refuse the member (B052).
    pub reasoning_goes_back: bool,
}

impl Dialect {
    /// The dialect of the server at a base address.
    pub fn of(base_url: &str) -> Self {
        let after_scheme = base_url.split_once("://").map_or(base_url, |(_, rest)| rest);
        let (authority, path) = after_scheme.split_once('/').unwrap_or((after_scheme, ""));
        let host = authority.split(':').next().unwrap_or_default();
        let is_at = |domain: &str| {
            host.strip_suffix(domain)
                .is_some_and(|before| before.is_empty() || before.ends_with('.'))
        };
        // Cloudflare's AI Gateway names the vendor behind it as the last part of the path.
        let is_behind = |vendor: &str| {
            is_at("gateway.ai.cloudflare.com")
                && path.trim_end_matches('/').rsplit('/').next() == Some(vendor)
        };
        Self {
            max_completion_tokens: is_at("api.openai.com")
                || is_at("openai.azure.com")
                || is_behind("openai"),
            reasoning_goes_back: is_at("api.deepseek.com") || is_behind("deepseek"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_decides() {
        for (base_url, max_completion_tokens, reasoning_goes_back) in [
            ("https://api.openai.com/v1", true, false),
            ("https://eu.api.openai.com:443/v1", true, false),
            ("https://mine.openai.azure.com/openai/v1", true, false),
            (
                "https://gateway.ai.cloudflare.com/v1/account/gateway/openai",
                true,
                false,
            ),
            (
                "https://gateway.ai.cloudflare.com/v1/account/gateway/groq",
                false,
                false,
            ),
            (
                "https://gateway.ai.cloudflare.com/v1/account/gateway/deepseek",
                false,
                true,
            ),
            ("https://api.deepseek.com", false, true),
            (
                "https://notapi.openai.com.example.test/api.openai.com",
                false,
                false,
            ),
            ("http://localhost:11434/v1", false, false),
            ("", false, false),
        ] {
            let expected = Dialect {
                max_completion_tokens,
                reasoning_goes_back,
            };
            assert_eq!(Dialect::of(base_url), expected, "{base_url}");
        }
    }
}
