//! How a client reaches a server: address, TLS, credentials.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::Uri;
use tokio::net::{TcpStream, lookup_host};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::client::{ClientError, Options};
use crate::peer::Peer;
use crate::stream::{self, Stream};
use crate::tls::{self, ClientConfig};

/// Where to, and how.
pub(crate) struct Dialer {
    host: String,
    port: u16,
    tls: Option<Arc<ClientConfig>>,
    options: Options,
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
        let extra = options.extra_roots_pem.as_deref();
        let tls = is_tls.then(|| tls::client(extra)).transpose().map_err(ClientError::Tls)?;
        let port = uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        // An IPv6 address stands in brackets in a URL, and nowhere else.
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        Ok(Self { host, port, tls, options })
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
        let stream = self.reach().await?;
        let tuned = stream::tune(&stream).and_then(|()| stream.peer_addr());
        let address = tuned.map_err(unreachable)?;
        let Some(config) = &self.tls else {
            return Ok((Box::new(stream), Peer::tcp(address, false)));
        };
        let name = ServerName::try_from(self.host.clone())
            .map_err(|_| ClientError::Address(format!("{} has no certificate name", self.host)))?;
        let connector = TlsConnector::from(Arc::clone(config));
        let stream = connector.connect(name, stream).await.map_err(unreachable)?;
        Ok((Box::new(stream), Peer::tcp(address, true)))
    }

    async fn reach(&self) -> Result<TcpStream, ClientError> {
        let mut last = None;
        for address in self.addresses().await? {
            match TcpStream::connect(address).await {
                Ok(stream) => return Ok(stream),
                Err(error) => last = Some(error),
            }
        }
        Err(unreachable(last.unwrap_or_else(|| io::ErrorKind::NotFound.into())))
    }

    /// Off this machine only with TLS, unless the caller insists (W5).
    // enforces: W5
    async fn addresses(&self) -> Result<Vec<SocketAddr>, ClientError> {
        let found = match self.host.parse::<IpAddr>() {
            Ok(ip) => vec![SocketAddr::new(ip, self.port)],
            Err(_) => {
                let found = lookup_host((self.host.as_str(), self.port)).await;
                found.map_err(unreachable)?.collect()
            }
        };
        let may_go = |address: &SocketAddr| {
            self.tls.is_some() || self.options.plain_off_host || address.ip().is_loopback()
        };
        let allowed: Vec<_> = found.iter().copied().filter(may_go).collect();
        if allowed.is_empty() && !found.is_empty() {
            return Err(ClientError::PlainOffHost(self.host.clone()));
        }
        Ok(allowed)
    }
}

fn unreachable(error: io::Error) -> ClientError {
    ClientError::Unreachable(error.to_string())
}
