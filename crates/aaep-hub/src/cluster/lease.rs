//! The lease of the log: taking it, renewing it beside everything else, and giving it back.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aaep_store::log::{Lease, LeaseRefused, Leases as _};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tracing::warn;

use super::store::{AnyLeases, Store, on_thread};
use super::{RENEW, SHARD};
use crate::Fault;
use crate::access::fill;

/// A node whose clock is further off the store's owns nothing, in microseconds.
const MAX_OFF: i64 = 1_000_000;

/// How long a lease may still be that of a hub at the same address that was killed: the length of a
/// lease, and some more.
const GONE: Duration = Duration::from_secs(4);

// enforces: I24
/// The name under which a hub at this address takes leases. Two that were given the same address have
/// different names, so that neither takes the other's lease for its own.
pub(super) fn holder_at(address: SocketAddr) -> Result<String, Fault> {
    let mut bytes = [0; 4];
    fill(&mut bytes)?;
    Ok(format!("{address}#{:08x}", u32::from_le_bytes(bytes)))
}

/// Where the hub of this holder listens.
pub(super) fn address_of(holder: &str) -> Option<SocketAddr> {
    holder.split('#').next()?.parse().ok()
}

/// Another hub with the address of this one.
#[derive(Debug, Default)]
pub(super) struct SameName(Option<(String, Instant)>);

impl SameName {
    /// Whether that one may be gone already.
    pub(super) fn is_new(&mut self, holder: &str) -> bool {
        match &self.0 {
            Some((known, since)) if known == holder => since.elapsed() < GONE,
            _ => {
                self.0 = Some((holder.to_owned(), Instant::now()));
                true
            }
        }
    }
}

pub(super) fn wall_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

// enforces: I8
pub(super) fn is_off(lease: &Lease) -> bool {
    (lease.store_time - wall_micros()).abs() > MAX_OFF
}

type Taken = Result<Lease, LeaseRefused>;

pub(super) async fn take(mut leases: AnyLeases, holder: &str) -> Result<(AnyLeases, Taken), Fault> {
    let holder = holder.to_owned();
    on_thread(move || {
        let taken = leases.take(SHARD, &holder);
        (leases, taken)
    })
    .await
}

/// Who has the lease, without taking it.
pub(super) async fn look(mut leases: AnyLeases) -> Result<(AnyLeases, Taken), Fault> {
    on_thread(move || {
        let found = match leases.holder(SHARD) {
            Ok(Some(by)) => Err(LeaseRefused::Held { by }),
            Ok(None) => Err(LeaseRefused::Lost),
            Err(why) => Err(why.into()),
        };
        (leases, found)
    })
    .await
}

pub(super) async fn give_back(mut leases: AnyLeases, lease: Lease) -> Result<AnyLeases, Fault> {
    on_thread(move || {
        let _ = leases.give_back(&lease);
        leases
    })
    .await
}

/// A lease that is renewed until another node has it, this machine's clock is off, or it is no longer
/// wanted.
pub(super) struct Renewal {
    stop: oneshot::Sender<()>,
    lost: oneshot::Receiver<()>,
    task: JoinHandle<(AnyLeases, Option<Lease>)>,
}

impl Renewal {
    pub(super) fn start(store: &Store, leases: AnyLeases, lease: Lease, holder: String) -> Self {
        let store = store.clone();
        let (stop, stopped) = oneshot::channel();
        let (loses, lost) = oneshot::channel();
        let task = tokio::spawn(async move {
            let end = renew(store, leases, lease, holder, stopped).await;
            drop(loses);
            end
        });
        Self { stop, lost, task }
    }

    /// Waits until it is lost.
    pub(super) async fn lost(&mut self) {
        // It is dropped then, and nothing is ever sent.
        let _ = (&mut self.lost).await;
    }

    /// Ends it. What is left of the lease is to be given back.
    pub(super) async fn end(self) -> (AnyLeases, Option<Lease>) {
        drop(self.stop);
        match self.task.await {
            Ok(end) => end,
            Err(panicked) => std::panic::resume_unwind(panicked.into_panic()),
        }
    }
}

/// While the store is away nobody can take the lease, and it is asked for again.
async fn renew(
    store: Store,
    mut leases: AnyLeases,
    mut lease: Lease,
    holder: String,
    mut stopped: oneshot::Receiver<()>,
) -> (AnyLeases, Option<Lease>) {
    loop {
        tokio::select! {
            _ = &mut stopped => return (leases, Some(lease)),
            () = sleep(RENEW) => {}
        }
        let (held, name) = (lease.clone(), holder.clone());
        let asked = on_thread(move || {
            let renewed = match leases.renew(&held) {
                // It ended meanwhile; perhaps nobody took it.
                Err(LeaseRefused::Lost) => leases.take(SHARD, &name),
                other => other,
            };
            (leases, renewed)
        });
        let renewed;
        (leases, renewed) = match asked.await {
            Ok(answered) => answered,
            // A thread that could not be started took the connection with it.
            Err(_) => (store.leases(), Err(LeaseRefused::Lost)),
        };
        match renewed {
            Ok(renewed) if is_off(&renewed) => {
                warn!("the clock of this machine is more than a second off the store's");
                return (leases, Some(renewed));
            }
            Ok(renewed) => lease = renewed,
            Err(LeaseRefused::Held { .. }) => return (leases, None),
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_hubs_with_the_same_address_have_names_of_their_own() {
        let address: SocketAddr = "[2001:db8:1:2:3:4:5:6]:65535".parse().unwrap();
        let (a, b) = (holder_at(address).unwrap(), holder_at(address).unwrap());
        assert_ne!(a, b);
        assert_eq!((address_of(&a), address_of(&b)), (Some(address), Some(address)));
        assert!(a.len() <= aaep_store::log::MAX_NODE_BYTES, "{a}");
        assert_eq!(address_of("nonsense"), None);
    }
}
