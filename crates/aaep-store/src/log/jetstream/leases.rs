//! Leases in JetStream: one message for each shard, which the servers forget after two seconds.

use aaep_types::Timestamp;
use async_nats::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use super::api::{Got, GotMessage, NO_MESSAGE, Published, WRONG_LAST, Wanted};
use super::connection::Connection;
use super::{LEASES, token};
use crate::log::leases::{Lease, LeaseRefused, Leases};
use crate::log::remote::Asked;
use crate::log::storage::Unavailable;

/// So often a lease is tried for that changes hands meanwhile.
const TRIES: usize = 4;

/// The leases of a cluster. See [`JetStreamStore`](super::JetStreamStore).
#[derive(Debug)]
pub struct JetStreamLeases(Connection);

impl JetStreamLeases {
    pub(super) fn new(connection: Connection) -> Self {
        Self(connection)
    }

    /// Who holds a shard right now, and since which revision; nobody, if it was given back.
    fn held(&self, shard: &str) -> Result<Option<(u64, String)>, Unavailable> {
        let subject = subject(shard);
        let wanted = Wanted::LastOf { last_by_subj: &subject };
        let Some(message) = self.get(&wanted)? else { return Ok(None) };
        let node = STANDARD.decode(&message.data).unwrap_or_default();
        Ok(Some((message.seq, String::from_utf8_lossy(&node).into_owned())))
    }

    fn get(&self, wanted: &Wanted<'_>) -> Result<Option<GotMessage>, Unavailable> {
        let got: Got = self.0.api(&format!("STREAM.MSG.GET.{LEASES}"), wanted).known()?;
        match (got.message, got.error) {
            (Some(message), _) => Ok(Some(message)),
            (None, Some(error)) if error.err_code != NO_MESSAGE => {
                Err(Unavailable::Away(error.description))
            }
            _ => Ok(None),
        }
    }

    /// Writes who holds a shard, if nobody else wrote since; `None` if somebody did.
    fn write(&self, shard: &str, node: &str, since: u64) -> Result<Option<u64>, Unavailable> {
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Expected-Last-Subject-Sequence", since.to_string());
        let payload = Bytes::copy_from_slice(node.as_bytes());
        let answer = match self.0.ask(&subject(shard), headers, payload) {
            Asked::Answer(answer) => serde_json::from_slice::<Published>(&answer.payload).ok(),
            other => Some(other.known().map(|_| Published { seq: 0, error: None })?),
        };
        match answer {
            Some(Published { seq, error: None }) if seq > 0 => Ok(Some(seq)),
            Some(Published { error: Some(error), .. }) if error.err_code == WRONG_LAST => Ok(None),
            Some(Published { error: Some(error), .. }) => Err(Unavailable::Away(error.description)),
            _ => Err(Unavailable::Away("JetStream answered something that cannot be read".into())),
        }
    }

    fn lease(&self, shard: &str, node: &str, revision: u64) -> Result<Lease, LeaseRefused> {
        // The time is the servers' own.
        let message = self.get(&Wanted::Place { seq: revision })?.ok_or(LeaseRefused::Lost)?;
        let time = Timestamp::parse_loose(&message.time).map_err(|_| LeaseRefused::Lost)?;
        let (shard, node) = (shard.to_owned(), node.to_owned());
        Ok(Lease { shard, node, revision, store_time: time.as_micros() })
    }
}

fn subject(shard: &str) -> String {
    format!("aaep.lease.{}", token(shard))
}

impl Leases for JetStreamLeases {
    fn take(&mut self, shard: &str, node: &str) -> Result<Lease, LeaseRefused> {
        for _ in 0..TRIES {
            let since = match self.held(shard)? {
                Some((_, by)) if !by.is_empty() && by != node => {
                    return Err(LeaseRefused::Held { by });
                }
                Some((revision, _)) => revision,
                None => 0,
            };
            if let Some(revision) = self.write(shard, node, since)? {
                return self.lease(shard, node, revision);
            }
        }
        Err(LeaseRefused::Lost)
    }

    fn renew(&mut self, held: &Lease) -> Result<Lease, LeaseRefused> {
        match self.write(&held.shard, &held.node, held.revision)? {
            Some(revision) => self.lease(&held.shard, &held.node, revision),
            None => Err(LeaseRefused::Lost),
        }
    }

    fn holder(&mut self, shard: &str) -> Result<Option<String>, Unavailable> {
        let held = self.held(shard)?;
        Ok(held.map(|(_, node)| node).filter(|node| !node.is_empty()))
    }

    fn give_back(&mut self, held: &Lease) -> Result<(), LeaseRefused> {
        // One that is no longer this one is left alone.
        self.write(&held.shard, "", held.revision)?;
        Ok(())
    }
}
