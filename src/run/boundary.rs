//! What a client may make of an agent: the agent's configuration bounds what a run brings along.

use crate::config::AgentConfig;
use crate::config::agents::ModelSettingsConfig;
use crate::protocol::forwarded_props::ModelSettings;
use crate::protocol::message::{
    Content, ContentPart, MediaPart, MediaSource, Message, MessageBody, TextPart,
};
use crate::protocol::parts;

/// Attempts a run may ask for, whatever its agent says.
const RETRIES_MAX: u32 = 10;

/// What a model reads in place of a file whose address is not allowed.
const LEFT_OUT: &str = "[A file was left out: its address is not allowed here.]";

/// Settings within the agent's bounds. A bound on the answer's length holds for a run that asks for none, too.
pub fn bounded(settings: ModelSettings, agent: &AgentConfig) -> ModelSettings {
    let ModelSettingsConfig {
        max_output_tokens,
        temperature,
        top_p,
        top_k,
        presence_penalty,
        frequency_penalty,
        stop_sequences: _,
        seed: _,
    } = &agent.model_settings_max;
    ModelSettings {
        max_output_tokens: match (settings.max_output_tokens, *max_output_tokens) {
            (Some(asked), Some(most)) => Some(asked.min(most)),
            (asked, most) => asked.or(most),
        },
        temperature: lower(settings.temperature, *temperature),
        top_p: lower(settings.top_p, *top_p),
        top_k: settings.top_k.map(|asked| asked.min(top_k.unwrap_or(asked))),
        presence_penalty: lower(settings.presence_penalty, *presence_penalty),
        frequency_penalty: lower(settings.frequency_penalty, *frequency_penalty),
        stop_sequences: settings.stop_sequences,
        seed: settings.seed,
        max_retries: settings.max_retries.map(|asked| asked.min(RETRIES_MAX)),
    }
}

fn lower(asked: Option<f64>, most: Option<f64>) -> Option<f64> {
    asked.map(|asked| most.map_or(asked, |most| asked.min(most)))
}

/// Takes out media whose addresses the agent does not allow, wherever in the conversation; gives how many there were.
/// Bytes in the message itself and handles of the vendor's are no addresses.
pub fn admit_media(messages: &mut [Message], allowed: &[String]) -> usize {
    let mut left_out_count = 0;
    for message in messages {
        let (MessageBody::User { content } | MessageBody::Tool { content, .. }) = &mut message.body else {
            continue;
        };
        let Content::Parts(parts) = content else {
            continue;
        };
        for part in parts.iter_mut() {
            if media(part).is_some_and(|media| !is_admitted(&media.source, allowed)) {
                left_out_count += 1;
                *part = ContentPart::Text(TextPart {
                    text: LEFT_OUT.to_owned(),
                    id: None,
                    metadata: None,
                });
            }
        }
    }
    left_out_count
}

fn media(part: &ContentPart) -> Option<&MediaPart> {
    match part {
        ContentPart::Text(_) => None,
        ContentPart::Image(media)
        | ContentPart::Audio(media)
        | ContentPart::Video(media)
        | ContentPart::Document(media) => Some(media),
    }
}

fn is_admitted(source: &MediaSource, allowed: &[String]) -> bool {
    match source {
        MediaSource::Data { .. } | MediaSource::File { .. } => true,
        MediaSource::Url { value, .. } => {
            value.starts_with("data:") || allowed.iter().any(|entry| covers(entry, value))
        }
    }
}

/// Whether an entry, such as `https://cdn.example.com`, `https://*.example.com` or `https://*`, covers an address. An
/// address whose host could be read in two ways is covered by none.
fn covers(entry: &str, url: &str) -> bool {
    let (Some((scheme, wanted)), Some((of, rest))) =
        (parts::split_once(entry, "://"), parts::split_once(url, "://"))
    else {
        return false;
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let host = rest.get(..end).unwrap_or_default().to_ascii_lowercase();
    let is_plain =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b':' | b'[' | b']');
    if !of.eq_ignore_ascii_case(scheme) || host.is_empty() || !host.bytes().all(is_plain) {
        return false;
    }
    match wanted.strip_prefix('*') {
        Some("") => true,
        Some(suffix) => host.len() > suffix.len() && host.ends_with(suffix),
        None => host == wanted,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::read;

    fn agent(more: serde_json::Value) -> AgentConfig {
        let mut agent = json!({ "id": "a", "provider": "demo" });
        for (name, value) in more.as_object().unwrap() {
            agent[name] = value.clone();
        }
        serde_json::from_value(agent).unwrap()
    }

    #[test]
    fn settings_stay_within_the_agents_bounds() {
        let asked = ModelSettings {
            max_output_tokens: Some(9000),
            temperature: Some(1.9),
            top_k: Some(10),
            max_retries: Some(1_000_000),
            seed: Some(7),
            ..ModelSettings::default()
        };
        let bounds = agent(
            json!({ "modelSettingsMax": { "maxOutputTokens": 1000, "temperature": 0.5, "topK": 40, "topP": 0.9 } }),
        );
        assert_eq!(
            bounded(asked.clone(), &bounds),
            ModelSettings {
                max_output_tokens: Some(1000),
                temperature: Some(0.5),
                top_k: Some(10),
                max_retries: Some(10),
                seed: Some(7),
                ..ModelSettings::default()
            }
        );
        // Who asks for no length gets the longest there is; other settings stay the vendor's own.
        let none = bounded(ModelSettings::default(), &bounds);
        assert_eq!(none.max_output_tokens, Some(1000));
        assert_eq!(none.temperature, None);
        let unbounded = bounded(asked.clone(), &agent(json!({})));
        assert_eq!(unbounded.max_output_tokens, asked.max_output_tokens);
    }

    #[test]
    fn addresses_are_covered_by_scheme_and_host() {
        for (entry, url, is_covered) in [
            ("https://*", "https://any.test/a.png", true),
            ("https://*", "HTTPS://any.test", true),
            ("https://*", "http://any.test/a.png", false),
            ("https://*", "javascript:alert(1)", false),
            ("https://*", "file:///etc/passwd", false),
            ("https://*", "https://", false),
            ("https://cdn.example.com", "https://CDN.example.com/a?b#c", true),
            (
                "https://cdn.example.com",
                "https://cdn.example.com.evil.test/",
                false,
            ),
            (
                "https://cdn.example.com",
                "https://cdn.example.com@evil.test/",
                false,
            ),
            (
                "https://cdn.example.com",
                "https://evil.test\\@cdn.example.com/",
                false,
            ),
            (
                "https://cdn.example.com",
                "https://evil.test#cdn.example.com",
                false,
            ),
            ("https://cdn.example.com", "https://cdn.example.com:8443/", false),
            ("https://*.example.com", "https://a.example.com/", true),
            ("https://*.example.com", "https://example.com/", false),
            ("https://*.example.com", "https://.example.com/", false),
            ("https://*.example.com", "https://evilexample.com/", false),
            ("http://localhost:3000", "http://localhost:3000/a.png", true),
        ] {
            assert_eq!(covers(entry, url), is_covered, "{entry} {url}");
        }
    }

    #[test]
    fn what_is_not_allowed_is_said_to_the_model_in_its_place() {
        let part = |kind: &str, source: serde_json::Value| json!({ "type": kind, "source": source });
        let url = |url: &str| json!({ "type": "url", "value": url });
        let message = |role: &str| {
            let content = json!([
                { "type": "text", "text": "Look" },
                part("image", url("https://cdn.example.com/a.png")),
                part("document", url("http://169.254.169.254/latest")),
                part("image", url("data:image/png;base64,AA==")),
                part("image", json!({ "type": "data", "value": "AA==", "mimeType": "image/png" })),
            ]);
            let message = json!({ "id": role, "role": role, "toolCallId": "c", "content": content });
            read::from_value::<Message>(&message).unwrap()
        };
        let mut messages = [message("user"), message("tool")];
        assert_eq!(
            admit_media(&mut messages, &["https://cdn.example.com".to_owned()]),
            2
        );
        for message in &messages {
            let written = serde_json::to_value(message).unwrap();
            assert_eq!(written["content"][2], json!({ "type": "text", "text": LEFT_OUT }));
            assert_eq!(written["content"].as_array().unwrap().len(), 5);
        }
        assert_eq!(admit_media(&mut messages, &["https://*".to_owned()]), 0);
    }
}
