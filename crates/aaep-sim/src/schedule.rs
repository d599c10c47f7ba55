//! A schedule: from a seed to some forty steps, about three of which are faults.

use aaep_engine::Rules;

use crate::cast::{Cast, LISTENERS};
use crate::oracle::{Line, Violation};
use crate::random::Random;
use crate::twins;
use crate::world::World;

const STEPS: usize = 40;
/// After the last fault: long enough for every deadline, lease and reply on its way.
const REST_MILLIS: u64 = 420_000;

/// What became of a schedule.
#[derive(Clone, Debug)]
pub struct Report {
    /// How many steps were made.
    pub steps: u64,
    /// What did not hold, if anything.
    pub violation: Option<Violation>,
}

type Step<'c, R> = fn(&mut World<'c, R>);

impl<'c, R: Rules> World<'c, R> {
    /// What may happen, and how often compared with the rest.
    const ORDINARY: [(usize, Step<'c, R>); 19] = [
        (2, Self::agent_opens),
        (8, Self::agent_asks),
        (8, Self::agent_invokes),
        (3, Self::agent_completes),
        (5, Self::agent_emits),
        (1, Self::agent_withdraws),
        (1, Self::agent_cries_wolf),
        (1, Self::agent_wears_out),
        (1, Self::tenant_takes_everything),
        (1, Self::agent_ends),
        (9, Self::person_answers),
        (6, Self::attacker_answers),
        (1, Self::attacker_babbles),
        (1, Self::attacker_floods),
        (1, Self::attacker_listens),
        (1, Self::person_stops),
        (3, Self::person_joins),
        (4, Self::a_moment_passes),
        (3, Self::a_while_passes),
    ];

    const FAULTS: [(usize, Step<'c, R>); 13] = [
        (3, Self::the_hub_crashes),
        (3, Self::the_hub_will_crash),
        (2, Self::the_clock_is_set),
        (2, Self::the_machine_sleeps),
        (3, Self::a_deadline_is_near),
        (4, Self::person_goes),
        (1, Self::person_renegotiates),
        (3, Self::the_disk_slows_down),
        (1, Self::the_disk_fills_up),
        (1, Self::the_disk_fails),
        (1, Self::agent_dies),
        (1, Self::the_hub_drains),
        (1, Self::the_disk_is_synced),
    ];

    fn begin(&mut self) {
        self.devices_are_made();
        for index in 0..LISTENERS.len() {
            if !self.random.one_in(if self.motley { 4 } else { 2 }) {
                self.join(index);
            }
        }
        self.agent_opens();
        self.settle();
    }

    fn step(&mut self) {
        self.steps += 1;
        if self.hub.is_none() {
            if self.random.one_in(3) {
                self.clocks.passed += self.random.below(40_000) as u64;
            }
            if self.random.one_in(6) {
                self.somebody_forges();
            }
            self.restart();
        } else if self.oracle.draining && self.random.one_in(6) {
            self.the_hub_stops();
        } else if self.random.below(40) < 3 {
            let step = self.choose(&Self::FAULTS);
            step(self);
        } else {
            let step = self.choose(&Self::ORDINARY);
            step(self);
        }
        if !self.slow_disk || self.random.one_in(4) {
            self.settle();
        }
        if self.disk.full && self.random.one_in(4) {
            self.room_is_made();
        }
        self.compare_pictures();
        if self.motley {
            // So that it makes no difference whether one of them has to be told the time.
            if self.sleeper.is_some() {
                self.tick();
            }
            self.connections_move();
            if let Some(hub) = &self.hub {
                self.oracle.bounded(&hub.load(), &self.limits);
            }
        }
        if let Some(hub) = &self.hub {
            let held = hub.engine().footprint();
            self.oracle.holds_only_what_it_needs(&held, &self.limits);
        }
    }

    fn choose(&mut self, from: &[(usize, Step<'c, R>)]) -> Step<'c, R> {
        let all: usize = from.iter().map(|(weight, _)| weight).sum();
        let mut at = self.random.below(all);
        for (weight, step) in from {
            if at < *weight {
                return *step;
            }
            at -= weight;
        }
        Self::a_moment_passes
    }

    /// Faults stop, time passes, and everything has to come to its end (I27).
    pub(crate) fn rest(&mut self) {
        self.disk.failing = false;
        self.slow_disk = false;
        self.crash_in = None;
        while self.hub.is_none() && self.oracle.violation.is_none() {
            self.restart();
            self.crash_in = None;
        }
        self.room_is_made();
        self.settle();
        if (0..LISTENERS.len()).all(|client| self.line(client) != Line::Live) {
            self.join(0);
        }
        for client in 0..self.clients.len() {
            if self.clients[client].picture.is_some() {
                self.join_if_away(client);
            }
        }
        self.pass(REST_MILLIS);
        // The last replies arrived then; held answers leave within a second.
        self.pass(1_000);
        self.settle();
        for client in &mut self.clients {
            client.read(usize::MAX, &mut self.oracle);
        }
        self.compare_pictures();
        self.oracle.at_rest();
        if self.random.one_in(16) {
            self.rot();
        }
    }
}

/// Runs the schedule that follows from a seed; the same seed is the same schedule.
pub fn run<R: Rules>(seed: u64, trace: bool) -> Report {
    run_with::<R>(&Cast::new(), seed, trace)
}

/// One schedule in four has all kinds of subscribers; the others have plain ones, which cost little.
/// One in thirty-two is played twice.
pub(crate) fn run_with<R: Rules>(cast: &Cast, seed: u64, trace: bool) -> Report {
    let mut random = Random::new(seed);
    let kind = random.below(32);
    if kind == 0 {
        return twins::run::<R>(cast, &random, trace);
    }
    let mut world = World::<R>::new(cast, random, kind < 8, trace);
    play(&mut world);
    Report { steps: world.steps, violation: world.oracle.violation }
}

/// The whole of a schedule.
pub(crate) fn play<R: Rules>(world: &mut World<'_, R>) {
    world.begin();
    for _ in 0..STEPS {
        if world.oracle.violation.is_some() {
            break;
        }
        world.step();
    }
    if world.oracle.violation.is_none() {
        world.rest();
    }
}

/// What became of many schedules.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// How many were run.
    pub schedules: u64,
    /// Their steps.
    pub steps: u64,
    /// The seeds that broke something, and what.
    pub violations: Vec<(u64, Violation)>,
}

/// Runs the schedules of these seeds, one after the other.
pub fn run_many<R: Rules>(seeds: impl IntoIterator<Item = u64>, trace: bool) -> Totals {
    let cast = Cast::new();
    let mut totals = Totals::default();
    for seed in seeds {
        let report = run_with::<R>(&cast, seed, trace);
        totals.schedules += 1;
        totals.steps += report.steps;
        totals.violations.extend(report.violation.map(|violation| (seed, violation)));
    }
    totals
}
