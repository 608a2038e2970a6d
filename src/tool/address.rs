//! Where a server tool may send a request: never to a host of a private network, unless the configuration names it.
//!
//! Reads addresses more strictly than the platform does: what the two could read differently is refused. A name that
//! resolves to a private address cannot be seen here; the platform does not route to such addresses.

use crate::protocol::parts;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Longest address, in bytes: the platform takes 16 KiB.
const ADDRESS_MAX_BYTES: usize = 16 * 1024;

/// Names that only mean something inside a network.
const PRIVATE_SUFFIXES: &[&str] = &[
    ".localhost",
    ".local",
    ".internal",
    ".intranet",
    ".lan",
    ".home",
    ".corp",
    ".arpa",
    ".test",
];

/// An `http` or `https` address taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Address<'a> {
    /// Whether the scheme is `https`.
    pub is_secure: bool,
    /// Host as it is written, an IPv6 address with its brackets.
    pub host: &'a str,
    /// Port as it is written; empty = the scheme's.
    pub port: &'a str,
    /// Path, query and fragment.
    pub rest: &'a str,
}

impl<'a> Address<'a> {
    /// Takes an address apart; `None` for another scheme, a user name, or anything read in more than one way.
    pub fn parse(text: &'a str) -> Option<Self> {
        let is_odd = |c: char| c == '\\' || c.is_whitespace() || c.is_control();
        if text.len() > ADDRESS_MAX_BYTES || text.contains(is_odd) {
            return None;
        }
        let (scheme, rest) = parts::split_once(text, "://")?;
        let is_secure = scheme.eq_ignore_ascii_case("https");
        if !is_secure && !scheme.eq_ignore_ascii_case("http") {
            return None;
        }
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at_checked(end)?;
        let (host, port) = match authority.strip_prefix('[') {
            Some(inside) => {
                let (inside, port) = inside.split_once(']')?;
                let host = authority.get(..inside.len() + 2)?;
                (host, port.strip_prefix(':').or(port.is_empty().then_some(""))?)
            }
            None => authority.split_once(':').unwrap_or((authority, "")),
        };
        let is_port = port.len() <= 5 && port.bytes().all(|byte| byte.is_ascii_digit());
        (is_host(host) && is_port).then_some(Self {
            is_secure,
            host,
            port,
            rest,
        })
    }

    /// Whether the host is of a private network, the machine itself, or of no public use.
    pub fn is_private(&self) -> bool {
        let host = self.host.to_ascii_lowercase();
        let host = host.strip_suffix('.').unwrap_or(&host);
        if let Some(inside) = host.strip_prefix('[') {
            let address = inside.trim_end_matches(']').parse();
            return address.map_or(true, |address: Ipv6Addr| is_private_v6(&address));
        }
        let last = host.rsplit('.').next().unwrap_or_default();
        if is_number(last) {
            return ipv4(host).is_none_or(|address| is_private_v4(&address));
        }
        !host.contains(['.']) || PRIVATE_SUFFIXES.iter().any(|suffix| host.ends_with(suffix))
    }

    /// Whether two addresses lead to the same server: scheme, host and port.
    pub fn has_origin_of(&self, other: &Address<'_>) -> bool {
        self.is_secure == other.is_secure
            && self.host.eq_ignore_ascii_case(other.host)
            && self.port_or_default() == other.port_or_default()
    }

    fn port_or_default(&self) -> &str {
        match (self.port, self.is_secure) {
            ("", true) => "443",
            ("", false) => "80",
            (port, true | false) => port,
        }
    }

    /// The address a `Location` header means, seen from this one; `None` when it cannot be read safely.
    pub fn resolve(&self, location: &str) -> Option<String> {
        let (location, _) = location.split_once('#').unwrap_or((location, ""));
        let scheme = if self.is_secure { "https" } else { "http" };
        let before_path = location.split(['/', '?']).next().unwrap_or_default();
        let resolved = if before_path.contains([':']) {
            location.to_owned()
        } else if location.starts_with("//") {
            format!("{scheme}:{location}")
        } else {
            let port = if self.port.is_empty() { "" } else { ":" };
            let origin = format!("{scheme}://{}{port}{}", self.host, self.port);
            let path = self.rest.split(['?', '#']).next().unwrap_or_default();
            let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            match location.chars().next() {
                Some('/') => format!("{origin}{location}"),
                Some('?') => format!("{origin}{path}{location}"),
                Some(_) => format!("{origin}{folder}/{location}"),
                None => return None,
            }
        };
        Address::parse(&resolved).is_some().then_some(resolved)
    }
}

fn is_host(host: &str) -> bool {
    if let Some(inside) = host.strip_prefix('[') {
        return inside
            .strip_suffix(']')
            .is_some_and(|inside| inside.parse::<Ipv6Addr>().is_ok());
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let name = host.strip_suffix('.').unwrap_or(host);
    host.bytes().all(is_plain) && name.split('.').all(|label| !label.is_empty())
}

/// Whether a last label makes the whole host an IPv4 address. Source: WHATWG URL, "ends in a number".
fn is_number(label: &str) -> bool {
    label.bytes().all(|byte| byte.is_ascii_digit()) || number(label).is_some()
}

/// Decimal, `0x` hexadecimal or `0` octal, as the platform reads them.
fn number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None if text.len() > 1 && text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    if digits.is_empty() {
        return (radix == 16).then_some(0);
    }
    digits
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric())
        .then(|| u64::from_str_radix(digits, radix).ok())?
}

/// An IPv4 address in any of its spellings, such as `0x7f.1`.
fn ipv4(host: &str) -> Option<Ipv4Addr> {
    let mut parts = Vec::new();
    for part in host.split('.') {
        parts.push(number(part)?);
    }
    let (last, first) = parts.split_last()?;
    let room = 4_u32.checked_sub(u32::try_from(first.len()).ok()?)?;
    if *last >= 256_u64.checked_pow(room)? || first.iter().any(|part| *part > 255) {
        return None;
    }
    let high = first.iter().fold(0, |sum, part| sum * 256 + part);
    u32::try_from(high * 256_u64.pow(room) + last)
        .ok()
        .map(Ipv4Addr::from_bits)
}

/// Source: IANA IPv4 Special-Purpose Address Registry.
fn is_private_v4(address: &Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || a == 0
        || a >= 224
        || (a == 100 && (64..128).contains(&b))
        || (a, b, c) == (192, 0, 0)
        || (a == 198 && (18..20).contains(&b))
}

/// Only global unicast is public, and of it neither documentation nor what wraps an IPv4 address (Teredo, 6to4).
fn is_private_v6(address: &Ipv6Addr) -> bool {
    let [first, second, ..] = address.segments();
    !(0x2000..0x4000).contains(&first)
        || first == 0x2002
        || (first, second) == (0x2001, 0)
        || (first, second) == (0x2001, 0xdb8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_private(host: &str) -> bool {
        let url = format!("http://{host}/");
        Address::parse(&url)
            .unwrap_or_else(|| panic!("{host}"))
            .is_private()
    }

    #[test]
    fn private_hosts_are_known_in_every_spelling() {
        for host in [
            "localhost",
            "LocalHost.",
            "a.localhost",
            "printer.local",
            "metadata.google.internal",
            "intranet",
            "127.0.0.1",
            "127.1",
            "2130706433",
            "0x7f.1",
            "0177.0.0.1",
            "0x7f000001",
            "0.0.0.0",
            "0x",
            "10.1.2.3",
            "100.64.0.1",
            "169.254.169.254",
            "172.31.255.255",
            "192.168.1.1",
            "192.0.0.8",
            "198.19.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "1.2.3.4.5",
            "1.2.3.256",
            "08.1.1.1",
            "[::]",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "[64:ff9b::7f00:1]",
            "[fd00::1]",
            "[fe80::1]",
            "[ff02::1]",
            "[2001:db8::1]",
            "[2002:7f00:1::]",
        ] {
            assert!(is_private(host), "{host}");
        }
    }

    #[test]
    fn public_hosts_are_public() {
        for host in [
            "example.com",
            "example.com.",
            "api.example.com:8443",
            "8.8.8.8",
            "134744072",
            "172.32.0.1",
            "100.128.0.1",
            "[2606:4700::1111]",
            "1.1.1.1.example.com",
            "local.example.com",
        ] {
            assert!(!is_private(host), "{host}");
        }
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_no_address() {
        for url in [
            "ftp://example.com/",
            "http:example.com",
            "http:///example.com",
            "http://user@example.com/",
            "http://a:b@example.com/",
            "http://example.com:80:80/",
            "http://example.com:99999999/",
            "http://exa mple.com/",
            "http:\\\\example.com",
            "http://exam\tple.com",
            "http://ex%61mple.com/",
            "http://b\u{fc}cher.example/",
            "http://[::1/",
            "http://[::1]x/",
            "http://[fe80::1%25eth0]/",
            "http://a..b/",
            "http://",
            "/path",
        ] {
            assert_eq!(Address::parse(url), None, "{url}");
        }
    }

    #[test]
    fn locations_are_read_as_a_browser_reads_them() {
        let from = Address::parse("https://example.com:8443/a/b?c=d").unwrap();
        for (location, resolved) in [
            ("/x?y#z", Some("https://example.com:8443/x?y")),
            ("x", Some("https://example.com:8443/a/x")),
            ("?e=f", Some("https://example.com:8443/a/b?e=f")),
            ("//other.example/x", Some("https://other.example/x")),
            ("http://other.example", Some("http://other.example")),
            ("x/y:z", Some("https://example.com:8443/a/x/y:z")),
            ("http:/x", None),
            ("javascript:alert(1)", None),
            ("", None),
            ("#top", None),
        ] {
            assert_eq!(from.resolve(location).as_deref(), resolved, "{location}");
        }
    }

    #[test]
    fn an_origin_is_scheme_host_and_port() {
        let origin = Address::parse("https://example.com/a").unwrap();
        for (url, is_same) in [
            ("https://EXAMPLE.com:443/b", true),
            ("http://example.com/a", false),
            ("https://example.com:8443/a", false),
            ("https://www.example.com/a", false),
        ] {
            assert_eq!(
                Address::parse(url).unwrap().has_origin_of(&origin),
                is_same,
                "{url}"
            );
        }
    }
}
