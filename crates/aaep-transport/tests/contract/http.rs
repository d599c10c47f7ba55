//! SSE and POST: each stream of events is one connection; what is posted names it.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use aaep_transport::client::{EventStream, HttpClient};
use aaep_transport::contract::{self, Address, End, Settings, Transport};
use aaep_transport::peer::Peer;
use aaep_transport::server::{BodyError, Long, read_body};
use aaep_transport::sse;
use axum::Router;
use axum::body::Body;
use axum::extract::{Extension, Path, Request, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::{Bytes, BytesMut};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::{Certificate, client_options, http_server};

pub struct Http<const TLS: bool> {
    certificate: Option<Certificate>,
}

impl<const TLS: bool> Http<TLS> {
    pub fn new() -> Self {
        Self { certificate: TLS.then(Certificate::made) }
    }
}

impl<const TLS: bool> Transport for Http<TLS> {
    type Server = Listening;
    type ServerEnd = There;
    type ClientEnd = Here;
    const TLS: bool = TLS;
    const SERVER_HEARS_SILENCE: bool = false; // a stream only notices when it is written to
    const CLIENT_HEARS_SILENCE: bool = true;

    async fn serve(&self, settings: Settings) -> Listening {
        let server = http_server(settings, self.certificate.as_ref()).await;
        let address = server.local_addr().unwrap();
        let (connected, connections) = mpsc::channel(16);
        let hub = Hub { settings, connected, inboxes: Arc::default() };
        let router = Router::new()
            .route("/{name}/events", get(events))
            .route("/{name}/messages", post(messages))
            .with_state(hub);
        let task = tokio::spawn(server.serve(router, std::future::pending()));
        Listening { address: Address::Tcp(address), connections, task }
    }

    async fn connect(&self, address: &Address, settings: Settings) -> Here {
        let Address::Tcp(address) = address else { panic!("not a TCP address") };
        let scheme = if TLS { "https" } else { "http" };
        let options = client_options(settings, self.certificate.as_ref());
        static NAMES: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let name = NAMES.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let client = HttpClient::new(&format!("{scheme}://{address}/{name}"), options).unwrap();
        let stream = client.events("events", None).await.unwrap();
        Here { client, stream }
    }
}

pub struct Listening {
    address: Address,
    connections: mpsc::Receiver<There>,
    task: JoinHandle<()>,
}

impl contract::Server for Listening {
    type End = There;

    fn address(&self) -> Address {
        self.address.clone()
    }

    async fn accept(&mut self) -> There {
        self.connections.recv().await.unwrap()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Clone)]
struct Hub {
    settings: Settings,
    connected: mpsc::Sender<There>,
    inboxes: Arc<Mutex<BTreeMap<String, mpsc::Sender<String>>>>,
}

async fn events(
    State(hub): State<Hub>,
    Path(name): Path<String>,
    Extension(peer): Extension<Peer>,
) -> Response {
    let (outbox, mut sent) = mpsc::channel::<Bytes>(1);
    let (inbox, received) = mpsc::channel(1);
    hub.inboxes.lock().unwrap().insert(name, inbox);
    hub.connected.send(There { outbox, received, peer }).await.unwrap();
    let mut alive = tokio::time::interval(hub.settings.patience / 3);
    let stream = futures_util::stream::poll_fn(move |context| {
        if let Poll::Ready(frame) = sent.poll_recv(context) {
            return Poll::Ready(frame.map(Ok::<_, Infallible>));
        }
        alive.poll_tick(context).map(|_| Some(Ok(Bytes::from_static(sse::KEEP_ALIVE.as_bytes()))))
    });
    ([(CONTENT_TYPE, sse::CONTENT_TYPE)], Extension(Long), Body::from_stream(stream))
        .into_response()
}

async fn messages(
    State(hub): State<Hub>,
    Path(name): Path<String>,
    request: Request,
) -> (StatusCode, String) {
    let Settings { max_message, patience } = hub.settings;
    let inbox = hub.inboxes.lock().unwrap().get(&name).cloned();
    let Some(inbox) = inbox else { return (StatusCode::NOT_FOUND, String::new()) };
    let status = match read_body(request.into_body(), max_message, patience).await {
        Ok(body) => {
            let text = String::from_utf8(body.to_vec()).unwrap();
            match inbox.send(text).await {
                Ok(()) => StatusCode::NO_CONTENT,
                Err(_) => StatusCode::GONE,
            }
        }
        Err(BodyError::TooLong(_)) => StatusCode::PAYLOAD_TOO_LARGE,
        Err(_) => StatusCode::BAD_REQUEST,
    };
    (status, String::new())
}

/// The server's end: dropping it ends the stream.
pub struct There {
    outbox: mpsc::Sender<Bytes>,
    received: mpsc::Receiver<String>,
    peer: Peer,
}

impl End for There {
    async fn send(&mut self, text: &str) -> Result<(), String> {
        let mut frame = BytesMut::new();
        sse::write_frame(&mut frame, Some("aaep.event"), Some("evt_1"), text);
        self.outbox.send(frame.freeze()).await.map_err(|_| "the stream has ended".into())
    }

    async fn receive(&mut self) -> Result<Option<String>, String> {
        tokio::select! {
            text = self.received.recv() => Ok(text),
            () = self.outbox.closed() => Ok(None),
        }
    }

    fn peer(&self) -> Option<Peer> {
        Some(self.peer.clone())
    }
}

pub struct Here {
    client: HttpClient,
    stream: EventStream,
}

impl End for Here {
    async fn send(&mut self, text: &str) -> Result<(), String> {
        let answer = self.client.post("messages", text.to_owned()).await;
        match answer.map_err(|error| error.to_string())?.status {
            StatusCode::NO_CONTENT => Ok(()),
            other => Err(other.to_string()),
        }
    }

    async fn receive(&mut self) -> Result<Option<String>, String> {
        let frame = self.stream.next().await.map_err(|error| error.to_string())?;
        Ok(frame.map(|frame| frame.data))
    }

    fn peer(&self) -> Option<Peer> {
        None
    }
}
