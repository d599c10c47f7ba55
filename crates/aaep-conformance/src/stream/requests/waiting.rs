//! What did not happen in time (§4.5.3, §6.1, §6.4).

use aaep_types::rule;

use super::{By, Dead, GRACE_MICROS, Request, Requests, Sight, Status};
use crate::stream::report::Report;

impl Requests {
    /// An event that is none of the session's last has passed. `time` is in microseconds.
    pub(in crate::stream) fn pass_time(
        &mut self,
        time: Option<i64>,
        sight: Sight,
        report: &mut Report<'_>,
    ) {
        let Some(time) = time else { return };
        while let Some(at) = self.first(|open| open.is_pending() && open.is_long_past(Some(time))) {
            self.expire(at, sight, report);
        }
        for request in self.open.iter_mut().filter(|request| is_waiting(request)) {
            request.waiting_since.get_or_insert(time);
        }
        while let Some(at) = self.first(|open| is_waiting(open) && waits_too_long(open, time)) {
            self.miss_follow_up(at, sight, report);
        }
        // Once nothing is open, nothing can be mistaken for another.
        self.ambiguous &= self.open.iter().any(Request::is_pending);
    }

    /// The stream ended.
    pub(in crate::stream) fn finish(&mut self, sight: Sight, report: &mut Report<'_>) {
        while let Some(at) = self.first(is_waiting).filter(|_| sight.complete) {
            self.miss_follow_up(at, sight, report);
        }
    }

    /// §6.4: the time is up, and nothing shows that the default was applied.
    fn expire(&mut self, at: usize, sight: Sight, report: &mut Report<'_>) {
        let weight = self.weight_of_absence(sight);
        let Some(request) = self.open.get_mut(at) else { return };
        report.add(
            weight,
            rule::C14,
            format!(
                "The request on line {} timed out, and no event says what became of it. \
                 When the time is up, apply the default and say so.",
                request.line
            ),
        );
        if request.ask.default_accept {
            request.status = Status::Accepted(By::Default);
            request.reported = true;
        } else {
            self.bury(at, Dead::TimedOut);
        }
    }

    /// A reply, and then nothing that shows its effect.
    fn miss_follow_up(&mut self, at: usize, sight: Sight, report: &mut Report<'_>) {
        if self.open.get(at).is_some_and(|request| request.suspect.is_some()) {
            return self.judge_suspects(sight, report);
        }
        let weight = self.weight_of_absence(sight);
        let Some(request) = self.open.get_mut(at) else { return };
        request.followed = true;
        let line = request.line;
        if request.status == Status::Rejected {
            report.add(
                weight,
                rule::C2,
                format!(
                    "The request on line {line} was rejected, and no event shows that its action \
                     was given up. Return to `thinking` or `deciding`, and say why."
                ),
            );
        } else {
            report.add(
                weight,
                rule::T24,
                format!(
                    "The request on line {line} was accepted, and nothing followed. Invoke the \
                     tool, or say that the action no longer goes ahead."
                ),
            );
        }
    }
}

fn is_waiting(request: &Request) -> bool {
    let decided = matches!(request.status, Status::Accepted(By::Word) | Status::Rejected);
    decided && !request.reported && !request.followed
}

fn waits_too_long(request: &Request, time: i64) -> bool {
    let limit = request.waiting_since.and_then(|since| since.checked_add(GRACE_MICROS));
    limit.is_some_and(|limit| time > limit)
}
