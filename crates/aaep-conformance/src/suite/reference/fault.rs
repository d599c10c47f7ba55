//! The rules that the reference producer can break.

/// One broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Goes on while the answer is withheld.
    RunsBeforeTheAnswer,
    /// Goes on three seconds after the question, without an answer.
    RunsAfterAWhile,
    /// Runs before it asks, and again after a yes, and says each time that it cannot be undone.
    RunsBeforeAsking,
    /// Runs before it asks, and says only after a yes that it cannot be undone.
    RunsBeforeAskingUnflagged,
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
    /// Answers 403 to who may not answer.
    TellsStrangers,
    /// Answers 404 to a reply for a subscription that it does not know.
    TellsUnknownSubscriptions,
    /// Answers 409 to a reply on a subscription that cannot reply.
    TellsMute,
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
    /// Runs after a question that it took back.
    TakesCancelled,
    /// Gives every subscription the same id.
    SameSubscriptionId,
    /// Accepts without saying who it is.
    AcceptsInPart,
    /// Grants more events a second than were asked.
    GrantsMoreEvents,
    /// Grants replies that nobody asked for.
    GrantsReplies,
    /// Grants a language that nobody asked for.
    GrantsMoreLanguages,
    /// Grants more types of events than were asked.
    WidensFilters,
    /// Takes no capabilities for all of them.
    DefaultsToEverything,
    /// Rejects a request for a capability that it does not know.
    RefusesUnknownCapabilities,
    /// Accepts what is no request.
    AcceptsAnyRequest,
    /// Rejects with a reason of its own making.
    RejectsWithoutCode,
    /// Rejects without a reason in words.
    RejectsWithoutWords,
    /// Answers 500 where it rejects.
    RejectsWithServerError,
    /// Accepts a version that nobody speaks.
    AcceptsAnyVersion,
    /// Gives no signature to who wants one.
    AcceptsUnsigned,
    /// Gives a signature that is none.
    SignsBadly,
    /// Has no manifest.
    NoManifest,
    /// Has the manifest of somebody else.
    ManifestOfAnother,
    /// Does not claim its level in its manifest.
    ManifestClaimsLess,
    /// Says more than the agreed rate.
    IgnoresRate,
    /// Loses what it merges.
    LosesTextWhenMerging,
    /// Tells text in other pieces than agreed.
    IgnoresBoundaries,
    /// Tells what is excluded.
    LeaksWhatIsExcluded,
    /// Tells what is not included.
    LeaksWhatIsNotIncluded,
    /// Filters what is critical.
    FiltersCritical,
    /// Lets what is critical wait for the rate.
    CriticalWaits,
    /// Takes a reply on a subscription that cannot reply.
    TakesFromMute,
    /// Takes a reply for a subscription that nobody has.
    TakesUnknownSubscription,
    /// Takes a reply for a subscription that was closed.
    TakesFromClosed,
    /// Takes whoever names a subscription for its owner.
    TakesBorrowed,
    /// Counts one reply for each subscription.
    EachSubscriptionCounts,
    /// Goes on under the old terms.
    IgnoresNewTerms,
    /// Forgets what new terms do not name.
    NewTermsForgetTheRest,
    /// Goes on after a close.
    SpeaksAfterClose,
    /// Says nothing more once a listener has vanished.
    StopsWhenOneLeaves,
    /// Waits for a listener that reads nothing.
    SlowOnesBlockAll,
    /// Refuses what is longer than 16 KiB.
    RefusesLongMessages,
    /// Says nothing more after a message that is too long.
    BreaksOnLongMessages,
    /// Ends every subscription when an unknown one is closed.
    AnyCloseEndsAll,
    /// Tells subscriptions events in another order.
    Disorders,
    /// Gives nothing to come back with.
    NoFrameIds,
    /// Tells who comes back nothing.
    ForgetsWhoComesBack,
}

impl Fault {
    /// All of them, each with the check that catches it.
    pub const ALL: &[(Fault, &str)] = &[
        (Fault::RunsBeforeTheAnswer, "blocking"),
        (Fault::RunsAfterAWhile, "blocking"),
        (Fault::RunsBeforeAsking, "consent"),
        (Fault::RunsBeforeAskingUnflagged, "blocking"),
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
        (Fault::TellsStrangers, "indistinguishable"),
        (Fault::TellsUnknownSubscriptions, "indistinguishable"),
        (Fault::TellsMute, "indistinguishable"),
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
        (Fault::NoCategory, "errors"),
        (Fault::NoCancelledBy, "cancellations"),
        (Fault::EmptyProgress, "progress"),
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
        (Fault::TakesCancelled, "cancelled"),
        (Fault::SameSubscriptionId, "handshake"),
        (Fault::AcceptsInPart, "handshake"),
        (Fault::GrantsMoreEvents, "honored"),
        (Fault::GrantsReplies, "honored"),
        (Fault::GrantsMoreLanguages, "honored"),
        (Fault::WidensFilters, "honored"),
        (Fault::DefaultsToEverything, "defaults"),
        (Fault::RefusesUnknownCapabilities, "unknown-capabilities"),
        (Fault::AcceptsAnyRequest, "answered"),
        (Fault::RejectsWithoutCode, "answered"),
        (Fault::RejectsWithoutWords, "answered"),
        (Fault::RejectsWithServerError, "answered"),
        (Fault::AcceptsAnyVersion, "version"),
        (Fault::AcceptsUnsigned, "signed-only"),
        (Fault::SignsBadly, "signed-only"),
        (Fault::NoManifest, "manifest"),
        (Fault::ManifestOfAnother, "manifest"),
        (Fault::ManifestClaimsLess, "manifest"),
        (Fault::IgnoresRate, "rate"),
        (Fault::LosesTextWhenMerging, "merging"),
        (Fault::IgnoresBoundaries, "boundaries"),
        (Fault::LeaksWhatIsExcluded, "filters"),
        (Fault::LeaksWhatIsNotIncluded, "filters"),
        (Fault::FiltersCritical, "critical"),
        (Fault::CriticalWaits, "critical"),
        (Fault::TakesFromMute, "reply-support"),
        (Fault::TakesUnknownSubscription, "wrong-subscription"),
        (Fault::TakesFromClosed, "closed"),
        (Fault::TakesBorrowed, "borrowed"),
        (Fault::EachSubscriptionCounts, "racing"),
        (Fault::IgnoresNewTerms, "renegotiation"),
        (Fault::NewTermsForgetTheRest, "renegotiation"),
        (Fault::SpeaksAfterClose, "closed"),
        (Fault::StopsWhenOneLeaves, "disconnect"),
        (Fault::SlowOnesBlockAll, "independent"),
        (Fault::RefusesLongMessages, "sizes"),
        (Fault::BreaksOnLongMessages, "sizes"),
        (Fault::AnyCloseEndsAll, "unknown-subscription"),
        (Fault::Disorders, "ordered"),
        (Fault::NoFrameIds, "resume"),
        (Fault::ForgetsWhoComesBack, "resume"),
    ];

    /// The lowest level of a run in which it shows, where that is not the level of the check.
    pub fn shows_at(self) -> Option<u8> {
        match self {
            // Nothing is asked at level 1.
            Self::NoUrgency => Some(2),
            Self::TellsUnknownSubscriptions | Self::TellsMute => Some(3),
            _ => None,
        }
    }
}
