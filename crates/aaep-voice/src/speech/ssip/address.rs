//! Where Speech Dispatcher is, and how it is started.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to start.
const START_WITHIN: Duration = Duration::from_secs(3);

/// How long a write may take: a server that reads nothing is treated as gone.
const WRITE_WITHIN: Duration = Duration::from_secs(3);

/// A connection over either kind of socket.
pub(super) enum Stream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    pub(super) fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            Stream::Unix(stream) => Stream::Unix(stream.try_clone()?),
            Stream::Tcp(stream) => Stream::Tcp(stream.try_clone()?),
        })
    }

    pub(super) fn shutdown(&self) -> io::Result<()> {
        match self {
            Stream::Unix(stream) => stream.shutdown(Shutdown::Both),
            Stream::Tcp(stream) => stream.shutdown(Shutdown::Both),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.read(buffer),
            Stream::Tcp(stream) => stream.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Unix(stream) => stream.write(bytes),
            Stream::Tcp(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Where the server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Address {
    Unix(PathBuf),
    Tcp(String),
}

impl Address {
    /// `unix_socket:PATH` or `inet_socket:HOST:PORT`, as the server's own library reads it.
    fn parse(text: &str) -> Option<Self> {
        let (method, place) = text.split_once(':').unwrap_or((text, ""));
        match (method, place) {
            ("unix_socket", "" | "default") => Self::usual(),
            ("unix_socket", path) => Some(Self::Unix(path.into())),
            ("inet_socket", "") => Some(Self::Tcp("127.0.0.1:6560".into())),
            ("inet_socket", place) if place.contains(':') => Some(Self::Tcp(place.into())),
            ("inet_socket", host) => Some(Self::Tcp(format!("{host}:6560"))),
            _ => None,
        }
    }

    /// The user's own server.
    fn usual() -> Option<Self> {
        let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let directory = set("XDG_RUNTIME_DIR")
            .or_else(|| set("XDG_CACHE_HOME"))
            .map(PathBuf::from)
            .or_else(|| Some(PathBuf::from(set("HOME")?).join(".cache")))?;
        Some(Self::Unix(directory.join("speech-dispatcher/speechd.sock")))
    }

    fn connect(&self) -> io::Result<Stream> {
        Ok(match self {
            Address::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_write_timeout(Some(WRITE_WITHIN))?;
                Stream::Unix(stream)
            }
            Address::Tcp(place) => {
                let stream = TcpStream::connect(place)?;
                stream.set_nodelay(true)?;
                stream.set_write_timeout(Some(WRITE_WITHIN))?;
                Stream::Tcp(stream)
            }
        })
    }

    /// Asks the server to start, as its own library does; whether it may is its own setting.
    fn spawn(&self) -> bool {
        let Address::Unix(path) = self else { return false };
        let mut command = Command::new("speech-dispatcher");
        command.args(["--spawn", "--communication-method", "unix_socket", "--socket-path"]);
        command.arg(path);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    }
}

/// Connects. A server that nobody named is started where it is not running.
pub(super) fn connect(named: Option<&str>) -> Result<Stream, String> {
    let variable = std::env::var("SPEECHD_ADDRESS").ok().filter(|text| !text.is_empty());
    let address = match named.or(variable.as_deref()) {
        Some(text) => Address::parse(text).ok_or_else(|| {
            format!("{text:?} is no address: write unix_socket:PATH or inet_socket:HOST:PORT.")
        })?,
        None => Address::usual().ok_or("Neither XDG_RUNTIME_DIR nor HOME is set.")?,
    };
    if let Ok(stream) = address.connect() {
        return Ok(stream);
    }
    let hint = "Speech Dispatcher is not running. To start it: speech-dispatcher --spawn.";
    if named.is_some() || !address.spawn() {
        return Err(hint.into());
    }
    let until = Instant::now() + START_WITHIN;
    loop {
        match address.connect() {
            Ok(stream) => return Ok(stream),
            Err(_) if Instant::now() < until => std::thread::sleep(Duration::from_millis(50)),
            Err(_) => return Err(hint.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_the_server_s_own_library_reads_them() {
        let tcp = |place: &str| Some(Address::Tcp(place.into()));
        assert_eq!(
            Address::parse("unix_socket:/run/a.sock"),
            Some(Address::Unix("/run/a.sock".into()))
        );
        assert_eq!(Address::parse("inet_socket"), tcp("127.0.0.1:6560"));
        assert_eq!(Address::parse("inet_socket:host"), tcp("host:6560"));
        assert_eq!(Address::parse("inet_socket:host:7000"), tcp("host:7000"));
        assert_eq!(Address::parse("/run/a.sock"), None);
    }
}
