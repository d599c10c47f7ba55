//! What only several keys together can get wrong.

use std::collections::{BTreeMap, BTreeSet};

use super::{Config, PrincipalEntry};
use crate::Fault;
use crate::access::{certificate, is_built_in};

/// What is wrong with a key, before its place is known.
#[derive(Debug)]
pub(super) struct Wrong {
    pub(super) key: String,
    pub(super) what: String,
    pub(super) remedy: String,
}

fn wrong(key: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>) -> Wrong {
    Wrong { key: key.into(), what: what.into(), remedy: remedy.into() }
}

/// Finds the first thing that cannot be; `Err` of a `Fault` only if the table cannot be made.
pub(super) fn check(config: &Config) -> Result<Option<Wrong>, Fault> {
    Ok(tls(config)
        .or_else(|| ways_in(config))
        .or_else(|| state(config))
        .or_else(|| hearing(config))
        .or_else(|| principals(&config.principals))
        .or_else(|| certificates(config))
        .or_else(|| issuers(config))
        .or_else(|| collector(config))
        .or(limits(config)?))
}

fn tls(config: &Config) -> Option<Wrong> {
    let missing = match (&config.tls.certificate, &config.tls.key) {
        (Some(_), None) => "key",
        (None, Some(_)) => "certificate",
        _ => return None,
    };
    let what = format!("There is no `{missing}`: TLS needs a certificate and its key.");
    Some(wrong(format!("tls.{missing}"), what, "Give both, or take both out."))
}

fn state(config: &Config) -> Option<Wrong> {
    let (data, state) = config.data.as_ref().zip(config.state.as_ref())?;
    state.starts_with(data).then(|| {
        wrong(
            "state",
            "It lies in the data directory, so it would be copied and restored with it.",
            "Choose a directory outside of it.",
        )
    })
}

// enforces: S10, S15
fn hearing(config: &Config) -> Option<Wrong> {
    let mut rules = config.hearing.iter().enumerate();
    rules.find_map(|(at, rule)| {
        let remedy = "Name other types or other members.";
        rule.wrong().map(|what| wrong(format!("hearing.{at}"), what, remedy))
    })
}

fn ways_in(config: &Config) -> Option<Wrong> {
    let mut seen = BTreeSet::new();
    for (key, addresses) in [("listen", &config.listen), ("grpc", &config.grpc)] {
        // Port 0 is a new port each time.
        let mut fixed = addresses.iter().filter(|address| address.port() != 0);
        if let Some(twice) = fixed.find(|address| !seen.insert(**address)) {
            return Some(wrong(key, format!("{twice} is listed twice."), "List it once."));
        }
    }
    (config.addresses().next().is_none() && !config.unix_socket.enabled).then(|| {
        wrong(
            "listen",
            "There is no address and no Unix socket, so nobody could connect.",
            "Give an address such as 127.0.0.1:8707, or set unix_socket.enabled = true.",
        )
    })
}

fn certificates(config: &Config) -> Option<Wrong> {
    if config.tls.client_ca.is_some() && config.tls.files().is_none() {
        let what = "Certificates of clients are shown over TLS, and there is none.";
        return Some(wrong("tls.client_ca", what, "Give tls.certificate and tls.key too."));
    }
    if config.tls.client_crl.is_some() && config.tls.client_ca.is_none() {
        let what = "There is nothing that could be revoked.";
        return Some(wrong("tls.client_crl", what, "Give tls.client_ca too, or take this out."));
    }
    for (at, entry) in config.principals.iter().enumerate() {
        let (hash, name) = (&entry.certificate_sha256, &entry.certificate_name);
        if hash.is_none() && name.is_none() {
            continue;
        }
        let key = |name: &str| format!("principals.{at}.{name}");
        if config.tls.client_ca.is_none() {
            let what =
                format!("`{}` comes by certificate, and nothing vouches for it.", entry.name);
            return Some(wrong(
                key("name"),
                what,
                "Name the issuer's certificate in tls.client_ca.",
            ));
        }
        if hash.as_deref().is_some_and(|hash| certificate::fingerprint(hash).is_none()) {
            let what = "It is no SHA-256 of a certificate.";
            let remedy = "openssl x509 -noout -fingerprint -sha256 -in FILE prints it.";
            return Some(wrong(key("certificate_sha256"), what, remedy));
        }
        if name.as_deref().is_some_and(|name| certificate::San::parse(name).is_none()) {
            let what = "It does not say which kind of name it is.";
            let remedy = "Write dns:, email: or uri: before it.";
            return Some(wrong(key("certificate_name"), what, remedy));
        }
    }
    None
}

fn principals(entries: &[PrincipalEntry]) -> Option<Wrong> {
    let mut names: BTreeMap<&str, &PrincipalEntry> = BTreeMap::new();
    let mut hashes = BTreeSet::new();
    for (at, entry) in entries.iter().enumerate() {
        let key = |name: &str| format!("principals.{at}.{name}");
        let name = entry.name.as_str();
        if is_built_in(name) {
            let what = format!("`{name}` is the name of those who come without a token.");
            return Some(wrong(key("name"), what, "Choose another name."));
        }
        let before = names.entry(name).or_insert(entry);
        if (before.role, &before.user) != (entry.role, &entry.user) {
            let what = format!("Two principals are named `{name}` and differ in role or user.");
            let remedy =
                "Give each its own name; only a second token of the same principal may share it.";
            return Some(wrong(key("name"), what, remedy));
        }
        let shown = [
            entry.token_sha256.is_some(),
            entry.token_file.is_some(),
            entry.certificate_sha256.is_some(),
            entry.certificate_name.is_some(),
        ];
        if shown.iter().filter(|shown| **shown).count() != 1 {
            let what = format!(
                "The principal `{name}` needs one of token_sha256, token_file, certificate_sha256 and certificate_name."
            );
            return Some(wrong(key("token_sha256"), what, "Give exactly one of them."));
        }
        match (&entry.token_sha256, &entry.token_file) {
            (Some(hash), None) if !hashes.insert(hash) => {
                let remedy =
                    "Give each principal a token of its own; `aaep hub init` makes tokens.";
                return Some(wrong(key("token_sha256"), "Two principals share a token.", remedy));
            }
            _ => {}
        }
    }
    None
}

fn issuers(config: &Config) -> Option<Wrong> {
    let mut names = BTreeSet::new();
    for (at, entry) in config.issuers.iter().enumerate() {
        let key = |name: &str| format!("issuers.{at}.{name}");
        if let Some((name, what, remedy)) = entry.wrong() {
            return Some(wrong(key(name), what, remedy));
        }
        if !names.insert(&entry.name) {
            return Some(wrong(key("name"), "Two issuers have this name.", "Give each its own."));
        }
        let prefix = format!("{}/", entry.name);
        let mut principals = config.principals.iter();
        if let Some(taken) = principals.find(|known| known.name.as_str().starts_with(&prefix)) {
            let what = format!("`{}` would also be a principal of this issuer.", taken.name);
            return Some(wrong(key("name"), what, "Choose another name for one of the two."));
        }
    }
    None
}

fn collector(config: &Config) -> Option<Wrong> {
    let url = config.log.otlp.as_deref()?;
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
    if host.is_some_and(|host| !host.is_empty() && !host.starts_with('/')) {
        return None;
    }
    let remedy = "Give the address of a collector, such as http://127.0.0.1:4318.";
    Some(wrong("log.otlp", "This is no address of HTTP.", remedy))
}

fn limits(config: &Config) -> Result<Option<Wrong>, Fault> {
    if !(1..=86_400).contains(&config.presence.unlock_seconds) {
        let what = "A listener is unlocked for a second at least, and a day at most.";
        return Ok(Some(wrong("presence.unlock_seconds", what, "Give a number from 1 to 86400.")));
    }
    if config.limits.processor_percent_per_user > 100 {
        let key = "limits.processor_percent_per_user";
        let what = "There are no more than 100 percent.";
        return Ok(Some(wrong(key, what, "Give a number from 1 to 100.")));
    }
    let table = config.to_table()?;
    let limits = table.get("limits").and_then(toml::Value::as_table).into_iter().flatten();
    let mut zero = limits.filter(|(_, value)| value.as_integer() == Some(0));
    Ok(zero.next().map(|(name, _)| {
        wrong(format!("limits.{name}"), "A limit of 0 lets nothing through.", "Give at least 1.")
    }))
}
