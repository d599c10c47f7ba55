//! One listener: keeps what it hears and when, and waits for what should come.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aaep_transport::client::EventStream;
use aaep_transport::link::Receiver;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Messages that one ear keeps; a target that says more is heard no further.
const MAX_HEARD: usize = 20_000;

struct ReceivedMessage {
    text: String,
    value: Value,
    at: Instant,
    /// The id of the frame that it came in, for coming back.
    frame: Option<String>,
}

#[derive(Default)]
struct MessageLog {
    messages: Mutex<Vec<ReceivedMessage>>,
    more: Notify,
    over: AtomicBool,
}

impl MessageLog {
    /// Keeps a message; false if no more are kept.
    fn keep(&self, text: String, frame: Option<String>) -> bool {
        let value = serde_json::from_str(&text).unwrap_or(Value::Null);
        let mut messages = lock(&self.messages);
        if messages.len() >= MAX_HEARD {
            return false;
        }
        messages.push(ReceivedMessage { text, value, at: Instant::now(), frame });
        drop(messages);
        self.more.notify_waiters();
        true
    }

    fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.more.notify_waiters();
    }
}

pub(super) struct Ear {
    heard: Arc<MessageLog>,
    task: JoinHandle<()>,
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Ear {
    pub(super) fn of_stream(mut stream: EventStream) -> Self {
        let heard = Arc::new(MessageLog::default());
        let keep = Arc::clone(&heard);
        let task = tokio::spawn(async move {
            while let Ok(Some(frame)) = stream.next().await {
                if !keep.keep(frame.data, frame.id) {
                    break;
                }
            }
            keep.end();
        });
        Self { heard, task }
    }

    pub(super) fn of_link(mut receiver: Receiver) -> Self {
        let heard = Arc::new(MessageLog::default());
        let keep = Arc::clone(&heard);
        let task = tokio::spawn(async move {
            while let Ok(Some(text)) = receiver.receive().await {
                if !keep.keep(text.as_str().to_owned(), None) {
                    break;
                }
            }
            keep.end();
        });
        Self { heard, task }
    }

    /// One that hears nothing.
    pub(super) fn silent() -> Self {
        Self { heard: Arc::default(), task: tokio::spawn(async {}) }
    }

    /// Whether the target ended it.
    pub(super) fn is_over(&self) -> bool {
        self.heard.over.load(Ordering::Acquire)
    }

    pub(super) fn len(&self) -> usize {
        lock(&self.heard.messages).len()
    }

    /// Everything as it came.
    pub(super) fn texts(&self) -> Vec<String> {
        lock(&self.heard.messages).iter().map(|said| said.text.clone()).collect()
    }

    /// Events of a session from this place on.
    pub(super) fn of(&self, session: &str, from: usize) -> Vec<Value> {
        let messages = lock(&self.heard.messages);
        let later = messages.iter().skip(from).map(|said| &said.value);
        later.filter(|value| value["session_id"] == session).cloned().collect()
    }

    /// Everything from this place on, with the moment at which it came.
    pub(super) fn since(&self, from: usize) -> Vec<(Value, Instant)> {
        let messages = lock(&self.heard.messages);
        messages.iter().skip(from).map(|said| (said.value.clone(), said.at)).collect()
    }

    /// The id of the last frame that had one.
    pub(super) fn last_frame(&self) -> Option<String> {
        lock(&self.heard.messages).iter().rev().find_map(|said| said.frame.clone())
    }

    /// The first message from this place on of which `wanted` holds, and the place after it.
    pub(super) async fn wait(
        &self,
        from: usize,
        patience: Duration,
        wanted: impl Fn(&Value) -> bool,
    ) -> Option<(usize, Value)> {
        self.wait_at(from, patience, wanted).await.map(|(place, value, _)| (place, value))
    }

    /// The same, with the moment at which it came.
    pub(super) async fn wait_at(
        &self,
        mut from: usize,
        patience: Duration,
        wanted: impl Fn(&Value) -> bool,
    ) -> Option<(usize, Value, Instant)> {
        let search = async {
            loop {
                let more = self.heard.more.notified();
                tokio::pin!(more);
                more.as_mut().enable();
                let over = self.is_over();
                {
                    let messages = lock(&self.heard.messages);
                    while let Some(said) = messages.get(from) {
                        from += 1;
                        if wanted(&said.value) {
                            return Some((from, said.value.clone(), said.at));
                        }
                    }
                }
                if over {
                    return None;
                }
                more.await;
            }
        };
        timeout(patience, search).await.ok().flatten()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether this is an event of that type, named without `aaep:agent.`.
pub(super) fn is(event: &Value, kind: &str) -> bool {
    event["type"].as_str().and_then(|name| name.strip_prefix("aaep:agent.")) == Some(kind)
}

pub(super) fn is_end(event: &Value) -> bool {
    ["session.completed", "session.errored", "session.cancelled"].iter().any(|kind| is(event, kind))
}

/// Whether it goes past filters and rates.
pub(super) fn is_critical(event: &Value) -> bool {
    event["urgency"] == "critical"
        || ["session.errored", "awaiting.confirmation", "awaiting.clarification"]
            .iter()
            .any(|kind| is(event, kind))
        || is(event, "handoff.requested")
}
