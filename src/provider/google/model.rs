//! What a model takes, told by its name.

use crate::protocol::number;
use crate::protocol::parts;
/// What a model takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Abilities {
    /// Calls are refused that go back without a signature: since Gemini 3.
    pub demands_signatures: bool,
    /// `thinkingConfig`: since Gemini 2.5.
    pub thinks: bool,
    /// How an answer is bound to a schema.
    pub schema: SchemaBinding,
}

/// When `responseJsonSchema` is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SchemaBinding {
    /// Always: since Gemini 3.
    Always,
    /// Without tools: Gemini 2.
    WithoutTools,
    /// Never: Gemma and others.
    Never,
}

impl Abilities {
    /// What the model of this name takes. A Gemini of unknown version, such as `gemini-flash-latest`, is a new one.
    pub fn of(model: &str) -> Self {
        let Some((_, name)) = parts::split_once(model, "gemini-") else {
            return Self {
                demands_signatures: false,
                thinks: false,
                schema: SchemaBinding::Never,
            };
        };
        let is_old = name
            .split(|character: char| !character.is_ascii_digit())
            .next()
            .and_then(number::unsigned)
            .is_some_and(|major| major < 3);
        Self {
            demands_signatures: !is_old,
            thinks: !is_old || name.starts_with("2.5"),
            schema: if is_old {
                SchemaBinding::WithoutTools
            } else {
                SchemaBinding::Always
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_tells_what_a_model_takes() {
        use SchemaBinding::{Always, Never, WithoutTools};
        for (model, demands_signatures, thinks, schema) in [
            ("gemini-2.5-flash", false, true, WithoutTools),
            ("models/gemini-2.0-flash-001", false, false, WithoutTools),
            ("gemini-3-pro-preview", true, true, Always),
            ("gemini-3.1-flash", true, true, Always),
            ("gemini-10-pro", true, true, Always),
            ("gemini-flash-latest", true, true, Always),
            ("gemma-3-27b-it", false, false, Never),
            ("tunedModels/mine", false, false, Never),
        ] {
            let expected = Abilities {
                demands_signatures,
                thinks,
                schema,
            };
            assert_eq!(Abilities::of(model), expected, "{model}");
        }
    }
}
