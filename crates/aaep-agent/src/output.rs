//! The answer, as a model streams it.

use std::sync::{Arc, Mutex, PoisonError};

use aaep_types::deception::{self, Deception};
use aaep_types::{CoalesceBoundary, EventKind, OutputId, rule};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep_until};

use crate::batch::{Batch, Chunk};
use crate::body::Body;
use crate::error::Error;
use crate::line::Line;
use crate::session::Session;

/// Tokens that wait to be sent; writing more waits for room.
const WAITING_TOKENS: usize = 256;

/// The longest token that is passed on as one, in bytes.
const TOKEN_BYTES: usize = 4096;

/// Text that is being written: tokens go in as they come, chunks worth hearing go out, whole grapheme
/// clusters each. [`finish`](Self::finish) completes it; dropping it does so too, behind your back.
/// Text that deceives, such as a bidi override or an escape sequence, ends it with an error (D34).
///
/// Text that is sent is not kept: an output goes on at its position after a restart of the hub.
#[must_use = "an output that is dropped is complete"]
pub struct Output {
    id: OutputId,
    settings: Option<Settings>,
    pieces: Option<mpsc::Sender<Piece>>,
    done: Option<oneshot::Receiver<Result<u64, Error>>>,
    fault: Arc<Mutex<Option<Error>>>,
    line: Arc<Line>,
    position: u64,
}

#[derive(Clone, Debug, Default)]
struct Settings {
    language: Option<String>,
    content_type: Option<String>,
}

impl Session {
    /// A new output. A session may have several at once.
    pub fn output(&self) -> Result<Output, Error> {
        let mut bits = [0; 16];
        getrandom::fill(&mut bits).map_err(Error::unavailable)?;
        Ok(self.output_at(OutputId::from_bits(u128::from_be_bytes(bits)), 0))
    }

    /// An output of an earlier run of this process, which goes on at this position, in Unicode scalar
    /// values. [`Agent::resume`](crate::Agent::resume) tells both.
    pub fn output_at(&self, id: OutputId, position: u64) -> Output {
        Output {
            id,
            settings: Some(Settings::default()),
            pieces: None,
            done: None,
            fault: Arc::default(),
            line: self.line.clone(),
            position,
        }
    }
}

impl Output {
    /// Its id.
    pub fn id(&self) -> OutputId {
        self.id
    }

    /// Its language, where that is not the session's (§11.5.3). To be said before anything is written.
    pub fn language(mut self, tag: impl Into<String>) -> Self {
        if let Some(settings) = &mut self.settings {
            settings.language = Some(tag.into());
        }
        self
    }

    /// Its media type, such as `text/markdown`; plain text unless it is said. To be said before
    /// anything is written.
    pub fn content_type(mut self, media: impl Into<String>) -> Self {
        if let Some(settings) = &mut self.settings {
            settings.content_type = Some(media.into());
        }
        self
    }

    /// Takes the next token. It waits only if far more was written than could be sent; an error is
    /// that of an earlier token.
    pub async fn write(&mut self, token: &str) -> Result<(), Error> {
        let pieces = self.pieces();
        let mut rest = token;
        while !rest.is_empty() {
            let (piece, more) = rest.split_at(rest.floor_char_boundary(TOKEN_BYTES));
            if pieces.send(Piece::Token(piece.to_owned())).await.is_err() {
                return Err(self.fault());
            }
            rest = more;
        }
        Ok(())
    }

    /// Sends everything that was written, to the last character, and waits until the hub has it:
    /// before a question, or a long silence.
    pub async fn flush(&mut self) -> Result<(), Error> {
        if self.pieces.is_none() {
            return Ok(());
        }
        let (sent, wait) = oneshot::channel();
        let flushed = self.pieces().send(Piece::Flush(sent)).await.is_ok() && wait.await.is_ok();
        if flushed { Ok(()) } else { Err(self.fault()) }
    }

    /// Completes it, and says how many characters it had, in Unicode scalar values.
    pub async fn finish(mut self) -> Result<u64, Error> {
        if self.position > 0 {
            self.pieces();
        }
        drop(self.pieces.take());
        match self.done.take() {
            // Nothing was written, so there is no output.
            None => Ok(0),
            Some(done) => done.await.unwrap_or_else(|_| Err(self.fault())),
        }
    }

    fn pieces(&mut self) -> mpsc::Sender<Piece> {
        if let Some(pieces) = &self.pieces {
            return pieces.clone();
        }
        let (sender, pieces) = mpsc::channel(WAITING_TOKENS);
        let (done, end) = oneshot::channel();
        let writer = Writer {
            open: Open::new(self.line.clone()),
            id: self.id,
            settings: self.settings.take().unwrap_or_default(),
            batch: Batch::at(self.position),
            sent: self.position,
            fault: self.fault.clone(),
        };
        self.line.agent.runtime.spawn(async move { drop(done.send(writer.work(pieces).await)) });
        self.done = Some(end);
        self.pieces = Some(sender.clone());
        sender
    }

    fn fault(&self) -> Error {
        let fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        fault.clone().unwrap_or(Error::SessionOver)
    }
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output").field("id", &self.id).finish_non_exhaustive()
    }
}

/// An output that is being written; the session's end waits for it.
struct Open {
    line: Arc<Line>,
    closing: watch::Receiver<bool>,
}

impl Open {
    fn new(line: Arc<Line>) -> Self {
        line.writers.send_modify(|open| *open += 1);
        Self { closing: line.closing.subscribe(), line }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.line.writers.send_modify(|open| *open = open.saturating_sub(1));
    }
}

/// What an author gives.
enum Piece {
    Token(String),
    Flush(oneshot::Sender<()>),
}

/// What a writer waits for.
enum Come {
    Piece(Piece),
    Time,
    End,
    SessionEnds,
}

struct Writer {
    open: Open,
    id: OutputId,
    settings: Settings,
    batch: Batch,
    /// Where what was sent ends.
    sent: u64,
    fault: Arc<Mutex<Option<Error>>>,
}

impl Writer {
    async fn work(mut self, mut pieces: mpsc::Receiver<Piece>) -> Result<u64, Error> {
        let written = self.write(&mut pieces).await;
        if let Err(error) = &written {
            if !error.is_in_doubt() && self.sent > 0 {
                // enforces: T18
                let hint = CoalesceBoundary::None;
                let end = Chunk { text: String::new(), position: self.sent, complete: true, hint };
                let _ = self.send(end).await;
            }
            let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
            *fault = Some(error.clone());
        }
        written
    }

    async fn write(&mut self, pieces: &mut mpsc::Receiver<Piece>) -> Result<u64, Error> {
        loop {
            let due = self.batch.due();
            let come = tokio::select! {
                biased;
                piece = pieces.recv() => piece.map_or(Come::End, Come::Piece),
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => Come::Time,
                _ = self.open.closing.wait_for(|closing| *closing) => Come::SessionEnds,
            };
            match come {
                Come::Piece(piece) => self.take(piece).await?,
                Come::Time => {}
                Come::End => break,
                Come::SessionEnds => {
                    // What is here goes out, and nothing more is taken.
                    pieces.close();
                    while let Some(piece) = pieces.recv().await {
                        self.take(piece).await?;
                    }
                    break;
                }
            }
            while let Some(chunk) = self.batch.take(Instant::now()) {
                self.send(chunk).await?;
            }
        }
        for chunk in std::mem::replace(&mut self.batch, Batch::at(0)).finish() {
            self.send(chunk).await?;
        }
        Ok(self.sent)
    }

    async fn take(&mut self, piece: Piece) -> Result<(), Error> {
        match piece {
            Piece::Token(token) => self.batch.push(&token, Instant::now()),
            Piece::Flush(sent) => {
                for chunk in self.batch.take_all() {
                    self.send(chunk).await?;
                }
                let _ = sent.send(());
            }
        }
        Ok(())
    }

    // enforces: T17, T31
    async fn send(&mut self, chunk: Chunk) -> Result<(), Error> {
        let deceives = deception::first(&chunk.text);
        // A bidi scope may be closed by a later chunk.
        if let Some(found) = deceives.filter(|found| found.kind != Deception::Unbalanced) {
            return Err(Error::misuse(rule::D34, found.kind.to_string()));
        }
        let mut body = Body::new()
            .text("chunk", &chunk.text)
            .number("position", chunk.position)
            .json("complete", if chunk.complete { "true" } else { "false" })
            .text("output_id", self.id.as_str());
        if !chunk.complete || chunk.hint != CoalesceBoundary::None {
            body = body.text("coalesce_hint", chunk.hint.as_str());
        }
        if let Some(language) = &self.settings.language {
            body = body.text("language", language);
        }
        if let Some(media) = &self.settings.content_type {
            body = body.text("content_type", media);
        }
        self.open.line.emit(body.event(EventKind::OutputStreaming)).await?;
        self.sent = chunk.position + chunk.text.chars().count() as u64;
        Ok(())
    }
}
