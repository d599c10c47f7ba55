//! The doors of the stage through which messages go both ways: WebSocket, gRPC, and links of any kind.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

use aaep_transport::grpc::wire::aaep_service_server::{AaepService, AaepServiceServer};
use aaep_transport::grpc::wire::{AaepMessage, GetManifestRequest, ListenRequest, Manifest};
use aaep_transport::grpc::{self, HANDSHAKE, Sent, wrapped};
use aaep_transport::link::{Link, Options};
use aaep_transport::peer::Peer;
use aaep_transport::server::{RequestBody, Server};
use aaep_transport::ws;
use futures_util::Stream;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tonic::{Status, Streaming};
use tower_service::Service;

use super::stage::{Out, Shared};

/// The manifest of the suite, as a producer.
pub(super) fn manifest() -> String {
    let manifest = json!({
        "@context": "https://aaep-protocol.org/context/v1", "type": "aaep:producer.manifest",
        "agent_id": "aaep-conformance", "aaep_versions_supported": ["1.0.0"],
        "conformance_levels_supported": [1, 2, 3],
        "transports_supported": ["sse", "websocket", "grpc"],
    });
    manifest.to_string()
}

/// One connection that carries messages both ways.
pub(super) async fn messages(link: Link, stage: Shared, negotiated: bool) {
    let (mut sender, mut receiver) = link.split();
    let mut heard = if negotiated { None } else { stage.attach(None) };
    loop {
        let next = async {
            match &mut heard {
                Some(heard) => mpsc::Receiver::recv(heard).await,
                None => std::future::pending().await,
            }
        };
        let sent = tokio::select! {
            out = next => match out {
                Some(Out::Message(text, _)) => sender.send(text).await,
                Some(Out::End) | None => return,
            },
            message = receiver.receive() => {
                let Ok(Some(text)) = message else { return };
                let value: Value = serde_json::from_str(text.as_str()).unwrap_or_default();
                if value["type"] == "subscription.request" {
                    let accepted = stage.subscribe(value);
                    heard = accepted["subscription_id"].as_str().and_then(|id| stage.attach(Some(id)));
                    sender.send(accepted.to_string()).await
                } else {
                    match stage.take(value) {
                        Some(answer) => sender.send(answer.to_string()).await,
                        None => Ok(()),
                    }
                }
            }
        };
        if sent.is_err() {
            return;
        }
    }
}

async fn bound(host: &str) -> Result<(Server, String), String> {
    let cannot = |error: std::io::Error| format!("cannot listen at {host}: {error}");
    let server = Server::bind(host).await.map_err(cannot)?;
    let here = server.local_addr().map_err(cannot)?.to_string();
    Ok((server, here))
}

/// Listens for WebSockets at `HOST:PORT/PATH`.
pub(super) async fn web_socket(
    rest: &str,
    stage: Shared,
) -> Result<(String, JoinHandle<()>), String> {
    let (host, path) = rest.split_once('/').unwrap_or((rest, "aaep/v1/ws"));
    let (server, here) = bound(host).await?;
    let url = format!("ws://{here}/{path}");
    let serving = server.serve(WebSockets(stage), std::future::pending());
    Ok((url, tokio::spawn(serving)))
}

#[derive(Clone)]
struct WebSockets(Shared);

impl Service<http::Request<RequestBody>> for WebSockets {
    type Response = http::Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<RequestBody>) -> Self::Future {
        let (parts, _) = request.into_parts();
        let mut request = http::Request::from_parts(parts, ());
        let upgrade = match ws::upgrade(&mut request) {
            Ok(upgrade) => upgrade,
            Err(refusal) => return ready(Ok(refusal.response().map(|()| refusal.to_string()))),
        };
        let (pending, negotiated, stage) = (upgrade.pending, upgrade.negotiated, self.0.clone());
        tokio::spawn(async move {
            if let Ok(link) = pending.link(Options::default()).await {
                messages(link, stage, negotiated).await;
            }
        });
        ready(Ok(upgrade.response.map(|()| String::new())))
    }
}

/// Listens for gRPC at `HOST:PORT`.
pub(super) async fn grpc(rest: &str, stage: Shared) -> Result<(String, JoinHandle<()>), String> {
    let (server, here) = bound(rest.trim_end_matches('/')).await?;
    let service = AaepServiceServer::new(Calls(stage));
    let serving = server.serve_http2(service, std::future::pending());
    Ok((format!("grpc://{here}"), tokio::spawn(serving)))
}

struct Calls(Shared);

fn parsed(message: &AaepMessage) -> Value {
    serde_json::from_slice(&message.json).unwrap_or_default()
}

#[tonic::async_trait]
impl AaepService for Calls {
    type SubscribeStream = Sent;
    type ListenStream = Events;

    async fn subscribe(
        &self,
        request: tonic::Request<Streaming<AaepMessage>>,
    ) -> Result<tonic::Response<Sent>, Status> {
        let peer = request.extensions().get::<Peer>().cloned();
        let peer =
            peer.ok_or_else(|| Status::internal("Nobody knows where the call came from."))?;
        let negotiated = !request.metadata().contains_key(HANDSHAKE);
        let (link, sent) = grpc::accept(request.into_inner(), peer, &Options::default());
        tokio::spawn(messages(link, self.0.clone(), negotiated));
        Ok(tonic::Response::new(sent))
    }

    async fn open(
        &self,
        request: tonic::Request<AaepMessage>,
    ) -> Result<tonic::Response<AaepMessage>, Status> {
        let accepted = self.0.subscribe(parsed(&request.into_inner()));
        Ok(tonic::Response::new(wrapped(accepted.to_string())))
    }

    async fn listen(
        &self,
        request: tonic::Request<ListenRequest>,
    ) -> Result<tonic::Response<Events>, Status> {
        let asked = request.into_inner().subscription_id;
        let id = Some(asked.as_str()).filter(|id| !id.is_empty());
        let heard = self.0.attach(id);
        let heard = heard.ok_or_else(|| Status::not_found("There is no such subscription."))?;
        Ok(tonic::Response::new(Events(heard)))
    }

    async fn reply(
        &self,
        request: tonic::Request<AaepMessage>,
    ) -> Result<tonic::Response<AaepMessage>, Status> {
        let told = self.0.take(parsed(&request.into_inner()));
        let told = told.map(|told| wrapped(told.to_string())).unwrap_or_default();
        Ok(tonic::Response::new(told))
    }

    async fn get_manifest(
        &self,
        _: tonic::Request<GetManifestRequest>,
    ) -> Result<tonic::Response<Manifest>, Status> {
        Ok(tonic::Response::new(Manifest { json: manifest().into() }))
    }
}

/// What one call of `Listen` hears.
struct Events(mpsc::Receiver<Out>);

impl Stream for Events {
    type Item = Result<AaepMessage, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let out = std::task::ready!(self.0.poll_recv(context));
        Poll::Ready(match out {
            Some(Out::Message(text, _)) => Some(Ok(wrapped(text))),
            Some(Out::End) | None => None,
        })
    }
}
