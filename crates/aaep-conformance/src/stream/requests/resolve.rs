//! State changes that show what became of a request (§6.7.2, §6.8, decision D30).

use aaep_types::rule;

use super::{By, Dead, Request, Requests, Sight, Status};
use crate::stream::report::Report;
use crate::stream::said::{Fate, ToldOutcome};
use crate::stream::states::{AWAITING_INPUT, CALLING_TOOL};

/// A state change, as far as requests care.
#[derive(Clone, Copy, Debug)]
pub(in crate::stream) struct Change<'a> {
    pub(in crate::stream) from: Option<&'a str>,
    pub(in crate::stream) to: Option<&'a str>,
    pub(in crate::stream) outcome: Option<ToldOutcome>,
    /// In microseconds.
    pub(in crate::stream) time: Option<i64>,
}

impl Requests {
    /// The state changed.
    pub(in crate::stream) fn state(
        &mut self,
        change: Change<'_>,
        sight: Sight,
        report: &mut Report<'_>,
    ) {
        if change.from == Some(CALLING_TOOL) {
            // The call itself stood for the report.
            self.bury_all(|open| open.status == Status::UsedUp);
        }
        if change.to == Some(AWAITING_INPUT) {
            return; // Going to wait, or back to waiting, resolves nothing.
        }
        if change.from == Some(CALLING_TOOL) {
            self.judge_suspects(sight, report);
            self.judge_unflagged(report);
        }
        if let Some(outcome) = change.outcome {
            // One that is not open here is no reason to resolve another.
            let Some(at) = self.first(|open| open.ask.event == outcome.request) else { return };
            if let Some(fate) = outcome.fate {
                return self.settle(at, fate, change, sight, report);
            }
        }
        if change.from == Some(AWAITING_INPUT) {
            self.guess(change, sight, report);
        } else {
            self.pass_by(change);
        }
    }

    /// The outcome was said in so many words.
    fn settle(
        &mut self,
        at: usize,
        fate: Fate,
        change: Change<'_>,
        sight: Sight,
        report: &mut Report<'_>,
    ) {
        let goes_on = change.to == Some(CALLING_TOOL);
        let Some(request) = self.open.get(at) else { return };
        match (fate, request.status) {
            (Fate::Accepted, Status::Pending) => self.accept(at, change, sight, report),
            (Fate::Accepted, Status::Rejected) => {
                report.note(
                    rule::T24,
                    format!(
                        "The request on line {} is reported as accepted, but the reply in this \
                         stream rejects it. Another reply must have come first.",
                        request.line
                    ),
                );
                self.mark_accepted(at, By::Word);
            }
            (Fate::Accepted, Status::UsedUp) => self.bury(at, Dead::Settled),
            (Fate::Accepted, _) => self.mark_reported(at, goes_on),
            (Fate::TimedOut, _) if request.ask.default_accept && goes_on => {
                self.mark_accepted(at, By::Default);
            }
            (Fate::TimedOut, _) => self.bury(at, Dead::TimedOut),
            (Fate::Cancelled, _) => self.bury(at, Dead::Cancelled),
            (Fate::Rejected, _) => self.bury(at, Dead::Settled),
        }
    }

    /// Nothing says which request is meant: what was answered comes first, then the oldest.
    fn guess(&mut self, change: Change<'_>, sight: Sight, report: &mut Report<'_>) {
        let unreported = |status| self.first(|open| open.is_unreported(status));
        let accepted = self.first(|open| {
            matches!(open.status, Status::Accepted(_)) && !open.reported
                || open.status == Status::UsedUp
        });
        let (answered, rejected) = (unreported(Status::Answered), unreported(Status::Rejected));
        if change.to != Some(CALLING_TOOL) {
            match (rejected, answered, accepted) {
                (Some(at), _, _) | (None, Some(at), _) => self.bury(at, Dead::Settled),
                (None, None, Some(at)) => self.mark_reported(at, false),
                (None, None, None) => self.cancel(change.time),
            }
            return;
        }
        let asked = self.first(|open| open.is_pending() && open.is_confirmation());
        let unclear = self.first(Request::is_pending);
        match (accepted, answered, asked, unclear, rejected) {
            (Some(at), ..) => self.mark_reported(at, true),
            (_, Some(at), ..) => self.bury(at, Dead::Settled),
            (_, _, Some(at), ..) => self.accept(at, change, sight, report),
            (_, _, _, Some(at), _) => self.bury(at, Dead::Settled),
            (.., Some(at)) => self.accuse_of_defiance(at, sight, report),
            _ => {}
        }
    }

    /// A state change that does not leave `awaiting_input` still shows that the producer reacted.
    fn pass_by(&mut self, change: Change<'_>) {
        self.bury_all(|open| {
            matches!(open.status, Status::Rejected | Status::Answered | Status::UsedUp)
        });
        for request in &mut self.open {
            let accepted = matches!(request.status, Status::Accepted(_));
            request.reported |= accepted;
            // Leaving without a call says that the action no longer goes ahead.
            request.followed |= accepted && change.to != Some(CALLING_TOOL);
        }
    }

    fn bury_all(&mut self, test: impl Fn(&Request) -> bool) {
        while let Some(at) = self.first(&test) {
            self.bury(at, Dead::Settled);
        }
    }

    /// §6.7.2: from `awaiting_input` to `calling_tool` says that the user accepted.
    fn accept(&mut self, at: usize, change: Change<'_>, sight: Sight, report: &mut Report<'_>) {
        let open = self.open.iter().filter(|open| open.is_pending() && open.is_confirmation());
        if open.count() > 1 && change.outcome.is_none() {
            self.ambiguous = true;
        }
        let weight = self.weight(sight);
        let Some(request) = self.open.get(at) else { return };
        let (long_past, line) = (request.is_long_past(change.time), request.line);
        // Said in so many words and in time, it may have been somebody else's accept.
        let vouched = change.outcome.is_some_and(|outcome| outcome.fate == Some(Fate::Accepted));
        if request.late_accept && !request.ask.default_accept && (long_past || !vouched) {
            report.add(
                self.weight_against_reply(sight),
                rule::C1,
                format!(
                    "The producer goes on with the action of line {line} on an accept that came \
                     after the deadline. No valid accept came in time, so the action must not run."
                ),
            );
            return self.mark_accepted(at, By::Dispute);
        }
        let by_default = request.is_past(change.time) && request.ask.default_accept;
        if by_default || !long_past {
            return self.mark_accepted(at, if by_default { By::Default } else { By::Word });
        }
        report.add(
            weight,
            rule::C14,
            format!(
                "The producer goes on with the action of line {line} after its deadline, although \
                 the default is reject. Without a reply in time the default decision applies."
            ),
        );
        self.mark_accepted(at, By::Dispute);
    }

    /// The only request that could be meant was rejected.
    fn accuse_of_defiance(&mut self, at: usize, sight: Sight, report: &mut Report<'_>) {
        let Some(request) = self.open.get(at) else { return };
        report.add(
            self.weight_against_reply(sight),
            rule::T24,
            format!(
                "The request on line {} was rejected, but the state goes on to `calling_tool`. \
                 After a reject the state returns to `thinking` or `deciding`.",
                request.line
            ),
        );
        self.mark_accepted(at, By::Dispute);
    }

    /// §6.8: back to thinking or deciding, without a reply. Past the deadline it is the default.
    fn cancel(&mut self, time: Option<i64>) {
        if let Some(at) = self.first(|open| open.is_pending() && open.is_past(time)) {
            return self.bury(at, Dead::TimedOut);
        }
        if self.open.iter().filter(|open| open.is_pending()).count() > 1 {
            // One of them is dead, and we cannot know which.
            self.ambiguous = true;
            return;
        }
        if let Some(at) = self.first(Request::is_pending) {
            self.bury(at, Dead::Cancelled);
        }
    }

    fn mark_accepted(&mut self, at: usize, by: By) {
        if let Some(request) = self.open.get_mut(at) {
            request.status = Status::Accepted(by);
            request.reported = true;
            request.suspect = None;
            let tool = request.ask.tool;
            self.refused.retain(|(refused, _)| Some(*refused) != tool);
        }
        self.dead_accept = None;
    }

    /// An accept that was used already leaves with its report. One that is reported by going
    /// elsewhere than to the call is said to be given up.
    fn mark_reported(&mut self, at: usize, goes_on: bool) {
        match self.open.get_mut(at) {
            Some(request) if request.status != Status::UsedUp => {
                request.reported = true;
                request.followed |= !goes_on;
            }
            _ => self.bury(at, Dead::Settled),
        }
    }
}
