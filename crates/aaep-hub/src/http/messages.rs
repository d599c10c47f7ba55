//! What subscribers send: replies, our extension messages, new terms, goodbye; and what published
//! clients send without a handshake.

use std::time::Duration;

use aaep_engine::{Handshake, SubscriberMessage};
use aaep_types::json::{Members, Raw, Writer};
use aaep_types::{LenientEvent, Message, SubscriptionId};
use bytes::Bytes;
use http::StatusCode;

use super::{Call, HttpResponse, Problem, empty, json};
use crate::access::AuthenticatedPeer;
use crate::core::{Taken, held};
use crate::hub::Hub;

/// How deep a message may nest before it is looked at more closely.
const DEPTH: usize = 64;

/// `POST replies`.
// enforces: D5, D26, I6, C12
pub(crate) async fn reply(hub: &Hub, call: &Call, bytes: Bytes) -> Result<HttpResponse, Problem> {
    held::assert_free();
    let message = Message::parse(&bytes).map_err(|invalid| Problem::from_invalid(&invalid))?;
    let known = call.known.clone();
    match message {
        Message::ConfirmationReply(_)
        | Message::ClarificationReply(_)
        | Message::MoreTime(_)
        | Message::StopSession(_) => {
            let message = SubscriberMessage::of(message)?;
            let arrival = hub.arrival(&known, None, Some(&message)).await;
            let taken = hub.call(move |core| core.message(&known, message, &arrival)).await??;
            // One answer for all, after the same record, whatever became of it.
            taken.answered().await?;
            Ok(empty(StatusCode::NO_CONTENT))
        }
        Message::Unlock(unlock) => {
            Ok(json(StatusCode::OK, hub.unlock(&known, &unlock, None).await?))
        }
        Message::Renegotiate(_) | Message::Close(_) => {
            let message = Handshake::of(message, &known.principal, &hub.0.offer.load())?;
            let turn = hub.handshake_turn(&known.principal).await?;
            let message = hub.judge(&known, message).await?;
            let answer = hub.call(move |core| core.handshake(&known, message, None)).await??.json();
            drop(turn);
            Ok(answer.map_or_else(|| empty(StatusCode::NO_CONTENT), |a| json(StatusCode::OK, a)))
        }
        _ => Err(Problem::malformed(
            "Send a reply, a renegotiation or a close here; subscribe at `subscriptions`.",
        )),
    }
}

/// `POST messages`, for clients that know no handshake.
// enforces: D4, D27
pub(crate) async fn say(hub: &Hub, call: &Call, bytes: Bytes) -> Result<HttpResponse, Problem> {
    let message = read(hub, &call.known, &bytes).await?;
    if hub.config().compatibility.published_suite && matches!(message, Unnegotiated::Input(_)) {
        stream_opens(hub, &call.known).await?;
    }
    if let Some(taken) = take(hub, &call.known, message, None).await? {
        taken.answered().await?;
    }
    Ok(empty(StatusCode::ACCEPTED))
}

/// How long what a user says waits for their stream, for the published suite: it may speak before its
/// stream is open, and needs to hear the answer.
const STREAM_OPENS: Duration = Duration::from_secs(5);

async fn stream_opens(hub: &Hub, known: &AuthenticatedPeer) -> Result<(), Problem> {
    let _wait = hub.begin_wait(&known.principal)?;
    let known = known.clone();
    if let Some(opens) = hub.call(move |core| core.when_open(&known)).await? {
        tokio::select! {
            _ = tokio::time::timeout(STREAM_OPENS, opens) => {}
            () = hub.stopping() => {}
        }
    }
    Ok(())
}

/// A message of somebody without a handshake, read before the core is taken.
pub(crate) enum Unnegotiated {
    /// Something that a person says to their agents.
    Input(String),
    /// New terms, or goodbye.
    Handshake(Handshake),
    Reply(SubscriberMessage),
    /// What only the hub says; the published suite sends it, to test subscribers.
    Event,
}

// enforces: I29
/// Reads a message of somebody without a handshake, whichever way it came.
pub(crate) async fn read(
    hub: &Hub,
    known: &AuthenticatedPeer,
    bytes: &[u8],
) -> Result<Unnegotiated, Problem> {
    let peer = known.clone();
    let stream = hub.look(move |core| core.open_stream(&peer)).await?;
    held::assert_free();
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Problem::malformed("A message is JSON in UTF-8."))?;
    let members = Members::whole(text, DEPTH)
        .map_err(|fault| Problem::malformed(format!("{} (byte {})", fault.kind, fault.offset)))?
        .ok_or_else(|| Problem::malformed("A message is a JSON object."))?;
    if members.ambiguity().is_some() || !members.faults().is_empty() {
        return Err(Problem::malformed("A member stands twice; say each thing once."));
    }
    if members.find("type").is_none() && members.text("kind").as_deref() == Some("user_input") {
        return user_input(&members).map(Unnegotiated::Input);
    }
    // D4: the subscription is filled in here, on this path alone.
    let filled = with_subscription(&members, stream);
    match members.text("type").as_deref() {
        Some("subscription.request" | "subscription.renegotiate" | "subscription.close") => {
            let bytes = if is_request(&members) { bytes } else { filled.as_bytes() };
            let message =
                Message::parse(bytes).map_err(|invalid| Problem::from_invalid(&invalid))?;
            let message = Handshake::of(message, &known.principal, &hub.0.offer.load())?;
            Ok(Unnegotiated::Handshake(message))
        }
        Some(_) if hub.config().compatibility.published_suite && is_event(bytes) => {
            Ok(Unnegotiated::Event)
        }
        _ => Ok(Unnegotiated::Reply(SubscriberMessage::parse(filled.as_bytes())?)),
    }
}

/// Takes a message of somebody without a handshake.
pub(crate) async fn take(
    hub: &Hub,
    known: &AuthenticatedPeer,
    message: Unnegotiated,
    link: Option<u64>,
) -> Result<Option<Taken>, Problem> {
    let peer = known.clone();
    match message {
        Unnegotiated::Event => Ok(None),
        Unnegotiated::Input(input) => {
            hub.call(move |core| core.say(&peer, &input)).await??;
            Ok(None)
        }
        Unnegotiated::Reply(message) => {
            let arrival = hub.arrival(known, link, Some(&message)).await;
            Ok(Some(hub.call(move |core| core.message(&peer, message, &arrival)).await??))
        }
        Unnegotiated::Handshake(message) => {
            let turn = hub.handshake_turn(&known.principal).await?;
            let message = hub.judge(known, message).await?;
            let taken = hub.call(move |core| core.handshake_on_open(&peer, message)).await?;
            drop(turn);
            taken?;
            Ok(None)
        }
    }
}

/// Whether somebody sends what only the hub says; the published suite does, to test subscribers.
fn is_event(bytes: &[u8]) -> bool {
    LenientEvent::parse(bytes).is_ok()
}

fn is_request(members: &Members<'_>) -> bool {
    members.text("type").as_deref() == Some("subscription.request")
}

/// The message, about this subscription; about one that does not exist, if there is none.
fn with_subscription(members: &Members<'_>, id: Option<SubscriptionId>) -> String {
    let id = id.unwrap_or_else(|| SubscriptionId::from_bits(0));
    let mut out = Writer::new();
    out.open('{');
    for member in members.iter().filter(|member| member.name != "subscription_id") {
        out.name(&member.name);
        out.raw(member.value);
        out.comma();
    }
    out.name("subscription_id");
    out.string(id.as_str());
    out.close('}');
    out.finish()
}

/// Something that a person says to their agents.
fn user_input(members: &Members<'_>) -> Result<String, Problem> {
    let Some(Raw::String(text)) = members.find("text") else {
        return Err(Problem::malformed("Put what you want to say into `text`."));
    };
    Ok(text.decode().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: D4
    #[test]
    fn the_subscription_of_a_reply_is_filled_in_or_replaced_and_nothing_else() {
        let id = SubscriptionId::from_bits(7);
        for text in
            [r#"{"a":[1.0,{"b":"\u00e9"}]}"#, r#"{"subscription_id":"x","a":[1.0,{"b":"\u00e9"}]}"#]
        {
            let members = Members::whole(text, 8).unwrap().unwrap();
            let filled = with_subscription(&members, Some(id));
            assert_eq!(
                filled,
                format!(r#"{{"a":[1.0,{{"b":"\u00e9"}}],"subscription_id":"{id}"}}"#)
            );
        }
    }
}
