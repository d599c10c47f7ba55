//! `--json`: everything that happens as JSON Lines, and answers as JSON Lines.

use aaep_subscriber::inbox::Answer;
use aaep_subscriber::{Agent, Asks, Identity, Notification, Request, Silence};
use aaep_types::Presence;
use serde_json::{Map, Value, json};

use crate::lines::Visible;

/// One line for something that happens; what was said of it belongs to it.
pub(super) fn line(notification: &Notification, said: Vec<String>) -> String {
    let mut line = match notification {
        Notification::Event { agent, json, critical } => json!({
            "happening": "event", "agent": name(agent), "critical": critical,
            "event": serde_json::from_str::<Value>(json).unwrap_or_default(),
        }),
        Notification::Asked(request) => asked(request),
        Notification::Settled { request, outcome, announced } => json!({
            "happening": "settled", "request": request.number, "outcome": outcome.as_str(),
            "announced": announced,
        }),
        Notification::Text { agent, session_id, output_id, text, ends, after_gap } => json!({
            "happening": "text", "agent": name(agent), "session_id": &**session_id,
            "output_id": &**output_id, "text": text, "ends": ends, "after_gap": after_gap,
        }),
        Notification::Silence { agent, why, count } => json!({
            "happening": "silence", "agent": name(agent), "count": count,
            "why": match why {
                Silence::Missing => "missing",
                Silence::TooMuch => "too_much",
                Silence::Unreadable => "unreadable",
                _ => "other",
            },
        }),
        Notification::Over { agent, session_id } => json!({
            "happening": "over", "agent": name(agent), "session_id": &**session_id,
        }),
        Notification::Connected { hub, again, may_reply, identity: who } => json!({
            "happening": "connected", "hub": &**hub, "again": again, "may_reply": may_reply,
            "identity": who.as_ref().map(identity),
        }),
        Notification::Lost { hub, why } => {
            json!({ "happening": "lost", "hub": &**hub, "why": &**why })
        }
        Notification::Presence { hub, state, seconds, failures } => json!({
            "happening": "presence", "hub": &**hub, "state": state.as_str(),
            "seconds": seconds, "failures": failures,
        }),
        _ => json!({ "happening": "other" }),
    };
    line["said"] = said.into();
    harmless(&line)
}

/// Whether a hub is who it says.
fn identity(identity: &Identity) -> Value {
    match identity {
        Identity::Unsigned => json!({ "is": "unsigned" }),
        Identity::New { agent_id, key } => {
            json!({ "is": "new", "agent_id": &**agent_id, "key": &**key })
        }
        Identity::Verified { agent_id, key } => {
            json!({ "is": "verified", "agent_id": &**agent_id, "key": &**key })
        }
        _ => json!({ "is": "other" }),
    }
}

/// What is said that nothing happened for.
pub(super) fn said(lines: Vec<String>) -> String {
    harmless(&json!({ "happening": "said", "said": lines }))
}

/// An answer that leaves.
pub(super) fn sent(request: &Request, answer: &Answer) -> String {
    let answer = match answer {
        Answer::Accept | Answer::AcceptBecause(_) => json!("accept"),
        Answer::Reject | Answer::RejectBecause(_) => json!("reject"),
        Answer::Text(text) | Answer::Choice(text) => json!(text),
        Answer::YesNo(yes) => json!(yes),
        Answer::Number(number) => json!(number),
    };
    harmless(&json!({ "happening": "sent", "request": request.number, "answer": answer }))
}

fn name(agent: &Agent) -> Value {
    json!({ "id": &*agent.id, "name": &*agent.name })
}

// enforces: C29
/// Everything but the token, which is nobody's to know.
fn asked(request: &Request) -> Value {
    let mut line = json!({
        "happening": "asked", "request": request.number, "agent": name(&request.agent),
        "event_id": &*request.event_id, "session_id": &*request.session_id,
        "timeout_seconds": request.timeout_seconds, "continues": request.continues,
        "language": request.language.as_deref(),
    });
    if request.needs() != Presence::None {
        line["needs"] = request.needs().as_str().into();
    }
    let asks = match &request.asks {
        Asks::Consent { action, consequence, risk, reversibility, silence_accepts } => json!({
            "asks": "consent", "action": action, "consequence": consequence,
            "risk_level": risk.as_str(), "reversibility": reversibility.as_str(),
            "silence_accepts": silence_accepts,
        }),
        Asks::Answer { question, context, kinds, choices, default } => {
            let kinds: Vec<&str> = kinds.iter().map(|kind| kind.as_str()).collect();
            let choice = |choice: &aaep_subscriber::Choice| json!({ "value": choice.value, "label": choice.label });
            let choices: Vec<Value> = choices.iter().map(choice).collect();
            json!({ "asks": "answer", "question": question, "context": context, "kinds": kinds,
                "choices": choices, "default": default })
        }
    };
    if let (Value::Object(line), Value::Object(asks)) = (&mut line, asks) {
        line.extend(asks);
    }
    if let Some(account) = &request.account {
        line["account"] = json!({
            "tool": account.tool, "arguments": account.arguments, "digest": account.digest,
            "described_by": account.described_by.as_str(), "shortened": account.shortened,
            "redacted": account.redacted,
        });
    }
    if let Some(text) = &request.agent_says {
        line["agent_says"] = json!(text);
    }
    line
}

/// JSON in which nothing moves a cursor or turns text around, should a terminal show it.
fn harmless(value: &Value) -> String {
    Visible(&value.to_string()).to_string()
}

/// A line from a program.
#[derive(Debug, PartialEq)]
pub(super) enum ProgramLine {
    /// As if somebody had typed it.
    Words(String),
    Answer {
        request: u32,
        answer: Value,
        certain: bool,
    },
    /// It means nothing.
    Nothing,
}

/// Reads a line from a program: an object, or words.
pub(super) fn read(line: &str) -> ProgramLine {
    if !line.trim_start().starts_with('{') {
        return ProgramLine::Words(line.to_owned());
    }
    let Ok(Value::Object(members)) = serde_json::from_str(line) else {
        return ProgramLine::Nothing;
    };
    object(&members).unwrap_or(ProgramLine::Nothing)
}

fn object(members: &Map<String, Value>) -> Option<ProgramLine> {
    let known = ["request", "answer", "certain", "command"];
    // A line with a misspelled member must not be half obeyed.
    if members.keys().any(|name| !known.contains(&name.as_str())) {
        return None;
    }
    if let Some(command) = members.get("command") {
        return (members.len() == 1)
            .then(|| command.as_str())?
            .map(|c| ProgramLine::Words(c.into()));
    }
    let request = u32::try_from(members.get("request")?.as_u64()?).ok()?;
    let certain = members.get("certain").map_or(Some(false), Value::as_bool)?;
    Some(ProgramLine::Answer { request, answer: members.get("answer")?.clone(), certain })
}

/// What a program's answer means for what is asked; `None` if it means nothing.
pub(super) fn answer(asks: &Asks, value: &Value) -> Option<Answer> {
    match (asks, value) {
        (Asks::Consent { .. }, Value::String(word)) => match word.as_str() {
            "accept" => Some(Answer::Accept),
            "reject" => Some(Answer::Reject),
            _ => None,
        },
        (Asks::Consent { .. }, _) => None,
        (Asks::Answer { .. }, Value::Bool(yes)) => Some(Answer::YesNo(*yes)),
        (Asks::Answer { .. }, Value::Number(number)) => number.as_f64().map(Answer::Number),
        (Asks::Answer { choices, .. }, Value::String(text)) => {
            let chosen = choices.iter().any(|choice| choice.value == *text);
            Some(if chosen { Answer::Choice(text.clone()) } else { Answer::Text(text.clone()) })
        }
        _ => None,
    }
}

/// The PIN in a line of a program, `{"pin": "…"}`; empty if there is none.
pub(super) fn pin(line: &str) -> String {
    let line: Value = serde_json::from_str(line).unwrap_or_default();
    line["pin"].as_str().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listen::talk::stories::{consent, mild, question};
    use aaep_types::ResponseKind;

    // covers: C29
    #[test]
    fn a_request_is_told_whole_but_for_its_token() {
        let request = consent(3, "Delete\u{1b}]0;x\u{7}\u{9b}2J\u{202e}");
        let line = line(&Notification::Asked(request.into()), vec!["Allow this?".into()]);
        assert!(!line.contains("rpl_") && !line.contains(|sign: char| sign.is_control()), "{line}");
        assert!(!line.contains('\u{202e}'));
        let value: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(value["action"], "Delete\u{1b}]0;x\u{7}\u{9b}2J\u{202e}");
        assert_eq!(
            (&value["request"], &value["reversibility"]),
            (&json!(3), &json!("irreversible"))
        );
        assert_eq!(value["said"][0], "Allow this?");
    }

    #[test]
    fn answers_are_read_strictly_and_anything_else_is_words() {
        let yes = ProgramLine::Answer { request: 2, answer: json!("accept"), certain: true };
        assert_eq!(read(r#"{"request":2,"answer":"accept","certain":true}"#), yes);
        assert_eq!(read(r#"{"command":"list"}"#), ProgramLine::Words("list".into()));
        assert_eq!(read("yes"), ProgramLine::Words("yes".into()));
        for wrong in [
            "{",
            r#"{"request":2}"#,
            r#"{"request":-2,"answer":true}"#,
            r#"{"request":2,"answer":true,"sure":1}"#,
            r#"{"request":2,"answer":true,"certain":"yes"}"#,
            r#"{"command":"list","request":1}"#,
            r#"{"command":1}"#,
        ] {
            assert_eq!(read(wrong), ProgramLine::Nothing, "{wrong}");
        }
    }

    #[test]
    fn an_answer_means_what_the_request_takes() {
        let consent = mild(1, "Go").asks;
        assert_eq!(answer(&consent, &json!("accept")), Some(Answer::Accept));
        assert_eq!(answer(&consent, &json!(true)), None);
        assert_eq!(answer(&consent, &json!("yes")), None);
        let asks = question(1, &[ResponseKind::MultipleChoice], &["Red", "Blue"]).asks;
        assert_eq!(answer(&asks, &json!("red")), Some(Answer::Choice("red".into())));
        assert_eq!(answer(&asks, &json!("accept")), Some(Answer::Text("accept".into())));
        assert_eq!(answer(&asks, &json!(2)), Some(Answer::Number(2.0)));
        assert_eq!(answer(&asks, &json!(null)), None);
    }
}
