//! Just enough HTTP/1.1 to be spoken with: for the reference producer, and for the stage on which
//! subscribers are tried.

use std::io;

use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::tcp::OwnedReadHalf;

const MAX_HEAD: u64 = 16 * 1024;
/// The longest body that is taken; a longer one is refused before it is read.
pub(super) const MAX_BODY: usize = 256 * 1024;

/// A request. Names of headers are in small letters.
#[derive(Debug, Default)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) query: String,
    headers: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    /// Its body is longer than is taken, and was not read.
    pub(super) is_too_long: bool,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(it, _)| it == name).map(|(_, value)| value.as_str())
    }

    /// Whether it is about this, whatever the path begins with.
    pub(super) fn asks(&self, method: &str, end: &str) -> bool {
        self.method == method && self.path.ends_with(end)
    }

    pub(super) fn parameter(&self, name: &str) -> Option<&str> {
        self.query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))
    }
}

/// The next request of a connection; `None` at its end.
pub(super) async fn read(reader: &mut BufReader<OwnedReadHalf>) -> io::Result<Option<Request>> {
    let mut head = (&mut *reader).take(MAX_HEAD);
    let mut line = String::new();
    if head.read_line(&mut line).await? == 0 {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let method = words.next().unwrap_or_default().to_owned();
    let target = words.next().unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut request =
        Request { method, path: path.into(), query: query.into(), ..Request::default() };
    loop {
        let mut header = String::new();
        if head.read_line(&mut header).await? == 0 {
            return Ok(None);
        }
        let Some((name, value)) = header.trim().split_once(':') else { break };
        request.headers.push((name.trim().to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = request.header("content-length").map_or(Ok(0), str::parse);
    let length: usize = length.unwrap_or(usize::MAX);
    if length > MAX_BODY {
        request.is_too_long = true;
        return Ok(Some(request));
    }
    request.body = vec![0; length];
    reader.read_exact(&mut request.body).await?;
    Ok(Some(request))
}

/// An answer with these further header lines, each ending in `\r\n`.
pub(super) fn answer(status: &str, headers: &str, body: &str) -> String {
    let length = match status.starts_with("204") {
        true => String::new(),
        false => format!("content-length: {}\r\n", body.len()),
    };
    format!("HTTP/1.1 {status}\r\n{headers}{length}\r\n{body}")
}

/// The head of a stream of events.
pub(super) const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\naccess-control-allow-origin: *\r\n\r\n: here\n\n";
