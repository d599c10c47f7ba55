//! A connection to the servers, which comes back by itself.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_nats::connection::State;
use async_nats::{Client, ConnectOptions, HeaderMap, Message, Request, RequestErrorKind};
use bytes::Bytes;
use futures_util::StreamExt as _;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::runtime::{Builder, Runtime};

use super::address::{Account, Address};
use crate::log::remote::{Asked, refused_within_a_runtime, tls_config};
use crate::log::storage::Unavailable;

/// How long a server that was lost is waited for before the next is tried.
const RECONNECT: Duration = Duration::from_millis(100);

struct Inside {
    client: Client,
    /// Taken when the last clone goes, so that no thread waits for it.
    runtime: Mutex<Option<Runtime>>,
    handle: tokio::runtime::Handle,
}

impl Drop for Inside {
    fn drop(&mut self) {
        let runtime = self.runtime.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(runtime) = runtime {
            runtime.shutdown_background();
        }
    }
}

/// Clones share the connection.
#[derive(Clone)]
pub(super) struct Connection(Arc<Inside>);

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("state", &self.0.client.connection_state()).finish()
    }
}

impl Connection {
    pub(super) fn open(
        address: &Address,
        account: Option<&Account>,
        limit: Duration,
    ) -> Result<Self, Unavailable> {
        if let Some(why) = refused_within_a_runtime() {
            return Err(why);
        }
        let away = |why: String| Unavailable::Away(why);
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("aaep-jetstream")
            .enable_all()
            .build()
            .map_err(|why| away(why.to_string()))?;
        let mut options = ConnectOptions::new()
            .name("aaep")
            .connection_timeout(limit)
            .request_timeout(Some(limit))
            .reconnect_delay_callback(|_| RECONNECT);
        if let Some(account) = account {
            options = options.user_and_password(account.user.clone(), account.password.clone());
        }
        if address.tls {
            let config = tls_config().map_err(away)?;
            options = options.require_tls(true).tls_client_config(config);
        }
        let connecting = options.connect(address.servers.clone());
        let client = runtime
            .block_on(async { tokio::time::timeout(limit, connecting).await })
            .map_err(|_| away("connecting took too long".into()))?
            .map_err(|why| away(said(&why)))?;
        let handle = runtime.handle().clone();
        let runtime = Mutex::new(Some(runtime));
        Ok(Self(Arc::new(Inside { client, runtime, handle })))
    }

    /// How many bytes the servers take in one message.
    pub(super) fn max_payload(&self) -> usize {
        self.0.client.max_payload()
    }

    /// Sends a message that is answered.
    pub(super) fn ask(&self, subject: &str, headers: HeaderMap, payload: Bytes) -> Asked<Message> {
        if let Some(why) = self.cannot_send() {
            return Asked::Refused(why);
        }
        let request = Request::new().payload(payload).headers(headers);
        let asking = self.0.client.send_request(subject.to_owned(), request);
        match self.0.handle.block_on(asking) {
            Ok(answer) => Asked::Answer(answer),
            Err(error) => match error.kind() {
                RequestErrorKind::NoResponders => Asked::Refused(Unavailable::Away(
                    "no server of the cluster serves this stream right now".into(),
                )),
                RequestErrorKind::InvalidSubject => {
                    Asked::Refused(Unavailable::Misuse("a shard's name fits no subject"))
                }
                RequestErrorKind::MaxPayloadExceeded => {
                    Asked::Refused(Unavailable::Misuse("the servers take no entry of this size"))
                }
                RequestErrorKind::TimedOut | RequestErrorKind::Other => Asked::Lost,
            },
        }
    }

    /// Asks JetStream something, and reads its answer.
    pub(super) fn api<T: DeserializeOwned>(
        &self,
        subject: &str,
        what: &impl Serialize,
    ) -> Asked<T> {
        let Ok(payload) = serde_json::to_vec(what) else {
            return Asked::Refused(Unavailable::Misuse("a question cannot be written down"));
        };
        match self.ask(&format!("$JS.API.{subject}"), HeaderMap::new(), payload.into()) {
            Asked::Answer(answer) => match serde_json::from_slice(&answer.payload) {
                Ok(answer) => Asked::Answer(answer),
                // It did something, and nobody knows what.
                Err(_) => Asked::Lost,
            },
            Asked::Refused(why) => Asked::Refused(why),
            Asked::Lost => Asked::Lost,
        }
    }

    /// Asks something that is answered with several messages; ends when `is_last` says so, or after
    /// nothing came for this long.
    pub(super) fn ask_many(
        &self,
        subject: &str,
        payload: Bytes,
        quiet: Duration,
        mut is_last: impl FnMut(&Message) -> bool,
    ) -> Result<Vec<Message>, Unavailable> {
        if let Some(why) = self.cannot_send() {
            return Err(why);
        }
        let client = &self.0.client;
        let away = |why: &dyn std::error::Error| Unavailable::Away(said(why));
        self.0.handle.block_on(async {
            let inbox = client.new_inbox();
            let mut answers = client.subscribe(inbox.clone()).await.map_err(|why| away(&why))?;
            let publishing = client.publish_with_reply(subject.to_owned(), inbox, payload);
            publishing.await.map_err(|why| away(&why))?;
            let mut all = Vec::new();
            while let Ok(Some(answer)) = tokio::time::timeout(quiet, answers.next()).await {
                let last = is_last(&answer);
                all.push(answer);
                if last {
                    break;
                }
            }
            Ok(all)
        })
    }

    fn cannot_send(&self) -> Option<Unavailable> {
        let connected = self.0.client.connection_state() == State::Connected;
        let away = || Unavailable::Away("no server of the cluster can be reached".into());
        refused_within_a_runtime().or_else(|| (!connected).then(away))
    }
}

/// The error in words, with its cause.
fn said(error: &dyn std::error::Error) -> String {
    match error.source() {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
