//! A question of the agent, put to the person while the editor shows its own dialog.

use std::sync::Arc;
use std::time::Duration;

use aaep_agent::{Call, Confirmation, Error, Kind, NotApproved, Session};
use aaep_types::Reversibility;
use tokio::io::AsyncWrite;
use tokio::time::Instant;

use super::message::{Choice, Permission, Reply};
use super::{Allowed, Wires};
use crate::act::{Judgment, shown};
use crate::consent;

/// How long it is asked for how long an answer counts.
const HOW_LONG_SECONDS: u32 = 60;

/// What is put to the person.
pub(super) struct Question {
    pub(super) session: Arc<Session>,
    pub(super) judgment: Judgment,
    pub(super) tool: String,
    pub(super) arguments: String,
    pub(super) asked: Permission,
    /// Whether answers that count for longer are offered here.
    pub(super) offers_lasting: bool,
    pub(super) editor_asks: bool,
    pub(super) seconds: u32,
    /// The command, if it is one.
    pub(super) command: Option<String>,
    /// What a client of our own may run once it was allowed.
    pub(super) allowed: Allowed,
}

impl Question {
    /// Asks, answers the agent, and gives the call back if it runs. None also if somebody else was
    /// first, or nobody could be asked.
    pub(super) async fn decide<E, A>(self, wires: &Wires<E, A>) -> Option<Call>
    where
        E: AsyncWrite + Unpin,
        A: AsyncWrite + Unpin,
    {
        let mut consequence = self.judgment.consequence().to_owned();
        let lasting = self.asked.lasting(true);
        match lasting.first() {
            Some(only) if !self.asked.has_yes() => {
                consequence += &format!(
                    " The agent offers no yes for this once. A yes here means: {}.",
                    shown(&only.name)
                );
            }
            Some(_) if self.editor_asks && !self.offers_lasting => {
                consequence +=
                    " A yes here counts once; to be asked no more, answer in the editor.";
            }
            _ => {}
        }
        let action = self.judgment.action();
        match self.judgment.reversibility() {
            Reversibility::Irreversible => {
                let request = Confirmation::irreversible(&self.tool, action, consequence);
                self.settle(request, wires).await
            }
            _ => {
                let request = Confirmation::with_effort(&self.tool, action, consequence);
                self.settle(request, wires).await
            }
        }
    }

    async fn settle<K: Kind, E, A>(
        self,
        request: Confirmation<K>,
        wires: &Wires<E, A>,
    ) -> Option<Call>
    where
        E: AsyncWrite + Unpin,
        A: AsyncWrite + Unpin,
    {
        let request = request.risk(self.judgment.risk()).arguments_json(self.arguments.clone());
        let until = Instant::now() + Duration::from_secs(self.seconds.into());
        let parked = self.session.park((), request.timeout_seconds(self.seconds)).await.ok()?;
        let decided = consent::decision(&parked, until).await;
        let reply = match &decided {
            // Nobody can be asked here: the editor still asks.
            Err(error) if error.is_unavailable() => return None,
            Ok(_) => self.how_long(true).await,
            Err(Error::NotApproved(NotApproved::Rejected { .. })) => self.how_long(false).await,
            // Silence never counts for longer than this once.
            Err(_) => Reply::Once(false),
        };
        // The person stopped it. The agent hears that before its answer, or it might begin anew.
        if matches!(decided, Err(Error::SessionOver)) {
            wires.stop(&self.asked.session).await;
        }
        // If the editor was first, this one is withdrawn.
        let asked = wires.claim(&self.asked)?;
        let running = match decided {
            Ok(approval) => self.session.invoke(parked, approval).await.ok(),
            Err(_) => None,
        };
        // What cannot be announced does not run, whatever was answered.
        let reply = match running.is_some() || !self.is_yes(&reply) {
            true => reply,
            false => Reply::Once(false),
        };
        if let (Some(_), Some(command)) = (&running, &self.command) {
            self.allowed.add(command);
        }
        wires.answer(&asked, &reply).await;
        running.map(|((), running)| running)
    }

    fn is_yes(&self, reply: &Reply) -> bool {
        match reply {
            Reply::Once(yes) => *yes,
            Reply::Lasting(choice) => self.asked.lasting(true).contains(choice),
        }
    }

    /// For how long an answer counts: this once, unless the person chooses otherwise now.
    async fn how_long(&self, yes: bool) -> Reply {
        let lasting = self.asked.lasting(yes);
        if yes && !self.asked.has_yes() {
            let only = lasting.into_iter().next();
            return only.map_or(Reply::Once(true), Reply::Lasting);
        }
        if !self.offers_lasting || lasting.is_empty() {
            return Reply::Once(yes);
        }
        let answer = if yes { "yes" } else { "no" };
        let words = format!("How long does your {answer} count? {}", self.judgment.action());
        let mut question = aaep_agent::Question::<Option<Choice>>::choice(words)
            .or("Only this once", None)
            .timeout_seconds(HOW_LONG_SECONDS.min(self.seconds));
        for choice in lasting.into_iter().take(8) {
            question = question.or(shown(&choice.name), Some(choice));
        }
        match self.session.ask(question).await {
            Ok(Some(choice)) => Reply::Lasting(choice),
            _ => Reply::Once(yes),
        }
    }
}
