//! A crash takes what was not durable; whatever people have seen must still be true afterwards.

use aaep_engine::{Engine, Rules, Status};

use super::{Line, Oracle};

impl Oracle {
    /// The machine came back with the first `kept` records.
    pub(crate) fn restarted(&mut self, kept: u64, trusted: bool) {
        self.demand(kept >= self.durable, "I3", || "the disk broke its promise".into());
        self.last_record = kept;
        self.durable = kept;
        self.told_durable = kept;
        self.restart_record = 0;
        self.journal_down = false;
        self.alive = None;
        self.forget_messages();
        let now = self.now;
        for listener in &mut self.listeners {
            if listener.line == Line::Live {
                // They do not know yet; like anybody who lost the line they may come back.
                listener.line = Line::Lost(now);
            }
        }
        self.sessions.retain(|_, session| session.opened <= kept && session.opened > 0);
        for session in self.sessions.values_mut() {
            session.ended = session.ended.filter(|record| *record <= kept);
            session.touched = now;
            session.stamps_forgotten = !trusted;
        }
        for request in self.requests.values_mut() {
            if request.asked > kept {
                request.asked = 0;
            }
            request.resolved = request.resolved.filter(|resolved| resolved.record <= kept);
            request.invoked = request.invoked.filter(|record| *record <= kept);
            request.heard_in_this_boot = false;
        }
        self.calls.retain(|_, call| call.record <= kept);
        for call in self.calls.values_mut() {
            call.completed_on = call.completed_on.filter(|record| *record <= kept);
        }
        self.restarted_at = Some(now);
    }

    /// I2, I3: every request stands where its records left it, and nothing is revived.
    pub(crate) fn compare<R: Rules>(&mut self, engine: &Engine<R>, trusted: bool) {
        let mut broken = None;
        for (number, request) in &self.requests {
            let lost = request.asked == 0;
            let fits = match (engine.status(*number), request.resolved) {
                (None, _) => lost,
                (Some(_), _) if lost => false,
                (Some(Status::Pending), resolved) => resolved.is_none() && trusted,
                (Some(Status::Resolved { outcome, runs }), Some(resolved)) => {
                    request.invoked.is_none()
                        && (outcome, runs) == (resolved.outcome, resolved.runs)
                }
                // A doubtful clock ends what waits; its record is on its way.
                (Some(Status::Resolved { runs, .. }), None) => !trusted && !runs,
                (Some(Status::Invoked | Status::Completed | Status::Unknown), _) => {
                    request.invoked.is_some()
                }
            };
            if lost && request.announced {
                broken = Some(("I3", "a request that people have heard was lost"));
            } else if request.told.is_some() && request.resolved.is_none() {
                broken = Some(("I2", "an outcome that people have heard was lost"));
            } else if !fits {
                let doubt = !trusted && engine.status(*number) == Some(Status::Pending);
                let invariant = if doubt { "I8" } else { "I3" };
                broken = Some((invariant, "a request does not stand where its records left it"));
            }
        }
        if let Some((invariant, text)) = broken {
            self.violated(invariant, text.into());
        }
    }
}
