//! What keeps a hub from starting, with real files and a real second process.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods)] // real files

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use aaep_engine::Role;
use aaep_hub::Fault;
use aaep_hub::Hub;
use aaep_hub::access::Token;
use aaep_hub::config::{Config, HostName, Label, PrincipalEntry, ProxyNet};
use aaep_hub::start::{DataDirectory, Prepared, TokenKey, check};

fn listening(addresses: &[&str]) -> Config {
    let listen = addresses.iter().map(|text| text.parse().unwrap()).collect();
    Config { listen, ..Config::default() }
}

fn with_principal(mut config: Config) -> Config {
    config.principals.push(PrincipalEntry {
        name: Label::parse("reader").unwrap(),
        role: Role::AccessibilityConsumer,
        user: Label::parse("ann").unwrap(),
        token_sha256: Some(Token::generate().unwrap().hash()),
        token_file: None,
        certificate_sha256: None,
        certificate_name: None,
    });
    config
}

fn with_tls(mut config: Config) -> Config {
    config.tls.certificate = Some("certificate.pem".into());
    config.tls.key = Some("key.pem".into());
    config
}

fn with_proxy(mut config: Config, proxy: &str) -> Config {
    config.behind_proxy.push(ProxyNet::parse(proxy).unwrap());
    config
}

fn refusal(config: &Config) -> String {
    match check(config) {
        Err(fault @ Fault::Unsafe { .. }) => fault.to_string(),
        other => panic!("{other:?}"),
    }
}

const OFF_LOOPBACK: [&str; 4] =
    ["0.0.0.0:8707", "[::]:8707", "192.168.1.7:8707", "[2001:db8::1]:1"];

// covers: W5
#[test]
fn off_loopback_without_tls_the_hub_does_not_start() {
    for address in OFF_LOOPBACK {
        let config = listening(&["127.0.0.1:8707", address]);
        let refused = refusal(&with_principal(config.clone()));
        assert!(refused.contains(address) && refused.contains("no TLS"), "{refused}");
        assert!(
            refused.contains("tls.certificate") && refused.contains("behind_proxy"),
            "{refused}"
        );
        assert!(check(&with_tls(with_principal(config.clone()))).is_ok());
        assert!(check(&with_proxy(with_principal(config), "10.0.0.1")).is_ok());
    }
}

// covers: S5, W5
#[test]
fn off_loopback_without_tokens_the_hub_does_not_start() {
    for address in OFF_LOOPBACK {
        let refused = refusal(&with_tls(listening(&[address])));
        assert!(refused.contains(address) && refused.contains("nobody has a token"), "{refused}");
        assert!(refused.contains("aaep hub init"), "{refused}");
    }
    // A proxy on this machine makes loopback as reachable as anything.
    let refused = refusal(&with_proxy(Config::default(), "127.0.0.1"));
    assert!(refused.contains("nobody has a token"), "{refused}");
}

// covers: D4
#[test]
fn trying_out_stays_on_this_machine() {
    let mut config = with_tls(with_principal(listening(&["0.0.0.0:8707"])));
    config.development.local_replies = true;
    assert!(refusal(&config).contains("development.local_replies"));
    config.listen = Config::default().listen;
    let warnings = check(&config).unwrap();
    assert!(warnings[0].contains("approve in your name"), "{warnings:?}");
}

// covers: W5
#[test]
fn loopback_without_credentials_starts_with_a_warning() {
    for address in ["127.0.0.1:8707", "[::1]:8707", "127.9.9.9:1"] {
        let warnings = check(&listening(&[address])).unwrap();
        assert!(warnings[0].contains("without a token"), "{warnings:?}");
    }
    let mut config = with_principal(Config::default());
    config.loopback_without_credentials = false;
    assert!(check(&config).unwrap().is_empty());
}

#[test]
fn a_hub_that_nobody_could_use_does_not_start() {
    let mut config = Config { loopback_without_credentials: false, ..Config::default() };
    config.unix_socket.enabled = false;
    assert!(refusal(&config).contains("Nobody could come in"));
    assert!(check(&with_principal(config)).is_ok());
}

#[test]
fn what_would_surprise_is_said() {
    let everywhere = with_tls(with_principal(listening(&["0.0.0.0:8707"])));
    assert!(check(&everywhere).unwrap().iter().any(|text| text.contains("allowed_hosts")));
    let named =
        Config { allowed_hosts: vec![HostName::parse("hub.example.org").unwrap()], ..everywhere };
    assert!(!check(&named).unwrap().iter().any(|text| text.contains("allowed_hosts")));
    let said = |proxy| {
        let config = with_proxy(with_principal(listening(&["192.168.1.7:8707"])), proxy);
        check(&config).unwrap().iter().any(|text| text.contains("not encrypted"))
    };
    assert!(said("192.168.1.8") && !said("127.0.0.1") && !said("127.0.0.0/8"));
}

#[cfg(unix)]
fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::MetadataExt;
    path.metadata().unwrap().mode() & 0o777
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[cfg(unix)]
#[test]
fn the_data_directory_is_for_its_owner_alone() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("a/b");
    drop(DataDirectory::open(&path).unwrap());
    assert_eq!(mode(&path), 0o700);
    assert_eq!(mode(&path.join("hub.lock")), 0o600);
    for wide in [0o750, 0o701, 0o777] {
        set_mode(&path, wide);
        let fault = DataDirectory::open(&path).unwrap_err().to_string();
        assert!(fault.contains("chmod 700") && fault.contains(&format!("{wide:o}")), "{fault}");
    }
}

#[test]
fn a_data_directory_that_cannot_be_is_explained() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    fs::write(&file, "").unwrap();
    for path in [file.clone(), file.join("below")] {
        let fault = DataDirectory::open(&path).unwrap_err();
        assert!(matches!(&fault, Fault::File { .. }), "{fault}");
    }
}

/// Not a test of its own: the second hub of the next test.
#[test]
fn a_process_that_holds_a_directory() {
    if let Some(path) = std::env::var_os("TEST_HOLD_DIRECTORY") {
        let _held = DataDirectory::open(Path::new(&path)).unwrap();
        println!("held");
        std::io::stdout().flush().unwrap();
        // Until the other side is gone, or ends this process.
        let _ = std::io::stdin().read(&mut [0]);
    }
}

#[test]
fn two_hubs_never_share_a_directory_and_a_killed_one_leaves_it_free() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("data");
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_process_that_holds_a_directory", "--nocapture"])
        .env("TEST_HOLD_DIRECTORY", &path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(other.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().contains("held")));
    let fault = DataDirectory::open(&path).unwrap_err();
    if cfg!(unix) {
        assert_eq!(fault, Fault::InUse { path: path.clone(), process: Some(other.id()) });
    }
    let text = fault.to_string();
    assert!(text.contains("Another hub") && text.contains("--data"), "{text}");
    other.kill().unwrap();
    other.wait().unwrap();
    let held = DataDirectory::open(&path).unwrap();
    assert!(matches!(DataDirectory::open(&path), Err(Fault::InUse { .. })));
    drop(held);
    DataDirectory::open(&path).unwrap();
}

#[test]
fn the_token_key_is_made_once_and_kept() {
    let place = tempfile::tempdir().unwrap();
    let data = DataDirectory::open(&place.path().join("data")).unwrap();
    let first = TokenKey::open(&data).unwrap();
    let again = TokenKey::open(&data).unwrap();
    assert!(first.is_new() && !again.is_new());
    assert_eq!(first.bytes(), again.bytes());
    assert_ne!(first.bytes(), TokenKey::ephemeral().unwrap().bytes());
    assert_ne!(first.bytes(), [0; 32]);
    assert_eq!(format!("{first:?}"), "TokenKey(…)");
    #[cfg(unix)]
    assert_eq!(mode(&data.path().join("token.key")), 0o600);
}

#[test]
fn what_a_crash_left_of_a_key_is_no_key() {
    let place = tempfile::tempdir().unwrap();
    let data = DataDirectory::open(&place.path().join("data")).unwrap();
    fs::write(data.path().join("token.key.new"), "half").unwrap();
    let key = TokenKey::open(&data).unwrap();
    assert_eq!(fs::read(data.path().join("token.key")).unwrap(), key.bytes());
    assert!(!data.path().join("token.key.new").exists());
}

#[cfg(unix)]
#[test]
fn a_token_key_that_is_not_right_is_explained_and_never_replaced() {
    let place = tempfile::tempdir().unwrap();
    let data = DataDirectory::open(&place.path().join("data")).unwrap();
    let path = data.path().join("token.key");
    let fault = |what: &str| {
        let text = TokenKey::open(&data).unwrap_err().to_string();
        assert!(text.contains("token.key") && text.contains(what), "{text}");
    };
    for (bytes, what) in [(vec![], "0 bytes"), (vec![7; 31], "31 bytes"), (vec![7; 33], "larger")] {
        fs::write(&path, &bytes).unwrap();
        set_mode(&path, 0o600);
        fault(what);
        assert_eq!(fs::read(&path).unwrap(), bytes);
    }
    fs::write(&path, [7; 32]).unwrap();
    set_mode(&path, 0o644);
    fault("chmod 600");
    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    fault("not a file");
    fs::remove_dir(&path).unwrap();
    std::os::unix::fs::symlink("nowhere", &path).unwrap();
    fault("cannot be read");
}

fn prepare(config: &Config) -> Result<Prepared, Fault> {
    Hub::builder().config(config.clone()).prepare()
}

#[test]
fn a_hub_is_prepared_from_its_configuration() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let state = Some(place.path().join("state"));
    let config = with_principal(Config { data: Some(data.clone()), state, ..Config::default() });
    // Without a state directory it works, and says what that means.
    let elsewhere = Some(place.path().join("forgetful"));
    let forgetful = Config { state: None, data: elsewhere, ..config.clone() };
    let warned = prepare(&forgetful).unwrap().warnings().to_vec();
    for words in ["an old copy of it would not be recognised", "can forge records"] {
        assert!(warned[1].contains(words), "{warned:?}");
    }
    let prepared = prepare(&config).unwrap();
    assert!(prepared.tls().is_none() && prepared.access().has_tokens());
    assert_eq!(prepared.data().unwrap().path(), data);
    assert_eq!(prepared.warnings().len(), 1);
    assert!(matches!(prepare(&config), Err(Fault::InUse { .. })));
    let ephemeral = Config { ephemeral: true, ..config };
    let other = prepare(&ephemeral).unwrap();
    assert!(other.data().is_none());
    assert!(other.token_key().bytes() != prepared.token_key().bytes());
    // Nothing is opened for a configuration that is not safe.
    let elsewhere = place.path().join("elsewhere");
    let unsafe_one = Config { data: Some(elsewhere.clone()), ..listening(&["0.0.0.0:1"]) };
    assert!(prepare(&unsafe_one).is_err() && !elsewhere.exists());
}

const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// Opens a connection and asks for something; gives what came first, and the connection.
async fn asks(address: std::net::SocketAddr, path: &str) -> (String, tokio::net::TcpStream) {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nhost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = vec![0; 4096];
    let size = tokio::time::timeout(PATIENCE, stream.read(&mut answer)).await.unwrap().unwrap();
    (String::from_utf8_lossy(&answer[..size]).into_owned(), stream)
}

// covers: I23
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_that_is_dropped_stops_and_another_may_take_its_place() {
    use tokio::io::AsyncReadExt;
    let place = tempfile::tempdir().unwrap();
    let anywhere = std::net::SocketAddr::from(([127, 0, 0, 1], 0));
    let config = |listen| Config {
        listen: vec![listen],
        data: Some(place.path().join("data")),
        state: Some(place.path().join("state")),
        unix_socket: aaep_hub::config::UnixSocket { enabled: false, path: None },
        ..Config::default()
    };
    let running = Hub::builder().config(config(anywhere)).start().await.unwrap();
    let address = running.addresses()[0];
    let handle = running.hub().clone();
    let (answer, mut stream) = asks(address, "/aaep/v1/events").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    drop(running);
    // Listeners notice; nobody else gets in; a handle that was kept is of no use.
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("an end");
    let gone = async {
        while tokio::net::TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("the door closes");
    let agent = aaep_engine::Principal::new("agent", Role::Agent, "local");
    let opening = aaep_types::agent_api::OpenSession {
        producer: r#"{"agent_id":"agent"}"#.into(),
        summary_normal: "Hello.".into(),
        payload: "{}".into(),
        ..Default::default()
    };
    let refused = handle.agent(&agent).open(opening, None).await.unwrap_err();
    assert_eq!(refused.kind, aaep_types::agent_api::ApiErrorKind::Unavailable);
    // The data directory is held until the journal is closed, and free then.
    let again = async {
        loop {
            match Hub::builder().config(config(address)).start().await {
                Ok(running) => return running,
                Err(Fault::InUse { .. }) => tokio::task::yield_now().await,
                Err(fault) => panic!("{fault}"),
            }
        }
    };
    let running = tokio::time::timeout(PATIENCE, again).await.expect("another hub");
    assert!(asks(address, "/healthz").await.0.starts_with("HTTP/1.1 200 OK"));
    running.stop().await.unwrap();
}
