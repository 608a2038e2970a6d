//! The one provider table: which names an agent's `provider` may have, and how each is driven.
//!
//! Plain data without paths into the crate: the build script reads it too.

/// The wire format an upstream speaks; each has one codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wire {
    /// Embedded, deterministic, no network.
    Demo,
    /// OpenAI Chat Completions and every compatible server.
    OpenAiChat,
    /// OpenAI Responses.
    OpenAiResponses,
    /// Anthropic Messages.
    Anthropic,
    /// Google Gemini.
    Google,
    /// A Mastra server's stream.
    Mastra,
    /// Another AG-UI endpoint.
    AgUi,
    /// Workers AI, by its binding or as a compatible server.
    WorkersAi,
}

impl Wire {
    /// Whether an agent must have a base address, its own or the provider's.
    pub fn needs_base_url(self) -> bool {
        self != Self::Demo
    }

    /// Whether an agent must name a model.
    pub fn needs_model(self) -> bool {
        !matches!(self, Self::Demo | Self::AgUi)
    }
}

/// One provider name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProviderEntry {
    /// The agent's `provider`.
    pub name: &'static str,
    /// How it is driven.
    pub wire: Wire,
    /// Used when the agent has no `baseUrl`; empty = the agent must have one, unless the wire needs none.
    pub base_url: &'static str,
    /// Name of the secret used when the agent has no `apiKeySecret`; empty = no key is sent.
    pub api_key_secret: &'static str,
}

/// Every provider. A compatible server is one more line.
pub const PROVIDERS: &[ProviderEntry] = &[
    ProviderEntry {
        name: "demo",
        wire: Wire::Demo,
        base_url: "",
        api_key_secret: "",
    },
    ProviderEntry {
        name: "openai",
        wire: Wire::OpenAiChat,
        base_url: "https://api.openai.com/v1",
        api_key_secret: "OPENAI_API_KEY",
    },
    ProviderEntry {
        name: "openai-responses",
        wire: Wire::OpenAiResponses,
        base_url: "https://api.openai.com/v1",
        api_key_secret: "OPENAI_API_KEY",
    },
    ProviderEntry {
        name: "anthropic",
        wire: Wire::Anthropic,
        base_url: "https://api.anthropic.com",
        api_key_secret: "ANTHROPIC_API_KEY",
    },
    ProviderEntry {
        name: "google",
        wire: Wire::Google,
        base_url: "https://generativelanguage.googleapis.com/v1beta",
        api_key_secret: "GEMINI_API_KEY",
    },
    // The address a Mastra server of `mastra dev` has. Its agents hold the keys; a server with auth wants a token.
    ProviderEntry {
        name: "mastra",
        wire: Wire::Mastra,
        base_url: "http://localhost:4111",
        api_key_secret: "",
    },
    ProviderEntry {
        name: "ag-ui",
        wire: Wire::AgUi,
        base_url: "",
        api_key_secret: "",
    },
    // The binding, which needs no key. Over REST an agent has `baseUrl`
    // `https://api.cloudflare.com/client/v4/accounts/ACCOUNT/ai/v1` and an `apiKeySecret`.
    ProviderEntry {
        name: "workers-ai",
        wire: Wire::WorkersAi,
        base_url: "binding:AI",
        api_key_secret: "",
    },
    compatible("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    compatible("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    compatible("together", "https://api.together.ai/v1", "TOGETHER_API_KEY"),
    compatible("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    compatible("deepseek", "https://api.deepseek.com", "DEEPSEEK_API_KEY"),
    compatible("xai", "https://api.x.ai/v1", "XAI_API_KEY"),
    compatible("cerebras", "https://api.cerebras.ai/v1", "CEREBRAS_API_KEY"),
    compatible(
        "fireworks",
        "https://api.fireworks.ai/inference/v1",
        "FIREWORKS_API_KEY",
    ),
    compatible("vllm", "http://localhost:8000/v1", ""),
    compatible("ollama", "http://localhost:11434/v1", ""),
    compatible("lmstudio", "http://localhost:1234/v1", ""),
];

/// A server that speaks Chat Completions as OpenAI does.
const fn compatible(
    name: &'static str,
    base_url: &'static str,
    api_key_secret: &'static str,
) -> ProviderEntry {
    ProviderEntry {
        name,
        wire: Wire::OpenAiChat,
        base_url,
        api_key_secret,
    }
}

/// Finds a provider by its name.
pub fn find(name: &str) -> Option<&'static ProviderEntry> {
    PROVIDERS.iter().find(|entry| entry.name == name)
}

/// That a name is no provider's.
pub fn unknown(name: &str) -> String {
    let known: Vec<&str> = PROVIDERS.iter().map(|entry| entry.name).collect();
    format!("unknown provider `{name}`, expected one of {}", listed(&known))
}

/// Names as a message lists them.
pub fn listed(names: &[&str]) -> String {
    let mut list = String::new();
    for (index, name) in names.iter().enumerate() {
        list.push_str(if index == 0 { "" } else { ", " });
        list.push_str(name);
    }
    list
}
