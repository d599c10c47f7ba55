//! Certificates of clients (mutual TLS): who somebody is by what TLS has verified.
//!
//! TLS verifies a certificate when a connection begins. Connections live long, so each request is judged
//! by the certificates and revocations that are in force then: what was verified once under them is
//! remembered, and its time is looked at every time.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use aaep_engine::Principal;
use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer, UnixTime};
use sha2::{Digest, Sha256};
use x509_parser::extensions::GeneralName;

use crate::config::Config;
use crate::{Fault, files};

/// The largest file of certificates or revocations, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// How many certificates are remembered as verified.
const MAX_VERIFIED: usize = 4096;

/// The certificates that a client has shown, its own first.
pub type Chain = Arc<Vec<CertificateDer<'static>>>;

/// The hash of a certificate.
pub(crate) type Fingerprint = [u8; 32];

/// A name in a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum San {
    Dns(String),
    Email(String),
    Uri(String),
}

impl San {
    /// Reads a name with its kind before it.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (kind, name) = text.split_once(':')?;
        if name.is_empty() {
            return None;
        }
        match kind {
            "dns" => Some(Self::Dns(name.to_ascii_lowercase())),
            "email" => Some(Self::Email(name.to_ascii_lowercase())),
            "uri" => Some(Self::Uri(name.to_owned())),
            _ => None,
        }
    }
}

/// Reads the hash of a certificate as people copy it: with or without colons, in either case.
pub(crate) fn fingerprint(text: &str) -> Option<Fingerprint> {
    let digits: String = text.chars().filter(|c| *c != ':').collect();
    let mut hash = [0; 32];
    if digits.len() != 64 || !digits.chars().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(hash)
}

/// What a principal is known by.
#[derive(Debug)]
enum CertificateId {
    Hash(Fingerprint),
    Name(San),
}

/// What was read of a certificate that is vouched for.
#[derive(Clone, Debug)]
struct VerifiedClient {
    principal: Option<Principal>,
    /// When its time is over, in milliseconds of the wall clock.
    expires: i64,
}

/// Everybody who comes by certificate, as one configuration says.
#[derive(Debug)]
pub(crate) struct Clients {
    verifier: Arc<dyn ClientCertVerifier>,
    known: Vec<(CertificateId, Principal)>,
    verified: Mutex<BTreeMap<Fingerprint, VerifiedClient>>,
}

impl Clients {
    /// Reads what vouches for clients, and what was revoked; `None` if nobody comes by certificate.
    pub(crate) fn new(config: &Config) -> Result<Option<Self>, Fault> {
        let Some(ca) = &config.tls.client_ca else { return Ok(None) };
        let verifier = verifier(ca, config.tls.client_crl.as_deref())?;
        let known = config.principals.iter().filter_map(|entry| {
            let hash =
                entry.certificate_sha256.as_deref().and_then(fingerprint).map(CertificateId::Hash);
            let name =
                entry.certificate_name.as_deref().and_then(San::parse).map(CertificateId::Name);
            let principal = Principal::new(entry.name.as_str(), entry.role, entry.user.as_str());
            Some((hash.or(name)?, principal))
        });
        Ok(Some(Self { verifier, known: known.collect(), verified: Mutex::default() }))
    }

    /// Everybody.
    pub(crate) fn principals(&self) -> impl Iterator<Item = &Principal> {
        self.known.iter().map(|(_, principal)| principal)
    }

    /// For the handshake.
    pub(crate) fn verifier(&self) -> Arc<dyn ClientCertVerifier> {
        self.verifier.clone()
    }

    // enforces: S4
    /// Who shows these certificates, and until when they are good, in milliseconds of the wall clock.
    pub(crate) fn who(&self, chain: &Chain, now: i64) -> Option<(Principal, i64)> {
        let (own, rest) = chain.split_first()?;
        let hash: Fingerprint = Sha256::digest(own).into();
        let seen = self.verified().get(&hash).cloned();
        let read = match seen {
            Some(read) => read,
            None => {
                self.verifier.verify_client_cert(own, rest, UnixTime::now()).ok()?;
                let read = self.read(own, hash)?;
                let mut verified = self.verified();
                if verified.len() >= MAX_VERIFIED {
                    verified.clear();
                }
                verified.insert(hash, read.clone());
                read
            }
        };
        (now < read.expires).then_some(())?;
        Some((read.principal?, read.expires))
    }

    /// The one principal that a certificate stands for. One that fits two stands for neither.
    fn read(&self, own: &CertificateDer<'_>, hash: Fingerprint) -> Option<VerifiedClient> {
        let (_, parsed) = x509_parser::parse_x509_certificate(own).ok()?;
        let names = parsed.subject_alternative_name().ok()?;
        let names = names.map_or(&[][..], |names| &names.value.general_names);
        let has = |wanted: &San| {
            names.iter().any(|name| match (name, wanted) {
                (GeneralName::DNSName(name), San::Dns(wanted))
                | (GeneralName::RFC822Name(name), San::Email(wanted)) => {
                    name.eq_ignore_ascii_case(wanted)
                }
                (GeneralName::URI(name), San::Uri(wanted)) => name == wanted,
                _ => false,
            })
        };
        let fits = |known: &CertificateId| match known {
            CertificateId::Hash(known) => *known == hash,
            CertificateId::Name(name) => has(name),
        };
        let mut fitting = self.known.iter().filter(|(known, _)| fits(known)).map(|(_, who)| who);
        let first = fitting.next();
        let principal = first.filter(|first| fitting.all(|other| other == *first)).cloned();
        let expires = parsed.validity().not_after.timestamp().saturating_mul(1000);
        Some(VerifiedClient { principal, expires })
    }

    fn verified(&self) -> std::sync::MutexGuard<'_, BTreeMap<Fingerprint, VerifiedClient>> {
        self.verified.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn verifier(ca: &Path, crl: Option<&Path>) -> Result<Arc<dyn ClientCertVerifier>, Fault> {
    let bytes = files::read_trusted(ca, MAX_BYTES)?;
    let bad = |path: &Path, what: &str| {
        Fault::file(path, what, "Get the file again from whoever issues the certificates.")
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&bytes) {
        let added = certificate.ok().and_then(|certificate| roots.add(certificate).ok());
        added.ok_or_else(|| bad(ca, "It holds a certificate that cannot be read."))?;
    }
    if roots.is_empty() {
        return Err(bad(ca, "It holds no certificate."));
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let mut builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
        .allow_unauthenticated();
    if let Some(crl) = crl {
        let bytes = files::read_trusted(crl, MAX_BYTES)?;
        let lists: Result<Vec<_>, _> =
            CertificateRevocationListDer::pem_slice_iter(&bytes).collect();
        let lists = lists.map_err(|_| bad(crl, "It holds a list that cannot be read."))?;
        if lists.is_empty() {
            return Err(bad(crl, "It holds no list of revoked certificates (X509 CRL)."));
        }
        // A list that is out of date, or none of an issuer, says nothing: nobody comes in by it.
        builder = builder
            .with_crls(lists)
            .only_check_end_entity_revocation()
            .enforce_revocation_expiration();
    }
    builder.build().map_err(|error| bad(crl.unwrap_or(ca), &format!("It cannot be used: {error}.")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_and_names_are_read_as_people_write_them() {
        let plain = "ab".repeat(32);
        let colons = vec!["AB"; 32].join(":");
        assert_eq!(fingerprint(&plain), Some([0xab; 32]));
        assert_eq!(fingerprint(&colons), Some([0xab; 32]));
        for wrong in ["", "ab", &"xy".repeat(32), &"é".repeat(32), &"+1".repeat(32)] {
            assert_eq!(fingerprint(wrong), None, "{wrong}");
        }
        assert_eq!(San::parse("email:Ann@X.org"), Some(San::Email("ann@x.org".into())));
        assert_eq!(San::parse("uri:spiffe://a/B"), Some(San::Uri("spiffe://a/B".into())));
        for wrong in ["", "ann", "dns:", "cn:ann"] {
            assert_eq!(San::parse(wrong), None, "{wrong}");
        }
    }
}
