//! What administrators do while the hub works: agent ids and sessions.

use aaep_engine::{Principal, Role};
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
