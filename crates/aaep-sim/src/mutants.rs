//! Engines that lack one check each. If the simulator did not notice, it would prove nothing.

use aaep_engine::Rules;

use crate::Violation;
use crate::cast::Cast;
use crate::schedule::run_with;

/// An engine with something missing.
pub struct Mutant {
    /// The invariant that it breaks.
    pub invariant: &'static str,
    /// What it does.
    pub about: &'static str,
    hunt: fn(u64, u64) -> Option<Kill>,
}

/// How a mutant was found out.
#[derive(Clone, Debug)]
pub struct Kill {
    /// After so many schedules.
    pub schedules: u64,
    /// The seed that did it.
    pub seed: u64,
    /// What was seen.
    pub violation: Violation,
}

impl Mutant {
    /// Runs schedules from this seed on until one notices, at most so many.
    pub fn hunt(&self, seed: u64, at_most: u64) -> Option<Kill> {
        (self.hunt)(seed, at_most)
    }
}

fn hunt<R: Rules>(first: u64, at_most: u64) -> Option<Kill> {
    let cast = Cast::new();
    (0..at_most).find_map(|index| {
        let seed = first.wrapping_add(index);
        let violation = run_with::<R>(&cast, seed, false).violation?;
        Some(Kill { schedules: index + 1, seed, violation })
    })
}

macro_rules! mutants {
    ($($name:ident, $invariant:literal, $about:literal: $($rule:ident),+;)+) => {
        $(
            struct $name;
            impl Rules for $name {
                $(const $rule: bool = false;)+
            }
        )+

        /// Every mutant; at least one for each invariant that this engine can break.
        pub const MUTANTS: &[Mutant] = &[
            $(Mutant { invariant: $invariant, about: $about, hunt: hunt::<$name> },)+
        ];
    };
}

mutants! {
    OtherArguments, "I1", "runs other arguments than were confirmed": CHECKS_DIGEST;
    RunsFirst, "I1", "runs an action before people hear of it": PEOPLE_HEAR_FIRST;
    SpendsTwice, "I1", "spends one approval twice": SPENDS_ONCE;
    NeedsNoApproval, "I1", "invokes what nobody approved": NEEDS_APPROVAL;
    SecondReplyCounts, "I2", "lets a second reply count": FIRST_REPLY_WINS;
    OldTokens, "I2", "leaves a token alive when it gives more time": OLD_TOKENS_DIE;
    ForgetsPending, "I3", "ends at a restart what was pending": RECOVERS_PENDING;
    RevivesTokens, "I3", "makes pending again what was resolved": RECOVERS_RESOLUTIONS;
    AsksNobody, "I3", "does not ask who comes what waits": ASKS_WHO_COMES;
    FiltersAll, "I4", "lets a filter hide a critical event": CRITICAL_PASSES_FILTERS;
    DropsInSilence, "I4", "goes on with a subscription that cannot take more": OVERFLOW_ENDS;
    NeverOver, "I5", "goes on after the end of a session": NOTHING_AFTER_THE_END;
    TellsIgnored, "I6", "answers sooner if a reply does not count": RECORDS_IGNORED;
    AnyKind, "I6", "lets a yes answer a question": CHECKS_KIND;
    LateRepliesCount, "I7", "takes a reply after the deadline": CHECKS_DEADLINE, DUE_COMES_FIRST;
    WaitsAnew, "I7", "begins every wait anew at a restart": KEEPS_DEADLINES;
    TrustsAnyClock, "I8", "keeps waiting under a clock that cannot be trusted": DOUBT_WITHDRAWS;
    AnyStamp, "I8", "takes a yes with an impossible stamp": CHECKS_STAMP;
    LessTime, "I8", "gives less time when more is asked for": MORE_TIME_IS_MORE;
    SilenceIsYes, "I9", "takes silence for consent": SILENCE_IS_NO;
    Hasty, "I10", "speaks before the record is durable": HOLDS_UNTIL_DURABLE;
    ForgetsCalls, "I11", "forgets a running call at a restart": RECOVERS_CALLS;
    AsksTwice, "I12", "asks twice for one action": ONE_PENDING_PER_ACTION;
    LeavesRequests, "I13", "ends a session with requests open": ENDS_REQUESTS_WITH_SESSION;
    NoGrace, "I14", "gives up as soon as a line breaks": GRANTS_GRACE;
    AnybodyAnswers, "I15", "lets anybody answer": CHECKS_ENTITLEMENT;
    Borrowed, "I15", "lets anybody use a subscription": CHECKS_OWNER;
    OnceIsForEver, "I16", "lets those answer who gave it up": CHECKS_REPLY_SUPPORT;
    ModifiedIsYes, "I17", "takes a yes to something else for a yes": MODIFIED_IS_NO;
    KeepsQuiet, "I18", "does not show what became of a request": SHOWS_RESOLUTIONS;
    SwallowsAtCrash, "I18", "does not say again what a crash swallowed": SAYS_AGAIN;
    HidesOutcomes, "I18", "lets a filter hide what became of a request": OUTCOMES_PASS_FILTERS;
    StampsGoBack, "I19", "lets stamps go back": STAMPS_NEVER_DECREASE;
    NumbersAgain, "I19", "uses numbers again after a restart": SKIPS_NUMBERS;
    SendsOnce, "I19", "does not send again what a connection swallowed": SENDS_AGAIN;
    Floods, "I20", "sends more than was agreed on": KEEPS_TO_RATES;
    CriticalWaits, "I20", "lets critical events wait for their turn": CRITICAL_NEVER_WAITS;
    HoldsUpAll, "I21", "waits for the slowest": SLOW_ONES_WAIT_ALONE;
    RemembersAll, "I22", "never forgets what was said": FORGETS;
    KeepsAll, "I22", "keeps subscriptions that nobody comes back to": GIVES_UP;
    NeverStops, "I23", "takes new requests though it is about to stop": DRAINS;
    OneToken, "I25", "gives every request the same token": TOKENS_ARE_FRESH;
    TellsEverybody, "S6", "tells everybody everything": HEARS_OWN_ONLY;
    WaitsForEver, "I27", "never ends a wait": WAITS_END;
}
