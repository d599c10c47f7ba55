//! Level 2: what is asked, and which answers count.

use std::time::Duration;

use aaep_transport::client::FullResponse;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Ask, Run};
use crate::suite::ear::{is, is_end};
use crate::suite::target::Script;
use crate::suite::wire::Line;

/// The longest timeout of a request that is waited for, in seconds.
const LONGEST_WAIT: u64 = 5;

/// How long it is waited for a question to be taken back.
const PATIENCE_FOR_WITHDRAWAL: Duration = Duration::from_secs(4);

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
        self.confirmations().await?;
        self.silence().await?;
        self.withdrawn().await?;
        self.clarification().await?;
        self.malformed().await?;
        self.compare_answers();
        Ok(())
    }

    async fn confirmations(&mut self) -> Result<(), String> {
        self.hostile().await?;
        let Some(ask) = self.consent(Script::Confirm).await? else { return Ok(()) };
        self.quiet().await;
        self.report.holds("blocking", !self.moved(&ask), "It went on without an answer.");
        let yes = ask.reply(&self.first, "accept");
        self.send("accepted", &yes).await?;
        self.send("duplicate", &yes).await?;
        let end = self.end_of(&ask.session, ask.after).await;
        let fine = end.is_some() && self.invoked(&ask) == 1 && self.moved(&ask);
        self.report.holds(
            "accept",
            fine || self.invoked(&ask) > 1,
            "After a yes, the tool was not invoked, or the session did not end.",
        );
        self.report.holds("duplicate", self.invoked(&ask) <= 1, "The tool was invoked twice.");
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
    async fn hostile(&mut self) -> Result<(), String> {
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
            match (what, &self.stranger) {
                ("forged", _) => {
                    let mut reply = ask.reply(&self.first, "accept");
                    reply["reply_token"] = json!("rpl_0123456789abcdef0123456789abcdef");
                    self.send("forged", &reply).await?;
                }
                ("wrong-kind", _) => {
                    self.send("wrong-kind", &ask.answer(&self.first, &json!("accept"))).await?;
                }
                (_, Some(stranger)) => {
                    let sent = stranger.say(&ask.reply(stranger, "accept")).await;
                    sent.map_err(|error| format!("a reply was not answered: {error}"))?;
                }
                _ => {}
            }
            self.quiet().await;
            self.report.holds(what, !self.moved(&ask), "It had an effect.");
            self.send("rejected", &ask.reply(&self.first, "reject")).await?;
            self.end_of(&ask.session, ask.after).await;
        }
        Ok(())
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
        for text in MALFORMED {
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

    /// Every well-formed reply is answered in the same way. `Date` may differ, and so may the id of the
    /// request, as long as all ids look alike.
    fn compare_answers(&mut self) {
        let shape = |answer: &Option<FullResponse>| {
            let answer = answer.as_ref()?;
            let mut headers = answer.headers.clone();
            headers.remove(http::header::DATE);
            let id = headers.remove("x-request-id").map(|id| id.len());
            Some((answer.status, headers, id, answer.body.clone()))
        };
        let Some((_, usual)) = self.answers.iter().find(|(what, _)| *what == "accepted") else {
            return;
        };
        let usual = shape(usual);
        for (what, answer) in &self.answers {
            let same = shape(answer) == usual;
            let why = format!(
                "The reply that was {what} is answered in another way than one that counts."
            );
            self.report.holds("indistinguishable", same, why);
        }
        let why = "The connection of somebody whose replies were ignored was ended.";
        self.report.holds("indistinguishable", !self.first.ear.is_over(), why);
    }
}
