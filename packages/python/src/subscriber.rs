//! The listening side: the inbox and the words of the Rust library, which do no input or output.

use std::time::Duration;

use aaep_subscriber::inbox::{
    Answer, Bounds, Connection, Inbox as Core, InboxInput, Settings, TextBy,
};
use aaep_subscriber::words::{Manner, Span, Words as Phrases};
use aaep_subscriber::{Agent, Asks, Identity, Notification as Told, Request, Silence};
use aaep_types::{Level, Verbosity};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{Value, json};

/// One happening: something that a person may want to hear.
#[pyclass(frozen)]
pub(crate) struct Notification(Told);

#[pymethods]
impl Notification {
    /// Everything about it, as JSON.
    fn json(&self) -> String {
        written(&self.0).to_string()
    }
}

/// The core of a listener, with one connection.
#[pyclass]
pub(crate) struct Inbox {
    core: Core,
    hub: Connection,
}

#[pymethods]
impl Inbox {
    #[new]
    fn new(name: &str, languages: Vec<String>, text: &str, unix_ms: i64) -> PyResult<Self> {
        let text = match text {
            "sentence" => TextBy::Sentence,
            "paragraph" => TextBy::Paragraph,
            "end" => TextBy::End,
            _ => return Err(PyValueError::new_err("text is one of sentence, paragraph, end")),
        };
        let settings = Settings { languages, text, ..Settings::default() };
        let mut core = Core::new(settings, Bounds::default(), unix_ms);
        let hub = core.add(name, 0);
        Ok(Self { core, hub })
    }

    /// The request for a subscription, to be sent when a way to the hub is open.
    fn begin(&mut self, now: u64) -> String {
        self.core.begin(self.hub, now)
    }

    fn message(&mut self, bytes: &[u8], now: u64) {
        self.core.handle(InboxInput::Message { connection: self.hub, bytes }, now);
    }

    fn attached(&mut self, now: u64) {
        self.core.handle(InboxInput::Attached { connection: self.hub }, now);
    }

    fn lost(&mut self, why: &str, now: u64) {
        self.core.handle(InboxInput::Lost { connection: self.hub, why }, now);
    }

    fn time(&mut self, now: u64) {
        self.core.handle(InboxInput::Time, now);
    }

    fn next_deadline(&self, now: u64) -> Option<u64> {
        self.core.next_deadline(now)
    }

    /// Takes the user's answer; the text says why it is not one.
    fn answer(&mut self, number: u32, kind: &str, value: &str, now: u64) -> PyResult<()> {
        let answer = match kind {
            "accept" => Answer::Accept,
            "reject" => Answer::Reject,
            "choice" => Answer::Choice(value.into()),
            "text" => Answer::Text(value.into()),
            "yes_no" => Answer::YesNo(value == "true"),
            _ => Answer::Number(value.parse().map_err(|_| PyValueError::new_err("not a number"))?),
        };
        let taken = self.core.answer(number.into(), answer, now);
        taken.map_err(|why| PyValueError::new_err(why.to_string()))
    }

    fn more_time(&mut self, number: u32, seconds: u64, now: u64) -> PyResult<()> {
        let taken = self.core.more_time(number.into(), Duration::from_secs(seconds), now);
        taken.map_err(|why| PyValueError::new_err(why.to_string()))
    }

    /// What is told next.
    fn poll(&mut self, now: u64) -> Option<Notification> {
        self.core.poll_notification(now).map(Notification)
    }

    /// What is to be sent next. It counts as sent.
    fn poll_send(&mut self, now: u64) -> Option<String> {
        let send = self.core.poll_send()?;
        self.core.handle(InboxInput::Sent(send.ticket), now);
        Some(send.json)
    }
}

/// The words of one language.
#[pyclass(frozen)]
pub(crate) struct Words(Phrases);

#[pymethods]
impl Words {
    #[new]
    fn new(languages: Vec<String>) -> Self {
        let languages: Vec<&str> = languages.iter().map(String::as_str).collect();
        Self(Phrases::new(&languages))
    }

    #[getter]
    fn language(&self) -> &'static str {
        self.0.language()
    }

    /// A happening as lines of `(text, whether it is the agent's)`.
    fn say(
        &self,
        notification: &Notification,
        verbosity: &str,
        load: &str,
        name_agents: bool,
    ) -> PyResult<Vec<Vec<(String, bool)>>> {
        let unknown = || {
            PyValueError::new_err(
                "verbosity is terse, normal or detailed; load is low, medium or high",
            )
        };
        let verbosity = Verbosity::parse(verbosity).map_err(|_| unknown())?;
        let load = Level::parse(load).map_err(|_| unknown())?;
        let lines = self.0.say(&notification.0, &Manner { verbosity, load, name_agents });
        let span = |span: Span| match span {
            Span::Ours(text) => (text, false),
            Span::Theirs(text) => (text, true),
        };
        Ok(lines.into_iter().map(|line| line.spans.into_iter().map(span).collect()).collect())
    }
}

fn agent(agent: &Agent) -> Value {
    json!({ "id": *agent.id, "name": *agent.name })
}

/// A happening as the shared vectors write it, with the whole event.
fn written(told: &Told) -> Value {
    match told {
        Told::Event { agent: whose, json, critical } => {
            let event = serde_json::from_str(json).unwrap_or(Value::Null);
            json!({ "kind": "event", "agent": agent(whose), "event": event, "critical": critical })
        }
        Told::Asked(asked) => json!({ "kind": "asked", "request": request(asked) }),
        Told::Settled { request: settled, outcome, announced } => json!({
            "kind": "settled", "request": request(settled), "outcome": outcome.as_str(), "announced": announced,
        }),
        Told::Text { agent: whose, session_id, output_id, text, ends, after_gap } => json!({
            "kind": "text", "agent": agent(whose), "session_id": **session_id, "output_id": **output_id,
            "text": text, "ends": ends, "after_gap": after_gap,
        }),
        Told::Silence { agent: whose, why, count } => {
            let why = match why {
                Silence::Missing => "missing",
                Silence::TooMuch => "too_much",
                _ => "unreadable",
            };
            json!({ "kind": "silence", "agent": agent(whose), "why": why, "count": count })
        }
        Told::Over { agent: whose, session_id } => {
            json!({ "kind": "over", "agent": agent(whose), "session_id": **session_id })
        }
        Told::Connected { hub, again, may_reply, identity } => {
            let mut out = json!({ "kind": "connected", "hub": **hub, "again": again, "may_reply": may_reply });
            if let Some(Identity::New { agent_id, key } | Identity::Verified { agent_id, key }) =
                identity
            {
                out["identity"] = json!({ "agent_id": **agent_id, "key": **key });
            }
            out
        }
        Told::Presence { hub, state, seconds, failures } => json!({
            "kind": "presence", "hub": **hub, "state": state.as_str(), "seconds": seconds, "failures": failures,
        }),
        Told::Lost { hub, why } => json!({ "kind": "lost", "hub": **hub, "why": **why }),
        _ => json!({ "kind": "other" }),
    }
}

fn request(request: &Request) -> Value {
    let asks = match &request.asks {
        Asks::Consent { action, consequence, risk, reversibility, silence_accepts } => json!({
            "kind": "consent", "action": action, "consequence": consequence, "risk": risk.as_str(),
            "reversibility": reversibility.as_str(), "silence_accepts": silence_accepts,
        }),
        Asks::Answer { question, context, kinds, choices, default } => {
            let kinds: Vec<_> = kinds.iter().map(|kind| kind.as_str()).collect();
            let choice =
                |one: &aaep_subscriber::Choice| json!({ "value": one.value, "label": one.label });
            let choices: Vec<_> = choices.iter().map(choice).collect();
            let mut asks = json!({ "kind": "answer", "question": question, "kinds": kinds, "choices": choices });
            for (name, value) in [("context", context), ("default", default)] {
                if let Some(value) = value {
                    asks[name] = json!(value);
                }
            }
            asks
        }
    };
    let mut out = json!({
        "number": request.number, "agent": agent(&request.agent), "event_id": *request.event_id,
        "session_id": *request.session_id, "asks": asks, "timeout_seconds": request.timeout_seconds,
        "deadline_ms": request.deadline_ms,
    });
    if let Some(continues) = request.continues {
        out["continues"] = json!(continues);
    }
    out
}
