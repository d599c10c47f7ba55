//! Numbers and times: the order that a session's events claim for themselves (§3.2.5, §3.4.1).

use aaep_types::{Timestamp, rule};

use super::Weight;
use super::report::Report;

/// What is known of a session's numbers and of its clock.
#[derive(Debug, Default)]
pub(super) struct Order {
    /// Whether the session's first event had a number.
    numbered: Option<bool>,
    last: Option<u64>,
    clock: Option<Timestamp>,
    hole: bool,
    mixed: bool,
}

/// How an event stands to those before it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stand {
    pub(super) complete: bool,
    /// It may be older than what came before: who joins in mid-session is told the start, the
    /// latest state and the open requests (decision D28).
    pub(super) may_be_old: bool,
}

/// What an event's number says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Its turn, as far as anybody can tell.
    Next,
    /// Something is missing before it.
    Hole,
    /// Older, and delivered late with good reason.
    Old,
}

impl Order {
    pub(super) fn has_hole(&self) -> bool {
        self.hole
    }

    /// When the latest event was emitted.
    pub(super) fn clock(&self) -> Option<Timestamp> {
        self.clock
    }

    /// Judges the number of the next event.
    pub(super) fn number(
        &mut self,
        number: Option<Option<u64>>,
        stand: Stand,
        report: &mut Report<'_>,
    ) -> Step {
        let numbered = *self.numbered.get_or_insert(number.is_some());
        if numbered != number.is_some() && !self.mixed {
            self.mixed = true;
            report.error(
                rule::E15,
                "Some events of this session have a sequence number and some have none. \
                 Number all of them or none.",
            );
        }
        let Some(Some(number)) = number else { return Step::Next };
        let Some(last) = self.last else {
            self.last = Some(number);
            return Step::Next;
        };
        if number < last && stand.may_be_old {
            return Step::Old;
        }
        if number <= last {
            report.error(rule::E15, backwards(number, last));
            return Step::Next;
        }
        self.last = Some(number);
        if number == last + 1 {
            return Step::Next;
        }
        // enforces: D15
        self.hole = true;
        report.add(
            if stand.complete { Weight::Error } else { Weight::Note },
            rule::E15,
            format!(
                "Events are missing between the sequence numbers {last} and {number}. \
                 Each event of a session has one more than the event before."
            ),
        );
        Step::Hole
    }

    /// Judges the time of the next event.
    pub(super) fn time(&mut self, time: Option<Timestamp>, report: &mut Report<'_>) {
        let Some(time) = time else { return };
        if self.clock.is_some_and(|clock| time < clock) {
            report.error(
                rule::E10,
                "This event is stamped earlier than the one before it. \
                 Within a session timestamps never go back, even if the clock does.",
            );
        }
        // From here on the new time counts, so that one step back is one finding.
        self.clock = Some(time);
    }
}

fn backwards(number: u64, last: u64) -> String {
    if number == last {
        format!("Two events of this session have the sequence number {number}. Each has its own.")
    } else {
        format!(
            "The sequence number {number} comes after {last}. \
             Each event of a session has one more than the event before."
        )
    }
}
