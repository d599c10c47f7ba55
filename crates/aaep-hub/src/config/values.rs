//! Values of the configuration that have a form of their own. One that exists is well formed.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use ipnet::IpNet;
use serde::{Deserialize, Deserializer, Serialize, de};

/// Reads addresses to listen on, and says how one is written.
pub(super) fn addresses<'de, D>(deserializer: D) -> Result<Vec<SocketAddr>, D::Error>
where
    D: Deserializer<'de>,
{
    let texts = Vec::<String>::deserialize(deserializer)?;
    let address = |text: &String| {
        text.parse().map_err(|_| {
            de::Error::custom(format!(
                "{text:?} is no address; one is written with its port, such as `127.0.0.1:8707` or `[::1]:8707`, and without names",
            ))
        })
    };
    texts.iter().map(address).collect()
}

/// Gives a type that is a checked string its common interface: read and written as text.
macro_rules! checked_text {
    ($name:ident) => {
        impl $name {
            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl TryFrom<String> for $name {
            type Error = &'static str;

            fn try_from(text: String) -> Result<Self, Self::Error> {
                Self::parse(&text)
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.0
            }
        }
    };
}

/// A language that agents behind the hub speak, such as `en` or `yo-NG`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Language(String);
checked_text!(Language);

impl Language {
    /// Reads a language tag.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        match aaep_types::LanguageTag::parse(text) {
            Ok(_) => Ok(Self(text.to_owned())),
            Err(_) => Err("this is no language tag; `en` and `yo-NG` are"),
        }
    }

    /// The tag itself.
    pub(crate) fn parsed(&self) -> Option<aaep_types::LanguageTag<'static>> {
        aaep_types::LanguageTag::parse(self.0.clone()).ok()
    }
}

/// The path under which the protocol's paths live: `/aaep/v1`, or nothing for the root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BasePath(String);

impl BasePath {
    /// The longest base path, in bytes.
    pub const MAX_BYTES: usize = 128;

    /// Reads a path such as `/aaep/v1`; `/` is the root, whose text is empty.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text == "/" {
            return Ok(Self(String::new()));
        }
        let segment = |part: &str| {
            !part.is_empty()
                && !part.bytes().all(|c| c == b'.')
                && part.bytes().all(|c| c.is_ascii_alphanumeric() || b"-._~".contains(&c))
        };
        match text.strip_prefix('/') {
            Some(rest) if text.len() <= Self::MAX_BYTES && rest.split('/').all(segment) => {
                Ok(Self(text.to_owned()))
            }
            _ => Err(
                "a base path begins with a slash, ends without one, and has only ASCII letters, digits and -._~ between slashes",
            ),
        }
    }

    /// Without a slash at its end, so that `{base}/events` is a path; empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for BasePath {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<BasePath> for String {
    fn from(value: BasePath) -> Self {
        if value.0.is_empty() { "/".into() } else { value.0 }
    }
}

impl Default for BasePath {
    fn default() -> Self {
        Self("/aaep/v1".into())
    }
}

/// A host as requests name it: a name or an address, with a port or without, in lower case.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostName(String);
checked_text!(HostName);

impl HostName {
    /// Reads `hub.example.org`, `hub.example.org:8443`, `192.0.2.1` or `[2001:db8::1]:8443`.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let text = text.to_ascii_lowercase();
        let (name, port) = split_port(&text);
        let port_fits = port.is_none_or(|port| {
            !port.starts_with('0')
                && port.bytes().all(|c| c.is_ascii_digit())
                && port.parse::<u16>().is_ok()
        });
        let name = if is_dns_name(name) { Some(name.to_owned()) } else { address(name) };
        match (name, port) {
            (Some(name), Some(port)) if port_fits => Ok(Self(format!("{name}:{port}"))),
            (Some(name), None) => Ok(Self(name)),
            _ => Err(
                "a host is an exact name or address, with or without a port, such as `hub.example.org` or `[2001:db8::1]:8443`; no scheme, path or pattern",
            ),
        }
    }

    /// Whether it names a port.
    pub fn has_port(&self) -> bool {
        split_port(&self.0).1.is_some()
    }
}

/// Splits a port off; the colons of a bare IPv6 address stay where they are and fail later.
fn split_port(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, Some(port)),
        _ => (text, None),
    }
}

/// Whether this is a name of DNS in its ASCII form. All-digit names are left to [`address`], so
/// that `127.1` is neither.
fn is_dns_name(text: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|c| c.is_ascii_alphanumeric() || c == b'-' || c == b'_')
    };
    let last = text.rsplit('.').next().unwrap_or_default();
    text.len() <= 253
        && text.split('.').all(label)
        && !last.bytes().all(|c| c.is_ascii_digit())
        && !last.starts_with("0x")
}

/// An address as requests write it, in its shortest form, as browsers do.
fn address(text: &str) -> Option<String> {
    match text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(inner) => Ipv6Addr::from_str(inner).ok().map(|address| format!("[{address}]")),
        None => Ipv4Addr::from_str(text).ok().map(|address| address.to_string()),
    }
}

/// The origin of a web page, as browsers write it: scheme, host, and the port unless it is the
/// scheme's own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct WebOrigin(String);
checked_text!(WebOrigin);

impl WebOrigin {
    /// Reads `https://app.example.org` or `http://localhost:3000`.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        const WRONG: &str = "an origin is written as browsers send it, such as `https://app.example.org` or `http://localhost:3000`: no path, no pattern, and no port 443 for https or 80 for http";
        let text = text.to_ascii_lowercase();
        let (host, own_port) = match text.split_once("://") {
            Some(("https", host)) => (host, ":443"),
            Some(("http", host)) => (host, ":80"),
            _ => return Err(WRONG),
        };
        // A port that browsers leave out would make an entry that never matches.
        if HostName::parse(host).is_err() || host.ends_with(own_port) {
            return Err(WRONG);
        }
        Ok(Self(text))
    }
}

/// A proxy, or a network of proxies, that terminates TLS before the hub.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ProxyNet(IpNet);

impl ProxyNet {
    /// Reads an address, `192.0.2.7`, or a network, `10.0.0.0/8`.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let net = match IpAddr::from_str(text) {
            Ok(address) => IpNet::from(address),
            Err(_) => IpNet::from_str(text).map_err(
                |_| "a proxy is named by its address, `192.0.2.7`, or its network, `10.0.0.0/8`",
            )?,
        };
        // Everybody would be believed about where they come from.
        if net.prefix_len() == 0 {
            return Err("a network of everybody is no proxy; name the proxy's own address");
        }
        Ok(Self(net))
    }

    /// Whether this address is one of it. IPv4 addresses written as IPv6 are the same addresses.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }

    /// Whether it is on this machine.
    pub fn is_loopback(&self) -> bool {
        self.0.network().is_loopback() && self.0.broadcast().is_loopback()
    }
}

impl TryFrom<String> for ProxyNet {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text)
    }
}

impl From<ProxyNet> for String {
    fn from(value: ProxyNet) -> Self {
        let net = value.0;
        if net.prefix_len() == net.max_prefix_len() {
            net.addr().to_string()
        } else {
            net.to_string()
        }
    }
}

/// The name of a principal, a user or an agent: something that can stand in a log line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Label(String);
checked_text!(Label);

impl Label {
    /// The longest name, in bytes.
    pub const MAX_BYTES: usize = 128;

    /// Reads a name.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        let fits = (1..=Self::MAX_BYTES).contains(&text.len())
            && text.trim() == text
            && !text.chars().any(char::is_control);
        if fits {
            Ok(Self(text.to_owned()))
        } else {
            Err("a name has 1 to 128 bytes, no control characters, and no spaces around it")
        }
    }

    /// One that is known to be well formed.
    pub(super) fn fixed(text: &'static str) -> Self {
        Self(text.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_path_is_plain() {
        for good in ["/aaep/v1", "/a", "/x-y_z/1.0"] {
            assert_eq!(BasePath::parse(good).unwrap().as_str(), good);
        }
        let root = BasePath::parse("/").unwrap();
        assert_eq!((root.as_str(), String::from(root.clone()).as_str()), ("", "/"));
        let long = format!("/{}", "a".repeat(BasePath::MAX_BYTES));
        for bad in [
            "", "aaep", "/aaep/", "//", "/a//b", "/../x", "/.", "/{id}", "/a b", "/a?b", "/é",
            &long,
        ] {
            assert!(BasePath::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_host_is_exact() {
        for good in [
            "localhost",
            "Hub.Example.org",
            "hub:8443",
            "192.0.2.1:80",
            "[::1]",
            "[2001:db8::1]:8443",
        ] {
            assert_eq!(HostName::parse(good).unwrap().as_str(), good.to_ascii_lowercase());
        }
        let long = HostName::parse("[2001:DB8:0:0::1]:8443").unwrap();
        assert_eq!(long.as_str(), "[2001:db8::1]:8443");
        let bad = [
            "",
            "*",
            "*.example.org",
            ".example.org",
            "example.org.",
            "http://x",
            "x/",
            "x:0",
            "x:080",
            "x:65536",
            "x:+80",
            "x:",
            "::1",
            "::1:80",
            "[::1",
            "user@x",
            "x y",
            "127.1",
            "0x7f000001",
            "2130706433",
            "bücher.de",
            "-a",
            "a..b",
            "[127.0.0.1]",
            "[::1%lo]",
        ];
        for bad in bad {
            assert!(HostName::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_origin_is_written_as_browsers_send_it() {
        for good in [
            "https://app.example.org",
            "http://localhost:3000",
            "http://[::1]:3000",
            "https://x:80",
        ] {
            assert_eq!(WebOrigin::parse(good).unwrap().as_str(), good);
        }
        let bad = [
            "null",
            "*",
            "",
            "app.example.org",
            "https://",
            "https://x/",
            "https://x:443",
            "http://x:80",
            "ftp://x",
            "https://u@x",
            "https://*.x.org",
        ];
        for bad in bad {
            assert!(WebOrigin::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_proxy_is_an_address_or_a_network_but_never_everybody() {
        let is_in = |net: &str, address: &str| {
            ProxyNet::parse(net).unwrap().contains(address.parse().unwrap())
        };
        assert!(is_in("192.0.2.7", "192.0.2.7") && !is_in("192.0.2.7", "192.0.2.8"));
        assert!(is_in("10.0.0.0/8", "10.9.8.7") && is_in("10.0.0.0/8", "::ffff:10.9.8.7"));
        assert!(is_in("2001:db8::/32", "2001:db8::5") && !is_in("2001:db8::/32", "10.0.0.1"));
        for bad in ["0.0.0.0/0", "::/0", "", "proxy", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0:80"] {
            assert!(ProxyNet::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(String::from(ProxyNet::parse("192.0.2.7").unwrap()), "192.0.2.7");
        assert_eq!(String::from(ProxyNet::parse("10.0.0.0/8").unwrap()), "10.0.0.0/8");
    }

    #[test]
    fn a_label_stays_on_one_line() {
        for good in ["ann", "ann@example.org", "Frau Müller"] {
            assert_eq!(Label::parse(good).unwrap().as_str(), good);
        }
        for bad in ["", " ann", "ann ", "a\nb", "a\u{1b}[2J", &"a".repeat(129)] {
            assert!(Label::parse(bad).is_err(), "{bad:?}");
        }
    }
}
