//! What agents do: the honest ones, the clumsy ones, and those that try to get around consent.

use aaep_engine::{AgentEvent, AgentQuestion, Ask, Handled, Input, Open, RequestId, Rules};
use aaep_types::json::Canonical;
use aaep_types::{DescribedBy, EventKind, LanguageTag};

use crate::cast::{BANK, COOK, QUESTIONS, Question, TOOL};
use crate::oracle::Cause;
use crate::prose::Writing;
use crate::world::{AgentSession, World};

const LEASE_SECONDS: u64 = 200;
const MAX_ERRANDS: usize = 3;

impl<R: Rules> World<'_, R> {
    pub(crate) fn agent_opens(&mut self) {
        let open = self.errands.iter().filter(|errand| !errand.over).count();
        if open >= MAX_ERRANDS {
            return;
        }
        let agent = if self.random.one_in(4) { COOK } else { BANK };
        self.open(agent);
    }

    pub(crate) fn open(&mut self, agent: usize) {
        let Ok(language) = LanguageTag::parse("en") else { return };
        let input = Input::Open(Open {
            agent: &self.cast.everybody[agent],
            producer: r#"{"agent_id":"bank-agent"}"#,
            summary: "Moving money.",
            language,
            lease_seconds: LEASE_SECONDS,
            payload: "",
        });
        self.handle_and(input, Cause::Other, |world, answer| {
            world.oracle.refused_fairly(answer);
            let Ok(Handled::Session(session)) = answer else { return };
            let session = *session;
            world.oracle.opened(session, agent, LEASE_SECONDS * 1000);
            world.errands.push(AgentSession {
                session,
                agent,
                asked: Vec::new(),
                running: Vec::new(),
                writing: Writing::default(),
                over: false,
            });
        });
    }

    /// One of the sessions that agents still work on; now and then one that is over.
    fn errand(&mut self) -> Option<usize> {
        let count = self.errands.len();
        let any = self.random.below(count);
        let over = self.errands.get(any)?.over;
        if !over || self.random.one_in(8) {
            return Some(any);
        }
        self.errands.iter().rposition(|errand| !errand.over)
    }

    pub(crate) fn agent_asks(&mut self) {
        let Some(index) = self.errand() else { return self.agent_opens() };
        let question = &QUESTIONS[self.random.below(QUESTIONS.len())];
        self.ask(index, question);
    }

    pub(crate) fn ask(&mut self, index: usize, question: &'static Question) {
        let (session, agent) = (self.errands[index].session, self.errands[index].agent);
        let kind = if question.confirmation {
            EventKind::AwaitingConfirmation
        } else {
            EventKind::AwaitingClarification
        };
        let tool = if question.confirmation { TOOL } else { "" };
        let asked = AgentQuestion::read(kind, tool, question.arguments, question.payload)
            .needing(question.needs());
        let input = Input::Ask(Ask {
            agent: &self.cast.everybody[agent],
            session,
            question: &asked,
            described_by: DescribedBy::Agent,
        });
        self.handle_and(input, Cause::Other, |world, answer| {
            world.oracle.touched(session, agent, answer);
            world.oracle.refused_fairly(answer);
            match answer {
                Ok(Handled::Waiting { request, again: false, .. }) => {
                    world.oracle.waiting(*request, session, question);
                    world.errands[index].asked.push((*request, question));
                }
                Ok(Handled::Waiting { request, again: true, .. }) => {
                    world.oracle.waiting_already(*request, question);
                }
                _ => {}
            }
        });
    }

    /// Honest agents invoke what was accepted; others whatever they asked, with other arguments.
    pub(crate) fn agent_invokes(&mut self) {
        let Some(index) = self.errand() else { return };
        let Some(&(request, question)) = self.random.pick(&self.errands[index].asked) else {
            return;
        };
        let agent = self.errands[index].agent;
        let caller = if self.random.one_in(12) { BANK + COOK - agent } else { agent };
        let arguments = match self.random.below(4) {
            0 => None,
            1 => Some(r#"{"amount":"5000"}"#),
            _ => Some(question.arguments),
        };
        let times = 1 + usize::from(self.random.one_in(6));
        for _ in 0..times {
            self.invoke(index, caller, request, arguments);
        }
    }

    pub(crate) fn invoke(
        &mut self,
        index: usize,
        caller: usize,
        request: RequestId,
        arguments: Option<&str>,
    ) {
        let (session, agent) = (self.errands[index].session, self.errands[index].agent);
        let arguments = arguments.and_then(|text| Canonical::of(text).ok());
        let arguments = arguments.as_ref();
        let input = Input::Invoke { agent: &self.cast.everybody[caller], request, arguments };
        self.handle_and(input, Cause::Other, |world, answer| {
            world.oracle.touched(session, caller, answer);
            if caller != agent && answer.is_ok() {
                world.oracle.violated("I1", "somebody else's approval was spent".into());
            }
        });
    }

    pub(crate) fn agent_withdraws(&mut self) {
        let Some(index) = self.errand() else { return };
        let Some(&(request, _)) = self.random.pick(&self.errands[index].asked) else { return };
        let (session, agent) = (self.errands[index].session, self.errands[index].agent);
        let input = Input::Withdraw { agent: &self.cast.everybody[agent], request };
        self.handle_and(input, Cause::Withdraw(request), |world, answer| {
            world.oracle.touched(session, agent, answer);
        });
    }

    pub(crate) fn agent_completes(&mut self) {
        let Some(index) = self.errand() else { return };
        let Some(call) = self.errands[index].running.pop() else { return };
        let payload = format!(
            r#"{{"tool":"{TOOL}","tool_call_id":"{call}","status":"success","summary_normal":"Sent."}}"#
        );
        self.emit(index, EventKind::ToolCompleted, &payload, false);
    }

    /// Any event, in any order; the engine has to refuse what does not fit.
    pub(crate) fn agent_emits(&mut self) {
        let Some(index) = self.errand() else { return };
        let (kind, payload) = match self.random.below(12) {
            11 => return self.agent_announces(index),
            0..2 => return self.agent_progresses(index),
            2..4 => return self.agent_writes(index),
            4 => (
                EventKind::ToolInvoked,
                r#"{"tool":"transfer_funds","irreversible":true,"summary_normal":"Sending."}"#,
            ),
            5 => (EventKind::ToolInvoked, r#"{"tool":"look","summary_normal":"Looking."}"#),
            6 => (
                EventKind::ToolCompleted,
                r#"{"tool":"look","status":"success","summary_normal":"Seen."}"#,
            ),
            7 => (
                EventKind::StateChanged,
                r#"{"from_state":"awaiting_input","to_state":"calling_tool","summary_normal":"Go."}"#,
            ),
            8 => (
                EventKind::HandoffRequested,
                r#"{"reason":"It needs a person.","target_kind":"human"}"#,
            ),
            9 if self.motley => return self.agent_is_busy(index),
            _ => (
                EventKind::AwaitingConfirmation,
                r#"{"action":"x","consequence":"y","timeout_seconds":9,"default_decision":"reject"}"#,
            ),
        };
        self.emit(index, kind, payload, false);
    }

    fn agent_progresses(&mut self, index: usize) {
        let percent = self.random.below(101);
        let payload = format!(
            r#"{{"progress":{{"percent":{percent}}},"summary_terse":"On.","summary_normal":"On my way.","summary_normal_de":"Unterwegs.","summary_detailed":"On my way, and nothing is in it."}}"#
        );
        self.emit(index, EventKind::ProgressUpdated, &payload, false);
    }

    /// Says that it runs what it may have to ask about, as if that needed no question.
    fn agent_announces(&mut self, index: usize) {
        let (session, agent) = (self.errands[index].session, self.errands[index].agent);
        let question = &QUESTIONS[self.random.below(QUESTIONS.len())];
        let question = Some(question).filter(|question| question.confirmation);
        let arguments = question.and_then(|question| Canonical::of(question.arguments).ok());
        let input = Input::Emit {
            agent: &self.cast.everybody[agent],
            session,
            event: &AgentEvent::read(
                EventKind::ToolInvoked.as_str(),
                r#"{"tool":"transfer_funds","summary_normal":"Sending."}"#,
            ),
            arguments: arguments.as_ref(),
        };
        let answer = self.handle_and(input, Cause::Other, |world, answer| {
            world.oracle.touched(session, agent, answer);
        });
        let engine = self.hub.as_ref().map(|hub| hub.engine());
        let known = |request| engine.is_some_and(|engine| engine.status(request).is_some());
        if matches!(answer, Some(Ok(_))) && self.oracle.is_undone(session, question, known) {
            let text = "what waits or was refused is announced as running";
            self.oracle.violated("D37", text.into());
        }
    }

    /// Text in pieces that end anywhere.
    pub(crate) fn agent_writes(&mut self, index: usize) {
        let times = if self.motley { 1 + self.random.below(3) } else { 1 };
        for _ in 0..times {
            let hint = if self.random.one_in(6) { r#","coalesce_hint":"sentence""# } else { "" };
            let (phrases, complete) = (1 + self.random.below(4), self.random.one_in(8));
            let (payload, after) = self.errands[index].writing.next(phrases, complete, hint);
            // If the hub goes down over it nobody knows what was heard; the agent goes on.
            let taken = self.emit(index, EventKind::OutputStreaming, &payload, false);
            if taken || self.hub.is_none() {
                self.errands[index].writing = after;
            }
        }
    }

    /// More at once than a slow listener can hold.
    fn agent_is_busy(&mut self, index: usize) {
        for _ in 0..1 + self.random.below(6) {
            self.look(index);
            let seen = r#"{"tool":"look","status":"success","summary_normal":"Seen."}"#;
            self.emit(index, EventKind::ToolCompleted, seen, false);
        }
    }

    pub(crate) fn agent_ends(&mut self) {
        let Some(index) = self.errand() else { return };
        let (kind, payload) = match self.random.below(2) {
            0 => (EventKind::SessionCompleted, r#"{"summary_normal":"Done."}"#),
            _ => (
                EventKind::SessionCancelled,
                r#"{"cancelled_by":"user","summary_normal":"Stopped."}"#,
            ),
        };
        if self.emit(index, kind, payload, true) {
            self.errands[index].over = true;
        }
    }

    /// I20: everything is urgent, again and again.
    pub(crate) fn agent_cries_wolf(&mut self) {
        let Some(index) = self.errand() else { return };
        let handoff = r#"{"reason":"It needs a person.","target_kind":"human"}"#;
        let error = r#"{"error_category":"unknown","summary_normal":"It failed."}"#;
        if self.random.one_in(2) {
            for _ in 0..2 + self.random.below(4) {
                self.emit(index, EventKind::HandoffRequested, handoff, false);
            }
            return;
        }
        let agent = self.errands[index].agent;
        for _ in 0..30 {
            let before = self.errands.len();
            self.open(agent);
            if self.errands.len() == before {
                return;
            }
            if self.emit(before, EventKind::SessionErrored, error, true) {
                self.errands[before].over = true;
            }
        }
    }

    /// I22: asks and takes back, begins and completes, as often as it may.
    pub(crate) fn agent_wears_out(&mut self) {
        let Some(index) = self.errand() else { return };
        let agent = self.errands[index].agent;
        for question in QUESTIONS.iter().cycle().take(12) {
            self.ask(index, question);
            let Some(&(request, _)) = self.errands[index].asked.last() else { continue };
            let input = Input::Withdraw { agent: &self.cast.everybody[agent], request };
            let session = self.errands[index].session;
            self.handle_and(input, Cause::Withdraw(request), |world, answer| {
                world.oracle.touched(session, agent, answer);
            });
        }
        for _ in 0..6 {
            let (payload, after) = self.errands[index].writing.next(1, true, "");
            let taken = self.emit(index, EventKind::OutputStreaming, &payload, false);
            if taken || self.hub.is_none() {
                self.errands[index].writing = after;
            }
        }
    }

    /// I29: one tenant takes all that there is; another one still has its share.
    pub(crate) fn tenant_takes_everything(&mut self) {
        let hostile = if self.random.one_in(2) { BANK } else { COOK };
        for _ in 0..self.limits.sessions {
            self.open(hostile);
        }
        let theirs: Vec<usize> = (0..self.errands.len())
            .filter(|index| self.errands[*index].agent == hostile && !self.errands[*index].over)
            .collect();
        for index in theirs {
            for question in &QUESTIONS {
                self.ask(index, question);
            }
            for _ in 0..self.limits.known_calls / self.limits.sessions_per_user {
                self.look(index);
            }
            // They are left alone after that.
            self.errands[index].over = true;
        }
        let other = BANK + COOK - hostile;
        self.open(other);
        let last = self.errands.iter().rposition(|errand| errand.agent == other && !errand.over);
        if let Some(last) = last {
            self.ask(last, &QUESTIONS[0]);
            self.look(last);
        }
    }

    /// Calls a tool that needs no consent.
    fn look(&mut self, index: usize) {
        let looks = r#"{"tool":"look","summary_normal":"Looking."}"#;
        self.emit(index, EventKind::ToolInvoked, looks, false);
    }

    /// The agent's program dies: it forgets everything, and its session is left alone.
    pub(crate) fn agent_dies(&mut self) {
        if let Some(index) = self.errand() {
            self.note(|| format!("the agent of {} dies", self.errands[index].session));
            self.errands[index].over = true;
            self.errands[index].running.clear();
        }
    }

    pub(crate) fn emit(
        &mut self,
        index: usize,
        kind: EventKind,
        payload: &str,
        ends: bool,
    ) -> bool {
        let (session, agent) = (self.errands[index].session, self.errands[index].agent);
        let cause = if ends { Cause::End(session) } else { Cause::Other };
        let agent_is = &self.cast.everybody[agent];
        let (type_name, arguments) = (kind.as_str(), None);
        let event = &AgentEvent::read(type_name, payload);
        let input = Input::Emit { agent: agent_is, session, event, arguments };
        let answer = self.handle_and(input, cause, |world, answer| {
            world.oracle.touched(session, agent, answer);
            world.oracle.refused_fairly(answer);
            if answer.is_ok() {
                world.oracle.took(session, kind);
            }
        });
        matches!(answer, Some(Ok(_)))
    }
}
