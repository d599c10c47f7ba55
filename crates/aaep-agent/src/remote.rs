//! A hub somewhere else, and how it is reached.

use aaep_transport::client::{HttpClient, Options, Token};

use crate::error::Error;

/// The path of a hub's API, unless it is told otherwise.
const BASE: &str = "/aaep/v1";

/// A hub somewhere else. A plain address is enough for one on this machine:
/// `"http://127.0.0.1:8707"`.
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

    /// Speaks without TLS to another machine. Everybody on the way can then read along, and answer
    /// in the user's name (W5).
    pub fn plain_off_host(mut self) -> Self {
        self.options.plain_off_host = true;
        self
    }

    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    pub(crate) fn client(self) -> Result<HttpClient, Error> {
        let unusable = |error: &dyn std::fmt::Display| Error::Unavailable(error.to_string());
        let mut options = self.options;
        if let Some(token) = &self.token {
            options.token = Some(Token::parse(token).map_err(|error| unusable(&error))?);
        }
        let uri: http::Uri = self.url.parse().map_err(|error| unusable(&error))?;
        let whole = matches!(uri.path(), "" | "/");
        let url = match whole {
            true => format!("{}{BASE}", self.url.trim_end_matches('/')),
            false => self.url,
        };
        HttpClient::new(&url, options).map_err(|error| unusable(&error))
    }
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
        for bad in ["", "nonsense", "ftp://127.0.0.1", "http://name:password@127.0.0.1"] {
            assert!(Remote::at(bad).client().is_err(), "{bad}");
        }
        assert!(Remote::at("http://127.0.0.1").token("a\r\nb: c").client().is_err());
    }
}
