//! WebSocket, plain and with TLS.

use aaep_transport::contract::{self, Address, Settings, Transport};
use aaep_transport::link::Link;
use aaep_transport::ws;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::get;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::{Certificate, client_options, http_server, link_options};

pub struct WebSocket<const TLS: bool> {
    certificate: Option<Certificate>,
}

impl<const TLS: bool> WebSocket<TLS> {
    pub fn new() -> Self {
        Self { certificate: TLS.then(Certificate::made) }
    }
}

impl<const TLS: bool> Transport for WebSocket<TLS> {
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
        let router = Router::new().route("/ws", get(upgrade)).with_state((settings, connected));
        let task = tokio::spawn(server.serve(router, std::future::pending()));
        Listening { address: Address::Tcp(address), connections, task }
    }

    async fn connect(&self, address: &Address, settings: Settings) -> Link {
        let Address::Tcp(address) = address else { panic!("not a TCP address") };
        let scheme = if TLS { "wss" } else { "ws" };
        let options = client_options(settings, self.certificate.as_ref());
        let url = format!("{scheme}://{address}/ws");
        ws::connect(&url, true, &options, link_options(settings)).await.unwrap()
    }
}

async fn upgrade(
    State((settings, connected)): State<(Settings, mpsc::Sender<Link>)>,
    mut request: Request,
) -> Response {
    let upgrade = ws::upgrade(&mut request).unwrap();
    assert!(upgrade.negotiated);
    tokio::spawn(async move {
        let link = upgrade.pending.link(link_options(settings)).await.unwrap();
        connected.send(link).await.unwrap();
    });
    upgrade.response.map(|()| Body::empty())
}

/// A server that hands over each of its connections.
pub struct Listening {
    pub address: Address,
    pub connections: mpsc::Receiver<Link>,
    pub task: JoinHandle<()>,
}

impl contract::Server for Listening {
    type End = Link;

    fn address(&self) -> Address {
        self.address.clone()
    }

    async fn accept(&mut self) -> Link {
        self.connections.recv().await.unwrap()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}
