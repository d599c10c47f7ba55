//! What a server holds at most, and who holds it.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;

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
    held: Mutex<Held>,
    empty: Notify,
}

#[derive(Default)]
struct Held {
    total: usize,
    by_address: BTreeMap<IpAddr, usize>,
}

/// One place, given back when it is dropped. It lives in the connection itself, so that it is held
/// as long as the socket is, whoever took the connection over.
pub(crate) struct Slot {
    slots: Arc<Slots>,
    key: Option<IpAddr>,
}

impl Slots {
    pub(crate) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self { limits, held: Mutex::default(), empty: Notify::new() })
    }

    /// A place, or the name of the limit that is reached.
    pub(crate) fn take(self: &Arc<Self>, address: IpAddr) -> Result<Slot, &'static str> {
        let key = self.key(address);
        let mut held = self.held();
        if held.total >= self.limits.connections {
            return Err("connections");
        }
        if let Some(key) = key {
            let count = held.by_address.entry(key).or_insert(0);
            if *count >= self.limits.connections_per_address {
                return Err("connections_per_address");
            }
            *count += 1;
        }
        held.total += 1;
        Ok(Slot { slots: Arc::clone(self), key })
    }

    /// Returns once nobody holds a place.
    pub(crate) async fn all_free(&self) {
        loop {
            let mut empty = std::pin::pin!(self.empty.notified());
            empty.as_mut().enable();
            if self.held().total == 0 {
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

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut held = self.slots.held();
        held.total -= 1;
        if let Some(key) = self.key
            && let Some(count) = held.by_address.get_mut(&key)
        {
            *count -= 1;
            if *count == 0 {
                held.by_address.remove(&key);
            }
        }
        if held.total == 0 {
            self.slots.empty.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slots(connections: usize, connections_per_address: usize) -> Arc<Slots> {
        Slots::new(Limits { connections, connections_per_address, ..Limits::default() })
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn one_address_cannot_take_every_place() {
        let slots = slots(10, 2);
        let first = slots.take(address("192.0.2.1")).unwrap();
        let _second = slots.take(address("::ffff:192.0.2.1")).unwrap();
        assert_eq!(slots.take(address("192.0.2.1")).err(), Some("connections_per_address"));
        assert!(slots.take(address("192.0.2.2")).is_ok());
        drop(first);
        assert!(slots.take(address("192.0.2.1")).is_ok());
    }

    #[test]
    fn an_ipv6_network_counts_as_one_address() {
        let slots = slots(10, 1);
        let _held = slots.take(address("2001:db8::1")).unwrap();
        assert!(slots.take(address("2001:db8::ffff:2")).is_err());
        assert!(slots.take(address("2001:db8:0:1::1")).is_ok());
    }

    #[test]
    fn loopback_is_limited_only_in_all() {
        let slots = slots(3, 1);
        let held: Vec<_> = (0..3).map(|_| slots.take(address("127.0.0.1")).unwrap()).collect();
        assert_eq!(slots.take(address("127.0.0.1")).err(), Some("connections"));
        drop(held);
        assert!(slots.held().by_address.is_empty());
        assert_eq!(slots.held().total, 0);
    }
}
