//! One view of the stream, judged by the conformance checker, which shares nothing with the engine:
//! everything that was said, or what one subscription heard of it. Of everything that was said,
//! some witnesses lose and double messages on the way, as on a line that breaks and is resumed.
//! Transports keep the order.

use aaep_conformance::stream::{Checker, Finding, Options, Weight};
use aaep_engine::{Emitted, EventNumber, Rules};
use aaep_types::EventKind;
use std::collections::BTreeSet;

use crate::oracle::Oracle;
use crate::random::Random;
use crate::world::World;

pub(crate) struct Witness {
    checker: Checker,
    found: Vec<Finding>,
    line: u64,
    lossy: bool,
    lost: BTreeSet<EventNumber>,
    last: Option<std::sync::Arc<str>>,
    /// The stamps of events between two records are not durable: after a restart under a clock that
    /// was set back they may go back once.
    pub(crate) clock_may_step_back: bool,
    pub(crate) clock_was_set: bool,
}

impl Witness {
    /// One whose line may lose and double messages.
    pub(crate) fn new(lossy: bool) -> Self {
        Self {
            checker: Checker::new(Options::default()),
            found: Vec::new(),
            line: 0,
            lossy,
            lost: BTreeSet::new(),
            last: None,
            clock_may_step_back: false,
            clock_was_set: false,
        }
    }

    /// The same one, who listens to another stream from now on.
    pub(crate) fn of_another_stream(self) -> Self {
        let Self { lossy, clock_may_step_back, clock_was_set, .. } = self;
        Self { clock_may_step_back, clock_was_set, ..Self::new(lossy) }
    }

    pub(crate) fn hear(&mut self, event: &Emitted, random: &mut Random, oracle: &mut Oracle) {
        let copies = match random.below(16) {
            // What was lost stays lost: transports keep the order, so it cannot come later.
            _ if self.lost.contains(&event.event) => 0,
            0 if self.lossy && event.kind != Some(EventKind::SessionStarted) => 0,
            1 if self.lossy => 2,
            _ => 1,
        };
        if copies == 0 {
            self.lost.insert(event.event);
        }
        for _ in 0..copies {
            self.judge(&event.json, oracle);
        }
        // A line that is resumed repeats what came last.
        if let Some(again) = self.last.take().filter(|_| copies == 2) {
            self.judge(&again, oracle);
        }
        self.last = Some(event.json.clone()).filter(|_| copies > 0);
    }

    /// What the checker makes of the next message.
    pub(crate) fn judge(&mut self, json: &str, oracle: &mut Oracle) {
        self.line += 1;
        self.checker.message(self.line, json.as_bytes(), &mut self.found);
        for finding in self.found.drain(..) {
            let excused = match finding.rule.id {
                "E10" => self.clock_may_step_back,
                // By its stamps alone, an answer in time looks late once the clock was set, and
                // what follows from it looks as if nobody had agreed. The oracle knows better.
                "C14" | "T12" | "T27" => self.clock_was_set,
                _ => false,
            };
            if finding.weight == Weight::Error && !excused {
                oracle.violated(invariant_of(finding.rule.id), finding.to_string());
            }
        }
    }
}

impl<R: Rules> World<'_, R> {
    /// Everybody who judges a stream.
    pub(crate) fn witnesses(&mut self) -> impl Iterator<Item = &mut Witness> {
        let ears = self.clients.iter_mut().filter_map(|client| client.ear.witness.as_mut());
        self.witness.iter_mut().chain(ears)
    }
}

/// The invariant that a rule of streams belongs to.
fn invariant_of(rule: &str) -> &'static str {
    match rule {
        "T1" | "E8" => "I5",
        "T11" | "T12" | "C1" | "C2" => "I1",
        "T15" => "I11",
        "C6" => "I25",
        "C14" | "C23" | "D30" => "I18",
        "C15" => "I9",
        "C24" => "I13",
        _ => "I19",
    }
}
