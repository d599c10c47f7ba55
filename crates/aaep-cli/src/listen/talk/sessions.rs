//! Who is at work, and on what: for "what is it doing now", and for stopping it.

use std::collections::VecDeque;
use std::sync::Arc;

use aaep_subscriber::Agent;

/// Sessions that are remembered; the one that was heard longest ago is forgotten first.
pub(super) const SESSIONS: usize = 64;

/// What is remembered of each, in bytes.
const LATEST_CHARACTERS: usize = 2048;

/// A session that runs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Live {
    pub(super) agent: Agent,
    pub(super) session_id: Arc<str>,
    /// What was said of it last.
    pub(super) latest: String,
    /// The agent's last words in it.
    pub(super) words: Option<String>,
    /// The language of the agent's words, if it said so.
    pub(super) language: Option<Arc<str>>,
    /// What was allowed last, and not said to be done yet.
    allowed: Option<String>,
}

/// Those that run, the one that was heard last at the end.
#[derive(Debug, Default)]
pub(super) struct Sessions {
    live: Vec<Live>,
    /// Those that ended last: a late event does not bring them back.
    ended: VecDeque<Arc<str>>,
}

impl Sessions {
    /// Something was heard of a session.
    pub(super) fn note(
        &mut self,
        agent: &Agent,
        session_id: &str,
        lines: &[String],
        words: Option<&str>,
        ends: bool,
    ) {
        if self.ended.iter().any(|ended| &**ended == session_id) {
            return;
        }
        let known = self
            .live
            .iter()
            .position(|live| &*live.session_id == session_id && live.agent.id == agent.id);
        let known = known.map(|at| self.live.remove(at));
        if ends {
            if self.ended.len() >= SESSIONS {
                self.ended.pop_front();
            }
            self.ended.push_back(session_id.into());
            return;
        }
        let mut live = known.unwrap_or_else(|| Live {
            agent: agent.clone(),
            session_id: session_id.into(),
            latest: String::new(),
            words: None,
            language: None,
            allowed: None,
        });
        if !lines.is_empty() {
            live.latest = short(&lines.join(" "));
            live.words = words.map(short);
        }
        if self.live.len() >= SESSIONS {
            self.live.remove(0);
        }
        self.live.push(live);
    }

    /// Nobody speaks of a session any more; if somebody does after all, it goes on.
    pub(super) fn forget(&mut self, session_id: &str) {
        self.live.retain(|live| &*live.session_id != session_id);
    }

    /// The agent's words in a session are in this language.
    pub(super) fn speaks(&mut self, session_id: &str, language: Option<&Arc<str>>) {
        let live = self.live.iter_mut().find(|live| &*live.session_id == session_id);
        if let (Some(live), Some(language)) = (live, language) {
            live.language = Some(language.clone());
        }
    }

    /// The user, or somebody else, allowed this in a session.
    pub(super) fn allow(&mut self, session_id: &str, action: &str) {
        let live = self.live.iter_mut().find(|live| &*live.session_id == session_id);
        if let Some(live) = live.filter(|_| action.len() <= LATEST_CHARACTERS) {
            live.allowed = Some(action.to_owned());
        }
    }

    /// What was allowed in a session last.
    pub(super) fn take_allowed(&mut self, session_id: &str) -> Option<String> {
        self.live.iter_mut().find(|live| &*live.session_id == session_id)?.allowed.take()
    }

    /// All of them, the one that was heard last first.
    pub(super) fn all(&self) -> Vec<Live> {
        self.live.iter().rev().cloned().collect()
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.live
            .iter()
            .map(|live| {
                live.latest.capacity()
                    + live.agent.name.len()
                    + live.words.as_ref().map_or(0, String::len)
                    + live.allowed.as_ref().map_or(0, String::len)
            })
            .sum()
    }

    /// One of them.
    pub(super) fn find(&self, session_id: &str) -> Option<&Live> {
        self.live.iter().find(|live| &*live.session_id == session_id)
    }
}

/// As much of a text as is kept.
fn short(words: &str) -> String {
    aaep_types::cut(words, LATEST_CHARACTERS).to_owned()
}
