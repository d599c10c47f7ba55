//! From records back to the state.

use aaep_types::action::ReadableArguments;
use aaep_types::{DescribedBy, Event, EventKind, LanguageTag, SessionId, Timestamp, ToolCallId};
use std::collections::BTreeSet;
use std::sync::Arc;

use crate::agent_event::AgentEvent;
use crate::before::Asks;
use crate::clock::{Boot, Now};
use crate::draft::{Draft, Extension, account_in, account_of, payload_of};
use crate::engine::{Engine, Timer};
use crate::hints::Hints;
use crate::ids::{
    Digest, EventNumber, RequestId, Secrets, SessionKey, TokenMaker, TokenNumber, session_key,
};
use crate::limits::Limits;
use crate::principal::{Principal, Role};
use crate::question::{default_answer, with_token, without_token};
use crate::record::{Asked, Corrupt, Opened, Outcome, Record};
use crate::request::{Request, Status, Unused};
use crate::rules::{Rules, Sound};
use crate::session::{Session, state};
use crate::words::{Phrase, ending};

/// What a restart may rely on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClockTrust {
    /// The clock on the wall went on as it should: requests keep their deadlines.
    Trusted,
    /// It may be anything: every pending request is withdrawn (I8).
    Doubtful,
    /// The records are an old copy, and nobody knows what was decided after it was made: every
    /// pending request is rejected and every session ends, so that no approval is used again.
    OldCopy,
}

/// Records on their way back to a state, one at a time: a journal may be larger than memory.
pub struct Recovery<R: Rules = Sound> {
    engine: Engine<R>,
    now: Now,
    forgotten: Forgotten,
}

/// Sessions that ended so long ago that nobody needs to know them, and their requests.
#[derive(Default)]
struct Forgotten {
    sessions: Arc<BTreeSet<String>>,
    requests: BTreeSet<RequestId>,
}

impl Forgotten {
    fn contains(&mut self, record: &Record) -> bool {
        match record {
            Record::Opened(opened) => self.sessions.contains(&*opened.session),
            Record::Ended { session, .. }
            | Record::Called { session, .. }
            | Record::Completed { session, .. }
            | Record::Owed { session, .. } => self.sessions.contains(&**session),
            Record::Asked(asked) => {
                let old = self.sessions.contains(&*asked.session);
                if old {
                    self.requests.insert(asked.request);
                }
                old
            }
            Record::Resolved { request, .. }
            | Record::Expired { request, .. }
            | Record::Invoked { request, .. }
            | Record::Extended { request, .. } => self.requests.contains(request),
            Record::Restarted { .. }
            | Record::Ignored { .. }
            | Record::Flooded { .. }
            | Record::Claimed { .. }
            | Record::Administered { .. }
            | Record::Erased { .. } => false,
        }
    }
}

/// Decodes records ahead of their replay: everything that follows from a record's bytes and the token
/// key alone, which is most of the work.
pub struct RecordDecoder {
    tokens: TokenMaker,
    forgotten: Arc<BTreeSet<String>>,
}

/// A record, and of one that asks, the question.
pub struct DecodedRecord {
    number: u64,
    record: Record,
    question: Option<Box<AskedQuestion>>,
}

/// What follows from the record of a request.
struct AskedQuestion {
    token: TokenNumber,
    digest: Digest,
    account: Option<Arc<str>>,
    /// The event that asks, as far as it does not depend on its session.
    draft: Option<Draft<'static>>,
}

impl RecordDecoder {
    /// Reads one record, which these bytes are and nothing else.
    pub fn decode(&self, bytes: &[u8]) -> Result<DecodedRecord, Corrupt> {
        let (number, record, length) = Record::decode(bytes)?;
        if length != bytes.len() {
            return Err(Corrupt::Unknown);
        }
        let question = match &record {
            Record::Asked(asked) if !self.forgotten.contains(&*asked.session) => {
                Some(Box::new(AskedQuestion::of(asked, &self.tokens)))
            }
            _ => None,
        };
        Ok(DecodedRecord { number, record, question })
    }
}

impl AskedQuestion {
    fn of(asked: &Asked, tokens: &TokenMaker) -> Self {
        let kind = kind_of(asked);
        let token = tokens.token(asked.request.first_event());
        let members = with_token(without_token(&asked.event), token.spelled().as_str());
        let digest = asked.digest();
        let account = match &*asked.account {
            // A journal from before there were accounts.
            "" if asked.confirmation => {
                let readable = ReadableArguments::of(&asked.arguments);
                account_of(&asked.tool, &readable, &digest, DescribedBy::Agent)
            }
            "" => None,
            account => Some(with_digest(account, asked, &digest)),
        };
        // It was checked when it was first said.
        let draft = Draft::of_agent(kind.as_str(), Some(kind), members).ok();
        Self { token, digest, account, draft }
    }
}

fn kind_of(asked: &Asked) -> EventKind {
    if asked.confirmation {
        EventKind::AwaitingConfirmation
    } else {
        EventKind::AwaitingClarification
    }
}

impl<R: Rules> Recovery<R> {
    /// Nothing is known yet.
    pub fn new(secrets: Secrets, limits: Limits, now: Now) -> Self {
        Self { engine: Engine::new(secrets, limits), now, forgotten: Forgotten::default() }
    }

    // enforces: I7, I8
    /// For records of another machine, whose clock and this one's may be so many seconds apart: replies
    /// stop counting so much before a deadline, silence counts so much after it, and approvals end so much
    /// sooner. To be called before anything is replayed.
    #[must_use]
    pub fn with_margin(mut self, seconds: u32) -> Self {
        self.engine.margin = R::margin_micros(seconds.saturating_mul(1_000_000));
        self
    }

    /// Leaves these sessions out: each of them has ended, more than a day ago (C6). Their records are
    /// still looked at, each at its place.
    pub fn forget(&mut self, sessions: impl IntoIterator<Item = String>) {
        Arc::make_mut(&mut self.forgotten.sessions).extend(sessions);
    }

    /// Decodes records for this recovery, also on another thread.
    pub fn decoder(&self) -> RecordDecoder {
        let forgotten = Arc::clone(&self.forgotten.sessions);
        RecordDecoder { tokens: self.engine.ids.tokens(), forgotten }
    }

    /// Replays the next record and returns its number; `look` sees it first, also if it is left out.
    /// After an error nothing may be started from these records.
    pub fn replay(&mut self, bytes: &[u8], look: impl FnOnce(&Record)) -> Result<u64, Corrupt> {
        self.replay_decoded(self.decoder().decode(bytes)?, look)
    }

    /// The same with a record that was decoded before.
    pub fn replay_decoded(
        &mut self,
        decoded: DecodedRecord,
        look: impl FnOnce(&Record),
    ) -> Result<u64, Corrupt> {
        let DecodedRecord { number, record, question } = decoded;
        if number != self.engine.next_record {
            return Err(Corrupt::Unknown);
        }
        self.engine.next_record += 1;
        look(&record);
        if self.forgotten.contains(&record) {
            self.engine.gaps.of_anybody(number);
        } else {
            self.engine.replay(number, record, question, self.now);
        }
        Ok(number)
    }

    /// Goes on with this record: those before it that were not replayed were erased. A
    /// subscriber that left off before them cannot be told that everything follows.
    pub fn skip_to(&mut self, number: u64) {
        if number > self.engine.next_record {
            self.engine.gaps.of_anybody(number - 1);
            self.engine.next_record = number;
        }
    }

    /// The state after these records, and what the restart itself changes.
    pub fn finish(self, trust: ClockTrust) -> Engine<R> {
        let Self { mut engine, now, .. } = self;
        let durable = engine.next_record - 1;
        engine.ids.skip_past(durable);
        engine.durability.persisted(durable);
        engine.resume(trust, now);
        engine
    }
}

impl<R: Rules> Engine<R> {
    // enforces: I3, I8
    /// Replays records, in order; the error names the first one that cannot be believed, counted
    /// from 0, and nothing is started then.
    pub fn recover<'r>(
        secrets: Secrets,
        limits: Limits,
        records: impl IntoIterator<Item = &'r [u8]>,
        trust: ClockTrust,
        now: Now,
    ) -> Result<Self, (usize, Corrupt)> {
        let mut recovery = Recovery::new(secrets, limits, now);
        for (index, bytes) in records.into_iter().enumerate() {
            recovery.replay(bytes, |_| {}).map_err(|why| (index, why))?;
        }
        Ok(recovery.finish(trust))
    }

    fn replay(
        &mut self,
        record: u64,
        what: Record,
        question: Option<Box<AskedQuestion>>,
        now: Now,
    ) {
        match what {
            Record::Opened(opened) => self.replay_opened(record, opened, now),
            Record::Ended { session, said } => {
                if let Some(key) = key_of(&session) {
                    self.replay_said(key, record, None, said);
                    self.replay_forgets(key);
                    self.forget_session(key, now);
                }
            }
            Record::Asked(asked) => {
                let question = question.map_or_else(
                    || AskedQuestion::of(&asked, &self.ids.tokens()),
                    |question| *question,
                );
                self.replay_asked(record, asked, question, now);
            }
            Record::Resolved { request, outcome, runs, by, response, reply, said, .. } => {
                self.replay_resolved(request, (outcome, runs), by, (response, reply));
                self.replay_approval(request, said.stamp, now);
                self.replay_said(self.key_of_request(request), record, Some(request), said);
            }
            Record::Expired { request, said } => {
                self.replay_expired(request);
                self.replay_said(self.key_of_request(request), record, Some(request), said);
            }
            Record::Invoked { request, call, said } => {
                self.replay_invoked(request, &call);
                self.replay_said(self.key_of_request(request), record, None, said);
            }
            Record::Called { session, call, tool, said } => {
                let Some(key) = key_of(&session) else { return };
                self.replay_called(key, &call, tool);
                self.replay_said(key, record, None, said);
            }
            Record::Completed { session, call, known, said } => {
                let Some(key) = key_of(&session) else { return };
                self.replay_completed(key, &call, known);
                self.replay_said(key, record, None, said);
            }
            Record::Extended { request, event, timeout_seconds, said } => {
                let (stamp, number) = (said.stamp, said.next_number.saturating_sub(1));
                self.replay_said(self.key_of_request(request), record, Some(request), said);
                self.replay_extended(request, (event, number), stamp, timeout_seconds, now);
                self.replay_question(request, record, number);
            }
            Record::Restarted { stamp } => self.go_on_after(stamp),
            Record::Ignored { .. }
            | Record::Flooded { .. }
            | Record::Claimed { .. }
            | Record::Administered { .. }
            | Record::Owed { .. }
            | Record::Erased { .. } => {}
        }
    }

    /// The session of a request; 0, which is none's, if there is no such request.
    fn key_of_request(&self, request: RequestId) -> SessionKey {
        self.requests.get(&request).map_or(SessionKey::NONE, |request| request.session)
    }

    /// The event that asks, which its record does not hold as it was sent.
    fn replay_question(&mut self, number: RequestId, record: u64, place: u64) {
        let Some(request) = self.requests.get(&number) else { return };
        let (key, json) = (request.session, request.event.clone());
        let asks = Asks { event: request.event_number, kind: request.kind, number: place };
        if let Some(json) = json {
            self.replay_event(key, record, (Some(number), Some(asks)), json);
        }
    }

    fn replay_opened(&mut self, record: u64, opened: Opened, now: Now) {
        let Ok(public) = SessionId::parse(&opened.session) else { return };
        let Some(id) = session_key(&public) else { return };
        let agent = Principal { name: opened.agent, role: Role::Agent, user: opened.user.clone() };
        let language = LanguageTag::parse(&*opened.language)
            .map_or_else(|_| "en".into(), |_| opened.language.clone());
        let stamp = stamp_of(opened.stamp, now);
        let texts = (opened.producer, language);
        let session = Session::new((id, agent), texts, opened.lease_seconds, stamp, now);
        self.open.add(&session.agent, 1);
        let team = aaep_types::team::agents_of(&opened.event).into();
        self.sessions.insert(Session { next_number: 1, recovered: true, team, ..session });
        self.replay_event(id, record, (None, None), opened.event);
    }

    fn replay_asked(&mut self, record: u64, asked: Asked, question: AskedQuestion, now: Now) {
        let Some(id) = key_of(&asked.session) else { return };
        let AskedQuestion { token, digest, account, draft } = question;
        let (kind, stamp) = (kind_of(&asked), stamp_of(asked.stamp, now));
        // What was said before it comes before it.
        let number = asked.said.next_number.saturating_sub(1);
        self.replay_said(id, record, None, asked.said);
        let Some(home) = self.sessions.place(id) else { return };
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.state = state::AWAITING_INPUT.into();
        session.note_asked(asked.request, &digest);
        let Some(mut draft) = draft else { return };
        draft.account = account;
        draft.needs = asked.needs;
        let json = draft.json(asked.request.first_event(), number, stamp, session);
        let bytes = asked.arguments.len() + asked.event.len();
        let answer = if asked.confirmation { None } else { default_of(&json) };
        let left = R::left_micros(asked.stamp, asked.timeout_seconds, now);
        let margin = self.margin;
        let deadline = Boot(now.boot.0 + left + u64::from(margin));
        let request = Request {
            number: asked.request,
            token,
            session: id,
            home,
            kind,
            digest,
            tool: asked.tool,
            arguments: asked.arguments,
            action: None,
            stamp,
            asked_at: Boot(deadline.0.saturating_sub(asked.timeout_seconds * 1_000_000)),
            deadline,
            margin,
            timeout_seconds: asked.timeout_seconds,
            default_accept: asked.default_accept,
            irreversible: asked.irreversible,
            risk: None,
            reply: None,
            needs: asked.needs,
            shown: None,
            wrong_clock: false,
            answer,
            event_number: asked.request.first_event(),
            status: Status::Pending,
            by: None,
            bytes,
            counted_down: 100,
            event: Some(json.into()),
            producer: draft.hints.as_deref().and_then(Hints::sub_agent),
            call: None,
        };
        self.begins_to_wait(&request);
        self.requests.insert(request);
        self.replay_question(asked.request, record, number);
        self.forget_settled(id);
    }

    fn replay_extended(
        &mut self,
        number: RequestId,
        (event, place): (EventNumber, u64),
        stamp: i64,
        timeout_seconds: u64,
        now: Now,
    ) {
        let (token, margin) = (self.ids.token(event), self.margin);
        let Some(request) = self.requests.get_mut(&number) else { return };
        let Some(session) = self.sessions.get(&request.session) else { return };
        let old = request.event_number;
        let json = request.event.take().unwrap_or_else(|| "{}".into());
        let mut payload = payload_of(&json, &["reply_token", "timeout_seconds"]);
        let spelled = token.spelled();
        payload.push_str(&format!(
            "\"timeout_seconds\":{timeout_seconds},\"reply_token\":\"{}\"",
            spelled.as_str()
        ));
        let mut draft = Draft::new(request.kind, payload);
        draft.extension = Some(Extension::Supersedes(old));
        draft.account = account_in(&json);
        draft.needs = request.needs;
        draft.hints = Hints::of_event(&json);
        request.stamp = stamp_of(stamp, now);
        request.event = Some(draft.json(event, place, request.stamp, session).into());
        request.event_number = event;
        request.timeout_seconds = timeout_seconds;
        let left = R::left_micros(stamp, timeout_seconds, now);
        request.margin = margin;
        request.deadline = Boot(now.boot.0 + left + u64::from(margin));
        request.asked_at = Boot(request.deadline.0.saturating_sub(timeout_seconds * 1_000_000));
        self.requests.change_token(number, token);
    }

    fn replay_resolved(
        &mut self,
        number: RequestId,
        (outcome, runs): (Outcome, bool),
        by: Arc<str>,
        (response, reply): (Arc<str>, Arc<str>),
    ) {
        let Some(request) = self.requests.get_mut(&number) else { return };
        let waited = request.status == Status::Pending;
        request.status = R::status_on_record(Status::Resolved { outcome, runs });
        request.by = Some(by);
        request.reply = Some(reply).filter(|reply| !reply.is_empty());
        request.action();
        if runs {
            request.keep_for_call();
        }
        request.event = None;
        request.answer = Some(response).filter(|response| !response.is_empty());
        let id = request.session;
        if waited {
            self.waits_no_more(number);
        }
        if !runs {
            self.cannot_run(number);
        }
        if let Some(session) = self.sessions.get_mut(&id) {
            session.pending.remove(number);
            let next = if runs { state::CALLING_TOOL } else { state::THINKING };
            session.state =
                if session.pending.is_empty() { next } else { state::AWAITING_INPUT }.into();
        }
    }

    /// I8: an approval keeps its deadline, by the clock on the wall.
    fn replay_approval(&mut self, number: RequestId, stamp: i64, now: Now) {
        let (seconds, margin) = (self.limits.approval_seconds, u64::from(self.margin));
        let Some(request) = self.requests.get_mut(&number) else { return };
        if request.status.is_approved() {
            let left = R::left_micros(stamp, seconds, now).saturating_sub(margin);
            request.deadline = Boot(now.boot.0.saturating_add(left));
        }
    }

    fn replay_expired(&mut self, number: RequestId) {
        let Some(request) = self.requests.get_mut(&number) else { return };
        request.status = Status::Expired;
        let session = request.session;
        self.cannot_run(number);
        if let Some(session) = self.sessions.get_mut(&session)
            && session.only_looks_busy()
        {
            session.state = state::THINKING.into();
        }
    }

    fn replay_invoked(&mut self, number: RequestId, call: &str) {
        let Some(request) = self.requests.get_mut(&number) else { return };
        request.status = Status::Invoked;
        let (id, tool) = (request.session, request.tool.clone());
        if let Ok(parsed) = ToolCallId::parse(call) {
            self.calls.insert((id, parsed), number);
        }
        self.replay_called(id, call, tool);
    }

    fn replay_called(&mut self, id: SessionKey, call: &str, tool: Arc<str>) {
        let Ok(call) = ToolCallId::parse(call) else { return };
        if let Some(session) = self.sessions.get_mut(&id).filter(|_| R::recovers_call(&call)) {
            if session.used_calls.insert(call) {
                self.known_calls.add(&session.agent, 1);
            }
            session.tools.insert(call, tool);
            if session.pending.is_empty() {
                session.state = state::CALLING_TOOL.into();
            }
        }
    }

    fn replay_completed(&mut self, id: SessionKey, call: &str, known: bool) {
        let Ok(call) = ToolCallId::parse(call) else { return };
        if let Some(session) = self.sessions.get_mut(&id) {
            session.tools.remove(&call);
        }
        let request = self.calls.remove(&(id, call));
        if let Some(request) = request.and_then(|request| self.requests.get_mut(&request)) {
            request.status = Status::after_call(known);
            let number = request.number;
            self.cannot_run(number);
        }
    }

    /// E10, E15: numbers and stamps go on after those of events that left no record. A clock that is
    /// trusted has passed every stamp that was ever made.
    fn go_on_after(&mut self, stamp: i64) {
        let stamp = Timestamp::from_millis(stamp.div_euclid(1000));
        for session in self.sessions.iter_mut() {
            session.next_number += R::skipped_numbers();
            session.last_stamp = stamp.unwrap_or(session.last_stamp).max(session.last_stamp);
        }
    }

    /// The timers of what is still open, and what the restart itself changes.
    fn resume(&mut self, trust: ClockTrust, now: Now) {
        self.return_until = now.boot.after_seconds(R::grace_seconds());
        for session in self.sessions.iter() {
            self.timers.insert((session.lease_timer, Timer::Lease(session.key.into())));
        }
        // I19: the skip is a record of its own and everything waits for it. Otherwise a second
        // restart would skip to the same numbers and use them again.
        if !self.sessions.is_empty() {
            let stamp = if trust == ClockTrust::Trusted { now.wall.as_micros() } else { 0 };
            self.go_on_after(stamp);
            let needs = self.append(&Record::Restarted { stamp });
            self.durability.hold_until(needs);
        }
        self.say_again();
        // What ended with its session before the crash could be written down ends now (I13).
        let open = self.sessions.iter().flat_map(|session| session.pending.numbers());
        let over = self.ended.values().flat_map(|ended| &ended.asked);
        let mut pending: Vec<(RequestId, bool)> = open
            .map(|number| (number, true))
            .chain(over.map(|number| (*number, false)))
            .filter(|(number, _)| self.status(*number) == Some(Status::Pending))
            .collect();
        pending.sort_unstable();
        for (number, open) in pending {
            if trust == ClockTrust::OldCopy && open {
                self.resolve(number, Outcome::Rejected, false, "old copy", now);
            } else if R::stays_pending(open, trust) {
                self.set_timer(number);
            } else {
                self.resolve(number, Outcome::Cancelled, false, "restart", now);
            }
        }
        if trust == ClockTrust::OldCopy {
            return self.end_all(now);
        }
        self.resume_approvals(trust, now);
    }

    // enforces: I8, D41
    /// Under a clock that cannot be trusted nobody knows how old an approval is: it is spent.
    fn resume_approvals(&mut self, trust: ClockTrust, now: Now) {
        let asked = self.sessions.iter().flat_map(|session| session.asked.iter().copied());
        let approved = |number: &RequestId| self.status(*number).is_some_and(Status::is_approved);
        let mut approved: Vec<RequestId> = asked.filter(approved).collect();
        approved.sort_unstable();
        for number in approved {
            if R::stays_approved(trust) {
                self.set_timer(number);
            } else {
                self.expire_approval(number, Unused::TooLate, now);
            }
        }
    }

    // enforces: I1, I2
    /// What was accepted and not used may have been used after the copy was made: no session goes on.
    fn end_all(&mut self, now: Now) {
        let open = self.sessions.iter().map(|session| (session.key, session.language.clone()));
        let open: Vec<(SessionKey, Arc<str>)> = open.collect();
        for (key, language) in open {
            let payload = ending(&language, Phrase::OLD_COPY, ("error_category", "unknown"));
            // Our own words are valid; there is nobody to tell if they were not.
            let errored = AgentEvent::read(EventKind::SessionErrored.as_str(), &payload);
            let _ = self.end(key, &errored, now);
        }
    }
}

/// The account as it was told, with the digest that counts now: older journals have it over the bytes
/// of the arguments.
fn with_digest(account: &str, asked: &Asked, digest: &Digest) -> Arc<str> {
    let digest = digest.to_string();
    if account.contains(&digest) {
        return asked.account.clone();
    }
    let before = Digest::of_bytes(&asked.tool, &asked.arguments).to_string();
    account.replace(&before, &digest).into()
}

fn key_of(session: &str) -> Option<SessionKey> {
    session_key(&SessionId::parse(session).ok()?)
}

/// What counts when no answer comes.
fn default_of(json: &str) -> Option<Arc<str>> {
    default_answer(Event::parse(json.as_bytes()).ok()?.payload())
}

fn stamp_of(micros: i64, now: Now) -> Timestamp {
    Timestamp::from_millis(micros.div_euclid(1000)).unwrap_or(now.wall)
}
