//! Tools that need no consent: announced before they run, completed afterwards.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use aaep_types::agent_api::PostEvent;
use aaep_types::{EventKind, RiskLevel, ToolCallId, ToolStatus, rule};

use crate::agent::OnDrop;
use crate::body::Body;
use crate::call::{Call, TOOL_TIMEOUT, completed};
use crate::confirmation::one_value;
use crate::error::Error;
use crate::line::Line;
use crate::session::Session;
use crate::words::Words;

/// A tool that is about to be used. What cannot be taken back is no case for this: it is parked
/// ([`Session::park`]), and the hub refuses it here.
#[must_use = "nothing happens before `run` or `begin`"]
pub struct Tool {
    line: Arc<Line>,
    name: String,
    words: Words,
    args_summary: Option<String>,
    arguments: Option<Result<String, String>>,
    risk: Option<RiskLevel>,
    timeout: Duration,
}

impl Session {
    /// A tool to use: `session.tool("search").summary("Looking for flights.").run(work).await`.
    pub fn tool(&self, name: impl Into<String>) -> Tool {
        let name = name.into();
        Tool {
            line: self.line.clone(),
            words: Words::ours(format!("The agent uses {name}.")),
            name,
            args_summary: None,
            arguments: None,
            risk: None,
            timeout: TOOL_TIMEOUT,
        }
    }
}

impl Tool {
    /// What it does, for people.
    pub fn summary(mut self, words: impl Into<Words>) -> Self {
        self.words = words.into();
        self
    }

    /// With what it is called, for people, without secrets.
    pub fn args_summary(mut self, text: impl Into<String>) -> Self {
        self.args_summary = Some(text.into());
        self
    }

    /// With what it is called, as JSON: for a policy of the hub, which may let it run without a
    /// question only with certain arguments, and to tell it from a call that was refused (D37).
    /// Nobody hears them.
    pub fn arguments_json(mut self, json: impl Into<String>) -> Self {
        self.arguments = Some(one_value(json.into()));
        self
    }

    /// How much can go wrong; `low` unless it is said.
    pub fn risk(mut self, risk: RiskLevel) -> Self {
        self.risk = Some(risk);
        self
    }

    /// How long it may run: five minutes by default.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Announces that it is about to run. The caller completes the call.
    pub async fn begin(self) -> Result<Call, Error> {
        if let Some(Err(why)) = &self.arguments {
            let text = format!("The arguments of a tool are one JSON value: {why}.");
            return Err(Error::misuse(rule::T11, text));
        }
        let id = self.call_id()?;
        let said = self.line.said(self.invoked(&id));
        // A caller dropped while this is in flight will not run it.
        let abandoned = OnDrop::new({
            let (line, name, id, said) =
                (self.line.clone(), self.name.clone(), id.clone(), said.clone());
            move || {
                line.say_later(said);
                let words = Words::ours("This was not run: the agent gave it up before it began.");
                let body = completed(&name, &id, ToolStatus::Error, &words, None);
                line.say_later(line.said(body));
            }
        });
        let told = self.line.say(said).await;
        abandoned.disarm();
        // enforces: T11
        told?;
        Ok(Call::new(self.line, self.name, id).timeout(self.timeout))
    }

    /// Announces it, runs it, and says how it ended. See [`Call::run`].
    pub async fn run<T, E>(
        self,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + Send + 'static,
    {
        let done = format!("{} is done.", self.name);
        self.run_saying(work, |_| Words::ours(done)).await
    }

    /// Like [`run`](Self::run), and says of the result what `summary` says.
    pub async fn run_saying<T, E>(
        self,
        work: impl Future<Output = Result<T, E>> + Send + 'static,
        summary: impl FnOnce(&T) -> Words,
    ) -> Result<T, Error>
    where
        T: Send + 'static,
        E: Into<Box<dyn std::error::Error + Send + Sync>> + Send + 'static,
    {
        self.begin().await?.run_saying(work, summary).await
    }

    fn invoked(&self, id: &str) -> PostEvent {
        let mut body = Body::new()
            .text("tool", &self.name)
            .text("tool_call_id", id)
            .words(&self.words)
            .human_if("args_summary", self.args_summary.as_deref());
        if let Some(risk) = self.risk {
            body = body.text("risk_level", risk.as_str());
        }
        let arguments = self.arguments.clone().and_then(Result::ok);
        PostEvent { arguments, ..body.event(EventKind::ToolInvoked) }
    }

    fn call_id(&self) -> Result<String, Error> {
        let mut bits = [0; 16];
        getrandom::fill(&mut bits).map_err(Error::unavailable)?;
        Ok(ToolCallId::from_bits(u128::from_be_bytes(bits)).to_string())
    }
}
