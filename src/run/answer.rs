//! One model call: attempts until the upstream answers, then its events, in order, to the stream.

use std::collections::VecDeque;

use serde::Serialize;
use serde_json::Value;

use super::Run;
use super::halt::Halt;
use super::live::LiveCalls;
use super::pace::{WaitFor, Waited};
use super::plan;
use super::ports::{Clock, EventSink, HttpBody, HttpClient, HttpResponse, IdSource, Level, Log, Ports};
use crate::list::List;
use crate::protocol::event::RunErrorCode;
use crate::protocol::forwarded_props::ToolChoice;
use crate::protocol::id::ToolCallId;
use crate::protocol::read::{record, words};
use crate::protocol::time;
use crate::protocol::tool::ToolResult;
use crate::provider::{
    self, FinishReason, ModelCall, ModelDecoder, ModelEvent, ModelRequest, ProviderError,
    REFUSAL_BODY_MAX_BYTES, ScriptedPiece, codec,
};

/// First pause between two attempts, in milliseconds; it doubles with each.
const BACK_OFF_MS: u64 = 500;

/// What a model said in one call, beside what was streamed already.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ModelAnswer {
    /// Its text, all segments joined.
    pub text: String,
    /// Its calls in slot order of their announcement.
    pub calls: Vec<AnsweredCall>,
    /// Goes back with this message.
    pub vendor_state: Option<Value>,
    /// Why it ended, if the upstream said so.
    pub finish: Option<FinishReason>,
}

record!(ModelAnswer:
    "text" => text, "calls" => calls, "vendor_state" => vendor_state = None, "finish" => finish = None,
);

impl ModelAnswer {
    /// Whether the upstream has decided to stop: it made no calls, or only such as it runs itself, and it does not ask for
    /// more. A call that the request forced is no decision: what comes of it is asked next.
    pub fn is_last(&self, tool_choice: &ToolChoice) -> bool {
        let is_forced = match tool_choice {
            ToolChoice::Required | ToolChoice::Function(_) => true,
            ToolChoice::Auto | ToolChoice::None => false,
        };
        let is_upstream =
            |call: &AnsweredCall| matches!(call.state, CallState::Upstream | CallState::Answered);
        self.calls.is_empty()
            || (!is_forced
                && self.finish != Some(FinishReason::ToolCalls)
                && self.calls.iter().all(is_upstream))
    }
}

/// A call of an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AnsweredCall {
    pub slot: usize,
    pub id: ToolCallId,
    pub name: String,
    pub arguments: String,
    pub state: CallState,
}

record!(AnsweredCall:
    "slot" => slot, "id" => id, "name" => name, "arguments" => arguments, "state" => state,
);

/// What became of a call so far.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub enum CallState {
    /// Arguments still arrive.
    Open,
    /// Never shown: its error goes to the model only (2.5).
    Hidden,
    /// Shown; its result is known already.
    Settled,
    /// Shown; the upstream runs it.
    Upstream,
    /// Shown; the upstream has answered it.
    Answered,
    /// Shown; a server tool runs it.
    Server,
    /// Shown and registered; the front end posts the result.
    Frontend,
    /// Shown; the next run's messages answer it.
    Pending,
}

words!(CallState:
    "Open" => Open, "Hidden" => Hidden, "Settled" => Settled, "Upstream" => Upstream, "Answered" => Answered,
    "Server" => Server, "Frontend" => Frontend, "Pending" => Pending,
);

enum Attempt {
    /// The answer is complete.
    Done,
    /// It failed before any output and may be repeated.
    Failed(ProviderError),
}

enum Source<B> {
    Body(B, Box<dyn ModelDecoder>),
    Script(VecDeque<ScriptedPiece>),
}

impl<P: Ports, S: EventSink> Run<'_, P, S> {
    /// Asks the model once; repeats the call while nothing was shown and the failure may pass.
    pub(super) async fn ask(&mut self, request: &ModelRequest) -> Result<ModelAnswer, Halt> {
        let retries = request
            .settings
            .max_retries
            .unwrap_or(self.setup.agent.max_retries);
        let mut attempt = 0;
        self.emitter.begin_model_call();
        loop {
            let mut answer = ModelAnswer::default();
            // Results of calls that a failed attempt hid belong to nobody.
            self.known_results.clear();
            let error = match self.attempt(request, &mut answer).await? {
                Attempt::Done => return Ok(answer),
                Attempt::Failed(error) => error,
            };
            self.log_failure(&error, attempt);
            let Some(retry_after_ms) = retry_pause(&error) else {
                return Err(error.into());
            };
            if attempt >= retries {
                return Err(error.into());
            }
            let jitter = 1.0 + self.ports.ids().fraction() / 2.0;
            let back_off_ms = BACK_OFF_MS.saturating_mul(1 << attempt.min(6));
            let pause_ms = retry_after_ms.unwrap_or((back_off_ms as f64 * jitter) as u64);
            let left_ms = if self.emitter.is_open() {
                self.pace.work_left_ms()
            } else {
                self.pace.head_left_ms()
            };
            // A wait that would outlast what is left is a refusal now (D14).
            if retry_after_ms.is_some_and(|asked_ms| asked_ms > left_ms) {
                return Err(error.into());
            }
            let sleep = self.ports.clock().sleep(pause_ms);
            self.pace
                .wait(&mut self.emitter, WaitFor::Work { until_ms: None }, sleep)
                .await?;
            attempt += 1;
            self.counts.retry_count += 1;
        }
    }

    async fn attempt(&mut self, request: &ModelRequest, answer: &mut ModelAnswer) -> Result<Attempt, Halt> {
        let source = match self.connect(request).await? {
            Ok(source) => source,
            Err(error) => return Ok(Attempt::Failed(error)),
        };
        let mut live = LiveCalls::default();
        let failure = self.read(source, answer, &mut live).await?;
        match failure {
            None => {
                self.complete_open(answer, &mut live).await?;
                self.release(answer, &mut live).await?;
                Ok(Attempt::Done)
            }
            Some(error) if self.emitter.has_output() => {
                self.cut_live(answer, &mut live)?;
                Err(error.into())
            }
            Some(error) => Ok(Attempt::Failed(error)),
        }
    }

    /// A codec ends every call it announced; one that did not is judged by what came.
    async fn complete_open(&mut self, answer: &mut ModelAnswer, live: &mut LiveCalls) -> Result<(), Halt> {
        let open = answer
            .calls
            .iter()
            .filter(|call| call.state == CallState::Open)
            .map(|call| call.slot);
        for slot in open.list() {
            self.complete(slot, answer, live).await?;
        }
        Ok(())
    }

    /// Sends the request; the stream opens when the upstream's head is there.
    async fn connect(
        &mut self,
        request: &ModelRequest,
    ) -> Result<Result<Source<<P::Http as HttpClient>::Body>, ProviderError>, Halt> {
        let codec = codec(self.setup.target.wire);
        let http_request = match provider::call(&self.setup.target, request)? {
            ModelCall::Http(http_request) => http_request,
            ModelCall::Scripted(pieces) => {
                // A script that begins with its failure is an upstream's refusal, whatever its pause (D14).
                if let Some(ScriptedPiece {
                    event: Err(error), ..
                }) = pieces.first()
                {
                    return Ok(Err(error.clone()));
                }
                self.emitter.open()?;
                return Ok(Ok(Source::Script(pieces.into())));
            }
        };
        let sent = self.ports.http().send(http_request);
        let response = match self.pace.wait(&mut self.emitter, WaitFor::Upstream, sent).await? {
            Waited::Came(Ok(response)) => response,
            Waited::Came(Err(error)) => return Ok(Err(unreachable(&error.0))),
            Waited::Due => return Err(Halt::Failed(RunErrorCode::InternalError)),
        };
        if !(200..300).contains(&response.status) {
            let (status, headers) = (response.status, self.with_waits_in_seconds(&response.headers));
            let body = self.read_refusal(response).await?;
            return Ok(Err(codec.refusal(status, &headers, &body)));
        }
        self.emitter.open()?;
        Ok(Ok(Source::Body(response.body, codec.decoder())))
    }

    /// Headers with `retry-after` in seconds where it was a date: codecs have no clock.
    fn with_waits_in_seconds(&self, headers: &[(String, String)]) -> Vec<(String, String)> {
        let now_ms = self.pace.now_ms();
        let in_seconds = |(name, value): &(String, String)| {
            let date_ms = time::parse_http_date(value).filter(|_| name == "retry-after");
            let value = date_ms.map_or_else(
                || value.clone(),
                |ms| ms.saturating_sub(now_ms).div_ceil(1000).to_string(),
            );
            (name.clone(), value)
        };
        headers.iter().map(in_seconds).list()
    }

    async fn read_refusal(
        &mut self,
        response: HttpResponse<<P::Http as HttpClient>::Body>,
    ) -> Result<Vec<u8>, Halt> {
        let mut body = response.body;
        let mut bytes = Vec::new();
        while bytes.len() < REFUSAL_BODY_MAX_BYTES {
            match self
                .pace
                .wait(&mut self.emitter, WaitFor::Upstream, body.next_chunk())
                .await?
            {
                Waited::Came(Some(Ok(chunk))) => bytes.extend_from_slice(&chunk),
                Waited::Came(Some(Err(_)) | None) | Waited::Due => break,
            }
        }
        bytes.truncate(REFUSAL_BODY_MAX_BYTES);
        Ok(bytes)
    }

    /// Reads to the end mark; gives the upstream's failure, if it failed.
    async fn read(
        &mut self,
        mut source: Source<<P::Http as HttpClient>::Body>,
        answer: &mut ModelAnswer,
        live: &mut LiveCalls,
    ) -> Result<Option<ProviderError>, Halt> {
        let mut events = Vec::new();
        loop {
            let step = self.next_events(&mut source, &mut events).await?;
            for event in events.drain(..) {
                // Nearly every event is text, which never waits.
                match event {
                    ModelEvent::Text(delta) => self.take_text(delta, answer, live)?,
                    event => self.take(event, answer, live).await?,
                }
            }
            let now_ms = self.pace.now_ms();
            if self.emitter.has_output() && self.counts.first_output_ms.is_none() {
                self.counts.first_output_ms = Some(now_ms.saturating_sub(self.started_ms));
            }
            match step {
                Ok(false) => self.emitter.flush(now_ms).await.map_err(|_| Halt::Disconnected)?,
                Ok(true) => {
                    if let Source::Body(body, _) = source {
                        body.leave();
                    }
                    return Ok(None);
                }
                Err(error) => return Ok(Some(error)),
            }
        }
    }

    /// Appends the next events; says whether they were the last.
    async fn next_events(
        &mut self,
        source: &mut Source<<P::Http as HttpClient>::Body>,
        events: &mut Vec<ModelEvent>,
    ) -> Result<Result<bool, ProviderError>, Halt> {
        match source {
            Source::Body(body, decoder) => {
                let chunk = self
                    .pace
                    .wait(&mut self.emitter, WaitFor::Upstream, body.next_chunk())
                    .await?;
                Ok(match chunk {
                    Waited::Came(Some(Ok(bytes))) => {
                        self.counts.upstream_bytes += bytes.len() as u64;
                        decoder.feed(&bytes, events).map(|()| decoder.is_finished())
                    }
                    Waited::Came(Some(Err(_))) => Err(ProviderError::Truncated),
                    Waited::Came(None) | Waited::Due => decoder.end(events).map(|()| true),
                })
            }
            Source::Script(pieces) => {
                let Some(piece) = pieces.pop_front() else {
                    return Ok(Ok(true));
                };
                if piece.after_ms > 0 {
                    let sleep = self.ports.clock().sleep(piece.after_ms);
                    self.pace
                        .wait(&mut self.emitter, WaitFor::Work { until_ms: None }, sleep)
                        .await?;
                }
                Ok(piece.event.map(|event| {
                    events.push(event);
                    false
                }))
            }
        }
    }

    fn take_text(
        &mut self,
        delta: String,
        answer: &mut ModelAnswer,
        live: &mut LiveCalls,
    ) -> Result<(), Halt> {
        answer.text.push_str(&delta);
        if !live.hold_text(&delta) {
            self.emitter.text(delta)?;
        }
        Ok(())
    }

    async fn take(
        &mut self,
        event: ModelEvent,
        answer: &mut ModelAnswer,
        live: &mut LiveCalls,
    ) -> Result<(), Halt> {
        match event {
            ModelEvent::Text(delta) => self.take_text(delta, answer, live)?,
            ModelEvent::TextEnd => self.emitter.end_text()?,
            ModelEvent::Reasoning(delta) => {
                if plan::emits_reasoning(&self.setup) && !live.hold_reasoning(&delta) {
                    self.emitter.reasoning(delta)?;
                }
            }
            ModelEvent::ToolCallStart {
                slot,
                vendor_id: _,
                name,
            } => self.announce(slot, name, answer, live)?,
            ModelEvent::ToolCallArguments { slot, delta } => self.add_arguments(slot, delta, answer, live)?,
            ModelEvent::ToolCallEnd { slot } => self.complete(slot, answer, live).await?,
            ModelEvent::ToolCallResult {
                slot,
                content,
                is_error,
            } => self.settle_upstream(slot, ToolResult { content, is_error }, answer, live),
            ModelEvent::StepEnd => {
                self.release(answer, live).await?;
                self.end_upstream_step(answer)?;
            }
            ModelEvent::VendorState(state) => answer.vendor_state = Some(state),
            ModelEvent::Usage(usage) => self.usage.add(&usage),
            ModelEvent::Finish(reason) => answer.finish = Some(reason),
        }
        Ok(())
    }

    fn log_failure(&self, error: &ProviderError, attempt: u32) {
        let detail = match error {
            ProviderError::Refused { detail, .. } | ProviderError::RateLimited { detail, .. } => {
                detail.as_str()
            }
            ProviderError::Malformed(what) | ProviderError::Configuration(what) => what,
            ProviderError::ContextLengthExceeded
            | ProviderError::ContentFiltered
            | ProviderError::OutputTruncated
            | ProviderError::Truncated => "",
        };
        let run_id = self.setup.input.run_id.as_str();
        self.ports.log().line(
            Level::Warn,
            "upstream_failed",
            &[
                ("runId", &run_id),
                ("attempt", &(attempt + 1)),
                ("error", error),
                ("detail", &detail),
            ],
        );
    }
}

/// `None` = not worth another attempt; else the pause the upstream asked for.
fn retry_pause(error: &ProviderError) -> Option<Option<u64>> {
    match error {
        ProviderError::Refused {
            retryable: true,
            retry_after_ms,
            ..
        }
        | ProviderError::RateLimited { retry_after_ms, .. } => Some(*retry_after_ms),
        ProviderError::Truncated => Some(None),
        ProviderError::Refused { retryable: false, .. }
        | ProviderError::Configuration(_)
        | ProviderError::ContextLengthExceeded
        | ProviderError::ContentFiltered
        | ProviderError::OutputTruncated
        | ProviderError::Malformed(_) => None,
    }
}

fn unreachable(detail: &str) -> ProviderError {
    ProviderError::Refused {
        status: 0,
        retryable: true,
        retry_after_ms: None,
        detail: detail.to_owned(),
    }
}
