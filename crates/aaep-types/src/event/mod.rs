//! The twelve core events and extension events (§4, §7.4).
//!
//! A new event type is one description here and one row in the table below.

mod activity;
mod awaiting_clarification;
mod awaiting_confirmation;
mod edit;
mod handoff_requested;
mod output_streaming;
mod read;
mod session;
mod tool;

pub use activity::{Progress, ProgressUpdated, StateChanged};
pub use awaiting_clarification::{AwaitingClarification, Choice};
pub use awaiting_confirmation::{AwaitingConfirmation, ConfirmationParts};
pub use edit::{Edit, Piece, any_variant};
pub use handoff_requested::HandoffRequested;
pub use output_streaming::{Chunk, OutputStreaming};
pub use session::{SessionCancelled, SessionCompleted, SessionErrored, SessionStarted};
pub use tool::{ToolCompleted, ToolInvoked};

use crate::envelope::{Envelope, Extensions};
use crate::json::{Member, Members, Writer};
use crate::limits::Limits;
use crate::message;
use crate::report::{Invalid, Reading, Report};
use crate::text::{Summary, Terse};
use crate::vocabulary::Urgency;
use crate::wire::{MemberInfo, Object, Others, Unknown, object};

pub(crate) use read::read;

object! {
    /// What an extension's own event says (§7.4): the summaries by which anybody can announce it;
    /// the rest means something to those who know the extension, and stays as it is.
    pub struct ExtensionPayload, fields ExtensionFields, unknown(Unknown::Keep) {
        /// In a word or two.
        optional summary_terse: Terse<'a>, X4;
        /// In a sentence.
        optional summary_normal: Summary<'a>, X4;
        /// In full.
        optional summary_detailed: Summary<'a>, X4;
    }
}

/// The table of core events: variant, name, recommended urgency (§3.3.2).
macro_rules! core_events {
    ($($(#[doc = $doc:literal])* $variant:ident, $name:literal, $urgency:ident;)*) => {
        /// The twelve types of the protocol's own vocabulary.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum EventKind { $( $(#[doc = $doc])* $variant, )* }

        impl EventKind {
            /// All twelve.
            pub const ALL: [EventKind; 12] = [$(EventKind::$variant),*];

            /// Takes a name in its compact form.
            pub fn parse(name: &str) -> Option<Self> {
                match name {
                    $(concat!("aaep:", $name) => Some(EventKind::$variant),)*
                    _ => None,
                }
            }

            /// Takes a name in any of the forms that mean the same (E4): compact, or an address.
            pub fn named(name: &str) -> Option<Self> {
                Self::parse(&crate::type_name::core_name(name)?)
            }

            /// The compact name, such as `aaep:agent.session.started`.
            pub fn as_str(self) -> &'static str {
                match self { $(EventKind::$variant => concat!("aaep:", $name),)* }
            }

            /// The urgency it usually has; where that is critical, it always is.
            pub fn usual_urgency(self) -> Urgency {
                match self { $(EventKind::$variant => Urgency::$urgency,)* }
            }

            /// In a sentence: what it tells.
            pub fn doc(self) -> &'static str {
                match self { $(EventKind::$variant => concat!($($doc),*),)* }
            }

            /// What its payload may hold.
            pub(crate) fn members(self) -> &'static [MemberInfo] {
                match self { $(EventKind::$variant => <$variant<'static> as Object>::MEMBERS,)* }
            }

            pub(crate) fn payload_schema(self) -> serde_json::Value {
                match self {
                    $(EventKind::$variant => crate::wire::object_schema::<$variant<'static>>(),)*
                }
            }
        }

        /// What an event says beyond its envelope.
        #[derive(Clone, Debug, PartialEq)]
        #[non_exhaustive]
        pub enum Payload<'a> {
            $( $(#[doc = $doc])* $variant($variant<'a>), )*
            /// An extension's own event.
            Extension(ExtensionPayload<'a>),
        }

        impl<'a> Payload<'a> {
            /// Which of the twelve it is.
            pub fn kind(&self) -> Option<EventKind> {
                match self {
                    $(Payload::$variant(_) => Some(EventKind::$variant),)*
                    Payload::Extension(_) => None,
                }
            }

            /// Reads what one of our own events is to say, given as the members of its payload, by
            /// the rules that hold at our source; `None` if it breaks any. The members are those of
            /// an object without [faults](Members::faults). To learn what is wrong, read the whole
            /// event with [`Event::parse_ours`].
            pub fn read_ours(
                kind: EventKind,
                members: impl IntoIterator<Item = Member<'a>>,
            ) -> Option<Self> {
                match kind {
                    $(EventKind::$variant => read::read_alone::<$variant<'a>>(kind, members),)*
                }
            }

            fn write_members(&self, out: &mut Writer) {
                match self {
                    $(Payload::$variant(payload) => payload.write_members(out),)*
                    Payload::Extension(payload) => payload.write_members(out),
                }
            }
        }

        $(
            impl<'a> From<$variant<'a>> for Payload<'a> {
                fn from(payload: $variant<'a>) -> Self {
                    Payload::$variant(payload)
                }
            }
        )*

        /// Reads an event whose type is known.
        fn read_kind<'a>(
            kind: Option<EventKind>,
            text: &'a str,
            members: Members<'a>,
            report: &mut Report,
        ) -> Option<Event<'a>> {
            match kind {
                $(Some(EventKind::$variant) => {
                    read::read_payload::<$variant<'a>>(kind, text, members, report)
                })*
                None => read::read_payload::<ExtensionPayload<'a>>(kind, text, members, report),
            }
        }
    };
}

core_events! {
    /// A session began.
    SessionStarted, "agent.session.started", Normal;
    /// A session ended well.
    SessionCompleted, "agent.session.completed", Normal;
    /// A session ended with an error.
    SessionErrored, "agent.session.errored", Critical;
    /// A session was given up.
    SessionCancelled, "agent.session.cancelled", Normal;
    /// The agent does something else now.
    StateChanged, "agent.state.changed", Background;
    /// A long task moved on.
    ProgressUpdated, "agent.progress.updated", Background;
    /// A tool is about to run.
    ToolInvoked, "agent.tool.invoked", Normal;
    /// A tool came back.
    ToolCompleted, "agent.tool.completed", Normal;
    /// A piece of the answer.
    OutputStreaming, "agent.output.streaming", Normal;
    /// The agent asks for consent.
    AwaitingConfirmation, "agent.awaiting.confirmation", Critical;
    /// The agent asks for an answer.
    AwaitingClarification, "agent.awaiting.clarification", Critical;
    /// The task is handed to a person or another agent.
    HandoffRequested, "agent.handoff.requested", Critical;
}

impl EventKind {
    /// Whether it is always critical.
    pub fn is_critical(self) -> bool {
        self.usual_urgency() == Urgency::Critical
    }

    /// Whether it ends a session.
    pub fn is_terminal(self) -> bool {
        use EventKind::{SessionCancelled, SessionCompleted, SessionErrored};
        matches!(self, SessionCompleted | SessionErrored | SessionCancelled)
    }

    /// The ways in which its name may be written (§3.2.2); the first is preferred.
    pub fn spellings(self) -> [String; 3] {
        let compact = self.as_str();
        let local = compact.trim_start_matches("aaep:");
        [
            compact.to_owned(),
            format!("https://aaep-protocol.org/types/{local}"),
            format!("https://aaep-protocol.org/vocab/v1#{local}"),
        ]
    }
}

/// A valid event.
#[derive(Clone, Debug, PartialEq)]
pub struct Event<'a> {
    envelope: Envelope<'a>,
    payload: Payload<'a>,
    extensions: Extensions<'a>,
    other: Others<'a>,
    text: &'a str,
}

impl<'a> Event<'a> {
    /// Reads an event strictly: what comes out is valid, what does not is explained in full.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Invalid> {
        Self::parse_with(bytes, &Limits::default())
    }

    /// The same with other limits.
    pub fn parse_with(bytes: &'a [u8], limits: &Limits) -> Result<Self, Invalid> {
        message::parse_as(bytes, limits, Reading::Wire, read)
    }

    /// Writes one of our own events (§3.6: recommended order, compact, one line).
    ///
    /// It is read back before it is let go, by the rules that hold at our source: what this returns
    /// is valid, and nothing that the decisions refuse leaves (deceptive text, an unsafe default).
    pub fn emit(
        envelope: &Envelope<'_>,
        payload: &Payload<'_>,
        extensions: &Extensions<'_>,
    ) -> Result<String, Invalid> {
        let text = write(envelope, payload, &Vec::new(), extensions);
        Event::parse_ours(text.as_bytes())?;
        Ok(text)
    }

    /// Reads one of our own events before it leaves, by the rules that hold at our source.
    pub fn parse_ours(bytes: &'a [u8]) -> Result<Self, Invalid> {
        message::parse_as(bytes, &Limits::default(), Reading::Source, read)
    }

    /// What every event carries.
    pub fn envelope(&self) -> &Envelope<'a> {
        &self.envelope
    }

    /// What this one says.
    pub fn payload(&self) -> &Payload<'a> {
        &self.payload
    }

    /// Which of the twelve it is; `None` for an extension's.
    pub fn kind(&self) -> Option<EventKind> {
        self.payload.kind()
    }

    /// How soon it has to be heard.
    pub fn urgency(&self) -> Urgency {
        self.envelope.urgency.unwrap_or(Urgency::Normal)
    }

    /// Members of extensions.
    pub fn extensions(&self) -> &Extensions<'a> {
        &self.extensions
    }

    /// Members at the top level that this version does not know, and language variants of texts.
    pub fn other(&self) -> &Others<'a> {
        &self.other
    }

    /// The event exactly as it was received; digests are taken over these bytes.
    pub fn as_json(&self) -> &'a str {
        self.text
    }

    /// Writes the event anew, in the recommended order (§3.6); unknown members stay as they were.
    pub fn to_json(&self) -> String {
        write(&self.envelope, &self.payload, &self.other, &self.extensions)
    }
}

// enforces: E20
fn write(
    envelope: &Envelope<'_>,
    payload: &Payload<'_>,
    other: &Others<'_>,
    extensions: &Extensions<'_>,
) -> String {
    let mut out = Writer::new();
    out.open('{');
    envelope.write_members(&mut out);
    payload.write_members(&mut out);
    for (name, raw) in other {
        out.name(name);
        out.raw(*raw);
        out.comma();
    }
    if extensions.iter().next().is_some() {
        out.name("extensions");
        crate::wire::Wire::write(extensions, &mut out);
    }
    out.close('}');
    out.finish()
}
