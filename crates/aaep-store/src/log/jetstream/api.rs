//! What JetStream is asked for, and what it answers.

use serde::{Deserialize, Serialize};

/// The place is not the one after the last: `wrong last sequence`.
pub(super) const WRONG_LAST: u32 = 10071;
/// The stream exists, with another configuration.
pub(super) const OTHER_STREAM: u32 = 10058;
/// There is no such message.
pub(super) const NO_MESSAGE: u32 = 10037;
/// Of bytes, storage or memory there is none left.
pub(super) const NO_ROOM: [u32; 4] = [10077, 10047, 10028, 10023];
/// The message has more bytes than the server takes.
pub(super) const TOO_LARGE: u32 = 10054;

/// How a stream is made.
#[derive(Debug, Serialize)]
pub(super) struct StreamConfig<'a> {
    pub(super) name: &'a str,
    pub(super) subjects: [&'a str; 1],
    pub(super) retention: &'static str,
    pub(super) storage: &'static str,
    pub(super) discard: &'static str,
    pub(super) num_replicas: u32,
    pub(super) max_consumers: i64,
    pub(super) max_msgs: i64,
    pub(super) max_bytes: i64,
    pub(super) max_msgs_per_subject: i64,
    /// In nanoseconds; 0 is for ever.
    pub(super) max_age: u64,
    pub(super) duplicate_window: u64,
    pub(super) deny_delete: bool,
    pub(super) deny_purge: bool,
    pub(super) allow_direct: bool,
}

impl<'a> StreamConfig<'a> {
    /// A stream from which nothing is ever taken away.
    pub(super) fn for_ever(name: &'a str, subject: &'a str) -> Self {
        Self {
            name,
            subjects: [subject],
            retention: "limits",
            storage: "file",
            discard: "new",
            num_replicas: super::REPLICAS,
            max_consumers: -1,
            max_msgs: -1,
            max_bytes: -1,
            max_msgs_per_subject: -1,
            max_age: 0,
            duplicate_window: super::LEASE_NANOS,
            deny_delete: true,
            deny_purge: true,
            allow_direct: true,
        }
    }
}

/// Why JetStream did not do something.
#[derive(Debug, Deserialize)]
pub(super) struct ApiError {
    #[serde(default)]
    pub(super) err_code: u32,
    #[serde(default)]
    pub(super) description: String,
}

/// The answer to a publish.
#[derive(Debug, Deserialize)]
pub(super) struct Published {
    #[serde(default)]
    pub(super) seq: u64,
    pub(super) error: Option<ApiError>,
}

/// The answer to making a stream, or asking for one.
#[derive(Debug, Deserialize)]
pub(super) struct StreamInfo {
    pub(super) config: Option<FoundConfig>,
    pub(super) state: Option<StreamState>,
    pub(super) error: Option<ApiError>,
}

/// What matters of the configuration of a stream that is there.
#[derive(Debug, Deserialize)]
pub(super) struct FoundConfig {
    pub(super) num_replicas: u32,
    pub(super) storage: String,
    pub(super) retention: String,
    #[serde(default)]
    pub(super) max_age: u64,
    pub(super) max_msgs: i64,
    pub(super) max_bytes: i64,
    #[serde(default)]
    pub(super) deny_delete: bool,
    #[serde(default)]
    pub(super) deny_purge: bool,
}

/// How far a stream is.
#[derive(Debug, Deserialize)]
pub(super) struct StreamState {
    pub(super) last_seq: u64,
}

/// Which message is wanted of the stream's leader.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(super) enum Wanted<'a> {
    Place { seq: u64 },
    LastOf { last_by_subj: &'a str },
}

/// Messages from a replica, in one go.
#[derive(Debug, Serialize)]
pub(super) struct Batch {
    pub(super) seq: u64,
    pub(super) batch: usize,
    pub(super) max_bytes: usize,
}

/// A message as the stream's leader hands it out.
#[derive(Debug, Deserialize)]
pub(super) struct Got {
    pub(super) message: Option<GotMessage>,
    pub(super) error: Option<ApiError>,
}

/// The message itself.
#[derive(Debug, Deserialize)]
pub(super) struct GotMessage {
    pub(super) seq: u64,
    /// In base64.
    #[serde(default)]
    pub(super) data: String,
    pub(super) time: String,
}

/// What a server says of itself.
#[derive(Debug, Deserialize)]
pub(super) struct Varz {
    pub(super) data: VarzData,
}

/// The part that matters.
#[derive(Debug, Deserialize)]
pub(super) struct VarzData {
    pub(super) server_name: String,
    pub(super) version: String,
    #[serde(default)]
    pub(super) jetstream: VarzJetStream,
}

/// What it says of JetStream.
#[derive(Debug, Default, Deserialize)]
pub(super) struct VarzJetStream {
    /// Absent where JetStream is off.
    pub(super) config: Option<VarzConfig>,
}

/// How JetStream is set.
#[derive(Debug, Deserialize)]
pub(super) struct VarzConfig {
    #[serde(default)]
    pub(super) sync_always: bool,
}
