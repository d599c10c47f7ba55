//! Consent, held by ownership: an action is parked where nobody can reach it, a decision yields an
//! approval, and only moving the approval in gives the action back, once.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use aaep_types::agent_api::{AskUser, ReplyClaims, RequestState, RequestStatus};
use aaep_types::rule;
use tokio::time::Instant;

use crate::agent::{LONGEST_WAIT, OnDrop};
use crate::confirmation::{Confirmation, Kind, Wanted};
use crate::error::{Error, NotApproved};
use crate::line::{Line, not_too_soon};
use crate::reply::ReplyDetails;
use crate::session::Session;
use crate::ticket::Ticket;

// enforces: C1, C3
/// An action that waits for consent. Nobody can reach it: only
/// [`Session::invoke`](crate::Session::invoke) gives it back, for an [`Approval`] of its own.
///
/// If it is dropped, the request is withdrawn; if it had been approved, people are told that it is no
/// longer done (T24).
#[must_use = "an action that is dropped is not asked for any longer"]
pub struct Parked<A> {
    pub(crate) action: A,
    pub(crate) claim: Claim,
}

/// The proof that somebody said yes to one parked action. It cannot be made, copied or used twice,
/// and it fits no other action.
#[must_use = "an approval that is not used approves nothing"]
pub struct Approval<A> {
    request: Arc<str>,
    by: String,
    reply: ReplyDetails,
    action: PhantomData<fn(A) -> A>,
}

impl<A> Approval<A> {
    /// Who said yes; `timeout` if silence did.
    pub fn by(&self) -> &str {
        &self.by
    }

    /// What the reply says of itself.
    pub fn reply(&self) -> &ReplyDetails {
        &self.reply
    }
}

/// How far a parked action is.
mod phase {
    /// It waits.
    pub(super) const WAITS: u8 = 0;
    /// An approval was handed out.
    pub(super) const APPROVED: u8 = 1;
    /// There is nothing left to be said about it here.
    pub(super) const OVER: u8 = 2;
}

/// A request that this process waits for.
pub(crate) struct Claim {
    pub(crate) line: Arc<Line>,
    pub(crate) wanted: Wanted,
    pub(crate) request: Arc<str>,
    /// The key under which the action is invoked, now or after a restart.
    pub(crate) key: String,
    phase: AtomicU8,
    reruns: bool,
}

impl Session {
    /// Parks an action and asks for consent to it. From here on the action is out of reach.
    ///
    /// What is asked must be what the action does: consent is bound to the tool and the arguments of
    /// the request, and the hub refuses to invoke anything else.
    pub async fn park<A, K: Kind>(
        &self,
        action: A,
        request: Confirmation<K>,
    ) -> Result<Parked<A>, Error> {
        let wanted = request.wanted()?;
        let request = ask(&self.line, &wanted.action, wanted.question.clone()).await?;
        let claim = Claim::new(self.line.clone(), wanted, request, self.line.agent.new_key());
        Ok(Parked { action, claim })
    }

    // enforces: I3, I11
    /// Parks an action again that an earlier run of this process had parked, with the ticket that it
    /// stored. The request must be the one that was asked then: its tool and its arguments.
    pub async fn park_again<A, K: Kind>(
        &self,
        ticket: &Ticket,
        action: A,
        request: Confirmation<K>,
    ) -> Result<Parked<A>, Error> {
        if ticket.session.id != self.line.session {
            let text = "This ticket is of another session; resume that one.";
            return Err(Error::misuse(rule::C26, text));
        }
        let wanted = request.wanted()?;
        let request: Arc<str> = ticket.request.as_str().into();
        if !self.line.hold(&request, &wanted.action) {
            return Err(asked_twice());
        }
        let claim = Claim::new(self.line.clone(), wanted, request, ticket.key.clone());
        // Learns now whether there is such a request; not knowing is no reason to withdraw it.
        if let Err(error) = claim.line.look(&claim.request, Duration::ZERO).await {
            claim.is_over();
            return Err(error);
        }
        Ok(Parked { action, claim })
    }
}

// enforces: C1, C4
/// Asks, and names the request that now waits. A caller dropped meanwhile withdraws it.
pub(crate) async fn ask(
    line: &Arc<Line>,
    words: &str,
    question: AskUser,
) -> Result<Arc<str>, Error> {
    if line.is_asking(words) {
        return Err(asked_twice());
    }
    let key = line.agent.new_key();
    let abandoned = OnDrop::new({
        let (line, key, question) = (line.clone(), key.clone(), question.clone());
        move || {
            let agent = line.agent.clone();
            agent.behind(async move {
                if let Ok(asked) = line.ask(&question, &key, line.agent.deadline()).await {
                    line.withdraw_later(asked.request_id.into());
                }
            });
        }
    });
    let deadline = line.agent.deadline();
    let answer = match line.take_turn(deadline).await {
        Ok(_turn) => line.ask(&question, &key, deadline).await,
        Err(error) => {
            abandoned.disarm();
            return Err(error);
        }
    };
    // If nobody knows whether it is asked, it is made sure that it is not.
    if answer.as_ref().err().is_none_or(|error| !error.is_in_doubt()) {
        abandoned.disarm();
    }
    let answer = answer.map_err(|error| line.noticed(error))?;
    let request: Arc<str> = answer.request_id.into();
    if !line.hold(&request, words) {
        return Err(asked_twice());
    }
    Ok(request)
}

fn asked_twice() -> Error {
    let text = "The same is asked already, or something else in the same words; wait for that answer, drop it, or say how they differ.";
    Error::misuse(rule::C4, text)
}

/// Waits until a request has an outcome. What supersedes it is the same request to its agent (D32).
pub(crate) async fn outcome(line: &Line, request: &str) -> Result<RequestState, Error> {
    loop {
        let asked = Instant::now();
        let state = line.look(request, LONGEST_WAIT).await?;
        if state.status != RequestStatus::Pending {
            return Ok(state);
        }
        not_too_soon(asked).await;
    }
}

/// Who or what decided.
pub(crate) fn decided_by(state: &RequestState) -> &str {
    state.decided_by.as_deref().unwrap_or_default()
}

/// What the reply says of itself.
pub(crate) fn details(state: &RequestState) -> ReplyDetails {
    state.reply.as_deref().map(ReplyClaims::read).unwrap_or_default().into()
}

impl Claim {
    fn new(line: Arc<Line>, wanted: Wanted, request: Arc<str>, key: String) -> Self {
        Self { line, wanted, request, key, phase: AtomicU8::new(phase::WAITS), reruns: false }
    }

    // enforces: C1, I11
    /// Whether it may run, and who said so.
    async fn decided(&self) -> Result<RequestState, Error> {
        let state = outcome(&self.line, &self.request).await.map_err(|error| match error {
            // The hub has forgotten it, so nobody can approve it any more.
            Error::Refused(refused) if refused.status == 404 => NotApproved::Cancelled.into(),
            other => other,
        })?;
        self.line.no_longer_asks(&self.request);
        let refusal: Error = match state.status {
            RequestStatus::Accepted => return Ok(state),
            RequestStatus::Invoked if self.reruns => return Ok(state),
            RequestStatus::Invoked | RequestStatus::Completed | RequestStatus::Unknown => {
                NotApproved::Begun.into()
            }
            RequestStatus::Rejected => {
                let (by, reply) = (decided_by(&state).to_owned(), Box::new(details(&state)));
                NotApproved::Rejected { by, reply }.into()
            }
            RequestStatus::TimedOut => NotApproved::TimedOut.into(),
            RequestStatus::Expired => NotApproved::Expired.into(),
            _ if decided_by(&state) == "session" => Error::SessionOver,
            _ => NotApproved::Cancelled.into(),
        };
        self.phase.store(phase::OVER, Ordering::Release);
        Err(refusal)
    }

    pub(crate) fn is_over(&self) {
        self.phase.store(phase::OVER, Ordering::Release);
    }
}

impl<A> Parked<A> {
    /// Waits for the decision, as long as the request waits. May be given up and called again; the
    /// approval is handed out once. Without a yes the error is [`Error::NotApproved`], or
    /// [`Error::SessionOver`] if the user stopped the session; if it is
    /// [`Error::is_unavailable`], ask again later.
    pub async fn decision(&self) -> Result<Approval<A>, Error> {
        let state = self.claim.decided().await?;
        let (by, reply) = (decided_by(&state).to_owned(), details(&state));
        let change = |from, to| {
            let phase = &self.claim.phase;
            phase.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire)
        };
        match change(phase::WAITS, phase::APPROVED) {
            Ok(_) => {
                let (request, action) = (self.claim.request.clone(), PhantomData);
                Ok(Approval { request, by, reply, action })
            }
            Err(_) => Err(NotApproved::AlreadyGiven.into()),
        }
    }

    /// What to store, so that a later run of this process can [park it again](Session::park_again).
    pub fn ticket(&self) -> Ticket {
        Ticket {
            session: self.claim.line.ticket(),
            request: self.claim.request.to_string(),
            key: self.claim.key.clone(),
        }
    }

    /// Leaves the request open for a later process, which [parks it again](Session::park_again) with
    /// this ticket. The action is dropped here, and has not run.
    pub fn leave(self) -> Ticket {
        let ticket = self.ticket();
        self.claim.is_over();
        ticket
    }

    /// For an action that was [parked again](Session::park_again): if its invocation had been begun,
    /// it may run again, under the same key ([`Ticket::key`]). Only for actions that do the same
    /// thing once, however often they are run with that key; otherwise the user must be asked again
    /// (I11).
    pub fn rerun_if_begun(mut self) -> Self {
        self.claim.reruns = true;
        self
    }
}

impl<A> Approval<A> {
    pub(crate) fn fits(&self, claim: &Claim) -> bool {
        self.request == claim.request
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        match *self.phase.get_mut() {
            phase::WAITS => self.line.withdraw_later(self.request.clone()),
            // enforces: T24
            // The hub says that what was approved is no longer done.
            phase::APPROVED => self.line.withdraw_later(self.request.clone()),
            _ => {}
        }
        self.line.let_go(&self.request);
    }
}

impl<A> std::fmt::Debug for Parked<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Parked").field("request", &self.claim.request).finish_non_exhaustive()
    }
}

impl<A> std::fmt::Debug for Approval<A> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Approval").field("request", &self.request).field("by", &self.by).finish()
    }
}
