//! Keys from an address that hangs, grows, vanishes and changes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use aaep_hub::Hub;
use aaep_hub::config::Config;
use aaep_transport::client::{HttpClient, Options, Token};
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use crate::support::{Key, claims, entry, set};

/// What the address answers.
#[derive(Clone)]
enum Answers {
    Keys(String),
    Nothing,
    Garbage,
    Endless,
    /// There is nothing there any more.
    Gone,
    /// The connection ends without a word.
    Silence,
}

/// A server with TLS, whose certificate is in a file.
struct KeyServer {
    url: String,
    answers: watch::Sender<Answers>,
    asked: Arc<AtomicUsize>,
    place: tempfile::TempDir,
}

impl KeyServer {
    async fn start(first: Answers) -> Self {
        let pair = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.self_signed(&pair).unwrap();
        let place = tempfile::tempdir().unwrap();
        std::fs::write(place.path().join("ca.pem"), certificate.pem()).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(pair.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        let (acceptor, listener) =
            (TlsAcceptor::from(Arc::new(tls)), TcpListener::bind("127.0.0.1:0").await.unwrap());
        let url = format!("https://localhost:{}/keys", listener.local_addr().unwrap().port());
        let (answers, now) = watch::channel(first);
        let asked = Arc::new(AtomicUsize::new(0));
        let count = asked.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, now, count) = (acceptor.clone(), now.clone(), count.clone());
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    let mut head = [0; 4096];
                    let _ = stream.read(&mut head).await;
                    count.fetch_add(1, Ordering::SeqCst);
                    let answer = now.borrow().clone();
                    answer.write(&mut stream).await;
                });
            }
        });
        Self { url, answers, asked, place }
    }

    fn config(&self) -> Config {
        let ca = self.place.path().join("ca.pem");
        let keys = format!("keys_url = {:?}\nkeys_ca = {ca:?}\nrefresh_seconds = 1", self.url);
        let mut config =
            Config { issuers: vec![entry(&keys)], ephemeral: true, ..Config::default() };
        config.listen = vec!["127.0.0.1:0".parse().unwrap()];
        config.unix_socket.enabled = false;
        config
    }

    /// Waits until the hub has asked again, and is done with what it heard before that.
    async fn asked_again(&self) {
        let before = self.asked.load(Ordering::SeqCst);
        while self.asked.load(Ordering::SeqCst) < before + 2 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Answers {
    async fn write(self, stream: &mut (impl AsyncWriteExt + Unpin)) {
        let head = |length: usize| {
            format!("HTTP/1.1 200 OK\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n")
        };
        let text = match self {
            Self::Keys(keys) => format!("{}{keys}", head(keys.len())),
            Self::Garbage => format!("{}<html>", head(6)),
            Self::Nothing => std::future::pending().await,
            Self::Gone => "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_owned(),
            Self::Silence => return,
            Self::Endless => {
                let _ = stream.write_all(head(1 << 40).as_bytes()).await;
                while stream.write_all(&[b' '; 4096]).await.is_ok() {}
                return;
            }
        };
        let _ = stream.write_all(text.as_bytes()).await;
        let _ = stream.shutdown().await;
    }
}

/// Whether a listener with this token is let in.
async fn is_let_in(url: &str, token: &str) -> bool {
    let token = Some(Token::parse(token).unwrap());
    let client = HttpClient::new(url, Options { token, ..Options::default() }).unwrap();
    let answer = client.post("/subscriptions", r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"r","capabilities":{}}"#);
    let status = answer.await.unwrap().status;
    assert!([201, 401].contains(&status.as_u16()), "{status}");
    status == 201
}

// covers: S4
#[tokio::test(flavor = "multi_thread")]
async fn keys_are_fetched_rotated_and_kept_while_their_address_fails() {
    let (first, second) = (Key::new("first"), Key::new("second"));
    let server = KeyServer::start(Answers::Keys(set(&[&first]))).await;
    let hub = Hub::builder().config(server.config()).start().await.unwrap();
    let url = hub.url(hub.addresses()[0]);
    server.asked_again().await;
    let (old, new) = (first.sign(&claims(600)), second.sign(&claims(600)));
    assert!(is_let_in(&url, &old).await && !is_let_in(&url, &new).await);
    // Both while they overlap, then the new one alone: also a token that was believed before.
    server.answers.send_replace(Answers::Keys(set(&[&first, &second])));
    server.asked_again().await;
    assert!(is_let_in(&url, &old).await && is_let_in(&url, &new).await);
    server.answers.send_replace(Answers::Keys(set(&[&second])));
    server.asked_again().await;
    assert!(!is_let_in(&url, &old).await && is_let_in(&url, &new).await);
    // What is no set of keys changes nothing.
    let none = Answers::Keys(r#"{"keys":[]}"#.into());
    for answers in [Answers::Garbage, none, Answers::Endless, Answers::Gone, Answers::Silence] {
        server.answers.send_replace(answers);
        server.asked_again().await;
        assert!(is_let_in(&url, &new).await && !is_let_in(&url, &old).await);
    }
    hub.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_waits_for_an_issuer_that_does_not_answer() {
    let key = Key::new("first");
    let server = KeyServer::start(Answers::Nothing).await;
    let hub = Hub::builder().config(server.config()).start().await.unwrap();
    let url = hub.url(hub.addresses()[0]);
    // The hub has asked, and is not answered: its own answers come all the same.
    while server.asked.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!is_let_in(&url, &key.sign(&claims(600))).await);
    hub.stop().await.unwrap();
}
