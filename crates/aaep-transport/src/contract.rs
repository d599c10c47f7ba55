//! The tests that every transport has to pass. They panic at the first broken promise; they are
//! meant for the tests of a transport and for nothing else.
//!
//! To add a transport (stdio, gRPC, a named pipe): write it in a file of its own, implement
//! [`Transport`] for it in the tests, and run [`transport_contract`]. It must pass as it stands.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a failing test panics

mod proxy;

use std::time::Duration;

use tokio::time::timeout;

use crate::link::{Link, LinkError};
use crate::peer::Peer;

pub use proxy::{Address, Cut, Proxy};

/// How long anything may take, on a machine that has other things to do.
const LONG: Duration = Duration::from_secs(120);

/// What the halves are started with.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Bytes in one message, at most.
    pub max_message: usize,
    /// How long the other end may be silent, or read nothing, before it counts as lost.
    pub patience: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { max_message: 1 << 20, patience: LONG }
    }
}

/// A transport, with both its halves.
pub trait Transport {
    /// A server that listens.
    type Server: Server<End = Self::ServerEnd>;
    /// One connection, as the server sees it.
    type ServerEnd: End + 'static;
    /// One connection, as the client sees it.
    type ClientEnd: End + 'static;

    /// Whether TLS protects it.
    const TLS: bool;
    /// Whether a server notices a silent client without sending to it.
    const SERVER_HEARS_SILENCE: bool;
    /// Whether a client notices a silent server without sending to it.
    const CLIENT_HEARS_SILENCE: bool;

    /// Starts a server at a free address.
    fn serve(&self, settings: Settings) -> impl Future<Output = Self::Server>;
    /// Connects to a server, or to a proxy before it.
    fn connect(
        &self,
        address: &Address,
        settings: Settings,
    ) -> impl Future<Output = Self::ClientEnd>;
}

/// A server that listens until it is dropped.
pub trait Server {
    /// One of its connections.
    type End: End;
    /// Where it listens.
    fn address(&self) -> Address;
    /// The next connection.
    fn accept(&mut self) -> impl Future<Output = Self::End>;
}

/// One end of a connection. Dropping it ends the connection.
pub trait End: Send {
    /// Sends a message; an error says that it was refused, or that the connection is lost.
    fn send(&mut self, text: &str) -> impl Future<Output = Result<(), String>> + Send;
    /// The next message; `None` if the peer ended the connection.
    fn receive(&mut self) -> impl Future<Output = Result<Option<String>, String>> + Send;
    /// Who is at the other end, if this end knows.
    fn peer(&self) -> Option<Peer>;
}

impl End for Link {
    async fn send(&mut self, text: &str) -> Result<(), String> {
        Link::send(self, text).await.map_err(|error: LinkError| error.to_string())
    }

    async fn receive(&mut self) -> Result<Option<String>, String> {
        let received = Link::receive(self).await.map_err(|error| error.to_string())?;
        Ok(received.map(|text| text.as_str().to_owned()))
    }

    fn peer(&self) -> Option<Peer> {
        Some(Link::peer(self).clone())
    }
}

/// What every transport promises.
pub async fn transport_contract<T: Transport>(transport: &T) {
    the_server_knows_who_is_there(transport).await;
    thousands_of_messages_keep_their_order(transport).await;
    long_messages_work_both_ways(transport).await;
    messages_survive_hostile_portions(transport).await;
    a_message_that_is_too_long_is_refused(transport).await;
    a_client_that_goes_is_noticed(transport).await;
    a_server_that_goes_is_noticed(transport).await;
    a_dead_connection_is_noticed_by_who_sends(transport).await;
    a_dead_connection_is_noticed_by_who_listens(transport).await;
    a_client_that_does_not_read_slows_nobody_else(transport).await;
}

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    timeout(LONG, future).await.unwrap_or_else(|_| panic!("{what} took too long"))
}

type Pair<T> = (<T as Transport>::Server, <T as Transport>::ServerEnd, <T as Transport>::ClientEnd);

/// A server and one connection to it.
async fn pair<T: Transport>(transport: &T, settings: Settings) -> Pair<T> {
    let mut server = transport.serve(settings).await;
    let address = server.address();
    let (there, here) = join(transport, &mut server, &address, settings).await;
    (server, there, here)
}

/// The same, through a proxy.
async fn pair_through<T: Transport>(
    transport: &T,
    settings: Settings,
    cut: Cut,
) -> (Proxy, Pair<T>) {
    let mut server = transport.serve(settings).await;
    let proxy = Proxy::start(&server.address(), cut).await.unwrap();
    let (there, here) = join(transport, &mut server, proxy.address(), settings).await;
    (proxy, (server, there, here))
}

async fn join<T: Transport>(
    transport: &T,
    server: &mut T::Server,
    address: &Address,
    settings: Settings,
) -> (T::ServerEnd, T::ClientEnd) {
    let both = async { tokio::join!(server.accept(), transport.connect(address, settings)) };
    within("connecting", both).await
}

async fn crosses(from: &mut impl End, to: &mut impl End, text: &str) {
    let both = async { tokio::join!(from.send(text), to.receive()) };
    let (sent, received) = within("a message", both).await;
    sent.unwrap();
    let received = received.unwrap().expect("the connection ended");
    assert!(received == text, "{} bytes sent, other {} came", text.len(), received.len());
}

/// JSON on one line, of exactly this size, with letters of every width.
fn message(size: usize) -> String {
    let mut text = String::from("{\"text\":\"aé✓🦀\u{2028}\\n");
    text.extend(std::iter::repeat_n('x', size - text.len() - 2));
    text + "\"}"
}

async fn the_server_knows_who_is_there<T: Transport>(transport: &T) {
    let (server, there, _here) = pair(transport, Settings::default()).await;
    let peer = there.peer().expect("a server knows its peer");
    assert!(peer.is_local());
    assert_eq!(peer.is_tls(), T::TLS);
    match server.address() {
        Address::Tcp(address) => assert_eq!(peer.address().unwrap().ip(), address.ip()),
        Address::Unix(_) => {
            let pid = peer.credentials().unwrap().pid;
            assert!(pid.is_none_or(|pid| pid as u32 == std::process::id()));
        }
    }
}

async fn thousands_of_messages_keep_their_order<T: Transport>(transport: &T) {
    const MESSAGES: usize = 3000;
    async fn send(end: &mut impl End) {
        for number in 0..MESSAGES {
            end.send(&format!("{{\"number\":{number}}}")).await.unwrap();
        }
    }
    async fn receive(end: &mut impl End) {
        for number in 0..MESSAGES {
            let expected = format!("{{\"number\":{number}}}");
            assert_eq!(end.receive().await.unwrap(), Some(expected));
        }
    }
    let (_server, mut there, mut here) = pair(transport, Settings::default()).await;
    within("sending", async { tokio::join!(send(&mut here), receive(&mut there)) }).await;
    within("sending", async { tokio::join!(send(&mut there), receive(&mut here)) }).await;
}

async fn long_messages_work_both_ways<T: Transport>(transport: &T) {
    let (_server, mut there, mut here) = pair(transport, Settings::default()).await;
    for size in [64, 64 * 1024, 1024 * 1024] {
        crosses(&mut here, &mut there, &message(size)).await;
        crosses(&mut there, &mut here, &message(size)).await;
    }
}

async fn messages_survive_hostile_portions<T: Transport>(transport: &T) {
    let cuts = [(Cut::Bytes, 16 * 1024), (Cut::Random(1), 1024 * 1024), (Cut::Random(2), 4000)];
    for (cut, longest) in cuts {
        let (_proxy, (_server, mut there, mut here)) =
            pair_through(transport, Settings::default(), cut).await;
        for size in [64, 1000, longest, 65] {
            crosses(&mut here, &mut there, &message(size)).await;
            crosses(&mut there, &mut here, &message(size)).await;
        }
    }
}

/// Refused, and the server goes on.
async fn a_message_that_is_too_long_is_refused<T: Transport>(transport: &T) {
    let settings = Settings { max_message: 64 * 1024, ..Settings::default() };
    let (mut server, mut there, mut here) = pair(transport, settings).await;
    crosses(&mut here, &mut there, &message(settings.max_message)).await;
    let long = message(settings.max_message + 1);
    let refused = async {
        // Either it is not taken from the sender, or the receiver says what came.
        match here.send(&long).await {
            Err(_) => {}
            Ok(()) => assert!(there.receive().await.is_err(), "it was not refused"),
        }
    };
    within("refusing", refused).await;
    let address = server.address();
    let (mut there, mut here) = join(transport, &mut server, &address, settings).await;
    crosses(&mut there, &mut here, &message(settings.max_message)).await;
    let both = async { tokio::join!(there.send(&long), here.receive()) };
    assert!(within("refusing", both).await.1.is_err(), "a client takes what is too long");
}

async fn ends(end: &mut impl End) {
    let gone = async { while let Ok(Some(_)) = end.receive().await {} };
    within("noticing", gone).await;
}

async fn a_client_that_goes_is_noticed<T: Transport>(transport: &T) {
    let (_server, mut there, here) = pair(transport, Settings::default()).await;
    drop(here);
    ends(&mut there).await;
}

async fn a_server_that_goes_is_noticed<T: Transport>(transport: &T) {
    let (server, there, mut here) = pair(transport, Settings::default()).await;
    drop(there);
    ends(&mut here).await;
    drop(server);
}

const IMPATIENT: Settings = Settings { max_message: 1 << 20, patience: Duration::from_secs(4) };

/// The proxy keeps both connections open and forwards nothing: the network reports no error.
async fn a_dead_connection_is_noticed_by_who_sends<T: Transport>(transport: &T) {
    let (proxy, (_server, mut there, mut here)) =
        pair_through(transport, IMPATIENT, Cut::Not).await;
    crosses(&mut here, &mut there, &message(64)).await;
    proxy.stall();
    let long = message(256 * 1024);
    let server = async { while there.send(&long).await.is_ok() {} };
    let client = async { while here.send(&long).await.is_ok() {} };
    within("noticing", async { tokio::join!(server, client) }).await;
}

async fn a_dead_connection_is_noticed_by_who_listens<T: Transport>(transport: &T) {
    let (proxy, (_server, mut there, mut here)) =
        pair_through(transport, IMPATIENT, Cut::Not).await;
    crosses(&mut here, &mut there, &message(64)).await;
    crosses(&mut there, &mut here, &message(64)).await;
    proxy.stall();
    if T::SERVER_HEARS_SILENCE {
        ends(&mut there).await;
    }
    if T::CLIENT_HEARS_SILENCE {
        ends(&mut here).await;
    }
}

async fn a_client_that_does_not_read_slows_nobody_else<T: Transport>(transport: &T) {
    let settings = Settings::default();
    let (mut server, mut blocked, _silent) = pair(transport, settings).await;
    let address = server.address();
    let (mut there, mut here) = join(transport, &mut server, &address, settings).await;
    let flood = tokio::spawn(async move {
        let long = message(256 * 1024);
        while blocked.send(&long).await.is_ok() {}
    });
    for _ in 0..200 {
        crosses(&mut there, &mut here, &message(1000)).await;
        crosses(&mut here, &mut there, &message(1000)).await;
    }
    assert!(!flood.is_finished(), "a slow reader is waited for");
    flood.abort();
}
