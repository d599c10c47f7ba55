//! What a request must look like before anybody asks who sent it.
//!
//! A hub on loopback is in reach of every web page that its user opens. What keeps pages out: a
//! request must name a host that is really this hub's (a page that points its own name at this
//! machine cannot), must not come from a foreign origin, must carry JSON and say so (a form cannot),
//! and shows a token in a header (never a cookie, which browsers would add by themselves).
//!
//! [`Guard::admit`] runs every check in order; the rest is here for those who need one alone.

mod forwarded;
mod headers;
mod host;

use std::collections::BTreeSet;
use std::fmt;
use std::net::SocketAddr;

use http::{Method, StatusCode, request};

use crate::config::{Config, ProxyNet};

pub use forwarded::Client;
pub use headers::{bearer, content_type};
pub use host::sent_by_program;

/// Which hosts, origins and proxies are ours.
#[derive(Clone, Debug)]
pub struct Guard {
    hosts: BTreeSet<String>,
    origins: BTreeSet<String>,
    proxies: Vec<ProxyNet>,
}

/// A request that may be looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted<'r> {
    /// Where it came from.
    pub client: Client,
    /// The token it shows, if any.
    pub bearer: Option<&'r str>,
    /// The web page of another origin that sent it, if that page is allowed to; to be named in
    /// `Access-Control-Allow-Origin`.
    pub page: Option<&'r str>,
}

impl Guard {
    /// For a hub with this configuration that listens on these addresses: those that were really
    /// bound, since port 0 of the configuration is another by then.
    pub fn new(config: &Config, bound: &[SocketAddr]) -> Self {
        Self {
            hosts: host::of(config, bound),
            origins: config.allowed_origins.iter().map(ToString::to_string).collect(),
            proxies: config.behind_proxy.clone(),
        }
    }

    // enforces: W5
    /// Every check of a request that came by TCP, before its body is read. `tls` says whether the
    /// connection itself is encrypted.
    pub fn admit<'r>(
        &self,
        parts: &'r request::Parts,
        peer: SocketAddr,
        tls: bool,
    ) -> Result<Admitted<'r>, GuardRefusal> {
        headers::length(&parts.headers)?;
        let host = self.host(&parts.uri, &parts.headers)?;
        let client = self.client(&parts.headers, peer, tls)?;
        let page = self.origin(&parts.method, &parts.headers, &host, client.secure)?;
        if parts.method == Method::POST {
            content_type(&parts.headers)?;
        }
        Ok(Admitted { client, bearer: bearer(&parts.headers)?, page })
    }
}

/// How programs name the hub on its Unix socket.
const SOCKET_HOST: &str = "localhost";

impl Guard {
    // enforces: W5, W10
    /// The same for a request that came through the Unix socket, from a process of this user. No web
    /// page gets there, but what holds for others holds here too.
    pub fn admit_local<'r>(
        &self,
        parts: &'r request::Parts,
        uid: u32,
    ) -> Result<Admitted<'r>, GuardRefusal> {
        headers::length(&parts.headers)?;
        if host::named(&parts.uri, &parts.headers)? != SOCKET_HOST {
            return Err(GuardRefusal::ForeignHost);
        }
        let page = self.origin(&parts.method, &parts.headers, SOCKET_HOST, false)?;
        if parts.method == Method::POST {
            content_type(&parts.headers)?;
        }
        let client = Client::local(&parts.headers, uid);
        Ok(Admitted { client, bearer: bearer(&parts.headers)?, page })
    }
}

/// Why a request is refused, independent of its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GuardRefusal {
    /// A body with two lengths: a proxy could have read the other one, and take the
    /// rest for another request.
    UnclearLength,
    /// No host, or more than one, or one in the target and another in the header.
    UnclearHost,
    /// A host that is not ours.
    ForeignHost,
    /// A web page that is not ours.
    ForeignOrigin,
    /// A link, an image or an address bar, where only programs may ask.
    Followed,
    /// A body that does not say it is JSON.
    NotJson,
    /// An `Authorization` that is not exactly one bearer token.
    UnclearAuthorization,
    /// Without encryption, and not from this machine.
    NotEncrypted,
}

impl GuardRefusal {
    /// The HTTP status.
    pub fn status(self) -> StatusCode {
        match self {
            Self::UnclearLength | Self::UnclearHost => StatusCode::BAD_REQUEST,
            Self::ForeignHost | Self::ForeignOrigin | Self::Followed | Self::NotEncrypted => {
                StatusCode::FORBIDDEN
            }
            Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::UnclearAuthorization => StatusCode::UNAUTHORIZED,
        }
    }
}

impl fmt::Display for GuardRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::UnclearLength => "Send Content-Length or Transfer-Encoding, not both.",
            Self::UnclearHost => "Send exactly one Host.",
            Self::ForeignHost => {
                "This hub is not known by that Host. If it should be, add it to allowed_hosts."
            }
            Self::ForeignOrigin => {
                "Pages of that origin may not use this hub. Behind a proxy, have it pass Host on as it came, and name it in behind_proxy; otherwise add the origin to allowed_origins."
            }
            Self::Followed => {
                "This is for programs: no link, image or address bar may ask for it. The page is at /."
            }
            Self::NotJson => "Send JSON, with Content-Type: application/json.",
            Self::UnclearAuthorization => "Send one header, Authorization: Bearer aaep_….",
            Self::NotEncrypted => "Connect with TLS, or through a proxy named in behind_proxy.",
        })
    }
}

impl std::error::Error for GuardRefusal {}
