//! A connection that breaks: requests arrive, and their answers are lost now and then.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// A proxy in front of a hub that loses every so many answers, after the hub has acted.
pub struct Flaky {
    pub address: SocketAddr,
    pub lost: Arc<AtomicU64>,
    accepting: JoinHandle<()>,
}

impl Flaky {
    /// Takes a port; passes things on once the hub's address is known.
    pub async fn bind() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    pub fn start(listener: TcpListener, hub: SocketAddr, every: u64) -> Self {
        let address = listener.local_addr().unwrap();
        let lost = Arc::new(AtomicU64::new(0));
        let (counter, lost_too) = (Arc::new(AtomicU64::new(0)), lost.clone());
        let accepting = tokio::spawn(async move {
            while let Ok((inner, _)) = listener.accept().await {
                tokio::spawn(pass(inner, hub, every, counter.clone(), lost_too.clone()));
            }
        });
        Self { address, lost, accepting }
    }

    pub fn url(&self) -> String {
        format!("http://{}/aaep/v1", self.address)
    }
}

impl Drop for Flaky {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn pass(
    inner: TcpStream,
    hub: SocketAddr,
    every: u64,
    counter: Arc<AtomicU64>,
    lost: Arc<AtomicU64>,
) {
    let Ok(outer) = TcpStream::connect(hub).await else { return };
    let (mut from_client, mut to_client) = inner.into_split();
    let (mut from_hub, mut to_hub) = outer.into_split();
    let there = tokio::spawn(async move { copy(&mut from_client, &mut to_hub).await });
    let mut bytes = vec![0; 64 * 1024];
    while let Ok(size @ 1..) = from_hub.read(&mut bytes).await {
        if counter.fetch_add(1, Ordering::Relaxed) % every == every - 1 {
            lost.fetch_add(1, Ordering::Relaxed);
            break;
        }
        if to_client.write_all(&bytes[..size]).await.is_err() {
            break;
        }
    }
    there.abort();
}
