//! The door of a node: every connection is passed on to the hub that owns the shard, here or on another
//! node, byte for byte. TLS and credentials are between the caller and that hub.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::Fault;
use crate::per_address::network_of;

/// How long a caller waits while no hub owns the shard: longer than a takeover takes.
const WAIT: Duration = Duration::from_secs(15);

/// The pause between attempts to reach an owner that may just have died.
const AGAIN: Duration = Duration::from_millis(100);

/// How long a caller has to say what it wants, while no hub owns the shard.
const FIRST_WORDS: Duration = Duration::from_secs(1);

/// What is answered to `/readyz` while no hub owns the shard, and to callers for whom there is no room.
const NOT_READY: &str = r#"{"error":"unavailable","text":"No node of the cluster owns the log at the moment. Ask again in a few seconds."}"#;
const CROWDED: &str = r#"{"error":"limit","text":"There is no room for another connection (limits.connections_per_address). Close some, or try again later."}"#;

/// How many connections one address may have at a node's door.
#[derive(Clone, Copy, Debug)]
pub(super) struct OwnBound {
    pub(super) each: usize,
    /// Whether the door speaks without TLS, so that it can answer by itself.
    pub(super) plain: bool,
}

/// Who is at the door, by address.
#[derive(Debug)]
struct Crowd {
    bound: OwnBound,
    there: Mutex<BTreeMap<IpAddr, usize>>,
}

/// One of them, until it leaves.
struct Seat(Arc<Crowd>, Option<IpAddr>);

impl Crowd {
    // enforces: I22, I29
    /// Lets somebody in, unless too many of that address are in already. On this machine everybody has
    /// the same one.
    fn let_in(self: &Arc<Self>, from: IpAddr) -> Option<Seat> {
        let from = from.to_canonical();
        if from.is_loopback() {
            return Some(Seat(self.clone(), None));
        }
        let from = network_of(from);
        let mut there = self.there.lock().unwrap_or_else(PoisonError::into_inner);
        let count = there.entry(from).or_default();
        if *count >= self.bound.each {
            return None;
        }
        *count += 1;
        Some(Seat(self.clone(), Some(from)))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let Some(from) = self.1 else { return };
        let mut there = self.0.there.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = there.get_mut(&from) {
            *count -= 1;
            if *count == 0 {
                there.remove(&from);
            }
        }
    }
}

/// Where the owner's hub is, if any is known.
type Owner = Option<SocketAddr>;

#[derive(Debug)]
pub(super) struct Front {
    pub(super) addresses: Vec<SocketAddr>,
    owner: watch::Sender<Owner>,
    _doors: JoinSet<()>,
}

impl Front {
    /// Opens the doors. At most so many are passed on at once; others wait to be let in.
    pub(super) async fn open(
        listen: &[SocketAddr],
        connections: usize,
        bound: OwnBound,
    ) -> Result<Self, Fault> {
        let crowd = Arc::new(Crowd { bound, there: Mutex::default() });
        let (owner, room) = (watch::Sender::new(None), Arc::new(Semaphore::new(connections)));
        let (mut doors, mut addresses) = (JoinSet::new(), Vec::new());
        for address in listen {
            let cannot = |error: std::io::Error| Fault::System {
                what: format!(
                    "Nobody can listen on {address}: {error}. Choose another with --listen."
                ),
            };
            let door = TcpListener::bind(address).await.map_err(cannot)?;
            addresses.push(door.local_addr().map_err(cannot)?);
            doors.spawn(let_in(door, owner.subscribe(), room.clone(), crowd.clone()));
        }
        Ok(Self { addresses, owner, _doors: doors })
    }

    /// From now on everybody is passed on to this hub; connections to another one are ended, and their
    /// callers come again.
    pub(super) fn point_to(&self, owner: Owner) {
        self.owner.send_if_modified(|now| std::mem::replace(now, owner) != owner);
    }
}

async fn let_in(
    door: TcpListener,
    owner: watch::Receiver<Owner>,
    room: Arc<Semaphore>,
    crowd: Arc<Crowd>,
) {
    let plain = crowd.bound.plain;
    let mut passing = JoinSet::new();
    loop {
        let Ok(place) = room.clone().acquire_owned().await else { return };
        while passing.try_join_next().is_some() {}
        match door.accept().await {
            Ok((caller, from)) => {
                let (owner, seat) = (owner.clone(), crowd.let_in(from.ip()));
                passing.spawn(async move {
                    match seat {
                        Some(_seat) => pass(caller, owner, plain).await,
                        None if plain => answer(caller, CROWDED).await,
                        None => {}
                    }
                    drop(place);
                });
            }
            // Too many open files, for example: others end first.
            Err(_) => sleep(AGAIN).await,
        }
    }
}

async fn pass(mut caller: TcpStream, mut owner: watch::Receiver<Owner>, plain: bool) {
    // Whoever asks whether a node is ready does not want to wait until it is.
    if plain && owner.borrow().is_none() && asks_if_ready(&caller).await {
        return answer(caller, NOT_READY).await;
    }
    let Some((mut hub, its)) = reach(&mut owner).await else { return };
    let _ = (caller.set_nodelay(true), hub.set_nodelay(true));
    tokio::select! {
        _ = copy_bidirectional(&mut caller, &mut hub) => {}
        _ = owner.wait_for(|now| *now != Some(its)) => {}
    }
}

async fn asks_if_ready(caller: &TcpStream) -> bool {
    let mut words = [0; 12];
    let seen = timeout(FIRST_WORDS, caller.peek(&mut words)).await;
    matches!(seen, Ok(Ok(_))) && (&words == b"GET /readyz " || words.starts_with(b"HEAD /readyz"))
}

/// Answers a request that is not looked at, and ends the connection.
async fn answer(mut caller: TcpStream, text: &str) {
    let mut request = [0; 4096];
    let _ = timeout(FIRST_WORDS, caller.read(&mut request)).await;
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: {}\r\nretry-after: 2\r\nconnection: close\r\n\r\n{text}",
        text.len()
    );
    let _ = timeout(FIRST_WORDS, caller.write_all(answer.as_bytes())).await;
    let _ = caller.shutdown().await;
}

async fn reach(owner: &mut watch::Receiver<Owner>) -> Option<(TcpStream, SocketAddr)> {
    let end = Instant::now() + WAIT;
    loop {
        let address = {
            let known = timeout_at(end, owner.wait_for(Option::is_some)).await.ok()?.ok()?;
            (*known)?
        };
        if let Ok(Ok(hub)) = timeout_at(end, TcpStream::connect(address)).await {
            return Some((hub, address));
        }
        if Instant::now() > end {
            return None;
        }
        sleep(AGAIN).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An address of this machine that is not the loopback one, if it has any. Nothing is sent.
    #[allow(clippy::disallowed_types)] // tests have sockets
    fn own_address() -> Option<IpAddr> {
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
        socket.connect("192.0.2.1:9").ok()?;
        Some(socket.local_addr().ok()?.ip()).filter(|ip| !ip.is_loopback())
    }

    async fn said(mut stream: TcpStream, request: &str) -> String {
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        timeout(Duration::from_secs(10), stream.read_to_string(&mut answer))
            .await
            .unwrap()
            .unwrap();
        answer
    }

    // covers: I22, I29
    #[tokio::test]
    async fn callers_of_one_address_are_counted_at_the_door() {
        let Some(ip) = own_address() else { return println!("skipped: no address but loopback") };
        let bound = OwnBound { each: 2, plain: true };
        let front = Front::open(&[SocketAddr::new(ip, 0)], 16, bound).await.unwrap();
        let hub = TcpListener::bind("127.0.0.1:0").await.unwrap();
        front.point_to(Some(hub.local_addr().unwrap()));
        let door = front.addresses[0];
        let mut let_in = Vec::new();
        for _ in 0..2 {
            let caller = TcpStream::connect(door).await.unwrap();
            let_in.push((caller, hub.accept().await.unwrap()));
        }
        let request = "GET /healthz HTTP/1.1\r\n\r\n";
        let refused = said(TcpStream::connect(door).await.unwrap(), request).await;
        assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
        assert!(refused.contains("limits.connections_per_address"), "{refused}");
        // When one leaves, there is room for the next.
        let_in.pop();
        loop {
            let caller = TcpStream::connect(door).await.unwrap();
            if timeout(Duration::from_millis(200), hub.accept()).await.is_ok() {
                return drop(caller);
            }
        }
    }

    #[tokio::test]
    async fn without_an_owner_readiness_is_denied_at_once_and_others_wait_for_one() {
        let bound = OwnBound { each: 2, plain: true };
        let front = Front::open(&["127.0.0.1:0".parse().unwrap()], 16, bound).await.unwrap();
        let door = front.addresses[0];
        let begun = Instant::now();
        let asked = "GET /readyz HTTP/1.1\r\nhost: a\r\n\r\n";
        let denied = said(TcpStream::connect(door).await.unwrap(), asked).await;
        assert!(denied.starts_with("HTTP/1.1 503 ") && denied.contains("owns the log"), "{denied}");
        assert!(begun.elapsed() < WAIT, "it waited for an owner");
        let mut waits = TcpStream::connect(door).await.unwrap();
        waits.write_all(b"GET /healthz HTTP/1.1\r\n\r\n").await.unwrap();
        let hub = TcpListener::bind("127.0.0.1:0").await.unwrap();
        front.point_to(Some(hub.local_addr().unwrap()));
        let (mut passed_on, _) = hub.accept().await.unwrap();
        let mut begin = [0; 12];
        passed_on.read_exact(&mut begin).await.unwrap();
        assert_eq!(&begin, b"GET /healthz");
    }
}
