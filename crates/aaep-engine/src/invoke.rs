//! What may run: an approval is spent, a call is announced (§6.3.5, D37).

use aaep_types::json::Canonical;
use aaep_types::{EventKind, RiskLevel, cut, rule};

use crate::clock::Now;
use crate::draft::{Draft, members};
use crate::engine::{Engine, no_session};
use crate::hints::Hints;
use crate::ids::{Digest, RequestId, SessionKey};
use crate::io::{Handled, Output};
use crate::record::Record;
use crate::refusal::Refusal;
use crate::request::Status;
use crate::rules::Rules;

impl<R: Rules> Engine<R> {
    /// Spends an approval: the only way to an irreversible `tool.invoked`.
    pub(crate) fn invoke(
        &mut self,
        number: RequestId,
        arguments: Option<&Canonical>,
        now: Now,
    ) -> Result<Handled, Refusal> {
        self.needs_journal()?;
        let Some(request) = self.requests.get(&number) else { return Ok(Handled::Done) };
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
        Ok(Handled::Done)
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
}

/// The beginning of a text, where only a short one may stand.
fn shortened(text: &str) -> &str {
    cut(text, 4000)
}
