//! TLS from PEM files, changed without a restart.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::HandshakeSignatureValid;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ClientHello, NoServerSessionStorage, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::version::{TLS12, TLS13};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, InconsistentKeys,
    RootCertStore, ServerConfig, SignatureScheme,
};
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};

use crate::{Fault, files};

/// The largest certificate or key file, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// The only protocol inside TLS.
const ALPN: &[u8] = b"http/1.1";

/// TLS for those who connect, with a certificate that can be changed while it runs.
#[derive(Clone, Debug)]
pub struct Tls {
    current: Arc<Current>,
    clients: Option<Arc<CurrentClients>>,
    config: Arc<ServerConfig>,
}

impl Tls {
    // enforces: W5
    /// Reads certificate and key: TLS 1.3, or 1.2 for those who know no better.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, Fault> {
        Self::load_with(certificate, key, None)
    }

    /// The same, with what verifies the certificates of clients that show one.
    pub(crate) fn load_with(
        certificate: &Path,
        key: &Path,
        clients: Option<Arc<dyn ClientCertVerifier>>,
    ) -> Result<Self, Fault> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let loaded = Loaded::read(certificate, key, &provider)?;
        let current = Arc::new(Current(ArcSwap::from_pointee(loaded)));
        let config = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13, &TLS12])
            .map_err(|error| Fault::System { what: format!("TLS cannot be set up: {error}.") })?;
        let clients =
            clients.map(|clients| Arc::new(CurrentClients(ArcSwap::from_pointee(clients))));
        let config = match &clients {
            None => config.with_no_client_auth(),
            Some(clients) => config.with_client_cert_verifier(clients.clone()),
        };
        let mut config =
            config.with_cert_resolver(Arc::clone(&current) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = vec![ALPN.to_vec()];
        if clients.is_some() {
            // What is taken up again is not verified again, and may have been revoked since.
            config.session_storage = Arc::new(NoServerSessionStorage {});
            config.send_tls13_tickets = 0;
        }
        Ok(Self { current, clients, config: Arc::new(config) })
    }

    /// Reads certificate and key again, for connections from now on. If anything is wrong with
    /// them, or the certificate is out of date while the one in use is not, the old ones stay in use.
    pub fn reload(&self, certificate: &Path, key: &Path) -> Result<(), Fault> {
        let provider = self.config.crypto_provider();
        let loaded = Loaded::read(certificate, key, provider)?;
        if let (Some(what), None) =
            (loaded.out_of_date(provider), self.current.0.load().out_of_date(provider))
        {
            let what = format!("The certificate {what}; the one in use is still good.");
            return Err(Fault::file(certificate, what, "Replace it and send SIGHUP again."));
        }
        self.current.0.store(Arc::new(loaded));
        Ok(())
    }

    /// Verifies certificates of clients by this from now on. Whether any are asked for is decided at the
    /// start.
    pub(crate) fn reload_clients(&self, verifier: Option<Arc<dyn ClientCertVerifier>>) {
        if let (Some(clients), Some(verifier)) = (&self.clients, verifier) {
            clients.0.store(Arc::new(verifier));
        }
    }

    /// For the accept loop; it stays the same when the certificate changes.
    pub fn server_config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }

    /// When the certificate in use is over, in seconds of Unix time.
    pub fn expires(&self) -> Option<i64> {
        let loaded = self.current.0.load_full();
        let (_, parsed) =
            x509_parser::parse_x509_certificate(loaded.certified.cert.first()?).ok()?;
        Some(parsed.validity().not_after.timestamp())
    }

    /// What is wrong with the certificate in use, though it can be used: clients would refuse it.
    pub fn warning(&self) -> Option<String> {
        let loaded = self.current.0.load_full();
        let what = loaded.out_of_date(self.config.crypto_provider())?;
        let path = loaded.path.display();
        Some(format!(
            "{path}: The certificate {what}, so clients will refuse it. Replace it and send SIGHUP."
        ))
    }
}

/// The certificate in use.
#[derive(Debug)]
struct Current(ArcSwap<Loaded>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&self.0.load().certified))
    }
}

/// What verifies certificates of clients now.
#[derive(Debug)]
struct CurrentClients(ArcSwap<Arc<dyn ClientCertVerifier>>);

impl ClientCertVerifier for CurrentClients {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        // Clients have one certificate for this hub; whom we trust is nobody else's business.
        &[]
    }

    fn verify_client_cert(
        &self,
        own: &CertificateDer<'_>,
        rest: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.0.load().verify_client_cert(own, rest, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.load().verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.0.load().verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.load().supported_verify_schemes()
    }
}

/// A certificate with its key, and where the certificate came from.
#[derive(Debug)]
struct Loaded {
    path: PathBuf,
    certified: Arc<CertifiedKey>,
}

impl Loaded {
    fn read(certificate: &Path, key: &Path, provider: &CryptoProvider) -> Result<Self, Fault> {
        let chain = read_chain(certificate)?;
        let signing = provider.key_provider.load_private_key(read_key(key)?).map_err(|error| {
            let what = format!("TLS cannot use this key: {error}.");
            Fault::file(key, what, "Use an ECDSA, Ed25519 or RSA key in PKCS #8 form.")
        })?;
        let certified = CertifiedKey::new(chain, signing);
        match certified.keys_match() {
            Ok(()) | Err(Error::InconsistentKeys(InconsistentKeys::Unknown)) => {}
            Err(Error::InconsistentKeys(InconsistentKeys::KeyMismatch)) => {
                let what =
                    format!("It is not the key of the certificate in {}.", certificate.display());
                let remedy = "Name a certificate and a key that were made together; the server's own certificate comes first in its file.";
                return Err(Fault::file(key, what, remedy));
            }
            Err(error) => {
                let what = format!("Its first certificate cannot be read: {error}.");
                return Err(Fault::file(
                    certificate,
                    what,
                    "Get the certificate again from whoever issued it.",
                ));
            }
        }
        Ok(Self { path: certificate.to_owned(), certified: Arc::new(certified) })
    }

    /// Whether a client's clock, if it goes like ours, is outside the certificate's time. A client's
    /// verifier is asked, since it looks at the time before it looks at anything else.
    fn out_of_date(&self, provider: &Arc<CryptoProvider>) -> Option<&'static str> {
        let (own, rest) = self.certified.cert.split_first()?;
        let mut roots = RootCertStore::empty();
        roots.add(own.clone()).ok()?;
        let builder =
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider));
        let name = ServerName::try_from("localhost").ok()?;
        let verifier = builder.build().ok()?;
        match verifier.verify_server_cert(own, rest, &name, &[], UnixTime::now()) {
            Err(Error::InvalidCertificate(error)) => match error {
                CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                    Some("has expired")
                }
                CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                    Some("is not valid yet")
                }
                _ => None,
            },
            _ => None,
        }
    }
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, Fault> {
    let bytes = files::read_trusted(path, MAX_BYTES)?;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let chain = chain.map_err(|error| broken(path, &error))?;
    if chain.is_empty() {
        return Err(Fault::file(
            path,
            "It holds no certificate.",
            "Name a PEM file with a part that begins with -----BEGIN CERTIFICATE-----.",
        ));
    }
    Ok(chain)
}

fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, Fault> {
    let bytes = files::read_private(path, MAX_BYTES)?;
    PrivateKeyDer::from_pem_slice(&bytes).map_err(|error| match error {
        pem::Error::NoItemsFound if is_encrypted(&bytes) => Fault::file(
            path,
            "The key is locked with a passphrase, and the hub has nobody to ask for it.",
            "Store the key without a passphrase, readable by the hub's user alone.",
        ),
        pem::Error::NoItemsFound => Fault::file(
            path,
            "It holds no private key.",
            "Name a PEM file with a part that begins with -----BEGIN PRIVATE KEY-----.",
        ),
        error => broken(path, &error),
    })
}

fn is_encrypted(bytes: &[u8]) -> bool {
    let marks: [&[u8]; 2] = [b"BEGIN ENCRYPTED PRIVATE KEY", b"Proc-Type: 4,ENCRYPTED"];
    marks.iter().any(|mark| bytes.windows(mark.len()).any(|part| part == *mark))
}

fn broken(path: &Path, error: &pem::Error) -> Fault {
    // The error's own words could repeat a line of the file, which may be part of a key.
    let what = match error {
        pem::Error::MissingSectionEnd { .. } => "A part of it has no end.",
        pem::Error::IllegalSectionStart { .. } => "A part of it begins wrongly.",
        pem::Error::Base64Decode(_) => "A part of it is not base64.",
        _ => "It is not PEM.",
    };
    Fault::file(path, what, "Get the file again from where it was made.")
}
