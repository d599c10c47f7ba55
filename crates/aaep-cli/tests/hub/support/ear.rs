//! Somebody who hears, over any transport, and keeps everything that was heard.

use aaep_conformance::stream::{Checker, Options as Strictness, Weight};
use aaep_transport::client::EventStream;
use aaep_transport::link::{Link, Options as LinkOptions};
use aaep_transport::{grpc, unix, ws};
use http::StatusCode;

use super::people::options;
use super::process::Hub;
use super::{HttpClient, Value, body, json, request, soon, text};

/// Everything that a subscriber can do.
pub fn everything() -> Value {
    json!({ "supports_confirmation_reply": true, "supports_clarification_reply": true,
        "coalesce_boundaries": ["none"], "supported_conformance_levels": [1, 2, 3],
        "supported_extensions":
            ["urn:aaep-rs:outcome:v1", "urn:aaep-rs:timing:v1", "urn:aaep-rs:control:v1"] })
}

enum Way {
    /// Server-sent events, and where messages are posted.
    Events(Box<EventStream>, Box<HttpClient>, &'static str),
    Link(Box<Link>),
}

pub struct Ear {
    way: Way,
    /// Its subscription; nothing that anybody knows if there was no handshake.
    pub subscription: String,
    /// Messages as they came and went, in their order.
    pub heard: Vec<String>,
}

impl Ear {
    /// Subscribes over HTTP and opens the stream.
    pub async fn subscribe(client: HttpClient) -> Self {
        Self::subscribe_for(client, everything()).await
    }

    pub async fn subscribe_for(client: HttpClient, capabilities: Value) -> Self {
        Self::subscribe_after(client, capabilities, None).await
    }

    /// Subscribes over HTTP and opens the stream, after an event that was heard elsewhere.
    pub async fn subscribe_after(
        client: HttpClient,
        capabilities: Value,
        last: Option<&str>,
    ) -> Self {
        let answer = client.post("subscriptions", request(capabilities)).await.unwrap();
        assert_eq!(answer.status, StatusCode::CREATED, "{answer:?}");
        let subscription = text(&body(&answer), "subscription_id").to_owned();
        let location = answer.headers["location"].to_str().unwrap();
        let path = location.strip_prefix("/aaep/v1/").unwrap().to_owned();
        assert_eq!(path, format!("events?subscription_id={subscription}"));
        Self::attach(client, &subscription, last).await
    }

    /// Opens the stream of a subscription, after an event that was heard.
    pub async fn attach(client: HttpClient, subscription: &str, last: Option<&str>) -> Self {
        let path = format!("events?subscription_id={subscription}");
        let stream = client.events(&path, last).await.unwrap();
        let way = Way::Events(Box::new(stream), Box::new(client), "replies");
        Self { way, subscription: subscription.into(), heard: Vec::new() }
    }

    /// Opens a stream without a handshake.
    pub async fn listen(client: HttpClient) -> Self {
        let stream = client.events("events", None).await.unwrap();
        Self {
            way: Way::Events(Box::new(stream), Box::new(client), "messages"),
            subscription: "sub_whatever".into(),
            heard: Vec::new(),
        }
    }

    /// Opens a WebSocket; `negotiated` with `aaep.v1`, subscribed.
    pub async fn web_socket(hub: &Hub, token: Option<&str>, negotiated: bool) -> Self {
        let url = format!("{}/ws", hub.base().replace("http", "ws"));
        let client = options(token);
        let link = ws::connect(&url, negotiated, &client, LinkOptions::default()).await.unwrap();
        Self::over(link, negotiated).await
    }

    /// Opens a conversation over gRPC.
    pub async fn grpc(hub: &Hub, token: &str, negotiated: bool) -> Self {
        let (url, client) = (hub.grpc(), options(Some(token)));
        let opening = grpc::connect(&url, negotiated, &client, LinkOptions::default());
        Self::over(opening.await.unwrap(), negotiated).await
    }

    /// Connects to the Unix socket and subscribes.
    pub async fn unix(hub: &Hub) -> Self {
        let link = unix::connect(&hub.socket(), LinkOptions::default()).await.unwrap();
        Self::over(link, true).await
    }

    /// The same with other terms.
    pub async fn web_socket_for(hub: &Hub, token: &str, asked: Value) -> Self {
        let url = format!("{}/ws", hub.base().replace("http", "ws"));
        let client = options(Some(token));
        let link = ws::connect(&url, true, &client, LinkOptions::default()).await.unwrap();
        Self::over_for(link, Some(asked)).await
    }

    /// The same with other terms.
    pub async fn unix_for(hub: &Hub, asked: Value) -> Self {
        let link = unix::connect(&hub.socket(), LinkOptions::default()).await.unwrap();
        Self::over_for(link, Some(asked)).await
    }

    /// Takes a link; `negotiated`, subscribed.
    pub async fn over(link: Link, negotiated: bool) -> Self {
        Self::over_for(link, negotiated.then(everything)).await
    }

    async fn over_for(link: Link, asked: Option<Value>) -> Self {
        let subscription = "sub_whatever".into();
        let mut ear = Self { way: Way::Link(Box::new(link)), subscription, heard: Vec::new() };
        if let Some(asked) = asked {
            ear.send(&request(asked)).await;
            let accepted = ear.next().await;
            assert_eq!(accepted["type"], "subscription.accepted", "{accepted}");
            ear.subscription = text(&accepted, "subscription_id").to_owned();
        }
        ear
    }

    /// The next message; `None` at the end of the stream.
    pub async fn try_next(&mut self) -> Option<Value> {
        let message = match &mut self.way {
            Way::Events(stream, _, posted) => {
                let frame = soon("an event", stream.next()).await.unwrap()?;
                let message: Value = serde_json::from_str(&frame.data).unwrap();
                let named = *posted == "replies";
                assert_eq!(frame.name.as_deref(), named.then_some("aaep.event"));
                assert_eq!(frame.id.as_deref(), message["event_id"].as_str());
                frame.data
            }
            Way::Link(link) => soon("a message", link.receive()).await.ok()??.to_string(),
        };
        self.heard.push(message.clone());
        Some(serde_json::from_str(&message).unwrap())
    }

    pub async fn next(&mut self) -> Value {
        self.try_next().await.expect("the stream goes on")
    }

    /// The next event of this type, without `aaep:agent.`; what comes before it is kept.
    pub async fn event(&mut self, kind: &str) -> Value {
        let wanted = format!("aaep:agent.{kind}");
        loop {
            let message = self.next().await;
            if message["type"] == wanted {
                return message;
            }
        }
    }

    /// The next message of this type that is no event.
    pub async fn message(&mut self, kind: &str) -> Value {
        loop {
            let message = self.next().await;
            if message["type"] == kind {
                return message;
            }
        }
    }

    /// Everything up to the end of the stream.
    pub async fn until_end(&mut self) -> Vec<Value> {
        let mut rest = Vec::new();
        while let Some(message) = self.try_next().await {
            rest.push(message);
        }
        rest
    }

    /// With which code the other end closed the connection.
    pub async fn close_code(self) -> Option<u16> {
        let Way::Link(link) = self.way else { return None };
        let (_sender, mut receiver) = link.split();
        while let Ok(Some(_)) = soon("the end", receiver.receive()).await {}
        receiver.close_reason().map(|(code, _)| code)
    }

    /// Sends a message the way this one sends messages.
    pub async fn send(&mut self, message: &str) {
        self.heard.push(message.to_owned());
        match &mut self.way {
            Way::Events(_, client, path) => {
                let answer = client.post(path, message.to_owned()).await.unwrap();
                let wanted = if *path == "replies" { 204 } else { 202 };
                assert_eq!((answer.status.as_u16(), &answer.body[..]), (wanted, &b""[..]));
            }
            Way::Link(link) => link.send(message.to_owned()).await.unwrap(),
        }
    }

    /// Sends a message over a link, if the other end takes it.
    pub async fn try_send(&mut self, message: &str) -> bool {
        let Way::Link(link) = &mut self.way else { return false };
        link.send(message.to_owned()).await.is_ok()
    }

    /// Answers a confirmation.
    pub async fn decide(&mut self, request: &Value, decision: &str) {
        let reply = super::decision(text(request, "reply_token"), &self.subscription, decision);
        self.send(&reply).await;
    }

    /// The same, with what else the reply says.
    pub async fn decide_saying(&mut self, request: &Value, decision: &str, more: Value) {
        let reply = super::decision(text(request, "reply_token"), &self.subscription, decision);
        let mut reply: Value = serde_json::from_str(&reply).unwrap();
        reply.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.send(&reply.to_string()).await;
    }

    /// Answers a question.
    pub async fn answer(&mut self, request: &Value, response: Value) {
        let reply = super::answer(text(request, "reply_token"), &self.subscription, response);
        self.send(&reply).await;
    }

    /// The id to come back with.
    pub fn last_event_id(&self) -> Option<String> {
        let ids = self.heard.iter().rev().filter_map(|message| {
            let message: Value = serde_json::from_str(message).ok()?;
            Some(message["event_id"].as_str()?.to_owned())
        });
        ids.into_iter().next()
    }

    /// Nothing that was heard breaks a rule.
    pub fn is_lawful(&self) {
        lawful(&self.heard);
    }
}

/// As `aaep check` judges a stream.
pub fn lawful(messages: &[String]) {
    let mut checker = Checker::new(Strictness::default());
    let mut found = Vec::new();
    for (line, message) in messages.iter().enumerate() {
        checker.message(line as u64 + 1, message.as_bytes(), &mut found);
    }
    checker.finish(&mut found);
    found.retain(|finding| finding.weight != Weight::Note);
    assert!(found.is_empty(), "{found:#?}\n{messages:#?}");
}
