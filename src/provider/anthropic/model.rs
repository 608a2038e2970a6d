//! What a model takes, told by its name: newer models refuse what older ones need.
//!
//! Source: Anthropic's migration guides up to Claude Opus 5.5, Sonnet 5.5 and Haiku 5.5.

use crate::protocol::number;
use crate::protocol::parts;
/// `max_tokens` when nobody set a limit, for Claude 4 and newer: the most that all of these take. A small limit would cut
/// answers, since thinking counts towards it, and a large one costs nothing.
const CLAUDE_MAX_TOKENS: u32 = 32_000;
/// The same for older models and other vendors' servers of this API: what the oldest take.
const OTHER_MAX_TOKENS: u32 = 4096;

/// What a model takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Abilities {
    /// `temperature`, `top_p` and `top_k`: refused since Claude 4.7.
    pub sampling: Sampling,
    /// `tool_choice` `any` and `tool`: refused by models that always think.
    pub takes_forced_calls: bool,
    /// `output_config.format`: since Claude 4.5.
    pub takes_output_format: bool,
    /// How the model is asked to think and to show it.
    pub thinking: Thinking,
    /// `max_tokens` when nobody set a limit.
    pub default_max_tokens: u32,
}

/// How a model is asked to think.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Thinking {
    /// Not at all: before Claude 3.7, and servers of others.
    Never,
    /// Within a budget: up to Claude 4.5.
    Budget,
    /// As it sees fit: since Claude 4.6, which shows it unasked.
    Adaptive,
    /// The same, shown only when asked: since Claude 4.7.
    AdaptiveHidden,
}

/// Which sampling settings a model takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sampling {
    /// All of them.
    All,
    /// `temperature` or `top_p`, not both.
    One,
    /// None.
    Refused,
}

impl Abilities {
    /// What the model of this name takes. A Claude of unknown version is taken for a new one.
    pub fn of(model: &str) -> Self {
        let Some((_, name)) = parts::split_once(model, "claude-") else {
            return Self {
                sampling: Sampling::All,
                takes_forced_calls: true,
                takes_output_format: false,
                thinking: Thinking::Never,
                default_max_tokens: OTHER_MAX_TOKENS,
            };
        };
        let version = version(name);
        let is_before = |other: (u64, u64)| version.is_some_and(|version| version < other);
        // Families differ in the version that began to think always.
        let always_thinks_since = match family(name) {
            "opus" => Some((5, 5)),
            "fable" | "mythos" => Some((5, 1)),
            _ => None,
        };
        Self {
            sampling: if is_before((4, 1)) {
                Sampling::All
            } else if is_before((4, 7)) {
                Sampling::One
            } else {
                Sampling::Refused
            },
            takes_forced_calls: always_thinks_since.is_none_or(is_before),
            takes_output_format: !is_before((4, 5)),
            thinking: if is_before((3, 7)) {
                Thinking::Never
            } else if is_before((4, 6)) {
                Thinking::Budget
            } else if is_before((4, 7)) {
                Thinking::Adaptive
            } else {
                Thinking::AdaptiveHidden
            },
            default_max_tokens: if is_before((4, 0)) {
                OTHER_MAX_TOKENS
            } else {
                CLAUDE_MAX_TOKENS
            },
        }
    }
}

/// `opus` of `opus-4-5-20251101` and of `3-opus-20240229`.
fn family(name: &str) -> &str {
    words(name)
        .find(|word| word.starts_with(|first: char| first.is_ascii_alphabetic()))
        .unwrap_or_default()
}

/// Major and minor number: the first run of short numbers, longer ones are dates.
fn version(name: &str) -> Option<(u64, u64)> {
    let mut numbers = words(name)
        .map(|word| number::unsigned(word).filter(|_| word.len() <= 2))
        .skip_while(Option::is_none);
    let major = numbers.next().flatten()?;
    Some((major, numbers.next().flatten().unwrap_or(0)))
}

fn words(name: &str) -> impl Iterator<Item = &str> {
    name.split(|character: char| !character.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_tells_what_a_model_takes() {
        use Sampling::{All, One, Refused};
        use Thinking::{Adaptive, AdaptiveHidden, Budget, Never};
        for (model, sampling, takes_forced_calls, takes_output_format, thinking, default_max_tokens) in [
            ("claude-3-5-haiku-20241022", All, true, false, Never, 4096),
            ("claude-opus-4-20250514", All, true, false, Budget, 32_000),
            ("claude-opus-4-1-20250805", One, true, false, Budget, 32_000),
            ("claude-sonnet-4-5", One, true, true, Budget, 32_000),
            (
                "us.anthropic.claude-haiku-4-5-20251001-v1:0",
                One,
                true,
                true,
                Budget,
                32_000,
            ),
            ("anthropic/claude-opus-4.6", One, true, true, Adaptive, 32_000),
            ("claude-opus-4-7", Refused, true, true, AdaptiveHidden, 32_000),
            ("claude-opus-5", Refused, true, true, AdaptiveHidden, 32_000),
            ("claude-opus-5-5", Refused, false, true, AdaptiveHidden, 32_000),
            ("claude-sonnet-5-5", Refused, true, true, AdaptiveHidden, 32_000),
            ("claude-fable-5", Refused, true, true, AdaptiveHidden, 32_000),
            ("claude-fable-5-1", Refused, false, true, AdaptiveHidden, 32_000),
            ("claude-opus-latest", Refused, false, true, AdaptiveHidden, 32_000),
            ("deepseek-v4-pro", All, true, false, Never, 4096),
        ] {
            let expected = Abilities {
                sampling,
                takes_forced_calls,
                takes_output_format,
                thinking,
                default_max_tokens,
            };
            assert_eq!(Abilities::of(model), expected, "{model}");
        }
    }
}
