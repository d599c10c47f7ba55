//! Unix sockets.

use aaep_transport::contract::{self, Address, Settings, Transport};
use aaep_transport::link::Link;
use aaep_transport::unix::{self, Listener};
use tempfile::TempDir;

use super::link_options;

pub struct Unix {
    directory: TempDir,
}

impl Unix {
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }
}

impl Transport for Unix {
    type Server = Listening;
    type ServerEnd = Link;
    type ClientEnd = Link;
    const TLS: bool = false;
    // The kernel tells of every end there is; only what stands between can be silent.
    const SERVER_HEARS_SILENCE: bool = false;
    const CLIENT_HEARS_SILENCE: bool = false;

    async fn serve(&self, settings: Settings) -> Listening {
        let path = self.directory.path().join("aaep").join("agent.sock");
        Listening(Listener::bind(&path, link_options(settings)).unwrap())
    }

    async fn connect(&self, address: &Address, settings: Settings) -> Link {
        let Address::Unix(path) = address else { panic!("not a Unix socket") };
        unix::connect(path, link_options(settings)).await.unwrap()
    }
}

pub struct Listening(Listener);

impl contract::Server for Listening {
    type End = Link;

    fn address(&self) -> Address {
        Address::Unix(self.0.path().to_owned())
    }

    async fn accept(&mut self) -> Link {
        self.0.accept().await
    }
}
