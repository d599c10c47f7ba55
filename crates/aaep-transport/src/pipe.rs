//! Named pipes on Windows (W13): each message with its length in front.
//!
//! Only Windows has this. Our checks compile it for that target (`cargo xtask test --only windows`);
//! nobody has run it yet.
//!
//! The pipe's default access list lets its user, administrators and the system write, and others read. A
//! subscriber has to write a handshake before it hears anything, so others hear nothing; remote clients
//! are refused. The other way round nothing protects a client: another user's program may have taken the
//! name before the hub did, and without unsafe code nobody can ask whose it is. So a client connects only
//! if it is told to trust whatever is there.

use std::io;
#[cfg(feature = "client")]
use std::time::Duration;

#[cfg(feature = "client")]
use tokio::net::windows::named_pipe::ClientOptions;
#[cfg(feature = "server")]
use tokio::net::windows::named_pipe::{NamedPipeServer, ServerOptions};

use crate::link::{Link, Options};
use crate::peer::{Credentials, Peer};

/// The pipe of a hub with this name.
pub fn path_for(agent_id: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let name: String = agent_id.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    format!(r"\\.\pipe\aaep\{name}")
}

/// Somebody on this machine; Windows tells no more without unsafe code.
fn somebody() -> Peer {
    Peer::unix(Credentials { uid: u32::MAX, gid: u32::MAX, pid: None })
}

/// How long a client waits for an instance that is free.
#[cfg(feature = "client")]
const BUSY: Duration = Duration::from_millis(50);

/// All instances of a pipe are busy.
#[cfg(feature = "client")]
const ERROR_PIPE_BUSY: i32 = 231;

/// Connects to a pipe without checking who listens there: `trusts_whoever` has to be true.
// enforces: W13
#[cfg(feature = "client")]
pub async fn connect(path: &str, trusts_whoever: bool, options: Options) -> io::Result<Link> {
    if !trusts_whoever {
        let text = "nobody can tell whose pipe it is. Where every user of this machine is trusted, say \
                    so with --trust-loopback";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    loop {
        match ClientOptions::new().open(path) {
            Ok(pipe) => {
                let (reader, writer) = tokio::io::split(pipe);
                return Ok(Link::framed(reader, writer, somebody(), &options));
            }
            Err(error) if error.raw_os_error() == Some(ERROR_PIPE_BUSY) => {
                tokio::time::sleep(BUSY).await;
            }
            Err(error) => return Err(error),
        }
    }
}

/// Listens on a pipe.
#[cfg(feature = "server")]
pub struct Listener {
    path: String,
    next: NamedPipeServer,
    options: Options,
}

#[cfg(feature = "server")]
impl Listener {
    /// Takes the name; an error if another program has it.
    // enforces: W13
    pub fn bind(path: &str, options: Options) -> io::Result<Self> {
        let next = ServerOptions::new()
            .first_pipe_instance(true)
            .reject_remote_clients(true)
            .create(path)?;
        Ok(Self { path: path.to_owned(), next, options })
    }

    /// The next connection.
    pub async fn accept(&mut self) -> io::Result<Link> {
        self.next.connect().await?;
        let next = ServerOptions::new().reject_remote_clients(true).create(&self.path)?;
        let (reader, writer) = tokio::io::split(std::mem::replace(&mut self.next, next));
        Ok(Link::framed(reader, writer, somebody(), &self.options))
    }
}
