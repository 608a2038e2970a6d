//! Why a run stops before its answer is complete.

use crate::protocol::event::RunErrorCode;
use crate::protocol::lifecycle::LifecycleFault;
use crate::provider::ProviderError;

use super::RunRefusal;

/// Stops the loop; `conclude` turns it into a terminal event or an HTTP answer.
#[derive(Debug, Clone, PartialEq)]
pub enum Halt {
    /// The cancel route was called.
    Cancelled,
    /// The last viewer left and the agent stops then (D11).
    Disconnected,
    /// The upstream failed.
    Upstream(Box<ProviderError>),
    /// One of our limits, or our storage.
    Failed(RunErrorCode),
}

impl From<ProviderError> for Halt {
    fn from(error: ProviderError) -> Self {
        Self::Upstream(error.into())
    }
}

impl From<LifecycleFault> for Halt {
    fn from(_: LifecycleFault) -> Self {
        Self::Failed(RunErrorCode::InternalError)
    }
}

impl Halt {
    /// Code of RUN_ERROR. Source: contract 2.4.
    pub fn code(&self) -> RunErrorCode {
        match self {
            Self::Cancelled | Self::Disconnected => RunErrorCode::Cancelled,
            Self::Failed(code) => *code,
            Self::Upstream(error) => match &**error {
                ProviderError::Configuration(_) => RunErrorCode::InternalError,
                ProviderError::Refused { .. } => RunErrorCode::UpstreamError,
                ProviderError::RateLimited { .. } => RunErrorCode::UpstreamRateLimited,
                ProviderError::ContextLengthExceeded => RunErrorCode::ContextLengthExceeded,
                ProviderError::ContentFiltered => RunErrorCode::ContentFiltered,
                ProviderError::OutputTruncated => RunErrorCode::OutputTruncated,
                ProviderError::Truncated => RunErrorCode::UpstreamTruncated,
                ProviderError::Malformed(_) => RunErrorCode::InvalidUpstreamResponse,
            },
        }
    }

    /// How the same stop reads while there is no stream yet. Source: D14.
    pub fn refusal(&self) -> RunRefusal {
        match self {
            Self::Upstream(error) => match **error {
                ProviderError::Configuration(what) => RunRefusal::AgentNotConfigured(what),
                ProviderError::RateLimited { retry_after_ms, .. } => RunRefusal::UpstreamRateLimited {
                    retry_after_s: retry_after_ms.unwrap_or(1000).div_ceil(1000).max(1),
                },
                ProviderError::Refused { .. }
                | ProviderError::ContextLengthExceeded
                | ProviderError::ContentFiltered
                | ProviderError::OutputTruncated
                | ProviderError::Truncated
                | ProviderError::Malformed(_) => RunRefusal::UpstreamRefused(self.code()),
            },
            Self::Failed(RunErrorCode::InternalError) => RunRefusal::Internal,
            Self::Cancelled | Self::Disconnected | Self::Failed(_) => {
                RunRefusal::UpstreamRefused(self.code())
            }
        }
    }
}

/// The human sentence of RUN_ERROR; never anything of the upstream's own words.
pub fn sentence(code: RunErrorCode) -> &'static str {
    match code {
        RunErrorCode::UpstreamError => "The model's server reported an error.",
        RunErrorCode::UpstreamRateLimited => {
            "The model's server limits the rate of requests; try again later."
        }
        RunErrorCode::UpstreamTimeout => "The model's server did not answer in time.",
        RunErrorCode::UpstreamTruncated => "The model's answer was cut off.",
        RunErrorCode::InvalidUpstreamResponse => "The model's answer could not be read.",
        RunErrorCode::OutputTruncated => "The model's answer was cut at a token limit.",
        RunErrorCode::ContentFiltered => "The model's content filter withheld the answer.",
        RunErrorCode::ContextLengthExceeded => "The conversation is too long for the model.",
        RunErrorCode::MaxStepsExceeded => "The run used up its steps without an answer.",
        RunErrorCode::RunTimeout => "The run took too long.",
        RunErrorCode::RunInterrupted => "The run was interrupted.",
        RunErrorCode::StorageError => "The run could not be stored.",
        RunErrorCode::Cancelled => "The run was cancelled.",
        RunErrorCode::InternalError => "The server made a mistake.",
    }
}
