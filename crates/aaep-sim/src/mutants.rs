//! Engines that break one rule each. If the simulator did not notice, it would prove nothing.

use std::cell::Cell;

use crate::Violation;
use crate::cast::Cast;
use crate::mutation::{self, Mutated, Mutation};
use crate::picture::Flaw;
use crate::schedule::run_with;

/// An engine, or a listener, with something missing.
pub struct Mutant {
    /// The invariant that it breaks.
    pub invariant: &'static str,
    /// What it does.
    pub about: &'static str,
    mutation: Option<Mutation>,
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
    /// What listeners of this thread lack.
    static FLAW: Cell<Flaw> = const { Cell::new(Flaw::None) };
}

/// What listeners lack.
pub(crate) fn flaw() -> Flaw {
    FLAW.get()
}

impl Mutant {
    /// Runs schedules from this seed on until one notices, at most so many.
    pub fn hunt(&self, seed: u64, at_most: u64) -> Option<Kill> {
        mutation::set(self.mutation);
        FLAW.set(self.flaw);
        let cast = Cast::new();
        let kill = (0..at_most).find_map(|index| {
            let seed = seed.wrapping_add(index);
            let violation = run_with::<Mutated>(&cast, seed, false).violation?;
            Some(Kill { schedules: index + 1, seed, violation })
        });
        mutation::set(None);
        FLAW.set(Flaw::None);
        kill
    }
}

const fn mutant(invariant: &'static str, about: &'static str, mutation: Mutation) -> Mutant {
    Mutant { invariant, about, mutation: Some(mutation), flaw: Flaw::None }
}

const fn listener(invariant: &'static str, about: &'static str, flaw: Flaw) -> Mutant {
    Mutant { invariant, about, mutation: None, flaw }
}

/// Every mutant; at least one for each invariant that this engine can break.
pub const MUTANTS: &[Mutant] = &[
    mutant("I1", "runs other arguments than were confirmed", Mutation::RunsGivenArguments),
    mutant("I1", "runs an action before people hear of it", Mutation::InvokesBeforeTelling),
    mutant("I1", "spends one approval twice", Mutation::SpendsTwice),
    mutant("I1", "invokes what nobody approved", Mutation::IgnoresApproval),
    mutant("I2", "lets a second reply count", Mutation::TakesASecondReply),
    mutant("I2", "leaves a token alive when it gives more time", Mutation::KeepsOldTokens),
    mutant("I3", "ends at a restart what was pending", Mutation::EndsPendingAtRestart),
    mutant("I3", "makes pending again what was resolved", Mutation::RevivesResolved),
    mutant("I3", "does not ask who comes what waits", Mutation::TellsNoQuestion),
    mutant("I4", "lets a filter hide a critical event", Mutation::FiltersCriticals),
    mutant("I4", "goes on with a subscription that cannot take more", Mutation::IgnoresOverflow),
    mutant("I5", "goes on after the end of a session", Mutation::LeavesSessionsOpen),
    mutant("I6", "answers sooner if a reply does not count", Mutation::RecordsNothingIgnored),
    mutant("I6", "lets a yes answer a question", Mutation::IgnoresKind),
    mutant("I7", "takes a reply after the deadline", Mutation::IgnoresDeadline),
    mutant("I7", "begins every wait anew at a restart", Mutation::RestartsWaits),
    mutant("I7", "drops answers in a flood", Mutation::DropsRepliesInFloods),
    mutant("I22", "records every reply of a flood", Mutation::RecordsFloods),
    mutant("I6", "answers a flood before its record", Mutation::AnswersFloodsAtOnce),
    mutant("I8", "keeps waiting under a clock that cannot be trusted", Mutation::IgnoresDoubt),
    mutant("I8", "takes a yes with an impossible stamp", Mutation::IgnoresStamp),
    mutant("I8", "gives less time when more is asked for", Mutation::ExtendsWithLessTime),
    mutant("I9", "takes silence for consent", Mutation::TakesSilenceForConsent),
    mutant("I10", "speaks before the record is durable", Mutation::SpeaksTooSoon),
    mutant("I11", "forgets a running call at a restart", Mutation::ForgetsCalls),
    mutant("I12", "asks twice for one action", Mutation::AsksTwice),
    mutant("I13", "ends a session with requests open", Mutation::LeavesRequestsOpen),
    mutant("I14", "gives up as soon as a line breaks", Mutation::GivesNoGrace),
    mutant("I15", "lets anybody answer", Mutation::IgnoresEntitlement),
    mutant("I15", "lets anybody use a subscription", Mutation::IgnoresOwner),
    mutant("I16", "lets those answer who gave it up", Mutation::IgnoresReplySupport),
    mutant("I17", "takes a yes to something else for a yes", Mutation::AcceptsModified),
    mutant("I18", "does not show what became of a request", Mutation::ShowsNoOutcome),
    mutant("I18", "ends a session over an approval without a word", Mutation::UnexplainedApprovals),
    mutant("I18", "does not say again what a crash swallowed", Mutation::RepeatsNothing),
    mutant("I18", "lets a filter hide what became of a request", Mutation::DropsOutcomesByFilter),
    mutant("I19", "lets stamps go back", Mutation::StampsBackwards),
    mutant("I19", "uses numbers again after a restart", Mutation::ReusesNumbers),
    mutant("I19", "does not send again what a connection swallowed", Mutation::ResendsNothing),
    mutant("I20", "sends more than was agreed on", Mutation::SendsFaster),
    mutant("I20", "lets people wait longer than the rate asks for", Mutation::SendsSlower),
    mutant("D38", "tells everything that waited before a critical event", Mutation::MergesNothing),
    mutant("D38", "lets people wait for what others borrowed", Mutation::BorrowsTooMuch),
    mutant("I20", "lets critical events wait for their turn", Mutation::LetsCriticalsWait),
    mutant("I21", "waits for the slowest", Mutation::BlocksOnTheSlowest),
    mutant("I22", "never forgets what was said", Mutation::KeepsRecentEvents),
    mutant("I22", "keeps subscriptions that nobody comes back to", Mutation::KeepsSubscriptions),
    mutant("I22", "keeps the arguments of what is settled", Mutation::KeepsArguments),
    mutant("I22", "keeps every output that was completed", Mutation::RemembersOutputs),
    mutant("I22", "keeps every request and every ended session", Mutation::KeepsRequests),
    mutant("I20", "lets agents cry wolf", Mutation::LiftsCriticalBudget),
    mutant("I29", "lets one tenant take all sessions", Mutation::LiftsSessionShare),
    mutant("I29", "lets one tenant take all requests", Mutation::LiftsRequestShare),
    mutant("I29", "lets one tenant take the room of all requests", Mutation::LiftsBytesShare),
    mutant("I29", "lets one tenant take all tool calls", Mutation::LiftsCallShare),
    mutant("I29", "lets one tenant take all subscriptions", Mutation::LiftsSubscriptionShare),
    mutant("I23", "takes new requests though it is about to stop", Mutation::StartsWhileDraining),
    mutant("I25", "gives every request the same token", Mutation::ReusesTokens),
    mutant("D41", "lets approvals live for ever", Mutation::KeepsApprovals),
    mutant("D37", "announces what was refused", Mutation::AnnouncesRefused),
    mutant("S6", "tells everybody everything", Mutation::HearsEverything),
    mutant("S6", "tells agents the tokens of their requests", Mutation::SendsTokensToAgents),
    mutant("I27", "never ends a wait", Mutation::NeverEndsWaits),
    mutant("I32", "does not tell who comes back what goes on", Mutation::TellsNoSession),
    mutant(
        "I32",
        "says that all follows when it tells how things stand",
        Mutation::ClaimsThatAllFollows,
    ),
    mutant("I30", "lets an agent answer itself", Mutation::IgnoresOwnTree),
    mutant("I34", "takes a yes from somebody who is not present enough", Mutation::IgnoresPresence),
    mutant("I34", "takes silence for somebody's presence", Mutation::TakesSilenceForPresence),
    listener("I32", "has listeners who keep what is over", Flaw::NeverDoubts),
    mutant(
        "I33",
        "believes records that were written without the key",
        Mutation::BelievesForgeries,
    ),
];
