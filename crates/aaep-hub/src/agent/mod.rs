//! The agent's door: everything that an agent asks of a hub, as typed calls. HTTP and the Unix socket
//! are one way to it ([`crate::http`]), agents in this process another. The hub fills the envelope,
//! keeps the order, and lets each approval be used once.

mod answers;
mod policy;
mod prepare;

use std::time::Duration;

use aaep_engine::{Ask, Blame, Open, Principal, Refusal, RequestId, Status};
use aaep_transport::process::Origin;
use aaep_types::agent_api::{
    AgentInput, ApiError, ApiErrorKind, AskUser, EventPosted, Granted, InvokeAction, OpenSession,
    PostEvent, RequestState, SessionOpened, SessionState,
};
use aaep_types::{EventKind, SessionId, rule};
use tokio::time::{Instant, timeout_at};

use crate::access::{AuthenticatedPeer, SessionSecret};
use crate::core::{Core, Inputs, KeptAnswer, KeyUse};
use crate::hub::{Hub, Stopped};
use crate::waits::Wait;
pub use answers::AskedRequest;
use answers::{Repeatable, request_state, session_state};
use prepare::{Emission, Opening, Question, Readable, Request};

/// The longest that one call waits, in seconds.
const LONGEST_WAIT: u64 = 60;

/// How often a call that waits shows that its agent is there, so that no lease runs out.
const SIGN_OF_LIFE: Duration = Duration::from_secs(10);

/// The longest idempotency key, in bytes.
const KEY_BYTES: usize = 200;

/// The agent API of a hub, as one agent may use it. Cheap to clone.
///
/// Each call that changes something takes an idempotency key: with the same key and request it is
/// done once, however often it is made.
///
/// On a multi-threaded runtime the caller may commit to the journal itself, inside
/// [`tokio::task::block_in_place`]. That panics inside a `LocalSet`: from there, spawn the call on the
/// runtime.
#[derive(Clone)]
pub struct AgentDoor {
    hub: Hub,
    known: AuthenticatedPeer,
}

impl Hub {
    /// The agent API for an agent in this process, which is this principal.
    pub fn agent(&self, agent: &Principal) -> AgentDoor {
        AgentDoor::new(self, AuthenticatedPeer::inside(agent.clone()))
    }
}

/// Where a call that may come twice goes, as it is remembered: the path of the HTTP API.
enum CallPath {
    Sessions,
    Events(SessionId),
    Requests(SessionId),
    Invoke(RequestId),
}

impl CallPath {
    fn path(&self, base: &str) -> String {
        match self {
            Self::Sessions => format!("{base}/agent/sessions"),
            Self::Events(session) => format!("{base}/agent/sessions/{session}/events"),
            Self::Requests(session) => format!("{base}/agent/sessions/{session}/requests"),
            Self::Invoke(request) => format!("{base}/agent/requests/{request}/invoke"),
        }
    }
}

impl AgentDoor {
    pub(crate) fn new(hub: &Hub, known: AuthenticatedPeer) -> Self {
        Self { hub: hub.clone(), known }
    }

    fn agent(&self) -> Principal {
        self.known.principal.clone()
    }

    /// Opens a session.
    pub async fn open(
        &self,
        request: OpenSession,
        key: Option<&str>,
    ) -> Result<SessionOpened, ApiError> {
        self.open_from(Request::Typed(request), key).await
    }

    /// The same, as it came over the wire.
    pub(crate) async fn open_bytes(
        &self,
        bytes: bytes::Bytes,
        key: Option<&str>,
    ) -> Result<SessionOpened, ApiError> {
        self.open_from(Request::Bytes(bytes), key).await
    }

    async fn open_from(
        &self,
        request: Request<OpenSession>,
        key: Option<&str>,
    ) -> Result<SessionOpened, ApiError> {
        let mut door = self.clone();
        let secret = match self.known.lacks_secret() {
            true => Some(new_secret(key.is_some())?),
            false => None,
        };
        if let Some(secret) = &secret {
            door.known.show_secret(secret);
        }
        let hub = self.hub.clone();
        let prepare = move |request| prepare::opening(&hub, request);
        let opened = door.once(CallPath::Sessions, key, request, prepare, open).await?;
        Ok(SessionOpened {
            session_secret: secret.map(|secret| secret.as_str().to_owned()),
            ..opened
        })
    }

    /// Emits an event.
    pub async fn emit(
        &self,
        session: SessionId,
        request: PostEvent,
        key: Option<&str>,
    ) -> Result<EventPosted, ApiError> {
        self.emit_from(session, Request::Typed(request), key).await
    }

    /// The same, as it came over the wire.
    pub(crate) async fn emit_bytes(
        &self,
        session: SessionId,
        bytes: bytes::Bytes,
        key: Option<&str>,
    ) -> Result<EventPosted, ApiError> {
        self.emit_from(session, Request::Bytes(bytes), key).await
    }

    async fn emit_from(
        &self,
        session: SessionId,
        request: Request<PostEvent>,
        key: Option<&str>,
    ) -> Result<EventPosted, ApiError> {
        let hub = self.hub.clone();
        let prepare = move |request| prepare::emission(&hub, session, request);
        let act = move |core: &mut Core, agent: &Principal, event| {
            Ok((session, emit(core, agent, session, event)?))
        };
        self.once(CallPath::Events(session), key, request, prepare, act).await
    }

    /// Asks the user; the answer is waited for with [`request`](Self::request).
    pub async fn ask(
        &self,
        session: SessionId,
        request: AskUser,
        key: Option<&str>,
    ) -> Result<AskedRequest, ApiError> {
        self.ask_from(session, Request::Typed(request), key).await
    }

    /// The same, as it came over the wire.
    pub(crate) async fn ask_bytes(
        &self,
        session: SessionId,
        bytes: bytes::Bytes,
        key: Option<&str>,
    ) -> Result<AskedRequest, ApiError> {
        self.ask_from(session, Request::Bytes(bytes), key).await
    }

    async fn ask_from(
        &self,
        session: SessionId,
        request: Request<AskUser>,
        key: Option<&str>,
    ) -> Result<AskedRequest, ApiError> {
        let (hub, user) = (self.hub.clone(), self.known.principal.user.clone());
        // Whose words the question has may depend on it.
        let language = match hub.policy().is_some() {
            true => self.hub.call(move |core| core.language_of(session)).await?,
            false => None,
        };
        let prepare = move |request| prepare::question(&hub, &user, language.as_deref(), request);
        let act = move |core: &mut Core, agent: &Principal, question| {
            Ok((session, ask(core, agent, session, &question)?))
        };
        self.once(CallPath::Requests(session), key, request, prepare, act).await
    }

    // enforces: I11, I29
    /// A call that may carry an idempotency key: with the same key and body it is done once.
    async fn once<T, P, A>(
        &self,
        place: CallPath,
        key: Option<&str>,
        request: Request<T>,
        prepare: impl FnOnce(T) -> Result<P, ApiError> + Send + 'static,
        act: impl FnOnce(&mut Core, &Principal, P) -> Result<(SessionId, A), ApiError> + Send + 'static,
    ) -> Result<A, ApiError>
    where
        T: Readable + Send + 'static,
        P: Send + 'static,
        A: Repeatable + Send + 'static,
    {
        let key = self.key(&place, key)?;
        let keyed = key.is_some();
        let room = request.room();
        let read = move || request.prepare(keyed, prepare);
        // I30: those who open a session or ask in it are the ones who may not answer.
        let asks = matches!(place, CallPath::Sessions | CallPath::Requests(_));
        let origin = match asks {
            true => self.hub.origin_of_agent(&self.known).await,
            false => Origin::Unknown,
        };
        let (body, turn) = self.hub.read_apart(&self.known.principal, room, read).await?;
        let agent = self.agent();
        if let CallPath::Requests(session) = place {
            self.note_askers(session, &origin).await?;
        }
        let opens = matches!(place, CallPath::Sessions);
        let openers = origin.clone();
        let done = self.hub.call(move |core| -> Result<(A, Option<SessionId>), ApiError> {
            let key = key.map(|(path, key)| ((agent.name.clone(), path, key), body.hash));
            match key.as_ref().map_or(KeyUse::New, |(key, body)| core.key_use(&agent, key, body)) {
                KeyUse::Same(kept) => {
                    let again = A::again(kept.status, &kept.answer).ok_or_else(unreadable)?;
                    return Ok((again, None));
                }
                KeyUse::Other => return Err(key_reused()),
                KeyUse::Full(refusal) => return Err(refusal.into()),
                KeyUse::New => {}
            }
            let (session, answer) = act(core, &agent, body.said?)?;
            if opens {
                core.note_openers(session, &openers);
            }
            if let Some((key, body)) = key {
                let (status, text) = answer.kept();
                let kept = KeptAnswer { body, status, answer: text };
                // What ends a session is remembered beyond it.
                if matches!(place, CallPath::Events(_))
                    && core.session_snapshot(&agent, session).is_some()
                {
                    core.keep_event(&agent, key, session, kept);
                } else {
                    core.keep_call(&agent, key, session, kept);
                }
            }
            Ok((answer, opens.then_some(session)))
        });
        let done = done.await?;
        drop(turn);
        let (answer, opened) = done?;
        if let Some(session) = opened {
            self.hub.keep_processes(session, true, origin.lines().to_vec()).await;
        }
        Ok(answer)
    }

    // enforces: I30
    /// Notes who asks before anything is asked: whoever ends the hub right after it is known all the
    /// same when it starts again.
    async fn note_askers(&self, session: SessionId, origin: &Origin) -> Result<(), ApiError> {
        if origin.lines().is_empty() {
            return Ok(());
        }
        let (agent, origin) = (self.agent(), origin.clone());
        let noted = self.hub.look(move |core| core.note_askers(&agent, session, &origin)).await?;
        let new = noted?;
        if !new.is_empty() {
            self.hub.keep_processes(session, false, new).await;
        }
        Ok(())
    }

    /// The key, and the path that it is for.
    fn key(
        &self,
        place: &CallPath,
        key: Option<&str>,
    ) -> Result<Option<(String, String)>, ApiError> {
        let Some(key) = key else { return Ok(None) };
        let visible = |byte: u8| matches!(byte, b' '..=b'~' | b'\t');
        if key.is_empty() || key.len() > KEY_BYTES || !key.bytes().all(visible) {
            return Err(bad_key());
        }
        Ok(Some((place.path(self.hub.config().base.as_str()), key.to_owned())))
    }

    /// Where a request stands; waits for its outcome, a minute at most.
    pub async fn request(
        &self,
        request: RequestId,
        wait: Duration,
    ) -> Result<RequestState, ApiError> {
        let (until, _wait) = self.begin_wait(wait)?;
        loop {
            // Looked at before the request is: what is decided before the hub stops is told.
            let stopping = self.hub.is_stopping();
            let agent = self.agent();
            let (view, decided) = self
                .hub
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
                // Callers that wait when the hub stops are released without an answer.
                Some(decided) if Instant::now() < until && !stopping => {
                    match timeout_at(slice, decided).await {
                        Ok(Ok(view)) => view,
                        _ => continue,
                    }
                }
                _ => view,
            };
            return Ok(request_state(request, &view));
        }
    }

    /// Withdraws a request, or gives up what was approved.
    pub async fn withdraw(&self, request: RequestId) -> Result<(), ApiError> {
        let agent = self.agent();
        let done = self.hub.call(move |core| {
            let agent = core.stands_for(&agent, request);
            core.withdraw(&agent, request)
        });
        done.await?.map_err(about(request))
    }

    /// Spends an approval: what comes back is to be run, once.
    pub async fn invoke(
        &self,
        request: RequestId,
        action: InvokeAction,
        key: Option<&str>,
    ) -> Result<Granted, ApiError> {
        self.invoke_from(request, Request::Typed(action), key).await
    }

    /// The same, as it came over the wire.
    pub(crate) async fn invoke_bytes(
        &self,
        request: RequestId,
        bytes: bytes::Bytes,
        key: Option<&str>,
    ) -> Result<Granted, ApiError> {
        self.invoke_from(request, Request::Bytes(bytes), key).await
    }

    // enforces: T12, C1, I1
    async fn invoke_from(
        &self,
        request: RequestId,
        action: Request<InvokeAction>,
        key: Option<&str>,
    ) -> Result<Granted, ApiError> {
        let key = self.key(&CallPath::Invoke(request), key)?;
        let (room, keyed) = (action.room(), key.is_some());
        let read = move || action.prepare(keyed, prepare::invocation);
        let (body, turn) = self.hub.read_apart(&self.known.principal, room, read).await?;
        let agent = self.agent();
        let granted = self.hub.call(move |core| {
            let agent = &agent;
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
                let kept = KeptAnswer { body, status: 200, answer: String::new() };
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
            None => self.hub.call(move |core| core.grant(request)).await?,
        };
        let Some(grant) = grant else {
            let text = "This action was begun before, and is over or unknown; ask again.";
            let refusal = Refusal { blame: Blame::OutOfOrder, rule: rule::T12, text: text.into() };
            return Err(about(request)(refusal));
        };
        let arguments = Some(grant.arguments).filter(|arguments| !arguments.is_empty());
        Ok(Granted { tool_call_id: grant.call, arguments })
    }

    /// Where a session stands; waits for its end, a minute at most.
    pub async fn session(
        &self,
        session: SessionId,
        wait: Duration,
    ) -> Result<SessionState, ApiError> {
        let (until, _wait) = self.begin_wait(wait)?;
        loop {
            let agent = self.agent();
            let open = self.hub.call(move |core| match core.session_snapshot(&agent, session) {
                Some(snapshot) => Ok((snapshot, core.when_ended(session))),
                None if core.was_stopped(&agent, session) => Err(stopped()),
                None => Err(over()),
            });
            let (snapshot, ended) = open.await??;
            let slice = until.min(Instant::now() + SIGN_OF_LIFE);
            let leaving = tokio::select! {
                _ = timeout_at(slice, ended) => false,
                () = self.hub.stopping() => true,
            };
            if leaving || Instant::now() >= until {
                return Ok(session_state(session, snapshot));
            }
        }
    }

    /// What came for the agent; waits for something, a minute at most.
    pub async fn inputs(&self, wait: Duration) -> Result<Vec<AgentInput>, ApiError> {
        if self.known.lacks_secret() {
            let text = "Send a token, or the AAEP-Session-Secret of your sessions.";
            return Err(ApiError::new(ApiErrorKind::Unauthorized, text).under(rule::S5));
        }
        let (until, _wait) = self.begin_wait(wait)?;
        loop {
            let agent = self.agent();
            match self.hub.call(move |core| core.inputs(&agent)).await?? {
                Inputs::Here(inputs) => return Ok(inputs),
                Inputs::Later(more) => {
                    let come = tokio::select! {
                        come = timeout_at(until, more) => come.is_ok_and(|come| come.is_ok()),
                        () = self.hub.stopping() => false,
                    };
                    // If the core is gone, the next look says so.
                    if !come && !self.hub.is_broken() {
                        return Ok(Vec::new());
                    }
                }
            }
        }
    }

    /// Until when a call waits, and its place among those that do; `None` if it does not wait.
    fn begin_wait(&self, wait: Duration) -> Result<(Instant, Option<Wait>), ApiError> {
        if wait > Duration::from_secs(LONGEST_WAIT) {
            return Err(bad_wait());
        }
        let waits = !wait.is_zero();
        let place = waits.then(|| self.hub.begin_wait(&self.known.principal)).transpose()?;
        Ok((Instant::now() + wait, place))
    }
}

/// A refusal about a request names it.
fn about(request: RequestId) -> impl Fn(Refusal) -> ApiError {
    move |refusal| ApiError::from(refusal).about(request)
}

fn lost() -> ApiError {
    let text = "There is no such request of yours.";
    ApiError::new(ApiErrorKind::NotFound, text).under(rule::C1)
}

fn over() -> ApiError {
    let text = "There is no such session of yours; it may be over.";
    ApiError::new(ApiErrorKind::NotFound, text)
}

fn stopped() -> ApiError {
    ApiError::new(ApiErrorKind::Stopped, "The user stopped this session; do nothing more for it.")
}

fn key_reused() -> ApiError {
    let text = "This Idempotency-Key was used with another body; use a new one.";
    ApiError::new(ApiErrorKind::KeyReused, text)
}

pub(crate) fn bad_key() -> ApiError {
    let text = format!("An Idempotency-Key has 1 to {KEY_BYTES} visible characters.");
    ApiError::malformed(text).under(rule::W8)
}

pub(crate) fn bad_wait() -> ApiError {
    let text = format!("`wait` is a number of seconds from 0 to {LONGEST_WAIT}.");
    ApiError::malformed(text).under(rule::W8)
}

/// An answer of an earlier version that this one cannot read.
fn unreadable() -> ApiError {
    let text = "What was answered to this Idempotency-Key cannot be read; use a new one.";
    ApiError::new(ApiErrorKind::Unavailable, text)
}

// enforces: S4
/// A secret for an agent that begins with neither a token nor a secret of its own. It is told once: what
/// is remembered for an idempotency key would be told again to anyone who repeats the key, so both do not
/// go together.
fn new_secret(with_key: bool) -> Result<SessionSecret, ApiError> {
    if with_key {
        let text = "An Idempotency-Key without a token needs a secret of your own: send \
                    AAEP-Session-Secret, aaeps_ and 43 random characters of base64url.";
        return Err(ApiError::malformed(text).under(rule::S5));
    }
    SessionSecret::generate()
        .map_err(|fault| ApiError::new(ApiErrorKind::Unavailable, fault.to_string()))
}

fn open(
    core: &mut Core,
    agent: &Principal,
    opening: Opening,
) -> Result<(SessionId, SessionOpened), ApiError> {
    let Opening { producer, summary, language, lease_seconds, payload, asks_to_follow } = opening;
    let (producer, summary, payload) = (&*producer, &*summary, &*payload);
    let open = Open { agent, producer, summary, language, lease_seconds, payload };
    let session = core.open_session(agent, open)?;
    core.note_said(session, EventKind::SessionStarted.as_str(), &asks_to_follow);
    Ok((session, SessionOpened { session_id: session, session_secret: None }))
}

fn emit(
    core: &mut Core,
    agent: &Principal,
    session: SessionId,
    event: Emission,
) -> Result<EventPosted, ApiError> {
    let Emission { mut event, arguments, speaker, piece, refused, asks_to_follow } = event;
    let named = speaker;
    let speaker = core.speaks_in(agent, session, named.as_deref(), event.type_name())?;
    let agent = &speaker.agent;
    // enforces: T14, S4
    // What follows depends on what was said before in an output, which nobody else may learn.
    if piece.is_some() || refused.is_some() {
        core.may_speak(agent, session, named.as_deref())?;
    }
    if let Some(refused) = refused {
        return Err(refused);
    }
    if event.lacks_from_state() {
        let snapshot = core.session_snapshot(agent, session).ok_or_else(over)?;
        event = event.with_text("from_state", &snapshot.state);
    }
    if piece.as_ref().is_some_and(|piece| !core.hub.0.outputs.follows(piece)) {
        let text = "Another piece of this output came at the same time. Send one after the other: wait for the answer, then send this one again.";
        return Err(Refusal { blame: Blame::OutOfOrder, rule: rule::T17, text: text.into() }.into());
    }
    let (id, number) = core.emit(agent, session, &event, arguments.as_ref(), &asks_to_follow)?;
    core.claim(speaker)?;
    piece.into_iter().for_each(|piece| core.note_piece(piece));
    Ok(EventPosted { event_id: id.id(), sequence_number: number })
}

fn ask(
    core: &mut Core,
    agent: &Principal,
    session: SessionId,
    question: &Question,
) -> Result<AskedRequest, ApiError> {
    let name = question.asked.kind().as_str();
    let speaker = core.speaks_in(agent, session, question.speaker.as_deref(), name)?;
    let agent = &speaker.agent.clone();
    let described_by = question.described_by;
    let asked = Ask { agent, session, question: &question.asked, described_by };
    let (request, again) = core.ask(asked)?;
    core.claim(speaker)?;
    core.note_said(session, EventKind::StateChanged.as_str(), &[]);
    core.note_said(session, name, &question.asks_to_follow);
    let view = core.request(agent, request).ok_or_else(lost)?;
    Ok(AskedRequest { state: request_state(request, &view), again })
}

impl From<Stopped> for ApiError {
    fn from(_: Stopped) -> Self {
        let text =
            "The hub cannot make anything durable now, or is about to stop; try again later.";
        Self::new(ApiErrorKind::Unavailable, text).under(rule::C13)
    }
}

impl From<crate::redaction::SecretFound> for ApiError {
    fn from(refused: crate::redaction::SecretFound) -> Self {
        Self::malformed(refused.text()).under(rule::T14)
    }
}

#[cfg(test)]
mod tests {
    use aaep_engine::Role;

    use super::*;
    use crate::panics;

    // covers: T14, T17
    #[tokio::test(flavor = "multi_thread")]
    async fn a_secret_does_not_pass_in_two_pieces_that_come_at_once() {
        let place = tempfile::tempdir().unwrap();
        let running = panics::run(place.path()).await;
        let hub = running.hub().clone();
        let agent = Principal::new("cook", Role::Agent, "ann");
        let opening = r#"{"producer":{"agent_id":"cook"},"summary_normal":"Cooking."}"#;
        let opening = OpenSession::parse(opening.as_bytes()).unwrap();
        let session = hub.agent(&agent).open(opening, None).await.unwrap().session_id;
        let piece = |text: &str, position: usize| {
            let event = format!(
                r#"{{"type":"aaep:agent.output.streaming","output_id":"out_1","chunk":"{text}","position":{position},"complete":false}}"#
            );
            let event = PostEvent::parse(event.as_bytes()).unwrap();
            prepare::emission(&hub, session, event).unwrap()
        };
        // Somebody else learns nothing of what was said, nor that a piece would be refused.
        let stranger = Principal::new("thief", Role::Agent, "eve");
        let mut guess = piece("anything", 0);
        guess.refused = Some(ApiError::malformed("It would complete a secret."));
        let (told, guessed) = hub
            .call({
                let plain = piece("anything", 0);
                move |core| {
                    let told = emit(core, &stranger, session, plain).map(drop);
                    (told, emit(core, &stranger, session, guess).map(drop))
                }
            })
            .await
            .unwrap();
        assert_eq!(told.as_ref().unwrap_err().kind, ApiErrorKind::NotFound);
        assert_eq!(format!("{told:?}"), format!("{guessed:?}"));
        // Both were read before either was said.
        let (first, second) = (piece("The password=", 0), piece("hunter2, as ever.", 13));
        let emitted = hub.call(move |core| {
            let first = emit(core, &agent, session, first).map(drop);
            (first, emit(core, &agent, session, second).map(drop), agent)
        });
        let (first, second, agent) = emitted.await.unwrap();
        first.unwrap();
        let refused = second.unwrap_err();
        assert_eq!(refused.kind, ApiErrorKind::Conflict, "{refused:?}");
        // Sent again after the other it is taken, without what both together say.
        let again = piece("hunter2, as ever.", 13);
        assert!(!format!("{:?}", again.event).contains("hunter2"), "{:?}", again.event);
        hub.call(move |core| emit(core, &agent, session, again).map(drop)).await.unwrap().unwrap();
        running.stop().await.unwrap();
    }
}
