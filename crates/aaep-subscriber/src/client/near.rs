//! The hub on this machine: where it is, and what to show it.
//!
//! The same conventions as those of the hub and of the commands that talk with it: `AAEP_URL` names
//! a hub, `AAEP_TOKEN` or `AAEP_TOKEN_FILE` what to show; otherwise there is a socket of this user, or
//! what `aaep hub init` made in the directory of the configuration.

use std::path::{Path, PathBuf};

use super::hub::Hub;

/// Names a hub.
const URL: &str = "AAEP_URL";
/// A token, and a file with one.
const TOKEN: (&str, &str) = ("AAEP_TOKEN", "AAEP_TOKEN_FILE");
/// Where a hub listens when nobody says otherwise.
const USUAL: &str = "127.0.0.1:8707";
/// The hub's own name, and that of the demonstration; their sockets bear them.
#[cfg(unix)]
const NAMES: [(&str, &str); 2] = [("aaep-hub", "hub"), ("aaep-demo", "demo")];
/// The longest file with a token or a certificate.
const MAX_FILE: u64 = 64 * 1024;

/// The hubs of this user on this machine. What `AAEP_URL` names; otherwise every hub that has a
/// socket here; otherwise the usual address, with the token and the certificate that
/// `aaep hub init` made, if it did.
pub fn find_local() -> Vec<Hub> {
    let variable = |name: &str| std::env::var(name).ok().filter(|text| !text.is_empty());
    if let Some(hub) = variable(URL).and_then(|url| Hub::parse(&url).ok()) {
        return vec![with_token(hub)];
    }
    let sockets = sockets();
    if !sockets.is_empty() {
        return sockets;
    }
    vec![with_token(usual(configuration().as_deref()))]
}

#[cfg(unix)]
fn sockets() -> Vec<Hub> {
    use std::os::unix::fs::FileTypeExt;
    let is_socket = |path: &Path| {
        std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
    };
    NAMES
        .iter()
        .map(|(agent_id, name)| (aaep_transport::unix::path_for(agent_id), name))
        .filter(|(path, _)| is_socket(path))
        .map(|(path, name)| Hub::at_socket(path).named(name))
        .collect()
}

#[cfg(not(unix))]
fn sockets() -> Vec<Hub> {
    Vec::new()
}

/// The usual address; with TLS if there is a certificate in the directory of the configuration.
fn usual(configuration: Option<&Path>) -> Hub {
    let certificate = configuration
        .map(|directory| directory.join("tls").join("certificate.pem"))
        .and_then(|path| read(&path));
    let plain = Hub::parse(&format!("http://{USUAL}"));
    let hub = match &certificate {
        Some(_) => Hub::parse(&format!("https://{USUAL}")).or(plain),
        None => plain,
    };
    // Both are addresses, as the test says.
    let hub = hub.unwrap_or_else(|_| unreachable!("the usual address is one")).named("hub");
    let token = configuration.map(|directory| directory.join("tokens").join("listener"));
    let token = token.and_then(|path| read(&path)).and_then(|text| String::from_utf8(text).ok());
    let hub = match certificate {
        Some(certificate) => hub.trust_pem(certificate),
        None => hub,
    };
    match token {
        Some(token) => hub.clone().token(&token).unwrap_or(hub),
        None => hub,
    }
}

/// With the token of the environment, if there is one.
fn with_token(hub: Hub) -> Hub {
    let given = std::env::var(TOKEN.0).ok().filter(|token| !token.is_empty());
    let in_file = || {
        let path = std::env::var_os(TOKEN.1).filter(|path| !path.is_empty())?;
        String::from_utf8(read(Path::new(&path))?).ok()
    };
    match given.or_else(in_file) {
        Some(token) => hub.clone().token(&token).unwrap_or(hub),
        None => hub,
    }
}

fn read(path: &Path) -> Option<Vec<u8>> {
    use std::io::Read;
    let mut bytes = Vec::new();
    std::fs::File::open(path).ok()?.take(MAX_FILE).read_to_end(&mut bytes).ok()?;
    (!bytes.is_empty()).then_some(bytes)
}

/// The directory of the hub's configuration: `$XDG_CONFIG_HOME/aaep` or `~/.config/aaep`;
/// `~/Library/Application Support/AAEP`; `%APPDATA%\AAEP`.
fn configuration() -> Option<PathBuf> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::Address;

    #[test]
    fn what_init_made_is_used() {
        let directory = tempfile::tempdir().unwrap();
        let bare = usual(Some(directory.path()));
        assert_eq!(bare.address, Address::Http("http://127.0.0.1:8707/aaep/v1".into()));
        assert!(bare.options.token.is_none());
        for (folder, file, text) in
            [("tls", "certificate.pem", "PEM"), ("tokens", "listener", "secret\n")]
        {
            std::fs::create_dir(directory.path().join(folder)).unwrap();
            std::fs::write(directory.path().join(folder).join(file), text).unwrap();
        }
        let made = usual(Some(directory.path()));
        assert_eq!(made.address, Address::Http("https://127.0.0.1:8707/aaep/v1".into()));
        assert!(made.options.token.is_some() && made.options.extra_roots_pem.is_some());
    }
}
