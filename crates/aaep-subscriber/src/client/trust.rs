//! Whether a hub is who it says: its signed manifest, and what is remembered of it.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aaep_signature::{KeyList, KeyStatus, KnownAgents, Signers, verify};
use aaep_types::json::{Members, Raw};

use super::clock;
use super::hub::Hub;
use crate::notification::Identity;

/// The file of agents that are known, in the directory of the configuration.
pub const KNOWN_AGENTS_FILE: &str = "known-agents.json";

/// The longest file of known agents.
const MAX_FILE: u64 = 4 << 20;

/// How deep an answer may nest.
const DEPTH: usize = 64;

/// Whose signed manifests are believed.
#[derive(Clone, Debug)]
pub struct Trust {
    by: By,
    required: bool,
}

#[derive(Clone, Debug)]
enum By {
    /// Keys are remembered in a file as they are seen.
    FirstUse(KnownFile),
    /// Those of a list alone.
    List(Arc<KeyList>),
}

impl Trust {
    /// The first key that is seen of a hub is remembered here; another one is not believed.
    pub fn on_first_use(file: KnownFile) -> Self {
        Self { by: By::FirstUse(file), required: false }
    }

    /// The keys of this list are believed, and no others; unsigned manifests are refused.
    pub fn listed(list: KeyList) -> Self {
        Self { by: By::List(Arc::new(list)), required: true }
    }

    /// The same, and unsigned manifests are refused.
    pub fn signed_only(mut self) -> Self {
        self.required = true;
        self
    }

    /// Whether unsigned manifests are refused.
    pub fn is_signed_only(&self) -> bool {
        self.required
    }

    // enforces: S7
    /// Who accepted a subscription, by the answer; or why it is not to be believed.
    pub(super) fn judge(&self, hub: &Hub, answer: &[u8]) -> Result<Option<Identity>, String> {
        let text = std::str::from_utf8(answer).unwrap_or_default();
        let members = Members::whole(text, DEPTH).ok().flatten().unwrap_or_default();
        if members.text("type").as_deref() != Some("subscription.accepted") {
            return Ok(None);
        }
        let producer = match members.find("producer") {
            Some(Raw::Object(producer)) => Members::whole(producer, DEPTH).ok().flatten(),
            _ => None,
        };
        let agent_id =
            producer.unwrap_or_default().text("agent_id").unwrap_or_default().into_owned();
        let signed = members.text("signed_manifest");
        self.judge_signed(hub, Some(&agent_id), signed.as_deref())
    }

    /// Whether the hub at this address has to sign: because only signed manifests are wanted, or
    /// because it did before.
    pub(super) fn expects_signature(&self, hub: &Hub) -> Result<bool, String> {
        Ok(self.required
            || match &self.by {
                By::FirstUse(file) => file.read()?.find(&hub.place()).is_some(),
                By::List(_) => true,
            })
    }

    /// The same for a signed manifest, or none, however it came.
    pub(super) fn judge_signed(
        &self,
        hub: &Hub,
        agent_id: Option<&str>,
        signed: Option<&str>,
    ) -> Result<Option<Identity>, String> {
        let place = hub.place();
        let Some(signed) = signed else {
            return self.unsigned(hub, &place);
        };
        let now = clock::unix_seconds();
        let refused = |why: &dyn std::fmt::Display| format!("its manifest is not believed: {why}");
        let signers = match &self.by {
            By::List(list) => Signers::Listed(list),
            By::FirstUse(_) => Signers::Anybody,
        };
        let verified = verify(signed, agent_id, &signers, now).map_err(|why| refused(&why))?;
        let agent_id = verified.agent_id.as_str().into();
        let key = verified.key.fingerprint().into();
        let By::FirstUse(file) = &self.by else {
            return Ok(Some(Identity::Verified { agent_id, key }));
        };
        let mut known = file.read()?;
        match known.judge(&place, &verified) {
            KeyStatus::Unchanged => Ok(Some(Identity::Verified { agent_id, key })),
            KeyStatus::New => {
                known.remember(&place, &verified, now);
                file.write(&known)?;
                Ok(Some(Identity::New { agent_id, key }))
            }
            KeyStatus::Changed => Err(format!(
                "this agent's key has changed. It may have a new one, or somebody may pass for it. \
                 Its key is {key} now. If whoever runs it says that this is right: \
                 aaep manifest forget {place}"
            )),
        }
    }

    fn unsigned(&self, hub: &Hub, place: &str) -> Result<Option<Identity>, String> {
        if self.required {
            return Err("it does not sign its manifest, and only signed ones are wanted".into());
        }
        if let By::FirstUse(file) = &self.by
            && file.read()?.find(place).is_some()
        {
            return Err(format!(
                "it has signed its manifest before, and does so no longer. Somebody may pass for it. \
                 If whoever runs it says that this is right: aaep manifest forget {place}"
            ));
        }
        // On this machine the kernel says whose it is.
        Ok((!hub.is_local()).then_some(Identity::Unsigned))
    }
}

/// A file of agents that are known.
#[derive(Clone, Debug)]
pub struct KnownFile(PathBuf);

impl KnownFile {
    /// In this file, which need not be there.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The usual one of this user, in the directory of the configuration.
    pub fn usual() -> Option<Self> {
        let directory = aaep_transport::discovery::configuration()?;
        Some(Self(directory.join(KNOWN_AGENTS_FILE)))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Who is known. A file that cannot be read is no reason to believe everybody.
    pub fn read(&self) -> Result<KnownAgents, String> {
        let file = match std::fs::File::open(&self.0) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(KnownAgents::default());
            }
            Err(error) => return Err(self.cannot("read", &error)),
        };
        let mut text = String::new();
        file.take(MAX_FILE)
            .read_to_string(&mut text)
            .map_err(|error| self.cannot("read", &error))?;
        KnownAgents::from_json(&text).map_err(|error| self.cannot("read", &error))
    }

    /// Keeps who is known: as a whole, readable by its owner alone.
    pub fn write(&self, known: &KnownAgents) -> Result<(), String> {
        self.replace(&known.to_json()).map_err(|error| self.cannot("written", &error))
    }

    fn replace(&self, text: &str) -> io::Result<()> {
        if let Some(directory) = self.0.parent() {
            std::fs::create_dir_all(directory)?;
        }
        let aside = self.0.with_extension(format!("{}.new", std::process::id()));
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&aside)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&aside, &self.0)
    }

    fn cannot(&self, what: &str, error: &dyn std::fmt::Display) -> String {
        let path = self.0.display();
        format!(
            "the known agents in {path} cannot be {what}: {error}. Correct the file, or remove it"
        )
    }
}
