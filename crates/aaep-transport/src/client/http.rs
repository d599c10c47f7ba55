//! Requests and their answers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HOST};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::time::timeout;

use super::{ClientError, EventStream, Options, SESSION_SECRET_HEADER, SessionSecret};
use crate::body::{BodyError, read_body};
use crate::dial::Dialer;
use crate::{TooLong, sse};

type Connection = SendRequest<Full<Bytes>>;

/// How long an idle connection is used again: well below the time after which servers close it, or
/// a request could meet the closing and nobody would know whether it arrived.
const REUSE: Duration = Duration::from_secs(20);

/// Speaks with one server, under one base such as `https://hub.example/aaep/v1`.
///
/// Paths are taken below the base. One idle connection is kept for the next request.
pub struct HttpClient {
    dialer: Dialer,
    host: HeaderValue,
    base: String,
    idle: Mutex<Option<(Connection, Instant)>>,
}

/// What a server answered.
#[derive(Clone, Debug)]
pub struct FullResponse {
    /// Its status.
    pub status: StatusCode,
    /// Its head.
    pub headers: HeaderMap,
    /// Its body, in full.
    pub body: Bytes,
}

/// An answer that is one message, or a stream of them.
pub enum WholeOrStream {
    /// All of it.
    Whole(FullResponse),
    /// The head, and the stream.
    Stream(HeaderMap, Box<EventStream>),
}

impl HttpClient {
    /// A client for this base. Connects with the first request.
    pub fn new(base: &str, options: Options) -> Result<Self, ClientError> {
        let wrong = || ClientError::Address(base.to_owned());
        let uri: Uri = base.parse().map_err(|_| wrong())?;
        let authority = uri.authority().ok_or_else(wrong)?;
        let host = HeaderValue::from_str(authority.as_str()).map_err(|_| wrong())?;
        let base = uri.path().trim_end_matches('/').to_owned();
        let dialer = Dialer::new(&uri, "http", "https", options)?;
        Ok(Self { dialer, host, base, idle: Mutex::new(None) })
    }

    /// A client for this base path, such as `/aaep/v1`, over the Unix socket of a hub. The socket and
    /// the process that listens there have to be our own user's, or root's.
    #[cfg(unix)]
    pub fn over_socket(
        socket: impl Into<std::path::PathBuf>,
        base: &str,
        options: Options,
    ) -> Self {
        let host = HeaderValue::from_static("localhost");
        let base = base.trim_end_matches('/').to_owned();
        Self { dialer: Dialer::to_socket(socket, options), host, base, idle: Mutex::new(None) }
    }

    /// Sends a JSON message and waits for the whole answer, whatever its status.
    // enforces: W1, W4
    pub async fn post(
        &self,
        path: &str,
        json: impl Into<Bytes>,
    ) -> Result<FullResponse, ClientError> {
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.request(Method::POST, path, headers, json).await
    }

    /// Asks for something and waits for the whole answer, whatever its status.
    pub async fn get(&self, path: &str) -> Result<FullResponse, ClientError> {
        self.request(Method::GET, path, HeaderMap::new(), Bytes::new()).await
    }

    /// Any request: method, path below the base, further headers, body.
    pub async fn request(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: impl Into<Bytes>,
    ) -> Result<FullResponse, ClientError> {
        self.request_noting(method, path, headers, body, &AtomicBool::new(false)).await
    }

    /// The same, and `sent` becomes true before anything of the request leaves: as long as it is
    /// false, the server has not acted on it, also if this is given up half-way.
    pub async fn request_noting(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: impl Into<Bytes>,
        sent: &AtomicBool,
    ) -> Result<FullResponse, ClientError> {
        let request = self.build(method, path, headers, body.into())?;
        let (options, exchange) = (self.dialer.options(), self.exchange(request, sent));
        timeout(options.answer, exchange).await.map_err(|_| ClientError::TooSlow)?
    }

    async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
        sent: &AtomicBool,
    ) -> Result<FullResponse, ClientError> {
        let (response, connection) = self.send(request, sent).await?;
        let answer = self.whole(response).await?;
        if connection.is_ready() {
            *self.idle() = Some((connection, Instant::now()));
        }
        Ok(answer)
    }

    /// Opens a stream of events, after the event `last_event_id` if one is given.
    // enforces: W4
    pub async fn events(
        &self,
        path: &str,
        last_event_id: Option<&str>,
    ) -> Result<EventStream, ClientError> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, HeaderValue::from_static(sse::CONTENT_TYPE));
        if let Some(id) = last_event_id {
            let id = HeaderValue::from_bytes(id.as_bytes());
            let id = id.map_err(|_| ClientError::Address("the last event id is not one".into()))?;
            headers.insert("last-event-id", id);
        }
        let request = self.build(Method::GET, path, headers, Bytes::new())?;
        let options = self.dialer.options();
        let opening = async {
            let (response, connection) = self.send(request, &AtomicBool::new(false)).await?;
            if response.status() == StatusCode::OK && is_event_stream(response.headers()) {
                return Ok(EventStream::new(response, connection, options));
            }
            let answer = self.whole(response).await?;
            Err(ClientError::refused(answer.status, &answer.body))
        };
        timeout(options.answer, opening).await.map_err(|_| ClientError::TooSlow)?
    }

    /// Any request whose answer may be one message or a stream of them, as the server likes.
    pub async fn exchange_or_stream(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: impl Into<Bytes>,
    ) -> Result<WholeOrStream, ClientError> {
        let request = self.build(method, path, headers, body.into())?;
        let options = self.dialer.options();
        let opening = async {
            let (response, connection) = self.send(request, &AtomicBool::new(false)).await?;
            if response.status() == StatusCode::OK && is_event_stream(response.headers()) {
                let headers = response.headers().clone();
                let stream = EventStream::new(response, connection, options);
                return Ok(WholeOrStream::Stream(headers, Box::new(stream)));
            }
            self.whole(response).await.map(WholeOrStream::Whole)
        };
        timeout(options.answer, opening).await.map_err(|_| ClientError::TooSlow)?
    }

    fn build(
        &self,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Request<Full<Bytes>>, ClientError> {
        let target = format!("{}/{}", self.base, path.trim_start_matches('/'));
        let uri: Uri = target.parse().map_err(|_| ClientError::Address(target))?;
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.headers_mut() = headers;
        request.headers_mut().entry(HOST).or_insert_with(|| self.host.clone());
        let options = self.dialer.options();
        if let Some(secret) = options.session_secret.as_ref().and_then(SessionSecret::header) {
            request.headers_mut().entry(SESSION_SECRET_HEADER).or_insert(secret);
        }
        if let Some(token) = &options.token {
            request.headers_mut().entry(AUTHORIZATION).or_insert_with(|| token.header());
        }
        Ok(request)
    }

    /// Over the idle connection if it still stands, else over a new one. A request that has left
    /// us is never sent again: the server may have acted on it.
    async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
        sent: &AtomicBool,
    ) -> Result<(Response<Incoming>, Connection), ClientError> {
        let idle = self.idle().take().filter(|(_, since)| since.elapsed() < REUSE);
        if let Some((mut connection, _)) = idle.filter(|(connection, _)| connection.is_ready()) {
            let before = sent.swap(true, Ordering::Relaxed);
            match connection.try_send_request(request).await {
                Ok(response) => return Ok((response, connection)),
                Err(mut error) => match error.take_message() {
                    Some(unsent) => {
                        sent.store(before, Ordering::Relaxed);
                        request = unsent;
                    }
                    None => return Err(ClientError::Broken(error.into_error().to_string())),
                },
            }
        }
        let mut connection = self.open().await?;
        sent.store(true, Ordering::Relaxed);
        let response = connection.send_request(request).await;
        Ok((response.map_err(|error| ClientError::Broken(error.to_string()))?, connection))
    }

    async fn open(&self) -> Result<Connection, ClientError> {
        let (stream, _) = self.dialer.connect().await?;
        let handshake =
            http1::Builder::new().max_buf_size(64 * 1024).handshake(TokioIo::new(stream));
        let (sender, connection) =
            handshake.await.map_err(|error| ClientError::Broken(error.to_string()))?;
        // It ends by itself: with the connection, or once nobody sends and nobody reads.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        Ok(sender)
    }

    async fn whole(&self, response: Response<Incoming>) -> Result<FullResponse, ClientError> {
        let (head, body) = response.into_parts();
        let options = self.dialer.options();
        let max = options.max_message;
        let body = read_body(body, max, options.answer).await.map_err(|error| match error {
            BodyError::TooLong(_) => ClientError::TooLong(TooLong { max }),
            BodyError::TooSlow(_) => ClientError::TooSlow,
            BodyError::Broken(why) => ClientError::Broken(why),
        })?;
        Ok(FullResponse { status: head.status, headers: head.headers, body })
    }

    fn idle(&self) -> MutexGuard<'_, Option<(Connection, Instant)>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_event_stream(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case(sse::CONTENT_TYPE)
}
