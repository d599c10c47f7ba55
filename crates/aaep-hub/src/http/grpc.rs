//! gRPC (B.5): the same visitors, guards, limits and answers as over HTTP, behind other framing.
//!
//! Every call is looked at before tonic reads its messages, by the same function as a request over HTTP.
//! A refusal is a status; its text is what the HTTP interface would have answered.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use aaep_transport::grpc::wire::aaep_service_server::{AaepService, AaepServiceServer};
use aaep_transport::grpc::wire::{AaepMessage, GetManifestRequest, ListenRequest, Manifest};
use aaep_transport::grpc::{
    self, HANDSHAKE, NO_HANDSHAKE, Sent, WRAPPING, status_of_http, wrapped,
};
use aaep_transport::peer::Peer;
use aaep_transport::ws::close;
use aaep_types::rule;
use bytes::Bytes;
use futures_util::Stream;
use http::header::{CONTENT_TYPE, HOST};
use http::{HeaderValue, Request, Response, StatusCode};
use hyper::body::Incoming;
use tonic::{Status, Streaming};
use tower_service::Service;

use super::body::Linger;
use super::route::Route;
use super::{Call, HttpResponse, Problem, Visitor, events, links, look, messages, operations};
use crate::core::{Attached, Framing};
use crate::hub::Hub;
use crate::outbox::{End, Hearing};
use crate::pace::When;

/// The service behind every connection that speaks gRPC.
#[derive(Clone)]
pub(crate) struct GrpcDoor {
    hub: Hub,
    calls: AaepServiceServer<Calls>,
}

impl GrpcDoor {
    pub(crate) fn new(hub: Hub) -> Self {
        let most = hub.config().limits.reply_bytes + WRAPPING;
        let calls = AaepServiceServer::new(Calls { hub: hub.clone() });
        Self { calls: calls.max_decoding_message_size(most), hub }
    }
}

/// Where a call goes, as the HTTP interface knows it.
fn route_of(path: &str) -> Option<Route> {
    match path.strip_prefix("/aaep.v1.AaepService/")? {
        "Subscribe" => Some(Route::WebSocket),
        "Open" => Some(Route::Subscriptions),
        "Listen" => Some(Route::Events),
        "Reply" => Some(Route::Replies),
        "GetManifest" => Some(Route::Manifest),
        _ => None,
    }
}

impl Service<Request<Incoming>> for GrpcDoor {
    type Response = Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    // enforces: W11, W5, S5
    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        let (parts, body) = request.into_parts();
        let Some(route) = route_of(parts.uri.path()) else {
            let status = Status::unimplemented("There is no such call in aaep.v1.AaepService.");
            return Box::pin(std::future::ready(Ok(status.into_http())));
        };
        let is_grpc = parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if !is_grpc.is_some_and(|kind| kind.starts_with("application/grpc")) {
            let status = Status::invalid_argument("This address speaks gRPC alone.");
            return Box::pin(std::future::ready(Ok(status.into_http())));
        }
        let mut request = Request::from_parts(parts.clone(), body);
        // What is inside is JSON; gRPC says so in the `.proto`.
        let mut parts = parts;
        parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        // HTTP/2 says in `:authority` where a call goes; where there is a `host` as well, both count.
        if let Some(host) = parts.uri.authority().filter(|_| !parts.headers.contains_key(HOST))
            && let Ok(host) = HeaderValue::from_str(host.as_str())
        {
            parts.headers.insert(HOST, host);
        }
        match look(&self.hub, parts, Some(route)) {
            Ok((Visitor::AuthenticatedPeer(call), _)) => {
                request.extensions_mut().insert(Arc::new(*call));
            }
            Ok((Visitor::Anybody(_), _)) => {}
            Err(answer) => {
                let status = refusal(*answer);
                return Box::pin(std::future::ready(Ok(status.into_http())));
            }
        }
        let mut calls = self.calls.clone();
        Box::pin(async move { calls.call(request).await })
    }
}

/// A refusal of the HTTP interface, as a status.
fn refusal(answer: HttpResponse) -> Status {
    let (head, body) = answer.into_parts();
    status_of_http(head.status, String::from_utf8_lossy(&body.into_whole()))
}

struct Calls {
    hub: Hub,
}

/// Who calls, as it was found before the message was read.
fn caller<T>(request: &tonic::Request<T>) -> Result<Arc<Call>, Status> {
    let call = request.extensions().get::<Arc<Call>>();
    call.cloned().ok_or_else(|| Status::unauthenticated("Nobody knows who calls."))
}

impl Calls {
    // enforces: I22, W6
    /// Who calls, and with which message, within the bound of the HTTP interface.
    fn message(&self, request: tonic::Request<AaepMessage>) -> Result<(Arc<Call>, Bytes), Status> {
        let call = caller(&request)?;
        let (json, most) = (request.into_inner().json, self.hub.config().limits.reply_bytes);
        if json.len() <= most {
            return Ok((call, json));
        }
        let text =
            format!("A message has at most {most} bytes here (limits.reply_bytes); send less.");
        let problem = Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", text);
        Err(problem.under(rule::E21).into_status())
    }

    /// Does what a call asks for, counted and paced as the same request over HTTP is.
    async fn paced<T: Send>(
        &self,
        call: &Call,
        when: When,
        bytes: usize,
        doing: impl Future<Output = Result<T, Problem>> + Send,
    ) -> Result<T, Status> {
        let begun = self.hub.0.calls.begin(&call.known.principal);
        // Streams are bounded as subscriptions.
        let _call = match begun {
            Ok(begun) => (call.route != Route::Events).then_some(begun),
            Err(refusal) => return Err(Problem::from(refusal).into_status()),
        };
        let user = call.known.principal.user.clone();
        let done = self.hub.0.pace.work(Some(user), when, bytes as u64, doing).await;
        done.map_err(Problem::into_status)
    }
}

fn said(answer: HttpResponse) -> tonic::Response<AaepMessage> {
    tonic::Response::new(wrapped(answer.into_body().into_whole()))
}

#[tonic::async_trait]
impl AaepService for Calls {
    type SubscribeStream = Sent;
    type ListenStream = Listening;

    async fn subscribe(
        &self,
        request: tonic::Request<Streaming<AaepMessage>>,
    ) -> Result<tonic::Response<Sent>, Status> {
        let call = caller(&request)?;
        let peer = request.extensions().get::<Peer>().cloned();
        let peer =
            peer.ok_or_else(|| Status::internal("Nobody knows where the call came from."))?;
        let handshake = request.metadata().get(HANDSHAKE);
        let negotiated = handshake.is_none_or(|value| value.as_bytes() != NO_HANDSHAKE.as_bytes());
        let options = links::options(&self.hub);
        let (link, sent) = grpc::accept(request.into_inner(), peer, &options);
        let (hub, known) = (self.hub.clone(), call.known.clone());
        tokio::spawn(async move { links::serve_link(&hub, known, link, negotiated).await });
        Ok(tonic::Response::new(sent))
    }

    async fn open(
        &self,
        request: tonic::Request<AaepMessage>,
    ) -> Result<tonic::Response<AaepMessage>, Status> {
        let (call, json) = self.message(request)?;
        let size = json.len();
        let opening = events::subscribe(&self.hub, &call, json);
        self.paced(&call, When::Before, size, opening).await.map(said)
    }

    async fn listen(
        &self,
        request: tonic::Request<ListenRequest>,
    ) -> Result<tonic::Response<Listening>, Status> {
        let call = caller(&request)?;
        let asked = request.into_inner();
        let last = Some(asked.last_event_id.as_str()).filter(|last| !last.is_empty());
        let known = &call.known;
        let opening = async {
            match asked.subscription_id.as_str() {
                "" => events::listen_unnegotiated(&self.hub, known, Framing::Message).await,
                id => events::attach(&self.hub, known, id, last, Framing::Message).await,
            }
        };
        let heard = self.paced(&call, When::Before, 0, opening).await?;
        Ok(tonic::Response::new(Listening::from(heard)))
    }

    async fn reply(
        &self,
        request: tonic::Request<AaepMessage>,
    ) -> Result<tonic::Response<AaepMessage>, Status> {
        let (call, json) = self.message(request)?;
        let size = json.len();
        let replying = messages::reply(&self.hub, &call, json);
        self.paced(&call, When::After, size, replying).await.map(said)
    }

    async fn get_manifest(
        &self,
        request: tonic::Request<GetManifestRequest>,
    ) -> Result<tonic::Response<Manifest>, Status> {
        let answer = match caller(&request) {
            Ok(call) => {
                let making = operations::manifest(&self.hub, &call);
                self.paced(&call, When::Before, 0, making).await?
            }
            // Everybody may see the hub's own part.
            Err(_) => {
                let headers = http::HeaderMap::new();
                operations::open(&self.hub, &Route::Manifest, &headers).await
            }
        };
        Ok(tonic::Response::new(Manifest { json: answer.into_body().into_whole() }))
    }
}

/// The events of one call of `Listen`.
struct Listening {
    hearing: Hearing,
    linger: Linger,
    /// What is taken now goes out with what was taken just before.
    in_batch: bool,
}

impl From<Attached> for Listening {
    fn from(heard: Attached) -> Self {
        Self { hearing: heard.hearing, linger: Linger::default(), in_batch: false }
    }
}

impl Stream for Listening {
    type Item = Result<AaepMessage, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if !this.in_batch && this.linger.pays(this.hearing.outbox.waiting()) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let polled = this.hearing.outbox.poll_frame(context);
        this.in_batch = polled.is_ready();
        polled.map(|frame| match frame {
            Ok(json) => Some(Ok(wrapped(json))),
            Err(End::Closed) => None,
            Err(end) => {
                let (code, why) = match end {
                    End::Denied => (close::AUTHENTICATION, "no longer let in"),
                    End::Rejected => (close::REJECTED, "rejected"),
                    End::TakenOver => (close::CLOSED, "taken over by another connection"),
                    End::Stopping | End::Closed => (close::GOING_AWAY, "the hub stops"),
                };
                grpc::closing(code, why).map(Err)
            }
        })
    }
}
