//! Replies (§6.3, §6.5).

use aaep_types::{Decision, ReplyToken, Timestamp, rule};

use super::{By, Dead, Request, RequestKind, Requests, Status};
use crate::stream::report::Report;

/// A valid reply, as far as a single message shows.
#[derive(Clone, Copy, Debug)]
pub(in crate::stream) struct ValidReply {
    pub(in crate::stream) token: ReplyToken,
    /// `None` answers a clarification.
    pub(in crate::stream) decision: Option<Decision>,
    pub(in crate::stream) modified: bool,
    /// When the user decided, as the reply claims.
    pub(in crate::stream) time: Timestamp,
}

impl Requests {
    /// Whether the token belongs to a request of this session, open or over.
    pub(in crate::stream) fn knows(&self, token: &ReplyToken) -> bool {
        self.open.iter().any(|request| request.ask.token.as_ref() == Some(token))
            || self.graves.iter().any(|(dead, _)| dead == token)
    }

    /// Takes a reply whose token is known. `clock` is the time of the latest event.
    pub(in crate::stream) fn answer(
        &mut self,
        answer: ValidReply,
        clock: Option<Timestamp>,
        report: &mut Report<'_>,
    ) {
        let pending = self.first(|open| open.ask.token == Some(answer.token) && open.is_pending());
        let Some(request) = pending.and_then(|at| self.open.get_mut(at)) else {
            return self.answer_nothing(answer, report);
        };
        let fits = request.is_confirmation() == answer.decision.is_some();
        let allowed = answer.decision != Some(Decision::Accept) || request.ask.allows_accept;
        if !fits {
            report.note(
                rule::D29,
                "This reply is of the other kind than its request. It counts for nothing.",
            );
        } else if !allowed {
            report.note(
                rule::C11,
                "This decision is not among the replies that its request allows. \
                 It counts for nothing.",
            );
        } else if is_late(request, answer.time, clock) {
            request.late_accept |= answer.decision == Some(Decision::Accept);
            report.note(
                rule::C14,
                "This reply came after the deadline of its request. It counts for nothing; \
                 the default decision applies.",
            );
        } else {
            take(request, answer, report);
            self.dead_accept = None;
        }
    }

    /// §6.3.5: the first valid reply counts, and a token that is dead stays dead (§6.8).
    fn answer_nothing(&mut self, answer: ValidReply, report: &mut Report<'_>) {
        let grave = self.graves.iter().rev().find(|(token, _)| *token == answer.token);
        let dead = grave.map_or(Dead::Settled, |(_, dead)| *dead);
        if answer.decision == Some(Decision::Accept) && dead != Dead::Settled {
            self.dead_accept = Some(dead);
        }
        report.note(
            rule::C13,
            "This reply answers a request that is over. It counts for nothing, and the producer \
             has to ignore it.",
        );
    }
}

/// §6.3.4: the reply's own time and its place in the stream both have to precede the deadline.
fn is_late(request: &Request, time: Timestamp, clock: Option<Timestamp>) -> bool {
    let past = |time: Timestamp| request.is_past(Some(time.as_micros()));
    past(time) || clock.is_some_and(past)
}

fn take(request: &mut Request, answer: ValidReply, report: &mut Report<'_>) {
    request.status = match (request.ask.kind, answer.decision) {
        (RequestKind::Clarification, _) | (_, None) => Status::Answered,
        (_, Some(Decision::Accept)) => Status::Accepted(By::Word),
        (_, Some(Decision::Reject)) => Status::Rejected,
    };
    if answer.modified {
        // It may be either, and only the producer knows; nothing is expected of it.
        request.followed = true;
        report.note(
            rule::C10,
            "This reply asks for a changed action. It counts as a reject unless the producer \
             supports changes to this request, which a stream does not show.",
        );
    }
}
