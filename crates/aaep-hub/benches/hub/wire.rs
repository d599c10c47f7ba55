//! HTTP/1.1 as a load generator wants it: requests are ready bytes, answers are cut out of bytes.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

use memchr::memmem;

/// A request as bytes.
pub fn request(method: &str, path: &str, token: &str, body: &str) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n");
    if !token.is_empty() {
        text += &format!("authorization: Bearer {token}\r\n");
    }
    if method == "POST" {
        let length = body.len();
        text += &format!("content-type: application/json\r\ncontent-length: {length}\r\n");
    }
    format!("{text}\r\n{body}").into_bytes()
}

#[derive(Debug)]
pub struct WireResponse {
    pub status: u16,
    pub body: String,
}

/// Takes one whole answer out of what has come, if it is there.
pub fn take_answer(buffer: &mut Vec<u8>) -> Option<WireResponse> {
    let head = memmem::find(buffer, b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&buffer[..head]).expect("a head in ASCII");
    let status = text.get(9..12).and_then(|digits| digits.parse().ok()).expect("a status");
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length.map_or(0, |length| length.trim().parse().expect("a length"));
    if buffer.len() < head + length {
        return None;
    }
    let body = String::from_utf8_lossy(&buffer[head..head + length]).into_owned();
    buffer.drain(..head + length);
    Some(WireResponse { status, body })
}

/// Connects, without a delay for small messages.
pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("the server listens");
    stream.set_nodelay(true).expect("a socket");
    stream
}

/// Sends a request and waits for its answer.
pub fn call(stream: &mut TcpStream, request: &[u8]) -> WireResponse {
    stream.write_all(request).expect("the connection lives");
    let (mut buffer, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        if let Some(answer) = take_answer(&mut buffer) {
            return answer;
        }
        let count = stream.read(&mut chunk).expect("the connection lives");
        assert!(count > 0, "the server hung up: {}", String::from_utf8_lossy(request));
        buffer.extend_from_slice(&chunk[..count]);
    }
}

/// Opens a stream of events; what came after its head is returned.
pub fn open(stream: &mut TcpStream, request: &[u8]) -> Vec<u8> {
    stream.write_all(request).expect("the connection lives");
    let (mut buffer, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut chunk).expect("the connection lives");
        assert!(count > 0, "the server hung up");
        buffer.extend_from_slice(&chunk[..count]);
        if let Some(end) = memmem::find(&buffer, b"\r\n\r\n") {
            assert!(buffer.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&buffer));
            return buffer.split_off(end + 4);
        }
    }
}

/// The text value of the first member of this name, which holds no escapes.
pub fn member<'t>(json: &'t str, name: &str) -> &'t str {
    let key = format!("\"{name}\":\"");
    let rest = json.split_once(&key).map(|(_, rest)| rest);
    rest.and_then(|rest| rest.split('"').next()).unwrap_or_else(|| panic!("no {name} in {json}"))
}
