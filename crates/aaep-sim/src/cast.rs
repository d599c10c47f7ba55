//! Who takes part, and what may be asked. Made once and shared by every schedule.

use aaep_engine::{Offer, Principal, Role};
use aaep_types::{LanguageTag, Presence};

/// Places in [`Cast::everybody`].
pub(crate) const ANN_PHONE: usize = 0;
pub(crate) const ANN_LAPTOP: usize = 1;
pub(crate) const BOB_PHONE: usize = 2;
pub(crate) const AUDITOR: usize = 3;
pub(crate) const BANK: usize = 4;
pub(crate) const COOK: usize = 5;
/// Hears everything and does nothing, so whatever becomes of its subscription is its own affair.
pub(crate) const SLEEPER: usize = 6;
/// Those who do something: anybody but the sleeper.
pub(crate) const ACTORS: usize = 6;
/// Those who listen; the bank's agent does in the hope of answering its own questions.
pub(crate) const LISTENERS: [usize; 5] = [ANN_PHONE, ANN_LAPTOP, BOB_PHONE, AUDITOR, BANK];

/// Everybody in the world.
pub(crate) struct Cast {
    pub(crate) everybody: [Principal; 7],
    /// What the hub offers.
    pub(crate) offer: Offer,
}

impl Cast {
    /// What they are called.
    pub(crate) const NAMES: [&'static str; 7] =
        ["ann's phone", "ann's laptop", "bob's phone", "audit", "bank", "cook", "sleeper"];

    pub(crate) fn new() -> Self {
        let roles = [
            (Role::AccessibilityConsumer, "ann"),
            (Role::AccessibilityConsumer, "ann"),
            (Role::AccessibilityConsumer, "bob"),
            (Role::Auditor, "ann"),
            (Role::Agent, "ann"),
            (Role::Agent, "bob"),
            (Role::Auditor, "ann"),
        ];
        Self {
            everybody: std::array::from_fn(|index| {
                let (role, user) = roles[index];
                Principal::new(Self::NAMES[index], role, user)
            }),
            offer: Offer {
                producer: r#"{"agent_id":"hub"}"#.into(),
                languages: ["en", "de"].iter().flat_map(|tag| LanguageTag::parse(*tag)).collect(),
                extensions: Vec::new(),
                manifest_uri: None,
                signed_manifest: None,
            },
        }
    }
}

/// Whose device or agent it is: 0 is Ann, 1 is Bob.
pub(crate) fn user_of(principal: usize) -> usize {
    usize::from(matches!(principal, BOB_PHONE | COOK))
}

/// The oracle's own reading of decision D3: people answer, each for themselves.
pub(crate) fn may_answer(principal: usize, user: usize) -> bool {
    matches!(principal, ANN_PHONE | ANN_LAPTOP | BOB_PHONE) && user_of(principal) == user
}

/// The oracle's own reading of S6: auditors hear everything, others what is their user's.
pub(crate) fn may_hear(principal: usize, user: usize) -> bool {
    matches!(principal, AUDITOR | SLEEPER) || user_of(principal) == user
}

/// Agents are sent no reply tokens (S6).
pub(crate) fn is_agent(principal: usize) -> bool {
    matches!(principal, BANK | COOK)
}

/// Agents and auditors never answer, whatever they claim.
pub(crate) fn never_answers(principal: usize) -> bool {
    matches!(principal, AUDITOR | BANK | COOK | SLEEPER)
}

/// Something that an agent may ask.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) confirmation: bool,
    pub(crate) arguments: &'static str,
    pub(crate) payload: &'static str,
    pub(crate) timeout_millis: u64,
    pub(crate) default_accept: bool,
    pub(crate) irreversible: bool,
}

impl Question {
    /// The presence that a yes requires (I34).
    pub(crate) fn needs(&self) -> Presence {
        match self.arguments {
            r#"{"amount":"500"}"# => Presence::Pin,
            r#"{"amount":"3"}"# => Presence::Listener,
            _ => Presence::None,
        }
    }

    /// The oracle's own reading of D36: a space makes no other action.
    pub(crate) fn is_like(&self, other: &Question) -> bool {
        let bare = |question: &Question| question.arguments.replace(' ', "");
        self.confirmation == other.confirmation && bare(self) == bare(other)
    }
}

pub(crate) const TOOL: &str = "transfer_funds";

macro_rules! asks {
    ($arguments:literal, $seconds:literal, $default:literal, $flags:literal, $irreversible:literal) => {
        Question {
            confirmation: true,
            arguments: $arguments,
            payload: concat!(
                r#"{"action":"Transfer "#,
                $seconds,
                r#"","consequence":"It leaves at once.","summary_normal":"Transfer?","timeout_seconds":"#,
                $seconds,
                r#","default_decision":""#,
                $default,
                r#"","#,
                $flags,
                "}"
            ),
            timeout_millis: $seconds * 1000,
            default_accept: matches!($default.as_bytes(), b"accept"),
            irreversible: $irreversible,
        }
    };
}

/// Two of them differ only in their words, and one only in a space: consent is bound to tool and
/// arguments, however they are written.
pub(crate) const QUESTIONS: [Question; 8] = [
    asks!(r#"{"amount":"5"}"#, 300, "reject", r#""risk_level":"high","irreversible":true"#, true),
    asks!(r#"{"amount":"5"}"#, 40, "reject", r#""risk_level":"high","irreversible":true"#, true),
    asks!(r#"{"amount":"500"}"#, 20, "reject", r#""risk_level":"medium""#, true),
    asks!(r#"{"amount": "5"}"#, 90, "reject", r#""reversibility":"irreversible""#, true),
    asks!(r#"{"amount":"1"}"#, 30, "accept", r#""risk_level":"low","irreversible":false"#, false),
    asks!(r#"{"amount":"2"}"#, 120, "reject", r#""risk_level":"low","irreversible":false"#, false),
    Question {
        confirmation: false,
        arguments: "",
        payload: r#"{"question":"Which account?","summary_normal":"Which account?","timeout_seconds":60}"#,
        timeout_millis: 60_000,
        default_accept: false,
        irreversible: false,
    },
    asks!(r#"{"amount":"3"}"#, 25, "accept", r#""risk_level":"low","irreversible":false"#, false),
];
