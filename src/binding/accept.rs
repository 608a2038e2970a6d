//! Which binding an Accept header asks for (D13).

use crate::protocol::read::words;
use serde::Serialize;

use crate::platform::parse_double;

/// How a run's events are framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Binding {
    /// `text/event-stream`.
    Sse,
    /// Length-prefixed protobuf messages.
    Protobuf,
}

words!(Binding: "sse" => Sse, "protobuf" => Protobuf);

/// The protobuf media type, and the exact content type of its answers. Source: D13.
pub const PROTOBUF_MEDIA_TYPE: &str = "application/vnd.ag-ui.event+proto";

impl Binding {
    /// The content type of the stream, without parameters: clients compare the whole header. Source: AG-UI PB-4.
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Sse => "text/event-stream",
            Self::Protobuf => PROTOBUF_MEDIA_TYPE,
        }
    }

    /// Decides from the value of an Accept header; several headers are joined by commas.
    ///
    /// Protobuf only when the header names it with a positive quality: a wildcard, another parameter than `q`, a
    /// quality that is no number, or no header is SSE. Source: D13, AG-UI 4.
    pub fn from_accept(accept: Option<&str>) -> Self {
        let names_protobuf = accept.is_some_and(|accept| accept.split(',').any(is_protobuf));
        if names_protobuf { Self::Protobuf } else { Self::Sse }
    }
}

fn is_protobuf(range: &str) -> bool {
    let mut parts = range.split(';').map(str::trim);
    parts
        .next()
        .is_some_and(|name| name.eq_ignore_ascii_case(PROTOBUF_MEDIA_TYPE))
        && parts.all(|parameter| {
            parameter
                .split_once('=')
                .is_some_and(|(name, value)| name.eq_ignore_ascii_case("q") && is_positive(value))
        })
}

/// A double may have an exponent, which a quality has not.
fn is_positive(quality: &str) -> bool {
    quality
        .chars()
        .all(|character| character.is_ascii_digit() || character == '.')
        && parse_double(quality).is_some_and(|quality| quality > 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protobuf_is_served_only_to_those_who_name_it() {
        let table = [
            (None, Binding::Sse),
            (Some(""), Binding::Sse),
            (Some("*/*"), Binding::Sse),
            (Some("application/*"), Binding::Sse),
            (Some("text/*"), Binding::Sse),
            (Some("application/json"), Binding::Sse),
            (Some("text/event-stream"), Binding::Sse),
            (Some("application/vnd.ag-ui.event+proto"), Binding::Protobuf),
            (Some("Application/VND.ag-ui.Event+Proto"), Binding::Protobuf),
            (
                Some("text/event-stream, application/vnd.ag-ui.event+proto"),
                Binding::Protobuf,
            ),
            (
                Some("application/vnd.ag-ui.event+proto ; q=0.1, text/event-stream"),
                Binding::Protobuf,
            ),
            (Some("application/vnd.ag-ui.event+proto;Q=1"), Binding::Protobuf),
            (Some("application/vnd.ag-ui.event+proto;q=0"), Binding::Sse),
            (
                Some("application/vnd.ag-ui.event+proto;q=0.000, */*"),
                Binding::Sse,
            ),
            (Some("application/vnd.ag-ui.event+proto;q=high"), Binding::Sse),
            (Some("application/vnd.ag-ui.event+proto;q=inf"), Binding::Sse),
            (Some("application/vnd.ag-ui.event+proto;q="), Binding::Sse),
            (Some("application/vnd.ag-ui.event+proto;q=-1"), Binding::Sse),
            (Some("application/vnd.ag-ui.event+proto;version=2"), Binding::Sse),
            (Some("application/vnd.ag-ui.event+protobuf"), Binding::Sse),
        ];
        for (accept, binding) in table {
            assert_eq!(Binding::from_accept(accept), binding, "{accept:?}");
        }
    }
}
