//! Any message: which kind it is, and whether it is valid.

use crate::Limits;
use crate::event::{self, Event};
use crate::handshake::{
    SubscriptionAccepted, SubscriptionClose, SubscriptionRejected, SubscriptionRenegotiate,
    SubscriptionRequest,
};
use crate::json::{JsonFault, JsonFaultKind, Members};
use crate::manifest::Manifest;
use crate::ours::{MoreTime, StopSession};
use crate::presence::{PresenceState, Unlock};
use crate::reply::{ClarificationReply, ConfirmationReply};
use crate::report::{Invalid, Problem, Reading, Report};
use crate::rule;
use crate::version::Version;
use crate::wire::read_members;

/// A valid message of any kind.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Message<'a> {
    /// An event of a producer.
    Event(Box<Event<'a>>),
    /// A subscriber introduces itself.
    Request(Box<SubscriptionRequest<'a>>),
    /// A producer agrees.
    Accepted(Box<SubscriptionAccepted<'a>>),
    /// A producer refuses.
    Rejected(SubscriptionRejected<'a>),
    /// A subscriber wants other terms.
    Renegotiate(Box<SubscriptionRenegotiate<'a>>),
    /// One side ends it.
    Close(SubscriptionClose<'a>),
    /// The user decided.
    ConfirmationReply(ConfirmationReply<'a>),
    /// The user answered.
    ClarificationReply(ClarificationReply<'a>),
    /// The user asks for more time.
    MoreTime(MoreTime<'a>),
    /// The user stops the agent.
    StopSession(StopSession<'a>),
    /// The user types their PIN.
    Unlock(Unlock<'a>),
    /// The hub says what became of a PIN.
    PresenceState(PresenceState<'a>),
    /// A producer describes itself.
    Manifest(Box<Manifest<'a>>),
}

impl<'a> Message<'a> {
    /// Reads a message of any kind strictly.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Invalid> {
        Self::parse_with(bytes, &Limits::default())
    }

    /// The same with other limits.
    pub fn parse_with(bytes: &'a [u8], limits: &Limits) -> Result<Self, Invalid> {
        parse_as(bytes, limits, Reading::Wire, read)
    }
}

/// What a message's `type` says it is.
fn read<'a>(text: &'a str, members: Members<'a>, report: &mut Report) -> Option<Message<'a>> {
    let type_name = members.text("type");
    Some(match type_name.as_deref() {
        Some("subscription.request") => Message::Request(Box::new(read_members(members, report)?)),
        Some("subscription.accepted") => {
            Message::Accepted(Box::new(read_members(members, report)?))
        }
        Some("subscription.rejected") => Message::Rejected(read_members(members, report)?),
        Some("subscription.renegotiate") => {
            Message::Renegotiate(Box::new(read_members(members, report)?))
        }
        Some("subscription.close") => Message::Close(read_members(members, report)?),
        Some("confirmation.reply") => Message::ConfirmationReply(read_members(members, report)?),
        Some("clarification.reply") => Message::ClarificationReply(read_members(members, report)?),
        Some("timing:extend") => Message::MoreTime(read_members(members, report)?),
        Some("control:cancel") => Message::StopSession(read_members(members, report)?),
        Some("presence:unlock") => Message::Unlock(read_members(members, report)?),
        Some("presence:state") => Message::PresenceState(read_members(members, report)?),
        Some("aaep:producer.manifest") => {
            Message::Manifest(Box::new(read_members(members, report)?))
        }
        _ => Message::Event(Box::new(event::read(text, members, report)?)),
    })
}

/// Checks a message of any kind and returns every problem, warnings included; none for a message
/// that is as it should be.
///
/// A first pass only decides; a message without any problem costs no more than that.
pub fn validate(bytes: &[u8]) -> Vec<Problem> {
    validate_with(bytes, &Limits::default())
}

/// The same with other limits.
pub fn validate_with(bytes: &[u8], limits: &Limits) -> Vec<Problem> {
    let mut report = Report::deciding(Reading::Wire);
    let _ = run(bytes, limits, &mut report, read);
    if report.is_clean() {
        return Vec::new();
    }
    explain(bytes, limits, Reading::Wire, read)
}

/// Checks a message of any kind for errors only: `true` means that every MUST holds.
pub fn is_valid(bytes: &[u8]) -> bool {
    let mut report = Report::deciding(Reading::Wire);
    let _ = run(bytes, &Limits::default(), &mut report, read);
    !report.has_errors()
}

type ReadFn<'a, T> = fn(&'a str, Members<'a>, &mut Report) -> Option<T>;

/// Reads strictly: the value, or every problem.
pub(crate) fn parse_as<'a, T>(
    bytes: &'a [u8],
    limits: &Limits,
    reading: Reading,
    read: ReadFn<'a, T>,
) -> Result<T, Invalid> {
    let mut report = Report::parsing(reading);
    match run(bytes, limits, &mut report, read) {
        Some(value) if !report.has_errors() => Ok(value),
        _ => Err(Invalid { problems: explain(bytes, limits, reading, read) }),
    }
}

fn explain<'a, T>(
    bytes: &'a [u8],
    limits: &Limits,
    reading: Reading,
    read: ReadFn<'a, T>,
) -> Vec<Problem> {
    let mut report = Report::explaining(reading);
    let _ = run(bytes, limits, &mut report, read);
    report.into_problems()
}

/// One pass over the bytes; the report says whether anything was wrong.
fn run<'a, T>(
    bytes: &'a [u8],
    limits: &Limits,
    report: &mut Report,
    read: ReadFn<'a, T>,
) -> Option<T> {
    // enforces: E21
    if bytes.len() > limits.max_bytes {
        report.fault("", &JsonFault { offset: limits.max_bytes, kind: JsonFaultKind::TooLarge });
        return None;
    }
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => {
            let sound = std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default();
            report.fault(
                sound,
                &JsonFault { offset: error.valid_up_to(), kind: JsonFaultKind::Utf8 },
            );
            return None;
        }
    };
    match Members::whole(text, limits.max_depth) {
        Ok(Some(members)) => {
            for fault in members.faults() {
                report.fault(text, fault);
            }
            let version = members.text("aaep_version").map(Version::parse);
            report.set_newer(matches!(version, Some(Ok(version)) if version.is_newer_minor()));
            read(text, members, report)
        }
        Ok(None) => {
            report.error(
                rule::E1,
                format_args!("A message is one JSON object; this is something else."),
            );
            None
        }
        Err(fault) => {
            report.fault(text, &fault);
            None
        }
    }
}
