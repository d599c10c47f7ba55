//! What the servers promise, asked before anything is entrusted to them.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use super::api::{FoundConfig, Varz, VarzData};
use super::connection::Connection;
use super::{JetStreamRefused, REPLICAS};
use crate::log::entry::MAX_ENTRY_BYTES;

/// How long the servers have to say something of themselves, one after the other.
const QUIET: Duration = Duration::from_millis(700);

/// The oldest version that keeps what it promises.
const OLDEST: [u32; 3] = [2, 15, 1];

/// What goes with an entry in a message.
const HEADER_BYTES: usize = 4096;

/// Something with which acknowledged entries could be lost, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnsafeCluster {
    /// Too few servers keep what is written.
    Servers {
        /// Which do.
        found: Vec<String>,
    },
    /// A server acknowledges what is not on its disk.
    NotSynced {
        /// Which.
        server: String,
    },
    /// A server is older than the first version that appends where it should.
    TooOld {
        /// Which.
        server: String,
        /// Its version.
        version: String,
    },
    /// The servers take no message that is as long as an entry may be.
    SmallPayload {
        /// How many bytes they take.
        bytes: usize,
    },
    /// A stream was made otherwise than it has to be.
    Stream {
        /// Which.
        stream: String,
        /// What is wrong and what to do.
        change: String,
    },
}

impl fmt::Display for UnsafeCluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Servers { found } => write!(
                f,
                "JetStream runs on {} of the servers that answered ({}). Three are needed, so that losing one loses nothing: start more with the same cluster name.",
                found.len(),
                found.join(", ")
            ),
            Self::NotSynced { server } => write!(
                f,
                "{server} acknowledges what is not on its disk yet. Set sync_interval: always in its jetstream block and restart it."
            ),
            Self::TooOld { server, version } => write!(
                f,
                "{server} is nats-server {version}, and older ones than 2.15.1 put entries in wrong places or lose them. Install 2.15.1 or newer."
            ),
            Self::SmallPayload { bytes } => write!(
                f,
                "The servers take messages of {bytes} bytes. Set max_payload: 1MB on each and reload them."
            ),
            Self::Stream { stream, change } => write!(f, "The stream {stream}: {change}"),
        }
    }
}

/// Asks every server of the cluster what it promises.
pub(super) fn promises(
    connection: &Connection,
    system: &Connection,
) -> Result<Vec<String>, JetStreamRefused> {
    let mut servers = BTreeMap::new();
    // A server that has just come back may not hear the first question.
    for _ in 0..2 {
        let answers =
            system.ask_many("$SYS.REQ.SERVER.PING.VARZ", Bytes::new(), QUIET, |_| false)?;
        for answer in answers {
            if let Ok(Varz { data }) = serde_json::from_slice::<Varz>(&answer.payload) {
                servers.insert(data.server_name.clone(), data);
            }
        }
        if servers.len() >= REPLICAS as usize {
            break;
        }
    }
    let mut found = judge(servers.values());
    let bytes = connection.max_payload();
    if bytes < MAX_ENTRY_BYTES + HEADER_BYTES {
        found.push(UnsafeCluster::SmallPayload { bytes });
    }
    if found.is_empty() {
        Ok(servers.into_keys().collect())
    } else {
        Err(JetStreamRefused::Unsafe(found))
    }
}

fn judge<'a>(servers: impl Iterator<Item = &'a VarzData>) -> Vec<UnsafeCluster> {
    let (mut keeping, mut found) = (Vec::new(), Vec::new());
    for server in servers {
        let Some(config) = &server.jetstream.config else { continue };
        keeping.push(server.server_name.clone());
        let name = || server.server_name.clone();
        if !is_new_enough(&server.version) {
            let version = server.version.clone();
            found.push(UnsafeCluster::TooOld { server: name(), version });
        }
        if !config.sync_always {
            found.push(UnsafeCluster::NotSynced { server: name() });
        }
    }
    if keeping.len() < REPLICAS as usize {
        found.push(UnsafeCluster::Servers { found: keeping });
    }
    found
}

/// A version that cannot be read is too old; one before a release is older than that.
fn is_new_enough(version: &str) -> bool {
    let (numbers, before) = version.split_once('-').map_or((version, false), |(n, _)| (n, true));
    let mut parts = numbers.split('.').map(str::parse::<u32>);
    let mut next = || parts.next().and_then(Result::ok);
    match (next(), next(), next()) {
        (Some(major), Some(minor), Some(patch)) => {
            let found = [major, minor, patch];
            found > OLDEST || found == OLDEST && !before
        }
        _ => false,
    }
}

/// Whether a stream that is there keeps what it has to keep.
pub(super) fn stream_promises(stream: &str, found: &FoundConfig) -> Result<(), UnsafeCluster> {
    let wrong = |change: String| Err(UnsafeCluster::Stream { stream: stream.to_owned(), change });
    if found.num_replicas < REPLICAS {
        return wrong(format!(
            "it is kept {} times, and {REPLICAS} are needed. `nats stream edit {stream} --replicas {REPLICAS}` changes that.",
            found.num_replicas
        ));
    }
    let keeps = found.storage == "file"
        && found.retention == "limits"
        && (found.max_age, found.max_msgs, found.max_bytes) == (0, -1, -1);
    if !keeps || !found.deny_delete || !found.deny_purge {
        return wrong(
            "it was not made by a hub: it may forget, or let messages be taken away. Give the hubs a JetStream account of their own.".into(),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::api::{VarzConfig, VarzJetStream};
    use super::*;

    fn server(name: &str, version: &str, sync_always: bool) -> VarzData {
        let jetstream = VarzJetStream { config: Some(VarzConfig { sync_always }) };
        VarzData { server_name: name.into(), version: version.into(), jetstream }
    }

    #[test]
    fn three_new_servers_that_sync_are_safe_and_less_is_not() {
        let good = |name| server(name, "2.15.1", true);
        assert_eq!(judge([good("a"), good("b"), good("c")].iter()), []);
        let two = judge([good("a"), good("b")].iter());
        assert_eq!(two, [UnsafeCluster::Servers { found: vec!["a".into(), "b".into()] }]);
        let lazy = judge([good("a"), good("b"), server("c", "2.15.1", false)].iter());
        assert_eq!(lazy, [UnsafeCluster::NotSynced { server: "c".into() }]);
        let old = judge([good("a"), good("b"), server("c", "2.9.10", true)].iter());
        assert!(old[0].to_string().contains("c is nats-server 2.9.10"), "{old:?}");
        let off = VarzData { jetstream: VarzJetStream::default(), ..good("c") };
        assert_eq!(judge([good("a"), good("b"), off].iter()).len(), 1, "it keeps nothing");
    }

    #[test]
    fn versions_are_compared_as_numbers() {
        for new in ["2.15.1", "2.15.2", "2.16.0", "3.0.0", "2.15.10", "2.16.0-RC.1"] {
            assert!(is_new_enough(new), "{new}");
        }
        for old in ["2.15.0", "2.9.10", "1.20.30", "2.15.1-RC.2", "2.15", "", "new"] {
            assert!(!is_new_enough(old), "{old}");
        }
    }
}
