//! The rules that the reference subscriber can break.

/// One broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SubscriberFault {
    /// Does not announce tools.
    SilentTools,
    /// Announces every end in the same words.
    SameEndings,
    /// Does not announce errors.
    SilentErrors,
    /// Announces every piece of text alone.
    SaysPieces,
    /// Announces only the last piece of a text.
    LosesText,
    /// Drops events without optional members.
    NeedsOptionalMembers,
    /// Stops at a type that it does not know.
    BreaksOnUnknownTypes,
    /// Drops critical events of types that it does not know.
    IgnoresUnknownCritical,
    /// Stops at a state that it does not know.
    BreaksOnUnknownStates,
    /// Drops events with members that it does not know.
    RefusesUnknownMembers,
    /// Drops what is not in its language.
    OnlyItsLanguage,
    /// Stops at an event of more than 64 KiB.
    BreaksOnLargeEvents,
    /// Stops at what is no message.
    BreaksOnGarbage,
    /// Lets critical events wait for seconds.
    CriticalWaits,
    /// Does not say what comes of an action.
    HidesConsequences,
    /// Answers by itself.
    AnswersAlone,
    /// Does not send what its user answers.
    NeverReplies,
    /// Sends a no for every answer.
    AlwaysRejects,
    /// Sends a decision of its own making.
    SaysYes,
    /// Sends replies without a time.
    NoTimestamp,
    /// Sends a yes for every answer.
    AlwaysAccepts,
    /// Sends tokens in small letters.
    ChangesTokens,
    /// Sends a part of the token.
    CutsTokens,
    /// Sends every reply twice.
    RepliesTwice,
    /// Answers the latest question, whichever was meant.
    AnswersTheLast,
    /// Answers a question with true.
    AnswersYes,
    /// Answers what was taken back.
    KeepsCancelled,
    /// Answers what was settled elsewhere.
    KeepsSettled,
    /// Listens without a handshake.
    NoHandshake,
    /// Asks with a request that is not valid.
    BadRequest,
    /// Does not say that it can reply.
    DeclaresNothing,
    /// Announces again what comes again.
    SaysTwice,
    /// Stops when numbers are not in order.
    StopsAtGaps,
    /// Drops critical events that it did not ask for.
    IgnoresOtherNamespaces,
    /// Does not come back after a lost connection.
    NeverComesBack,
    /// Replies on a subscription that was closed.
    RepliesAfterClose,
    /// Leaves without a close.
    LeavesWithoutGoodbye,
}

impl SubscriberFault {
    /// All of them, each with the check that catches it.
    pub const ALL: &[(SubscriberFault, &str)] = &[
        (SubscriberFault::SilentTools, "announces"),
        (SubscriberFault::SameEndings, "endings"),
        (SubscriberFault::SilentErrors, "errors"),
        (SubscriberFault::SaysPieces, "text"),
        (SubscriberFault::LosesText, "text"),
        (SubscriberFault::NeedsOptionalMembers, "sparse"),
        (SubscriberFault::BreaksOnUnknownTypes, "unknown-types"),
        (SubscriberFault::IgnoresUnknownCritical, "unknown-types"),
        (SubscriberFault::BreaksOnUnknownStates, "unknown-values"),
        (SubscriberFault::RefusesUnknownMembers, "unknown-members"),
        (SubscriberFault::OnlyItsLanguage, "languages"),
        (SubscriberFault::BreaksOnLargeEvents, "large"),
        (SubscriberFault::BreaksOnGarbage, "invalid"),
        (SubscriberFault::CriticalWaits, "critical"),
        (SubscriberFault::HidesConsequences, "asked"),
        (SubscriberFault::AnswersAlone, "never-alone"),
        (SubscriberFault::NeverReplies, "accepts"),
        (SubscriberFault::AlwaysRejects, "accepts"),
        (SubscriberFault::SaysYes, "accepts"),
        (SubscriberFault::NoTimestamp, "accepts"),
        (SubscriberFault::AlwaysAccepts, "rejects"),
        (SubscriberFault::ChangesTokens, "tokens"),
        (SubscriberFault::CutsTokens, "tokens"),
        (SubscriberFault::RepliesTwice, "once"),
        (SubscriberFault::AnswersTheLast, "right-one"),
        (SubscriberFault::AnswersYes, "clarifies"),
        (SubscriberFault::KeepsCancelled, "cancelled"),
        (SubscriberFault::KeepsSettled, "elsewhere"),
        (SubscriberFault::NoHandshake, "handshake"),
        (SubscriberFault::BadRequest, "handshake"),
        (SubscriberFault::DeclaresNothing, "declares"),
        (SubscriberFault::SaysTwice, "duplicates"),
        (SubscriberFault::StopsAtGaps, "gaps"),
        (SubscriberFault::IgnoresOtherNamespaces, "despite-filters"),
        (SubscriberFault::NeverComesBack, "restarts"),
        (SubscriberFault::RepliesAfterClose, "closed"),
        (SubscriberFault::LeavesWithoutGoodbye, "goodbye"),
    ];
}
