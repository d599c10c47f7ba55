//! The hub on this machine: where it is, and what to show it.
//!
//! The conventions that every client of ours follows: `AAEP_URL` names a hub, `AAEP_TOKEN` or
//! `AAEP_TOKEN_FILE` what to show; otherwise there is a socket of this user, or what `aaep hub init`
//! made in the directory of the configuration.

use std::path::{Path, PathBuf};

/// Names a hub.
const URL: &str = "AAEP_URL";
/// A token, and a file with one.
const TOKEN: (&str, &str) = ("AAEP_TOKEN", "AAEP_TOKEN_FILE");
/// Where a hub listens by default.
const USUAL: &str = "127.0.0.1:8707";
/// The hub's own name, and that of the demonstration; their sockets bear them.
#[cfg(unix)]
const NAMES: [(&str, &str); 2] = [("aaep-hub", "hub"), ("aaep-demo", "demo")];
/// The longest file with a token or a certificate.
const MAX_FILE: u64 = 64 * 1024;

/// A hub at its usual address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Usual {
    /// Its address, with https if it made a certificate.
    pub url: String,
    /// The certificate that it signed itself.
    pub certificate: Option<Vec<u8>>,
}

/// The hub that `AAEP_URL` names.
pub fn named() -> Option<String> {
    std::env::var(URL).ok().filter(|text| !text.is_empty())
}

/// The token of the environment.
pub fn token() -> Option<String> {
    let given = std::env::var(TOKEN.0).ok().filter(|token| !token.is_empty());
    given.or_else(|| {
        let path = std::env::var_os(TOKEN.1).filter(|path| !path.is_empty())?;
        text_of(Path::new(&path))
    })
}

/// The token of this name that `aaep hub init` made, such as `agent` or `listener`.
pub fn made_token(configuration: &Path, name: &str) -> Option<String> {
    text_of(&configuration.join("tokens").join(name))
}

/// Sockets of this user's hubs, each with a short name for people.
#[cfg(unix)]
pub fn sockets() -> Vec<(PathBuf, &'static str)> {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = |path: &Path| {
        std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
    };
    NAMES
        .iter()
        .map(|(agent_id, name)| (crate::unix::path_for(agent_id), *name))
        .filter(|(path, _)| is_socket(path))
        .collect()
}

/// The first of these sockets that accepts connections. A hub that was killed leaves its file behind.
#[cfg(unix)]
pub fn first_alive(sockets: impl IntoIterator<Item = PathBuf>) -> Option<PathBuf> {
    sockets.into_iter().find(|path| std::os::unix::net::UnixStream::connect(path).is_ok())
}

/// The usual address; with TLS if there is a certificate in the directory of the configuration.
pub fn usual(configuration: Option<&Path>) -> Usual {
    let certificate = configuration
        .map(|directory| directory.join("tls").join("certificate.pem"))
        .and_then(|path| read(&path));
    let scheme = if certificate.is_some() { "https" } else { "http" };
    Usual { url: format!("{scheme}://{USUAL}"), certificate }
}

/// The directory of the hub's configuration: `$XDG_CONFIG_HOME/aaep` or `~/.config/aaep`;
/// `~/Library/Application Support/AAEP`; `%APPDATA%\AAEP`.
pub fn configuration() -> Option<PathBuf> {
    let absolute =
        |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if cfg!(windows) {
        return absolute("APPDATA").map(|directory| directory.join("AAEP"));
    }
    if cfg!(target_os = "macos") {
        return absolute("HOME").map(|home| home.join("Library/Application Support/AAEP"));
    }
    let xdg = absolute("XDG_CONFIG_HOME").or_else(|| Some(absolute("HOME")?.join(".config")));
    xdg.map(|directory| directory.join("aaep"))
}

fn text_of(path: &Path) -> Option<String> {
    String::from_utf8(read(path)?).ok()
}

fn read(path: &Path) -> Option<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
    (!bytes.is_empty()).then_some(bytes)
}
