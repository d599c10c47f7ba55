//! PINs as they are kept: hashed with Argon2id, in a file for the hub's user alone.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use aaep_types::presence::Pin;
use argon2::{Algorithm, Argon2, Params, Version};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq;

use crate::config::Config;
use crate::{Fault, files};

/// The name of the file, in the state directory.
pub const PIN_FILE_NAME: &str = "presence.toml";

/// The fewest characters of a new PIN.
pub const MIN_PIN_CHARACTERS: usize = 4;

/// The largest file, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// What hashing a new PIN costs: the second choice of RFC 9106 would take 64 MiB; this is what OWASP
/// recommends for interactive use.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;

/// The most that a stored PIN may cost: a file that somebody changed makes nobody wait for ever.
const MAX_MEMORY_KIB: u32 = 256 * 1024;
const MAX_PASSES: u32 = 16;

const HEADING: &str =
    "# PINs of people, hashed. Made by `aaep presence set`; keep it to yourself.\n";

/// One PIN, hashed.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoredPin {
    memory_kib: u32,
    passes: u32,
    salt: String,
    hash: String,
}

impl fmt::Debug for StoredPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoredPin(…)")
    }
}

impl StoredPin {
    /// Hashes a new one; takes tens of milliseconds.
    fn new(pin: &Pin<'_>) -> Result<Self, Fault> {
        let mut salt = [0; 16];
        crate::access::fill(&mut salt)?;
        let salt = hex(&salt);
        let hash = derive(pin, &salt, MEMORY_KIB, PASSES)
            .ok_or_else(|| Fault::System { what: "The PIN could not be hashed.".into() })?;
        Ok(Self { memory_kib: MEMORY_KIB, passes: PASSES, salt, hash })
    }

    /// Whether this is the PIN; takes tens of milliseconds and as much memory as it says.
    pub(super) fn is(&self, pin: &Pin<'_>) -> bool {
        if self.memory_kib > MAX_MEMORY_KIB || self.passes > MAX_PASSES {
            return false;
        }
        derive(pin, &self.salt, self.memory_kib, self.passes)
            .is_some_and(|hash| hash.as_bytes().ct_eq(self.hash.as_bytes()).into())
    }
}

fn derive(pin: &Pin<'_>, salt: &str, memory_kib: u32, passes: u32) -> Option<String> {
    let params = Params::new(memory_kib, passes, 1, Some(32)).ok()?;
    let mut out = [0; 32];
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(pin.expose().as_bytes(), salt.as_bytes(), &mut out)
        .ok()?;
    Some(hex(&out))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    #[serde(default)]
    pins: BTreeMap<String, StoredPin>,
}

/// The file in which a hub keeps PINs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinFile {
    path: PathBuf,
}

impl PinFile {
    /// The file of a hub with this configuration: in its state directory, or with its data if there is
    /// none. `None` for a hub that keeps nothing.
    pub fn of(config: &Config) -> Option<Self> {
        let directory = config.state.as_ref().or(config.data.as_ref())?;
        Some(Self { path: directory.join(PIN_FILE_NAME) })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The users who have a PIN.
    pub fn users(&self) -> Result<Vec<String>, Fault> {
        Ok(self.read()?.into_keys().collect())
    }

    /// Whether this is the user's PIN; no, if they have none.
    pub fn matches(&self, user: &str, pin: &Pin<'_>) -> Result<bool, Fault> {
        Ok(self.read()?.get(user).is_some_and(|stored| stored.is(pin)))
    }

    /// Keeps a PIN, in place of one that the user had.
    pub fn set(&self, user: &str, pin: &Pin<'_>) -> Result<(), Fault> {
        if pin.expose().chars().count() < MIN_PIN_CHARACTERS {
            let remedy = format!("Choose at least {MIN_PIN_CHARACTERS} characters.");
            return Err(Fault::unsafely("The PIN is too short.", remedy));
        }
        let mut pins = self.read()?;
        pins.insert(user.to_owned(), StoredPin::new(pin)?);
        self.write(pins)
    }

    /// Forgets a user's PIN; false if there was none.
    pub fn remove(&self, user: &str) -> Result<bool, Fault> {
        let mut pins = self.read()?;
        if pins.remove(user).is_none() {
            return Ok(false);
        }
        self.write(pins).map(|()| true)
    }

    fn read(&self) -> Result<BTreeMap<String, StoredPin>, Fault> {
        if self.path.symlink_metadata().is_err() {
            return Ok(BTreeMap::new());
        }
        let bytes = files::read_private(&self.path, MAX_FILE_BYTES)?;
        let broken = |what: String| {
            Fault::file(&self.path, what, "Take it away, and set the PIN again: aaep presence set")
        };
        let text = String::from_utf8(bytes).map_err(|_| broken("It is not UTF-8.".into()))?;
        let contents: Contents =
            toml::from_str(&text).map_err(|_| broken("It is no file of PINs.".into()))?;
        Ok(contents.pins)
    }

    fn write(&self, pins: BTreeMap<String, StoredPin>) -> Result<(), Fault> {
        if let Some(directory) = self.path.parent() {
            files::create_private_directory(directory)?;
        }
        let text = toml::to_string(&Contents { pins }).map_err(|error| Fault::System {
            what: format!("The PINs cannot be written: {error}."),
        })?;
        files::replace_private(&self.path, format!("{HEADING}{text}").as_bytes())
    }
}

/// The PINs in force, as the file had them when it was read last.
#[derive(Debug)]
pub(super) struct Pins {
    file: Option<PinFile>,
    known: Mutex<LoadedPins>,
}

#[derive(Debug, Default)]
struct LoadedPins {
    /// When the file was changed last, and how long it was.
    stamp: Option<(SystemTime, u64)>,
    pins: Arc<BTreeMap<String, StoredPin>>,
    /// It was read at least once.
    is_read: bool,
}

impl Pins {
    pub(super) fn new(file: Option<PinFile>) -> Self {
        Self { file, known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, LoadedPins> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // enforces: I34
    /// Looks whether the file has changed, and says whose PIN is another than before, new or gone. A
    /// file that cannot be read changes nothing. What is there at the first look is no change.
    pub(super) fn refresh(&self) -> Vec<String> {
        let Some(file) = &self.file else { return Vec::new() };
        let metadata = file.path().metadata().ok();
        let stamp = metadata.and_then(|data| Some((data.modified().ok()?, data.len())));
        let mut known = self.known();
        if known.is_read && known.stamp == stamp {
            return Vec::new();
        }
        let pins = match file.read() {
            Ok(pins) => pins,
            Err(fault) => {
                tracing::warn!("the PINs that were known stay in force: {fault}");
                known.stamp = stamp;
                return Vec::new();
            }
        };
        let before = known.pins.iter().filter(|(user, pin)| pins.get(*user) != Some(pin));
        let new = pins.keys().filter(|user| !known.pins.contains_key(*user));
        let changed = before.map(|(user, _)| user).chain(new).cloned();
        let changed = if known.is_read { changed.collect() } else { Vec::new() };
        *known = LoadedPins { stamp, pins: Arc::new(pins), is_read: true };
        changed
    }

    /// Puts a user's PIN into the file; false for a hub that keeps nothing. Writes to disk.
    pub(super) fn set(&self, user: &str, pin: &Pin<'_>) -> Result<bool, Fault> {
        let Some(file) = &self.file else { return Ok(false) };
        file.set(user, pin).map(|()| true)
    }

    /// Takes a user's PIN out of the file; false if there was none. Writes to disk.
    pub(super) fn remove(&self, user: &str) -> Result<bool, Fault> {
        self.file.as_ref().map_or(Ok(false), |file| file.remove(user))
    }

    pub(super) fn get(&self, user: &str) -> Option<StoredPin> {
        self.known().pins.get(user).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pin(text: &str) -> Pin<'_> {
        Pin::new(text).unwrap()
    }

    // covers: I34, S8
    #[test]
    fn a_pin_is_kept_hashed_for_its_owner_alone_and_a_change_is_noticed() {
        let place = tempfile::tempdir().unwrap();
        let file = PinFile { path: place.path().join("state").join(PIN_FILE_NAME) };
        let pins = Pins::new(Some(file.clone()));
        assert!(pins.refresh().is_empty() && pins.get("ann").is_none());
        assert!(file.set("ann", &pin("123")).is_err(), "too short");
        file.set("ann", &pin("correct horse")).unwrap();
        file.set("bob", &pin("correct horse")).unwrap();
        let text = std::fs::read_to_string(file.path()).unwrap();
        assert!(!text.contains("correct"), "{text}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(file.path().metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        assert_eq!(pins.refresh(), ["ann", "bob"], "an agent could have set a first PIN");
        assert!(
            Pins::new(Some(file.clone())).refresh().is_empty(),
            "what was there before is not new"
        );
        assert!(pins.get("ann").unwrap().is(&pin("correct horse")));
        assert!(!pins.get("ann").unwrap().is(&pin("Correct horse")));
        assert_ne!(pins.get("ann"), pins.get("bob"), "each has a salt of its own");
        file.set("ann", &pin("another one")).unwrap();
        assert_eq!(pins.refresh(), ["ann"]);
        assert!(file.remove("ann").unwrap() && !file.remove("ann").unwrap());
        assert_eq!(pins.refresh(), ["ann"]);
        // What nobody can read changes nothing.
        std::fs::write(file.path(), "no pins").unwrap();
        assert!(pins.refresh().is_empty() && pins.get("bob").is_some());
    }

    #[test]
    fn a_file_that_asks_for_too_much_work_is_not_obeyed() {
        let stored = StoredPin {
            memory_kib: u32::MAX,
            passes: u32::MAX,
            salt: "0123456789abcdef".into(),
            hash: String::new(),
        };
        assert!(!stored.is(&pin("1234")));
    }
}
