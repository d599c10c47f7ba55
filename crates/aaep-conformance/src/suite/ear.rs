//! One listener: keeps what it hears, and waits for what should come.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aaep_transport::client::HttpClient;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// Messages that one ear keeps; a target that says more is heard no further.
const MAX_HEARD: usize = 20_000;

#[derive(Default)]
struct Heard {
    messages: Mutex<Vec<(String, Value)>>,
    more: Notify,
}

pub(super) struct Ear {
    heard: Arc<Heard>,
    task: JoinHandle<()>,
}

impl Drop for Ear {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Ear {
    /// Opens the stream; an error says why it cannot be had.
    pub(super) async fn open(client: &HttpClient) -> Result<Self, String> {
        let mut stream = client.events("events", None).await.map_err(|error| error.to_string())?;
        let heard = Arc::new(Heard::default());
        let keep = Arc::clone(&heard);
        let task = tokio::spawn(async move {
            while let Ok(Some(frame)) = stream.next().await {
                let value = serde_json::from_str(&frame.data).unwrap_or(Value::Null);
                let mut messages = lock(&keep.messages);
                if messages.len() >= MAX_HEARD {
                    break;
                }
                messages.push((frame.data, value));
                drop(messages);
                keep.more.notify_waiters();
            }
        });
        Ok(Self { heard, task })
    }

    pub(super) fn len(&self) -> usize {
        lock(&self.heard.messages).len()
    }

    /// Everything as it came.
    pub(super) fn texts(&self) -> Vec<String> {
        lock(&self.heard.messages).iter().map(|(text, _)| text.clone()).collect()
    }

    /// Events of a session from this place on.
    pub(super) fn of(&self, session: &str, from: usize) -> Vec<Value> {
        let messages = lock(&self.heard.messages);
        let later = messages.iter().skip(from).map(|(_, value)| value);
        later.filter(|value| value["session_id"] == session).cloned().collect()
    }

    /// The first message from this place on of which `wanted` holds, and the place after it.
    pub(super) async fn wait(
        &self,
        mut from: usize,
        patience: Duration,
        wanted: impl Fn(&Value) -> bool,
    ) -> Option<(usize, Value)> {
        let search = async {
            loop {
                let more = self.heard.more.notified();
                tokio::pin!(more);
                more.as_mut().enable();
                {
                    let messages = lock(&self.heard.messages);
                    while let Some((_, value)) = messages.get(from) {
                        from += 1;
                        if wanted(value) {
                            return (from, value.clone());
                        }
                    }
                }
                more.await;
            }
        };
        timeout(patience, search).await.ok()
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
