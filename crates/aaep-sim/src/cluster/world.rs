//! A schedule: what happens when, all of it from one seed.

use aaep_store::ChainKey;
use aaep_store::log::{LogStorage as _, MemoryFault, MemoryStore, Stage};

use super::Broken;
use super::ledger::{Fact, Kept, Micros, Who};
use super::node::Node;
use super::oracle::{ClusterViolation, Oracle, read};
use crate::random::Random;

pub(super) const SHARD: &str = "s";
const NODES: usize = 3;
const STEPS: usize = 400;

/// What became of a schedule.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// What must hold and did not.
    pub found: Option<ClusterViolation>,
    /// How often a node took the shard over.
    pub takeovers: u64,
    /// How much people were told.
    pub told: u64,
}

/// The cluster's key, or another one.
pub(super) fn key(which: u8) -> ChainKey {
    ChainKey::new(&[7 + which; 32])
}

/// Runs the schedule of this seed, with one rule broken if so wanted.
pub fn run(seed: u64, broken: Option<Broken>) -> Report {
    let mut world = World::new(seed, broken);
    for step in 0..STEPS {
        world.step(step);
        if world.oracle.found.is_some() {
            break;
        }
    }
    Report {
        found: world.oracle.found,
        takeovers: world.nodes.iter().map(|node| node.takeovers).sum(),
        told: world.oracle.told,
    }
}

struct World {
    random: Random,
    store: MemoryStore,
    nodes: Vec<Node>,
    oracle: Oracle,
    /// The true time, which is the store's.
    now: Micros,
    broken: Option<Broken>,
    /// In some schedules somebody puts an old copy of the log back.
    restores: bool,
}

impl World {
    fn new(seed: u64, broken: Option<Broken>) -> Self {
        let mut random = Random::new(seed);
        let store = MemoryStore::default();
        // In some schedules one node has another key.
        let stranger = random.one_in(8).then(|| random.below(NODES));
        let make = |index: usize| {
            let which = u8::from(stranger == Some(index));
            let mut node = Node::new(index, &store, key(which), broken);
            // It comes when the others have begun.
            node.sleeps_until = if which == 1 { 20_000_000 } else { 0 };
            node
        };
        let mut nodes: Vec<Node> = (0..NODES).map(make).collect();
        for node in &mut nodes {
            node.off = random.below(1_800_000) as Micros - 900_000;
        }
        let restores = random.one_in(3);
        let oracle = Oracle::default();
        Self { random, store, nodes, oracle, now: 0, broken, restores }
    }

    fn step(&mut self, step: usize) {
        let passed = 1 + self.random.below(400_000) as Micros;
        self.now += passed;
        self.store.pass(passed);
        self.mishaps(step);
        let first = self.random.below(NODES);
        for index in (first..NODES).chain(0..first) {
            if self.nodes[index].sleeps_until > self.now {
                continue;
            }
            self.wakes(index);
        }
        if self.random.one_in(3) {
            self.gossip();
        }
        let log = read(&self.store);
        self.oracle.looks(&log);
    }

    fn mishaps(&mut self, step: usize) {
        let index = self.random.below(NODES);
        if self.random.one_in(30) {
            self.nodes[index].crash();
        }
        if self.random.one_in(20) {
            let pause = self.random.below(10_000_000) as Micros;
            let node = &mut self.nodes[index];
            node.sleeps_until = node.sleeps_until.max(self.now + pause);
        }
        if self.random.one_in(60) {
            // Somebody sets a clock; or it is set right again.
            let far = self.random.below(40_000_000) as Micros - 20_000_000;
            self.nodes[index].off = if self.random.one_in(2) { far } else { far / 25 };
        }
        while self.store.in_flight(SHARD) > 0 && self.random.one_in(3) {
            let which = self.random.below(self.store.in_flight(SHARD));
            self.store.deliver(SHARD, which);
        }
        if self.restores && step > STEPS / 3 && self.random.one_in(40) {
            self.restore();
        }
    }

    /// An old copy is put in the place of the log: all nodes know how long it was. What nobody else has
    /// noted yet, nobody can miss.
    fn restore(&mut self) {
        let quiet = self.nodes.iter().all(|node| node.todo.is_empty());
        let known = self.nodes.iter().map(|node| node.noted.0).min().unwrap_or_default();
        let length = self.store.storage(SHARD).head().unwrap_or_default();
        if !quiet || self.store.in_flight(SHARD) > 0 || known < 4 || known != length {
            return;
        }
        let left = 1 + self.random.below(known as usize - 1);
        self.store.lose_tail(SHARD, length as usize - left);
        self.oracle.restored = true;
        self.restores = false;
    }

    /// Nodes that are awake tell each other how far the log was; each notes it on its own disk.
    fn gossip(&mut self) {
        let awake = |node: &Node, now| node.sleeps_until <= now;
        let now = self.now;
        let known = self.nodes.iter().filter(|node| awake(node, now)).map(|node| node.noted);
        let far = known.fold((0, 0), |far, noted| (far.0.max(noted.0), far.1.max(noted.1)));
        for node in self.nodes.iter_mut().filter(|node| awake(node, now)) {
            node.noted = (node.noted.0.max(far.0), node.noted.1.max(far.1));
        }
    }

    fn wakes(&mut self, index: usize) {
        let fault = self.fault();
        let (random, node) = (&mut self.random, &mut self.nodes[index]);
        if random.one_in(2) {
            node.tend_lease(self.now);
        }
        for _ in 0..1 + random.below(6) {
            let fault = fault.filter(|_| random.one_in(2));
            node.act(fault, self.now, &mut self.oracle);
        }
        if node.owner.stage() == Stage::Serving && node.ledger.is_some() {
            self.serve(index);
        }
    }

    fn fault(&mut self) -> Option<MemoryFault> {
        let stale = MemoryFault::StaleRead(self.random.below(40) as u64);
        let faults = [
            MemoryFault::LostAcknowledgement,
            MemoryFault::Delayed,
            MemoryFault::Lost,
            MemoryFault::Doubled,
            MemoryFault::Away,
            stale,
        ];
        if self.random.one_in(3) { self.random.pick(&faults).copied() } else { None }
    }

    /// What people and agents want of a node that serves, or believes so.
    fn serve(&mut self, index: usize) {
        let (now, random) = (self.now, &mut self.random);
        let node = &mut self.nodes[index];
        let clocks = node.clocks(now);
        let Some(ledger) = &mut node.ledger else { return };
        let mut kept: Vec<Kept> = ledger.due(clocks.boot);
        if random.one_in(3) {
            let event = ledger.progress();
            node.progress += 1;
            self.oracle.tells_progress(event, index, node.progress);
        }
        if random.one_in(4) {
            let timeout = 3_000_000 + random.below(20_000_000) as Micros;
            let asked = ledger.ask(clocks, timeout);
            if let Fact::Asked { request, .. } = asked.fact {
                self.oracle.asked(request, now + timeout);
            }
            kept.push(asked);
        }
        let (open, approved) = ledger.requests();
        for request in open {
            if !random.one_in(6) {
                continue;
            }
            let (who, yes) =
                (if random.one_in(3) { Who::Stranger } else { Who::User }, random.one_in(2));
            if who == Who::User {
                self.oracle.user_said(request, yes);
            }
            // Half of them come through another node.
            let forwarded = random.one_in(2) && self.broken == Some(Broken::ForwardsAsNode);
            let shown = if forwarded { Who::Node } else { who };
            kept.extend(ledger.reply(request, shown, yes, clocks.boot));
        }
        for request in approved {
            if random.one_in(3) {
                kept.extend(ledger.invoke(request));
            }
        }
        for kept in kept {
            self.oracle.decided(&kept, now);
            node.submit(kept);
        }
    }
}
