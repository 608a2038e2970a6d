//! Trace context: which trace a request belongs to. Source: W3C Trace Context 1, `traceparent`.

/// Name of the header, in and out.
pub const HEADER: &str = "traceparent";

const SAMPLED: u8 = 1;

/// The trace of a request, from its caller or begun here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// 32 digits, hexadecimal in lower case, not all zero.
    id: String,
    flags: u8,
}

impl Trace {
    /// Reads `00-<trace id>-<parent id>-<flags>`, or what a later version has in its place; `None` for anything else:
    /// a header that cannot be read counts as absent.
    pub fn parse(header: &str) -> Option<Self> {
        let mut parts = header.trim().splitn(5, '-');
        let version = hex(parts.next()?, 2)?;
        let id = hex(parts.next()?, 32)?;
        let parent = hex(parts.next()?, 16)?;
        let flags = hex(parts.next()?, 2)?;
        let is_later = version != "00";
        if version == "ff" || is_zero(id) || is_zero(parent) || (parts.next().is_some() && !is_later) {
            return None;
        }
        Some(Self {
            id: id.to_owned(),
            // Of the flags of a later version only this one is known here.
            flags: u8::try_from(u64::from_str_radix(flags, 16).ok()?).ok()? & SAMPLED,
        })
    }

    /// A trace that begins here; whoever is called may record it.
    pub fn begin(random: u128) -> Self {
        Self {
            id: format!("{:032x}", random.max(1)),
            flags: SAMPLED,
        }
    }

    /// The trace id, for the log.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The header for a call of ours: the same trace, a span of its own.
    pub fn header(&self, span: u64) -> String {
        format!("00-{}-{:016x}-{:02x}", self.id, span.max(1), self.flags)
    }
}

fn hex(text: &str, digits: usize) -> Option<&str> {
    let is_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    (text.len() == digits && text.bytes().all(is_hex)).then_some(text)
}

fn is_zero(text: &str) -> bool {
    text.bytes().all(|byte| byte == b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    #[test]
    fn a_call_of_ours_has_the_callers_trace_and_a_span_of_its_own() {
        let trace = Trace::parse(&format!("00-{ID}-00f067aa0ba902b7-01")).unwrap();
        assert_eq!(trace.id(), ID);
        assert_eq!(trace.header(0xab), format!("00-{ID}-00000000000000ab-01"));
        assert_eq!(trace.header(0), format!("00-{ID}-0000000000000001-01"));
        let unsampled = Trace::parse(&format!(" 00-{ID}-00f067aa0ba902b7-02 ")).unwrap();
        assert_eq!(unsampled.header(1), format!("00-{ID}-0000000000000001-00"));
        let later = Trace::parse(&format!("cc-{ID}-00f067aa0ba902b7-01-what-else")).unwrap();
        assert_eq!(later.id(), ID);
    }

    #[test]
    fn a_trace_may_begin_here() {
        let begun = Trace::begin(0xf);
        assert_eq!(begun.header(2), format!("00-{:032x}-{:016x}-01", 15, 2));
        assert_eq!(Trace::parse(&begun.header(2)), Some(begun));
        assert_eq!(Trace::begin(0).id(), format!("{:032x}", 1));
    }

    #[test]
    fn what_is_no_trace_context_is_ignored() {
        let upper = ID.to_uppercase();
        for header in [
            String::new(),
            "00".to_owned(),
            format!("00-{ID}-00f067aa0ba902b7"),
            format!("00-{ID}-00f067aa0ba902b7-01-more"),
            format!("ff-{ID}-00f067aa0ba902b7-01"),
            format!("0-{ID}-00f067aa0ba902b7-01"),
            format!("00-{upper}-00f067aa0ba902b7-01"),
            format!("00-{ID}0-00f067aa0ba902b7-01"),
            format!("00-{ID}-00f067aa0ba902b-01"),
            format!("00-{}-00f067aa0ba902b7-01", "0".repeat(32)),
            format!("00-{ID}-0000000000000000-01"),
            format!("00-{ID}-00f067aa0ba902b7-0g"),
        ] {
            assert_eq!(Trace::parse(&header), None, "{header}");
        }
    }
}
