//! The files in which logins are kept: one for each hub, readable by their owner alone.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use aaep_hub::sign_in::{Offer, Tokens};
use serde::{Deserialize, Serialize};

use super::now_seconds;

/// The directory of logins, in the directory of the configuration.
const DIRECTORY: &str = "logins";

/// The longest file, in bytes.
const MAX_FILE: u64 = 256 << 10;

/// For how long a token counts whose provider does not say it, in seconds.
const USUAL_LIFE: u64 = 300;

/// How somebody signed in to a hub. It has no `Debug`: nothing of it belongs into a log.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Login {
    /// The base of the hub's API.
    pub(super) hub: String,
    /// With which provider, and as what.
    pub(super) offer: Offer,
    pub(super) access_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) refresh_token: Option<String>,
    /// When the access token was given, and when it ends, in seconds of the wall clock.
    pub(super) given_at: u64,
    pub(super) expires_at: u64,
    /// Certificates in PEM that vouch for hub and provider beside those of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    roots: Option<String>,
}

impl Login {
    pub(super) fn new(hub: &str, offer: &Offer, tokens: Tokens, roots: Option<Vec<u8>>) -> Self {
        let now = now_seconds();
        Self {
            hub: hub.to_owned(),
            offer: offer.clone(),
            access_token: tokens.access_token,
            refresh_token: tokens.refresh_token,
            given_at: now,
            expires_at: now + tokens.expires_in.unwrap_or(USUAL_LIFE),
            roots: roots.and_then(|roots| String::from_utf8(roots).ok()),
        }
    }

    /// The same with newer tokens. A provider that gives no new refresh token lets the old one count.
    pub(super) fn renewed(&self, tokens: Tokens) -> Self {
        let now = now_seconds();
        Self {
            access_token: tokens.access_token,
            refresh_token: tokens.refresh_token.or_else(|| self.refresh_token.clone()),
            given_at: now,
            expires_at: now + tokens.expires_in.unwrap_or(USUAL_LIFE),
            ..self.clone()
        }
    }

    pub(super) fn roots(&self) -> Option<Vec<u8>> {
        self.roots.clone().map(String::into_bytes)
    }
}

/// Where the login of a hub is, or would be.
pub(super) struct LoginFile(PathBuf);

/// Nobody else changes the login as long as this lives.
pub(super) struct Locked(#[expect(dead_code, reason = "closing it gives the lock back")] File);

impl LoginFile {
    pub(super) fn of(hub: &str) -> Result<Self, String> {
        let directory = aaep_transport::discovery::configuration();
        let directory = directory.ok_or("There is no place to keep a login: set HOME.")?;
        Ok(Self(directory.join(DIRECTORY).join(format!("{}.json", file_name(hub)))))
    }

    pub(super) fn read(&self) -> Result<Option<Login>, String> {
        let mut file = match File::open(&self.0) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(self.cannot("read", &error)),
        };
        if is_open_to_others(&file).map_err(|error| self.cannot("read", &error))? {
            return Err(format!(
                "Others can read how you signed in: {}. Sign in again after: rm {}",
                self.0.display(),
                self.0.display()
            ));
        }
        let mut text = String::new();
        let read = (&mut file).take(MAX_FILE).read_to_string(&mut text);
        read.map_err(|error| self.cannot("read", &error))?;
        let login = serde_json::from_str(&text).map_err(|error| self.cannot("read", &error))?;
        Ok(Some(login))
    }

    /// Keeps a login: as a whole, readable by its owner alone.
    pub(super) fn write(&self, login: &Login) -> Result<(), String> {
        let text = serde_json::to_string(login).unwrap_or_default();
        self.replace(&text).map_err(|error| self.cannot("written", &error))
    }

    pub(super) fn remove(&self) -> Result<(), String> {
        match std::fs::remove_file(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(self.cannot("removed", &error))
            }
            _ => {
                let _ = std::fs::remove_file(self.0.with_extension("lock"));
                Ok(())
            }
        }
    }

    /// Waits until nobody else renews this login: a refresh token counts once.
    pub(super) fn lock(&self) -> Result<Locked, String> {
        let lock = || {
            let file = private(&self.0.with_extension("lock"))?;
            file.lock()?;
            Ok(Locked(file))
        };
        lock().map_err(|error: io::Error| self.cannot("locked", &error))
    }

    fn replace(&self, text: &str) -> io::Result<()> {
        if let Some(directory) = self.0.parent() {
            std::fs::create_dir_all(directory)?;
            make_private(directory)?;
        }
        let aside = self.0.with_extension(format!("{}.new", std::process::id()));
        let mut file = private(&aside)?;
        file.set_len(0)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&aside, &self.0)
    }

    fn cannot(&self, what: &str, error: &dyn std::fmt::Display) -> String {
        format!("The login in {} cannot be {what}: {error}.", self.0.display())
    }
}

/// A file to write to that only its owner can read.
fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(unix)]
fn make_private(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o700))
}

#[cfg(not(unix))]
fn make_private(_: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
fn is_open_to_others(file: &File) -> io::Result<bool> {
    use std::os::unix::fs::PermissionsExt;
    Ok(file.metadata()?.permissions().mode() & 0o077 != 0)
}

#[cfg(not(unix))]
fn is_open_to_others(_: &File) -> io::Result<bool> {
    Ok(false)
}

/// An address as the name of a file; no two addresses have one name.
fn file_name(hub: &str) -> String {
    let mut name = String::new();
    for byte in hub.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' => name.push(char::from(byte)),
            other => name.push_str(&format!("_{other:02X}")),
        }
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login() -> Login {
        let offer = serde_json::from_value(serde_json::json!({
            "name": "work", "issuer": "https://login.example", "client_id": "aaep", "scopes": [],
            "resource": "urn:hub",
        }));
        let tokens = serde_json::from_value(serde_json::json!({
            "access_token": "one", "refresh_token": "again", "expires_in": 60,
        }));
        Login::new("https://hub.example/aaep/v1", &offer.unwrap(), tokens.unwrap(), None)
    }

    #[test]
    fn a_login_is_kept_where_only_its_owner_can_read_it() {
        let place = tempfile::tempdir().unwrap();
        let file = LoginFile(place.path().join("logins").join("hub.json"));
        assert!(file.read().unwrap().is_none());
        file.write(&login()).unwrap();
        let read = file.read().unwrap().unwrap();
        assert_eq!(read.access_token, "one");
        assert_eq!(read.offer.target().collect::<Vec<_>>(), [("resource", "urn:hub")]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(&file.0), 0o600);
            assert_eq!(mode(file.0.parent().unwrap()), 0o700);
            let open = std::fs::Permissions::from_mode(0o640);
            std::fs::set_permissions(&file.0, open).unwrap();
            let refused = file.read().err().unwrap();
            assert!(refused.contains("Others can read"), "{refused}");
        }
        file.remove().unwrap();
        file.remove().unwrap();
    }

    #[test]
    fn a_provider_that_gives_no_new_refresh_token_lets_the_old_one_count() {
        let newer = serde_json::json!({ "access_token": "two" });
        let renewed = login().renewed(serde_json::from_value(newer).unwrap());
        assert_eq!(renewed.access_token, "two");
        assert_eq!(renewed.refresh_token.as_deref(), Some("again"));
        assert_eq!(renewed.expires_at - renewed.given_at, USUAL_LIFE);
    }

    #[test]
    fn no_two_hubs_have_one_file() {
        assert_eq!(file_name("https://a:1/b"), "https_3A_2F_2Fa_3A1_2Fb");
        assert_ne!(file_name("https://a_3A1"), file_name("https://a:1"));
    }
}
