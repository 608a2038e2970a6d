//! Readings of message content, and the few words of our own, that codecs share.

use std::borrow::Cow;

use serde_json::{Map, Value};

use crate::protocol::forwarded_props::ModelSettings;
use crate::protocol::json;
use crate::protocol::message::{MediaPart, MediaSource};
use crate::protocol::parts;

/// The texts that are not blank, joined by blank lines; `None` when there is none.
pub fn join_texts<'a>(texts: impl Iterator<Item = &'a str>) -> Option<Cow<'a, str>> {
    let mut texts = texts.filter(|text| !is_blank(text));
    let first = Cow::Borrowed(texts.next()?);
    Some(texts.fold(first, |joined, text| joined + "\n\n" + text))
}

/// Whether a text has nothing but white space.
pub fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// A `data:` address of base64 text.
pub fn data_url(mime_type: &str, base64: &str) -> String {
    format!("data:{mime_type};base64,{base64}")
}

/// A media type without its parameters, in lower case.
pub fn essence(mime_type: &str) -> String {
    mime_type
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase()
}

/// The name a client gave a file: `metadata.filename`.
pub fn file_name(media: &MediaPart) -> Option<&str> {
    media
        .metadata
        .as_ref()?
        .get("filename")?
        .as_str()
        .filter(|name| !is_blank(name))
}

/// Call arguments as the object they are; nothing, or what is no object, is `{}` (B033).
pub fn arguments_object(arguments: &str) -> Value {
    Value::Object(json::object(arguments).unwrap_or_default())
}

/// The schema of a tool's arguments as vendors take it: OpenAI refuses one that does not say it is an object's, and an
/// object's without `properties`.
pub fn object_schema(parameters: Option<&Value>) -> Map<String, Value> {
    let mut schema = parameters.and_then(Value::as_object).cloned().unwrap_or_default();
    schema.entry("type").or_insert_with(|| "object".into());
    schema
        .entry("properties")
        .or_insert_with(|| Value::Object(Map::new()));
    schema
}

/// The settings under the names they have in forwardedProps, for upstreams that know the same; empty when none is set.
pub fn settings_object(settings: &ModelSettings) -> Map<String, Value> {
    json::object(&json::text(settings)).unwrap_or_default()
}

/// Where the bytes of media are, for vendors that have one place for bytes and another for addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MediaBytes<'a> {
    /// In the message.
    Base64 {
        /// Media type, its essence.
        mime_type: String,
        /// Base64 text.
        data: &'a str,
    },
    /// At an `https:` address, the only kind vendors fetch.
    Address {
        /// The address.
        url: &'a str,
        /// Media type, its essence, when the client gave one.
        mime_type: Option<String>,
    },
}

/// Reads a media source; `None` for what no vendor can take: handles of providers, addresses that are neither `https:` nor
/// base64 in a `data:` address.
pub fn media_bytes(source: &MediaSource) -> Option<MediaBytes<'_>> {
    match source {
        MediaSource::Data { value, mime_type } => Some(MediaBytes::Base64 {
            mime_type: essence(mime_type),
            data: value,
        }),
        MediaSource::Url { value, mime_type } => match value.strip_prefix("data:") {
            Some(inline) => {
                let (mime_type, data) = parts::split_once(inline, ";base64,")?;
                Some(MediaBytes::Base64 {
                    mime_type: essence(mime_type),
                    data,
                })
            }
            None => value.starts_with("https://").then(|| MediaBytes::Address {
                url: value,
                mime_type: mime_type.as_deref().map(essence),
            }),
        },
        MediaSource::File { .. } => None,
    }
}

/// System text for models that cannot be bound to a schema.
pub fn answer_by_schema(schema: &Value) -> String {
    format!(
        "When you give your answer, write only JSON text that fits this JSON Schema, with no words around it and no code fence:\n{}",
        json::text(schema)
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::protocol::read;

    #[test]
    fn media_are_bytes_or_an_address_a_vendor_may_fetch() {
        let read = |source: Value| {
            let source: MediaSource = read::from_value(&source).unwrap();
            media_bytes(&source).map(|bytes| format!("{bytes:?}"))
        };
        let url = |value: &str| read(json!({ "type": "url", "value": value, "mimeType": "Image/PNG; a=b" }));
        let bytes = r#"Base64 { mime_type: "image/png", data: "QUJD" }"#;
        let data = json!({ "type": "data", "value": "QUJD", "mimeType": "image/PNG" });
        assert_eq!(read(data).as_deref(), Some(bytes));
        assert_eq!(url("data:image/png;base64,QUJD").as_deref(), Some(bytes));
        let address = r#"Address { url: "https://x.test/a", mime_type: Some("image/png") }"#;
        assert_eq!(url("https://x.test/a").as_deref(), Some(address));
        assert_eq!(url("http://x.test/a"), None);
        assert_eq!(url("data:text/plain,hi"), None);
        assert_eq!(
            read(json!({ "type": "file", "value": "f", "provider": "openai" })),
            None
        );
    }

    #[test]
    fn arguments_are_an_object_whatever_was_stored() {
        assert_eq!(arguments_object(r#"{"n":1.0}"#).to_string(), r#"{"n":1.0}"#);
        for text in ["", "null", "[1]", "{\"a\":"] {
            assert_eq!(arguments_object(text), json!({}), "{text}");
        }
    }
}
