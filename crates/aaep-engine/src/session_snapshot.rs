//! Where a session stands, as its own agent may see it: what it takes up again after a restart.

use aaep_types::{OutputId, SessionId, ToolCallId};
use std::borrow::Cow;
use std::sync::Arc;

use crate::engine::Engine;
use crate::ids::session_key;
use crate::principal::Principal;
use crate::rules::Rules;

/// A session that is open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSnapshot {
    /// The state it is in.
    pub state: Cow<'static, str>,
    /// Calls that have not come back, with the names of their tools.
    pub calls: Vec<(ToolCallId, Arc<str>)>,
    /// Outputs that are not complete, and where each goes on, in Unicode scalar values.
    pub outputs: Vec<(Option<OutputId>, u64)>,
}

impl<R: Rules> Engine<R> {
    /// Where a session stands; `None` if it is over, unknown or somebody else's.
    pub fn session(&self, agent: &Principal, id: SessionId) -> Option<SessionSnapshot> {
        let session = self.sessions.get(&session_key(&id)?)?;
        if session.agent != *agent {
            return None;
        }
        Some(SessionSnapshot {
            state: session.state.clone(),
            calls: session.tools.iter().map(|(call, tool)| (*call, tool.clone())).collect(),
            outputs: session.outputs.open.iter().map(|(output, at)| (*output, *at)).collect(),
        })
    }

    /// The language that a session speaks; `None` if there is none.
    pub fn language_of(&self, id: SessionId) -> Option<Arc<str>> {
        Some(self.sessions.get(&session_key(&id)?)?.language.clone())
    }
}
