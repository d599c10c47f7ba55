//! Records on their way to the journal: each must follow from what happened.

use aaep_engine::{Outcome, Record, RequestId};
use aaep_types::{Presence, SessionId, ToolCallId};

use super::facts::{Asking, Resolved};
use super::{Call, Cause, Oracle};

impl Oracle {
    /// The engine hands a record to the journal.
    pub(crate) fn appended(&mut self, number: u64, record: &Record) {
        self.appended += 1;
        self.demand(number == self.last_record + 1, "I3", || {
            format!("record {number} does not follow the one before")
        });
        self.last_record = number;
        self.stamped(number, record);
        match record {
            Record::Opened(opened) => {
                self.demand(!self.draining, "I23", || "a session began after the drain".into());
                if let Some(session) = self.session_mut(&opened.session) {
                    session.opened = number;
                }
            }
            Record::Ended { session, .. } => self.ended(session, number),
            Record::Asked(asked) => self.asked(asked.request, number),
            Record::Resolved { request, outcome, runs, .. } => {
                let resolved = Resolved { outcome: *outcome, runs: *runs, record: number };
                self.resolved(*request, resolved);
            }
            Record::Invoked { request, call, .. } => self.invoked(*request, call, number),
            Record::Expired { request, .. } => self.expired(*request, number),
            Record::Completed { call, .. } => {
                let call = ToolCallId::parse(call).ok();
                if let Some(call) = call.and_then(|call| self.calls.get_mut(&call)) {
                    call.completed_on = Some(number);
                }
            }
            Record::Extended { request, event, timeout_seconds, .. } => {
                self.extended(
                    *request,
                    Asking::new(*event, number, self.now, timeout_seconds * 1000),
                );
            }
            Record::Restarted { .. } => self.restart_record = number,
            Record::Flooded { by, replies, ignored } => {
                self.flooded(number, by, *replies, *ignored);
            }
            _ => {}
        }
    }

    fn session_mut(&mut self, id: &str) -> Option<&mut super::Session> {
        SessionId::parse(id).ok().and_then(|id| self.sessions.get_mut(&id))
    }

    fn ended(&mut self, session: &str, number: u64) {
        let (now, cause) = (self.now, self.cause);
        let Ok(id) = SessionId::parse(session) else { return };
        let Some(known) = self.sessions.get_mut(&id) else { return };
        let twice = known.ended.replace(number).is_some();
        let silent = now >= known.touched + known.lease;
        let asked_for = matches!(cause, Some(Cause::End(ended)) if ended == id);
        self.demand(!twice, "I5", || "a session ended twice".into());
        self.demand(silent || asked_for, "I5", || "a session ended for no reason".into());
        let open = self.requests.values().any(|r| r.session == id && r.waits());
        self.demand(!open, "I13", || "a session ended with a request still open".into());
        let unexplained = self.requests.values().any(|r| r.session == id && r.is_approved());
        self.demand(!unexplained, "I18", || "a session ended over an approval, unexplained".into());
    }

    /// I12: one pending token for one action.
    fn asked(&mut self, number: RequestId, record: u64) {
        let Some(request) = self.requests.get_mut(&number) else {
            return self.violated("I3", "a request that nobody made was recorded".into());
        };
        request.askings[0].record = record;
        let (session, question) = (request.session, request.question);
        let same = self.requests.iter().any(|(other, request)| {
            *other != number
                && request.waits()
                && request.session == session
                && question.confirmation
                && request.question.is_like(question)
        });
        self.demand(!same, "I12", || "two requests wait for the same action".into());
        self.demand(!self.draining, "I23", || "something was asked after the drain".into());
        self.note_repliers();
    }

    /// D32: more time, for somebody entitled who asked for it, and never less than there was.
    fn extended(&mut self, number: RequestId, asking: Asking) {
        let verdict = match self.cause {
            Some(Cause::Reply(verdict)) => verdict,
            _ => return self.violated("D32", "more time that nobody asked for".into()),
        };
        let asked_for =
            verdict.request == Some(number) && verdict.more == Some(asking.timeout_millis);
        let Some(request) = self.requests.get_mut(&number) else {
            return self.violated("I3", "more time for a request that nobody made".into());
        };
        let longer = request.now().deadline < asking.deadline;
        request.askings.push(asking);
        let reused = self.asks.insert(asking.event, number).is_some();
        self.demand(asked_for, verdict.otherwise, || "more time for somebody not entitled".into());
        self.demand(longer, "I8", || "more time was less time".into());
        self.demand(!reused, "I25", || "an event id was used again".into());
    }

    /// Keeps the stamps that are on record: behind these none may ever go.
    fn stamped(&mut self, number: u64, record: &Record) {
        let session_of = |request: &RequestId| self.requests.get(request).map(|r| r.session);
        let (session, stamp) = match record {
            Record::Opened(opened) => (SessionId::parse(&opened.session).ok(), opened.stamp),
            Record::Ended { session, said }
            | Record::Called { session, said, .. }
            | Record::Completed { session, said, .. } => {
                (SessionId::parse(session).ok(), said.stamp)
            }
            Record::Asked(asked) => (SessionId::parse(&asked.session).ok(), asked.said.stamp),
            Record::Resolved { request, said, .. }
            | Record::Invoked { request, said, .. }
            | Record::Expired { request, said }
            | Record::Extended { request, said, .. } => (session_of(request), said.stamp),
            Record::Restarted { stamp } => {
                for session in self.sessions.values_mut() {
                    session.stamps.push((number, *stamp));
                }
                return;
            }
            _ => return,
        };
        if let Some(session) = session.and_then(|session| self.sessions.get_mut(&session)) {
            session.stamps.push((number, stamp));
        }
    }

    fn resolved(&mut self, number: RequestId, resolved: Resolved) {
        let Some(request) = self.requests.get(&number) else {
            return self.violated("I3", "a request that nobody made was resolved".into());
        };
        if let Some(before) = request.resolved {
            let text = format!("{:?} after {:?}", resolved.outcome, before.outcome);
            return self.violated(self.blame_for_second(), format!("resolved twice: {text}"));
        }
        let ended = self.sessions.get(&request.session).is_none_or(|s| s.ended.is_some());
        if let Some((invariant, text)) = self.unjustified(number, resolved) {
            self.violated(
                invariant,
                format!("{text}: {:?}, runs: {}", resolved.outcome, resolved.runs),
            );
        }
        self.demand(!ended, "I13", || "a request outlived its session".into());
        let now = self.now;
        if let Some(request) = self.requests.get_mut(&number) {
            request.resolved = Some(resolved);
            request.approved_at = now;
        }
    }

    /// D41: an approval is spent unused when its time is over, or nobody knows how old it is.
    fn expired(&mut self, number: RequestId, record: u64) {
        let doubt = matches!(self.cause, Some(Cause::Recovery { trusted: false }));
        let Some(request) = self.requests.get_mut(&number) else {
            return self.violated("I3", "an approval of nobody's request expired".into());
        };
        let approved = request.is_approved();
        let over = self.now >= request.approved_at + self.approval_millis;
        let session = request.session;
        request.expired = Some(record);
        request.expiry_shown = false;
        self.demand(approved, "D41", || "what was not approved expired".into());
        let given_up = match self.cause {
            Some(Cause::Withdraw(withdrawn)) => withdrawn == number,
            Some(Cause::End(ended)) => ended == session,
            _ => false,
        };
        let silent = self.sessions.get(&session).is_some_and(|s| self.now >= s.touched + s.lease);
        self.demand(over || doubt || given_up || silent, "D41", || {
            "an approval was cut short".into()
        });
    }

    fn blame_for_second(&self) -> &'static str {
        match self.cause {
            Some(Cause::Reply(verdict)) => verdict.otherwise,
            Some(Cause::Recovery { .. }) => "I3",
            _ => "I2",
        }
    }

    /// Why a resolution does not follow from anything that happened; `None` if it does.
    fn unjustified(
        &self,
        number: RequestId,
        resolved: Resolved,
    ) -> Option<(&'static str, &'static str)> {
        let request = self.requests.get(&number)?;
        let cause = self.cause?;
        let (outcome, runs) = (resolved.outcome, resolved.runs);
        if let Cause::Reply(verdict) = cause
            && (verdict.request, verdict.outcome) == (Some(number), Some((outcome, runs)))
        {
            return None;
        }
        let silent = self
            .sessions
            .get(&request.session)
            .is_some_and(|session| self.now >= session.touched + session.lease);
        match outcome {
            Outcome::TimedOut => {
                let question = request.question;
                let default = question.default_accept
                    && !question.irreversible
                    && question.needs() == Presence::None;
                if runs && !default {
                    let silent = question.default_accept && !question.irreversible;
                    let broken = if silent { "I34" } else { "I9" };
                    return Some((broken, "silence became consent"));
                }
                if self.now >= request.now().deadline {
                    return (runs != default).then_some(("I9", "the default was not applied"));
                }
                let early = self.may_end_early(request) && !runs;
                (!early).then_some(("I14", "a wait was cut short"))
            }
            Outcome::Cancelled => match cause {
                _ if runs => Some(("I9", "a withdrawn request became consent")),
                Cause::Withdraw(withdrawn) if withdrawn == number => None,
                Cause::End(session) if session == request.session => None,
                Cause::Recovery { trusted: false } => None,
                Cause::Recovery { trusted: true } => Some(("I3", "a restart ended a request")),
                _ if silent => None,
                _ => Some(("I2", "a request was withdrawn by nobody")),
            },
            Outcome::Accepted | Outcome::Rejected | Outcome::Superseded => Some(match cause {
                Cause::Reply(verdict) => (verdict.otherwise, "a reply counted that must not"),
                _ => ("I9", "decided without an answer"),
            }),
        }
    }

    /// I1: an approval is spent once, on a session that is open.
    fn invoked(&mut self, number: RequestId, call: &str, record: u64) {
        let Ok(call) = ToolCallId::parse(call) else { return };
        let Some(request) = self.requests.get_mut(&number) else {
            return self.violated("I1", "something was invoked that nobody asked for".into());
        };
        let session = request.session;
        let may_run = request.resolved.is_some_and(|resolved| resolved.runs);
        let expired =
            request.expired.is_some() || self.now >= request.approved_at + self.approval_millis;
        let twice = request.invoked.replace(record).is_some();
        self.demand(!expired, "D41", || "an approval was used after its time".into());
        self.demand(may_run, "I1", || "invoked without an approval".into());
        self.demand(!twice, "I1", || "one approval was spent twice".into());
        let call_of = Call {
            request: number,
            session,
            record,
            announced: None,
            completed: false,
            completed_on: None,
        };
        self.calls.insert(call, call_of);
    }
}
