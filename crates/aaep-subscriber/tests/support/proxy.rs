//! A way to the hub that can be cut.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinHandle};

/// Passes connections on, until they are cut.
pub struct Proxy {
    pub address: SocketAddr,
    hub: Arc<Mutex<Option<SocketAddr>>>,
    ways: Arc<Mutex<Vec<AbortHandle>>>,
    accepting: JoinHandle<()>,
}

impl Proxy {
    /// Takes a port; passes nothing on until it is opened.
    pub async fn bind() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (hub, ways) = (Arc::new(Mutex::new(None)), Arc::new(Mutex::new(Vec::new())));
        let (to, open) = (hub.clone(), ways.clone());
        let accepting = tokio::spawn(async move {
            while let Ok((mut inner, _)) = listener.accept().await {
                let hub: Option<SocketAddr> = *to.lock().unwrap();
                let Some(hub) = hub else { continue };
                let passing = tokio::spawn(async move {
                    if let Ok(mut outer) = TcpStream::connect(hub).await {
                        let _ = copy_bidirectional(&mut inner, &mut outer).await;
                    }
                });
                open.lock().unwrap().push(passing.abort_handle());
            }
        });
        Self { address, hub, ways, accepting }
    }

    pub fn open(&self, hub: SocketAddr) {
        *self.hub.lock().unwrap() = Some(hub);
    }

    /// Every connection breaks, and no new one is made until it is opened again.
    pub fn cut(&self) {
        *self.hub.lock().unwrap() = None;
        self.ways.lock().unwrap().drain(..).for_each(|way| way.abort());
    }
}

/// The same before a Unix socket.
#[cfg(unix)]
pub struct SocketProxy {
    pub path: std::path::PathBuf,
    open: Arc<Mutex<bool>>,
    ways: Arc<Mutex<Vec<AbortHandle>>>,
    accepting: JoinHandle<()>,
    _home: tempfile::TempDir,
}

#[cfg(unix)]
impl SocketProxy {
    pub fn bind(hub: std::path::PathBuf) -> Self {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("way.sock");
        let listener = tokio::net::UnixListener::bind(&path).unwrap();
        let (open, ways) = (Arc::new(Mutex::new(true)), Arc::new(Mutex::new(Vec::new())));
        let (is_open, made) = (open.clone(), ways.clone());
        let accepting = tokio::spawn(async move {
            while let Ok((mut inner, _)) = listener.accept().await {
                if !*is_open.lock().unwrap() {
                    continue;
                }
                let hub = hub.clone();
                let passing = tokio::spawn(async move {
                    if let Ok(mut outer) = tokio::net::UnixStream::connect(hub).await {
                        let _ = copy_bidirectional(&mut inner, &mut outer).await;
                    }
                });
                made.lock().unwrap().push(passing.abort_handle());
            }
        });
        Self { path, open, ways, accepting, _home: home }
    }

    pub fn open(&self) {
        *self.open.lock().unwrap() = true;
    }

    pub fn cut(&self) {
        *self.open.lock().unwrap() = false;
        self.ways.lock().unwrap().drain(..).for_each(|way| way.abort());
    }
}

#[cfg(unix)]
impl Drop for SocketProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}
