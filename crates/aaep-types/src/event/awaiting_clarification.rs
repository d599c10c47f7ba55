use serde_json::{Value, json};

use crate::id::ReplyToken;
use crate::list::{List, Set, repeated};
use crate::number::TimeoutSeconds;
use crate::reply::Response;
use crate::report::Report;
use crate::rule;
use crate::text::{Name, Summary, Terse, Text};
use crate::vocabulary::ResponseKind;
use crate::wire::{Unknown, object};

object! {
    /// One of the answers to choose from.
    pub struct Choice, fields ChoiceFields, unknown(Unknown::Refuse(rule::T22)) {
        /// What is sent back.
        required value: Name<'a, 1, 256>, T22;
        /// What is said.
        required label: Text<'a, 1, 1024>, T22;
    }
}

object! {
    /// The agent asks for an answer (§4.4.2).
    pub struct AwaitingClarification, fields ClarificationFields, unknown(Unknown::Refuse(rule::E19)), check(check), extra(choices_for_a_choice) {
        /// What it wants to know.
        required question: Summary<'a>, T22;
        /// Ties the reply to this request.
        required reply_token: ReplyToken, T22;
        /// How long an answer is waited for.
        required timeout_seconds: TimeoutSeconds, T22;
        /// How the answer may look; free text when absent.
        optional accepted_response_kinds: Set<ResponseKind, 1, 4>, T32;
        /// What to choose from.
        optional choices: List<Choice<'a>, 2, 32>, T22;
        /// Why it asks.
        optional context: Text<'a, 1, 4096>, T22;
        /// The answer that counts when none comes.
        optional default_response: Name<'a, 0, 4096>, D17;
        /// In a word or two.
        optional summary_terse: Terse<'a>, T22;
        /// In a sentence.
        optional summary_normal: Summary<'a>, T22;
        /// In full.
        optional summary_detailed: Summary<'a>, T22;
    }
}

impl AwaitingClarification<'_> {
    /// The kinds of answer that count (decision D18).
    pub fn kinds(&self) -> &[ResponseKind] {
        // enforces: D18
        self.accepted_response_kinds.as_deref().unwrap_or(&[ResponseKind::Freetext])
    }

    /// Whether an answer is of one of the accepted kinds (§6.5.5).
    pub fn admits(&self, response: &Response<'_>) -> bool {
        self.kinds().iter().any(|kind| match (kind, response) {
            (ResponseKind::Freetext, Response::Text(_)) => true,
            (ResponseKind::YesNo, Response::YesNo(_)) => true,
            (ResponseKind::Numeric, Response::Number(_)) => true,
            (ResponseKind::MultipleChoice, Response::Text(text)) => {
                let choices = self.choices.as_deref().unwrap_or_default();
                choices.iter().any(|choice| choice.value.as_str() == text.as_str())
            }
            _ => false,
        })
    }
}

fn check(fields: &ClarificationFields<'_>, report: &mut Report) {
    let kinds = fields.accepted_response_kinds.good();
    let has = |kind| kinds.is_some_and(|kinds| kinds.contains(&kind));
    if has(ResponseKind::MultipleChoice) && fields.choices.is_absent() {
        report.within("choices", |report| {
            report.error(rule::T22, format_args!("Add `choices`; there is nothing to choose from."))
        });
    }
    if let Some(choices) = fields.choices.good() {
        let values: Vec<&str> = choices.iter().map(|choice| choice.value.as_str()).collect();
        if repeated(&values).is_some() {
            report.within("choices", |report| {
                report.refuse_at_source(
                    rule::D18,
                    format_args!("Give each choice a value of its own."),
                )
            });
        }
    }
    let default = fields.default_response.good();
    if default.is_some_and(|default| !default_fits(default, fields)) {
        report.within("default_response", |report| report.refuse_at_source(rule::D17, format_args!("Give a default that is one of the accepted answers: `true` or `false`, a number, the value of a choice, or text.")));
    }
    if fields.summary_normal.is_absent() {
        report.warning(
            rule::T29,
            format_args!("Add `summary_normal`; this event is likely to be announced."),
        );
    }
}

/// D17: a default is written as text, whatever kind of answer it stands for.
fn default_fits(default: &str, fields: &ClarificationFields<'_>) -> bool {
    let kinds: &[ResponseKind] = match &fields.accepted_response_kinds {
        crate::wire::Slot::Good(kinds) => kinds,
        crate::wire::Slot::Absent => &[ResponseKind::Freetext],
        crate::wire::Slot::Bad => return true,
    };
    kinds.iter().any(|kind| match kind {
        ResponseKind::Freetext => !default.is_empty(),
        ResponseKind::YesNo => matches!(default, "true" | "false"),
        ResponseKind::Numeric => default.parse::<f64>().is_ok_and(f64::is_finite),
        ResponseKind::MultipleChoice => fields
            .choices
            .good()
            .is_none_or(|choices| choices.iter().any(|choice| choice.value.as_str() == default)),
    })
}

fn choices_for_a_choice() -> Vec<(&'static str, Value)> {
    vec![
        (
            "if",
            json!({
                "properties": { "accepted_response_kinds": { "contains": { "const": "multiple_choice" } } },
                "required": ["accepted_response_kinds"],
            }),
        ),
        ("then", json!({ "required": ["choices"] })),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(kinds: &[ResponseKind]) -> AwaitingClarification<'static> {
        let choice = |value: &'static str| Choice {
            value: Name::new(value).unwrap(),
            label: Text::new(value).unwrap(),
            other: Vec::new(),
        };
        AwaitingClarification {
            question: Summary::new("How many copies?").unwrap(),
            reply_token: ReplyToken::from_bits(1),
            timeout_seconds: TimeoutSeconds::new(60).unwrap(),
            accepted_response_kinds: Set::new(kinds.to_vec()).ok(),
            choices: List::new(vec![choice("one"), choice("two")]).ok(),
            context: None,
            default_response: None,
            summary_terse: None,
            summary_normal: None,
            summary_detailed: None,
            other: Vec::new(),
        }
    }

    // covers: C20, D18
    #[test]
    fn an_answer_counts_only_if_it_is_of_an_accepted_kind() {
        use ResponseKind::{Freetext, MultipleChoice, Numeric, YesNo};
        let text = |text: &'static str| Response::Text(Name::new(text).unwrap());
        let (yes, number) = (Response::YesNo(true), Response::Number(2.0));
        assert!(asking(&[Freetext]).admits(&text("three")));
        assert!(!asking(&[MultipleChoice]).admits(&text("three")));
        assert!(asking(&[MultipleChoice]).admits(&text("two")));
        assert!(asking(&[YesNo]).admits(&yes) && !asking(&[Numeric]).admits(&yes));
        assert!(asking(&[Numeric, YesNo]).admits(&number) && !asking(&[Freetext]).admits(&number));
        assert!(asking(&[]).admits(&text("free text is the default")));
    }
}
