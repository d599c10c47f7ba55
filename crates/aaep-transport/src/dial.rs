//! How a client reaches a server: address, TLS, credentials. Everything that a client sends goes out
//! over a connection that was made here.

use std::io;
use std::net::{IpAddr, SocketAddr};
#[cfg(unix)]
use std::path::PathBuf;
use std::sync::Arc;

use http::Uri;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::client::{ClientError, Options};
use crate::owner::{self, Stranger};
use crate::peer::Peer;
use crate::stream::{self, Stream};
use crate::tls::{self, ClientConfig};

/// Where to, and how.
pub(crate) struct Dialer {
    endpoint: Endpoint,
    options: Options,
}

enum Endpoint {
    Tcp {
        host: String,
        port: u16,
        tls: Option<Arc<ClientConfig>>,
    },
    #[cfg(unix)]
    Socket(PathBuf),
}

impl Dialer {
    /// `plain` and `secure` are the two schemes that are spoken, such as http and https.
    pub(crate) fn new(
        uri: &Uri,
        plain: &str,
        secure: &str,
        options: Options,
    ) -> Result<Self, ClientError> {
        let wrong =
            || ClientError::Address(format!("{uri} is not an address like {secure}://host"));
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            let why = "a name and password do not belong into an address";
            return Err(ClientError::Address(why.into()));
        }
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(wrong)?;
        let is_tls = match uri.scheme_str() {
            Some(scheme) if scheme == plain => false,
            Some(scheme) if scheme == secure => true,
            _ => return Err(wrong()),
        };
        let (extra, identity) = (options.extra_roots_pem.as_deref(), options.identity.as_ref());
        let tls = is_tls.then(|| tls::client(extra, identity)).transpose();
        let tls = tls.map_err(ClientError::Tls)?;
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        // An IPv6 address stands in brackets in a URL, and nowhere else.
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { endpoint: Endpoint::Tcp { host, port, tls }, options })
    }

    /// The same, to speak HTTP/2.
    #[cfg(feature = "grpc")]
    pub(crate) fn over_http2(mut self) -> Self {
        if let Endpoint::Tcp { tls: Some(tls), .. } = &mut self.endpoint {
            let mut config = ClientConfig::clone(tls);
            config.alpn_protocols = vec![tls::HTTP2.to_vec()];
            *tls = Arc::new(config);
        }
        self
    }

    /// To the Unix socket at this path.
    #[cfg(unix)]
    pub(crate) fn to_socket(path: impl Into<PathBuf>, options: Options) -> Self {
        Self { endpoint: Endpoint::Socket(path.into()), options }
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    /// A new connection, and who is at its other end.
    pub(crate) async fn connect(&self) -> Result<(Stream, Peer), ClientError> {
        let late = |_| ClientError::Unreachable("no connection within the deadline".into());
        timeout(self.options.connect, self.connect_in_time()).await.map_err(late)?
    }

    async fn connect_in_time(&self) -> Result<(Stream, Peer), ClientError> {
        let (host, port, tls) = match &self.endpoint {
            Endpoint::Tcp { host, port, tls } => (host, *port, tls),
            #[cfg(unix)]
            Endpoint::Socket(path) => {
                let reached = crate::unix::reach(path).await;
                let (stream, peer) = reached.map_err(|error| no_socket(path, &error))?;
                return Ok((Box::new(stream), peer));
            }
        };
        let stream = self.reach(host, port, tls.is_some()).await?;
        let tuned = stream::tune(&stream).and_then(|()| stream.peer_addr());
        let address = tuned.map_err(unreachable)?;
        let Some(config) = tls else {
            self.is_ours(&stream, address).await?;
            return Ok((Box::new(stream), Peer::tcp(address, false)));
        };
        let name = ServerName::try_from(host.clone())
            .map_err(|_| ClientError::Address(format!("{host} has no certificate name")))?;
        let connector = TlsConnector::from(Arc::clone(config));
        let stream = connector.connect(name, stream).await.map_err(unreachable)?;
        Ok((Box::new(stream), Peer::tcp(address, true)))
    }

    // enforces: W5, S5
    /// On a loopback address any user of the machine may listen: before anything is sent, the process that
    /// does is shown to be ourselves.
    async fn is_ours(&self, stream: &TcpStream, peer: SocketAddr) -> Result<(), ClientError> {
        if !peer.ip().to_canonical().is_loopback() || self.options.trust_loopback {
            return Ok(());
        }
        let local = stream.local_addr().map_err(unreachable)?;
        let checked = tokio::task::spawn_blocking(move || owner::check(local, peer)).await;
        let checked = checked.map_err(|error| ClientError::Broken(error.to_string()))?;
        checked.map_err(|stranger| match stranger {
            // Nobody is there to be a stranger; who comes next is looked at anew.
            Stranger::Gone { .. } => ClientError::Unreachable(stranger.to_string()),
            Stranger::Unknown { .. } if was_reset(stream) => {
                ClientError::Unreachable(stranger.to_string())
            }
            _ => ClientError::Stranger(stranger.to_string()),
        })
    }

    async fn reach(&self, host: &str, port: u16, tls: bool) -> Result<TcpStream, ClientError> {
        let mut last = None;
        for address in self.addresses(host, port, tls).await? {
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = Some(error),
            }
        }
        Err(unreachable(last.unwrap_or_else(|| io::ErrorKind::NotFound.into())))
    }

    /// Off this machine only with TLS, unless the caller insists (W5).
    // enforces: W5
    async fn addresses(
        &self,
        host: &str,
        port: u16,
        tls: bool,
    ) -> Result<Vec<SocketAddr>, ClientError> {
        let found = match host.parse::<IpAddr>() {
            Ok(ip) => vec![SocketAddr::new(ip, port)],
            Err(_) => {
                let found = lookup_host((host, port)).await;
                found.map_err(unreachable)?.collect()
            }
        };
        let may_go =
            |address: &SocketAddr| tls || self.options.plain_off_host || address.ip().is_loopback();
        let allowed: Vec<_> = found.iter().copied().filter(may_go).collect();
        if allowed.is_empty() && !found.is_empty() {
            return Err(ClientError::PlainOffHost(host.to_owned()));
        }
        Ok(allowed)
    }
}

/// Whether the other end is gone: the kernel forgets a connection that was reset.
fn was_reset(stream: &TcpStream) -> bool {
    stream.peer_addr().is_err() || !matches!(stream.take_error(), Ok(None))
}

fn unreachable(error: io::Error) -> ClientError {
    ClientError::Unreachable(error.to_string())
}

/// A socket of somebody else is told from one that is not there.
#[cfg(unix)]
fn no_socket(path: &std::path::Path, error: &io::Error) -> ClientError {
    let text = format!("{}: {error}", path.display());
    match error.kind() {
        io::ErrorKind::PermissionDenied => ClientError::Stranger(text),
        _ => ClientError::Unreachable(text),
    }
}

#[cfg(target_os = "linux")]
#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;

    async fn checked(accepts: bool) -> ClientError {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let uri = format!("http://{address}").parse().unwrap();
        let dialer = Dialer::new(&uri, "http", "https", Options::default()).unwrap();
        let stream = TcpStream::connect(address).await.unwrap();
        let accepted = if accepts { Some(listener.accept().await.unwrap()) } else { None };
        drop(listener);
        if !accepts {
            // What nobody accepted is reset.
            stream.readable().await.unwrap();
        }
        let checked = dialer.is_ours(&stream, address).await.unwrap_err();
        drop(accepted);
        checked
    }

    // covers: W5
    #[tokio::test]
    async fn a_hub_that_dies_before_it_is_looked_at_is_gone_and_no_stranger() {
        for accepts in [true, false] {
            let error = checked(accepts).await;
            assert!(matches!(error, ClientError::Unreachable(_)), "{accepts}: {error}");
        }
    }
}
