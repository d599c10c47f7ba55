//! Level 2: what is asked, and which answers count.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;

use super::answers::ACCEPTED;
use super::{Ask, Run};
use crate::suite::ear::{is, is_end};
use crate::suite::target::Script;
use crate::suite::wire::Line;

/// The longest timeout of a request that is waited for, in seconds.
const LONGEST_WAIT: u64 = 5;

/// How long it is waited for a question to be taken back.
const PATIENCE_FOR_WITHDRAWAL: Duration = Duration::from_secs(4);

/// A question is left without an answer for so many times the quiet that is waited for elsewhere.
const WITHHELD: u32 = 10;

/// What is no message.
const MALFORMED: &[&str] = &[
    "{",
    "[]",
    "null",
    "\"accept\"",
    r#"{"type":"confirmation.reply"}"#,
    r#"{"type":"confirmation.reply","reply_token":["a"],"decision":"accept","subscription_id":"sub_1","timestamp":"2026-01-01T00:00:00Z"}"#,
];

impl Run<'_> {
    /// Every check of level 2.
    pub(super) async fn interactive(&mut self) -> Result<(), String> {
        let withheld = self.withheld().await?;
        self.confirmations(withheld.as_ref()).await?;
        self.silence().await?;
        self.withdrawn().await?;
        self.clarification().await?;
        if let Some(ask) = &withheld {
            self.still_waits(ask).await?;
        }
        self.malformed().await?;
        self.compare_answers();
        Ok(())
    }

    /// A question that is left without an answer while everything else is tried. A producer that asks one
    /// thing at a time has to be answered first: then it is judged at once, and nothing is left.
    async fn withheld(&mut self) -> Result<Option<Ask>, String> {
        let Some(ask) = self.consent(Script::Confirm).await? else { return Ok(None) };
        let beside = match self.begin(Script::Tool).await? {
            Some((session, from)) => self.end_of(&session, from).await.is_some(),
            None => false,
        };
        if beside {
            return Ok(Some(ask));
        }
        self.still_waits(&ask).await?;
        Ok(None)
    }

    /// The question still waits, seconds after it was asked.
    async fn still_waits(&mut self, ask: &Ask) -> Result<(), String> {
        let until = self.target.quiet * WITHHELD;
        sleep(until.saturating_sub(ask.began.elapsed())).await;
        let seconds = ask.began.elapsed().as_secs();
        let waits = !self.moved(ask);
        // A question may give up by itself, when its time is up.
        let over = ask.event["timeout_seconds"].as_u64().is_some_and(|most| most <= seconds);
        if !over {
            let why = "It went on seconds after it had asked, without an answer.";
            self.report.holds("blocking", waits, why);
        }
        self.send("rejected", &ask.reply(&self.first, "reject")).await?;
        self.end_of(&ask.session, ask.after).await;
        Ok(())
    }

    async fn confirmations(&mut self, withheld: Option<&Ask>) -> Result<(), String> {
        self.hostile(withheld).await?;
        let Some(ask) = self.consent(Script::Confirm).await? else { return Ok(()) };
        self.quiet().await;
        self.report.holds("blocking", !self.moved(&ask), "It went on without an answer.");
        let yes = ask.reply(&self.first, "accept");
        self.send(ACCEPTED, &yes).await?;
        self.send("duplicate", &yes).await?;
        let end = self.end_of(&ask.session, ask.after).await;
        let fine = end.is_some() && self.invoked(&ask) == 1 && self.moved(&ask);
        self.report.holds(
            "accept",
            fine || self.invoked(&ask) > 1,
            "After a yes, the tool was not invoked, or the session did not end.",
        );
        self.report.holds("duplicate", self.invoked(&ask) <= 1, "The tool was invoked twice.");
        let why = "The tool that it asked about was invoked before it asked.";
        self.report.holds("blocking", !self.ran_before(&ask), why);
        let before = self.first.ear.len();
        self.send("replayed", &yes).await?;
        self.quiet().await;
        let again = self.first.ear.of(&ask.session, before).iter().any(|it| is(it, "tool.invoked"));
        self.report.holds("replayed", !again, "A reply that had counted was acted upon again.");
        self.refusal("reject", |ask, line| vec![ask.reply(line, "reject")]).await?;
        let both =
            |ask: &Ask, line: &Line| vec![ask.reply(line, "reject"), ask.reply(line, "accept")];
        self.refusal("first-wins", both).await?;
        self.race().await?;
        self.refusal("modified", |ask, line| {
            let mut reply = ask.reply(line, "accept");
            reply["modified_action"] = json!({ "euros": "2" });
            vec![reply]
        })
        .await
    }

    /// Replies that must not count, one after the other, while a question waits.
    async fn hostile(&mut self, withheld: Option<&Ask>) -> Result<(), String> {
        for what in ["forged", "wrong-kind", "stolen"] {
            if what == "stolen" && self.stranger.is_none() {
                let why = "It needs the token of somebody who may not answer.";
                self.report.skip(what, why);
                continue;
            }
            let Some(ask) = self.consent(Script::Confirm).await? else {
                self.report.skip(what, "Nothing asked for consent.");
                continue;
            };
            match what {
                "forged" => {
                    let mut reply = ask.reply(&self.first, "accept");
                    reply["reply_token"] = json!("rpl_0123456789abcdef0123456789abcdef");
                    self.send(what, &reply).await?;
                }
                "wrong-kind" => {
                    self.send(what, &ask.answer(&self.first, &json!("accept"))).await?;
                }
                _ => self.steal(&ask).await?,
            }
            self.quiet().await;
            // A made-up token may be taken for that of any question.
            let other = withheld.filter(|_| what == "forged");
            let moved = self.moved(&ask) || other.is_some_and(|other| self.moved(other));
            self.report.holds(what, !moved, "It had an effect.");
            self.send("rejected", &ask.reply(&self.first, "reject")).await?;
            self.end_of(&ask.session, ask.after).await;
        }
        Ok(())
    }

    /// Somebody who may not answer says yes.
    async fn steal(&mut self, ask: &Ask) -> Result<(), String> {
        let Some(stranger) = &self.stranger else { return Ok(()) };
        let answer = stranger.say(&ask.reply(stranger, "accept")).await;
        let answer = answer.map_err(|error| format!("a reply was not answered: {error}"))?;
        self.answers.keep("stolen", stranger, answer);
        if stranger.ear.is_over() {
            let why = "The connection of somebody who may not answer was ended for a reply.";
            self.report.fail("indistinguishable", why);
        }
        Ok(())
    }

    /// Whether a tool that was invoked after the yes was invoked in that session before the question, too.
    fn ran_before(&self, ask: &Ask) -> bool {
        let invoked = |events: Vec<Value>| -> Vec<Value> {
            let tools = events.into_iter().filter(|event| is(event, "tool.invoked"));
            tools.map(|event| event["tool"].clone()).collect()
        };
        let after = invoked(self.first.ear.of(&ask.session, ask.after));
        let all = invoked(self.first.ear.of(&ask.session, 0));
        let before = &all[..all.len().saturating_sub(after.len())];
        before.iter().any(|tool| after.contains(tool))
    }

    /// After these replies it is said that it does not happen, and it does not.
    async fn refusal(
        &mut self,
        what: &'static str,
        replies: impl Fn(&Ask, &Line) -> Vec<Value>,
    ) -> Result<(), String> {
        let Some(ask) = self.consent(Script::Confirm).await? else { return Ok(()) };
        for reply in replies(&ask, &self.first) {
            self.send(what, &reply).await?;
        }
        let end = self.end_of(&ask.session, ask.after).await;
        let invoked = self.invoked(&ask);
        self.report.holds(what, invoked == 0, "The tool was invoked all the same.");
        let events = self.first.ear.of(&ask.session, ask.after);
        let told = events.iter().any(|it| is(it, "state.changed") || is(it, "session.cancelled"));
        self.report.holds(what, end.is_some() && told, "Nothing said that it does not happen.");
        Ok(())
    }

    /// Two say yes at the same moment.
    async fn race(&mut self) -> Result<(), String> {
        let Some(ask) = self.consent(Script::Confirm).await? else { return Ok(()) };
        let (yes, same) = (ask.reply(&self.first, "accept"), ask.reply(&self.second, "accept"));
        let (one, two) = tokio::join!(self.first.say(&yes), self.second.say(&same));
        if one.is_err() || two.is_err() {
            return Err("it did not answer two replies at the same time.".into());
        }
        self.end_of(&ask.session, ask.after).await;
        let once = self.invoked(&ask) == 1;
        self.report.holds("first-wins", once, "Of two replies at once, not exactly one counted.");
        Ok(())
    }

    /// Nobody answers; then somebody does, too late.
    async fn silence(&mut self) -> Result<(), String> {
        let Some(ask) = self.consent(Script::Short).await? else { return Ok(()) };
        let seconds = ask.event["timeout_seconds"].as_u64().unwrap_or(u64::MAX);
        if seconds > LONGEST_WAIT {
            let why = format!("Its shortest timeout seen is {seconds} seconds.");
            self.report.skip("timeout", why.clone());
            self.report.skip("late", why);
            self.send("rejected", &ask.reply(&self.first, "reject")).await?;
            self.end_of(&ask.session, ask.after).await;
            return Ok(());
        }
        let until = Duration::from_secs(seconds).saturating_sub(Duration::from_millis(250));
        sleep(until.saturating_sub(ask.began.elapsed())).await;
        let early = self.moved(&ask);
        self.report.holds("timeout", !early, "It went on before the time was up.");
        let end = self.end_of(&ask.session, ask.after).await;
        self.report.holds("timeout", end.is_some(), "It went on waiting after the time was up.");
        let accepts = ask.event["default_decision"] == "accept";
        let as_said = (self.invoked(&ask) > 0) == accepts;
        self.report.holds("timeout", as_said || end.is_none(), "The default was not applied.");
        let before = self.invoked(&ask);
        self.send("late", &ask.reply(&self.first, "accept")).await?;
        self.quiet().await;
        self.report.holds("late", self.invoked(&ask) == before, "A late yes was acted upon.");
        Ok(())
    }

    async fn clarification(&mut self) -> Result<(), String> {
        let Some(ask) = self.ask(Script::Clarify, "awaiting.clarification").await? else {
            self.report.skip("clarification", "Nothing asked a question.");
            return Ok(());
        };
        let kinds = ask.event["accepted_response_kinds"].as_array().cloned().unwrap_or_default();
        let takes = |kind: &str| kinds.iter().any(|it| it == kind);
        let misfit = if takes("yes_no") { json!(4.5) } else { json!(true) };
        if !(takes("yes_no") && takes("numeric")) {
            self.send("misfit", &ask.answer(&self.first, &misfit)).await?;
            self.quiet().await;
            let why = "A response of the wrong kind was taken.";
            self.report.holds("clarification", !self.moved(&ask), why);
        }
        let fit = if takes("multiple_choice") {
            ask.event["choices"][0]["value"].clone()
        } else if takes("yes_no") {
            json!(true)
        } else if takes("numeric") {
            json!(1)
        } else {
            json!("Lagos")
        };
        self.send("answered", &ask.answer(&self.first, &fit)).await?;
        let end = self.end_of(&ask.session, ask.after).await;
        self.report.holds("clarification", end.is_some(), "It did not go on after an answer.");
        Ok(())
    }

    /// A question that is taken back before anybody answers it.
    async fn withdrawn(&mut self) -> Result<(), String> {
        let Some(ask) = self.ask(Script::Withdraw, "awaiting.confirmation").await? else {
            self.report.skip("cancelled", "Nothing asked for consent and took the question back.");
            return Ok(());
        };
        let taken_back = |event: &Value| {
            event["session_id"] == ask.session.as_str()
                && (is_end(event)
                    || (is(event, "state.changed") && event["to_state"] != "awaiting_input"))
        };
        let patience = self.target.patience.min(PATIENCE_FOR_WITHDRAWAL);
        if self.first.ear.wait(ask.after, patience, taken_back).await.is_none() {
            self.report.skip("cancelled", "No question was taken back.");
            self.send("rejected", &ask.reply(&self.first, "reject")).await?;
            self.end_of(&ask.session, ask.after).await;
            return Ok(());
        }
        self.send("cancelled", &ask.reply(&self.first, "accept")).await?;
        self.quiet().await;
        let ran = self.invoked(&ask) > 0;
        self.report.holds("cancelled", !ran, "A yes to a question that was taken back counted.");
        self.end_of(&ask.session, ask.after).await;
        Ok(())
    }

    async fn malformed(&mut self) -> Result<(), String> {
        for text in MALFORMED.iter().filter(|text| self.wire.can_say(text)) {
            match self.first.say_text((*text).to_owned()).await {
                Ok(None) => self.report.pass("malformed"),
                Ok(Some(answer)) if answer.status.is_client_error() => {
                    self.report.pass("malformed");
                }
                Ok(Some(answer)) => {
                    let why = format!("Malformed input was answered with {}.", answer.status);
                    self.report.fail("malformed", why);
                }
                Err(error) => self.report.fail("malformed", format!("Malformed input: {error}.")),
            }
        }
        let alive = self.begin(Script::Tool).await?.is_some() && !self.first.ear.is_over();
        self.report.holds("malformed", alive, "It did not go on after malformed input.");
        Ok(())
    }

    /// Every well-formed reply is answered in the same way, and costs nobody the connection.
    pub(super) fn compare_answers(&mut self) {
        if !self.answers.are_enough() {
            let why = "No reply counted that others could be compared with.";
            return self.report.skip("indistinguishable", why);
        }
        self.answers.compare(self.report);
        let why = "The connection of somebody whose replies were ignored was ended.";
        self.report.holds("indistinguishable", !self.first.ear.is_over(), why);
    }
}
