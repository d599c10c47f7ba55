//! What the inbox tells: the one list of things that a voice has to be able to say.

use std::sync::Arc;

use aaep_types::PresenceWord;

use crate::request::{Request, RequestOutcome};

/// The agent that an event comes from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Agent {
    /// Its id.
    pub id: Arc<str>,
    /// Its name as it gives it, or its id.
    pub name: Arc<str>,
}

/// Something that a person may want to hear, in the order in which it shall be heard.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Notification {
    /// An event, once, in its session's order. Requests and streamed text come as what follows.
    Event {
        /// Whose.
        agent: Agent,
        /// As it was received; [`aaep_types::LenientEvent`] reads it.
        json: Arc<str>,
        /// Whether it may not wait (T28).
        critical: bool,
    },
    /// A request waits for the user.
    Asked(Arc<Request>),
    /// A request no longer waits.
    Settled {
        /// Which.
        request: Arc<Request>,
        /// What became of it.
        outcome: RequestOutcome,
        /// Whether [`Notification::Asked`] was told for it before: otherwise there is nothing to take
        /// back.
        announced: bool,
    },
    /// Text of the agent's answer, up to a boundary at which it can be said (T19).
    Text {
        /// Whose.
        agent: Agent,
        /// In which session.
        session_id: Arc<str>,
        /// In which output.
        output_id: Arc<str>,
        /// The text since the last boundary.
        text: String,
        /// Whether the output ends with it.
        ends: bool,
        /// Whether text before it is missing.
        after_gap: bool,
    },
    /// Something is not told, and the user should know.
    Silence {
        /// Whose.
        agent: Agent,
        /// Why.
        why: Silence,
        /// How many events; 0 when nobody can say (a hub that was restarted skips numbers).
        count: u64,
    },
    /// A session is over, and nobody said how it ended: it was not spoken of when the hub told how
    /// things stand (I32).
    Over {
        /// Whose.
        agent: Agent,
        /// Which.
        session_id: Arc<str>,
    },
    /// The connection to a hub is there (again).
    Connected {
        /// The hub's name as the user knows it.
        hub: Arc<str>,
        /// Whether it was there before.
        again: bool,
        /// Whether replies from here count.
        may_reply: bool,
        /// Whether it is who it says, where somebody has looked.
        identity: Option<Identity>,
    },
    /// What became of a PIN that was typed, here or elsewhere.
    Presence {
        /// The hub's name as the user knows it.
        hub: Arc<str>,
        /// What happened.
        state: PresenceWord,
        /// For how long answers count from here, or how long to wait before another try.
        seconds: u64,
        /// How many wrong ones came since the last right one.
        failures: u64,
    },
    /// The connection to a hub is lost; it is tried again.
    Lost {
        /// The hub's name as the user knows it.
        hub: Arc<str>,
        /// What went wrong, in our words.
        why: Arc<str>,
    },
}

/// Whether a hub or producer is who it says, as its signed manifest shows (§5.10). One whose signature
/// does not hold, or whose key has changed, is not listened to at all.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Identity {
    /// It does not sign its manifest.
    Unsigned,
    /// It signs, and was not known: its key is remembered from now on.
    New {
        /// Who it says it is.
        agent_id: Arc<str>,
        /// The fingerprint of its key.
        key: Arc<str>,
    },
    /// It signs with the key that is known or listed.
    Verified {
        /// Who it is.
        agent_id: Arc<str>,
        /// The fingerprint of its key.
        key: Arc<str>,
    },
}

/// Why something is not told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Silence {
    /// It was lost on the way: the numbers have a hole.
    Missing,
    /// There was more than anybody can hear (S3).
    TooMuch,
    /// It could not be understood at all (E27).
    Unreadable,
}
