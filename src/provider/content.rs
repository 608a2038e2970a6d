//! Readings of message content, and the few words of our own, that codecs share.

use std::borrow::Cow;

use serde_json::Value;

use crate::protocol::message::MediaPart;

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
    serde_json::from_str(arguments)
        .ok()
        .filter(Value::is_object)
        .unwrap_or_else(|| Value::Object(serde_json::Map::new()))
}

/// System text for models that cannot be bound to a schema.
pub fn answer_by_schema(schema: &Value) -> String {
    format!(
        "When you give your answer, write only JSON text that fits this JSON Schema, with no words around it and no code fence:\n{schema}"
    )
}
