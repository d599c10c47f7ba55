//! The safety checks, each with a name, so that the simulator can build engines that lack one and
//! prove that it would notice. Every normal build uses [`Sound`].

/// Which checks an engine makes.
pub trait Rules: 'static {
    /// I10: what relies on durability waits for it.
    const HOLDS_UNTIL_DURABLE: bool = true;
    /// I1: an approval is good for the digest that was confirmed.
    const CHECKS_DIGEST: bool = true;
    /// I1, I2: an approval is spent once.
    const SPENDS_ONCE: bool = true;
    /// I2: a token that was used is dead.
    const FIRST_REPLY_WINS: bool = true;
    /// I7: a reply at or after the deadline never counts.
    const CHECKS_DEADLINE: bool = true;
    /// S1: only those who are entitled answer.
    const CHECKS_ENTITLEMENT: bool = true;
    /// D29: a clarification's reply never answers a confirmation.
    const CHECKS_KIND: bool = true;
    /// I9: silence never means yes to an irreversible action.
    const SILENCE_IS_NO: bool = true;
    /// I12: one pending request for one action.
    const ONE_PENDING_PER_ACTION: bool = true;
    /// I13: nothing stays pending when a session ends.
    const ENDS_REQUESTS_WITH_SESSION: bool = true;
    /// D8: a modified action never runs on that reply.
    const MODIFIED_IS_NO: bool = true;
    /// E10: stamps never go back.
    const STAMPS_NEVER_DECREASE: bool = true;
    /// I5: nothing follows the end.
    const NOTHING_AFTER_THE_END: bool = true;
    /// I18: every resolution is shown.
    const SHOWS_RESOLUTIONS: bool = true;
    /// I18: what may not have been heard before a restart is said again.
    const SAYS_AGAIN: bool = true;
    /// I3: what was pending before a restart is pending after it.
    const RECOVERS_PENDING: bool = true;
    /// I3: what was resolved before a restart stays resolved.
    const RECOVERS_RESOLUTIONS: bool = true;
    /// I3, I8: a restart does not begin the wait anew.
    const KEEPS_DEADLINES: bool = true;
    /// I8: under a clock that cannot be trusted nothing stays pending.
    const DOUBT_WITHDRAWS: bool = true;
    /// I8, D9: an accept whose claimed time cannot be right does not count.
    const CHECKS_STAMP: bool = true;
    /// I11: a call that was running at a restart is not forgotten.
    const RECOVERS_CALLS: bool = true;
    /// I1: only what was approved is invoked.
    const NEEDS_APPROVAL: bool = true;
    /// I6, D5: a reply that does not count leaves a record and waits for it like one that does.
    const RECORDS_IGNORED: bool = true;
    /// I7: what is due comes before whatever arrives at the same time or later.
    const DUE_COMES_FIRST: bool = true;
    /// I14, D2: who lost the line has a while to come back.
    const GRANTS_GRACE: bool = true;
    /// I15: a subscription is used by its owner alone.
    const CHECKS_OWNER: bool = true;
    /// I16, D1: who gave up reply support does not answer.
    const CHECKS_REPLY_SUPPORT: bool = true;
    /// I19: after a restart numbers go on behind those that may have been used.
    const SKIPS_NUMBERS: bool = true;
    /// I23: nothing new begins once the hub is about to stop.
    const DRAINS: bool = true;
    /// I25: every request has a token of its own.
    const TOKENS_ARE_FRESH: bool = true;
    /// I1, T11: people hear of a call before it runs.
    const PEOPLE_HEAR_FIRST: bool = true;
    /// I2, D32: a token that was superseded is dead.
    const OLD_TOKENS_DIE: bool = true;
    /// I8, D32: more time is never less.
    const MORE_TIME_IS_MORE: bool = true;
    /// I3, D28: whoever comes is asked what waits.
    const ASKS_WHO_COMES: bool = true;
    /// I4: no filter hides a critical event.
    const CRITICAL_PASSES_FILTERS: bool = true;
    /// I4, I22: a subscription that cannot take more is ended, not kept in the dark.
    const OVERFLOW_ENDS: bool = true;
    /// I18, D31: who was asked hears what became of it, whatever their filter.
    const OUTCOMES_PASS_FILTERS: bool = true;
    /// I19: what a broken connection swallowed is sent again.
    const SENDS_AGAIN: bool = true;
    /// I20: nobody is sent more than they agreed on.
    const KEEPS_TO_RATES: bool = true;
    /// I20: what is critical does not wait for its turn.
    const CRITICAL_NEVER_WAITS: bool = true;
    /// I21: who takes nothing holds up nobody else.
    const SLOW_ONES_WAIT_ALONE: bool = true;
    /// I22: only so much is remembered of a session.
    const FORGETS: bool = true;
    /// I22, H19: subscriptions that nobody comes back to are given up.
    const GIVES_UP: bool = true;
    /// S6: a session is heard by its user, and by those who may hear everything.
    const HEARS_OWN_ONLY: bool = true;
    /// I27: every wait has an end.
    const WAITS_END: bool = true;
}

/// Every check is made.
#[derive(Clone, Copy, Debug)]
pub struct Sound;

impl Rules for Sound {}
