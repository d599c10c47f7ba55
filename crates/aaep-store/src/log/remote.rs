//! What stores on other machines have in common: answers that may be lost, and TLS.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;

use super::storage::Unavailable;

/// What became of a question.
#[derive(Debug)]
pub(super) enum Asked<T> {
    /// The server answered, and what it did is done.
    Answer(T),
    /// Nothing was sent, or the server said that it did nothing.
    Refused(Unavailable),
    /// It was sent, and no answer came.
    Lost,
}

impl<T> Asked<T> {
    /// For questions that may be asked again, where being lost is like being refused.
    pub(super) fn known(self) -> Result<T, Unavailable> {
        match self {
            Asked::Answer(answer) => Ok(answer),
            Asked::Refused(why) => Err(why),
            Asked::Lost => Err(Unavailable::Away("the server stopped answering".into())),
        }
    }
}

/// A log blocks; within an asynchronous runtime it refuses.
pub(super) fn refused_within_a_runtime() -> Option<Unavailable> {
    tokio::runtime::Handle::try_current()
        .is_ok()
        .then_some(Unavailable::Misuse("a log blocks; call it on its own thread"))
}

pub(super) fn is_this_machine(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

/// TLS with the roots of this machine.
pub(super) fn tls_config() -> Result<ClientConfig, String> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(BuilderVerifierExt::with_platform_verifier)
        .map_err(|why| why.to_string())?
        .with_no_client_auth();
    Ok(config)
}
