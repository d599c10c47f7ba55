//! WebSocket and Unix socket: one connection, both ways (B.2, B.4).

use std::future::poll_fn;
use std::time::Duration;

use aaep_engine::{Handshake, Negotiated, SubscriberMessage};
use aaep_transport::link::{Link, LinkError, Options, Receiver, Sender, Text};
use aaep_transport::ws::{self, close};
use aaep_types::{EventId, Message, SubscriptionId};
use http::{Request, request::Parts};
use tokio::time::timeout;
use tracing::{Instrument as _, debug, info, info_span};

use super::rejection::{self, Meant, meant};
use super::{Body, HttpResponse, Problem, messages};
use crate::access::{AuthenticatedPeer, Denied};
use crate::core::{Core, Framing, held};
use crate::hub::{Hub, Stopped};
use crate::outbox::{End, Hearing};
use crate::pace::{Rest, When};

/// How long a connection may stay without a subscription.
const HANDSHAKE: Duration = Duration::from_secs(30);

/// `GET ws`.
pub(crate) fn web_socket(hub: &Hub, parts: Parts, known: AuthenticatedPeer) -> HttpResponse {
    let mut request = Request::from_parts(parts, ());
    let upgrade = match ws::upgrade(&mut request) {
        Ok(upgrade) => upgrade,
        Err(refusal) => {
            let text = format!("{refusal}.");
            let problem = Problem::new(refusal.status(), "malformed", text).into_answer();
            let (mut head, _) = refusal.response().into_parts();
            let (with_text, body) = problem.into_parts();
            head.headers.extend(with_text.headers);
            return HttpResponse::from_parts(head, body);
        }
    };
    let (hub, options) = (hub.clone(), options(hub));
    tokio::spawn(async move {
        match upgrade.pending.link(options).await {
            Ok(link) => serve_link(&hub, known, link, upgrade.negotiated).await,
            Err(error) => debug!(%error, "a WebSocket was not opened"),
        }
    });
    upgrade.response.map(|()| Body::empty())
}

/// What links take.
pub(crate) fn options(hub: &Hub) -> Options {
    Options { max_message: hub.config().limits.reply_bytes, ..Options::default() }
}

/// Serves one connection to its end.
// enforces: W3, W9, W15
pub(crate) async fn serve_link(hub: &Hub, known: AuthenticatedPeer, link: Link, negotiated: bool) {
    let (id, principal) = (hub.0.request_ids.next(), &*known.principal.name);
    let span = info_span!(parent: None, "link", id, principal);
    listen_and_tell(hub, known, link, negotiated).instrument(span).await;
}

async fn listen_and_tell(hub: &Hub, known: AuthenticatedPeer, link: Link, negotiated: bool) {
    let (mut sender, mut receiver) = link.split();
    let begun = if negotiated {
        let beginning = begin(hub, &known, &mut sender, &mut receiver);
        timeout(HANDSHAKE, beginning).await.unwrap_or(Err((close::REJECTED, "no subscription")))
    } else {
        let (user, peer) = (known.principal.user.clone(), known.clone());
        let listening = hub.look(move |core| core.listen(&peer, Framing::Message));
        match hub.0.pace.work(Some(user), When::Before, 0, listening).await {
            Ok(Ok(heard)) => Ok(heard.hearing),
            _ => Err((close::REJECTED, "no subscription")),
        }
    };
    let hearing = match begun {
        Ok(hearing) => hearing,
        Err((code, reason)) => {
            let _ = sender.close(code, reason).await;
            return;
        }
    };
    let (code, reason) = tokio::select! {
        end = write(&hearing, &mut sender) => end,
        end = read(hub, &known, &hearing, &mut receiver, negotiated) => end,
    };
    let _ = sender.close(code, reason).await;
}

/// With which code and which words a link is closed.
type Closing = (u16, &'static str);

/// Tells somebody who is not let in why, and closes the link.
pub(crate) async fn deny_link(link: Link, denied: Denied) {
    info!(why = denied.reason(), "a connection to the socket was refused");
    let (mut sender, _receiver) = link.split();
    let _ = sender.send(Text::from(rejection::denied(denied).to_json())).await;
    let _ = sender.close(closing(denied).0, closing(denied).1).await;
}

fn closing(denied: Denied) -> Closing {
    match denied {
        Denied::Role => (close::AUTHORIZATION, "not allowed"),
        _ => (close::AUTHENTICATION, "not let in"),
    }
}

// enforces: H15
/// Reads messages until one of them is a request, which is accepted or rejected.
async fn begin(
    hub: &Hub,
    known: &AuthenticatedPeer,
    sender: &mut Sender,
    receiver: &mut Receiver,
) -> Result<Hearing, Closing> {
    let gone = (close::GOING_AWAY, "lost");
    let (pace, user) = (&hub.0.pace, &known.principal.user);
    let mut rest = Rest::default();
    loop {
        let message = tokio::select! {
            message = pace.receive(user, &mut rest, receiver.receive()) => {
                message.ok().flatten().ok_or(gone)?
            }
            () = hub.stopping() => return Err((close::GOING_AWAY, "the hub stops")),
        };
        let asking = ask(hub, known, &message);
        let begun = pace.work(Some(user.clone()), When::Before, message.len() as u64, asking).await;
        match begun.map_err(|_| gone)? {
            Begun::Hearing(hearing) => return Ok(hearing),
            Begun::Nothing => {}
            Begun::Rejected(answer) => {
                sender.send(Text::from(answer)).await.map_err(|_| gone)?;
                return Err((close::REJECTED, "rejected"));
            }
            Begun::Denied => {
                let answer = rejection::denied(Denied::NoToken).to_json();
                sender.send(Text::from(answer)).await.map_err(|_| gone)?;
                return Err((close::AUTHENTICATION, "no longer let in"));
            }
        }
    }
}

enum Begun {
    Hearing(Hearing),
    Rejected(String),
    Denied,
    Nothing,
}

/// Takes a message of somebody who has no subscription yet.
async fn ask(hub: &Hub, known: &AuthenticatedPeer, message: &Text) -> Result<Begun, Stopped> {
    held::assert_free();
    let (request, last) = match Message::parse(message.as_bytes()) {
        Ok(Message::Request(request)) => {
            let request = Message::Request(request);
            match Handshake::of(request, &known.principal, &hub.0.offer.load()) {
                // enforces: W7
                Ok(request) => request.over_link(),
                Err(_) => return Ok(Begun::Nothing),
            }
        }
        Err(invalid) if matches!(meant(message.as_bytes()), Meant::Request | Meant::Unclear) => {
            let answer = rejection::malformed(message.as_bytes(), &invalid).to_json();
            return Ok(Begun::Rejected(answer));
        }
        // D5: any other message does not end the connection, and nobody answers it.
        _ => return Ok(Begun::Nothing),
    };
    let peer = known.clone();
    let _turn = hub.handshake_turn(&known.principal).await?;
    hub.look(move |core| subscribe(core, &peer, request, last)).await
}

fn subscribe(
    core: &mut Core,
    known: &AuthenticatedPeer,
    request: Handshake,
    last: Option<EventId>,
) -> Begun {
    // A connection may be older than the configuration (S4).
    if !core.still_lets_in(known) {
        return Begun::Denied;
    }
    let (id, answer) = match core.handshake(known, request, None) {
        Ok(Negotiated::Accepted { subscription, json }) => (subscription, json),
        Ok(Negotiated::Rejected(rejection)) => return Begun::Rejected(rejection.to_json()),
        _ => return Begun::Nothing,
    };
    let last = last.as_ref().map(|last| last.as_str());
    match core.attach(known, id, last, Framing::Message, Some(&answer)) {
        Some(heard) => Begun::Hearing(heard.hearing),
        None => Begun::Nothing,
    }
}

/// Sends what the subscription hears, until that ends.
async fn write(hearing: &Hearing, sender: &mut Sender) -> Closing {
    loop {
        match poll_fn(|context| hearing.outbox.poll_frame(context)).await {
            Ok(frame) => {
                // What the hub makes is text.
                let Ok(text) = Text::try_from(frame) else { continue };
                if sender.send(text).await.is_err() {
                    return (close::GOING_AWAY, "lost");
                }
            }
            Err(End::Closed) => return (close::CLOSED, "closed"),
            Err(End::Rejected) => return (close::REJECTED, "rejected"),
            Err(End::TakenOver) => return (close::CLOSED, "taken over by another connection"),
            Err(End::Denied) => return (close::AUTHENTICATION, "no longer let in"),
            Err(End::Stopping) => return (close::GOING_AWAY, "the hub stops"),
        }
    }
}

/// Takes what the subscriber sends. There is no answer to a reply, whatever becomes of it (D5).
async fn read(
    hub: &Hub,
    known: &AuthenticatedPeer,
    hearing: &Hearing,
    receiver: &mut Receiver,
    negotiated: bool,
) -> Closing {
    let (id, serial) = (hearing.outbox.subscription(), hearing.outbox.serial());
    let (pace, user) = (&hub.0.pace, &known.principal.user);
    let mut rest = Rest::default();
    loop {
        let message = match pace.receive(user, &mut rest, receiver.receive()).await {
            Ok(Some(message)) => message,
            Ok(None) => return (close::NORMAL, "goodbye"),
            Err(LinkError::TooLong(_)) => return (close::TOO_LONG, "the message is too long"),
            Err(LinkError::NotText) => return (close::NOT_TEXT, "send text"),
            Err(_) => return (close::GOING_AWAY, "lost"),
        };
        let taking = async {
            match negotiated {
                true => take(hub, known, (id, serial), &message).await,
                false => take_unnegotiated(hub, known, (id, serial), &message).await,
            }
        };
        match pace.take(user, &mut rest, message.len() as u64, taking).await {
            Ok(true) => return (close::BY_SUBSCRIBER, "closed by the subscriber"),
            Ok(false) => {}
            Err(_) => return (close::GOING_AWAY, "the hub stops"),
        }
    }
}

/// Takes a message on a negotiated link; true if it closed the link's subscription.
async fn take(
    hub: &Hub,
    known: &AuthenticatedPeer,
    (id, serial): (SubscriptionId, u64),
    message: &Text,
) -> Result<bool, Stopped> {
    held::assert_free();
    let peer = known.clone();
    match Message::parse(message.as_bytes()) {
        Ok(handshake @ (Message::Renegotiate(_) | Message::Close(_))) => {
            let message = Handshake::of(handshake, &known.principal, &hub.0.offer.load());
            let Ok(message) = message else { return Ok(false) };
            let closes = message.closes().is_some();
            let turn = hub.handshake_turn(&known.principal).await?;
            let message = hub.judge(known, message).await?;
            let closed = hub.call(move |core| {
                let _ = core.handshake(&peer, message, Some(id));
                closes && !core.is_attached(id)
            });
            let closed = closed.await?;
            drop(turn);
            Ok(closed)
        }
        Ok(Message::Request(_)) => {
            answer(hub, id, rejection::second().to_json()).await?;
            Ok(false)
        }
        Ok(Message::Unlock(unlock)) => {
            let told = hub.unlock(known, &unlock, Some(serial)).await?;
            answer(hub, id, told).await?;
            Ok(false)
        }
        Ok(message) => {
            if let Ok(message) = SubscriberMessage::of(message) {
                let arrival = hub.arrival(known, Some(serial), Some(&message)).await;
                let _ = hub.call(move |core| core.message(&peer, message, &arrival)).await?;
            }
            Ok(false)
        }
        Err(invalid) => {
            match meant(message.as_bytes()) {
                Meant::Request => answer(hub, id, rejection::second().to_json()).await?,
                Meant::Renegotiate => {
                    let rejected = rejection::malformed(message.as_bytes(), &invalid).to_json();
                    hub.call(move |core| core.reject(&peer, id, &rejected)).await?;
                }
                Meant::Other | Meant::Unclear => {}
            }
            Ok(false)
        }
    }
}

/// Answers a handshake on the link of this subscription, which goes on.
async fn answer(hub: &Hub, id: SubscriptionId, answer: String) -> Result<(), Stopped> {
    hub.call(move |core| core.answer_on(id, &answer)).await
}

/// Takes a message on a link without a handshake.
async fn take_unnegotiated(
    hub: &Hub,
    known: &AuthenticatedPeer,
    (id, serial): (SubscriptionId, u64),
    message: &Text,
) -> Result<bool, Stopped> {
    let bytes = message.as_bytes();
    match messages::read(hub, known, bytes).await {
        Ok(message) => {
            // There is no answer to it on a link, whatever becomes of it.
            let _ = messages::take(hub, known, message, Some(serial)).await;
        }
        // D4: a rejection leaves the stream as it is.
        Err(_) if matches!(meant(bytes), Meant::Request | Meant::Renegotiate) => {
            if let Err(invalid) = Message::parse(bytes) {
                answer(hub, id, rejection::malformed(bytes, &invalid).to_json()).await?;
            }
        }
        Err(_) => {}
    }
    Ok(false)
}
