//! Time, and everything that goes wrong without anybody meaning it.

use aaep_engine::{Input, Rules};

use crate::oracle::Cause;
use crate::world::World;

const YEAR_MILLIS: i64 = 365 * 86_400_000;

impl<R: Rules> World<'_, R> {
    /// Time passes; the engine is called at every moment that it asked for.
    pub(crate) fn pass(&mut self, millis: u64) {
        let end = self.clocks.passed + millis;
        // A bound, in case that a hub asks to be called without end.
        for _ in 0..512 {
            let next = self.hub.as_ref().and_then(|hub| hub.next_deadline());
            let Some(wait) = next.map(|at| self.clocks.until(at)) else { break };
            if self.clocks.passed + wait > end {
                break;
            }
            self.clocks.passed += wait;
            self.tick();
        }
        self.clocks.passed = end;
        self.tick();
        self.land();
    }

    pub(crate) fn tick(&mut self) {
        self.handle(Input::Tick, Cause::Other);
        if !self.slow_disk {
            self.settle();
        }
    }

    pub(crate) fn a_moment_passes(&mut self) {
        let millis = self.random.below(5_000) as u64;
        self.pass(millis);
    }

    pub(crate) fn a_while_passes(&mut self) {
        let millis = self.random.below(60_000) as u64;
        self.pass(millis);
    }

    /// To the very millisecond at which something is due, or the one before, without a tick.
    pub(crate) fn a_deadline_is_near(&mut self) {
        let deadlines: Vec<u64> =
            self.oracle.requests.values().filter(|r| r.waits()).map(|r| r.now().deadline).collect();
        if let Some(&deadline) = self.random.pick(&deadlines) {
            let at = deadline - self.random.below(2) as u64;
            self.clocks.passed = self.clocks.passed.max(at);
        }
    }

    /// The machine sleeps; nobody is called meanwhile, and replies may be the first to arrive.
    pub(crate) fn the_machine_sleeps(&mut self) {
        let millis = self.random.below(400_000) as u64;
        self.note(|| format!("sleeps for {millis} ms"));
        self.clocks.passed += millis;
        if self.random.one_in(2) {
            self.land();
        }
    }

    pub(crate) fn the_clock_is_set(&mut self) {
        let by = match self.random.below(3) {
            0 => self.random.below(YEAR_MILLIS as usize) as i64,
            1 => -(self.random.below(YEAR_MILLIS as usize) as i64),
            _ => self.random.below(1_200_000) as i64 - 600_000,
        };
        self.note(|| format!("the clock on the wall is set by {by} ms"));
        self.clocks.jump(by);
        for witness in self.witnesses() {
            witness.clock_was_set = true;
        }
        for picture in self.clients.iter_mut().filter_map(|client| client.picture.as_mut()) {
            picture.clock_was_set = true;
        }
    }

    pub(crate) fn the_hub_crashes(&mut self) {
        if self.hub.is_some() {
            self.crash();
        }
    }

    /// The hub will crash between two outputs of what comes next.
    pub(crate) fn the_hub_will_crash(&mut self) {
        self.crash_in = Some(self.random.below(6));
    }

    /// I23: the hub is told that it will be stopped, and some time later it is.
    pub(crate) fn the_hub_drains(&mut self) {
        self.oracle.draining = self.hub.is_some();
        self.handle(Input::Drain, Cause::Other);
    }

    /// The hub stops as it should: whatever it has to say is said and written first.
    pub(crate) fn the_hub_stops(&mut self) {
        self.disk.failing = false;
        self.room_is_made();
        self.settle();
        if self.hub.is_some() {
            self.note(|| "stops".into());
            self.oracle.stopped = true;
            self.stop();
        }
    }

    pub(crate) fn the_disk_slows_down(&mut self) {
        self.slow_disk = !self.slow_disk;
    }

    pub(crate) fn the_disk_is_synced(&mut self) {
        if self.hub.is_some() && self.disk.unsynced_writes() > 0 {
            self.sync();
        }
    }

    pub(crate) fn the_disk_fills_up(&mut self) {
        self.disk.full = true;
    }

    pub(crate) fn the_disk_fails(&mut self) {
        self.disk.failing = true;
    }

    /// There is room again: what could not be written is written first, in its order.
    pub(crate) fn room_is_made(&mut self) {
        self.disk.full = false;
        if self.hub.is_none() {
            return;
        }
        for bytes in std::mem::take(&mut self.unwritten) {
            self.write_now(&bytes);
        }
        if self.oracle.journal_down {
            self.oracle.journal_down = false;
            self.handle(Input::JournalWorks, Cause::Other);
        }
    }
}
