//! What subscribers send: replies, our extension messages, new terms, goodbye; and what published
//! clients send without a handshake.

use std::time::Duration;

use aaep_engine::Blame;
use aaep_types::json::{Members, Raw, Writer};
use aaep_types::{Heard, Message, SubscriptionId};
use bytes::Bytes;
use http::StatusCode;

use super::{Answer, Call, Problem, empty, json};
use crate::access::Known;
use crate::core::{Core, Taken};
use crate::hub::Hub;

/// How deep a message may nest before it is looked at more closely.
const DEPTH: usize = 64;

/// `POST replies`.
// enforces: D5, D26, I6, C12
pub(crate) async fn reply(hub: &Hub, call: &Call, bytes: Bytes) -> Result<Answer, Problem> {
    let (known, message) = (call.known.clone(), bytes.clone());
    // Nearly everything is a reply, and the engine reads those itself.
    match hub.call(move |core| core.message(&known, &message)).await? {
        // One answer for all, after the same record, whatever became of it.
        Ok(taken) => {
            taken.answered().await?;
            return Ok(empty(StatusCode::NO_CONTENT));
        }
        // Nothing can be kept now, whatever the message says.
        Err(refusal) if refusal.blame == Blame::Unavailable => return Err(refusal.into()),
        Err(_) => {}
    }
    let message = Message::parse(&bytes).map_err(|invalid| Problem::from_invalid(&invalid))?;
    let known = call.known.clone();
    match message {
        Message::ConfirmationReply(_)
        | Message::ClarificationReply(_)
        | Message::MoreTime(_)
        | Message::StopSession(_) => Ok(empty(StatusCode::NO_CONTENT)),
        Message::Renegotiate(_) | Message::Close(_) => {
            let answer = hub.call(move |core| core.handshake(&known, &bytes)).await??;
            Ok(answer.map_or_else(|| empty(StatusCode::NO_CONTENT), |a| json(StatusCode::OK, a)))
        }
        _ => Err(Problem::malformed(
            "Send a reply, a renegotiation or a close here; subscribe at `subscriptions`.",
        )),
    }
}

/// `POST messages`, for clients that know no handshake.
// enforces: D4, D27
pub(crate) async fn say(hub: &Hub, call: &Call, bytes: Bytes) -> Result<Answer, Problem> {
    if hub.config().compatibility.published_suite && is_user_input(&bytes) {
        stream_opens(hub, &call.known).await?;
    }
    let known = call.known.clone();
    if let Some(taken) = hub.call(move |core| take(core, &known, &bytes)).await?? {
        taken.answered().await?;
    }
    Ok(empty(StatusCode::ACCEPTED))
}

/// How long what a user says waits for their stream, for the published suite: it may speak before its
/// stream is open, and needs to hear the answer.
const STREAM_OPENS: Duration = Duration::from_secs(5);

async fn stream_opens(hub: &Hub, known: &Known) -> Result<(), Problem> {
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

fn is_user_input(bytes: &[u8]) -> bool {
    let members = std::str::from_utf8(bytes).ok().and_then(|text| Members::whole(text, DEPTH).ok());
    let members = members.flatten().unwrap_or_default();
    members.find("type").is_none() && members.text("kind").as_deref() == Some("user_input")
}

/// A message of somebody without a handshake, whichever way it came.
pub(crate) fn take(core: &mut Core, known: &Known, bytes: &[u8]) -> Result<Option<Taken>, Problem> {
    let text = std::str::from_utf8(bytes)
        .map_err(|_| Problem::malformed("A message is JSON in UTF-8."))?;
    let members = Members::whole(text, DEPTH)
        .map_err(|fault| Problem::malformed(format!("{} (byte {})", fault.kind, fault.offset)))?
        .ok_or_else(|| Problem::malformed("A message is a JSON object."))?;
    if members.ambiguity().is_some() || !members.faults().is_empty() {
        return Err(Problem::malformed("A member stands twice; say each thing once."));
    }
    if members.find("type").is_none() && members.text("kind").as_deref() == Some("user_input") {
        return user_input(core, known, &members).map(|()| None);
    }
    match members.text("type").as_deref() {
        Some("subscription.request" | "subscription.renegotiate" | "subscription.close") => {
            let message = with_subscription(&members, core.open_stream(known));
            let bytes = if is_request(&members) { bytes } else { message.as_bytes() };
            Message::parse(bytes).map_err(|invalid| Problem::from_invalid(&invalid))?;
            if core.handshake_on_open(known, bytes) {
                Ok(None)
            } else {
                let text = "Open a stream first; too many messages wait for one.";
                Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "limit", text))
            }
        }
        Some(_) if core.hub.config().compatibility.published_suite && is_event(bytes) => Ok(None),
        _ => {
            // D4: the subscription is filled in here, on this path alone.
            let message = with_subscription(&members, core.open_stream(known));
            core.message(known, message.as_bytes()).map(Some).map_err(Problem::from)
        }
    }
}

/// Whether somebody sends what only the hub says; the published suite does, to test subscribers.
fn is_event(bytes: &[u8]) -> bool {
    Heard::parse(bytes).is_ok()
}

fn is_request(members: &Members<'_>) -> bool {
    members.text("type").as_deref() == Some("subscription.request")
}

/// The message, about this subscription; about one that nobody has, if there is none.
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
fn user_input(core: &mut Core, known: &Known, members: &Members<'_>) -> Result<(), Problem> {
    let Some(Raw::String(text)) = members.find("text") else {
        return Err(Problem::malformed("Put what you want to say into `text`."));
    };
    let mut input = Writer::new();
    input.json(r#"{"kind":"user_input","text":"#);
    input.string(&text.decode());
    input.close('}');
    core.say(known, &input.finish()).map_err(Problem::from)
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
