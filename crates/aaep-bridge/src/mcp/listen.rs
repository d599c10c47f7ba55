//! Clients that come over streamable HTTP, as lines.
//!
//! A client that begins with `initialize` has a session of its own: its own proxy, its own server. The
//! newest version of the protocol has no sessions; such clients share one, in which each request has a
//! name of ours.

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, HOST, ORIGIN};
use http::{HeaderMap, HeaderName, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, BufReader, DuplexStream};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

use super::message::key;
use super::rewrite::{is_ambiguous, set};
use super::{MAX_LINE_BYTES, lock};

/// Where clients come.
pub const PATH: &str = "/mcp";

/// Sessions at the same time; then the one that was used least lately makes room.
const SESSIONS: usize = 64;

/// Connections at the same time.
const CONNECTIONS: usize = 256;

/// What waits for a client that does not listen.
const BACKLOG: usize = 64;

/// How often a stream says that it still stands.
const ALIVE: Duration = Duration::from_secs(15);

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

/// Both ends of a proxy, as its client has them: what is written, and what is read.
pub type Ends = (DuplexStream, DuplexStream);

/// Starts a proxy with a server of its own.
pub type Open =
    Arc<dyn Fn() -> Pin<Box<dyn Future<Output = io::Result<Ends>> + Send>> + Send + Sync>;

/// A request that waits for its answer.
struct Waiting {
    to: mpsc::Sender<String>,
    /// Its own id, and its own name for progress, where they were changed.
    id: Option<String>,
    token: Option<(String, String)>,
    order: u64,
}

#[derive(Default)]
struct Routes {
    waiting: BTreeMap<String, Waiting>,
    /// The stream for what is no answer.
    stream: Option<mpsc::Sender<String>>,
    backlog: VecDeque<String>,
    count: u64,
    is_over: bool,
}

/// A client's session.
struct Session {
    to: tokio::sync::Mutex<DuplexStream>,
    routes: Mutex<Routes>,
    used: Mutex<Instant>,
    /// Whether several clients share it.
    is_shared: bool,
}

struct Door {
    open: Open,
    sessions: Mutex<BTreeMap<String, Arc<Session>>>,
    shared: tokio::sync::Mutex<Option<Arc<Session>>>,
}

/// Serves clients until the future is done.
pub async fn serve(listener: TcpListener, open: Open, until: impl Future<Output = ()>) {
    let door =
        Arc::new(Door { open, sessions: Mutex::default(), shared: tokio::sync::Mutex::new(None) });
    let room = Arc::new(tokio::sync::Semaphore::new(CONNECTIONS));
    let accepts = async {
        loop {
            let Ok(permit) = room.clone().acquire_owned().await else { return };
            let Ok((stream, _)) = listener.accept().await else {
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            let door = door.clone();
            tokio::spawn(async move {
                let answer = service_fn(move |request| {
                    let door = door.clone();
                    async move { Ok::<_, Infallible>(door.answer(request).await) }
                });
                let connection = hyper::server::conn::http1::Builder::new()
                    .timer(hyper_util::rt::TokioTimer::new())
                    .header_read_timeout(Duration::from_secs(30))
                    .serve_connection(TokioIo::new(stream), answer);
                let _ = connection.await;
                drop(permit);
            });
        }
    };
    tokio::select! {
        () = accepts => {}
        () = until => {}
    }
    lock(&door.sessions).clear();
}

/// The body of an answer: a text, or events as they come.
struct Events {
    first: Option<Bytes>,
    more: Option<mpsc::Receiver<Bytes>>,
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        match &mut self.more {
            Some(more) => more.poll_recv(context).map(|bytes| bytes.map(|it| Ok(Frame::data(it)))),
            None => Poll::Ready(None),
        }
    }
}

fn plain(status: StatusCode, words: &str) -> Response<Events> {
    let error =
        json!({ "jsonrpc": "2.0", "id": null, "error": { "code": -32600, "message": words } });
    text(status, error.to_string())
}

fn text(status: StatusCode, body: String) -> Response<Events> {
    let first = (!body.is_empty()).then(|| Bytes::from(body));
    let mut response = Response::new(Events { first, more: None });
    *response.status_mut() = status;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// An answer of server-sent events: the messages, and a sign of life when there are none.
fn stream(mut messages: mpsc::Receiver<String>) -> (Response<Events>, impl Future<Output = ()>) {
    let (to, more) = mpsc::channel::<Bytes>(16);
    let pump = async move {
        loop {
            let bytes = tokio::select! {
                () = to.closed() => return,
                message = messages.recv() => match message {
                    Some(message) => format!("event: message\ndata: {message}\n\n"),
                    None => return,
                },
                () = tokio::time::sleep(ALIVE) => ": still here\n\n".to_owned(),
            };
            if to.send(bytes.into()).await.is_err() {
                return;
            }
        }
    };
    let mut response = Response::new(Events { first: None, more: Some(more) });
    let kind = http::HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    let no = http::HeaderValue::from_static("no-cache, no-transform");
    response.headers_mut().insert(CACHE_CONTROL, no);
    (response, pump)
}

/// Whether this is a name of this machine: pages of elsewhere must not come here through a browser.
fn is_here(authority: &str) -> bool {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}

impl Door {
    async fn answer(self: Arc<Self>, request: Request<Incoming>) -> Response<Events> {
        let (head, body) = request.into_parts();
        let header = |name: &HeaderName| head.headers.get(name).and_then(|it| it.to_str().ok());
        let origin = header(&ORIGIN).map(|origin| origin.split_once("://").map_or("", |it| it.1));
        if !header(&HOST).is_some_and(is_here) || !origin.is_none_or(is_here) {
            return plain(StatusCode::FORBIDDEN, "Only this machine may come here.");
        }
        if head.uri.path() != PATH {
            return plain(StatusCode::NOT_FOUND, "Clients come to /mcp.");
        }
        let named = header(&SESSION).map(str::to_owned);
        match head.method {
            Method::POST => {}
            Method::GET => return self.listens(named.as_deref()),
            Method::DELETE => {
                let gone = named.and_then(|named| lock(&self.sessions).remove(&named));
                let known = gone.is_some();
                return match known {
                    true => text(StatusCode::OK, String::new()),
                    false => plain(StatusCode::NOT_FOUND, "There is no such session."),
                };
            }
            _ => return plain(StatusCode::METHOD_NOT_ALLOWED, "Use POST, GET or DELETE."),
        }
        let Ok(body) = Limited::new(body, MAX_LINE_BYTES - 2).collect().await else {
            return plain(StatusCode::PAYLOAD_TOO_LARGE, "The message is too long, or broke off.");
        };
        let Ok(line) = String::from_utf8(body.to_bytes().to_vec()) else {
            return plain(StatusCode::BAD_REQUEST, "This is no text in UTF-8.");
        };
        self.posted(&head.headers, named.as_deref(), &line).await
    }

    async fn posted(
        self: &Arc<Self>,
        headers: &HeaderMap,
        named: Option<&str>,
        line: &str,
    ) -> Response<Events> {
        let Ok(message @ Value::Object(_)) = serde_json::from_str::<Value>(line) else {
            return plain(StatusCode::BAD_REQUEST, "This is no message; send one as JSON.");
        };
        if is_ambiguous(line) {
            return plain(StatusCode::BAD_REQUEST, "This can be read in more than one way.");
        }
        let method = message.get("method").and_then(Value::as_str);
        let begins = method == Some("initialize");
        let found = match (named, begins) {
            (Some(named), false) => lock(&self.sessions).get(named).cloned().ok_or(None),
            (_, true) => self.begin().await.map_err(Some),
            (None, false) => self.shared().await.map_err(Some),
        };
        let (name, session) = match found {
            Ok(session) if begins => {
                let Some(name) = self.keep(session.clone()) else {
                    return plain(StatusCode::SERVICE_UNAVAILABLE, "Too many sessions are open.");
                };
                (Some(name), session)
            }
            Ok(session) => (None, session),
            Err(None) => return plain(StatusCode::NOT_FOUND, "There is no such session."),
            Err(Some(why)) => {
                let why = format!("The server cannot be started: {why}");
                return plain(StatusCode::BAD_GATEWAY, &why);
            }
        };
        *lock(&session.used) = Instant::now();
        let mut response = match (method, message.get("id")) {
            (Some(_), Some(id)) => session.request(headers, id, &message, line).await,
            _ => match session.write(line).await {
                Ok(()) => text(StatusCode::ACCEPTED, String::new()),
                Err(_) => plain(StatusCode::NOT_FOUND, "The session is over."),
            },
        };
        if let Some(name) = name.and_then(|name| name.parse().ok()) {
            response.headers_mut().insert(SESSION, name);
        }
        response
    }

    /// Opens the stream of a session for what is no answer.
    fn listens(&self, named: Option<&str>) -> Response<Events> {
        let Some(named) = named else {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "Without a session there is no stream.");
        };
        let Some(session) = lock(&self.sessions).get(named).cloned() else {
            return plain(StatusCode::NOT_FOUND, "There is no such session.");
        };
        let (to, messages) = mpsc::channel(BACKLOG);
        {
            let mut routes = lock(&session.routes);
            for message in std::mem::take(&mut routes.backlog) {
                let _ = to.try_send(message);
            }
            routes.stream = Some(to);
        }
        let (response, pump) = stream(messages);
        tokio::spawn(pump);
        response
    }

    async fn begin(&self) -> Result<Arc<Session>, io::Error> {
        Session::start(&self.open, false).await
    }

    async fn shared(&self) -> Result<Arc<Session>, io::Error> {
        let mut shared = self.shared.lock().await;
        if let Some(session) = shared.as_ref().filter(|session| !lock(&session.routes).is_over) {
            return Ok(session.clone());
        }
        let session = Session::start(&self.open, true).await?;
        *shared = Some(session.clone());
        Ok(session)
    }

    /// Names a session that nobody can guess.
    fn keep(&self, session: Arc<Session>) -> Option<String> {
        let mut bits = [0; 16];
        getrandom::fill(&mut bits).ok()?;
        let name = format!("{:032x}", u128::from_be_bytes(bits));
        let mut sessions = lock(&self.sessions);
        sessions.retain(|_, session| !lock(&session.routes).is_over);
        if sessions.len() >= SESSIONS {
            let idle = sessions.iter().filter(|(_, it)| lock(&it.routes).waiting.is_empty());
            let oldest =
                idle.min_by_key(|(_, it)| *lock(&it.used)).map(|(name, _)| name.clone())?;
            sessions.remove(&oldest);
        }
        sessions.insert(name.clone(), session);
        Some(name)
    }
}

impl Session {
    async fn start(open: &Open, is_shared: bool) -> Result<Arc<Self>, io::Error> {
        let (to, from) = open().await?;
        let session = Arc::new(Self {
            to: tokio::sync::Mutex::new(to),
            routes: Mutex::default(),
            used: Mutex::new(Instant::now()),
            is_shared,
        });
        // It ends when the session is forgotten, because that closes the other end.
        let weak = Arc::downgrade(&session);
        tokio::spawn(async move {
            let mut from = BufReader::new(from);
            while let Ok(Some(line)) = super::line(&mut from).await {
                let Some(session) = weak.upgrade() else { return };
                session.route(String::from_utf8_lossy(&line).trim()).await;
            }
            if let Some(session) = weak.upgrade() {
                session.is_over();
            }
        });
        Ok(session)
    }

    async fn write(&self, line: &str) -> io::Result<()> {
        let mut line = line.trim().replace(['\n', '\r'], " ");
        line.push('\n');
        self.to.lock().await.write_all(line.as_bytes()).await
    }

    /// Passes a request on, and answers with what comes back.
    async fn request(
        self: &Arc<Self>,
        headers: &HeaderMap,
        id: &Value,
        message: &Value,
        line: &str,
    ) -> Response<Events> {
        let (to, mut messages) = mpsc::channel(BACKLOG);
        let (name, line) = {
            let mut routes = lock(&self.routes);
            routes.count += 1;
            let order = routes.count;
            let token = message.pointer("/params/_meta/progressToken").map(Value::to_string);
            let (mut name, mut waiting) = (key(id), Waiting { to, id: None, token: None, order });
            let mut line = line.to_owned();
            if self.is_shared {
                let ours = format!("\"aaep-{order}\"");
                let renamed = set(&line, &["id"], &ours);
                let renamed = renamed.and_then(|line| match &token {
                    Some(_) => set(&line, &["params", "_meta", "progressToken"], &ours),
                    None => Some(line),
                });
                let Some(renamed) = renamed else {
                    return plain(
                        StatusCode::BAD_REQUEST,
                        "This can be read in more than one way.",
                    );
                };
                waiting.id = Some(std::mem::replace(&mut name, ours.clone()));
                waiting.token = token.map(|token| (ours, token));
                line = renamed;
            } else {
                waiting.token = token.map(|token| (token.clone(), token));
            }
            if routes.is_over || routes.waiting.contains_key(&name) {
                return plain(
                    StatusCode::BAD_REQUEST,
                    "This id is in use, or the session is over.",
                );
            }
            routes.waiting.insert(name.clone(), waiting);
            (name, line)
        };
        let gives_up = GivesUp { session: self.clone(), name };
        if self.write(&line).await.is_err() {
            return plain(StatusCode::NOT_FOUND, "The session is over.");
        }
        let accepts = headers.get(ACCEPT).and_then(|it| it.to_str().ok()).unwrap_or_default();
        if accepts.contains("text/event-stream") {
            let (response, pump) = stream(messages);
            tokio::spawn(async move {
                pump.await;
                drop(gives_up);
            });
            return response;
        }
        let mut answer = None;
        while let Some(message) = messages.recv().await {
            answer = Some(message);
        }
        drop(gives_up);
        match answer {
            Some(answer) => text(StatusCode::OK, answer),
            None => plain(StatusCode::BAD_GATEWAY, "The server ended without an answer."),
        }
    }

    /// Brings a line of the proxy to whom it concerns.
    async fn route(&self, line: &str) {
        let Ok(message) = serde_json::from_str::<Value>(line) else { return };
        let method = message.get("method").and_then(Value::as_str);
        if let (None, Some(id)) = (method, message.get("id")) {
            let waiting = lock(&self.routes).waiting.remove(&key(id));
            let Some(waiting) = waiting else { return };
            let line = match &waiting.id {
                Some(id) => set(line, &["id"], id).unwrap_or_default(),
                None => line.to_owned(),
            };
            let _ = waiting.to.send(line).await;
            return;
        }
        let (to, line) = {
            let mut routes = lock(&self.routes);
            let token = message.pointer("/params/progressToken").map(Value::to_string);
            let concerns = |waiting: &&Waiting| {
                let named = waiting.token.as_ref().map(|(ours, _)| ours);
                token.is_some() && named == token.as_ref()
            };
            let about = routes.waiting.values().find(concerns);
            let about = about.map(|it| (it.to.clone(), it.token.clone().map(|(_, own)| own)));
            match about {
                Some((to, Some(own))) => {
                    (Some(to), set(line, &["params", "progressToken"], &own).unwrap_or_default())
                }
                _ => {
                    let stream = routes.stream.clone().filter(|stream| !stream.is_closed());
                    let newest = routes.waiting.values().max_by_key(|waiting| waiting.order);
                    let to = stream.or_else(|| newest.map(|waiting| waiting.to.clone()));
                    if to.is_none() {
                        if routes.backlog.len() >= BACKLOG {
                            routes.backlog.pop_front();
                        }
                        routes.backlog.push_back(line.to_owned());
                    }
                    (to, line.to_owned())
                }
            }
        };
        if let Some(to) = to {
            // A client that does not read does not block the others.
            let _ = to.try_send(line);
        }
    }

    fn is_over(&self) {
        let mut routes = lock(&self.routes);
        routes.is_over = true;
        routes.waiting.clear();
        routes.stream = None;
    }
}

/// A request whose client may go away: then nobody is left to hear its answer, and it is given up.
struct GivesUp {
    session: Arc<Session>,
    name: String,
}

impl Drop for GivesUp {
    fn drop(&mut self) {
        if lock(&self.session.routes).waiting.remove(&self.name).is_none() {
            return;
        }
        let session = self.session.clone();
        let line = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{},"reason":"The client went away."}}}}"#,
            self.name
        );
        tokio::spawn(async move {
            let _ = session.write(&line).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::is_here;

    #[test]
    fn only_names_of_this_machine_are_here() {
        for here in ["localhost", "localhost:80", "127.0.0.1:8808", "[::1]:8808", "[::1]"] {
            assert!(is_here(here), "{here}");
        }
        for elsewhere in [
            "",
            "example.org",
            "localhost.example.org:80",
            "127.0.0.1.example.org",
            "10.0.0.1",
            "localhost:80:80",
        ] {
            assert!(!is_here(elsewhere), "{elsewhere}");
        }
    }
}
