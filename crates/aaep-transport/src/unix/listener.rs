//! The server's half: a socket of our own on which others connect.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use super::place::{self, PlaceError};
use super::share::{ConnectionSlot, ConnectionSlots};
use super::{FirstByte, link, other_user, peer_of};
use crate::link::{Link, Options};
use crate::peer::Peer;

/// Connections that one listener holds, unless it is told otherwise.
pub const MAX_CONNECTIONS: usize = 1024;

/// Of those, connections of one process.
pub const MAX_CONNECTIONS_PER_PROCESS: usize = 256;

/// A pause after `accept` has failed, say for want of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Listens on a socket of our own; the file is removed at the end.
pub struct Listener {
    listener: UnixListener,
    path: PathBuf,
    places: ConnectionSlots,
    options: Options,
    /// Locked as long as we listen. It stays behind: who removed it could remove another's.
    lock: File,
}

impl Listener {
    /// Listens at `path`, such as [`path_for`](super::path_for) gives. Its directory is made if it is missing, and
    /// must be ours alone. A file left behind by a hub that ended is replaced; if another hub
    /// listens there, that is an error.
    // enforces: W10
    pub fn bind(path: &Path, options: Options) -> Result<Self, PlaceError> {
        let Some(directory) = path.parent() else {
            return Err(PlaceError::NotOurs { path: path.into(), why: "it has no directory" });
        };
        place::claim_directory(directory)?;
        let lock = place::lock(path)?;
        remove_stale(path)?;
        let unusable = |error| PlaceError::Unusable { path: path.into(), error };
        let listener = UnixListener::bind(path).map_err(unusable)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(unusable)?;
        let places = ConnectionSlots::new(MAX_CONNECTIONS, MAX_CONNECTIONS_PER_PROCESS);
        Ok(Self { listener, path: path.into(), places, options, lock })
    }

    /// The same with other limits of connections: of all, and of one process.
    #[must_use]
    pub fn with_connections(mut self, most: usize, most_of_one: usize) -> Self {
        self.places = ConnectionSlots::new(most, most_of_one);
        self
    }

    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The next connection of our own user, as a link. Others are refused, and a failing `accept` is
    /// tried again, so this never ends. Dropping the future loses nothing.
    pub async fn accept(&self) -> Link {
        let Connection { stream, peer, place, options } = self.accept_any().await;
        link(stream, None, peer, place, &options)
    }

    /// The same, whatever it will speak.
    // enforces: W10
    pub async fn accept_any(&self) -> Connection {
        loop {
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    warn!(%error, "cannot accept connections; trying again");
                    sleep(ACCEPT_PAUSE).await;
                    continue;
                }
            };
            let peer = match own_user(&stream) {
                Ok(peer) => peer,
                Err(error) => {
                    warn!(%error, "a connection was refused");
                    continue;
                }
            };
            peer.look();
            match self.places.take(peer.credentials().and_then(|found| found.pid)) {
                Ok(place) => return Connection { stream, peer, place, options: self.options },
                Err(why) => warn!(%peer, "a connection was refused: {why}"),
            }
        }
    }
}

/// A connection that has said nothing yet.
pub struct Connection {
    stream: UnixStream,
    peer: Peer,
    place: ConnectionSlot,
    options: Options,
}

/// What a connection speaks.
pub enum Spoken {
    /// Messages, each with its length in front.
    Messages(Box<Link>),
    /// HTTP, from this peer.
    Http(HttpStream, Peer),
}

impl Connection {
    /// Waits for the first byte, which tells what it speaks; `None` if none comes in time.
    pub async fn spoken(self, wait: Duration) -> Option<Spoken> {
        let Self { mut stream, peer, place, options } = self;
        let first = match timeout(wait, stream.read_u8()).await {
            Ok(Ok(first)) => first,
            _ => {
                debug!(%peer, "a connection said nothing");
                return None;
            }
        };
        if first < b'A' {
            let link = link(stream, Some(first), peer, place, &options);
            return Some(Spoken::Messages(Box::new(link)));
        }
        Some(Spoken::Http(
            HttpStream { first: FirstByte(Some(first)), stream, _place: place },
            peer,
        ))
    }
}

/// A connection that speaks HTTP, with the place that it takes.
pub struct HttpStream {
    first: FirstByte,
    stream: UnixStream,
    _place: ConnectionSlot,
}

impl AsyncRead for HttpStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.first.put(buffer) {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for HttpStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        // The lock is still held, so the file is ours. If it is gone, so much the better.
        let _ = fs::remove_file(&self.path);
        // By name: a program that is just being started may hold a copy of the file for a moment.
        let _ = self.lock.unlock();
    }
}

/// Who is at the other end, if it is our own user.
fn own_user(stream: &UnixStream) -> io::Result<Peer> {
    let own = rustix::process::geteuid().as_raw();
    let peer = peer_of(stream)?;
    match peer.credentials() {
        Some(found) if found.uid == own => Ok(peer),
        _ => Err(other_user(&peer, own)),
    }
}

/// Removes a socket on which nobody listens any more. We hold the lock, so nobody of ours does; a
/// program that knows nothing of the lock might.
fn remove_stale(path: &Path) -> Result<(), PlaceError> {
    let found = match fs::symlink_metadata(path) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(PlaceError::Unusable { path: path.into(), error }),
    };
    if !found.file_type().is_socket() {
        return Err(PlaceError::NotOurs { path: path.into(), why: "it is not a socket" });
    }
    match std::os::unix::net::UnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            fs::remove_file(path).map_err(|error| PlaceError::Unusable { path: path.into(), error })
        }
        _ => Err(PlaceError::Taken(path.into())),
    }
}
