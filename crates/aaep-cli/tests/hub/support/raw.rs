//! Bytes over TCP, for those who do not keep to HTTP.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::{Hub, PATIENCE};

/// An answer, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Reply {
    /// Everything but the date and the id of the request.
    pub fn without_date(&self) -> (String, Vec<u8>) {
        let lines = self
            .head
            .split("\r\n")
            .filter(|line| !line.starts_with("date:") && !line.starts_with("x-request-id:"));
        (lines.collect::<Vec<_>>().join("\r\n"), self.body.clone())
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// One connection.
pub struct Raw {
    pub stream: TcpStream,
    address: SocketAddr,
    unread: Vec<u8>,
}

impl Raw {
    pub fn connect(hub: &Hub) -> Self {
        let address = hub.address();
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self { stream, address, unread: Vec::new() }
    }

    /// Sends this and gives the answer.
    pub fn once(hub: &Hub, bytes: impl AsRef<[u8]>) -> Reply {
        let mut raw = Self::connect(hub);
        raw.send(bytes);
        raw.reply()
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// The same, if the other end still listens.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.stream.write_all(bytes.as_ref())
    }

    /// The head of a POST with this body, and the body.
    pub fn post(&self, path: &str, token: Option<&str>, body: &str) -> String {
        let head = self.head("POST", path, token, &[("content-type", "application/json")]);
        format!("{head}content-length: {}\r\n\r\n{body}", body.len())
    }

    /// The beginning of a request: without the empty line that ends its head.
    pub fn head(
        &self,
        method: &str,
        path: &str,
        token: Option<&str>,
        headers: &[(&str, &str)],
    ) -> String {
        let path = if path.starts_with('/') { path.into() } else { format!("/aaep/v1/{path}") };
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.address);
        if let Some(token) = token {
            head += &format!("authorization: Bearer {token}\r\n");
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        head
    }

    /// The next answer.
    pub fn reply(&mut self) -> Reply {
        self.try_reply().unwrap_or_else(|| panic!("no answer, but {:?}", self.unread))
    }

    /// The next answer, if it is there already.
    pub fn reply_at_once(&mut self) -> Option<Reply> {
        self.stream.set_nonblocking(true).unwrap();
        let reply = self.try_reply();
        self.stream.set_nonblocking(false).unwrap();
        reply
    }

    /// The next answer; `None` if the connection ends first.
    pub fn try_reply(&mut self) -> Option<Reply> {
        let end = loop {
            if let Some(at) = self.unread.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            self.more()?;
        };
        let head: Vec<u8> = self.unread.drain(..end).collect();
        let head = String::from_utf8(head).unwrap().trim_end().to_owned();
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length = length.map_or(0, |length| length.parse().unwrap());
        while self.unread.len() < length {
            self.more()?;
        }
        Some(Reply { status, head, body: self.unread.drain(..length).collect() })
    }

    /// Lines of a stream, up to the event that holds this; what HTTP puts between is left out.
    pub fn lines_until(&mut self, end: &str) -> Vec<String> {
        loop {
            let heard = String::from_utf8_lossy(&self.unread).replace("\r\n", "\n");
            if let Some(at) = heard.find(end)
                && heard[at..].contains("\n\n")
            {
                self.unread.clear();
                let is_size = |line: &&str| line.chars().all(|c| c.is_ascii_hexdigit());
                return heard.lines().filter(|line| !is_size(line)).map(String::from).collect();
            }
            self.more().unwrap_or_else(|| panic!("{end:?} does not come after {heard:?}"));
        }
    }

    fn more(&mut self) -> Option<()> {
        let mut buffer = [0; 4096];
        let count = match self.stream.read(&mut buffer) {
            Ok(0) | Err(_) => return None,
            Ok(count) => count,
        };
        self.unread.extend_from_slice(&buffer[..count]);
        Some(())
    }

    /// Waits until the other end has closed the connection; everything that came before.
    pub fn rest(mut self) -> Vec<u8> {
        while self.more().is_some() {}
        self.unread
    }
}
