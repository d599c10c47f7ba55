//! What goes into an inbox, and what comes out of it besides notifications.

use std::sync::Arc;

use crate::notification::Identity;

/// Names a connection to a hub or a producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Connection(pub(super) u32);

impl Connection {
    /// Its place in the order of [`super::Inbox::add`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Names a message that is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub(super) u64);

/// What happens to a connection.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum InboxInput<'a> {
    /// A message came: an event, or an answer to the handshake.
    Message {
        /// By which connection.
        connection: Connection,
        /// The message.
        bytes: &'a [u8],
    },
    /// A message came that was too long to be taken.
    TooLong {
        /// By which connection.
        connection: Connection,
    },
    /// It was looked at whether the other side is who it says; told with the next connection.
    Identified {
        /// By which connection.
        connection: Connection,
        /// What was found.
        identity: &'a Identity,
    },
    /// Events flow from now on, after a subscription was accepted or taken up again.
    Attached {
        /// By which connection.
        connection: Connection,
    },
    /// The same, and what comes first is how things stand: whatever is not spoken of is over (D28).
    AttachedAnew {
        /// By which connection.
        connection: Connection,
    },
    /// Events flow from now on, without a handshake (D4).
    AttachedBare {
        /// By which connection.
        connection: Connection,
    },
    /// The connection is lost, or could not be made.
    Lost {
        /// Which.
        connection: Connection,
        /// Why, in our words.
        why: &'a str,
    },
    /// The hub does not know the subscription any more.
    Forgotten {
        /// By which connection.
        connection: Connection,
    },
    /// What the hub's clock says just now.
    ServerTime {
        /// By which connection.
        connection: Connection,
        /// Milliseconds of Unix time.
        unix_ms: i64,
    },
    /// A message was sent.
    Sent(Ticket),
    /// A message was not sent, or nobody knows whether it was.
    NotSent {
        /// Which.
        ticket: Ticket,
        /// Whether it may have arrived all the same.
        perhaps: bool,
    },
    /// Time passes.
    Time,
}

/// What a message that is to be sent is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// An answer, a wish for more time, or a stop.
    Reply,
    /// Other terms. The answer to it comes in as a message.
    Renegotiate,
    /// The person's PIN. The answer to it comes in as a message.
    Unlock,
    /// Goodbye.
    Close,
}

/// A message to be sent.
#[derive(Clone, Debug)]
pub struct Outgoing {
    /// By which connection.
    pub connection: Connection,
    /// To report with [`InboxInput::Sent`] or [`InboxInput::NotSent`].
    pub ticket: Ticket,
    /// What it is about.
    pub purpose: Purpose,
    /// The message.
    pub json: String,
}

/// Something for the log (E27, S12).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The connection's name.
    pub hub: Arc<str>,
    /// The rule that was broken.
    pub rule: &'static str,
    /// What happened, fit for one line.
    pub text: String,
}
