//! Questions with answers of a type: text, yes or no, a number, one of several things.

use std::sync::Arc;

use aaep_types::agent_api::{AskUser, RequestStatus};
use aaep_types::json::Writer;
use aaep_types::{EventKind, ResponseKind, rule};
use serde_json::Value;

use crate::body::Body;
use crate::error::{Error, Unanswered};
use crate::line::Line;
use crate::parked::{ask, decided_by, details, outcome};
use crate::reply::ReplyDetails;
use crate::session::Session;
use crate::words::without_secrets;

/// How long an answer is waited for, unless its author says otherwise (§6.4.2).
const USUAL_SECONDS: u32 = 180;

/// A question whose answer is a `T`.
#[must_use = "nothing is asked before the session asks it"]
pub struct Question<T> {
    question: String,
    context: Option<String>,
    timeout_seconds: u32,
    default: Option<String>,
    answers: Answers<T>,
}

/// What an answer may be, and how it becomes a `T`.
enum Answers<T> {
    One(ResponseKind, fn(Value) -> Option<T>),
    Choice(Vec<(String, T)>),
}

impl Question<String> {
    /// Any text.
    pub fn text(question: impl Into<String>) -> Self {
        let read = |value| match value {
            Value::String(text) => Some(text),
            _ => None,
        };
        Self::of(question, Answers::One(ResponseKind::Freetext, read))
    }

    /// What counts when nobody answers; the user is told (D17).
    pub fn default(mut self, text: impl Into<String>) -> Self {
        self.default = Some(text.into());
        self
    }
}

impl Question<bool> {
    /// Yes or no. Not for consent to an action: that is [`Session::park`](crate::Session::park).
    pub fn yes_no(question: impl Into<String>) -> Self {
        Self::of(question, Answers::One(ResponseKind::YesNo, |value| value.as_bool()))
    }

    /// What counts when nobody answers; the user is told (D17).
    pub fn default(mut self, yes: bool) -> Self {
        self.default = Some(yes.to_string());
        self
    }
}

impl Question<f64> {
    /// A number.
    pub fn number(question: impl Into<String>) -> Self {
        Self::of(question, Answers::One(ResponseKind::Numeric, |value| value.as_f64()))
    }

    /// What counts when nobody answers; the user is told (D17).
    pub fn default(mut self, number: f64) -> Self {
        self.default = Some(number.to_string());
        self
    }
}

impl<T> Question<T> {
    /// One of several things, added with [`or`](Self::or): two at least, 32 at most.
    pub fn choice(question: impl Into<String>) -> Self {
        Self::of(question, Answers::Choice(Vec::new()))
    }

    /// Another thing to choose: what is said, and what the answer then is.
    pub fn or(mut self, label: impl Into<String>, value: T) -> Self {
        if let Answers::Choice(choices) = &mut self.answers {
            choices.push((label.into(), value));
        }
        self
    }

    /// The choice with this place, from 1, counts when nobody answers; the user is told (D17).
    pub fn default_choice(mut self, place: usize) -> Self {
        self.default = Some(place.to_string());
        self
    }

    /// Why it is asked.
    pub fn context(mut self, text: impl Into<String>) -> Self {
        self.context = Some(text.into());
        self
    }

    /// How long an answer is waited for: three minutes by default.
    pub fn timeout_seconds(mut self, seconds: u32) -> Self {
        self.timeout_seconds = seconds;
        self
    }

    fn of(question: impl Into<String>, answers: Answers<T>) -> Self {
        Self {
            question: question.into(),
            context: None,
            timeout_seconds: USUAL_SECONDS,
            default: None,
            answers,
        }
    }

    // enforces: T22, T32, D18
    fn request(&self) -> AskUser {
        let kind = match &self.answers {
            Answers::One(kind, _) => *kind,
            Answers::Choice(_) => ResponseKind::MultipleChoice,
        };
        let mut body = Body::new()
            .human("question", &self.question)
            .human("summary_normal", &self.question)
            .human_if("context", self.context.as_deref())
            .number("timeout_seconds", self.timeout_seconds.into())
            .json("accepted_response_kinds", &format!("[\"{kind}\"]"));
        if let Answers::Choice(choices) = &self.answers {
            body = body.json("choices", &choices_json(choices));
        }
        if let Some(default) = &self.default {
            body = body.text("default_response", default);
        }
        AskUser {
            kind: EventKind::AwaitingClarification,
            tool: String::new(),
            arguments: String::new(),
            payload: body.finish(),
        }
    }

    fn read(self, response: &str) -> Option<T> {
        let value: Value = serde_json::from_str(response).ok()?;
        match self.answers {
            Answers::One(_, read) => read(value),
            Answers::Choice(mut choices) => {
                let place: usize = value.as_str()?.parse().ok()?;
                let at = place.checked_sub(1).filter(|at| *at < choices.len())?;
                Some(choices.swap_remove(at).1)
            }
        }
    }
}

/// Choices are named by their places, so that two with the same words are still two.
fn choices_json<T>(choices: &[(String, T)]) -> String {
    let mut out = Writer::new();
    out.open('[');
    for (place, (label, _)) in (1..).zip(choices) {
        out.json(&format!("{{\"value\":\"{place}\",\"label\":"));
        out.string(&without_secrets(label));
        out.json("},");
    }
    out.close(']');
    out.finish()
}

/// A question that waits for its answer. If it is dropped, it is withdrawn.
#[must_use = "a question that is dropped is not asked any longer"]
pub struct Asked<T> {
    question: Option<Question<T>>,
    line: Arc<Line>,
    request: Arc<str>,
}

impl Session {
    /// Asks, and waits for the answer.
    pub async fn ask<T>(&self, question: Question<T>) -> Result<T, Error> {
        self.pose(question).await?.answer().await
    }

    // enforces: C5
    /// Asks; the answer is waited for later.
    pub async fn pose<T>(&self, question: Question<T>) -> Result<Asked<T>, Error> {
        let request = ask(&self.line, &question.question, question.request()).await?;
        Ok(Asked { question: Some(question), line: self.line.clone(), request })
    }

    /// Waits again for the answer to a question that an earlier run of this process asked, by the
    /// [name of its request](Asked::request).
    pub fn pose_again<T>(&self, request: &str, question: Question<T>) -> Result<Asked<T>, Error> {
        let request: Arc<str> = request.into();
        if !self.line.hold(&request, &question.question) {
            let text = "This question is waited for already.";
            return Err(Error::misuse(rule::C4, text));
        }
        Ok(Asked { question: Some(question), line: self.line.clone(), request })
    }
}

impl<T> Asked<T> {
    /// The name of its request. Store it, if the question is to be taken up again after a restart.
    pub fn request(&self) -> &str {
        &self.request
    }

    /// Waits for the answer.
    pub async fn answer(self) -> Result<T, Error> {
        self.answer_in_detail().await.map(|(answer, _)| answer)
    }

    // enforces: D17, C30
    /// The same, with what the reply says of itself: who answered, how sure the device is.
    pub async fn answer_in_detail(mut self) -> Result<(T, ReplyDetails), Error> {
        let state = outcome(&self.line, &self.request).await.map_err(|error| match error {
            Error::Refused(refused) if refused.status == 404 => Unanswered::Cancelled.into(),
            other => other,
        })?;
        let question = self.question.take();
        match (question, &state.response) {
            (Some(question), Some(response)) => {
                let answer = question.read(response).ok_or_else(Error::odd_reading)?;
                Ok((answer, details(&state)))
            }
            _ if matches!(state.status, RequestStatus::TimedOut | RequestStatus::Unanswered) => {
                Err(Unanswered::TimedOut.into())
            }
            _ if decided_by(&state) == "session" => Err(Error::SessionOver),
            _ => Err(Unanswered::Cancelled.into()),
        }
    }
}

impl<T> Drop for Asked<T> {
    fn drop(&mut self) {
        if self.question.is_some() {
            self.line.withdraw_later(self.request.clone());
        }
        self.line.let_go(&self.request);
    }
}

impl<T> std::fmt::Debug for Asked<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Asked").field("request", &self.request).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: C20
    #[test]
    fn answers_become_values_of_their_type_and_others_do_not() {
        assert_eq!(Question::text("?").read("\"x\""), Some("x".to_owned()));
        assert_eq!(Question::text("?").read("1"), None);
        assert_eq!(Question::yes_no("?").read("true"), Some(true));
        assert_eq!(Question::yes_no("?").read("\"true\""), None);
        assert_eq!(Question::number("?").read("2.5"), Some(2.5));
        let colours = || Question::choice("?").or("Red", 'r').or("Red", 'R');
        assert_eq!(colours().read("\"2\""), Some('R'));
        for bad in ["\"0\"", "\"3\"", "2", "\"Red\"", "nonsense"] {
            assert_eq!(colours().read(bad), None, "{bad}");
        }
    }
}
