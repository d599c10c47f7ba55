//! Fetches an issuer's keys again and again, beside everything else.

use std::sync::{Arc, Weak};
use std::time::Duration;

use aaep_transport::client::{HttpClient, Options};
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};

use super::keys::Keys;
use super::{Issuer, MAX_KEYS_BYTES};
use crate::sign_in::split;

/// The shortest time between two tries, however often unknown keys are asked for.
const SHORTEST_PAUSE: Duration = Duration::from_secs(5);

/// How long the issuer's server may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// A task that ends with this.
pub(super) struct Fetching(AbortHandle);

impl Fetching {
    pub(super) fn start(issuer: &Arc<Issuer>) -> Self {
        let (weak, unknown_key) = (Arc::downgrade(issuer), issuer.unknown_key.clone());
        Self(tokio::spawn(keep_fresh(weak, unknown_key)).abort_handle())
    }
}

impl Drop for Fetching {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn keep_fresh(issuer: Weak<Issuer>, unknown_key: Arc<Notify>) {
    while let Some(issuer) = issuer.upgrade() {
        let entry = issuer.entry().clone();
        match fetch(&issuer).await {
            Ok(keys) => issuer.take_keys(keys),
            // Those that were good before stay good.
            Err(why) => tracing::warn!(
                "The keys of the issuer `{}` cannot be fetched, and those known before stay: {why}",
                entry.name
            ),
        }
        drop(issuer);
        let pause = Duration::from_secs(entry.refresh_seconds.into());
        sleep(SHORTEST_PAUSE.min(pause)).await;
        let _ = timeout(pause.saturating_sub(SHORTEST_PAUSE), unknown_key.notified()).await;
    }
}

async fn fetch(issuer: &Issuer) -> Result<Keys, String> {
    let url = issuer.entry.keys_url.as_deref().unwrap_or_default();
    let options = Options {
        extra_roots_pem: issuer.roots.clone(),
        connect: PATIENCE,
        answer: PATIENCE,
        max_message: MAX_KEYS_BYTES,
        ..Options::default()
    };
    let (origin, path) = split(url).ok_or("keys_url is no address.")?;
    let client = HttpClient::new(origin, options).map_err(|error| error.to_string())?;
    let answer = client.get(path).await.map_err(|error| error.to_string())?;
    if !answer.status.is_success() {
        return Err(format!("the answer was {}.", answer.status));
    }
    Keys::parse(&answer.body).map_err(str::to_owned)
}
