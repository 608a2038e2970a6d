//! What a step asks the model, and when it asks again with less.

use super::answer::ModelAnswer;
use super::halt::Halt;
use super::ports::{EventSink, Ports};
use super::{Run, plan, prompt};
use crate::protocol::forwarded_props::ToolChoice;
use crate::protocol::tool::Tool;
use crate::provider::{ModelMessage, ModelRequest, ProviderError, codec};

impl<P: Ports, S: EventSink> Run<'_, P, S> {
    /// Asks; once more with a smaller window when the model says the conversation is too long.
    pub(super) async fn ask_within_context(&mut self, step: u32) -> Result<ModelAnswer, Halt> {
        match self.ask_with_all(step).await {
            Err(Halt::Upstream(error))
                if *error == ProviderError::ContextLengthExceeded
                    && !self.emitter.has_output()
                    && !self.is_shortened =>
            {
                self.is_shortened = true;
                self.conversation = prompt::newer_half(&self.conversation);
                self.ask_with_all(step).await
            }
            asked => asked,
        }
    }

    /// Lends the request what may be large: it is not held twice while the model speaks.
    async fn ask_with_all(&mut self, step: u32) -> Result<ModelAnswer, Halt> {
        let request = self.request(step);
        let asked = self.ask(&request).await;
        // An upstream that makes steps of its own has added them.
        let added = std::mem::replace(&mut self.conversation, request.messages);
        self.conversation.extend(added);
        self.setup.input.state = request.state;
        asked
    }

    /// The client's choice binds the first step only, and on the last one tools are withheld (2.1, D10).
    pub(super) fn tool_choice(&self, step: u32) -> ToolChoice {
        match &self.setup.input.forwarded_props.tool_choice {
            _ if self.are_tools_withheld => ToolChoice::None,
            Some(choice) if step == 1 => choice.clone(),
            Some(_) | None => ToolChoice::Auto,
        }
    }

    /// Whether the model may read results of tools. An upstream that runs tools itself has its own rules for them.
    fn reads_results(&self, tools: &[Tool]) -> bool {
        let is_results = |message: &ModelMessage| matches!(message, ModelMessage::ToolResults(_));
        (!tools.is_empty() || self.conversation.iter().any(is_results))
            && !codec(self.setup.target.wire).runs_tools()
    }

    /// Takes the conversation and the client's state.
    fn request(&mut self, step: u32) -> ModelRequest {
        let tools = self.toolbox.declarations();
        let reads_results = self.reads_results(&tools);
        let messages = std::mem::take(&mut self.conversation);
        let state = self.setup.input.state.take();
        let (input, agent) = (&self.setup.input, &self.setup.agent);
        let props = &input.forwarded_props;
        ModelRequest {
            system: prompt::system_texts(agent, input, reads_results),
            messages,
            tools,
            tool_choice: self.tool_choice(step),
            settings: plan::settings(agent, props),
            output_schema: props.output_schema.clone(),
            state,
            unknown_props: props.unknown.clone(),
            run_id: input.run_id.clone(),
            thread_id: input.thread_id.clone(),
            kept_thread: plan::kept_thread(&self.setup),
        }
    }
}
