//! Checks of a producer: several listeners at once, honest and hostile.

mod interactive;
mod negotiated;
mod seen;
mod terms;

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use aaep_transport::client::FullResponse;
use aaep_types::Timestamp;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::ear::{is, is_end};
use super::report::{Report, Side};
use super::start::Starter;
use super::target::{Script, Target};
use super::wire::{Line, Wire};

/// Runs every check of the target's level. It ends by the target's deadline, whatever the target does.
pub async fn run(target: &Target) -> Report {
    let began = Instant::now();
    let mut report = Report::new(Side::Producer, &target.url, target.level.clamp(1, 3), now());
    if let Some(profile) = &target.profile {
        report.under(profile);
    }
    let cut = match timeout(target.deadline, every(target, &mut report)).await {
        Ok(Ok(())) => None,
        Ok(Err(why)) => Some(why),
        Err(_) => Some(format!("it took longer than {} seconds.", target.deadline.as_secs())),
    };
    report.cut_short = cut;
    report.seconds = began.elapsed().as_secs_f64();
    report
}

async fn every(target: &Target, report: &mut Report) -> Result<(), String> {
    let wire = Wire::new(target, target.token.as_deref())?;
    let starter = Starter::new(target, &wire)?;
    let open = |why: String| format!("no stream of events: {why}");
    let first = wire.listen().await.map_err(open)?;
    let second = wire.listen().await.map_err(open)?;
    let stranger = match target.stranger.as_deref() {
        Some(token) => Some(Wire::new(target, Some(token))?.speak().await.map_err(open)?),
        None => None,
    };
    let mut run =
        Run { target, wire, starter, first, second, stranger, report, answers: Vec::new() };
    run.notification().await?;
    if run.target.level >= 2 {
        run.interactive().await?;
    }
    if run.target.level >= 3 {
        run.negotiated().await?;
    }
    seen::judge(&run.first.ear.texts(), run.target, run.report);
    Ok(())
}

/// Now, as an event or a reply says it.
pub(crate) fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let millis = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(millis).map_or_else(String::new, |stamp| stamp.to_string())
}

struct Run<'a> {
    target: &'a Target,
    wire: Wire,
    starter: Starter,
    first: Line,
    second: Line,
    stranger: Option<Line>,
    report: &'a mut Report,
    /// What replies were answered with, by what they were; nothing where there are no answers.
    answers: Vec<(&'static str, Option<FullResponse>)>,
}

/// A question that waits.
struct Ask {
    session: String,
    event: Value,
    /// The place after it in what was heard.
    after: usize,
    began: Instant,
}

impl Ask {
    fn reply(&self, line: &Line, decision: &str) -> Value {
        json!({
            "type": "confirmation.reply", "reply_token": self.event["reply_token"],
            "decision": decision, "subscription_id": line.subscription(), "timestamp": now(),
        })
    }

    fn answer(&self, line: &Line, response: &Value) -> Value {
        json!({
            "type": "clarification.reply", "reply_token": self.event["reply_token"],
            "response": response, "subscription_id": line.subscription(), "timestamp": now(),
        })
    }
}

impl Run<'_> {
    /// Begins a session, and gives its id and the place after its start.
    async fn begin(&self, script: Script) -> Result<Option<(String, usize)>, String> {
        self.starter.begin(self.target, &self.first, script).await
    }

    async fn end_of(&self, session: &str, from: usize) -> Option<Value> {
        let ends = |event: &Value| event["session_id"] == session && is_end(event);
        self.first.ear.wait(from, self.target.patience, ends).await.map(|(_, event)| event)
    }

    async fn ask(&self, script: Script, kind: &str) -> Result<Option<Ask>, String> {
        let Some((session, from)) = self.begin(script).await? else { return Ok(None) };
        let wanted =
            |event: &Value| event["session_id"] == session && (is(event, kind) || is_end(event));
        let heard = self.first.ear.wait_at(from, self.target.patience, wanted).await;
        let Some((after, event, began)) = heard else { return Ok(None) };
        let asked = is(&event, kind);
        Ok(asked.then(|| Ask { session, event, after, began }))
    }

    /// Asks for consent, and hears that both listeners were asked.
    async fn consent(&mut self, script: Script) -> Result<Option<Ask>, String> {
        let ask = self.ask(script, "awaiting.confirmation").await?;
        if let Some(ask) = &ask {
            let token = ask.event["reply_token"].clone();
            let same = |event: &Value| event["reply_token"] == token;
            let heard = self.second.ear.wait(0, self.target.patience, same).await.is_some();
            self.report.holds(
                "everyone",
                heard,
                "A second subscriber did not hear the question with the same token.",
            );
        }
        Ok(ask)
    }

    /// Sends a reply and remembers what it was answered with.
    async fn send(&mut self, what: &'static str, reply: &Value) -> Result<(), String> {
        let answer = self.first.say(reply).await;
        let answer = answer.map_err(|error| format!("a reply was not answered: {error}"))?;
        self.answers.push((what, answer));
        Ok(())
    }

    /// What shows that a request is no longer waiting.
    fn moved(&self, ask: &Ask) -> bool {
        let acts = |event: &Value| {
            is(event, "tool.invoked")
                || is_end(event)
                || (is(event, "state.changed") && event["to_state"] != "awaiting_input")
        };
        self.first.ear.of(&ask.session, ask.after).iter().any(acts)
    }

    fn invoked(&self, ask: &Ask) -> usize {
        let events = self.first.ear.of(&ask.session, ask.after);
        events.iter().filter(|event| is(event, "tool.invoked")).count()
    }

    async fn quiet(&self) {
        sleep(self.target.quiet).await;
    }

    async fn notification(&mut self) -> Result<(), String> {
        for script in [Script::Tool, Script::Stream, Script::Fail, Script::Cancel, Script::Progress]
        {
            match self.begin(script).await? {
                Some((session, from)) => {
                    if self.end_of(&session, from).await.is_none() {
                        self.report.fail("lifecycle", "A session did not end.");
                    }
                }
                None => self.report.skip("lifecycle", "Nothing that was said began a session."),
            }
        }
        if self.first.ear.len() == 0 {
            return Err("nothing that was said to it made it say anything.".into());
        }
        Ok(())
    }
}
