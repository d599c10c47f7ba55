//! What comes back from people: who may answer, and whether an answer counts (§6.3.4).

use aaep_types::{
    Decision, Event, EventKind, Payload, ReplyToken, Response, SessionId, SubscriptionId,
    Timestamp, rule,
};
use std::sync::Arc;

use crate::agent_event::AgentEvent;
use crate::clock::{Boot, Now};
use crate::engine::{Engine, no_session};
use crate::ids::{Digest, RequestId, SessionKey, session_key, token_number};
use crate::io::{Handled, Output};
use crate::listeners::{Attendance, Listener};
use crate::message::{Content, Kind, Reply, SubscriberMessage};
use crate::principal::Evidence;
use crate::principal::{Principal, Role};
use crate::rates::Flood;
use crate::record::{Outcome, Record};
use crate::refusal::{Blame, Refusal};
use crate::request::Request;
use crate::rules::Rules;
use crate::unattended::KINDS;
use crate::words::{Phrase, ending};

/// Why a reply does not count. It can be written into the journal, for the audit, and nowhere else:
/// there is no text for it, so it cannot leak to the sender.
#[derive(Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(Debug))]
enum Ignored {
    Unavailable = 1,
    NoSubscription,
    NoReplySupport,
    UnknownToken,
    NotPending,
    Expired,
    NotEntitled,
    WrongKind,
    Stamp,
    WrongAnswer,
    TooShort,
    OwnTree,
    NotPresent,
}

impl<R: Rules> Engine<R> {
    /// A message of a subscriber. Every reply gets the same answer, after one append, whatever became of it (decision D5). In a
    /// flood that append is shared, and the answer waits for it, valid or not (decision D40).
    pub(crate) fn message(
        &mut self,
        peer: &Principal,
        message: &SubscriberMessage,
        call: u64,
        now: Now,
    ) -> Result<Handled, Refusal> {
        let reply = match &message.kind {
            Kind::Reply(reply) => reply,
            Kind::Stop { session, subscription } => {
                let own_tree = message.evidence.own_tree;
                return self.stop(peer, *session, (*subscription, own_tree), call, now);
            }
        };
        let rate = self.count_reply(peer, reply.subscription, now);
        let counts = rate.is_ok() || R::counts_in_flood();
        let needs = match self.admit(peer, (reply, &message.evidence), counts, now) {
            Ok(number) => Some(self.take(number, peer, (reply, &message.evidence), now)),
            Err(reason) => self.ignore(peer, reason, rate.is_ok()),
        };
        Ok(self.answer_message(rate, needs, call))
    }

    /// What an answer with this token would be about, for somebody who may give it: the request and
    /// the digest of its action. Everybody else learns nothing, as with a reply.
    pub fn answerable(&self, peer: &Principal, token: &ReplyToken) -> Option<(RequestId, Digest)> {
        let request = self.requests.peek_by_token(token_number(token)?)?;
        let session = self.sessions.get(&request.session)?;
        let may = R::is_pending(request.status) && R::is_entitled(peer, Some(&session.agent.user));
        may.then_some((request.number, request.digest))
    }

    /// The session that a message is about, if there is one.
    pub fn session_about(&self, message: &SubscriberMessage) -> Option<SessionId> {
        match &message.kind {
            Kind::Reply(reply) => {
                let token = token_number(&reply.token)?;
                let session = self.requests.session_by_token(token)?;
                self.sessions.get(&session).map(|session| session.id())
            }
            Kind::Stop { session, .. } => Some(*session),
        }
    }

    /// Counts a reply. Beyond the rate, the error names whom it is counted for.
    fn count_reply(
        &mut self,
        peer: &Principal,
        subscription: SubscriptionId,
        now: Now,
    ) -> Result<(), Arc<str>> {
        // enforces: D40
        let own = self.listeners.get(&subscription).is_some_and(|known| known.peer == *peer);
        // Senders without a token have one share under all their names, so none can take the room
        // of others; beyond the bound, the rest of them are counted together.
        let name: Arc<str> = match peer.account() {
            account if account.len() == peer.name.len() => peer.name.clone(),
            account => account.into(),
        };
        let counted = self.replies.has_room_for(&name, self.limits.counted_principals);
        let by = if counted { name } else { "".into() };
        let most = self.limits.replies_per_second;
        let within = self.replies.count(&by, own.then_some(subscription), most, now.boot);
        if within { Ok(()) } else { Err(by) }
    }

    // enforces: I6, I22
    /// A reply that does not count leaves a record; beyond the rate it is only counted.
    fn ignore(&mut self, peer: &Principal, reason: Ignored, within: bool) -> Option<u64> {
        let record = Record::Ignored { by: peer.name.clone(), reason: reason as u8 };
        R::records_ignored(within).then(|| self.append(&record))
    }

    /// The answer to a message waits for its record; beyond the rate, for that of the second.
    fn answer_message(
        &mut self,
        rate: Result<(), Arc<str>>,
        needs: Option<u64>,
        call: u64,
    ) -> Handled {
        match rate {
            Err(by) if R::waits_in_flood(needs.is_some()) => {
                self.replies.hold(&by, call, needs.is_none());
                Handled::Held
            }
            _ => {
                self.durability.push_noted(needs.unwrap_or(0), Output::Noted { call });
                Handled::Done
            }
        }
    }

    /// Says of each second that is over how much came beyond the rate, and lets the answers go.
    pub(crate) fn end_reply_windows(&mut self, now: Now) {
        let most = self.limits.replies_per_second;
        while let Some(flood) = self.replies.end_window(most, now.boot) {
            let Some(Flood { by, ignored, held }) = flood else { continue };
            let replies = held.len() as u64;
            let needs = self.append(&Record::Flooded { by, replies, ignored });
            for call in held {
                self.durability.push_noted(needs, Output::Noted { call });
            }
        }
    }

    /// The checks of §6.3.4, in one place. Whatever fails, nobody outside learns which.
    fn admit(
        &mut self,
        peer: &Principal,
        (reply, evidence): (&Reply, &Evidence),
        counts: bool,
        now: Now,
    ) -> Result<RequestId, Ignored> {
        if !self.journal_works || !counts {
            return Err(Ignored::Unavailable);
        }
        // enforces: C8, S4
        let listener = self.listeners.get(&reply.subscription);
        let listener = listener.filter(|listener| R::is_owner(&listener.peer, peer));
        let listener = listener.ok_or(Ignored::NoSubscription)?;
        // enforces: C11, C12, D12
        let request = token_number(&reply.token).and_then(|token| self.requests.by_token(token));
        let request = request.ok_or(Ignored::UnknownToken)?;
        let number = request.number;
        // enforces: C13, S2
        if !R::is_pending(request.status) {
            return Err(Ignored::NotPending);
        }
        // enforces: C26, D9
        if !R::is_in_time(now.boot, request.closes()) {
            return Err(Ignored::Expired);
        }
        self.sessions.expect(request.home);
        let session = self.sessions.get(&request.session);
        // enforces: S1, D3
        if !R::is_entitled(peer, session.map(|session| &*session.agent.user)) {
            return Err(Ignored::NotEntitled);
        }
        // enforces: D29
        if !R::fits_kind(reply.content.answers(), request.kind) {
            return Err(Ignored::WrongKind);
        }
        // enforces: D1, H6
        if !R::supports_replies(listener.confirms, listener.clarifies, request.kind) {
            return Err(Ignored::NoReplySupport);
        }
        // enforces: I30
        if !R::is_somebody_else(evidence.own_tree) {
            return Err(Ignored::OwnTree);
        }
        // enforces: I34
        if !R::is_present(evidence.presence, request.needs, reply.content.consents()) {
            return Err(Ignored::NotPresent);
        }
        judge_answer::<R>(request, reply, now)?;
        Ok(number)
    }

    /// A reply that counts; returns the record that makes it so.
    fn take(
        &mut self,
        number: RequestId,
        peer: &Principal,
        (reply, evidence): (&Reply, &Evidence),
        now: Now,
    ) -> u64 {
        let Some(request) = self.requests.get_mut(&number) else { return 0 };
        let plausible = is_plausible::<R>(request, reply.stamp);
        request.reply = reply.says.clone();
        request.shown = Some(Box::new(evidence.clone()));
        let (outcome, runs) = match &reply.content {
            Content::MoreTime { seconds } => {
                // enforces: D32, C17
                request.shown = None;
                self.extend(number, *seconds, now);
                return self.last_record();
            }
            Content::Decision { decision: Decision::Accept, modified } => {
                // enforces: C10, D8, I17
                let runs = R::accept_runs(*modified);
                (if runs { Outcome::Accepted } else { Outcome::Rejected }, runs)
            }
            // D9: a no with a wrong stamp is no reply, but the question is withdrawn.
            Content::Decision { .. } if !plausible => {
                // enforces: D42
                request.wrong_clock = true;
                request.reply = Some(with_wrong_clock(request.reply.as_deref()));
                (Outcome::Cancelled, false)
            }
            Content::Decision { .. } => (Outcome::Rejected, false),
            Content::Answer(answer) => {
                request.answer = Some(answer_json(answer));
                (Outcome::Accepted, false)
            }
        };
        self.resolve(number, outcome, runs, &peer.name, now);
        self.last_record()
    }

    fn last_record(&self) -> u64 {
        R::waits_for(self.next_record - 1)
    }

    /// A person stops the agent: what waits dies, the session is cancelled by the user.
    fn stop(
        &mut self,
        peer: &Principal,
        session: SessionId,
        (subscription, own_tree): (SubscriptionId, bool),
        call: u64,
        now: Now,
    ) -> Result<Handled, Refusal> {
        let listener = self.listeners.get(&subscription);
        let theirs = listener.is_some_and(|listener| R::is_owner(&listener.peer, peer));
        let key = session_key(&session).unwrap_or(SessionKey::NONE);
        let session = self.sessions.get(&key);
        let entitled = session.is_some() // a session that ended cannot be stopped
            && R::is_entitled(peer, session.map(|session| &*session.agent.user));
        // enforces: I30
        let counts = theirs && entitled && R::is_somebody_else(own_tree) && self.journal_works;
        let rate = self.count_reply(peer, subscription, now);
        let needs = if counts {
            let session = self.sessions.get(&key);
            let language = session.map_or("en".into(), |session| session.language.clone());
            let payload = ending(&language, Phrase::STOPPED, ("cancelled_by", "user"));
            let cancelled = AgentEvent::read(EventKind::SessionCancelled.as_str(), &payload);
            self.end(key, &cancelled, now)?;
            Some(self.last_record())
        } else {
            self.ignore(peer, Ignored::NotEntitled, rate.is_ok())
        };
        Ok(self.answer_message(rate, needs, call))
    }

    /// Somebody who runs the producer ends a session: what waits dies, and it is cancelled.
    pub(crate) fn end_by_force(
        &mut self,
        by: &Principal,
        session: SessionId,
        now: Now,
    ) -> Result<Handled, Refusal> {
        self.needs_journal()?;
        let key = session_key(&session).unwrap_or(SessionKey::NONE);
        let Some(open) = self.sessions.get(&key) else { return Err(no_session()) };
        let language = open.language.clone();
        self.append(&Record::Administered {
            by: by.name.clone(),
            act: "ended_session".into(),
            what: session.as_str().into(),
            to: "".into(),
        });
        let payload = ending(&language, Phrase::STOPPED, ("cancelled_by", "system"));
        let cancelled = AgentEvent::read(EventKind::SessionCancelled.as_str(), &payload);
        self.end(key, &cancelled, now)
    }

    pub(crate) fn joined(
        &mut self,
        peer: &Principal,
        subscription: SubscriptionId,
        confirms: bool,
        clarifies: bool,
        now: Now,
    ) -> Result<Handled, Refusal> {
        let known = self.listeners.get(&subscription);
        if known.is_none() && self.listeners.len() >= self.limits.subscriptions {
            let text = format!(
                "At most {} subscriptions may be open at once (limits.subscriptions).",
                self.limits.subscriptions
            );
            return Err(Refusal::new(Blame::Limit, rule::H15, text));
        }
        // A subscription belongs to the peer that made it (§10 T8); and an agent never answers.
        if known.is_some_and(|known| known.peer != *peer) {
            return Err(Refusal::new(
                Blame::NotYours,
                rule::S4,
                "There is no such subscription of yours.",
            ));
        }
        let answers = matches!(peer.role, Role::AccessibilityConsumer | Role::Admin);
        let listener = Listener {
            peer: peer.clone(),
            confirms: confirms && answers,
            clarifies: clarifies && answers,
            lost_at: None,
            time_factor: 1,
        };
        let before = self.listeners.insert(subscription, listener.clone());
        let gave_up = |before: &Listener| {
            before.confirms && !listener.confirms || before.clarifies && !listener.clarifies
        };
        if let Some(before) = before.filter(gave_up) {
            // enforces: I16
            // For those who wait it is as if somebody had left.
            self.one_less(&before, now.boot, now);
        }
        Ok(Handled::Done)
    }

    pub(crate) fn lost(
        &mut self,
        subscription: SubscriptionId,
        now: Now,
    ) -> Result<Handled, Refusal> {
        let known = self.listeners.get(&subscription);
        if let Some(gone) = known.filter(|listener| listener.lost_at.is_none()).cloned() {
            self.listeners.change(subscription, |listener| listener.lost_at = Some(now.boot));
            self.one_less(&gone, now.boot.after_seconds(R::grace_seconds()), now);
        }
        Ok(Handled::Done)
    }

    pub(crate) fn left(
        &mut self,
        subscription: SubscriptionId,
        now: Now,
    ) -> Result<Handled, Refusal> {
        if let Some(gone) = self.listeners.remove(&subscription) {
            self.one_less(&gone, now.boot, now);
        }
        Ok(Handled::Done)
    }

    /// D2: once nobody is there who could answer, what waits is not kept waiting for nothing. What
    /// never reached anybody who could answer waits for its full time.
    fn one_less(&mut self, gone: &Listener, back_until: Boot, now: Now) {
        // Who lost the line before was counted then, and has heard nothing since.
        let was_here = gone.lost_at.is_none();
        let back_until = back_until.max(self.return_until);
        if !gone.peer.may_answer(&gone.peer.user) {
            return;
        }
        let (user, last) = (&gone.peer.user, RequestId::of(self.ids.last()));
        for kind in KINDS.into_iter().filter(|kind| was_here && gone.supports(*kind)) {
            self.unattended.somebody_left(user, kind, last);
        }
        if back_until <= now.boot {
            self.look_who_is_there(user, now);
        } else {
            self.unattended.look_at(user, back_until);
        }
    }

    /// Until when somebody who could answer this is there or may come back; for ever while one is.
    fn answered_for_until(&self, user: &str, kind: EventKind) -> Boot {
        match self.listeners.attendance(user, kind) {
            Attendance::Here => Boot(u64::MAX),
            Attendance::Lost(at) => at.after_seconds(R::grace_seconds()),
            Attendance::Nobody => Boot::default(),
        }
    }

    /// The time for coming back may be over: then a default of reject applies; others wait to their
    /// end.
    pub(crate) fn look_who_is_there(&mut self, user: &Arc<str>, now: Now) {
        // enforces: H20, D2, I14
        for kind in KINDS {
            let until = self.answered_for_until(user, kind);
            if until <= now.boot {
                for number in self.unattended.heard(user, kind) {
                    self.resolve(number, Outcome::TimedOut, false, "nobody there", now);
                }
            } else if until != Boot(u64::MAX) {
                self.unattended.look_at(user, until);
            }
        }
    }
}

// enforces: C20, D9
/// The last checks: an accept with a stamp that cannot be right does not count (decision D9), nor an
/// answer of a kind that was not asked for (§6.5.5).
fn judge_answer<R: Rules>(request: &Request, reply: &Reply, now: Now) -> Result<(), Ignored> {
    let plausible = is_plausible::<R>(request, reply.stamp);
    match &reply.content {
        // More time is more: it never shortens a wait.
        Content::MoreTime { seconds } => {
            let until = now.boot.after_seconds(*seconds);
            if R::is_longer(until, request.deadline) { Ok(()) } else { Err(Ignored::TooShort) }
        }
        Content::Decision { decision: Decision::Accept, .. } => {
            if plausible {
                Ok(())
            } else {
                Err(Ignored::Stamp)
            }
        }
        Content::Decision { .. } => Ok(()),
        Content::Answer(answer) => {
            let event = request.event.as_deref().unwrap_or_default();
            let fits = Event::parse(event.as_bytes()).is_ok_and(|event| match event.payload() {
                Payload::AwaitingClarification(question) => question.admits(answer),
                _ => false,
            });
            if fits && plausible { Ok(()) } else { Err(Ignored::WrongAnswer) }
        }
    }
}

/// D42: what a reply says of itself, and that its clock cannot be right.
fn with_wrong_clock(says: Option<&str>) -> Arc<str> {
    let members = says.and_then(|says| says.strip_prefix('{')).unwrap_or("}");
    let comma = if members == "}" { "" } else { "," };
    ["{\"wrong_clock\":true", comma, members].concat().into()
}

fn is_plausible<R: Rules>(request: &Request, claimed: Timestamp) -> bool {
    R::is_plausible(claimed, request.stamp, request.wall_deadline())
}

/// An answer as JSON, as it came.
fn answer_json(answer: &Response<'_>) -> Arc<str> {
    let mut out = aaep_types::json::Writer::new();
    match answer {
        Response::Text(text) => out.string(text),
        Response::YesNo(value) => out.json(if *value { "true" } else { "false" }),
        Response::Number(value) => out.json(&value.to_string()),
    }
    out.finish().into()
}
