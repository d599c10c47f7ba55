//! Real handshakes, and files that are not right.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods)] // real files and sockets

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use aaep_hub::Tls;
use rcgen::{CertificateParams, KeyPair};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use rustls::version::{TLS12, TLS13};
use rustls::{ClientConfig, ProtocolVersion, RootCertStore, SupportedProtocolVersion};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

struct Files {
    _place: TempDir,
    certificate: PathBuf,
    key: PathBuf,
}

impl Files {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let (certificate, key) =
            (place.path().join("certificate.pem"), place.path().join("key.pem"));
        let files = Self { _place: place, certificate, key };
        files.renew();
        files
    }

    fn renew(&self) {
        let (certificate, key) = pair(SystemTime::now() - DAY, SystemTime::now() + DAY);
        self.write(&certificate, &key);
    }

    fn write(&self, certificate: &str, key: &str) {
        fs::write(&self.certificate, certificate).unwrap();
        fs::write(&self.key, key).unwrap();
        fs::set_permissions(&self.key, fs::Permissions::from_mode(0o600)).unwrap();
    }

    fn load(&self) -> Tls {
        Tls::load(&self.certificate, &self.key).unwrap()
    }

    fn fault(&self) -> String {
        Tls::load(&self.certificate, &self.key).unwrap_err().to_string()
    }
}

fn pair(from: SystemTime, to: SystemTime) -> (String, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".into()]).unwrap();
    (params.not_before, params.not_after) = (from.into(), to.into());
    (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
}

/// Shakes hands over a real socket; gives the certificate that was shown and what was agreed on.
async fn shake(
    tls: &Tls,
    trusted: &str,
    versions: &[&'static SupportedProtocolVersion],
) -> std::io::Result<(Vec<u8>, ProtocolVersion)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let acceptor = TlsAcceptor::from(tls.server_config());
    let server = async {
        let mut stream = acceptor.accept(listener.accept().await?.0).await?;
        stream.write_all(b"hello").await?;
        stream.shutdown().await
    };
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(trusted.as_bytes()).unwrap()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let client = async {
        let name = ServerName::try_from("localhost").unwrap();
        let stream = TcpStream::connect(address).await?;
        let mut stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await?;
        let mut text = String::new();
        stream.read_to_string(&mut text).await?;
        assert_eq!(text, "hello");
        let connection = stream.get_ref().1;
        assert_eq!(connection.alpn_protocol(), Some(&b"http/1.1"[..]));
        let shown = connection.peer_certificates().unwrap()[0].to_vec();
        Ok((shown, connection.protocol_version().unwrap()))
    };
    let both = async { tokio::join!(client, server) };
    let (seen, _) = tokio::time::timeout(Duration::from_secs(60), both).await.unwrap();
    seen
}

fn der(pem: &str) -> Vec<u8> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap().to_vec()
}

// covers: W5
#[tokio::test]
async fn tls_1_3_and_1_2_are_spoken_and_the_newer_one_preferred() {
    let files = Files::new();
    let tls = files.load();
    let trusted = fs::read_to_string(&files.certificate).unwrap();
    let (shown, version) = shake(&tls, &trusted, &[&TLS12, &TLS13]).await.unwrap();
    assert_eq!((shown, version), (der(&trusted), ProtocolVersion::TLSv1_3));
    let (_, version) = shake(&tls, &trusted, &[&TLS12]).await.unwrap();
    assert_eq!(version, ProtocolVersion::TLSv1_2);
    assert_eq!(tls.warning(), None);
}

// covers: W5
#[tokio::test]
async fn a_client_that_trusts_another_certificate_is_not_fooled() {
    let tls = Files::new().load();
    let (stranger, _) = pair(SystemTime::now() - DAY, SystemTime::now() + DAY);
    assert!(shake(&tls, &stranger, &[&TLS13]).await.is_err());
}

#[tokio::test]
async fn a_renewed_certificate_is_used_from_then_on_and_a_broken_one_never() {
    let files = Files::new();
    let tls = files.load();
    let config = tls.server_config();
    files.renew();
    let renewed = fs::read_to_string(&files.certificate).unwrap();
    assert!(shake(&tls, &renewed, &[&TLS13]).await.is_err(), "not read again yet");
    tls.reload(&files.certificate, &files.key).unwrap();
    assert_eq!(shake(&tls, &renewed, &[&TLS13]).await.unwrap().0, der(&renewed));
    assert!(Arc::ptr_eq(&config, &tls.server_config()), "the accept loop need not know");
    fs::write(&files.certificate, "").unwrap();
    assert!(tls.reload(&files.certificate, &files.key).is_err());
    assert_eq!(shake(&tls, &renewed, &[&TLS13]).await.unwrap().0, der(&renewed));
}

#[tokio::test]
async fn a_certificate_out_of_its_time_does_not_replace_a_good_one() {
    let files = Files::new();
    let tls = files.load();
    let good = fs::read_to_string(&files.certificate).unwrap();
    let now = SystemTime::now();
    for (from, to, said) in
        [(now - 2 * DAY, now - DAY, "has expired"), (now + DAY, now + 2 * DAY, "is not valid yet")]
    {
        let (certificate, key) = pair(from, to);
        files.write(&certificate, &key);
        let fault = tls.reload(&files.certificate, &files.key).unwrap_err().to_string();
        assert!(fault.contains(said) && fault.contains("SIGHUP"), "{fault}");
        assert_eq!(shake(&tls, &good, &[&TLS13]).await.unwrap().0, der(&good));
    }
}

#[test]
fn a_certificate_out_of_its_time_is_said() {
    let files = Files::new();
    let now = SystemTime::now();
    let cases = [
        (now - 2 * DAY, now - DAY, Some("has expired")),
        (now + DAY, now + 2 * DAY, Some("is not valid yet")),
        (now - DAY, now + DAY, None),
    ];
    for (from, to, said) in cases {
        let (certificate, key) = pair(from, to);
        files.write(&certificate, &key);
        let warning = files.load().warning();
        assert_eq!(warning.is_some(), said.is_some(), "{warning:?}");
        assert!(warning.unwrap_or_default().contains(said.unwrap_or_default()));
    }
}

#[test]
fn a_certificate_from_an_authority_is_fine_and_its_time_is_watched() {
    let files = Files::new();
    let (authority_key, key) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let mut authority = CertificateParams::default();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    let root = authority.self_signed(&authority_key).unwrap();
    let issuer = rcgen::Issuer::new(authority, authority_key);
    for (days, said) in [(1, false), (0, true)] {
        let mut params = CertificateParams::new(vec!["localhost".into()]).unwrap();
        params.not_before = (SystemTime::now() - 2 * DAY).into();
        params.not_after = (SystemTime::now() - DAY + days * 2 * DAY).into();
        let own = params.signed_by(&key, &issuer).unwrap();
        files.write(&format!("{}{}", own.pem(), root.pem()), &key.serialize_pem());
        assert_eq!(files.load().warning().is_some(), said);
    }
}

#[test]
fn certificate_and_key_must_belong_together() {
    let files = Files::new();
    let (_, other_key) = pair(SystemTime::now() - DAY, SystemTime::now() + DAY);
    let certificate = fs::read_to_string(&files.certificate).unwrap();
    files.write(&certificate, &other_key);
    let fault = files.fault();
    assert!(fault.contains("key.pem") && fault.contains("certificate.pem"), "{fault}");
    assert!(fault.contains("not the key of the certificate"), "{fault}");
}

// covers: S8
#[test]
fn a_file_that_is_not_right_is_named_with_what_to_do_and_never_quoted() {
    let files = Files::new();
    let certificate = fs::read_to_string(&files.certificate).unwrap();
    let key = fs::read_to_string(&files.key).unwrap();
    let secret = key.lines().nth(1).unwrap();
    let half = |text: &str| text[..text.len() / 2].to_owned();
    let locked = key.replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY");
    let nonsense = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let cases: &[(&str, &str, &str, &str)] = &[
        ("", &key, "certificate.pem", "no certificate"),
        ("hello", &key, "certificate.pem", "no certificate"),
        (&key, &key, "certificate.pem", "no certificate"),
        (&half(&certificate), &key, "certificate.pem", "no end"),
        (&certificate.replace('M', "!"), &key, "certificate.pem", "not base64"),
        (nonsense, &key, "certificate.pem", "cannot be read"),
        (&certificate, "", "key.pem", "no private key"),
        (&certificate, &certificate, "key.pem", "no private key"),
        (&certificate, &half(&key), "key.pem", "no end"),
        (&certificate, &locked, "key.pem", "passphrase"),
        (&certificate, &key.replace(secret, "AAAA"), "key.pem", "cannot use this key"),
    ];
    for (certificate, key, file, what) in cases {
        files.write(certificate, key);
        let fault = files.fault();
        assert!(fault.contains(file) && fault.contains(what), "{what}: {fault}");
        assert!(!fault.contains(&secret[..20]), "{fault}");
    }
}

#[test]
fn a_key_that_others_can_read_is_refused() {
    let files = Files::new();
    for mode in [0o640, 0o604, 0o644, 0o660] {
        fs::set_permissions(&files.key, fs::Permissions::from_mode(mode)).unwrap();
        let fault = files.fault();
        assert!(fault.contains("chmod 600") && fault.contains("key.pem"), "{fault}");
    }
    fs::set_permissions(&files.key, fs::Permissions::from_mode(0o400)).unwrap();
    files.load();
}

#[test]
fn a_file_that_is_missing_or_cannot_be_read_is_named() {
    let files = Files::new();
    fs::remove_file(&files.key).unwrap();
    let fault = files.fault();
    assert!(fault.contains("key.pem") && fault.contains("Check the path"), "{fault}");
    fs::create_dir(&files.key).unwrap();
    assert!(files.fault().contains("not a file"));
    fs::remove_dir(&files.key).unwrap();
    files.renew();
    fs::set_permissions(&files.key, fs::Permissions::from_mode(0o000)).unwrap();
    // The administrator may read everything, so this shows only elsewhere.
    if fs::File::open(&files.key).is_err() {
        assert!(files.fault().contains("Let the user that runs the hub read it"));
    }
}
