//! JSON-RPC by line. Pipes have one program at each end; here a socket stands for them, so that there
//! can be several, and something between them.

use aaep_transport::contract::{self, Address, Settings, Transport};
use aaep_transport::link::Link;
use aaep_transport::peer::{Credentials, Peer};
use aaep_transport::stdio::{self, Role};
use tempfile::TempDir;
use tokio::net::{UnixListener, UnixStream};

use super::link_options;

pub struct Stdio {
    directory: TempDir,
    next: std::sync::atomic::AtomicU32,
}

impl Stdio {
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap(), next: 0.into() }
    }
}

fn link(stream: UnixStream, role: Role, settings: Settings) -> Link {
    let found = stream.peer_cred().unwrap();
    let (uid, gid, pid) = (found.uid(), found.gid(), found.pid());
    let peer = Peer::unix(Credentials { uid, gid, pid });
    let (reader, writer) = stream.into_split();
    stdio::link(reader, writer, peer, role, &link_options(settings))
}

impl Transport for Stdio {
    type Server = Listening;
    type ServerEnd = Link;
    type ClientEnd = Link;
    const TLS: bool = false;
    // The kernel tells of every end of a pipe; only what stands between can be silent.
    const SERVER_HEARS_SILENCE: bool = false;
    const CLIENT_HEARS_SILENCE: bool = false;

    async fn serve(&self, settings: Settings) -> Listening {
        let next = self.next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path = self.directory.path().join(format!("{next}.sock"));
        Listening { listener: UnixListener::bind(&path).unwrap(), path, settings }
    }

    async fn connect(&self, address: &Address, settings: Settings) -> Link {
        let Address::Unix(path) = address else { panic!("not a Unix socket") };
        link(UnixStream::connect(path).await.unwrap(), Role::Subscriber, settings)
    }
}

pub struct Listening {
    listener: UnixListener,
    path: std::path::PathBuf,
    settings: Settings,
}

impl contract::Server for Listening {
    type End = Link;

    fn address(&self) -> Address {
        Address::Unix(self.path.clone())
    }

    async fn accept(&mut self) -> Link {
        link(self.listener.accept().await.unwrap().0, Role::Producer, self.settings)
    }
}
