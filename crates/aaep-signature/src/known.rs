//! Keys that were seen before: trust on first use.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Verified;

/// How many agents are remembered; the one that was seen first is forgotten for a new one.
const MAX_AGENTS: usize = 4096;

/// The form that is written.
const VERSION: u32 = 1;

/// Agents whose keys were seen, one at each address: another hub may have the same name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownAgents {
    version: u32,
    agents: Vec<KnownAgent>,
}

impl Default for KnownAgents {
    fn default() -> Self {
        Self { version: VERSION, agents: Vec::new() }
    }
}

/// An agent whose key was seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownAgent {
    /// Where it was met.
    pub address: String,
    /// Its name.
    pub agent_id: String,
    /// The fingerprint of its key.
    pub key: String,
    /// When the key was seen first, in seconds of Unix time.
    pub since: i64,
}

impl KnownAgent {
    fn is_same(&self, verified: &Verified) -> bool {
        self.agent_id == verified.agent_id && self.key == verified.key.fingerprint()
    }
}

/// How an agent's key compares with the one that was seen before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyStatus {
    /// Nobody was known at this address.
    New,
    /// The key is the one that was seen before.
    Unchanged,
    /// It is another key, or another name: the agent has changed, or somebody passes for it.
    Changed,
}

/// A text that is no list of known agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAList;

impl fmt::Display for NotAList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("It is no list of known agents.")
    }
}

impl std::error::Error for NotAList {}

impl KnownAgents {
    /// Reads what [`Self::to_json`] wrote.
    pub fn from_json(json: &str) -> Result<Self, NotAList> {
        let known: Self = serde_json::from_str(json).map_err(|_| NotAList)?;
        let fits = known.version == VERSION && known.agents.len() <= MAX_AGENTS;
        fits.then_some(known).ok_or(NotAList)
    }

    /// To be kept.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// All of them, those that were seen first first.
    pub fn agents(&self) -> &[KnownAgent] {
        &self.agents
    }

    /// How the signer of this manifest stands to what is known of this address. Another name at the
    /// same address is a change too: or an impostor would only have to rename the agent.
    pub fn judge(&self, address: &str, verified: &Verified) -> KeyStatus {
        match self.find(address) {
            None => KeyStatus::New,
            Some(known) if known.is_same(verified) => KeyStatus::Unchanged,
            Some(_) => KeyStatus::Changed,
        }
    }

    /// Who is known at an address. One that has signed before and no longer does is as suspect as one
    /// with another key.
    pub fn find(&self, address: &str) -> Option<&KnownAgent> {
        self.agents.iter().find(|known| known.address == address)
    }

    /// Remembers a key; one that is known at this address stays.
    pub fn remember(&mut self, address: &str, verified: &Verified, now: i64) {
        if self.find(address).is_some() {
            return;
        }
        if self.agents.len() >= MAX_AGENTS {
            self.agents.remove(0);
        }
        self.agents.push(KnownAgent {
            address: address.to_owned(),
            agent_id: verified.agent_id.clone(),
            key: verified.key.fingerprint().to_owned(),
            since: now,
        });
    }

    /// Forgets all of this name or address; gives how many.
    pub fn forget(&mut self, name: &str) -> usize {
        let before = self.agents.len();
        self.agents.retain(|known| known.agent_id != name && known.address != name);
        before - self.agents.len()
    }
}
