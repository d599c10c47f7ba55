//! How requests end, and what is told of them until then (§6).

use aaep_types::{EventKind, Presence, Urgency, rule};
use std::sync::Arc;

use crate::clock::Now;
use crate::draft::{Draft, Extension, account_in, members, payload_of};
use crate::engine::Engine;
use crate::hints::Hints;
use crate::ids::{RequestId, SessionKey};
use crate::io::{Handled, Output};
use crate::record::{Outcome, Record};
use crate::refusal::Refusal;
use crate::request::{Status, Unused};
use crate::rules::Rules;
use crate::session::state;
use crate::words::{Phrase, say, say_about, say_outcome, say_time_left};

impl<R: Rules> Engine<R> {
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
            request.margin = 0;
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
    pub(crate) fn withdraw(&mut self, number: RequestId, now: Now) -> Result<Handled, Refusal> {
        if self.status(number).is_some_and(Status::is_approved) {
            self.needs_journal()?;
            self.expire_approval(number, Unused::GivenUp, now);
            return Ok(Handled::Done);
        }
        if self.status(number) != Some(Status::Pending) {
            return Err(Refusal::order(
                rule::C24,
                "This request no longer waits; there is nothing to withdraw.",
            ));
        }
        self.needs_journal()?;
        self.resolve(number, Outcome::Cancelled, false, "agent", now);
        Ok(Handled::Done)
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

    // enforces: C18
    /// §6.4.3: how much time is left, said at half and at a tenth.
    pub(crate) fn count_down(&mut self, number: RequestId, now: Now) {
        let Some(request) = self.requests.get_mut(&number) else { return };
        let percent = request.counted_down;
        let left = request.closes().0.saturating_sub(now.boot.0) / 1_000_000;
        let (id, action) = (request.session, request.action());
        let Some(session) = self.sessions.get(&id) else { return };
        let words = say_time_left(&session.language, left, &action);
        let progress = members(&[("description", &words.terse)]);
        let payload = format!("\"progress\":{{\"percent\":{},{progress}}}", 100 - percent);
        let draft = Draft::ours(EventKind::ProgressUpdated, &payload, &words, session);
        self.send_ours(id, draft, 0, now);
    }
}
