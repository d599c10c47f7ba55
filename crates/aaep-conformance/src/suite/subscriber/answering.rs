//! Level 2: questions, and what is answered.

use serde_json::Value;

use super::session::{self, Session};
use super::{Act, Question, Run};
use crate::published;

impl Run<'_> {
    /// Every check of level 2.
    pub(super) async fn answering(&mut self) {
        self.decided().await;
        self.several().await;
        self.clarified().await;
        self.withdrawn().await;
        self.settled_elsewhere().await;
    }

    async fn decided(&mut self) {
        for (act, decision, check) in
            [(Act::Accept, "accept", "accepts"), (Act::Reject, "reject", "rejects")]
        {
            let from = self.stage.place();
            let session = Session::begin(self.stage, "Tending the garden.");
            let (action, consequence) = ("Water the betony.", "The betony gets wet feet.");
            let question = self.ask(&session, action, consequence).await;
            for words in ["water the betony", "betony gets wet feet"] {
                let heard = self.hears(from, words).await;
                self.report.holds("asked", heard, format!("It was not announced: {words}."));
            }
            self.quiet().await;
            self.quiet().await;
            let alone = !self.stage.replies(&question.token).is_empty();
            self.report.holds("never-alone", !alone, "It was answered, and nobody answered.");
            let before = self.stage.said_so_far();
            self.act(&question, act).await;
            self.judge_reply(&question, before, check, |reply| {
                reply["type"] == "confirmation.reply" && reply["decision"] == decision
            })
            .await;
            if decision == "accept" {
                session.tool("watering", "Watering it.", "It is watered.");
            } else {
                session.enter("thinking", "It is not done.");
            }
            session.complete("The garden is tended.");
        }
    }

    /// The reply that the person's answer became.
    async fn judge_reply(
        &mut self,
        question: &Question,
        before: usize,
        check: &'static str,
        fits: impl Fn(&Value) -> bool,
    ) {
        let Some(reply) = self.reply(&question.token).await else {
            let other =
                self.stage.said(before).into_iter().any(|said| said["reply_token"].is_string());
            if other {
                self.report.fail("tokens", "The token came back changed.");
            }
            return self.report.fail(check, "The person answered, and no such reply came.");
        };
        self.report.pass("tokens");
        for violation in published::judge(&reply) {
            self.report.fail(check, violation.to_string());
        }
        self.report.holds(check, fits(&reply), "The reply does not say what the person said.");
        self.quiet().await;
        let once = self.stage.replies(&question.token).len() == 1;
        self.report.holds("once", once, "One answer became several replies.");
    }

    /// Two questions are open, and the older one is answered.
    async fn several(&mut self) {
        let from = self.stage.place();
        let (one, two) = (
            Session::begin(self.stage, "Tending the sage."),
            Session::begin(self.stage, "Tending the thyme."),
        );
        let first = self.ask(&one, "Prune the sage.", "The sage is shorter.").await;
        let second = self.ask(&two, "Prune the thyme.", "The thyme is shorter.").await;
        if !self.hears(from, "prune the sage").await || !self.hears(from, "prune the thyme").await {
            self.report.fail("right-one", "Of two questions, not both were announced.");
            return;
        }
        self.quiet().await;
        self.act(&first, Act::Accept).await;
        let right = self.reply(&first.token).await.is_some();
        let wrong = !self.stage.replies(&second.token).is_empty();
        self.report.holds("right-one", right && !wrong, "The answer went to another question.");
        for session in [&one, &two] {
            session.enter("thinking", "It is not done.");
            session.complete("The herbs are tended.");
        }
        self.quiet().await;
    }

    async fn clarified(&mut self) {
        let from = self.stage.place();
        let session = Session::begin(self.stage, "Looking for the vervain.");
        self.questions += 1;
        let token = session::token();
        let words = "Where does the vervain grow?";
        session.clarify(&token, words);
        let question = Question { token, action: words.into(), number: self.questions };
        if !self.hears(from, "where does the vervain grow").await {
            self.report.fail("clarifies", "A question was not announced.");
        }
        self.quiet().await;
        let early = !self.stage.replies(&question.token).is_empty();
        self.report.holds("never-alone", !early, "It was answered, and nobody answered.");
        let before = self.stage.said_so_far();
        self.act(&question, Act::Answer("Lagos")).await;
        self.judge_reply(&question, before, "clarifies", |reply| {
            reply["type"] == "clarification.reply" && reply["response"] == "Lagos"
        })
        .await;
        session.enter("thinking", "An answer came.");
        session.complete("The vervain is found.");
        self.quiet().await;
    }

    async fn withdrawn(&mut self) {
        let from = self.stage.place();
        let session = Session::begin(self.stage, "Tending the rue.");
        let question = self.ask(&session, "Dig up the rue.", "The rue is gone.").await;
        self.hears(from, "dig up the rue").await;
        self.quiet().await;
        let from = self.stage.place();
        session.cancel("The rue may stay.");
        let told = self.hears(from, "the rue may stay").await;
        self.report.holds("cancelled", told, "That it was taken back was not announced.");
        self.quiet().await;
        self.act(&question, Act::Accept).await;
        self.quiet().await;
        self.quiet().await;
        let sent = !self.stage.replies(&question.token).is_empty();
        self.report.holds("cancelled", !sent, "It was answered after it was taken back.");
    }

    async fn settled_elsewhere(&mut self) {
        let from = self.stage.place();
        let session = Session::begin(self.stage, "Tending the flax.");
        let question = self.ask(&session, "Cut the flax.", "The flax is cut.").await;
        self.hears(from, "cut the flax").await;
        self.quiet().await;
        let from = self.stage.place();
        session.enter("thinking", "Somebody else said no to the flax.");
        self.quiet().await;
        let told = self.stage.place() > from;
        self.report.holds("elsewhere", told, "That it was settled was not announced.");
        self.act(&question, Act::Accept).await;
        self.quiet().await;
        self.quiet().await;
        let sent = !self.stage.replies(&question.token).is_empty();
        self.report.holds("elsewhere", !sent, "It was answered after it was settled.");
        session.complete("The flax is tended.");
        self.quiet().await;
    }
}
