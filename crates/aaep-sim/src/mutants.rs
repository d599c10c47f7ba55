//! Engines that lack one check each. If the simulator did not notice, it would prove nothing.

use std::cell::Cell;

use aaep_engine::{Check, Rules};

use crate::Violation;
use crate::cast::Cast;
use crate::picture::Flaw;
use crate::schedule::run_with;

/// An engine with something missing.
pub struct Mutant {
    /// The invariant that it breaks.
    pub invariant: &'static str,
    /// What it does.
    pub about: &'static str,
    lacks: &'static [Check],
    /// What its listeners lack.
    flaw: Flaw,
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

thread_local! {
    /// The checks that engines of this thread lack. One kind of engine serves all mutants: compiling
    /// one for each took minutes.
    static LACKS: Cell<&'static [Check]> = const { Cell::new(&[]) };
}

thread_local! {
    /// What listeners of this thread lack.
    static FLAW: Cell<Flaw> = const { Cell::new(Flaw::None) };
}

/// What listeners lack.
pub(crate) fn flaw() -> Flaw {
    FLAW.get()
}

struct Lacking;

impl Rules for Lacking {
    fn keeps(check: Check) -> bool {
        !LACKS.get().contains(&check)
    }
}

impl Mutant {
    /// Runs schedules from this seed on until one notices, at most so many.
    pub fn hunt(&self, seed: u64, at_most: u64) -> Option<Kill> {
        LACKS.set(self.lacks);
        FLAW.set(self.flaw);
        let cast = Cast::new();
        let kill = (0..at_most).find_map(|index| {
            let seed = seed.wrapping_add(index);
            let violation = run_with::<Lacking>(&cast, seed, false).violation?;
            Some(Kill { schedules: index + 1, seed, violation })
        });
        FLAW.set(Flaw::None);
        kill
    }
}

const fn mutant(invariant: &'static str, about: &'static str, lacks: &'static [Check]) -> Mutant {
    Mutant { invariant, about, lacks, flaw: Flaw::None }
}

const fn listener(invariant: &'static str, about: &'static str, flaw: Flaw) -> Mutant {
    Mutant { invariant, about, lacks: &[], flaw }
}

/// Every mutant; at least one for each invariant that this engine can break.
pub const MUTANTS: &[Mutant] = &[
    mutant("I1", "runs other arguments than were confirmed", &[Check::ChecksDigest]),
    mutant("I1", "runs an action before people hear of it", &[Check::PeopleHearFirst]),
    mutant("I1", "spends one approval twice", &[Check::SpendsOnce]),
    mutant("I1", "invokes what nobody approved", &[Check::NeedsApproval]),
    mutant("I2", "lets a second reply count", &[Check::FirstReplyWins]),
    mutant("I2", "leaves a token alive when it gives more time", &[Check::OldTokensDie]),
    mutant("I3", "ends at a restart what was pending", &[Check::RecoversPending]),
    mutant("I3", "makes pending again what was resolved", &[Check::RecoversResolutions]),
    mutant("I3", "does not ask who comes what waits", &[Check::AsksWhoComes]),
    mutant("I4", "lets a filter hide a critical event", &[Check::CriticalPassesFilters]),
    mutant("I4", "goes on with a subscription that cannot take more", &[Check::OverflowEnds]),
    mutant("I5", "goes on after the end of a session", &[Check::NothingAfterTheEnd]),
    mutant("I6", "answers sooner if a reply does not count", &[Check::RecordsIgnored]),
    mutant("I6", "lets a yes answer a question", &[Check::ChecksKind]),
    mutant(
        "I7",
        "takes a reply after the deadline",
        &[Check::ChecksDeadline, Check::DueComesFirst],
    ),
    mutant("I7", "begins every wait anew at a restart", &[Check::KeepsDeadlines]),
    mutant("I7", "drops answers in a flood", &[Check::FloodsSilenceNobody]),
    mutant("I22", "records every reply of a flood", &[Check::CountsFloods]),
    mutant("I6", "answers a flood before its record", &[Check::FloodedWaitAlike]),
    mutant("I8", "keeps waiting under a clock that cannot be trusted", &[Check::DoubtWithdraws]),
    mutant("I8", "takes a yes with an impossible stamp", &[Check::ChecksStamp]),
    mutant("I8", "gives less time when more is asked for", &[Check::MoreTimeIsMore]),
    mutant("I9", "takes silence for consent", &[Check::SilenceIsNo]),
    mutant("I10", "speaks before the record is durable", &[Check::HoldsUntilDurable]),
    mutant("I11", "forgets a running call at a restart", &[Check::RecoversCalls]),
    mutant("I12", "asks twice for one action", &[Check::OnePendingPerAction]),
    mutant("I13", "ends a session with requests open", &[Check::EndsRequestsWithSession]),
    mutant("I14", "gives up as soon as a line breaks", &[Check::GrantsGrace]),
    mutant("I15", "lets anybody answer", &[Check::ChecksEntitlement]),
    mutant("I15", "lets anybody use a subscription", &[Check::ChecksOwner]),
    mutant("I16", "lets those answer who gave it up", &[Check::ChecksReplySupport]),
    mutant("I17", "takes a yes to something else for a yes", &[Check::ModifiedIsNo]),
    mutant("I18", "does not show what became of a request", &[Check::ShowsResolutions]),
    mutant("I18", "ends a session over an approval without a word", &[Check::ExplainsUnused]),
    mutant("I18", "does not say again what a crash swallowed", &[Check::SaysAgain]),
    mutant("I18", "lets a filter hide what became of a request", &[Check::OutcomesPassFilters]),
    mutant("I19", "lets stamps go back", &[Check::StampsNeverDecrease]),
    mutant("I19", "uses numbers again after a restart", &[Check::SkipsNumbers]),
    mutant("I19", "does not send again what a connection swallowed", &[Check::SendsAgain]),
    mutant("I20", "sends more than was agreed on", &[Check::KeepsToRates]),
    mutant("I20", "lets people wait longer than the rate asks for", &[Check::WaitsNoLonger]),
    mutant(
        "D38",
        "tells everything that waited before a critical event",
        &[Check::MergesWhatWaits],
    ),
    mutant("D38", "lets people wait for what others borrowed", &[Check::BoundsDebt]),
    mutant("I20", "lets critical events wait for their turn", &[Check::CriticalNeverWaits]),
    mutant("I21", "waits for the slowest", &[Check::SlowOnesWaitAlone]),
    mutant("I22", "never forgets what was said", &[Check::Forgets]),
    mutant("I22", "keeps subscriptions that nobody comes back to", &[Check::GivesUp]),
    mutant("I22", "keeps the arguments of what is settled", &[Check::ForgetsArguments]),
    mutant("I22", "keeps every output that was completed", &[Check::ForgetsOutputs]),
    mutant("I22", "keeps every request and every ended session", &[Check::ForgetsRequests]),
    mutant("I20", "lets agents cry wolf", &[Check::BudgetsCriticals]),
    mutant("I29", "lets one tenant take all sessions", &[Check::SharesSessions]),
    mutant("I29", "lets one tenant take all requests", &[Check::SharesRequests]),
    mutant("I29", "lets one tenant take the room of all requests", &[Check::SharesBytes]),
    mutant("I29", "lets one tenant take all tool calls", &[Check::SharesCalls]),
    mutant("I23", "takes new requests though it is about to stop", &[Check::Drains]),
    mutant("I25", "gives every request the same token", &[Check::TokensAreFresh]),
    mutant("D41", "lets approvals live for ever", &[Check::ApprovalsExpire]),
    mutant("D37", "announces what was refused", &[Check::RefusedStaysUndone]),
    mutant("S6", "tells everybody everything", &[Check::HearsOwnOnly]),
    mutant("S6", "tells agents the tokens of their requests", &[Check::TokensAreForPeople]),
    mutant("I27", "never ends a wait", &[Check::WaitsEnd]),
    mutant("I32", "does not tell who comes back what goes on", &[Check::TellsWhatGoesOn]),
    mutant(
        "I32",
        "says that all follows when it tells how things stand",
        &[Check::SaysWhatFollows],
    ),
    listener("I32", "has listeners who keep what is over", Flaw::NeverDoubts),
    mutant("I33", "believes records that were written without the key", &[Check::ChecksKey]),
];
