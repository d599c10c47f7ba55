//! A proxy between client and server that cuts what passes into other portions, or lets nothing
//! pass any more.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Where a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// At a TCP address.
    Tcp(SocketAddr),
    /// At a Unix socket.
    Unix(PathBuf),
}

/// How the proxy cuts.
#[derive(Clone, Copy, Debug)]
pub enum Cut {
    /// As it comes.
    Not,
    /// Into single bytes.
    Bytes,
    /// Into portions of chance, from this seed.
    Random(u64),
}

/// A running proxy. It ends when it is dropped, and cuts every connection through it.
pub struct Proxy {
    address: Address,
    stalled: watch::Sender<bool>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// Starts a proxy in front of `server`.
    pub async fn start(server: &Address, cut: Cut) -> io::Result<Self> {
        let (stalled, is_stalled) = watch::channel(false);
        match server.clone() {
            Address::Tcp(server) => {
                let listener = TcpListener::bind("127.0.0.1:0").await?;
                let address = Address::Tcp(listener.local_addr()?);
                let accepting = tokio::spawn(async move {
                    let mut passing = tokio::task::JoinSet::new();
                    while let Ok((inner, _)) = listener.accept().await {
                        let Ok(outer) = TcpStream::connect(server).await else { continue };
                        let _ = (inner.set_nodelay(true), outer.set_nodelay(true));
                        let (ends, other) = (inner.into_split(), outer.into_split());
                        passing.spawn(pass(ends.0, other.1, cut, is_stalled.clone()));
                        passing.spawn(pass(other.0, ends.1, cut, is_stalled.clone()));
                    }
                });
                Ok(Self { address, stalled, accepting })
            }
            #[cfg(unix)]
            Address::Unix(server) => {
                let path = server.with_extension("proxy");
                let _ = std::fs::remove_file(&path);
                let listener = tokio::net::UnixListener::bind(&path)?;
                let accepting = tokio::spawn(async move {
                    let mut passing = tokio::task::JoinSet::new();
                    while let Ok((inner, _)) = listener.accept().await {
                        let outer = tokio::net::UnixStream::connect(&server).await;
                        let Ok(outer) = outer else { continue };
                        let (ends, other) = (inner.into_split(), outer.into_split());
                        passing.spawn(pass(ends.0, other.1, cut, is_stalled.clone()));
                        passing.spawn(pass(other.0, ends.1, cut, is_stalled.clone()));
                    }
                });
                Ok(Self { address: Address::Unix(path), stalled, accepting })
            }
            #[cfg(not(unix))]
            Address::Unix(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Where clients connect.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// From now on nothing is forwarded: both connections stay open, and dead.
    pub fn stall(&self) {
        self.stalled.send_replace(true);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    cut: Cut,
    mut stalled: watch::Receiver<bool>,
) {
    let mut chance = match cut {
        Cut::Random(seed) => seed | 1,
        Cut::Not | Cut::Bytes => 1,
    };
    let copying = async {
        let mut chunk = vec![0; 64 * 1024];
        loop {
            let size = from.read(&mut chunk).await?;
            if size == 0 {
                return to.shutdown().await;
            }
            let mut rest = &chunk[..size];
            while !rest.is_empty() {
                let (piece, after) = rest.split_at(piece(cut, &mut chance, rest.len()));
                to.write_all(piece).await?;
                tokio::task::yield_now().await; // so that the other side sees the portion
                rest = after;
            }
        }
    };
    let stalling = async { stalled.wait_for(|stalled| *stalled).await.is_ok() };
    let dead = tokio::select! {
        _ = copying => false,
        dead = stalling => dead,
    };
    if dead {
        std::future::pending::<()>().await; // holding both ends open
    }
}

/// The size of the next portion. Small ones are the interesting ones.
fn piece(cut: Cut, chance: &mut u64, most: usize) -> usize {
    match cut {
        Cut::Not => most,
        Cut::Bytes => 1,
        Cut::Random(_) => {
            *chance ^= *chance << 13;
            *chance ^= *chance >> 7;
            *chance ^= *chance << 17;
            let bits = *chance >> 60; // 0 to 15: portions of 1 byte to 32 KiB
            let size = (*chance >> 8) as usize % (1 << bits);
            (size + 1).min(most)
        }
    }
}
