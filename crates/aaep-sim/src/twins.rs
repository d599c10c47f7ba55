//! I21: a stalled subscriber changes nothing for another. The same schedule is played twice, with one
//! listener more: in the one it takes everything, in the other nothing. Whatever anybody else hears,
//! and when, has to be the same.

use std::collections::BTreeSet;
use std::sync::Arc;

use aaep_engine::{Deliver, ProducerOutput, Rules};
use aaep_types::SubscriptionId;

use crate::cast::{Cast, SLEEPER};
use crate::client::{Client, Reads};
use crate::oracle::Violation;
use crate::random::Random;
use crate::schedule::{Report, play};
use crate::wants::Wants;
use crate::world::World;

/// Something that was said or heard.
#[derive(Debug, PartialEq)]
pub(crate) struct Delivered {
    at: u64,
    /// Which client; none if it was said to everybody.
    client: Option<usize>,
    what: Arc<str>,
}

/// The listener that is there for the comparison alone.
#[derive(Debug, Default)]
pub(crate) struct Sleeper {
    client: usize,
    heard: Vec<Delivered>,
}

impl<R: Rules> World<'_, R> {
    /// One listener more, who may hear everything and never answers.
    fn sleeper_comes(&mut self, reads: Reads) {
        let client = self.clients.len();
        let wants = Wants::anything(&mut self.random);
        self.clients.push(Client { wants, reads, ..Client::new(SLEEPER) });
        self.sleeper = Some(Sleeper { client, heard: Vec::new() });
        self.connect(client, true, false);
    }

    /// Whether an output concerns the sleeper alone.
    pub(crate) fn is_for_sleeper(&self, output: &ProducerOutput) -> bool {
        let Some(sleeper) = &self.sleeper else { return false };
        let of = |id: SubscriptionId| self.id(sleeper.client) == Some(id);
        match output {
            ProducerOutput::Deliver(Deliver::Send { subscription, .. }) => of(*subscription),
            ProducerOutput::Deliver(Deliver::End { subscription, .. }) => of(*subscription),
            _ => false,
        }
    }

    /// Notes what others hear.
    pub(crate) fn compare_later(&mut self, output: &ProducerOutput) {
        let (what, client) = match output {
            ProducerOutput::Emitted(event) => (&event.json, None),
            ProducerOutput::Deliver(Deliver::Send { subscription, bytes, .. }) => {
                let clients = 0..self.clients.len();
                (bytes, clients.rev().find(|client| self.id(*client) == Some(*subscription)))
            }
            _ => return,
        };
        let heard = Delivered { at: self.clocks.passed, client, what: what.clone() };
        if let Some(sleeper) = &mut self.sleeper {
            sleeper.heard.push(heard);
        }
    }
}

/// Plays the schedule of a seed both ways, and compares.
pub(crate) fn run<R: Rules>(cast: &Cast, random: &Random, trace: bool) -> Report {
    let [awake, asleep] = play_both::<R>(cast, random, trace);
    let differ = || difference(&awake.1, &asleep.1);
    let violation = awake.0.violation.or(asleep.0.violation).or_else(differ);
    Report { steps: awake.0.steps, violation }
}

/// With one listener more, who takes everything or nothing: what became of it, and what others heard.
fn play_both<R: Rules>(cast: &Cast, random: &Random, trace: bool) -> [(Report, Vec<Delivered>); 2] {
    [Reads::Briskly, Reads::Never].map(|reads| {
        let mut world = World::<R>::new(cast, random.clone(), true, trace);
        world.sleeper_comes(reads);
        play(&mut world);
        let heard = world.sleeper.map(|sleeper| sleeper.heard).unwrap_or_default();
        (Report { steps: world.steps, violation: world.oracle.violation }, heard)
    })
}

/// What somebody hears otherwise. Who hears the same event first does not matter.
fn difference(awake: &[Delivered], asleep: &[Delivered]) -> Option<Violation> {
    let clients: BTreeSet<_> = awake.iter().chain(asleep).map(|heard| heard.client).collect();
    clients.into_iter().find_map(|client| {
        let of = |all: &'_ [Delivered]| -> Vec<(u64, Arc<str>)> {
            let own = all.iter().filter(|heard| heard.client == client);
            own.map(|heard| (heard.at, heard.what.clone())).collect()
        };
        let (one, other) = (of(awake), of(asleep));
        let first = (0..one.len().max(other.len())).find(|at| one.get(*at) != other.get(*at))?;
        let (one, other) = (one.get(first), other.get(first));
        let text = format!("{client:?} hears {one:?}, and if another one stalls {other:?}");
        Some(Violation { invariant: "I21", text })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    struct HoldsUpAll;

    impl Rules for HoldsUpAll {
        fn holds_up_others(paused: bool) -> bool {
            paused
        }
    }

    // covers: I21
    #[test]
    fn comparing_shows_an_engine_that_waits_for_the_slowest() {
        let cast = Cast::new();
        let seen = (1..200).any(|seed| {
            let [awake, asleep] = play_both::<HoldsUpAll>(&cast, &Random::new(seed), false);
            awake.0.violation.is_none() && difference(&awake.1, &asleep.1).is_some()
        });
        assert!(seen);
    }
}
