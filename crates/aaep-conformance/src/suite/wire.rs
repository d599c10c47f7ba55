//! How the target is reached: HTTP, WebSocket, Unix socket.
//!
//! Everything above this file speaks of a [`Line`]: what one subscriber hears and says. A transport that
//! fits `aaep_transport::link::Link` is added as one arm of [`Wire::link`].

use std::time::Duration;

use aaep_transport::client::{FullResponse, HttpClient, Options, Token};
use aaep_transport::link::{Link, Sender};
use aaep_transport::{link, ws};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use super::ear::Ear;
use super::target::Target;

/// Where the target is.
#[derive(Clone, Debug)]
enum Address {
    Http,
    WebSocket,
    #[cfg(unix)]
    Socket(std::path::PathBuf),
}

/// One way to the target, as one principal.
pub(super) struct Wire {
    address: Address,
    url: String,
    options: Options,
    /// Requests beside the stream; for a socket, over that socket.
    base: HttpBase,
    patience: Duration,
}

#[derive(Clone)]
enum HttpBase {
    Url(String),
    #[cfg(unix)]
    Socket(std::path::PathBuf, String),
}

/// What one subscriber hears and says.
pub(super) struct Line {
    pub(super) ear: Ear,
    mouth: Mouth,
    /// Its subscription, if it negotiated.
    pub(super) id: Option<String>,
    /// What its request was answered with.
    pub(super) accepted: Value,
}

enum Mouth {
    Http { client: Box<HttpClient>, replies: &'static str },
    Link(Mutex<Sender>),
}

/// What became of a request for a subscription.
pub(super) enum Asked {
    Accepted(Box<Line>),
    Rejected(Value),
    /// An HTTP status without a message.
    Refused(u16),
    Silence(String),
}

impl Wire {
    pub(super) fn new(target: &Target, token: Option<&str>) -> Result<Self, String> {
        let token = token.map(Token::parse).transpose().map_err(|error| error.to_string())?;
        let options = Options {
            token,
            trust_loopback: target.trust_loopback,
            connect: target.patience,
            answer: target.patience,
            silence: target.deadline,
            ..Options::default()
        };
        let url = target.url.clone();
        let (address, base) = if url.starts_with("http://") || url.starts_with("https://") {
            (Address::Http, HttpBase::Url(url.clone()))
        } else if let Some(rest) = url.strip_prefix("ws") {
            let beside = format!("http{}", rest.trim_end_matches('/').trim_end_matches("/ws"));
            (Address::WebSocket, HttpBase::Url(beside))
        } else {
            Self::socket(&url)?
        };
        let base = target.control.clone().map_or(base, HttpBase::Url);
        Ok(Self { address, url, options, base, patience: target.patience })
    }

    #[cfg(unix)]
    fn socket(url: &str) -> Result<(Address, HttpBase), String> {
        let path = url.strip_prefix("unix:").ok_or_else(|| wrong_address(url))?;
        let path = std::path::PathBuf::from(path.strip_prefix("//").unwrap_or(path));
        Ok((Address::Socket(path.clone()), HttpBase::Socket(path, "/aaep/v1".into())))
    }

    #[cfg(not(unix))]
    fn socket(url: &str) -> Result<(Address, HttpBase), String> {
        Err(wrong_address(url))
    }

    /// Whether it is spoken with by requests and answers.
    pub(super) fn is_http(&self) -> bool {
        matches!(self.address, Address::Http)
    }

    /// Whether one may listen without a handshake.
    fn listens_plainly(&self) -> bool {
        matches!(self.address, Address::Http | Address::WebSocket)
    }

    /// For requests beside the stream.
    pub(super) fn client(&self) -> Result<HttpClient, String> {
        self.client_with(self.options.clone())
    }

    pub(super) fn client_with(&self, options: Options) -> Result<HttpClient, String> {
        match &self.base {
            HttpBase::Url(url) => HttpClient::new(url, options).map_err(|error| error.to_string()),
            #[cfg(unix)]
            HttpBase::Socket(path, base) => Ok(HttpClient::over_socket(path, base, options)),
        }
    }

    pub(super) fn options(&self) -> Options {
        self.options.clone()
    }

    /// For what lies at the root of the server, such as its manifest.
    pub(super) fn root(&self) -> Result<HttpClient, String> {
        match &self.base {
            HttpBase::Url(url) => {
                let (scheme, rest) = url.split_once("://").unwrap_or(("http", url));
                let host = rest.split('/').next().unwrap_or(rest);
                let origin = format!("{scheme}://{host}");
                HttpClient::new(&origin, self.options.clone()).map_err(|error| error.to_string())
            }
            #[cfg(unix)]
            HttpBase::Socket(path, _) => {
                Ok(HttpClient::over_socket(path, "", self.options.clone()))
            }
        }
    }

    /// Where a raw connection could be made, for a plain HTTP target: host with port, and path.
    pub(super) fn plain_http(&self) -> Option<(String, String)> {
        if !self.is_http() {
            return None;
        }
        let rest = self.url.strip_prefix("http://")?;
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let host = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
        Some((host, format!("/{}", path.trim_end_matches('/'))))
    }

    /// A connection that carries messages both ways.
    async fn link(&self, negotiated: bool) -> Result<Link, String> {
        let options = link::Options::default();
        match &self.address {
            Address::WebSocket => {
                let opening = ws::connect(&self.url, negotiated, &self.options, options);
                opening.await.map_err(|error| error.to_string())
            }
            #[cfg(unix)]
            Address::Socket(path) => {
                let opening = aaep_transport::unix::connect(path, options);
                opening.await.map_err(|error| error.to_string())
            }
            Address::Http => Err("HTTP has no connection for both ways".into()),
        }
    }

    /// Hears everything without a handshake; over a transport that knows none without, with the widest.
    pub(super) async fn listen(&self) -> Result<Line, String> {
        if !self.listens_plainly() {
            let wanted = request(&widest(), aaep_types::AAEP_VERSION.to_string());
            return match self.ask_over_link(&wanted).await? {
                Asked::Accepted(line) => Ok(*line),
                Asked::Rejected(answer) => Err(format!("it rejected the widest terms: {answer}")),
                _ => Err("it did not answer the widest terms".into()),
            };
        }
        if self.is_http() {
            let client = self.client()?;
            let stream = client.events("events", None).await.map_err(|error| error.to_string())?;
            let mouth = Mouth::Http { client: Box::new(client), replies: "messages" };
            return Ok(Line {
                ear: Ear::of_stream(stream),
                mouth,
                id: None,
                accepted: Value::Null,
            });
        }
        let (sender, receiver) = self.link(false).await?.split();
        let mouth = Mouth::Link(Mutex::new(sender));
        Ok(Line { ear: Ear::of_link(receiver), mouth, id: None, accepted: Value::Null })
    }

    /// For somebody who only says things; over HTTP that needs no stream.
    pub(super) async fn speak(&self) -> Result<Line, String> {
        if !self.is_http() {
            return self.listen().await;
        }
        let mouth = Mouth::Http { client: Box::new(self.client()?), replies: "messages" };
        Ok(Line { ear: Ear::silent(), mouth, id: None, accepted: Value::Null })
    }

    /// Asks for these terms.
    pub(super) async fn subscribe(&self, capabilities: &Value) -> Asked {
        self.ask(&request(capabilities, aaep_types::AAEP_VERSION.to_string())).await
    }

    /// Sends this as a request for a subscription.
    pub(super) async fn ask(&self, request: &Value) -> Asked {
        let asked = if self.is_http() {
            self.ask_over_http(request).await
        } else {
            self.ask_over_link(request).await
        };
        asked.unwrap_or_else(Asked::Silence)
    }

    async fn ask_over_http(&self, request: &Value) -> Result<Asked, String> {
        let client = self.client()?;
        let answer = client.post("subscriptions", request.to_string()).await;
        let answer = answer.map_err(|error| error.to_string())?;
        if matches!(answer.status.as_u16(), 404 | 405) {
            return self.ask_on_stream(request).await;
        }
        let said: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        match said["type"].as_str() {
            Some("subscription.accepted") => {
                let id = said["subscription_id"].as_str().unwrap_or_default().to_owned();
                let path = format!("events?subscription_id={id}");
                let stream = client.events(&path, None).await;
                let stream = stream.map_err(|error| format!("its stream: {error}"))?;
                let mouth = Mouth::Http { client: Box::new(client), replies: "replies" };
                let ear = Ear::of_stream(stream);
                Ok(Asked::Accepted(Box::new(Line { ear, mouth, id: Some(id), accepted: said })))
            }
            Some("subscription.rejected") => Ok(Asked::Rejected(said)),
            _ => Ok(Asked::Refused(answer.status.as_u16())),
        }
    }

    /// As the published producers do it: posted beside a stream that is open, and answered on it.
    async fn ask_on_stream(&self, request: &Value) -> Result<Asked, String> {
        let mut line = self.listen().await?;
        line.say(request).await?;
        self.answered(&mut line).await.map(|answer| settle(answer, line))
    }

    async fn ask_over_link(&self, request: &Value) -> Result<Asked, String> {
        let (sender, receiver) = self.link(true).await?.split();
        let mouth = Mouth::Link(Mutex::new(sender));
        let ear = Ear::of_link(receiver);
        let mut line = Line { ear, mouth, id: None, accepted: Value::Null };
        line.say(request).await?;
        self.answered(&mut line).await.map(|answer| settle(answer, line))
    }

    async fn answered(&self, line: &mut Line) -> Result<Value, String> {
        let answer = line.ear.wait(0, self.patience, is_answer).await;
        answer.map(|(_, value)| value).ok_or_else(|| "a request was not answered".into())
    }

    /// A connection that asks for everything; nobody reads it while it is held.
    pub(super) async fn idle(&self) -> Option<Box<dyn std::any::Any + Send>> {
        if self.is_http() {
            let stream = self.client().ok()?.events("events", None).await.ok()?;
            return Some(Box::new(stream));
        }
        let mut link = self.link(!self.listens_plainly()).await.ok()?;
        if !self.listens_plainly() {
            let wanted = request(&widest(), aaep_types::AAEP_VERSION.to_string());
            link.send(wanted.to_string()).await.ok()?;
        }
        Some(Box::new(link))
    }

    /// Opens the stream of a subscription again, after this event.
    pub(super) async fn come_back(&self, line: &Line, last: &str) -> Result<Ear, String> {
        let id = line.id.as_deref().unwrap_or_default();
        let path = format!("events?subscription_id={id}");
        let stream = self.client()?.events(&path, Some(last)).await;
        stream.map(Ear::of_stream).map_err(|error| error.to_string())
    }
}

fn settle(answer: Value, mut line: Line) -> Asked {
    if answer["type"] != "subscription.accepted" {
        return Asked::Rejected(answer);
    }
    line.id = answer["subscription_id"].as_str().map(str::to_owned);
    line.accepted = answer;
    Asked::Accepted(Box::new(line))
}

fn is_answer(message: &Value) -> bool {
    message["type"] == "subscription.accepted" || message["type"] == "subscription.rejected"
}

fn wrong_address(url: &str) -> String {
    format!("{url} is no address: it begins with http, https, ws, wss or unix")
}

/// A request for these terms.
pub(super) fn request(capabilities: &Value, version: String) -> Value {
    json!({
        "type": "subscription.request", "aaep_version": version,
        "subscriber_id": "aaep-conformance", "subscriber_name": "The conformance suite",
        "capabilities": capabilities,
    })
}

/// Everything, as it comes, and answers both ways.
pub(super) fn widest() -> Value {
    json!({
        "supports_confirmation_reply": true, "supports_clarification_reply": true,
        "coalesce_boundaries": ["none"], "supported_conformance_levels": [1, 2, 3],
        "languages": ["en"], "event_filters": { "include": ["aaep:agent.*"] },
    })
}

impl Line {
    /// What a reply names as its subscription.
    pub(super) fn subscription(&self) -> &str {
        self.id.as_deref().unwrap_or("sub_conformance")
    }

    /// Says something; over HTTP there is an answer to it.
    pub(super) async fn say(&self, message: &Value) -> Result<Option<FullResponse>, String> {
        self.say_text(message.to_string()).await
    }

    pub(super) async fn say_text(&self, text: String) -> Result<Option<FullResponse>, String> {
        match &self.mouth {
            Mouth::Http { client, replies } => {
                client.post(replies, text).await.map(Some).map_err(|error| error.to_string())
            }
            Mouth::Link(sender) => {
                let sent = sender.lock().await.send(text).await;
                sent.map(|()| None).map_err(|error| error.to_string())
            }
        }
    }

    /// Asks for new terms; gives the answer.
    pub(super) async fn renegotiate(
        &self,
        capabilities: &Value,
        patience: Duration,
    ) -> Result<Value, String> {
        let from = self.ear.len();
        let message = json!({
            "type": "subscription.renegotiate", "subscription_id": self.subscription(),
            "capabilities": capabilities,
        });
        let said = self.say(&message).await?;
        let body = said.and_then(|answer| serde_json::from_slice::<Value>(&answer.body).ok());
        if let Some(answer) = body.filter(is_answer) {
            return Ok(answer);
        }
        let heard = self.ear.wait(from, patience, is_answer).await;
        heard.map(|(_, value)| value).ok_or_else(|| "new terms were not answered".into())
    }

    /// The same subscription, without anybody who hears it.
    pub(super) fn deaf(self) -> Self {
        Self { ear: Ear::silent(), ..self }
    }

    pub(super) async fn close(&self) -> Result<(), String> {
        let message =
            json!({ "type": "subscription.close", "subscription_id": self.subscription() });
        self.say(&message).await.map(drop)
    }
}
