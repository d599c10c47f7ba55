//! Whose program listens on a loopback port.
//!
//! Any user of a machine can take a port before its rightful owner does, and answer in the owner's
//! place. The kernel knows whose each socket is: on Linux, `/proc/net/tcp` and `/proc/net/tcp6` say
//! so. Elsewhere it cannot be shown.

use std::fmt;
use std::net::SocketAddr;

/// Why a listener is not believed to be ours.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code))] // elsewhere it is never known
pub enum Stranger {
    /// It belongs to another user.
    User {
        /// Where it listens.
        address: SocketAddr,
        /// Whose it is.
        uid: u32,
    },
    /// It has stopped listening since the connection was made.
    Gone {
        /// Where it listened.
        address: SocketAddr,
    },
    /// Nobody can tell whose it is.
    Unknown {
        /// Where it listens.
        address: SocketAddr,
        /// Why not.
        why: &'static str,
    },
}

impl fmt::Display for Stranger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User { address, uid } => write!(
                f,
                "the program at {address} belongs to another user of this machine (user id {uid}), \
                 so nothing was sent to it and no answer of its is believed. Use the hub's Unix \
                 socket (unix:PATH), or https"
            ),
            Self::Gone { address } => {
                write!(f, "the program at {address} has just stopped listening there")
            }
            Self::Unknown { address, why } => write!(
                f,
                "whose program answers at {address} cannot be shown ({why}), so nothing was sent to \
                 it. Use the hub's Unix socket (unix:PATH), or https; or say that every program \
                 on this machine is trusted, with --trust-loopback"
            ),
        }
    }
}

/// Whether the process at the other end of this connection runs as our own user, or as root. `local` is
/// our end, `peer` the listener's.
// enforces: W5, S5
#[cfg(target_os = "linux")]
pub(crate) fn check(local: SocketAddr, peer: SocketAddr) -> Result<(), Stranger> {
    use std::fs::read_to_string;
    let unknown = |why| Stranger::Unknown { address: peer, why };
    let mut table =
        read_to_string("/proc/net/tcp").map_err(|_| unknown("/proc/net/tcp cannot be read"))?;
    // A machine without IPv6 has no such file.
    table += &read_to_string("/proc/net/tcp6").unwrap_or_default();
    judge(&table, local, peer, rustix::process::geteuid().as_raw())
}

#[cfg(not(target_os = "linux"))]
pub(crate) fn check(_: SocketAddr, peer: SocketAddr) -> Result<(), Stranger> {
    let why = "this system does not tell";
    Err(Stranger::Unknown { address: peer, why })
}

/// The same by the kernel's table: every socket that may have taken the connection has to be ours,
/// and so has the other end of the connection itself, once somebody has accepted it.
#[cfg(any(target_os = "linux", test))]
fn judge(table: &str, local: SocketAddr, peer: SocketAddr, own: u32) -> Result<(), Stranger> {
    let ours = |uid: u32| uid == own || uid == 0;
    let (mut listens, mut connected) = (false, false);
    for line in table.lines() {
        let Some(socket) = Socket::parse(line) else { continue };
        connected |= same(socket.local, local) && same(socket.remote, peer);
        let concerned = match socket.state {
            LISTEN => socket.local.port() == peer.port() && socket.covers(peer),
            // Nobody owns a connection before it is accepted.
            _ => socket.inode != 0 && same(socket.local, peer) && same(socket.remote, local),
        };
        if concerned && !ours(socket.uid) {
            return Err(Stranger::User { address: peer, uid: socket.uid });
        }
        listens |= concerned && socket.state == LISTEN;
    }
    match (listens, connected) {
        (true, _) => Ok(()),
        // The table shows our end, so it would show a listener.
        (false, true) => Err(Stranger::Gone { address: peer }),
        (false, false) => {
            let why = "nobody of this machine listens there";
            Err(Stranger::Unknown { address: peer, why })
        }
    }
}

/// The user whose program is at `peer`, connected to our listener at exactly this address. `None` if
/// nobody can tell: a socket that its program has closed is nobody's any more.
// enforces: W5
#[cfg(all(feature = "server", target_os = "linux"))]
pub(crate) fn user_of(peer: SocketAddr, listener: SocketAddr) -> Option<u32> {
    let table = |name: &str| std::fs::read_to_string(name).unwrap_or_default();
    let find = |text: String| user_in(&text, peer, listener);
    find(table("/proc/net/tcp")).or_else(|| find(table("/proc/net/tcp6")))
}

#[cfg(all(feature = "server", not(target_os = "linux")))]
pub(crate) fn user_of(_: SocketAddr, _: SocketAddr) -> Option<u32> {
    None
}

/// The same by the kernel's table. Several users may share a port of theirs, so both ends have to be
/// the right ones.
#[cfg(any(all(feature = "server", target_os = "linux"), test))]
fn user_in(table: &str, peer: SocketAddr, listener: SocketAddr) -> Option<u32> {
    table.lines().filter_map(Socket::parse).find_map(|socket| {
        let is_it = same(socket.local, peer) && same(socket.remote, listener);
        (is_it && socket.inode != 0).then_some(socket.uid)
    })
}

/// The socket of the peer at this address, connected over loopback to one of these ports of ours: the
/// number of its inode.
#[cfg(target_os = "linux")]
pub(crate) fn socket_at(peer: SocketAddr, ports: &[u16]) -> Option<u64> {
    let table = |name: &str| std::fs::read_to_string(name).unwrap_or_default();
    let find = |text: String| {
        text.lines().filter_map(Socket::parse).find_map(|socket| {
            let concerned = same(socket.local, peer) && ports.contains(&socket.remote.port());
            (concerned && socket.inode != 0).then_some(socket.inode)
        })
    };
    find(table("/proc/net/tcp")).or_else(|| find(table("/proc/net/tcp6")))
}

/// The state of a socket that listens, as the kernel writes it.
#[cfg(any(target_os = "linux", test))]
const LISTEN: u8 = 0x0a;

/// One line of the kernel's table.
#[cfg(any(target_os = "linux", test))]
struct Socket {
    local: SocketAddr,
    remote: SocketAddr,
    state: u8,
    uid: u32,
    inode: u64,
}

#[cfg(any(target_os = "linux", test))]
impl Socket {
    /// `sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode …`; `None` for the
    /// headings.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace().skip(1);
        let (local, remote) = (address(words.next()?)?, address(words.next()?)?);
        let state = u8::from_str_radix(words.next()?, 16).ok()?;
        let mut words = words.skip(3);
        let uid = words.next()?.parse().ok()?;
        let inode = words.nth(1)?.parse().ok()?;
        Some(Self { local, remote, state, uid, inode })
    }

    /// Whether a connection to this address may come to this listener: its own address, or any.
    fn covers(&self, peer: SocketAddr) -> bool {
        self.local.ip().is_unspecified() || same(self.local, peer)
    }
}

/// An IPv4 address that came through an IPv6 socket is still the same.
#[cfg(any(target_os = "linux", test))]
fn same(one: SocketAddr, other: SocketAddr) -> bool {
    one.port() == other.port() && one.ip().to_canonical() == other.ip().to_canonical()
}

/// `0100007F:2203`: words of four bytes in the machine's order, and the port.
#[cfg(any(target_os = "linux", test))]
fn address(text: &str) -> Option<SocketAddr> {
    use std::net::{Ipv4Addr, Ipv6Addr};
    let (ip, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::with_capacity(16);
    for at in (0..ip.len()).step_by(8) {
        bytes.extend(u32::from_str_radix(ip.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    }
    match bytes.as_slice() {
        [a, b, c, d] => Some(SocketAddr::new(Ipv4Addr::new(*a, *b, *c, *d).into(), port)),
        all => {
            let all: [u8; 16] = all.try_into().ok()?;
            Some(SocketAddr::new(Ipv6Addr::from(all).into(), port))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: u32 = 1000;

    fn word(ip: [u8; 4]) -> String {
        format!("{:08X}", u32::from_ne_bytes(ip))
    }

    fn line(local: &str, remote: &str, state: &str, uid: u32, inode: u64) -> String {
        format!(
            "   0: {local} {remote} {state} 00000000:00000000 00:00000000 00000000  {uid}        0 {inode} 1 0000 100 0 0 10 0\n"
        )
    }

    fn judged(lines: &[String]) -> Result<(), Stranger> {
        let table = "  sl  local_address rem_address   st ...\n".to_owned() + &lines.concat();
        judge(&table, "127.0.0.1:5555".parse().unwrap(), "127.0.0.1:8707".parse().unwrap(), OWN)
    }

    // covers: W5, S5
    #[test]
    fn only_our_own_listeners_are_believed() {
        let (loopback, any) = (word([127, 0, 0, 1]), word([0; 4]));
        let any6 = "0".repeat(32);
        let mapped = format!("{}{}{loopback}", "0".repeat(16), word([0, 0, 255, 255]));
        let at = |ip: &str| format!("{ip}:2203");
        let nobody = format!("{any}:0000");
        for ip in [&loopback, &any, &any6, &mapped] {
            assert_eq!(judged(&[line(&at(ip), &nobody, "0A", OWN, 7)]), Ok(()), "{ip}");
            assert_eq!(judged(&[line(&at(ip), &nobody, "0A", 0, 7)]), Ok(()), "{ip}");
            let theirs = line(&at(ip), &nobody, "0A", 65534, 7);
            let both = [line(&at(&loopback), &nobody, "0A", OWN, 7), theirs];
            for lines in [&both[1..], &both[..]] {
                assert!(matches!(judged(lines), Err(Stranger::User { uid: 65534, .. })), "{ip}");
            }
        }
    }

    // covers: W5, S5
    #[test]
    fn who_accepted_the_connection_counts_too() {
        let loopback = word([127, 0, 0, 1]);
        let (hub, us) = (format!("{loopback}:2203"), format!("{loopback}:15B3"));
        let listens = line(&hub, &format!("{}:0000", word([0; 4])), "0A", OWN, 7);
        let with = |line: String| judged(&[listens.clone(), line]);
        assert_eq!(with(line(&hub, &us, "01", OWN, 9)), Ok(()));
        assert_eq!(with(line(&hub, &us, "01", 4242, 0)), Ok(()), "not accepted yet");
        assert!(with(line(&hub, &us, "01", 4242, 9)).is_err());
        // Other connections, and other ports, are nobody's business.
        assert_eq!(with(line(&hub, &format!("{loopback}:15B4"), "01", 4242, 9)), Ok(()));
        assert_eq!(with(line(&us, &hub, "01", 4242, 9)), Ok(()));
        let elsewhere = line(&format!("{loopback}:2204"), &us, "0A", 4242, 9);
        assert_eq!(with(elsewhere.clone()), Ok(()));
        assert!(matches!(judged(&[elsewhere]), Err(Stranger::Unknown { .. })));
        assert!(matches!(judged(&[]), Err(Stranger::Unknown { .. })));
        // Our own end is there, and no listener: it has gone. The process that accepted the connection still counts.
        let our_end = line(&us, &hub, "08", OWN, 9);
        assert!(matches!(judged(std::slice::from_ref(&our_end)), Err(Stranger::Gone { .. })));
        let taken = line(&hub, &us, "01", 4242, 11);
        assert!(matches!(judged(&[our_end, taken]), Err(Stranger::User { uid: 4242, .. })));
    }

    // covers: W5
    #[test]
    fn whose_a_visitor_is_goes_by_both_ends_and_by_sockets_that_are_open() {
        let loopback = word([127, 0, 0, 1]);
        let (us, theirs) = (format!("{loopback}:2203"), format!("{loopback}:15B3"));
        let elsewhere = format!("{}:2203", word([127, 0, 0, 9]));
        let of = |lines: &[String]| {
            let (peer, listener) = ("127.0.0.1:5555", "127.0.0.1:8707");
            user_in(&lines.concat(), peer.parse().unwrap(), listener.parse().unwrap())
        };
        let other_way = line(&us, &theirs, "01", 0, 8);
        let to_another = line(&theirs, &elsewhere, "01", 0, 9);
        let visitor = line(&theirs, &us, "01", 4242, 7);
        assert_eq!(of(&[other_way.clone(), to_another.clone(), visitor]), Some(4242));
        // The kernel shows sockets that were closed as root's.
        let closed = line(&theirs, &us, "05", 0, 0);
        assert_eq!(of(&[other_way, to_another, closed]), None);
    }

    // covers: W5
    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernel_says_that_our_own_listener_is_ours() {
        for address in ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0"] {
            let Ok(listener) = std::net::TcpListener::bind(address) else { continue };
            let port = listener.local_addr().unwrap().port();
            let ip = match listener.local_addr().unwrap().ip() {
                ip if ip.is_unspecified() => [127, 0, 0, 1].into(),
                ip => ip,
            };
            let stream = std::net::TcpStream::connect((ip, port)).unwrap();
            let ends = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
            assert_eq!(check(ends.0, ends.1), Ok(()));
            let _accepted = listener.accept().unwrap();
            assert_eq!(check(ends.0, ends.1), Ok(()));
            #[cfg(feature = "server")]
            assert_eq!(user_of(ends.0, ends.1), Some(rustix::process::geteuid().as_raw()));
            drop(listener);
            assert!(matches!(check(ends.0, ends.1), Err(Stranger::Gone { .. })));
        }
    }
}
