//! What the user answers: checked before it is sent, and written as the protocol has it (§6.3, §6.5).

use std::fmt;

use aaep_types::json::Writer;
use aaep_types::presence::Pin;
use aaep_types::{ReplyToken, ResponseKind, SubscriptionId, Timestamp};

use super::settings::{cut, member};
use crate::request::Asks;

/// The user's answer to a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Yes, do it.
    Accept,
    /// No, leave it.
    Reject,
    /// Yes, and this is why, in the user's words; never empty.
    AcceptBecause(String),
    /// No, and this is why, in the user's words; never empty.
    RejectBecause(String),
    /// Free text.
    Text(String),
    /// Yes or no, to a question.
    YesNo(bool),
    /// A number.
    Number(f64),
    /// One of the choices, by its value.
    Choice(String),
}

impl Answer {
    /// Whether it is a yes to an action.
    pub fn accepts(&self) -> bool {
        matches!(self, Self::Accept | Self::AcceptBecause(_))
    }

    /// Whether it is a no to an action.
    pub fn rejects(&self) -> bool {
        matches!(self, Self::Reject | Self::RejectBecause(_))
    }
}

/// The longest reason, in characters (§6.3).
const MAX_WHY: usize = 4096;

/// Why something that the user wants is not done. Nothing was sent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum InboxError {
    /// There is no such request, or it no longer waits.
    NotWaiting,
    /// The user answered it before.
    AlreadyAnswered,
    /// Answers from here do not count: the hub did not grant it.
    MayNotReply,
    /// It is not an answer of a kind that is asked for; these are.
    WrongKind(Vec<ResponseKind>),
    /// It asks for yes or no.
    YesOrNo,
    /// This decision is not among those that the agent allows.
    NotAllowed,
    /// It is none of the choices.
    NotAChoice,
    /// There is nothing in it.
    Empty,
    /// It is longer than 16384 characters.
    TooLong,
    /// It is not a number, or too large for one.
    NotANumber,
    /// The hub does not know how to give more time, or to stop an agent.
    NotOffered,
    /// The hub is not connected now.
    NotConnected,
    /// Too much waits to be sent.
    Busy,
}

impl fmt::Display for InboxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotWaiting => "this request does not wait any more",
            Self::AlreadyAnswered => "this request was answered before",
            Self::MayNotReply => "answers from here do not count with this hub",
            Self::WrongKind(_) => "this is not the kind of answer that is asked for",
            Self::YesOrNo => "this asks for yes or no",
            Self::NotAllowed => "the agent does not allow this answer",
            Self::NotAChoice => "this is none of the choices",
            Self::Empty => "there is nothing in the answer",
            Self::TooLong => "the answer is too long",
            Self::NotANumber => "this is not a number",
            Self::NotOffered => "the hub does not offer this",
            Self::NotConnected => "the hub is not connected now",
            Self::Busy => "too much waits to be sent",
        })
    }
}

impl std::error::Error for InboxError {}

/// §3.8: larger whole numbers do not travel as numbers.
const MAX_NUMBER: f64 = aaep_types::MAX_SAFE as f64;

/// The longest answer, in characters (§6.5).
const MAX_ANSWER: usize = 16_384;

// enforces: C28, C20
/// Whether an answer fits what is asked; `allows` says whether yes and no may be sent.
pub(super) fn check(answer: &Answer, asks: &Asks, allows: (bool, bool)) -> Result<(), InboxError> {
    match (asks, answer) {
        (Asks::Consent { .. }, Answer::AcceptBecause(why) | Answer::RejectBecause(why))
            if why.is_empty() =>
        {
            Err(InboxError::Empty)
        }
        (Asks::Consent { .. }, answer) if answer.accepts() && allows.0 => Ok(()),
        (Asks::Consent { .. }, answer) if answer.rejects() && allows.1 => Ok(()),
        (Asks::Consent { .. }, answer) if answer.accepts() || answer.rejects() => {
            Err(InboxError::NotAllowed)
        }
        (Asks::Consent { .. }, _) => Err(InboxError::YesOrNo),
        (Asks::Answer { kinds, choices, .. }, _) => {
            let asked_for = |kind| {
                if kinds.contains(&kind) {
                    Ok(())
                } else {
                    Err(InboxError::WrongKind(kinds.clone()))
                }
            };
            let is_choice = |value: &str| choices.iter().any(|choice| choice.value == value);
            match answer {
                Answer::Accept
                | Answer::Reject
                | Answer::AcceptBecause(_)
                | Answer::RejectBecause(_) => Err(InboxError::WrongKind(kinds.clone())),
                Answer::YesNo(_) => asked_for(ResponseKind::YesNo),
                Answer::Number(number) if number.is_nan() || number.abs() > MAX_NUMBER => {
                    Err(InboxError::NotANumber)
                }
                Answer::Number(_) => asked_for(ResponseKind::Numeric),
                Answer::Choice(value) => {
                    asked_for(ResponseKind::MultipleChoice)?;
                    if is_choice(value) { Ok(()) } else { Err(InboxError::NotAChoice) }
                }
                Answer::Text(text) if text.is_empty() => Err(InboxError::Empty),
                Answer::Text(text) if text.chars().nth(MAX_ANSWER).is_some() => {
                    Err(InboxError::TooLong)
                }
                Answer::Text(text) => match asked_for(ResponseKind::Freetext) {
                    // The value of a choice is text as well.
                    Err(_) if kinds.contains(&ResponseKind::MultipleChoice) && is_choice(text) => {
                        Ok(())
                    }
                    result => result,
                },
            }
        }
    }
}

/// What every message of a listener carries.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head<'a> {
    pub(super) subscription: SubscriptionId,
    pub(super) stamp: Timestamp,
    pub(super) decided_by: Option<&'a str>,
}

// enforces: C7, C29
/// The reply that says so.
pub(super) fn write(answer: &Answer, token: &ReplyToken, head: Head<'_>) -> String {
    let mut out = Writer::new();
    out.open('{');
    let type_name = match answer {
        _ if answer.accepts() || answer.rejects() => "confirmation.reply",
        _ => "clarification.reply",
    };
    member(&mut out, "type", type_name);
    member(&mut out, "reply_token", token.as_str());
    match answer {
        Answer::Accept => member(&mut out, "decision", "accept"),
        Answer::Reject => member(&mut out, "decision", "reject"),
        Answer::AcceptBecause(why) => {
            member(&mut out, "decision", "accept");
            member(&mut out, "decision_rationale", cut(why, MAX_WHY));
        }
        Answer::RejectBecause(why) => {
            member(&mut out, "decision", "reject");
            member(&mut out, "decision_rationale", cut(why, MAX_WHY));
        }
        Answer::Text(text) | Answer::Choice(text) => member(&mut out, "response", text),
        Answer::YesNo(yes) => {
            out.name("response");
            out.display(yes);
            out.comma();
        }
        Answer::Number(number) => {
            out.name("response");
            // A negative zero would be written with its sign.
            out.display(number + 0.0);
            out.comma();
        }
    }
    end(&mut out, head);
    out.finish()
}

/// `timing:extend` (D32).
pub(super) fn more_time(token: &ReplyToken, seconds: u64, head: Head<'_>) -> String {
    let mut out = Writer::new();
    out.open('{');
    member(&mut out, "type", "timing:extend");
    member(&mut out, "reply_token", token.as_str());
    out.name("seconds");
    out.display(seconds.clamp(1, 86_400));
    out.comma();
    end(&mut out, Head { decided_by: None, ..head });
    out.finish()
}

/// `presence:unlock`.
pub(super) fn unlock(pin: &Pin<'_>, head: Head<'_>) -> String {
    let mut out = Writer::new();
    out.open('{');
    member(&mut out, "type", "presence:unlock");
    member(&mut out, "pin", pin.expose());
    end(&mut out, Head { decided_by: None, ..head });
    out.finish()
}

/// `control:cancel`.
pub(super) fn stop(session_id: &str, head: Head<'_>) -> String {
    let mut out = Writer::new();
    out.open('{');
    member(&mut out, "type", "control:cancel");
    member(&mut out, "session_id", session_id);
    end(&mut out, Head { decided_by: None, ..head });
    out.finish()
}

/// `subscription.close` (H26).
pub(super) fn close(subscription: SubscriptionId) -> String {
    let mut out = Writer::new();
    out.open('{');
    member(&mut out, "type", "subscription.close");
    member(&mut out, "subscription_id", subscription.as_str());
    out.close('}');
    out.finish()
}

fn end(out: &mut Writer, head: Head<'_>) {
    member(out, "subscription_id", head.subscription.as_str());
    member(out, "timestamp", &head.stamp.to_string());
    let by = head.decided_by.map(|by| cut(by, 256)).filter(|by| !by.is_empty());
    by.into_iter().for_each(|by| member(out, "decided_by", by));
    out.close('}');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::Choice;
    use aaep_types::{Message, Reversibility, RiskLevel};

    fn question(kinds: &[ResponseKind]) -> Asks {
        let choice = |value: &str| Choice { value: value.into(), label: value.to_uppercase() };
        Asks::Answer {
            question: "Which?".into(),
            context: None,
            kinds: kinds.to_vec(),
            choices: vec![choice("a"), choice("b")],
            default: None,
        }
    }

    fn consent() -> Asks {
        Asks::Consent {
            action: "Delete".into(),
            consequence: "Gone".into(),
            risk: RiskLevel::High,
            reversibility: Reversibility::Irreversible,
            silence_accepts: false,
        }
    }

    // covers: C28, C20
    #[test]
    fn an_answer_fits_what_is_asked_or_is_not_sent() {
        use ResponseKind::{Freetext, MultipleChoice, Numeric, YesNo};
        let fits =
            |answer: Answer, kinds: &[ResponseKind]| check(&answer, &question(kinds), (true, true));
        let text = |text: &str| Answer::Text(text.into());
        assert_eq!(fits(text("x"), &[Freetext]), Ok(()));
        assert_eq!(fits(text(""), &[Freetext]), Err(InboxError::Empty));
        assert_eq!(fits(text(&"x".repeat(16_385)), &[Freetext]), Err(InboxError::TooLong));
        assert_eq!(fits(text("x"), &[YesNo]), Err(InboxError::WrongKind(vec![YesNo])));
        assert_eq!(fits(text("a"), &[MultipleChoice]), Ok(()));
        assert_eq!(fits(Answer::Choice("b".into()), &[MultipleChoice]), Ok(()));
        assert_eq!(
            fits(Answer::Choice("B".into()), &[MultipleChoice]),
            Err(InboxError::NotAChoice)
        );
        assert_eq!(fits(Answer::YesNo(true), &[YesNo]), Ok(()));
        assert_eq!(fits(Answer::Number(f64::NAN), &[Numeric]), Err(InboxError::NotANumber));
        assert_eq!(fits(Answer::Number(1e300), &[Numeric]), Err(InboxError::NotANumber));
        assert_eq!(fits(Answer::Number(-2.5), &[Numeric]), Ok(()));
        assert!(fits(Answer::Accept, &[YesNo]).is_err());
        assert_eq!(check(&Answer::Accept, &consent(), (true, true)), Ok(()));
        assert_eq!(check(&Answer::Accept, &consent(), (false, true)), Err(InboxError::NotAllowed));
        assert_eq!(check(&Answer::YesNo(true), &consent(), (true, true)), Err(InboxError::YesOrNo));
    }

    // covers: C7, C29
    #[test]
    fn every_reply_is_valid_and_echoes_its_token_byte_for_byte() {
        let token = ReplyToken::parse("rpl_AbC123xyZ").unwrap();
        let stamp = Timestamp::parse("2026-05-24T14:22:11.342Z").unwrap();
        let subscription = SubscriptionId::parse("sub_7").unwrap();
        let head = Head { subscription, stamp, decided_by: Some("Ann") };
        let answers = [
            Answer::Accept,
            Answer::Reject,
            Answer::AcceptBecause("for this session".into()),
            Answer::RejectBecause("x".repeat(5000)),
            Answer::Text("\"quoted\"\n".into()),
            Answer::YesNo(false),
            Answer::Number(-0.0),
            Answer::Number(9e15),
            Answer::Choice("a".into()),
        ];
        let mut messages: Vec<String> =
            answers.iter().map(|answer| write(answer, &token, head)).collect();
        messages.push(more_time(&token, 0, head));
        let typed = unlock(&Pin::new("12\"34").unwrap(), head);
        assert!(matches!(Message::parse(typed.as_bytes()), Ok(Message::Unlock(_))), "{typed}");
        for message in &messages {
            assert!(Message::parse(message.as_bytes()).is_ok(), "{message}");
            assert!(message.contains(r#""reply_token":"rpl_AbC123xyZ""#));
        }
        assert!(messages[6].contains(r#""response":0"#));
        for message in [stop("sess_1", head), close(subscription)] {
            assert!(Message::parse(message.as_bytes()).is_ok(), "{message}");
        }
    }
}
