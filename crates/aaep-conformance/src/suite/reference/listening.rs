//! A small correct subscriber, and one for each rule that it can break. What it announces goes to the
//! observer of the suite; what its user does comes from there.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aaep_transport::client::{ClientError, HttpClient, Options};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::SubscriberFault;
use crate::suite::ear::{is, is_critical, is_end};
use crate::suite::producer::now;

/// Between two attempts to connect.
const AGAIN: Duration = Duration::from_millis(100);
/// Event ids that are remembered.
const REMEMBERED: usize = 2048;

/// A subscriber that runs until it is dropped, or until its user leaves.
#[derive(Debug)]
pub struct Subscriber {
    task: JoinHandle<()>,
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Subscriber {
    /// Starts one that listens to this producer, with this fault or without any.
    pub fn start(url: &str, fault: Option<SubscriberFault>) -> Result<Self, ClientError> {
        let client = || {
            let options = Options { trust_loopback: true, ..Options::default() };
            HttpClient::new(url, options).map(Arc::new)
        };
        let listener = Arc::new(Listener {
            fault,
            hub: client()?,
            observer: client()?,
            state: Mutex::default(),
        });
        let task = tokio::spawn(async move {
            let orders = listener.orders(client_of(&listener));
            tokio::select! {
                () = listener.listen() => {}
                () = orders => {}
            }
        });
        Ok(Self { task })
    }
}

fn client_of(listener: &Listener) -> Arc<HttpClient> {
    Arc::clone(&listener.observer)
}

#[derive(Debug, Default)]
struct State {
    subscription: String,
    seen: HashSet<String>,
    /// Questions that wait: session, token, words, whether it asks for consent.
    open: Vec<Open>,
    /// Text that waits for its boundary.
    text: String,
    /// It does nothing any more, for a fault.
    broken: bool,
}

#[derive(Clone, Debug)]
struct Open {
    session: String,
    token: String,
    about: String,
    confirms: bool,
    /// On which subscription it was asked.
    subscription: String,
}

struct Listener {
    fault: Option<SubscriberFault>,
    hub: Arc<HttpClient>,
    observer: Arc<HttpClient>,
    state: Mutex<State>,
}

impl Listener {
    fn is(&self, fault: SubscriberFault) -> bool {
        self.fault == Some(fault)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn announce(&self, text: &str) {
        let said = json!({ "announced": text }).to_string();
        let _ = self.observer.post("observer", said).await;
    }

    /// Listens, and comes back when the connection is lost.
    async fn listen(&self) {
        loop {
            let _ = self.connection().await;
            if self.is(SubscriberFault::NeverComesBack) {
                return std::future::pending().await;
            }
            sleep(AGAIN).await;
        }
    }

    async fn connection(&self) -> Result<(), ClientError> {
        let mut path = "events".to_owned();
        if !self.is(SubscriberFault::NoHandshake) {
            let answer = self.hub.post("subscriptions", self.request().to_string()).await?;
            let accepted: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            let id = accepted["subscription_id"].as_str().unwrap_or_default().to_owned();
            path = format!("events?subscription_id={id}");
            self.lock().subscription = id;
        }
        let mut stream = self.hub.events(&path, None).await?;
        while let Some(frame) = stream.next().await? {
            match serde_json::from_str::<Value>(&frame.data) {
                Ok(message) if message.is_object() => self.hear(&message).await,
                _ if self.is(SubscriberFault::BreaksOnGarbage) => self.lock().broken = true,
                _ => {}
            }
        }
        Ok(())
    }

    fn request(&self) -> Value {
        let mut request = json!({
            "type": "subscription.request", "aaep_version": "1.0.0",
            "subscriber_id": "reference-listener",
            "capabilities": { "supports_confirmation_reply": true,
                "supports_clarification_reply": true, "supported_conformance_levels": [1, 2, 3] },
        });
        match self.fault {
            Some(SubscriberFault::BadRequest) => request["subscriber_id"] = json!(7),
            Some(SubscriberFault::DeclaresNothing) => request["capabilities"] = json!({}),
            _ => {}
        }
        request
    }

    async fn hear(&self, event: &Value) {
        if self.lock().broken || self.breaks(event) {
            return;
        }
        if event["type"] == "subscription.close" {
            if !self.is(SubscriberFault::RepliesAfterClose) {
                self.lock().open.clear();
            }
            return;
        }
        let Some(id) = event["event_id"].as_str() else { return };
        {
            let mut state = self.lock();
            if state.seen.len() >= REMEMBERED {
                state.seen.clear();
            }
            let new = state.seen.insert(id.to_owned());
            if !new && !self.is(SubscriberFault::SaysTwice) {
                return;
            }
        }
        self.settle(event);
        let text = self.words(event);
        if is(event, "awaiting.confirmation") || is(event, "awaiting.clarification") {
            self.asked(event).await;
        }
        let waits = self.is(SubscriberFault::CriticalWaits) && is_critical(event);
        if let Some(text) = text {
            if waits {
                sleep(Duration::from_secs(4)).await;
            }
            self.announce(&text).await;
        }
    }

    /// Whether this is too much for it, for a fault.
    fn breaks(&self, event: &Value) -> bool {
        let name = event["type"].as_str().unwrap_or_default();
        let core = name.starts_with("aaep:agent.") && name != "aaep:agent.mood.changed";
        let number = event["sequence_number"].as_u64();
        let large = || event.to_string().len() > 64 * 1024;
        let broken = match self.fault {
            Some(SubscriberFault::BreaksOnUnknownTypes) => !core && name.contains(':'),
            Some(SubscriberFault::BreaksOnUnknownStates) => event["to_state"] == "pondering",
            Some(SubscriberFault::BreaksOnLargeEvents) => large(),
            Some(SubscriberFault::RefusesUnknownMembers) => return event["weather"].is_object(),
            Some(SubscriberFault::NeedsOptionalMembers) => {
                return name.starts_with("aaep:") && number.is_none();
            }
            Some(SubscriberFault::OnlyItsLanguage) => {
                return event["localization_hints"]["primary_language"] == "fi";
            }
            Some(SubscriberFault::IgnoresUnknownCritical) => return !core && is_critical(event),
            Some(SubscriberFault::IgnoresOtherNamespaces) => {
                return name.starts_with("weather:");
            }
            Some(SubscriberFault::StopsAtGaps) => event["progress"]["percent"] == 50,
            _ => false,
        };
        if broken {
            self.lock().broken = true;
        }
        broken
    }

    /// What is announced of it.
    fn words(&self, event: &Value) -> Option<String> {
        let summary = event["summary_normal"].as_str().unwrap_or_default();
        let said = |what: &str| Some(format!("{what} {summary}"));
        match event["type"].as_str().unwrap_or_default() {
            "aaep:agent.session.started" => said("Started."),
            "aaep:agent.session.completed" if self.is(SubscriberFault::SameEndings) => {
                said("Over.")
            }
            "aaep:agent.session.cancelled" if self.is(SubscriberFault::SameEndings) => {
                said("Over.")
            }
            "aaep:agent.session.completed" => said("Done."),
            "aaep:agent.session.errored" if self.is(SubscriberFault::SilentErrors) => None,
            "aaep:agent.session.errored" => said("Failed!"),
            "aaep:agent.session.cancelled" => said("Given up."),
            "aaep:agent.tool.invoked" if self.is(SubscriberFault::SilentTools) => None,
            "aaep:agent.output.streaming" => self.text(event),
            "aaep:agent.awaiting.confirmation" => {
                let (action, then) = (&event["action"], &event["consequence"]);
                match self.fault {
                    Some(SubscriberFault::HidesConsequences) => Some(format!("Allow {action}?")),
                    _ => Some(format!("Allow {action}? {then}")),
                }
            }
            "aaep:agent.awaiting.clarification" => Some(format!("Question: {}", event["question"])),
            "aaep:agent.progress.updated" => None,
            _ => said(""),
        }
    }

    fn text(&self, event: &Value) -> Option<String> {
        let chunk = event["chunk"].as_str().unwrap_or_default();
        if self.is(SubscriberFault::SaysPieces) {
            return Some(chunk.to_owned());
        }
        let mut state = self.lock();
        if self.is(SubscriberFault::LosesText) {
            state.text.clear();
        }
        state.text.push_str(chunk);
        (event["complete"] == true).then(|| std::mem::take(&mut state.text))
    }

    async fn asked(&self, event: &Value) {
        let text = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        let confirms = is(event, "awaiting.confirmation");
        let open = Open {
            session: text("session_id"),
            token: text("reply_token"),
            about: text(if confirms { "action" } else { "question" }),
            confirms,
            subscription: self.lock().subscription.clone(),
        };
        self.lock().open.push(open.clone());
        if self.is(SubscriberFault::AnswersAlone) {
            self.send(&open, "accept", "anything").await;
        }
    }

    /// What this event ends.
    fn settle(&self, event: &Value) {
        let left = is(event, "state.changed") && event["to_state"] != "awaiting_input";
        let over = (is_end(event) && !self.is(SubscriberFault::KeepsCancelled))
            || (left && !self.is(SubscriberFault::KeepsSettled));
        if over {
            self.lock().open.retain(|open| event["session_id"] != open.session.as_str());
        }
    }

    async fn send(&self, open: &Open, decision: &str, text: &str) {
        let subscription = match self.fault {
            Some(SubscriberFault::RepliesAfterClose) => open.subscription.clone(),
            _ => self.lock().subscription.clone(),
        };
        let subscription = if subscription.is_empty() { "sub_none".into() } else { subscription };
        let token = match self.fault {
            Some(SubscriberFault::ChangesTokens) => open.token.to_lowercase(),
            Some(SubscriberFault::CutsTokens) => open.token.chars().take(24).collect(),
            _ => open.token.clone(),
        };
        let decision = match self.fault {
            Some(SubscriberFault::AlwaysAccepts) => "accept",
            Some(SubscriberFault::AlwaysRejects) => "reject",
            Some(SubscriberFault::SaysYes) => "yes",
            _ => decision,
        };
        let mut reply = json!({
            "reply_token": token, "subscription_id": subscription, "timestamp": now(),
        });
        if open.confirms {
            reply["type"] = json!("confirmation.reply");
            reply["decision"] = json!(decision);
        } else {
            reply["type"] = json!("clarification.reply");
            reply["response"] = match self.fault {
                Some(SubscriberFault::AnswersYes) => json!(true),
                _ => json!(text),
            };
        }
        if self.is(SubscriberFault::NoTimestamp)
            && let Some(reply) = reply.as_object_mut()
        {
            reply.remove("timestamp");
        }
        let times = if self.is(SubscriberFault::RepliesTwice) { 2 } else { 1 };
        for _ in 0..times {
            let _ = self.hub.post("replies", reply.to_string()).await;
        }
    }

    /// Does what the user does.
    async fn orders(&self, observer: Arc<HttpClient>) {
        loop {
            let answer = match observer.get("observer").await {
                Ok(answer) if answer.status == 200 => answer,
                Ok(_) => continue,
                Err(_) => {
                    sleep(AGAIN).await;
                    continue;
                }
            };
            let order: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            if order["do"] == "quit" {
                if !self.is(SubscriberFault::LeavesWithoutGoodbye) {
                    let id = self.lock().subscription.clone();
                    let close = json!({ "type": "subscription.close", "subscription_id": id });
                    let _ = self.hub.post("replies", close.to_string()).await;
                }
                return;
            }
            if self.is(SubscriberFault::NeverReplies) {
                continue;
            }
            let open = {
                let mut state = self.lock();
                let about = order["about"].as_str().unwrap_or_default();
                let place = match self.fault {
                    Some(SubscriberFault::AnswersTheLast) => state.open.len().checked_sub(1),
                    _ => state.open.iter().position(|open| open.about == about),
                };
                place.map(|place| state.open.remove(place))
            };
            let Some(open) = open else { continue };
            let decision = order["do"].as_str().unwrap_or_default().to_owned();
            let text = order["text"].as_str().unwrap_or_default().to_owned();
            self.send(&open, &decision, &text).await;
        }
    }
}
