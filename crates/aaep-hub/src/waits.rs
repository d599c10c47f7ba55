//! Calls that wait for something to happen: bounded for one principal and one user (I29).

use std::sync::{Mutex, MutexGuard, PoisonError};

use aaep_engine::{Bound, Principal, Refusal, Shares};

use crate::hub::Hub;

/// Who waits, and how often.
pub(crate) struct Waits {
    bound: Bound,
    held: Mutex<Shares>,
}

impl Waits {
    pub(crate) fn new(bound: Bound) -> Self {
        Self { bound, held: Mutex::default() }
    }

    fn held(&self) -> MutexGuard<'_, Shares> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that waits; the place is free again when this is dropped.
pub(crate) struct Wait {
    hub: Hub,
    principal: Principal,
}

impl Hub {
    // enforces: I22, I29
    /// A call of this principal is about to wait.
    pub(crate) fn begin_wait(&self, principal: &Principal) -> Result<Wait, Refusal> {
        let waits = &self.0.waits;
        let mut held = waits.held();
        held.admit(&waits.bound, principal, 1)?;
        held.add(principal, 1);
        Ok(Wait { hub: self.clone(), principal: principal.clone() })
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.hub.0.waits.held().remove(&self.principal, 1);
    }
}
