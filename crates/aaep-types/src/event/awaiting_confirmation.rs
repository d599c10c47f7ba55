use serde_json::{Value, json};
use std::ops::Deref;

use super::read::check_summaries;
use crate::id::ReplyToken;
use crate::json::{Raw, Writer};
use crate::list::Set;
use crate::number::TimeoutSeconds;
use crate::report::{Invalid, Reading, Report};
use crate::rule;
use crate::text::{Name, Summary, Terse, UNBOUNDED};
use crate::vocabulary::{Decision, Reversibility, RiskLevel};
use crate::wire::{MemberInfo, Object, Opaque, Others, Slot, Unknown, object};

object! {
    /// What a request for consent is made of.
    pub struct ConfirmationParts, fields ConfirmationFields, unknown(Unknown::Refuse(rule::E19)), check(check), extra(safe_default) {
        /// What will be done.
        required action: Summary<'a>, T20;
        /// What comes of it.
        required consequence: Summary<'a>, T20;
        /// Ties the reply to this request.
        required reply_token: ReplyToken, T20;
        /// How long an answer is waited for.
        required timeout_seconds: TimeoutSeconds, T20;
        /// What counts when no answer comes.
        required default_decision: Decision, T20;
        /// How much can go wrong.
        optional risk_level: RiskLevel, T20;
        /// Whether it cannot be taken back.
        optional irreversible: bool, T20;
        /// The same with more shades.
        optional reversibility: Reversibility, T20;
        /// The decisions that may be sent; `accept` and `reject` when absent.
        optional allowed_replies: Set<Name<'a, 0, UNBOUNDED>, 1, 32>, D7;
        /// More that may be worth knowing.
        optional extra_context: Opaque<'a>, T20;
        /// In a word or two.
        optional summary_terse: Terse<'a>, T20;
        /// In a sentence.
        optional summary_normal: Summary<'a>, T20;
        /// In full.
        optional summary_detailed: Summary<'a>, T20;
    }
}

impl<'a> ConfirmationParts<'a> {
    /// A request with what is required; it waits five minutes, and no answer means no.
    pub fn new(action: Summary<'a>, consequence: Summary<'a>, reply_token: ReplyToken) -> Self {
        Self {
            action,
            consequence,
            reply_token,
            timeout_seconds: TimeoutSeconds::new(300).unwrap_or_else(|_| unreachable!()),
            default_decision: Decision::Reject,
            risk_level: None,
            irreversible: None,
            reversibility: None,
            allowed_replies: None,
            extra_context: None,
            summary_terse: None,
            summary_normal: None,
            summary_detailed: None,
            other: Vec::new(),
        }
    }

    /// Whether the action cannot be taken back; either field says so (decision D10).
    pub fn is_irreversible(&self) -> bool {
        self.irreversible == Some(true) || self.reversibility == Some(Reversibility::Irreversible)
    }
}

/// The agent asks for consent (§4.4.1, §6). One that breaks §6.4.1 cannot be made.
#[derive(Clone, Debug, PartialEq)]
pub struct AwaitingConfirmation<'a>(ConfirmationParts<'a>);

impl<'a> AwaitingConfirmation<'a> {
    /// Makes a request of our own, by the rules that hold at our source: never a default of accept
    /// for what may not be reversible (decisions D10, D11).
    pub fn new(parts: ConfirmationParts<'a>) -> Result<Self, Invalid> {
        let fields = ConfirmationFields {
            default_decision: Slot::Good(parts.default_decision),
            risk_level: parts.risk_level.map_or(Slot::Absent, Slot::Good),
            irreversible: parts.irreversible.map_or(Slot::Absent, Slot::Good),
            reversibility: parts.reversibility.map_or(Slot::Absent, Slot::Good),
            allowed_replies: parts.allowed_replies.clone().map_or(Slot::Absent, Slot::Good),
            ..ConfirmationFields::default()
        };
        let mut report = Report::explaining(Reading::Source);
        check_default(&fields, &mut report);
        check_replies(&fields, &mut report);
        if report.has_errors() {
            return Err(Invalid { problems: report.into_problems() });
        }
        Ok(Self(parts))
    }

    /// What it is made of.
    pub fn into_parts(self) -> ConfirmationParts<'a> {
        self.0
    }
}

impl<'a> Deref for AwaitingConfirmation<'a> {
    type Target = ConfirmationParts<'a>;

    fn deref(&self) -> &ConfirmationParts<'a> {
        &self.0
    }
}

fn check(fields: &ConfirmationFields<'_>, report: &mut Report) {
    check_default(fields, report);
    check_replies(fields, report);
    check_summaries(
        (&fields.summary_terse, &fields.summary_normal, &fields.summary_detailed),
        report,
    );
}

/// §6.4.1, decisions D10 and D11: when silence may not mean yes.
fn check_default(fields: &ConfirmationFields<'_>, report: &mut Report) {
    let reversibility = fields.reversibility.good();
    let says_irreversible = fields.irreversible.good() == Some(&true);
    let irreversible = says_irreversible || reversibility == Some(&Reversibility::Irreversible);
    let says_nothing = fields.irreversible.is_absent() && fields.reversibility.is_absent();
    let with_effort = reversibility == Some(&Reversibility::ReversibleWithEffort);
    report.within("default_decision", |report| {
        if fields.default_decision.good() != Some(&Decision::Accept) {
            return;
        }
        match fields.risk_level {
            Slot::Good(RiskLevel::High | RiskLevel::Medium) if irreversible => {
                report.error(rule::C15, format_args!("Set `default_decision` to `reject`: silence is no consent to an irreversible action of this risk."));
            }
            Slot::Good(RiskLevel::Low) if irreversible => {
                // enforces: T27
                report.refuse_at_source(rule::D11, format_args!("Set `default_decision` to `reject`: an irreversible action should never run on silence."));
            }
            Slot::Absent if irreversible => {
                report.refuse_at_source(rule::D10, format_args!("Set `default_decision` to `reject`, or give `risk_level`: an unknown risk counts as high."));
            }
            _ if says_nothing || with_effort => {
                report.refuse_at_source(rule::D10, format_args!("Set `default_decision` to `reject`, or say that the action is reversible."));
            }
            Slot::Good(RiskLevel::High) | Slot::Absent => {
                report.warning(rule::C15, format_args!("Set `default_decision` to `reject`: this action's risk is high or not stated."));
            }
            _ => {}
        }
    });
}

/// D7: only `accept` ever authorises, and there is always a way to say no.
fn check_replies(fields: &ConfirmationFields<'_>, report: &mut Report) {
    let Some(allowed) = fields.allowed_replies.good() else { return };
    let has = |word: Decision| allowed.iter().any(|reply| reply.as_str() == word.as_str());
    if !has(Decision::Accept) || !has(Decision::Reject) || allowed.len() > 2 {
        report.within("allowed_replies", |report| {
            report.refuse_at_source(
                rule::D7,
                format_args!("Allow `accept` and `reject`; other replies need an extension."),
            )
        });
    }
}

/// §6.4.1 and decision D10 as a schema can say them.
fn safe_default() -> Vec<(&'static str, Value)> {
    let irreversible = json!({ "anyOf": [
        { "properties": { "irreversible": { "const": true } }, "required": ["irreversible"] },
        { "properties": { "reversibility": { "const": "irreversible" } }, "required": ["reversibility"] },
    ] });
    let risky = json!({
        "properties": { "risk_level": { "enum": ["medium", "high"] } },
        "required": ["risk_level"],
    });
    vec![
        ("if", json!({ "allOf": [irreversible, risky] })),
        ("then", json!({ "properties": { "default_decision": { "const": "reject" } } })),
    ]
}

impl<'a> Object<'a> for AwaitingConfirmation<'a> {
    type Fields = ConfirmationFields<'a>;
    const MEMBERS: &'static [MemberInfo] = ConfirmationParts::MEMBERS;
    const UNKNOWN: Unknown = ConfirmationParts::UNKNOWN;

    fn place(
        fields: &mut Self::Fields,
        name: &str,
        raw: Raw<'a>,
        report: &mut Report,
    ) -> Option<usize> {
        ConfirmationParts::place(fields, name, raw, report)
    }

    fn others<'f>(fields: &'f mut Self::Fields) -> &'f mut Others<'a> {
        ConfirmationParts::others(fields)
    }

    fn check(fields: &Self::Fields, report: &mut Report) {
        check(fields, report);
    }

    fn check_required(fields: &Self::Fields, report: &mut Report) {
        ConfirmationParts::check_required(fields, report);
    }

    fn build(fields: Self::Fields) -> Option<Self> {
        ConfirmationParts::build(fields).map(Self)
    }

    fn write_members(&self, out: &mut Writer) {
        self.0.write_members(out);
    }

    fn schema_extra() -> Vec<(&'static str, Value)> {
        safe_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts() -> ConfirmationParts<'static> {
        ConfirmationParts::new(
            Summary::new("Send 40 euros to the landlord.").unwrap(),
            Summary::new("The money leaves at once.").unwrap(),
            ReplyToken::from_bits(7),
        )
    }

    fn refused_by(parts: ConfirmationParts<'static>) -> Option<&'static str> {
        AwaitingConfirmation::new(parts).err().map(|invalid| invalid.problems[0].rule.id)
    }

    // covers: C15, D10, D11, T27
    #[test]
    fn every_row_of_the_table_of_defaults_holds_at_our_source() {
        use RiskLevel::{High, Low, Medium};
        let accepting = |irreversible, risk| {
            let mut parts = parts();
            parts.default_decision = Decision::Accept;
            parts.irreversible = irreversible;
            parts.risk_level = risk;
            refused_by(parts)
        };
        assert_eq!(accepting(Some(true), Some(High)), Some("C15"));
        assert_eq!(accepting(Some(true), Some(Medium)), Some("C15"));
        assert_eq!(accepting(Some(true), Some(Low)), Some("D11"));
        assert_eq!(accepting(Some(true), None), Some("D10"));
        assert_eq!(accepting(None, Some(Low)), Some("D10"));
        assert_eq!(accepting(Some(false), Some(High)), None);
        assert_eq!(accepting(Some(false), Some(Medium)), None);
        assert_eq!(accepting(Some(false), Some(Low)), None);
    }

    // covers: D10
    #[test]
    fn either_field_makes_an_action_irreversible() {
        let mut parts = parts();
        parts.default_decision = Decision::Accept;
        parts.risk_level = Some(RiskLevel::High);
        parts.reversibility = Some(Reversibility::Irreversible);
        assert!(parts.is_irreversible());
        assert_eq!(refused_by(parts.clone()), Some("C15"));
        parts.reversibility = Some(Reversibility::ReversibleWithEffort);
        assert_eq!(refused_by(parts), Some("D10"));
    }

    // covers: D7
    #[test]
    fn our_requests_allow_accept_and_reject_and_nothing_else() {
        let allowing = |words: &[&'static str]| {
            let mut parts = parts();
            let words = words.iter().map(|word| Name::new(*word).unwrap()).collect();
            parts.allowed_replies = Some(Set::new(words).unwrap());
            refused_by(parts)
        };
        assert_eq!(allowing(&["reject", "accept"]), None);
        assert_eq!(allowing(&["accept"]), Some("D7"));
        assert_eq!(allowing(&["accept", "reject", "later"]), Some("D7"));
    }
}
