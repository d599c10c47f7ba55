//! One session: the order of its events (§4.5).

use aaep_types::agent_api::agent_id_of;
use aaep_types::event::{OutputStreaming, ToolCompleted, ToolInvoked};
use aaep_types::{EventKind, OutputId, Payload, SessionId, Timestamp, ToolCallId, rule};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::before::Before;
use crate::clock::{Boot, Now};
use crate::hints::Hints;
use crate::ids::{Digest, RequestId, SessionKey};
use crate::limits::Limits;
use crate::principal::Principal;
use crate::refusal::{Blame, Refusal};
use crate::rules::Rules;
use crate::slab::Numbered;

/// The states that the engine itself enters.
pub(crate) mod state {
    pub(crate) const IDLE: &str = "idle";
    pub(crate) const THINKING: &str = "thinking";
    pub(crate) const CALLING_TOOL: &str = "calling_tool";
    pub(crate) const WRITING_OUTPUT: &str = "writing_output";
    pub(crate) const AWAITING_INPUT: &str = "awaiting_input";
    pub(crate) const HANDING_OFF: &str = "handing_off";
}

/// Outputs: how far each open one is, and the ids of those that were completed last.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outputs {
    pub(crate) open: BTreeMap<Option<OutputId>, u64>,
    completed: BTreeSet<Option<OutputId>>,
    /// The same in the order in which they were completed.
    order: VecDeque<Option<OutputId>>,
}

impl Outputs {
    fn complete(&mut self, output: Option<OutputId>, most: usize) {
        self.open.remove(&output);
        if self.completed.insert(output) {
            self.order.push_back(output);
        }
        while self.order.len() > most {
            if let Some(oldest) = self.order.pop_front() {
                self.completed.remove(&oldest);
            }
        }
    }

    /// How many are remembered.
    pub(crate) fn len(&self) -> usize {
        self.open.len() + self.completed.len()
    }
}

/// Requests of a session that wait for an answer, by their numbers, each with the beginning of its
/// action's digest. They are few, mostly one: a list takes less than a tree.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pending(Vec<(RequestId, u64)>);

impl Pending {
    pub(crate) fn insert(&mut self, number: RequestId, action: &Digest) {
        if self.0.is_empty() {
            self.0.reserve_exact(1);
        }
        match self.place(number) {
            Ok(place) => self.0[place] = (number, action.beginning()),
            Err(place) => self.0.insert(place, (number, action.beginning())),
        }
    }

    pub(crate) fn remove(&mut self, number: RequestId) {
        if let Ok(place) = self.place(number) {
            self.0.remove(place);
        }
    }

    fn place(&self, number: RequestId) -> Result<usize, usize> {
        self.0.binary_search_by_key(&number, |(number, _)| *number)
    }

    /// Those that may ask for this action: at least the beginning of the digest is the same.
    pub(crate) fn like(&self, action: &Digest) -> impl Iterator<Item = RequestId> {
        let beginning = action.beginning();
        self.0.iter().filter(move |(_, asked)| *asked == beginning).map(|(number, _)| *number)
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = RequestId> {
        self.0.iter().map(|(number, _)| *number)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

/// A session that has begun and not ended.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) key: SessionKey,
    /// Who runs it, and for whom.
    pub(crate) agent: Principal,
    /// The producer object of its events, as JSON.
    pub(crate) producer: Arc<str>,
    /// Other agents that speak in it (§2.2.5), by their `agent_id`.
    pub(crate) team: Box<[String]>,
    pub(crate) language: Arc<str>,
    pub(crate) next_number: u64,
    pub(crate) last_stamp: Timestamp,
    pub(crate) state: Cow<'static, str>,
    pub(crate) tools: BTreeMap<ToolCallId, Arc<str>>,
    pub(crate) used_calls: BTreeSet<ToolCallId>,
    pub(crate) outputs: Outputs,
    /// Every request that was made and is still known.
    pub(crate) asked: VecDeque<RequestId>,
    /// With so many of them it is looked which can be forgotten.
    pub(crate) forgets_at: usize,
    /// Requests that wait for an answer.
    pub(crate) pending: Pending,
    pub(crate) lease_seconds: u64,
    pub(crate) lease_until: Boot,
    /// When its timer is set for; the lease may have been renewed since.
    pub(crate) lease_timer: Boot,
    pub(crate) prompts: VecDeque<Boot>,
    /// Handoffs within a window, and which window.
    pub(crate) handoffs: (u64, u32),
    /// Whether it began before a restart.
    pub(crate) recovered: bool,
    /// What it said before a restart, until somebody takes it.
    pub(crate) before: Vec<Before>,
}

impl Numbered for Session {
    type Number = SessionKey;

    fn number(&self) -> SessionKey {
        self.key
    }
}

impl Session {
    /// A session that has just begun: nothing is open, nothing was said.
    pub(crate) fn new(
        (key, agent): (SessionKey, Principal),
        (producer, language): (Arc<str>, Arc<str>),
        lease_seconds: u64,
        stamp: Timestamp,
        now: Now,
    ) -> Self {
        Self {
            key,
            agent,
            producer,
            language,
            next_number: 0,
            last_stamp: stamp,
            team: Box::default(),
            state: state::IDLE.into(),
            tools: BTreeMap::new(),
            used_calls: BTreeSet::new(),
            outputs: Outputs::default(),
            asked: VecDeque::new(),
            forgets_at: 0,
            pending: Pending::default(),
            lease_seconds,
            lease_until: now.boot.after_seconds(lease_seconds),
            lease_timer: now.boot.after_seconds(lease_seconds),
            prompts: VecDeque::new(),
            handoffs: (0, 0),
            recovered: false,
            before: Vec::new(),
        }
    }

    /// Its id. Made anew each time, because there are many sessions and few at work.
    pub(crate) fn id(&self) -> SessionId {
        self.key.id()
    }

    /// Notes that something was asked.
    pub(crate) fn note_asked(&mut self, number: RequestId, action: &Digest) {
        self.pending.insert(number, action);
        if self.asked.is_empty() {
            self.asked.reserve_exact(1);
        }
        self.asked.push_back(number);
    }

    /// E10: never back, even if the wall clock steps back.
    pub(crate) fn stamp<R: Rules>(&self, now: Now) -> Timestamp {
        // enforces: E10
        R::stamp(now.wall, self.last_stamp)
    }

    /// The state that an event of this kind implies (decision D35).
    pub(crate) fn implied(kind: EventKind) -> Option<&'static str> {
        match kind {
            EventKind::ToolInvoked => Some(state::CALLING_TOOL),
            EventKind::OutputStreaming => Some(state::WRITING_OUTPUT),
            EventKind::AwaitingConfirmation | EventKind::AwaitingClarification => {
                Some(state::AWAITING_INPUT)
            }
            EventKind::HandoffRequested => Some(state::HANDING_OFF),
            _ => None,
        }
    }

    /// The state to enter before an event of this kind, if it is not entered yet. While something
    /// is asked, the state stays, and other work shows only in its own events (decision D30).
    pub(crate) fn state_before(&self, kind: EventKind) -> Option<&'static str> {
        // enforces: T25, T26, D30, D35
        let wanted = Self::implied(kind)?;
        let waits = !self.pending.is_empty() && wanted != state::AWAITING_INPUT;
        // T16: while a tool runs, the state does not look as if it had come back.
        let runs = self.is_calling() && wanted == state::WRITING_OUTPUT;
        (&*self.state != wanted && !waits && !runs).then_some(wanted)
    }

    /// Whether the state says that a tool runs, and one does.
    fn is_calling(&self) -> bool {
        &*self.state == state::CALLING_TOOL && !self.tools.is_empty()
    }

    /// Whether the state says that a tool is about to run, and none is, nor does anything wait.
    pub(crate) fn only_looks_busy(&self) -> bool {
        &*self.state == state::CALLING_TOOL && self.tools.is_empty() && self.pending.is_empty()
    }

    /// Some events an agent never emits itself.
    pub(crate) fn admits_kind(kind: Option<EventKind>) -> Result<(), Refusal> {
        match kind {
            Some(EventKind::SessionStarted) => {
                let text =
                    "This session has started already; open another one for another request.";
                Err(Refusal::order(rule::T1, text))
            }
            Some(EventKind::AwaitingConfirmation | EventKind::AwaitingClarification) => {
                let text = "Ask through a request, so that the answer can be waited for.";
                Err(Refusal::order(rule::C1, text))
            }
            _ => Ok(()),
        }
    }

    // enforces: E28
    /// Whether the agent that an event names speaks in this session. That its sender may speak for
    /// that agent is for the hub to know.
    pub(crate) fn admits_speaker(&self, hints: Option<&Hints>) -> Result<(), Refusal> {
        let Some(speaker) = hints.and_then(Hints::speaker) else { return Ok(()) };
        let own = agent_id_of(&self.producer);
        if own.as_deref() == Some(&*speaker) || self.team.contains(&speaker) {
            return Ok(());
        }
        let text = format!(
            "`{speaker}` does not speak in this session; name it in `sub_agents` when you open one, or leave `producer` out."
        );
        Err(Refusal::new(Blame::Malformed, rule::E28, text))
    }

    /// Whether an event that an agent wants to emit fits what went before. Changes nothing.
    pub(crate) fn admits(&self, payload: &Payload<'_>, limits: &Limits) -> Result<(), Refusal> {
        match payload {
            Payload::StateChanged(change) => {
                self.admits_state(&change.from_state, &change.to_state)
            }
            Payload::ToolInvoked(invoked) => self.admits_invoked(invoked, limits),
            Payload::ToolCompleted(completed) => self.completed_call(completed).map(|_| ()),
            Payload::OutputStreaming(output) => self.admits_output(output, limits),
            _ => Ok(()),
        }
    }

    fn admits_state(&self, from: &str, to: &str) -> Result<(), Refusal> {
        if from != &*self.state {
            let text = format!("This session is in the state {}; leave that one.", self.state);
            return Err(Refusal::order(rule::T7, text));
        }
        if self.is_calling() && to != state::HANDING_OFF {
            return Err(Refusal::order(
                rule::T16,
                "A tool is still open; complete it before the state moves on.",
            ));
        }
        if !self.pending.is_empty() || to == state::AWAITING_INPUT {
            return Err(Refusal::order(
                rule::D30,
                "State changes around a request are made by the hub; ask, or wait for the answer.",
            ));
        }
        Ok(())
    }

    fn admits_invoked(&self, invoked: &ToolInvoked<'_>, limits: &Limits) -> Result<(), Refusal> {
        if invoked.irreversible == Some(true) {
            // enforces: T27
            return Err(Refusal::order(
                rule::T12,
                "An irreversible tool is invoked through the request that was accepted for it.",
            ));
        }
        if invoked.tool_call_id.is_some_and(|call| self.used_calls.contains(&call)) {
            return Err(Refusal::order(rule::T13, "Give every call an id of its own."));
        }
        self.admits_another_tool(limits)
    }

    pub(crate) fn admits_another_tool(&self, limits: &Limits) -> Result<(), Refusal> {
        if self.used_calls.len() >= limits.calls_per_session {
            let text = format!(
                "A session may call tools {} times at most (limits.calls_per_session). Go on in another session.",
                limits.calls_per_session
            );
            return Err(Refusal::new(Blame::Limit, rule::T13, text));
        }
        if self.tools.len() >= limits.open_tools {
            let text = format!(
                "At most {} tool calls may be open at once in a session (limits.open_tools). Complete one first.",
                limits.open_tools
            );
            return Err(Refusal::new(Blame::Limit, rule::T15, text));
        }
        Ok(())
    }

    /// The call that a completed belongs to: by its id, else the only open one of that tool.
    pub(crate) fn completed_call(
        &self,
        completed: &ToolCompleted<'_>,
    ) -> Result<ToolCallId, Refusal> {
        let tool = completed.tool.as_str();
        if let Some(call) = completed.tool_call_id {
            return match self.tools.get(&call) {
                Some(invoked) if &**invoked == tool => Ok(call),
                Some(invoked) => Err(Refusal::order(
                    rule::T33,
                    format!("This call invoked {invoked}; complete it under that name."),
                )),
                None => Err(Refusal::order(
                    rule::T15,
                    "This call is not open; invoke it first, complete it once.",
                )),
            };
        }
        let is_open = self.tools.values().any(|name| &**name == tool);
        self.only_call_of(tool).ok_or_else(|| match is_open {
            false => Refusal::order(rule::T15, "No call of this tool is open."),
            true => Refusal::order(
                rule::T15,
                "Several calls of this tool are open; name the one by its id.",
            ),
        })
    }

    /// The open call of a tool, if there is exactly one.
    pub(crate) fn only_call_of(&self, tool: &str) -> Option<ToolCallId> {
        let mut open = self.tools.iter().filter(|(_, name)| &***name == tool);
        let (call, _) = open.next()?;
        open.next().is_none().then_some(*call)
    }

    fn admits_output(&self, output: &OutputStreaming<'_>, limits: &Limits) -> Result<(), Refusal> {
        let known = self.outputs.open.get(&output.output_id);
        let position = known.copied().unwrap_or_default();
        if self.outputs.completed.contains(&output.output_id) {
            return Err(Refusal::order(rule::T18, "This output is complete; begin another one."));
        }
        // Text leaves no record: after a restart nobody knows how far an output was.
        let anywhere = known.is_none() && self.recovered;
        if output.position.get() != position && !anywhere {
            let text = format!("Go on at position {position}, in Unicode scalar values.");
            return Err(Refusal::order(rule::T17, text));
        }
        if known.is_none() && self.outputs.open.len() >= limits.open_outputs {
            let text = format!(
                "At most {} outputs may be open at once in a session (limits.open_outputs). Complete one first.",
                limits.open_outputs
            );
            return Err(Refusal::new(Blame::Limit, rule::T18, text));
        }
        Ok(())
    }

    /// Takes over what an event that has been let through says.
    pub(crate) fn apply(&mut self, payload: &Payload<'_>, completed_outputs: usize) {
        match payload {
            Payload::StateChanged(change) => {
                self.state = Cow::Owned(change.to_state.as_str().to_owned());
            }
            Payload::ToolInvoked(invoked) => {
                if let Some(call) = invoked.tool_call_id {
                    self.used_calls.insert(call);
                    self.tools.insert(call, invoked.tool.as_str().into());
                }
            }
            Payload::ToolCompleted(completed) => {
                if let Ok(call) = self.completed_call(completed) {
                    self.tools.remove(&call);
                }
            }
            Payload::OutputStreaming(output) => {
                if output.complete {
                    self.outputs.complete(output.output_id, completed_outputs);
                } else {
                    let position = output.position.get() + output.chunk.length();
                    self.outputs.open.insert(output.output_id, position);
                }
            }
            _ => {}
        }
    }

    pub(crate) fn note_prompt(&mut self, now: Now) {
        if self.prompts.is_empty() {
            self.prompts.reserve_exact(1);
        }
        self.prompts.push_back(now.boot);
    }

    /// §6: one prompt more within the window? Otherwise the user would stop reading them.
    pub(crate) fn admits_prompt(&mut self, now: Now, limits: &Limits) -> Result<(), Refusal> {
        let window = limits.prompt_window_seconds * 1_000_000;
        while self.prompts.front().is_some_and(|at| at.0.saturating_add(window) <= now.boot.0) {
            self.prompts.pop_front();
        }
        if self.pending.len() >= limits.pending_per_session {
            let text = format!(
                "At most {} requests may wait at once in a session (limits.pending_per_session). Wait for answers, or withdraw one.",
                limits.pending_per_session
            );
            return Err(Refusal::new(Blame::Limit, rule::C4, text));
        }
        if self.prompts.len() >= limits.prompts_per_window as usize {
            let text = format!(
                "At most {} requests may be made in {} seconds in one session (limits.prompts_per_window); a user who is asked too often answers on trust.",
                limits.prompts_per_window, limits.prompt_window_seconds
            );
            return Err(Refusal::new(Blame::Limit, rule::C4, text));
        }
        Ok(())
    }
}
