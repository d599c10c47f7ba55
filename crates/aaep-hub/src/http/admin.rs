//! What administrators do while the hub works: agent ids, sessions, and who may come in.

use std::sync::Arc;
use std::time::Duration;

use aaep_engine::{Principal, Role};
use aaep_types::PresenceWord;
use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json as value};

use super::route::Route;
use super::{Call, HttpResponse, Problem, empty, json};
use crate::access::Denied;
use crate::config::Label;
use crate::hub::{Hub, Stopped};
use crate::retention::{Erasable, NotErased, Wish};
use crate::{Fault, tokens};

/// What `release` and `hand-over` take.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    agent_id: String,
    /// The principal that shall have it.
    to: Option<String>,
    /// Its user; not needed for a principal of the configuration.
    user: Option<String>,
}

/// What `erase` takes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToErase {
    /// Whose records.
    user: String,
    /// Words that stay with the erasure.
    #[serde(default)]
    note: String,
    /// Whether it is to be done, or only told.
    #[serde(default)]
    confirm: bool,
}

/// What `presence/reset` takes.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ToReset {
    user: String,
}

/// What `deny` and `allow` take.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
}

/// How long a change of the configuration has to be in force.
const IN_FORCE: Duration = Duration::from_secs(10);

// enforces: S6
/// Answers an administrator.
pub(crate) async fn answer(hub: &Hub, call: &Call, bytes: Bytes) -> Result<HttpResponse, Problem> {
    if call.known.principal.role != Role::Admin {
        return Err(Denied::Role.into());
    }
    let by = call.known.principal.clone();
    match call.route {
        Route::HeldIds => {
            let held = hub.look(|core| core.held_ids()).await?;
            let agents: Vec<Value> = held
                .iter()
                .map(|held| {
                    value!({
                        "agent_id": &*held.id, "principal": &*held.agent.name,
                        "user": &*held.agent.user, "sessions": held.sessions,
                    })
                })
                .collect();
            Ok(json(StatusCode::OK, value!({ "agents": agents }).to_string()))
        }
        Route::OpenSessions => {
            let open = hub.look(|core| core.open_sessions()).await?;
            let sessions: Vec<Value> = open
                .iter()
                .map(|(id, agent)| {
                    value!({
                        "session_id": id.as_str(), "principal": &*agent.name, "user": &*agent.user,
                    })
                })
                .collect();
            Ok(json(StatusCode::OK, value!({ "sessions": sessions }).to_string()))
        }
        Route::EndSession(session) => {
            hub.call(move |core| core.end_session(&by, session)).await??;
            Ok(empty(StatusCode::NO_CONTENT))
        }
        Route::EraseUser => erase(hub, by, &bytes).await,
        Route::ResetPresence => {
            let ToReset { user } = serde_json::from_slice(&bytes)
                .map_err(|_| malformed("Send {\"user\": …}: whose PIN and passkeys."))?;
            reset_presence(hub, by, user.into()).await
        }
        Route::Deny | Route::Allow => {
            let Named { name } = serde_json::from_slice(&bytes)
                .map_err(|_| malformed("Send {\"name\": …}: the principal."))?;
            may_enter(hub, &by, name, call.route == Route::Allow).await
        }
        Route::ReleaseId => {
            let wanted = read(&bytes)?;
            hub.call(move |core| core.release_id(&by, &wanted.agent_id)).await??;
            Ok(empty(StatusCode::NO_CONTENT))
        }
        _ => {
            let wanted = read(&bytes)?;
            let (name, user) = owner(hub, &wanted)?;
            let id = wanted.agent_id;
            hub.call(move |core| core.hand_id_over(&by, &id, (name.as_str(), user.as_str())))
                .await??;
            Ok(empty(StatusCode::NO_CONTENT))
        }
    }
}

// enforces: S13
/// Erases what is kept about a person, while the hub works; without `confirm`, says what that would be.
async fn erase(hub: &Hub, by: Principal, bytes: &Bytes) -> Result<HttpResponse, Problem> {
    let ToErase { user, note, confirm } = serde_json::from_slice(bytes)
        .map_err(|_| malformed("Send {\"user\": …}, and \"note\" and \"confirm\" as needed."))?;
    let eraser = hub.0.eraser.get().ok_or_else(|| {
        Problem::not_found(
            "This hub keeps nothing, or is one of a cluster, whose log keeps everything.",
        )
    })?;
    let wish = Wish { by: Some(by), note: note.into(), confirmed: confirm };
    let plan = match eraser.erase(hub, Erasable::OfUser(user), wish).await {
        Ok(plan) => plan,
        Err(NotErased::Because(why)) => {
            return Err(Problem::new(StatusCode::CONFLICT, "not_erased", why));
        }
        Err(NotErased::Stopped) => return Err(Stopped.into()),
    };
    let told = value!({
        "records": plan.records, "sessions": plan.sessions.len(),
        "still_needed": plan.still_needed, "erased": confirm && plan.records > 0,
    });
    Ok(json(StatusCode::OK, told.to_string()))
}

// enforces: I34, S9
/// Removes the PIN and the passkeys of somebody who lost them. It is noted before, and everybody who
/// listens for that user hears it.
async fn reset_presence(hub: &Hub, by: Principal, user: Arc<str>) -> Result<HttpResponse, Problem> {
    if !hub.has_presence(&user) {
        return Err(Problem::not_found("This user has neither a PIN nor a passkey."));
    }
    let (of, whose) = (by.clone(), user.clone());
    hub.call(move |core| core.note_act(&of, "presence_reset", &whose)).await??;
    let (at, whose) = (hub.clone(), user.clone());
    let removed = tokio::task::spawn_blocking(move || -> Result<_, Fault> {
        at.0.presence.remove_pin(&whose)?;
        at.0.passkeys.remove_all(&whose)
    });
    let removed = removed.await.map_err(|_| Problem::from(Stopped))??;
    hub.announce_changes();
    hub.look(move |core| {
        let word = PresenceWord::PasskeyRemoved;
        for passkey in &removed {
            core.note_passkey(&by, &user, word, &passkey.key.sha256());
            core.announce_presence(&user, None, word, 0);
        }
    })
    .await?;
    Ok(empty(StatusCode::NO_CONTENT))
}

// enforces: S4
/// Shuts a principal out in the configuration file, or lets it in again, and answers when that is in
/// force.
async fn may_enter(
    hub: &Hub,
    by: &Principal,
    name: String,
    allowed: bool,
) -> Result<HttpResponse, Problem> {
    let file = hub.0.config_file.clone().ok_or_else(|| {
        Problem::not_found("This hub has no configuration file in which that could be written.")
    })?;
    let (wanted, of) = (name.clone(), by.clone());
    let written = tokio::task::spawn_blocking(move || match allowed {
        true => tokens::allow(&file, &name),
        false => tokens::deny(&file, &name),
    });
    let written = written.await.map_err(|_| Problem::from(Stopped))?;
    written
        .map_err(|fault| Problem::new(StatusCode::CONFLICT, "not_written", fault.to_string()))?;
    let noted = wanted.clone();
    let act = if allowed { "allowed" } else { "denied" };
    hub.call(move |core| core.note_act(&of, act, &noted)).await??;
    hub.0.reload.notify_one();
    let in_force = async {
        while hub.0.access.current().denies(&wanted) == allowed {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    if tokio::time::timeout(IN_FORCE, in_force).await.is_err() {
        let text = "It is written, but the hub has not taken it over; its log says why.";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", text));
    }
    Ok(empty(StatusCode::NO_CONTENT))
}

fn read(bytes: &Bytes) -> Result<Wanted, Problem> {
    serde_json::from_slice(bytes).map_err(|_| {
        malformed("Send {\"agent_id\": …}; to hand it over, \"to\" and perhaps \"user\" as well.")
    })
}

/// Who shall have it: an agent of the configuration, or one of an issuer with its user.
fn owner(hub: &Hub, wanted: &Wanted) -> Result<(Label, Label), Problem> {
    let unclear = || malformed("Name the principal that shall have it (to).");
    let name = wanted.to.as_deref().and_then(|to| Label::parse(to).ok()).ok_or_else(unclear)?;
    if let Some(known) = hub.0.access.current().named(name.as_str()) {
        if known.role != Role::Agent {
            return Err(malformed("Only an agent can have an agent id."));
        }
        let user = Label::parse(&known.user).map_err(|_| unclear())?;
        return Ok((name, user));
    }
    let user = wanted.user.as_deref().and_then(|user| Label::parse(user).ok());
    let user = user.filter(|_| name.as_str().contains('/')).ok_or_else(|| {
        malformed(
            "There is no such principal. One of an issuer is named NAME/SUBJECT, with its user.",
        )
    })?;
    Ok((name, user))
}

fn malformed(text: &str) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, "malformed", text)
}
