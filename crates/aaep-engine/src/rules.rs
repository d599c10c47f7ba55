//! The safety checks, each with a name, so that the simulator can build engines that lack one and
//! prove that it would notice. Every normal build uses [`Sound`].

/// A check that an engine makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Check {
    /// I10: what relies on durability waits for it.
    HoldsUntilDurable,
    /// I1: an approval is good for the digest that was confirmed.
    ChecksDigest,
    /// I1, I2: an approval is spent once.
    SpendsOnce,
    /// I2: a token that was used is dead.
    FirstReplyWins,
    /// I7: a reply at or after the deadline never counts.
    ChecksDeadline,
    /// S1: only those who are entitled answer.
    ChecksEntitlement,
    /// D29: a clarification's reply never answers a confirmation.
    ChecksKind,
    /// I9: silence never means yes to an irreversible action.
    SilenceIsNo,
    /// I12: one pending request for one action.
    OnePendingPerAction,
    /// I13: nothing stays pending when a session ends.
    EndsRequestsWithSession,
    /// D8: a modified action never runs on that reply.
    ModifiedIsNo,
    /// E10: stamps never go back.
    StampsNeverDecrease,
    /// I5: nothing follows the end.
    NothingAfterTheEnd,
    /// I18: every resolution is shown.
    ShowsResolutions,
    /// I18: what was approved and never run is explained before its session ends.
    ExplainsUnused,
    /// I18: what may not have been heard before a restart is said again.
    SaysAgain,
    /// I3: what was pending before a restart is pending after it.
    RecoversPending,
    /// I3: what was resolved before a restart stays resolved.
    RecoversResolutions,
    /// I3, I8: a restart does not begin the wait anew.
    KeepsDeadlines,
    /// I8: under a clock that cannot be trusted nothing stays pending.
    DoubtWithdraws,
    /// I8, D9: an accept whose claimed time cannot be right does not count.
    ChecksStamp,
    /// I11: a call that was running at a restart is not forgotten.
    RecoversCalls,
    /// I1: only what was approved is invoked.
    NeedsApproval,
    /// D37: what waits for consent, or was refused it, is not announced as running.
    RefusedStaysUndone,
    /// I6, D5: a reply that does not count leaves a record and waits for it like one that does.
    RecordsIgnored,
    /// I7, D40: a flood never keeps a valid reply from counting.
    FloodsSilenceNobody,
    /// I22, D40: ignored replies beyond the rate are counted, not recorded one by one.
    CountsFloods,
    /// I6, D40: beyond the rate every answer waits alike.
    FloodedWaitAlike,
    /// D41: an approval that is not used in time is spent.
    ApprovalsExpire,
    /// I7: what is due comes before whatever arrives at the same time or later.
    DueComesFirst,
    /// I14, D2: who lost the line has a while to come back.
    GrantsGrace,
    /// I15: a subscription is used by its owner alone.
    ChecksOwner,
    /// I16, D1: who gave up reply support does not answer.
    ChecksReplySupport,
    /// I19: after a restart numbers go on behind those that may have been used.
    SkipsNumbers,
    /// I23: nothing new begins once the hub is about to stop.
    Drains,
    /// I25: every request has a token of its own.
    TokensAreFresh,
    /// I1, T11: people hear of a call before it runs.
    PeopleHearFirst,
    /// I2, D32: a token that was superseded is dead.
    OldTokensDie,
    /// I8, D32: more time is never less.
    MoreTimeIsMore,
    /// I3, D28: whoever comes is asked what waits.
    AsksWhoComes,
    /// I4: no filter hides a critical event.
    CriticalPassesFilters,
    /// I4, I22: a subscription that cannot take more is ended, not kept in the dark.
    OverflowEnds,
    /// I18, D31: who was asked hears what became of it, whatever their filter.
    OutcomesPassFilters,
    /// I19: what a broken connection swallowed is sent again.
    SendsAgain,
    /// I20: nobody is sent more than they agreed on.
    KeepsToRates,
    /// I20: nothing waits longer than the rate asks for.
    WaitsNoLonger,
    /// D38: what waits is merged, so that little goes before what is critical.
    MergesWhatWaits,
    /// D38: never more than a second's budget is owed.
    BoundsDebt,
    /// I20: what is critical does not wait for its turn.
    CriticalNeverWaits,
    /// I20: handoffs and errors have a budget, because they wait for nobody.
    BudgetsCriticals,
    /// I29: each principal and each user has a share of the sessions.
    SharesSessions,
    /// I29: and of the requests that wait.
    SharesRequests,
    /// I29: and of their bytes.
    SharesBytes,
    /// I29: and of the tool calls that are known.
    SharesCalls,
    /// I32: who is told how things stand hears of every session that goes on.
    TellsWhatGoesOn,
    /// I32: who is told how things stand is not told that all they missed follows.
    SaysWhatFollows,
    /// I21: who takes nothing holds up nobody else.
    SlowOnesWaitAlone,
    /// I22: only so much is remembered of a session.
    Forgets,
    /// I22: the arguments of what is settled leave memory.
    ForgetsArguments,
    /// I22: only so many completed outputs are remembered.
    ForgetsOutputs,
    /// I22: only so many settled requests are remembered, of open sessions and of ended ones.
    ForgetsRequests,
    /// I22, H19: subscriptions that nobody comes back to are given up.
    GivesUp,
    /// S6: a session is heard by its user, and by those who may hear everything.
    HearsOwnOnly,
    /// S6: no agent is sent a reply token.
    TokensAreForPeople,
    /// I27: every wait has an end.
    WaitsEnd,
    /// I33: a start believes no record that was not written with the journal's key. Whoever opens the
    /// journal makes it.
    ChecksKey,
}

/// Which checks an engine makes.
pub trait Rules: 'static {
    /// Whether it makes this one.
    #[inline]
    fn keeps(_check: Check) -> bool {
        true
    }
}

/// Every check is made.
#[derive(Clone, Copy, Debug)]
pub struct Sound;

impl Rules for Sound {}
