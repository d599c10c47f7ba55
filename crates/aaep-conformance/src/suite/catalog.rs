//! What is checked, at which level, and by which rules.

/// Whether a level depends on a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    /// The level is not granted without it.
    Must,
    /// It is reported and decides nothing.
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

const fn should(id: &'static str, level: u8, rules: &'static str, title: &'static str) -> Check {
    Check { id, level, force: Force::Should, rules, title }
}

/// The rules of a profile. It belongs to no level: a profile is claimed in addition.
pub(super) const PROFILE: Check = must("profile", 0, "X6, X9", "The rules of the profile hold.");

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
    must("cancelled", 2, "C24", "A question that was taken back cannot be answered any more."),
    must("clarification", 2, "C5, C20, C23", "Questions wait for an answer that fits."),
    must("everyone", 2, "C22", "Every subscription hears the question and its token."),
    must("malformed", 2, "C11, E1", "Malformed messages are refused and change nothing."),
    must("handshake", 3, "H13", "Accepted requests are answered in full, with ids of their own."),
    must("honored", 3, "H14", "What is granted is never more than what was asked for."),
    must("defaults", 3, "H2", "What is not asked for has its default."),
    must("unknown-capabilities", 3, "H12", "Unknown capabilities are ignored."),
    must("answered", 3, "H15", "Wrong requests are refused, with a listed reason and in words."),
    should("version", 3, "V1", "A version that nobody speaks is rejected as such."),
    must("signed-only", 3, "H11, S11", "Who wants signatures gets a good one, or a rejection."),
    must("manifest", 3, "H22, H27", "A valid manifest is where it should be, and fits."),
    must("rate", 3, "H3, H14", "The agreed rate is never exceeded."),
    must("merging", 3, "H17", "Nothing of a text is lost when it is merged."),
    must("boundaries", 3, "H7", "Text comes at the agreed boundaries."),
    must("filters", 3, "H8", "Filters hold; what is excluded stays excluded."),
    must("critical", 3, "H16, C22", "Critical events reach everybody at once, past all terms."),
    must(
        "reply-support",
        3,
        "H6, D1",
        "Who cannot reply hears the question; a reply has no effect.",
    ),
    must(
        "wrong-subscription",
        3,
        "C11, S1",
        "A reply for a subscription that nobody has is ignored.",
    ),
    must("borrowed", 3, "S4", "Somebody else's subscription is no permission to reply."),
    must("racing", 3, "C13", "Of the replies of several subscriptions, exactly one counts."),
    must("renegotiation", 3, "H18", "New terms change what they name, and hold from then on."),
    must("closed", 3, "H19", "A subscription that was closed hears nothing and answers nothing."),
    must("disconnect", 3, "H19, W3", "Listeners that vanish disturb nobody."),
    must("independent", 3, "H21, W14", "A listener that reads nothing slows nobody else."),
    must("sizes", 3, "W6", "Messages of 64 KiB work; much longer ones do no harm."),
    must(
        "unknown-subscription",
        3,
        "D26, S4",
        "Messages about unknown subscriptions change nothing.",
    ),
    must("ordered", 3, "W2, T1, E15", "A subscription hears each session whole and in order."),
    should("resume", 3, "W7", "Who comes back hears what was missed, or how things stand."),
];

/// Every check of a subscriber, in the order of the report.
pub const SUBSCRIBER: &[Check] = &[
    must("announces", 1, "T30", "Starts, tools and endings are announced."),
    must("endings", 1, "T30", "The three endings can be told apart."),
    must("errors", 1, "T5", "An error is announced at once."),
    must("text", 1, "T19", "Pieces of text without a boundary are never announced alone."),
    must("sparse", 1, "E26", "Events without anything optional are understood."),
    must("unknown-types", 1, "E6, V2", "Unknown types break nothing; critical ones are announced."),
    must("unknown-values", 1, "V2, T8", "Unknown states and values break nothing."),
    must("unknown-members", 1, "E17, V2", "Unknown members and extensions break nothing."),
    must("languages", 1, "L11", "Text in a language that was not asked for is announced."),
    must("large", 1, "E21", "A very large event breaks nothing."),
    must("invalid", 1, "E27", "Invalid messages break nothing."),
    must("critical", 1, "T28, H23", "Critical events are announced at once, in a flood too."),
    must("asked", 2, "T21, S10", "Action and consequence of a question are announced in full."),
    must("never-alone", 2, "T21, C28", "Nothing is answered unless the person answers."),
    must("accepts", 2, "C9, C28", "A yes of the person becomes a valid reply that says accept."),
    must("rejects", 2, "C9, C28", "A no of the person becomes a valid reply that says reject."),
    must("tokens", 2, "C7, C29", "Tokens come back byte for byte."),
    must("once", 2, "C28", "One answer of the person is one reply."),
    must("right-one", 2, "C7", "With several questions open, the answer goes to the right one."),
    must("clarifies", 2, "C19, C20", "An answer to a question becomes a valid reply that fits."),
    must("cancelled", 2, "C25", "A question that was taken back is not answered, and it is said."),
    should("elsewhere", 2, "C25", "A question that was settled elsewhere is gone, and it is said."),
    must("handshake", 3, "H1, H24", "It begins with a valid request."),
    must("declares", 3, "C28", "It declares that it can reply."),
    must("duplicates", 3, "H24", "What comes twice is announced once."),
    must("gaps", 3, "H24", "Holes and disorder in the numbers break nothing."),
    must("despite-filters", 3, "H25", "What was not asked for is announced if it is critical."),
    must("restarts", 3, "H24, W3", "After a lost connection it subscribes again."),
    must("closed", 3, "H19", "A close of the producer is understood: nothing is sent on it."),
    must("goodbye", 3, "H24, H26", "It closes its subscription before it leaves."),
];
