//! Where messages come from: a stream over HTTP, a WebSocket, gRPC, a Unix socket, a program over stdio.

use std::time::Duration;

use aaep_subscriber::client::{Address, Hub};
use aaep_subscriber::inbox::{Bounds, Connection, Inbox, InboxInput, Settings};
use aaep_transport::client::{ClientError, EventStream, HttpClient};
use aaep_transport::link::{Link, LinkError, Options};
use aaep_transport::{grpc, stdio, ws};
use aaep_types::{Level, Message};

/// How long a producer may take to answer the handshake.
const HANDSHAKE: Duration = Duration::from_secs(30);

/// The path of a hub on its socket.
const BASE: &str = "/aaep/v1";

pub(crate) struct Feed {
    hub: Hub,
    raw: bool,
    /// Asks for subscriptions, and knows where a link left off.
    inbox: Inbox,
    connection: Connection,
    last_event: Option<String>,
    stream: Option<Stream>,
}

enum Stream {
    Events(Box<EventStream>),
    Link(Box<Link>),
}

impl Feed {
    /// `last_event` is where an earlier capture ended.
    pub(crate) fn new(hub: Hub, raw: bool, replies: bool, last_event: Option<String>) -> Self {
        let settings = Settings {
            subscriber_id: "aaep-capture".into(),
            subscriber_name: "aaep capture".into(),
            subscriber_version: env!("CARGO_PKG_VERSION").into(),
            load: Level::High,
            replies,
            ..Settings::default()
        };
        let mut inbox = Inbox::new(settings, Bounds::default(), 0);
        let connection = inbox.add("capture", 0);
        Self { hub, raw, inbox, connection, last_event, stream: None }
    }

    /// A new connection, after what was heard last.
    pub(crate) async fn connect(&mut self) -> Result<(), String> {
        self.stream = None;
        let connecting = self.open();
        let opened = tokio::time::timeout(HANDSHAKE, connecting).await;
        let late = || Err("the producer did not answer the handshake in time".to_owned());
        let stream = opened.unwrap_or_else(|_| late())?;
        self.stream = Some(stream);
        Ok(())
    }

    async fn open(&mut self) -> Result<Stream, String> {
        let options = self.hub.options.clone();
        let client = match &self.hub.address {
            Address::Http(base) => HttpClient::new(base, options).map_err(said)?,
            #[cfg(unix)]
            Address::Socket(path) => HttpClient::over_socket(path, BASE, options),
            _ => return self.open_link().await,
        };
        let path = match self.raw {
            true => "events".to_owned(),
            false => self.subscribe(&client).await?,
        };
        let stream = client.events(&path, self.last_event.as_deref()).await.map_err(said)?;
        Ok(Stream::Events(Box::new(stream)))
    }

    /// The path of the stream of a new subscription.
    async fn subscribe(&mut self, client: &HttpClient) -> Result<String, String> {
        let request = self.inbox.begin(self.connection, 0);
        let answer = client.post("subscriptions", request).await.map_err(said)?;
        if [404, 405].contains(&answer.status.as_u16()) {
            return Err("the producer knows no handshake; use --raw".into());
        }
        match Message::parse(&answer.body) {
            Ok(Message::Accepted(accepted)) => {
                Ok(format!("events?subscription_id={}", accepted.subscription_id.as_str()))
            }
            Ok(Message::Rejected(_)) => {
                Err(format!("the producer rejected the subscription ({})", answer.status))
            }
            _ => Err(format!(
                "the producer answered the handshake with {} and no message of it",
                answer.status
            )),
        }
    }

    async fn open_link(&mut self) -> Result<Stream, String> {
        let mut link = open_link(&self.hub, !self.raw).await?;
        if self.raw {
            return Ok(Stream::Link(Box::new(link)));
        }
        let request = self.inbox.resume(self.connection, 0);
        link.send(request).await.map_err(|error| error.to_string())?;
        loop {
            let answer = link.receive().await.map_err(|error| error.to_string())?;
            let answer = answer.ok_or("the producer ended the connection")?;
            match Message::parse(answer.as_bytes()) {
                Ok(Message::Accepted(_)) => {
                    self.note(answer.as_bytes());
                    self.inbox.handle(InboxInput::Attached { connection: self.connection }, 0);
                    return Ok(Stream::Link(Box::new(link)));
                }
                Ok(Message::Rejected(_)) => {
                    return Err("the producer rejected the subscription".into());
                }
                _ => {}
            }
        }
    }

    /// Lets the inbox know where we are, and forgets what it would say.
    fn note(&mut self, bytes: &[u8]) {
        self.inbox.handle(InboxInput::Message { connection: self.connection, bytes }, 0);
        while self.inbox.poll_notification(0).is_some() {}
        while self.inbox.poll_send().is_some() {}
        while self.inbox.poll_log().is_some() {}
    }

    /// The next message; `None` for one that was too long. An error ends the connection.
    pub(crate) async fn next(&mut self) -> Result<Option<String>, String> {
        match &mut self.stream {
            None => Err("there is no connection".into()),
            Some(Stream::Events(stream)) => match stream.next().await {
                Ok(Some(frame)) => {
                    if frame.id.is_some() {
                        self.last_event = frame.id;
                    }
                    Ok(Some(frame.data))
                }
                Ok(None) => Err("the producer ended the stream".into()),
                Err(ClientError::TooLong(_)) => Ok(None),
                Err(error) => Err(said(error)),
            },
            Some(Stream::Link(link)) => match link.receive().await {
                Ok(Some(text)) => {
                    let text = text.as_str().to_owned();
                    if !self.raw {
                        self.note(text.as_bytes());
                    }
                    Ok(Some(text))
                }
                Ok(None) => Err("the producer ended the connection".into()),
                Err(LinkError::TooLong(_) | LinkError::NotText) => Ok(None),
                Err(error) => Err(error.to_string()),
            },
        }
    }
}

/// A connection both ways to a producer, whatever its address. Without `negotiated` there is no handshake.
pub(crate) async fn open_link(hub: &Hub, negotiated: bool) -> Result<Link, String> {
    let options = Options { max_message: hub.options.max_message, ..Options::default() };
    match &hub.address {
        Address::WebSocket(url) => {
            ws::connect(url, negotiated, &hub.options, options).await.map_err(said)
        }
        Address::Grpc(url) => {
            grpc::connect(url, negotiated, &hub.options, options).await.map_err(said)
        }
        Address::Stdio(_) if !negotiated => {
            Err("over stdio a producer waits for the handshake; leave out --raw".into())
        }
        Address::Stdio(command) => {
            stdio::connect(command, &options).map_err(|error| format!("{command}: {error}"))
        }
        Address::Http(base) => {
            let url = format!("{}/ws", base.replacen("http", "ws", 1));
            ws::connect(&url, negotiated, &hub.options, options).await.map_err(said)
        }
        #[cfg(unix)]
        Address::Socket(path) => aaep_transport::unix::connect(path, options)
            .await
            .map_err(|error| format!("{}: {error}", path.display())),
        #[cfg(windows)]
        Address::Pipe(path) => {
            aaep_transport::pipe::connect(path, hub.options.trust_loopback, options)
                .await
                .map_err(|error| format!("{path}: {error}"))
        }
        _ => Err("this kind of address is not known".into()),
    }
}

fn said(error: ClientError) -> String {
    error.to_string()
}
