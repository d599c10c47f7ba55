//! Requests: asked, resolved, spent (§6).

use aaep_shaping::ShapeInfo;
use aaep_types::json::Canonical;
use aaep_types::{EventKind, Presence, RiskLevel, Timestamp, ToolName, Urgency, cut, rule};

use std::sync::Arc;

use crate::budget::{AGENT_SHARE, USER_SHARE};
use crate::clock::Now;
use crate::draft::{Draft, Extension, Ready, account_in, account_of, members, payload_of};
use crate::engine::{Engine, no_session};
use crate::hints::Hints;
use crate::ids::{Digest, EventNumber, RequestId, SessionKey, TokenNumber};
use crate::io::{Answer, Ask, Output};
use crate::principal::Principal;
use crate::question::{AgentQuestion, Terms, asks_nothing, with_token};
use crate::record::{Asked, Outcome, Record};
use crate::refusal::{Blame, Refusal};
use crate::request::{Request, Status, Unused};
use crate::rules::Rules;
use crate::session::state;
use crate::slab::SlotIndex;
use crate::words::{Phrase, say, say_about, say_outcome, say_time_left};

impl<R: Rules> Engine<R> {
    /// Asks, or returns the request that asks the same already.
    pub(crate) fn ask(
        &mut self,
        key: SessionKey,
        ask: Ask<'_>,
        now: Now,
    ) -> Result<Answer, Refusal> {
        let question = ask.question;
        let confirmation = match question.kind {
            EventKind::AwaitingConfirmation => true,
            EventKind::AwaitingClarification => false,
            _ => return Err(asks_nothing()),
        };
        if question.arguments.len() > self.limits.argument_bytes {
            let text = format!(
                "Arguments may have at most {} bytes (limits.argument_bytes).",
                self.limits.argument_bytes
            );
            return Err(Refusal::new(Blame::Limit, rule::E21, text));
        }
        if confirmation && ToolName::parse(&*question.tool).is_err() {
            return Err(Refusal::new(Blame::Malformed, rule::T11, "Name the tool that would run."));
        }
        let digest = question.digest.clone()?;
        // enforces: C4, I12
        let asks = |number: &RequestId| {
            self.requests.get(number).is_some_and(|r| R::asks_the_same(&r.digest, &digest))
        };
        let asking =
            self.sessions.get(&key).and_then(|session| session.pending.like(&digest).find(asks));
        if let Some(request) = asking {
            return Ok(Answer::Waiting { request, digest, again: true });
        }
        self.may_begin()?;
        self.waiting.admit(&self.limits.waiting_requests(), ask.agent, 1)?;
        let limits = self.limits;
        let Some(session) = self.sessions.get_mut(&key) else { return Err(no_session()) };
        session.admits_prompt(now, &limits)?;
        let user = session.agent.user.clone();
        self.admits_prompt_of(ask.agent, now)?;
        let event = self.ids.event();
        let token = self.ids.token(R::token_source(event));
        let asked = question.asked(self.listeners.time_factor(&user))?;
        let without_token: Arc<str> = with_token(&asked.head, "").into();
        // What a restart counts, too: otherwise somebody would hold more than their share after it.
        let bytes = question.arguments.len() + without_token.len();
        self.waiting_bytes.admit(&self.limits.waiting_bytes(), ask.agent, bytes)?;
        let mut draft = asked.draft(question.kind, token);
        draft.account = match confirmation {
            true => account_of(&question.tool, &question.readable, &digest, ask.described_by),
            false => None,
        };
        draft.needs = question.needs;
        let Some(session) = self.sessions.get(&key) else { return Err(no_session()) };
        session.admits_speaker(draft.hints.as_deref())?;
        let stamp = session.stamp::<R>(now);
        let number = session.next_number + u64::from(session.state_before(question.kind).is_some());
        let json: Arc<str> = draft.json(event, number, stamp, session).into();
        // enforces: C5, C15, D7, D18
        let terms = asked.terms(&json)?;
        let home = self.sessions.place(key).unwrap_or_default();
        let asking = (event, token, stamp);
        let mut request = request_of(question, terms, (key, home), digest, asking, now);
        request.producer = draft.hints.as_deref().and_then(Hints::sub_agent);
        request.bytes = bytes;
        self.begin_waiting(request, (without_token, draft.account), &json, now);
        Ok(Answer::Waiting { request: RequestId::of(event), digest, again: false })
    }

    /// A new session is no new budget: the user is the same.
    fn admits_prompt_of(&self, agent: &Principal, now: Now) -> Result<(), Refusal> {
        // enforces: C4
        let most = self.limits.prompts_per_window;
        if self.prompts.has_left(agent, self.prompt_window(now), most) {
            return Ok(());
        }
        let text = format!(
            "At most {} requests may be made in {} seconds by one agent, over all its sessions, and {} by all agents of one user (ten and twenty times limits.prompts_per_window); a user who is asked too often answers on trust.",
            most.saturating_mul(AGENT_SHARE),
            self.limits.prompt_window_seconds,
            most.saturating_mul(USER_SHARE),
        );
        Err(Refusal::new(Blame::Limit, rule::C4, text))
    }

    /// The request exists from here on; nothing can fail any more.
    fn begin_waiting(
        &mut self,
        mut request: Request,
        (without_token, account): (Arc<str>, Option<Arc<str>>),
        json: &Arc<str>,
        now: Now,
    ) {
        let (number, key, digest, event, kind) =
            (request.number, request.session, request.digest, request.event_number, request.kind);
        let needs = self.coming();
        self.enter_state_for(key, kind, needs, now);
        let ready = Ready {
            event,
            kind: Some(kind),
            urgency: Urgency::Critical,
            about: None,
            resolves_event: None,
            shape: Some(Box::new(ShapeInfo::of_question())),
            json: json.clone(),
        };
        self.push(key, ready, needs, now);
        let said = self.said(key);
        let Some(session) = self.sessions.get(&key) else { return };
        let record = Record::Asked(Asked {
            request: request.number,
            session: session.id().as_str().into(),
            confirmation: kind == EventKind::AwaitingConfirmation,
            tool: request.tool.clone(),
            arguments: request.arguments.clone(),
            event: without_token,
            stamp: request.stamp.as_micros(),
            timeout_seconds: request.timeout_seconds,
            default_accept: request.default_accept,
            irreversible: request.irreversible,
            account: account.unwrap_or_else(|| "".into()),
            needs: request.needs,
            said,
        });
        self.append(&record);
        request.event = Some(json.clone());
        if let Some(session) = self.sessions.get_mut(&key) {
            session.note_asked(number, &digest);
            session.note_prompt(now);
            let agent = session.agent.clone();
            self.prompts.spend(&agent, self.prompt_window(now));
        }
        self.begins_to_wait(&request);
        self.requests.insert(request);
        self.set_timer(number);
        self.forget_settled(key);
    }

    // enforces: I2, D6
    /// The one place where a request ends: its token is dead, and everybody is told how it ended.
    pub(crate) fn resolve(
        &mut self,
        number: RequestId,
        outcome: Outcome,
        runs: bool,
        by: &str,
        now: Now,
    ) {
        if runs {
            // From now on its timer is that of the approval.
            self.requests.stop_timer(number);
        }
        let Some(request) = self.requests.get_mut(&number) else { return };
        let waited = request.status == Status::Pending;
        let by: Arc<str> = by.into();
        request.by = Some(by.clone());
        request.status = Status::Resolved { outcome, runs };
        let action = request.action();
        let (phrase, answer) = request.outcome_phrase(outcome, runs);
        let reply = request.reply.clone().unwrap_or_default();
        let shown = request.shown.take();
        let (presence, assertion) = shown.map_or_else(
            || (Presence::None, Arc::default()),
            |shown| (shown.presence, shown.assertion),
        );
        let wrong_clock = request.wrong_clock;
        if runs {
            request.keep_for_call();
        }
        request.event = None;
        if runs {
            request.deadline = now.boot.after_seconds(self.limits.approval_seconds);
        }
        let (id, event) = (request.session, request.event_number);
        self.sessions.expect(request.home);
        let response = (request.kind == EventKind::AwaitingClarification)
            .then(|| request.answer.clone())
            .flatten();
        if runs {
            self.set_timer(number);
        }
        self.requests.drop_idle_timers();
        if waited {
            self.waits_no_more(number);
        }
        if !runs {
            self.cannot_run(number);
        }
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.pending.remove(number);
        let more = !session.pending.is_empty();
        let needs = self.coming();
        let extension = Extension::Outcome { request: number, event, outcome, wrong_clock };
        let told = (phrase, &*action, &*answer);
        self.show_resolution(id, extension, runs, told, more, needs, now);
        let decided = Output::Decided {
            request: number,
            outcome,
            runs,
            by: by.clone(),
            response: response.clone(),
        };
        self.durability.push(id, needs, decided);
        let response = response.unwrap_or_default();
        let said = self.said(id);
        self.append(&Record::Resolved {
            request: number,
            outcome,
            runs,
            by,
            response,
            reply,
            presence,
            assertion,
            said,
        });
    }

    // enforces: C2, C23, D16, I18
    /// C23, D30: the state leaves `awaiting_input` with the outcome, and returns to it while more waits.
    #[allow(clippy::too_many_arguments)] // one event, said in full
    fn show_resolution(
        &mut self,
        id: SessionKey,
        outcome: Extension,
        runs: bool,
        (phrase, action, answer): (Phrase, &str, &str),
        more: bool,
        needs: u64,
        now: Now,
    ) {
        let next = if runs { state::CALLING_TOOL } else { state::THINKING };
        let Some(session) = self.sessions.get(&id) else { return };
        let words = say_outcome(&session.language, phrase, action, answer);
        let mut draft = Draft::state(state::AWAITING_INPUT.into(), next, &words, session);
        draft.extension = Some(outcome);
        self.send_ours(id, draft, needs, now);
        if more {
            let Some(session) = self.sessions.get(&id) else { return };
            let words = say(&session.language, Phrase::STILL_WAITS);
            let back = Draft::state(next.into(), state::AWAITING_INPUT, &words, session);
            self.send_ours(id, back, needs, now);
        }
    }

    // enforces: D41, I18
    /// An approval that is not used is spent, and everybody is told.
    pub(crate) fn expire_approval(&mut self, number: RequestId, why: Unused, now: Now) {
        let Some(request) = self.requests.get_mut(&number) else { return };
        let (id, event, action) = (request.session, request.event_number, request.action());
        request.status = Status::Expired;
        self.cannot_run(number);
        let Some(session) = self.sessions.get(&id) else { return };
        let words = say_about(&session.language, why.phrase(), &action);
        // While something else goes on, the state stays what it is (T16, D30).
        let mut draft = if session.only_looks_busy() {
            Draft::state(state::CALLING_TOOL.into(), state::THINKING, &words, session)
        } else {
            let progress = members(&[("description", &words.terse)]);
            let payload = format!("\"progress\":{{{progress}}}");
            Draft::ours(EventKind::ProgressUpdated, &payload, &words, session)
        };
        draft.extension = Some(Extension::Expired { request: number, event });
        draft.urgency = Urgency::Normal;
        let needs = self.coming();
        self.send_ours(id, draft, needs, now);
        let said = self.said(id);
        self.append(&Record::Expired { request: number, said });
    }

    /// D32: withdraws what is asked and asks it again, with another token and more time. To the agent
    /// it stays the same request.
    pub(crate) fn extend(&mut self, number: RequestId, seconds: u64, now: Now) {
        let Some(request) = self.requests.get_mut(&number) else { return };
        let (old, id, kind) = (request.event_number, request.session, request.kind);
        let needs_presence = request.needs;
        let action = request.action();
        let (phrase, answer) = request.outcome_phrase(Outcome::Superseded, false);
        let json = request.event.take().unwrap_or_else(|| "{}".into());
        let event = self.ids.event();
        let token = self.ids.token(event);
        let Some(session) = self.sessions.get(&id) else { return };
        let stamp = session.stamp::<R>(now);
        let needs = self.coming();
        let outcome = Outcome::Superseded;
        let extension =
            Extension::Outcome { request: number, event: old, outcome, wrong_clock: false };
        let told = (phrase, &*action, &*answer);
        self.show_resolution(id, extension, false, told, true, needs, now);
        let mut payload = payload_of(&json, &["reply_token", "timeout_seconds"]);
        payload.push_str(&format!(
            "\"timeout_seconds\":{seconds},\"reply_token\":\"{}\"",
            token.spelled().as_str()
        ));
        let mut draft = Draft::new(kind, payload);
        draft.extension = Some(Extension::Supersedes(old));
        draft.account = account_in(&json);
        draft.needs = needs_presence;
        draft.hints = Hints::of_event(&json);
        let json = self.send(id, draft, event, needs, now);
        let said = self.said(id);
        self.append(&Record::Extended { request: number, event, timeout_seconds: seconds, said });
        self.requests.stop_timer(number);
        if let Some(request) = self.requests.get(&number) {
            let token = R::token_after_extension(request.token, token);
            self.requests.change_token(number, token);
        }
        if let Some(request) = self.requests.get_mut(&number) {
            request.event_number = event;
            request.event = Some(json);
            request.stamp = stamp;
            request.asked_at = now.boot;
            request.timeout_seconds = seconds;
            request.deadline = now.boot.after_seconds(seconds);
            request.counted_down = 100;
        }
        self.set_timer(number);
    }

    /// I27, D41: something is due for what waits, for an answer or to be used.
    pub(crate) fn set_timer(&mut self, number: RequestId) {
        if self.status(number).is_some_and(R::has_deadline) {
            self.requests.set_timer(number);
        }
    }

    /// The agent no longer needs an answer, or gives up what was approved.
    pub(crate) fn withdraw(&mut self, number: RequestId, now: Now) -> Result<Answer, Refusal> {
        if self.status(number).is_some_and(Status::is_approved) {
            self.needs_journal()?;
            self.expire_approval(number, Unused::GivenUp, now);
            return Ok(Answer::Done);
        }
        if self.status(number) != Some(Status::Pending) {
            return Err(Refusal::order(
                rule::C24,
                "This request no longer waits; there is nothing to withdraw.",
            ));
        }
        self.needs_journal()?;
        self.resolve(number, Outcome::Cancelled, false, "agent", now);
        Ok(Answer::Done)
    }

    /// I13: nothing of a session stays pending when it ends.
    pub(crate) fn cancel_all(&mut self, id: SessionKey, now: Now) {
        let Some(session) = self.sessions.get(&id) else { return };
        let dies = |number: &RequestId| self.status(*number).is_some_and(R::dies_with_session);
        let pending: Vec<RequestId> = session.pending.numbers().filter(dies).collect();
        for number in pending {
            self.resolve(number, Outcome::Cancelled, false, "session", now);
        }
    }

    // enforces: T24, I18
    /// What was approved and never run is explained before its session ends.
    pub(crate) fn give_up_approvals(&mut self, id: SessionKey, now: Now) {
        let Some(session) = self.sessions.get(&id) else { return };
        let approved = |number: &RequestId| self.status(*number).is_some_and(R::is_explained);
        let unused: Vec<RequestId> = session.asked.iter().copied().filter(approved).collect();
        for number in unused {
            self.expire_approval(number, Unused::SessionEnds, now);
        }
    }

    /// Spends an approval: the only way to an irreversible `tool.invoked`.
    pub(crate) fn invoke(
        &mut self,
        number: RequestId,
        arguments: Option<&Canonical>,
        now: Now,
    ) -> Result<Answer, Refusal> {
        self.needs_journal()?;
        let Some(request) = self.requests.get(&number) else { return Ok(Answer::Done) };
        if request.status == Status::Expired {
            // enforces: D41
            let text = format!(
                "The approval was not used within {} seconds and is spent; ask again.",
                self.limits.approval_seconds
            );
            return Err(Refusal::order(rule::T12, text));
        }
        // enforces: T12, C1, I1
        if !R::has_approval(request.status) {
            return Err(Refusal::order(
                rule::T12,
                "There is no approval to spend: ask, and wait for a yes; each is good for one run.",
            ));
        }
        let confirmed = |arguments: &Canonical| {
            R::matches_digest(&Digest::of(&request.tool, arguments), &request.digest)
        };
        if !arguments.is_none_or(confirmed) {
            return Err(Refusal::order(
                rule::T12,
                "These are not the arguments that were confirmed; ask again for these.",
            ));
        }
        let (id, tool, irreversible) =
            (request.session, request.tool.clone(), request.irreversible);
        let risk = request.risk.unwrap_or(RiskLevel::High);
        let run = R::arguments_to_run(&request.arguments, arguments.map(Canonical::as_str));
        let action = request.action.clone().unwrap_or_default();
        let producer = request.producer.clone();
        let words = request.call.as_deref().cloned().unwrap_or_default();
        let Some(session) = self.sessions.get(&id) else {
            return Err(Refusal::order(rule::T1, "The session is over."));
        };
        session.admits_another_tool(&self.limits)?;
        self.admits_call(&session.agent)?;
        let call = self.ids.tool_call();
        let mut payload = members(&[
            ("tool", &tool),
            ("tool_call_id", call.as_str()),
            ("summary_terse", shortened(&action)),
            ("summary_normal", &action),
            ("summary_detailed", &action),
        ]);
        // enforces: T11
        payload.push_str(&format!(
            ",\"risk_level\":\"{}\",\"irreversible\":{irreversible}",
            risk.as_str()
        ));
        if !words.args_summary.is_empty() {
            payload.push(',');
            payload.push_str(&members(&[("args_summary", &words.args_summary)]));
        }
        let needs = self.coming();
        if let Some(request) = self.requests.get_mut(&number) {
            request.status = Status::Invoked;
            (request.action, request.call) = (None, None);
        }
        self.requests.drop_idle_timers();
        self.calls.insert((id, call), number);
        self.enter_state_for(id, EventKind::ToolInvoked, needs, now);
        let mut draft = Draft::new(EventKind::ToolInvoked, payload);
        // enforces: E28, L13
        // The agent that asked is the one that runs it, in the language of the question.
        draft.hints = Some(Box::new(Hints {
            producer: producer.map(Into::into),
            localization: words.localization,
            ..Hints::default()
        }));
        self.send_ours(id, draft, needs, now);
        self.durability.push(id, needs, Output::Granted { request: number, call, arguments: run });
        let (call, said) = (call.as_str().into(), self.said(id));
        self.append(&Record::Invoked { request: number, call, said });
        Ok(Answer::Done)
    }

    // enforces: D37
    /// Whether a tool may be announced as running. What waits for consent, or was asked about last
    /// and is not to be done, may not: who hears of it believes that it happens. Without arguments
    /// nobody knows which call it is, so every request for the tool counts.
    pub(crate) fn admits_announcement(
        &self,
        id: SessionKey,
        tool: &str,
        arguments: Option<&Canonical>,
    ) -> Result<(), Refusal> {
        let Some(session) = self.sessions.get(&id) else { return Err(no_session()) };
        let digest = arguments.map(|arguments| Digest::of(tool, arguments));
        let mut consented: Vec<Digest> = Vec::new();
        let asked = session.asked.iter().rev().filter_map(|number| self.requests.get(number));
        for request in asked.filter(|request| &*request.tool == tool) {
            let another = digest.is_some_and(|digest| digest != request.digest);
            if another || consented.contains(&request.digest) {
                continue;
            }
            // enforces: T27
            if digest.is_some() && request.irreversible && request.status.is_approved() {
                let what = "The user said yes to this very call, which cannot be undone: invoke the request that was accepted.";
                return Err(Refusal::order(rule::T27, what));
            }
            if R::may_announce(request.status) {
                consented.push(request.digest);
            } else {
                let what = if request.status == Status::Pending {
                    "The user is asked about this call and has not answered yet; wait, then invoke the request."
                } else if digest.is_some() {
                    "The user was asked about this call and there was no yes; ask again, and invoke what is accepted."
                } else {
                    "The user was asked about a call of this tool and there was no yes; say with which `arguments` it runs, or ask again."
                };
                return Err(Refusal::order(rule::D37, what));
            }
        }
        Ok(())
    }

    // enforces: C18
    /// §6.4.3: how much time is left, said at half and at a tenth.
    pub(crate) fn count_down(&mut self, number: RequestId, now: Now) {
        let Some(request) = self.requests.get_mut(&number) else { return };
        let percent = request.counted_down;
        let left = request.deadline.0.saturating_sub(now.boot.0) / 1_000_000;
        let (id, action) = (request.session, request.action());
        let Some(session) = self.sessions.get(&id) else { return };
        let words = say_time_left(&session.language, left, &action);
        let progress = members(&[("description", &words.terse)]);
        let payload = format!("\"progress\":{{\"percent\":{},{progress}}}", 100 - percent);
        let draft = Draft::ours(EventKind::ProgressUpdated, &payload, &words, session);
        self.send_ours(id, draft, 0, now);
    }
}

/// The beginning of a text, where only a short one may stand.
fn shortened(text: &str) -> &str {
    cut(text, 4000)
}

/// The request that a question makes.
fn request_of(
    question: &AgentQuestion,
    terms: Terms,
    (session, home): (SessionKey, SlotIndex),
    digest: Digest,
    (event, token, stamp): (EventNumber, TokenNumber, Timestamp),
    now: Now,
) -> Request {
    Request {
        number: RequestId::of(event),
        token,
        session,
        home,
        kind: question.kind,
        digest,
        tool: question.tool.clone(),
        arguments: question.arguments.clone(),
        action: Some(terms.action),
        stamp,
        asked_at: now.boot,
        deadline: now.boot.after_seconds(terms.timeout_seconds),
        timeout_seconds: terms.timeout_seconds,
        default_accept: terms.default_accept,
        irreversible: terms.irreversible,
        risk: terms.risk,
        reply: None,
        needs: question.needs,
        shown: None,
        wrong_clock: false,
        answer: terms.answer,
        event_number: event,
        counted_down: 100,
        status: Status::Pending,
        by: None,
        bytes: 0,
        event: None,
        producer: None,
        call: None,
    }
}
