//! A crash takes what was not durable; whatever people have seen must still be true afterwards.

use aaep_engine::{Engine, Rules, Status};

use super::{Line, Oracle};

impl Oracle {
    /// The machine came back with the first `kept` records.
    pub(crate) fn restarted(&mut self, kept: u64, trusted: bool) {
        self.demand(kept >= self.durable, "I3", || "the disk broke its promise".into());
        let in_order = std::mem::take(&mut self.stopped);
        self.demand(!in_order || kept == self.last_record, "I23", || {
            "something was lost though the hub stopped in good order".into()
        });
        self.last_record = kept;
        self.durable = kept;
        self.told_durable = kept;
        self.restart_record = 0;
        self.journal_down = false;
        self.draining = false;
        self.alive = None;
        self.forget_messages();
        // A restart begins with a fresh budget.
        self.urgent.clear();
        self.taken.clear();
        let now = self.now;
        for listener in &mut self.listeners {
            match listener.line {
                // They do not know yet; like anybody who lost the line they may come back.
                Line::Live => listener.lose(now),
                Line::Agreed(at) => listener.close(at),
                Line::Lost(_) | Line::Closed(_) => {}
            }
            listener.known = false;
        }
        self.sessions.retain(|_, session| session.opened <= kept && session.opened > 0);
        for session in self.sessions.values_mut() {
            session.ended = session.ended.filter(|record| *record <= kept);
            session.touched = now;
            session.recovered = true;
            session.stamps.retain(|(record, _)| *record <= kept);
            if !trusted {
                // Nobody knows the stamps of events that left no record.
                let on_record = session.stamps.iter().map(|(_, stamp)| *stamp).max();
                session.last_stamp = session.last_stamp.min(on_record.unwrap_or(i64::MIN));
            }
        }
        for request in self.requests.values_mut() {
            if request.askings[0].record > kept {
                request.askings[0].record = 0;
            }
            request.askings.retain(|asking| asking.record <= kept);
            request.resolved = request.resolved.filter(|resolved| resolved.record <= kept);
            request.invoked = request.invoked.filter(|record| *record <= kept);
            request.expired = request.expired.filter(|record| *record <= kept);
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
            let lost = !request.exists();
            let fits = match (engine.status(*number), request.resolved) {
                // What is settled may be forgotten.
                (None, _) => lost || !self.is_live(request),
                (Some(_), _) if lost => false,
                (Some(Status::Pending), resolved) => resolved.is_none() && trusted,
                (Some(Status::Resolved { outcome, runs }), Some(resolved)) => {
                    request.invoked.is_none()
                        && request.expired.is_none()
                        && (outcome, runs) == (resolved.outcome, resolved.runs)
                }
                // A doubtful clock ends what waits; its record is on its way.
                (Some(Status::Resolved { runs, .. }), None) => !trusted && !runs,
                (Some(Status::Expired), _) => {
                    request.expired.is_some() || request.is_approved() && !trusted
                }
                (Some(Status::Invoked | Status::Completed | Status::Unknown), _) => {
                    request.invoked.is_some()
                }
            };
            if lost && request.announced() {
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
