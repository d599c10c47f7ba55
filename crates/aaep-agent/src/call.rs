//! A call of a tool, between `tool.invoked` and `tool.completed`.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use aaep_types::agent_api::PostEvent;
use aaep_types::{EventKind, ToolStatus, rule};
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::body::Body;
use crate::error::{Error, ToolError};
use crate::line::Line;
use crate::resume::OpenCall;
use crate::words::{Words, foreign};

/// How long a tool may run, unless its author says otherwise.
pub const TOOL_TIMEOUT: Duration = Duration::from_secs(300);

/// A call that was invoked and must be completed, once. If it is dropped, people are told that nobody
/// knows how it ended (T15).
#[must_use = "a call must be completed; dropped, its outcome counts as unknown"]
pub struct Call {
    line: Arc<Line>,
    tool: String,
    id: String,
    key: Option<String>,
    arguments: Option<String>,
    begun: Instant,
    timeout: Duration,
    open: bool,
}

impl Call {
    pub(crate) fn new(line: Arc<Line>, tool: String, id: String) -> Self {
        line.count_tool();
        let (key, arguments) = (None, None);
        let (begun, timeout) = (Instant::now(), TOOL_TIMEOUT);
        Self { line, tool, id, key, arguments, begun, timeout, open: true }
    }

    pub(crate) fn with_key(mut self, key: String) -> Self {
        self.key = Some(key);
        self
    }

    pub(crate) fn with_arguments(mut self, arguments: Option<String>) -> Self {
        self.arguments = arguments;
        self
    }

    /// Its id, `tool_call_id` on the wire.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The key under which it was invoked, if consent was asked for it: hand it to whatever the
    /// action calls, if that knows idempotency keys.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// The arguments that were confirmed, as JSON, byte for byte. Run these.
    pub fn arguments(&self) -> Option<&str> {
        self.arguments.as_deref()
    }

    /// How long [`run`](Self::run) waits.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    // enforces: T13, T15, T33
    /// Says how it ended. If the hub refuses the words, the status is told in plain ones, and the
    /// refusal comes back.
    pub async fn complete(
        mut self,
        status: ToolStatus,
        summary: impl Into<Words>,
    ) -> Result<(), Error> {
        self.finish(status, &summary.into()).await
    }

    /// It went well.
    pub async fn succeed(self, summary: impl Into<Words>) -> Result<(), Error> {
        self.complete(ToolStatus::Success, summary).await
    }

    /// It failed.
    pub async fn fail(self, summary: impl Into<Words>) -> Result<(), Error> {
        self.complete(ToolStatus::Error, summary).await
    }

    /// Runs what the call is for, and completes it: well, failed, out of time, or panicked. The work
    /// runs as a task of its own, so that a panic in it stays there. If this is dropped, or the
    /// session is stopped, the work is given up.
    pub async fn run<T, E>(
        self,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + Send + 'static,
    {
        let done = format!("{} is done.", self.tool);
        self.run_saying(work, |_| Words::ours(done)).await
    }

    /// Like [`run`](Self::run), and says of the result what `summary` says.
    pub async fn run_saying<T, E>(
        mut self,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
        summary: impl FnOnce(&T) -> Words,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + Send + 'static,
    {
        let result = run(&self.line, self.timeout, work).await;
        let tool = &self.tool;
        let (status, words): (_, Words) = match &result {
            Ok(value) => (ToolStatus::Success, summary(value)),
            Err(Error::Tool(ToolError::Failed(error))) => {
                let text = format!("{tool} failed: {}", foreign(&error.to_string()));
                (ToolStatus::Error, Words::ours(text))
            }
            Err(Error::Tool(ToolError::TimedOut)) => {
                let seconds = self.timeout.as_secs();
                let text = format!(
                    "{tool} did not come back within {seconds} seconds; nobody knows how it ended."
                );
                (ToolStatus::Timeout, Words::ours(text))
            }
            Err(Error::SessionOver) => {
                // The hub said so, when it ended the session.
                self.open = false;
                return result;
            }
            // What a panic says is for programmers, and may hold anything.
            Err(_) => {
                let text = format!("{tool} broke off: there is a fault in its program.");
                (ToolStatus::Error, Words::ours(text))
            }
        };
        // What the tool did is done, whether or not it could be told.
        if let Err(error) = self.finish(status, &words).await {
            tracing::warn!(tool = self.tool, %error, "the end of a tool was not told");
        }
        result
    }

    /// Leaves it open for a later process of the same session, which takes it up
    /// ([`Session::take_up`](crate::Session::take_up)) and says how it ended.
    pub fn leave(mut self) -> OpenCall {
        self.open = false;
        OpenCall { tool: self.tool.clone(), id: self.id.clone() }
    }

    async fn finish(&mut self, status: ToolStatus, words: &Words) -> Result<(), Error> {
        let body = completed(&self.tool, &self.id, status, words, Some(self.begun));
        let said = self.line.said(body);
        let told = self.line.say(said.clone()).await;
        match &told {
            Ok(_) | Err(Error::SessionOver) => self.open = false,
            // The hub has said already that nobody knows how it ended.
            Err(Error::Refused(refused)) if refused.is(rule::T15) => self.open = false,
            Err(error) if error.is_unavailable() => {
                self.open = false;
                self.line.say_later(said);
            }
            Err(_) => self.finish_plainly(status).await,
        }
        told
    }

    // enforces: T15
    /// The words were refused: the same status is told in words of this library, so that a done call is
    /// not taken for one that nobody knows the end of.
    async fn finish_plainly(&mut self, status: ToolStatus) {
        let text = format!("{} is over; the words for it were refused.", self.tool);
        let body = completed(&self.tool, &self.id, status, &Words::ours(text), Some(self.begun));
        let said = self.line.said(body);
        match self.line.say(said.clone()).await {
            Ok(()) | Err(Error::SessionOver) => self.open = false,
            Err(error) if error.is_unavailable() => {
                self.open = false;
                self.line.say_later(said);
            }
            // Dropping it says that its outcome is unknown.
            Err(_) => {}
        }
    }
}

/// Runs the work of a tool as a task of its own, so that a panic in it stays there; gives it up when
/// time is over, when the session is, and when nobody waits for it any more.
pub(crate) async fn run<T, E>(
    line: &Line,
    limit: Duration,
    work: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, Error>
where
    T: Send + 'static,
    E: Into<Box<dyn std::error::Error + Send + Sync>> + Send + 'static,
{
    let mut work = Work(tokio::spawn(work));
    let ended = tokio::select! {
        ended = timeout(limit, &mut work.0) => ended,
        () = line.ended() => return Err(Error::SessionOver),
    };
    match ended {
        Ok(Ok(result)) => result.map_err(|error| ToolError::Failed(error.into().into()).into()),
        Ok(Err(panic)) => Err(ToolError::Panicked(message(panic)).into()),
        Err(_) => Err(ToolError::TimedOut.into()),
    }
}

/// The work of a tool; given up when it is dropped.
struct Work<T>(JoinHandle<T>);

impl<T> Drop for Work<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn message(error: tokio::task::JoinError) -> String {
    let Ok(panic) = error.try_into_panic() else { return "it was given up".into() };
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}

pub(crate) fn completed(
    tool: &str,
    call: &str,
    status: ToolStatus,
    words: &Words,
    begun: Option<Instant>,
) -> PostEvent {
    let mut body = Body::new()
        .text("tool", tool)
        .text("tool_call_id", call)
        .text("status", status.as_str())
        .words(words);
    if let Some(begun) = begun {
        let millis = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        body = body.number("duration_ms", millis);
    }
    body.event(EventKind::ToolCompleted)
}

impl Drop for Call {
    fn drop(&mut self) {
        if !self.open {
            return;
        }
        // enforces: T15, I11
        let (status, text) = if std::thread::panicking() {
            (ToolStatus::Error, "broke off; nobody knows how far it came.")
        } else {
            (ToolStatus::Timeout, "was given up; nobody knows how it ended.")
        };
        let words = Words::ours(format!("{} {text}", self.tool));
        let body = completed(&self.tool, &self.id, status, &words, Some(self.begun));
        self.line.say_later(self.line.said(body));
    }
}

impl std::fmt::Debug for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { tool, id, open, .. } = self;
        f.debug_struct("Call")
            .field("tool", tool)
            .field("id", id)
            .field("open", open)
            .finish_non_exhaustive()
    }
}
