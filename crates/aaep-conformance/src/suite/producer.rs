//! Checks of a producer: several listeners at once, honest and hostile.

mod seen;

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use aaep_transport::client::{Answer, HttpClient};
use aaep_types::Timestamp;
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};

use super::ear::{Ear, is, is_end};
use super::report::Report;
use super::target::Target;

/// The longest timeout of a request that is waited for, in seconds.
const LONGEST_WAIT: u64 = 5;

/// Runs every check of the target's level. It ends by the target's deadline, whatever the target does.
pub async fn run(target: &Target) -> Report {
    let began = Instant::now();
    let mut report = Report::new(&target.url, target.level.clamp(1, 2), now());
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
    let first = target.client(target.token.as_deref())?;
    let second = target.client(target.token.as_deref())?;
    let stranger =
        target.stranger.as_deref().map(|token| target.client(Some(token))).transpose()?;
    let open = |why: String| format!("no stream of events: {why}");
    let ear = Ear::open(&first).await.map_err(open)?;
    let other = Ear::open(&second).await.map_err(open)?;
    let mut run = Run { target, first, second, stranger, ear, other, report, answers: Vec::new() };
    run.notification().await?;
    if run.target.level >= 2 {
        run.confirmations().await?;
        run.silence().await?;
        run.clarification().await?;
        run.malformed().await?;
        run.compare_answers();
    }
    seen::judge(&run.ear.texts(), run.report);
    Ok(())
}

/// Now, as an event or a reply says it.
fn now() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let millis = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    Timestamp::from_millis(millis).map_or_else(String::new, |stamp| stamp.to_string())
}

struct Run<'a> {
    target: &'a Target,
    first: HttpClient,
    second: HttpClient,
    stranger: Option<HttpClient>,
    ear: Ear,
    other: Ear,
    report: &'a mut Report,
    /// What replies were answered with, by what they were.
    answers: Vec<(&'static str, Answer)>,
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
    fn reply(&self, decision: &str) -> Value {
        json!({
            "type": "confirmation.reply", "reply_token": self.event["reply_token"],
            "decision": decision, "subscription_id": "sub_conformance", "timestamp": now(),
        })
    }

    fn answer(&self, response: &Value) -> Value {
        json!({
            "type": "clarification.reply", "reply_token": self.event["reply_token"],
            "response": response, "subscription_id": "sub_conformance", "timestamp": now(),
        })
    }
}

impl Run<'_> {
    /// Says something, and gives the session that comes of it.
    async fn begin(&self, text: &str) -> Result<Option<(String, usize)>, String> {
        let from = self.ear.len();
        let said = json!({ "kind": "user_input", "text": text }).to_string();
        let answer = self.first.post("messages", said).await;
        let answer = answer.map_err(|error| format!("nothing can be said to it: {error}"))?;
        if !answer.status.is_success() {
            return Err(format!("it answered {} to user_input.", answer.status));
        }
        let found =
            self.ear.wait(from, self.target.patience, |event| is(event, "session.started")).await;
        Ok(found.and_then(|(at, event)| Some((event["session_id"].as_str()?.to_owned(), at))))
    }

    async fn end_of(&self, session: &str, from: usize) -> Option<Value> {
        let ends = |event: &Value| event["session_id"] == session && is_end(event);
        self.ear.wait(from, self.target.patience, ends).await.map(|(_, event)| event)
    }

    async fn ask(&self, text: &str, kind: &str) -> Result<Option<Ask>, String> {
        let Some((session, from)) = self.begin(text).await? else { return Ok(None) };
        let wanted =
            |event: &Value| event["session_id"] == session && (is(event, kind) || is_end(event));
        let Some((after, event)) = self.ear.wait(from, self.target.patience, wanted).await else {
            return Ok(None);
        };
        let asked = is(&event, kind);
        Ok(asked.then(|| Ask { session, event, after, began: Instant::now() }))
    }

    /// Asks for consent, and hears that both ears were asked.
    async fn consent(&mut self, text: &str) -> Result<Option<Ask>, String> {
        let ask = self.ask(text, "awaiting.confirmation").await?;
        if let Some(ask) = &ask {
            let token = ask.event["reply_token"].clone();
            let same = |event: &Value| event["reply_token"] == token;
            let heard = self.other.wait(0, self.target.patience, same).await.is_some();
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
        let answer = self.first.post("messages", reply.to_string()).await;
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
        self.ear.of(&ask.session, ask.after).iter().any(acts)
    }

    fn invoked(&self, ask: &Ask) -> usize {
        let events = self.ear.of(&ask.session, ask.after);
        events.iter().filter(|event| is(event, "tool.invoked")).count()
    }

    async fn quiet(&self) {
        sleep(self.target.quiet).await;
    }

    async fn notification(&mut self) -> Result<(), String> {
        let texts = self.target.texts.clone();
        for text in [&texts.tool, &texts.stream, &texts.fail, &texts.cancel, &texts.progress] {
            match self.begin(text).await? {
                Some((session, from)) => {
                    if self.end_of(&session, from).await.is_none() {
                        self.report.fail("lifecycle", "A session did not end.");
                    }
                }
                None => self.report.skip("lifecycle", "Nothing that was said began a session."),
            }
        }
        if self.ear.len() == 0 {
            return Err("nothing that was said to it made it say anything.".into());
        }
        Ok(())
    }

    async fn confirmations(&mut self) -> Result<(), String> {
        let confirm = self.target.texts.confirm.clone();
        self.hostile(&confirm).await?;
        let Some(ask) = self.consent(&confirm).await? else { return Ok(()) };
        self.quiet().await;
        self.report.holds("blocking", !self.moved(&ask), "It went on without an answer.");
        let yes = ask.reply("accept");
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
        let before = self.ear.len();
        self.send("replayed", &yes).await?;
        self.quiet().await;
        let again = self.ear.of(&ask.session, before).iter().any(|it| is(it, "tool.invoked"));
        self.report.holds("replayed", !again, "A reply that had counted was acted upon again.");
        self.refusal("reject", &confirm, |ask| vec![ask.reply("reject")]).await?;
        let both = |ask: &Ask| vec![ask.reply("reject"), ask.reply("accept")];
        self.refusal("first-wins", &confirm, both).await?;
        self.race(&confirm).await?;
        self.refusal("modified", &confirm, |ask| {
            let mut reply = ask.reply("accept");
            reply["modified_action"] = json!({ "euros": "2" });
            vec![reply]
        })
        .await
    }

    /// Replies that must not count, one after the other, while a question waits.
    async fn hostile(&mut self, confirm: &str) -> Result<(), String> {
        for what in ["forged", "wrong-kind", "stolen"] {
            if what == "stolen" && self.stranger.is_none() {
                let why = "It needs the token of somebody who may not answer.";
                self.report.skip(what, why);
                continue;
            }
            let Some(ask) = self.consent(confirm).await? else {
                self.report.skip(what, "Nothing asked for consent.");
                continue;
            };
            match (what, &self.stranger) {
                ("forged", _) => {
                    let mut reply = ask.reply("accept");
                    reply["reply_token"] = json!("rpl_0123456789abcdef0123456789abcdef");
                    self.send("forged", &reply).await?;
                }
                ("wrong-kind", _) => {
                    self.send("wrong-kind", &ask.answer(&json!("accept"))).await?;
                }
                (_, Some(stranger)) => {
                    let sent = stranger.post("messages", ask.reply("accept").to_string()).await;
                    sent.map_err(|error| format!("a reply was not answered: {error}"))?;
                }
                _ => {}
            }
            self.quiet().await;
            self.report.holds(what, !self.moved(&ask), "It had an effect.");
            self.send("rejected", &ask.reply("reject")).await?;
            self.end_of(&ask.session, ask.after).await;
        }
        Ok(())
    }

    /// After these replies it is said that it does not happen, and it does not.
    async fn refusal(
        &mut self,
        what: &'static str,
        text: &str,
        replies: impl Fn(&Ask) -> Vec<Value>,
    ) -> Result<(), String> {
        let Some(ask) = self.consent(text).await? else { return Ok(()) };
        for reply in replies(&ask) {
            self.send(what, &reply).await?;
        }
        let end = self.end_of(&ask.session, ask.after).await;
        let invoked = self.invoked(&ask);
        self.report.holds(what, invoked == 0, "The tool was invoked all the same.");
        let events = self.ear.of(&ask.session, ask.after);
        let told = events.iter().any(|it| is(it, "state.changed") || is(it, "session.cancelled"));
        self.report.holds(what, end.is_some() && told, "Nothing said that it does not happen.");
        Ok(())
    }

    /// Two say yes at the same moment.
    async fn race(&mut self, text: &str) -> Result<(), String> {
        let Some(ask) = self.consent(text).await? else { return Ok(()) };
        let yes = ask.reply("accept").to_string();
        let both = (self.first.post("messages", yes.clone()), self.second.post("messages", yes));
        let (one, two) = tokio::join!(both.0, both.1);
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
        let text = self.target.texts.short.clone();
        let Some(ask) = self.consent(&text).await? else { return Ok(()) };
        let seconds = ask.event["timeout_seconds"].as_u64().unwrap_or(u64::MAX);
        if seconds > LONGEST_WAIT {
            let why = format!("Its shortest timeout seen is {seconds} seconds.");
            self.report.skip("timeout", why.clone());
            self.report.skip("late", why);
            self.send("rejected", &ask.reply("reject")).await?;
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
        self.send("late", &ask.reply("accept")).await?;
        self.quiet().await;
        self.report.holds("late", self.invoked(&ask) == before, "A late yes was acted upon.");
        Ok(())
    }

    async fn clarification(&mut self) -> Result<(), String> {
        let text = self.target.texts.clarify.clone();
        let Some(ask) = self.ask(&text, "awaiting.clarification").await? else {
            self.report.skip("clarification", "Nothing asked a question.");
            return Ok(());
        };
        let kinds = ask.event["accepted_response_kinds"].as_array().cloned().unwrap_or_default();
        let takes = |kind: &str| kinds.iter().any(|it| it == kind);
        let misfit = if takes("yes_no") { json!(4.5) } else { json!(true) };
        if !(takes("yes_no") && takes("numeric")) {
            self.send("misfit", &ask.answer(&misfit)).await?;
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
        self.send("answered", &ask.answer(&fit)).await?;
        let end = self.end_of(&ask.session, ask.after).await;
        self.report.holds("clarification", end.is_some(), "It did not go on after an answer.");
        Ok(())
    }

    async fn malformed(&mut self) -> Result<(), String> {
        let texts = [
            "{",
            "[]",
            "null",
            "\"accept\"",
            r#"{"type":"confirmation.reply"}"#,
            r#"{"type":"confirmation.reply","reply_token":["a"],"decision":"accept","subscription_id":"sub_1","timestamp":"2026-01-01T00:00:00Z"}"#,
        ];
        for text in texts {
            match self.first.post("messages", text).await {
                Ok(answer) if answer.status.is_client_error() => self.report.pass("malformed"),
                Ok(answer) => {
                    let why = format!("Malformed input was answered with {}.", answer.status);
                    self.report.fail("malformed", why);
                }
                Err(error) => self.report.fail("malformed", format!("Malformed input: {error}.")),
            }
        }
        let tool = self.target.texts.tool.clone();
        let alive = self.begin(&tool).await?.is_some();
        self.report.holds("malformed", alive, "It did not go on after malformed input.");
        Ok(())
    }

    /// Every well-formed reply is answered in the same way; `Date` aside.
    fn compare_answers(&mut self) {
        let shape = |answer: &Answer| {
            let mut headers = answer.headers.clone();
            headers.remove(http::header::DATE);
            (answer.status, headers, answer.body.clone())
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
    }
}
