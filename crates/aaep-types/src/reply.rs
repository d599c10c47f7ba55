//! What a subscriber sends back (§6.3, §6.5). Nothing but the named members may stand in a reply.

use serde_json::{Value, json};

use crate::id::{ReplyToken, SubscriptionId};
use crate::json::{Raw, Writer};
use crate::number::Confidence;
use crate::report::Report;
use crate::rule::{self, Rule};
use crate::text::{Name, UNBOUNDED};
use crate::time::ReplyTimestamp;
use crate::vocabulary::Decision;
use crate::wire::{Opaque, Unknown, Wire, object};

/// Declares the `type` of a message: one constant string.
macro_rules! constant {
    ($(#[doc = $doc:literal])* $name:ident, $text:literal) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct $name;

        impl<'a> $crate::wire::Wire<'a> for $name {
            fn read(
                raw: $crate::json::Raw<'a>,
                rule: $crate::rule::Rule,
                report: &mut $crate::report::Report,
            ) -> Option<Self> {
                match raw {
                    $crate::json::Raw::String(string) if string.decode() == $text => Some(Self),
                    _ => {
                        report.error(rule, format_args!(concat!("Write \"", $text, "\".")));
                        None
                    }
                }
            }

            fn write(&self, out: &mut $crate::json::Writer) {
                out.string($text);
            }

            fn schema() -> serde_json::Value {
                serde_json::json!({ "const": $text })
            }
        }
    };
}
pub(crate) use constant;

constant! {
    /// The type of a [`ConfirmationReply`].
    ConfirmationReplyType, "confirmation.reply"
}
constant! {
    /// The type of a [`ClarificationReply`].
    ClarificationReplyType, "clarification.reply"
}

object! {
    /// The user's decision (§6.3).
    pub struct ConfirmationReply, fields ConfirmationReplyFields, unknown(Unknown::RefuseAlways(rule::C9)) {
        /// `confirmation.reply`.
        required type_name as "type": ConfirmationReplyType, C9;
        /// The token of the request, byte for byte.
        required reply_token: ReplyToken, C9;
        /// Yes or no.
        required decision: Decision, C9;
        /// The subscription on which this is sent.
        required subscription_id: SubscriptionId, C9;
        /// When the user decided.
        required timestamp: ReplyTimestamp, C9;
        /// Who decided.
        optional decided_by: Name<'a, 1, 256>, C9;
        /// Why.
        optional decision_rationale: Name<'a, 1, 4096>, C9;
        /// What to do instead.
        optional modified_action: Opaque<'a>, C9;
        /// Ties it to traces elsewhere.
        optional correlation_id: Name<'a, 0, UNBOUNDED>, C9;
    }
}

object! {
    /// The user's answer (§6.5).
    pub struct ClarificationReply, fields ClarificationReplyFields, unknown(Unknown::RefuseAlways(rule::C19)) {
        /// `clarification.reply`.
        required type_name as "type": ClarificationReplyType, C19;
        /// The token of the request, byte for byte.
        required reply_token: ReplyToken, C19;
        /// The answer.
        required response: Response<'a>, C19;
        /// The subscription on which this is sent.
        required subscription_id: SubscriptionId, C19;
        /// When the user answered.
        required timestamp: ReplyTimestamp, C19;
        /// Who answered.
        optional decided_by: Name<'a, 1, 256>, C19;
        /// How sure the subscriber is that it understood.
        optional confidence: Confidence, C19;
        /// Ties it to traces elsewhere.
        optional correlation_id: Name<'a, 0, UNBOUNDED>, C19;
    }
}

/// An answer: its JSON type says which kind it is (§6.5.2).
#[derive(Clone, Debug, PartialEq)]
pub enum Response<'a> {
    /// Free text, or the value of a choice.
    Text(Name<'a, 1, 16384>),
    /// Yes or no.
    YesNo(bool),
    /// A number.
    Number(f64),
}

impl<'a> Wire<'a> for Response<'a> {
    fn read(raw: Raw<'a>, rule: Rule, report: &mut Report) -> Option<Self> {
        match raw {
            Raw::String(_) => Name::read(raw, rule, report).map(Response::Text),
            Raw::Bool(value) => Some(Response::YesNo(value)),
            Raw::Number(text) => text.parse().ok().map(Response::Number),
            other => {
                report.wrong_type(rule, "a string, true, false or a number", other);
                None
            }
        }
    }

    fn write(&self, out: &mut Writer) {
        match self {
            Response::Text(text) => text.write(out),
            Response::YesNo(value) => value.write(out),
            // Only finite numbers are ever read, and these print as JSON.
            Response::Number(value) => out.json(&(value + 0.0).to_string()),
        }
    }

    fn schema() -> Value {
        let text = Name::<'a, 1, 16384>::schema();
        json!({ "oneOf": [text, { "type": "boolean" }, { "type": "number" }] })
    }
}
