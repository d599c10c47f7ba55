//! What is checked, at which level, and by which rules.

/// Whether a level depends on a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// The level is not granted without it.
    Must,
    /// It is reported and decides nothing. No check is of this kind yet.
    Should,
}

/// One thing that is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Check {
    /// Its name, stable between versions.
    pub id: &'static str,
    /// The level that it belongs to.
    pub level: u8,
    /// Whether the level depends on it.
    pub force: Force,
    /// The rules that it is about.
    pub rules: &'static str,
    /// What holds if it passes.
    pub title: &'static str,
}

const fn must(id: &'static str, level: u8, rules: &'static str, title: &'static str) -> Check {
    Check { id, level, force: Force::Must, rules, title }
}

/// Every check of a producer, in the order of the report.
pub const CATALOG: &[Check] = &[
    must("messages", 1, "E1-E24, T2-T23", "Every message is valid by itself."),
    must("lifecycle", 1, "T1, E8", "Every session starts once, ends once, and nothing follows."),
    must("identifiers", 1, "E7", "No two events have the same identifier."),
    must("time", 1, "E10", "Stamps are true, and never go back within a session."),
    must("numbers", 1, "E15", "Sequence numbers, where used, have no gap."),
    must("states", 1, "T7, T25", "Each state change leaves the state that the last one entered."),
    must("tools", 1, "T13, T15, T33", "Every tool that is invoked comes back exactly once."),
    must("outputs", 1, "T17, T18", "Streamed text is whole and ends exactly once."),
    must("errors", 1, "T4", "A session that fails says so, critically."),
    must("cancellations", 1, "T6", "A session that is given up says by whom."),
    must("progress", 1, "T9", "Progress says how far it is."),
    must("secrets", 1, "T14", "No card number, key or password is said."),
    must("blocking", 2, "C1, C3, T12", "Nothing happens while the answer is withheld."),
    must("accept", 2, "C1, C23, T24", "After a yes, it is said and the tool is invoked once."),
    must("reject", 2, "C2, C23, T24", "After a no, it is said and the tool is never invoked."),
    must("timeout", 2, "C14", "After the time is up, the default applies, and not before."),
    must("consent", 2, "T12, T27, C15", "What cannot be undone is asked first; silence is no."),
    must("tokens", 2, "C6", "Reply tokens are never used again."),
    must("forged", 2, "C11", "A reply with a made-up token has no effect."),
    must("stolen", 2, "S1, S4, C8", "A reply of somebody who is not entitled has no effect."),
    must("replayed", 2, "C26, S2", "A reply that counted once does not count again."),
    must("late", 2, "C14, C26", "A reply after the deadline has no effect."),
    must("duplicate", 2, "C13", "The same reply twice is one reply."),
    must("wrong-kind", 2, "C11, D29", "An answer to a question is no consent."),
    must("modified", 2, "C10", "A changed action is no consent to the original."),
    must("indistinguishable", 2, "C12", "Ignored replies look like any other from outside."),
    must("first-wins", 2, "C13", "The first of several replies decides, and it alone."),
    must("clarification", 2, "C5, C20, C23", "Questions wait for an answer that fits."),
    must("everyone", 2, "C22", "Every subscription hears the question and its token."),
    must("malformed", 2, "C11, E1", "Malformed messages are refused and change nothing."),
];
