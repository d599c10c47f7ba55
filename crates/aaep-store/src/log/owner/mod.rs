//! Owning a shard: claim, read to the end, serve, drain. A state machine without clock and IO.
//!
//! [`Owner`] is given what happened ([`OwnerEvent`]) and returns what to do ([`OwnerAction`]). It
//! decides three things on which everything rests: nobody is told before the store acknowledged; one
//! append is in flight at a time; and a refusal drops the engine. A lease only says when to try: losing
//! one changes nothing for a shard that is served.
//!
//! ```
//! use aaep_store::log::{Appended, OwnerAction, OwnerEvent, Owner};
//!
//! let mut owner = Owner::default();
//! assert_eq!(owner.handle(OwnerEvent::LeaseTaken), [OwnerAction::ReadToEnd]);
//! assert_eq!(owner.handle(OwnerEvent::ReadToEnd), [OwnerAction::Claim]);
//! let durable = |head| OwnerEvent::Appended(Appended::Durable { head });
//! assert_eq!(owner.handle(durable(1)), [OwnerAction::Recover]);
//! let append = OwnerAction::Append { expected: 1, from: 0, to: 1 };
//! assert_eq!(owner.handle(OwnerEvent::Submitted), [append]);
//! // Only now may anybody hear of it.
//! assert_eq!(owner.handle(durable(2)), [OwnerAction::Tell { up_to: 1 }]);
//! ```

#[cfg(test)]
mod explore;

use super::Appended;

/// What an owner is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OwnerEvent {
    /// This node should try to own the shard.
    LeaseTaken,
    /// Another node should. A shard that is served is served on, until its owner is fenced.
    LeaseLost,
    /// The log was read to its end, and verified.
    ReadToEnd,
    /// The store does not answer.
    CannotRead,
    /// The log is damaged, or an old copy. The shard stays closed.
    Damaged,
    /// The engine has one more unit to keep. Units are counted from 0 since the engine recovered.
    Submitted,
    /// What became of the claim, the append, the settling or the release.
    Appended(Appended),
    /// The pause is over.
    PauseOver,
    /// The node wants to stop serving this shard.
    Drain,
}

/// What an owner asks for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OwnerAction {
    /// Read the log to its end.
    ReadToEnd,
    /// Append a claim at the end that was read.
    Claim,
    /// Recover the engine from what was read, as after a restart, and serve.
    Recover,
    /// Append these units of the engine, in one entry.
    Append {
        /// How long the log is.
        expected: u64,
        /// The first of the units.
        from: u64,
        /// The one after the last.
        to: u64,
    },
    /// Settle the append in doubt: the same bytes for the same place.
    Settle,
    /// Units up to this one, exclusive, are durable: callers that wait for them may be told.
    Tell {
        /// The one after the last.
        up_to: u64,
    },
    /// Drop the engine with everything that was not told.
    DropEngine,
    /// Append that the shard is released.
    Release,
    /// Give the lease back.
    GiveBackLease,
    /// Wait a moment, then say [`OwnerEvent::PauseOver`].
    Pause,
}

/// Where an owner is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Stage {
    /// It has nothing to do with the shard.
    #[default]
    Idle,
    /// It reads the log.
    Reading,
    /// Its claim is on its way.
    Claiming,
    /// It serves the shard.
    Serving,
    /// It serves nobody any more; what was submitted is still kept.
    Draining,
    /// Its release is on its way.
    Releasing,
    /// The log cannot be believed.
    Closed,
}

/// One node's part in owning one shard.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    stage: Stage,
    /// How long the log is, as far as this node knows.
    head: u64,
    /// Units that were submitted, that were sent, and that are durable: each the one after the last.
    submitted: u64,
    sent: u64,
    durable: u64,
    /// An append is on its way.
    in_flight: bool,
    /// What was sent may be there or not.
    in_doubt: bool,
    #[cfg(test)]
    mutant: Option<explore::Mutant>,
}

impl Owner {
    /// Where it is.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// Whether the shard's users are served here.
    pub fn serves(&self) -> bool {
        self.stage == Stage::Serving
    }

    /// Handles an event; returns what to do, in this order.
    pub fn handle(&mut self, event: OwnerEvent) -> Vec<OwnerAction> {
        match (event, self.stage) {
            (OwnerEvent::LeaseTaken, Stage::Idle) => self.read(),
            (OwnerEvent::ReadToEnd, Stage::Reading) => {
                self.send(Stage::Claiming, OwnerAction::Claim)
            }
            (OwnerEvent::CannotRead, Stage::Reading) => vec![OwnerAction::Pause],
            (OwnerEvent::Damaged, Stage::Reading) => {
                self.stage = Stage::Closed;
                vec![OwnerAction::GiveBackLease]
            }
            (OwnerEvent::Submitted, Stage::Serving) => {
                self.submitted += 1;
                self.append()
            }
            (OwnerEvent::Appended(answer), _) if self.in_flight => self.answered(answer),
            (OwnerEvent::PauseOver, Stage::Reading) => vec![OwnerAction::ReadToEnd],
            (OwnerEvent::PauseOver, _) if self.in_doubt => {
                self.in_flight = true;
                vec![OwnerAction::Settle]
            }
            (OwnerEvent::PauseOver, Stage::Claiming) => self.read(),
            (OwnerEvent::PauseOver, Stage::Releasing) => {
                self.send(Stage::Releasing, OwnerAction::Release)
            }
            (OwnerEvent::PauseOver, Stage::Serving | Stage::Draining) => self.append(),
            (OwnerEvent::Drain, Stage::Serving) => {
                self.stage = Stage::Draining;
                self.append()
            }
            // Everything else changes nothing: above all a lease that was lost.
            _ => Vec::new(),
        }
    }

    fn read(&mut self) -> Vec<OwnerAction> {
        self.stage = Stage::Reading;
        vec![OwnerAction::ReadToEnd]
    }

    fn send(&mut self, stage: Stage, what: OwnerAction) -> Vec<OwnerAction> {
        (self.stage, self.in_flight) = (stage, true);
        vec![what]
    }

    /// Sends what waits, if nothing is on its way.
    fn append(&mut self) -> Vec<OwnerAction> {
        if self.in_flight || self.in_doubt {
            return Vec::new();
        }
        if self.durable < self.submitted {
            let (expected, from, to) = (self.head, self.durable, self.submitted);
            (self.sent, self.in_flight) = (to, true);
            let mut all = vec![OwnerAction::Append { expected, from, to }];
            if self.is(Broken::TellsEarly) {
                all.insert(0, OwnerAction::Tell { up_to: to });
            }
            return all;
        }
        if self.stage == Stage::Draining {
            self.in_flight = true;
            self.stage = Stage::Releasing;
            return vec![OwnerAction::DropEngine, OwnerAction::Release];
        }
        Vec::new()
    }

    fn answered(&mut self, answer: Appended) -> Vec<OwnerAction> {
        self.in_flight = false;
        match answer {
            Appended::Durable { head } => {
                self.in_doubt = false;
                self.head = head;
                self.durable()
            }
            Appended::Fenced if self.is(Broken::ServesFenced) && self.stage == Stage::Serving => {
                self.in_doubt = false;
                self.durable()
            }
            Appended::Fenced => {
                self.in_doubt = false;
                self.fenced()
            }
            Appended::InDoubt => {
                self.in_doubt = true;
                vec![OwnerAction::Pause]
            }
            Appended::Stuck(_) => vec![OwnerAction::Pause],
        }
    }

    fn durable(&mut self) -> Vec<OwnerAction> {
        match self.stage {
            Stage::Claiming => {
                self.stage = Stage::Serving;
                (self.submitted, self.sent, self.durable) = (0, 0, 0);
                vec![OwnerAction::Recover]
            }
            Stage::Serving | Stage::Draining => {
                self.durable = self.sent;
                let mut all = vec![OwnerAction::Tell { up_to: self.sent }];
                all.extend(self.append());
                all
            }
            Stage::Releasing => self.leave(),
            Stage::Idle | Stage::Reading | Stage::Closed => Vec::new(),
        }
    }

    fn fenced(&mut self) -> Vec<OwnerAction> {
        match self.stage {
            // Somebody else was quicker: read on.
            Stage::Claiming => self.read(),
            Stage::Serving | Stage::Draining => {
                let mut all = vec![OwnerAction::DropEngine];
                all.extend(self.leave());
                all
            }
            _ => self.leave(),
        }
    }

    fn leave(&mut self) -> Vec<OwnerAction> {
        self.stage = Stage::Idle;
        vec![OwnerAction::GiveBackLease]
    }

    #[cfg(test)]
    fn is(&self, broken: Broken) -> bool {
        self.mutant == Some(explore::Mutant::Owner(broken))
    }

    #[cfg(not(test))]
    fn is(&self, _: Broken) -> bool {
        false
    }
}

/// What the tests break, to see that it is missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Broken {
    TellsEarly,
    ServesFenced,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn durable(head: u64) -> OwnerEvent {
        OwnerEvent::Appended(Appended::Durable { head })
    }

    fn serving() -> Owner {
        let mut owner = Owner::default();
        let _ = owner.handle(OwnerEvent::LeaseTaken);
        let _ = owner.handle(OwnerEvent::ReadToEnd);
        assert_eq!(owner.handle(durable(5)), [OwnerAction::Recover]);
        owner
    }

    #[test]
    fn nobody_is_told_before_the_acknowledgement_and_one_append_is_on_its_way() {
        let mut owner = serving();
        let first = OwnerAction::Append { expected: 5, from: 0, to: 1 };
        assert_eq!(owner.handle(OwnerEvent::Submitted), [first]);
        assert_eq!(owner.handle(OwnerEvent::Submitted), []);
        assert_eq!(owner.handle(OwnerEvent::Submitted), []);
        let second = OwnerAction::Append { expected: 6, from: 1, to: 3 };
        assert_eq!(owner.handle(durable(6)), [OwnerAction::Tell { up_to: 1 }, second]);
        assert_eq!(owner.handle(durable(7)), [OwnerAction::Tell { up_to: 3 }]);
    }

    #[test]
    fn doubt_is_settled_before_anything_else_and_a_refusal_drops_the_engine() {
        let mut owner = serving();
        let _ = owner.handle(OwnerEvent::Submitted);
        assert_eq!(owner.handle(OwnerEvent::Appended(Appended::InDoubt)), [OwnerAction::Pause]);
        assert_eq!(owner.handle(OwnerEvent::Submitted), []);
        assert_eq!(owner.handle(OwnerEvent::PauseOver), [OwnerAction::Settle]);
        let fenced = OwnerEvent::Appended(Appended::Fenced);
        assert_eq!(owner.handle(fenced), [OwnerAction::DropEngine, OwnerAction::GiveBackLease]);
        assert_eq!(owner.stage(), Stage::Idle);
        assert_eq!(owner.handle(OwnerEvent::Submitted), [], "the engine is gone");
    }

    #[test]
    fn a_lost_lease_stops_nobody() {
        let mut owner = serving();
        assert_eq!(owner.handle(OwnerEvent::LeaseLost), []);
        assert!(owner.serves());
        assert_eq!(owner.handle(OwnerEvent::Submitted).len(), 1);
    }

    #[test]
    fn draining_keeps_what_was_submitted_then_releases() {
        let mut owner = serving();
        let _ = owner.handle(OwnerEvent::Submitted);
        assert_eq!(owner.handle(OwnerEvent::Drain), []);
        assert_eq!(owner.handle(OwnerEvent::Submitted), [], "nothing new");
        assert_eq!(
            owner.handle(durable(6)),
            [OwnerAction::Tell { up_to: 1 }, OwnerAction::DropEngine, OwnerAction::Release]
        );
        assert_eq!(owner.handle(durable(7)), [OwnerAction::GiveBackLease]);
        assert_eq!(owner.stage(), Stage::Idle);
    }

    #[test]
    fn a_log_that_cannot_be_believed_closes_the_shard_for_good() {
        let mut owner = Owner::default();
        let _ = owner.handle(OwnerEvent::LeaseTaken);
        assert_eq!(owner.handle(OwnerEvent::CannotRead), [OwnerAction::Pause]);
        assert_eq!(owner.handle(OwnerEvent::PauseOver), [OwnerAction::ReadToEnd]);
        assert_eq!(owner.handle(OwnerEvent::Damaged), [OwnerAction::GiveBackLease]);
        assert_eq!(owner.handle(OwnerEvent::LeaseTaken), []);
        assert_eq!(owner.stage(), Stage::Closed);
    }
}
