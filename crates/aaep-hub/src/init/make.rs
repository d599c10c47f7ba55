//! What `aaep hub init` makes: certificate, tokens, configuration.

use std::fmt::Write;
use std::time::{Duration, SystemTime};

use aaep_engine::Role;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair};

use super::staging::Staging;
use crate::access::{LOCAL_USER, Token, TokenHash};
use crate::config::{DEFAULT_PORT, FILE_NAME, HostName};
use crate::{Fault, files};

pub(super) const TLS_DIRECTORY: &str = "tls";
pub(super) const CERTIFICATE: &str = "certificate.pem";
pub(super) const KEY: &str = "key.pem";
pub(super) const TOKEN_DIRECTORY: &str = "tokens";

/// One token for each role: the file's name and the principal's, and the role.
pub(super) const ROLES: [(&str, Role); 4] = [
    ("agent", Role::Agent),
    ("listener", Role::AccessibilityConsumer),
    ("auditor", Role::Auditor),
    ("admin", Role::Admin),
];

/// How long the certificate is valid: a year, which every client accepts.
const VALIDITY: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// How far back it is valid, for clients whose clock is behind.
const CLOCK_SLACK: Duration = Duration::from_secs(60 * 60);

/// Makes everything aside, the configuration last.
pub(super) fn everything(staging: &Staging<'_>, hosts: &[HostName]) -> Result<(), Fault> {
    let (tls, tokens) = (staging.path().join(TLS_DIRECTORY), staging.path().join(TOKEN_DIRECTORY));
    files::create_private_directory(&tls)?;
    files::create_private_directory(&tokens)?;
    let (certificate, key) = certificate(hosts)?;
    files::write_private_unnamed(&tls.join(CERTIFICATE), certificate.as_bytes())?;
    files::write_private_unnamed(&tls.join(KEY), key.as_bytes())?;
    let mut hashes = Vec::new();
    for (name, role) in ROLES {
        let token = Token::generate()?;
        let text = format!("{}\n", token.as_str());
        files::write_private_unnamed(&tokens.join(name), text.as_bytes())?;
        hashes.push((name, role, token.hash()));
    }
    // All of it is durable before the configuration says that it is complete.
    for directory in [&*tls, &*tokens, staging.path()] {
        files::sync_directory(directory)?;
    }
    let text = configuration(hosts, &hashes);
    files::write_private(&staging.path().join(FILE_NAME), text.as_bytes())?;
    files::sync_directory_of(staging.path())
}

/// A certificate that signs itself, and its key.
fn certificate(hosts: &[HostName]) -> Result<(String, String), Fault> {
    let failed = |error: rcgen::Error| Fault::System {
        what: format!("No certificate could be made: {error}. Nothing was changed."),
    };
    let own = ["localhost", "127.0.0.1", "::1"].map(String::from);
    let given = hosts.iter().map(|host| host.as_str().trim_matches(['[', ']']).to_owned());
    let mut names: Vec<String> = own.into_iter().chain(given).collect();
    names.sort();
    names.dedup();
    let mut params = CertificateParams::new(names).map_err(failed)?;
    params.distinguished_name.push(DnType::CommonName, "AAEP hub, for trying out");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let now = SystemTime::now();
    params.not_before = (now - CLOCK_SLACK).into();
    params.not_after = (now + VALIDITY).into();
    let key = KeyPair::generate().map_err(failed)?;
    let certificate = params.self_signed(&key).map_err(failed)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

fn configuration(hosts: &[HostName], principals: &[(&str, Role, TokenHash)]) -> String {
    let (address, meaning) = if hosts.is_empty() {
        ("127.0.0.1", "This machine only.")
    } else {
        (
            "0.0.0.0",
            "Every address of this machine. For IPv6 as well, write [::] instead of 0.0.0.0.",
        )
    };
    let allowed: Vec<_> = hosts.iter().map(|host| format!("{:?}", host.as_str())).collect();
    let mut text = format!(
        "# Made by `aaep hub init`. `aaep hub --print-config` shows everything that is in force.\n\
         # After a change, send the hub SIGHUP or start it again.\n\
         \n\
         # {meaning}\n\
         listen = [\"{address}:{DEFAULT_PORT}\"]\n\
         # The names that requests may use for this hub, besides localhost.\n\
         allowed_hosts = [{}]\n\
         # Also on this machine everybody shows a token, or uses the Unix socket.\n\
         loopback_without_credentials = false\n\
         \n\
         [tls]\n\
         certificate = \"{TLS_DIRECTORY}/{CERTIFICATE}\"\n\
         key = \"{TLS_DIRECTORY}/{KEY}\"\n",
        allowed.join(", "),
    );
    for (name, role, hash) in principals {
        let role = match role {
            Role::Agent => "agent",
            Role::AccessibilityConsumer | Role::Listener => "accessibility_consumer",
            Role::Auditor => "auditor",
            Role::Admin => "admin",
            Role::Metrics => "metrics",
        };
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\n# Its token is in {TOKEN_DIRECTORY}/{name}.\n\
             [[principals]]\n\
             name = \"{name}\"\n\
             role = \"{role}\"\n\
             user = \"{LOCAL_USER}\"\n\
             token_sha256 = \"{}\"\n",
            hash.to_hex(),
        );
    }
    text
}
