//! Whether a configuration is safe.

use std::net::SocketAddr;

use crate::Fault;
use crate::config::Config;

/// Refuses what would put somebody at risk, and gives the warnings for what is left.
pub fn check(config: &Config) -> Result<Vec<String>, Fault> {
    encrypted(config)?;
    authenticated(config)?;
    not_developing_in_public(config)?;
    reachable(config)?;
    Ok(warnings(config))
}

fn is_loopback(address: &SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// An address that other machines can reach, if there is one.
fn exposed(config: &Config) -> Option<String> {
    let off_host = config.addresses().find(|address| !is_loopback(address));
    let by_proxy = (!config.behind_proxy.is_empty()).then(|| "The hub, through its proxy,".into());
    off_host.map(|address| address.to_string()).or(by_proxy)
}

// enforces: W5
fn encrypted(config: &Config) -> Result<(), Fault> {
    if config.tls.files().is_some() || !config.behind_proxy.is_empty() {
        return Ok(());
    }
    exposed(config).map_or(Ok(()), |address| {
        Err(Fault::unsafely(
            format!(
                "{address} can be reached from other machines, and there is no TLS: everything could be read and changed on the way.",
            ),
            "Set tls.certificate and tls.key (`aaep hub init` makes a pair for trying out), or name the proxy that terminates TLS in behind_proxy, or listen on 127.0.0.1.",
        ))
    })
}

// enforces: S5, W5
fn authenticated(config: &Config) -> Result<(), Fault> {
    if !config.principals.is_empty() || !config.issuers.is_empty() {
        return Ok(());
    }
    exposed(config).map_or(Ok(()), |address| {
        Err(Fault::unsafely(
            format!("{address} can be reached from other machines, and nobody has a token."),
            "Add principals with tokens to the configuration (`aaep hub init` makes one for each role), or listen on 127.0.0.1 without a proxy.",
        ))
    })
}

// enforces: D4
fn not_developing_in_public(config: &Config) -> Result<(), Fault> {
    match exposed(config) {
        Some(address) if config.development.local_replies => Err(Fault::unsafely(
            format!(
                "{address} can be reached from other machines, and development.local_replies lets any program on this machine approve.",
            ),
            "Turn development.local_replies off, or listen on 127.0.0.1 without a proxy.",
        )),
        _ => Ok(()),
    }
}

fn reachable(config: &Config) -> Result<(), Fault> {
    let by_socket = cfg!(unix) && config.unix_socket.enabled;
    let tokens = !config.principals.is_empty() || !config.issuers.is_empty();
    if config.loopback_without_credentials || by_socket || tokens {
        return Ok(());
    }
    Err(Fault::unsafely(
        "Nobody could come in: nobody has a token, loopback_without_credentials is off, and so is the Unix socket.",
        "Add principals with tokens (`aaep hub init` makes one for each role), or turn one of the two on.",
    ))
}

// enforces: W5, D4
fn warnings(config: &Config) -> Vec<String> {
    let mut warnings = Vec::new();
    let everywhere = config.addresses().any(|address| address.ip().is_unspecified());
    if (everywhere || config.addresses().any(is_loopback)) && config.loopback_without_credentials {
        warnings.push(if config.development.local_replies {
            "Trying out: any program on this machine, also one that an agent started, can connect without a token and approve in your name. For real work, turn development.local_replies off.".into()
        } else {
            "Any program on this machine can connect without a token and hear what agents without a token do, and what is said to them. Its answers do not count. To demand tokens here too, set loopback_without_credentials = false.".into()
        });
    }
    if config.development.own_replies && !config.development.local_replies {
        warnings.push("Trying out: answers from an agent's own processes count. For real work, turn development.own_replies off.".into());
    }
    if everywhere && config.allowed_hosts.is_empty() {
        warnings.push("The hub listens on every address but answers only to loopback names. Add the names that other machines use for it to allowed_hosts.".into());
    }
    if config.tls.files().is_none() && config.behind_proxy.iter().any(|proxy| !proxy.is_loopback())
    {
        warnings.push("What goes between the proxy and the hub is not encrypted. Set tls.certificate and tls.key unless nobody else can be on that network.".into());
    }
    warnings
}
