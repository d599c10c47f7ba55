//! Events: composed, checked by the rules of our source, numbered, stamped, sent on their way.

use aaep_types::json::Canonical;
use aaep_types::team::agents_of;
use aaep_types::{
    CancelledBy, Event, EventKind, Opaque, Payload, SessionId, ToolCallId, recorded, rule,
};
use std::sync::Arc;

use crate::agent_event::AgentEvent;
use crate::clock::Now;
use crate::draft::{Draft, Ready, members, on_one_line};
use crate::engine::{Ended, Engine, Timer, no_session};
use crate::hints::is_ours_alone;
use crate::ids::{EventNumber, SessionKey, session_key};
use crate::io::{Emitted, Handled, Open, Output};
use crate::principal::{Principal, Role};
use crate::record::{Opened, Record};
use crate::refusal::{Blame, Refusal};
use crate::request::Status;
use crate::rules::Rules;
use crate::session::{Session, state};
use crate::words::{Phrase, say};

/// How long the requests of a session are known after its end (§6.2.2).
const KEPT_SECONDS: u64 = 24 * 60 * 60;

impl<R: Rules> Engine<R> {
    pub(crate) fn open(&mut self, open: Open<'_>, now: Now) -> Result<Handled, Refusal> {
        if open.agent.role != Role::Agent {
            return Err(Refusal::new(Blame::NotYours, rule::S6, "Only agents open sessions."));
        }
        self.open.admit(&self.limits.open_sessions(), open.agent, 1)?;
        self.admits_errors_of(open.agent, now)?;
        self.may_begin()?;
        if Opaque::parse(open.producer).is_none() {
            return Err(Refusal::new(
                Blame::Malformed,
                rule::E11,
                "The producer is a JSON object.",
            ));
        }
        let id = self.ids.session();
        let mut session = Session::new(
            (id, open.agent.clone()),
            (on_one_line(open.producer.to_owned()).into(), open.language.as_str().into()),
            open.lease_seconds,
            now.wall,
            now,
        );
        let more = if open.payload.is_empty() { "{}" } else { open.payload };
        let started = AgentEvent::read(EventKind::SessionStarted.as_str(), more);
        let started = started.with_text("summary_normal", open.summary);
        let draft = Draft::of_event(&started, started.said()?);
        let event = self.ids.event();
        let json: Arc<str> = draft.json(event, 0, now.wall, &session).into();
        let parsed = Event::parse_ours(json.as_bytes())?;
        session.team = agents_of(&json).into();
        session.admits_speaker(draft.hints.as_deref())?;
        let needs = self.append(&Record::Opened(Opened {
            session: session.id().as_str().into(),
            agent: session.agent.name.clone(),
            user: session.agent.user.clone(),
            producer: session.producer.clone(),
            language: session.language.clone(),
            lease_seconds: session.lease_seconds,
            event: json.clone(),
            stamp: now.wall.as_micros(),
        }));
        self.timers.insert((session.lease_timer, Timer::Lease(id.into())));
        let public = session.id();
        self.open.add(&session.agent, 1);
        self.sessions.insert(session);
        self.push(id, draft.ready(event, json.clone(), Some(&parsed)), needs, now);
        Ok(Handled::Session(public))
    }

    // enforces: I23
    /// Whether something new may begin.
    pub(crate) fn may_begin(&self) -> Result<(), Refusal> {
        if !R::may_begin(self.draining) {
            let text = "The hub is about to stop; try again when it is back.";
            return Err(Refusal::new(Blame::Unavailable, rule::C13, text));
        }
        self.needs_journal()
    }

    /// Whether something can be made durable now.
    pub fn needs_journal(&self) -> Result<(), Refusal> {
        if self.journal_works {
            return Ok(());
        }
        Err(Refusal::new(
            Blame::Unavailable,
            rule::C13,
            "Nothing can be made durable now; try again later.",
        ))
    }

    /// An agent's event.
    pub(crate) fn emit(
        &mut self,
        id: SessionKey,
        event: &AgentEvent,
        arguments: Option<&Canonical>,
        now: Now,
    ) -> Result<Handled, Refusal> {
        let kind = event.kind();
        if kind.is_some_and(EventKind::is_terminal) {
            return self.end(id, event, now);
        }
        let Some(session) = self.sessions.get(&id) else { return Err(no_session()) };
        Session::admits_kind(kind)?;
        admits_type(event.type_name())?;
        let mut said = event.said()?;
        // enforces: T35
        let call = match kind {
            _ if said.names_call => None,
            Some(EventKind::ToolInvoked) => Some(self.ids.tool_call()),
            Some(EventKind::ToolCompleted) => {
                said.tool().and_then(|tool| session.only_call_of(&tool))
            }
            _ => None,
        };
        if let Some(call) = call {
            said.add("tool_call_id", call.as_str());
        }
        let draft = Draft::of_event(event, said);
        session.admits_speaker(draft.hints.as_deref())?;
        let event = self.ids.event();
        let inserted = kind.is_some_and(|kind| session.state_before(kind).is_some());
        let number = session.next_number + u64::from(inserted);
        let json: Arc<str> = draft.json(event, number, session.stamp::<R>(now), session).into();
        // enforces: D13, D33, D34
        let parsed = Event::parse_ours(json.as_bytes())?;
        session.admits(parsed.payload(), &self.limits)?;
        if let Payload::ToolInvoked(invoked) = parsed.payload() {
            self.admits_announcement(id, invoked.tool.as_str(), arguments)?;
            self.needs_journal()?;
            self.admits_call(&session.agent)?;
        }
        if kind == Some(EventKind::HandoffRequested) {
            self.admits_handoff(id, now)?;
        }
        let is_tool = matches!(kind, Some(EventKind::ToolInvoked | EventKind::ToolCompleted));
        let needs = if is_tool { self.coming() } else { 0 };
        if let Some(kind) = kind {
            self.enter_state_for(id, kind, needs, now);
        }
        self.push(id, draft.ready(event, json.clone(), Some(&parsed)), needs, now);
        self.note_tool(id, parsed.payload());
        self.apply(id, parsed.payload());
        if kind == Some(EventKind::HandoffRequested)
            && let Some(session) = self.sessions.get(&id)
        {
            let agent = session.agent.clone();
            self.note_handoff(id, &agent, now);
        }
        Ok(Handled::Emitted { number, event })
    }

    // enforces: I20, I4
    /// What is critical waits for nobody, so there is a budget for it at the source.
    fn admits_handoff(&self, id: SessionKey, now: Now) -> Result<(), Refusal> {
        let Some(session) = self.sessions.get(&id) else { return Err(no_session()) };
        let (most, window) = (self.limits.critical_per_window, self.prompt_window(now));
        let (at, count) = session.handoffs;
        let used_up = at == window && count >= most;
        if self.criticals.has_left(&session.agent, window, most) && !used_up {
            return Ok(());
        }
        Err(self.too_urgent(rule::T23))
    }

    fn note_handoff(&mut self, id: SessionKey, agent: &Principal, now: Now) {
        let window = self.prompt_window(now);
        self.criticals.spend(agent, window);
        if let Some(session) = self.sessions.get_mut(&id) {
            let (at, count) = session.handoffs;
            session.handoffs = (window, if at == window { count + 1 } else { 1 });
        }
    }

    /// A session that announced too many errors begins nothing that could end with another one.
    fn admits_errors_of(&self, agent: &Principal, now: Now) -> Result<(), Refusal> {
        let (most, window) = (self.limits.critical_per_window, self.prompt_window(now));
        if self.criticals.has_left(agent, window, most) {
            return Ok(());
        }
        Err(self.too_urgent(rule::T4))
    }

    fn too_urgent(&self, rule: aaep_types::Rule) -> Refusal {
        let text = format!(
            "At most {} handoffs and errors may be announced in {} seconds in one session (limits.critical_per_window), ten times as many by one agent, twenty by all agents of one user; try again later.",
            self.limits.critical_per_window, self.limits.prompt_window_seconds
        );
        Refusal::new(Blame::Limit, rule, text)
    }

    /// An error beyond the budget ends its session all the same, as one that its agent gave up: that
    /// says the same in its summary and is not critical.
    fn as_given_up(&self, draft: &Draft<'_>) -> Option<Draft<'static>> {
        let summary = recorded::summary_normal(&["{", &draft.payload, "}"].concat())?;
        let payload = members(&[("cancelled_by", "producer"), ("summary_normal", &summary)]);
        let mut given_up = Draft::new(EventKind::SessionCancelled, payload);
        given_up.hints = draft.hints.clone();
        Some(given_up)
    }

    /// Which calls are open must not be forgotten: their end has to be told (T15, I11).
    fn note_tool(&mut self, id: SessionKey, payload: &Payload<'_>) {
        let Some(session) = self.sessions.get(&id) else { return };
        match payload {
            Payload::ToolInvoked(invoked) => {
                let Some(call) = invoked.tool_call_id else { return };
                let (session, tool) = (session.id().as_str().into(), invoked.tool.as_str().into());
                let (call, said) = (call.as_str().into(), self.said(id));
                self.append(&Record::Called { session, call, tool, said });
            }
            Payload::ToolCompleted(completed) => {
                if let Ok(call) = session.completed_call(completed) {
                    self.note_completed(id, call, true);
                }
            }
            _ => {}
        }
    }

    /// What was said of the end of a call is kept with it, and whether its agent said it.
    fn note_completed(&mut self, id: SessionKey, call: ToolCallId, known: bool) {
        // enforces: I11
        let request = self.calls.remove(&(id, call));
        if let Some(request) = request.and_then(|request| self.requests.get_mut(&request)) {
            request.status = Status::after_call(known);
            let number = request.number;
            self.cannot_run(number);
        }
        let session = id.id().as_str().into();
        let (call, said) = (call.as_str().into(), self.said(id));
        self.append(&Record::Completed { session, call, known, said });
    }

    /// T25, D35: the state change that an agent left out.
    pub(crate) fn enter_state_for(
        &mut self,
        id: SessionKey,
        kind: EventKind,
        needs: u64,
        now: Now,
    ) {
        let Some(session) = self.sessions.get(&id) else { return };
        if let Some(wanted) = session.state_before(kind) {
            let phrase = match wanted {
                state::CALLING_TOOL => Phrase::USES_TOOL,
                state::WRITING_OUTPUT => Phrase::WRITES,
                state::AWAITING_INPUT => Phrase::WAITS,
                _ => Phrase::HANDS_OVER,
            };
            let words = say(&session.language, phrase);
            let draft = Draft::state(session.state.clone(), wanted, &words, session);
            self.send_ours(id, draft, needs, now);
        }
    }

    /// Tells a state that was never told, for a subscriber that came back to a gap.
    pub(crate) fn tell_state(&mut self, session: SessionId, now: Now) {
        let Some(id) = session_key(&session) else { return };
        let Some(session) = self.sessions.get(&id) else { return };
        if session.state == state::IDLE {
            let words = say(&session.language, Phrase::BEGUN);
            let draft = Draft::state(state::IDLE.into(), state::IDLE, &words, session);
            self.send_ours(id, draft, 0, now);
        }
    }

    /// The same with an id of its own.
    pub(crate) fn send_ours(&mut self, id: SessionKey, draft: Draft<'_>, needs: u64, now: Now) {
        let event = self.ids.event();
        self.send(id, draft, event, needs, now);
    }

    /// Sends an event of our own making, and takes over what it says.
    pub(crate) fn send(
        &mut self,
        id: SessionKey,
        draft: Draft<'_>,
        event: EventNumber,
        needs: u64,
        now: Now,
    ) -> Arc<str> {
        let Some(session) = self.sessions.get(&id) else { return "".into() };
        let stamp = session.stamp::<R>(now);
        let json: Arc<str> = draft.json(event, session.next_number, stamp, session).into();
        let Some(session) = self.sessions.get_mut(&id) else { return json };
        // Our own state changes, which are most of what we say, need no reading.
        let ready = match draft.moves {
            Some((_, to)) => {
                session.state = to.into();
                draft.ready(event, json.clone(), None)
            }
            None => {
                let parsed = Event::parse(json.as_bytes()).ok();
                parsed.iter().for_each(|parsed| self.apply(id, parsed.payload()));
                draft.ready(event, json.clone(), parsed.as_ref())
            }
        };
        self.push(id, ready, needs, now);
        json
    }

    /// Lets an event go that has its number and its stamp.
    pub(crate) fn push(&mut self, id: SessionKey, ready: Ready, needs: u64, now: Now) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        // enforces: E15
        let number = session.next_number;
        session.next_number += 1;
        session.last_stamp = session.stamp::<R>(now);
        // A request is kept without its token, in a record of its own.
        if needs == self.next_record && !ready.asks() {
            self.said.push(ready.json.clone());
        }
        let emitted = Emitted {
            session: session.id(),
            user: session.agent.user.clone(),
            agent: session.agent.name.clone(),
            number,
            event: ready.event,
            kind: ready.kind,
            urgency: ready.urgency,
            about: ready.about,
            resolves_event: ready.resolves_event,
            shape: ready.shape,
            json: ready.json,
        };
        if R::is_said(&emitted) {
            self.durability.push(id, needs, Output::Event(emitted));
        }
    }

    /// A terminal event, after everything that is still open has been brought to its end.
    pub(crate) fn end(
        &mut self,
        id: SessionKey,
        event: &AgentEvent,
        now: Now,
    ) -> Result<Handled, Refusal> {
        let Some(session) = self.sessions.get(&id) else { return Err(no_session()) };
        let kind = event.kind();
        let draft = Draft::of_event(event, event.said()?);
        session.admits_speaker(draft.hints.as_deref())?;
        let event = self.ids.event();
        let said = draft.json(event, 1, session.stamp::<R>(now), session);
        let said = Event::parse_ours(said.as_bytes())?;
        let by_user = matches!(said.payload(), Payload::SessionCancelled(ended) if ended.cancelled_by == CancelledBy::User);
        let (agent, window) = (session.agent.clone(), self.prompt_window(now));
        let draft = if kind == Some(EventKind::SessionErrored) {
            let most = self.limits.critical_per_window;
            let left = self.criticals.has_left(&agent, window, most);
            self.criticals.spend(&agent, window);
            if left { draft } else { self.as_given_up(&draft).unwrap_or(draft) }
        } else {
            draft
        };
        self.give_up_approvals(id, now);
        // enforces: I5, I13
        self.cancel_all(id, now);
        self.complete_tools(id, now);
        self.complete_outputs(id, now);
        let Some(session) = self.sessions.get(&id) else { return Err(no_session()) };
        let (public, number, needs) = (session.id(), session.next_number, self.coming());
        self.send(id, draft, event, needs, now);
        self.durability.push(id, needs, Output::Stopped { session: public, by_user });
        let said = self.said(id);
        self.append(&Record::Ended { session: public.as_str().into(), said });
        if kind.is_some_and(R::ends_session) {
            self.forget_session(id, now);
        }
        Ok(Handled::Emitted { number, event })
    }

    pub(crate) fn forget_session(&mut self, id: SessionKey, now: Now) {
        if let Some(session) = self.sessions.remove(&id) {
            self.open.remove(&session.agent, 1);
            self.known_calls.remove(&session.agent, session.used_calls.len());
            self.timers.remove(&(session.lease_timer, Timer::Lease(id.into())));
            self.move_leases();
            let Session { agent, asked, .. } = session;
            self.forget_old_ends(&agent.user, asked.len());
            if asked.is_empty() {
                return;
            }
            for number in &asked {
                let Some(request) = self.requests.get_mut(number) else { continue };
                self.unattended.remove(&agent.user, request.kind, *number);
                self.waiting_bytes.remove(&agent, std::mem::take(&mut request.bytes));
                if R::forgets_action(request.status, false) {
                    request.forget_action();
                    request.answer = None;
                    request.reply = None;
                }
            }
            let ends = self.ends_of.entry(agent.user.clone()).or_default();
            ends.sessions.push_back(id);
            ends.requests += asked.len();
            self.ended.insert(id, Ended { agent, asked: asked.into() });
            self.timers.insert((now.boot.after_seconds(KEPT_SECONDS), Timer::Forget(id.into())));
        }
    }

    // enforces: I22, I29
    /// Forgets the oldest sessions of a user that ended, until there is room for so many requests.
    fn forget_old_ends(&mut self, user: &str, more: usize) {
        let most = self.limits.ended_requests_per_user;
        while let Some(ends) = self.ends_of.get(user)
            && ends.requests + more > most
            && let Some(&oldest) = ends.sessions.front()
        {
            self.forget_requests(oldest);
        }
    }

    /// T15: a tool that never returns gets `timeout`.
    fn complete_tools(&mut self, id: SessionKey, now: Now) {
        let Some(session) = self.sessions.get(&id) else { return };
        let open: Vec<_> = session.tools.iter().map(|(call, tool)| (*call, tool.clone())).collect();
        let words = say(&session.language, Phrase::TOOL_LOST);
        for (call, tool) in open {
            let Some(session) = self.sessions.get(&id) else { return };
            let payload =
                members(&[("tool", &tool), ("tool_call_id", call.as_str()), ("status", "timeout")]);
            let draft = Draft::ours(EventKind::ToolCompleted, &payload, &words, session);
            self.send_ours(id, draft, self.coming(), now);
            self.note_completed(id, call, false);
        }
    }

    /// T18: an open output is completed before the end.
    fn complete_outputs(&mut self, id: SessionKey, now: Now) {
        let Some(session) = self.sessions.get(&id) else { return };
        let open: Vec<_> = session.outputs.open.iter().map(|(output, at)| (*output, *at)).collect();
        for (output, position) in open {
            let mut payload = format!("\"chunk\":\"\",\"position\":{position},\"complete\":true");
            if let Some(output) = output {
                payload.push_str(&format!(",\"output_id\":\"{output}\""));
            }
            // Kept in the record of the end, which follows.
            let draft = Draft::new(EventKind::OutputStreaming, payload);
            self.send_ours(id, draft, self.coming(), now);
        }
    }
}

// enforces: X7, S1
/// Whether an agent may say something of this type: what only the hub says, people act on.
fn admits_type(type_name: &str) -> Result<(), Refusal> {
    let prefix = type_name.split_once(':').map_or("", |(prefix, _)| prefix);
    if !is_ours_alone(prefix) {
        return Ok(());
    }
    let text = format!("Use a prefix of your own; only the hub speaks under `{prefix}:`.");
    Err(Refusal::new(Blame::Malformed, rule::X7, text))
}
