//! A hub over a connection that goes both ways: WebSocket, Unix socket, gRPC or stdio (B.2, B.4 to B.6).

use std::sync::Arc;
use std::time::Duration;

use aaep_transport::link::{Link, LinkError, Options, Receiver, Sender};
use aaep_transport::{grpc, stdio, ws};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tracing::debug;

use super::clock;
use super::http::{Broken, identify};
use super::hub::{Address, Hub};
use super::shared::Shared;
use crate::inbox::{Backoff, Connection, InboxInput, Outgoing, Purpose, SubscriptionState};

/// How long a hub may take to answer the handshake.
const HANDSHAKE: Duration = Duration::from_secs(30);

/// What became of a connection.
enum End {
    /// It broke, or was refused: it is tried again.
    Broken(Broken),
    /// Less is to be asked for, at once (X8).
    Renegotiate,
    /// Goodbye was said.
    Closed,
}

impl From<LinkError> for End {
    fn from(error: LinkError) -> Self {
        Self::Broken(Broken::new(error.to_string()))
    }
}

/// Listens to one hub until the client is closed.
pub(super) async fn run(
    shared: Arc<Shared>,
    connection: Connection,
    hub: Hub,
    mut outgoing: mpsc::Receiver<Outgoing>,
) {
    let mut backoff = Backoff::default();
    loop {
        let listening = listen(&shared, connection, &hub, &mut outgoing, &mut backoff);
        let broken = match listening.await {
            End::Closed => return,
            End::Renegotiate => continue,
            End::Broken(broken) => broken,
        };
        shared.handle(InboxInput::Lost { connection, why: &broken.why });
        // What was to go over the connection that broke did not.
        while let Ok(send) = outgoing.try_recv() {
            shared.handle(InboxInput::NotSent { ticket: send.ticket, perhaps: false });
        }
        let wait = backoff.wait_ms(clock::jitter(), broken.wait_ms);
        debug!(why = broken.why, wait, "the hub is away");
        tokio::select! {
            () = tokio::time::sleep(Duration::from_millis(wait)) => {}
            () = shared.until_closing() => return,
        }
    }
}

/// One connection, from its beginning to its end.
async fn listen(
    shared: &Shared,
    connection: Connection,
    hub: &Hub,
    outgoing: &mut mpsc::Receiver<Outgoing>,
    backoff: &mut Backoff,
) -> End {
    let begun = tokio::select! {
        begun = begin(shared, connection, hub) => begun,
        () = shared.until_closing() => return End::Closed,
    };
    let (mut sender, mut receiver) = match begun {
        Ok(halves) => halves,
        Err(end) => return end,
    };
    backoff.reset();
    // enforces: I32
    shared.handle(match shared.look(|inbox, _| inbox.is_resumed(connection)) {
        true => InboxInput::Attached { connection },
        false => InboxInput::AttachedAnew { connection },
    });
    loop {
        tokio::select! {
            // What the user wants goes before what the agent says.
            biased;
            send = outgoing.recv() => {
                let Some(send) = send else { return End::Closed };
                if let Err(end) = carry(shared, &mut sender, send).await {
                    return end;
                }
            }
            message = receiver.receive() => {
                if let Err(end) = take(shared, connection, message).await {
                    return end;
                }
            }
            () = shared.until_closing() => {
                // Whatever still waits, goodbye among it, goes out.
                while let Ok(send) = outgoing.try_recv() {
                    if carry(shared, &mut sender, send).await.is_err() {
                        break;
                    }
                }
                let _ = sender.close(ws::close::NORMAL, "goodbye").await;
                return End::Closed;
            }
        }
    }
}

/// Connects and agrees on a subscription.
async fn begin(
    shared: &Shared,
    connection: Connection,
    hub: &Hub,
) -> Result<(Sender, Receiver), End> {
    let (mut sender, mut receiver) = open(hub).await.map_err(End::Broken)?.split();
    let request = shared.look(|inbox, now| inbox.resume(connection, now));
    sender.send(request).await?;
    let agreeing = async {
        loop {
            let message = receiver.receive().await;
            if let Ok(Some(text)) = &message {
                identify(shared, connection, hub, text.as_bytes()).map_err(End::Broken)?;
            }
            take(shared, connection, message).await?;
            match shared.look(|inbox, _| inbox.standing(connection)) {
                SubscriptionState::Subscribed(_) => return Ok(()),
                SubscriptionState::Asking => {}
                standing => return Err(refused(standing)),
            }
        }
    };
    let late = |_| Err(End::Broken(Broken::new("the hub did not answer the handshake")));
    timeout(HANDSHAKE, agreeing).await.unwrap_or_else(late)?;
    Ok((sender, receiver))
}

async fn open(hub: &Hub) -> Result<Link, Broken> {
    let options = Options { max_message: hub.options.max_message, ..Options::default() };
    match &hub.address {
        Address::WebSocket(url) => Ok(ws::connect(url, true, &hub.options, options).await?),
        Address::Grpc(url) => Ok(grpc::connect(url, true, &hub.options, options).await?),
        Address::Stdio(command) => stdio::connect(command, &options)
            .map_err(|error| Broken::new(format!("{command} cannot be started: {error}"))),
        #[cfg(unix)]
        Address::Socket(path) => {
            let connecting = aaep_transport::unix::connect(path, options);
            let connected = timeout(hub.options.connect, connecting).await;
            let connected = connected.map_err(|_| Broken::new("nobody answers at the socket"))?;
            connected.map_err(|error| Broken::new(format!("{}: {error}", path.display())))
        }
        #[cfg(windows)]
        Address::Pipe(path) => {
            let connecting =
                aaep_transport::pipe::connect(path, hub.options.trust_loopback, options);
            let connected = timeout(hub.options.connect, connecting).await;
            let connected = connected.map_err(|_| Broken::new("nobody answers at the pipe"))?;
            connected.map_err(|error| Broken::new(format!("{path}: {error}")))
        }
        Address::Http(url) => Err(Broken::new(format!("{url} is no address of this kind"))),
    }
}

fn refused(standing: SubscriptionState) -> End {
    match standing {
        SubscriptionState::Refused { again_now: true, .. } => End::Renegotiate,
        SubscriptionState::Refused { retry_after_ms, why, .. } => {
            End::Broken(Broken { why, wait_ms: retry_after_ms })
        }
        _ => End::Broken(Broken::new("the hub ended the subscription")),
    }
}

type Received = Result<Option<aaep_transport::link::Text>, LinkError>;

/// Takes what came.
async fn take(shared: &Shared, connection: Connection, message: Received) -> Result<(), End> {
    match message {
        Ok(Some(text)) => {
            shared.receive(connection, text.as_bytes()).await;
            match shared.look(|inbox, _| inbox.standing(connection)) {
                standing @ (SubscriptionState::Ended | SubscriptionState::Refused { .. }) => {
                    Err(refused(standing))
                }
                _ => Ok(()),
            }
        }
        Ok(None) => Err(End::Broken(Broken::new("the hub ended the connection"))),
        Err(LinkError::TooLong(_) | LinkError::NotText) => {
            shared.handle(InboxInput::TooLong { connection });
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Sends something; after goodbye comes the end.
async fn carry(shared: &Shared, sender: &mut Sender, send: Outgoing) -> Result<(), End> {
    let (ticket, purpose) = (send.ticket, send.purpose);
    let sent = sender.send(send.json).await;
    shared.handle(match &sent {
        Ok(()) => InboxInput::Sent(ticket),
        Err(_) => InboxInput::NotSent { ticket, perhaps: true },
    });
    sent?;
    if purpose == Purpose::Close {
        let _ = sender.close(ws::close::NORMAL, "goodbye").await;
        return Err(End::Closed);
    }
    Ok(())
}
