//! Tool calls against the ledger of consent (§4.3.1, §4.5.3, §6.1).

use aaep_types::{Rule, rule};

use super::{By, Dead, Request, Requests, Sight, Status};
use crate::stream::Weight;
use crate::stream::memory::Digest;
use crate::stream::report::Report;
use crate::stream::said::Nature;

impl Requests {
    /// A call is announced. `time` is in microseconds.
    pub(in crate::stream) fn invoked(
        &mut self,
        tool: Digest,
        irreversible: bool,
        time: Option<i64>,
        sight: Sight,
        report: &mut Report<'_>,
    ) {
        if irreversible {
            self.spend(time, sight, report);
        } else {
            self.judge_refused(tool, sight, report);
            self.observe(time, report.line);
        }
    }

    // enforces: D37
    /// A call of a tool that waits for consent, or was refused it. Only a warning: the call may have
    /// other arguments, which a stream does not show.
    fn judge_refused(&mut self, tool: Digest, sight: Sight, report: &mut Report<'_>) {
        let named = |open: &&Request| open.ask.tool == Some(tool);
        if self.open.iter().filter(named).any(|open| matches!(open.status, Status::Accepted(_))) {
            return;
        }
        let weight = self.weight(sight).max(Weight::Warning);
        let waits = self.open.iter().filter(named).find(|open| open.is_pending());
        if let Some(request) = waits {
            let line = request.line;
            return report.add(
                weight,
                rule::C3,
                format!(
                    "This call is of the tool that the request on line {line} asks about, which \
                     nobody has answered. Nothing may look as if the action had happened."
                ),
            );
        }
        if let Some((_, line)) = self.refused.iter().rev().find(|(refused, _)| *refused == tool) {
            report.add(
                weight,
                rule::T24,
                format!(
                    "This call is of the tool that the request on line {line} asked about, which \
                     was not accepted. Ask again before it runs."
                ),
            );
        }
    }

    /// An irreversible call uses up one accept.
    fn spend(&mut self, time: Option<i64>, sight: Sight, report: &mut Report<'_>) {
        let weight = self.weight(sight);
        let Some((by, at)) = self.best_accept(time) else {
            if self.forgotten_accepts > 0 {
                self.forgotten_accepts -= 1;
                return;
            }
            let (rule, text) = self.refusal();
            return report.add(weight, rule, text);
        };
        if let Some(request) = self.open.get(at) {
            judge_accept(request, by, weight, report);
        }
        self.use_up(at);
    }

    /// The accept that fits an irreversible call best: given in words before given by default, said
    /// to be irreversible before unsaid, the oldest first.
    fn best_accept(&self, time: Option<i64>) -> Option<(By, usize)> {
        let ground = |request: &Request| match request.status {
            Status::Accepted(by) => Some(by),
            Status::Pending if defaulted(request, time) => Some(By::Default),
            _ => None,
        };
        let accepts = self.open.iter().enumerate();
        let accepts = accepts.filter_map(|(at, open)| Some((ground(open)?, open.ask.nature, at)));
        accepts.min().map(|(by, _, at)| (by, at))
    }

    /// A request whose accept is used stays until a state change has reported it: the two count once.
    fn use_up(&mut self, at: usize) {
        match self.open.get_mut(at) {
            Some(request) if !request.reported => {
                request.status = Status::UsedUp;
                (request.followed, request.suspect, request.unflagged) = (true, None, None);
            }
            _ => self.bury(at, Dead::Settled),
        }
    }

    /// Why there is no accept: the rule that fits what the stream shows, and a sentence.
    fn refusal(&mut self) -> (Rule, &'static str) {
        if let Some(at) = self.first(|open| open.is_pending() && open.late_accept) {
            self.bury(at, Dead::TimedOut);
            return (rule::C1, TOO_LATE);
        }
        match self.dead_accept.take() {
            Some(Dead::Cancelled) => (rule::C24, CANCELLED),
            Some(Dead::TimedOut) => (rule::C1, TOO_LATE),
            _ => (rule::T12, NO_ACCEPT),
        }
    }

    /// A call that is not irreversible may be other work (§6.1), so little follows from it: it uses
    /// an accept for what can be taken back, shows that the producer reacted, or looks suspicious.
    fn observe(&mut self, time: Option<i64>, line: u64) {
        let accepted = |nature: Nature| {
            move |open: &Request| {
                matches!(open.status, Status::Accepted(_)) && open.ask.nature == nature
            }
        };
        let used = self
            .first(accepted(Nature::Reversible))
            // §6.1: the time is up and the default is accept, so the action may go on.
            .or_else(|| self.first(|open| open.is_pending() && defaulted(open, time)));
        if let Some(at) = used {
            return self.use_up(at);
        }
        // One call stands for one request, as long as there are requests without any.
        let natures = [Nature::Unsaid, Nature::Irreversible];
        let fresh = |nature| self.first(|open| accepted(nature)(open) && !open.followed);
        let followed = natures.into_iter().find_map(fresh);
        let followed =
            followed.or_else(|| natures.into_iter().find_map(|n| self.first(accepted(n))));
        let doubtful = self.first(|open| {
            open.suspect.is_none()
                && (open.is_unreported(Status::Rejected) || open.is_pending() && open.late_accept)
        });
        let Some(request) = followed.or(doubtful).and_then(|at| self.open.get_mut(at)) else {
            return;
        };
        // Whether this was other work is judged when the state is left.
        if followed.is_none() {
            request.suspect.get_or_insert(line);
            return;
        }
        request.followed = true;
        if request.ask.nature == Nature::Irreversible {
            request.unflagged.get_or_insert(line);
        }
    }

    /// Output and handoffs show that the producer went on from a reply.
    pub(in crate::stream) fn follow(&mut self) {
        for request in &mut self.open {
            request.followed |= request.status != Status::Pending;
        }
    }
}

/// What the accept of an irreversible call was worth.
fn judge_accept(request: &Request, by: By, weight: Weight, report: &mut Report<'_>) {
    let (nature, line) = (request.ask.nature, request.line);
    match by {
        By::Dispute => {}
        // D11: silence is no consent to what cannot be taken back.
        // enforces: D11
        By::Default => report.add(
            weight,
            rule::T12,
            format!(
                "This irreversible call rests on the default decision of line {line}; nobody \
                 accepted it. An irreversible call needs an accept of the user."
            ),
        ),
        By::Word if request.ask.default_accept && nature != Nature::Irreversible => {
            report.add(
                weight,
                rule::T27,
                format!(
                    "This irreversible call was confirmed by the request on line {line}, whose \
                     default was accept. What cannot be taken back is asked with the default reject."
                ),
            );
        }
        By::Word if nature == Nature::Reversible => report.warning(
            rule::T27,
            format!(
                "This call is irreversible, but the request on line {line} said that its action \
                 can be taken back."
            ),
        ),
        By::Word => {}
    }
}

/// The time is up, nobody answered, and the default is accept.
fn defaulted(request: &Request, time: Option<i64>) -> bool {
    request.is_confirmation() && request.ask.default_accept && request.is_past(time)
}

const NO_ACCEPT: &str = "This irreversible call was announced without an accepted confirmation \
     that is still unused. Ask first, and invoke only after an accept.";
const TOO_LATE: &str = "This irreversible call rests on an accept that came after the deadline. \
     Such an accept counts for nothing; ask again.";
const CANCELLED: &str = "This irreversible call rests on an accept of a request that was cancelled. \
     Its token was dead; ask again.";
