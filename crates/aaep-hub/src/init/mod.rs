//! `aaep hub init`: a safe configuration in one step.
//!
//! Everything is made in a directory aside and then moved to its place, the configuration last. A
//! crash leaves either nothing in place, or something that a second run puts in place: see
//! [`staging`]. Nothing that exists is ever overwritten.

mod make;
mod staging;

use std::fs::File;
use std::path::{Path, PathBuf};

use aaep_store::Lock;

use crate::config::{DEFAULT_PORT, FILE_NAME, HostName};
use crate::{Fault, files};
use make::{CERTIFICATE, KEY, ROLES, TLS_DIRECTORY, TOKEN_DIRECTORY};
use staging::{StagedSetup, Staging};

/// What is put in place, in this order: the configuration makes it count.
const PARTS: [&str; 3] = [TLS_DIRECTORY, TOKEN_DIRECTORY, FILE_NAME];

/// Writes a configuration, a token for each role, and a certificate for trying out.
///
/// The certificate is for this machine and for `hosts`, names or addresses. With hosts, the hub
/// listens on every address of the machine, otherwise on loopback. Gives the lines to print: what
/// was made, how to start, how to connect.
pub fn init(directory: &Path, hosts: &[String]) -> Result<Vec<String>, Fault> {
    let mut hosts = hosts.iter().map(|host| parse(host)).collect::<Result<Vec<_>, _>>()?;
    let directory =
        std::path::absolute(directory).map_err(|error| files::cannot_write(directory, &error))?;
    files::create_private_directory(&directory)?;
    let _lock = lock(&directory)?;
    let staging = Staging::of(&directory);
    let mut lines = Vec::new();
    match staging.find(&PARTS)? {
        StagedSetup::Nothing => make::everything(&staging, &hosts)?,
        StagedSetup::Complete => {
            hosts.clear();
            lines.push("An earlier run was interrupted. What it had made is now in place; its hosts are those that were given then.".into());
        }
    }
    staging.put_in_place(&PARTS)?;
    lines.extend(what_next(&directory, &hosts));
    Ok(lines)
}

/// A host as somebody types it; also an IPv6 address without brackets.
fn parse(text: &str) -> Result<HostName, Fault> {
    let bracketed = text.parse::<std::net::Ipv6Addr>().map(|address| format!("[{address}]"));
    let host = HostName::parse(bracketed.as_deref().unwrap_or(text));
    host.ok().filter(|host| !host.has_port()).ok_or_else(|| Fault::Config {
        place: "The flag --host".into(),
        key: String::new(),
        what: format!("{text:?} is neither a name nor an address."),
        remedy: "Give a name such as hub.example.org, or an address, without scheme and port. Names with other letters than ASCII are written in their xn-- form.".into(),
    })
}

/// Keeps a second run out of the directory while this one is at work.
#[cfg(unix)]
fn lock(directory: &Path) -> Result<Lock, Fault> {
    use std::os::unix::fs::MetadataExt;

    let file = File::open(directory).map_err(|error| files::cannot_read(directory, &error))?;
    let mode = file.metadata().map_err(|error| files::cannot_read(directory, &error))?.mode();
    if mode & 0o002 != 0 {
        let remedy = "Choose another directory with --dir.";
        return Err(Fault::file(directory, "Everybody on this machine may write there.", remedy));
    }
    Lock::take(file).map_err(|_| {
        Fault::file(directory, "Another `aaep hub init` is at work there.", "Wait for it to end.")
    })
}

// A directory cannot be locked here; two runs at once are left to the one who starts them.
#[cfg(not(unix))]
fn lock(_: &Path) -> Result<Option<Lock>, Fault> {
    Ok(None)
}

fn what_next(directory: &Path, hosts: &[HostName]) -> Vec<String> {
    let at = |parts: &[&str]| directory.join(parts.iter().collect::<PathBuf>());
    let config = at(&[FILE_NAME]);
    let certificate = at(&[TLS_DIRECTORY, CERTIFICATE]);
    let host = hosts.first().map_or("localhost", HostName::as_str);
    let url = format!("https://{host}:{DEFAULT_PORT}");
    let tokens = ROLES.map(|(name, _)| name).join(", ");
    let listener = at(&[TOKEN_DIRECTORY, "listener"]);
    vec![
        format!("Made the configuration: {}", config.display()),
        format!("Made one token for each role ({tokens}) in: {}", at(&[TOKEN_DIRECTORY]).display()),
        "Whoever can read a token can use it. Only you can read them.".into(),
        format!("Made a certificate for trying out, valid for one year: {}", certificate.display()),
        format!(
            "Its key, which never leaves this machine: {}",
            at(&[TLS_DIRECTORY, KEY]).display()
        ),
        format!("Start the hub: aaep hub --config {}", quoted(&config)),
        format!("It is then at: {url}"),
        "Programs of your own user on this machine can also use the Unix socket, without a token."
            .into(),
        "Agents show the token in the file agent, assistive technology the one in listener.".into(),
        format!(
            "Try it: curl --cacert {} -H \"Authorization: Bearer $(cat {})\" {url}/.well-known/aaep-manifest.json",
            quoted(&certificate),
            quoted(&listener),
        ),
        "Before others rely on it, replace the certificate by one that their programs trust."
            .into(),
    ]
}

/// A path as a shell takes it.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+:@%".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_quoted_where_a_shell_needs_it() {
        assert_eq!(quoted(Path::new("/home/ann/.config/aaep")), "/home/ann/.config/aaep");
        assert_eq!(quoted(Path::new("/a b/$(x)")), "'/a b/$(x)'");
        assert_eq!(quoted(Path::new("/it's")), r"'/it'\''s'");
    }

    #[test]
    fn hosts_are_read_as_people_type_them() {
        let good = [
            ("Hub.Example", "hub.example"),
            ("192.0.2.1", "192.0.2.1"),
            ("2001:db8::1", "[2001:db8::1]"),
        ];
        for (typed, meant) in good {
            assert_eq!(parse(typed).unwrap().as_str(), meant);
        }
        for bad in ["", "*", "https://x", "x:8707", "bücher.example", "a b", "\"x", "x\ny"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
