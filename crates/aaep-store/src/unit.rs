//! What is kept together, and what the hub notes beside its records.

use crate::journal::Entry;

/// What must be durable together: the records of one step, and what else the hub notes with them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unit {
    /// Records, in order.
    pub entries: Vec<Entry>,
    /// What goes with them.
    pub notes: Vec<Note>,
}

/// A call of an agent with an idempotency key, and what it led to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptCall {
    /// The name of the agent.
    pub agent: String,
    /// What was called.
    pub path: String,
    /// The key.
    pub key: String,
    /// The session that it concerns.
    pub session: String,
    /// SHA-256 of what was sent.
    pub body: [u8; 32],
    /// The status of the answer.
    pub status: u16,
    /// The answer.
    pub answer: String,
}

/// Something that the hub notes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Note {
    /// A call to be remembered.
    Call(KeptCall),
    /// This call is no longer needed.
    ForgetCall {
        /// The name of the agent.
        agent: String,
        /// What was called.
        path: String,
        /// The key.
        key: String,
    },
    /// The calls of this session are no longer needed.
    ForgetCalls {
        /// Which.
        session: String,
    },
    /// The clock on the wall jumped.
    ClockJumped,
}

#[cfg(feature = "sqlite")]
impl Note {
    /// How many bytes it takes in an entry, at most.
    pub(crate) fn size(&self) -> usize {
        64 + match self {
            Note::Call(call) => {
                let KeptCall { agent, path, key, session, answer, body, .. } = call;
                let texts = [agent, path, key, session, answer].map(String::len);
                body.len() + texts.iter().sum::<usize>()
            }
            Note::ForgetCall { agent, path, key } => agent.len() + path.len() + key.len(),
            Note::ForgetCalls { session } => session.len(),
            Note::ClockJumped => 0,
        }
    }
}
