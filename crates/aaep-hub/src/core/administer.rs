//! Administration of a running hub. Every act is in the audit.

use std::sync::Arc;

use aaep_engine::{Blame, Input, Principal, Refusal, Role};
use aaep_types::{PresenceWord, SessionId, rule};

use super::Core;

/// By whom a change of the configuration is made.
const CONFIGURATION: &str = "configuration";

/// An `agent_id`, and whose it is.
pub(crate) struct Held {
    pub(crate) id: Arc<str>,
    pub(crate) agent: Principal,
    pub(crate) sessions: usize,
}

impl Core {
    /// Every `agent_id` that belongs to somebody.
    pub(crate) fn held_ids(&self) -> Vec<Held> {
        self.producers.held().collect()
    }

    /// Every open session, and whose it is.
    pub(crate) fn open_sessions(&self) -> Vec<(SessionId, Principal)> {
        self.agents.sessions.iter().map(|(id, agent)| (*id, agent.clone())).collect()
    }

    // enforces: S5
    /// Frees an `agent_id`: the next agent that speaks under it has it.
    pub(crate) fn release_id(&mut self, by: &Principal, id: &str) -> Result<(), Refusal> {
        self.producers.may_change(id)?;
        self.handle(Input::Administer { by: &by.name, act: "released", what: id, to: "" })?;
        self.producers.release(id);
        tracing::info!(by = &*by.name, id, "an agent id was released");
        Ok(())
    }

    // enforces: S5
    /// Gives an `agent_id` to another agent.
    pub(crate) fn hand_id_over(
        &mut self,
        by: &Principal,
        id: &str,
        (name, user): (&str, &str),
    ) -> Result<(), Refusal> {
        self.producers.may_change(id)?;
        let to = format!("{name} of {user}");
        self.handle(Input::Administer { by: &by.name, act: "handed_over", what: id, to: &to })?;
        self.producers.hand_over(id, &Principal::new(name, Role::Agent, user));
        tracing::info!(by = &*by.name, id, to, "an agent id was handed over");
        Ok(())
    }

    /// Ends a session: what it asked for dies, its listeners hear that it was cancelled, its agent is told.
    pub(crate) fn end_session(
        &mut self,
        by: &Principal,
        session: SessionId,
    ) -> Result<(), Refusal> {
        self.handle(Input::EndSession { by, session })
            .map(drop)
            .map_err(|refusal| Refusal { text: "There is no such session.".into(), ..refusal })?;
        tracing::info!(by = &*by.name, %session, "a session was ended");
        Ok(())
    }

    /// Notes what an administrator does, before it is done.
    pub(crate) fn note_act(
        &mut self,
        by: &Principal,
        act: &str,
        what: &str,
    ) -> Result<(), Refusal> {
        self.handle(Input::Administer { by: &by.name, act, what, to: "" })?;
        tracing::info!(by = &*by.name, act, what, "an administrator did something");
        Ok(())
    }

    /// Notes who had a person's records erased; whose they were is nowhere.
    pub(crate) fn note_erasure(&mut self, by: &Principal, note: &str) {
        let what = if note.is_empty() { "records of a person" } else { note };
        let noted = self.handle(Input::Administer { by: &by.name, act: "erased", what, to: "" });
        if let Err(refusal) = noted {
            tracing::warn!(%refusal, "who erased records is not in the audit");
        }
    }

    // enforces: I34
    /// Notes a change of somebody's passkeys, which has happened, with the SHA-256 of the key: an audit
    /// can tell from that which keys could sign when.
    pub(crate) fn note_passkey(
        &mut self,
        by: &Principal,
        user: &str,
        word: PresenceWord,
        key: &str,
    ) {
        let (act, to) = (word.to_string(), format!("key {key}"));
        let noted = self.handle(Input::Administer { by: &by.name, act: &act, what: user, to: &to });
        if let Err(refusal) = noted {
            tracing::warn!(act, %refusal, "a change of passkeys is not in the audit");
        }
    }

    // enforces: I34
    /// Notes what happened to somebody's PIN, and who did it: nobody knows by whom the file was changed.
    pub(crate) fn note_pin(&mut self, by: Option<&Principal>, act: &str, user: &str) {
        let by = by.map_or(CONFIGURATION, |by| &*by.name);
        let noted = self.handle(Input::Administer { by, act, what: user, to: "" });
        if let Err(refusal) = noted {
            tracing::warn!(act, %refusal, "what happened to a PIN is not in the audit");
        }
    }

    /// Notes a change of who may come in. That nothing can be kept just now is no reason to let somebody
    /// in who was shut out.
    pub(crate) fn note_change(&mut self, act: &str, what: &str) {
        let noted = self.handle(Input::Administer { by: CONFIGURATION, act, what, to: "" });
        if let Err(refusal) = noted {
            tracing::warn!(act, what, %refusal, "a change of who may come in is not in the audit");
        }
    }
}

/// Reads whom a record says that an id was handed over to.
pub(super) fn new_owner(to: &str) -> Option<Principal> {
    let (name, user) = to.rsplit_once(" of ")?;
    Some(Principal::new(name, Role::Agent, user))
}

pub(super) fn nobodys(id: &str) -> Refusal {
    Refusal {
        blame: Blame::NotYours,
        rule: rule::S5,
        text: format!("The agent id {id} belongs to nobody."),
    }
}

pub(super) fn in_use(id: &str) -> Refusal {
    Refusal {
        blame: Blame::OutOfOrder,
        rule: rule::S5,
        text: format!("Sessions are open under {id}. End them first."),
    }
}
