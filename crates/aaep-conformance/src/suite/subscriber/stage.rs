//! The producer that subscribers are tried on: it plays events, and keeps what comes back.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};
use tokio::time::timeout;

use crate::suite::ear::is_critical;

/// Messages that wait for one listener.
const QUEUE: usize = 8192;
/// Bytes of a transcript, and messages, that are kept.
const MAX_TRANSCRIPT: usize = 4 << 20;
const MAX_MESSAGES: usize = 4096;

/// What is sent to a listener.
#[derive(Debug)]
pub(super) enum Out {
    /// A message, and the id of the event that it is.
    Message(String, Option<String>),
    End,
}

#[derive(Debug)]
struct Hearing {
    id: Option<String>,
    filters: Value,
    sender: mpsc::Sender<Out>,
    waiting: Option<mpsc::Receiver<Out>>,
}

#[derive(Debug, Default)]
struct State {
    hearings: Vec<Hearing>,
    /// Every request for a subscription.
    requests: Vec<Value>,
    /// Everything else that was said.
    said: Vec<Value>,
    /// What was announced, in small letters, with single spaces.
    transcript: String,
    orders: VecDeque<Value>,
    count: u64,
}

/// Where the subscriber comes to.
#[derive(Debug, Default)]
pub(super) struct Stage {
    state: Mutex<State>,
    changed: Notify,
}

impl Stage {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until this gives something.
    async fn until<T>(
        &self,
        patience: Duration,
        mut look: impl FnMut(&mut State) -> Option<T>,
    ) -> Option<T> {
        let waiting = async {
            loop {
                let changed = self.changed.notified();
                tokio::pin!(changed);
                changed.as_mut().enable();
                if let Some(found) = look(&mut self.lock()) {
                    return found;
                }
                changed.await;
            }
        };
        timeout(patience, waiting).await.ok()
    }

    // What connections do.

    /// Answers a request for a subscription.
    pub(super) fn subscribe(&self, request: Value) -> Value {
        let mut state = self.lock();
        state.count += 1;
        let id = format!("sub_conformance{}", state.count);
        let asked = &request["capabilities"];
        let accepted = json!({
            "type": "subscription.accepted", "subscription_id": id, "aaep_version": "1.0.0",
            "producer": { "agent_id": "aaep-conformance" },
            "honored_capabilities": honored(asked),
        });
        let (sender, heard) = mpsc::channel(QUEUE);
        let filters = asked["event_filters"].clone();
        state.hearings.push(Hearing { id: Some(id), filters, sender, waiting: Some(heard) });
        if state.requests.len() < MAX_MESSAGES {
            state.requests.push(request);
        }
        drop(state);
        self.changed.notify_waiters();
        accepted
    }

    /// Reads what a subscription hears; a listener without one hears everything.
    pub(super) fn attach(&self, id: Option<&str>) -> Option<mpsc::Receiver<Out>> {
        let mut state = self.lock();
        let (sender, fresh) = mpsc::channel(QUEUE);
        let heard = match id {
            None => {
                let filters = Value::Null;
                state.hearings.push(Hearing { id: None, filters, sender, waiting: None });
                fresh
            }
            Some(id) => {
                let mut all = state.hearings.iter_mut();
                let hearing = all.find(|hearing| hearing.id.as_deref() == Some(id))?;
                hearing.waiting.take().unwrap_or_else(|| {
                    hearing.sender = sender;
                    fresh
                })
            }
        };
        state.count += 1;
        drop(state);
        self.changed.notify_waiters();
        Some(heard)
    }

    /// Keeps what a subscriber says; gives an answer where one is due.
    pub(super) fn take(&self, message: Value) -> Option<Value> {
        let answer = (message["type"] == "subscription.renegotiate").then(|| {
            json!({
                "type": "subscription.accepted", "subscription_id": message["subscription_id"],
                "aaep_version": "1.0.0", "producer": { "agent_id": "aaep-conformance" },
                "honored_capabilities": honored(&message["capabilities"]),
            })
        });
        let mut state = self.lock();
        if message["type"] == "subscription.close" {
            let id = message["subscription_id"].as_str().map(str::to_owned);
            state.hearings.retain(|hearing| hearing.id != id);
        }
        if state.said.len() < MAX_MESSAGES {
            state.said.push(message);
        }
        drop(state);
        self.changed.notify_waiters();
        answer
    }

    /// Something was announced.
    pub(super) fn announced(&self, text: &str) {
        let mut state = self.lock();
        if state.transcript.len() + text.len() < MAX_TRANSCRIPT {
            for word in text.to_lowercase().split_whitespace() {
                state.transcript.push_str(word);
                state.transcript.push(' ');
            }
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// What the person does next, for an observer.
    pub(super) async fn next_order(&self, patience: Duration) -> Option<Value> {
        self.until(patience, |state| state.orders.pop_front()).await
    }

    // What the checks do.

    pub(super) fn order(&self, order: Value) {
        self.lock().orders.push_back(order);
        self.changed.notify_waiters();
    }

    /// Sends an event to everybody who is to hear it.
    pub(super) fn emit(&self, event: &Value) {
        let id = event["event_id"].as_str().map(str::to_owned);
        let critical = is_critical(event);
        self.send(&event.to_string(), id.as_deref(), |hearing| {
            critical || hears(&hearing.filters, event)
        });
    }

    /// Sends a text to everybody, whatever it is.
    pub(super) fn emit_text(&self, text: &str) {
        self.send(text, None, |_| true);
    }

    fn send(&self, text: &str, id: Option<&str>, to: impl Fn(&Hearing) -> bool) {
        let id = id.map(str::to_owned);
        self.lock().hearings.retain(|hearing| {
            !to(hearing)
                || hearing.sender.try_send(Out::Message(text.to_owned(), id.clone())).is_ok()
        });
    }

    /// Ends every connection, without a word.
    pub(super) fn hang_up(&self) {
        for hearing in self.lock().hearings.drain(..) {
            let _ = hearing.sender.try_send(Out::End);
        }
    }

    /// Closes every subscription, and gives their ids.
    pub(super) fn close_all(&self) -> Vec<String> {
        let mut ids = Vec::new();
        for hearing in self.lock().hearings.drain(..) {
            let Some(id) = hearing.id else { continue };
            let close = json!({ "type": "subscription.close", "subscription_id": id,
                "reason_message": "Closed by the conformance suite." });
            let _ = hearing.sender.try_send(Out::Message(close.to_string(), None));
            let _ = hearing.sender.try_send(Out::End);
            ids.push(id);
        }
        ids
    }

    /// How often somebody subscribed or opened a stream.
    pub(super) fn comings(&self) -> u64 {
        self.lock().count
    }

    /// Waits until somebody hears, who came after so many comings.
    pub(super) async fn somebody(&self, after: u64, patience: Duration) -> bool {
        let here = |state: &mut State| {
            let any = state.hearings.iter().any(|hearing| hearing.waiting.is_none());
            (any && state.count > after).then_some(())
        };
        self.until(patience, here).await.is_some()
    }

    pub(super) fn requests(&self) -> Vec<Value> {
        self.lock().requests.clone()
    }

    /// How much was announced so far.
    pub(super) fn place(&self) -> usize {
        self.lock().transcript.len()
    }

    /// What was announced from this place on.
    pub(super) fn transcript(&self, from: usize) -> String {
        self.lock().transcript.get(from..).unwrap_or_default().to_owned()
    }

    /// When this was announced from this place on, if it was in time.
    pub(super) async fn hears(
        &self,
        from: usize,
        words: &str,
        patience: Duration,
    ) -> Option<Instant> {
        let words = words.to_lowercase();
        let said = |state: &mut State| {
            state.transcript.get(from..).filter(|text| text.contains(&words)).map(|_| ())
        };
        self.until(patience, said).await.map(|()| Instant::now())
    }

    /// Everything that was said with this token.
    pub(super) fn replies(&self, token: &str) -> Vec<Value> {
        let state = self.lock();
        state.said.iter().filter(|said| said["reply_token"] == token).cloned().collect()
    }

    /// Every reply from this place on.
    pub(super) fn said(&self, from: usize) -> Vec<Value> {
        self.lock().said.iter().skip(from).cloned().collect()
    }

    pub(super) fn said_so_far(&self) -> usize {
        self.lock().said.len()
    }

    /// The first message from this place on of which this holds.
    pub(super) async fn says(
        &self,
        from: usize,
        patience: Duration,
        wanted: impl Fn(&Value) -> bool,
    ) -> Option<Value> {
        let find = |state: &mut State| {
            state.said.iter().skip(from).find(|message| wanted(message)).cloned()
        };
        self.until(patience, find).await
    }
}

pub(super) type Shared = Arc<Stage>;

/// What is granted: everything that is asked for and known to the protocol.
fn honored(asked: &Value) -> Value {
    let mut honored = json!({});
    for member in [
        "max_events_per_second",
        "preferred_verbosity",
        "languages",
        "supports_confirmation_reply",
        "supports_clarification_reply",
        "coalesce_boundaries",
        "event_filters",
        "supported_conformance_levels",
        "cognitive_load",
    ] {
        if !asked[member].is_null() {
            honored[member] = asked[member].clone();
        }
    }
    honored
}

fn hears(filters: &Value, event: &Value) -> bool {
    let name = event["type"].as_str().unwrap_or_default();
    let matches = |pattern: &Value| match pattern.as_str().unwrap_or_default() {
        pattern if pattern.ends_with('*') => name.starts_with(pattern.trim_end_matches('*')),
        pattern => name == pattern,
    };
    let any = |list: &Value| list.as_array().is_some_and(|list| list.iter().any(matches));
    (!filters["include"].is_array() || any(&filters["include"])) && !any(&filters["exclude"])
}
