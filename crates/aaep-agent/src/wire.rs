//! The one seam between this library and a hub: the calls of the agent API, over HTTP or in the same
//! process. Everything above is the same code wherever the hub is.

use std::sync::atomic::AtomicBool;
#[cfg(feature = "embedded")]
use std::sync::atomic::Ordering;
use std::time::Duration;

use aaep_transport::client::{ClientError, HttpClient, SESSION_SECRET_HEADER, SessionSecret};
use aaep_types::SessionId;
use aaep_types::agent_api::{
    AgentInput, AskUser, EventPosted, Granted, InvokeAction, OpenSession, PostEvent, RequestState,
    SessionOpened, SessionState, read_inputs,
};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method};

use crate::error::{HubRefusal, ODD_ANSWER, Source};

/// Where the hub is.
pub(crate) enum Wire {
    /// Somewhere else.
    Remote(Box<HttpClient>),
    /// In this process.
    #[cfg(feature = "embedded")]
    Embedded(aaep_hub::AgentDoor),
}

/// What goes with a call besides what it asks for.
#[derive(Clone, Copy)]
pub(crate) struct Envelope<'a> {
    /// The idempotency key, if the call changes something.
    pub(crate) key: Option<&'a str>,
    /// The secret of the session.
    pub(crate) secret: Option<&'a SessionSecret>,
    /// Becomes true before anything of the call can reach the hub.
    pub(crate) sent: &'a AtomicBool,
}

/// There is no answer that counts.
pub(crate) enum Lost {
    /// The hub refused.
    Refused(HubRefusal),
    /// An answer may come if the same is sent again.
    Later(Source),
    /// It never will.
    Never(Source),
}

impl Lost {
    fn odd() -> Self {
        Self::Never(Box::<dyn std::error::Error + Send + Sync>::from(ODD_ANSWER).into())
    }
}

/// Calls a hub in this process.
#[cfg(feature = "embedded")]
macro_rules! embedded {
    ($envelope:expr, $call:expr) => {{
        $envelope.sent.store(true, Ordering::Relaxed);
        $call.await.map_err(refused)
    }};
}

impl Wire {
    pub(crate) async fn open(
        &self,
        request: &OpenSession,
        envelope: Envelope<'_>,
    ) -> Result<SessionOpened, Lost> {
        match self {
            Self::Remote(client) => {
                let body = post(client, "agent/sessions", request.to_json(), envelope).await?;
                SessionOpened::parse(&body).ok_or_else(Lost::odd)
            }
            #[cfg(feature = "embedded")]
            Self::Embedded(door) => {
                embedded!(envelope, door.open(request.clone(), envelope.key))
            }
        }
    }

    pub(crate) async fn emit(
        &self,
        session: SessionId,
        event: &PostEvent,
        envelope: Envelope<'_>,
    ) -> Result<EventPosted, Lost> {
        match self {
            Self::Remote(client) => {
                let path = format!("agent/sessions/{session}/events");
                let body = post(client, &path, event.to_json(), envelope).await?;
                EventPosted::parse(&body).ok_or_else(Lost::odd)
            }
            #[cfg(feature = "embedded")]
            Self::Embedded(door) => {
                embedded!(envelope, door.emit(session, event.clone(), envelope.key))
            }
        }
    }

    pub(crate) async fn ask(
        &self,
        session: SessionId,
        question: &AskUser,
        envelope: Envelope<'_>,
    ) -> Result<RequestState, Lost> {
        match self {
            Self::Remote(client) => {
                let path = format!("agent/sessions/{session}/requests");
                let body = post(client, &path, question.to_json(), envelope).await?;
                RequestState::parse(&body).ok_or_else(Lost::odd)
            }
            #[cfg(feature = "embedded")]
            Self::Embedded(door) => {
                let asked = door.ask(session, question.clone(), envelope.key);
                embedded!(envelope, asked).map(|asked| asked.state)
            }
        }
    }

    pub(crate) async fn request(
        &self,
        request: &str,
        wait: Duration,
        envelope: Envelope<'_>,
    ) -> Result<RequestState, Lost> {
        match self {
            Self::Remote(client) => {
                let path = format!("agent/requests/{request}?wait={}", wait.as_secs());
                let body = get(client, &path, envelope).await?;
                RequestState::parse(&body).ok_or_else(Lost::odd)
            }
            #[cfg(feature = "embedded")]
            Self::Embedded(door) => {
                embedded!(envelope, door.request(request_id(request)?, wait))
            }
        }
    }

    pub(crate) async fn withdraw(&self, request: &str, envelope: Envelope<'_>) -> Result<(), Lost> {
        match self {
            Self::Remote(client) => {
                let path = format!("agent/requests/{request}");
                remote(client, Method::DELETE, &path, Bytes::new(), envelope).await.map(drop)
            }
            #[cfg(feature = "embedded")]
            Self::Embedded(door) => embedded!(envelope, door.withdraw(request_id(request)?)),
        }
    }

    pub(crate) async fn invoke(
        &self,
        request: &str,
        action: &InvokeAction,
        envelope: Envelope<'_>,
    ) -> Result<Granted, Lost> {
        match self {
            Self::Remote(client) => {
                let path = format!("agent/requests/{request}/invoke");
                let body = post(client, &path, action.to_json(), envelope).await?;
                Granted::parse(&body).ok_or_else(Lost::odd)
            }
            #[cfg(feature = "embedded")]
            Self::Embedded(door) => {
                let id = request_id(request)?;
                embedded!(envelope, door.invoke(id, action.clone(), envelope.key))
            }
        }
    }

    pub(crate) async fn session(
        &self,
        session: SessionId,
        wait: Duration,
        envelope: Envelope<'_>,
    ) -> Result<SessionState, Lost> {
        match self {
            Self::Remote(client) => {
                let path = format!("agent/sessions/{session}?wait={}", wait.as_secs());
                let body = get(client, &path, envelope).await?;
                SessionState::parse(&body).ok_or_else(Lost::odd)
            }
            #[cfg(feature = "embedded")]
            Self::Embedded(door) => embedded!(envelope, door.session(session, wait)),
        }
    }

    pub(crate) async fn inputs(
        &self,
        wait: Duration,
        envelope: Envelope<'_>,
    ) -> Result<Vec<AgentInput>, Lost> {
        match self {
            Self::Remote(client) => {
                let path = format!("agent/inputs?wait={}", wait.as_secs());
                Ok(read_inputs(&get(client, &path, envelope).await?))
            }
            #[cfg(feature = "embedded")]
            Self::Embedded(door) => embedded!(envelope, door.inputs(wait)),
        }
    }
}

/// The request of this name; one that nobody can have is nobody's.
#[cfg(feature = "embedded")]
fn request_id(text: &str) -> Result<aaep_engine::RequestId, Lost> {
    use aaep_types::agent_api::{ApiError, ApiErrorKind};
    let unknown = || ApiError::new(ApiErrorKind::NotFound, "There is no such request of yours.");
    aaep_engine::RequestId::parse(text).ok_or_else(|| refused(unknown()))
}

#[cfg(feature = "embedded")]
fn refused(error: aaep_types::agent_api::ApiError) -> Lost {
    use aaep_types::agent_api::ApiErrorKind;
    match error.kind {
        ApiErrorKind::Unavailable => Lost::Later(std::sync::Arc::new(error)),
        _ => Lost::Refused(error.into()),
    }
}

async fn get(client: &HttpClient, path: &str, envelope: Envelope<'_>) -> Result<Bytes, Lost> {
    remote(client, Method::GET, path, Bytes::new(), envelope).await
}

async fn post(
    client: &HttpClient,
    path: &str,
    body: String,
    envelope: Envelope<'_>,
) -> Result<Bytes, Lost> {
    remote(client, Method::POST, path, body.into(), envelope).await
}

async fn remote(
    client: &HttpClient,
    method: Method,
    path: &str,
    body: Bytes,
    envelope: Envelope<'_>,
) -> Result<Bytes, Lost> {
    let mut headers = HeaderMap::new();
    if method == Method::POST {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    if let Some(key) = envelope.key.and_then(|key| HeaderValue::from_str(key).ok()) {
        headers.insert("idempotency-key", key);
    }
    if let Some(secret) = envelope.secret.and_then(SessionSecret::header) {
        headers.insert(SESSION_SECRET_HEADER, secret);
    }
    let answer = client.request_noting(method, path, headers, body, envelope.sent).await;
    let answer = answer.map_err(|error| match error {
        ClientError::Unreachable(_) | ClientError::Broken(_) | ClientError::TooSlow => {
            Lost::Later(std::sync::Arc::new(error))
        }
        _ => Lost::Never(std::sync::Arc::new(error)),
    })?;
    match answer.status.as_u16() {
        200..300 => Ok(answer.body),
        status if is_passing(status) => {
            let text = HubRefusal::read(status, &answer.body).text;
            Err(Lost::Later(Box::<dyn std::error::Error + Send + Sync>::from(text).into()))
        }
        status => Err(Lost::Refused(HubRefusal::read(status, &answer.body))),
    }
}

/// Statuses that pass: the hub stops, cannot keep anything, or a proxy cannot reach it.
fn is_passing(status: u16) -> bool {
    matches!(status, 408 | 502 | 503 | 504)
}
