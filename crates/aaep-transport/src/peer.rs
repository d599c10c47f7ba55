//! What a transport knows of who is at the other end.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};

use tokio_rustls::rustls::pki_types::CertificateDer;

use crate::process::{Origin, SocketHolders};

/// Who is at the other end of a connection, as far as the transport itself can tell. A server puts
/// it into the extensions of every request, and a link carries it.
///
/// It holds no secret: what a peer shows to prove who it is (a token) stays in the request.
#[derive(Clone, Debug)]
pub struct Peer {
    end: End,
    tls: bool,
    /// What was found out about its process, once for the connection.
    origin: Arc<OnceLock<Origin>>,
    certificates: Option<Arc<Vec<CertificateDer<'static>>>>,
}

impl PartialEq for Peer {
    fn eq(&self, other: &Self) -> bool {
        (&self.end, self.tls) == (&other.end, other.tls)
    }
}

impl Eq for Peer {}

#[derive(Clone, Debug, PartialEq, Eq)]
enum End {
    Tcp(SocketAddr),
    Unix(Credentials),
}

/// Whose program is at the other end of a connection, as far as the system tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerUser {
    /// Our own user's, or root's.
    Own,
    /// Another user's, with this id.
    Other(u32),
    /// Nobody can tell: it came over a network, has gone already, or this system does not say.
    Unknown,
}

/// What the kernel says of the process at the other end of a Unix socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credentials {
    /// The user it ran as when it connected.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Its process id, where the system tells. For logs: it may have been given to another since.
    pub pid: Option<i32>,
}

impl Peer {
    /// A peer that came over TCP.
    pub fn tcp(address: SocketAddr, tls: bool) -> Self {
        // An IPv4 address that came through an IPv6 socket is still the same host.
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        Self { end: End::Tcp(address), tls, certificates: None, origin: Arc::default() }
    }

    /// A peer that came over a Unix socket.
    pub fn unix(credentials: Credentials) -> Self {
        let origin = Arc::default();
        Self { end: End::Unix(credentials), tls: false, certificates: None, origin }
    }

    /// The same peer, which has shown these certificates, its own first: TLS has verified them.
    #[must_use]
    pub fn with_certificates(self, certificates: Vec<CertificateDer<'static>>) -> Self {
        Self { certificates: Some(Arc::new(certificates)), ..self }
    }

    /// The certificates that it has shown, its own first.
    pub fn certificates(&self) -> Option<&Arc<Vec<CertificateDer<'static>>>> {
        self.certificates.as_ref()
    }

    /// Its address, if it came over TCP.
    pub fn address(&self) -> Option<SocketAddr> {
        match self.end {
            End::Tcp(address) => Some(address),
            End::Unix(_) => None,
        }
    }

    /// What the kernel says of it, if it came over a Unix socket.
    pub fn credentials(&self) -> Option<Credentials> {
        match self.end {
            End::Tcp(_) => None,
            End::Unix(credentials) => Some(credentials),
        }
    }

    /// Which process it is, as it was when it connected, or when this was asked first for a
    /// connection over loopback. `None` if that is not known yet: then look with
    /// [`find_origin`](Self::find_origin).
    pub fn origin(&self) -> Option<Origin> {
        match self.end {
            End::Tcp(address) if !address.ip().is_loopback() => Some(Origin::Unknown),
            _ => self.origin.get().cloned(),
        }
    }

    /// Looks which process it is, while it waits to be let in: later it may be gone.
    #[cfg(all(feature = "server", unix))]
    pub(crate) fn look(&self) {
        if let End::Unix(credentials) = &self.end {
            self.origin.get_or_init(|| Origin::of_pid(credentials.pid));
        }
    }

    /// The same, looking for it if need be; that takes a while.
    pub fn find_origin(&self, ports: &[u16], holders: &SocketHolders) -> Origin {
        match (self.origin(), self.end.clone()) {
            (None, End::Tcp(address)) => {
                let find = || Origin::of_loopback(address, ports, holders);
                self.origin.get_or_init(find).clone()
            }
            (known, _) => known.unwrap_or_default(),
        }
    }

    /// Whose program it is. `listener` is the address of ours to which it connected; it matters over TCP
    /// alone, where only Linux tells.
    // enforces: W5
    #[cfg(feature = "server")]
    pub fn user(&self, listener: SocketAddr) -> PeerUser {
        let uid = match &self.end {
            End::Unix(credentials) => Some(credentials.uid),
            End::Tcp(address) if address.ip().is_loopback() => {
                crate::owner::user_of(*address, listener)
            }
            End::Tcp(_) => None,
        };
        #[cfg(unix)]
        let own = rustix::process::geteuid().as_raw();
        #[cfg(not(unix))]
        let own = 0;
        match uid {
            None => PeerUser::Unknown,
            Some(uid) if uid == own || uid == 0 => PeerUser::Own,
            Some(uid) => PeerUser::Other(uid),
        }
    }

    /// Whether TLS protects the connection.
    pub fn is_tls(&self) -> bool {
        self.tls
    }

    /// Whether it is on this machine: a Unix socket or the loopback address. That says nothing of
    /// who it is (W5).
    pub fn is_local(&self) -> bool {
        self.address().is_none_or(|address| address.ip().is_loopback())
    }
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.end {
            End::Tcp(address) => write!(f, "{address}"),
            End::Unix(Credentials { uid, pid: Some(pid), .. }) => {
                write!(f, "user {uid}, process {pid}")
            }
            End::Unix(Credentials { uid, .. }) => write!(f, "user {uid}"),
        }
    }
}
