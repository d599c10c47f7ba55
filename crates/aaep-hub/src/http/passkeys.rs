//! Passkeys over HTTP: registering and removing them, and signing a yes.
//!
//! A page asks for a challenge, has it signed by the person's authenticator, and shows the signature;
//! the reply that follows then counts as one of somebody who was there.

use std::net::IpAddr;

use aaep_engine::Role;
use aaep_types::{PresenceWord, ReplyToken, SubscriptionId};
use bytes::Bytes;
use http::header::ORIGIN;
use http::{HeaderMap, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::route::PasskeyStep;
use super::{Call, HttpResponse, Problem, empty, json as json_answer};
use crate::Fault;
use crate::access::{AuthenticatedPeer, Denied};
use crate::hub::Hub;
use crate::passkey::{Assertion, Base64, Passkey, PasskeyError, Registration, RelyingParty};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Begin {
    subscription_id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Register {
    name: String,
    registration: Registration,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Remove {
    subscription_id: String,
    id: Base64,
}

/// Without a token it is about the passkeys themselves.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sign {
    #[serde(default)]
    reply_token: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Signed {
    #[serde(default)]
    reply_token: String,
    assertion: Assertion,
}

/// What is signed to change passkeys, in the place of an action's digest.
const CHANGE: &str = "change passkeys";

/// `GET presence/passkeys`: what the person registered.
pub(crate) fn list(hub: &Hub, call: &Call) -> Result<HttpResponse, Problem> {
    may_answer(&call.known)?;
    let own = hub.0.passkeys.list(&call.known.principal.user);
    let listed: Vec<Value> = own
        .iter()
        .map(|passkey| json!({"id": passkey.id, "name": passkey.name, "domain": passkey.domain}))
        .collect();
    Ok(json_answer(StatusCode::OK, json!({ "passkeys": listed }).to_string()))
}

/// What is done about passkeys, step by step.
pub(crate) async fn answer(
    hub: &Hub,
    call: &Call,
    step: PasskeyStep,
    bytes: Bytes,
) -> Result<HttpResponse, Problem> {
    may_answer(&call.known)?;
    match step {
        PasskeyStep::Begin => begin(hub, call, bytes).await,
        PasskeyStep::Register => register(hub, call, bytes).await,
        PasskeyStep::Remove => remove(hub, call, bytes).await,
        PasskeyStep::Challenge => challenge(hub, call, bytes).await,
        PasskeyStep::Assertion => assertion(hub, call, bytes).await,
    }
}

/// `POST presence/passkeys/options`: begins a registration.
async fn begin(hub: &Hub, call: &Call, bytes: Bytes) -> Result<HttpResponse, Problem> {
    let body: Begin = read(&bytes)?;
    let party = party(&call.parts.headers)?;
    may_change(hub, &call.known, &body.subscription_id).await?;
    let options = hub.0.passkeys.begin_registration(&call.known.principal, party)?;
    Ok(json_answer(StatusCode::OK, written(&options)?))
}

/// `POST presence/passkeys`: takes a new passkey.
async fn register(hub: &Hub, call: &Call, bytes: Bytes) -> Result<HttpResponse, Problem> {
    let Register { name, registration } = read(&bytes)?;
    let (at, hub, principal) = (hub.clone(), hub.clone(), call.known.principal.clone());
    let passkey =
        blocking(move || hub.0.passkeys.register(&principal, &registration, &name)).await?;
    let passkey = passkey.map_err(refused)?;
    changed(&at, call, PresenceWord::PasskeyAdded, &passkey).await?;
    let told = json!({"id": passkey.id, "name": passkey.name, "domain": passkey.domain});
    Ok(json_answer(StatusCode::CREATED, told.to_string()))
}

/// `POST presence/passkeys/remove`.
async fn remove(hub: &Hub, call: &Call, bytes: Bytes) -> Result<HttpResponse, Problem> {
    let body: Remove = read(&bytes)?;
    may_change(hub, &call.known, &body.subscription_id).await?;
    let (at, user) = (hub.clone(), call.known.principal.user.clone());
    match blocking(move || at.0.passkeys.remove(&user, &body.id)).await? {
        Some(passkey) => {
            changed(hub, call, PresenceWord::PasskeyRemoved, &passkey).await?;
            Ok(empty(StatusCode::NO_CONTENT))
        }
        None => Err(Problem::not_found("You have no such passkey.")),
    }
}

// enforces: I34
/// A person's passkeys are others now: everybody who listens for them hears it, the listener that
/// did it included, and it goes into the audit.
async fn changed(
    hub: &Hub,
    call: &Call,
    word: PresenceWord,
    passkey: &Passkey,
) -> Result<(), Problem> {
    let (by, key) = (call.known.principal.clone(), passkey.key.sha256());
    tracing::info!(user = &*by.user, %word, "passkeys were changed");
    hub.look(move |core| {
        core.note_passkey(&by, &by.user, word, &key);
        core.announce_presence(&by.user, None, word, 0);
    })
    .await?;
    Ok(())
}

/// `POST presence/passkeys/challenge`: what has to be signed for a yes to a request.
async fn challenge(hub: &Hub, call: &Call, bytes: Bytes) -> Result<HttpResponse, Problem> {
    let body: Sign = read(&bytes)?;
    let party = party(&call.parts.headers)?;
    let (request, digest) = match body.reply_token.as_str() {
        "" => (String::new(), CHANGE.to_owned()),
        token => {
            let unknown = || Problem::not_found("No such request waits for your answer.");
            let token = ReplyToken::parse(token).map_err(|_| unknown())?;
            let peer = call.known.principal.clone();
            let found = hub.look(move |core| core.answerable(&peer, &token)).await?;
            found.ok_or_else(unknown)?
        }
    };
    let (principal, passkeys) = (&call.known.principal, &hub.0.passkeys);
    let options = passkeys.begin_answer(principal, party, &body.reply_token, &request, &digest)?;
    let options = options.ok_or_else(|| {
        Problem::not_found("You have no passkey for this address. Register one in the settings.")
    })?;
    Ok(json_answer(StatusCode::OK, written(&options)?))
}

/// `POST presence/passkeys/assertion`: shows a signature; the reply follows.
async fn assertion(hub: &Hub, call: &Call, bytes: Bytes) -> Result<HttpResponse, Problem> {
    let Signed { reply_token, assertion } = read(&bytes)?;
    let (at, principal) = (hub.clone(), call.known.principal.clone());
    let verified =
        blocking(move || at.0.passkeys.answer(&principal, &reply_token, assertion)).await?;
    if let Err(error) = verified {
        tracing::warn!(user = &*call.known.principal.user, %error, "a passkey's answer was refused");
        return Err(refused(error));
    }
    Ok(empty(StatusCode::NO_CONTENT))
}

// enforces: I34, S6
/// Only somebody whose yes may count has passkeys: an agent, an auditor, and a program of this machine
/// that showed nothing could otherwise register the person's first, and say yes with it.
pub(super) fn may_answer(known: &AuthenticatedPeer) -> Result<(), Problem> {
    match known.principal.role {
        Role::AccessibilityConsumer | Role::Admin => Ok(()),
        _ => Err(Denied::Role.into()),
    }
}

// enforces: I34
/// Once there is a way to show that somebody is there, it has to be shown before it is changed; and never
/// from a process of an agent.
async fn may_change(
    hub: &Hub,
    known: &AuthenticatedPeer,
    subscription: &str,
) -> Result<(), Problem> {
    let signed = hub.0.passkeys.take(&known.principal, "").is_some();
    let shown = signed || is_unlocked(hub, known, subscription).await?;
    is_own_process(hub, known, shown).await?;
    if shown || !hub.has_presence(&known.principal.user) {
        return Ok(());
    }
    let text = "Type your PIN first, or sign with a passkey that you have.";
    Err(Problem::new(StatusCode::FORBIDDEN, "locked", text))
}

/// Whether the PIN was typed where this comes from.
async fn is_unlocked(
    hub: &Hub,
    known: &AuthenticatedPeer,
    subscription: &str,
) -> Result<bool, Problem> {
    let Ok(id) = SubscriptionId::parse(subscription) else { return Ok(false) };
    let (arrival, peer) = (hub.arrival(known, None, None).await, known.clone());
    Ok(hub.look(move |core| core.is_unlocked(&peer, id, &arrival)).await?)
}

// enforces: I30, I34
/// Nobody changes how a person shows that they are there from a process of one of their agents. Who has
/// shown a PIN or a passkey is not only suspected of being one.
pub(super) async fn is_own_process(
    hub: &Hub,
    known: &AuthenticatedPeer,
    shown: bool,
) -> Result<(), Problem> {
    let (arrival, user) = (hub.arrival(known, None, None).await, known.principal.user.clone());
    if !hub.look(move |core| core.is_of_an_agent(&user, &arrival, shown)).await? {
        return Ok(());
    }
    let text = "This program cannot be told from one that an agent started. Do it in a program that \
                you started before the agent, or when the agent has ended.";
    Err(Problem::new(StatusCode::FORBIDDEN, "own_process", text))
}

/// The domain and origin of the page that asks. Browsers name it with every POST, and the guard has
/// looked at it.
fn party(headers: &HeaderMap) -> Result<RelyingParty, Problem> {
    let origin = headers.get(ORIGIN).and_then(|origin| origin.to_str().ok());
    let origin = origin.ok_or_else(|| Problem::malformed("Passkeys are used by pages."))?;
    let (scheme, host) = origin.split_once("://").unwrap_or_default();
    let name = host.rsplit_once(':').map_or(host, |(name, port)| {
        if port.bytes().all(|byte| byte.is_ascii_digit()) { name } else { host }
    });
    let is_address = name.parse::<IpAddr>().is_ok() || name.starts_with('[');
    let is_safe = scheme == "https" || name == "localhost";
    if name.is_empty() || is_address || !is_safe {
        let text = "Browsers have passkeys for names only. Open the page at localhost, or over \
                    HTTPS under a name.";
        return Err(Problem::malformed(text));
    }
    Ok(RelyingParty { id: name.to_owned(), origins: vec![origin.to_owned()] })
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|error| Problem::malformed(format!("{error}.")))
}

fn written(value: &impl serde::Serialize) -> Result<String, Problem> {
    serde_json::to_string(value).map_err(|error| {
        Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", error.to_string())
    })
}

fn refused(error: PasskeyError) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, "passkey", error.to_string())
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Problem> {
    let done = tokio::task::spawn_blocking(work).await;
    let unwell = |text: String| Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", text);
    done.map_err(|_| unwell("The hub could not do it; try again.".into()))?
        .map_err(|fault| unwell(fault.to_string()))
}

impl From<Fault> for Problem {
    fn from(fault: Fault) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", fault.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_passkey_is_for_a_name_and_never_for_an_address() {
        let party_of = |origin: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(ORIGIN, origin.parse().unwrap());
            party(&headers).map(|party| party.id).ok()
        };
        assert_eq!(party_of("http://localhost:8707").as_deref(), Some("localhost"));
        assert_eq!(party_of("https://hub.example").as_deref(), Some("hub.example"));
        assert_eq!(party_of("https://hub.example:8443").as_deref(), Some("hub.example"));
        for none in [
            "http://127.0.0.1:8707",
            "https://[::1]:8707",
            "http://hub.example",
            "null",
            "https://",
        ] {
            assert_eq!(party_of(none), None, "{none}");
        }
        assert!(party(&HeaderMap::new()).is_err());
    }
}
