//! The hubs on this machine, as [`aaep_transport::discovery`] finds them.

use std::path::Path;

use aaep_transport::discovery;

use super::hub::Hub;

/// The hubs of this user on this machine. What `AAEP_URL` names; otherwise every hub that has a
/// socket here; otherwise the usual address, with the token and the certificate that
/// `aaep hub init` made, if it did.
pub fn find_local() -> Vec<Hub> {
    if let Some(hub) = discovery::named().and_then(|url| Hub::parse(&url).ok()) {
        return vec![with_token(hub, discovery::token())];
    }
    let sockets = sockets();
    if !sockets.is_empty() {
        return sockets;
    }
    vec![with_token(usual(discovery::configuration().as_deref()), discovery::token())]
}

#[cfg(unix)]
fn sockets() -> Vec<Hub> {
    discovery::sockets().into_iter().map(|(path, name)| Hub::at_socket(path).named(name)).collect()
}

#[cfg(not(unix))]
fn sockets() -> Vec<Hub> {
    Vec::new()
}

/// The usual address, and the token that was made for listeners.
fn usual(configuration: Option<&Path>) -> Hub {
    let discovery::Usual { url, certificate } = discovery::usual(configuration);
    // It is an address, as the test says.
    let hub = Hub::parse(&url).unwrap_or_else(|_| unreachable!("the usual address is one"));
    let hub = match certificate {
        Some(certificate) => hub.named("hub").trust_pem(certificate),
        None => hub.named("hub"),
    };
    with_token(
        hub,
        configuration.and_then(|directory| discovery::made_token(directory, "listener")),
    )
}

fn with_token(hub: Hub, token: Option<String>) -> Hub {
    match token {
        Some(token) => hub.clone().token(&token).unwrap_or(hub),
        None => hub,
    }
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
