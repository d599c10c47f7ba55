//! The doors of a playback: streams over HTTP, WebSockets, Unix sockets, links of any kind.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use aaep_transport::link::Link;
use aaep_transport::peer::{Peer, PeerUser};
use aaep_transport::server::{Long, RequestBody, read_body};
use aaep_transport::{sse, ws};
use aaep_types::{AAEP_VERSION, Message, SubscriptionId, captured};
use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_TYPE, LOCATION, ORIGIN};
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use tokio::sync::mpsc;
use tokio::time::{Interval, interval};
use tower_service::Service;

use super::player::{Played, Stage, random};

const MAX_BODY: usize = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(10);
const KEEP_ALIVE: Duration = Duration::from_secs(15);

#[derive(Clone)]
pub(super) struct Door {
    pub(super) stage: Arc<Stage>,
    pub(super) guests: Guests,
}

/// Who is let in at a door: programs of the user that plays, and root's, where the system tells whose
/// they are. A capture is private, and so is what is played of it.
#[derive(Clone, Copy)]
pub(super) enum Guests {
    /// Those that the kernel let in at a Unix socket.
    #[cfg_attr(not(unix), allow(dead_code))]
    Known,
    /// Those that connect to this address, over loopback.
    At(SocketAddr),
}

impl Guests {
    /// Whether this system tells whose program connects over loopback.
    pub(super) const ARE_TOLD: bool = cfg!(target_os = "linux");

    /// Why somebody is not let in.
    pub(super) fn refuses(self, stage: &Stage, peer: Option<&Peer>) -> Option<&'static str> {
        let Self::At(listener) = self else { return None };
        let user = peer.map_or(PeerUser::Unknown, |peer| peer.user(listener));
        match user {
            PeerUser::Own => None,
            PeerUser::Unknown if !Self::ARE_TOLD => None,
            PeerUser::Other(uid) => {
                stage.refused(uid);
                Some("This recording is for programs of the user who plays it.")
            }
            PeerUser::Unknown => {
                Some("Whose program this is cannot be shown, so nothing is played.")
            }
        }
    }
}

pub(super) enum Body {
    Whole(Option<Bytes>),
    Events { stage: Arc<Stage>, played: mpsc::Receiver<Played>, alive: Interval, named: bool },
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Events { stage, played, alive, named } => {
                if let Poll::Ready(next) = played.poll_recv(context) {
                    let Some(next) = next else {
                        stage.over.notify_one();
                        return Poll::Ready(None);
                    };
                    let mut frame = BytesMut::new();
                    let name = named.then_some("aaep.event");
                    sse::write_frame(&mut frame, name, next.event_id.as_deref(), &next.text);
                    return Poll::Ready(Some(Ok(Frame::data(frame.freeze()))));
                }
                let tick = alive.poll_tick(context);
                tick.map(|_| Some(Ok(Frame::data(Bytes::from_static(sse::KEEP_ALIVE.as_bytes())))))
            }
        }
    }
}

impl Service<Request<RequestBody>> for Door {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let refused = self.guests.refuses(&self.stage, request.extensions().get());
        if let Some(why) = refused {
            return Box::pin(std::future::ready(Ok(whole(StatusCode::FORBIDDEN, why.to_owned()))));
        }
        let stage = self.stage.clone();
        Box::pin(async move { Ok(answer(stage, request).await) })
    }
}

async fn answer(stage: Arc<Stage>, request: Request<RequestBody>) -> Response<Body> {
    // A recording may be private: pages of a browser do not hear it.
    if request.headers().contains_key(ORIGIN) {
        return whole(StatusCode::FORBIDDEN, String::new());
    }
    let path = request.uri().path().to_owned();
    let path = path.strip_prefix("/aaep/v1").unwrap_or(&path).to_owned();
    match (request.method().clone(), path.as_str()) {
        (Method::GET, "/events") => {
            let last = request.headers().get("last-event-id");
            let last = last.and_then(|id| id.to_str().ok()).map(str::to_owned);
            let query = request.uri().query();
            let named = query.is_some();
            let subscription = query
                .and_then(|query| {
                    query.split('&').find_map(|part| part.strip_prefix("subscription_id="))
                })
                .map(str::to_owned);
            let played = stage.play(last, subscription);
            let body = Body::Events { stage, played, alive: interval(KEEP_ALIVE), named };
            let mut response = Response::new(body);
            response.extensions_mut().insert(Long);
            let kind = http::HeaderValue::from_static(sse::CONTENT_TYPE);
            response.headers_mut().insert(CONTENT_TYPE, kind);
            response
        }
        (Method::GET, "/ws") => web_socket(stage, request),
        (Method::POST, "/subscriptions" | "/replies" | "/messages") => {
            let Ok(body) = read_body(request.into_body(), MAX_BODY, PATIENCE).await else {
                return whole(StatusCode::BAD_REQUEST, String::new());
            };
            match Message::parse(&body) {
                Ok(Message::Request(asked)) => match accepted(&asked.capabilities.to_json()) {
                    Ok((id, granted)) => created(&id, granted),
                    Err(why) => whole(StatusCode::SERVICE_UNAVAILABLE, why),
                },
                Ok(message) => {
                    stage.reply(&message);
                    whole(StatusCode::NO_CONTENT, String::new())
                }
                Err(_) if path == "/subscriptions" => whole(StatusCode::BAD_REQUEST, String::new()),
                Err(_) => whole(StatusCode::NO_CONTENT, String::new()),
            }
        }
        _ => whole(StatusCode::NOT_FOUND, String::new()),
    }
}

fn whole(status: StatusCode, text: String) -> Response<Body> {
    let body = (!text.is_empty()).then(|| Bytes::from(text));
    let mut response = Response::new(Body::Whole(body));
    *response.status_mut() = status;
    response
}

fn created(subscription: &str, granted: String) -> Response<Body> {
    let mut response = whole(StatusCode::CREATED, granted);
    let place = format!("/aaep/v1/events?subscription_id={subscription}");
    if let Ok(place) = place.try_into() {
        response.headers_mut().insert(LOCATION, place);
    }
    response
}

/// A new subscription, and the message that grants it.
pub(super) fn accepted(capabilities: &str) -> Result<(String, String), String> {
    let id = SubscriptionId::from_bits(random()?).as_str().to_owned();
    let granted = captured::accepted(&id, AAEP_VERSION, capabilities);
    Ok((id, granted))
}

fn web_socket(stage: Arc<Stage>, request: Request<RequestBody>) -> Response<Body> {
    let (parts, _) = request.into_parts();
    let mut request = Request::from_parts(parts, ());
    match ws::upgrade(&mut request) {
        Ok(upgrade) => {
            let (pending, negotiated) = (upgrade.pending, upgrade.negotiated);
            tokio::spawn(async move {
                if let Ok(link) = pending.link(aaep_transport::link::Options::default()).await {
                    serve_link(&stage, link, negotiated).await;
                }
            });
            upgrade.response.map(|()| Body::Whole(None))
        }
        Err(refusal) => whole(refusal.status(), refusal.to_string()),
    }
}

/// Plays over a link, once a subscription was asked for.
pub(super) async fn serve_link(stage: &Arc<Stage>, link: Link, negotiated: bool) {
    let (mut sender, mut receiver) = link.split();
    let mut subscription = None;
    while negotiated && subscription.is_none() {
        let Ok(Ok(Some(text))) = tokio::time::timeout(3 * PATIENCE, receiver.receive()).await
        else {
            return;
        };
        if let Ok(Message::Request(asked)) = Message::parse(text.as_bytes()) {
            let Ok((id, granted)) = accepted(&asked.capabilities.to_json()) else { return };
            if sender.send(granted).await.is_err() {
                return;
            }
            subscription = Some(id);
        }
    }
    let mut played = stage.play(None, subscription);
    loop {
        tokio::select! {
            next = played.recv() => match next {
                Some(next) => if sender.send(next.text).await.is_err() { return },
                None => break,
            },
            message = receiver.receive() => match message {
                Ok(Some(text)) => match Message::parse(text.as_bytes()) {
                    Ok(Message::Close(_)) => break,
                    Ok(message) => stage.reply(&message),
                    Err(_) => {}
                },
                _ => return,
            },
        }
    }
    let _ = sender.close(ws::close::CLOSED, "the recording is over").await;
    stage.over.notify_one();
}

#[cfg(unix)]
pub(super) async fn serve_socket(listener: aaep_transport::unix::Listener, stage: Arc<Stage>) {
    use aaep_transport::server::{Limits, serve_connection};
    use aaep_transport::unix::Spoken;
    loop {
        let (connection, stage) = (listener.accept_any().await, stage.clone());
        tokio::spawn(async move {
            match connection.spoken(PATIENCE).await {
                Some(Spoken::Http(stream, peer)) => {
                    let (limits, stop) = (Limits::default(), std::future::pending());
                    let door = Door { stage, guests: Guests::Known };
                    serve_connection(stream, peer, &limits, door, stop).await;
                }
                Some(Spoken::Messages(link)) => serve_link(&stage, *link, true).await,
                None => {}
            }
        });
    }
}
