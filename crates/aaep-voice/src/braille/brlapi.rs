//! A small client of BRLTTY's BrlAPI, protocol version 8, over TCP or a Unix socket.
//!
//! Each packet is its size, its type and its data, in network byte order. The client takes only the
//! keys that it uses: everything else, such as typing on the display, stays with BRLTTY.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
#[cfg(unix)]
use std::os::unix::net::UnixStream;
#[cfg(unix)]
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use super::Key;

const VERSION: u32 = 8;

/// The TCP port of the first server; the number in an address is added to it.
const FIRST_PORT: u16 = 4101;

/// The largest packet.
const MAX_PACKET: usize = 4096;

/// How long the server may take for an answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

const PACKET_VERSION: u32 = b'v' as u32;
const PACKET_AUTH: u32 = b'a' as u32;
const PACKET_SIZE: u32 = b's' as u32;
const PACKET_ENTER: u32 = b't' as u32;
const PACKET_LEAVE: u32 = b'L' as u32;
const PACKET_KEY: u32 = b'k' as u32;
const PACKET_IGNORE: u32 = b'm' as u32;
const PACKET_ACCEPT: u32 = b'u' as u32;
const PACKET_WRITE: u32 = b'w' as u32;
const PACKET_ACK: u32 = b'A' as u32;
const PACKET_ERROR: u32 = b'e' as u32;
const PACKET_EXCEPTION: u32 = b'E' as u32;

const AUTH_NONE: u32 = b'N' as u32;
const AUTH_KEY: u32 = b'K' as u32;

/// Region, text, cursor and character set are given.
const WRITE_FLAGS: u32 = 0x02 | 0x04 | 0x20 | 0x40;

/// A key code of the type "command".
const COMMAND: u64 = 0x2000_0000;
/// The routing keys, with the cell in the lower half.
const ROUTE: u64 = COMMAND | 0x1_0000;

/// The commands that are taken, as BRLTTY numbers them.
const TAKEN: [(u64, Key); 8] = [
    (1, Key::First),  // a line up
    (2, Key::Last),   // a line down
    (23, Key::Left),  // a window left
    (24, Key::Right), // a window right
    (25, Key::Left),  // the same, skipping blank windows
    (26, Key::Right),
    (29, Key::Dismiss), // to the cursor
    (31, Key::Dismiss), // to the cursor or back
];

/// Where BRLTTY listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// A Unix socket.
    #[cfg(unix)]
    Unix(PathBuf),
    /// A host and a port.
    Tcp(String),
}

impl Address {
    /// As `BRLAPI_HOST` has it: `HOST:N`, or `:N` for a socket of this machine; the first one without.
    pub fn parse(text: &str) -> Option<Self> {
        let (host, number) = text.rsplit_once(':').unwrap_or((text, "0"));
        let number: u16 = number.parse().ok()?;
        Some(match host {
            #[cfg(unix)]
            "" => Self::Unix(PathBuf::from("/var/lib/BrlAPI").join(number.to_string())),
            host => Self::Tcp(format!("{host}:{}", FIRST_PORT.checked_add(number)?)),
        })
    }
}

enum Stream {
    #[cfg(unix)]
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Stream {
    fn connect(address: &Address) -> io::Result<Self> {
        Ok(match address {
            #[cfg(unix)]
            Address::Unix(path) => {
                let stream = UnixStream::connect(path)?;
                stream.set_write_timeout(Some(ANSWER_WITHIN))?;
                Self::Unix(stream)
            }
            Address::Tcp(place) => {
                let stream = TcpStream::connect(place)?;
                stream.set_nodelay(true)?;
                stream.set_write_timeout(Some(ANSWER_WITHIN))?;
                Self::Tcp(stream)
            }
        })
    }

    fn try_clone(&self) -> io::Result<Self> {
        Ok(match self {
            #[cfg(unix)]
            Self::Unix(stream) => Self::Unix(stream.try_clone()?),
            Self::Tcp(stream) => Self::Tcp(stream.try_clone()?),
        })
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            #[cfg(unix)]
            Self::Unix(stream) => stream.write_all(bytes),
            Self::Tcp(stream) => stream.write_all(bytes),
        }
    }

    fn read_exact(&mut self, bytes: &mut [u8]) -> io::Result<()> {
        match self {
            #[cfg(unix)]
            Self::Unix(stream) => stream.read_exact(bytes),
            Self::Tcp(stream) => stream.read_exact(bytes),
        }
    }

    fn shutdown(&self) {
        let _ = match self {
            #[cfg(unix)]
            Self::Unix(stream) => stream.shutdown(Shutdown::Both),
            Self::Tcp(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

/// What the server sends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// A key was pressed.
    Key(Key),
    /// The server is gone.
    Lost,
}

/// A connection to BRLTTY.
pub struct Brlapi {
    stream: Stream,
    answers: Receiver<(u32, Vec<u8>)>,
}

impl Brlapi {
    /// Connects and shows the key, if one is asked for. What the server sends by itself goes to
    /// `sent`, from another thread.
    pub fn connect(
        address: &Address,
        key_file: &std::path::Path,
        sent: impl Fn(Sent) + Send + 'static,
    ) -> io::Result<Self> {
        let stream = Stream::connect(address)?;
        let mut reading = stream.try_clone()?;
        let (give, answers) = channel();
        std::thread::spawn(move || {
            read(&mut reading, &give, &sent);
            sent(Sent::Lost);
        });
        let mut brlapi = Self { stream, answers };
        brlapi.greet(key_file)?;
        Ok(brlapi)
    }

    fn greet(&mut self, key_file: &std::path::Path) -> io::Result<()> {
        let version = self.answer(PACKET_VERSION)?;
        if integer(&version, 0) != Some(VERSION) {
            return Err(io::Error::other("BRLTTY speaks another version of BrlAPI"));
        }
        self.send(PACKET_VERSION, &VERSION.to_be_bytes())?;
        let offered = self.answer(PACKET_AUTH)?;
        let offers = |kind| offered.chunks(4).any(|one| integer(one, 0) == Some(kind));
        if offers(AUTH_NONE) {
            return Ok(());
        }
        if !offers(AUTH_KEY) {
            return Err(io::Error::other("BRLTTY does not let this user in"));
        }
        let key = std::fs::read(key_file).map_err(|error| {
            io::Error::other(format!("its key {} cannot be read: {error}", key_file.display()))
        })?;
        let mut data = AUTH_KEY.to_be_bytes().to_vec();
        data.extend(&key[..key.len().min(MAX_PACKET - 4)]);
        self.send(PACKET_AUTH, &data)?;
        self.answer(PACKET_ACK).map(drop)
    }

    /// How many cells the display has; 0 without one. Of a display with several lines, the first.
    pub fn cells(&mut self) -> io::Result<usize> {
        self.send(PACKET_SIZE, &[])?;
        let size = self.answer(PACKET_SIZE)?;
        let (columns, lines) = (integer(&size, 0).unwrap_or(0), integer(&size, 4).unwrap_or(0));
        Ok(if lines == 0 { 0 } else { columns.min(1_000) as usize })
    }

    /// Takes the display at this place in the tree of terminals, and the keys that are used.
    pub fn enter(&mut self, path: &[u32]) -> io::Result<()> {
        let path = &path[..path.len().min(64)];
        let mut data = u32::try_from(path.len()).unwrap_or(0).to_be_bytes().to_vec();
        path.iter().for_each(|one| data.extend(one.to_be_bytes()));
        // Keys as commands, not as the driver has them.
        data.push(0);
        self.send(PACKET_ENTER, &data)?;
        self.answer(PACKET_ACK)?;
        self.range(PACKET_IGNORE, 0, u64::MAX)?;
        let any_flags = 0xffff_ffff_0000_0000;
        for (command, _) in TAKEN {
            self.range(PACKET_ACCEPT, COMMAND | command, any_flags | COMMAND | command)?;
        }
        self.range(PACKET_ACCEPT, ROUTE, any_flags | ROUTE | 0xffff)
    }

    fn range(&mut self, packet: u32, first: u64, last: u64) -> io::Result<()> {
        let mut data = first.to_be_bytes().to_vec();
        data.extend(last.to_be_bytes());
        self.send(packet, &data)?;
        self.answer(PACKET_ACK).map(drop)
    }

    /// Gives the display back. BRLTTY looks what others wrote only when somebody writes: without a blank
    /// line at last the question would stand there until a key is pressed.
    pub fn leave(&mut self, cells: usize) -> io::Result<()> {
        self.write("", cells)?;
        self.send(PACKET_LEAVE, &[])?;
        self.answer(PACKET_ACK).map(drop)
    }

    /// Shows a text from the first cell on; the rest is blank. BRLTTY turns it into dots by the
    /// user's own table.
    pub fn write(&mut self, text: &str, cells: usize) -> io::Result<()> {
        let text: String = crate::speech::single_line(text).chars().take(cells.min(900)).collect();
        let mut data = WRITE_FLAGS.to_be_bytes().to_vec();
        data.extend(1_u32.to_be_bytes());
        // A negative length fills the rest of the display.
        let length = i32::try_from(cells).unwrap_or(i32::MAX);
        data.extend((-length).to_be_bytes());
        data.extend(u32::try_from(text.len()).unwrap_or(0).to_be_bytes());
        data.extend(text.as_bytes());
        // No cursor.
        data.extend(0_u32.to_be_bytes());
        data.push(5);
        data.extend(b"UTF-8");
        self.send(PACKET_WRITE, &data)
    }

    fn send(&mut self, packet: u32, data: &[u8]) -> io::Result<()> {
        let mut bytes = u32::try_from(data.len()).unwrap_or(0).to_be_bytes().to_vec();
        bytes.extend(packet.to_be_bytes());
        bytes.extend(data);
        self.stream.write_all(&bytes)
    }

    fn answer(&mut self, wanted: u32) -> io::Result<Vec<u8>> {
        match self.answers.recv_timeout(ANSWER_WITHIN) {
            Ok((packet, data)) if packet == wanted => Ok(data),
            Ok((PACKET_ERROR | PACKET_EXCEPTION, data)) => {
                let code = integer(&data, 0).unwrap_or(0);
                Err(io::Error::other(format!("BRLTTY refuses it with error {code}")))
            }
            Ok(_) => Err(io::Error::other("BRLTTY answers out of turn")),
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "BRLTTY does not answer")),
        }
    }
}

impl Drop for Brlapi {
    fn drop(&mut self) {
        self.stream.shutdown();
    }
}

fn integer(data: &[u8], at: usize) -> Option<u32> {
    data.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
}

/// Reads until the server is gone.
fn read(stream: &mut Stream, answers: &Sender<(u32, Vec<u8>)>, sent: &impl Fn(Sent)) {
    loop {
        let mut head = [0; 8];
        if stream.read_exact(&mut head).is_err() {
            return;
        }
        let (size, packet) = (integer(&head, 0).unwrap_or(0), integer(&head, 4).unwrap_or(0));
        let size = size as usize;
        if size > MAX_PACKET {
            return;
        }
        let mut data = vec![0; size];
        if stream.read_exact(&mut data).is_err() {
            return;
        }
        match packet {
            PACKET_KEY => {
                let code = integer(&data, 4).map(u64::from);
                code.and_then(key).into_iter().for_each(|key| sent(Sent::Key(key)));
            }
            _ if answers.send((packet, data)).is_err() => return,
            _ => {}
        }
    }
}

/// What a key code means; its flags do not matter.
fn key(code: u64) -> Option<Key> {
    if code & !0xffff == ROUTE {
        return Some(Key::Routing((code & 0xffff) as usize));
    }
    TAKEN.iter().find(|(command, _)| COMMAND | command == code).map(|(_, key)| *key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_brltty_reads_them() {
        let tcp = |place: &str| Some(Address::Tcp(place.into()));
        assert_eq!(Address::parse(":0"), Some(Address::Unix("/var/lib/BrlAPI/0".into())));
        assert_eq!(Address::parse(""), Some(Address::Unix("/var/lib/BrlAPI/0".into())));
        assert_eq!(Address::parse("127.0.0.1:5"), tcp("127.0.0.1:4106"));
        assert_eq!(Address::parse("host"), tcp("host:4101"));
        assert_eq!(Address::parse("host:x"), None);
    }

    #[test]
    fn only_the_keys_that_are_used_mean_something() {
        assert_eq!(key(0x2000_0018), Some(Key::Right));
        assert_eq!(key(0x2001_0007), Some(Key::Routing(7)));
        assert_eq!(key(0x2000_0000), None);
        assert_eq!(key(u64::from(b'y')), None);
    }
}
