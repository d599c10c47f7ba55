//! What goes in and what comes out.

use aaep_shaping::ShapeInfo;
use aaep_types::json::Canonical;
use aaep_types::{
    DescribedBy, EventKind, LanguageTag, SessionId, SubscriptionId, ToolCallId, Urgency,
};
use std::sync::Arc;

use crate::agent_event::AgentEvent;
use crate::ids::{Digest, EventNumber, RequestId};
use crate::message::SubscriberMessage;
use crate::principal::Principal;
use crate::question::AgentQuestion;
use crate::record::{Erasure, Outcome};

/// Something that happened outside.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Input<'a> {
    /// An agent begins a session.
    Open(Open<'a>),
    /// An agent emits an event.
    Emit {
        /// Who.
        agent: &'a Principal,
        /// In which session.
        session: SessionId,
        /// The event, read before it came here.
        event: &'a AgentEvent,
        /// What a tool that is announced is called with, if its agent says; nobody hears it.
        arguments: Option<&'a Canonical>,
    },
    /// An agent asks.
    Ask(Ask<'a>),
    /// An agent no longer needs an answer.
    Withdraw {
        /// Who.
        agent: &'a Principal,
        /// Which request.
        request: RequestId,
    },
    /// An agent is about to run what was accepted.
    Invoke {
        /// Who.
        agent: &'a Principal,
        /// Which request.
        request: RequestId,
        /// The arguments it means to run, to be compared with those that were confirmed.
        arguments: Option<&'a Canonical>,
    },
    /// An agent is still there.
    Touch {
        /// Who.
        agent: &'a Principal,
        /// In which session.
        session: SessionId,
    },
    /// An agent speaks under an `agent_id` of its own in a session that another agent opened. From now
    /// on the id is its own, also after a restart.
    Claim {
        /// Who.
        agent: &'a Principal,
        /// The id.
        id: &'a str,
    },
    /// Somebody who runs the producer does something that is to be in the audit.
    Administer {
        /// Who.
        by: &'a str,
        /// What is done, in a word.
        act: &'a str,
        /// To what.
        what: &'a str,
        /// Who has it from now on, where somebody does.
        to: &'a str,
    },
    /// Somebody who runs the producer ends a session.
    EndSession {
        /// Who.
        by: &'a Principal,
        /// Which.
        session: SessionId,
    },
    /// What still has to follow in a session, by the profile in force; kept for a restart. Whether
    /// anything can be kept is asked before, with [`Engine::needs_journal`](crate::Engine::needs_journal).
    Owe {
        /// The session.
        session: SessionId,
        /// The ids of the rules that ask for it; none if nothing is owed any more.
        rules: Vec<Arc<str>>,
    },
    /// These records are not needed any more, and count as erased once this is durable. The caller made
    /// sure of the first: every session in them ended more than a day ago.
    Erase {
        /// Why.
        why: Erasure,
        /// The operator's words; empty for none. They stay, so they never say whose data it was.
        note: Arc<str>,
        /// The first and the last of each run, in order and apart from each other.
        runs: Vec<(u64, u64)>,
    },
    /// A message of a subscriber: a reply, or one of our extension messages.
    Message {
        /// Who sent it, as the transport found out.
        peer: &'a Principal,
        /// The message, read before it came here.
        message: &'a SubscriberMessage,
        /// Names the call, so that its answer can be told.
        call: u64,
    },
    /// A subscription came to be; the handshake is done.
    Joined {
        /// Whose it is.
        peer: &'a Principal,
        /// Its id.
        subscription: SubscriptionId,
        /// Whether it may answer confirmations.
        confirms: bool,
        /// Whether it may answer clarifications.
        clarifies: bool,
    },
    /// A subscription lost its connection.
    Lost {
        /// Which.
        subscription: SubscriptionId,
    },
    /// A subscription was closed.
    Left {
        /// Which.
        subscription: SubscriptionId,
    },
    /// Every record up to this number is durable.
    Persisted {
        /// The number.
        number: u64,
    },
    /// The journal cannot be written now.
    JournalFailed,
    /// The journal can be written again. Records that it did not take are to be appended first, in
    /// their order: recovery refuses a gap in their numbers.
    JournalWorks,
    /// The hub is about to stop: nothing new begins, what waits can still be answered (I23).
    Drain,
    /// Time passed.
    Tick,
}

/// A session to begin.
#[derive(Clone, Debug)]
pub struct Open<'a> {
    /// Who.
    pub agent: &'a Principal,
    /// The producer object of its events, as JSON.
    pub producer: &'a str,
    /// What it is about, in a sentence.
    pub summary: &'a str,
    /// The language of its texts.
    pub language: LanguageTag<'a>,
    /// How long the agent may stay silent before the session counts as failed.
    pub lease_seconds: u64,
    /// What else its first event says: a JSON object, or nothing.
    pub payload: &'a str,
}

/// A request to make.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// Who.
    pub agent: &'a Principal,
    /// In which session.
    pub session: SessionId,
    /// What, read before the engine was called.
    pub question: &'a AgentQuestion,
    /// Whose words the question's are.
    pub described_by: DescribedBy,
}

/// The immediate answer to an input.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Handled {
    /// Done.
    Done,
    /// The message was taken. Its sender sends too much, so the answer comes later, with
    /// [`Output::Noted`], whatever became of the message (decision D40).
    Held,
    /// The session that was opened.
    Session(SessionId),
    /// The event that was emitted.
    Emitted {
        /// Its number in the session.
        number: u64,
        /// The number in its id.
        event: EventNumber,
    },
    /// The request that now waits, or that waited already.
    Waiting {
        /// Names it.
        request: RequestId,
        /// What consent will be bound to.
        digest: Digest,
        /// Whether the same had been asked before and still waits.
        again: bool,
    },
}

/// Something to be done outside, in this order.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Output {
    /// Append this record to the journal; say [`Input::Persisted`] when it is durable.
    Append {
        /// Its number; they follow each other.
        number: u64,
        /// The record.
        bytes: Vec<u8>,
    },
    /// Tell everybody who may hear it.
    Event(Emitted),
    /// Tell the agent what became of its request.
    Decided {
        /// Which.
        request: RequestId,
        /// What became of it.
        outcome: Outcome,
        /// Whether the action may run.
        runs: bool,
        /// Who or what decided.
        by: Arc<str>,
        /// The answer to a question, as JSON.
        response: Option<Arc<str>>,
    },
    /// Hand the action back to the agent: it may run now, once.
    Granted {
        /// The request that was accepted.
        request: RequestId,
        /// The call under which it runs.
        call: ToolCallId,
        /// The arguments that were confirmed; run these.
        arguments: Arc<str>,
    },
    /// The sender of a message gets its answer, the same for every message (decision D5).
    Noted {
        /// The call.
        call: u64,
    },
    /// The session is over; whatever the agent still does, it does for nobody.
    Stopped {
        /// Which.
        session: SessionId,
        /// Whether its user stopped it.
        by_user: bool,
    },
}

/// An event on its way to subscribers.
#[derive(Clone, Debug, PartialEq)]
pub struct Emitted {
    /// Its session.
    pub session: SessionId,
    /// Whose session it is.
    pub user: Arc<str>,
    /// The name of the agent that opened it.
    pub agent: Arc<str>,
    /// Its place in the session.
    pub number: u64,
    /// The number in its id.
    pub event: EventNumber,
    /// Which of the twelve; `None` for an extension's.
    pub kind: Option<EventKind>,
    /// How soon it has to be heard.
    pub urgency: Urgency,
    /// The request that this event resolves or shows, if any.
    pub about: Option<RequestId>,
    /// The event that asked, if this one says that the question is settled.
    pub resolves_event: Option<EventNumber>,
    /// What shaping needs to know of it, so that it need not read the event again.
    pub shape: Option<Box<ShapeInfo>>,
    /// The event itself.
    pub json: Arc<str>,
}
