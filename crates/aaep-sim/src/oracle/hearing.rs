//! What each subscription has to hear, and when (I4, I19, I20): every event makes its listeners a
//! promise, and every delivery has to keep one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use aaep_engine::{Emitted, EventNumber, Limits, Load};
use aaep_shaping::Prepared;
use aaep_types::{EventId, EventKind, SessionId, Urgency};

use super::events::{event_number, text};
use super::{Line, Oracle};
use crate::cast::{is_agent, may_hear};
use crate::wants::Wants;

/// One token of the bucket, in the millionths in which it is filled.
const TOKEN: i64 = 1_000_000;

/// The second reading of §5.6.1: one second's budget, refilled smoothly.
#[derive(Debug)]
struct Budget {
    rate: i64,
    level: i64,
    at: u64,
}

impl Budget {
    fn new(rate: u32, now: u64) -> Self {
        Self { rate: i64::from(rate), level: i64::from(rate) * TOKEN, at: now }
    }

    fn refill(&mut self, now: u64) {
        let fresh = i64::try_from(now.saturating_sub(self.at)).unwrap_or(i64::MAX);
        self.level = self.level.saturating_add(fresh.saturating_mul(self.rate));
        self.level = self.level.min(self.rate * TOKEN);
        self.at = self.at.max(now);
    }

    /// Takes a token; says whether there was one.
    fn take(&mut self, now: u64) -> bool {
        self.refill(now);
        let there = self.level >= TOKEN;
        // D38: no more than a second's budget is ever owed.
        self.level = (self.level - TOKEN).max(-self.rate * TOKEN);
        there
    }
}

/// An event that may wait for its turn.
#[derive(Debug)]
struct Owed {
    session: SessionId,
    event: EventNumber,
    /// One end of a tool call, which another call may stand for.
    tool: bool,
}

/// What one subscription was promised.
#[derive(Debug, Default)]
pub(crate) struct Hearing {
    /// Due before anything else happens: critical events, outcomes, what waits when somebody comes.
    at_once: Vec<EventNumber>,
    /// May wait for its turn, but not for ever, in this order.
    in_time: VecDeque<Owed>,
    /// Ends of tool calls that others went ahead of: a call that is told has to stand for them (D38).
    passed_over: BTreeMap<SessionId, u64>,
    /// Sessions that began while it listened.
    began_here: BTreeSet<SessionId>,
    /// Sessions of which it was sent a request.
    asked: BTreeSet<SessionId>,
    /// Requests that it was sent though they are settled; that has to be said in the same breath.
    settled: Vec<EventNumber>,
    budget: Option<Budget>,
    /// Sessions of which something went out over budget, and what; only D14 excuses that.
    borrowed: Vec<(SessionId, Option<EventKind>)>,
    /// What waited while its connection took nothing comes out now.
    after_pause: bool,
    /// It was paused or away once, so its budget is only known to be no larger than this.
    was_paused: bool,
    /// Somebody has listened already.
    has_come: bool,
    /// The terms before, while what was held under them goes out (§5.7).
    before: Option<Wants>,
}

impl Hearing {
    pub(crate) fn new(rate: u32, now: u64) -> Self {
        let budget = (rate > 0).then(|| Budget::new(rate, now));
        Self { budget, ..Self::default() }
    }

    /// New terms: what was held goes out under the old ones, all at once.
    pub(crate) fn change(&mut self, before: Wants) {
        self.before = Some(before);
    }

    /// What was held is out; what was borrowed stays borrowed.
    fn settle(&mut self, rate: u32, now: u64) {
        if std::mem::take(&mut self.after_pause) {
            self.borrowed.clear();
            self.budget.iter_mut().for_each(|budget| budget.level = budget.rate * TOKEN);
        }
        if self.before.take().is_none() {
            return;
        }
        self.borrowed.clear();
        match &mut self.budget {
            Some(budget) if rate > 0 => {
                budget.refill(now);
                budget.rate = i64::from(rate);
                budget.level = budget.level.min(budget.rate * TOKEN);
            }
            budget => *budget = (rate > 0).then(|| Budget::new(rate, now)),
        }
    }

    /// After a pause nobody can tell when what comes out now was paid for.
    pub(crate) fn go_on(&mut self) {
        (self.after_pause, self.was_paused) = (true, true);
    }

    /// D31: whether a filter left something out, so that it may be told as critical all the same. Who
    /// agreed on other terms while away hears, on coming back, what was said under either.
    fn may_be_raised(&self, wants: &Wants, kind: Option<EventKind>) -> bool {
        let left_out = |terms: &Wants| !terms.admits(kind);
        left_out(wants) || self.before.as_ref().is_some_and(left_out)
    }

    /// Something is told; whether it was its turn, and whether it was owed at all. Tool calls may be
    /// passed over, if another one stands for them.
    fn told(&mut self, session: SessionId, event: EventNumber) -> (bool, bool) {
        let Some(place) = self.in_time.iter().position(|owed| owed.event == event) else {
            return (true, false);
        };
        let tool = self.in_time.remove(place).is_some_and(|owed| owed.tool);
        let before = |owed: &Owed| owed.session == session;
        let passed: Vec<usize> = (0..place).filter(|at| before(&self.in_time[*at])).collect();
        let may_pass = tool && passed.iter().all(|at| self.in_time[*at].tool);
        if may_pass && !passed.is_empty() {
            *self.passed_over.entry(session).or_default() += passed.len() as u64;
            for at in passed.iter().rev() {
                self.in_time.remove(*at);
            }
        }
        (may_pass || passed.is_empty(), true)
    }

    /// D38: a call is told that stands for so many others; whether there were so many.
    fn stands_for(&mut self, session: SessionId, others: u64) -> bool {
        let mut ends = 2 * others;
        if let Some(passed) = self.passed_over.get_mut(&session) {
            let taken = ends.min(*passed);
            (ends, *passed) = (ends - taken, *passed - taken);
        }
        // The last that failed is told, so some of the others may have come after it.
        while ends > 0 {
            let of = |owed: &Owed| owed.session == session && owed.tool;
            let Some(at) = self.in_time.iter().position(of) else { break };
            self.in_time.remove(at);
            ends -= 1;
        }
        // Of sessions that began before, some calls may have been said while nobody listened.
        ends == 0 || !self.began_here.contains(&session)
    }

    /// Whether a call was passed over and nothing that was told stands for it.
    fn hides_calls(&self, session: SessionId) -> bool {
        self.passed_over.get(&session).is_some_and(|passed| *passed > 0)
    }

    /// I20: whether something waits though it may go.
    fn waits_in_vain(&mut self, now: u64) -> bool {
        let Some(budget) = &mut self.budget else { return false };
        budget.refill(now);
        budget.level >= TOKEN && !self.in_time.is_empty() && !self.was_paused
    }

    /// Nothing that was promised is outstanding.
    pub(crate) fn owes_nothing(&self) -> bool {
        self.at_once.is_empty() && self.in_time.is_empty()
    }

    /// Nobody listens any more.
    pub(crate) fn forget(&mut self) {
        self.at_once.clear();
        self.in_time.clear();
        self.passed_over.clear();
        self.began_here.clear();
        self.settled.clear();
        self.borrowed.clear();
    }
}

/// How many calls an event says that it stands for, itself included.
fn calls_told(bytes: &str) -> Option<u64> {
    let said = text(bytes, "\"summary_normal\":\"")?;
    said.split_once(" × ")?.0.parse().ok()
}

impl Oracle {
    /// An event was said: who has to hear it?
    pub(super) fn promise(&mut self, event: &Emitted) {
        let Some(user) = self.sessions.get(&event.session).map(|session| session.user) else {
            return;
        };
        let critical =
            event.urgency == Urgency::Critical || event.kind.is_some_and(EventKind::is_critical);
        let ends = event.kind.is_some_and(EventKind::is_terminal);
        let outcome = event.resolves_event.is_some();
        let tool = matches!(event.kind, Some(EventKind::ToolInvoked | EventKind::ToolCompleted));
        let whole = ends || tool || event.kind == Some(EventKind::SessionStarted);
        if !(critical || outcome || whole) {
            return;
        }
        for listener in self.listeners.iter_mut().filter(|listener| listener.line == Line::Live) {
            if !may_hear(listener.principal, user) {
                continue;
            }
            let hearing = &mut listener.hearing;
            if event.kind == Some(EventKind::SessionStarted) {
                hearing.began_here.insert(event.session);
            }
            let admitted = listener.wants.admits(event.kind);
            let was_asked = hearing.asked.contains(&event.session);
            // D31: no filter hides the outcome from anyone who was asked.
            if critical || outcome && admitted || (outcome || ends) && !admitted && was_asked {
                hearing.at_once.push(event.event);
            } else if admitted && whole {
                hearing.in_time.push_back(Owed {
                    session: event.session,
                    event: event.event,
                    tool,
                });
            }
        }
    }

    /// Something is sent to a subscription.
    pub(crate) fn sent_to(&mut self, index: usize, event: &Prepared, bytes: &str, boot: u64) {
        let (session, kind) = (event.session_id(), event.kind());
        let Some(number) = event_number(&event.event_id()) else { return };
        let Some(listener) = self.listeners.get_mut(index) else { return };
        let live = listener.line == Line::Live;
        let user = self.sessions.get(&session).map(|session| session.user);
        let theirs = user.is_some_and(|user| may_hear(listener.principal, user));
        let is_agent = is_agent(listener.principal);
        let before = listener.hearing.before.is_some_and(|before| before.admits(kind));
        let admitted = listener.wants.admits(kind) || before;
        let critical = event.is_critical();
        let raised = !critical
            && listener.hearing.may_be_raised(&listener.wants, kind)
            && bytes.contains("\"urgency\":\"critical\"");
        let hearing = &mut listener.hearing;
        hearing.at_once.retain(|owed| *owed != number);
        let (in_order, owed) = hearing.told(session, number);
        let others = calls_told(bytes).filter(|_| owed && kind == Some(EventKind::ToolCompleted));
        let counted = others.is_none_or(|calls| hearing.stands_for(session, calls - 1));
        let ends = kind.is_some_and(EventKind::is_terminal);
        let hidden = ends && hearing.hides_calls(session);
        let urgent = critical || raised || event.is_resolution();
        if !critical && !raised && hearing.budget.as_mut().is_some_and(|b| !b.take(boot)) {
            hearing.borrowed.push((session, kind.filter(|_| !event.is_resolution())));
        }
        // D38: it was merged. Who comes back hears what they missed as it was.
        let progress = (session, Some(EventKind::ProgressUpdated));
        let several = hearing.borrowed.iter().filter(|borrowed| **borrowed == progress).count() > 1;
        let unmerged = urgent && several && !hearing.was_paused && hearing.before.is_none();
        if urgent {
            // D14: what had to go before it, and an outcome itself, may be borrowed.
            hearing.borrowed.retain(|(of, _)| *of != session);
        }
        self.demand(!unmerged, "D38", || "much went before something critical".into());
        self.demand(live, "I4", || "something was sent to nobody".into());
        self.demand(theirs, "S6", || "somebody heard a session that is not theirs".into());
        let token = text(bytes, "\"reply_token\":\"rpl_");
        let worthless = token.is_none_or(|token| token == format!("{:032x}", number.bits()));
        self.demand(worthless || !is_agent, "S6", || "an agent was sent a reply token".into());
        self.demand(admitted || critical || raised, "H8", || {
            format!("a filter let {kind:?} through")
        });
        self.demand(in_order, "I19", || "something overtook what came before it".into());
        self.demand(counted, "D38", || "more calls were told than there were".into());
        self.demand(!hidden, "D38", || "calls were left out and nothing stands for them".into());
        match kind {
            Some(EventKind::AwaitingConfirmation | EventKind::AwaitingClarification) => {
                self.asked_of(index, session, number);
            }
            Some(EventKind::StateChanged) => self.outcome_told(index, bytes),
            _ => {}
        }
    }

    /// Somebody is asked: if it is settled already, they have to be told at once (D28).
    fn asked_of(&mut self, index: usize, session: SessionId, event: EventNumber) {
        let settled = self.asking(event).is_none_or(|asking| asking.shown);
        if let Some(listener) = self.listeners.get_mut(index) {
            listener.hearing.asked.insert(session);
            if settled {
                listener.hearing.settled.push(event);
            }
        }
    }

    fn outcome_told(&mut self, index: usize, bytes: &str) {
        let named = text(bytes, "\"request_event_id\":\"");
        let named = named.and_then(|id| event_number(&EventId::parse(id).ok()?));
        if let (Some(event), Some(listener)) = (named, self.listeners.get_mut(index)) {
            listener.hearing.settled.retain(|settled| *settled != event);
        }
    }

    /// Somebody came: whatever waits for an answer is asked of them (D28), with its id and token,
    /// unless they know it already. If they are told how things stand, they hear of every session that
    /// goes on: whatever is not spoken of is over for them (I32).
    pub(crate) fn came(&mut self, index: usize, knows: &BTreeSet<EventId>, snapshot: bool) {
        let Some(listener) = self.listeners.get_mut(index) else { return };
        let principal = listener.principal;
        listener.hearing.forget();
        // What came while nobody listened was paid for all the same.
        listener.hearing.was_paused |= std::mem::replace(&mut listener.hearing.has_come, true);
        let waiting = self.requests.values().filter(|request| {
            request.waits() && request.now().announced && may_hear(principal, request.user)
        });
        let waiting = waiting.map(|request| request.now().event);
        let unknown = waiting.filter(|event| !knows.contains(&event.id()));
        listener.hearing.at_once.extend(unknown);
        let starts = snapshot && listener.wants.admits(Some(EventKind::SessionStarted));
        // After a restart another event may stand for a start.
        let live = self
            .sessions
            .iter()
            .filter(|(_, session)| starts && !session.told_end && !session.recovered);
        let live = live.filter(|(_, session)| may_hear(principal, session.user));
        let owed = live.filter_map(|(id, session)| {
            Some(Owed { session: *id, event: session.started?, tool: false })
        });
        listener.hearing.in_time.extend(owed);
    }

    /// Everything that could come out has come out.
    pub(crate) fn drained(&mut self, boot: u64) {
        // After a restart nothing is said before the record of the restart is durable.
        let silent = self.told_durable < self.restart_record;
        let told_the_time = self.told_the_time;
        let mut broken = None;
        for listener in self.listeners.iter_mut().filter(|listener| listener.hears()) {
            let hearing = &mut listener.hearing;
            hearing.settle(listener.wants.rate, boot);
            if let Some(event) = hearing.at_once.first().filter(|_| !silent) {
                broken = Some(("I4", format!("{event:?} did not reach a subscription at once")));
            } else if !hearing.settled.is_empty() {
                broken = Some(("I3", "somebody was asked what is settled".into()));
            } else if !hearing.borrowed.is_empty() {
                broken = Some(("I20", "more was sent than was agreed on".into()));
            }
            hearing.borrowed.clear();
            if told_the_time && !listener.wants.low_load && hearing.waits_in_vain(boot) {
                broken = broken.or(Some(("I20", "something waits though it may go".into())));
            }
        }
        if let Some((invariant, text)) = broken {
            self.violated(invariant, text);
        }
    }

    /// T11: before an action is given back to run, every listener has heard of it.
    pub(super) fn heard_before_it_runs(&mut self, event: EventNumber) {
        let late = self.listeners.iter().any(|listener| {
            listener.hears()
                && !listener.wants.may_hold()
                && listener.hearing.in_time.iter().any(|owed| owed.event == event)
        });
        self.demand(!late, "I1", || "an action ran before people heard of it".into());
    }

    /// I19: after all the time in the world nothing is owed to anybody.
    pub(super) fn nothing_is_owed(&mut self) {
        let owed = self
            .listeners
            .iter()
            .any(|listener| listener.hears() && !listener.hearing.in_time.is_empty());
        self.demand(!owed, "I19", || "something that was said never reached a listener".into());
    }

    /// I22: nothing is held beyond its bound.
    pub(crate) fn bounded(&mut self, load: &Load, most: &Limits) {
        let within = load.subscriptions <= most.subscriptions
            // Critical events are counted apart.
            && load.most_events <= 2 * most.held_events
            && load.most_bytes <= 2 * most.held_bytes
            && load.most_recent <= most.recent_events
            && load.recent_bytes <= most.recent_bytes
            && load.most_recent_bytes <= most.recent_bytes_per_user
            && load.ended_sessions <= most.ended_sessions;
        self.demand(within, "I22", || format!("more is held than may be: {load:?}"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: I20
    #[test]
    fn what_new_terms_leave_out_may_be_raised_before_what_was_held_is_out() {
        let progress = Some(EventKind::ProgressUpdated);
        let everything = Wants::PLAIN;
        let without_progress = Wants::PLAIN.without_progress();
        let mut hearing = Hearing::new(5, 0);
        assert!(!hearing.may_be_raised(&everything, progress));
        assert!(hearing.may_be_raised(&without_progress, progress));
        // The new terms were agreed on while nobody listened.
        hearing.change(everything);
        assert!(hearing.may_be_raised(&without_progress, progress));
        hearing.change(without_progress);
        assert!(hearing.may_be_raised(&everything, progress));
        hearing.settle(5, 0);
        assert!(!hearing.may_be_raised(&everything, progress));
    }
}
