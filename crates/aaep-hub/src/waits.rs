//! Calls that wait for something to happen: bounded for one principal and one user (I29).

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aaep_engine::{Bound, Principal, Refusal, Shares};

use crate::hub::Hub;

/// Who waits, and how often.
#[derive(Clone)]
pub(crate) struct Waits(Arc<Counted>);

struct Counted {
    bound: Bound,
    held: Mutex<Shares>,
}

impl Waits {
    pub(crate) fn new(bound: Bound) -> Self {
        Self(Arc::new(Counted { bound, held: Mutex::default() }))
    }

    // enforces: I22, I29
    /// One more of this principal, if there is room.
    pub(crate) fn begin(&self, principal: &Principal) -> Result<Wait, Refusal> {
        let mut held = self.held();
        held.admit(&self.0.bound, principal, 1)?;
        held.add(principal, 1);
        Ok(Wait { waits: self.clone(), principal: principal.clone() })
    }

    fn held(&self) -> MutexGuard<'_, Shares> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that waits; the place is free again when this is dropped.
pub(crate) struct Wait {
    waits: Waits,
    principal: Principal,
}

impl Hub {
    // enforces: I22, I29
    /// A call of this principal is about to wait.
    pub(crate) fn begin_wait(&self, principal: &Principal) -> Result<Wait, Refusal> {
        self.0.waits.begin(principal)
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.waits.held().remove(&self.principal, 1);
    }
}
