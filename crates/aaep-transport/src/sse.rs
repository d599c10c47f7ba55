//! Server-sent events: how a server writes them, how a client reads them. No input or output here.
//!
//! Published clients read `data: ` with the space, one line of JSON, and only events without a
//! name: give a name on negotiated streams alone (D27).

use std::time::Duration;

use bytes::{Buf, BytesMut};
use memchr::{memchr, memchr2};

use crate::TooLong;

/// A comment. A server sends one when it has had nothing to say for a while, so that the client
/// knows that it is there (W3).
pub const KEEP_ALIVE: &str = ": keep-alive\n\n";

/// The content type of a stream of events.
pub const CONTENT_TYPE: &str = "text/event-stream";

/// The header in which a server says how a stream goes on (W7): [`RESUMED_ALL`] or
/// [`RESUMED_SNAPSHOT`].
pub const RESUMED: &str = "aaep-resumed";
/// Everything that was missed follows.
pub const RESUMED_ALL: &str = "all";
/// How things stand follows; what is not spoken of is over (D28).
pub const RESUMED_SNAPSHOT: &str = "snapshot";

/// Bytes in the name or the id of an event, at most. AAEP's own are far shorter.
pub const MAX_FIELD: usize = 4096;

/// Appends one event.
///
/// Text cannot break out of its field: a line end in the name or the id becomes a space, and data
/// of several lines becomes several data lines of the same event.
// enforces: W1, D27
pub fn write_frame(out: &mut BytesMut, name: Option<&str>, id: Option<&str>, data: &str) {
    let lines = 1 + line_ends(data);
    let fields = name.map_or(0, |name| name.len() + 8) + id.map_or(0, |id| id.len() + 5);
    out.reserve(fields + data.len() + lines * 7 + 1);
    if let Some(name) = name {
        write_field(out, "event: ", name);
    }
    if let Some(id) = id {
        write_field(out, "id: ", id);
    }
    let mut rest = data;
    loop {
        out.extend_from_slice(b"data: ");
        let Some(end) = memchr2(b'\r', b'\n', rest.as_bytes()) else {
            out.extend_from_slice(rest.as_bytes());
            break;
        };
        out.extend_from_slice(&rest.as_bytes()[..end]);
        out.extend_from_slice(b"\n");
        let width = if rest[end..].starts_with("\r\n") { 2 } else { 1 };
        rest = &rest[end + width..];
    }
    out.extend_from_slice(b"\n\n");
}

fn line_ends(data: &str) -> usize {
    match memchr2(b'\r', b'\n', data.as_bytes()) {
        None => 0,
        Some(_) => memchr::memchr2_iter(b'\r', b'\n', data.as_bytes()).count(),
    }
}

fn write_field(out: &mut BytesMut, field: &str, value: &str) {
    out.extend_from_slice(field.as_bytes());
    if value.bytes().any(ends_field) {
        let safe: Vec<u8> = value.bytes().map(|b| if ends_field(b) { b' ' } else { b }).collect();
        out.extend_from_slice(&safe);
    } else {
        out.extend_from_slice(value.as_bytes());
    }
    out.extend_from_slice(b"\n");
}

/// NUL too: a client ignores an id that contains it.
fn ends_field(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n' | 0)
}

/// One event, as a client read it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Frame {
    /// Its name, if it has one.
    pub name: Option<String>,
    /// The id that came with this very event.
    pub id: Option<String>,
    /// Its data, lines joined by `\n`.
    pub data: String,
}

/// Reads events from bytes that come in any portions.
///
/// Push what arrived, take with [`Decoder::next`] until there is no more, then push again: the
/// decoder then holds one event of at most the maximum size, and what was pushed last.
#[derive(Debug)]
pub struct Decoder {
    max: usize,
    input: BytesMut,
    /// How much of `input` is known to hold no line end.
    scanned: usize,
    at_start: bool,
    /// The last line ended with CR, so an LF would belong to it.
    after_cr: bool,
    /// What remains of the present line is dropped: a comment, or too long.
    dropping_line: bool,
    /// The present event is too long, has been reported, and is dropped to its end.
    dropping_event: bool,
    frame: Frame,
    data: Option<Vec<u8>>,
    last_id: Option<String>,
    retry: Option<Duration>,
}

impl Decoder {
    /// A decoder that takes at most `max` bytes of data in an event.
    pub fn new(max: usize) -> Self {
        Self {
            max,
            input: BytesMut::new(),
            scanned: 0,
            at_start: true,
            after_cr: false,
            dropping_line: false,
            dropping_event: false,
            frame: Frame::default(),
            data: None,
            last_id: None,
            retry: None,
        }
    }

    /// Adds what arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// The next event that is complete; an event that is too long is reported once, and dropped.
    #[allow(clippy::should_implement_trait)] // an iterator that has ended does not go on; this does
    pub fn next(&mut self) -> Option<Result<Frame, TooLong>> {
        loop {
            if self.after_cr && !self.input.is_empty() {
                self.after_cr = false;
                if self.input[0] == b'\n' {
                    self.input.advance(1);
                }
            }
            let Some(end) = memchr2(b'\r', b'\n', &self.input[self.scanned..]) else {
                return self.unfinished_line().map(Err);
            };
            let mut line = self.input.split_to(self.scanned + end + 1);
            self.scanned = 0;
            self.after_cr = line.last() == Some(&b'\r');
            line.truncate(line.len() - 1);
            if std::mem::take(&mut self.at_start) && line.starts_with(b"\xEF\xBB\xBF") {
                line.advance(3);
            }
            if std::mem::take(&mut self.dropping_line) {
                continue;
            }
            if let Some(result) = self.line(&line) {
                return Some(result);
            }
        }
    }

    /// The id to come back with after a lost connection (`Last-Event-ID`).
    pub fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// How long the server asked us to wait before coming back, if it did.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// Keeps the beginning of a line, as long as it is worth keeping.
    fn unfinished_line(&mut self) -> Option<TooLong> {
        self.scanned = self.input.len();
        let comment = self.input.first() == Some(&b':');
        let long = self.input.len() > self.longest_line();
        if !(self.dropping_line || comment || long) {
            return None;
        }
        let report = long && !comment && !self.dropping_line;
        (self.dropping_line, self.at_start, self.scanned) = (true, false, 0);
        self.input = BytesMut::new();
        if report { self.too_long() } else { None }
    }

    fn longest_line(&self) -> usize {
        self.max.max(MAX_FIELD) + "data: ".len()
    }

    fn line(&mut self, line: &[u8]) -> Option<Result<Frame, TooLong>> {
        if line.is_empty() {
            return self.end_of_event().map(Ok);
        }
        if line.len() > self.longest_line() && line[0] != b':' {
            return self.too_long().map(Err);
        }
        let colon = memchr(b':', line);
        let field = &line[..colon.unwrap_or(line.len())];
        let value = colon.map_or(&b""[..], |colon| &line[colon + 1..]);
        let value = value.strip_prefix(b" ").unwrap_or(value);
        let fits = match field {
            b"data" => self.add_data(value),
            b"event" => self.set_name(value),
            b"id" => self.set_id(value),
            b"retry" => self.set_retry(value),
            _ => true,
        };
        if fits { None } else { self.too_long().map(Err) }
    }

    fn add_data(&mut self, value: &[u8]) -> bool {
        if self.dropping_event {
            return true;
        }
        let before = self.data.as_ref().map_or(0, |data| data.len() + 1);
        if before + value.len() > self.max {
            return false;
        }
        match &mut self.data {
            Some(data) => {
                data.push(b'\n');
                data.extend_from_slice(value);
            }
            None => self.data = Some(value.to_vec()),
        }
        true
    }

    fn set_name(&mut self, value: &[u8]) -> bool {
        let fits = value.len() <= MAX_FIELD;
        if fits {
            self.frame.name = Some(text(value.to_vec())).filter(|name| !name.is_empty());
        }
        fits
    }

    /// An empty id takes the last one back; one with NUL is none at all.
    fn set_id(&mut self, value: &[u8]) -> bool {
        let fits = value.len() <= MAX_FIELD;
        if fits && memchr(0, value).is_none() {
            self.frame.id = Some(text(value.to_vec()));
        }
        fits
    }

    fn set_retry(&mut self, value: &[u8]) -> bool {
        let digits = value.iter().all(u8::is_ascii_digit);
        let text = std::str::from_utf8(value).ok().filter(|_| digits);
        if let Some(milliseconds) = text.and_then(|text| text.parse().ok()) {
            self.retry = Some(Duration::from_millis(milliseconds));
        }
        true
    }

    fn too_long(&mut self) -> Option<TooLong> {
        self.data = None;
        let known = std::mem::replace(&mut self.dropping_event, true);
        (!known).then_some(TooLong { max: self.max })
    }

    /// The id counts even if the event was dropped: who came back with an older one would be sent
    /// the same event again and again.
    fn end_of_event(&mut self) -> Option<Frame> {
        let mut frame = std::mem::take(&mut self.frame);
        if let Some(id) = &frame.id {
            self.last_id = Some(id.clone()).filter(|id| !id.is_empty());
        }
        let data = self.data.take();
        if std::mem::take(&mut self.dropping_event) {
            return None;
        }
        frame.data = text(data?);
        Some(frame)
    }
}

/// The format says that broken UTF-8 is replaced, not refused.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
