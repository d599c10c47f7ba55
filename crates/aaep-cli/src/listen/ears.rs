//! The connections: which hubs, what is shown to them, what is asked of them.

use std::time::Duration;

use aaep_subscriber::client::{Address, Client, Hub, KnownFile, Notifications, Trust, find_local};
use aaep_subscriber::inbox::{Answer, InboxError, Settings, TextBy};
use aaep_subscriber::{Notification, RequestHandle};
use aaep_types::presence::Pin;

use super::options::{HubsOptions, ListenOptions};
use super::talk::By;
use crate::discovery;

/// Hubs at once.
const HUBS: usize = 16;

pub(super) struct Ears {
    client: Client,
    notifications: Notifications,
}

impl Ears {
    /// Begins to connect; whether it works is heard.
    pub(super) fn new(options: &ListenOptions, languages: &[String]) -> Result<Self, String> {
        let settings = Settings {
            subscriber_id: "aaep-listen".into(),
            subscriber_name: "aaep listen".into(),
            subscriber_version: env!("CARGO_PKG_VERSION").into(),
            languages: languages.to_vec(),
            verbosity: options.verbosity,
            load: super::wanted(options.load),
            rate: options.rate,
            text: match options.output {
                By::Paragraph => TextBy::Paragraph,
                // What is read at the end is kept here, so that nothing of it is lost on the way.
                By::Sentence | By::End => TextBy::Sentence,
            },
            signed_only: options.signed || options.signers.is_some(),
            ..Settings::default()
        };
        let mut hubs = hubs(&options.hubs)?;
        if let Some(trust) = trust(options)? {
            hubs = hubs.into_iter().map(|hub| hub.identified(trust.clone())).collect();
        }
        let (client, notifications) = Client::connect(hubs, settings);
        Ok(Self { client, notifications })
    }

    pub(super) async fn next(&mut self) -> Notification {
        match self.notifications.next().await {
            Some(notification) => notification,
            // It was closed, and the side that closed it goes on.
            None => std::future::pending().await,
        }
    }

    /// The clock of deadlines.
    pub(super) fn now(&self) -> u64 {
        self.client.now_ms()
    }

    pub(super) fn answer(&self, request: RequestHandle, answer: Answer) -> Result<(), InboxError> {
        self.client.answer(request, answer)
    }

    pub(super) fn more_time(&self, request: RequestHandle, seconds: u32) -> Result<(), InboxError> {
        self.client.more_time(request, Duration::from_secs(seconds.into()))
    }

    pub(super) fn unlock(&self, request: RequestHandle, pin: &Pin<'_>) -> Result<(), InboxError> {
        self.client.unlock(request, pin)
    }

    pub(super) fn is_unlocked(&self, request: RequestHandle) -> bool {
        self.client.is_unlocked(request)
    }

    pub(super) fn stop(&self, session_id: &str) -> Result<(), InboxError> {
        self.client.stop(session_id)
    }

    // enforces: H26
    pub(super) async fn close(&self) {
        self.client.close().await;
    }
}

/// Those that were named, else those on this machine, with what is shown to each: the token that was
/// given, or that of the user who signed in there.
pub(crate) fn hubs(options: &HubsOptions) -> Result<Vec<Hub>, String> {
    let identified = |hub: Hub| {
        let knows = hub.options.token.is_some() || hub.options.identity.is_some();
        if knows { Ok(hub) } else { crate::login::signed_in(hub) }
    };
    reachable(options)?.into_iter().map(identified).collect()
}

/// The same without what somebody signed in for.
pub(crate) fn reachable(options: &HubsOptions) -> Result<Vec<Hub>, String> {
    let named = &options.urls;
    if named.len() > HUBS {
        return Err(format!("Name at most {HUBS} hubs."));
    }
    let token = match (&options.token_file, named.is_empty()) {
        // What is found on this machine brings its own.
        (None, true) => None,
        (file, _) => discovery::token(file.as_deref())?,
    };
    let found = match &named[..] {
        [] => find_local(),
        named => named.iter().map(|url| named_hub(url)).collect::<Result<_, _>>()?,
    };
    let certificates = discovery::certificates(options.ca.as_deref())?;
    let identity = discovery::identity(options.cert.as_deref(), options.key.as_deref())?;
    let prepared = |mut hub: Hub| {
        hub.options.identity.clone_from(&identity);
        let hub = if options.trust_loopback { hub.trust_loopback() } else { hub };
        let hub = match &certificates {
            Some(certificates) => hub.trust_pem(certificates.clone()),
            None => hub,
        };
        match &token {
            Some(token) => {
                hub.token(token).map_err(|error| format!("The token cannot be used: {error}."))
            }
            None => Ok(hub),
        }
    };
    found.into_iter().map(prepared).collect()
}

/// Whose signed manifests are believed. Without a place to remember keys, nobody looks.
fn trust(options: &ListenOptions) -> Result<Option<Trust>, String> {
    if let Some(file) = &options.signers {
        return crate::manifest::signers(file).map(|list| Some(Trust::listed(list)));
    }
    let trust = KnownFile::usual().map(Trust::on_first_use);
    match (trust, options.signed) {
        (Some(trust), true) => Ok(Some(trust.signed_only())),
        (None, true) => {
            Err("There is no place to remember keys: set HOME, or use --signers.".into())
        }
        (trust, false) => Ok(trust),
    }
}

/// A hub that signed its own certificate on this machine is trusted by it, as `aaep ask` does.
fn named_hub(url: &str) -> Result<Hub, String> {
    let hub = Hub::parse(url).map_err(|error| error.to_string())?;
    let mut hub = hub.named(spoken(url));
    // Published producers know no base: with a slash at its end, an address is the whole of it.
    if let (Address::Http(_), Some(root)) = (&hub.address, url.strip_suffix('/'))
        && root.matches('/').count() == 2
    {
        hub.address = Address::Http(root.to_owned());
    }
    let certificate = discovery::hub(Some(url)).ok().and_then(|found| found.certificate);
    Ok(match certificate {
        Some(certificate) => hub.trust_pem(certificate),
        None => hub,
    })
}

/// An address as it is said: what every hub's has in common is left out.
fn spoken(url: &str) -> &str {
    let address = url.split_once("://").map_or(url, |(_, address)| address);
    let address = address.trim_end_matches('/').trim_end_matches("/ws");
    address.trim_end_matches("/aaep/v1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_said_without_what_every_hub_has_in_common() {
        assert_eq!(spoken("https://hub.example/aaep/v1"), "hub.example");
        assert_eq!(spoken("ws://127.0.0.1:8707/aaep/v1/ws"), "127.0.0.1:8707");
        assert_eq!(spoken("https://hub.example/ann/aaep/v1/"), "hub.example/ann");
        assert_eq!(spoken("unix:/run/aaep/aaep-hub.sock"), "unix:/run/aaep/aaep-hub.sock");
    }
}
