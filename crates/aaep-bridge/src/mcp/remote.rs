//! A server behind streamable HTTP, as lines: callers need not know.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use aaep_transport::client::{
    ClientError, EventStream, FullResponse, HttpClient, Options, WholeOrStream,
};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::task::JoinSet;

use super::{MAX_LINE_BYTES, lock};

/// What may be on its way in one direction, in bytes.
const ROOM: usize = 64 * 1024;

/// Requests that are on their way at the same time.
const REQUESTS: usize = 64;

/// How long a server may take to answer, and how long its stream may be silent.
const ANSWERS: Duration = Duration::from_secs(24 * 3600);

/// The pause before the server's own stream is opened again.
const PAUSE: Duration = Duration::from_secs(3);

/// How often the stream of one answer is taken up again, and the pause before that.
const RESUMES: u32 = 5;
const RESUMES_AFTER: Duration = Duration::from_secs(1);

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// Where a client of the newest version says in each request which it speaks.
const VERSION_IN_REQUEST: &str = "io.modelcontextprotocol/protocolVersion";

/// A server at an address.
struct Remote {
    client: HttpClient,
    path: String,
    headers: HeaderMap,
    /// What was agreed: the session and the version of the protocol.
    agreed: Mutex<(Option<HeaderValue>, Option<HeaderValue>)>,
    out: tokio::sync::Mutex<DuplexStream>,
}

/// Begins to talk with the server at this address, with these headers in every request. What is written
/// to the one goes there, line by line; what comes from there is read from the other.
pub fn connect(
    url: &str,
    headers: &[(String, String)],
) -> Result<(DuplexStream, DuplexStream), String> {
    let unusable = || format!("{url} is no address such as https://example.org/mcp");
    let plain = url.split(['?', '#']).next().unwrap_or(url);
    let after_scheme = plain.find("://").map(|at| at + 3).ok_or_else(unusable)?;
    let slash = plain.rfind('/').filter(|at| *at >= after_scheme);
    let (base, path) = match slash {
        Some(at) => (&url[..at], &url[at + 1..]),
        None => (url, ""),
    };
    let mut all = HeaderMap::new();
    for (name, value) in headers {
        let wrong = || format!("{name} is no header that can be sent");
        let name: HeaderName = name.parse().map_err(|_| wrong())?;
        let mut value: HeaderValue = value.parse().map_err(|_| wrong())?;
        value.set_sensitive(true);
        all.insert(name, value);
    }
    let options = Options {
        answer: ANSWERS,
        silence: ANSWERS,
        max_message: MAX_LINE_BYTES,
        // The person named it, and its tools are held.
        trust_loopback: true,
        ..Options::default()
    };
    let client = HttpClient::new(base, options).map_err(|error| error.to_string())?;
    let (to, lines) = duplex(ROOM);
    let (out, from) = duplex(ROOM);
    let remote = Arc::new(Remote {
        client,
        path: path.to_owned(),
        headers: all,
        agreed: Mutex::default(),
        out: tokio::sync::Mutex::new(out),
    });
    tokio::spawn(carry(remote, BufReader::new(lines)));
    Ok((to, from))
}

/// Carries lines there until nobody writes any more.
async fn carry(remote: Arc<Remote>, mut lines: BufReader<DuplexStream>) {
    let mut tasks = JoinSet::new();
    while let Ok(Some(line)) = super::line(&mut lines).await {
        let Ok(message) = serde_json::from_slice::<Value>(&line) else { continue };
        let method = message.get("method").and_then(Value::as_str).unwrap_or_default().to_owned();
        let begins = method == "initialize";
        let beside = !begins && !method.is_empty() && message.get("id").is_some();
        let exchange = {
            let remote = remote.clone();
            async move { remote.exchange(line, &message).await }
        };
        while tasks.try_join_next().is_some() {}
        match beside && tasks.len() < REQUESTS {
            true => drop(tasks.spawn(exchange)),
            // What comes next relies on it.
            false => exchange.await,
        }
        if method == "notifications/initialized" {
            let remote = remote.clone();
            tasks.spawn(async move { remote.listens().await });
        }
    }
    tasks.shutdown().await;
    if lock(&remote.agreed).0.is_some() {
        let headers = remote.head(None);
        let ends = remote.client.request(Method::DELETE, &remote.path, headers, "");
        let _ = tokio::time::timeout(Duration::from_secs(2), ends).await;
    }
}

impl Remote {
    fn head(&self, message: Option<&Value>) -> HeaderMap {
        let mut headers = self.headers.clone();
        let both = "application/json, text/event-stream";
        headers.insert(ACCEPT, HeaderValue::from_static(both));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let (session, version) = lock(&self.agreed).clone();
        headers.extend(session.map(|session| (SESSION, session)));
        headers.extend(version.map(|version| (VERSION, version)));
        let text = |value: Option<&Value>| value?.as_str()?.parse::<HeaderValue>().ok();
        let params = message.and_then(|message| message.get("params"));
        // Only the newest version says these things in headers too.
        let version = params.and_then(|params| params.get("_meta")?.get(VERSION_IN_REQUEST));
        if let (Some(version), Some(message)) = (text(version), message) {
            headers.insert(VERSION, version);
            headers.extend(text(message.get("method")).map(|method| (METHOD, method)));
            let name = params.and_then(|params| params.get("name").or_else(|| params.get("uri")));
            headers.extend(text(name).map(|name| (NAME, name)));
        }
        headers
    }

    /// Sends one message, and passes on whatever is answered.
    async fn exchange(&self, line: Vec<u8>, message: &Value) {
        let id = message.get("id").filter(|_| message.get("method").is_some());
        let head = self.head(Some(message));
        let answered = self.client.exchange_or_stream(Method::POST, &self.path, head, line).await;
        let done = match answered {
            Ok(WholeOrStream::Whole(answer)) => self.whole(message, answer).await,
            Ok(WholeOrStream::Stream(head, stream)) => {
                self.agree(message, &head, None);
                match self.streamed(message, &head, stream).await {
                    Ok(true) => Ok(()),
                    Ok(false) => Err("the server ended without an answer".to_owned()),
                    Err(error) => Err(error.to_string()),
                }
            }
            Err(error) => Err(error.to_string()),
        };
        if let (Err(why), Some(id)) = (done, id) {
            let why = format!("The server cannot be used: {}.", crate::act::shown(&why));
            let error = json!({ "code": -32001, "message": why });
            self.emit(&json!({ "jsonrpc": "2.0", "id": id, "error": error }).to_string()).await;
        }
    }

    /// Passes on what a stream says until the answer is there. A stream that breaks off is taken up
    /// again where it numbers its messages; the request itself is never sent twice.
    async fn streamed(
        &self,
        message: &Value,
        head: &HeaderMap,
        mut stream: Box<EventStream>,
    ) -> Result<bool, ClientError> {
        let id = message.get("id").filter(|_| message.get("method").is_some());
        let (mut resumed, mut last) = (0, None);
        loop {
            let broke = match stream.next().await {
                Ok(Some(frame)) if frame.data.trim().is_empty() => continue,
                Ok(Some(frame)) => {
                    let data: Value = serde_json::from_str(&frame.data).unwrap_or_default();
                    self.agree(message, head, Some(&data));
                    self.emit(&frame.data).await;
                    let answers = data.get("method").is_none() && data.get("id") == id;
                    if id.is_some() && answers {
                        return Ok(true);
                    }
                    continue;
                }
                Err(ClientError::TooLong(_)) => continue,
                Ok(None) if id.is_none() => return Ok(true),
                Ok(None) => Ok(false),
                Err(error) => Err(error),
            };
            last = stream.last_event_id().map(str::to_owned).or(last);
            let Some(after) = last.as_deref() else { return broke };
            stream = loop {
                if resumed >= RESUMES {
                    return broke;
                }
                resumed += 1;
                tokio::time::sleep(RESUMES_AFTER).await;
                match self.listen(Some(after)).await {
                    Ok(WholeOrStream::Stream(_, stream)) => break stream,
                    // It does not offer that, or has forgotten it.
                    Ok(WholeOrStream::Whole(_)) => return broke,
                    Err(_) => {}
                }
            };
        }
    }

    /// Opens a stream of what the server says by itself, or what follows after this.
    async fn listen(&self, last: Option<&str>) -> Result<WholeOrStream, ClientError> {
        let mut headers = self.head(None);
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        if let Some(id) = last.and_then(|id| id.parse().ok()) {
            headers.insert("last-event-id", id);
        }
        self.client.exchange_or_stream(Method::GET, &self.path, headers, "").await
    }

    async fn whole(&self, message: &Value, answer: FullResponse) -> Result<(), String> {
        let is_request = message.get("id").is_some() && message.get("method").is_some();
        let text = String::from_utf8_lossy(&answer.body);
        let said = serde_json::from_str::<Value>(&text).ok();
        if answer.status.is_success() {
            self.agree(message, &answer.headers, said.as_ref());
            return match said {
                Some(Value::Object(_)) => {
                    self.emit(&text).await;
                    Ok(())
                }
                _ if is_request => Err("it answered with something that is no message".into()),
                _ => Ok(()),
            };
        }
        // Its own words, if it has some.
        if let Some(mut said) = said.filter(|said| said.get("error").is_some() && is_request) {
            said["id"] = message.get("id").cloned().unwrap_or_default();
            self.emit(&said.to_string()).await;
            return Ok(());
        }
        Err(match answer.status {
            StatusCode::UNAUTHORIZED => {
                "it wants a login (401); give it what it wants with --header".to_owned()
            }
            status => format!("it answered with status {status}"),
        })
    }

    /// Remembers the session and the version that the beginning agrees on.
    fn agree(&self, message: &Value, head: &HeaderMap, said: Option<&Value>) {
        if message.get("method").is_none_or(|method| method != "initialize") {
            return;
        }
        let mut agreed = lock(&self.agreed);
        if let Some(session) = head.get(SESSION) {
            agreed.0 = Some(session.clone());
        }
        let version = said.and_then(|said| said.pointer("/result/protocolVersion"));
        if let Some(version) = version.and_then(Value::as_str).and_then(|it| it.parse().ok()) {
            agreed.1 = Some(version);
        }
    }

    /// Hears what the server says by itself, where it offers that.
    async fn listens(&self) {
        let mut last: Option<String> = None;
        loop {
            match self.listen(last.as_deref()).await {
                Ok(WholeOrStream::Stream(_, mut stream)) => {
                    while let Ok(Some(frame)) = stream.next().await {
                        if !frame.data.trim().is_empty() {
                            self.emit(&frame.data).await;
                        }
                    }
                    last = stream.last_event_id().map(str::to_owned).or(last);
                }
                // It does not offer one.
                Ok(WholeOrStream::Whole(_)) => return,
                Err(_) => {}
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// One message on one line: breaks between values mean nothing.
    async fn emit(&self, text: &str) {
        let mut line = text.trim().replace(['\n', '\r'], " ");
        line.push('\n');
        let _ = self.out.lock().await.write_all(line.as_bytes()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn addresses_and_headers_that_cannot_be_used_are_said() {
        for url in ["", "mcp", "ftp://example.org/mcp", "http://user@example.org/mcp"] {
            assert!(connect(url, &[]).is_err(), "{url}");
        }
        let header = |name: &str, value: &str| [(name.to_owned(), value.to_owned())];
        assert!(connect("https://example.org/mcp", &header("a b", "c")).is_err());
        assert!(connect("https://example.org/mcp", &header("a", "b\nc")).is_err());
        assert!(connect("https://example.org", &header("authorization", "Bearer x")).is_ok());
    }
}
