//! What a server holds at most, and who holds it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

use super::guard::Progress;

/// What a server holds and waits for, at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections in all.
    pub connections: usize,
    /// Connections from one address; an IPv6 network of 64 bits counts as one.
    pub connections_per_address: usize,
    /// Whether that holds for the loopback address too. Behind a proxy on the same machine
    /// everyone has that address.
    pub limit_loopback: bool,
    /// Until a TLS handshake is done.
    pub tls_handshake: Duration,
    /// Until the whole head of a request has come, counted from its first byte (and for the first
    /// request from the connection itself).
    pub header_read: Duration,
    /// Between two requests.
    pub idle: Duration,
    /// How long a client may read nothing while there is something to send to it.
    pub write_stall: Duration,
    /// How long running requests may go on once the server is told to stop.
    pub grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 12_000,
            connections_per_address: 256,
            limit_loopback: false,
            tls_handshake: Duration::from_secs(10),
            header_read: Duration::from_secs(10),
            idle: Duration::from_secs(75),
            write_stall: Duration::from_secs(30),
            grace: Duration::from_secs(10),
        }
    }
}

/// The places for connections.
pub(crate) struct Slots {
    limits: Limits,
    held: Mutex<SlotTable>,
    empty: Notify,
}

#[derive(Default)]
struct SlotTable {
    /// Every connection that has a place, the oldest first.
    connections: BTreeMap<u64, Arc<Progress>>,
    serial: u64,
    by_address: BTreeMap<IpAddr, usize>,
}

impl SlotTable {
    // enforces: I29
    /// Takes its place from the connection that has done nothing for others to lose and is oldest:
    /// one that has sent no request, or waits for the next. False if all of them are answered.
    fn give_way(&mut self) -> bool {
        let quiet = self.connections.iter().find(|(_, progress)| progress.is_quiet());
        let Some(serial) = quiet.map(|(serial, _)| *serial) else { return false };
        if let Some(progress) = self.connections.remove(&serial) {
            progress.evict();
        }
        true
    }
}

/// One place, given back when it is dropped. It lives in the connection itself, so that it is held
/// as long as the socket is, also after an upgrade.
pub(crate) struct Slot {
    slots: Arc<Slots>,
    key: Option<IpAddr>,
    serial: u64,
}

impl Slots {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, held: Mutex::default(), empty: Notify::new() })
    }

    /// A place, or the name of the limit that is reached.
    ///
    /// When all places are taken, a newcomer gets that of a connection which holds one for nothing,
    /// so that idle connections never keep others out.
    pub(crate) fn take(
        self: &Arc<Self>,
        address: IpAddr,
        progress: &Arc<Progress>,
    ) -> Result<Slot, &'static str> {
        let key = self.key(address);
        let mut held = self.held();
        if held.connections.len() >= self.limits.connections && !held.give_way() {
            return Err("connections");
        }
        if let Some(key) = key {
            let count = held.by_address.entry(key).or_insert(0);
            if *count >= self.limits.connections_per_address {
                return Err("connections_per_address");
            }
            *count += 1;
        }
        held.serial += 1;
        let serial = held.serial;
        held.connections.insert(serial, Arc::clone(progress));
        Ok(Slot { slots: Arc::clone(self), key, serial })
    }

    /// Returns once no slot is taken.
    pub(crate) async fn all_free(&self) {
        loop {
            let mut empty = std::pin::pin!(self.empty.notified());
            empty.as_mut().enable();
            if self.held().connections.is_empty() {
                return;
            }
            empty.await;
        }
    }

    /// Under what an address is counted, if it is. Who has an IPv6 address has a network of them.
    fn key(&self, address: IpAddr) -> Option<IpAddr> {
        let address = address.to_canonical();
        if address.is_loopback() && !self.limits.limit_loopback {
            return None;
        }
        Some(match address {
            IpAddr::V4(_) => address,
            IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !(u128::MAX >> 64)).into(),
        })
    }

    fn held(&self) -> MutexGuard<'_, SlotTable> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut held = self.slots.held();
        held.connections.remove(&self.serial);
        if let Some(key) = self.key
            && let Some(count) = held.by_address.get_mut(&key)
        {
            *count -= 1;
            if *count == 0 {
                held.by_address.remove(&key);
            }
        }
        if held.connections.is_empty() {
            self.slots.empty.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::guard::Stage;
    use super::*;

    fn slots(connections: usize, connections_per_address: usize) -> Arc<Slots> {
        Slots::new(Limits { connections, connections_per_address, ..Limits::default() })
    }

    /// A connection whose request is being answered.
    fn take(slots: &Arc<Slots>, address: IpAddr) -> Result<Slot, &'static str> {
        let progress = Arc::<Progress>::default();
        progress.enter(Stage::Busy);
        slots.take(address, &progress)
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn one_address_cannot_take_every_place() {
        let slots = slots(10, 2);
        let first = take(&slots, address("192.0.2.1")).unwrap();
        let _second = take(&slots, address("::ffff:192.0.2.1")).unwrap();
        assert_eq!(take(&slots, address("192.0.2.1")).err(), Some("connections_per_address"));
        assert!(take(&slots, address("192.0.2.2")).is_ok());
        drop(first);
        assert!(take(&slots, address("192.0.2.1")).is_ok());
    }

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        let slots = slots(10, 1);
        let _held = take(&slots, address("2001:db8::1")).unwrap();
        assert!(take(&slots, address("2001:db8::ffff:2")).is_err());
        assert!(take(&slots, address("2001:db8:0:1::1")).is_ok());
    }

    #[test]
    fn loopback_is_limited_only_in_all() {
        let slots = slots(3, 1);
        let held: Vec<_> = (0..3).map(|_| take(&slots, address("127.0.0.1")).unwrap()).collect();
        assert_eq!(take(&slots, address("127.0.0.1")).err(), Some("connections"));
        drop(held);
        assert!(slots.held().by_address.is_empty());
        assert!(slots.held().connections.is_empty());
    }

    // covers: I29
    #[test]
    fn a_newcomer_gets_the_place_of_the_oldest_that_does_nothing() {
        let (slots, here) = (slots(3, 1), address("127.0.0.1"));
        let progress: Vec<Arc<Progress>> = (0..3).map(|_| Arc::default()).collect();
        let held: Vec<Slot> = progress.iter().map(|p| slots.take(here, p).unwrap()).collect();
        progress[0].enter(Stage::Busy);
        progress[1].enter(Stage::Idle);
        let newcomer = take(&slots, here).unwrap();
        let evicted = progress.iter().map(|progress| progress.is_evicted()).collect::<Vec<_>>();
        assert_eq!(evicted, [false, true, false]);
        progress[2].enter(Stage::Busy);
        assert_eq!(take(&slots, here).err(), Some("connections"), "all of them are answered");
        drop((held, newcomer));
        assert!(slots.held().connections.is_empty());
    }
}
