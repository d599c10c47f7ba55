//! Which hosts and origins a request may name.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use http::header::{
    AUTHORIZATION, AsHeaderName, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, USER_AGENT,
};
use http::{Method, Uri};

use super::{Guard, GuardRefusal};
use crate::config::Config;

/// How programs on this machine name it.
const LOOPBACK_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "[::1]"];

static FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
static FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
static FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// Every value of `Host` that means this hub.
pub(super) fn of(config: &Config, bound: &[SocketAddr]) -> BTreeSet<String> {
    let own_port = if config.tls.files().is_some() { 443 } else { 80 };
    let mut hosts = BTreeSet::new();
    for address in bound {
        let (ip, port) = (address.ip(), address.port());
        let mut names = Vec::new();
        if !ip.is_unspecified() {
            names.push(match ip {
                IpAddr::V4(ip) => ip.to_string(),
                IpAddr::V6(ip) => format!("[{ip}]"),
            });
        }
        // Listening everywhere is listening on loopback too.
        if ip.is_loopback() || ip.is_unspecified() {
            names.extend(LOOPBACK_NAMES.map(String::from));
        }
        let portless = config.allowed_hosts.iter().filter(|host| !host.has_port());
        names.extend(portless.map(ToString::to_string));
        for name in names {
            hosts.insert(format!("{name}:{port}"));
            // Browsers leave the scheme's own port out.
            if port == own_port {
                hosts.insert(name);
            }
        }
    }
    hosts.extend(config.allowed_hosts.iter().map(ToString::to_string));
    hosts
}

impl Guard {
    /// The host that a request names, in lower case, if it is one of ours. A page whose name was
    /// pointed at this machine (DNS rebinding) names another.
    pub fn host(&self, uri: &Uri, headers: &HeaderMap) -> Result<String, GuardRefusal> {
        let host = named(uri, headers)?;
        if self.hosts.contains(&host) { Ok(host) } else { Err(GuardRefusal::ForeignHost) }
    }

    /// Whether the web page that sent a request, if one did, may use this hub. `host` is what
    /// [`Self::host`] gave, `secure` whether the request came encrypted.
    ///
    /// Gives the page's origin if it is one of `allowed_origins`, and nothing for the hub's own page
    /// or a program that is no browser.
    pub fn origin<'h>(
        &self,
        method: &Method,
        headers: &'h HeaderMap,
        host: &str,
        secure: bool,
    ) -> Result<Option<&'h str>, GuardRefusal> {
        if !headers.contains_key(ORIGIN) {
            return self.without_origin(method, headers).map(|()| None);
        }
        let origin = only(headers, ORIGIN).ok_or(GuardRefusal::ForeignOrigin)?;
        let scheme = if secure { "https" } else { "http" };
        match origin.strip_prefix(scheme).and_then(|rest| rest.strip_prefix("://")) {
            Some(same) if same == host => Ok(None),
            _ if self.origins.contains(origin) => Ok(Some(origin)),
            _ => Err(GuardRefusal::ForeignOrigin),
        }
    }

    /// Browsers send some requests without `Origin`, for images and the like, and then say in
    /// another header whether a foreign page made them. Following a link is fine.
    fn without_origin(&self, method: &Method, headers: &HeaderMap) -> Result<(), GuardRefusal> {
        if !headers.contains_key(&FETCH_SITE) {
            return Ok(());
        }
        let followed = *method == Method::GET
            && only(headers, &FETCH_MODE) == Some("navigate")
            && only(headers, &FETCH_DEST) == Some("document");
        match only(headers, &FETCH_SITE) {
            Some("same-origin" | "none") => Ok(()),
            Some(_) if followed => Ok(()),
            _ => Err(GuardRefusal::ForeignOrigin),
        }
    }
}

// enforces: S5, W5
/// Whether a program or a script sent this, and no link, image, frame or address bar. A link brings no
/// `Origin`, from any site, so what changes something has to be out of its reach: only scripts can
/// use the API, and a script says where it is from.
///
/// Browsers say how a request came to be (`Sec-Fetch-Mode`). One that does not say it has to show a
/// header that no foreign page can make it send without asking first.
pub fn sent_by_program(headers: &HeaderMap) -> Result<(), GuardRefusal> {
    if headers.contains_key(&FETCH_MODE) {
        return match only(headers, &FETCH_MODE) {
            Some("cors" | "same-origin" | "websocket") => Ok(()),
            _ => Err(GuardRefusal::Followed),
        };
    }
    let agent = headers.get(USER_AGENT).map_or(&b""[..], HeaderValue::as_bytes);
    let browser = headers.contains_key(&FETCH_SITE) || agent.starts_with(b"Mozilla/");
    let by_script = headers.contains_key(ORIGIN) || headers.contains_key(AUTHORIZATION);
    if browser && !by_script { Err(GuardRefusal::Followed) } else { Ok(()) }
}

/// The one host that a request names, in lower case.
pub(super) fn named(uri: &Uri, headers: &HeaderMap) -> Result<String, GuardRefusal> {
    let host = only(headers, HOST).ok_or(GuardRefusal::UnclearHost)?.to_ascii_lowercase();
    // A target may name a host of its own, and servers disagree about which of the two counts.
    let target = uri.authority().map(|authority| authority.as_str().to_ascii_lowercase());
    if target.is_some_and(|target| target != host) {
        return Err(GuardRefusal::UnclearHost);
    }
    Ok(host)
}

/// The value of a header that is there exactly once, and is text.
pub(super) fn only(headers: &HeaderMap, name: impl AsHeaderName) -> Option<&str> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}
