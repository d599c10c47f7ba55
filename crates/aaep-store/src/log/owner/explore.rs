//! Every way in which two owners, a log and its messages can go on, up to a bound; and what is missed
//! when one rule is broken. The owners are the real ones; the log is compare-and-set on places, and
//! each node sees it as [`ShardLog`](crate::log::ShardLog) does. Leases come whenever they like.

use std::collections::BTreeSet;

use super::{Broken, Owner, OwnerAction, OwnerEvent, Stage};
use crate::log::{Appended, Unavailable};

const NODES: usize = 2;

/// How far is looked: the longest log, the most puts on their way, the most crashes.
#[derive(Clone, Copy)]
struct Bounds {
    log: usize,
    in_flight: usize,
    crashes: usize,
}

/// For the tests of every day.
const NEAR: Bounds = Bounds { log: 3, in_flight: 1, crashes: 0 };
/// For a run by hand, and for mutants, which end early.
const FAR: Bounds = Bounds { log: 4, in_flight: 2, crashes: 1 };

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Mutant {
    Owner(Broken),
    /// The store takes whatever comes.
    NoCompareAndSet,
    /// The claim goes to the true end, which was not read.
    ClaimsUnread,
    /// A second append is sent behind one that was not answered.
    TwoInFlight,
    /// After doubt the units are offered for another place.
    NewPlaceAfterDoubt,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Body {
    Claim,
    Units(u64, u64),
    Release,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    node: usize,
    epoch: u64,
    body: Body,
}

/// A node: its owner, what that asked for, and the log as the node knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Node {
    owner: Owner,
    todo: Vec<OwnerAction>,
    known: Vec<Entry>,
    epoch: Option<u64>,
    doubt: Option<(usize, Entry)>,
    /// The engine: what it recovered from.
    engine: Option<Vec<Entry>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct World {
    mutant: Option<Mutant>,
    log: Vec<Entry>,
    /// A put that is on its way, or was doubled.
    in_flight: Vec<(usize, Entry)>,
    nodes: Vec<Node>,
    /// Units of which somebody was told.
    told: BTreeSet<(usize, u64, u64)>,
    crashes: usize,
}

/// How a put goes.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Answered,
    AnswerLost,
    Delayed,
    Stuck,
}

const WAYS: [Way; 4] = [Way::Answered, Way::AnswerLost, Way::Delayed, Way::Stuck];

fn epoch_of(log: &[Entry]) -> (u64, Option<usize>) {
    let mut force = (0, None);
    for entry in log {
        force = match entry.body {
            Body::Claim => (entry.epoch, Some(entry.node)),
            Body::Release => (force.0, None),
            Body::Units(..) => force,
        };
    }
    force
}

impl World {
    fn new(mutant: Option<Mutant>) -> Self {
        let mut nodes = vec![Node::default(); NODES];
        nodes.iter_mut().for_each(|node| node.owner.mutant = mutant);
        let (log, in_flight, told) = (Vec::new(), Vec::new(), BTreeSet::new());
        Self { mutant, log, in_flight, nodes, told, crashes: 0 }
    }

    fn is(&self, mutant: Mutant) -> bool {
        self.mutant == Some(mutant)
    }

    /// Puts an entry at a place; says whether it is there.
    fn put(&mut self, place: usize, entry: Entry) -> bool {
        if self.is(Mutant::NoCompareAndSet) || place == self.log.len() {
            self.log.push(entry);
            return true;
        }
        self.log.get(place) == Some(&entry)
    }

    fn handle(&mut self, node: usize, event: OwnerEvent) {
        let more = self.nodes[node].owner.handle(event);
        self.nodes[node].todo.extend(more);
    }

    /// Everything that can happen next.
    fn next(&self, bounds: Bounds) -> Vec<World> {
        let mut all = Vec::new();
        for index in 0..self.in_flight.len() {
            let mut world = self.clone();
            let (place, entry) = world.in_flight.remove(index);
            world.put(place, entry);
            all.push(world);
        }
        for node in 0..NODES {
            if self.nodes[node].todo.is_empty() {
                self.quiet(node, &mut all);
            } else {
                self.act(node, &mut all);
            }
            if self.crashes < bounds.crashes && self.nodes[node].owner.stage() != Stage::Idle {
                let mut world = self.clone();
                world.crashes += 1;
                world.nodes[node] = Node::default();
                world.nodes[node].owner.mutant = self.mutant;
                all.push(world);
            }
        }
        let within_bounds = |world: &World| {
            world.log.len() <= bounds.log && world.in_flight.len() <= bounds.in_flight
        };
        all.retain(within_bounds);
        all
    }

    fn quiet(&self, node: usize, all: &mut Vec<World>) {
        let events = match self.nodes[node].owner.stage() {
            Stage::Idle => vec![OwnerEvent::LeaseTaken],
            Stage::Serving => vec![OwnerEvent::Submitted, OwnerEvent::Drain, OwnerEvent::LeaseLost],
            _ => vec![],
        };
        for event in events {
            // One unit for each engine is enough to be lost or doubled.
            if event == OwnerEvent::Submitted && self.nodes[node].owner.submitted > 0 {
                continue;
            }
            let mut world = self.clone();
            world.handle(node, event);
            all.push(world);
        }
    }

    fn act(&self, node: usize, all: &mut Vec<World>) {
        let mut world = self.clone();
        let what = world.nodes[node].todo.remove(0);
        match what {
            OwnerAction::ReadToEnd => {
                // Any reading may be stale, but none shorter than what the node knows.
                for end in world.nodes[node].known.len()..=world.log.len() {
                    let mut world = world.clone();
                    world.nodes[node].known = world.log[..end].to_vec();
                    world.nodes[node].epoch = None;
                    world.handle(node, OwnerEvent::ReadToEnd);
                    all.push(world);
                }
                return;
            }
            OwnerAction::Claim => {
                let epoch = epoch_of(&self.nodes[node].known).0 + 1;
                return world.send(node, Entry { node, epoch, body: Body::Claim }, all);
            }
            OwnerAction::Append { expected, from, to } => {
                return world.own(node, Body::Units(from, to), Some(expected), all);
            }
            OwnerAction::Release => return world.own(node, Body::Release, None, all),
            OwnerAction::Settle => return world.settle(node, all),
            OwnerAction::Pause => world.handle(node, OwnerEvent::PauseOver),
            OwnerAction::Recover => {
                let known = world.nodes[node].known.clone();
                world.nodes[node].engine = Some(known);
            }
            OwnerAction::DropEngine => world.nodes[node].engine = None,
            OwnerAction::Tell { up_to } => {
                let epoch = world.nodes[node].owner_epoch();
                for unit in 0..up_to {
                    world.told.insert((node, epoch, unit));
                }
            }
            OwnerAction::GiveBackLease => {}
        }
        all.push(world);
    }

    /// Sends what only the owner may.
    fn own(self, node: usize, body: Body, expected: Option<u64>, all: &mut Vec<World>) {
        let at = self.nodes[node].known.len() as u64;
        match self.nodes[node].epoch {
            Some(epoch) if expected.is_none_or(|expected| expected == at) => {
                self.send(node, Entry { node, epoch, body }, all);
            }
            _ => {
                let mut world = self;
                world.handle(node, OwnerEvent::Appended(Appended::Fenced));
                all.push(world);
            }
        }
    }

    fn send(self, node: usize, entry: Entry, all: &mut Vec<World>) {
        let mut place = self.nodes[node].known.len();
        if self.is(Mutant::ClaimsUnread) && entry.body == Body::Claim {
            place = self.log.len();
        }
        for way in WAYS {
            let mut world = self.clone();
            world.offer(node, place, entry, way, false);
            all.push(world);
        }
    }

    fn settle(self, node: usize, all: &mut Vec<World>) {
        let Some((mut place, entry)) = self.nodes[node].doubt else { return };
        if self.is(Mutant::NewPlaceAfterDoubt) {
            place = self.log.len();
        }
        for way in WAYS {
            let mut world = self.clone();
            world.offer(node, place, entry, way, true);
            all.push(world);
        }
    }

    fn offer(&mut self, node: usize, place: usize, entry: Entry, way: Way, again: bool) {
        let there = match way {
            Way::Answered | Way::AnswerLost => self.put(place, entry),
            Way::Delayed => {
                self.in_flight.push((place, entry));
                if let (true, Body::Units(_, to)) = (self.is(Mutant::TwoInFlight), entry.body) {
                    let body = Body::Units(to, to + 1);
                    self.in_flight.push((place + 1, Entry { body, ..entry }));
                }
                false
            }
            Way::Stuck => false,
        };
        let answer = match way {
            Way::Answered if there => {
                let node = &mut self.nodes[node];
                node.doubt = None;
                // A mutant did not read all that is before.
                node.known.truncate(place);
                node.known.push(entry);
                let ours = entry.body != Body::Release;
                node.epoch = ours.then_some(entry.epoch);
                Appended::Durable { head: node.known.len() as u64 }
            }
            Way::Answered => {
                (self.nodes[node].doubt, self.nodes[node].epoch) = (None, None);
                Appended::Fenced
            }
            // Not sent now; but it may be on its way since the time before.
            Way::Stuck if !again => Appended::Stuck(Unavailable::Full),
            _ => {
                self.nodes[node].doubt = Some((place, entry));
                Appended::InDoubt
            }
        };
        self.handle(node, OwnerEvent::Appended(answer));
    }

    /// What must hold in every world.
    fn wrong(&self) -> Option<&'static str> {
        for (place, entry) in self.log.iter().enumerate() {
            let (epoch, owner) = epoch_of(&self.log[..place]);
            let allowed = match entry.body {
                Body::Claim => entry.epoch > epoch,
                _ => entry.epoch == epoch && owner == Some(entry.node),
            };
            if !allowed {
                return Some("an entry of an epoch that was not in force");
            }
            if self.log[..place].contains(entry) {
                return Some("an entry twice");
            }
        }
        let kept = |(node, epoch, unit): &(usize, u64, u64)| {
            self.log.iter().any(|entry| match entry.body {
                Body::Units(from, to) => {
                    (entry.node, entry.epoch) == (*node, *epoch) && (from..to).contains(unit)
                }
                _ => false,
            })
        };
        if !self.told.iter().all(kept) {
            return Some("told of what is not in the log");
        }
        for node in &self.nodes {
            if let Some(engine) = &node.engine
                && self.log.get(..engine.len()) != Some(&engine[..])
            {
                return Some("an engine that recovered from something else than the log");
            }
        }
        None
    }
}

impl Node {
    /// The epoch of the engine.
    fn owner_epoch(&self) -> u64 {
        self.engine.as_deref().map_or(0, |engine| epoch_of(engine).0)
    }
}

/// Looks at every world that can be reached; gives their number, or what went wrong first.
fn explore(mutant: Option<Mutant>, bounds: Bounds) -> Result<usize, &'static str> {
    let first = World::new(mutant);
    let mut seen = BTreeSet::from([first.clone()]);
    let mut open = std::collections::VecDeque::from([first]);
    while let Some(world) = open.pop_front() {
        for next in world.next(bounds) {
            if let Some(wrong) = next.wrong() {
                return Err(wrong);
            }
            if !seen.contains(&next) {
                seen.insert(next.clone());
                open.push_back(next);
            }
        }
    }
    println!("{} worlds", seen.len());
    Ok(seen.len())
}

#[test]
fn whatever_two_owners_and_their_messages_do_the_log_is_the_history_of_one_engine() {
    let worlds = explore(None, NEAR).unwrap();
    assert!(worlds > 1_000, "{worlds} worlds are not all");
    // A crash more, and nothing that is delayed.
    let crash = Bounds { in_flight: 0, crashes: 1, ..NEAR };
    assert!(explore(None, crash).unwrap() > 1_000);
}

/// `cargo test --release -p aaep-store --features log owner -- --ignored --nocapture`
#[test]
#[ignore = "takes minutes and gigabytes"]
fn the_same_further() {
    explore(None, FAR).unwrap();
}

#[test]
fn every_broken_rule_is_missed() {
    let mutants = [
        Mutant::Owner(Broken::TellsEarly),
        Mutant::Owner(Broken::ServesFenced),
        Mutant::NoCompareAndSet,
        Mutant::ClaimsUnread,
        Mutant::TwoInFlight,
        Mutant::NewPlaceAfterDoubt,
    ];
    for mutant in mutants {
        let found = explore(Some(mutant), FAR);
        assert!(found.is_err(), "{mutant:?} is not missed in {found:?} worlds");
    }
}
