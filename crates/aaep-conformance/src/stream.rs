//! Whole streams, judged by the rules that span events.
//!
//! A [`Checker`] is given the messages of **one subscriber's view** in the order in which they
//! arrived and says what only the whole can show: a session that never ends, a tool that never
//! comes back, an irreversible call that nobody accepted. It is a reading of the rules of its own
//! and shares nothing with a producer, so that it can judge one.
//!
//! # What it takes as evidence
//!
//! * An **accept** is a `confirmation.reply` in the stream, in time, for a request that is open; or
//!   a state change from `awaiting_input` to `calling_tool` while a confirmation is open. A reply
//!   and the state change that reports it count once. An irreversible call uses one accept up.
//! * **Which request** a state change is about is said by our extension `outcome` (decision D30).
//!   Without it, a request that was answered comes first, then the oldest. Where several are open
//!   and nothing tells them apart, findings about them are notes.
//! * **Time** is what events say: a deadline has passed when a later event of the session is
//!   stamped after it. A producer gets [`RESOLUTION_GRACE_SECONDS`] to show what came of it.
//! * **Duplicates** (same event id) are dropped. The first of them counts.
//! * **Secrets** are known by their form ([`aaep_types::secret`]), in every text of an event and
//!   across the chunks of an output: card numbers, keys, tokens and passwords are errors where the
//!   form is unmistakable, and warnings where it is a guess.
//!
//! # How sure it is
//!
//! Filters and shaping leave holes (decision D15), a capture may begin or end anywhere, and a reply
//! may have come from somebody else. So:
//!
//! * Where a session was joined late, where its numbers show a hole, or where a bound of ours was
//!   reached, what a lost event could explain is a [`Weight::Note`]. A session without numbers shows
//!   no holes and is believed.
//! * That something did *not* happen is a note, and that something contradicts a reply is a
//!   [`Weight::Warning`], unless [`Options::complete`] says that nothing was left out.
//! * One cause gives one finding: after a violation the checker goes on from what it saw.
//!
//! The code map: `checker` tells messages and sessions apart, `said` is the only place that looks
//! for members by name, `session` leads each event past `order` (numbers, times), `states`, `tools`,
//! `outputs` and `requests` (consent); `secrets` looks for what nobody should hear; `memory` forgets.

mod checker;
mod memory;
mod order;
mod outputs;
mod report;
mod requests;
mod said;
mod secrets;
mod session;
mod states;
#[cfg(test)]
mod tests;
mod tools;

use std::fmt;

use aaep_types::Rule;

pub use checker::Checker;
pub use outputs::MAX_OUTPUTS;
pub use requests::{MAX_REQUESTS, RESOLUTION_GRACE_SECONDS};
pub use tools::{MAX_CALL_IDS, MAX_OPEN_TOOLS};

/// How a stream is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Nothing was left out: every event of each session is here, from start to end, unfiltered
    /// and unshaped, and every reply that is here reached the producer.
    pub complete: bool,
    /// How many sessions are followed at a time; further ones are not judged, and a note says so.
    pub max_sessions: usize,
    /// How many event ids, ended sessions and reply tokens are remembered, of each.
    pub max_remembered: usize,
}

impl Options {
    /// Sessions followed at a time, unless told otherwise.
    pub const MAX_SESSIONS: usize = 1024;
    /// Ids remembered of each kind, unless told otherwise.
    pub const MAX_REMEMBERED: usize = 65_536;
}

impl Default for Options {
    /// A capture that may begin or end anywhere.
    fn default() -> Self {
        Self {
            complete: false,
            max_sessions: Self::MAX_SESSIONS,
            max_remembered: Self::MAX_REMEMBERED,
        }
    }
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Weight {
    /// A MUST is broken.
    Error,
    /// A SHOULD is not followed, or a MUST probably not.
    Warning,
    /// Worth knowing; a lost message or a bound of ours could explain it.
    Note,
}

impl fmt::Display for Weight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Weight::Error => "error",
            Weight::Warning => "warning",
            Weight::Note => "note",
        })
    }
}

/// One thing that the stream shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub weight: Weight,
    /// Where: the place that the caller gave to the message.
    pub line: u64,
    /// The event it was found at; shortened if it is absurdly long.
    pub event_id: Option<String>,
    /// The session it concerns; shortened if it is absurdly long.
    pub session_id: Option<String>,
    /// The rule it is about.
    pub rule: Rule,
    /// What happened and what should have happened. It never repeats a reply token.
    pub text: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { weight, line, rule, text, .. } = self;
        write!(f, "line {line}: {weight}: {text} ({}, §{})", rule.id, rule.section)
    }
}
