//! Where a hub is, and what to show it.

use std::fmt;
#[cfg(unix)]
use std::path::PathBuf;
use std::sync::Arc;

use aaep_transport::client::{ClientError, Options, Token};

use super::trust::Trust;

/// The path under which a hub's paths live when an address names none.
const BASE: &str = "/aaep/v1";

/// A hub to listen to.
#[derive(Clone, Debug)]
pub struct Hub {
    /// What the user knows it by.
    pub name: Arc<str>,
    /// Where it is.
    pub address: Address,
    /// Token, certificates and waiting times.
    pub options: Options,
    /// Whose signed manifests are believed; `None`: nobody looks.
    pub trust: Option<Trust>,
}

/// Where a hub is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Address {
    /// Events as a stream over HTTP, replies as requests: a base such as
    /// `https://hub.example/aaep/v1`.
    Http(String),
    /// A WebSocket, such as `wss://hub.example/aaep/v1/ws`.
    WebSocket(String),
    /// gRPC, such as `grpcs://hub.example:8708`.
    Grpc(String),
    /// A program that is started, and spoken with over its standard input and output.
    Stdio(String),
    /// A Unix socket of this user.
    #[cfg(unix)]
    Socket(PathBuf),
    /// A named pipe, such as `\\.\pipe\aaep\hub`.
    #[cfg(windows)]
    Pipe(String),
}

/// A text that is no address of a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoAddress(pub String);

impl fmt::Display for NoAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.escape_debug();
        write!(
            f,
            "{text} is no address of a hub. Write one like http://127.0.0.1:8707, \
             wss://hub.example, grpcs://hub.example:8708, unix:/run/user/1000/aaep/aaep-hub.sock \
             or stdio:COMMAND."
        )
    }
}

impl std::error::Error for NoAddress {}

impl Hub {
    /// Reads an address: `http://`, `https://`, `ws://`, `wss://`, `grpc://`, `grpcs://`, `unix:` and a
    /// path, `stdio:` and the command that starts a producer, or on Windows `pipe:` and a name.
    pub fn parse(text: &str) -> Result<Self, NoAddress> {
        let wrong = || NoAddress(text.to_owned());
        let address = if let Some(path) = text.strip_prefix("unix:") {
            socket(path).ok_or_else(wrong)?
        } else if let Some(name) = text.strip_prefix("pipe:") {
            pipe(name).ok_or_else(wrong)?
        } else if let Some(command) = text.strip_prefix("stdio:") {
            let command = Some(command.trim()).filter(|command| !command.is_empty());
            Address::Stdio(command.ok_or_else(wrong)?.to_owned())
        } else {
            let uri: http::Uri = text.parse().map_err(|_| wrong())?;
            let (scheme, authority) = (uri.scheme_str(), uri.authority());
            let (scheme, authority) = scheme.zip(authority).ok_or_else(wrong)?;
            let base = match uri.path().trim_end_matches('/') {
                "" => BASE,
                base => base,
            };
            match scheme {
                "http" | "https" => Address::Http(format!("{scheme}://{authority}{base}")),
                "ws" | "wss" => {
                    let end = if base.ends_with("/ws") { "" } else { "/ws" };
                    Address::WebSocket(format!("{scheme}://{authority}{base}{end}"))
                }
                // A port has to be named: nobody has agreed on one.
                "grpc" | "grpcs" if uri.port().is_some() && uri.path().len() <= 1 => {
                    Address::Grpc(format!("{scheme}://{authority}"))
                }
                _ => return Err(wrong()),
            }
        };
        Ok(Self { name: text.into(), address, options: Options::default(), trust: None })
    }

    /// The hub at this Unix socket.
    #[cfg(unix)]
    pub fn at_socket(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let name = path.display().to_string().into();
        Self { name, address: Address::Socket(path), options: Options::default(), trust: None }
    }

    /// The same under another name.
    pub fn named(mut self, name: &str) -> Self {
        self.name = name.into();
        self
    }

    /// The same with a token to show.
    pub fn token(mut self, token: &str) -> Result<Self, ClientError> {
        self.options.token = Some(Token::parse(token)?);
        Ok(self)
    }

    /// The same, looking at whether its manifest is signed, and by whom.
    pub fn identified(mut self, trust: Trust) -> Self {
        self.trust = Some(trust);
        self
    }

    /// What its key is remembered under: host and port, or the socket.
    pub fn place(&self) -> String {
        match &self.address {
            Address::Http(url) | Address::WebSocket(url) | Address::Grpc(url) => {
                let rest = url.split_once("://").map_or(&**url, |(_, rest)| rest);
                rest.split('/').next().unwrap_or_default().to_owned()
            }
            Address::Stdio(command) => format!("stdio:{command}"),
            #[cfg(unix)]
            Address::Socket(path) => format!("unix:{}", path.display()),
            #[cfg(windows)]
            Address::Pipe(path) => format!("pipe:{path}"),
        }
    }

    /// Whether it is on this machine, where the kernel says whose it is.
    pub(super) fn is_local(&self) -> bool {
        match &self.address {
            // We started it ourselves.
            Address::Stdio(_) => true,
            #[cfg(unix)]
            Address::Socket(_) => true,
            // Nobody can tell whose it is.
            #[cfg(windows)]
            Address::Pipe(_) => false,
            Address::Http(url) | Address::WebSocket(url) | Address::Grpc(url) => {
                let uri = url.parse::<http::Uri>().ok();
                let host = uri.as_ref().and_then(http::Uri::host).unwrap_or_default();
                let ip = host.trim_matches(['[', ']']).parse::<std::net::IpAddr>();
                host == "localhost" || ip.is_ok_and(|ip| ip.is_loopback())
            }
        }
    }

    /// The same, trusting whatever listens on a loopback address, whichever user runs it: for
    /// containers and the like, where nobody can tell. Every user of the machine could then pass for
    /// the hub.
    pub fn trust_loopback(mut self) -> Self {
        self.options.trust_loopback = true;
        self
    }

    /// The same, trusting also these certificates, in PEM: for a hub that signed its own.
    pub fn trust_pem(mut self, certificates: Vec<u8>) -> Self {
        self.options.extra_roots_pem = Some(certificates);
        self
    }
}

#[cfg(unix)]
fn socket(path: &str) -> Option<Address> {
    (!path.is_empty()).then(|| Address::Socket(path.into()))
}

#[cfg(not(unix))]
fn socket(_: &str) -> Option<Address> {
    None
}

/// `NAME` is the pipe of the hub that is called so; a whole path is itself.
#[cfg(windows)]
fn pipe(name: &str) -> Option<Address> {
    use aaep_transport::pipe::path_for;
    let whole = name.starts_with(r"\\").then(|| name.to_owned());
    (!name.is_empty()).then(|| Address::Pipe(whole.unwrap_or_else(|| path_for(name))))
}

#[cfg(not(windows))]
fn pipe(_: &str) -> Option<Address> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_people_type_them() {
        let of = |text: &str| Hub::parse(text).map(|hub| hub.address);
        let http = |text: &str| Ok(Address::Http(text.into()));
        assert_eq!(of("http://127.0.0.1:8707"), http("http://127.0.0.1:8707/aaep/v1"));
        assert_eq!(of("https://hub.example/x/"), http("https://hub.example/x"));
        let ws = |text: &str| Ok(Address::WebSocket(text.into()));
        assert_eq!(of("ws://[::1]:1"), ws("ws://[::1]:1/aaep/v1/ws"));
        assert_eq!(of("wss://h/aaep/v1/ws"), ws("wss://h/aaep/v1/ws"));
        assert_eq!(of("grpc://127.0.0.1:8708/"), Ok(Address::Grpc("grpc://127.0.0.1:8708".into())));
        assert_eq!(of("grpcs://h:1"), Ok(Address::Grpc("grpcs://h:1".into())));
        assert_eq!(of("stdio: a -b 'c d'"), Ok(Address::Stdio("a -b 'c d'".into())));
        #[cfg(unix)]
        assert_eq!(of("unix:/a/b.sock"), Ok(Address::Socket("/a/b.sock".into())));
        #[cfg(windows)]
        {
            assert_eq!(of("pipe:my hub"), Ok(Address::Pipe(r"\\.\pipe\aaep\my_hub".into())));
            assert_eq!(of(r"pipe:\\.\pipe\x"), Ok(Address::Pipe(r"\\.\pipe\x".into())));
        }
        #[cfg(not(windows))]
        assert!(of("pipe:hub").is_err());
        for wrong in ["", "hub", "ftp://x", "http://", "unix:", "http://a b", "stdio: ", "grpc://h"]
        {
            assert!(of(wrong).is_err(), "{wrong:?}");
        }
    }
}
