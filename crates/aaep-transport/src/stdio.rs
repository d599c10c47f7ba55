//! stdio (W12): JSON-RPC 2.0, one object on each line.
//!
//! A subscriber starts the producer as a program and speaks with its standard input and output;
//! standard error is for people. `aaep.subscribe` and `aaep.renegotiate` are requests, whose results are
//! the answers of the handshake; `aaep.event`, `aaep.reply` and `aaep.close` are notifications.
//! `aaep.ping` is answered by the side that is asked.
//!
//! A message arrives byte for byte, but for one thing: line ends between its tokens become spaces, since
//! a line is a message here.

mod envelope;

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use crate::TooLong;
use crate::link::{Link, LinkError, Options, Text};
use crate::peer::{Credentials, Peer};
use envelope::LineContent;

/// Which end of the conversation this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It says what an agent does.
    Producer,
    /// It listens and answers.
    Subscriber,
}

/// Bytes around a message, at most: the envelope of JSON-RPC, with ids of a sensible length.
const ENVELOPE: usize = 4096;

/// Handshakes that wait for their answers, and lines that wait to be written.
const WAITING: usize = 16;

/// A link by line over these two streams of bytes.
pub fn link(
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    peer: Peer,
    role: Role,
    options: &Options,
) -> Link {
    let (to, lines) = mpsc::channel(WAITING);
    tokio::spawn(write_lines(writer, lines, options.write_stall));
    let asked = Arc::<Asked>::default();
    let answers = to.downgrade();
    let sender = LineSender { to: Some(to), role, asked: Arc::clone(&asked) };
    let receiver = LineReceiver {
        reader: Some(Box::new(reader)),
        unread: BytesMut::new(),
        searched: 0,
        skipping: false,
        max_message: options.max_message,
        role,
        asked,
        answers,
    };
    Link::lines(sender, receiver, peer, options)
}

/// Starts a program that is a producer, with the system's shell, and speaks with it. It is stopped when
/// the link is dropped; what it writes to standard error goes to ours.
// enforces: W12
#[cfg(feature = "client")]
pub fn connect(command: &str, options: &Options) -> io::Result<Link> {
    use std::process::Stdio;
    use tokio::process::Command;

    let (shell, flag) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    let mut child = Command::new(shell)
        .args([flag, command])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let (Some(writer), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(io::Error::other("the program has no standard input or output"));
    };
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
    let reader = OfChild { stdout, _child: child };
    Ok(link(reader, writer, process(pid), Role::Subscriber, options))
}

/// What a program says; the program ends with it.
#[cfg(feature = "client")]
struct OfChild {
    stdout: tokio::process::ChildStdout,
    _child: tokio::process::Child,
}

#[cfg(feature = "client")]
impl AsyncRead for OfChild {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stdout).poll_read(context, buffer)
    }
}

/// Speaks, as a producer, with the program that started this one, over our standard input and output.
/// Nothing else may read the one or write the other.
// enforces: W12
#[cfg(feature = "server")]
pub fn serve(
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    options: &Options,
) -> Link {
    link(input, output, process(parent()), Role::Producer, options)
}

#[cfg(all(feature = "server", unix))]
fn parent() -> Option<i32> {
    rustix::process::getppid().map(|pid| pid.as_raw_nonzero().get())
}

#[cfg(all(feature = "server", not(unix)))]
fn parent() -> Option<i32> {
    None
}

/// A process of our own user: one that we started, or that started us.
fn process(pid: Option<i32>) -> Peer {
    #[cfg(unix)]
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    #[cfg(not(unix))]
    let (uid, gid) = (0, 0);
    Peer::unix(Credentials { uid, gid, pid })
}

/// The handshakes that wait for an answer: for a producer the ids to answer, for a subscriber the ids
/// that it gave.
#[derive(Default)]
struct Asked(Mutex<(VecDeque<String>, u64)>);

impl Asked {
    fn held(&self) -> MutexGuard<'_, (VecDeque<String>, u64)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A new id, which waits.
    fn ask(&self) -> String {
        let mut held = self.held();
        held.1 += 1;
        let id = held.1.to_string();
        held.0.push_back(id.clone());
        // An answer that never came is not waited for any more.
        if held.0.len() > WAITING {
            held.0.pop_front();
        }
        id
    }

    /// Another's id, which waits; false if too many do.
    fn wait(&self, id: &str) -> bool {
        let mut held = self.held();
        let room = held.0.len() < WAITING;
        if room {
            held.0.push_back(id.to_owned());
        }
        room
    }

    fn next(&self) -> Option<String> {
        self.held().0.pop_front()
    }

    /// Whether this one waited.
    fn is_answered(&self, id: &str) -> bool {
        let mut held = self.held();
        let at = held.0.iter().position(|known| known == id);
        at.and_then(|at| held.0.remove(at)).is_some()
    }
}

/// A line to write, and who waits until it is.
struct Line {
    text: String,
    written: Option<oneshot::Sender<io::Result<()>>>,
}

/// Writes lines until nobody has any more.
async fn write_lines(
    mut writer: impl AsyncWrite + Unpin,
    mut lines: mpsc::Receiver<Line>,
    wait: Duration,
) {
    while let Some(line) = lines.recv().await {
        let writing = async {
            writer.write_all(line.text.as_bytes()).await?;
            writer.flush().await
        };
        let late = |_| Err(io::Error::from(io::ErrorKind::TimedOut));
        let written = timeout(wait, writing).await.unwrap_or_else(late);
        let failed = written.is_err();
        if let Some(waits) = line.written {
            let _ = waits.send(written);
        }
        if failed {
            return;
        }
    }
    let _ = timeout(wait, writer.shutdown()).await;
}

/// The half of a link that sends.
pub(crate) struct LineSender {
    /// None once it was closed.
    to: Option<mpsc::Sender<Line>>,
    role: Role,
    asked: Arc<Asked>,
}

impl LineSender {
    pub(crate) async fn send(&mut self, text: &Text) -> Result<(), LinkError> {
        let to = self.to.as_ref().ok_or(LinkError::Closed)?;
        let no_object = || LinkError::Violation("a message is a JSON object".into());
        let text = envelope::write(text.as_str(), self.role, &self.asked).ok_or_else(no_object)?;
        let (written, is_written) = oneshot::channel();
        let lost = |why: String| LinkError::Lost(why);
        let gone = || lost("the other end has gone".into());
        to.send(Line { text, written: Some(written) }).await.map_err(|_| gone())?;
        match is_written.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(lost(error.to_string())),
            Err(_) => Err(gone()),
        }
    }

    /// What was sent is still written.
    pub(crate) fn close(&mut self) {
        self.to = None;
    }
}

/// The half of a link that receives.
pub(crate) struct LineReceiver {
    /// None once nothing more can come.
    reader: Option<Box<dyn AsyncRead + Send + Unpin>>,
    unread: BytesMut,
    /// So many bytes of what is unread hold no line end.
    searched: usize,
    /// The rest of a line that is too long is passed over.
    skipping: bool,
    max_message: usize,
    role: Role,
    asked: Arc<Asked>,
    /// For what JSON-RPC wants answered at once.
    answers: mpsc::WeakSender<Line>,
}

impl LineReceiver {
    pub(crate) fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Text>, LinkError>> {
        loop {
            while let Some(line) = self.line() {
                match line.and_then(|line| self.take(&line)) {
                    Ok(None) => {}
                    received => return Poll::Ready(received),
                }
            }
            let Some(reader) = &mut self.reader else { return Poll::Ready(Ok(None)) };
            let mut space = [0; 8 * 1024];
            let mut chunk = ReadBuf::new(&mut space);
            match std::task::ready!(Pin::new(reader).poll_read(context, &mut chunk)) {
                Err(error) => {
                    self.reader = None;
                    return Poll::Ready(Err(LinkError::Lost(error.to_string())));
                }
                Ok(()) if chunk.filled().is_empty() => {
                    self.reader = None;
                    let rest = std::mem::take(&mut self.unread);
                    self.searched = 0;
                    let is_cut = !self.skipping && !rest.trim_ascii().is_empty();
                    let cut = || LinkError::Lost("it ended in the middle of a message".into());
                    return Poll::Ready(if is_cut { Err(cut()) } else { Ok(None) });
                }
                Ok(()) => self.unread.extend_from_slice(chunk.filled()),
            }
        }
    }

    /// The next whole line, if there is one.
    // enforces: W1, W6
    fn line(&mut self) -> Option<Result<BytesMut, LinkError>> {
        let too_long = LinkError::TooLong(TooLong { max: self.max_message });
        let found = memchr::memchr(b'\n', &self.unread[self.searched..]);
        let Some(end) = found.map(|at| at + self.searched) else {
            self.searched = self.unread.len();
            if self.unread.len() <= self.max_message + ENVELOPE {
                return None;
            }
            // All of it belongs to one line.
            (self.unread, self.searched) = (BytesMut::new(), 0);
            return (!std::mem::replace(&mut self.skipping, true)).then_some(Err(too_long));
        };
        let line = self.unread.split_to(end);
        self.unread.advance(1);
        self.searched = 0;
        if self.unread.is_empty() {
            self.unread = BytesMut::new(); // a quiet link keeps no buffer
        }
        if std::mem::take(&mut self.skipping) {
            return self.line();
        }
        Some(Ok(line))
    }

    /// The message in a line; none if there is nothing in it for us.
    fn take(&self, line: &[u8]) -> Result<Option<Text>, LinkError> {
        if line.trim_ascii().is_empty() {
            return Ok(None);
        }
        let line = std::str::from_utf8(line).map_err(|_| LinkError::NotText)?;
        let (message, answer) = match envelope::read(line, self.role, &self.asked) {
            LineContent::Message(message) => (Some(message), None),
            LineContent::Answer(answer) => (None, Some(answer)),
            LineContent::Both(message, answer) => (Some(message), Some(answer)),
            LineContent::Nothing => (None, None),
            LineContent::Wrong(why) => return Err(LinkError::Violation(why)),
        };
        if let (Some(text), Some(to)) = (answer, self.answers.upgrade()) {
            // A peer that does not read the answers misses them.
            let _ = to.try_send(Line { text, written: None });
        }
        match message {
            Some(message) if message.len() > self.max_message => {
                Err(LinkError::TooLong(TooLong { max: self.max_message }))
            }
            message => Ok(message.map(|message| Text::from(message.to_owned()))),
        }
    }
}
