//! Where the core is kept: one at a time has it, and nobody after a panic.
//!
//! A panic in the middle of a step leaves a half-changed engine behind. What that says about consent
//! is worth nothing, so nobody is let near it again: no answer comes out of it, and nothing that the
//! step had staged goes to the journal. The core's own task notices and ends the hub (I28).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Mutex, MutexGuard};

use super::Core;
use super::held::Held;

/// The core's place.
#[derive(Default)]
pub(crate) struct Place {
    /// `None` before the hub begins and after it has stopped.
    core: Mutex<Option<Core>>,
    /// Something panicked while it had the core.
    panicked: AtomicBool,
}

/// Somebody has the place to themselves.
pub(crate) struct Occupied<'a> {
    place: &'a Place,
    core: MutexGuard<'a, Option<Core>>,
}

impl Place {
    /// Puts the core in.
    pub(crate) async fn put(&self, core: Core) {
        *self.core.lock().await = Some(core);
    }

    /// The place, if nobody has it.
    pub(crate) fn try_occupy(&self) -> Option<Occupied<'_>> {
        let core = self.core.try_lock().ok()?;
        Some(Occupied { place: self, core })
    }

    /// The place, after its present holder.
    pub(crate) async fn occupy(&self) -> Occupied<'_> {
        Occupied { place: self, core: self.core.lock().await }
    }

    /// Whether a panic has ended it.
    pub(crate) fn has_panicked(&self) -> bool {
        self.panicked.load(Ordering::Acquire)
    }
}

impl Occupied<'_> {
    // enforces: I28
    /// Does something with the core; `None` if there is none any more. Everything that is ever done
    /// with it is done in here, so a panic in any of it is the core's last.
    pub(crate) fn with<T>(&mut self, act: impl FnOnce(&mut Core) -> T) -> Option<T> {
        if self.place.has_panicked() {
            return None;
        }
        let core = self.core.as_mut()?;
        let _held = Held::new();
        // Nobody looks at the core after a panic, so it does not matter how it was left.
        let done = catch_unwind(AssertUnwindSafe(|| act(core)));
        if done.is_err() {
            self.place.panicked.store(true, Ordering::Release);
        }
        done.ok()
    }

    /// Whether there is a core to do something with.
    pub(crate) fn is_working(&self) -> bool {
        self.core.is_some() && !self.place.has_panicked()
    }

    /// Takes the core out for good: everybody who waits for it learns that the hub has stopped.
    pub(crate) fn take(&mut self) -> Option<Core> {
        self.core.take()
    }
}
