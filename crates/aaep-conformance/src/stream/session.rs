//! One session: leads each of its events past the parts that judge it.

use aaep_types::{EventKind, LenientEvent, Timestamp, rule};

use super::Weight;
use super::memory::Digest;
use super::order::{Order, Stand, Step};
use super::outputs::Outputs;
use super::report::Report;
use super::requests::{Change, Requests, Sight, ValidReply};
use super::said::{self, Observed};
use super::states::{AWAITING_INPUT, CALLING_TOOL, HANDING_OFF, States, WRITING_OUTPUT};
use super::tools::Tools;

/// Everything that is known of a session that has not ended.
#[derive(Debug)]
pub(super) struct Session {
    complete: bool,
    /// Its first event in this stream was no start.
    joined: bool,
    /// At least one event of it was taken.
    begun: bool,
    /// A bound of ours was reached: not all of it is followed.
    crowded: bool,
    agent: Option<Digest>,
    pub(super) first_line: u64,
    pub(super) last_line: u64,
    start: Option<Digest>,
    last_state: Option<Digest>,
    order: Order,
    states: States,
    tools: Tools,
    outputs: Outputs,
    pub(super) requests: Requests,
}

impl Session {
    pub(super) fn new(complete: bool, joined: bool, line: u64) -> Self {
        let mut states = States::default();
        if joined {
            states.forget();
        }
        Self {
            complete,
            joined,
            begun: false,
            crowded: false,
            agent: None,
            first_line: line,
            last_line: line,
            start: None,
            last_state: None,
            order: Order::default(),
            states,
            tools: Tools::default(),
            outputs: Outputs::default(),
            requests: Requests::default(),
        }
    }

    /// D28: the start, the latest state and open requests may be delivered again at any time, also
    /// after their ids were forgotten elsewhere.
    pub(super) fn redelivers(&self, event: Digest) -> bool {
        self.start == Some(event)
            || self.last_state == Some(event)
            || self.requests.asked_by(&event)
    }

    fn sight(&self) -> Sight {
        let doubt = self.joined || self.crowded || self.order.has_hole();
        Sight { complete: self.complete, lost: if doubt { Weight::Note } else { Weight::Error } }
    }

    /// The next event of this session that is no duplicate.
    pub(super) fn event(
        &mut self,
        heard: &LenientEvent<'_>,
        said: Observed<'_>,
        report: &mut Report<'_>,
    ) {
        self.last_line = report.line;
        self.follow_agent(heard);
        let time = heard.timestamp();
        let told_again =
            matches!(said, Observed::Started | Observed::State { .. } | Observed::Asked(_));
        let seen_in_part = !self.complete && (self.joined || self.order.has_hole());
        let stand = Stand { complete: self.complete, may_be_old: told_again && seen_in_part };
        let step = self.order.number(said::number(heard), stand, report);
        if step == Step::Hole {
            self.states.forget();
        }
        if step != Step::Old {
            self.order.time(time, report);
        }
        let id = Digest::of(&[heard.event_id()]);
        let ends = matches!(said, Observed::Ended(_));
        self.apply(id, said, time, report);
        self.begun = true;
        if !ends {
            self.requests.pass_time(time.map(|time| time.as_micros()), self.sight(), report);
        }
    }

    fn apply(
        &mut self,
        id: Digest,
        said: Observed<'_>,
        time: Option<Timestamp>,
        report: &mut Report<'_>,
    ) {
        let sight = self.sight();
        let time = time.map(|time| time.as_micros());
        match said {
            Observed::Started => self.start(id, report),
            Observed::Ended(kind) => self.end(kind, sight, report),
            Observed::State { from, to, outcome } => {
                self.last_state = Some(id);
                let (from, to) = (from.as_deref(), to.as_deref());
                self.states.change(from, to, sight.lost, report);
                self.tools.state(from, to, report.line);
                self.requests.state(Change { from, to, outcome, time }, sight, report);
            }
            Observed::Invoked { tool, call, irreversible } => {
                self.states.imply(CALLING_TOOL);
                self.requests.invoked(tool, irreversible, time, sight, report);
                self.crowded |= self.tools.invoked(tool, call, report);
            }
            Observed::Completed { tool, call } => {
                self.tools.completed(tool, call, sight.lost, report)
            }
            Observed::Output(piece) => {
                self.states.imply(WRITING_OUTPUT);
                self.requests.follow();
                // Only a complete stream shows that text is missing; elsewhere it may be lost.
                let gap = if self.complete { sight.lost } else { Weight::Note };
                self.crowded |= self.outputs.piece(&piece, gap, report);
            }
            Observed::Asked(ask) => {
                self.states.imply(AWAITING_INPUT);
                self.crowded |= self.requests.ask(ask, sight, report);
            }
            Observed::Handoff => {
                self.states.imply(HANDING_OFF);
                self.requests.follow();
            }
            Observed::Other => {}
        }
    }

    fn start(&mut self, id: Digest, report: &mut Report<'_>) {
        if self.begun {
            // Who joins late is told the start again (decision D28).
            let again = !self.complete && self.joined && self.start.is_none();
            report.add(
                if again { Weight::Note } else { Weight::Error },
                rule::T1,
                format!(
                    "This session is started again or late; its first event is on line {}. \
                     A session starts once, before anything else.",
                    self.first_line
                ),
            );
        }
        self.start = Some(id);
    }

    fn end(&mut self, kind: EventKind, sight: Sight, report: &mut Report<'_>) {
        self.tools.end(sight.lost, report);
        self.outputs.end(sight.lost, report);
        self.requests.end(kind, sight, report);
    }

    /// A reply to one of this session's requests.
    pub(super) fn answer(&mut self, answer: ValidReply, report: &mut Report<'_>) {
        self.requests.answer(answer, self.order.clock(), report);
    }

    /// The stream ended before the session did.
    pub(super) fn finish(&mut self, report: &mut Report<'_>) {
        let sight = self.sight();
        self.requests.finish(sight, report);
        report.add(
            if self.complete { Weight::Error } else { Weight::Note },
            rule::T1,
            "This session does not end in this stream. \
             Every session ends with `completed`, `errored` or `cancelled`.",
        );
    }

    // enforces: E28
    /// Several agents may speak in one session, each in a state of its own (§2.2.5, A.9): where the
    /// speaker changes, nothing is known of the state that the next one leaves.
    fn follow_agent(&mut self, heard: &LenientEvent<'_>) {
        let Some(agent) = said::agent(heard) else { return };
        if self.agent.replace(agent).is_some_and(|before| before != agent) {
            self.states.forget();
        }
    }

    #[cfg(test)]
    pub(super) fn is_bounded(&self) -> bool {
        self.tools.is_bounded() && self.outputs.is_bounded() && self.requests.is_bounded()
    }
}
