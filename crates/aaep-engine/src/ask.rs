//! A request for consent begins to wait (§6.2).

use aaep_shaping::ShapeInfo;
use aaep_types::{EventKind, Timestamp, ToolName, Urgency, rule};
use std::sync::Arc;

use crate::clock::Now;
use crate::draft::{Ready, account_of};
use crate::engine::{Engine, no_session};
use crate::hints::Hints;
use crate::ids::{Digest, EventNumber, RequestId, SessionKey, TokenNumber};
use crate::io::{Ask, Handled};
use crate::principal::Principal;
use crate::question::{AgentQuestion, QuestionTerms, asks_nothing, with_token};
use crate::record::{Asked, Record};
use crate::refusal::{Blame, Refusal};
use crate::request::{Request, Status};
use crate::rules::Rules;
use crate::shares::{AGENT_SHARE, USER_SHARE};
use crate::slab::SlotIndex;

impl<R: Rules> Engine<R> {
    /// Asks, or returns the request that asks the same already.
    pub(crate) fn ask(
        &mut self,
        key: SessionKey,
        ask: Ask<'_>,
        now: Now,
    ) -> Result<Handled, Refusal> {
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
            return Ok(Handled::Waiting { request, digest, again: true });
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
        let said = (without_token, draft.account, asked.variants);
        self.begin_waiting(request, said, &json, now);
        Ok(Handled::Waiting { request: RequestId::of(event), digest, again: false })
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
        (without_token, account, variants): (Arc<str>, Option<Arc<str>>, bool),
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
            shape: Some(Box::new(ShapeInfo::of_question(Some(variants)))),
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
}

/// The request that a question makes.
fn request_of(
    question: &AgentQuestion,
    terms: QuestionTerms,
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
        margin: 0,
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
