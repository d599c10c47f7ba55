//! TLS for both halves: rustls with aws-lc-rs, TLS 1.3 and 1.2 (W5).

use std::fmt;
use std::sync::Arc;

#[cfg(feature = "client")]
use crate::client::ClientIdentity;

#[cfg(feature = "client")]
use rustls_platform_verifier::Verifier;
#[cfg(feature = "client")]
pub use tokio_rustls::rustls::ClientConfig;
#[cfg(feature = "server")]
pub use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::{CryptoProvider, aws_lc_rs};
use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::version::{TLS12, TLS13};

/// Why a configuration could not be made. Never shows a key.
#[derive(Debug)]
#[non_exhaustive]
pub enum TlsError {
    /// There is no certificate in what was given as certificates, or it cannot be read.
    Certificate(String),
    /// There is no private key in what was given as one, or it cannot be read.
    Key,
    /// Certificate and key are readable, and cannot be used.
    Refused(String),
}

impl fmt::Display for TlsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Certificate(why) => {
                write!(f, "no usable certificate: {why}. Give a PEM file with the whole chain.")
            }
            Self::Key => write!(f, "no usable private key. Give a PEM file with one key."),
            Self::Refused(why) => write!(f, "the TLS configuration was refused: {why}"),
        }
    }
}

impl std::error::Error for TlsError {}

/// What a server shows: a certificate chain and its private key, both in PEM.
// enforces: W5
#[cfg(feature = "server")]
pub fn server(chain_pem: &[u8], key_pem: &[u8]) -> Result<Arc<ServerConfig>, TlsError> {
    let chain = certificates(chain_pem)?;
    let key = PrivateKeyDer::from_pem_slice(key_pem).map_err(|_| TlsError::Key)?;
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(refused)?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(refused)?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// What a client trusts: what this machine trusts, and the certificates in `extra_pem`, for a hub
/// that signed its own. What it shows, if it is asked: the certificate in `identity`.
#[cfg(feature = "client")]
pub fn client(
    extra_pem: Option<&[u8]>,
    identity: Option<&ClientIdentity>,
) -> Result<Arc<ClientConfig>, TlsError> {
    let extra = extra_pem.map(certificates).transpose()?.unwrap_or_default();
    let provider = provider();
    let verifier = Verifier::new_with_extra_roots(extra, Arc::clone(&provider)).map_err(refused)?;
    let config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13, &TLS12])
        .map_err(refused)?
        .dangerous() // only in name: the verifier is the machine's own
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = match identity {
        None => config.with_no_client_auth(),
        Some(identity) => {
            let chain = certificates(&identity.chain_pem)?;
            let key = PrivateKeyDer::from_pem_slice(&identity.key_pem);
            config.with_client_auth_cert(chain, key.map_err(|_| TlsError::Key)?).map_err(refused)?
        }
    };
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// What both ends of a connection agree on for gRPC.
#[cfg(feature = "grpc")]
pub(crate) const HTTP2: &[u8] = b"h2";

/// The same server, for HTTP/2 and nothing else. Certificates that change, change here too.
// enforces: W11
#[cfg(all(feature = "grpc", feature = "server"))]
pub fn for_http2(config: &ServerConfig) -> Arc<ServerConfig> {
    let mut config = config.clone();
    config.alpn_protocols = vec![HTTP2.to_vec()];
    Arc::new(config)
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if found.is_empty() => Err(TlsError::Certificate("none found".into())),
        Ok(found) => Ok(found),
        Err(error) => Err(TlsError::Certificate(error.to_string())),
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

fn refused(error: tokio_rustls::rustls::Error) -> TlsError {
    TlsError::Refused(error.to_string())
}
