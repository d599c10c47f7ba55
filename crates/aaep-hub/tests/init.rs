//! `aaep hub init` with real files, real handshakes and a process that is killed.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods)] // real files and sockets

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use aaep_engine::Role;
use aaep_hub::Hub;
use aaep_hub::access::{ApiSurface, Via};
use aaep_hub::config::{Flags, Loaded, Surroundings, load};
use aaep_hub::start::{Prepared, check};
use aaep_hub::{Fault, init};
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, ServerName, pem::PemObject};
use rustls::{ClientConfig, RootCertStore};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{TlsAcceptor, TlsConnector};

const NAMES: [&str; 4] = ["agent", "listener", "auditor", "admin"];
const PARTS: [&str; 3] = ["tls", "tokens", "aaep.toml"];

fn loaded(directory: &Path) -> Loaded {
    let flags = Flags { config: Some(directory.join("aaep.toml")), ..Flags::default() };
    let variables = [("HOME".to_owned(), directory.to_str().unwrap().to_owned())].into();
    load(&flags, &Surroundings { variables, directory: directory.to_owned() }).unwrap()
}

/// Starts a hub with what was made, as far as this crate goes, and shows every token.
fn started(directory: &Path) -> Prepared {
    let prepared = Hub::builder().config(loaded(directory).config).prepare().unwrap();
    let roles = [Role::Agent, Role::AccessibilityConsumer, Role::Auditor, Role::Admin];
    for (name, role) in NAMES.iter().zip(roles) {
        let token = fs::read_to_string(directory.join("tokens").join(name)).unwrap();
        let known =
            prepared.access().who(Some(token.trim()), Via::Network, ApiSurface::Listener).unwrap();
        assert_eq!((&*known.principal.name, known.principal.role), (*name, role));
    }
    assert!(prepared.access().who(None, Via::Loopback, ApiSurface::Listener).is_err());
    prepared
}

/// Every file and directory below, with its mode.
fn below(directory: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let metadata = path.metadata().unwrap();
        found.push((path.clone(), metadata.mode() & 0o777));
        if metadata.is_dir() {
            found.extend(below(&path));
        }
    }
    found.sort();
    found
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("aaep");
    (place, directory)
}

// covers: S5, S6, W5
#[test]
fn one_step_makes_a_safe_hub() {
    let (_place, directory) = place();
    let lines = init(&directory, &[]).unwrap();
    assert!(started(&directory).tls().is_some());
    let config = loaded(&directory).config;
    assert!(config.listen.iter().all(|address| address.ip().is_loopback()));
    assert_eq!(check(&config).unwrap(), Vec::<String>::new(), "nothing to warn of");
    let text = lines.join("\n");
    for said in ["aaep hub --config", "https://localhost:8707", "tokens/listener", "one year"] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

// covers: S8
#[test]
fn secrets_are_for_their_owner_alone_and_only_hashes_are_in_the_configuration() {
    let (_place, directory) = place();
    let lines = init(&directory, &[]).unwrap();
    let config = fs::read_to_string(directory.join("aaep.toml")).unwrap();
    for (path, mode) in below(&directory) {
        assert_eq!(mode, if path.is_dir() { 0o700 } else { 0o600 }, "{path:?}");
    }
    assert_eq!(directory.metadata().unwrap().mode() & 0o777, 0o700);
    for name in NAMES {
        let token = fs::read_to_string(directory.join("tokens").join(name)).unwrap();
        assert!(!config.contains(token.trim()) && !lines.join("\n").contains(token.trim()));
    }
}

async fn shake(prepared: &Prepared, trusted: &Path, name: &str) -> std::io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let acceptor = TlsAcceptor::from(prepared.tls().unwrap().server_config());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(trusted).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let server = async { acceptor.accept(listener.accept().await?.0).await.map(drop) };
    let client = async {
        let stream = TcpStream::connect(address).await?;
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.map(drop)
    };
    let both = async { tokio::join!(client, server) };
    tokio::time::timeout(Duration::from_secs(60), both).await.unwrap().0
}

// covers: W5
#[tokio::test]
async fn the_certificate_is_for_this_machine_and_the_hosts_given() {
    let (_place, directory) = place();
    let hosts = ["hub.example.org", "192.0.2.1", "2001:db8::1", "localhost"].map(String::from);
    let lines = init(&directory, &hosts).unwrap();
    assert!(lines.join("\n").contains("https://hub.example.org:8707"));
    let config = loaded(&directory).config;
    let allowed: Vec<_> = config.allowed_hosts.iter().map(ToString::to_string).collect();
    assert_eq!(allowed, ["hub.example.org", "192.0.2.1", "[2001:db8::1]", "localhost"]);
    assert!(config.listen.iter().all(|address| address.ip().is_unspecified()));
    let prepared = started(&directory);
    assert!(prepared.warnings().is_empty(), "{:?}", prepared.warnings());
    let certificate = directory.join("tls/certificate.pem");
    for name in ["localhost", "127.0.0.1", "::1", "hub.example.org", "192.0.2.1", "2001:db8::1"] {
        shake(&prepared, &certificate, name).await.expect(name);
    }
    for name in ["evil.example", "192.0.2.2"] {
        assert!(shake(&prepared, &certificate, name).await.is_err(), "{name}");
    }
}

#[test]
fn nothing_is_ever_overwritten() {
    for part in PARTS {
        let (_place, directory) = place();
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join(part);
        fs::write(&path, "mine").unwrap();
        let fault = init(&directory, &[]).unwrap_err();
        let text = fault.to_string();
        assert!(matches!(fault, Fault::File { .. }) && text.contains(part), "{text}");
        assert!(text.contains("Nothing was changed") && text.contains("--dir"), "{text}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "mine");
        assert_eq!(below(&directory).len(), 1, "{:?}", below(&directory));
    }
    let (_place, directory) = place();
    init(&directory, &[]).unwrap();
    let contents = || {
        let files = below(&directory).into_iter().filter(|(path, _)| path.is_file());
        files.map(|(path, _)| (fs::read(&path).unwrap(), path)).collect::<Vec<_>>()
    };
    let before = contents();
    assert!(init(&directory, &[]).unwrap_err().to_string().contains("tls, tokens, aaep.toml"));
    assert_eq!(contents(), before);
}

#[test]
fn a_link_that_leads_nowhere_is_not_followed() {
    let (place, directory) = place();
    fs::create_dir_all(&directory).unwrap();
    let elsewhere = place.path().join("elsewhere");
    std::os::unix::fs::symlink(&elsewhere, directory.join("aaep.toml")).unwrap();
    assert!(init(&directory, &[]).is_err() && !elsewhere.exists());
}

#[test]
fn other_files_in_the_directory_are_left_alone() {
    let (_place, directory) = place();
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("notes.txt"), "mine").unwrap();
    init(&directory, &[]).unwrap();
    assert_eq!(fs::read_to_string(directory.join("notes.txt")).unwrap(), "mine");
    drop(started(&directory));
}

#[test]
fn a_directory_that_everybody_may_write_is_refused() {
    let (_place, directory) = place();
    fs::create_dir_all(&directory).unwrap();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
    let fault = init(&directory, &[]).unwrap_err().to_string();
    assert!(fault.contains("--dir") && below(&directory).is_empty(), "{fault}");
}

#[test]
fn a_host_that_is_none_is_refused_before_anything_is_made() {
    let (_place, directory) = place();
    for host in ["*", "https://x", "x:8707", "a\" ]\nlisten = [\"0.0.0.0:1"] {
        let fault = init(&directory, &[host.into()]).unwrap_err().to_string();
        assert!(fault.contains("--host") && !directory.exists(), "{fault}");
    }
}

#[test]
fn what_a_crash_left_in_the_middle_is_finished_or_thrown_away() {
    let (_place, made) = place();
    init(&made, &[]).unwrap();
    // Crashes while things are put in place: so many parts are in place already.
    for moved in 0..=PARTS.len() {
        let (_place, directory) = place();
        let aside = directory.join(".aaep-init");
        fs::create_dir_all(&aside).unwrap();
        for (at, part) in PARTS.iter().enumerate() {
            let to = if at < moved { &directory } else { &aside };
            copy(&made.join(part), &to.join(part));
        }
        let second = init(&directory, &[]);
        match second {
            Ok(lines) => assert!(moved < 3 && lines[0].contains("interrupted"), "{lines:?}"),
            // Everything was in place; only the lines had not been printed.
            Err(fault) => assert!(moved == 3 && fault.to_string().contains("already"), "{fault}"),
        }
        assert!(!aside.exists());
        drop(started(&directory));
    }
    // Crashes while things are made: the configuration, made last, is missing.
    for made_so_far in [&[][..], &["tls"], &["tls", "tokens"]] {
        let (_place, directory) = place();
        let aside = directory.join(".aaep-init");
        fs::create_dir_all(&aside).unwrap();
        for part in made_so_far {
            copy(&made.join(part), &aside.join(part));
        }
        fs::write(aside.join("aaep.toml.new"), "listen = [").unwrap();
        init(&directory, &[]).unwrap();
        assert!(!aside.exists());
        drop(started(&directory));
        let token = |directory: &Path| fs::read(directory.join("tokens/admin")).unwrap();
        assert_ne!(token(&directory), token(&made), "what was unfinished is not used");
    }
}

fn copy(from: &Path, to: &Path) {
    if from.is_dir() {
        fs::create_dir_all(to).unwrap();
        for entry in fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            copy(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        fs::copy(from, to).unwrap();
    }
}

/// Not a test of its own: the process that the next test kills.
#[test]
fn a_process_that_runs_init() {
    if let Some(directory) = std::env::var_os("TEST_INIT_DIRECTORY") {
        let _ = init(Path::new(&directory), &[]);
    }
}

#[test]
fn a_run_that_was_killed_at_any_moment_can_be_repeated() {
    let (_place, base) = place();
    for moment in 0..24 {
        let directory = base.join(moment.to_string());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "a_process_that_runs_init"])
            .env("TEST_INIT_DIRECTORY", &directory)
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        // Not to wait for anything: only to be somewhere else each time.
        std::thread::sleep(Duration::from_micros(moment * 700));
        child.kill().unwrap();
        child.wait().unwrap();
        if let Err(fault) = init(&directory, &[]) {
            assert!(fault.to_string().contains("already is: tls, tokens, aaep.toml"), "{fault}");
        }
        drop(started(&directory));
        assert!(!directory.join(".aaep-init").exists());
    }
}

#[test]
fn of_two_runs_at_once_one_makes_it_and_the_other_says_so() {
    let (_place, directory) = place();
    let run = || init(&directory, &[]);
    let results = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(run)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let made = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!(made, 1, "{results:?}");
    drop(started(&directory));
}
