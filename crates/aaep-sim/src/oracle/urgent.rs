//! I20: what waits for nobody has a budget at its source.

use aaep_engine::Emitted;
use aaep_types::EventKind;

use super::Oracle;

const WINDOW_MILLIS: u64 = 60_000;
/// Sessions' worth of critical events for one agent.
const AGENT_SHARE: usize = 10;

impl Oracle {
    pub(super) fn budgeted(&mut self, event: &Emitted) {
        let urgent =
            matches!(event.kind, Some(EventKind::HandoffRequested | EventKind::SessionErrored));
        let Some(agent) = self.sessions.get(&event.session).map(|session| session.agent) else {
            return;
        };
        if !urgent {
            return;
        }
        let (now, most) = (self.now, self.critical_per_window as usize);
        self.urgent.retain(|(at, _, _, _)| at + WINDOW_MILLIS > now);
        let handoff = event.kind == Some(EventKind::HandoffRequested);
        self.urgent.push((now, agent, event.session, handoff));
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
