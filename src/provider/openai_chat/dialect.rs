//! Where compatible servers differ so that one request cannot serve all.

use crate::protocol::parts;
/// What a server wants, decided by the host of the base address alone: the model's name says nothing about its server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dialect {
    /// `max_completion_tokens`, which OpenAI's reasoning models demand, instead of `max_tokens`, which every other server
    /// knows.
    pub max_completion_tokens: bool,
    /// `reasoning_content` goes back with every assistant message that has calls; others refuse the member (B052).
    pub reasoning_goes_back: bool,
    /// A schema is taken as `response_format`; elsewhere only JSON as such can be asked for.
    pub takes_schema: bool,
    /// Mistral's own API: it refuses members it does not know (`stream_options`, which it does not need, and `seed`, which
    /// it names otherwise), call ids but those of nine letters and digits, a user behind results, and an assistant at the
    /// end; and it has other parts for files and sound.
    pub is_mistral: bool,
}

impl Dialect {
    /// The dialect of the server at a base address.
    pub fn of(base_url: &str) -> Self {
        let after_scheme = parts::split_once(base_url, "://").map_or(base_url, |(_, rest)| rest);
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
            takes_schema: !(is_at("api.deepseek.com") || is_behind("deepseek")),
            is_mistral: is_at("api.mistral.ai") || is_behind("mistral"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `max_completion_tokens`, `reasoning_goes_back`, `takes_schema`, `is_mistral` of a server.
    fn told(base_url: &str) -> (bool, bool, bool, bool) {
        let Dialect {
            max_completion_tokens,
            reasoning_goes_back,
            takes_schema,
            is_mistral,
        } = Dialect::of(base_url);
        (
            max_completion_tokens,
            reasoning_goes_back,
            takes_schema,
            is_mistral,
        )
    }

    #[test]
    fn the_host_decides() {
        let plain = (false, false, true, false);
        let openai = (true, false, true, false);
        let deepseek = (false, true, false, false);
        let mistral = (false, false, true, true);
        for (base_url, expected) in [
            ("https://api.openai.com/v1", openai),
            ("https://eu.api.openai.com:443/v1", openai),
            ("https://mine.openai.azure.com/openai/v1", openai),
            (
                "https://gateway.ai.cloudflare.com/v1/account/gateway/openai",
                openai,
            ),
            ("https://gateway.ai.cloudflare.com/v1/account/gateway/groq", plain),
            (
                "https://gateway.ai.cloudflare.com/v1/account/gateway/deepseek",
                deepseek,
            ),
            ("https://api.deepseek.com", deepseek),
            ("https://api.mistral.ai/v1", mistral),
            (
                "https://gateway.ai.cloudflare.com/v1/account/gateway/mistral/",
                mistral,
            ),
            ("https://notapi.openai.com.example.test/api.openai.com", plain),
            ("http://localhost:11434/v1", plain),
            ("", plain),
        ] {
            assert_eq!(told(base_url), expected, "{base_url}");
        }
    }
}
