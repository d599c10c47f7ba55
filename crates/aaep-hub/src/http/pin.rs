//! `POST presence/pin`: a person sets, changes or removes their PIN where the hub's files are not theirs.

use aaep_types::presence::Pin;
use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;

use super::passkeys::{is_own_process, may_answer};
use super::{Call, HttpResponse, Problem, empty};
use crate::Fault;
use crate::hub::{Hub, Stopped};
use crate::presence::Tried;

/// What it takes. It shows itself nowhere: it has no `Debug`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NewPin {
    /// The new one; without it the old one is removed.
    pin: Option<String>,
    /// The one that there is.
    old: Option<String>,
}

// enforces: I34, I30
/// Sets, changes or removes the PIN of whoever calls. A PIN that there is has to be shown; a passkey
/// that was shown just before is as good.
pub(crate) async fn answer(hub: &Hub, call: &Call, bytes: Bytes) -> Result<HttpResponse, Problem> {
    may_answer(&call.known)?;
    let body: NewPin = serde_json::from_slice(&bytes)
        .map_err(|_| Problem::malformed("Send {\"pin\": …}, and \"old\" where there is one."))?;
    let typed = |text: Option<String>| text.map(Pin::new).transpose();
    let too_long = |error: aaep_types::Malformed| Problem::malformed(error.to_string());
    let (new, old) = (typed(body.pin).map_err(too_long)?, typed(body.old).map_err(too_long)?);
    let by = call.known.principal.clone();
    let signed = hub.0.passkeys.take(&by, "").is_some();
    let locked = |text| Problem::new(StatusCode::FORBIDDEN, "locked", text);
    let shown = signed
        || match old {
            None => false,
            Some(old) => match hub.try_pin(&by, old).await? {
                Tried::Right => true,
                Tried::Wrong => {
                    return Err(locked("That is not the PIN. Nothing was changed.".into()));
                }
                Tried::Wait(seconds) => {
                    let text = format!("Too many wrong PINs. Try again in {seconds} seconds.");
                    return Err(locked(text));
                }
            },
        };
    if !shown && hub.has_presence(&by.user) {
        return Err(locked("Type the PIN that you have, or sign with your passkey.".into()));
    }
    is_own_process(hub, &call.known, shown).await?;
    let (at, user) = (hub.clone(), by.user.clone());
    let done = tokio::task::spawn_blocking(move || -> Result<bool, Fault> {
        match new {
            Some(new) => at.0.presence.set_pin(&user, &new),
            None => at.0.presence.remove_pin(&user),
        }
    });
    let done = done.await.map_err(|_| Problem::from(Stopped))?;
    let done =
        done.map_err(|fault| Problem::new(StatusCode::CONFLICT, "not_written", fault.to_string()))?;
    if !done {
        return Err(Problem::not_found("There is no PIN, or this hub keeps none."));
    }
    hub.look(move |core| core.note_pin(Some(&by), "pin_set", &by.user)).await?;
    hub.announce_changes();
    Ok(empty(StatusCode::NO_CONTENT))
}
