//! Confirmations from request to resolution, inside one process: hub and store, without HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use aaep_engine::{Principal, RequestId, Role};
use aaep_hub::config::Config;
use aaep_hub::{Hub, Listening, Running};
use aaep_types::agent_api::{AskUser, OpenSession, RequestStatus};
use aaep_types::{EventKind, SessionId};

pub fn agent() -> Principal {
    Principal::new("worker", Role::Agent, "someone")
}

fn reader() -> Principal {
    Principal::new("reader", Role::AccessibilityConsumer, "someone")
}

pub fn config(directory: Option<&std::path::Path>) -> Config {
    let text = r#"
        listen = ["127.0.0.1:0"]
        [unix_socket]
        enabled = false
        [limits]
        prompts_per_window = 4000000
        replies_per_second = 4000000
        pending_per_session = 100000
        "#;
    let mut config: Config = toml::from_str(text).expect("a configuration");
    config.ephemeral = directory.is_none();
    config.data = directory.map(|directory| directory.join("data"));
    config.state = directory.map(|directory| directory.join("state"));
    config
}

pub async fn start_hub(directory: Option<&std::path::Path>) -> Running {
    let config = config(directory);
    Hub::builder().config(config).start().await.expect("a hub")
}

async fn open(hub: &Hub) -> SessionId {
    let opening = OpenSession {
        producer: r#"{"agent_id":"worker"}"#.into(),
        summary_normal: "Working.".into(),
        lease_seconds: Some(86_400),
        payload: "{}".into(),
        ..OpenSession::default()
    };
    hub.agent(&agent()).open(opening, None).await.expect("a session").session_id
}

async fn ask(hub: &Hub, session: SessionId, count: usize) -> RequestId {
    let question = AskUser {
        kind: EventKind::AwaitingConfirmation,
        tool: "delete_file".into(),
        arguments: format!(r#"{{"path":"{count}.txt"}}"#),
        payload: format!(
            r#"{{"action":"Delete {count}.txt","consequence":"It is gone.","risk_level":"high","irreversible":true,"timeout_seconds":300,"default_decision":"reject","summary_normal":"May I delete {count}.txt?"}}"#
        ),
    };
    let asked = hub.agent(&agent()).ask(session, question, None).await.expect("a request");
    RequestId::parse(&asked.state.request_id).expect("its name")
}

/// Waits until it is decided.
async fn decided(hub: &Hub, request: RequestId) {
    let wait = std::time::Duration::from_secs(60);
    let state = hub.agent(&agent()).request(request, wait).await.expect("a decision");
    assert_eq!(state.status, RequestStatus::Rejected);
}

/// The reply to an event that asks.
fn reply_to(event: &[u8], subscription: &str) -> Option<String> {
    let at = memchr::memmem::find(event, b"\"rpl_")? + 1;
    let token = std::str::from_utf8(&event[at..at + 36]).ok()?;
    let stamp = memchr::memmem::find(event, b"\"timestamp\":\"")? + 13;
    let stamp = std::str::from_utf8(&event[stamp..]).ok()?.split('"').next()?;
    Some(format!(
        r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"reject","subscription_id":"{subscription}","timestamp":"{stamp}"}}"#
    ))
}

/// Answers everything, each reply on its own.
async fn answer_all(mut listening: Listening) {
    let subscription = listening.subscription().to_string();
    while let Some(event) = listening.next().await {
        if let Some(reply) = reply_to(&event, &subscription) {
            let replier = listening.replier().clone();
            tokio::spawn(async move { assert!(replier.send(reply.into()).await) });
        }
    }
}

/// An agent that asks, and a person who answers.
pub struct Confirming {
    hub: Hub,
    listening: Listening,
    session: SessionId,
    asked: usize,
}

impl Confirming {
    pub async fn new(hub: &Hub) -> Self {
        let listening = hub.listen_inside(&reader()).await.expect("a stream");
        Self { hub: hub.clone(), listening, session: open(hub).await, asked: 0 }
    }

    /// How long a confirmation takes, from asking to knowing.
    pub async fn once(&mut self) -> Duration {
        let start = Instant::now();
        let request = ask(&self.hub, self.session, self.asked).await;
        self.asked += 1;
        let subscription = self.listening.subscription().to_string();
        let reply = loop {
            let event = self.listening.next().await.expect("it goes on");
            if let Some(reply) = reply_to(&event, &subscription) {
                break reply;
            }
        };
        assert!(self.listening.replier().send(reply.into()).await);
        decided(&self.hub, request).await;
        start.elapsed()
    }
}

/// How long each confirmation takes.
pub async fn one_at_a_time(durable: bool, count: usize) -> Vec<Duration> {
    let place = crate::place();
    let running = start_hub(durable.then_some(place.path())).await;
    let mut confirming = Confirming::new(running.hub()).await;
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        times.push(confirming.once().await);
    }
    drop(confirming);
    running.stop().await.expect("a good end");
    times
}

/// Resolutions a second with so many confirmations at once.
pub async fn many_at_a_time(at_once: usize, count: usize) -> f64 {
    let place = crate::place();
    let running = start_hub(Some(place.path())).await;
    let hub = running.hub().clone();
    let listening = hub.listen_inside(&reader()).await.expect("a stream");
    let answers = tokio::spawn(answer_all(listening));
    let next = Arc::new(AtomicUsize::new(0));
    let start = Instant::now();
    let workers: Vec<_> = (0..at_once)
        .map(|_| {
            let (hub, next) = (hub.clone(), next.clone());
            tokio::spawn(async move {
                let session = open(&hub).await;
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        break;
                    }
                    let request = ask(&hub, session, number).await;
                    decided(&hub, request).await;
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.expect("a worker");
    }
    let took = start.elapsed();
    answers.abort();
    running.stop().await.expect("a good end");
    count as f64 / took.as_secs_f64()
}
