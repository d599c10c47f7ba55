//! Somebody who listens, remembers everything, and answers when asked.

use std::sync::Arc;
use std::time::Duration;

use aaep_conformance::stream::{Checker, Options, Weight};
use aaep_transport::client::{HttpClient, Options as ClientOptions};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::LONG;

/// What a person does when asked.
#[derive(Clone, Debug)]
pub enum Reaction {
    Accept,
    Reject,
    /// The answer to a question.
    Say(Value),
    /// Nothing: somebody else answers, or nobody.
    Silence,
    /// Stops the whole session.
    Stop,
}

pub struct Person {
    heard: watch::Receiver<Vec<String>>,
    client: Arc<HttpClient>,
    subscription: String,
    task: JoinHandle<()>,
}

impl Drop for Person {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Person {
    pub async fn listens_to(
        url: &str,
        mut answer: impl FnMut(&Value) -> Reaction + Send + 'static,
    ) -> Self {
        let client = Arc::new(HttpClient::new(url, ClientOptions::default()).unwrap());
        let request = json!({
            "type": "subscription.request",
            "aaep_version": "1.0.0",
            "subscriber_id": "test-person",
            "capabilities": {
                "supports_confirmation_reply": true,
                "supports_clarification_reply": true,
                "coalesce_boundaries": ["none"],
                "supported_conformance_levels": [1, 2, 3],
            },
        });
        let accepted = client.post("subscriptions", request.to_string()).await.unwrap();
        assert_eq!(accepted.status, 201, "{:?}", accepted.body);
        let accepted: Value = serde_json::from_slice(&accepted.body).unwrap();
        let subscription = accepted["subscription_id"].as_str().unwrap().to_owned();
        let path = format!("events?subscription_id={subscription}");
        let mut events = client.events(&path, None).await.unwrap();
        let (sender, heard) = watch::channel(Vec::new());
        let (answers, id) = (client.clone(), subscription.clone());
        let task = tokio::spawn(async move {
            while let Ok(Some(frame)) = events.next().await {
                let event: Value = serde_json::from_str(&frame.data).unwrap();
                sender.send_modify(|heard: &mut Vec<String>| heard.push(frame.data.clone()));
                if event.get("reply_token").is_some() {
                    let reply = reply(&event, answer(&event), &id);
                    if let Some(reply) = reply {
                        let answered = answers.post("replies", reply.to_string()).await.unwrap();
                        assert_eq!(answered.status, 204);
                    }
                }
            }
        });
        Self { heard, client, subscription, task }
    }

    /// Waits until something that was heard passes the test, and gives all of it.
    pub async fn hears(&self, what: &str, test: impl Fn(&Value) -> bool) -> Vec<Value> {
        let mut heard = self.heard.clone();
        let passes = |heard: &Vec<String>| parse(heard).iter().any(&test);
        let waited = timeout(LONG / 2, heard.wait_for(passes)).await;
        assert!(waited.is_ok(), "not heard: {what}; heard: {:#?}", types(&self.heard.borrow()));
        parse(&self.heard.borrow())
    }

    /// Waits for an event of this type.
    pub async fn hears_type(&self, name: &str) -> Vec<Value> {
        self.hears(name, |event| is(event, name)).await
    }

    /// Waits until this many sessions are over, and judges the whole stream: no error, no warning.
    pub async fn judges(&self, sessions: usize) -> Vec<Value> {
        let mut heard = self.heard.clone();
        let ended = |heard: &Vec<String>| {
            parse(heard).iter().filter(|event| is_end(event)).count() >= sessions
        };
        let waited = timeout(LONG / 2, heard.wait_for(ended)).await;
        assert!(waited.is_ok(), "no end; heard: {:#?}", types(&self.heard.borrow()));
        let heard = self.heard.borrow().clone();
        check(&heard);
        parse(&heard)
    }

    pub fn so_far(&self) -> Vec<Value> {
        parse(&self.heard.borrow())
    }

    /// Stops a session.
    pub async fn stops(&self, session: &str) {
        let message = json!({
            "type": "control:cancel",
            "session_id": session,
            "subscription_id": self.subscription,
            "timestamp": self.so_far().last().unwrap()["timestamp"],
        });
        let answered = self.client.post("replies", message.to_string()).await.unwrap();
        assert_eq!(answered.status, 204);
    }

    /// Says something to the agents.
    pub async fn says(&self, text: &str) -> u16 {
        let message = json!({ "kind": "user_input", "text": text });
        self.client.post("messages", message.to_string()).await.unwrap().status.as_u16()
    }
}

fn reply(event: &Value, answer: Reaction, subscription: &str) -> Option<Value> {
    let mut reply = json!({
        "subscription_id": subscription,
        "timestamp": event["timestamp"],
        "reply_token": event["reply_token"],
    });
    match answer {
        Reaction::Accept | Reaction::Reject => {
            reply["type"] = "confirmation.reply".into();
            let yes = matches!(answer, Reaction::Accept);
            reply["decision"] = if yes { "accept" } else { "reject" }.into();
        }
        Reaction::Say(response) => {
            reply["type"] = "clarification.reply".into();
            reply["response"] = response;
        }
        Reaction::Silence => return None,
        Reaction::Stop => {
            return Some(json!({
                "type": "control:cancel",
                "session_id": event["session_id"],
                "subscription_id": subscription,
                "timestamp": event["timestamp"],
            }));
        }
    }
    Some(reply)
}

pub fn is(event: &Value, name: &str) -> bool {
    event["type"] == format!("aaep:agent.{name}").as_str()
}

fn is_end(event: &Value) -> bool {
    ["session.completed", "session.cancelled", "session.errored"].iter().any(|end| is(event, end))
}

fn parse(heard: &[String]) -> Vec<Value> {
    heard.iter().map(|text| serde_json::from_str(text).unwrap()).collect()
}

fn types(heard: &[String]) -> Vec<String> {
    let line = |event: &Value| format!("{} {}", event["type"], event["summary_normal"]);
    parse(heard).iter().map(line).collect()
}

/// Every stream that we capture passes our own checks.
pub fn check(heard: &[String]) {
    let mut checker = Checker::new(Options { complete: true, ..Options::default() });
    let mut found = Vec::new();
    for (line, message) in (1..).zip(heard) {
        checker.message(line, message.as_bytes(), &mut found);
    }
    checker.finish(&mut found);
    found.retain(|finding| finding.weight != Weight::Note);
    assert!(found.is_empty(), "{found:#?}\n{:#?}", types(heard));
}
