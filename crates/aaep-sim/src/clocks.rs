//! The clocks of the simulated machine, and the time that really passed.

use aaep_engine::{Boot, Now};
use aaep_types::Timestamp;

const START_MILLIS: i64 = 1_779_632_531_342;
/// What a machine's clock says when its first program starts.
const JUST_BOOTED_MICROS: u64 = 1_000_337;

/// Time, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clocks {
    /// How much time has really passed; no actor sees it, only the oracle.
    pub passed: u64,
    booted_at: u64,
    wall_off_by: i64,
    /// The wall clock was set, so a hub cannot trust it after a restart.
    pub jumped: bool,
}

impl Clocks {
    /// Both clocks as the engine is shown them.
    pub fn now(&self) -> Now {
        let boot = (self.passed - self.booted_at) * 1000 + JUST_BOOTED_MICROS;
        let wall = Timestamp::from_millis(self.wall_millis());
        let epoch = || Timestamp::from_millis(0).unwrap_or_else(|| unreachable!("0 is in range"));
        Now { boot: Boot(boot), wall: wall.unwrap_or_else(epoch) }
    }

    /// What the clock on the wall says.
    pub fn wall_millis(&self) -> i64 {
        START_MILLIS + self.passed as i64 + self.wall_off_by
    }

    /// The machine starts anew, and its boot clock with it.
    pub fn reboot(&mut self) {
        self.booted_at = self.passed;
    }

    /// Somebody sets the clock on the wall.
    pub fn jump(&mut self, millis: i64) {
        // Within the few jumps of a schedule the year stays far from the edges of the calendar.
        self.wall_off_by += millis;
        self.jumped = true;
    }

    /// How long until the boot clock shows this; 0 if it has.
    pub fn until(&self, at: Boot) -> u64 {
        at.0.saturating_sub(self.now().boot.0).div_ceil(1000)
    }
}
