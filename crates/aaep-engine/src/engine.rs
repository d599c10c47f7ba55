//! The machine itself: one input, then outputs.

use aaep_types::agent_api::agent_id_of;
use aaep_types::{EventKind, Payload, SessionId, SubscriptionId, Timestamp, ToolCallId, rule};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::marker::PhantomData;
use std::sync::Arc;

use crate::agent_event::AgentEvent;
use crate::before::{Before, Gaps};
use crate::clock::{Boot, Now};
use crate::durability::DurabilityQueue;
use crate::hints::Hints;
use crate::ids::{Ids, RequestId, Secrets, SessionKey, session_key};
use crate::io::{Handled, Input, Output};
use crate::limits::Footprint;
use crate::limits::Limits;
use crate::listeners::Listeners;
use crate::principal::Principal;
use crate::rates::ReplyRates;
use crate::record::{Outcome, Record, RecordedEvents};
use crate::refusal::{Blame, Refusal};
use crate::request::{Asker, Request, Status, Unused, View};
use crate::requests::Requests;
use crate::rules::{Rules, Sound};
use crate::session::Session;
use crate::shares::Budget;
use crate::shares::Shares;
use crate::slab::Slab;
use crate::unattended::Unattended;
use crate::words::{Phrase, ending};

/// Something that is due for a session at some time; what is due for requests, they know themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Timer {
    /// An agent has been silent for too long.
    Lease(PackedKey),
    /// What is known of a session that ended is no longer needed (C6).
    Forget(PackedKey),
}

/// A session's key as bytes: without the alignment of a number a timer takes a third less.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PackedKey([u8; 16]);

impl PackedKey {
    fn key(self) -> SessionKey {
        SessionKey::from_bits(u128::from_be_bytes(self.0))
    }
}

impl From<SessionKey> for PackedKey {
    fn from(key: SessionKey) -> Self {
        Self(key.bits().to_be_bytes())
    }
}

/// A session that ended.
pub(crate) struct Ended {
    pub(crate) agent: Principal,
    /// Its requests.
    pub(crate) asked: Vec<RequestId>,
}

/// Sessions of one user that ended.
#[derive(Default)]
pub(crate) struct Ends {
    pub(crate) sessions: VecDeque<SessionKey>,
    /// How many requests they have together.
    pub(crate) requests: usize,
}

/// The producer's state; see the crate's page for the contract.
pub struct Engine<R: Rules = Sound> {
    pub(crate) limits: Limits,
    pub(crate) ids: Ids,
    pub(crate) sessions: Slab<Session>,
    pub(crate) requests: Requests,
    /// How many of them wait for an answer, and their bytes.
    pub(crate) waiting: Shares,
    pub(crate) waiting_bytes: Shares,
    /// How many sessions are open.
    pub(crate) open: Shares,
    /// How many tool calls are known.
    pub(crate) known_calls: Shares,
    /// Sessions that ended, until they are forgotten.
    pub(crate) ended: BTreeMap<SessionKey, Ended>,
    /// The same by their users, oldest first.
    pub(crate) ends_of: BTreeMap<Arc<str>, Ends>,
    /// Which request a tool call belongs to.
    pub(crate) calls: BTreeMap<(SessionKey, ToolCallId), RequestId>,
    pub(crate) listeners: Listeners,
    pub(crate) unattended: Unattended,
    pub(crate) timers: BTreeSet<(Boot, Timer)>,
    pub(crate) durability: DurabilityQueue,
    pub(crate) next_record: u64,
    /// By how much the clock under which replayed waits began may have been off, in microseconds.
    pub(crate) margin: u32,
    /// Events that rely on the next record and are kept in it.
    pub(crate) said: Vec<Arc<str>>,
    pub(crate) journal_works: bool,
    pub(crate) draining: bool,
    /// While records are replayed: events that nobody may have heard, in their order.
    pub(crate) before: VecDeque<Before>,
    /// And what will not be remembered of the time before.
    pub(crate) gaps: Gaps,
    /// After a restart: until when those who were there before may come back (decision D2).
    pub(crate) return_until: Boot,
    /// How fast replies come (decisions D5, D40).
    pub(crate) replies: ReplyRates,
    /// Requests within the current window.
    pub(crate) prompts: Budget,
    /// Other critical events within it.
    pub(crate) criticals: Budget,
    rules: PhantomData<R>,
}

impl<R: Rules> Engine<R> {
    /// An engine without sessions.
    pub fn new(secrets: Secrets, limits: Limits) -> Self {
        Self {
            limits,
            ids: Ids::new(secrets),
            sessions: Slab::default(),
            requests: Requests::default(),
            waiting: Shares::default(),
            waiting_bytes: Shares::default(),
            open: Shares::default(),
            known_calls: Shares::default(),
            ended: BTreeMap::new(),
            ends_of: BTreeMap::new(),
            calls: BTreeMap::new(),
            listeners: Listeners::default(),
            unattended: Unattended::default(),
            timers: BTreeSet::new(),
            durability: DurabilityQueue::default(),
            next_record: 1,
            margin: 0,
            said: Vec::new(),
            journal_works: true,
            draining: false,
            before: VecDeque::new(),
            gaps: Gaps::default(),
            return_until: Boot(0),
            replies: ReplyRates::default(),
            prompts: Budget::default(),
            criticals: Budget::default(),
            rules: PhantomData,
        }
    }

    /// Takes one input. A refusal names the rule and has changed nothing.
    pub fn handle(&mut self, input: Input<'_>, now: Now) -> Result<Handled, Refusal> {
        // enforces: C14, I7, I27, C26
        // What is due is due before whatever came later.
        self.fire_due(R::due_before_input(now));
        self.take_input(input, now)
    }

    fn take_input(&mut self, input: Input<'_>, now: Now) -> Result<Handled, Refusal> {
        match input {
            Input::Open(open) => self.open(open, now),
            Input::Emit { agent, session, event, arguments } => {
                let session = self.touch(agent, session, now)?;
                self.emit(session, event, arguments, now)
            }
            Input::Ask(ask) => {
                let session = self.touch(ask.agent, ask.session, now)?;
                self.ask(session, ask, now)
            }
            Input::Withdraw { agent, request } => {
                self.own_request(agent, request, now)?;
                self.withdraw(request, now)
            }
            Input::Invoke { agent, request, arguments } => {
                self.own_request(agent, request, now)?;
                self.invoke(request, arguments, now)
            }
            Input::Touch { agent, session } => {
                self.touch(agent, session, now).map(|_| Handled::Done)
            }
            Input::Claim { agent, id } => {
                self.needs_journal()?;
                let (agent, user) = (agent.name.clone(), agent.user.clone());
                self.append(&Record::Claimed { agent, user, id: id.into() });
                Ok(Handled::Done)
            }
            Input::Administer { by, act, what, to } => {
                self.needs_journal()?;
                let [by, act, what, to] = [by, act, what, to].map(Arc::from);
                self.append(&Record::Administered { by, act, what, to });
                Ok(Handled::Done)
            }
            Input::EndSession { by, session } => self.end_by_force(by, session, now),
            Input::Owe { session, rules } => {
                let session = session.to_string().into();
                self.append(&Record::Owed { session, rules });
                Ok(Handled::Done)
            }
            Input::Erase { why, note, runs } => {
                self.needs_journal()?;
                self.append(&Record::Erased { why, note, runs });
                Ok(Handled::Done)
            }
            Input::Message { peer, message, call } => self.message(peer, message, call, now),
            Input::Joined { peer, subscription, confirms, clarifies } => {
                self.joined(peer, subscription, confirms, clarifies, now)
            }
            Input::Lost { subscription } => self.lost(subscription, now),
            Input::Left { subscription } => self.left(subscription, now),
            Input::Persisted { number } => {
                self.durability.persisted(number.min(self.next_record - 1));
                Ok(Handled::Done)
            }
            Input::JournalFailed => {
                self.journal_works = false;
                Ok(Handled::Done)
            }
            Input::JournalWorks => {
                self.journal_works = true;
                Ok(Handled::Done)
            }
            Input::Drain => {
                self.draining = true;
                Ok(Handled::Done)
            }
            Input::Tick => {
                self.fire_due(now);
                Ok(Handled::Done)
            }
        }
    }

    /// How many times as long the user of a subscription needs to answer; requests that are asked
    /// from now on wait that much longer.
    pub fn set_time_factor(&mut self, subscription: SubscriptionId, factor: u64) {
        self.listeners.change(subscription, |listener| listener.time_factor = factor.max(1));
    }

    /// The next thing to do outside.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.durability.pop()
    }

    /// When to come back with [`Input::Tick`] at the latest.
    pub fn next_deadline(&self) -> Option<Boot> {
        [self.next_timer(), self.replies.next_due()].into_iter().flatten().min()
    }

    fn next_timer(&self) -> Option<Boot> {
        let other = self.timers.first().map(|(at, _)| *at);
        let due = [self.requests.next_due(), other, self.unattended.next_due()];
        due.into_iter().flatten().min()
    }

    /// Where a request stands.
    pub fn status(&self, request: RequestId) -> Option<Status> {
        self.requests.get(&request).map(|request| request.status)
    }

    /// A request as its own agent may see it, also for a day after its session; `None` for others.
    pub fn request(&self, agent: &Principal, number: RequestId) -> Option<View> {
        let request = self.requests.get(&number)?;
        let open = self.sessions.get(&request.session).map(|session| &session.agent);
        let owner = open.or_else(|| self.ended.get(&request.session).map(|ended| &ended.agent))?;
        if owner != agent {
            return None;
        }
        let confirmation = request.kind == EventKind::AwaitingConfirmation;
        let answered = !confirmation && request.status != Status::Pending;
        Some(View {
            status: request.status,
            session: request.session.id(),
            confirmation,
            event: request.event_number,
            digest: request.digest,
            deadline: Timestamp::from_millis(request.wall_deadline().div_euclid(1000))
                .unwrap_or(request.stamp),
            decided_by: request.by.clone(),
            response: request.answer.clone().filter(|_| answered),
            reply: request.reply.clone(),
        })
    }

    // enforces: E28
    /// Whose a request is: its session's agent's, or that of a sub-agent that asked in it.
    pub fn asker(&self, number: RequestId) -> Option<Asker> {
        let request = self.requests.get(&number)?;
        let open = self.sessions.get(&request.session).map(|session| &session.agent);
        let owner = open.or_else(|| self.ended.get(&request.session).map(|ended| &ended.agent))?;
        let sub_agent = request.producer.as_deref().and_then(agent_id_of);
        Some(Asker { owner: owner.clone(), sub_agent })
    }

    /// The arguments that an approval was spent on, while its call is open.
    pub fn spent(&self, request: RequestId) -> Option<Arc<str>> {
        let request = self.requests.get(&request)?;
        let open = self.sessions.get(&request.session).is_some();
        (request.status == Status::Invoked && open).then(|| request.arguments.clone())
    }

    // enforces: I22
    /// How much there is of everything that the engine holds. Goes through all of it.
    pub fn footprint(&self) -> Footprint {
        let (requests, request_bytes, argument_bytes, request_timers) = self.requests.sizes();
        let sessions = || self.sessions.iter();
        Footprint {
            sessions: self.sessions.len(),
            requests,
            request_bytes,
            argument_bytes,
            timers: request_timers + self.timers.len() + self.unattended.timers(),
            ended_sessions: self.ended.len(),
            outputs: sessions().map(|session| session.outputs.len()).sum(),
            open_calls: sessions().map(|session| session.tools.len()).sum::<usize>()
                + self.calls.len(),
            listeners: self.listeners.len(),
            held_answers: self.replies.held(),
        }
    }

    /// The session of a request.
    pub fn session_of(&self, request: RequestId) -> Option<SessionId> {
        self.requests.get(&request).map(|request| request.session.id())
    }

    // enforces: E28
    /// Whether the agent that a producer object names speaks in this session.
    pub fn admits_producer(&self, session: SessionId, producer: &str) -> Result<(), Refusal> {
        let key = session_key(&session).unwrap_or(SessionKey::NONE);
        let session = self.sessions.get(&key).ok_or_else(no_session)?;
        let producer = Some(producer.into());
        session.admits_speaker(Some(&Hints { producer, ..Hints::default() }))
    }

    /// How many sessions are open.
    pub fn open_sessions(&self) -> usize {
        self.sessions.len()
    }

    /// How many requests wait.
    pub fn pending_requests(&self) -> usize {
        self.waiting.total()
    }

    /// How many sessions each principal and each user has open.
    pub fn session_shares(&self) -> &Shares {
        &self.open
    }

    /// How many tool calls of each principal and each user are known.
    pub fn call_shares(&self) -> &Shares {
        &self.known_calls
    }

    /// How many bytes of requests of each principal and each user are held.
    pub fn byte_shares(&self) -> &Shares {
        &self.waiting_bytes
    }

    /// How many requests of each principal and each user wait.
    pub fn request_shares(&self) -> &Shares {
        &self.waiting
    }

    /// Whose session this is, also after its end.
    fn owner(&self, session: SessionKey) -> Option<Principal> {
        let open = self.sessions.get(&session).map(|session| &session.agent);
        open.or_else(|| self.ended.get(&session).map(|ended| &ended.agent)).cloned()
    }

    /// A request waits from now on.
    pub(crate) fn begins_to_wait(&mut self, request: &Request) {
        let Some(agent) = self.owner(request.session) else { return };
        self.waiting.add(&agent, 1);
        self.waiting_bytes.add(&agent, request.bytes);
        // A question with a default answer waits to its end, as a default of accept does.
        if !request.default_accept && request.answer.is_none() {
            let recovered = !self.ids.is_of_this_start(request.number);
            self.unattended.insert(&agent.user, request.kind, request.number, recovered);
        }
    }

    /// A request waits no more.
    pub(crate) fn waits_no_more(&mut self, number: RequestId) {
        let Some(request) = self.requests.get(&number) else { return };
        let (session, kind) = (request.session, request.kind);
        let Some(agent) = self.owner(session) else { return };
        self.waiting.remove(&agent, 1);
        self.unattended.remove(&agent.user, kind, number);
    }

    // enforces: I22
    /// A request cannot run any more: what nobody needs of it is let go, and its share with it.
    pub(crate) fn cannot_run(&mut self, number: RequestId) {
        let Some(request) = self.requests.get_mut(&number) else { return };
        if R::forgets_action(request.status, true) {
            request.forget_action();
        }
        let (session, bytes) = (request.session, std::mem::take(&mut request.bytes));
        if let Some(agent) = self.owner(session) {
            self.waiting_bytes.remove(&agent, bytes);
        }
    }

    // enforces: I29
    /// Whether this agent's share has room for one more call, announced or approved.
    pub(crate) fn admits_call(&self, agent: &Principal) -> Result<(), Refusal> {
        self.known_calls.admit(&self.limits.known_calls(), agent, 1)
    }

    /// A session takes over what an event that has been let through says.
    pub(crate) fn apply(&mut self, session: SessionKey, payload: &Payload<'_>) {
        let most = self.limits.completed_outputs;
        let Some(session) = self.sessions.get_mut(&session) else { return };
        let before = session.used_calls.len();
        session.apply(payload, most);
        self.known_calls.add(&session.agent, session.used_calls.len() - before);
    }

    /// What an output waits for that relies on the record to come.
    pub(crate) fn coming(&self) -> u64 {
        R::waits_for(self.next_record)
    }

    // enforces: I10
    /// Hands a record to the journal and returns what relies on it.
    pub(crate) fn append(&mut self, record: &Record) -> u64 {
        let (number, needs) = (self.next_record, self.coming());
        self.next_record += 1;
        self.durability.push_now(Output::Append { number, bytes: record.encode(number) });
        needs
    }

    // enforces: I18, I11
    /// What a session has just said because of the record to come.
    pub(crate) fn said(&mut self, id: SessionKey) -> RecordedEvents {
        let told = self.durability.first_untold().unwrap_or(self.next_record) - 1;
        let events = std::mem::take(&mut self.said);
        let (next_number, stamp) = match self.sessions.get(&id) {
            Some(session) => (session.next_number, session.last_stamp.as_micros()),
            None => (0, 0),
        };
        RecordedEvents { told, next_number, stamp, events }
    }

    fn fire_due(&mut self, now: Now) {
        self.end_reply_windows(now);
        while let Some(at) = self.next_timer().filter(|at| *at <= now.boot) {
            if self.requests.next_due() == Some(at) {
                if let Some(request) = self.requests.take_due() {
                    self.request_is_due(request, now);
                }
                continue;
            }
            if self.timers.first().is_none_or(|(first, _)| *first > at) {
                if let Some(user) = self.unattended.take_due() {
                    self.look_who_is_there(&user, now);
                }
                continue;
            }
            let Some((_, timer)) = self.timers.pop_first() else { return };
            self.move_leases();
            match timer {
                Timer::Lease(key) => self.lease_ran_out(key.key(), now),
                Timer::Forget(key) => self.forget_requests(key.key()),
            }
        }
    }

    /// The agent's session, with its lease renewed; somebody else's looks like none at all.
    fn touch(&mut self, agent: &Principal, id: SessionId, now: Now) -> Result<SessionKey, Refusal> {
        let key = session_key(&id).unwrap_or(SessionKey::NONE);
        self.touch_key(agent, key, now)?;
        Ok(key)
    }

    fn touch_key(&mut self, agent: &Principal, key: SessionKey, now: Now) -> Result<(), Refusal> {
        let Some(known) = self.sessions.get_mut(&key).filter(|known| known.agent == *agent) else {
            return Err(no_session());
        };
        let until = now.boot.after_seconds(known.lease_seconds);
        known.lease_until = until;
        if self.timers.first() == Some(&(known.lease_timer, Timer::Lease(key.into()))) {
            self.move_leases();
        }
        Ok(())
    }

    /// Leases are renewed all the time, and the timer of one is moved only when it is the first one:
    /// so that one is always right.
    pub(crate) fn move_leases(&mut self) {
        while let Some(&(at, Timer::Lease(key))) = self.timers.first()
            && let Some(known) = self.sessions.get_mut(&key.key())
            && known.lease_until != at
        {
            self.timers.pop_first();
            known.lease_timer = known.lease_until;
            self.timers.insert((known.lease_until, Timer::Lease(key)));
        }
    }

    fn own_request(
        &mut self,
        agent: &Principal,
        request: RequestId,
        now: Now,
    ) -> Result<(), Refusal> {
        let no_such =
            || Refusal::new(Blame::NotYours, rule::C1, "There is no such request of yours.");
        let session = self.requests.get(&request).ok_or_else(no_such)?.session;
        self.touch_key(agent, session, now).map_err(|_| no_such())
    }

    pub(crate) fn prompt_window(&self, now: Now) -> u64 {
        now.boot.0 / self.limits.prompt_window_seconds.saturating_mul(1_000_000).max(1)
    }

    fn lease_ran_out(&mut self, session: SessionKey, now: Now) {
        let Some(language) = self.sessions.get(&session).map(|known| known.language.clone()) else {
            return;
        };
        let payload = ending(&language, Phrase::SILENT, ("error_category", "unknown"));
        // Our own words are valid; there is nobody to tell if they were not.
        let errored = AgentEvent::read(EventKind::SessionErrored.as_str(), &payload);
        let _ = self.end(session, &errored, now);
    }

    /// C6: tokens stay known, and dead, for a day after their session.
    pub(crate) fn forget_requests(&mut self, session: SessionKey) {
        let Some(Ended { agent, asked }) = self.ended.remove(&session) else { return };
        if let Some(ends) = self.ends_of.get_mut(&agent.user) {
            ends.requests -= asked.len();
            // Mostly the oldest one.
            ends.sessions
                .iter()
                .position(|known| *known == session)
                .map(|at| ends.sessions.remove(at));
            if ends.sessions.is_empty() {
                self.ends_of.remove(&agent.user);
            }
        }
        for number in asked {
            self.requests.remove(&number);
        }
    }

    // enforces: I22
    /// Forgets the oldest settled requests of a session that has more than it may.
    pub(crate) fn forget_settled(&mut self, session: SessionKey) {
        let (requests, most) = (&mut self.requests, self.limits.settled_per_session);
        let Some(session) = self.sessions.get_mut(&session) else { return };
        if session.asked.len() < session.forgets_at {
            return;
        }
        let mut at = 0;
        while session.asked.len() > most + at
            && let Some(number) = session.asked.get(at)
        {
            if requests.get(number).is_some_and(Request::is_live) {
                at += 1;
            } else {
                requests.remove(number);
                session.asked.remove(at);
            }
        }
        // What lives is bounded apart. Where it is much, it is not passed over at every question.
        session.forgets_at = session.asked.len() + 1 + at / 8;
    }

    /// A countdown, or the end of the wait.
    fn request_is_due(&mut self, number: RequestId, now: Now) {
        let Some(request) = self.requests.get_mut(&number) else { return };
        let (status, over) = (request.status, now.boot >= request.deadline);
        if status.is_approved() {
            // enforces: D41
            if over {
                self.expire_approval(number, Unused::TooLate, now);
            } else {
                self.set_timer(number);
            }
            return;
        }
        if status != Status::Pending {
            return;
        }
        if over {
            return self.time_is_up(number, now);
        }
        request.counted_down = if request.counted_down == 100 { 50 } else { 10 };
        self.set_timer(number);
        self.count_down(number, now);
    }

    /// §6.4: no answer in time, so the default counts; never as consent to something irreversible.
    fn time_is_up(&mut self, number: RequestId, now: Now) {
        let Some(request) = self.requests.get(&number) else { return };
        // enforces: I9, D11
        let runs = R::silence_runs(request.default_accept, request.irreversible)
            && R::may_be_silent(request.needs);
        self.resolve(number, Outcome::TimedOut, runs, "timeout", now);
    }
}

/// Somebody else's session looks like none at all.
pub(crate) fn no_session() -> Refusal {
    Refusal::new(Blame::NotYours, rule::E8, "There is no such session of yours.")
}
