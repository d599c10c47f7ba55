//! A hub somewhere else, and how it is reached.

use aaep_transport::client::{ClientIdentity, HttpClient, Options, Token};
use aaep_transport::discovery;

use crate::error::Error;

/// The path of a hub's API, unless it is told otherwise.
const BASE: &str = "/aaep/v1";

/// A hub outside this process.
///
/// On one machine, [`Remote::local`] finds it. Its Unix socket is named by `"unix:/path/to/it.sock"`:
/// the kernel says whose it is, and a socket of another user is refused. An address such as
/// `"http://127.0.0.1:8707"` works where the system tells whose program listens there (Linux); nothing
/// is sent to another user's. Other machines need `https`.
#[derive(Clone)]
pub struct Remote {
    url: String,
    token: Option<String>,
    options: Options,
}

impl Remote {
    /// The hub at this address. Without a path, `/aaep/v1` is meant.
    pub fn at(url: impl Into<String>) -> Self {
        Self { url: url.into(), token: None, options: Options::default() }
    }

    /// The hub of this user on this machine: what `AAEP_URL` names; else the hub, or the
    /// demonstration, that listens on a socket of this user; else the usual address, with the token
    /// and the certificate that `aaep hub init` made, if it did. The token of `AAEP_TOKEN` or
    /// `AAEP_TOKEN_FILE` is shown, if there is one.
    pub fn local() -> Self {
        let remote = match discovery::named().or_else(socket) {
            Some(url) => Self::at(url),
            None => Self::usual(discovery::configuration().as_deref()),
        };
        match discovery::token() {
            Some(token) => remote.token(token),
            None => remote,
        }
    }

    fn usual(configuration: Option<&std::path::Path>) -> Self {
        let discovery::Usual { url, certificate } = discovery::usual(configuration);
        let mut remote = Self::at(url);
        remote.options.extra_roots_pem = certificate;
        remote.token =
            configuration.and_then(|directory| discovery::made_token(directory, "agent"));
        remote
    }

    /// Shows this token, which `aaep hub init` made for an agent.
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Trusts these certificates (PEM) beside those that this machine trusts, for a hub that signed
    /// its own.
    pub fn trust_pem(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.options.extra_roots_pem = Some(pem.into());
        self
    }

    /// Shows this certificate, with the rest of its chain, and proves it by its key, both in PEM: for a hub
    /// that knows its agents by certificate.
    pub fn identity(mut self, chain_pem: impl Into<Vec<u8>>, key_pem: impl Into<Vec<u8>>) -> Self {
        let (chain_pem, key_pem) = (chain_pem.into(), key_pem.into());
        self.options.identity = Some(ClientIdentity { chain_pem, key_pem });
        self
    }

    /// Speaks without TLS to another machine. Everybody on the way can then read along, and answer
    /// in the user's name (W5).
    pub fn plain_off_host(mut self) -> Self {
        self.options.plain_off_host = true;
        self
    }

    /// Trusts whatever listens on a loopback address, whichever user runs it. For containers and the
    /// like, where nobody can tell. Every user of the machine could then pass for the hub, be shown the
    /// token, and say yes in the user's name.
    pub fn trust_loopback(mut self) -> Self {
        self.options.trust_loopback = true;
        self
    }

    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some() || self.options.identity.is_some()
    }

    pub(crate) fn client(self) -> Result<HttpClient, Error> {
        let mut options = self.options;
        if let Some(token) = &self.token {
            options.token = Some(Token::parse(token).map_err(Error::unavailable)?);
        }
        #[cfg(unix)]
        if let Some(path) = self.url.strip_prefix("unix:") {
            return match path {
                "" => Err(Error::unavailable("unix: is followed by the path of a socket")),
                path => Ok(HttpClient::over_socket(path, BASE, options)),
            };
        }
        let uri: http::Uri = self.url.parse().map_err(Error::unavailable)?;
        let whole = matches!(uri.path(), "" | "/");
        let url = match whole {
            true => format!("{}{BASE}", self.url.trim_end_matches('/')),
            false => self.url,
        };
        HttpClient::new(&url, options).map_err(Error::unavailable)
    }
}

/// The socket of a hub that runs.
#[cfg(unix)]
fn socket() -> Option<String> {
    let path = discovery::first_alive(discovery::sockets().into_iter().map(|(path, _)| path))?;
    path.to_str().map(|path| format!("unix:{path}"))
}

#[cfg(not(unix))]
fn socket() -> Option<String> {
    None
}

impl std::fmt::Debug for Remote {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Remote").field("url", &self.url).finish_non_exhaustive()
    }
}

impl From<&str> for Remote {
    fn from(url: &str) -> Self {
        Self::at(url)
    }
}

impl From<String> for Remote {
    fn from(url: String) -> Self {
        Self::at(url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_does_not_show_itself_and_bad_addresses_are_refused() {
        let remote = Remote::at("http://127.0.0.1:1").token("s3cret");
        assert!(!format!("{remote:?}").contains("s3cret"));
        assert!(remote.client().is_ok());
        for bad in ["", "unix:", "nonsense", "ftp://127.0.0.1", "http://name:password@127.0.0.1"] {
            assert!(Remote::at(bad).client().is_err(), "{bad}");
        }
        assert!(Remote::at("http://127.0.0.1").token("a\r\nb: c").client().is_err());
    }
}
