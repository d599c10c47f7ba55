//! Confirmations from request to resolution, inside one process: hub and store, without HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use aaep_engine::{Principal, Role};
use aaep_hub::config::Config;
use aaep_hub::{Hub, Listening, Running};
use bytes::Bytes;

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

async fn open(hub: &Hub) -> String {
    let body =
        r#"{"producer":{"agent_id":"worker"},"summary_normal":"Working.","lease_seconds":86400}"#;
    let (status, answer) = hub.agent_call(&agent(), "POST", "agent/sessions", None, body).await;
    assert_eq!(status, 201);
    member(&answer, "session_id")
}

fn member(answer: &Bytes, name: &str) -> String {
    let value: serde_json::Value = serde_json::from_slice(answer).expect("JSON");
    value[name].as_str().expect("a text").to_owned()
}

async fn ask(hub: &Hub, session: &str, count: usize) -> String {
    let body = format!(
        r#"{{"kind":"confirmation","tool":"delete_file","arguments":{{"path":"{count}.txt"}},"action":"Delete {count}.txt","consequence":"It is gone.","risk_level":"high","irreversible":true,"timeout_seconds":300,"default_decision":"reject","summary_normal":"May I delete {count}.txt?"}}"#
    );
    let path = format!("agent/sessions/{session}/requests");
    let (status, answer) = hub.agent_call(&agent(), "POST", &path, None, body).await;
    assert_eq!(status, 201, "{answer:?}");
    member(&answer, "request_id")
}

/// Waits until it is decided.
async fn decided(hub: &Hub, request: &str) {
    let path = format!("agent/requests/{request}?wait=60");
    let (status, answer) = hub.agent_call(&agent(), "GET", &path, None, "").await;
    assert!(status == 200 && member(&answer, "status") == "rejected", "{answer:?}");
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

/// How long each confirmation takes, from asking to knowing.
pub async fn one_at_a_time(durable: bool, count: usize) -> Vec<Duration> {
    let place = crate::place();
    let running = start_hub(durable.then_some(place.path())).await;
    let hub = running.hub().clone();
    let mut listening = hub.listen_inside(&reader()).await.expect("a stream");
    let subscription = listening.subscription().to_string();
    let session = open(&hub).await;
    let mut times = Vec::with_capacity(count);
    for number in 0..count {
        let start = Instant::now();
        let request = ask(&hub, &session, number).await;
        let reply = loop {
            let event = listening.next().await.expect("it goes on");
            if let Some(reply) = reply_to(&event, &subscription) {
                break reply;
            }
        };
        assert!(listening.replier().send(reply.into()).await);
        decided(&hub, &request).await;
        times.push(start.elapsed());
    }
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
                    let request = ask(&hub, &session, number).await;
                    decided(&hub, &request).await;
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
