//! One question, heard by several subscriptions, and which of them may answer it.

use std::time::Duration;

use serde_json::{Value, json};

use super::answers::ACCEPTED;
use super::negotiated::Several;
use super::{Ask, Run};
use crate::suite::target::Script;
use crate::suite::wire::{Asked, Line, Wire, widest};

/// How late a critical event may reach somebody whose terms are tight.
const AT_ONCE: Duration = Duration::from_millis(1500);

impl Run<'_> {
    /// One question, and replies of subscriptions that may and may not answer it.
    pub(super) async fn among_subscriptions(
        &mut self,
        lines: &Several,
        closed: Option<&Line>,
    ) -> Result<(), String> {
        // The slow one is over its budget when the question comes.
        let mut before = Vec::new();
        for script in [Script::Tool, Script::Tool, Script::Tool, Script::Flood] {
            before.extend(self.begin(script).await?);
        }
        let Some(ask) = self.ask(Script::Confirm, "awaiting.confirmation").await? else {
            return Ok(());
        };
        self.everybody_is_asked(&ask, lines).await;
        let yes = ask.reply(&lines.mute, "accept");
        self.without_effect("reply-support", &ask, &lines.mute, &yes).await?;
        let mut yes = ask.reply(&lines.wide, "accept");
        yes["subscription_id"] = json!("sub_0123456789abcdef0123456789abcdef");
        self.without_effect("wrong-subscription", &ask, &lines.wide, &yes).await?;
        if let Some(closed) = closed {
            let yes = ask.reply(closed, "accept");
            self.without_effect("closed", &ask, &lines.wide, &yes).await?;
        }
        self.borrowed(&ask, &lines.wide).await?;
        let (yes, also, no) = (
            ask.reply(&lines.wide, "accept"),
            ask.reply(&lines.slow, "accept"),
            ask.reply(&lines.whole, "reject"),
        );
        let (one, two, three) =
            tokio::join!(lines.wide.say(&yes), lines.slow.say(&also), lines.whole.say(&no));
        for (line, answer) in [(&lines.wide, one), (&lines.slow, two), (&lines.whole, three)] {
            let answer = answer.map_err(|why| format!("replies at once: {why}"))?;
            self.answers.keep("one of several at once", line, answer);
        }
        let end = self.end_of(&ask.session, ask.after).await;
        let once = end.is_some() && self.invoked(&ask) <= 1 && self.moved(&ask);
        let why = "Of the replies of three subscriptions, not exactly one counted.";
        self.report.holds("racing", once, why);
        for (session, from) in before {
            self.end_of(&session, from).await;
        }
        self.one_that_counts(&lines.wide).await
    }

    /// A reply that counts, so that those that did not are compared with it.
    async fn one_that_counts(&mut self, line: &Line) -> Result<(), String> {
        let Some(ask) = self.ask(Script::Confirm, "awaiting.confirmation").await? else {
            return Ok(());
        };
        self.say_as(ACCEPTED, line, &ask.reply(line, "accept")).await?;
        self.end_of(&ask.session, ask.after).await;
        Ok(())
    }

    async fn everybody_is_asked(&mut self, ask: &Ask, lines: &Several) {
        let token = ask.event["reply_token"].clone();
        let same = |event: &Value| event["reply_token"] == token;
        let all = [&lines.wide, &lines.slow, &lines.whole, &lines.without_tools, &lines.mute];
        for line in all {
            let heard = line.ear.wait_at(0, self.target.patience, same).await;
            match heard {
                None => self.report.fail("critical", "A subscription did not hear a question."),
                Some((_, _, at)) => {
                    let late = at.saturating_duration_since(ask.began) > AT_ONCE;
                    let why = "A question waited behind what is less important.";
                    self.report.holds("critical", !late, why);
                }
            }
        }
    }

    /// Sends a reply that must not count.
    async fn without_effect(
        &mut self,
        check: &'static str,
        ask: &Ask,
        line: &Line,
        reply: &Value,
    ) -> Result<(), String> {
        self.say_as(check, line, reply).await?;
        self.quiet().await;
        self.report.holds(check, !self.moved(ask), "It had an effect.");
        Ok(())
    }

    /// Somebody who may not answer names the subscription of somebody who may.
    async fn borrowed(&mut self, ask: &Ask, owner: &Line) -> Result<(), String> {
        let Some(wire) = Wire::of_stranger(self.target)? else {
            let why = "It needs the token of somebody who may not answer.";
            self.report.skip("borrowed", why);
            return Ok(());
        };
        let line = match wire.subscribe(&widest()).await {
            Asked::Accepted(line) => *line,
            _ => wire.speak().await?,
        };
        self.without_effect("borrowed", ask, &line, &ask.reply(owner, "accept")).await
    }
}
