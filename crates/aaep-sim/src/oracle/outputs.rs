//! What agents are told: decisions, and actions given back to run.

use aaep_engine::{Blame, EventNumber, Handled, Outcome, Refusal, RequestId};
use aaep_types::ToolCallId;

use super::facts::Asking;
use super::{Oracle, Request, Session};
use crate::cast::Question;
use crate::world::Prompt;
use aaep_types::SessionId;
use std::collections::BTreeMap;

impl Oracle {
    /// An agent opened a session.
    pub(crate) fn opened(&mut self, id: SessionId, agent: usize, lease: u64) {
        let session = Session {
            agent,
            user: crate::cast::user_of(agent),
            opened: 0,
            ended: None,
            lease,
            touched: self.now,
            began: None,
            started: None,
            told_end: false,
            last_number: None,
            last_stamp: i64::MIN,
            stamps: Vec::new(),
            recovered: false,
            kept: 0,
            written: BTreeMap::new(),
        };
        self.sessions.insert(id, session);
    }

    /// An agent asked something, and the engine took it.
    pub(crate) fn waiting(
        &mut self,
        number: RequestId,
        session: SessionId,
        question: &'static Question,
    ) {
        let user = self.sessions.get(&session).map_or(0, |session| session.user);
        // D32: the largest factor among those who may answer.
        let timeout_millis = question.timeout_millis * self.time_factor(user);
        let request = Request {
            session,
            user,
            question,
            askings: vec![Asking::new(number.first_event(), 0, self.now, timeout_millis)],
            resolved: None,
            told: None,
            invoked: None,
            approved_at: 0,
            expired: None,
            expiry_shown: false,
            granted: false,
            heard_by_replier: false,
            heard_in_this_boot: false,
        };
        self.asks.insert(number.first_event(), number);
        // Beyond the bound the oldest is forgotten of which nothing may become any more.
        let live = |r: &&Request| r.session == session && self.is_live(r);
        let most = self.settled_per_session + self.requests.values().filter(live).count() + 1;
        if let Some(session) = self.sessions.get_mut(&session) {
            session.kept = (session.kept + 1).min(most);
        }
        let reused = self.requests.insert(number, request).is_some();
        self.demand(!reused, "I25", || "an event id was used again".into());
    }

    /// What people make of an event, if it asks them something.
    pub(crate) fn prompt(&self, event: EventNumber) -> Option<Prompt> {
        let request = self.requests.get(self.asks.get(&event)?)?;
        let (token, _) = self.tokens.iter().find(|(_, of)| **of == event)?;
        let confirmation = request.question.confirmation;
        Some(Prompt { token: *token, user: request.user, confirmation })
    }

    /// An agent asked again, and was given a request that waits.
    pub(crate) fn waiting_already(&mut self, number: RequestId, question: &'static Question) {
        let same = self
            .requests
            .get(&number)
            .is_some_and(|request| request.waits() && request.question.is_like(question));
        self.demand(same, "I12", || "the request that waits is another one".into());
    }

    /// D37: whether the newest request for an action like this, or for any, waits or is not to be
    /// done. What the engine has forgotten for its bound does not count.
    pub(crate) fn is_undone(
        &self,
        session: SessionId,
        like: Option<&Question>,
        known: impl Fn(RequestId) -> bool,
    ) -> bool {
        let theirs = || {
            self.requests.iter().filter(move |(_, request)| {
                request.session == session && request.exists() && request.question.confirmation
            })
        };
        theirs().filter(|(_, r)| like.is_none_or(|like| r.question.is_like(like))).any(
            |(number, request)| {
                let record = request.askings[0].record;
                let newest = theirs().all(|(_, other)| {
                    !other.question.is_like(request.question) || other.askings[0].record <= record
                });
                let consent = request.resolved.is_some_and(|resolved| resolved.runs);
                newest && known(*number) && (!consent || request.expired.is_some())
            },
        )
    }

    /// I29: the shares of all users fit into what there is, so nobody is ever refused for what others
    /// hold.
    pub(crate) fn refused_fairly(&mut self, answer: &Result<Handled, Refusal>) {
        let Err(refusal) = answer else { return };
        let mut all = ["sessions", "pending_requests", "pending_bytes", "known_calls"].into_iter();
        let others = all.any(|name| refusal.text.contains(&format!("(limits.{name})")));
        self.demand(!others, "I29", || format!("refused for others: {}", refusal.text));
    }

    /// The agent of a session showed a sign of life.
    pub(crate) fn touched(
        &mut self,
        session: SessionId,
        agent: usize,
        answer: &Result<Handled, Refusal>,
    ) {
        if matches!(answer, Err(refusal) if refusal.blame == Blame::NotYours) {
            return;
        }
        let theirs = self.sessions.get(&session).is_some_and(|session| session.agent == agent);
        self.alive = Some(session).filter(|_| theirs);
    }

    /// The agent learns what became of its request.
    pub(crate) fn decided(&mut self, number: RequestId, outcome: Outcome, runs: bool) {
        let same_runs = self.requests.get(&number).and_then(|r| r.resolved).map(|r| r.runs);
        self.tell(number, |known| known == outcome, "a decision was told");
        self.demand(same_runs == Some(runs), "I2", || "the agent was told otherwise".into());
        let seen = self.requests.get(&number).is_some_and(|request| {
            request.now().shown || self.sessions.get(&request.session).is_none_or(|s| s.told_end)
        });
        self.demand(seen, "I18", || "the agent knows an outcome that people do not".into());
    }

    /// I1: the action is given back once, as it was confirmed, after `tool.invoked`.
    pub(crate) fn granted(&mut self, number: RequestId, call: ToolCallId, arguments: &str) {
        let known = self.calls.get(&call).filter(|call| call.request == number);
        let announced = known.and_then(|call| call.announced);
        let Some(request) = self.requests.get_mut(&number) else {
            return self.violated("I1", "something was granted that nobody asked for".into());
        };
        let again = std::mem::replace(&mut request.granted, true);
        let (question, resolved) = (request.question, request.resolved);
        let person = resolved.is_some_and(|resolved| resolved.outcome == Outcome::Accepted);
        let durable = resolved.is_some_and(|resolved| resolved.record <= self.durable);
        self.demand(announced.is_some(), "I1", || "granted before tool.invoked".into());
        if let Some(event) = announced {
            self.heard_before_it_runs(event);
        }
        self.demand(!again, "I1", || "granted twice".into());
        self.demand(arguments == question.arguments, "I1", || {
            "other arguments than confirmed".into()
        });
        self.demand(durable, "I1", || "granted before the accept was durable".into());
        self.demand(person || !question.irreversible, "I9", || "granted without a yes".into());
    }
}
