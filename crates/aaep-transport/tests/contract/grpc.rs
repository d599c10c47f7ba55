//! gRPC, plain and with TLS: one call of `Subscribe` is a connection.

use aaep_transport::contract::{Address, Settings, Transport};
use aaep_transport::grpc::wire::aaep_service_server::{AaepService, AaepServiceServer};
use aaep_transport::grpc::wire::{AaepMessage, GetManifestRequest, ListenRequest, Manifest};
use aaep_transport::grpc::{self, Sent, WRAPPING};
use aaep_transport::link::Link;
use aaep_transport::peer::Peer;
use aaep_transport::tls;
use tokio::sync::mpsc;
use tonic::{Request, Response, Status, Streaming};

use super::ws::Listening;
use super::{Certificate, client_options, http_server, link_options};

pub struct Grpc<const TLS: bool> {
    certificate: Option<Certificate>,
}

impl<const TLS: bool> Grpc<TLS> {
    pub fn new() -> Self {
        let mut certificate = TLS.then(Certificate::made);
        if let Some(certificate) = &mut certificate {
            certificate.server = tls::for_http2(&certificate.server);
        }
        Self { certificate }
    }
}

impl<const TLS: bool> Transport for Grpc<TLS> {
    type Server = Listening;
    type ServerEnd = Link;
    type ClientEnd = Link;
    const TLS: bool = TLS;
    const SERVER_HEARS_SILENCE: bool = true;
    const CLIENT_HEARS_SILENCE: bool = true;

    async fn serve(&self, settings: Settings) -> Listening {
        let server = http_server(settings, self.certificate.as_ref()).await;
        let address = server.local_addr().unwrap();
        let (connected, connections) = mpsc::channel(16);
        let service = AaepServiceServer::new(Calls { settings, connected })
            .max_decoding_message_size(settings.max_message + WRAPPING);
        let task = tokio::spawn(server.serve_http2(service, std::future::pending()));
        Listening { address: Address::Tcp(address), connections, task }
    }

    async fn connect(&self, address: &Address, settings: Settings) -> Link {
        let Address::Tcp(address) = address else { panic!("not a TCP address") };
        let scheme = if TLS { "grpcs" } else { "grpc" };
        let options = client_options(settings, self.certificate.as_ref());
        let url = format!("{scheme}://{address}");
        grpc::connect(&url, true, &options, link_options(settings)).await.unwrap()
    }
}

struct Calls {
    settings: Settings,
    connected: mpsc::Sender<Link>,
}

#[tonic::async_trait]
impl AaepService for Calls {
    type SubscribeStream = Sent;
    type ListenStream = Sent;

    async fn subscribe(
        &self,
        request: Request<Streaming<AaepMessage>>,
    ) -> Result<Response<Sent>, Status> {
        let peer = request.extensions().get::<Peer>().unwrap().clone();
        let (link, sent) = grpc::accept(request.into_inner(), peer, &link_options(self.settings));
        self.connected.send(link).await.unwrap();
        Ok(Response::new(sent))
    }

    async fn open(&self, _: Request<AaepMessage>) -> Result<Response<AaepMessage>, Status> {
        Err(Status::unimplemented("here is only Subscribe"))
    }

    async fn listen(&self, _: Request<ListenRequest>) -> Result<Response<Sent>, Status> {
        Err(Status::unimplemented("here is only Subscribe"))
    }

    async fn reply(&self, _: Request<AaepMessage>) -> Result<Response<AaepMessage>, Status> {
        Err(Status::unimplemented("here is only Subscribe"))
    }

    async fn get_manifest(
        &self,
        _: Request<GetManifestRequest>,
    ) -> Result<Response<Manifest>, Status> {
        Err(Status::unimplemented("here is only Subscribe"))
    }
}
