//! I20: what waits for nobody has a budget at its source.

use std::collections::VecDeque;

use aaep_engine::Emitted;
use aaep_types::{EventKind, SessionId};

use super::Oracle;

const WINDOW_MILLIS: u64 = 60_000;
/// Sessions' worth of critical events for one agent.
const AGENT_SHARE: usize = 10;

impl Oracle {
    /// The engine took an event from its agent. That is when it counts: how long the disk then holds
    /// it back says nothing about the agent.
    pub(crate) fn took(&mut self, session: SessionId, kind: EventKind) {
        if matches!(kind, EventKind::HandoffRequested | EventKind::SessionErrored) {
            self.taken.entry((session, kind)).or_default().push_back(self.now);
        }
    }

    pub(super) fn budgeted(&mut self, event: &Emitted) {
        let urgent =
            matches!(event.kind, Some(EventKind::HandoffRequested | EventKind::SessionErrored));
        let Some(agent) = self.sessions.get(&event.session).map(|session| session.agent) else {
            return;
        };
        let Some(kind) = event.kind.filter(|_| urgent) else { return };
        let taken = self.taken.get_mut(&(event.session, kind));
        // Of what the engine says by itself, or says again after a restart, the agent announced nothing.
        let Some(at) = taken.and_then(VecDeque::pop_front) else { return };
        let most = self.critical_per_window as usize;
        self.urgent.retain(|(before, _, _, _)| before + WINDOW_MILLIS > at);
        self.urgent.push((at, agent, event.session, kind == EventKind::HandoffRequested));
        let own = |(_, _, session, handoff): &&(u64, usize, _, bool)| {
            *session == event.session && *handoff
        };
        // Windows follow each other: within any minute there are two at most.
        let of_session = self.urgent.iter().filter(own).count() <= 2 * most;
        let of_agent = self.urgent.iter().filter(|(_, known, _, _)| *known == agent).count()
            <= 2 * AGENT_SHARE * most;
        self.demand(of_session && of_agent, "I20", || {
            "an agent announced more critical events than it may".into()
        });
    }
}
