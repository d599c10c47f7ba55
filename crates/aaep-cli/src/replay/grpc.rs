//! The door of a playback for gRPC.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use aaep_transport::grpc::wire::aaep_service_server::{AaepService, AaepServiceServer};
use aaep_transport::grpc::wire::{AaepMessage, GetManifestRequest, ListenRequest, Manifest};
use aaep_transport::grpc::{self, HANDSHAKE, Sent, wrapped};
use aaep_transport::link::Options;
use aaep_transport::peer::Peer;
use aaep_types::Message;
use futures_util::Stream;
use tokio::sync::mpsc;
use tonic::{Request, Response, Status, Streaming};

use super::door::{Guests, accepted, serve_link};
use super::player::{Played, Stage};

/// What answers calls.
pub(super) fn service(stage: Arc<Stage>, guests: Guests) -> AaepServiceServer<Door> {
    AaepServiceServer::new(Door { stage, guests })
}

pub(super) struct Door {
    stage: Arc<Stage>,
    guests: Guests,
}

impl Door {
    /// Refuses programs that are not let in.
    fn admit<T>(&self, request: &Request<T>) -> Result<(), Status> {
        match self.guests.refuses(&self.stage, request.extensions().get()) {
            Some(why) => Err(Status::permission_denied(why)),
            None => Ok(()),
        }
    }
}

#[tonic::async_trait]
impl AaepService for Door {
    type SubscribeStream = Sent;
    type ListenStream = Playing;

    async fn subscribe(
        &self,
        request: Request<Streaming<AaepMessage>>,
    ) -> Result<Response<Sent>, Status> {
        self.admit(&request)?;
        let peer = request.extensions().get::<Peer>().cloned();
        let peer =
            peer.ok_or_else(|| Status::internal("Nobody knows where the call came from."))?;
        let negotiated = !request.metadata().contains_key(HANDSHAKE);
        let (link, sent) = grpc::accept(request.into_inner(), peer, &Options::default());
        let stage = self.stage.clone();
        tokio::spawn(async move { serve_link(&stage, link, negotiated).await });
        Ok(Response::new(sent))
    }

    async fn open(&self, request: Request<AaepMessage>) -> Result<Response<AaepMessage>, Status> {
        self.admit(&request)?;
        let json = request.into_inner().json;
        let Ok(Message::Request(asked)) = Message::parse(&json) else {
            return Err(Status::invalid_argument("Send a subscription.request here."));
        };
        let (_, granted) = accepted(&asked.capabilities.to_json()).map_err(Status::unavailable)?;
        Ok(Response::new(wrapped(granted)))
    }

    async fn listen(&self, request: Request<ListenRequest>) -> Result<Response<Playing>, Status> {
        self.admit(&request)?;
        let asked = request.into_inner();
        let named = |text: String| Some(text).filter(|text| !text.is_empty());
        let played = self.stage.play(named(asked.last_event_id), named(asked.subscription_id));
        Ok(Response::new(Playing { stage: self.stage.clone(), played }))
    }

    async fn reply(&self, request: Request<AaepMessage>) -> Result<Response<AaepMessage>, Status> {
        self.admit(&request)?;
        if let Ok(message) = Message::parse(&request.into_inner().json) {
            self.stage.reply(&message);
        }
        Ok(Response::new(AaepMessage::default()))
    }

    async fn get_manifest(
        &self,
        _: Request<GetManifestRequest>,
    ) -> Result<Response<Manifest>, Status> {
        Err(Status::unimplemented("A recording has no manifest."))
    }
}

/// One playback.
pub(super) struct Playing {
    stage: Arc<Stage>,
    played: mpsc::Receiver<Played>,
}

impl Stream for Playing {
    type Item = Result<AaepMessage, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let next = std::task::ready!(self.played.poll_recv(context));
        if next.is_none() {
            self.stage.over.notify_one();
        }
        Poll::Ready(next.map(|next| Ok(wrapped(next.text))))
    }
}
