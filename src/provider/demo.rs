//! The embedded demo provider: deterministic, no key, no network.

use super::{ModelCall, ModelDecoder, ModelRequest, ModelTarget, Provider, ProviderError};

/// The codec.
#[derive(Debug, Clone, Copy)]
pub struct Demo;

impl Provider for Demo {
    fn call(&self, _target: &ModelTarget, _request: &ModelRequest) -> Result<ModelCall, ProviderError> {
        Err(ProviderError::Configuration("not written yet"))
    }

    fn decoder(&self) -> Box<dyn ModelDecoder> {
        Box::new(Nothing)
    }

    fn refusal(&self, _status: u16, _headers: &[(String, String)], _body: &[u8]) -> ProviderError {
        ProviderError::Truncated
    }
}

struct Nothing;

impl ModelDecoder for Nothing {
    fn feed(&mut self, _bytes: &[u8], _events: &mut Vec<super::ModelEvent>) -> Result<(), ProviderError> {
        Ok(())
    }

    fn end(&mut self, _events: &mut Vec<super::ModelEvent>) -> Result<(), ProviderError> {
        Ok(())
    }

    fn is_finished(&self) -> bool {
        true
    }
}
