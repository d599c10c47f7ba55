//! A session: one thing that the user asked for, from its start to its end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aaep_types::agent_api::{ApiErrorKind, OpenSession, PostEvent};
use aaep_types::{CancelledBy, ErrorCategory, EventKind, SessionId, rule};
use tokio::time::Instant;

use crate::agent::{Inner, OnDrop};
use crate::body::Body;
use crate::error::Error;
use crate::line::{KeyedEvent, Line};
use crate::ticket::SessionTicket;
use crate::wire::Envelope;
use crate::words::{Words, without_secrets};

/// How a hub says that a session was stopped by its user.
const STOPPED: &str = ApiErrorKind::Stopped.as_str();

/// A session that is about to be opened.
#[must_use = "nothing happens before `open`"]
pub struct Opening {
    agent: Arc<Inner>,
    summary: Words,
    language: Option<String>,
    lease_seconds: Option<u32>,
}

impl Opening {
    pub(crate) fn new(agent: Arc<Inner>, summary: Words) -> Self {
        Self { agent, summary, language: None, lease_seconds: None }
    }

    /// The language of everything that this session says, such as `en` or `yo-NG`.
    pub fn language(mut self, tag: impl Into<String>) -> Self {
        self.language = Some(tag.into());
        self
    }

    /// How long the hub waits for a sign of life before it declares the session failed: 15 seconds
    /// to a day, two minutes by default. Signs are given by themselves while this process runs.
    pub fn lease_seconds(mut self, seconds: u32) -> Self {
        self.lease_seconds = Some(seconds);
        self
    }

    /// Opens it.
    pub async fn open(self) -> Result<Session, Error> {
        let agent = self.agent.clone();
        let english = self.language.as_deref().is_none_or(|tag| {
            tag.split('-').next().is_some_and(|first| first.eq_ignore_ascii_case("en"))
        });
        let (request, key) = (self.request(), agent.new_key());
        // A caller dropped while this is in flight leaves no session behind.
        let abandoned = OnDrop::new({
            let (agent, request, key) = (agent.clone(), request.clone(), key.clone());
            move || {
                let inner = agent.clone();
                agent.behind(async move {
                    if let Ok(session) = open(&inner, &key, &request).await {
                        drop(Session::new(Line::new(inner.clone(), session, None)));
                    }
                });
            }
        });
        let opened = Instant::now();
        let session = open(&agent, &key, &request).await;
        abandoned.disarm();
        let line = Line::new(agent, session?, Some(opened));
        line.english.store(english, Ordering::Relaxed);
        Ok(Session::new(line))
    }

    fn request(&self) -> OpenSession {
        OpenSession {
            producer: self.agent.producer.clone(),
            summary_normal: without_secrets(&self.summary.normal).into_owned(),
            language: self.language.clone(),
            lease_seconds: self.lease_seconds.map(u64::from),
            sub_agents: None,
            payload: "{}".to_owned(),
        }
    }
}

async fn open(agent: &Inner, key: &str, request: &OpenSession) -> Result<SessionId, Error> {
    let sent = AtomicBool::new(false);
    let envelope = Envelope { key: Some(key), secret: agent.secret.as_ref(), sent: &sent };
    let opened = agent.change(&sent, agent.deadline(), || agent.wire.open(request, envelope));
    Ok(opened.await?.session_id)
}

/// A session that is open. It always ends: with [`complete`](Self::complete),
/// [`cancel`](Self::cancel) or [`fail`](Self::fail); if it is dropped, it is cancelled, or, while its
/// thread panics, it fails (T1).
#[must_use = "a session that is dropped is cancelled"]
pub struct Session {
    pub(crate) line: Arc<Line>,
    last_words: LastWords,
}

/// What a session says when it is dropped.
enum LastWords {
    /// That it was given up.
    GivenUp,
    /// What its author wanted to say, and was on its way.
    These(KeyedEvent),
    Nothing,
}

impl Session {
    pub(crate) fn new(line: Arc<Line>) -> Self {
        Self { line, last_words: LastWords::GivenUp }
    }

    /// Its id.
    pub fn id(&self) -> SessionId {
        self.line.session
    }

    /// What to store, if the session is to be [taken up again](crate::Agent::resume) after a restart
    /// of this process.
    pub fn ticket(&self) -> SessionTicket {
        self.line.ticket()
    }

    /// Waits until somebody else ended the session: its user stopped it, or the hub did. Whatever
    /// waits in this session then resolves with an error that says so.
    pub async fn stopped(&self) {
        self.line.ended().await;
    }

    /// Whether somebody else ended the session.
    pub fn is_stopped(&self) -> bool {
        self.line.is_over()
    }

    /// Whether its user stopped it; asks the hub, which remembers it for a while. False while it is open,
    /// and if it ended otherwise or the hub does not tell.
    pub async fn was_stopped_by_user(&self) -> bool {
        let line = &self.line;
        let state =
            line.agent.session_state(line.session, Duration::ZERO, line.secret.as_ref()).await;
        matches!(state, Err(Error::Refused(refused)) if refused.word.as_deref() == Some(STOPPED))
    }

    // enforces: T25
    /// The agent thinks, and about what. The hub says by itself when it uses a tool, writes, waits
    /// or hands over.
    pub async fn thinking(&self, about: impl Into<Words>) -> Result<(), Error> {
        self.state("thinking", about).await
    }

    /// The agent is in another state, such as `deciding`, and what that means. While a request waits
    /// or a tool runs, the state stays what it is and this says nothing (D30, T16).
    pub async fn state(&self, to: &str, words: impl Into<Words>) -> Result<(), Error> {
        let body = Body::new().text("to_state", to).words(&words.into());
        match self.line.emit(body.event(EventKind::StateChanged)).await {
            Err(Error::Refused(refused)) if refused.is(rule::D30) || refused.is(rule::T16) => {
                Ok(())
            }
            other => other,
        }
    }

    // enforces: T34
    /// Ends it well. The session is used up: whatever the user asks for next has one of its own.
    pub async fn complete(self, summary: impl Into<Words>) -> Result<(), Error> {
        let mut body = Body::new().words(&summary.into());
        if let Some(opened) = self.line.opened {
            let tools = self.line.tools.load(Ordering::Relaxed);
            let millis = u64::try_from(opened.elapsed().as_millis()).unwrap_or(u64::MAX);
            body = body.number("duration_ms", millis).number("tool_invocations_count", tools);
        }
        self.end(body.event(EventKind::SessionCompleted)).await
    }

    /// Gives it up, and says why.
    pub async fn cancel(self, why: impl Into<Words>) -> Result<(), Error> {
        self.end(cancelled(&why.into())).await
    }

    /// Ends it with an error: what went wrong, and whether trying again makes sense.
    pub async fn fail(self, category: ErrorCategory, what: impl Into<Words>) -> Result<(), Error> {
        self.end(errored(category, &what.into())).await
    }

    /// Leaves it open for a later process, which takes it up by this ticket
    /// ([`Agent::resume`](crate::Agent::resume)). Nothing is said; the session ends with its lease if
    /// nobody does.
    pub fn leave(mut self) -> SessionTicket {
        self.last_words = LastWords::Nothing;
        self.line.ticket()
    }

    // enforces: T1
    async fn end(mut self, event: PostEvent) -> Result<(), Error> {
        let said = self.line.said(event);
        // Dropped from here on, the event is still sent.
        self.last_words = LastWords::These(said.clone());
        let ended = self.line.end(said).await;
        match &ended {
            Ok(()) | Err(Error::SessionOver) => self.last_words = LastWords::Nothing,
            Err(error) if error.is_unavailable() => {}
            // These words were refused; it ends all the same.
            Err(_) => self.last_words = LastWords::GivenUp,
        }
        ended
    }
}

fn cancelled(words: &Words) -> PostEvent {
    let by = CancelledBy::Producer.as_str();
    Body::new().text("cancelled_by", by).words(words).event(EventKind::SessionCancelled)
}

fn errored(category: ErrorCategory, words: &Words) -> PostEvent {
    let category = category.as_str();
    Body::new().text("error_category", category).words(words).event(EventKind::SessionErrored)
}

impl Drop for Session {
    fn drop(&mut self) {
        let said = match std::mem::replace(&mut self.last_words, LastWords::Nothing) {
            LastWords::Nothing => return,
            LastWords::These(said) => said,
            LastWords::GivenUp if std::thread::panicking() => {
                let words = Words::ours("The agent broke off: there is a fault in its program.");
                self.line.said(errored(ErrorCategory::Unknown, &words))
            }
            LastWords::GivenUp => {
                let words = Words::ours("The agent gave this up without finishing it.");
                self.line.said(cancelled(&words))
            }
        };
        if self.line.is_over() {
            return;
        }
        let line = self.line.clone();
        self.line.agent.behind(async move {
            if let Err(error) = line.end(said).await {
                // The hub ends it when the lease is over.
                tracing::warn!(session = %line.session, %error, "a session's end was not said");
            }
        });
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("id", &self.line.session).finish_non_exhaustive()
    }
}
