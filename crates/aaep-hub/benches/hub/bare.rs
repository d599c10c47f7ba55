//! The barest server that does the same job: axum, a broadcast channel of ready bytes, a map of
//! channels for those who wait. No validation, no order, no shaping, nobody is asked who they are.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures_util::stream;
use tokio::sync::{broadcast, oneshot};

use crate::wire::member;

/// More than what is ever on its way, so that nobody misses anything.
const WAITING: usize = 4096;

/// Both ends of what waits for a reply, until they are taken.
type Ends = (Option<oneshot::Sender<()>>, Option<oneshot::Receiver<()>>);

struct Shared {
    events: broadcast::Sender<Bytes>,
    asked: AtomicU64,
    /// Tasks that wait for an answer, and answers that nobody waits for yet.
    open: Mutex<HashMap<u64, Ends>>,
}

type Bare = State<Arc<Shared>>;

pub async fn serve() {
    let shared = Shared {
        events: broadcast::channel(WAITING).0,
        asked: AtomicU64::new(1),
        open: Mutex::default(),
    };
    let router = Router::new()
        .route("/events", get(listen).post(say))
        .route("/requests", post(ask))
        .route("/requests/{id}", get(wait))
        .route("/replies", post(reply))
        .with_state(Arc::new(shared));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    println!("{}", listener.local_addr().expect("an address"));
    // As the hub does: small messages go at once.
    let listener =
        axum::serve::ListenerExt::tap_io(listener, |stream: &mut tokio::net::TcpStream| {
            let _ = stream.set_nodelay(true);
        });
    axum::serve(listener, router).await.expect("it serves");
}

async fn listen(State(shared): Bare) -> Response {
    let events = shared.events.subscribe();
    let frames = stream::unfold(events, async |mut events| {
        let frame = events.recv().await.expect("nobody lags, and the sender lives");
        Some((Ok::<_, std::convert::Infallible>(frame), events))
    });
    ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(frames)).into_response()
}

/// The body is a whole frame already: everybody gets these bytes.
async fn say(State(shared): Bare, frame: Bytes) -> impl IntoResponse {
    let _ = shared.events.send(frame);
    (StatusCode::CREATED, r#"{"event_id":"evt_00000000000000000000000000000000"}"#)
}

/// Asks everybody: the body is the frame, but for its token.
async fn ask(State(shared): Bare, frame: String) -> impl IntoResponse {
    let id = shared.asked.fetch_add(1, Ordering::Relaxed);
    let (sender, receiver) = oneshot::channel();
    shared.open.lock().expect("a lock").insert(id, (Some(sender), Some(receiver)));
    let _ = shared.events.send(frame.replace("TOKEN", &format!("{id:032x}")).into());
    (StatusCode::CREATED, format!(r#"{{"request_id":"{id}"}}"#))
}

/// Waits for the answer.
async fn wait(State(shared): Bare, Path(id): Path<u64>) -> impl IntoResponse {
    let waiting = shared.open.lock().expect("a lock").get_mut(&id).and_then(|open| open.1.take());
    if let Some(waiting) = waiting {
        let _ = waiting.await;
    }
    shared.open.lock().expect("a lock").remove(&id);
    (StatusCode::OK, format!(r#"{{"request_id":"{id}","status":"accepted"}}"#))
}

/// Answers: the waiting task goes on, and everybody is told.
async fn reply(State(shared): Bare, body: String) -> StatusCode {
    let token = member(&body, "reply_token");
    let id = u64::from_str_radix(&token[4..], 16).unwrap_or_default();
    let waiting = shared.open.lock().expect("a lock").get_mut(&id).and_then(|open| open.0.take());
    if let Some(waiting) = waiting {
        let _ = waiting.send(());
        let told = crate::events::bare_resolution(member(&body, "session_id"));
        let _ = shared.events.send(told.into());
    }
    StatusCode::NO_CONTENT
}
