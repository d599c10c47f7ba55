//! Whether it was really the person: PINs that were typed, and the processes that replies come from.
//!
//! What is found out here goes into the engine as [`Evidence`](aaep_engine::Evidence); the engine
//! decides. See `docs/presence.md` for what this keeps out, and what it does not.

mod kept;
mod pins;
mod tries;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aaep_engine::{Boot, Principal, SubscriberMessage};
use aaep_transport::process::{Lineage, Origin, SocketHolders};
use aaep_types::presence::{Pin, Unlock};
use aaep_types::{Presence, PresenceWord, RiskLevel, SessionId, SubscriptionId};
use tokio::sync::Semaphore;

use crate::access::AuthenticatedPeer;
use crate::hub::{Hub, Stopped};
use crate::{Fault, clock};
pub(crate) use kept::KeptProcesses;
use pins::Pins;
use tries::Tries;

pub use pins::{MIN_PIN_CHARACTERS, PIN_FILE_NAME, PinFile};

/// PINs that are hashed at the same time: each takes a processor and 19 MiB for a while.
const HASHED_AT_ONCE: usize = 2;

/// How often the file of the PINs is looked at.
const LOOK_AT_PINS: Duration = Duration::from_secs(3);

/// Users whose tries are remembered.
const REMEMBERED_USERS: usize = 4096;

/// The program that asks on behalf of others, and as what.
const HELPER: (&str, &[&str]) = ("aaep", &["hook", "mcp"]);

/// Whether `aaep`, called with these words, is a terminal in which a person talks with an agent, and hears
/// and answers what it asks (`aaep acp --run`, `aaep guard run`).
fn is_talk(words: &[String]) -> bool {
    let mut own = words.iter().map(String::as_str).take_while(|word| *word != "--");
    match own.next() {
        Some("acp") => own.any(|word| word == "--run"),
        Some("guard") => own.next() == Some("run"),
        _ => false,
    }
}

/// Asked of the system once: it is looked at for every answer.
static OWN_PID: LazyLock<u32> = LazyLock::new(std::process::id);

/// What the hub knows of people's presence, apart from the connections that are unlocked.
#[derive(Debug)]
pub(crate) struct PresenceDesk {
    pins: Pins,
    tries: Mutex<BTreeMap<Arc<str>, Tries>>,
    hashing: Semaphore,
    holders: Arc<SocketHolders>,
    /// Where the hub listens.
    ports: Arc<[u16]>,
    /// What is known of agents' processes after a restart; `None` for a hub that keeps nothing.
    kept: Option<Arc<KeptProcesses>>,
}

/// What became of a PIN that was typed to change it.
pub(crate) enum Tried {
    Right,
    Wrong,
    /// It was not looked at: so many seconds until another one is.
    Wait(u64),
}

/// How a reply came, beyond who sent it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arrival {
    /// The processes at the other end, as they are now.
    pub(crate) origin: Origin,
    /// The connection both ways on which it came, by the serial of what is heard there; `None` over
    /// HTTP.
    pub(crate) link: Option<u64>,
    /// A signature over this very answer that was verified; empty for none.
    pub(crate) assertion: Arc<[u8]>,
    /// It is a terminal of `aaep` in which a person talks with an agent that it started.
    pub(crate) is_talk: bool,
}

impl PresenceDesk {
    pub(crate) fn new(file: Option<PinFile>, ports: Vec<u16>, kept: Option<KeptProcesses>) -> Self {
        let pins = Pins::new(file);
        pins.refresh();
        Self {
            pins,
            tries: Mutex::default(),
            hashing: Semaphore::new(HASHED_AT_ONCE),
            holders: Arc::default(),
            ports: ports.into(),
            kept: kept.map(Arc::new),
        }
    }

    /// What was kept of agents' processes.
    pub(crate) fn kept(&self) -> Option<&KeptProcesses> {
        self.kept.as_deref()
    }

    fn tries(&self) -> MutexGuard<'_, BTreeMap<Arc<str>, Tries>> {
        self.tries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a user has a PIN.
    pub(crate) fn has_pin(&self, user: &str) -> bool {
        self.pins.get(user).is_some()
    }

    /// Sets a user's PIN; false for a hub that keeps nothing. Writes to disk, and takes its time.
    pub(crate) fn set_pin(&self, user: &str, pin: &Pin<'_>) -> Result<bool, Fault> {
        self.pins.set(user, pin)
    }

    /// Takes a user's PIN away; false if there was none. Writes to disk.
    pub(crate) fn remove_pin(&self, user: &str) -> Result<bool, Fault> {
        self.pins.remove(user)
    }

    fn with_tries<T>(&self, user: &Arc<str>, act: impl FnOnce(&mut Tries) -> T) -> T {
        let mut all = self.tries();
        if all.len() >= REMEMBERED_USERS && !all.contains_key(user) {
            all.pop_first();
        }
        act(all.entry(user.clone()).or_default())
    }
}

// enforces: I34
/// The presence that a yes requires, where nobody said it: what is of high risk and cannot be
/// undone needs a PIN or a passkey, once its user has one.
pub(crate) fn usual(risk: RiskLevel, irreversible: bool, has_any: bool) -> Presence {
    match risk {
        RiskLevel::High if irreversible && has_any => Presence::Pin,
        _ => Presence::None,
    }
}

impl Hub {
    // enforces: I34
    /// Looks now and then whether the PINs are others. Nobody has to ask first: a PIN that an agent set
    /// is heard of before it matters.
    pub(crate) async fn watch_pins(self) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK_AT_PINS) => {}
                () = self.stopping() => return,
            }
            self.announce_changes();
        }
    }

    /// Whether a user has a way to show that they are there, as of now; a change of it is announced.
    pub(crate) fn has_presence(&self, user: &str) -> bool {
        self.announce_changes();
        self.0.presence.has_pin(user) || self.0.passkeys.has(user)
    }

    /// Tells everybody whose PIN was set, changed or removed in the file, and notes it for the audit.
    pub(crate) fn announce_changes(&self) {
        for changed in self.0.presence.pins.refresh() {
            tracing::info!(user = changed, "a PIN was set, changed or removed");
            self.tell(move |core| {
                core.note_pin(None, "pin_changed", &changed);
                core.announce_presence(&changed, None, PresenceWord::Changed, 0);
            });
        }
    }

    // enforces: I30
    /// The processes that somebody is, as they were when they came.
    async fn found_origin(&self, known: &AuthenticatedPeer) -> Origin {
        let Some(peer) = known.peer() else { return Origin::Unknown };
        let origin = match peer.origin() {
            Some(origin) => origin,
            None => {
                let (peer, desk) = (peer.clone(), &self.0.presence);
                let (ports, holders) = (desk.ports.clone(), desk.holders.clone());
                let look = move || peer.find_origin(&ports, &holders);
                tokio::task::spawn_blocking(look).await.unwrap_or_default()
            }
        };
        // What runs inside the hub's own process is as trusted as the hub.
        if origin.includes(*OWN_PID) { Origin::Unknown } else { origin }
    }

    /// The program on whose behalf an agent asks.
    pub(crate) async fn origin_of_agent(&self, known: &AuthenticatedPeer) -> Origin {
        self.found_origin(known).await.on_behalf(HELPER.0, HELPER.1)
    }

    // enforces: I30
    /// Keeps which processes have opened a session, or ask in it. If that fails, they are not known
    /// after a restart, and everybody on this machine is suspected.
    pub(crate) async fn keep_processes(
        &self,
        session: SessionId,
        opened: bool,
        lines: Vec<Arc<Lineage>>,
    ) {
        let Some(kept) = self.0.presence.kept.clone() else { return };
        let (file, added) = (kept.clone(), move || kept.add(session, opened, &lines));
        let Ok(added) = tokio::task::spawn_blocking(added).await else { return };
        let length = added.unwrap_or_else(|fault| {
            tracing::warn!("an agent's processes are not kept: {fault}");
            None
        });
        let Some(length) = length else { return };
        let Ok(open) = self.look(|core| core.open_sessions()).await else { return };
        let open = open.into_iter().map(|(session, _)| session).collect();
        if let Ok(Err(fault)) =
            tokio::task::spawn_blocking(move || file.rewrite(&open, length)).await
        {
            tracing::warn!("the file of agents' processes stays as it is: {fault}");
        }
    }

    /// How a message came, and from which processes, as they are now; with what was signed for it.
    pub(crate) async fn arrival(
        &self,
        known: &AuthenticatedPeer,
        link: Option<u64>,
        message: Option<&SubscriberMessage>,
    ) -> Arrival {
        let origin = self.found_origin(known).await.now();
        let token = message.and_then(SubscriberMessage::accepts);
        let signed = token.and_then(|token| self.0.passkeys.take(&known.principal, token.as_str()));
        let is_talk = origin.is_this_program(HELPER.0, is_talk);
        Arrival { origin, link, assertion: signed.unwrap_or_default(), is_talk }
    }

    // enforces: I34, I29
    /// Somebody typed a PIN: looks at it apart, and gives what they are told.
    pub(crate) async fn unlock(
        &self,
        known: &AuthenticatedPeer,
        unlock: &Unlock<'_>,
        link: Option<u64>,
    ) -> Result<String, Stopped> {
        let id = unlock.subscription_id;
        let told = |word, seconds, failures| Ok(state(id, word, seconds, failures));
        let user = known.principal.user.clone();
        self.has_presence(&user);
        let desk = &self.0.presence;
        let Some(stored) = desk.pins.get(&user) else { return told(PresenceWord::Unset, 0, 0) };
        let arrival = self.arrival(known, link, None).await;
        let (peer, shown) = (known.clone(), arrival.clone());
        let since = self.look(move |core| core.may_unlock(&peer, id, &shown)).await?;
        let now = clock::now().boot;
        // Who has no such subscription waits like everybody who comes anew.
        let heard_since = since.unwrap_or(now);
        if let Err(seconds) = desk.with_tries(&user, |tries| tries.admit(id, heard_since, now)) {
            return told(PresenceWord::Wait, seconds, 0);
        }
        let pin = Pin::new(unlock.pin.expose().to_owned());
        let permit = desk.hashing.acquire().await.map_err(|_| Stopped)?;
        let compared =
            tokio::task::spawn_blocking(move || pin.is_ok_and(|pin| stored.is(&pin))).await;
        drop(permit);
        let until = clock::now().boot.after_seconds(self.config().presence.unlock_seconds);
        let unlocked = compared.unwrap_or(false) && since.is_some() && {
            let peer = known.clone();
            self.look(move |core| core.unlock(&peer, id, &arrival, until)).await?
        };
        if unlocked {
            desk.with_tries(&user, |tries| tries.right(id));
            return told(PresenceWord::Unlocked, self.config().presence.unlock_seconds, 0);
        }
        let now = clock::now().boot;
        let (failures, seconds) = desk.with_tries(&user, |tries| tries.wrong(id, now));
        tracing::warn!(user = &*user, failures, "a wrong PIN was typed");
        let by = known.principal.clone();
        self.look(move |core| {
            core.note_pin(Some(&by), "pin_tried", &user);
            core.announce_presence(&user, Some(id), PresenceWord::Tried, failures);
        })
        .await?;
        told(PresenceWord::Wrong, seconds, failures)
    }
}

impl Hub {
    // enforces: I34
    /// Compares a PIN that somebody typed to change it. A wrong one counts like every other, and whoever
    /// tries so waits like everybody who comes anew.
    pub(crate) async fn try_pin(
        &self,
        by: &Principal,
        pin: Pin<'static>,
    ) -> Result<Tried, Stopped> {
        let (desk, user) = (&self.0.presence, &by.user);
        self.announce_changes();
        let Some(stored) = desk.pins.get(user) else { return Ok(Tried::Wrong) };
        let (nowhere, now) = (SubscriptionId::from_bits(0), clock::now().boot);
        if let Err(seconds) = desk.with_tries(user, |tries| tries.admit(nowhere, now, now)) {
            return Ok(Tried::Wait(seconds));
        }
        let permit = desk.hashing.acquire().await.map_err(|_| Stopped)?;
        let compared = tokio::task::spawn_blocking(move || stored.is(&pin)).await;
        drop(permit);
        if compared.unwrap_or(false) {
            desk.with_tries(user, |tries| tries.right(nowhere));
            return Ok(Tried::Right);
        }
        let (failures, _) = desk.with_tries(user, |tries| tries.wrong(nowhere, now));
        tracing::warn!(user = &**user, failures, "a wrong PIN was typed");
        let by = by.clone();
        self.look(move |core| {
            core.note_pin(Some(&by), "pin_tried", &by.user);
            core.announce_presence(&by.user, None, PresenceWord::Tried, failures);
        })
        .await?;
        Ok(Tried::Wrong)
    }
}

/// What is told about a PIN, as JSON.
pub(crate) fn state(id: SubscriptionId, word: PresenceWord, seconds: u64, failures: u32) -> String {
    let mut text = format!(
        r#"{{"type":"presence:state","subscription_id":"{id}","state":"{word}","seconds":{seconds}"#
    );
    if failures > 0 {
        text.push_str(&format!(r#","failures":{failures}"#));
    }
    text.push('}');
    text
}

/// A connection that was unlocked, until then.
#[derive(Clone, Debug)]
pub(crate) struct Unlocked {
    pub(crate) until: Boot,
    link: Option<u64>,
    origin: Origin,
}

impl Unlocked {
    pub(crate) fn new(until: Boot, arrival: &Arrival) -> Self {
        Self { until, link: arrival.link, origin: arrival.origin.clone() }
    }

    // enforces: I34
    /// Whether it counts for what came so: on the same connection, or over HTTP from the same
    /// process, as far as that is known.
    pub(crate) fn counts_for(&self, arrival: &Arrival, now: Boot) -> bool {
        let process = |origin: &Origin| -> Vec<(i32, u64)> {
            let lines = origin.lines().iter();
            lines.map(|line| (line.process().pid, line.process().start)).collect()
        };
        let (then, here) = (process(&self.origin), process(&arrival.origin));
        let same = then.is_empty() || here.is_empty() || then.iter().any(|one| here.contains(one));
        now < self.until && self.link == arrival.link && same
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: I34
    #[test]
    fn an_unlocked_connection_is_one_connection_for_a_while() {
        let on = |link| Arrival { link, ..Arrival::default() };
        let unlocked = Unlocked::new(Boot(100), &on(Some(7)));
        assert!(unlocked.counts_for(&on(Some(7)), Boot(99)));
        assert!(!unlocked.counts_for(&on(Some(7)), Boot(100)));
        assert!(!unlocked.counts_for(&on(Some(8)), Boot(99)));
        assert!(!unlocked.counts_for(&on(None), Boot(99)));
    }

    // covers: I34
    #[test]
    fn only_what_is_grave_needs_a_pin_and_only_once_there_is_one() {
        assert_eq!(usual(RiskLevel::High, true, true), Presence::Pin);
        assert_eq!(usual(RiskLevel::High, true, false), Presence::None);
        assert_eq!(usual(RiskLevel::High, false, true), Presence::None);
        assert_eq!(usual(RiskLevel::Medium, true, true), Presence::None);
    }
}
