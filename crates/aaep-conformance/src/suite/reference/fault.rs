//! The rules that the reference producer can break.

/// One broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Goes on while the answer is withheld.
    RunsBeforeTheAnswer,
    /// Takes every yes for a no.
    RefusesEverything,
    /// Ends after a yes without the tool.
    NeverRunsAfterYes,
    /// Runs after a no.
    RunsAfterNo,
    /// Says nothing after a no, and ends.
    SilentAfterNo,
    /// Never applies the default.
    WaitsForEver,
    /// Applies the default at once.
    GivesUpEarly,
    /// Takes silence for a yes.
    TimeoutAccepts,
    /// Takes any token.
    TakesForged,
    /// Takes a reply of anybody.
    TakesStolen,
    /// Runs again when a reply is repeated.
    TakesReplayed,
    /// Runs on a late yes.
    TakesLate,
    /// Runs once for each copy of a reply.
    TakesTwice,
    /// Takes an answer to a question for consent.
    TakesWrongKind,
    /// Runs the original on a changed action.
    TakesModified,
    /// Answers 404 to an unknown token.
    TellsUnknownTokens,
    /// Says in the body that a token was used.
    TellsUsedTokens,
    /// Marks ignored replies in a header.
    HeaderTellsIgnored,
    /// Lets a later reply change the decision.
    LastWins,
    /// Runs twice when two say yes.
    RaceRunsTwice,
    /// Takes a response of any kind.
    TakesMisfit,
    /// Does not go on after an answer.
    StuckAfterAnswer,
    /// Asks only who came first.
    OneListenerOnly,
    /// Answers 500 to what is no message.
    CrashesOnGarbage,
    /// Answers 204 to what is no message.
    TakesGarbage,
    /// Silence is a yes for what cannot be undone.
    DefaultAccept,
    /// Uses one token for every request.
    SameToken,
    /// Questions are not critical.
    NoUrgency,
    /// Starts without a summary.
    NoSummary,
    /// Ids of events have the wrong form.
    BadEventId,
    /// The context is another one.
    WrongContext,
    /// Events have a member of their own at the top.
    ExtraMember,
    /// Errors have no category.
    NoCategory,
    /// Does not say who cancelled.
    NoCancelledBy,
    /// Progress says nothing.
    EmptyProgress,
    /// Every event has the same id.
    SameEventId,
    /// Stamps go back.
    ClockGoesBack,
    /// Leaves numbers out.
    SkipsNumbers,
    /// Starts a session twice.
    StartsTwice,
    /// Speaks before the start.
    NoStart,
    /// Never ends a session.
    NoEnd,
    /// Goes on after the end.
    SpeaksAfterEnd,
    /// Leaves a state that it was not in.
    WrongFromState,
    /// A tool never comes back.
    ToolNeverReturns,
    /// A tool comes back twice.
    ToolReturnsTwice,
    /// A tool comes back under another name.
    ToolOtherName,
    /// Loses a part of its text.
    TextLost,
    /// Never completes its text.
    TextNeverEnds,
    /// Goes on after the last piece.
    TextAfterEnd,
    /// Says a card number.
    SaysCardNumber,
}

impl Fault {
    /// All of them, each with the check that catches it.
    pub const ALL: &[(Fault, &str)] = &[
        (Fault::RunsBeforeTheAnswer, "blocking"),
        (Fault::RefusesEverything, "accept"),
        (Fault::NeverRunsAfterYes, "accept"),
        (Fault::RunsAfterNo, "reject"),
        (Fault::SilentAfterNo, "reject"),
        (Fault::WaitsForEver, "timeout"),
        (Fault::GivesUpEarly, "timeout"),
        (Fault::TimeoutAccepts, "timeout"),
        (Fault::TakesForged, "forged"),
        (Fault::TakesStolen, "stolen"),
        (Fault::TakesReplayed, "replayed"),
        (Fault::TakesLate, "late"),
        (Fault::TakesTwice, "duplicate"),
        (Fault::TakesWrongKind, "wrong-kind"),
        (Fault::TakesModified, "modified"),
        (Fault::TellsUnknownTokens, "indistinguishable"),
        (Fault::TellsUsedTokens, "indistinguishable"),
        (Fault::HeaderTellsIgnored, "indistinguishable"),
        (Fault::LastWins, "first-wins"),
        (Fault::RaceRunsTwice, "first-wins"),
        (Fault::TakesMisfit, "clarification"),
        (Fault::StuckAfterAnswer, "clarification"),
        (Fault::OneListenerOnly, "everyone"),
        (Fault::CrashesOnGarbage, "malformed"),
        (Fault::TakesGarbage, "malformed"),
        (Fault::DefaultAccept, "consent"),
        (Fault::SameToken, "tokens"),
        (Fault::NoUrgency, "messages"),
        (Fault::NoSummary, "messages"),
        (Fault::BadEventId, "messages"),
        (Fault::WrongContext, "messages"),
        (Fault::ExtraMember, "messages"),
        (Fault::NoCategory, "messages"),
        (Fault::NoCancelledBy, "messages"),
        (Fault::EmptyProgress, "messages"),
        (Fault::SameEventId, "identifiers"),
        (Fault::ClockGoesBack, "time"),
        (Fault::SkipsNumbers, "numbers"),
        (Fault::StartsTwice, "lifecycle"),
        (Fault::NoStart, "lifecycle"),
        (Fault::NoEnd, "lifecycle"),
        (Fault::SpeaksAfterEnd, "lifecycle"),
        (Fault::WrongFromState, "states"),
        (Fault::ToolNeverReturns, "tools"),
        (Fault::ToolReturnsTwice, "tools"),
        (Fault::ToolOtherName, "tools"),
        (Fault::TextLost, "outputs"),
        (Fault::TextNeverEnds, "outputs"),
        (Fault::TextAfterEnd, "outputs"),
        (Fault::SaysCardNumber, "secrets"),
    ];
}
