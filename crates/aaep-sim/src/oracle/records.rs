//! Records on their way to the journal: each must follow from what happened.

use aaep_engine::{Outcome, Record};
use aaep_types::{SessionId, ToolCallId};

use super::facts::Resolved;
use super::{Call, Cause, Oracle};

impl Oracle {
    /// The engine hands a record to the journal.
    pub(crate) fn appended(&mut self, number: u64, record: &Record) {
        self.appended += 1;
        self.demand(number == self.last_record + 1, "I3", || {
            format!("record {number} does not follow the one before")
        });
        self.last_record = number;
        match record {
            Record::Opened(opened) => {
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
            Record::Completed { call, .. } => {
                let call = ToolCallId::parse(call).ok();
                if let Some(call) = call.and_then(|call| self.calls.get_mut(&call)) {
                    call.completed_on = Some(number);
                }
            }
            Record::Restarted { .. } => self.restart_record = number,
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
    }

    /// I12: one pending token for one action.
    fn asked(&mut self, number: u128, record: u64) {
        let Some(request) = self.requests.get_mut(&number) else {
            return self.violated("I3", "a request that nobody made was recorded".into());
        };
        request.asked = record;
        let (session, question) = (request.session, request.question);
        let same = self.requests.iter().any(|(other, request)| {
            *other != number
                && request.waits()
                && request.session == session
                && question.confirmation
                && request.question.confirmation
                && request.question.arguments == question.arguments
        });
        self.demand(!same, "I12", || "two requests wait for the same action".into());
        self.note_repliers();
    }

    fn resolved(&mut self, number: u128, resolved: Resolved) {
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
        if let Some(request) = self.requests.get_mut(&number) {
            request.resolved = Some(resolved);
        }
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
        number: u128,
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
                let default = request.question.default_accept && !request.question.irreversible;
                if runs && !default {
                    return Some(("I9", "silence became consent"));
                }
                if self.now >= request.deadline {
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
    fn invoked(&mut self, number: u128, call: &str, record: u64) {
        let Ok(call) = ToolCallId::parse(call) else { return };
        let Some(request) = self.requests.get_mut(&number) else {
            return self.violated("I1", "something was invoked that nobody asked for".into());
        };
        let session = request.session;
        let may_run = request.resolved.is_some_and(|resolved| resolved.runs);
        let twice = request.invoked.replace(record).is_some();
        self.demand(may_run, "I1", || "invoked without an approval".into());
        self.demand(!twice, "I1", || "one approval was spent twice".into());
        let call_of = Call {
            request: number,
            session,
            record,
            announced: false,
            completed: false,
            completed_on: None,
        };
        self.calls.insert(call, call_of);
    }
}
