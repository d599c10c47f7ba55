//! Unix sockets (W10): each message with its length in front, or HTTP, and the kernel says who is
//! there.
//!
//! One socket carries both. The first byte tells them apart: a message's length begins with a small
//! one, since no message has a gigabyte, and an HTTP request with a letter.
//!
//! Not on Windows. Everything else in this crate works there; a named pipe (W13) would be a
//! transport of its own.
//!
//! Such a socket never leaves its machine as it is: a tunnel that carries it elsewhere encrypts it (W16).

#[cfg(feature = "server")]
mod listener;
mod place;
#[cfg(feature = "server")]
mod share;

use std::io;
#[cfg(feature = "client")]
use std::path::Path;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;

use crate::link::{Link, Options};
use crate::peer::{Credentials, Peer};

#[cfg(feature = "server")]
pub use listener::{
    Connection, HttpStream, Listener, MAX_CONNECTIONS, MAX_CONNECTIONS_PER_PROCESS, Spoken,
};
pub use place::{PlaceError, directory, path_for};

/// Connects to the socket at `path`, if our own user listens there, or root.
// enforces: W10
#[cfg(feature = "client")]
pub async fn connect(path: &Path, options: Options) -> io::Result<Link> {
    let (stream, peer) = reach(path).await?;
    Ok(link(stream, None, peer, (), &options))
}

/// Connects to the socket at `path`. Neither the file nor the listening process may be another user's, or
/// that user would be asked in the hub's place.
// enforces: W10, S5
#[cfg(feature = "client")]
pub(crate) async fn reach(path: &Path) -> io::Result<(UnixStream, Peer)> {
    place::check_socket(path)?;
    let stream = UnixStream::connect(path).await?;
    let own = rustix::process::geteuid().as_raw();
    let peer = peer_of(&stream)?;
    match peer.credentials() {
        Some(found) if found.uid == own || found.uid == 0 => Ok((stream, peer)),
        _ => Err(other_user(&peer, own)),
    }
}

fn other_user(peer: &Peer, own: u32) -> io::Error {
    let text = format!("the other end belongs to another user ({peer}), not to user {own}");
    io::Error::new(io::ErrorKind::PermissionDenied, text)
}

fn peer_of(stream: &UnixStream) -> io::Result<Peer> {
    let found = stream.peer_cred()?;
    let (uid, gid, pid) = (found.uid(), found.gid(), found.pid());
    Ok(Peer::unix(Credentials { uid, gid, pid }))
}

/// A link over this stream; `place` is held as long as it is read.
fn link<P: Send + Sync + Unpin + 'static>(
    stream: UnixStream,
    first: Option<u8>,
    peer: Peer,
    place: P,
    options: &Options,
) -> Link {
    let (reader, writer) = stream.into_split();
    Link::framed(
        LinkReader { first: FirstByte(first), reader, _place: place },
        writer,
        peer,
        options,
    )
}

/// What was read of a connection to see what it speaks; it is read again before the rest.
struct FirstByte(Option<u8>);

impl FirstByte {
    /// Puts it into the buffer, once; false if there is nothing to put there.
    fn put(&mut self, buffer: &mut ReadBuf<'_>) -> bool {
        match self.0.take_if(|_| buffer.remaining() > 0) {
            Some(first) => {
                buffer.put_slice(&[first]);
                true
            }
            None => false,
        }
    }
}

/// The reading half of a link, with the place that the connection takes.
struct LinkReader<P> {
    first: FirstByte,
    reader: OwnedReadHalf,
    _place: P,
}

impl<P: Unpin> AsyncRead for LinkReader<P> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.first.put(buffer) {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.reader).poll_read(context, buffer)
    }
}
