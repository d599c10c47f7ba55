//! The agent API: any program with HTTP can be an agent. The hub fills the envelope, keeps the
//! order, and lets each approval be used once.

mod read;

use std::time::Duration;

use aaep_engine::{Ask, Blame, Open, Outcome, Refusal, RequestId, Status, View};
use aaep_types::json::Writer;
use aaep_types::{EventKind, SessionId, rule};
use bytes::Bytes;
use http::StatusCode;
use tokio::time::{Instant, timeout_at};

use super::route::Route;
use super::{Answer, Call, Problem, empty, json, query, standing};
use crate::access::SessionSecret;
use crate::core::{Core, Grant, Inputs, Kept, KeyUse};
use crate::hub::Hub;
use crate::waits::Wait;
use read::{Emission, Opening, Prepared, Question};

/// The longest that one call waits, in seconds.
const LONGEST_WAIT: u64 = 60;

/// How often a call that waits shows that its agent is there, so that no lease runs out.
pub(super) const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// The longest idempotency key, in bytes.
const KEY_BYTES: usize = 200;

/// Status and body of an answer.
type ApiResponse = (StatusCode, String);

/// Answers a call. What is rare is boxed, so that what is common stays small.
pub(crate) async fn answer(hub: &Hub, call: &Call, bytes: Bytes) -> Result<Answer, Problem> {
    match call.route {
        Route::OpenSession | Route::Emit(_) | Route::Ask(_) => once(hub, call, bytes).await,
        Route::Session(session) => Box::pin(standing::answer(hub, call, session)).await,
        Route::Request(number) => Box::pin(wait(hub, call, number)).await,
        Route::Withdraw(request) => {
            let agent = call.known.principal.clone();
            let done = hub.call(move |core| {
                let agent = core.stands_for(&agent, request);
                core.withdraw(&agent, request)
            });
            done.await?.map_err(about(request))?;
            Ok(empty(StatusCode::NO_CONTENT))
        }
        Route::Invoke(request) => Box::pin(invoke(hub, call, request, bytes)).await,
        _ => Box::pin(inputs(hub, call)).await,
    }
}

/// A refusal about a request names it.
fn about(request: RequestId) -> impl Fn(Refusal) -> Problem {
    move |refusal| Problem::from(refusal).about(request.to_string())
}

/// A call that may carry an idempotency key: with the same key and body it is done once.
// enforces: I11, I29
async fn once(hub: &Hub, call: &Call, bytes: Bytes) -> Result<Answer, Problem> {
    let key = idempotency_key(call)?;
    let (here, route, keyed) = (hub.clone(), call.route.clone(), key.is_some());
    let length = bytes.len();
    let read = move || read::prepare(&here, &route, &bytes, keyed);
    let (body, turn) = hub.read_apart(&call.known.principal, length, read).await?;
    let (mut known, route) = (call.known.clone(), call.route.clone());
    let secret = match route {
        Route::OpenSession if known.lacks_secret() => Some(new_secret(key.is_some())?),
        _ => None,
    };
    if let Some(secret) = &secret {
        known.show_secret(secret);
    }
    let said = hub.call(move |core| -> Result<ApiResponse, Problem> {
        let agent = &known.principal;
        let key = key.map(|(path, key)| ((agent.name.clone(), path, key), body.hash));
        match key.as_ref().map_or(KeyUse::New, |(key, body)| core.key_use(agent, key, body)) {
            KeyUse::Same(kept) => {
                let status = StatusCode::from_u16(kept.status).unwrap_or(StatusCode::OK);
                return Ok((status, kept.answer));
            }
            KeyUse::Other => return Err(key_reused()),
            KeyUse::Full(refusal) => return Err(refusal.into()),
            KeyUse::New => {}
        }
        let is_event = matches!(route, Route::Emit(_));
        let (session, (status, answer)) = match (body.said?, route) {
            (Prepared::Open(opening), _) => open(core, agent, opening)?,
            (Prepared::Emit(event), Route::Emit(session)) => {
                (session, emit(core, agent, session, event)?)
            }
            (Prepared::Ask(question), Route::Ask(session)) => {
                (session, ask(core, agent, session, &question)?)
            }
            _ => return Err(Problem::not_found("There is nothing here.")),
        };
        if let Some((key, body)) = key {
            let kept = Kept { body, status: status.as_u16(), answer: answer.clone() };
            // What ends a session is remembered beyond it.
            if is_event && core.standing(agent, session).is_some() {
                core.keep_event(agent, key, session, kept);
            } else {
                core.keep_call(agent, key, session, kept);
            }
        }
        Ok((status, answer))
    });
    let said = said.await?;
    drop(turn);
    said.map(|(status, answer)| match &secret {
        Some(secret) => json(status, with_member(&answer, "session_secret", secret.as_str())),
        None => json(status, answer),
    })
}

// enforces: S4
/// A secret for an agent that begins with neither a token nor a secret of its own. It is told once: what
/// is remembered for an idempotency key would be told again to whoever repeats the key, so both do not
/// go together.
fn new_secret(with_key: bool) -> Result<SessionSecret, Problem> {
    if with_key {
        let text = "An Idempotency-Key without a token needs a secret of your own: send \
                    AAEP-Session-Secret, aaeps_ and 43 random characters of base64url.";
        return Err(Problem::malformed(text).under(rule::S5));
    }
    SessionSecret::generate().map_err(|fault| {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", fault.to_string())
    })
}

fn key_reused() -> Problem {
    let text = "This Idempotency-Key was used with another body; use a new one.";
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "key_reused", text)
}

/// The key, and the path that it is for.
fn idempotency_key(call: &Call) -> Result<Option<(String, String)>, Problem> {
    let Some(key) = call.parts.headers.get("idempotency-key") else { return Ok(None) };
    let key = key.to_str().ok().filter(|key| !key.is_empty() && key.len() <= KEY_BYTES);
    let text = format!("An Idempotency-Key has 1 to {KEY_BYTES} visible characters.");
    let path = call.parts.uri.path();
    key.map(|key| Some((path.to_owned(), key.to_owned())))
        .ok_or_else(|| Problem::malformed(text).under(rule::W8))
}

/// `POST agent/sessions`.
fn open(
    core: &mut Core,
    agent: &aaep_engine::Principal,
    opening: Opening,
) -> Result<(SessionId, ApiResponse), Problem> {
    let Opening { producer, summary, language, lease_seconds, payload, asks_to_follow } = opening;
    let (producer, summary, payload) = (&*producer, &*summary, &*payload);
    let open = Open { agent, producer, summary, language, lease_seconds, payload };
    let session = core.open_session(agent, open)?;
    core.note_said(session, EventKind::SessionStarted.as_str(), &asks_to_follow);
    Ok((session, (StatusCode::CREATED, format!(r#"{{"session_id":"{session}"}}"#))))
}

/// `POST agent/sessions/{id}/events`.
fn emit(
    core: &mut Core,
    agent: &aaep_engine::Principal,
    session: SessionId,
    event: Emission,
) -> Result<ApiResponse, Problem> {
    let Emission { mut event, arguments, needs_from_state, speaker, piece, asks_to_follow } = event;
    let agent = &core.speaks_in(agent, session, speaker.as_deref(), event.type_name())?;
    if needs_from_state {
        let standing = core.standing(agent, session).ok_or_else(standing::over)?;
        event = event.with_text("from_state", &standing.state);
    }
    let (id, number) = core.emit(agent, session, &event, arguments.as_ref(), &asks_to_follow)?;
    piece.into_iter().for_each(|piece| core.note_piece(piece));
    let event = id.id();
    Ok((StatusCode::CREATED, format!(r#"{{"event_id":"{event}","sequence_number":{number}}}"#)))
}

/// `POST agent/sessions/{id}/requests`.
fn ask(
    core: &mut Core,
    agent: &aaep_engine::Principal,
    session: SessionId,
    question: &Question,
) -> Result<ApiResponse, Problem> {
    let name = question.kind.as_str();
    let agent = &core.speaks_in(agent, session, question.speaker.as_deref(), name)?;
    let asked = Ask {
        agent,
        session,
        kind: question.kind,
        tool: &question.tool,
        arguments: &question.arguments,
        payload: &question.payload,
        canonical: Some(&question.canonical),
        readable: Some(&question.readable),
        described_by: question.described_by,
    };
    let (request, again) = core.ask(asked)?;
    core.note_said(session, EventKind::StateChanged.as_str(), &[]);
    core.note_said(session, name, &question.asks_to_follow);
    let view = core.request(agent, request).ok_or_else(lost)?;
    let status = if again { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, view_json(request, &view)))
}

/// An object with one text more.
fn with_member(object: &str, name: &str, value: &str) -> String {
    let mut out = Writer::with_capacity(object.len() + name.len() + value.len() + 8);
    out.json(object.strip_suffix('}').unwrap_or(object));
    if object != "{}" {
        out.comma();
    }
    out.name(name);
    out.string(value);
    out.close('}');
    out.finish()
}

fn lost() -> Problem {
    Problem::not_found("There is no such request of yours.").under(rule::C1)
}

/// `GET agent/requests/{id}?wait=`.
async fn wait(hub: &Hub, call: &Call, request: RequestId) -> Result<Answer, Problem> {
    let (until, _wait) = begin_wait(hub, call)?;
    loop {
        // Looked at before the request is: what is decided before the hub stops is told.
        let stopping = hub.is_stopping();
        let agent = call.known.principal.clone();
        let (view, decided) = hub
            .call(move |core| {
                let agent = core.stands_for(&agent, request);
                let view = core.request(&agent, request);
                let pending = view.as_ref().is_some_and(|view| view.status == Status::Pending);
                let decided = pending.then(|| core.when_decided(&agent, request));
                (view, decided)
            })
            .await?;
        let view = view.ok_or_else(lost)?;
        let slice = until.min(Instant::now() + SIGN_OF_LIFE);
        let view = match decided {
            // Whoever waits when the hub stops is not told, but let go.
            Some(decided) if Instant::now() < until && !stopping => {
                match timeout_at(slice, decided).await {
                    Ok(Ok(view)) => view,
                    _ => continue,
                }
            }
            _ => view,
        };
        return Ok(json(StatusCode::OK, view_json(request, &view)));
    }
}

/// Until when a call waits, and its place among those that do; `None` if it does not wait.
pub(super) fn begin_wait(hub: &Hub, call: &Call) -> Result<(Instant, Option<Wait>), Problem> {
    let seconds = wait_seconds(call)?;
    let place = (seconds > 0).then(|| hub.begin_wait(&call.known.principal)).transpose()?;
    Ok((Instant::now() + Duration::from_secs(seconds), place))
}

fn wait_seconds(call: &Call) -> Result<u64, Problem> {
    let Some(wait) = query(&call.parts, "wait") else { return Ok(0) };
    let seconds = wait.parse().ok().filter(|seconds| *seconds <= LONGEST_WAIT);
    let text = format!("`wait` is a number of seconds from 0 to {LONGEST_WAIT}.");
    seconds.ok_or_else(|| Problem::malformed(text).under(rule::W8))
}

/// A request as its agent sees it; never with the reply token.
fn view_json(request: RequestId, view: &View) -> String {
    let mut out = Writer::with_capacity(512);
    // Nothing here needs an escape: identifiers, digits, words of ours.
    for (before, value) in [
        ("{\"request_id\":\"", &*request.to_string()),
        ("\",\"event_id\":\"", view.event.id().as_str()),
        ("\",\"session_id\":\"", view.session.as_str()),
        ("\",\"digest\":\"", &view.digest.to_string()),
        ("\",\"deadline\":\"", &view.deadline.to_string()),
        ("\",\"status\":\"", status_word(view)),
    ] {
        out.json(before);
        out.json(value);
    }
    out.json("\"");
    if let Some(by) = &view.decided_by {
        out.json(",\"decided_by\":");
        out.string(by);
    }
    if let Some(response) = &view.response {
        out.json(",\"response\":");
        out.json(response);
    }
    if let Some(reply) = &view.reply {
        out.json(",\"reply\":");
        out.json(reply);
    }
    out.close('}');
    out.finish()
}

fn status_word(view: &View) -> &'static str {
    match view.status {
        Status::Pending => "pending",
        Status::Resolved { outcome: Outcome::TimedOut, .. }
            if !view.confirmation && view.response.is_none() =>
        {
            "unanswered"
        }
        // D11: silence that means yes is a yes to the agent.
        Status::Resolved { outcome: Outcome::TimedOut, runs: true } => Outcome::Accepted.as_str(),
        Status::Resolved { outcome, .. } => outcome.as_str(),
        Status::Expired => "expired",
        Status::Invoked => "invoked",
        Status::Completed => "completed",
        Status::Unknown => "unknown",
    }
}

/// `POST agent/requests/{id}/invoke`.
// enforces: T12, C1, I1
async fn invoke(
    hub: &Hub,
    call: &Call,
    request: RequestId,
    bytes: Bytes,
) -> Result<Answer, Problem> {
    let key = idempotency_key(call)?;
    let (length, keyed) = (bytes.len(), key.is_some());
    let read = move || read::prepare_invoke(&bytes, keyed);
    let (body, turn) = hub.read_apart(&call.known.principal, length, read).await?;
    let known = call.known.clone();
    let granted = hub.call(move |core| -> Result<Option<Grant>, Problem> {
        let agent = &known.principal;
        let key = key.map(|(path, key)| ((agent.name.clone(), path, key), body.hash));
        match key.as_ref().map_or(KeyUse::New, |(key, body)| core.key_use(agent, key, body)) {
            KeyUse::Same(_) => return Ok(core.grant(request)),
            KeyUse::Other => return Err(key_reused()),
            KeyUse::Full(refusal) => return Err(refusal.into()),
            KeyUse::New => {}
        }
        let arguments = body.said?;
        let runner = &core.runs_for(agent, request).map_err(about(request))?;
        let session = core.request(runner, request).ok_or_else(lost)?.session;
        core.invoke(runner, request, arguments.as_ref()).map_err(about(request))?;
        for kind in [EventKind::StateChanged, EventKind::ToolInvoked] {
            core.note_said(session, kind.as_str(), &[]);
        }
        if let Some((key, body)) = key {
            let kept = Kept { body, status: 200, answer: String::new() };
            core.keep_call(agent, key, session, kept);
        }
        Ok(core.grant(request))
    });
    let granted = granted.await?;
    drop(turn);
    // The grant is there once it is durable that the approval was spent; only then the action may
    // run. By the time that the call is answered it is.
    let grant = match granted? {
        Some(grant) => Some(grant),
        None => hub.call(move |core| core.grant(request)).await?,
    };
    let Some(grant) = grant else {
        let text = "This action was begun before, and is over or unknown; ask again.";
        let refusal = Refusal { blame: Blame::OutOfOrder, rule: rule::T12, text: text.into() };
        return Err(about(request)(refusal));
    };
    let arguments = if grant.arguments.is_empty() { "null" } else { &grant.arguments };
    let text = format!(r#"{{"tool_call_id":"{}","arguments":{arguments}}}"#, grant.call);
    Ok(json(StatusCode::OK, text))
}

/// `GET agent/inputs?wait=`.
async fn inputs(hub: &Hub, call: &Call) -> Result<Answer, Problem> {
    if call.known.lacks_secret() {
        let text = "Send a token, or the AAEP-Session-Secret of your sessions.";
        return Err(Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", text).under(rule::S5));
    }
    let (until, _wait) = begin_wait(hub, call)?;
    loop {
        let agent = call.known.principal.clone();
        let here = match hub.call(move |core| core.inputs(&agent)).await?? {
            Inputs::Here(inputs) => inputs,
            Inputs::Later(more) => {
                let come = tokio::select! {
                    come = timeout_at(until, more) => come.is_ok_and(|come| come.is_ok()),
                    () = hub.stopping() => false,
                };
                // If the core is gone, the next look says so.
                if come || hub.is_broken() {
                    continue;
                }
                Vec::new()
            }
        };
        let text = format!(r#"{{"inputs":[{}]}}"#, here.join(","));
        return Ok(json(StatusCode::OK, text));
    }
}
