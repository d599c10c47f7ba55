//! The agent API: any program with HTTP can be an agent. The hub fills the envelope, keeps the
//! order, and lets each approval be used once.

use std::time::Duration;

use aaep_engine::{Ask, Blame, Open, Outcome, Refusal, Status, View};
use aaep_types::json::{Members, Raw, Writer};
use aaep_types::{EventId, EventKind, LanguageTag, SessionId, rule};
use bytes::Bytes;
use http::StatusCode;
use sha2::{Digest as _, Sha256};
use tokio::time::{Instant, timeout_at};

use super::route::{Route, digits_of, request_id};
use super::{Answer, Call, Problem, empty, json, policy, query, standing};
use crate::core::{Core, Grant, Inputs, Kept, KeyUse};
use crate::hub::Hub;

/// The longest that one call waits, in seconds.
const LONGEST_WAIT: u64 = 60;

/// How often a call that waits shows that its agent is there, so that no lease runs out.
pub(super) const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// How long an agent may stay silent, in seconds: usual, least, most.
const LEASE_SECONDS: (u64, u64, u64) = (120, 15, 24 * 60 * 60);

/// The longest idempotency key, in bytes.
const KEY_BYTES: usize = 200;

/// How deep a body may nest.
const DEPTH: usize = 64;

/// Status and body of an answer.
type Said = (StatusCode, String);

/// Answers a call. What is rare is boxed, so that what is common stays small.
pub(crate) async fn answer(hub: &Hub, call: &Call, bytes: Bytes) -> Result<Answer, Problem> {
    match call.route {
        Route::OpenSession | Route::Emit(_) | Route::Ask(_) => once(hub, call, bytes).await,
        Route::Session(session) => Box::pin(standing::answer(hub, call, session)).await,
        Route::Request(number) => Box::pin(wait(hub, call, number)).await,
        Route::Withdraw(request) => {
            let agent = call.known.principal.clone();
            hub.call(move |core| core.withdraw(&agent, request)).await?.map_err(about(request))?;
            Ok(empty(StatusCode::NO_CONTENT))
        }
        Route::Invoke(request) => Box::pin(invoke(hub, call, request, bytes)).await,
        _ => Box::pin(inputs(hub, call)).await,
    }
}

/// A refusal about a request names it.
fn about(request: u128) -> impl Fn(Refusal) -> Problem {
    move |refusal| Problem::from(refusal).about(request_id(request))
}

/// A call that may carry an idempotency key: with the same key and body it is done once.
// enforces: I11
async fn once(hub: &Hub, call: &Call, bytes: Bytes) -> Result<Answer, Problem> {
    let key = idempotency_key(call)?;
    let (known, route) = (call.known.clone(), call.route.clone());
    let said = hub
        .call(move |core| -> Result<Said, Problem> {
            let agent = &known.principal;
            let key = key.map(|(path, key)| ((agent.name.clone(), path, key), hash_of(&bytes)));
            match key.as_ref().map_or(KeyUse::New, |(key, body)| core.key_use(key, body)) {
                KeyUse::Same(kept) => {
                    let status = StatusCode::from_u16(kept.status).unwrap_or(StatusCode::OK);
                    return Ok((status, kept.answer));
                }
                KeyUse::Other => return Err(key_reused()),
                KeyUse::Full => return Err(too_many_keys()),
                KeyUse::New => {}
            }
            let object = Object::read(&bytes)?;
            let is_event = matches!(route, Route::Emit(_));
            let (session, (status, answer)) = match route {
                Route::OpenSession => open(core, agent, &object)?,
                Route::Emit(session) => (session, emit(core, agent, session, &object)?),
                Route::Ask(session) => (session, ask(core, agent, session, &object)?),
                _ => return Err(Problem::not_found("There is nothing here.")),
            };
            if let Some((key, body)) = key {
                let kept = Kept { body, status: status.as_u16(), answer: answer.clone() };
                // What ends a session is remembered beyond it.
                if is_event && core.standing(agent, session).is_some() {
                    core.keep_event(key, session, kept);
                } else {
                    core.keep_call(key, session, kept);
                }
            }
            Ok((status, answer))
        })
        .await?;
    said.map(|(status, answer)| json(status, answer))
}

/// What is remembered of a body: enough to know it again.
fn hash_of(body: &[u8]) -> [u8; 32] {
    Sha256::digest(body).into()
}

fn key_reused() -> Problem {
    let text = "This Idempotency-Key was used with another body; use a new one.";
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "key_reused", text)
}

fn too_many_keys() -> Problem {
    let text = "No further Idempotency-Key can be remembered now; end sessions, or send none.";
    Problem::new(StatusCode::TOO_MANY_REQUESTS, "limit", text)
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

/// The members of a body, and how long it is.
struct Object<'a>(Members<'a>, usize);

impl<'a> Object<'a> {
    // enforces: E21
    fn read(bytes: &'a [u8]) -> Result<Self, Problem> {
        let text = std::str::from_utf8(bytes)
            .map_err(|_| Problem::malformed("The body is JSON in UTF-8."))?;
        let fault = |kind: &dyn std::fmt::Display, offset: usize| {
            Problem::malformed(format!("{kind} (byte {offset})"))
        };
        let members = Members::whole(text, DEPTH)
            .map_err(|found| fault(&found.kind, found.offset))?
            .ok_or_else(|| Problem::malformed("The body is a JSON object."))?;
        if let Some(found) = members.faults().first() {
            return Err(fault(&found.kind, found.offset));
        }
        if let Some(name) = members.repeated() {
            return Err(Problem::malformed(format!("`{name}` stands twice; say it once.")));
        }
        Ok(Self(members, bytes.len()))
    }

    fn text(&self, name: &str) -> Result<Option<String>, Problem> {
        match self.0.find(name) {
            None => Ok(None),
            Some(Raw::String(text)) => Ok(Some(text.decode().into_owned())),
            Some(_) => Err(Problem::malformed(format!("`{name}` is a text."))),
        }
    }

    fn needed(&self, name: &str) -> Result<String, Problem> {
        self.text(name)?.ok_or_else(|| Problem::malformed(format!("`{name}` is missing.")))
    }

    /// Everything but what the hub reads itself, as JSON.
    fn without(&self, names: &[&str]) -> String {
        let mut out = Writer::with_capacity(self.1);
        out.open('{');
        for member in self.0.iter().filter(|member| !names.contains(&&*member.name)) {
            out.name(&member.name);
            out.raw(member.value);
            out.comma();
        }
        out.close('}');
        out.finish()
    }
}

/// `POST agent/sessions`.
fn open(
    core: &mut Core,
    agent: &aaep_engine::Principal,
    object: &Object<'_>,
) -> Result<(SessionId, Said), Problem> {
    let known = ["producer", "summary_normal", "language", "lease_seconds"];
    if let Some(other) = object.0.iter().find(|member| !known.contains(&&*member.name)) {
        let text = format!("`{}` is not known here; {} are.", other.name, known.join(", "));
        return Err(Problem::malformed(text));
    }
    let Some(Raw::Object(producer)) = object.0.find("producer") else {
        return Err(Problem::malformed("`producer` is an object with an `agent_id`."));
    };
    let summary = object.needed("summary_normal")?;
    let language = object.text("language")?.unwrap_or_else(|| "en".to_owned());
    let language = LanguageTag::parse(&*language)
        .map_err(|_| Problem::malformed("`language` is a language tag such as `en` or `yo-NG`."))?;
    let (usual, least, most) = LEASE_SECONDS;
    let lease_seconds = match object.0.find("lease_seconds") {
        None => usual,
        Some(Raw::Number(text)) => text.parse().unwrap_or_default(),
        Some(_) => 0,
    };
    if !(least..=most).contains(&lease_seconds) {
        let text = format!("`lease_seconds` is a whole number from {least} to {most}.");
        return Err(Problem::malformed(text));
    }
    let open = Open { agent, producer, summary: &summary, language, lease_seconds };
    let session = core.open_session(agent, open)?;
    Ok((session, (StatusCode::CREATED, format!(r#"{{"session_id":"{session}"}}"#))))
}

/// `POST agent/sessions/{id}/events`.
fn emit(
    core: &mut Core,
    agent: &aaep_engine::Principal,
    session: SessionId,
    object: &Object<'_>,
) -> Result<Said, Problem> {
    let type_name = object.needed("type")?;
    let mut payload = match EventKind::named(&type_name) {
        Some(EventKind::ToolInvoked) => announcement(core, object)?,
        _ => object.without(&["type"]),
    };
    // An agent says where it goes; where it comes from, the hub knows better.
    let moves = EventKind::parse(&type_name) == Some(EventKind::StateChanged);
    if moves && object.0.find("from_state").is_none() {
        let standing = core.standing(agent, session).ok_or_else(standing::over)?;
        payload = with_member(&payload, "from_state", &standing.state);
    }
    let (event, number) = core.emit(agent, session, &type_name, &payload)?;
    let event = EventId::from_bits(event);
    Ok((StatusCode::CREATED, format!(r#"{{"event_id":"{event}","sequence_number":{number}}}"#)))
}

/// What a tool that runs without a question says of itself. Its `arguments` are for the policy alone:
/// nobody hears them (T14).
// enforces: T14, T27
fn announcement(core: &Core, object: &Object<'_>) -> Result<String, Problem> {
    let ours = ["type", "arguments"];
    let Some(in_force) = &**core.hub.policy() else { return Ok(object.without(&ours)) };
    let tool = object.text("tool")?.unwrap_or_default();
    let arguments = object.0.find("arguments").map(raw_text);
    let ruling = policy::permit(in_force, &tool, arguments.as_deref())?;
    Ok(policy::announce(&ruling, &object.0, &ours))
}

/// `POST agent/sessions/{id}/requests`.
fn ask(
    core: &mut Core,
    agent: &aaep_engine::Principal,
    session: SessionId,
    object: &Object<'_>,
) -> Result<Said, Problem> {
    let kind = match object.needed("kind")?.as_str() {
        "confirmation" => EventKind::AwaitingConfirmation,
        "clarification" => EventKind::AwaitingClarification,
        _ => return Err(Problem::malformed("`kind` is confirmation or clarification.")),
    };
    let tool = object.text("tool")?.unwrap_or_default();
    // Consent is bound to these bytes, as they came.
    let arguments = object.0.find("arguments").map(raw_text).unwrap_or_default();
    let ours = ["kind", "tool", "arguments"];
    let payload = match &**core.hub.policy() {
        Some(in_force) if kind == EventKind::AwaitingConfirmation => {
            policy::strengthen(&in_force.decide(&tool, &arguments), &object.0, &ours)
        }
        _ => object.without(&ours),
    };
    let asked = Ask { agent, session, kind, tool: &tool, arguments: &arguments, payload: &payload };
    let (request, again) = core.ask(asked)?;
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

/// A value as it stands in the text.
fn raw_text(raw: Raw<'_>) -> String {
    match raw {
        Raw::Object(text) | Raw::Array(text) | Raw::Number(text) => text.to_owned(),
        other => {
            let mut out = Writer::new();
            out.raw(other);
            out.finish()
        }
    }
}

/// `GET agent/requests/{id}?wait=`.
async fn wait(hub: &Hub, call: &Call, request: u128) -> Result<Answer, Problem> {
    let until = Instant::now() + Duration::from_secs(wait_seconds(call)?);
    loop {
        // Looked at before the request is: what is decided before the hub stops is told.
        let stopping = hub.is_stopping();
        let agent = call.known.principal.clone();
        let (view, decided) = hub
            .call(move |core| {
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

pub(super) fn wait_seconds(call: &Call) -> Result<u64, Problem> {
    let Some(wait) = query(&call.parts, "wait") else { return Ok(0) };
    let seconds = wait.parse().ok().filter(|seconds| *seconds <= LONGEST_WAIT);
    let text = format!("`wait` is a number of seconds from 0 to {LONGEST_WAIT}.");
    seconds.ok_or_else(|| Problem::malformed(text).under(rule::W8))
}

/// A request as its agent sees it; never with the reply token.
fn view_json(request: u128, view: &View) -> String {
    let mut out = Writer::with_capacity(512);
    // Nothing here needs an escape: identifiers, digits, words of ours.
    for (before, value) in [
        ("{\"request_id\":\"req_", digits_of(&EventId::from_bits(request))),
        ("\",\"event_id\":\"", EventId::from_bits(view.event).as_str()),
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
        Status::Invoked => "invoked",
        Status::Completed => "completed",
        Status::Unknown => "unknown",
    }
}

/// `POST agent/requests/{id}/invoke`.
// enforces: T12, C1, I1
async fn invoke(hub: &Hub, call: &Call, request: u128, bytes: Bytes) -> Result<Answer, Problem> {
    let key = idempotency_key(call)?;
    let known = call.known.clone();
    let granted = hub.call(move |core| -> Result<Option<Grant>, Problem> {
        let agent = &known.principal;
        let key = key.map(|(path, key)| ((agent.name.clone(), path, key), hash_of(&bytes)));
        match key.as_ref().map_or(KeyUse::New, |(key, body)| core.key_use(key, body)) {
            KeyUse::Same(_) => return Ok(core.grant(request)),
            KeyUse::Other => return Err(key_reused()),
            KeyUse::Full => return Err(too_many_keys()),
            KeyUse::New => {}
        }
        let object = Object::read(if bytes.is_empty() { b"{}" } else { &bytes })?;
        if let Some(other) = object.0.iter().find(|member| member.name != "arguments") {
            let text = format!("`{}` is not known here; `arguments` is.", other.name);
            return Err(Problem::malformed(text));
        }
        let arguments = object.0.find("arguments").map(raw_text);
        let session = core.request(agent, request).ok_or_else(lost)?.session;
        core.invoke(agent, request, arguments.as_deref()).map_err(about(request))?;
        if let Some((key, body)) = key {
            let kept = Kept { body, status: 200, answer: String::new() };
            core.keep_call(key, session, kept);
        }
        Ok(core.grant(request))
    });
    // The grant is there once it is durable that the approval was spent; only then the action may
    // run. By the time that the call is answered it is.
    let grant = match granted.await?? {
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
    let until = Instant::now() + Duration::from_secs(wait_seconds(call)?);
    loop {
        let agent = call.known.principal.clone();
        let here = match hub.call(move |core| core.inputs(&agent)).await? {
            Inputs::Here(inputs) => inputs,
            Inputs::Later(more) => {
                let come = tokio::select! {
                    come = timeout_at(until, more) => come.is_ok_and(|come| come.is_ok()),
                    () = hub.stopping() => false,
                };
                if come {
                    continue;
                }
                Vec::new()
            }
        };
        let text = format!(r#"{{"inputs":[{}]}}"#, here.join(","));
        return Ok(json(StatusCode::OK, text));
    }
}
