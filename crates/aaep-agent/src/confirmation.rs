//! A request for consent, built so that it cannot break §6.4.1: silence never means yes to something
//! that cannot easily be taken back.

use std::marker::PhantomData;

use aaep_types::agent_api::AskUser;
use aaep_types::json::{Members, Raw};
use aaep_types::{Decision, EventKind, Reversibility, RiskLevel, rule};
use serde::Serialize;

use crate::body::{Body, TERSE_CHARS, raw_json};
use crate::error::Error;
use crate::words::{Words, without_secrets};

/// The shortest and the longest wait for an answer (T20).
const TIMEOUT_SECONDS: (u32, u32) = (1, 86_400);

mod sealed {
    pub trait Sealed {
        const KIND: aaep_types::Reversibility;
    }
}

/// How far an action can be taken back.
pub trait Kind: sealed::Sealed {}

/// An action that cannot be taken back.
#[derive(Debug)]
pub enum Irreversible {}

/// An action that can be taken back with some trouble.
#[derive(Debug)]
pub enum WithEffort {}

/// An action that is easily taken back.
#[derive(Debug)]
pub enum Reversible {}

macro_rules! kinds {
    ($($name:ident = $kind:ident;)*) => {$(
        impl sealed::Sealed for $name {
            const KIND: Reversibility = Reversibility::$kind;
        }
        impl Kind for $name {}
    )*};
}

kinds! {
    Irreversible = Irreversible;
    WithEffort = ReversibleWithEffort;
    Reversible = Reversible;
}

/// A request for consent to one action: which tool, what it will do, what comes of it.
///
/// ```
/// use aaep_agent::{Confirmation, RiskLevel};
///
/// let request = Confirmation::irreversible(
///     "transfer_funds",
///     "Transfer $500 from checking to savings.",
///     "It cannot be easily reversed.",
/// )
/// .risk(RiskLevel::High)
/// .arguments(&serde_json::json!({ "amount": "500.00", "currency": "USD" }))
/// .timeout_seconds(300);
/// # let _ = request;
/// ```
///
/// Silence means no. Only where an action is easily taken back can it mean yes: the method
/// [`accept_on_silence`](Confirmation::accept_on_silence) does not exist for others.
#[derive(Clone, Debug)]
#[must_use = "nothing is asked before it is parked"]
pub struct Confirmation<K: Kind> {
    parts: Parts,
    kind: PhantomData<fn() -> K>,
}

#[derive(Clone, Debug)]
pub(crate) struct Parts {
    tool: String,
    action: String,
    consequence: String,
    words: Option<Words>,
    risk: RiskLevel,
    reversibility: Reversibility,
    arguments: Option<Result<String, String>>,
    timeout_seconds: Option<u32>,
    default: Decision,
}

/// What is sent, and what is kept for the invocation.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) question: AskUser,
    pub(crate) tool: String,
    pub(crate) action: String,
    pub(crate) arguments: Option<String>,
}

impl Confirmation<Irreversible> {
    /// An action that cannot be taken back: which tool would run, what it will do, what comes of it.
    /// An unstated risk counts as high (D10).
    pub fn irreversible(
        tool: impl Into<String>,
        action: impl Into<String>,
        consequence: impl Into<String>,
    ) -> Self {
        Self::of(tool.into(), action.into(), consequence.into())
    }
}

impl Confirmation<WithEffort> {
    /// An action that can be taken back with some trouble.
    pub fn with_effort(
        tool: impl Into<String>,
        action: impl Into<String>,
        consequence: impl Into<String>,
    ) -> Self {
        Self::of(tool.into(), action.into(), consequence.into())
    }
}

impl Confirmation<Reversible> {
    /// An action that is easily taken back.
    pub fn reversible(
        tool: impl Into<String>,
        action: impl Into<String>,
        consequence: impl Into<String>,
    ) -> Self {
        Self::of(tool.into(), action.into(), consequence.into())
    }

    // enforces: C15, D10, D11
    /// Goes on if nobody answers in time. Only for a risk that is low or medium; say which.
    pub fn accept_on_silence(mut self) -> Self {
        self.parts.default = Decision::Accept;
        self
    }
}

impl<K: Kind> Confirmation<K> {
    fn of(tool: String, action: String, consequence: String) -> Self {
        let parts = Parts {
            tool,
            action,
            consequence,
            words: None,
            risk: RiskLevel::High,
            reversibility: K::KIND,
            arguments: None,
            timeout_seconds: None,
            default: Decision::Reject,
        };
        Self { parts, kind: PhantomData }
    }

    /// How much can go wrong.
    pub fn risk(mut self, risk: RiskLevel) -> Self {
        self.parts.risk = risk;
        self
    }

    /// The arguments with which the tool would run. Consent is bound to these bytes: anything else
    /// is refused when it is invoked. Carry amounts as strings, so that no number changes on its way.
    pub fn arguments(mut self, arguments: &(impl Serialize + ?Sized)) -> Self {
        let json = serde_json::to_string(arguments).map_err(|error| error.to_string());
        self.parts.arguments = Some(json);
        self
    }

    /// The arguments as JSON text.
    pub fn arguments_json(mut self, json: impl Into<String>) -> Self {
        self.parts.arguments = Some(one_value(json.into()));
        self
    }

    /// How long an answer is waited for, from a second to a day. By default as §6.4.2 recommends for
    /// this risk; people who need longer get longer.
    pub fn timeout_seconds(mut self, seconds: u32) -> Self {
        self.parts.timeout_seconds = Some(seconds);
        self
    }

    /// What is announced, where it should be something else than the action.
    pub fn words(mut self, words: impl Into<Words>) -> Self {
        self.parts.words = Some(words.into());
        self
    }

    pub(crate) fn tool(&self) -> &str {
        &self.parts.tool
    }

    pub(crate) fn wanted(self) -> Result<Wanted, Error> {
        self.parts.wanted()
    }
}

impl Parts {
    // enforces: C15, C17, T20
    fn wanted(self) -> Result<Wanted, Error> {
        let seconds = self.timeout_seconds.unwrap_or_else(|| usual_seconds(self.risk));
        let (least, most) = TIMEOUT_SECONDS;
        if !(least..=most).contains(&seconds) {
            let text = format!("Wait {least} to {most} seconds for an answer.");
            return Err(Error::misuse(rule::T20, text));
        }
        if self.default == Decision::Accept && self.risk == RiskLevel::High {
            let text = "Do not go on in silence where the risk is high or not stated.";
            return Err(Error::misuse(rule::C15, text));
        }
        let arguments = self.arguments.transpose().map_err(|why| {
            Error::misuse(rule::T12, format!("The arguments are no JSON: {why}."))
        })?;
        let irreversible = self.reversibility == Reversibility::Irreversible;
        let action = without_secrets(&self.action);
        let consequence = without_secrets(&self.consequence);
        let body = Body::new()
            .text("action", &action)
            .text("consequence", &consequence)
            .number("timeout_seconds", seconds.into())
            .text("default_decision", self.default.as_str())
            .text("risk_level", self.risk.as_str())
            .json("irreversible", if irreversible { "true" } else { "false" })
            .text("reversibility", self.reversibility.as_str());
        let body = match &self.words {
            Some(words) => body.words(words),
            None => {
                let both = format!("{action} {consequence}");
                let short = action.chars().count() <= TERSE_CHARS;
                let body = if short { body.text("summary_terse", &action) } else { body };
                let body = body.text("summary_normal", &action);
                // No secret goes on behind the end of a sentence.
                let apart = action.ends_with('.');
                if apart {
                    body.text("summary_detailed", &both)
                } else {
                    body.human("summary_detailed", &both)
                }
            }
        };
        let question = AskUser {
            kind: EventKind::AwaitingConfirmation,
            tool: self.tool.clone(),
            arguments: arguments.clone().unwrap_or_default(),
            payload: body.finish(),
        };
        Ok(Wanted { question, tool: self.tool, action: self.action, arguments })
    }
}

/// §6.4.2.
fn usual_seconds(risk: RiskLevel) -> u32 {
    match risk {
        RiskLevel::High => 300,
        RiskLevel::Medium => 120,
        RiskLevel::Low => 60,
    }
}

/// One JSON value and nothing else, as it stands.
pub(crate) fn one_value(json: String) -> Result<String, String> {
    let object = format!("{{\"arguments\":{json}}}");
    let members = Members::whole(&object, 64).map_err(|fault| fault.kind.to_string())?;
    let members = members.unwrap_or_default();
    let found = members.find("arguments").filter(|_| members.len() == 1);
    let sound = members.faults().is_empty();
    found.filter(|_| sound).map(own_text).ok_or_else(|| "it is not one sound value".to_owned())
}

fn own_text(raw: Raw<'_>) -> String {
    raw_json(raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule_of<K: Kind>(request: Confirmation<K>) -> Option<&'static str> {
        match request.wanted() {
            Err(Error::Misuse(misuse)) => Some(misuse.rule.id),
            _ => None,
        }
    }

    fn harmless() -> Confirmation<Reversible> {
        Confirmation::reversible("move", "Move the file.", "It can be moved back.")
    }

    // covers: C15, D10
    #[test]
    fn silence_never_means_yes_where_the_risk_is_high_or_not_stated() {
        assert_eq!(rule_of(harmless().accept_on_silence()), Some("C15"));
        assert_eq!(rule_of(harmless().risk(RiskLevel::High).accept_on_silence()), Some("C15"));
        assert_eq!(rule_of(harmless().risk(RiskLevel::Medium).accept_on_silence()), None);
        assert_eq!(rule_of(harmless().risk(RiskLevel::Low).accept_on_silence()), None);
    }

    // covers: T20
    #[test]
    fn a_wait_that_the_protocol_does_not_know_is_refused_before_anything_is_sent() {
        assert_eq!(rule_of(harmless().timeout_seconds(0)), Some("T20"));
        assert_eq!(rule_of(harmless().timeout_seconds(86_401)), Some("T20"));
        assert_eq!(rule_of(harmless().timeout_seconds(86_400)), None);
    }

    #[test]
    fn arguments_are_one_sound_value_and_stay_as_they_are() {
        for bad in ["", "{", "1 2", "1,\"tool\":2", "{\"a\":1,\"a\":2}", "nonsense"] {
            assert_eq!(rule_of(harmless().arguments_json(bad)), Some("T12"), "{bad}");
        }
        for good in ["{ \"a\" : 1.0 }", "\"\\u00e9\"", "null", "[1,2]", "12345678901234567890.0"] {
            let wanted = harmless().arguments_json(good).wanted().unwrap();
            assert_eq!(wanted.arguments.as_deref(), Some(good));
            let body = wanted.question.to_json();
            assert!(body.contains(&format!("\"arguments\":{good},")), "{body}");
        }
    }
}
