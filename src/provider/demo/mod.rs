//! The embedded demo provider: deterministic, no key, no network; every feature of a run can be seen with it.
//!
//! The last user message decides; case and punctuation do not matter. The same request always gives the same pieces
//! with the same pauses.
//!
//! | Message | Answer |
//! | --- | --- |
//! | anything else | quotes the message and says what to try |
//! | `call <tool>`, `use the <tool> tool`, a tool's name in words (`set the theme to dark`) | calls it; values come from the words around it or are made up so that they fit the schema |
//! | `use <tool> with {...}` | calls it with exactly these arguments, fitting or not |
//! | `call <a> and <b>`, `call all tools`, `call <tool> 3 times` | several calls in one step (at most 20) |
//! | `call <a> then call <b>` | one step after the other |
//! | `call <tool> forever` | calls it on every step, until tools are withheld (D10) |
//! | `call <tool> silently` | calls it without a text before |
//! | `call <no such tool>` | says so and lists its tools |
//! | `what time is it`, `what day is it` | calls the server tool `current_time` |
//! | `which tools do you have` | lists its tools |
//! | results came in | tells each result, or that the tool failed |
//! | `what did I say`, `do you remember` | quotes the earlier user messages it can see |
//! | `markdown` | headings, lists, code, a table |
//! | `long`, `write 200 words` | 400 words, or as many as asked for (at most 5000) |
//! | `think` | reasoning first, then an answer |
//! | `slow`, `slowly` anywhere | pauses fifteen times longer |
//! | `silence 20 seconds` | says nothing for so long in the middle of the answer (at most 600) |
//! | `fail` | the upstream fails after some text |
//! | `fail cut`, `fail length`, `fail filter` | cut off, cut at a token limit, withheld, after some text |
//! | `fail before`, `refuse` | refused before any output: an HTTP error |
//! | `rate limit` | 429 with Retry-After before any output |
//! | `fail context` | the conversation does not fit the model |
//!
//! With an output schema the answer is JSON that fits it. `toolChoice` is honoured, `maxOutputTokens` counts words, and
//! a system text that starts with `Write a title` is answered with one.

mod answer;
mod arguments;
mod calls;
mod script;
mod shape;
mod texts;
mod turn;
mod words;

use super::{ModelCall, ModelDecoder, ModelEvent, ModelRequest, ModelTarget, Provider, ProviderError};
use script::Pace;
use turn::Turn;
use words::Words;

/// The codec.
#[derive(Debug, Clone, Copy)]
pub struct Demo;

impl Provider for Demo {
    fn call(&self, _target: &ModelTarget, request: &ModelRequest) -> Result<ModelCall, ProviderError> {
        let turn = Turn::of(request);
        let max_words = request.settings.max_output_tokens;
        let pace = Pace {
            is_slow: Words::of(&turn.text).has_any(&["slow", "slowly"]),
            max_words: max_words.map(|max| usize::try_from(max).unwrap_or(usize::MAX)),
            input_words: turn.input_words,
            earlier_call_count: turn.earlier_call_count,
        };
        Ok(ModelCall::Scripted(script::script(answer::answer(&turn), pace)))
    }

    fn unknown_settings(&self) -> &'static [&'static str] {
        &[
            "temperature",
            "topP",
            "topK",
            "presencePenalty",
            "frequencyPenalty",
            "stopSequences",
            "seed",
        ]
    }

    fn decoder(&self) -> Box<dyn ModelDecoder> {
        Box::new(NoBody)
    }

    fn refusal(&self, _status: u16, _headers: &[(String, String)], _body: &[u8]) -> ProviderError {
        ProviderError::Malformed("the demo sends no requests")
    }
}

/// A scripted call has no body: this decoder is finished before it begins.
struct NoBody;

impl ModelDecoder for NoBody {
    fn feed(&mut self, _bytes: &[u8], _events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        Ok(())
    }

    fn end(&mut self, _events: &mut Vec<ModelEvent>) -> Result<(), ProviderError> {
        Ok(())
    }

    fn is_finished(&self) -> bool {
        true
    }
}
