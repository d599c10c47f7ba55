//! The hub as everybody in this process sees it: a handle to the core.

use std::sync::Arc;

use aaep_engine::Principal;
use bytes::Bytes;
use tokio::sync::{oneshot, watch};

use crate::access::{Known, SharedAccess};
use crate::config::Config;
use crate::core::Core;
use crate::guard::Guard;
use crate::inbox::Inbox;
use crate::metrics::Metrics;

/// A handle to a running hub; cheap to clone.
#[derive(Clone)]
pub struct Hub(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) inbox: Inbox,
    pub(crate) access: SharedAccess,
    pub(crate) guard: Guard,
    pub(crate) config: Config,
    pub(crate) metrics: Metrics,
    pub(crate) phase: watch::Sender<Phase>,
}

/// How far the hub is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// It works.
    Open,
    /// What runs comes to its end.
    Stopping,
    /// Nobody can come any more.
    Over,
}

/// The hub has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stopped;

impl Hub {
    /// Lets the core do something, and waits until all that it recorded is durable.
    pub(crate) async fn call<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Core) -> T + Send + 'static,
    ) -> Result<T, Stopped> {
        let _room = self.0.inbox.enter().await.ok_or(Stopped)?;
        let (sender, receiver) = oneshot::channel();
        self.0.inbox.push(Box::new(move |core| {
            let answer = job(core);
            Some(Box::new(move || drop(sender.send(answer))))
        }));
        receiver.await.map_err(|_| Stopped)
    }

    /// Lets the core do something that nobody waits for.
    pub(crate) fn tell(&self, job: impl FnOnce(&mut Core) + Send + 'static) {
        self.0.inbox.push(Box::new(move |core| {
            job(core);
            None
        }));
    }

    /// A call of the agent API from inside this process, as this agent: the path is what follows
    /// the base, such as `agent/sessions`. Gives the status and the body, as over HTTP.
    pub async fn agent_call(
        &self,
        agent: &Principal,
        method: &str,
        path: &str,
        idempotency_key: Option<&str>,
        body: impl Into<Bytes>,
    ) -> (u16, Bytes) {
        let uri = format!("{}/{path}", self.config().base.as_str());
        let mut request = http::Request::builder().method(method).uri(uri);
        if let Some(key) = idempotency_key {
            request = request.header("idempotency-key", key);
        }
        match request.body(body.into()) {
            Ok(request) => {
                crate::http::call_inside(self, Known::inside(agent.clone()), request).await
            }
            Err(_) => (
                400,
                Bytes::from_static(b"{\"error\":\"malformed\",\"text\":\"This is no path.\"}"),
            ),
        }
    }

    pub(crate) fn config(&self) -> &Config {
        &self.0.config
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// Waits until the hub begins to stop.
    pub(crate) async fn stopping(&self) {
        let mut phase = self.0.phase.subscribe();
        let _ = phase.wait_for(|phase| *phase >= Phase::Stopping).await;
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.0.phase.borrow() >= Phase::Stopping
    }
}
