//! Whether this thread has the core, so that nothing slow is done meanwhile.

#[cfg(debug_assertions)]
use std::cell::Cell;

#[cfg(debug_assertions)]
thread_local! {
    static HELD: Cell<bool> = const { Cell::new(false) };
}

/// This thread has the core as long as this lives. Only debug builds look.
pub(crate) struct Held;

impl Held {
    pub(crate) fn new() -> Self {
        #[cfg(debug_assertions)]
        HELD.set(true);
        Self
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        #[cfg(debug_assertions)]
        HELD.set(false);
    }
}

// enforces: I29
/// What others send is never read while the core is held: everybody would wait for it.
pub(crate) fn assert_free() {
    #[cfg(debug_assertions)]
    assert!(!HELD.get(), "a body is read while the core is held");
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: I29
    #[test]
    #[should_panic(expected = "while the core is held")]
    fn reading_while_the_core_is_held_is_noticed() {
        let _held = Held::new();
        assert_free();
    }
}
