//! The safety rules, one named method each, with the rule as its default body.
//!
//! The engine asks them as `R::is_pending(status)`, and `R` is [`Sound`], which changes none. The
//! trait is not exported, so nobody can build an engine with weaker rules. The one exception is the
//! feature `mutants`: with it, `aaep-sim` overrides one method at a time and proves that it would
//! notice. A test in xtask keeps every other crate from enabling it.

use aaep_shaping::{Filter, HeldLimits, Overflow, Prepared};
use aaep_types::{EventKind, Presence, Timestamp, ToolCallId};
use std::sync::Arc;

use crate::clock::{Boot, Now};
use crate::ids::{Digest, EventNumber, TokenNumber};
use crate::io::Emitted;
use crate::limits::Limits;
use crate::principal::{Principal, Role};
use crate::recover::ClockTrust;
use crate::request::Status;
use crate::resume::Resumed;

/// How much earlier than the request a reply may claim to have been decided (D9).
const EARLY_MICROS: i64 = 5 * 60 * 1_000_000;

/// What an engine checks; see the module.
#[rustfmt::skip] // one rule, one line, where it fits
pub trait Rules: 'static {
    // Whether a reply counts (§6.3.4).

    /// S4, I15: a subscription is used by its owner alone.
    fn is_owner(owner: &Principal, peer: &Principal) -> bool { owner == peer }

    /// I2: only what still waits can be answered; a token that was used is dead.
    fn is_pending(status: Status) -> bool { status == Status::Pending }

    /// I7: a reply that arrives at or after the deadline never counts.
    fn is_in_time(arrived: Boot, deadline: Boot) -> bool { arrived < deadline }

    /// S1, D3: the peer itself may answer for the session's user. A session that ended has none.
    fn is_entitled(peer: &Principal, user: Option<&str>) -> bool {
        user.is_some_and(|user| peer.may_answer(user))
    }

    /// D29: a clarification's reply never answers a confirmation. `None` fits both.
    fn fits_kind(answers: Option<EventKind>, asked: EventKind) -> bool {
        answers.is_none_or(|kind| kind == asked)
    }

    /// I16, D1: the subscription agreed on replies to this kind of request.
    fn supports_replies(confirms: bool, clarifies: bool, kind: EventKind) -> bool {
        match kind {
            EventKind::AwaitingConfirmation => confirms,
            EventKind::AwaitingClarification => clarifies,
            _ => false,
        }
    }

    /// I8, D9: the time that a reply claims lies within the wait, give or take a clock that is slow.
    fn is_plausible(claimed: Timestamp, asked: Timestamp, deadline_micros: i64) -> bool {
        let claimed = claimed.as_micros();
        claimed < deadline_micros && claimed >= asked.as_micros().saturating_sub(EARLY_MICROS)
    }

    /// I30: a reply from the asking agent's own process tree never counts, whatever it says.
    fn is_somebody_else(own_tree: bool) -> bool { !own_tree }

    /// I34: a yes is at least as present as its request asks for. A no, and more time, need no more
    /// than a listener: they let nothing run.
    fn is_present(shown: Presence, needed: Presence, consents: bool) -> bool {
        !consents || shown >= needed
    }

    /// I8, D32: more time never shortens a wait.
    fn is_longer(until: Boot, deadline: Boot) -> bool { until > deadline }

    /// I7, D40: a valid reply counts, however many others its sender sends.
    fn counts_in_flood() -> bool { true }

    /// I6, I22: a reply that does not count leaves a record; beyond the rate it is only counted.
    fn records_ignored(within_rate: bool) -> bool { within_rate }

    /// I6, D40: beyond the rate every answer waits alike, whether its reply has a record or not.
    fn waits_in_flood(_has_record: bool) -> bool { true }

    // What consent means.

    /// I17, D8: a yes to a modified action is no yes to the one that was asked about.
    fn accept_runs(modified: bool) -> bool { !modified }

    /// I9, D11: silence never means yes to an irreversible action.
    fn silence_runs(default_accept: bool, irreversible: bool) -> bool {
        default_accept && !irreversible
    }

    /// I34: nobody is present in silence.
    fn may_be_silent(needed: Presence) -> bool { needed == Presence::None }

    /// I1, I2: there is a yes that was not spent.
    fn has_approval(status: Status) -> bool { status.is_approved() }

    /// I1: the arguments are the ones that were confirmed.
    fn matches_digest(given: &Digest, confirmed: &Digest) -> bool { given == confirmed }

    /// I1: what runs is what was stored when it was confirmed.
    fn arguments_to_run(confirmed: &Arc<str>, _given: Option<&str>) -> Arc<str> { confirmed.clone() }

    /// D37: what waits for consent, or was refused it, is not announced as running.
    fn may_announce(status: Status) -> bool { status.has_consent() }

    /// I12: one pending request for one action.
    fn asks_the_same(pending: &Digest, asked: &Digest) -> bool { pending == asked }

    /// I25: every request has a token of its own, which follows from the event that asks.
    fn token_source(event: EventNumber) -> EventNumber { event }

    /// I2, D32: more time means a new token, and the old one is dead.
    fn token_after_extension(_old: TokenNumber, new: TokenNumber) -> TokenNumber { new }

    // What ends, and when.

    /// I7: whatever is due by the time an input arrives is done before it.
    fn due_before_input(now: Now) -> Now { now }

    /// I27, D41: a wait has an end, and so has an approval that nobody uses.
    fn has_deadline(status: Status) -> bool { status == Status::Pending || status.is_approved() }

    /// I14, D2: somebody who lost the connection has a while to come back.
    fn grace_seconds() -> u64 { 30 }

    /// I13: nothing stays pending when its session ends.
    fn dies_with_session(status: Status) -> bool { status == Status::Pending }

    /// I18: an approval that nobody used is explained before its session ends.
    fn is_explained(status: Status) -> bool { status.is_approved() }

    /// I5: nothing follows the end of a session.
    fn ends_session(kind: EventKind) -> bool { kind.is_terminal() }

    /// I23: nothing new begins while the hub drains.
    fn may_begin(draining: bool) -> bool { !draining }

    /// I22: what is settled, or whose session is over, keeps nothing of its action.
    fn forgets_action(status: Status, session_open: bool) -> bool {
        !(session_open && (Self::has_deadline(status) || status == Status::Invoked))
    }

    /// I22, H19: a subscription that nobody came back to in time is dropped.
    fn is_abandoned(expires: Boot, now: Boot) -> bool { expires <= now }

    // What is said, and in which order.

    /// I10: what relies on a record waits until that record is durable.
    fn waits_for(record: u64) -> u64 { record }

    /// E10: stamps never go back, even if the wall clock does.
    fn stamp(wall: Timestamp, last: Timestamp) -> Timestamp { wall.max(last) }

    /// I18: every event of ours is said, outcomes above all.
    fn is_said(_event: &Emitted) -> bool { true }

    // What survives a restart.

    /// I3: what was resolved stays resolved.
    fn status_on_record(resolved: Status) -> Status { resolved }

    /// I3, I8: what was pending stays pending, if its session goes on and the clock can be trusted.
    fn stays_pending(session_open: bool, trust: ClockTrust) -> bool {
        session_open && trust == ClockTrust::Trusted
    }

    /// I8, D41: nobody knows how old an approval is under a clock that cannot be trusted.
    fn stays_approved(trust: ClockTrust) -> bool { trust == ClockTrust::Trusted }

    /// I3, I8: what is left of a wait; a restart does not begin it anew, nor lengthen it.
    fn left_micros(asked_micros: i64, timeout_seconds: u64, now: Now) -> u64 {
        let whole = timeout_seconds.saturating_mul(1_000_000);
        let passed = now.wall.as_micros().saturating_sub(asked_micros).max(0) as u64;
        whole.saturating_sub(passed)
    }

    /// I7, I8: by how much another machine's clock may have been off when it began a wait, in
    /// microseconds. Replies stop counting so much sooner, and silence counts so much later.
    fn margin_micros(margin: u32) -> u32 { margin }

    /// I11: a call that was running is not forgotten.
    fn recovers_call(_call: &ToolCallId) -> bool { true }

    /// I18, I11, I5: what may not have been heard is said again; a question only while it is open.
    fn says_again(is_question: bool, is_open: bool) -> bool { !is_question || is_open }

    /// I19: how many numbers are skipped. Events between two records are not durable, so nobody
    /// knows how many there were: a hole says honestly that something may be lost, and no number is
    /// used twice.
    fn skipped_numbers() -> u64 { 1 << 20 }

    // Who hears what (§5.9, §6.7).

    /// S6: a session is heard by its user, and by those who may hear everything.
    fn may_hear(peer: &Principal, user: &str, agent: &str) -> bool { peer.may_hear(user, agent) }

    /// S6: who may hear the sessions of every user.
    fn hears_everyone(role: Role) -> bool { matches!(role, Role::Auditor | Role::Admin) }

    /// S6: no agent is sent a reply token, so it cannot answer itself.
    fn may_have_tokens(peer: &Principal) -> bool { peer.role != Role::Agent }

    /// I1, T11: people hear of a call before it runs.
    fn delivers_first() -> bool { true }

    /// I4: no filter hides a critical event. What is not critical is left to the shaper.
    fn passes_filter(_event: &Prepared, _filter: &Filter) -> bool { true }

    /// I18, D31: everyone who was asked hears the outcome, whatever their filter.
    fn passes_any_filter(is_resolution: bool, is_end: bool) -> bool { is_resolution || is_end }

    /// I4, I22: a subscription that cannot take more is ended, not kept in the dark.
    fn ends_subscription(_overflow: &Overflow) -> bool { true }

    /// I21: a subscription whose connection takes nothing holds up nobody else.
    fn holds_up_others(_paused: bool) -> bool { false }

    /// I20: a critical event is polled at once, whatever waits before it.
    fn polls_at_once(_waiting_events: usize) -> bool { true }

    /// I20: the rate is the one that was agreed on: no more is sent, and nothing waits longer.
    fn rate(agreed: Option<u32>) -> Option<u32> { agreed }

    /// I22, D38: how much is held, from where on it is merged, and how much may be owed.
    fn held_limits(limits: &Limits) -> HeldLimits {
        let Limits { held_events: max_events, held_bytes: max_bytes, .. } = *limits;
        HeldLimits { max_events, max_bytes, ..HeldLimits::default() }
    }

    /// I19: what a broken connection swallowed is sent again.
    fn sends_again(_event: &Prepared) -> bool { true }

    /// I3, I32, D28: a newcomer is told every session that goes on, and asked what waits.
    fn belongs_in_snapshot(_asks: bool) -> bool { true }

    /// I32: a subscriber that is told the present state is not told that everything missed follows.
    fn resumed(how: Resumed) -> Resumed { how }
}

/// Every rule holds.
#[derive(Clone, Copy, Debug)]
pub struct Sound;

impl Rules for Sound {}
