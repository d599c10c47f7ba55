//! The places of a shard in JetStream: one stream, whose sequence is the place.

use std::thread;
use std::time::Duration;

use async_nats::{HeaderMap, Message, StatusCode};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use super::api::{
    ApiError, Batch, Got, NO_MESSAGE, NO_ROOM, Published, StreamConfig, StreamInfo, TOO_LARGE,
    WRONG_LAST, Wanted,
};
use super::connection::Connection;
use super::make_stream;
use crate::log::remote::Asked;
use crate::log::storage::{LogStorage, Put, Unavailable};

/// So many bytes are read at once, and one entry more.
const READ_BYTES: usize = 8 * 1024 * 1024;

/// How long a replica may say nothing in the middle of an answer.
const QUIET: Duration = Duration::from_secs(2);

/// While a stream finds a leader nobody serves it: so often a put is offered that reached nobody.
const OFFERS: u32 = 20;
const BETWEEN_OFFERS: Duration = Duration::from_millis(50);

/// An entry that another node was quicker with may not be visible yet: so often it is looked for.
const LOOKS: u32 = 50;
const BETWEEN_LOOKS: Duration = Duration::from_millis(10);

/// Where a replica lacks an entry, so often another one is asked; each time any of them answers.
const OTHER_REPLICAS: usize = 8;

/// The places of one shard. See [`JetStreamStore`](super::JetStreamStore).
#[derive(Debug)]
pub struct JetStreamStorage {
    connection: Connection,
    stream: String,
    subject: String,
    /// The stream is there and was looked at.
    is_ready: bool,
    /// The place of a put that was not answered: it may still be on its way.
    doubt: Option<u64>,
    mended: u64,
}

impl JetStreamStorage {
    pub(super) fn new(connection: Connection, shard: &str) -> Self {
        let name = super::token(shard);
        let (stream, subject) = (format!("aaep-log-{name}"), format!("aaep.log.{name}"));
        Self { connection, stream, subject, is_ready: false, doubt: None, mended: 0 }
    }

    /// How many entries a replica lacked, and another one had. Such a replica is damaged: its server
    /// heals when its directory is emptied and it is started again.
    pub fn mended(&self) -> u64 {
        self.mended
    }

    fn ready(&mut self) -> Result<(), Unavailable> {
        if !self.is_ready {
            make_stream(&self.connection, &StreamConfig::for_ever(&self.stream, &self.subject))?;
            self.is_ready = true;
        }
        Ok(())
    }

    // enforces: I33
    /// What stands at a place that could not be taken.
    fn found(&mut self, place: u64, bytes: &[u8], last: Option<u64>) -> Put {
        let may_be_ours = self.doubt == Some(place);
        // The log ends before it: nobody is on the way there.
        if !may_be_ours && last.is_some_and(|last| last < place) {
            return Put::Taken;
        }
        for _ in 0..LOOKS {
            match self.leader_get(place) {
                Ok(Some(found)) if found == bytes => {
                    self.doubt = None;
                    return Put::Durable;
                }
                Ok(Some(_)) => {
                    self.doubt = None;
                    return Put::Taken;
                }
                Ok(None) => thread::sleep(BETWEEN_LOOKS),
                Err(_) => break,
            }
        }
        // Not finding it proves nothing.
        self.doubt = Some(place);
        Put::InDoubt
    }

    fn offer(&self, headers: &HeaderMap, payload: &Bytes) -> Asked<Message> {
        for _ in 1..OFFERS {
            match self.connection.ask(&self.subject, headers.clone(), payload.clone()) {
                Asked::Refused(Unavailable::Away(_)) => thread::sleep(BETWEEN_OFFERS),
                other => return other,
            }
        }
        self.connection.ask(&self.subject, headers.clone(), payload.clone())
    }

    fn leader_get(&self, place: u64) -> Result<Option<Vec<u8>>, Unavailable> {
        let subject = format!("STREAM.MSG.GET.{}", self.stream);
        let got: Got = self.connection.api(&subject, &Wanted::Place { seq: place }).known()?;
        match (got.message, got.error) {
            (Some(message), _) if message.seq == place => {
                let bytes = STANDARD.decode(message.data);
                Ok(Some(bytes.map_err(|_| garbled())?))
            }
            (None, Some(error)) if error.err_code == NO_MESSAGE => Ok(None),
            (_, error) => Err(said(error)),
        }
    }

    /// Messages of any replica from this place on; holes are left out.
    fn replica_get(&self, from: u64, at_most: usize) -> Result<Vec<(u64, Vec<u8>)>, Unavailable> {
        let wanted = Batch { seq: from, batch: at_most, max_bytes: READ_BYTES };
        let payload = serde_json::to_vec(&wanted).map_err(|_| garbled())?;
        let subject = format!("$JS.API.DIRECT.GET.{}", self.stream);
        let is_last = |message: &Message| message.status.is_some();
        let mut answers = Vec::new();
        for _ in 0..OFFERS {
            answers = self.connection.ask_many(&subject, payload.clone().into(), QUIET, is_last)?;
            if answers.last().and_then(|last| last.status) != Some(StatusCode::NO_RESPONDERS) {
                break;
            }
            // A new stream is not known everywhere yet.
            thread::sleep(BETWEEN_OFFERS);
        }
        match answers.last().and_then(|last| last.status).map(|status| status.as_u16()) {
            // All were sent, or there are none.
            Some(204 | 404) => {}
            _ => {
                return Err(Unavailable::Away(
                    "a replica stopped in the middle of an answer".into(),
                ));
            }
        }
        let entries = answers.into_iter().filter(|message| message.status.is_none());
        entries
            .map(|message| Ok((place_of(&message).ok_or_else(garbled)?, message.payload.to_vec())))
            .collect()
    }

    /// An entry that a replica lacks, from the leader or another replica.
    fn elsewhere(&mut self, place: u64, is_hole: bool) -> Result<Option<Vec<u8>>, Unavailable> {
        let mut found = self.leader_get(place)?;
        for _ in 0..if is_hole { OTHER_REPLICAS } else { 0 } {
            if found.is_some() {
                break;
            }
            let first = self.replica_get(place, 1)?.into_iter().next();
            found = first.filter(|(at, _)| *at == place).map(|(_, bytes)| bytes);
        }
        self.mended += u64::from(is_hole && found.is_some());
        Ok(found)
    }
}

fn place_of(message: &Message) -> Option<u64> {
    message.headers.as_ref()?.get("Nats-Sequence")?.as_str().parse().ok()
}

fn garbled() -> Unavailable {
    Unavailable::Away("JetStream answered something that cannot be read".into())
}

fn said(error: Option<ApiError>) -> Unavailable {
    error.map_or_else(garbled, |error| {
        Unavailable::Away(format!("JetStream says {}: {}", error.err_code, error.description))
    })
}

/// What the server says when it did nothing. `None` where it may have done it all the same.
fn refusal(error: &ApiError) -> Option<Unavailable> {
    match error.err_code {
        code if NO_ROOM.contains(&code) => Some(Unavailable::Full),
        TOO_LARGE => Some(Unavailable::Misuse("the servers take no entry of this size")),
        _ => None,
    }
}

/// The last place as the refusal names it: `wrong last sequence: 7`.
fn last_in(error: &ApiError) -> Option<u64> {
    error.description.rsplit(' ').next()?.parse().ok()
}

impl LogStorage for JetStreamStorage {
    fn put(&mut self, place: u64, bytes: &[u8]) -> Put {
        let Some(before) = place.checked_sub(1) else { return Put::Taken };
        if let Err(why) = self.ready() {
            return Put::Refused(why);
        }
        // enforces: I24
        // The stream takes it only if it is exactly that long.
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Expected-Last-Sequence", before.to_string());
        let answer = match self.offer(&headers, &Bytes::copy_from_slice(bytes)) {
            Asked::Answer(answer) => serde_json::from_slice::<Published>(&answer.payload).ok(),
            Asked::Refused(why) => return Put::Refused(why),
            Asked::Lost => None,
        };
        match answer {
            Some(Published { seq, error: None }) if seq == place => {
                self.doubt = None;
                Put::Durable
            }
            Some(Published { error: Some(error), .. }) if error.err_code == WRONG_LAST => {
                self.found(place, bytes, last_in(&error))
            }
            Some(Published { error: Some(error), .. }) => match refusal(&error) {
                Some(why) => Put::Refused(why),
                None => {
                    self.doubt = Some(place);
                    Put::InDoubt
                }
            },
            _ => {
                self.doubt = Some(place);
                Put::InDoubt
            }
        }
    }

    fn get(&mut self, from: u64, at_most: usize) -> Result<Vec<Vec<u8>>, Unavailable> {
        self.ready()?;
        if at_most == 0 {
            return Ok(Vec::new());
        }
        let found = self.replica_get(from.max(1), at_most)?;
        let is_hole = !found.is_empty();
        let mut entries = Vec::with_capacity(found.len());
        for (expected, (place, bytes)) in (from..).zip(found) {
            // A hole ends what is given.
            if place != expected {
                break;
            }
            entries.push(bytes);
        }
        if entries.is_empty() {
            entries.extend(self.elsewhere(from, is_hole)?);
        }
        Ok(entries)
    }

    fn head(&mut self) -> Result<u64, Unavailable> {
        self.ready()?;
        let subject = format!("STREAM.INFO.{}", self.stream);
        let info: StreamInfo = self.connection.api(&subject, &()).known()?;
        info.state.map(|state| state.last_seq).ok_or_else(|| said(info.error))
    }
}
