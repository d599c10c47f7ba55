//! The rules that the reference producer can break.

/// One broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProducerFault {
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
    /// Takes a reply for a subscription that does not exist.
    TakesUnknownSubscription,
    /// Takes a reply for a subscription that was closed.
    TakesFromClosed,
    /// Takes any sender that names a subscription for its owner.
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

impl ProducerFault {
    /// All of them, each with the check that catches it.
    pub const ALL: &[(ProducerFault, &str)] = &[
        (ProducerFault::RunsBeforeTheAnswer, "blocking"),
        (ProducerFault::RefusesEverything, "accept"),
        (ProducerFault::NeverRunsAfterYes, "accept"),
        (ProducerFault::RunsAfterNo, "reject"),
        (ProducerFault::SilentAfterNo, "reject"),
        (ProducerFault::WaitsForEver, "timeout"),
        (ProducerFault::GivesUpEarly, "timeout"),
        (ProducerFault::TimeoutAccepts, "timeout"),
        (ProducerFault::TakesForged, "forged"),
        (ProducerFault::TakesStolen, "stolen"),
        (ProducerFault::TakesReplayed, "replayed"),
        (ProducerFault::TakesLate, "late"),
        (ProducerFault::TakesTwice, "duplicate"),
        (ProducerFault::TakesWrongKind, "wrong-kind"),
        (ProducerFault::TakesModified, "modified"),
        (ProducerFault::TellsUnknownTokens, "indistinguishable"),
        (ProducerFault::TellsUsedTokens, "indistinguishable"),
        (ProducerFault::HeaderTellsIgnored, "indistinguishable"),
        (ProducerFault::LastWins, "first-wins"),
        (ProducerFault::RaceRunsTwice, "first-wins"),
        (ProducerFault::TakesMisfit, "clarification"),
        (ProducerFault::StuckAfterAnswer, "clarification"),
        (ProducerFault::OneListenerOnly, "everyone"),
        (ProducerFault::CrashesOnGarbage, "malformed"),
        (ProducerFault::TakesGarbage, "malformed"),
        (ProducerFault::DefaultAccept, "consent"),
        (ProducerFault::SameToken, "tokens"),
        (ProducerFault::NoUrgency, "messages"),
        (ProducerFault::NoSummary, "messages"),
        (ProducerFault::BadEventId, "messages"),
        (ProducerFault::WrongContext, "messages"),
        (ProducerFault::ExtraMember, "messages"),
        (ProducerFault::NoCategory, "messages"),
        (ProducerFault::NoCancelledBy, "messages"),
        (ProducerFault::EmptyProgress, "messages"),
        (ProducerFault::SameEventId, "identifiers"),
        (ProducerFault::ClockGoesBack, "time"),
        (ProducerFault::SkipsNumbers, "numbers"),
        (ProducerFault::StartsTwice, "lifecycle"),
        (ProducerFault::NoStart, "lifecycle"),
        (ProducerFault::NoEnd, "lifecycle"),
        (ProducerFault::SpeaksAfterEnd, "lifecycle"),
        (ProducerFault::WrongFromState, "states"),
        (ProducerFault::ToolNeverReturns, "tools"),
        (ProducerFault::ToolReturnsTwice, "tools"),
        (ProducerFault::ToolOtherName, "tools"),
        (ProducerFault::TextLost, "outputs"),
        (ProducerFault::TextNeverEnds, "outputs"),
        (ProducerFault::TextAfterEnd, "outputs"),
        (ProducerFault::SaysCardNumber, "secrets"),
        (ProducerFault::TakesCancelled, "cancelled"),
        (ProducerFault::SameSubscriptionId, "handshake"),
        (ProducerFault::AcceptsInPart, "handshake"),
        (ProducerFault::GrantsMoreEvents, "honored"),
        (ProducerFault::GrantsReplies, "honored"),
        (ProducerFault::GrantsMoreLanguages, "honored"),
        (ProducerFault::WidensFilters, "honored"),
        (ProducerFault::DefaultsToEverything, "defaults"),
        (ProducerFault::RefusesUnknownCapabilities, "unknown-capabilities"),
        (ProducerFault::AcceptsAnyRequest, "answered"),
        (ProducerFault::RejectsWithoutCode, "answered"),
        (ProducerFault::RejectsWithoutWords, "answered"),
        (ProducerFault::RejectsWithServerError, "answered"),
        (ProducerFault::AcceptsAnyVersion, "version"),
        (ProducerFault::AcceptsUnsigned, "signed-only"),
        (ProducerFault::SignsBadly, "signed-only"),
        (ProducerFault::NoManifest, "manifest"),
        (ProducerFault::ManifestOfAnother, "manifest"),
        (ProducerFault::ManifestClaimsLess, "manifest"),
        (ProducerFault::IgnoresRate, "rate"),
        (ProducerFault::LosesTextWhenMerging, "merging"),
        (ProducerFault::IgnoresBoundaries, "boundaries"),
        (ProducerFault::LeaksWhatIsExcluded, "filters"),
        (ProducerFault::LeaksWhatIsNotIncluded, "filters"),
        (ProducerFault::FiltersCritical, "critical"),
        (ProducerFault::CriticalWaits, "critical"),
        (ProducerFault::TakesFromMute, "reply-support"),
        (ProducerFault::TakesUnknownSubscription, "wrong-subscription"),
        (ProducerFault::TakesFromClosed, "closed"),
        (ProducerFault::TakesBorrowed, "borrowed"),
        (ProducerFault::EachSubscriptionCounts, "racing"),
        (ProducerFault::IgnoresNewTerms, "renegotiation"),
        (ProducerFault::NewTermsForgetTheRest, "renegotiation"),
        (ProducerFault::SpeaksAfterClose, "closed"),
        (ProducerFault::StopsWhenOneLeaves, "disconnect"),
        (ProducerFault::SlowOnesBlockAll, "independent"),
        (ProducerFault::RefusesLongMessages, "sizes"),
        (ProducerFault::BreaksOnLongMessages, "sizes"),
        (ProducerFault::AnyCloseEndsAll, "unknown-subscription"),
        (ProducerFault::Disorders, "ordered"),
        (ProducerFault::NoFrameIds, "resume"),
        (ProducerFault::ForgetsWhoComesBack, "resume"),
    ];
}
