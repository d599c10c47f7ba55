//! I22: what the engine holds, compared with what it needs for what is alive.

use aaep_engine::{Footprint, Limits};

use super::Oracle;
use super::facts::Request;

impl Oracle {
    /// Whether something may still become of a request.
    pub(super) fn is_live(&self, request: &Request) -> bool {
        let open = self.sessions.get(&request.session).is_some_and(|s| s.ended.is_none());
        let runs = || {
            let mut calls = self.calls.values();
            let own = |call: &&super::Call| Some(call.record) == request.invoked;
            calls.find(own).is_some_and(|call| call.completed_on.is_none())
        };
        open && request.exists() && (request.waits() || request.is_approved() || runs())
    }

    pub(crate) fn holds_only_what_it_needs(&mut self, held: &Footprint, most: &Limits) {
        let sessions = self.sessions.values().filter(|s| s.ended.is_none()).count();
        let live = || self.requests.values().filter(|request| self.is_live(request));
        let (count, arguments) = (live().count(), live().map(|r| r.question.arguments.len()));
        let kept = self.sessions.values().filter(|s| s.ended.is_none()).map(|s| s.kept);
        // One session that ended may be larger than the bound for all of its user's.
        let ended: usize = (0..2)
            .map(|user| {
                let own = self.sessions.values().filter(|s| s.user == user && s.ended.is_some());
                own.map(|session| session.kept).max().unwrap_or(0).max(most.ended_requests_per_user)
            })
            .sum();
        let requests = kept.sum::<usize>() + ended;
        let within = held.sessions <= sessions
            && held.requests <= requests
            && held.argument_bytes <= arguments.sum::<usize>()
            && held.ended_sessions <= ended
            // One of them is open at a time in this world.
            && held.outputs <= sessions * (most.completed_outputs + 1)
            && held.listeners <= most.subscriptions
            && held.timers <= 4 * requests + 1024 + 3 * sessions + ended;
        self.demand(within, "I22", || {
            format!("{held:?} for {sessions} sessions and {count} requests that live")
        });
    }
}
