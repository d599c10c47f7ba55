//! What a mutant does wrong: the rules of the engine that it overrides, or the bounds that it lifts.

use std::cell::Cell;
use std::sync::Arc;

use aaep_engine::{
    Boot, ClockTrust, Digest, Emitted, EventNumber, Limits, Now, Principal, Resumed, Role, Rules,
    Sound, Status, TokenNumber,
};
use aaep_shaping::{Filter, HeldLimits, Overflow, Prepared};
use aaep_types::{EventKind, Presence, Timestamp, ToolCallId};

/// What one mutant does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    AcceptsModified,
    AnnouncesRefused,
    AnswersFloodsAtOnce,
    AsksTwice,
    BelievesForgeries,
    BlocksOnTheSlowest,
    BorrowsTooMuch,
    ClaimsThatAllFollows,
    DropsOutcomesByFilter,
    DropsRepliesInFloods,
    EndsPendingAtRestart,
    ExtendsWithLessTime,
    FiltersCriticals,
    ForgetsCalls,
    GivesNoGrace,
    HearsEverything,
    IgnoresApproval,
    IgnoresDeadline,
    IgnoresDoubt,
    IgnoresEntitlement,
    IgnoresKind,
    IgnoresOverflow,
    IgnoresOwner,
    IgnoresOwnTree,
    IgnoresPresence,
    IgnoresReplySupport,
    IgnoresStamp,
    InvokesBeforeTelling,
    KeepsApprovals,
    KeepsArguments,
    KeepsOldTokens,
    KeepsRecentEvents,
    KeepsRequests,
    KeepsSubscriptions,
    LeavesRequestsOpen,
    LeavesSessionsOpen,
    LetsCriticalsWait,
    LiftsBytesShare,
    LiftsCallShare,
    LiftsRequestShare,
    LiftsSessionShare,
    LiftsSubscriptionShare,
    LiftsCriticalBudget,
    MergesNothing,
    NeverEndsWaits,
    RecordsFloods,
    RecordsNothingIgnored,
    RemembersOutputs,
    RepeatsNothing,
    ResendsNothing,
    RestartsWaits,
    RevivesResolved,
    ReusesNumbers,
    ReusesTokens,
    RunsGivenArguments,
    SendsFaster,
    SendsSlower,
    SendsTokensToAgents,
    ShowsNoOutcome,
    SpeaksTooSoon,
    SpendsTwice,
    StampsBackwards,
    StartsWhileDraining,
    TakesASecondReply,
    TakesSilenceForConsent,
    TakesSilenceForPresence,
    TellsNoSession,
    TellsNoQuestion,
    UnexplainedApprovals,
}

thread_local! {
    /// The mutation of the engines of this thread. One type of engine serves all mutants: compiling
    /// one for each took minutes.
    static MUTATION: Cell<Option<Mutation>> = const { Cell::new(None) };
}

/// From now on engines of this thread are mutated so.
pub(crate) fn set(mutation: Option<Mutation>) {
    MUTATION.set(mutation);
}

/// Whether this is the mutation at work.
pub(crate) fn is(mutation: Mutation) -> bool {
    MUTATION.get() == Some(mutation)
}

/// Bounds of an engine that lacks one of them; the oracle goes on holding it to the others.
pub(crate) fn lifted(limits: Limits) -> Limits {
    const NONE: usize = usize::MAX;
    use Mutation::*;
    match MUTATION.get() {
        Some(KeepsRecentEvents) => Limits { recent_events: NONE, ..limits },
        Some(KeepsRequests) => {
            Limits { settled_per_session: NONE, ended_requests_per_user: NONE, ..limits }
        }
        Some(RemembersOutputs) => Limits { completed_outputs: NONE, ..limits },
        Some(LiftsCriticalBudget) => Limits { critical_per_window: u32::MAX, ..limits },
        Some(LiftsSessionShare) => {
            Limits { sessions_per_user: NONE, sessions_per_principal: NONE, ..limits }
        }
        Some(LiftsRequestShare) => Limits {
            pending_requests_per_user: NONE,
            pending_requests_per_principal: NONE,
            ..limits
        },
        Some(LiftsBytesShare) => {
            Limits { pending_bytes_per_user: NONE, pending_bytes_per_principal: NONE, ..limits }
        }
        Some(LiftsCallShare) => {
            Limits { known_calls_per_user: NONE, known_calls_per_principal: NONE, ..limits }
        }
        Some(LiftsSubscriptionShare) => {
            Limits { subscriptions_per_user: NONE, subscriptions_per_principal: NONE, ..limits }
        }
        _ => limits,
    }
}

/// The rules of a mutated engine.
pub(crate) struct Mutated;

/// Methods that do something else under a mutation, and otherwise what [`Sound`] does.
macro_rules! overrides {
    ($(fn $method:ident($($name:ident: $type:ty),*) -> $result:ty {
        $($mutation:ident => $wrong:expr),+ $(,)?
    })+) => {
        impl Rules for Mutated {
            $(fn $method($($name: $type),*) -> $result {
                match MUTATION.get() {
                    $(Some(Mutation::$mutation) => $wrong,)+
                    _ => Sound::$method($($name),*),
                }
            })+
        }
    };
}

overrides! {
    fn is_owner(owner: &Principal, peer: &Principal) -> bool { IgnoresOwner => true }
    fn is_pending(status: Status) -> bool { TakesASecondReply => true }
    fn is_in_time(arrived: Boot, deadline: Boot) -> bool { IgnoresDeadline => true }
    fn is_entitled(peer: &Principal, user: Option<&str>) -> bool { IgnoresEntitlement => true }
    fn fits_kind(answers: Option<EventKind>, asked: EventKind) -> bool { IgnoresKind => true }
    fn supports_replies(confirms: bool, clarifies: bool, kind: EventKind) -> bool {
        IgnoresReplySupport => true
    }
    fn is_plausible(claimed: Timestamp, asked: Timestamp, deadline_micros: i64) -> bool {
        IgnoresStamp => true
    }
    fn is_somebody_else(own_tree: bool) -> bool { IgnoresOwnTree => true }
    fn is_present(shown: Presence, needed: Presence, consents: bool) -> bool {
        IgnoresPresence => true
    }
    fn may_be_silent(needed: Presence) -> bool { TakesSilenceForPresence => true }
    fn is_longer(until: Boot, deadline: Boot) -> bool { ExtendsWithLessTime => true }
    fn counts_in_flood() -> bool { DropsRepliesInFloods => false }
    fn records_ignored(within_rate: bool) -> bool {
        RecordsFloods => true,
        RecordsNothingIgnored => false,
    }
    fn waits_in_flood(has_record: bool) -> bool { AnswersFloodsAtOnce => has_record }
    fn accept_runs(modified: bool) -> bool { AcceptsModified => true }
    fn silence_runs(default_accept: bool, irreversible: bool) -> bool {
        TakesSilenceForConsent => true
    }
    fn has_approval(status: Status) -> bool {
        IgnoresApproval => true,
        SpendsTwice => Sound::may_announce(status),
    }
    fn matches_digest(given: &Digest, confirmed: &Digest) -> bool { RunsGivenArguments => true }
    fn arguments_to_run(confirmed: &Arc<str>, given: Option<&str>) -> Arc<str> {
        RunsGivenArguments => given.map_or_else(|| confirmed.clone(), Arc::from)
    }
    fn may_announce(status: Status) -> bool { AnnouncesRefused => true }
    fn asks_the_same(pending: &Digest, asked: &Digest) -> bool { AsksTwice => false }
    fn token_source(event: EventNumber) -> EventNumber { ReusesTokens => EventNumber::from_bits(0) }
    fn token_after_extension(old: TokenNumber, new: TokenNumber) -> TokenNumber {
        KeepsOldTokens => old
    }
    fn due_before_input(now: Now) -> Now { IgnoresDeadline => Now { boot: Boot(0), ..now } }
    fn has_deadline(status: Status) -> bool {
        NeverEndsWaits => status != Status::Pending,
        KeepsApprovals => status == Status::Pending,
    }
    fn grace_seconds() -> u64 { GivesNoGrace => 0 }
    fn dies_with_session(status: Status) -> bool { LeavesRequestsOpen => false }
    fn is_explained(status: Status) -> bool { UnexplainedApprovals => false }
    fn ends_session(kind: EventKind) -> bool { LeavesSessionsOpen => false }
    fn may_begin(draining: bool) -> bool { StartsWhileDraining => true }
    fn forgets_action(status: Status, session_open: bool) -> bool { KeepsArguments => false }
    fn is_abandoned(expires: Boot, now: Boot) -> bool { KeepsSubscriptions => false }
    fn waits_for(record: u64) -> u64 { SpeaksTooSoon => 0 }
    fn stamp(wall: Timestamp, last: Timestamp) -> Timestamp { StampsBackwards => wall }
    fn is_said(event: &Emitted) -> bool { ShowsNoOutcome => event.about.is_none() }
    fn status_on_record(resolved: Status) -> Status { RevivesResolved => Status::Pending }
    fn stays_pending(session_open: bool, trust: ClockTrust) -> bool {
        EndsPendingAtRestart => false,
        IgnoresDoubt => session_open,
    }
    fn stays_approved(trust: ClockTrust) -> bool { IgnoresDoubt => true }
    fn left_micros(asked_micros: i64, timeout_seconds: u64, now: Now) -> u64 {
        RestartsWaits => timeout_seconds.saturating_mul(1_000_000)
    }
    fn recovers_call(call: &ToolCallId) -> bool { ForgetsCalls => false }
    fn says_again(is_question: bool, is_open: bool) -> bool { RepeatsNothing => false }
    fn skipped_numbers() -> u64 { ReusesNumbers => 0 }
    fn may_hear(peer: &Principal, user: &str, agent: &str) -> bool { HearsEverything => true }
    fn hears_everyone(role: Role) -> bool { HearsEverything => true }
    fn may_have_tokens(peer: &Principal) -> bool { SendsTokensToAgents => true }
    fn delivers_first() -> bool { InvokesBeforeTelling => false }
    fn passes_filter(event: &Prepared, filter: &Filter) -> bool {
        FiltersCriticals => !event.is_critical() || filter.admits(event.type_name())
    }
    fn passes_any_filter(is_resolution: bool, is_end: bool) -> bool {
        DropsOutcomesByFilter => false
    }
    fn ends_subscription(overflow: &Overflow) -> bool { IgnoresOverflow => false }
    fn holds_up_others(paused: bool) -> bool { BlocksOnTheSlowest => paused }
    fn polls_at_once(waiting_events: usize) -> bool { LetsCriticalsWait => waiting_events == 0 }
    fn rate(agreed: Option<u32>) -> Option<u32> {
        SendsFaster => None,
        SendsSlower => agreed.map(|rate| rate.div_ceil(2)),
    }
    fn held_limits(limits: &Limits) -> HeldLimits {
        MergesNothing => HeldLimits { merge_from: usize::MAX, ..Sound::held_limits(limits) },
        BorrowsTooMuch => HeldLimits { max_debt_seconds: 3600, ..Sound::held_limits(limits) },
    }
    fn sends_again(event: &Prepared) -> bool { ResendsNothing => false }
    fn belongs_in_snapshot(asks: bool) -> bool {
        TellsNoSession => asks,
        TellsNoQuestion => !asks,
    }
    fn resumed(how: Resumed) -> Resumed { ClaimsThatAllFollows => Resumed::All }
}
