//! Asking and acting in one expression.

use std::future::Future;
use std::time::Duration;

use aaep_types::RiskLevel;
use serde::Serialize;

use crate::call::TOOL_TIMEOUT;
use crate::confirmation::{Confirmation, Irreversible, Kind, Reversible, WithEffort};
use crate::error::Error;
use crate::reply::ReplyDetails;
use crate::session::Session;
use crate::words::Words;

/// What is about to be asked; its author has yet to say how far it can be taken back.
#[must_use = "nothing is asked before `run`"]
pub struct Unstated {
    tool: String,
    action: String,
    consequence: String,
}

/// A request for consent together with the session that asks it. [`run`](Self::run) asks, waits for
/// the yes, and runs the work: in this order, and in no other.
#[must_use = "nothing is asked before `run`"]
pub struct Confirm<'session, R> {
    session: &'session Session,
    request: R,
    time_limit: Duration,
}

impl Session {
    // enforces: C1, T11, T12
    /// Asks for consent to one action, and runs it after a yes: the tool, what it will do, what comes
    /// of it. The work is a closure, which is called only after somebody said yes and `tool.invoked`
    /// went out.
    ///
    /// ```no_run
    /// # use aaep_agent::{Error, RiskLevel, Session};
    /// # async fn pay(key: &str) -> Result<String, std::io::Error> { Ok(key.into()) }
    /// # async fn example(session: Session) -> Result<(), Error> {
    /// let receipt = session
    ///     .confirm(
    ///         "transfer_funds",
    ///         "Transfer $500 from checking to savings.",
    ///         "It cannot be easily reversed.",
    ///     )
    ///     .irreversible()
    ///     .risk(RiskLevel::High)
    ///     .args(&("checking", "savings", "500.00"))
    ///     .run(|call| async move { pay(call.key()).await })
    ///     .await?;
    /// # drop(receipt); Ok(()) }
    /// ```
    ///
    /// Without a yes the error is [`Error::NotApproved`], and the work has not run. If what is asked
    /// must outlive this process, or if something has to happen between the steps, take them one by
    /// one: [`park`](Self::park), [`decision`](crate::Parked::decision), [`invoke`](Self::invoke).
    pub fn confirm(
        &self,
        tool: impl Into<String>,
        action: impl Into<String>,
        consequence: impl Into<String>,
    ) -> Confirm<'_, Unstated> {
        let request =
            Unstated { tool: tool.into(), action: action.into(), consequence: consequence.into() };
        Confirm { session: self, request, time_limit: TOOL_TIMEOUT }
    }
}

impl<'session> Confirm<'session, Unstated> {
    /// It cannot be taken back. An unstated risk counts as high (D10).
    pub fn irreversible(self) -> Confirm<'session, Confirmation<Irreversible>> {
        self.with(|it| Confirmation::irreversible(it.tool, it.action, it.consequence))
    }

    /// It can be taken back with some trouble.
    pub fn with_effort(self) -> Confirm<'session, Confirmation<WithEffort>> {
        self.with(|it| Confirmation::with_effort(it.tool, it.action, it.consequence))
    }

    /// It is easily taken back.
    pub fn reversible(self) -> Confirm<'session, Confirmation<Reversible>> {
        self.with(|it| Confirmation::reversible(it.tool, it.action, it.consequence))
    }
}

impl<'session> Confirm<'session, Confirmation<Reversible>> {
    /// Goes on if nobody answers in time: see [`Confirmation::accept_on_silence`].
    pub fn accept_on_silence(self) -> Self {
        self.with(Confirmation::accept_on_silence)
    }
}

impl<'session, R> Confirm<'session, R> {
    fn with<Q>(self, change: impl FnOnce(R) -> Q) -> Confirm<'session, Q> {
        let Self { session, request, time_limit } = self;
        Confirm { session, request: change(request), time_limit }
    }
}

impl<'session, K: Kind> Confirm<'session, Confirmation<K>> {
    /// How much can go wrong.
    pub fn risk(self, risk: RiskLevel) -> Self {
        self.with(|it| it.risk(risk))
    }

    /// The arguments with which the tool runs. Consent is bound to these bytes: see
    /// [`Confirmation::arguments`].
    pub fn args(self, arguments: &(impl Serialize + ?Sized)) -> Self {
        self.with(|it| it.arguments(arguments))
    }

    /// The arguments as JSON text.
    pub fn args_json(self, json: impl Into<String>) -> Self {
        self.with(|it| it.arguments_json(json))
    }

    /// What is announced, where it should be something else than the action.
    pub fn words(self, words: impl Into<Words>) -> Self {
        self.with(|it| it.words(words))
    }

    /// How long an answer is waited for, from a second to a day, in whole seconds. By default as
    /// §6.4.2 recommends for this risk.
    pub fn wait(self, time: Duration) -> Self {
        let whole = time.as_secs() + u64::from(time.subsec_nanos() > 0);
        self.with(|it| it.timeout_seconds(u32::try_from(whole).unwrap_or(u32::MAX)))
    }

    /// How long the work may run: five minutes by default.
    pub fn time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Asks, waits for the decision, says `tool.invoked`, runs the work, and says how it ended.
    ///
    /// The work runs as a task of its own, so that a panic in it stays there. If this future is
    /// dropped, the question is withdrawn, or the work is given up. Without a yes, or if the hub
    /// cannot be asked, the work has not run.
    pub async fn run<T, E, F>(
        self,
        work: impl FnOnce(ConfirmedCall) -> F + Send + 'static,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let done = format!("{} is done.", self.request.tool());
        self.run_saying(work, |_| Words::ours(done)).await
    }

    /// Like [`run`](Self::run), and says of the result what `summary` says.
    pub async fn run_saying<T, E, F>(
        self,
        work: impl FnOnce(ConfirmedCall) -> F + Send + 'static,
        summary: impl FnOnce(&T) -> Words,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + Send + 'static,
        F: Future<Output = Result<T, E>> + Send + 'static,
    {
        let Self { session, request, time_limit } = self;
        let parked = session.park(work, request).await?;
        let approval = parked.decision().await?;
        let (by, reply) = (approval.by().to_owned(), approval.reply().clone());
        let (work, call) = session.invoke(parked, approval).await?;
        let confirmed = ConfirmedCall {
            id: call.id().to_owned(),
            key: call.key().unwrap_or_default().to_owned(),
            arguments: call.arguments().map(str::to_owned),
            by,
            reply,
        };
        // Called inside the task, so that a panic before the first await stays there as well.
        let work = async move { work(confirmed).await };
        call.timeout(time_limit).run_saying(work, summary).await
    }
}

/// A call that somebody said yes to, as its work sees it. Only [`Confirm::run`] makes one.
#[derive(Debug)]
pub struct ConfirmedCall {
    id: String,
    key: String,
    arguments: Option<String>,
    by: String,
    reply: ReplyDetails,
}

impl ConfirmedCall {
    /// Its id, `tool_call_id` on the wire.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The idempotency key of this call: hand it to whatever the work calls, if that knows such keys.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The arguments that were confirmed, as JSON, byte for byte.
    pub fn arguments(&self) -> Option<&str> {
        self.arguments.as_deref()
    }

    /// Who said yes; `timeout` if silence did.
    pub fn by(&self) -> &str {
        &self.by
    }

    /// What the reply says of itself.
    pub fn reply(&self) -> &ReplyDetails {
        &self.reply
    }
}

impl<R> std::fmt::Debug for Confirm<'_, R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Confirm").field("session", &self.session.id()).finish_non_exhaustive()
    }
}
