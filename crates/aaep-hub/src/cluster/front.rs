//! The door of a node: every connection is passed on to the hub that owns the shard, here or on another
//! node, byte for byte. TLS and credentials are between the caller and that hub.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};

use crate::Fault;

/// How long a caller waits while no hub owns the shard: longer than a takeover takes.
const WAIT: Duration = Duration::from_secs(15);

/// The pause between attempts to reach an owner that may just have died.
const AGAIN: Duration = Duration::from_millis(100);

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
    pub(super) async fn open(listen: &[SocketAddr], connections: usize) -> Result<Self, Fault> {
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
            doors.spawn(let_in(door, owner.subscribe(), room.clone()));
        }
        Ok(Self { addresses, owner, _doors: doors })
    }

    /// From now on everybody is passed on to this hub; connections to another one are ended, and their
    /// callers come again.
    pub(super) fn point_to(&self, owner: Owner) {
        self.owner.send_if_modified(|now| std::mem::replace(now, owner) != owner);
    }
}

async fn let_in(door: TcpListener, owner: watch::Receiver<Owner>, room: Arc<Semaphore>) {
    let mut passing = JoinSet::new();
    loop {
        let Ok(place) = room.clone().acquire_owned().await else { return };
        while passing.try_join_next().is_some() {}
        match door.accept().await {
            Ok((caller, _)) => {
                let owner = owner.clone();
                passing.spawn(async move {
                    pass(caller, owner).await;
                    drop(place);
                });
            }
            // Too many open files, for example: others end first.
            Err(_) => sleep(AGAIN).await,
        }
    }
}

async fn pass(mut caller: TcpStream, mut owner: watch::Receiver<Owner>) {
    let Some((mut hub, its)) = reach(&mut owner).await else { return };
    let _ = (caller.set_nodelay(true), hub.set_nodelay(true));
    tokio::select! {
        _ = copy_bidirectional(&mut caller, &mut hub) => {}
        _ = owner.wait_for(|now| *now != Some(its)) => {}
    }
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
