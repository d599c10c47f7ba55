//! Where a request came from, proxies considered.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use http::header::{self, HeaderMap, HeaderName};

use super::host::only;
use super::{Guard, GuardRefusal};
use crate::access::Via;

static FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
static FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
static REAL_IP: HeaderName = HeaderName::from_static("x-real-ip");

/// What a proxy leaves on a request that it passes on.
static TRACES: [&HeaderName; 5] =
    [&FORWARDED_FOR, &FORWARDED_PROTO, &REAL_IP, &header::FORWARDED, &header::VIA];

static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id of a request that is taken over from a proxy.
const MAX_REQUEST_ID: usize = 64;

/// How many proxies one after the other are followed.
const MAX_HOPS: usize = 16;

/// Where a request came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Client {
    /// The client's address, as far as it is known.
    pub address: IpAddr,
    /// Whether it came encrypted, to us or to a proxy that we trust.
    pub secure: bool,
    /// For [`crate::access::Access::who`].
    pub via: Via,
    /// Whether somebody passed it on: then what TLS knows of the other end is not about the client.
    pub is_forwarded: bool,
}

impl Client {
    /// A process of this user, through the Unix socket; unless it is a proxy, whose clients could be
    /// anywhere.
    pub(super) fn local(headers: &HeaderMap, uid: u32) -> Self {
        let via = if is_forwarded(headers) { Via::Network } else { Via::Socket { uid } };
        let is_forwarded = is_forwarded(headers);
        Self { address: Ipv4Addr::LOCALHOST.into(), secure: false, via, is_forwarded }
    }
}

/// Whether a proxy has passed a request on.
fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| TRACES.contains(&name))
}

impl Guard {
    // enforces: S5, W5
    /// Where a request came from. Forwarded headers are believed only from named proxies. Of the
    /// two kinds only `X-Forwarded-*` is read: a proxy that sets one kind lets the other through as
    /// its client wrote it.
    pub fn client(
        &self,
        headers: &HeaderMap,
        peer: SocketAddr,
        tls: bool,
    ) -> Result<Client, GuardRefusal> {
        // A socket for both families shows IPv4 addresses as IPv6.
        let address = peer.ip().to_canonical();
        if self.is_proxy(address) {
            let mut schemes = values(headers, &FORWARDED_PROTO);
            if !schemes.all(|scheme| scheme.eq_ignore_ascii_case("https")) {
                return Err(GuardRefusal::NotEncrypted);
            }
            let address = self.first_beyond_proxies(headers).unwrap_or(address);
            // A client behind a proxy is not on this machine, even if the proxy is.
            return Ok(Client { address, secure: true, via: Via::Network, is_forwarded: true });
        }
        if !address.is_loopback() {
            let is_forwarded = is_forwarded(headers);
            let client = Client { address, secure: true, via: Via::Network, is_forwarded };
            return if tls { Ok(client) } else { Err(GuardRefusal::NotEncrypted) };
        }
        // A proxy on this machine that nobody named: its clients could be anywhere.
        let is_forwarded = is_forwarded(headers);
        let via = if is_forwarded { Via::Network } else { Via::Loopback };
        Ok(Client { address, secure: tls, via, is_forwarded })
    }

    /// The id that a proxy of ours gave a request, so that both logs can be read side by side.
    pub fn request_id<'h>(&self, headers: &'h HeaderMap, peer: SocketAddr) -> Option<&'h str> {
        let id = self.is_proxy(peer.ip().to_canonical()).then(|| only(headers, &REQUEST_ID))??;
        let plain = |c: u8| c.is_ascii_alphanumeric() || b"-_.".contains(&c);
        ((1..=MAX_REQUEST_ID).contains(&id.len()) && id.bytes().all(plain)).then_some(id)
    }

    fn is_proxy(&self, address: IpAddr) -> bool {
        self.proxies.iter().any(|proxy| proxy.contains(address))
    }

    /// The last address that is not a proxy of ours: what stands before it was written by somebody
    /// whom we do not know.
    fn first_beyond_proxies(&self, headers: &HeaderMap) -> Option<IpAddr> {
        let backwards = headers.get_all(&FORWARDED_FOR).iter().rev();
        let hops = backwards.flat_map(|value| value.to_str().unwrap_or("?").rsplit(','));
        let mut nearest = None;
        for hop in hops.take(MAX_HOPS).map(str::trim) {
            let with_port = || hop.parse::<SocketAddr>().ok().map(|address| address.ip());
            let address = hop.parse::<IpAddr>().ok().or_else(with_port)?.to_canonical();
            nearest = Some(address);
            if !self.is_proxy(address) {
                break;
            }
        }
        nearest
    }
}

/// All values of a header that is a list.
fn values<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = &'h str> {
    let lines = headers.get_all(name).iter().map(|value| value.to_str().unwrap_or("?"));
    lines.flat_map(|line| line.split(',')).map(str::trim)
}
